"""Simple predictors to compare CrystalPerf with, from one recorded baseline run to another configuration.

Each takes the figures of the baseline run's recording and the changes, and predicts a measure, or None: latency_ms and
makespan_ms (ms), throughput_per_s (records per second that the sources emit).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from crystalperf.query.predict.predictor import Predictor, SustainedRate
from crystalperf.query.predictors.amdahl import runtime_ms
from crystalperf.query.predictors.ds2 import highest_rate
from crystalperf.query.predictors.linear import in_proportion
from crystalperf.query.predictors.paper import PAPER
from crystalperf.query.results.refusals import RefusedError


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
    factors = (changed.slots, changed.cpu, changed.network)
    if measure == "throughput_per_s":
        return in_proportion(known, (1 / each for each in factors))
    return in_proportion(known * changed.rate, factors)


def amdahl(seen: Observation, changed: Changed, measure: str) -> float | None:
    """Amdahl: the busy time of subtasks scales with their number and CPU, the rest does not; nothing else matters.

    For the latency of a record, it is the time at operators, which more subtasks do not change.
    """
    known = seen.measures.get(measure)
    if known is None or measure == "throughput_per_s":
        return None
    if measure == "makespan_ms":
        return runtime_ms(known, seen.busy_ms, changed.slots * changed.cpu)
    working = _working_ms(seen.stream)
    return None if working is None else runtime_ms(known, working, changed.cpu)


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
    if measure != "throughput_per_s" or seen.stream is None:
        return None
    found = highest_rate(seen.stream, lambda _each: changed.slots * changed.cpu, busy)
    return None if found is None else found[0]


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
        return runtime_by(PAPER, execution, requested_scenario(execution, seen.asked, seen.recorded))
    except CrystalPerfError:
        return None


def runtime_by(predictor: Predictor, execution: Execution, scenario: Scenario) -> float | None:
    """The runtime of a scope in a scenario by a predictor, ms; None if it refuses, or predicts rates."""
    try:
        found = predictor.predict(execution, scenario)
    except RefusedError:
        return None
    return None if isinstance(found, SustainedRate) else found


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
