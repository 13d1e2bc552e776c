"""Spark's scheduling policy, and the job barriers of its driver."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from crystalperf.query.execution.dag import EPSILON_MS, StageRun
from crystalperf.query.execution.scheduling import Policy, by_rank, fair_share
from crystalperf.query.frameworks.spark.settings import duration_ms, flag

LOCALITY_WAIT = "spark.locality.wait"
LOCALITY_WAIT_MS = 3000.0
"""Its default."""

OFFERS_MS = 1000.0
"""Spark's default of spark.scheduler.revive.interval: how often it offers idle slots again."""

SINCE_IDLE = 3, 1
"""The version since which a stage's locality wait lasts as long as slots are idle because of it."""

SHUFFLE, EARLIER_JOB = "shuffle", "shuffle of an earlier job"
"""Why a stage waits for one whose rows it reads: of its own job, or of a job that had ended before its own began."""

MOST = 0.5
"""Minimum share of the unexplained time before a job that a stage must have run in to count as its cause."""


def schedule(scheduler: str | None, properties: Mapping[str, str], version: str | None) -> Policy:
    """Spark's scheduling policy: FIFO unless the run has FAIR; tasks wait for the location of their data
    (spark.locality.wait, 3 s), before 3.1 since their stage last launched one there (SPARK-18886); dynamic allocation
    requests executors for waiting tasks."""
    patience_ms = duration_ms(properties.get("spark.locality.wait.node") or properties.get(LOCALITY_WAIT))
    offers_ms = duration_ms(properties.get("spark.scheduler.revive.interval"))
    legacy = properties.get("spark.locality.wait.legacyResetOnTaskLaunch")
    number = re.match(r"(\d+)\.(\d+)", version or "")
    return Policy(
        order=fair_share if scheduler == "FAIR" else by_rank,
        patience_ms=LOCALITY_WAIT_MS if patience_ms is None else patience_ms,
        restarts=legacy == "true" or (number is not None and (int(number[1]), int(number[2])) < SINCE_IDLE),
        offers_ms=OFFERS_MS if offers_ms is None else offers_ms,
        on_demand=bool(flag(properties.get("spark.dynamicAllocation.enabled"))),
    )


class JobBarriers:
    """The event that the driver waited for before it submitted a stage that opens a job.

    A stage that reads shuffled rows of its own job waited for these alone.  Another opens a job, and the log does not
    record what the program, or the adaptive planner, waited for.  It is assumed to be:

    - what had ended by then in its own query, or if the stage names parents in earlier jobs, these;
    - then what ended last of other queries (nested ones among them), if it ran in the remaining time up to the
      submission, for all of its length or most of that time.

    One thread of a program runs one query at a time, so two queries that both continued submitting while the other ran
    belong to two threads, and neither waited for the other.
    """

    def __init__(self, stages: Sequence[StageRun]) -> None:
        self._threads = _Threads(stages)
        self._stages = {each.stage_id: each for each in stages}
        self._of_query: dict[str, list[StageRun]] = {}
        self._waited_for: dict[str, frozenset[str]] = {}
        self._open: list[tuple[float, str]] = []  # heap of ends not yet passed by a submission
        self._ended: dict[str, StageRun] = {}  # by query, its last stage that ended; in order of ends

    def sources(self, stage: StageRun, limit_ms: float, known: Mapping[str, str]) -> dict[str, str]:
        while self._open and self._open[0][0] <= limit_ms:
            ended = self._stages[heapq.heappop(self._open)[1]]
            self._ended.pop(_query(ended), None)
            self._ended[_query(ended)] = ended
        if SHUFFLE in known.values():
            return {}
        waited = [self._stages[source] for source in known]
        found: dict[str, str] = {}
        if EARLIER_JOB not in known.values():
            same = [each for each in self._of_query.get(_query(stage), ()) if each.end_ms <= limit_ms]
            awaited = frozenset[str]().union(*(self._waited_for[each.stage_id] for each in same))
            found = {each.stage_id: "job barrier" for each in same if each.stage_id not in awaited}
            waited += [self._stages[source] for source in found]
        last = self._last(stage, max((each.end_ms for each in waited), default=None))
        if last is not None:
            found[last.stage_id] = "job barrier" if _query(last) == _query(stage) else "submission order"
        return found

    def _last(self, stage: StageRun, since_ms: float | None) -> StageRun | None:
        """The last ended stage that the submission waited for, later than the known one, which ended at `since_ms`;
        None if unknown."""
        for each in reversed(self._ended.values()):
            if since_ms is not None and each.end_ms <= since_ms + EPSILON_MS:
                return None
            if (since_ms is None or _fills(each, since_ms, stage)) and not self._threads.apart(stage, each):
                return each
        return None

    def add(self, stage: StageRun, sources: Mapping[str, str]) -> None:
        self._waited_for[stage.stage_id] = frozenset(sources)
        self._of_query.setdefault(_query(stage), []).append(stage)
        heapq.heappush(self._open, (stage.end_ms, stage.stage_id))


def _query(stage: StageRun) -> str:
    """The query of a stage; a stage outside of queries is its own."""
    return stage.stage_id if stage.scope_id is None else stage.scope_id


def _submitted(stage: StageRun) -> float:
    return stage.start_ms if stage.submit_ms is None else stage.submit_ms


def _fills(stage: StageRun, since_ms: float, waiting: StageRun) -> bool:
    """Whether a stage ran in the interval up to a submission, for all of its own length or most of the interval."""
    if _submitted(stage) >= since_ms - EPSILON_MS:
        return True
    return stage.end_ms - max(stage.start_ms, since_ms) >= MOST * (_submitted(waiting) - since_ms)


class _Threads:
    """Which queries different threads of the program ran."""

    def __init__(self, stages: Sequence[StageRun]) -> None:
        self._submits: dict[str, list[float]] = {}
        self._runs: dict[str, list[tuple[float, float]]] = {}
        for each in sorted(stages, key=lambda stage: stage.start_ms):
            self._submits.setdefault(_query(each), []).append(_submitted(each))
            runs = self._runs.setdefault(_query(each), [])
            if runs and each.start_ms <= runs[-1][1]:
                runs[-1] = runs[-1][0], max(runs[-1][1], each.end_ms)
            else:
                runs.append((each.start_ms, each.end_ms))
        for times in self._submits.values():
            times.sort()
        self._apart: dict[tuple[str, str], bool] = {}

    def apart(self, one: StageRun, other: StageRun) -> bool:
        """Whether one query continued submitting after the other had submitted something next to its running stages."""
        first, second = sorted((_query(one), _query(other)))
        if first == second:
            return False
        if (first, second) not in self._apart:
            self._apart[first, second] = self._interrupted(first, second) or self._interrupted(second, first)
        return self._apart[first, second]

    def _interrupted(self, running: str, other: str) -> bool:
        """Whether a query submitted something both before and after the other did so while it ran."""
        runs, times = self._runs[running], self._submits[other]
        begin, end = bisect_right(times, runs[0][0]), bisect_left(times, self._submits[running][-1])
        for time in times[begin:end]:
            position = bisect_right(runs, (time - EPSILON_MS, float("inf"))) - 1
            if position >= 0 and time < runs[position][1] - EPSILON_MS:
                return True
        return False
