"""Another number of reducers: their recorded work is spread over them in equal parts.

More input means more splits, so more maps, and the same number of reducers with more work each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crystalperf.plugin import (
    Advisor,
    Assumption,
    Execution,
    Planned,
    Refusal,
    Scenario,
    Sentences,
    Words,
    tasks_of,
    with_tasks,
)
from crystalperf_mapreduce.starfish_job import ProfileMissing
from crystalperf_mapreduce.trace import EARLY, REDUCERS

SENTENCES = Sentences()

KEPT = ("setup", "cleanup")
"""Stages of one task, of which a job has one each."""


@dataclass(frozen=True)
class WorkRespread(Assumption):
    """The work of so many reducers is spread over others in equal parts, without a cost of each."""

    kind: ClassVar[str] = "work-respread"
    before: int
    after: int


@dataclass(frozen=True)
class MapsMeasured(Assumption):
    """The work of reducers counts from the end of the last map; copies before that are free, as in the run."""

    kind: ClassVar[str] = "copies-while-maps-run"
    reducers: int


@SENTENCES.of(WorkRespread)
def work_respread(assumed: WorkRespread, _words: Words) -> str:
    return f"the recorded work of reducers is spread evenly over {assumed.after} of them instead of {assumed.before}"


@SENTENCES.of(MapsMeasured)
def maps_measured(assumed: MapsMeasured, _words: Words) -> str:
    return (
        f"{assumed.reducers} reducers began before the last map had ended; what they copied until then takes no time"
        " after it in any scenario"
    )


@SENTENCES.of(ProfileMissing)
def profile_missing(_refusal: ProfileMissing, _words: Words) -> str:
    return "starfish needs the profile of the job by Starfish's profiler (profile_job_….xml) with its history"


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """The reduce tasks of a run."""
    return {"tasks": float(properties[REDUCERS])} if properties.get(REDUCERS, "0") != "0" else {}


def replan(execution: Execution, scenario: Scenario, wanted: bool) -> Planned | Refusal:
    """The run with another number of reducers, of maps if the scenario names them, and of splits of the input."""
    recorded = np.bincount(execution.tasks.stage, minlength=len(execution.dag.stages))
    counts: dict[int, int] = {}
    assumed: list[Assumption] = []
    for number, stage in enumerate(execution.dag.stages):
        if not wanted or stage.name in KEPT:
            continue
        ratio = tasks_of(scenario, stage.stage_id, stage.name)
        if stage.name == "map":  # `tasks` counts reducers
            named = ratio / scenario.ratio("tasks") if scenario.ratio("tasks") != 1 else ratio
            ratio = named * scenario.ratio("input")
        count = max(round(float(recorded[number]) * ratio), 1)
        if count != recorded[number]:
            counts[number] = count
            if stage.name == "reduce":
                assumed.append(WorkRespread(int(execution.properties[REDUCERS]), count))
    return Planned(with_tasks(execution, counts) if counts else execution, tuple(assumed))


def assumptions(_connection: Any, execution: Execution) -> list[Assumption]:
    """The assumption that a history without times of copies needs."""
    early = int(execution.properties.get(EARLY, "0"))
    return [MapsMeasured(early)] if early else []


ADVISOR = Advisor(assumptions=assumptions, sentences=SENTENCES)
