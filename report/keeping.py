"""Writing a page atomically, without replacing anything but a page."""

from __future__ import annotations

import os
import re
import stat
from html import unescape
from pathlib import Path

from crystalperf.indexes.errors import InputError, Remedy
from crystalperf.indexes.temporary import building_folder

_HEAD_BYTES = 8_192
_OF_RUN = re.compile(r'<meta name="crystalperf-run" content="([^"]*)">')


def keep(path: Path, html: str, run: str, *, replace: bool = False) -> None:
    """Write a page of the run with this application id.

    It replaces an earlier page of the same run, and that of another run only with `replace`.  Raises InputError if the
    path holds another kind of file, or is not writable.
    """
    check(path, run, replace=replace)
    path = path.absolute()
    try:
        with building_folder(path) as folder:
            made = folder / "page.html"
            made.write_text(html, encoding="utf-8")
            made.chmod(0o600)  # names of tables and hosts, texts of queries
            os.replace(made, path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be written ({reason})", Remedy("choose another place")) from error


def check(path: Path, run: str, *, replace: bool = False) -> None:
    """Raise InputError unless a page of a run may be written there."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        folder = path.absolute().parent
        if not folder.is_dir():
            why = "is a file, not a folder" if folder.exists() else "no such folder; create it first"
            raise InputError(f"{folder}: {why}", Remedy("choose another place")) from None
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be written ({reason})", Remedy("choose another place")) from error
    if stat.S_ISREG(status.st_mode) and status.st_size == 0:
        return
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path}: exists and is not a regular file, so it is not replaced", Remedy("choose another place")
        )
    there = page_of(path)
    if there is None:
        raise InputError(
            f"{path}: exists and is not a page of a run, so it is not replaced", Remedy("choose another place")
        )
    if there != run and not replace:
        raise InputError(
            f"{path}: exists and is the page of {there[:100]}, not of {run[:100]}, so it is not replaced",
            Remedy("replace it"),
        )


def page_of(path: Path) -> str | None:
    """The application id of a page's run; None if the file is not a page."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error})", Remedy("choose another place")
        ) from error
    match = _OF_RUN.search(head)
    return None if match is None else unescape(match[1])
