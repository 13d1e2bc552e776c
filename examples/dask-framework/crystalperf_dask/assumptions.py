"""Assumptions of answers about a run of Dask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.plugin import Assumption


@dataclass(frozen=True)
class ThreadsByProfile(Assumption):
    """The resources of tasks come from Dask's own profiler."""

    kind: ClassVar[str] = "threads-by-profile"


@dataclass(frozen=True)
class ComputingTogether(Assumption):
    """Libraries such as numpy compute on several threads of a worker at a time, other Python code on one."""

    kind: ClassVar[str] = "computing-together"
