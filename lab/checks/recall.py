"""Recall: which of the problems that runs were made to have does CrystalPerf report?


    python -m lab.checks.recall CHECKOUT [--logs FOLDER]

CHECKOUT has an index.json that lists logs, each with its intended problems (targets_detectors), such as the public
shuffle-works/spark-event-corpus.  Its logs are in CHECKOUT, in a sibling folder whose name ends in -data, or in FOLDER.
KINDS maps a detector's name to the problem, to a check of the log's events without CrystalPerf, and to the part of our
answer that reports it.  An intent is not ground truth: if the log does not show a problem, there is nothing to find.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import crystalperf as cp
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.results.answers import Verdict
from crystalperf.query.results.findings import (
    Driver,
    Finding,
    IdleSlots,
    MoreData,
    NoScope,
    NoWorker,
    SlowHost,
    SlowHosts,
    Spilling,
    StartingTasks,
    Straggler,
    Wasted,
)
from lab.errors import LabError

MIN_TASKS = 4
"""Minimum tasks of a stage for outliers."""


@dataclass(frozen=True)
class Task:
    """One ended task; times in ms."""

    ms: float
    host: str
    failed: bool
    copied: bool
    starting_ms: float
    read_bytes: int
    spilled_bytes: int
    waited_ms: float


@dataclass
class Facts:
    """Figures from a log's events, in ms since the start of its application."""

    stages: dict[tuple[int, int], list[Task]] = field(default_factory=lambda: defaultdict(list))
    begin_ms: float = 0.0
    end_ms: float = 0.0
    first_task_ms: float | None = None
    slots: int = 0
    complete: bool = False
    failed_stages: int = 0
    failed_jobs: int = 0
    cached: bool = False
    dropped: bool = False

    @property
    def tasks(self) -> list[Task]:
        return [task for tasks in self.stages.values() for task in tasks]


@dataclass(frozen=True)
class Kind:
    """A problem: its name in words, how the log shows it, how the answer reports it; both texts are empty if not."""

    problem: str
    shown: Callable[[Facts], str]
    reported: Callable[[Verdict], str]


@dataclass(frozen=True)
class Pair:
    """A log, an intended problem, whether the log shows it, and whether the answer reports it."""

    log: str
    tag: str
    shown: str
    reported: str

    @property
    def outcome(self) -> str:
        if self.reported:
            return "found" if self.shown else "reported, not shown by the log"
        return "missed" if self.shown else "not in the log"


# Problems in logs -----------------------------------------------------------------------------------------------------


def read(path: Path) -> Facts:
    """The facts of a plain log.  Raises LabError."""
    facts = Facts()
    cores: dict[str, int] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):  # the last line of a killed run may be truncated
                    _take(facts, cores, json.loads(line))
    except (OSError, ValueError, KeyError) as error:
        raise LabError(f"{path}: {error}") from error
    facts.slots = sum(cores.values())
    return facts


def _take(facts: Facts, cores: dict[str, int], event: Mapping[str, Any]) -> None:
    kind = str(event["Event"]).removeprefix("SparkListener")
    when = event.get("Timestamp") or event.get("Completion Time")
    facts.end_ms = max(facts.end_ms, float(when or 0.0))
    if kind == "ApplicationStart":
        facts.begin_ms = float(event["Timestamp"])
    elif kind == "ApplicationEnd":
        facts.complete = True
    elif kind == "ExecutorAdded":
        cores[event["Executor ID"]] = event["Executor Info"]["Total Cores"]
    elif kind == "JobEnd":
        facts.failed_jobs += event["Job Result"]["Result"] != "JobSucceeded"
    elif kind == "StageCompleted":
        facts.failed_stages += "Failure Reason" in event["Stage Info"]
        levels = [each["Storage Level"] for each in event["Stage Info"].get("RDD Info", ())]
        facts.cached |= any(each.get("Use Memory") for each in levels)
    elif kind == "BlockUpdated":
        level = event["Block Updated Info"]["Storage Level"]
        facts.dropped |= not level["Use Memory"] and event["Block Updated Info"]["Block ID"].startswith("rdd_")
    elif kind == "TaskEnd":
        info, metrics = event["Task Info"], event.get("Task Metrics") or {}
        launch = float(info["Launch Time"])
        facts.first_task_ms = launch if facts.first_task_ms is None else min(facts.first_task_ms, launch)
        facts.end_ms = max(facts.end_ms, float(info["Finish Time"]))
        shuffle = metrics.get("Shuffle Read Metrics") or {}
        facts.stages[event["Stage ID"], event["Stage Attempt ID"]].append(
            Task(
                ms=float(info["Finish Time"]) - launch,
                host=info["Host"],
                failed=event["Task End Reason"]["Reason"] not in ("Success", "TaskKilled"),
                copied=bool(info.get("Speculative")),
                starting_ms=float(info["Finish Time"]) - launch - float(metrics.get("Executor Run Time", 0)),
                read_bytes=shuffle.get("Remote Bytes Read", 0) + shuffle.get("Local Bytes Read", 0),
                spilled_bytes=metrics.get("Disk Bytes Spilled", 0),
                waited_ms=float(shuffle.get("Fetch Wait Time", 0)),
            )
        )


def _spread(facts: Facts, of: Callable[[Task], float], least: float) -> tuple[float, float]:
    """The largest ratio of a stage's maximum to its median, for maxima of at least `least`; and that maximum."""
    found = (0.0, 0.0)
    for tasks in facts.stages.values():
        values = [of(each) for each in tasks if not each.failed]
        if len(values) >= MIN_TASKS and max(values) >= least:
            found = max(found, (max(values) / max(median(values), 1.0), max(values)))
    return found


def _straggler(facts: Facts) -> str:
    ratio, longest = _spread(facts, lambda each: each.ms, 0.01 * (facts.end_ms - facts.begin_ms))
    return f"a task of {longest / 1000:.1f} s, {ratio:.1f} times the median of its stage" if ratio > 2 else ""


def _skew(facts: Facts) -> str:
    ratio, most = _spread(facts, lambda each: each.read_bytes, 2**20)
    return f"a task that reads {most / 2**20:.0f} MiB of a shuffle, {ratio:.1f} times the median" if ratio > 2 else ""


def _slow_host(facts: Facts) -> str:
    worst = (0.0, "")
    for tasks in facts.stages.values():
        by_host: dict[str, list[float]] = defaultdict(list)
        for each in tasks:
            by_host[each.host].append(each.ms)
        usual = {host: median(times) for host, times in by_host.items() if len(times) >= 3}
        for host, ms in usual.items():
            others = [other for name, other in usual.items() if name != host]
            if others and ms * len(tasks) > 0.01 * (facts.end_ms - facts.begin_ms):
                worst = max(worst, (ms / max(median(others), 1.0), host))
    return f"tasks on {worst[1]} take {worst[0]:.1f} times as long" if worst[0] > 1.5 else ""


def _tiny(facts: Facts) -> str:
    whole = sum(each.ms for each in facts.tasks)
    starting = sum(each.starting_ms for each in facts.tasks)
    if not whole or len(facts.tasks) < 1000:
        return ""
    return f"{len(facts.tasks)} tasks, {starting / whole:.0%} of their time around their work" if starting else ""


def _idle(facts: Facts) -> str:
    span = facts.slots * (facts.end_ms - facts.begin_ms)
    busy = sum(each.ms for each in facts.tasks) / span if span else 1.0
    return f"slots busy for {busy:.0%} of the run" if busy < 0.5 else ""


def _cold(facts: Facts) -> str:
    whole = facts.end_ms - facts.begin_ms
    first = (facts.first_task_ms or facts.end_ms) - facts.begin_ms
    return f"the first task begins after {first / 1000:.1f} of {whole / 1000:.1f} s" if first > 0.1 * whole else ""


def _shuffle(facts: Facts) -> str:
    whole, waited = sum(each.ms for each in facts.tasks), sum(each.waited_ms for each in facts.tasks)
    return f"{waited / whole:.0%} of task time waits for shuffled data" if whole and waited > 0.1 * whole else ""


def _spilled(facts: Facts) -> str:
    spilled = sum(each.spilled_bytes for each in facts.tasks)
    return f"{spilled / 2**20:.1f} MiB spilled" if spilled else ""


def _retried(facts: Facts) -> str:
    failed = sum(each.failed for each in facts.tasks)
    return f"{failed} attempts failed" if failed else ""


# Problems in answers --------------------------------------------------------------------------------------------------


def _findings(*kinds: type[Finding]) -> Callable[[Verdict], str]:
    """Findings of these kinds."""
    return _those(lambda each: isinstance(each, kinds))


def _those(is_one: Callable[[Finding], bool]) -> Callable[[Verdict], str]:
    def reported(verdict: Verdict) -> str:
        found = [each for each in verdict.debug.findings if is_one(each)]
        return ", ".join(dict.fromkeys(f"{each.kind} ({each.cost_ms / 1000:.1f} s)" for each in found))

    return reported


def _is_on_slow_host(each: Finding) -> bool:
    if isinstance(each, SlowHosts):
        return True
    return isinstance(each, Straggler) and any(isinstance(stage.cause, SlowHost) for stage in each.stages)


def _is_skew(each: Finding) -> bool:
    if isinstance(each, Straggler):
        return any(isinstance(stage.cause, MoreData) for stage in each.stages)
    return isinstance(each, IdleSlots) and any(
        stage.cause == "last-wave" and stage.skew_bytes is not None for stage in each.stages
    )


def _outcome(of: Callable[[Any], Any]) -> Callable[[Verdict], str]:
    def reported(verdict: Verdict) -> str:
        found = None if verdict.debug.outcome is None else of(verdict.debug.outcome)
        return f"outcome: {found}" if found else ""

    return reported


def _any(*parts: Callable[[Verdict], str]) -> Callable[[Verdict], str]:
    return lambda verdict: ", ".join(filter(None, (each(verdict) for each in parts)))


def _failed(kind: str) -> Callable[[Verdict], str]:
    return _outcome(lambda outcome: next((f"{kind} {each.id}" for each in outcome.failures if each.kind == kind), ""))


def _network(verdict: Verdict) -> str:
    return "the network is the bottleneck" if "net" in (verdict.bottleneck.name, verdict.bottleneck.second) else ""


def _never(_verdict: Verdict) -> str:
    return ""


def _many(count: Callable[[Facts], int], word: str) -> Callable[[Facts], str]:
    return lambda facts: f"{count(facts)} {word}" if count(facts) else ""


KINDS: Mapping[str, Kind] = {
    "SPEC": Kind(
        "speculative copies",
        _many(lambda facts: sum(each.copied for each in facts.tasks), "speculative copies"),
        _any(_findings(Wasted), _outcome(lambda each: each.retried_tasks and f"{each.retried_tasks} retried")),
    ),
    "HOST": Kind("a slow host", _slow_host, _those(_is_on_slow_host)),
    "STRAG": Kind("a straggler", _straggler, _findings(Straggler)),
    "SKEW": Kind(
        "skewed data",
        _skew,
        _those(_is_skew),
    ),
    "CACHE": Kind("a cache that is read once", lambda each: "rows are cached in memory" if each.cached else "", _never),
    "CSTOR": Kind("a cache too small", lambda each: "cached blocks were dropped" if each.dropped else "", _never),
    "PART": Kind("too many partitions", _tiny, _findings(StartingTasks)),
    "TINY": Kind("tasks too short", _tiny, _findings(StartingTasks)),
    "UTIL": Kind("idle slots", _idle, _findings(IdleSlots, NoScope, Driver, NoWorker)),
    "COLD": Kind("a slow start", _cold, _findings(NoWorker, NoScope, Driver)),
    "SHFL": Kind("a heavy shuffle", _shuffle, _network),
    "SPILL": Kind("spilling", _spilled, _findings(Spilling)),
    "RETRY": Kind(
        "retried attempts",
        _retried,
        _any(_findings(Wasted), _outcome(lambda each: each.retried_tasks and f"{each.retried_tasks} retried")),
    ),
    "FAIL": Kind(
        "tasks that fail",
        _retried,
        _outcome(lambda each: next((f"{tally.failed} tasks" for tally in each.tallies[-1:] if tally.failed), "")),
    ),
    "SFAIL": Kind("a stage that fails", _many(lambda each: each.failed_stages, "failed"), _failed("stage")),
    "JOBS": Kind("a job that fails", _many(lambda each: each.failed_jobs, "failed"), _failed("job")),
    "INCMP": Kind(
        "a log without its end",
        lambda facts: "" if facts.complete else "no end of the application",
        lambda verdict: "" if verdict.header.complete else "log incomplete",
    ),
}  # fmt: skip
"""By the corpus's name of a detector."""

WHY_NOT = {
    "CACHE": "there is no rule for caches: a log does not show the cost of caching rows that are read once",
    "CSTOR": "there is no rule for caches; the time to recompute uncached data is part of its stages",
}
"""Reasons why a kind is never reported."""


def pairs(checkout: Path, logs: Path) -> list[Pair]:
    """Every log of an index with its intended problems.  Raises LabError."""
    try:
        index = json.loads((checkout / "index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{checkout / 'index.json'}: {error}") from error
    found = []
    for entry in index:
        tags, path = entry.get("targets_detectors") or (), logs / entry["path"]
        if not tags or not path.exists():
            continue
        facts = read(path)
        try:
            with tempfile.TemporaryDirectory() as folder:
                verdict = cp.profile([path], output=Path(folder) / "run.duckdb").verdict()
        except CrystalPerfError as error:
            raise LabError(f"{path}: {error}") from error
        for tag in tags:
            if tag in KINDS:
                found.append(Pair(entry["id"], tag, KINDS[tag].shown(facts), KINDS[tag].reported(verdict)))
    if not found:
        raise LabError(f"{checkout}: {logs} contains no log of index.json with targets; name its folder with --logs.")
    return found


def table(found: Sequence[Pair]) -> list[str]:
    """The pairs as a Markdown table, and their totals."""
    rows = ["| log | intended problem | the log shows | reported as | |", "|---|---|---|---|---|"]
    for each in found:
        reported = each.reported or (WHY_NOT.get(each.tag, "") if each.shown else "")
        rows.append(
            f"| {each.log} | {KINDS[each.tag].problem} ({each.tag}) | {each.shown or 'no'} | {reported}"
            f" | {each.outcome} |"
        )
    shown = [each for each in found if each.shown]
    reported_of = sum(1 for each in shown if each.reported)
    rows += [
        "",
        f"{reported_of} of the {len(shown)} problems that the logs show are reported; {len(found)} were intended.",
    ]
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.checks.recall", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--logs", type=Path)
    given = parser.parse_args(arguments)
    checkout = given.checkout
    compared = checkout.with_name(f"{checkout.name}-data")
    try:
        lines = table(pairs(checkout, given.logs or (compared if compared.is_dir() else checkout)))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
