"""The parts of a run's configuration that a search may change: the contract with the run's framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.recommendations import SettingChange
from crystalperf.query.results.tuning import NotTuned

Values = Mapping[str, float]
"""Values of a configuration by setting of a what-if: counts, bytes, or ratios."""


@frozen
class Knob:
    """A setting that a search may change.

    key       a setting of a what-if
    recorded  its value in the run; 1 for a ratio
    values    values to try; those of workers, cores and memory follow from the limits of the search
    unit      count, bytes, or times: a ratio to a recorded value that the log does not have
    name      the framework's name of the setting, if it has one
    on_demand whether it changes only if the user sets a limit for it, because it changes the result of the job
    """

    key: str
    recorded: float
    values: tuple[float, ...] = ()
    unit: Literal["count", "bytes", "times"] = "count"
    name: str = ""
    on_demand: bool = False

    def text(self, value: float) -> str:
        """A value as KEY=VALUE of a what-if."""
        suffix = {"count": "", "bytes": "B", "times": "x"}[self.unit]
        return f"{self.key}={value:.12g}{suffix}" if self.unit == "times" else f"{self.key}={value:.0f}{suffix}"


@frozen
class Tunable:
    """The part of a run that a search may change, and how its framework writes that.

    knobs        the settings that predictions cover
    not_tuned    settings that they do not cover
    changes      a knob's key, and all values by key → the settings to write for that key
    is_possible  all values by key → whether the framework runs with them
    asked_bytes  memory of a worker → what it asks of its machine or container
    slots_cost   whether slots are what a configuration costs; otherwise its workers, whose slots share their CPU
    least_bytes  slots of a worker → the memory that it needs at least; None if unknown, then it keeps its memory
    """

    knobs: tuple[Knob, ...]
    not_tuned: tuple[NotTuned, ...]
    changes: Callable[[str, Values], Sequence[SettingChange]]
    is_possible: Callable[[Values], bool] = lambda _values: True
    asked_bytes: Callable[[float], float] = lambda memory_bytes: memory_bytes
    least_bytes: Callable[[float], float] | None = None
    slots_cost: bool = True

    def knob(self, key: str) -> Knob | None:
        """The knob of a setting; None if it has none."""
        return next((each for each in self.knobs if each.key == key), None)

    def recorded(self, key: str, otherwise: float = 1.0) -> float:
        """The recorded value of a knob."""
        knob = self.knob(key)
        return otherwise if knob is None else knob.recorded
