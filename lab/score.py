"""Predictions against what really happened: ``python -m lab score SUITE… --out DIR``.

A prediction starts from one recorded run of a sweep's base and asks for the resources of another configuration; what
happened there is the median of its unrecorded runs.  Where a sweep's base was recorded several times, each recording
predicts, and the median of them counts.  The base itself is never scored.  Nothing here is fitted.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import query
from lab.host import LabError, parse_bit_rate, parse_byte_rate, parse_size
from lab.suites import Configuration, Suite, configurations
from lab.sweep import load_rows
from query.answers import Prediction
from query.execution import Execution, load
from query.frameworks import get
from query.predict import predict
from query.run import Run
from query.world import changed_world, combinations, parse_settings, recorded_resources

Rows = Sequence[Mapping[str, Any]]
Predictor = Callable[["Base", Configuration], float | None]


@dataclass(frozen=True)
class Base:
    """One recorded run of a sweep's base, read by CrystalPerf, and the knobs it ran with."""

    run: Run
    scope: str
    wall_ms: float
    configuration: Configuration


@dataclass(frozen=True)
class Scored:
    """One configuration: measured and predicted, ms; None where a predictor refuses."""

    configuration: Configuration
    actual_ms: float
    base_ms: float
    """Median of the base's unrecorded runs."""
    predicted_ms: Mapping[str, float | None]


def settings_of(configuration: Configuration) -> list[str]:
    """What a user would ask for: the changed knobs as KEY=VALUE of `crystalperf predict`."""
    return [_setting(name, value) for name, value in configuration.changed.items()]


def recorded_of(base: Configuration) -> list[str]:
    """What a user knows of the base and its log does not tell: its cable and its disk."""
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
    raise LabError(f"The knob '{name}' has no setting of `crystalperf predict`; it cannot be scored.")


# Predictors ---------------------------------------------------------------------------------------------------------


def shipped(base: Base, configuration: Configuration) -> float | None:
    """What `crystalperf predict` answers."""
    return _answer(base, configuration, replans=True, plain=False).predicted_ms


def plain(base: Base, configuration: Configuration) -> float | None:
    """The paper's model alone: tasks as recorded, no device but what each task's own time shows."""
    return _answer(base, configuration, replans=False, plain=True).predicted_ms


def no_change(base: Base, configuration: Configuration) -> float | None:
    """The recorded runtime."""
    return base.wall_ms


def linear(base: Base, configuration: Configuration) -> float | None:
    """Everything in proportion to slots, the network and the disk."""
    return base.wall_ms / float(np.prod(_ratios(base.configuration, configuration)))


def amdahl(base: Base, configuration: Configuration) -> float | None:
    """The time in which tasks run scales with the slots, the rest of the scope does not; no other resource."""
    execution = _execution(base)
    slots = configuration.knobs.get("slots", 2) / base.configuration.knobs.get("slots", 2)
    busy = _covered(execution)
    return float(base.wall_ms - busy + busy / slots)


def slots_alone(base: Base, configuration: Configuration) -> float | None:
    """The recorded tasks on other slots, as Sparklens replays them; no other resource."""
    only = {name: value for name, value in configuration.changed.items() if name in ("slots", "workers")}
    if not only:
        return base.wall_ms
    return _answer(base, replace(configuration, changed=only), replans=False, plain=True).predicted_ms


PREDICTORS: dict[str, Predictor] = {
    "shipped": shipped,
    "the paper's plain model": plain,
    "recorded tasks on other slots": slots_alone,
    "Amdahl": amdahl,
    "linear": linear,
    "no change": no_change,
}


def _answer(base: Base, configuration: Configuration, *, replans: bool, plain: bool) -> Prediction:
    execution = _execution(base)
    stated = recorded_of(base.configuration)
    known = recorded_resources(execution.recorded, parse_settings(stated, lists=False))
    (changes,) = combinations(parse_settings(settings_of(configuration), lists=False))
    world = changed_world(changes, known)
    if plain:
        slots = replace(execution.slots, cpu_cores=np.full(len(execution.slots), np.inf))
        execution = replace(execution, slots=slots)
        world = replace(world, recorded=execution.recorded)
    return predict(execution, world, get("spark"), replans=replans)


_loaded: dict[tuple[Path, str], Execution] = {}


def _execution(base: Base) -> Execution:
    key = base.run.path, base.scope
    if key not in _loaded:
        import duckdb

        with duckdb.connect(str(base.run.path), read_only=True) as connection:
            _loaded[key] = load(connection, base.scope)
    return _loaded[key]


def _covered(execution: Execution) -> float:
    """Wall-clock during which any task ran."""
    order = np.argsort(execution.tasks.launch_ms)
    launch, finish = execution.tasks.launch_ms[order], execution.tasks.finish_ms[order]
    reached = np.maximum.accumulate(np.concatenate([[-np.inf], finish[:-1]]))
    return float(np.maximum(finish - np.maximum(launch, reached), 0.0).sum())


def _ratios(base: Configuration, configuration: Configuration) -> list[float]:
    found = []
    for name, value in configuration.changed.items():
        before = base.knobs.get(name)
        if name in ("slots", "workers"):
            found.append(value / (before or 2))
        elif name == "network" and _is_rate(before) and _is_rate(value):
            found.append(parse_bit_rate(value) / parse_bit_rate(str(before)))
        elif name == "disk" and _is_rate(before):
            found.append(parse_byte_rate(value) / parse_byte_rate(str(before)))
    return found or [1.0]


# Scores -------------------------------------------------------------------------------------------------------------


def score(suite: Suite, out: Path, kept: Path, sampler: str = "jfr") -> tuple[list[Scored], list[float]]:
    """All measured configurations of a suite, and the noise: deviations of the base's runs from their median.

    `kept` is a folder for run files; `sampler` is what recorded the base (`jfr`, `async`), or `none` for its log alone.
    """
    rows = load_rows(out, suite)
    every = configurations(suite)
    bases = {one.sweep: one for one in every if one.is_base}
    recorded: dict[int, list[Base]] = defaultdict(list)
    unrecorded: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["sampler"] == "none":
            unrecorded[row["number"]].append(float(row["wall_ms"]))
        if row["role"] == "base" and row["sampler"] == sampler:
            recorded[row["sweep"]].append(read_base(row, bases[row["sweep"]], out, kept))
    noise = []
    for one in bases.values():
        times = unrecorded.get(one.number, [])
        noise += [time / statistics.median(times) - 1 for time in times if len(times) > 1]
    found = []
    for one in every:
        if one.is_base or one.number not in unrecorded or not recorded[one.sweep]:
            continue
        predicted = {}
        for name, predictor in PREDICTORS.items():
            answers = [predictor(base, one) for base in recorded[one.sweep]]
            known = [each for each in answers if each is not None]
            predicted[name] = statistics.median(known) if known else None
        base_ms = statistics.median(unrecorded.get(bases[one.sweep].number) or [0.0])
        found.append(Scored(one, statistics.median(unrecorded[one.number]), base_ms, predicted))
    return found, noise


def read_base(row: Mapping[str, Any], configuration: Configuration, out: Path, kept: Path) -> Base:
    """Profile a recorded run; its scope is the query proper, which the log's own clock places."""
    inputs = [out / row["event_log"], *(out / name for name in json.loads(row["recordings"]))]
    kept.mkdir(parents=True, exist_ok=True)
    run = query.profile(inputs, output=kept / f"{row['run'].replace('/', '-')}.duckdb")
    import duckdb

    with duckdb.connect(str(run.path), read_only=True) as connection:
        ((started_at_ms,),) = connection.execute("SELECT started_at_ms FROM runs").fetchall()
    start, end = row["start_ms"] - started_at_ms, row["end_ms"] - started_at_ms
    return Base(run, f"{start}..{end}", float(row["wall_ms"]), configuration)


def table(scored: Sequence[Scored], noise: Sequence[float]) -> str:
    """Deviations |predicted − actual| / actual of each predictor, as a Markdown table; the noise beside them."""
    lines = [
        "| predictor | configurations | mean ± deviation % | worst % | bias % | refused |",
        "|---|---|---|---|---|---|",
    ]
    for name in PREDICTORS:
        for role in ("even", "odd", "all"):
            mine = [each for each in scored if role in ("all", each.configuration.role)]
            off = [
                value / each.actual_ms - 1
                for each in mine
                if (value := each.predicted_ms[name]) is not None and value > 0
            ]
            if not off:
                continue
            size = [abs(each) for each in off]
            spread = statistics.pstdev(size)
            lines.append(
                f"| {name} | {role}: {len(mine)} | {100 * statistics.mean(size):.1f} ± {100 * spread:.1f} |"
                f" {100 * max(size):.0f} | {100 * statistics.mean(off):+.1f} | {len(mine) - len(off)} |"
            )
    if noise:
        size = [abs(each) for each in noise]
        lines.append(
            f"| noise: the base against its median | {len(size)} | {100 * statistics.mean(size):.1f} ±"
            f" {100 * statistics.pstdev(size):.1f} | {100 * max(size):.0f} | | |"
        )
    return "\n".join(lines)


def details(scored: Sequence[Scored]) -> str:
    """Every configuration, measured and predicted, as a Markdown table."""
    lines = ["| number | role | workload | changed | base s | actual s | " + " | ".join(PREDICTORS) + " |"]
    lines.append("|---" * (6 + len(PREDICTORS)) + "|")
    for each in scored:
        one = each.configuration
        changed = " ".join(f"{name}={value}" for name, value in one.changed.items())
        cells = []
        for value in each.predicted_ms.values():
            cells.append(
                "refused" if value is None else f"{value / 1e3:.1f} ({100 * (value / each.actual_ms - 1):+.0f} %)"
            )
        lines.append(
            f"| {one.number} | {one.role} | {one.workload} | {changed} | {each.base_ms / 1e3:.1f} |"
            f" {each.actual_ms / 1e3:.1f} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)
