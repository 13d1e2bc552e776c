"""The reserve: framework files held out for independent verification, never labelled and never used for training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import PurePosixPath

from crystalperf.indexer.labels.tables import Label

FRAMEWORKS = frozenset({"spark", "flink", "tensorflow"})
"""The libraries with half their files reserved; no function of theirs may train a model."""


def is_reserved(file: str) -> bool:
    """Whether a framework's source file is reserved: sha256 of its name, without folders, ends in an odd hex digit."""
    name = PurePosixPath(file).name
    return hashlib.sha256(name.encode("utf-8")).hexdigest()[-1] in "13579bdf"


def violations(set_name: str, labels: Iterable[Label]) -> list[str]:
    """One sentence for every label of a set that breaks the reserve."""
    found = []
    for each in labels:
        if set_name == "train" and each.library in FRAMEWORKS:
            found.append(f"{each.id}: a function of {each.library} is in the training set")
        if set_name not in ("train", f"dev-{each.library}"):
            found.append(f"{each.id}: a function of {each.library} is in {set_name}")
        if each.library in FRAMEWORKS and is_reserved(each.file):
            found.append(f"{each.id}: {each.library}'s file {each.file} is reserved")
    return found
