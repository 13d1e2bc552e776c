"""Kinds of refusals of PyTorch alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.refusals import Refusal


@frozen
class NoLoaders(Refusal):
    """The training's thread makes its batches itself."""

    kind: ClassVar[str] = "no-loaders"


@frozen
class LoadersAhead(Refusal):
    """Steps did not wait for loader processes, so the time that these need for a batch is unknown."""

    kind: ClassVar[str] = "loaders-ahead"


@frozen
class GraphUnknown(Refusal):
    """How much of a program's launches a graph can hold is unknown; an accelerator worked `busy_ms` a step, None if
    unknown."""

    kind: ClassVar[str] = "graph-unknown"
    busy_ms: float | None


@frozen
class NoKernels(Refusal):
    """The trace has no kernels of an accelerator, so nothing launches any."""

    kind: ClassVar[str] = "no-kernels"
