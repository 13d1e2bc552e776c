"""The extension point of a framework's package for comparing runs: the settings and operators that matter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.stream_comparison import StationSide, StreamMeasure, StreamSide

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import PathItem

Effect = Literal["plan", "tasks", "memory", "slots", "compute", "none"]
"""The effect of a setting.

plan     other operators, or another order of them
tasks    another number of tasks for the same data
memory   more or less memory for tasks
slots    another number of slots, or another use of them
compute  another cost of the same work, such as a codec
none     no effect on times
"""


OperatorPlace = Literal["device", "gap", "host", "program", "copy", "collective", "input"]
"""Where an operator's time passes.

device      in a kernel of an accelerator
gap         on an accelerator, between two kernels
host        in an operator on a thread of a process; pieces between which others ran count one by one
program     on a thread of a process, between its operators: the program itself, and calls of the runtime
copy        on the link between a process and its accelerator
collective  in an exchange with other processes, or waiting for them to begin it
input       waiting for the next batch of input
"""


@frozen
class OperatorAccount:
    """One operator in a mean step, of one process; times are ms.

    path_ms  its wall-clock time on the critical path; `time_ms` is all its time
    count    how many times it ran
    work     floating-point operations of its kernels, or the bytes that they move; None if not known
    unit     the unit of its arithmetic, such as tf32; empty if it is not a product
    grows    whether its work grows with the batch
    """

    name: str
    place: OperatorPlace
    path_ms: float
    time_ms: float
    count: float
    work: float | None
    unit: str
    bytes: float
    grows: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.place, self.name


@frozen
class StepAccount:
    """A mean step of a run of repeated steps: its operators, whose path_ms sum to its length.

    Facts that the log does not record are None: examples in a batch of one process, the model of all accelerators, the
    unit of most arithmetic, the number of processes.
    """

    operators: tuple[OperatorAccount, ...]
    steps: int
    batch: float | None
    accelerator: str | None
    precision: str | None
    processes: float | None


@frozen
class StreamAccount:
    """A stream: its figures, its stages by name in the order of the data flow, and the time to compare.

    `parts_ms` sum to that time: an empty mapping if the log records none.  Its keys are the kind of a part and its
    subject: `record` and a stage, `wait` and a cause (query.results.answers.Cause), `batch` and a part of a batch.
    """

    measure: StreamMeasure | None
    figures: StreamSide
    stations: Mapping[str, StationSide]
    parts_ms: Mapping[tuple[str, str], float]

    @property
    def time_ms(self) -> float:
        return sum(self.parts_ms.values())


@frozen
class Comparer:
    """A framework's part in comparing runs.  All of it is optional.

    settings   the effects of settings by key, or by the beginning of keys that ends with a dot; others have no known
               effect, and come last
    adapters   names of operators that a plan has or lacks by the size of the data, without other work
    measured   whether the other properties of a run are measurements of its log, not settings
    step       the account of a mean step, from the run file, a scope of it, and that scope's critical path; for runs
               whose stages run different operators one after the other
    stream     the account of a stream that is not an Execution.stream; None if the run is not one
    """

    settings: Mapping[str, tuple[Effect, ...]] = field(default_factory=dict)
    adapters: Collection[str] = ()
    measured: bool = False
    step: Callable[[duckdb.DuckDBPyConnection, Execution, Sequence[PathItem]], StepAccount] | None = None
    stream: Callable[[duckdb.DuckDBPyConnection, Execution], StreamAccount | None] = lambda _run, _scope: None

    def is_setting(self, key: str) -> bool:
        """Whether a property of a run is a setting."""
        return not self.measured or bool(self.effects(key))

    def effects(self, key: str) -> tuple[Effect, ...]:
        """The effects of a setting; empty if none is known."""
        if key in self.settings:
            return self.settings[key]
        return next(
            (found for known, found in self.settings.items() if known.endswith(".") and key.startswith(known)), ()
        )
