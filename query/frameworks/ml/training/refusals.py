"""Why a question about a training has no answer, where only trainings have the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.refusals import Refusal


@dataclass(frozen=True)
class OperatorsFixed(Refusal):
    """Operators are what the program calls; no setting cuts them into others."""

    kind: ClassVar[str] = "operators-fixed"


@dataclass(frozen=True)
class LanesFixed(Refusal):
    """A thread or a stream does what its program gives it, however many there are."""

    kind: ClassVar[str] = "lanes-fixed"


@dataclass(frozen=True)
class FewerProcesses(Refusal):
    """Fewer processes than the recorded ones: which would go is unknown."""

    kind: ClassVar[str] = "fewer-processes"
    recorded: int


@dataclass(frozen=True)
class SingleProcess(Refusal):
    """A single process exchanges no gradients, so what exchanging them takes is unknown."""

    kind: ClassVar[str] = "single-process"


@dataclass(frozen=True)
class RanksWithoutTrace(Refusal):
    """Collectives may have waited for so many of all ranks, whose traces are missing."""

    kind: ClassVar[str] = "ranks-without-trace"
    missing: int
    ranks: int
