"""First sentences against what the logs say: `python -m lab.checks.verdicts FOLDER… [--write docs/verdicts.md]`.

What `analyze` says of every log below the folders is held against lab.checks.plainlog, which reads the events anew and
shares no code with the product.  A contradiction is a figure of the answer that the log's own
events rule out; CHECKS lists the kinds.  The command ends with 1 where there is one.
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
from lab.pages import cell, head, put

Answer = Mapping[str, Any]
"""What `analyze --json` prints."""

SLACK = 0.01
"""The share of the runtime that a time of the answer may be off by: stages end some ms after their last task."""

SLACK_MS = 25.0
"""… and at least that: the driver learns of a task's end a few ms late."""

CPU_SLACK = 1.03
"""How much more CPU time than the log's a stage may be told to have taken: times are rounded to ms, task by task."""

CPU_SLACK_MS = 10.0
"""… and for each task, for what Spark does outside of what it times."""

HOUR_MS = 3_600_000.0

ALONE = ("no worker", "no scope", "coordinator", "no unit")
"""Causes of time in which no task ran."""


@dataclass(frozen=True)
class Row:
    """A log and what was found; `answer` is None where the product refuses it, `figures` where this reader does."""

    name: str
    sentence: str
    answer: Answer | None = None
    figures: Figures | None = None
    contradictions: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Held:
    """An answer, the figures it is held against, and times of both on one clock: ms since the application's start."""

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
    """Both on one clock.  Where the log has no usable start, the answer's length says where it lies before the end."""
    started = figures.started
    if started is None or (figures.first is not None and abs(figures.first - started) > HOUR_MS):
        figures = replace(figures, started=figures.end - answer["header"]["duration_ms"])
    debug = answer["debug"]
    path = tuple((each["id"], (each["start_ms"], each["end_ms"])) for each in debug["critical_path"])
    inside = plainlog.union([span for _, span in path], (0.0, float("inf")))
    return Held(answer, figures, max(SLACK * debug["runtime_ms"], SLACK_MS), path, tuple(inside))


# Checks: each gives a sentence for every contradiction ----------------------------------------------------------------


def check_sums(it: Held) -> Iterator[str]:
    """The path's seconds are the scope's, and so are those of its resources and causes."""
    debug = it.debug
    runtime_ms = debug["runtime_ms"]
    if not it.path and not runtime_ms:
        return
    close = max(1e-3 * runtime_ms, 1.0)
    sums = {
        "the path's stretches": sum(end - begin for _, (begin, end) in it.path),
        "the time the path covers": length(it.inside),
        "resources and other": sum(debug["resource_ms"].values()),
        "causes and resources": sum(it.other_ms.values())
        + sum(ms for name, ms in debug["resource_ms"].items() if name != "other"),
    }
    for what, ms in sums.items():
        if abs(ms - runtime_ms) > close:
            yield f"{what}: {_s(ms)} in sum, the scope takes {_s(runtime_ms)}"


def check_length(it: Held) -> Iterator[str]:
    """The run is as long as from its start to its end, and the scope is that without what is left out."""
    said = it.answer["header"]["duration_ms"]
    if it.figures.ended is not None and abs(said - it.figures.whole_ms) > it.slack_ms:
        yield f"the run is told to take {_s(said)}, from its start to its end it is {_s(it.figures.whole_ms)}"
    left = it.debug.get("unsubmitted")
    whole = it.debug["runtime_ms"] + (left["left_out_ms"] if left else 0.0)
    if it.debug["scope"] == "all" and abs(whole - said) > it.slack_ms:
        yield f"the scope and what is left out take {_s(whole)}, the run {_s(said)}"


def check_alone(it: Held) -> Iterator[str]:
    """Time said to pass while no task runs is time in which none ran."""
    idle_ms = it.debug["runtime_ms"] - length(it.on_clock(it.figures.running(useful=True)))
    found = it.answer["bottleneck"]
    said = {
        "while no task runs (coordinator_ms)": it.debug.get("coordinator_ms") or 0.0,
        "while no task runs (the sentence)": found.get("alone_ms") or 0.0,
        "in causes without a task": sum(it.other_ms.get(each, 0.0) for each in ALONE),
    }
    for what, ms in said.items():
        if ms > idle_ms + it.slack_ms:
            yield f"{_s(ms)} are said to pass {what}; no task runs for {_s(idle_ms)}"


def check_driver(it: Held) -> Iterator[str]:
    """The driver's stretches of the path overlap no task that anything later can depend on."""
    mine = [(name, span) for name, span in it.path if name.startswith("driver")]
    running = it.on_clock(it.figures.running(useful=True))
    over = [(length(both([span], running)), name, span) for name, span in mine if span[1] > span[0]]
    total = sum(each[0] for each in over)
    if total > it.slack_ms:
        ms, name, (begin, end) = max(over)
        yield (
            f"tasks run for {_s(total)} of the driver's stretches of the path: for {_s(ms)} of {name}"
            f" ({_s(begin)} to {_s(end)})"
        )


def check_scopes(it: Held) -> Iterator[str]:
    """No query is said to run for no longer than no job and no SQL execution was under way."""
    said = it.other_ms.get("no scope", 0.0)
    none_ms = it.debug["runtime_ms"] - length(it.on_clock(it.figures.submitted()))
    if said > none_ms + it.slack_ms:
        yield f"no query is said to run for {_s(said)}; none was under way for {_s(none_ms)}"


def check_waiting(it: Held) -> Iterator[str]:
    """Waiting for executors takes no longer than none was there."""
    said = it.other_ms.get("no worker", 0.0)
    none_ms = length(it.on_clock(it.figures.without_executors()))
    if said > none_ms + it.slack_ms:
        yield f"executors are said to be waited for for {_s(said)}; none was there for {_s(none_ms)}"


def check_executors(it: Held) -> Iterator[str]:
    """No more executors are shown than lived at a time."""
    said, most = it.answer["header"]["workers"], it.figures.most_alive()
    if said > most:
        yield f"{said} executors are shown; at most {most} lived at a time"


def check_left_out(it: Held) -> Iterator[str]:
    """What is left out is time in which nothing was submitted, and a first sentence is of the work."""
    figures = it.figures
    none_ms = figures.whole_ms - length(figures.submitted())
    left = it.debug.get("unsubmitted")
    if left is not None and left["left_out_ms"] > none_ms + it.slack_ms:
        yield f"{_s(left['left_out_ms'])} are left out as nothing was submitted; that held for {_s(none_ms)}"
    if left is not None and figures.unread_jobs and not it.debug.get("doubts"):
        words = f"{_s(left['left_out_ms'])} are left out, as nothing was submitted"
        yield f"{words}; {figures.unread_jobs} jobs are missing"
    if left is None and figures.shell and not figures.scheduled and it.answer["bottleneck"]["name"] == "no scope":
        yield (
            f"the first sentence is of time in which nobody asked anything of a shell: {_s(none_ms)} of"
            f" {_s(figures.whole_ms)}, not left out"
        )


def check_coordinator(it: Held) -> Iterator[str]:
    """The driver plans, submits and collects no longer than something was under way and no task ran."""
    figures = it.figures
    said = it.other_ms.get("coordinator", 0.0) + it.other_ms.get("no unit", 0.0)
    asked = it.on_clock(minus(figures.submitted(), figures.running(useful=True)))
    if said > length(asked) + it.slack_ms:
        yield (
            f"the driver plans, submits and collects for {_s(said)}, it says; work is under way without"
            f" tasks for {_s(length(asked))}"
        )


def check_failures(it: Held) -> Iterator[str]:
    """Failed and unfinished jobs, queries and stages are told if there are any, and only then."""
    figures, outcome = it.figures, it.debug.get("outcome")
    failed = {"job": figures.failed_jobs, "sql": figures.failed_queries}
    ended = figures.tasks_ended()
    if outcome is None:
        told = [f"{number} failed {name}s" for name, number in failed.items() if number]
        if told:
            yield f"no outcome is told; {' and '.join(told)}"
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
                yield f"{counts[1]} failed {kind}s are not counted"
            continue
        said = (tally["total"], tally["failed"], tally.get("unfinished"))
        for name, ours, theirs in zip(("all", "failed", "unfinished"), counts, said, strict=True):
            if ours is not None and theirs is not None and ours != theirs:
                yield f"{kind}s, {name}: {theirs} told, {ours} in the log"
    status = outcome["status"]
    troubles = figures.failed_jobs + figures.failed_queries + figures.failed_stages + ended["failed"]
    cancelled = tallies["job"].get("cancelled", 0) if "job" in tallies else 0
    if cancelled != figures.cancelled_jobs:
        yield f"jobs, cancelled: {cancelled} told, {figures.cancelled_jobs} in the log"
    if status == "succeeded" and figures.failed_jobs + figures.failed_queries:
        yield f"succeeded, it says, with {figures.failed_jobs} failed jobs, {figures.failed_queries} failed queries"
    if status in ("failed", "recovered") and not troubles and not figures.lost():
        yield f"{status}, it says; nothing failed"
    if status == "unfinished" and figures.ended is not None and not figures.unfinished_jobs:
        yield "unfinished, it says; its end is logged"
    if status == "succeeded" and figures.ended is None:
        yield "succeeded, it says; its end is not logged"
    if figures.out_of_heap and outcome.get("memory") != "heap":
        yield f"{figures.out_of_heap} tasks ran out of heap; memory is told as {outcome.get('memory')}"


def check_lost(it: Held) -> Iterator[str]:
    """Executors that were lost are told, and none that was released."""
    outcome = it.debug.get("outcome")
    lost = it.figures.lost()
    if outcome is None:
        if lost:
            key, why = next(iter(lost.items()))
            yield f"no outcome is told; executors were lost: {len(lost)}, such as {key}: {why}"
        return
    told = {str(each["worker"]) for each in outcome["lost"]}
    for key in sorted(set(lost) - told):
        yield f"executor {key} was lost and is not told: {lost[key]}"
    for key in sorted(told & it.figures.sent_home()):
        yield f"executor {key} is told as lost; it was released: {it.figures.executors[key].reason}"
    for key in sorted(told - set(it.figures.executors)):
        yield f"executor {key} is told as lost; the log knows none of that name"


def check_missing(it: Held) -> Iterator[str]:
    """Where what is missing could be the largest part of the work, the verdict is in doubt; where all is there, not."""
    missing = it.figures.missing()
    unknown_ms = length(it.on_clock(it.figures.unaccounted()))
    debug = it.debug
    parts = [ms for name, ms in debug["resource_ms"].items() if name != "other"]
    parts += [ms for cause, ms in it.other_ms.items() if cause != "no scope"]
    largest = max(parts, default=0.0)
    doubts = debug.get("doubts") or ()
    if missing and unknown_ms > it.slack_ms and unknown_ms >= largest and not doubts:
        yield (
            f"{sum(missing.values())} ends of tasks lack in {len(missing)} stages, which ran for {_s(unknown_ms)} in"
            f" which no task is known; the largest part of the work told is {_s(largest)}, and nothing is in doubt"
        )


def check_cpu(it: Held) -> Iterator[str]:
    """No stage is told to take more CPU time than its tasks' CPU and GC times; GC alone holds no run up as CPU."""
    figures = it.figures
    if it.answer["header"]["has_samples"]:
        return
    if not figures.logs_cpu and it.answer["bottleneck"]["name"] == "cpu":
        said = it.debug["resource_ms"]["cpu"]
        yield f"CPU holds it up with {_s(said)}, it says; of CPU time, the log has that of garbage collection alone"
    spent: dict[str, float] = {}
    counts: dict[str, int] = {}
    for each in figures.tasks:
        name = f"stage:{each.stage[0]}.{each.stage[1]}"
        mine = each.cpu_ms + each.gc_ms + each.deserialize_cpu_ms + each.serialize_ms
        spent[name] = spent.get(name, 0.0) + mine
        counts[name] = counts.get(name, 0) + 1
    python = {f"stage:{stage}.{attempt}" for (stage, attempt), one in figures.stages.items() if one.python}
    for group in it.debug.get("groups") or ():
        name, said = group["id"], group["resource_ms"].get("cpu", 0.0)
        most = CPU_SLACK * spent.get(name, 0.0) + CPU_SLACK_MS * counts.get(name, 0)
        if name not in python and said > most:
            yield f"{name}: {_s(said)} of CPU told, {_s(spent.get(name, 0.0))} of CPU and GC time logged"


def check_largest(it: Held) -> Iterator[str]:
    """A resource that holds the run up takes more than any other, and more than what is unknown."""
    found, resources = it.answer["bottleneck"], it.debug["resource_ms"]
    if found["kind"] == "resource":
        mine = resources.get(found["name"], 0.0)
        larger = {name: ms for name, ms in resources.items() if name != "other" and ms > mine + 1}
        if it.other_ms.get("unknown", 0.0) > mine + it.slack_ms:
            larger["unknown"] = it.other_ms["unknown"]
        for name, ms in larger.items():
            yield f"{found['name']} holds it up with {_s(mine)}, it says; {name} takes {_s(ms)}"
    if found["kind"] == "cause":
        mine = it.other_ms.get(found["name"], 0.0)
        # Of what is unknown no more may be than there is of all time in which no task ran, whatever its cause.
        known = {name: ms for name, ms in it.other_ms.items() if name != "unknown"}
        alone = sum(ms for name, ms in known.items() if name in ALONE)
        if any(ms > mine + 1 for ms in known.values()) or it.other_ms.get("unknown", 0.0) > max(mine, alone) + 1:
            yield f"{found['name']} holds it up with {_s(mine)}, it says; other causes take more"
    if found["time_ms"] > it.debug["runtime_ms"] + 1:
        yield f"the first sentence tells {_s(found['time_ms'])} of {_s(it.debug['runtime_ms'])}"


def check_gpu(it: Held) -> Iterator[str]:
    """Where a plugin runs queries on a GPU, it is said that the GPU is not modelled."""
    said = [it.debug.get(each) for each in ("unseen", "assumptions", "doubts")] + [it.answer.get("recommendations")]
    if it.figures.gpu and not re.search(r"\bGPU", str(said)):
        yield "queries run on a GPU, and nothing is said of it"


CHECKS: tuple[Callable[[Held], Iterator[str]], ...] = (
    check_sums,
    check_length,
    check_alone,
    check_driver,
    check_scopes,
    check_waiting,
    check_executors,
    check_left_out,
    check_coordinator,
    check_failures,
    check_lost,
    check_missing,
    check_cpu,
    check_largest,
    check_gpu,
)


def contradictions(answer: Answer, figures: Figures) -> tuple[str, ...]:
    """Everything in an answer that the log's own events rule out."""
    it = held(answer, figures)
    return tuple(each for check in CHECKS for each in check(it))


def _kind(word: str) -> str:
    """The kind of a tally, by the framework's word for it."""
    return {"query": "sql", "SQL query": "sql", "SQL": "sql"}.get(word, word)


def _s(ms: float) -> str:
    return f"{ms / 1e3:.1f} s"


# A folder of logs -----------------------------------------------------------------------------------------------------


def checked(path: Path, name: str, scratch: Path) -> Row:
    """Ask the product and this reader of one log."""
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
            wrong = ("the product refuses it; it has ends of tasks",)
        return Row(name, sentence, None, figures, wrong, time.perf_counter() - begin)
    sentence = first_sentence(verdict)
    answer = as_json(verdict)
    if figures is None:
        wrong = (f"the product reads it; {why}",) if "no line" in why else ()
    else:
        wrong = contradictions(answer, figures)
    return Row(name, sentence, answer, figures, wrong, time.perf_counter() - begin)


def first_sentence(verdict: Verdict) -> str:
    """What holds the run up, as the terminal says it."""
    debug = verdict.debug
    return bottleneck_sentence(verdict.bottleneck, debug, verdict.header.resources, time_unit(debug.runtime_ms))


def rows(folders: Sequence[Path], told: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """A row for every log below the folders; `told` gets each as soon as it is there."""
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            for path in plainlog.logs_below(folder):
                if _recording(path):
                    continue
                name = str(path.relative_to(folder)) if path != folder else path.name
                found.append(checked(path, name, Path(scratch)))
                told(found[-1])
    return found


def _recording(path: Path) -> bool:
    """Stack samples and the lab's own files lie beside some logs."""
    return (
        re.search(r"\.(jfr|collapsed)(\.gz)?$|^run\.json$|^reruns\.json$|\.(md|parquet|jsonl)$", path.name) is not None
    )


def table(found: Sequence[Row]) -> list[str]:
    """The rows as a table, with what the log's events say beside what the product says."""
    lines = head("log | outcome | first sentence | largest stretch of the path | by the events alone | contradictions")
    for each in found:
        cells = (each.name, _outcome(each), each.sentence, _largest(each), _plain(each), "; ".join(each.contradictions))
        lines.append(f"| {' | '.join(cell(text) for text in cells)} |")
    return lines


def summary(found: Sequence[Row]) -> list[str]:
    """How many logs there are, and how many of the answers are contradicted."""
    answered = [each for each in found if each.answer is not None]
    both_read = [each for each in answered if each.figures is not None]
    wrong = [each for each in found if each.contradictions]
    doubted = sum(bool(each.answer and each.answer["debug"].get("doubts")) for each in answered)
    return [
        f"{len(found)} files: {len(answered)} answered ({doubted} of them in doubt), {len(found) - len(answered)}"
        f" refused in one sentence. {len(both_read)} answers were held against the log's own events. {len(wrong)} files"
        f" have contradictions, {sum(len(each.contradictions) for each in wrong)} in all."
    ]


def _outcome(row: Row) -> str:
    if row.answer is None:
        return "refused"
    debug = row.answer["debug"]
    outcome = debug.get("outcome")
    words = [outcome["status"] if outcome else "not told"]
    if outcome:
        words += [
            f"{plural(each['kind'])}: {each['failed']} of {each['total']} failed"
            for each in outcome["tallies"]
            if each["failed"]
        ]
        words += [f"executors lost: {len(outcome['lost'])}"] if outcome["lost"] else []
    words += ["in doubt"] if debug.get("doubts") else []
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
    words = [
        f"tasks run {_s(length(it.running()))} of {_s(it.whole_ms)}, work is under way {_s(length(it.submitted()))}"
    ]
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
    """The command line; 1 where an answer is contradicted."""
    parser = argparse.ArgumentParser(prog="python -m lab.checks.verdicts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folders of logs, or logs")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put summary and table into this page")
    given = parser.parse_args(arguments)

    def tell(row: Row) -> None:
        for each in row.contradictions or ("ok",):
            print(f"{row.name}: {each}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("CRYSTALPERF_HOME", home)
        found = rows(given.folders, tell)
    lines = [*summary(found), "", *table(found)]
    if given.write is None:
        print("\n".join(lines))
    else:
        put(given.write, "verdicts", lines)
    return int(any(each.contradictions for each in found))


if __name__ == "__main__":
    sys.exit(main())
