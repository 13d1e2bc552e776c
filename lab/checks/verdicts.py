"""Check verdicts against the logs' own events: `python -m lab.checks.verdicts FOLDER… [--write docs/verdicts.md]`.

The command compares the answer of `analyze` for every log below the folders with lab.checks.plainlog, an independent
reader that shares no code with CrystalPerf.  A contradiction is a figure of the answer that the log's own events rule
out; CHECKS lists the kinds.  The command exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import crystalperf as cp
from crystalperf.cli.text import time_unit
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.results.answers import Verdict
from crystalperf.query.text.answers import bottleneck_sentence
from crystalperf.query.text.as_json import as_json
from crystalperf.query.trace.vocabulary import plural
from lab.checks import plainlog
from lab.checks.plainlog import Figures, Interval, both, length, minus
from lab.pages import cell, head

Answer = Mapping[str, Any]
"""The JSON of `analyze --json`."""

SLACK = 0.01
"""Tolerance for a time of the answer, as a share of the runtime: stages end some ms after their last task."""

SLACK_MS = 25.0
"""Minimum tolerance, ms: the driver logs a task's end a few ms late."""

CPU_SLACK = 1.03
"""Tolerance for a stage's CPU time above the log's, because times are rounded to ms in each task."""

CPU_SLACK_MS = 10.0
"""Tolerance for each task, because Spark does not time all of its work."""

HOUR_MS = 3_600_000.0

ALONE = ("no worker", "no scope", "driver", "no task")
"""Causes of time in which no task ran."""


@dataclass(frozen=True)
class Row:
    """A log and its result; `answer` is None if CrystalPerf refuses it, `figures` is None if this reader does."""

    name: str
    sentence: str
    answer: Answer | None = None
    figures: Figures | None = None
    contradictions: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Held:
    """An answer, the figures to compare it with, and times of both on one clock: ms since the application's start."""

    answer: Answer
    figures: Figures
    slack_ms: float
    path: tuple[tuple[str, Interval], ...]
    inside: tuple[Interval, ...]

    @property
    def debug(self) -> Answer:
        return self.answer["debug"]  # type: ignore[no-any-return]

    @property
    def other_ms(self) -> Mapping[str, float]:
        return self.debug.get("other_ms") or {}

    def on_clock(self, spans: Sequence[Interval]) -> list[Interval]:
        """Intervals of the log within the answer's scope."""
        moved = [(begin - self.figures.zero, end - self.figures.zero) for begin, end in spans]
        return both(moved, self.inside)


def held(answer: Answer, figures: Figures) -> Held:
    """Both on one clock.  If the log has no usable start, it follows from the end and the answer's length."""
    started = figures.started
    if started is None or (figures.first is not None and abs(figures.first - started) > HOUR_MS):
        figures = replace(figures, started=figures.end - answer["header"]["duration_ms"])
    debug = answer["debug"]
    path = tuple((each["id"], (each["start_ms"], each["end_ms"])) for each in debug["critical_path"])
    inside = plainlog.union([span for _, span in path], (0.0, float("inf")))
    return Held(answer, figures, max(SLACK * debug["runtime_ms"], SLACK_MS), path, tuple(inside))


# Checks: each yields a sentence for every contradiction ---------------------------------------------------------------


def check_sums(it: Held) -> Iterator[str]:
    """The sums of the path, of its resources and of its causes equal the scope's time."""
    debug = it.debug
    runtime_ms = debug["runtime_ms"]
    if not it.path and not runtime_ms:
        return
    close = max(1e-3 * runtime_ms, 1.0)
    sums = {
        "the path's segments": sum(end - begin for _, (begin, end) in it.path),
        "the time the path covers": length(it.inside),
        "resources and other": sum(debug["resource_ms"].values()),
        "causes and resources": sum(it.other_ms.values())
        + sum(ms for name, ms in debug["resource_ms"].items() if name != "other"),
    }
    for what, ms in sums.items():
        if abs(ms - runtime_ms) > close:
            yield f"{what}: the sum is {_s(ms)}, the scope takes {_s(runtime_ms)}"


def check_length(it: Held) -> Iterator[str]:
    """The run's duration is from its start to its end, and the scope is the run without the excluded time."""
    said = it.answer["header"]["duration_ms"]
    if it.figures.ended is not None and abs(said - it.figures.whole_ms) > it.slack_ms:
        yield f"the answer's duration of the run is {_s(said)}, the log's {_s(it.figures.whole_ms)}"
    left = it.debug.get("unsubmitted")
    whole = it.debug["runtime_ms"] + (left["left_out_ms"] if left else 0.0)
    if it.debug["scope"] == "all" and abs(whole - said) > it.slack_ms:
        yield f"the scope and the excluded time take {_s(whole)}, the run {_s(said)}"


def check_alone(it: Held) -> Iterator[str]:
    """Time reported as without tasks is at most the log's time without tasks."""
    idle_ms = it.debug["runtime_ms"] - length(it.on_clock(it.figures.running(useful=True)))
    found = it.answer["bottleneck"]
    said = {
        "while no task runs (driver_ms)": it.debug.get("driver_ms") or 0.0,
        "while no task runs (the sentence)": found.get("no_task_ms") or 0.0,
        "in causes without a task": sum(it.other_ms.get(each, 0.0) for each in ALONE),
    }
    for what, ms in said.items():
        if ms > idle_ms + it.slack_ms:
            yield f"the answer has {_s(ms)} {what}; in the log, no task runs for {_s(idle_ms)}"


def check_driver(it: Held) -> Iterator[str]:
    """The driver's segments of the path do not overlap tasks that later work can depend on."""
    mine = [(name, span) for name, span in it.path if name.startswith("driver")]
    running = it.on_clock(it.figures.running(useful=True))
    over = [(length(both([span], running)), name, span) for name, span in mine if span[1] > span[0]]
    total = sum(each[0] for each in over)
    if total > it.slack_ms:
        ms, name, (begin, end) = max(over)
        yield (
            f"tasks run for {_s(total)} of the driver's segments of the path: for {_s(ms)} of {name}"
            f" ({_s(begin)} to {_s(end)})"
        )


def check_scopes(it: Held) -> Iterator[str]:
    """The answer's time without a query is at most the log's time without an active job or SQL execution."""
    said = it.other_ms.get("no scope", 0.0)
    none_ms = it.debug["runtime_ms"] - length(it.on_clock(it.figures.submitted()))
    if said > none_ms + it.slack_ms:
        yield f"the answer has no query for {_s(said)}, the log for {_s(none_ms)}"


def check_waiting(it: Held) -> Iterator[str]:
    """The answer's wait for executors is at most the log's time without an executor."""
    said = it.other_ms.get("no worker", 0.0)
    none_ms = length(it.on_clock(it.figures.without_executors()))
    if said > none_ms + it.slack_ms:
        yield f"the answer waits for executors for {_s(said)}; the log has no executor for {_s(none_ms)}"


def check_executors(it: Held) -> Iterator[str]:
    """The answer's number of executors is at most the log's maximum at a time."""
    said, most = it.answer["header"]["workers"], it.figures.most_alive()
    if said > most:
        yield f"the answer has {said} executors, the log at most {most} at a time"


def check_left_out(it: Held) -> Iterator[str]:
    """The excluded time is time in which nothing was submitted, and the first sentence is about work."""
    figures = it.figures
    none_ms = figures.whole_ms - length(figures.submitted())
    left = it.debug.get("unsubmitted")
    if left is not None and left["left_out_ms"] > none_ms + it.slack_ms:
        yield f"{_s(left['left_out_ms'])} are excluded as time without work; the log has {_s(none_ms)} of that"
    if left is not None and figures.unread_jobs and not it.debug.get("missing_data"):
        words = f"{_s(left['left_out_ms'])} are excluded as time without work"
        yield f"{words}; {figures.unread_jobs} jobs are missing in the log"
    if left is None and figures.shell and not figures.scheduled and it.answer["bottleneck"]["name"] == "no scope":
        yield (
            f"the first sentence is about time without work in a shell: {_s(none_ms)} of"
            f" {_s(figures.whole_ms)}, not excluded"
        )


def check_driver_time(it: Held) -> Iterator[str]:
    """The driver's work takes at most the time in which work was active and no task ran."""
    figures = it.figures
    said = it.other_ms.get("driver", 0.0) + it.other_ms.get("no task", 0.0)
    asked = it.on_clock(minus(figures.submitted(), figures.running(useful=True)))
    if said > length(asked) + it.slack_ms:
        yield (
            f"the answer has {_s(said)} of the driver's work; in the log, work is active without"
            f" tasks for {_s(length(asked))}"
        )


def check_failures(it: Held) -> Iterator[str]:
    """The answer reports failed and unfinished jobs, queries and stages if, and only if, the log has them."""
    figures, outcome = it.figures, it.debug.get("outcome")
    failed = {"job": figures.failed_jobs, "sql": figures.failed_queries}
    ended = figures.tasks_ended()
    if outcome is None:
        reported = [f"{number} failed {name}s" for name, number in failed.items() if number]
        if reported:
            yield f"the answer has no outcome; the log has {' and '.join(reported)}"
        return
    tallies = {_kind(each["kind"]): each for each in outcome["tallies"]}
    wanted = {
        "job": (len(figures.jobs), figures.failed_jobs, figures.unfinished_jobs),
        "sql": (len(figures.queries), figures.failed_queries, None),
        "stage": (None, figures.failed_stages, None),
        "task": (sum(ended.values()), ended["failed"], None),
    }
    for kind, counts in wanted.items():
        tally = tallies.get(kind)
        if tally is None:
            if counts[1]:
                yield f"the answer does not count {counts[1]} failed {kind}s"
            continue
        said = (tally["total"], tally["failed"], tally.get("unfinished"))
        for name, ours, theirs in zip(("all", "failed", "unfinished"), counts, said, strict=True):
            if ours is not None and theirs is not None and ours != theirs:
                yield f"{kind}s, {name}: {theirs} in the answer, {ours} in the log"
    status = outcome["status"]
    troubles = figures.failed_jobs + figures.failed_queries + figures.failed_stages + ended["failed"]
    cancelled = tallies["job"].get("cancelled", 0) if "job" in tallies else 0
    if cancelled != figures.cancelled_jobs:
        yield f"jobs, cancelled: {cancelled} in the answer, {figures.cancelled_jobs} in the log"
    if status == "succeeded" and figures.failed_jobs + figures.failed_queries:
        yield f"the answer is 'succeeded'; {figures.failed_jobs} jobs and {figures.failed_queries} queries failed"
    if status in ("failed", "recovered") and not troubles and not figures.lost():
        yield f"the answer is '{status}'; nothing failed"
    if status == "unfinished" and figures.ended is not None and not figures.unfinished_jobs:
        yield "the answer is 'unfinished'; the log has an end"
    if status == "succeeded" and figures.ended is None:
        yield "the answer is 'succeeded'; the log has no end"
    if figures.out_of_heap and outcome.get("memory") != "heap":
        yield f"{figures.out_of_heap} tasks ran out of heap; memory in the answer is {outcome.get('memory')}"


def check_lost(it: Held) -> Iterator[str]:
    """The answer reports lost executors, and no released ones."""
    outcome = it.debug.get("outcome")
    lost = it.figures.lost()
    if outcome is None:
        if lost:
            key, why = next(iter(lost.items()))
            yield f"the answer has no outcome; executors were lost: {len(lost)}, such as {key}: {why}"
        return
    reported = {str(each["worker"]) for each in outcome["lost"]}
    for key in sorted(set(lost) - reported):
        yield f"executor {key} was lost, and the answer lacks it: {lost[key]}"
    for key in sorted(reported & it.figures.sent_home()):
        yield f"executor {key} is lost in the answer; it was released: {it.figures.executors[key].reason}"
    for key in sorted(reported - set(it.figures.executors)):
        yield f"executor {key} is lost in the answer; the log has no such executor"


def check_missing(it: Held) -> Iterator[str]:
    """The verdict is inconclusive if missing data could be the largest part of the work, and conclusive if none is."""
    missing = it.figures.missing()
    unknown_ms = length(it.on_clock(it.figures.unaccounted()))
    debug = it.debug
    parts = [ms for name, ms in debug["resource_ms"].items() if name != "other"]
    parts += [ms for cause, ms in it.other_ms.items() if cause != "no scope"]
    largest = max(parts, default=0.0)
    missing_data = debug.get("missing_data") or ()
    if missing and unknown_ms > it.slack_ms and unknown_ms >= largest and not missing_data:
        yield (
            f"{sum(missing.values())} task ends are missing in {len(missing)} stages, which ran for {_s(unknown_ms)}"
            f" without a known task; the answer's largest part is {_s(largest)}, and it is conclusive"
        )


def check_cpu(it: Held) -> Iterator[str]:
    """A stage's CPU time is at most its tasks' CPU and GC time; GC time alone does not make CPU the bottleneck."""
    figures = it.figures
    if it.answer["header"]["has_samples"]:
        return
    if not figures.logs_cpu and it.answer["bottleneck"]["name"] == "cpu":
        said = it.debug["resource_ms"]["cpu"]
        yield f"the answer's bottleneck is CPU, {_s(said)}; the log has no CPU time except for garbage collection"
    spent: dict[str, float] = {}
    counts: dict[str, int] = {}
    for each in figures.tasks:
        name = f"stage:{each.stage[0]}.{each.stage[1]}"
        mine = each.cpu_ms + each.gc_ms + each.deserialize_cpu_ms + each.serialize_ms
        spent[name] = spent.get(name, 0.0) + mine
        counts[name] = counts.get(name, 0) + 1
    python = {f"stage:{stage}.{attempt}" for (stage, attempt), one in figures.stages.items() if one.python}
    for shown in it.debug.get("stages") or ():
        name, said = shown["id"], shown["resource_ms"].get("cpu", 0.0)
        most = CPU_SLACK * spent.get(name, 0.0) + CPU_SLACK_MS * counts.get(name, 0)
        if name not in python and said > most:
            yield f"{name}: {_s(said)} of CPU in the answer, {_s(spent.get(name, 0.0))} of CPU and GC time in the log"


def check_largest(it: Held) -> Iterator[str]:
    """The bottleneck takes more time than any other resource, and more than the unknown time."""
    found, resources = it.answer["bottleneck"], it.debug["resource_ms"]
    if found["kind"] == "resource":
        mine = resources.get(found["name"], 0.0)
        larger = {name: ms for name, ms in resources.items() if name != "other" and ms > mine + 1}
        if it.other_ms.get("unknown", 0.0) > mine + it.slack_ms:
            larger["unknown"] = it.other_ms["unknown"]
        for name, ms in larger.items():
            yield f"the answer's bottleneck is {found['name']}, {_s(mine)}; {name} takes {_s(ms)}"
    if found["kind"] == "cause":
        mine = it.other_ms.get(found["name"], 0.0)
        # The unknown time is at most the time in which no task ran, for any cause.
        known = {name: ms for name, ms in it.other_ms.items() if name != "unknown"}
        alone = sum(ms for name, ms in known.items() if name in ALONE)
        if any(ms > mine + 1 for ms in known.values()) or it.other_ms.get("unknown", 0.0) > max(mine, alone) + 1:
            yield f"the answer's bottleneck is {found['name']}, {_s(mine)}; other causes take more"
    if found["time_ms"] > it.debug["runtime_ms"] + 1:
        yield f"the first sentence has {_s(found['time_ms'])} of {_s(it.debug['runtime_ms'])}"


def check_gpu(it: Held) -> Iterator[str]:
    """If a plugin runs queries on a GPU, the answer says that the GPU is not modelled."""
    said = [it.debug.get(each) for each in ("not_recorded", "assumptions", "missing_data")] + [
        it.answer.get("recommendations")
    ]
    if it.figures.gpu and not re.search(r"\bGPU", str(said)):
        yield "queries run on a GPU, and the answer does not say so"


CHECKS: tuple[Callable[[Held], Iterator[str]], ...] = (
    check_sums,
    check_length,
    check_alone,
    check_driver,
    check_scopes,
    check_waiting,
    check_executors,
    check_left_out,
    check_driver_time,
    check_failures,
    check_lost,
    check_missing,
    check_cpu,
    check_largest,
    check_gpu,
)


def contradictions(answer: Answer, figures: Figures) -> tuple[str, ...]:
    """All contradictions between an answer and the log's own events."""
    it = held(answer, figures)
    return tuple(each for check in CHECKS for each in check(it))


def _kind(word: str) -> str:
    """The kind of a tally, by the framework's word for it."""
    return {"query": "sql", "SQL query": "sql", "SQL": "sql"}.get(word, word)


def _s(ms: float) -> str:
    return f"{ms / 1e3:.1f} s"


# A folder of logs -----------------------------------------------------------------------------------------------------


def checked(path: Path, name: str, scratch: Path) -> Row:
    """Read one log with CrystalPerf and with this reader."""
    begin, kept = time.perf_counter(), scratch / "run.duckdb"
    figures, why = None, ""
    wrong: tuple[str, ...] = ()
    try:
        figures = plainlog.figures(path)
    except plainlog.UnreadableError as error:
        why = str(error)
    try:
        kept.unlink(missing_ok=True)  # a run of another application is never replaced
        verdict = cp.profile([path], output=kept).verdict()
    except CrystalPerfError as error:
        sentence = str(error).replace(str(path), path.name)
        if figures is not None and any(each.finish is not None for each in figures.tasks):
            wrong = ("CrystalPerf refuses it; it has task ends",)
        return Row(name, sentence, None, figures, wrong, time.perf_counter() - begin)
    sentence = first_sentence(verdict)
    answer = as_json(verdict)
    if figures is None:
        wrong = (f"CrystalPerf reads it; {why}",) if "no line" in why else ()
    else:
        wrong = contradictions(answer, figures)
    return Row(name, sentence, answer, figures, wrong, time.perf_counter() - begin)


def first_sentence(verdict: Verdict) -> str:
    """The bottleneck sentence, as the terminal prints it."""
    debug = verdict.debug
    return bottleneck_sentence(verdict.bottleneck, debug, verdict.header.resources, time_unit(debug.runtime_ms))


def rows(folders: Sequence[Path], reported: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """A row for every log below the folders; `reported` is called with each row."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            for path in plainlog.logs_below(folder):
                if _recording(path):
                    continue
                name = str(path.relative_to(folder)) if path != folder else path.name
                found.append(checked(path, name, Path(scratch)))
                reported(found[-1])
    return found


def _recording(path: Path) -> bool:
    """Whether a file is a log, and not stack samples or a file of the lab."""
    return (
        re.search(r"\.(jfr|collapsed)(\.gz)?$|^run\.json$|^reruns\.json$|\.(md|parquet|jsonl)$", path.name) is not None
    )


def table(found: Sequence[Row]) -> list[str]:
    """The rows as a table: answers of CrystalPerf, and figures from the log's events."""
    lines = head("log | outcome | first sentence | largest segment of the path | by the events alone | contradictions")
    for each in found:
        cells = (each.name, _outcome(each), each.sentence, _largest(each), _plain(each), "; ".join(each.contradictions))
        lines.append(f"| {' | '.join(cell(text) for text in cells)} |")
    return lines


def summary(found: Sequence[Row]) -> list[str]:
    """The numbers of logs, answers and contradictions."""
    answered = [each for each in found if each.answer is not None]
    both_read = [each for each in answered if each.figures is not None]
    wrong = [each for each in found if each.contradictions]
    with_missing_data = sum(bool(each.answer and each.answer["debug"].get("missing_data")) for each in answered)
    counts = (
        len(found),
        len(answered),
        with_missing_data,
        len(found) - len(answered),
        len(both_read),
        len(wrong),
        sum(len(each.contradictions) for each in wrong),
    )
    return [
        *head(
            ">files | >answered | >of them inconclusive | >refused in one sentence | >compared with the log's events"
            " | >files with contradictions | >contradictions"
        ),
        f"| {' | '.join(map(str, counts))} |",
    ]


def _outcome(row: Row) -> str:
    if row.answer is None:
        return "refused"
    debug = row.answer["debug"]
    outcome = debug.get("outcome")
    words = [outcome["status"] if outcome else "not recorded"]
    if outcome:
        words += [
            f"{plural(each['kind'])}: {each['failed']} of {each['total']} failed"
            for each in outcome["tallies"]
            if each["failed"]
        ]
        words += [f"executors lost: {len(outcome['lost'])}"] if outcome["lost"] else []
    words += ["inconclusive"] if debug.get("missing_data") else []
    return ", ".join(words)


def _largest(row: Row) -> str:
    path = row.answer["debug"]["critical_path"] if row.answer else ()
    if not path:
        return ""
    largest = max(path, key=lambda each: each["end_ms"] - each["start_ms"])
    return f"{_s(largest['end_ms'] - largest['start_ms'])} {largest['id']} {largest['name'][:40]}"


def _plain(row: Row) -> str:
    """Some of the figures."""
    if row.figures is None:
        return ""
    it = row.figures
    if row.answer is not None:
        it = held(row.answer, it).figures
    words = [f"tasks run {_s(length(it.running()))} of {_s(it.whole_ms)}, work is active {_s(length(it.submitted()))}"]
    ended = it.tasks_ended()
    counts = {
        "failed jobs": it.failed_jobs,
        "cancelled jobs": it.cancelled_jobs,
        "unfinished jobs": it.unfinished_jobs,
        "jobs not in the log": it.unread_jobs,
        "failed queries": it.failed_queries,
        "failed tasks": ended["failed"],
        "executors lost": len(it.lost()),
        "ends of tasks missing": sum(it.missing().values()),
    }
    words += [f"{what}: {number}" for what, number in counts.items() if number]
    return ", ".join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if there is a contradiction."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.verdicts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folders of logs, or logs")
    given = parser.parse_args(arguments)

    def report(row: Row) -> None:
        for each in row.contradictions or ("ok",):
            print(f"{row.name}: {each}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("CRYSTALPERF_HOME", home)
        found = rows(given.folders, report)
    print("\n".join([*summary(found), "", *table(found)]))
    return int(any(each.contradictions for each in found))


if __name__ == "__main__":
    sys.exit(main())
