"""Kinds of refusals of trainings alone: why a prediction is not possible."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.refusals import Refusal


@frozen
class OperatorsFixed(Refusal):
    """No setting splits the operators that a program calls."""

    kind: ClassVar[str] = "operators-fixed"


@frozen
class SlotsFixed(Refusal):
    """A thread or a stream runs what its program submits, however many there are."""

    kind: ClassVar[str] = "slots-fixed"


@frozen
class FewerProcesses(Refusal):
    """Fewer processes than recorded: it is unknown which of them would be removed."""

    kind: ClassVar[str] = "fewer-processes"
    recorded: int


@frozen
class SingleProcess(Refusal):
    """A single process exchanges no gradients, so the cost of exchanging them is unknown."""

    kind: ClassVar[str] = "single-process"


@frozen
class RanksWithoutTrace(Refusal):
    """Traces of `missing` of `ranks` ranks are missing; collectives may have waited for these ranks."""

    kind: ClassVar[str] = "ranks-without-trace"
    missing: int
    ranks: int


@frozen
class PrecisionUnknown(Refusal):
    """Which operators a program would compute in 16-bit numbers is unknown, and so is the cost of converting."""

    kind: ClassVar[str] = "precision-unknown"
