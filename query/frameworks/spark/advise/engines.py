"""Recommendations on operators that stayed on the JVM although an engine ran others (Comet, Gluten, RAPIDS, …)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.engine_times import FallbackTime, fallback_times
from crystalperf.query.frameworks.spark.engines import BY_KEY, Engine
from crystalperf.query.frameworks.spark.recommendations import RunInEngine
from crystalperf.query.results.recommendations import MODELLED, Candidate, SettingChange


@dataclass
class _Group:
    """Fallbacks of the same operators for the same reason, in any query: their task time by stage, ms."""

    fallbacks: set[tuple[str, int]] = field(default_factory=set)
    jvm_ms: dict[str, float] = field(default_factory=dict)
    conversion_ms: dict[str, float] = field(default_factory=dict)

    def add(self, time: FallbackTime) -> None:
        self.fallbacks.add((time.scope, time.number))
        self.jvm_ms[time.stage] = self.jvm_ms.get(time.stage, 0.0) + time.jvm_ms
        self.conversion_ms[time.stage] = self.conversion_ms.get(time.stage, 0.0) + time.conversion_ms

    def task_ms(self, stage: str) -> float:
        return self.jvm_ms.get(stage, 0.0) + self.conversion_ms.get(stage, 0.0)


def candidates(
    connection: duckdb.DuckDBPyConnection, details: Sequence[StageStats], properties: Mapping[str, str]
) -> Iterator[Candidate]:
    """Let the engine run what stayed on the JVM: it saves at most the conversions, and the operators' own time."""
    on_path = {each.facts.id: each.facts for each in details if each.facts.path_ms > 0 and each.facts.task_ms > 0}
    groups: dict[tuple[str, tuple[str, ...], str | None], _Group] = {}
    for time in fallback_times(connection):
        names = tuple(dict.fromkeys(reversed(time.operators)))
        groups.setdefault((time.engine, names, time.reason), _Group()).add(time)
    for (key, operators, reason), group in groups.items():
        path_ms = {
            stage: facts.path_ms * min(group.task_ms(stage) / facts.task_ms, 1.0) for stage, facts in on_path.items()
        }
        cost_ms = sum(path_ms.values())
        if cost_ms <= 0:
            continue
        facts = on_path[max(path_ms, key=lambda each: path_ms[each])]
        engine = BY_KEY[key]
        value = RunInEngine(
            price="code" if reason else "inspect", because="plan", saving=MODELLED,
            settings=() if reason else _explaining(engine, properties), engine=engine.title,
            in_event_log=engine.in_event_log, operators=operators, reason=reason, stage=facts.id, name=facts.name,
            jvm_share=group.jvm_ms.get(facts.id, 0.0) / facts.task_ms,
            conversion_share=group.conversion_ms.get(facts.id, 0.0) / facts.task_ms, others=len(group.fallbacks) - 1,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=cost_ms)


def _explaining(engine: Engine, properties: Mapping[str, str]) -> tuple[SettingChange, ...]:
    """The setting by which the engine says why operators stay on the JVM; none if the run had it."""
    if engine.explained_by is None:
        return ()
    name, value = engine.explained_by
    return () if value in properties.get(name, "") else (SettingChange(name, None, value),)
