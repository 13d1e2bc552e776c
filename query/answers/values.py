"""The answers, as frozen values; `as_json` of each is the contract that scripts rely on.

Times are ms since application start, lengths are ms.  Resource mappings have the keys of `indexes.resources()` and
`other`, in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Parts = Mapping[str, float]
"""ms by resource, and `other`."""


@dataclass(frozen=True)
class PathItem:
    """One stretch of the critical path; `resource_ms` sums to end − start."""

    id: str
    name: str
    start_ms: float
    end_ms: float
    resource_ms: Parts

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "start_ms": _ms(self.start_ms),
            "end_ms": _ms(self.end_ms),
            "resource_ms": _parts(self.resource_ms),
        }


@dataclass(frozen=True)
class SampleCounts:
    """Stack samples: all, those on task threads, and of those the ones whose deciding frame is indexed code.

    `skipped` says, by reason, how many samples on task threads had frames passed over, or nothing that decides.
    """

    total: int
    on_tasks: int
    resolved: int
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class SqlExecution:
    id: int
    name: str
    start_ms: float
    end_ms: float | None


@dataclass(frozen=True)
class Finding:
    """Something that cost time.  `cost_ms` is at most; `basis` is measured, modelled or label."""

    cost_ms: float
    what: str
    basis: str
    advice: str

    def as_json(self) -> dict[str, Any]:
        return {"cost_ms": _ms(self.cost_ms), "what": self.what, "basis": self.basis, "advice": self.advice}


@dataclass(frozen=True)
class FunctionTime:
    """A function that decided samples on task threads, with the time they stand for.

    `callee` is what it called that most of that was spent in, `callee_ms`, where it called any code but the platform's.
    """

    qualified_name: str
    index_name: str
    resource: str
    share: float
    time_ms: float
    callee: str | None = None
    callee_ms: float = 0.0


@dataclass(frozen=True)
class OperatorTime:
    """Task time of one SQL operator over the stages it ran in; `basis` says what attributed it.

    `node_id` is None for time that belongs to no operator: starting tasks, compiling, not attributed.
    """

    sql_id: int | None
    node_id: int | None
    name: str
    stages: tuple[int, ...]
    basis: str
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return sum(self.resource_ms.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "sql_id": self.sql_id,
            "node_id": self.node_id,
            "name": self.name,
            "stages": list(self.stages),
            "basis": self.basis,
            "time_ms": _ms(self.time_ms),
            "resource_ms": _parts(self.resource_ms),
        }


@dataclass(frozen=True)
class StageFacts:
    """How the tasks of one stage attempt went.  Times of tasks are summed over them unless said otherwise.

    `path_ms` is its wall-clock on the critical path, `idle_ms` the slots' time without a task while it ran.
    `median_bytes` and `most_bytes` are of what one task read, from storage and from shuffles.
    """

    id: str
    name: str
    sql_id: int | None
    tasks: int
    slots: int
    length_ms: float
    path_ms: float
    median_ms: float
    longest_ms: float
    median_bytes: float
    most_bytes: float
    task_ms: float
    idle_ms: float
    starting_ms: float
    scheduler_delay_ms: float
    gc_ms: float
    spill_bytes: int
    resource_ms: Parts

    @property
    def waves(self) -> float:
        """How often its tasks fill all slots; below 1 there are fewer tasks than slots."""
        return self.tasks / self.slots if self.slots else 0.0

    @property
    def skew_time(self) -> float | None:
        """The longest task's time in medians; None for one task."""
        return self.longest_ms / self.median_ms if self.tasks > 1 and self.median_ms > 0 else None

    @property
    def skew_bytes(self) -> float | None:
        """What the task that read most read, in medians; None for one task or where most read nothing."""
        return self.most_bytes / self.median_bytes if self.tasks > 1 and self.median_bytes > 0 else None

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "sql_id": self.sql_id,
            "tasks": self.tasks,
            "slots": self.slots,
            "waves": round(self.waves, 3),
            "length_ms": _ms(self.length_ms),
            "path_ms": _ms(self.path_ms),
            "median_ms": _ms(self.median_ms),
            "longest_ms": _ms(self.longest_ms),
            "skew_time": None if self.skew_time is None else round(self.skew_time, 3),
            "skew_bytes": None if self.skew_bytes is None else round(self.skew_bytes, 3),
            "task_ms": _ms(self.task_ms),
            "idle_ms": _ms(self.idle_ms),
            "starting_ms": _ms(self.starting_ms),
            "scheduler_delay_ms": _ms(self.scheduler_delay_ms),
            "gc_ms": _ms(self.gc_ms),
            "spill_bytes": self.spill_bytes,
            "resource_ms": _parts(self.resource_ms),
        }


@dataclass(frozen=True)
class Disagreement:
    """A stage where the index's labels claim more or less of a resource than the log's measurements allow."""

    stage: str
    resource: str
    label_share: float
    at_least_share: float
    at_most_share: float

    def as_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "resource": self.resource,
            "label_share": round(self.label_share, 4),
            "at_least_share": round(self.at_least_share, 4),
            "at_most_share": round(self.at_most_share, 4),
        }


@dataclass(frozen=True)
class Debug:
    """Where the time of a scope went.

    `other_ms` says what the time on the critical path was that no resource accounts for, by cause.
    """

    scope: str
    runtime_ms: float
    bottleneck: str
    resource_ms: Parts
    critical_path: tuple[PathItem, ...]
    samples: SampleCounts
    sql_executions: tuple[SqlExecution, ...]
    findings: tuple[Finding, ...] = ()
    functions: tuple[FunctionTime, ...] = ()
    unseen: tuple[str, ...] = ()
    other_ms: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[StageFacts, ...] = ()
    operators: tuple[OperatorTime, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    assumptions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "runtime_ms": _ms(self.runtime_ms),
            "bottleneck": self.bottleneck,
            "resource_ms": _parts(self.resource_ms),
            "other_ms": _parts(self.other_ms),
            "critical_path": [each.as_json() for each in self.critical_path],
            "samples": {
                "total": self.samples.total,
                "on_tasks": self.samples.on_tasks,
                "resolved": self.samples.resolved,
                "skipped": dict(self.samples.skipped),
            },
            "sql_executions": [
                {"id": each.id, "name": each.name, "start_ms": _ms(each.start_ms), "end_ms": _ms(each.end_ms)}
                for each in self.sql_executions
            ],
            "findings": [each.as_json() for each in self.findings],
            "functions": [
                {
                    "qualified_name": each.qualified_name,
                    "index_name": each.index_name,
                    "resource": each.resource,
                    "share": round(each.share, 4),
                    "time_ms": _ms(each.time_ms),
                }
                for each in self.functions
            ],
            "stages": [each.as_json() for each in self.stages],
            "operators": [each.as_json() for each in self.operators],
            "disagreements": [each.as_json() for each in self.disagreements],
            "assumptions": list(self.assumptions),
            "unseen": list(self.unseen),
        }


@dataclass(frozen=True)
class StagePrediction:
    id: str
    name: str
    recorded_ms: float
    predicted_ms: float | None


@dataclass(frozen=True)
class Prediction:
    """What a changed world would make of a scope.

    `predicted_ms` is None where the question is refused; then `refused` has the reasons, and `bound_ms` what can be
    proved all the same.  `interval_ms` holds 90 % of actual runtimes, and `interval_shares` says what makes it wide
    (query.whatif.interval).  `replay_error_ratio` is (replayed − runtime) / runtime of the unchanged run.
    """

    scope: str
    setting: str
    runtime_ms: float
    replayed_ms: float
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None
    interval_shares: Mapping[str, float] = field(default_factory=dict)
    bound_ms: tuple[float | None, float | None] | None = None
    stages: tuple[StagePrediction, ...] = ()
    assumptions: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def refusing(self, setting: str, reason: str) -> Prediction:
        """The answer to a question that cannot be asked of this run: what is known of the run, and why."""
        return replace(
            self,
            setting=setting,
            predicted_ms=None,
            interval_ms=None,
            interval_shares={},
            stages=tuple(replace(each, predicted_ms=None) for each in self.stages),
            assumptions=(),
            refused=(reason,),
        )

    @property
    def replay_error_ratio(self) -> float:
        return (self.replayed_ms - self.runtime_ms) / self.runtime_ms if self.runtime_ms else 0.0

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "scope": self.scope,
            "set": self.setting,
            "runtime_ms": _ms(self.runtime_ms),
            "replayed_ms": _ms(self.replayed_ms),
            "replay_error_ratio": round(self.replay_error_ratio, 6),
            "predicted_ms": _ms(self.predicted_ms),
            "interval_ms": None if self.interval_ms is None else [_ms(each) for each in self.interval_ms],
            "interval_shares": {name: round(share, 4) for name, share in self.interval_shares.items()},
            "stages": [
                {"id": each.id, "recorded_ms": _ms(each.recorded_ms), "predicted_ms": _ms(each.predicted_ms)}
                for each in self.stages
            ],
            "assumptions": list(self.assumptions),
            "refused": list(self.refused),
        }
        if self.bound_ms is not None:
            answer["bound_ms"] = [_ms(each) for each in self.bound_ms]
        return answer


@dataclass(frozen=True)
class Sweep:
    """One prediction per listed value, in the order given."""

    points: tuple[Prediction, ...]

    def as_json(self) -> dict[str, Any]:
        """The first point's answer, with all of them under `sweep`."""
        first = self.points[0].as_json()
        first["sweep"] = [
            {
                "set": each.setting,
                "predicted_ms": _ms(each.predicted_ms),
                "interval_ms": None if each.interval_ms is None else [_ms(side) for side in each.interval_ms],
                "refused": list(each.refused),
            }
            for each in self.points
        ]
        return first


@dataclass(frozen=True)
class Header:
    """What a run is, in the few words at the top of a verdict."""

    app_id: str
    name: str
    framework: str
    framework_version: str
    executors: int
    slots_per_executor: int | None
    duration_ms: float
    complete: bool
    problems: tuple[tuple[str, str], ...]  # (severity, sentence), the worst first
    indexes: tuple[str, ...]
    has_samples: bool


def _ms(value: float | None) -> float | None:
    return None if value is None else round(float(value), 3)


def _parts(parts: Parts) -> dict[str, float]:
    return {name: round(float(value), 3) for name, value in parts.items()}
