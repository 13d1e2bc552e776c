"""Predictors that the lab compares: CrystalPerf, the paper's plain model, and simple methods.

A predictor takes a recorded baseline run and a configuration, and returns the runtime there in ms, or None if it
refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from crystalperf.indexes.resources import CPU, resources
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.load import load
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.predict.estimate import predict
from crystalperf.query.predict.predictor import Predictor as Named
from crystalperf.query.predictors.amdahl import covered_ms, runtime_ms
from crystalperf.query.predictors.ernest import fit, terms
from crystalperf.query.predictors.linear import in_proportion
from crystalperf.query.predictors.paper import PAPER
from crystalperf.query.predictors.sparklens import SPARKLENS
from crystalperf.query.results.answers import Prediction
from lab.errors import LabError
from lab.flink.baselines import requested_scenario, runtime_by
from lab.runs.suites import SLOT_CPU_CORES, Configuration
from lab.score.vectors import code_vectors
from lab.units import parse_bit_rate, parse_byte_rate, parse_size


@dataclass(frozen=True)
class Base:
    """One recorded baseline run of a sweep: its run file, the scope of the query itself and its parameters."""

    run: Path
    scope: str
    wall_ms: float
    configuration: Configuration


Predictor = Callable[[Base, Configuration], float | None]


def asked_of(configuration: Configuration) -> list[str]:
    """The changed parameters as KEY=VALUE for `crystalperf predict --set`."""
    return [_setting(name, value) for name, value in configuration.changed.items()]


def recorded_of(base: Configuration) -> list[str]:
    """The settings for `--recorded`, which the log does not contain: network and disk rates."""
    return [_setting(name, base.knobs[name]) for name in ("network", "disk") if _is_rate(base.knobs.get(name))]


def _is_rate(value: object) -> bool:
    return isinstance(value, str) and value not in ("none", "unlimited")


def _setting(name: str, value: Any) -> str:
    if name == "slots":
        return f"cores={value}"
    if name == "workers":
        return f"executors={value}"
    if name == "memory":
        return f"memory={parse_size(value)}B"
    if name == "network":
        return f"network={parse_bit_rate(value)}bps"
    if name == "disk":
        return f"disk={parse_byte_rate(value)}B/s"
    if name == "slot_cpu_cores":
        return f"cpu_speed={value / SLOT_CPU_CORES:g}x"
    raise LabError(f"The parameter '{name}' has no setting in `crystalperf predict`; it cannot be scored.")


# Ours and the paper's -----------------------------------------------------------------------------------------------


def answer(base: Base, configuration: Configuration) -> Prediction:
    """The answer of `crystalperf predict`, with its interval and refusals."""
    return _answer(execution(base), base, configuration)


def shipped(base: Base, configuration: Configuration) -> float | None:
    """The prediction of `crystalperf predict`."""
    return answer(base, configuration).predicted_ms


def from_code(base: Base, configuration: Configuration) -> float | None:
    """The shipped model with resource vectors from samples and labels only, without Spark's measurements."""
    run = _with_vectors(execution(base), _code_shares(base.run))
    return _answer(run, base, configuration).predicted_ms


def plain(base: Base, configuration: Configuration) -> float | None:
    """The paper's plain model: vectors from samples and labels, tasks as recorded, and device times only from each
    task's own time."""
    return _named(PAPER, by_labels(base), base, configuration)


def slots_alone(base: Base, configuration: Configuration) -> float | None:
    """The recorded tasks on other slots, as Sparklens replays them; no other resource."""
    if not {"slots", "workers"} & configuration.changed.keys():
        return base.wall_ms
    return _named(SPARKLENS, execution(base), base, configuration)


def _answer(run: Execution, base: Base, configuration: Configuration) -> Prediction:
    return predict(run, scenario_of(base, configuration))


def _named(predictor: Named, run: Execution, base: Base, configuration: Configuration) -> float | None:
    """The runtime by a predictor for a user who knows no network and disk rates, ms; None if it refuses."""
    return runtime_by(predictor, run, replace(scenario_of(base, configuration), recorded=run.recorded))


def scenario_of(base: Base, configuration: Configuration) -> Scenario:
    """The scenario of a configuration, for a user who knows the baseline's network and disk rates."""
    return requested_scenario(execution(base), asked_of(configuration), recorded_of(base.configuration))


def execution(base: Base) -> Execution:
    """The scope of a baseline run, read once."""
    return _execution(base.run, base.scope)


@lru_cache(maxsize=64)
def _execution(run: Path, scope: str) -> Execution:
    with duckdb.connect(str(run), read_only=True) as connection:
        return load(connection, scope)


@lru_cache(maxsize=64)
def _code_shares(run: Path) -> Mapping[str, Sequence[float]]:
    return {stage: vector.tolist() for stage, vector in code_vectors(run).items()}


@lru_cache(maxsize=64)
def _label_shares(run: Path) -> Mapping[str, tuple[float, ...]]:
    """By stage attempt, the id of its stage: the mean of its samples' vectors, `other` last."""
    labels = ", ".join(f"sum(weight_ms * coalesce({name}, 0)) / sum(weight_ms)" for name in resources())
    with duckdb.connect(str(run), read_only=True) as connection:
        rows = connection.execute(
            f"""
            SELECT stage_id, {labels}, sum(weight_ms) FILTER ({CPU} IS NULL) / sum(weight_ms)
            FROM samples JOIN stacks USING (stack_id) JOIN tasks USING (task_id)
            WHERE weight_ms > 0
            GROUP BY ALL
            """
        ).fetchall()
    return {row[0]: tuple(float(each or 0.0) for each in row[1:]) for row in rows}


def by_labels(base: Base) -> Execution:
    """The scope with vectors as in the paper (§4.1): the mean of the samples' vectors, without thread states and
    Spark's measurements; `other` if a stage has no samples."""
    return _with_vectors(execution(base), _label_shares(base.run))


def _with_vectors(run: Execution, shares: Mapping[str, Sequence[float]]) -> Execution:
    """The scope whose tasks have their stage's vector, or `other` if it has none."""
    tasks, unknown = run.tasks, (*(0.0 for _ in run.names), 1.0)
    table = np.array([shares.get(stage.stage_id, unknown) for stage in run.dag.stages]).reshape(-1, len(unknown))
    parts = table[tasks.stage] * tasks.duration_ms[:, None]
    return replace(run, tasks=replace(tasks, parts_ms=parts))


# Simple methods ---------------------------------------------------------------------------------------------


def no_change(base: Base, configuration: Configuration) -> float | None:
    """The recorded runtime."""
    return base.wall_ms


def linear(base: Base, configuration: Configuration) -> float | None:
    """Everything in proportion to slots, their CPU time, the network and the disk."""
    return in_proportion(base.wall_ms, _ratios(base.configuration, configuration))


def amdahl(base: Base, configuration: Configuration) -> float | None:
    """Amdahl: the time in which tasks run scales with the slots, the rest of the scope does not; no other resources."""
    slots = _slots(configuration) / _slots(base.configuration)
    tasks = execution(base).tasks
    return runtime_ms(base.wall_ms, covered_ms(tasks.launch_ms, tasks.finish_ms), slots)


def ernest(measured: Iterable[tuple[Configuration, float]]) -> Predictor:
    """Ernest (NSDI '16): t = θ₀ + θ₁/m + θ₂ log m + θ₃ m with θ ≥ 0, m being the slots, by nonnegative least squares.

    `measured` are the runs to fit, one model per sweep.  It models only the number of slots, and refuses if a sweep has
    fewer than two of these.
    """
    of_sweep: dict[int, list[tuple[float, float]]] = {}
    for configuration, wall_ms in measured:
        of_sweep.setdefault(configuration.sweep, []).append((_slots(configuration), wall_ms))
    models = {
        sweep: fit((slots, 1.0, wall_ms) for slots, wall_ms in rows)
        for sweep, rows in of_sweep.items()
        if len({slots for slots, _ in rows}) > 1
    }

    def predictor(base: Base, configuration: Configuration) -> float | None:
        model = models.get(configuration.sweep)
        return None if model is None else float(model @ terms(_slots(configuration)))

    return predictor


def _slots(configuration: Configuration) -> float:
    return float(configuration.knobs.get("slots", 2) * configuration.knobs.get("workers", 2))


def _ratios(base: Configuration, configuration: Configuration) -> list[float]:
    found = []
    for name, value in configuration.changed.items():
        before = base.knobs.get(name)
        if name in ("slots", "workers"):
            found.append(value / (before or 2))
        elif name == "slot_cpu_cores":
            found.append(value / (before or SLOT_CPU_CORES))
        elif name == "network" and _is_rate(before) and _is_rate(value):
            found.append(parse_bit_rate(value) / parse_bit_rate(str(before)))
        elif name == "disk" and _is_rate(before):
            found.append(parse_byte_rate(value) / parse_byte_rate(str(before)))
    return found or [1.0]
