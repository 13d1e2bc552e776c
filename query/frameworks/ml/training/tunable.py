"""A training's part in a search for a configuration: batch, processes and, if the framework has them, loaders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import duckdb

from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.tunable import Knob, Tunable, Values
from crystalperf.query.frameworks.ml.training import memory
from crystalperf.query.frameworks.ml.training.devices import GPU
from crystalperf.query.results.recommendations import SettingChange
from crystalperf.query.results.tuning import NotTuned, Unmodelled, ValueNotRecorded

BATCH, PROCESSES = "batch size", "number of processes"

_BATCHES = (0.5, 2.0, 4.0, 8.0)
"""Batches to try, times the recorded one."""

_LOADERS = (0.5, 2.0, 3.0, 4.0)
"""Loader processes to try, times the recorded ones."""

UNMODELLED = ("prefetch factor", "gradient accumulation", "compilation of the model")

Tuned = Callable[[duckdb.DuckDBPyConnection, Execution], Tunable]


def of_settings(own: Collection[tuple[str, str]] = ()) -> Tuned:
    """The hook of a framework with further settings (key, name) that are ratios to their recorded values."""

    def tunable(_connection: duckdb.DuckDBPyConnection, execution: Execution) -> Tunable:
        workers = execution.recorded.get("workers")
        knobs = [Knob(key, 1.0, (*_LOADERS[:1], 1.0, *_LOADERS[1:]), "times", name) for key, name in own]
        missing: list[NotTuned] = [Unmodelled(each) for each in UNMODELLED]
        if workers:
            knobs.insert(0, Knob("workers", workers, name=PROCESSES))
        batches = tuple(each for each in _BATCHES if _fits(execution, each))
        if batches:
            knobs.append(Knob("input", 1.0, tuple(sorted((*batches, 1.0))), "times", BATCH, on_demand=True))
        else:
            missing.append(ValueNotRecorded(BATCH))
        known = {each.key: each for each in knobs}

        def changes(key: str, values: Values) -> Sequence[SettingChange]:
            knob = known[key]
            if knob.unit == "times":
                return [SettingChange(knob.name, "as recorded", f"{values[key]:g} times the recorded one")]
            return [SettingChange(knob.name, round(knob.recorded), round(values[key]))]

        return Tunable(tuple(knobs), tuple(missing), changes, slots_cost=False)

    return tunable


def _fits(execution: Execution, ratio: float) -> bool:
    """Whether a batch fits the memory of its accelerator; one without a trace of its memory gets no larger batch."""
    if ratio <= 1 or GPU.name not in execution.names:
        return True
    need = memory.needed(execution.properties, ratio)
    return need is not None and need.capacity_bytes is not None and need.most_bytes <= need.capacity_bytes
