"""The registry of installed frameworks, by name: the built-in ones, and those of other packages.

Modules see only the part of a framework that their layer may use: for reading logs a ReadableFramework, for queries
all of it (crystalperf.query.frameworks.registry).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.files import Head, LogPart
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.trace.plugins import entries

_ML = ("jax", "tensorflow", "pytorch", "mxnet")
BUILT_IN = ("spark", "flink", *_ML)
"""In the order in which they try to recognise a file: JAX's files also have the form of TensorFlow's."""


def package_of(name: str) -> str:
    """The package of a built-in framework; '' for a framework of another package."""
    return f"crystalperf.query.frameworks.{'ml.' if name in _ML else ''}{name}" if name in BUILT_IN else ""


def is_built_in(name: str) -> bool:
    """Whether a framework is one of CrystalPerf's own; errors of others are reported as theirs."""
    return name in BUILT_IN


class Recogniser(NamedTuple):
    """The part of a framework that recognises its files."""

    name: str
    recognise: Callable[[Head], LogPart | None]
    """Reader.recognise."""
    marks: re.Pattern[str] | None
    """Reader.marks."""


class _Installed(MutableMapping[str, Any]):
    """Frameworks by name, the built-in ones first; these are imported on first use, because a run needs one."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = dict.fromkeys(BUILT_IN)
        for each in entries("frameworks").values():
            self._known.setdefault(each.name, each)

    def __getitem__(self, name: str) -> Any:
        found = self._known[name]
        if found is None:
            found = getattr(import_module(f"{package_of(name)}.framework"), name.upper())
            self._known[name] = found
        return found

    def recogniser(self, name: str) -> Recogniser:
        """How a framework recognises its files; a built-in one is not imported for this, only its module `files`."""
        if (known := self._known[name]) is not None:
            return Recogniser(known.name, known.reader.recognise, known.reader.marks)
        files = import_module(f"{package_of(name)}.files")
        return Recogniser(name, files.recognise, getattr(files, "MARKS", None))

    def __setitem__(self, name: str, framework: Any) -> None:
        self._known[name] = framework

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@cache
def installed() -> _Installed:
    """All installed frameworks, untyped like their entry points."""
    return _Installed()


def find(name: str) -> Any:
    """A framework by name.  Raises InputError for an unknown name."""
    try:
        return installed()[name]
    except KeyError:
        raise InputError(f"unknown framework '{name}'; choose one of {', '.join(installed())}") from None


def readable() -> Mapping[str, ReadableFramework]:
    """All installed frameworks, for reading logs."""
    return installed()


def recognisers() -> Iterator[Recogniser]:
    """Those of all installed frameworks, in the order in which they try to recognise a file."""
    return (installed().recogniser(name) for name in installed())
