"""The reserve: framework files kept for an independent verification, never labelled, tuned on or trained on."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

FRAMEWORKS = frozenset({"spark", "flink", "tensorflow"})
"""The libraries of which half the files are reserved, and of which no function may train a model."""


def is_reserved(file: str) -> bool:
    """Whether a framework's source file is reserved: sha256 of its name, without folders, ends in an odd hex digit."""
    name = PurePosixPath(file).name
    return hashlib.sha256(name.encode("utf-8")).hexdigest()[-1] in "13579bdf"
