"""The frameworks that there are: the built-in ones, and those of other packages."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from typing import TypedDict

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks import Framework
from crystalperf.query.trace.plugins import entries

_ML = ("jax", "tensorflow", "pytorch", "mxnet")
BUILT_IN = ("spark", "flink", *_ML)
"""In the order in which they are asked whether a file is theirs: JAX's are TensorFlow's too, by their form."""

Amount = str | int | float
"""Of a setting: `2x` (times as much), `4`, `8GB`, `none`."""


class Settings(TypedDict, total=False):
    """The settings that Run.predict() and Run.sweep() take as keywords, for editors and type checkers.

    All others are written as text: names with a dot (`predict("device.gpu=2x")`) and those of other packages.
    """

    # every framework
    workers: Amount
    cores: Amount
    memory: Amount
    cpu_speed: Amount
    disk: Amount
    network: Amount
    input: Amount
    units: Amount
    skew: Amount
    scheduler: Amount
    # streams
    rate: Amount
    # Spark
    executors: Amount
    partitions: Amount
    # Flink
    taskmanagers: Amount
    slots: Amount
    parallelism: Amount
    # trainings
    processes: Amount
    ranks: Amount
    lanes: Amount
    batch: Amount
    device: Amount


def package_of(name: str) -> str:
    """The package of a built-in framework; '' for one that another package brings."""
    return f"crystalperf.query.frameworks.{'ml.' if name in _ML else ''}{name}" if name in BUILT_IN else ""


class _Frameworks(MutableMapping[str, Framework]):
    """By name, the built-in ones first.  Of these a package is imported when it is asked for: a run needs one."""

    def __init__(self) -> None:
        self._known: dict[str, Framework | None] = dict.fromkeys(BUILT_IN)
        for each in entries("frameworks").values():
            self._known.setdefault(each.name, each)

    def __getitem__(self, name: str) -> Framework:
        found = self._known[name]
        if found is None:
            found = getattr(import_module(package_of(name)), name.upper())
            self._known[name] = found
        return found

    def __setitem__(self, name: str, framework: Framework) -> None:
        self._known[name] = framework

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@cache
def frameworks() -> MutableMapping[str, Framework]:
    """All known frameworks by name."""
    return _Frameworks()


def is_built_in(framework: Framework) -> bool:
    """Whether a framework is one of CrystalPerf's own; what fails in others is not ours to mend."""
    return framework.name in BUILT_IN


def get(name: str) -> Framework:
    """A framework by name.  Raises InputError where there is none of that name."""
    try:
        return frameworks()[name]
    except KeyError:
        raise InputError(f"framework '{name}' is not known; known are {', '.join(frameworks())}") from None
