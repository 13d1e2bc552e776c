"""Converts a collected Spark event log to tables of a run file (the run part of indexes/schema.sql).

Times become milliseconds since the application started, on the driver's clock, within the run; no interval is
negative.  Contradictory values are repaired, and counts that contradict the log's events show missing data; both are
counted in import_stats, nothing is changed silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crystalperf.indexes.regex import regex
from crystalperf.query.attribution.locality import CACHE_ROOT
from crystalperf.query.frameworks.spark.log.clock_steps import STEP_MS, Eras, eras, implausible
from crystalperf.query.frameworks.spark.log.collect import (
    KINDS,
    MAX_ATTEMPTS,
    RESUBMITTED,
    STATUS,
    SUCCEEDED,
    UNFINISHED,
    Executor,
    Floats,
    Job,
    LoggedRun,
    Stage,
)
from crystalperf.query.frameworks.spark.log.peaks import NAMES
from crystalperf.query.frameworks.spark.log.resource_profiles import Profiles
from crystalperf.query.frameworks.spark.log.slot_waits import Provider, Ran, Submitted, most_at_once, slot_waits
from crystalperf.query.frameworks.spark.log.statements import number_of
from crystalperf.query.frameworks.spark.log.task_rows import TASK_FIELDS
from crystalperf.query.frameworks.spark.memory import heap_bytes
from crystalperf.query.frameworks.spark.settings import number, size_bytes, unread, version_number
from crystalperf.query.trace.arrays import median, members
from crystalperf.query.trace.records import (
    LARGEST,
    Columns,
    RunTables,
    coded,
    import_stats,
    integers,
    numbers,
    objects,
    table,
)

_DAY_MS = 86_400_000.0
_HOUR_MS = 3_600_000.0
_EARLIEST_MS, _LATEST_MS = 946_684_800_000.0, 4_102_444_800_000.0  # years 2000 and 2100: valid clocks are in between
_MIB = 1 << 20
_MAX_PARTITIONS = 1 << 31  # of one stage: Spark counts them in an int
_LARGEST_IDS = np.array([1 << 53, _MAX_PARTITIONS, MAX_ATTEMPTS])  # of tasks, stages and their attempts
_DEFAULT_MEMORY_BYTES = 1 << 30  # of spark.executor.memory
LOCAL_MASTER = regex(r"local(\[([0-9]{1,9}|\*)(,\s*\d+)?\])?")
_SAME_FILES = 0.01  # relative: two tasks with a smaller difference of input bytes read the same files
_MAX_SIZES = 1 << 20  # partitions whose input sizes are kept
_MAX_CORES = 10_000  # of one executor; machines have some hundred, and each costs memory here


def tables(run: LoggedRun) -> RunTables:
    """The tables runs, executors, sql_executions, operators, operator_metrics, driver_metrics, fallback_reasons,
    gpu_times, jobs, stages, tasks, batches, stream_sources, stream_states, statements, requests and import_stats.

    Columns that samples and the analysis fill are left out.
    """
    tasks = _Tasks(run)
    _leave_out_far_times(run, tasks)
    _undo_clock_steps(run, tasks)
    _correct_ends(run, tasks)
    clock = _Clock(run, tasks)
    tasks.repair_times(clock)
    _adopt_stages(run)
    stages = _all_stages(run, tasks)
    _complete_kinds(stages, tasks)
    _mark_cached(stages, tasks)
    executors = _executors(run, tasks, clock)
    found: RunTables = {
        "runs": _runs(run, clock),
        "executors": executors,
        "sql_executions": _sql_executions(run, clock),
        "operators": _operators(run),
        "operator_metrics": _operator_metrics(run, stages),
        "driver_metrics": _driver_metrics(run),
        "fallback_reasons": _fallback_reasons(run),
        "gpu_times": _gpu_times(stages),
        "peaks": table(f"executor_id stage_id attempt {' '.join(NAMES)}", run.peaks.rows(), whole=" ".join(NAMES)),
        "settings": table("name set_by", sorted(run.set_by.items())),
        "requests": table(
            "profile_id requested_by resource amount",
            list(Profiles(run.profiles, run.properties).rows()),
            whole="profile_id",
            real="amount",
        ),
        "jobs": _jobs(run, clock),
        "stages": _with_waits(_stages(run, stages, tasks, clock), run, stages, tasks, executors, clock),
        "tasks": tasks.columns(clock),
        "batches": run.batches.columns(clock.relative),
        "statements": run.statements.columns(clock.relative, clock.after),
        "stream_sources": run.batches.source_columns(clock.relative),
        "stream_states": run.batches.state_columns(clock.relative),
    }
    clock.report()
    for key, value in unread(run.properties):
        meaning = f"{key}={value} is not a valid value; CrystalPerf uses Spark's default"
        run.add(f"unread_setting {key}", "info", meaning)
    if run.version and version_number(run.version) is None:
        meaning = f"'{run.version}' is not a version of Spark; CrystalPerf uses no index of Spark"
        run.add("unknown_version", "info", meaning)
    found["import_stats"] = import_stats(run.problems)
    return found


# Time -------------------------------------------------------------------------------------------------------------


def _sane(time: float | None) -> float | None:
    """A plausible time; None for others, as Spark writes 0 or -1 for unknown."""
    return time if time is not None and _EARLIEST_MS < time < _LATEST_MS else None


def _leave_out_far_times(run: LoggedRun, tasks: _Tasks) -> None:
    """Make times unknown that are more than a year from all others: one event never makes a run of decades."""
    known = np.concatenate([_times(run), tasks.sane("launch"), tasks.sane("finish")])
    if not len(known):
        return
    low, high = implausible(known)
    count = 0

    def kept(time: float | None) -> float | None:
        nonlocal count
        if time is None or _sane(time) is None or low <= time <= high:
            return time
        count += 1
        return None

    for job in run.jobs.values():
        job.submit, job.end = kept(job.submit), kept(job.end)
    for stage in run.stages.values():
        stage.submit, stage.end = kept(stage.submit), kept(stage.end)
    for query in run.sql.values():
        query.start, query.end = kept(query.start), kept(query.end)
    for statement in run.statements:
        statement.start, statement.end, statement.closed = map(kept, (statement.start, statement.end, statement.closed))
    added = [each.added for name, each in run.executors.items() if each.added and name != "driver"]
    if len(added) < 2 or any(low <= each <= high for each in added):  # else they are all of another clock
        for executor in run.executors.values():
            executor.added, executor.removed = kept(executor.added), kept(executor.removed)
    run.start, run.end = kept(run.start), kept(run.end)
    for name in ("launch", "finish"):
        times = tasks[name]
        with np.errstate(invalid="ignore"):
            times[((times < low) | (times > high)) & (times > _EARLIEST_MS) & (times < _LATEST_MS)] = np.nan
    meaning = "times more than a year away from all others count as unknown"
    run.add("far_time", "error", meaning, count)


def _undo_clock_steps(run: LoggedRun, tasks: _Tasks) -> None:
    """Put all times on one clock if the driver's clock was set while tasks ran."""
    launch, finish = (
        np.where((tasks[name] > _EARLIEST_MS) & (tasks[name] < _LATEST_MS), tasks[name], np.nan)
        for name in ("launch", "finish")
    )
    unfinished = tasks["status"] == UNFINISHED
    getting = tasks["getting_result"]
    with np.errstate(invalid="ignore"):
        fetched = np.where(getting > _EARLIEST_MS, np.clip(finish - getting, 0.0, None), 0.0)
        measured = np.where(unfinished | (tasks.accounted() <= 0), np.nan, tasks.accounted() + fetched)
    found = eras(launch, finish, measured)
    if len(found.offsets_ms) == 1:
        return
    for name, before, after in (("launch", launch, found.launch_ms), ("finish", finish, found.finish_ms)):
        tasks[name][:] = np.where(np.isfinite(before), after, tasks[name])
    _shift_other_times(run, tasks, found)
    for step in found.steps_ms:
        way = f"{'forward' if step > 0 else 'back'} by {abs(step) / 1000:.0f} s"
        meaning = f"the driver's clock was set {way} while tasks ran, or its machine slept; later times were corrected"
        run.add(f"clock_step {way}", "error", meaning)


def _shift_other_times(run: LoggedRun, tasks: _Tasks, found: Eras) -> None:
    """Put the times of stages, jobs, queries and executors on the clock of their tasks."""
    first, last = tasks.span_by(tasks.stage_of, len(tasks.stage_keys))
    spans = dict(zip(tasks.stage_keys, zip(first.tolist(), last.tolist(), strict=True), strict=True))
    for key, stage in run.stages.items():
        begin, end = spans.get(key, (None, None))
        stage.submit, stage.end = found.near(stage.submit, begin), found.near(stage.end, end)
    of_jobs: dict[int, list[Stage]] = {}
    for (stage_id, _), stage in run.stages.items():
        of_jobs.setdefault(stage_id, []).append(stage)
    of_queries: dict[int, list[Job]] = {}
    for job in run.jobs.values():
        own = [stage for stage_id in job.stage_ids for stage in of_jobs.get(stage_id, ())]
        job.submit = found.near(job.submit, min((each.submit for each in own if each.submit), default=None))
        job.end = found.near(job.end, max((each.end for each in own if each.end), default=None))
        if job.sql_id is not None:
            of_queries.setdefault(job.sql_id, []).append(job)
    for query in run.sql.values():
        jobs = of_queries.get(query.sql_id, [])
        query.start = found.near(query.start, min((each.submit for each in jobs if each.submit), default=None))
        query.end = found.near(query.end, max((each.end for each in jobs if each.end), default=None))
    codes, places = np.unique(tasks["executor"], return_inverse=True)
    first, last = tasks.span_by(places.reshape(-1), len(codes))
    for name, end in zip(run.executor_names.column(codes).tolist(), last.tolist(), strict=True):
        if name in run.executors:
            run.executors[name].removed = found.near(run.executors[name].removed, end)
    run.end = found.last(run.end)


def _correct_ends(run: LoggedRun, tasks: _Tasks) -> None:
    """Correct ends of stages and jobs that their tasks' ends contradict: Spark ends both with the last of these."""
    succeeded = tasks["status"] == SUCCEEDED
    finish = np.where(succeeded & (tasks["finish"] > _EARLIEST_MS), tasks["finish"], -np.inf)
    last = np.full(len(tasks.stage_keys), -np.inf)
    np.maximum.at(last, tasks.stage_of, finish)
    counts = np.bincount(tasks.stage_of[succeeded], minlength=len(tasks.stage_keys))
    ended: dict[int, float] = {}
    corrected = 0
    for place, key in enumerate(tasks.stage_keys):
        stage = run.stages.get(key)
        if stage is None or not stage.completed or stage.failure or counts[place] < (stage.task_count or np.inf):
            continue
        end = _sane(stage.end)
        if end is not None and end > last[place] + STEP_MS:
            stage.end = float(last[place])
            corrected += 1
        ended[key[0]] = max(ended.get(key[0], 0.0), stage.end or 0.0)
    for job in run.jobs.values():
        ran = [stage_id for stage_id in job.stage_ids if any((stage_id, each) in run.stages for each in (0, 1))]
        end = _sane(job.end)
        if end is None or job.result != "JobSucceeded" or not ran or not all(each in ended for each in ran):
            continue
        latest = max(ended[each] for each in ran)
        if end > latest + STEP_MS:
            job.end = latest
            corrected += 1
    meaning = "ends of stages and jobs a minute or more after their last task were moved to its end"
    run.add("end_after_tasks", "error", meaning, corrected)


class _Clock:
    """Start and end of the run, and the log's times relative to its start, kept within it."""

    def __init__(self, run: LoggedRun, tasks: _Tasks) -> None:
        self._run = run
        self._outside = 0
        self._senseless = 0
        self._reversed = 0
        times = _times(run)
        launches = tasks.sane("launch")
        self.start_ms = self._start(run, times, launches)
        self.end_ms, self.complete = self._end(run, times, launches, tasks)

    def _start(self, run: LoggedRun, times: list[float], launches: Floats) -> float:
        start = _sane(run.start)
        driver = run.executors.get("driver")
        registered = _sane(driver.added) if driver else None
        jobs = [time for job in run.jobs.values() if (time := _sane(job.submit)) is not None]
        contradicted = (
            start is not None
            and registered is not None
            and abs(start - registered) > _HOUR_MS
            and sum(time < start for time in jobs) * 2 >= len(jobs)
        )
        late = start is not None and bool(jobs) and sum(time < start - STEP_MS for time in jobs) * 2 > len(jobs)
        if start is None or contradicted or late:
            first = [registered] if registered is not None and not late else times or list(launches)
            meaning = "the log has no valid start of the application; its first event is used instead"
            run.add("application_start", "data loss" if start is None else "error", meaning)
            return min(first, default=0.0)
        return start

    def _end(self, run: LoggedRun, times: list[float], launches: Floats, tasks: _Tasks) -> tuple[float, bool]:
        end = _sane(run.end)
        typical = median(launches) if len(launches) else self.start_ms
        if run.ended and end is not None and end >= max(self.start_ms, typical):
            return end, True
        if run.ended:
            meaning = "the end of the application has an impossible time; its last event is used instead"
            run.add("application_end", "error", meaning)
        else:
            open_jobs = sum(job.end is None for job in run.jobs.values())
            meaning = "the log stops before the end of the application; its last event is used instead"
            if open_jobs:
                meaning += f" ({open_jobs} job{'s' if open_jobs > 1 else ''} unfinished)"
            run.add("no_application_end", "data loss" if open_jobs else "info", meaning)
        last = max([self.start_ms, *times])
        if len(launches):
            last = max(last, float(launches.max()), float(tasks.sane_finishes().max(initial=0.0)))
        return last, run.ended

    def relative(self, time: float | None) -> float | None:
        """A time of the log in milliseconds since the start, within the run; None if implausible."""
        if time is None or time <= 0:
            return None
        if not _EARLIEST_MS < time < _LATEST_MS:
            self._senseless += 1
            return None
        if not self.start_ms <= time <= self.end_ms:
            self._outside += 1
        return min(max(time, self.start_ms), self.end_ms) - self.start_ms

    def after(self, start_ms: float | None, time: float | None) -> float | None:
        """The end, relative, of an interval that began at the relative time `start_ms`."""
        end_ms = self.relative(time)
        if start_ms is None or end_ms is None:
            return end_ms
        self._reversed += end_ms < start_ms
        return max(start_ms, end_ms)

    def report(self) -> None:
        meaning = "times before the start or after the end of the application were moved to it"
        self._run.add("time_outside_run", "info", meaning, self._outside)
        meaning = "impossible times count as unknown"
        self._run.add("senseless_time", "error", meaning, self._senseless)
        meaning = "ends that were before their start were moved to the start"
        self._run.add("end_before_start", "error", meaning, self._reversed)


def _times(run: LoggedRun) -> list[float]:
    """All times of jobs, stages and SQL queries; of executors only if there are no others."""
    found: list[float | None] = []
    for job in run.jobs.values():
        found += (job.submit, job.end)
    for stage in run.stages.values():
        found += (stage.submit, stage.end)
    for query in run.sql.values():
        found += (query.start, query.end)
    times = [time for time in map(_sane, found) if time is not None]
    if times:
        return times
    executors = [time for each in run.executors.values() for time in (each.added, each.removed)]
    return [time for time in map(_sane, executors) if time is not None]


# Tasks ------------------------------------------------------------------------------------------------------------


class _Tasks:
    """The tasks as columns of float64, NaN for unknown, (TASK_FIELDS, tasks)."""

    def __init__(self, run: LoggedRun) -> None:
        self._run = run
        filled = sum(each.shape[1] for each in run.tasks)
        columns = np.empty((len(TASK_FIELDS), filled))
        while run.tasks:  # chunk by chunk, so that the tasks are in memory only once
            chunk = run.tasks.pop()
            columns[:, filled - chunk.shape[1] : filled] = chunk
            filled -= chunk.shape[1]
        identified = ((columns[:3] >= 0) & (columns[:3] < _LARGEST_IDS[:, None])).all(axis=0)
        meaning = "tasks with invalid ids were left out"
        run.add("senseless_id", "data loss", meaning, int((~identified).sum()))
        if not identified.all():
            columns = columns[:, identified]
        np.trunc(columns[:3], out=columns[:3])
        self._columns = self._without_repetitions(columns)
        # One number for stage and attempt, because numpy sorts numbers much faster than pairs.
        both = self["stage_id"] * MAX_ATTEMPTS + self["stage_attempt"]
        keys, inverse = np.unique(both, return_inverse=True)
        self.stage_keys = [(int(key // MAX_ATTEMPTS), int(key % MAX_ATTEMPTS)) for key in keys]
        self.stage_of: npt.NDArray[np.int64] = inverse.reshape(-1)

    def __getitem__(self, name: str) -> Floats:
        column: Floats = self._columns[TASK_FIELDS.index(name)]
        return column

    def _without_repetitions(self, columns: Floats) -> Floats:
        """The columns with one entry per task id.

        Spark writes a second end, 'Resubmitted', for a finished task whose output was lost with its executor.
        """
        ids = columns[0]
        if not len(ids) or (np.diff(np.sort(ids)) != 0).all():
            return columns
        resubmitted = columns[TASK_FIELDS.index("status")] == RESUBMITTED
        order = np.lexsort((np.arange(len(ids)), resubmitted, ids))
        first = np.ones(len(ids), dtype=bool)
        first[1:] = np.diff(ids[order]) != 0
        repeated = order[~first]
        rerun = int(resubmitted[repeated].sum())
        meaning = "tasks ran again because their output was lost with an executor"
        self._run.add("output_lost", "info", meaning, rerun)
        meaning = "repeated ends of a task were left out"
        self._run.add("repeated_task_end", "error", meaning, len(repeated) - rerun)
        return columns[:, np.sort(order[first])]

    def sane(self, name: str) -> Floats:
        times = self[name]
        return times[(times > _EARLIEST_MS) & (times < _LATEST_MS)]

    def span_by(self, group: npt.NDArray[np.int64], groups: int) -> tuple[Floats, Floats]:
        """The first launch and the last finish of each group of tasks, (groups,) each; infinite if unknown."""
        first, last = np.full(groups, np.inf), np.full(groups, -np.inf)
        launch, finish = self["launch"], self["finish"]
        np.minimum.at(first, group, np.where(launch > _EARLIEST_MS, launch, np.inf))
        np.maximum.at(last, group, np.where(finish > _EARLIEST_MS, finish, -np.inf))
        return first, last

    def sane_finishes(self) -> Floats:
        """Ends of tasks, without those that their own measurements contradict by more than a day, or that are after the
        ends of their stages."""
        good = (self["finish"] > _EARLIEST_MS) & (self["finish"] < _LATEST_MS)
        with np.errstate(invalid="ignore"):
            excess = self["finish"] - self["launch"] - self.accounted()
            good &= ~(excess > _DAY_MS)
            good &= ~((excess > STEP_MS) & (self["finish"] > self._stage_bounds()[1] + STEP_MS))
        return self["finish"][good]

    def accounted(self) -> Floats:
        """Time that the executor reports for each task, ms; NaN if it reports none."""
        parts = np.stack([self["deserialize"], self["run"], self["result_serialize"]])
        total = np.where(parts > 0, parts, 0.0).sum(axis=0)
        return np.where(np.isfinite(self["run"]) & (total < _LATEST_MS), total, np.nan)

    def repair_times(self, clock: _Clock) -> None:
        """Make launch and finish relative to the start, within the run, and never reversed."""
        run = self._run
        launch, finish = self["launch"].copy(), self["finish"].copy()
        unfinished, succeeded = self["status"] == UNFINISHED, self["status"] == SUCCEEDED
        for times in (launch, finish):
            times[~((times > _EARLIEST_MS) & (times < _LATEST_MS))] = np.nan
        accounted = np.nan_to_num(self.accounted())
        measured = np.isfinite(self.accounted())
        wrong = ~np.isfinite(finish) & ~unfinished
        with np.errstate(invalid="ignore"):
            wrong |= finish < launch
            excess = np.where(measured, finish - launch - accounted, 0.0)
            wrong |= excess > _DAY_MS
            # Of two times that their own measurements contradict, the one outside of the stage is wrong.
            submitted, ended = self._stage_bounds()
            wrong |= succeeded & (excess > STEP_MS) & (finish > ended + STEP_MS)
            early = succeeded & (excess > STEP_MS) & ~wrong & (launch < submitted - STEP_MS)
            launch[early] = np.nan
        meaning = "tasks with a missing or impossible end got an end computed from their own measurements"
        run.add("task_end_repaired", "error", meaning, int((wrong & np.isfinite(launch)).sum()))
        finish = np.where(wrong, launch + accounted, finish)
        lost = ~np.isfinite(launch)
        meaning = "tasks without a valid launch time got one computed from their end and measurements"
        run.add("task_launch_repaired", "error", meaning, int(lost.sum()))
        launch = np.where(lost, finish - accounted, launch)
        nowhere = ~np.isfinite(launch)
        launch[nowhere] = self._stage_submissions(clock)[nowhere]
        finish = np.where(np.isfinite(finish), finish, np.where(unfinished, np.inf, launch + accounted))

        launch, finish = launch - clock.start_ms, finish - clock.start_ms
        length = clock.end_ms - clock.start_ms
        outside = (launch < 0) | (launch > length)
        duration = finish - launch
        meaning = "tasks with times outside the application were moved into their stage"
        run.add("task_outside_run", "error", meaning, int(outside.sum()))
        launch = np.where(outside, self._stage_submissions(clock) - clock.start_ms, launch)
        finish = np.where(outside, launch + duration, finish)
        late = (finish > length) & ~unfinished
        meaning = "tasks that ended after the application now end with it"
        run.add("task_end_after_run", "info", meaning, int((late & ~outside).sum()))
        finish = np.minimum(finish, length)
        self.launch_ms, self.finish_ms = launch, np.maximum(finish, launch)
        self._end_unfinished(clock, unfinished)

    def _stage_submissions(self, clock: _Clock) -> Floats:
        """When each task's stage was submitted, at the latest at the end of the run."""
        known = {
            key: min(max(_sane(stage.submit) or clock.start_ms, clock.start_ms), clock.end_ms)
            for key, stage in self._run.stages.items()
        }
        return self._per_task(known, clock.start_ms)

    def _stage_bounds(self) -> tuple[Floats, Floats]:
        """When each task's stage was submitted and ended, infinite if unknown, (tasks,) each."""
        submits, ends = (
            {key: time for key, stage in self._run.stages.items() if (time := _sane(getattr(stage, name))) is not None}
            for name in ("submit", "end")
        )
        return self._per_task(submits, -np.inf), self._per_task(ends, np.inf)

    def _end_unfinished(self, clock: _Clock, unfinished: npt.NDArray[np.bool_]) -> None:
        """End each task without an end in the log with its stage, its executor or the run, whichever was first."""
        if not unfinished.any():
            return
        stage_ends = {
            key: end - clock.start_ms
            for key, stage in self._run.stages.items()
            if stage.completed and (end := _sane(stage.end)) is not None
        }
        removals = {
            name: time - clock.start_ms
            for name, executor in self._run.executors.items()
            if (time := _sane(executor.removed)) is not None
        }
        length = clock.end_ms - clock.start_ms
        ends = np.minimum(self._per_task(stage_ends, length), length)
        names: Any = self._run.executor_names.column(self["executor"])
        for position in np.flatnonzero(unfinished):
            end = min(float(ends[position]), removals.get(names[position], length))
            launch = float(self.launch_ms[position])
            self.finish_ms[position] = end if end >= launch else max(launch, min(length, float(ends[position])))

    def _per_task(self, of_stage: dict[tuple[int, int], float], default: float) -> Floats:
        values = [of_stage.get(key, default) for key in self.stage_keys]
        return np.array(values, dtype=np.float64)[self.stage_of] if values else np.empty(0)

    def partitions(self) -> Floats:
        """The partition of the stage that each task computes; before Spark 3.3 its index in the attempt."""
        partition = self["partition"]
        return np.where(np.isfinite(partition) & (partition >= 0), partition, self["index"])

    def clear_locality(self, which: npt.NDArray[np.int64]) -> None:
        """Remove the claim that the data of these tasks were in the memory of their executors."""
        locality = self["locality"]
        claimed = which[locality[which] == self._run.localities["PROCESS_LOCAL"]]
        locality[claimed] = self._run.localities["NO_PREF"]

    def recomputed(self) -> npt.NDArray[np.bool_]:
        """Whether a later attempt of the stage or of the task computed a task's partition again."""
        repeated = np.zeros(self._columns.shape[1], dtype=bool)
        partition = self.partitions()
        good = np.isfinite(partition) & (partition >= 0) & (partition < _MAX_PARTITIONS)
        if not good.any() or ((self["status"] == SUCCEEDED).all() and not self["stage_attempt"].any()):
            return repeated
        key = self["stage_id"][good].astype(np.int64) * _MAX_PARTITIONS + partition[good].astype(np.int64)
        _, inverse = np.unique(key, return_inverse=True)
        latest = np.full(int(inverse.max()) + 1, -np.inf)
        np.maximum.at(latest, inverse, self.launch_ms[good])
        began = latest[inverse]
        repeated[good] = (began >= self.finish_ms[good]) & (began > self.launch_ms[good])
        return repeated

    def columns(self, clock: _Clock) -> Columns:
        run = self._run
        status = self["status"].astype(np.int64)
        status[status == RESUBMITTED] = STATUS.index("succeeded")  # it did; only its output was lost later
        duration = self.finish_ms - self.launch_ms
        getting = self["getting_result"]
        getting = np.where((getting > _EARLIEST_MS) & (getting < _LATEST_MS), getting - clock.start_ms, np.nan)
        with np.errstate(invalid="ignore"):
            fetched = np.clip(self.finish_ms - np.maximum(getting, self.launch_ms), 0.0, None)
            getting_ms = np.where(np.isfinite(getting), fetched, np.where(self["getting_result"] == 0, 0.0, np.nan))
            accounted = self.accounted()
            delay = duration - accounted - np.nan_to_num(getting_ms)
            too_long = delay < -(10.0 + 0.01 * duration)
        meaning = "executors measured longer tasks than the driver; their clocks differ or were changed"
        run.add("measured_longer_than_task", "info", meaning, int(too_long.sum()))
        finished = status != UNFINISHED
        found: Columns = {
            "task_id": self["task_id"].astype(np.int64),
            "stage_id": self["stage_id"].astype(np.int64),
            "stage_attempt": self["stage_attempt"].astype(np.int64),
            "partition": self._count("partition", self.partitions()),
            "attempt": self._count("attempt", self["attempt"]),
            "executor_id": run.executor_names.column(self["executor"]),
            "host": run.hosts.column(self["host"]),
            "launch_ms": self.launch_ms,
            "finish_ms": self.finish_ms,
            "status": coded(status, STATUS),
            "reason": run.reasons.column(self["reason"]),
            "recomputed": self.recomputed(),
            "locality": run.localities.column(self["locality"]),
            "speculative": np.ma.MaskedArray(self["speculative"] == 1.0, mask=~np.isfinite(self["speculative"])),
            "scheduler_delay_ms": numbers(np.where(finished, np.clip(delay, 0.0, None), np.nan)),
            "getting_result_ms": numbers(getting_ms),
        }
        for name, source, divisor in _MEASURED_MS:
            found[name] = self._amount(name, self[source] / divisor)
        for name, source in _MEASURED_COUNTS:
            found[name] = integers(self._amount(name, self[source]).filled(np.nan))
        rows = self._amount("input_rows", np.stack([self["input_rows"], self["shuffle_rows"]])).filled(np.nan)
        missing = ~np.isfinite(rows).any(axis=0)
        found["input_rows"] = integers(np.where(missing, np.nan, np.nan_to_num(rows).sum(axis=0)))
        return found

    def _count(self, name: str, values: Floats) -> npt.NDArray[Any]:
        return integers(self._amount(name, np.where(values < 2**31, values, np.nan)).filled(np.nan))

    def _amount(self, name: str, values: Floats) -> Any:
        """Values without negative or implausibly large ones, which become unknown."""
        with np.errstate(invalid="ignore"):
            senseless = (values < 0) | (values > LARGEST)
        meaning = f"negative or impossibly large values of {name} and others count as unknown"
        self._run.add("senseless_measurement", "error", meaning, int(senseless.sum()))
        return numbers(np.where(senseless, np.nan, values))


_MEASURED_MS = (
    ("deserialize_ms", "deserialize", 1.0),
    ("deserialize_cpu_ms", "deserialize_cpu_ns", 1e6),
    ("run_ms", "run", 1.0),
    ("run_cpu_ms", "run_cpu_ns", 1e6),
    ("result_serialize_ms", "result_serialize", 1.0),
    ("gc_ms", "gc", 1.0),
    ("fetch_wait_ms", "fetch_wait", 1.0),
    ("shuffle_write_ms", "shuffle_write_ns", 1e6),
)
_MEASURED_COUNTS = (
    ("input_bytes", "input_bytes"),
    ("output_bytes", "output_bytes"),
    ("shuffle_remote_bytes", "remote_read_bytes"),
    ("shuffle_local_bytes", "local_read_bytes"),
    ("shuffle_write_bytes", "write_bytes"),
    ("spill_memory_bytes", "spill_memory"),
    ("spill_disk_bytes", "spill_disk"),
    ("peak_memory_bytes", "peak_memory"),
    ("result_bytes", "result_bytes"),
    ("merged_read_bytes", "merged_bytes"),
    ("merge_fallbacks", "merge_fallbacks"),
)


# Stages -----------------------------------------------------------------------------------------------------------


def _adopt_stages(run: LoggedRun) -> None:
    """Give jobs without a recorded start the stages that no other job has and that ended before they did."""
    known = {stage_id for job in run.jobs.values() for stage_id in job.stage_ids}
    free = {key[0]: stage for key, stage in run.stages.items() if key[0] not in known}
    for job in sorted((job for job in run.jobs.values() if not job.started), key=lambda job: _sane(job.end) or 0.0):
        ended = _sane(job.end) or 0.0
        job.stage_ids = sorted(stage_id for stage_id, stage in free.items() if (_sane(stage.end) or np.inf) <= ended)
        for stage_id in job.stage_ids:
            del free[stage_id]


def _all_stages(run: LoggedRun, tasks: _Tasks) -> list[Stage]:
    """Stage attempts that ran, stages known only from their tasks, and stages that never ran."""
    found = dict(run.stages)
    lost = 0
    for key in tasks.stage_keys:
        if key not in found:
            lost += 1
            plan = run.planned.get(key[0])
            made = (
                Stage(*key, None, None, [], None)
                if plan is None
                else Stage(*key, plan.name, plan.task_count, plan.parents, plan.rdd_id, profile=plan.profile)
            )
            made.ran = True
            found[key] = made
    meaning = "stages without events of their own in the log are known only from their tasks"
    run.add("missing_stage_events", "data loss", meaning, lost)
    ran = {stage_id for stage_id, _ in found}
    for job in run.jobs.values():
        for stage_id in job.stage_ids:
            if stage_id not in ran:
                found[stage_id, 0] = run.planned.get(stage_id) or Stage(stage_id, 0, None, None, [], None)
    return [found[key] for key in sorted(found)]


def _complete_kinds(stages: list[Stage], tasks: _Tasks) -> None:
    """Add to the kinds of stages what their tasks read and wrote, because Spark before 2.0 names no metrics of a stage.

    All that the tasks of a cached stage read may come from the cache.
    """
    amounts = {
        kind: np.bincount(tasks.stage_of, sum(np.nan_to_num(tasks[each]).clip(min=0) for each in columns))
        for kind, columns in _OF_TASKS.items()
    }
    places = {key: place for place, key in enumerate(tasks.stage_keys)}
    for stage in stages:
        place = places.get((stage.stage_id, stage.attempt))
        if stage.kind is None or place is None:
            continue
        known = stage.kind.split(", ")
        found = {
            kind for kind, amount in amounts.items() if amount[place] > 0 and (kind != "scan" or "cached" not in known)
        }
        stage.kind = ", ".join(kind for kind in KINDS if kind in found or kind in known)


def _mark_cached(stages: list[Stage], tasks: _Tasks) -> None:
    """Mark stages that read rows cached in executors' memory: an earlier stage computed all partitions.

    If some partitions did not fit, or were lost, their tasks read the files again, and the stage reads both; such a
    task had no preferred location, even if Spark calls its place local to the process.
    """
    places = {key: place for place, key in enumerate(tasks.stage_keys)}
    of_stage = members(tasks.stage_of, len(places))
    read, parts = np.nan_to_num(tasks["input_bytes"]).clip(min=0), tasks.partitions()
    filled: dict[int, tuple[float, Floats | None]] = {}  # by RDD: when it was complete, and the sizes of its files
    for stage in sorted((each for each in stages if each.ran), key=lambda each: _sane(each.submit) or 0.0):
        place, submitted = places.get((stage.stage_id, stage.attempt)), _sane(stage.submit) or 0.0
        scanning = of_stage[place] if place is not None else np.empty(0, np.int64)
        scanning = scanning[read[scanning] > 0]
        in_cache = [filled[each] for each in stage.kept if each in filled and filled[each][0] <= submitted]
        of_files = np.ones(len(scanning), dtype=bool)
        if in_cache:
            of_files = _of_files(
                tasks["from_memory"][scanning], parts[scanning], read[scanning], [each for _, each in in_cache]
            )
            if not of_files.all():
                stage.location = f"{CACHE_ROOT}/ {stage.location or ''}" if of_files.any() else f"{CACHE_ROOT}/"
            if of_files.any():
                tasks.clear_locality(scanning[of_files])
        if (of_files if in_cache else tasks["from_memory"][scanning] == 0).any() and stage.kind is not None:
            known = {"scan", *stage.kind.split(", ")}  # what _complete_kinds left out of a stage of cached rows
            stage.kind = ", ".join(kind for kind in KINDS if kind in known)
        ended = _sane(stage.end)
        if stage.completed and not stage.failure and ended is not None:
            sizes = _by_partition(parts[scanning], read[scanning]) if of_files.all() else None
            for rdd, partitions in stage.kept.items():
                if (stage.task_count or 0) >= partitions:
                    filled.setdefault(rdd, (ended, sizes))


def _of_files(from_memory: Floats, parts: Floats, read: Floats, sizes: list[Floats | None]) -> npt.NDArray[np.bool_]:
    """Which tasks of a stage of cached rows read files nevertheless, (tasks,).

    Spark before 2.0 records it.  In later logs, those that read as many bytes as their partition's files, `sizes` by
    partition, did: rows have other sizes in memory.
    """
    same = np.zeros(len(read), dtype=bool)
    for known in (each for each in sizes if each is not None):
        good = np.isfinite(parts) & (parts < len(known))
        first = np.zeros(len(read))
        first[good] = known[parts[good].astype(np.int64)]
        same |= np.isclose(read, first, rtol=_SAME_FILES, atol=0.0)
    found: npt.NDArray[np.bool_] = np.where(np.isfinite(from_memory), from_memory == 0, same)
    return found


def _by_partition(parts: Floats, values: Floats) -> Floats:
    """Bytes that a stage's tasks read, by partition; 0 without a task."""
    good = np.isfinite(parts) & (parts < _MAX_SIZES)
    found = np.zeros(int(parts[good].max(initial=-1)) + 1)
    found[parts[good].astype(np.int64)] = values[good]
    return found


_Measured = dict[tuple[int, int], tuple[float, float, int, int]]
"""The result of _per_stage, by stage attempt."""

_OF_TASKS = {
    "scan": ("input_bytes",),
    "shuffle read": ("remote_read_bytes", "local_read_bytes", "fetch_wait"),
    "shuffle write": ("write_bytes",),
    "output": ("output_bytes",),
}


def _stages(run: LoggedRun, stages: list[Stage], tasks: _Tasks, clock: _Clock) -> Columns:
    job_of: dict[int, Job] = {}
    for job in sorted(run.jobs.values(), key=lambda job: job.job_id):
        for stage_id in job.stage_ids:
            job_of.setdefault(stage_id, job)
    measured = _per_stage(tasks)
    computed = _computed_stages(stages)
    fair = run.properties.get("spark.scheduler.mode", "").upper() == "FAIR"
    rows = []
    for stage in stages:
        job_or_none = job_of.get(stage.stage_id)
        count, status, *times_ms = _course(run, stage, job_or_none, measured, clock)
        rows.append(
            (
                *(stage.stage_id, stage.attempt),
                *((job_or_none.job_id, job_or_none.sql_id) if job_or_none else (None, None)),
                stage.name,
                [computed.get(parent, parent) for parent in stage.parents],
                *(count, *times_ms, status, stage.failure, stage.profile),
                stage.pool or ("default" if fair and stage.ran else None),
                *(stage.accumulators, stage.location, stage.kind),
            )
        )
    _count_missing_ends(run, stages, measured, {key for key, job in job_of.items() if job.result == "JobSucceeded"})
    return table(
        "stage_id attempt job_id sql_id name parents task_count submit_ms first_launch_ms end_ms status failure"
        " resource_profile pool accumulators location kind",
        rows,
        whole="stage_id attempt job_id sql_id task_count resource_profile",
        real="submit_ms first_launch_ms end_ms",
    )


def _course(
    run: LoggedRun, stage: Stage, job: Job | None, measured: _Measured, clock: _Clock
) -> tuple[int, str, float | None, float | None, float | None]:
    """(number of tasks, status, submission, first launch and end in ms) of a stage, repaired from its tasks."""
    first_launch, last_finish, succeeded, highest = measured.get((stage.stage_id, stage.attempt), (None, None, 0, -1))
    submit = clock.relative(stage.submit) if stage.ran else None
    if stage.ran and submit is None:
        submit = first_launch
    if submit is not None and first_launch is not None:
        submit = min(submit, first_launch)
    end = clock.after(submit, stage.end)
    count = highest + 1 if stage.task_count is None else stage.task_count
    status = _stage_status(stage, job)
    if stage.ran and not stage.completed and status == "succeeded":
        end = last_finish if succeeded >= count or job is None else clock.after(submit, job.end)
        meaning = "the ends of stages are missing in the log; the ends of their last tasks are used instead"
        run.add("missing_stage_end", "data loss", meaning, where=f"stage {stage.stage_id}")
    return count, status, submit, first_launch, end


def _with_waits(
    found: Columns, run: LoggedRun, stages: list[Stage], tasks: _Tasks, executors: Columns, clock: _Clock
) -> Columns:
    """The table of stages with what those waited for that waited for slots although others were free."""
    length = clock.end_ms - clock.start_ms
    known = {name: each.profile for name, each in run.executors.items()}
    providers = [
        Provider(name, known.get(name, 0), added, length if removed is None else removed)
        for name, slots, added, removed in zip(
            *(executors[each].tolist() for each in ("executor_id", "slots", "added_ms", "removed_ms")), strict=True
        )
        if slots
    ]
    names = run.executor_names.column(tasks["executor"])
    codes, places = np.unique(tasks["executor"], return_inverse=True)
    ran = Ran(places.reshape(-1), run.executor_names.column(codes).tolist(), tasks.launch_ms, tasks.finish_ms)
    of_stage = members(tasks.stage_of, len(tasks.stage_keys))
    place_of = {key: place for place, key in enumerate(tasks.stage_keys)}

    def first_on(key: tuple[int, int]) -> set[str | None]:
        own = of_stage[place_of[key]] if key in place_of else np.empty(0, np.int64)
        if not len(own):
            return set()
        first = own[tasks.launch_ms[own] <= tasks.launch_ms[own].min() + 1.0]
        return set(names[first].tolist())

    rows = zip(*(found[each].tolist() for each in ("submit_ms", "first_launch_ms", "task_count")), stages, strict=True)
    of_profile = _slots_by_profile(run, stages, executors)
    submitted = [
        Submitted((stage.stage_id, stage.attempt), submit, first, count, stage.barrier, of_profile[stage.profile or 0])
        for submit, first, count, stage in rows
        if stage.ran and submit is not None and count
    ]
    waits = slot_waits(submitted, providers, ran, first_on, length)
    of_each = [waits.get((each.stage_id, each.attempt)) for each in stages]
    return {
        **found,
        **_demands(stages, of_profile, executors),
        "waited_for": objects([None if each is None else each.why for each in of_each]),
        "slots_there": integers([None if each is None else each.slots for each in of_each]),
        "slots_free": integers([None if each is None else each.free for each in of_each]),
    }


def _slots_by_profile(run: LoggedRun, stages: list[Stage], executors: Columns) -> dict[int, dict[str, int]]:
    """By resource profile, the slots that each executor has for its tasks."""
    profiles, known = Profiles(run.profiles, run.properties), run.executors
    columns = ("executor_id", "slots", "cores")
    rows = list(zip(*(executors[each].tolist() for each in columns), strict=True))
    found: dict[int, dict[str, int]] = {}
    for profile in {stage.profile or 0 for stage in stages}:
        found[profile] = {}
        for name, slots, cores in rows:
            own = known[name].profile if name in known else 0
            if slots and own == profile:
                found[profile][name] = int(slots)
            elif slots and cores and (other := int(profiles.slots(cores, own, profile))):
                found[profile][name] = other
    return found


def _demands(stages: list[Stage], of_profile: dict[int, dict[str, int]], executors: Columns) -> Columns:
    """The columns of stages about the slots that they need: those that they can use if these are not all, and how many
    of an executor's slots one of their tasks takes."""
    columns = ("executor_id", "slots", "added_ms", "removed_ms")
    rows = [row for row in zip(*(executors[each].tolist() for each in columns), strict=True) if row[1]]
    every = most_at_once((added, removed, slots) for _, slots, added, removed in rows)
    usable: dict[int, tuple[int, float]] = {}
    for profile, own in of_profile.items():
        able = [(added, removed, own[name]) for name, _, added, removed in rows if name in own]
        taken = [slots / own[name] for name, slots, _, _ in rows if name in own]
        usable[profile] = most_at_once(able), max(taken, default=1.0)
    found = [usable[stage.profile or 0] if stage.ran else (every, 1.0) for stage in stages]
    return {
        "barrier": np.array([stage.barrier for stage in stages], dtype=bool),
        "usable_slots": integers([slots if 0 < slots < every else None for slots, _ in found]),
        "slots_per_task": np.array([each for _, each in found], dtype=np.float64),
        "push_mergers": integers([stage.mergers for stage in stages]),
    }


def _stage_status(stage: Stage, job: Job | None) -> str:
    """How a stage attempt ended; of one without an end in the log, its job shows it: a job that succeeded had all of
    its tasks."""
    job_succeeded = job is not None and job.result == "JobSucceeded"
    if not stage.ran:
        return "skipped" if job_succeeded else "unfinished"
    if stage.completed:
        return "failed" if stage.failure else "succeeded"
    return "succeeded" if job_succeeded else "unfinished"


def _per_stage(tasks: _Tasks) -> _Measured:
    """Per stage attempt: first launch, last finish, partitions that succeeded, highest index of a task."""
    if not tasks.stage_keys:
        return {}
    inverse = tasks.stage_of
    size = len(tasks.stage_keys)
    first, last, highest = np.full(size, np.inf), np.full(size, -np.inf), np.full(size, -1.0)
    np.minimum.at(first, inverse, tasks.launch_ms)
    np.maximum.at(last, inverse, tasks.finish_ms)
    index = np.nan_to_num(tasks["index"], nan=-1.0)
    np.maximum.at(highest, inverse, np.where(index < 2**31, index, -1.0))
    good = (tasks["status"] == SUCCEEDED) | (tasks["status"] == RESUBMITTED)
    partitions = tasks.partitions()
    unnumbered = good & ~np.isfinite(partitions)  # each counts as a partition of its own
    good &= (partitions >= 0) & (partitions < _MAX_PARTITIONS)
    done = np.sort(inverse[good] * _MAX_PARTITIONS + partitions[good].astype(np.int64))
    first_time = np.diff(done, prepend=-1) > 0  # np.unique takes seventy times as long for a million
    succeeded = np.bincount(done[first_time] // _MAX_PARTITIONS, minlength=size)
    succeeded += np.bincount(inverse[unnumbered], minlength=size)
    return {
        key: (float(first[place]), float(last[place]), int(succeeded[place]), int(highest[place]))
        for place, key in enumerate(tasks.stage_keys)
    }


def _computed_stages(stages: list[Stage]) -> dict[int, int]:
    """For a skipped stage, the stage that computed its output: every job numbers the stages that it needs.

    Both compute the same RDD, and the one that ran has a lower number.  A result stage may have computed it too, but
    left no output for others.
    """
    computed = [stage for stage in reversed(stages) if stage.ran and stage.rdd_id is not None]
    writing = [stage for stage in computed if stage.kind is not None and "shuffle write" in stage.kind]
    ran = {stage.rdd_id: stage.stage_id for stage in computed + writing}
    return {
        stage.stage_id: ran[stage.rdd_id]
        for stage in stages
        if not stage.ran and stage.rdd_id in ran and ran[stage.rdd_id] < stage.stage_id
    }


def _count_missing_ends(run: LoggedRun, stages: list[Stage], measured: _Measured, needed: set[int]) -> None:
    """Count lost events, which leave no trace in a log, by the number of tasks that a finished stage had.

    Stages that a job which succeeded `needed` are finished, whether or not the log has their ends."""
    expected: dict[int, int] = {}
    found: dict[int, int] = {}
    finished = {stage.stage_id for stage in stages if stage.completed and not stage.failure}
    finished |= {stage.stage_id for stage in stages if stage.ran and not stage.completed and stage.stage_id in needed}
    for stage in stages:
        if stage.stage_id in finished and stage.task_count is not None:
            expected[stage.stage_id] = max(expected.get(stage.stage_id, 0), stage.task_count)
            succeeded = measured.get((stage.stage_id, stage.attempt), (0.0, 0.0, 0, -1))[2]
            found[stage.stage_id] = found.get(stage.stage_id, 0) + succeeded
    short = {stage_id: lost for stage_id, count in expected.items() if (lost := count - found[stage_id]) > 0}
    if short:
        total = sum(short.values())
        meaning = (
            f"{total} of {sum(expected.values())} tasks of {len(short)} finished stage{'s' if len(short) > 1 else ''}"
            " have no successful end in the log; no sum includes their work"
        )
        run.add("missing_task_ends", "data loss", meaning, total, where=f"stage {min(short)}")


# The other tables -------------------------------------------------------------------------------------------------


def _runs(run: LoggedRun, clock: _Clock) -> Columns:
    kept = {key: value for key, value in run.properties.items() if key not in ("spark.app.id", "spark.app.name")}
    app_id = run.app_id or run.properties.get("spark.app.id") or run.log.app_id or "unknown"
    mode = run.properties.get("spark.scheduler.mode", "FIFO").upper() if run.properties else None
    return {
        "app_id": objects([app_id]),
        "attempt": objects([run.attempt]),
        "name": objects([run.name or run.properties.get("spark.app.name")]),
        "framework": objects(["spark"]),
        "framework_version": objects([run.version]),
        "java_version": objects([run.java]),
        "started_at_ms": np.array([clock.start_ms], dtype=np.int64),
        "duration_ms": np.array([clock.end_ms - clock.start_ms]),
        "complete": np.array([clock.complete]),
        "exit_code": integers([run.exit_code]),
        "scheduler": objects([mode]),
        "properties": objects([{"key": list(kept), "value": list(kept.values())}]),
        "libraries": objects([sorted(run.archives)]),
    }


def _executors(run: LoggedRun, tasks: _Tasks, clock: _Clock) -> Columns:
    known = {"driver": Executor("driver"), **run.executors}
    codes, inverse = np.unique(tasks["executor"], return_inverse=True)
    names = run.executor_names.column(codes)
    first_launch = np.full(len(codes), np.inf)
    np.minimum.at(first_launch, inverse, tasks.launch_ms)
    launched = {name: float(time) for name, time in zip(names, first_launch, strict=True) if name is not None}
    rows = []
    for name in {**known, **launched}:
        executor = known.get(name) or Executor(name)
        added = clock.relative(executor.added) if name != "driver" else 0.0
        if added is None or added > launched.get(name, np.inf):
            added = launched.get(name, 0.0)
        if name != "driver" and not executor.announced:
            meaning = "executors without a registration in the log are known only from their tasks"
            run.add("missing_executor_added", "data loss", meaning, where=f"executor {name}")
        cores = _cores(run, executor, name in launched)
        if cores is not None and cores > _MAX_CORES:
            meaning = "executors report an impossible number of cores; it counts as unknown"
            run.add("senseless_cores", "error", meaning, where=f"executor {name}")
            cores = None
        removed = clock.after(added, executor.removed)
        if removed is None and executor.reason is not None:
            removed = clock.end_ms - clock.start_ms
        slots = _slots(run, executor, cores, name in launched)
        memory = _memory_bytes(run, executor, name in launched)
        rows.append((name, executor.host, slots, cores, memory, added, removed, executor.reason))
    names = "executor_id host slots cores memory_bytes added_ms removed_ms removed_reason"
    return table(names, rows, whole="slots cores memory_bytes", real="added_ms removed_ms")


def _cores(run: LoggedRun, executor: Executor, ran_tasks: bool) -> float | None:
    if executor.cores is not None and 0 < executor.cores < 2**31:
        return executor.cores
    if executor.executor_id == "driver":
        local = LOCAL_MASTER.fullmatch(run.properties.get("spark.master", ""))
        if ran_tasks and local:
            return None if local[2] == "*" else float(local[2] or 1)
        return number(run.properties.get("spark.driver.cores"))
    return number(run.properties.get("spark.executor.cores"))


def _slots(run: LoggedRun, executor: Executor, cores: float | None, ran_tasks: bool) -> float | None:
    """Concurrent tasks of an executor: by its cores, and by the other resources that tasks request in its profile."""
    if executor.executor_id == "driver" and not ran_tasks and executor.cores is None:
        return 0.0
    if cores is None:
        return None
    return Profiles(run.profiles, run.properties).slots(cores, executor.profile, executor.profile)


def _memory_bytes(run: LoggedRun, executor: Executor, ran_tasks: bool) -> float | None:
    if executor.executor_id == "driver":
        stated = size_bytes(run.properties.get("spark.driver.memory"), "m")
        if stated is None and ran_tasks and executor.usable_bytes and 0 < executor.usable_bytes < 2**60:
            return round(heap_bytes(executor.usable_bytes, run.properties) / _MIB) * _MIB
        return stated
    profile = run.profiles.get(executor.profile)
    memory = (profile.executor or {}).get("memory") if profile else None
    if memory is not None and memory.amount is not None and 0 < memory.amount < 2**40:
        return memory.amount * _MIB
    if not run.properties:
        return None
    return size_bytes(run.properties.get("spark.executor.memory"), "m") or float(_DEFAULT_MEMORY_BYTES)


def _sql_executions(run: LoggedRun, clock: _Clock) -> Columns:
    marked = run.statements.numbers()
    sites: dict[int, str] = {}
    for job in run.jobs.values():
        if job.sql_id is not None and job.call_site:
            sites.setdefault(job.sql_id, job.call_site)
    failed: dict[int, str | None] = {}
    for job in sorted(run.jobs.values(), key=lambda job: job.end or 0.0):  # the first failure ends the others
        if job.sql_id is not None and _job_status(job) == "failed":
            failed.setdefault(job.sql_id, job.error)
    rows = []
    for query in run.sql.values():
        start = clock.relative(query.start)
        if start is None:
            jobs = (clock.relative(job.submit) for job in run.jobs.values() if job.sql_id == query.sql_id)
            start = min((time for time in jobs if time is not None), default=clock.relative(query.end) or 0.0)
        end = clock.after(start, query.end)
        site = sites.get(query.sql_id) or query.call_site
        error, status = query.error, "succeeded"
        if error is not None:
            status = "failed"
            if error.startswith("InterruptedException"):  # the job that was cancelled with it has more detail
                error = failed.get(query.sql_id) or error
        elif end is None:
            status = "unfinished"
        elif not query.records_errors and query.sql_id in failed:
            status, error = "failed", failed[query.sql_id]
        statement = number_of(query.tags, marked)
        rows.append((query.sql_id, query.root, query.name, site, start, end, status, error, statement))
    names = "sql_id root_sql_id name call_site start_ms end_ms status error statement"
    return table(names, rows, whole="sql_id root_sql_id statement", real="start_ms end_ms")


def _operators(run: LoggedRun) -> Columns:
    rows = [
        (
            sql_id,
            each.node_id,
            each.parent_id,
            each.name,
            each.detail,
            each.location,
            [accumulator_id for accumulator_id, _, _ in each.metrics],
        )
        for sql_id, plan in sorted(run.operators.items())
        for each in plan
    ]
    return table("sql_id node_id parent_id name detail location accumulators", rows, whole="sql_id node_id parent_id")


def _operator_metrics(run: LoggedRun, stages: list[Stage]) -> Columns:
    """Amounts that each stage attempt added to the metrics of operators.

    A stage's end has an accumulator's value at that time, over all stages; the value before is subtracted.
    """
    updates: dict[int, list[tuple[Stage, float]]] = {}
    reached: dict[int, float] = {}
    for stage in sorted(stages, key=lambda each: each.end or 0.0):
        for accumulator_id, value in stage.metric_values.items():
            added = value - reached.get(accumulator_id, 0.0)
            if added > 0:
                reached[accumulator_id] = value
                updates.setdefault(accumulator_id, []).append((stage, added))
    rows = [
        (sql_id, node_id, stage.stage_id, stage.attempt, name, unit, added * factor)
        for sql_id, node_id, accumulator_id, name, unit, factor in _metrics(run)
        for stage, added in updates.get(accumulator_id, ())
    ]
    names = "sql_id node_id stage_id stage_attempt name unit value"
    return table(names, rows, whole="sql_id node_id stage_id stage_attempt", real="value")


def _driver_metrics(run: LoggedRun) -> Columns:
    """Amounts that the driver itself added to the metrics of operators."""
    rows = [
        (sql_id, node_id, name, unit, value * factor)
        for sql_id, node_id, accumulator_id, name, unit, factor in _metrics(run)
        if (value := run.driver_metrics.get((sql_id, accumulator_id), 0.0)) > 0
    ]
    return table("sql_id node_id name unit value", rows, whole="sql_id node_id", real="value")


def _fallback_reasons(run: LoggedRun) -> Columns:
    """Why operators stayed on the JVM, in the order of the plan."""
    rows = [(sql_id, name, reason) for sql_id, found in sorted(run.fallback_reasons.items()) for name, reason in found]
    return table("sql_id name reason", rows, whole="sql_id")


def _gpu_times(stages: list[Stage]) -> Columns:
    rows = [(each.stage_id, each.attempt, *each.gpu) for each in stages if each.gpu is not None]
    return table("stage_id attempt held_ms waited_ms", rows, whole="stage_id attempt", real="held_ms waited_ms")


def _metrics(run: LoggedRun) -> Iterator[tuple[int, int, int, str, str, float]]:
    """(query, operator, accumulator, name, unit, factor of its values) of all metrics of operators."""
    for sql_id, plan in sorted(run.operators.items()):
        for each in plan:
            for accumulator_id, name, kind in each.metrics:
                if unit := _METRIC_UNITS.get(kind) or _unit_of_source(kind, name):
                    yield sql_id, each.node_id, accumulator_id, name, *unit


def _unit_of_source(kind: str, name: str) -> tuple[str, float] | None:
    """The unit of a metric that a data source of its own defines, such as Iceberg, by its name; None for others."""
    if not kind.startswith("v2Custom_"):
        return None
    return ("ms", 1.0) if name.endswith("(ms)") else ("bytes", 1.0) if name.endswith("(bytes)") else ("count", 1.0)


_METRIC_UNITS = {
    "sum": ("count", 1.0),
    "size": ("bytes", 1.0),
    "timing": ("ms", 1.0),
    "nsTiming": ("ms", 1e-6),
}


def _jobs(run: LoggedRun, clock: _Clock) -> Columns:
    marked, rows = run.statements.numbers(), []
    for job in run.jobs.values():
        submit = clock.relative(job.submit)
        if submit is None:
            stages = (clock.relative(each.submit) for key, each in run.stages.items() if key[0] in job.stage_ids)
            default = 0.0 if job.started else clock.relative(job.end) or 0.0
            submit = min((time for time in stages if time is not None), default=default)
            meaning = "jobs without a valid submission time got that of their first stage"
            run.add("job_start_repaired", "info", meaning, int(job.started), where=f"job {job.job_id}")
        end = clock.after(submit, job.end)
        if end is None and job.result is not None:  # before Spark 1.3, jobs had no times
            ends = [each.end for key, each in run.stages.items() if key[0] in job.stage_ids and each.end is not None]
            end = clock.after(submit, max(ends, default=None))
            meaning = "jobs without a valid end time got that of their last stage"
            run.add("job_end_repaired", "info", meaning, where=f"job {job.job_id}")
        ended = (submit, end, _job_status(job), job.error)
        statement = number_of(job.tags, marked)
        rows.append((job.job_id, job.name, job.sql_id, job.group, *ended, job.stage_ids, statement))
    names = "job_id name sql_id job_group submit_ms end_ms status error stage_ids statement"
    return table(names, rows, whole="job_id sql_id statement", real="submit_ms end_ms")


def _job_status(job: Job) -> str:
    return "unfinished" if job.result is None else "succeeded" if job.result == "JobSucceeded" else "failed"
