"""The list of published data, docs/systems-data.tsv, and its files in a clone."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

from lab.errors import LabError

LIST = Path(__file__).parents[2] / "docs" / "systems-data.tsv"


def entries(file: Path = LIST) -> dict[str, dict[str, str]]:
    """The rows of the list by name of the system."""
    with file.open(encoding="utf-8", newline="") as source:
        return {each["system"]: each for each in csv.DictReader(source, delimiter="\t")}


def file_of(system: str, folder: Path, listed: Path = LIST) -> Path:
    """The file of a system in a clone.  Raises LabError if it is missing or differs from the one that was measured."""
    entry = entries(listed)[system]
    path = folder / entry["path"]
    if not path.is_file():
        raise LabError(f"{path}: no such file; clone it with `git clone {entry['address']} {folder}`")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != entry["sha256"]:
        raise LabError(f"{path} differs from the listed one; check out {entry['commit']} of {entry['address']}")
    return path
