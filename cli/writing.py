"""Files that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.temporary import building_folder


def write_file(target: Path, text: str) -> None:
    """Write text to a path: a file is complete or as before, a pipe or device is written to.  Raises InputError."""
    try:
        if (target.exists() and not target.is_file()) or not target.parent.is_dir():
            target.write_text(text, encoding="utf-8")
            return
        with building_folder(target.resolve()) as folder:
            made = folder / "made"
            made.write_text(text, encoding="utf-8")
            os.replace(made, target.resolve())
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error}); choose another file") from error
