"""The mean steps of both sides of a comparison, for runs of repeated steps; times are ms of one step."""

from __future__ import annotations

from crystalperf.indexes.frozen import frozen


@frozen
class StepSide:
    """A mean step of a side; unknown values are None.

    steps        recorded in all of its runs
    batch        examples in a batch of one process
    accelerator  the model of all accelerators
    precision    the unit of most arithmetic on them, such as tf32
    processes    that train together
    """

    steps: int
    batch: float | None
    accelerator: str | None
    precision: str | None
    processes: float | None


@frozen
class ComparedOperator:
    """An operator in a mean step of both sides: how often it ran in a process, and for how long.

    `place` is device, gap, host, copy, collective or input.  `before_ms` and `after_ms` are its whole time, the others
    its wall-clock time on the critical path.
    """

    name: str
    place: str
    before_count: float
    after_count: float
    before_ms: float
    after_ms: float
    before_path_ms: float
    after_path_ms: float


@frozen
class StepComparison:
    """Both sides' mean steps; `operators` are in the order of the largest change on the path, then of the time."""

    before: StepSide
    after: StepSide
    operators: tuple[ComparedOperator, ...]
