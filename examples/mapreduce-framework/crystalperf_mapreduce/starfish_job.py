"""A whole job by Starfish's model: its profile and settings from files, tasks on slots, and the predictor.

A profile is XML of Starfish's profiler.  The property `starfish profile` of a run has it as JSON.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar
from xml.etree import ElementTree

from crystalperf.plugin import Execution, Predictor, Refusal, RefusedError, Scenario, tasks_of
from crystalperf_mapreduce.starfish import MIB, Profile, Settings, TaskProfile, mapped, reduced

PROFILE = "starfish profile"
"""Property of a run: its profile in JSON."""

MAP_SLOTS, REDUCE_SLOTS = "mapred.tasktracker.map.tasks.maximum", "mapred.tasktracker.reduce.tasks.maximum"

NAMES = {
    "reducers": "mapred.reduce.tasks",
    "sort_mb": "io.sort.mb",
    "record_share": "io.sort.record.percent",
    "spill_share": "io.sort.spill.percent",
    "factor": "io.sort.factor",
    "combine_from_spills": "min.num.spills.for.combine",
    "compresses_maps": "mapred.compress.map.output",
    "compresses_output": "mapred.output.compress",
    "shuffle_share": "mapred.job.shuffle.input.buffer.percent",
    "merge_share": "mapred.job.shuffle.merge.percent",
    "merge_segments": "mapred.inmem.merge.threshold",
    "kept_share": "mapred.job.reduce.input.buffer.percent",
    "slow_start": "mapred.reduce.slowstart.completed.maps",
}
"""Hadoop's names of settings."""

COMBINER, JVM = "mapreduce.combine.class", "mapred.child.java.opts"
KEPT = (*NAMES.values(), COMBINER, JVM)
"""Settings that a trace keeps for the model."""

HEARTBEAT_MS, SETUP_MS = 3000, 3000
"""Time between two reports of a node, of which a task waits half when it starts and when it ends; time of a setup."""


@dataclass(frozen=True)
class ProfileMissing(Refusal):
    """Starfish's model needs the profile of a run, by Starfish's profiler, and there is none."""

    kind: ClassVar[str] = "starfish-profile-missing"


def settings_of(conf: Mapping[str, str]) -> Settings:
    """The settings of a job's configuration."""
    known: dict[str, Any] = {}
    for each in fields(Settings):
        if (text := conf.get(NAMES.get(each.name, ""), "")) != "":
            known[each.name] = text == "true" if each.type == "bool" else (int if each.type == "int" else float)(text)
    if heap := re.search(r"-Xmx(\d+)([mMgG]?)", conf.get(JVM, "")):
        known["heap_bytes"] = int(heap[1]) * {"m": MIB, "g": 1024 * MIB, "": 1}[heap[2].lower()]
    return Settings(**known, combines=COMBINER in conf)


def profile_json(root: ElementTree.Element) -> str:
    """A profile in JSON from its XML."""

    def tasks(of: ElementTree.Element) -> dict[str, Any]:
        kinds = {"counters": "counter", "statistics": "statistic", "costs": "cost_factor", "timings": "timing"}
        values = {
            name: {each.get("key"): float(each.get("value", "nan")) for each in of.iter(kind)}
            for name, kind in kinds.items()
        }
        return {"tasks": int(of.get("num_tasks", "1")), **values}

    found = {name: [tasks(each) for each in root.iter(f"{name}_profile")] for name in ("map", "reduce")}
    return json.dumps(found, separators=(",", ":"))


def profile_of(text: str) -> Profile:
    """A profile from its JSON."""
    found = json.loads(text)
    maps, reducers = (tuple(TaskProfile(**each) for each in found[name]) for name in ("map", "reduce"))
    return Profile(maps, reducers[0] if reducers else None)


# Tasks on slots -------------------------------------------------------------------------------------------------------


def runtime_ms(profile: Profile, conf: Settings, slots: tuple[int, int], scale: float = 1.0) -> float:
    """The runtime of a job on slots for (maps, reducers), with `scale` times the maps.

    Starfish's scheduler: each task goes to the slot that is free first, maps with large splits before others; reducers
    start after a share of maps, and their copies are free while maps run except for those of the last map.
    """
    begin = HEARTBEAT_MS // 2 + SETUP_MS  # after the job's setup
    free = [begin] + [0] * (slots[0] - 1)
    heapq.heapify(free)
    ends: list[int] = []
    left_bytes = left_records = 0.0
    for each in sorted(profile.maps, key=TaskProfile.split_bytes, reverse=True):
        count, one = max(round(each.tasks * scale), 1), mapped(each, conf, each.split_bytes())
        left_bytes, left_records = left_bytes + count * one.left_bytes, left_records + count * one.left_records
        lasts = int(sum(one.phases.values()) + HEARTBEAT_MS / 2)
        for _ in range(count):
            ends.append(max(free[0], begin) + HEARTBEAT_MS // 2 + lasts)
            heapq.heapreplace(free, ends[-1])
    last = max(ends)
    if conf.reducers and profile.reducers is not None:
        share = [round(each / conf.reducers) for each in (left_bytes, left_records)]
        phases = reduced(profile.reducers, conf, len(ends), *share)
        last = max(last, _reducers_end(phases, conf, slots[1], sorted(ends)))
    return float(last + HEARTBEAT_MS // 2 + SETUP_MS + HEARTBEAT_MS)


def _reducers_end(phases: Mapping[str, float], conf: Settings, slots: int, ends: list[int]) -> int:
    """When the last reducer ends, given the ends of maps in order."""
    start, mapped_at = ends[max(math.ceil(conf.slow_start * len(ends)), 1) - 1], ends[-1]
    shuffle, sort = phases["shuffle"], phases["sort"]
    after = int(sort) + int(sum(phases.values()) - shuffle - sort + HEARTBEAT_MS / 2)
    free = [0] * slots
    for _ in range(conf.reducers):
        at = max(free[0], start) + HEARTBEAT_MS // 2
        copied = mapped_at + int(shuffle / len(ends)) if shuffle <= mapped_at - at else at + int(shuffle)
        heapq.heapreplace(free, copied + after)
    return max(free)


# The predictor --------------------------------------------------------------------------------------------------------


def _predict(execution: Execution, scenario: Scenario) -> float:
    conf = execution.properties
    if PROFILE not in conf:
        raise RefusedError(ProfileMissing())
    asked = settings_of(conf)
    reducers = round(asked.reducers * tasks_of(scenario, "tasks:reduce", "reduce"))
    nodes = len(execution.hosts) * scenario.ratio("workers") * scenario.ratio("cores")
    slots = [max(round(nodes * int(conf.get(key, "2"))), 1) for key in (MAP_SLOTS, REDUCE_SLOTS)]
    changed = replace(asked, reducers=reducers)
    return runtime_ms(profile_of(conf[PROFILE]), changed, (slots[0], slots[1]), scenario.ratio("input"))


STARFISH = Predictor(
    _predict,
    source="Herodotou and Babu, Profiling, What-if Analysis, and Cost-based Optimization of MapReduce, VLDB 2011",
    runs=frozenset(("batch",)),
    settings=lambda _run: ("workers", "cores", "tasks", "tasks.reduce", "input"),
)
