"""Simple predictors to compare CrystalPerf with, from one recorded baseline run to another configuration.

Each takes the figures of the baseline run's recording and the changes, and predicts a measure, or None: latency_ms and
makespan_ms (ms), throughput_per_s (records per second that the sources emit).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import (
    Scenario,
    combinations,
    parse_settings,
    recorded_resources,
    scenario_of,
    settings_of,
)
from crystalperf.query.execution.stream import Station, Stream, path_segments
from crystalperf.query.predict.estimate import predict
from crystalperf.query.simulate.transfers import PAPER
from crystalperf.query.trace.records import Floats


@dataclass(frozen=True)
class Changed:
    """Ratios of a configuration's resources to its baseline run's; `slots` are subtasks of all vertices."""

    rate: float = 1.0
    slots: float = 1.0
    cpu: float = 1.0
    network: float = 1.0


@dataclass(frozen=True)
class Observation:
    """A baseline run: its measures, and figures from its recording.

    `busy_ms` is the wall-clock time in which any subtask ran, for a job with an end.  `asked` and `recorded` are the
    arguments of `crystalperf predict`: --set and --recorded.
    """

    measures: Mapping[str, float]
    stream: Stream | None = None
    busy_ms: float = 0.0
    execution: Execution | None = None
    asked: tuple[str, ...] = ()
    recorded: tuple[str, ...] = field(default=())


Baseline = Callable[[Observation, Changed, str], float | None]


def no_change(seen: Observation, _changed: Changed, measure: str) -> float | None:
    """The measure of the baseline run."""
    return seen.measures.get(measure)


def linear(seen: Observation, changed: Changed, measure: str) -> float | None:
    """Everything in proportion to subtasks, their CPU, the network and the rate."""
    known = seen.measures.get(measure)
    if known is None:
        return None
    more = changed.slots * changed.cpu * changed.network
    return known * more if measure == "throughput_per_s" else known * changed.rate / more


def amdahl(seen: Observation, changed: Changed, measure: str) -> float | None:
    """Amdahl: the busy time of subtasks scales with their number and CPU, the rest does not; nothing else matters.

    For the latency of a record, it is the time at operators, which more subtasks do not change.
    """
    known = seen.measures.get(measure)
    if known is None or measure == "throughput_per_s":
        return None
    if measure == "makespan_ms":
        return known - seen.busy_ms + seen.busy_ms / (changed.slots * changed.cpu)
    working = _working_ms(seen.stream)
    return None if working is None else known - working + working / changed.cpu


def _working_ms(stream: Stream | None) -> float | None:
    """On a record's longest path, its processing time and its wait for the other records of its buffer."""
    if stream is None:
        return None
    count = len(stream.stations[0].shares) - 1
    return sum(
        float(each.work_ms.sum()) + each.same_buffer_ms
        for each in path_segments(stream, measured=True, names=("",) * count)
    )


def ds2(seen: Observation, changed: Changed, measure: str) -> float | None:
    """DS2 (Kalavri et al., OSDI '18): a subtask's true rate is its records per second of useful time.

    With the requested subtasks, the sources emit the rate that the slowest vertex sustains, for its share of records.
    """
    return _highest(seen, changed, measure, lambda each: each.busy)


def autoscaler(seen: Observation, changed: Changed, measure: str) -> float | None:
    """The Kubernetes operator's autoscaler: the same with the busy time of each vertex's busiest subtask."""
    return _highest(seen, changed, measure, lambda each: each.busiest)


def _highest(seen: Observation, changed: Changed, measure: str, busy: Callable[[Station], float]) -> float | None:
    stream = seen.stream
    if measure != "throughput_per_s" or stream is None or stream.rate_per_s <= 0:
        return None
    rates = [
        stream.rate_per_s * changed.slots * changed.cpu / busy(each)
        for each in stream.stations
        if busy(each) > 0 and each.records_per_s > 0
    ]
    return min(rates, default=None)


def plain(seen: Observation, changed: Changed, measure: str) -> float | None:
    """The paper's plain model (§4): each vertex' time by its resource vector, on the latency DAG or in the replay.

    It has no queues, so another rate or other subtasks do not change the latency.
    """
    known = seen.measures.get(measure)
    if known is None:
        return None
    if measure == "latency_ms" and seen.stream is not None:
        names = ("cpu", "disk", "net")
        speed = np.array([changed.cpu, 1.0, changed.network, 1.0])
        before = path_segments(seen.stream, measured=True, names=names)
        saved = sum(float((each.work_ms * (1 - 1 / _padded(speed, len(each.work_ms)))).sum()) for each in before)
        return known - saved
    if measure == "makespan_ms" and seen.execution is not None:
        return _replayed(seen, seen.execution)
    return None


def _padded(speed: Any, count: int) -> Any:
    return np.concatenate([speed[:3], np.ones(count - 3)])


def _replayed(seen: Observation, execution: Execution) -> float | None:
    try:
        scenario = requested_scenario(execution, seen.asked, seen.recorded)
        bare = replace(execution, slots=replace(execution.slots, cpu_cores=np.full(len(execution.slots), np.inf)))
        return predict(bare, scenario, replans=False, physics=PAPER).predicted_ms
    except CrystalPerfError:
        return None


def requested_scenario(execution: Execution, asked: Sequence[str], recorded: Sequence[str] = ()) -> Scenario:
    """The scenario of the arguments of `crystalperf predict`.  Raises CrystalPerfError."""
    known, words = settings_of(execution.resources), execution.words.vocabulary.settings
    (changes,) = combinations(parse_settings(asked, known, words, lists=False))
    reported = parse_settings(recorded, known, words, lists=False)
    return scenario_of(changes, recorded_resources(execution.recorded, reported))


BASELINES: Mapping[str, Baseline] = {
    "no change": no_change,
    "linear": linear,
    "Amdahl": amdahl,
    "DS2": ds2,
    "autoscaler": autoscaler,
    "the paper's model": plain,
}


def covered_ms(launch_ms: Floats, finish_ms: Floats) -> float:
    """Wall-clock time in which any subtask ran."""
    if not len(launch_ms):
        return 0.0
    order = np.argsort(launch_ms)
    launch, finish = launch_ms[order], finish_ms[order]
    reached = np.maximum.accumulate(np.concatenate([[-np.inf], finish[:-1]]))
    return float(np.maximum(finish - np.maximum(launch, reached), 0.0).sum())
