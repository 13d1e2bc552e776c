"""What a step of PyTorch lost to things that its program can change, beside what any training loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from crystalperf.query import sql
from crystalperf.query.answers.values import Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.frameworks.pytorch.first_uses import FIRST_USE
from crystalperf.query.frameworks.pytorch.threads import BETWEEN, OWN_BATCHES, WAITING_IN_PYTHON
from crystalperf.query.frameworks.pytorch.waits import FREEING, STARTING, WAITING
from crystalperf.query.frameworks.training import rules
from crystalperf.query.frameworks.training.rules import input_waits
from crystalperf.query.model.amounts import counted
from crystalperf.query.model.execution import Execution

_MOST = 0.5
"""Share of the time on no resource from which what it was is what it was."""

_WORTH = 0.1
"""Share of what was lost from which the disk is worth a word."""

_TOLD = {
    WAITING: (
        "untold wait",
        "threads waited {ms:.0f} ms in {names} while nothing that was traced ran on an accelerator",
        "synchronise less within a step (`.item()`, `.cpu()`), and trace all that runs on the accelerator",
    ),
    FREEING: (
        "freeing memory",
        "threads took {ms:.0f} ms to free memory of the accelerator, most in {names}",
        "let PyTorch keep memory for reuse: neither `PYTORCH_NO_CUDA_MEMORY_CACHING` nor `empty_cache()` within a step,"
        " and memory to spare",
    ),
    STARTING: (
        "starting",
        "threads took {ms:.0f} ms to start the accelerator and its libraries, most in {names}",
        "warm up before tracing: a few steps first, or `schedule(wait=…, warmup=…)`",
    ),
    BETWEEN: (
        "untold host time",
        "a thread took {ms:.0f} ms between operators, and nothing that was traced tells for what",
        "trace its functions of Python too: `profile(with_stack=True)`",
    ),
    WAITING_IN_PYTHON: (
        "waiting in python",
        "threads waited {ms:.0f} ms in functions of Python, most in {names}",
        "see what these wait for, another thread, process or timer, and have that done while the training goes on",
    ),
    OWN_BATCHES: (
        "own batches",
        "a thread made its batches itself for {ms:.0f} ms (num_workers=0)",
        "have loader processes make batches ahead (`num_workers`, `prefetch_factor`)",
    ),
    FIRST_USE: (
        "first use",
        "launches took {ms:.0f} ms for the first use of a kernel",
        "warm up before tracing: a few steps first, or `schedule(wait=…, warmup=…)`",
    ),
}


def findings(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """What the path lost to each; `cost_ms` is no more than the path's own time there."""
    told = []
    question = sql.text("lost", __package__)
    on_path = {each.facts.id: each.facts.path_ms for each in details if each.facts.path_ms > 0}
    for operator, (rule, what, advice) in _TOLD.items():
        took = connection.execute(question, {"operator": operator}).fetchall()
        mine = [(min(ms, on_path[group]), disk_ms, name) for group, ms, disk_ms, name in took if group in on_path]
        cost_ms, disk_ms = sum(ms for ms, _, _ in mine), sum(min(ms, on_disk) for ms, on_disk, _ in mine)
        if cost_ms > 0:
            names = " and ".join(list(dict.fromkeys(name for _, _, name in mine if name))[:2])
            said = what.format(ms=cost_ms, names=names)
            if disk_ms >= _WORTH * cost_ms:
                said += f", {disk_ms:.0f} ms of them on the disk"
            told.append(Finding(rule, cost_ms, said, "measured", advice))
    own_ms = sum(each.cost_ms for each in told if each.rule == _TOLD[OWN_BATCHES][0])
    waits = [each for each in input_waits(connection, details) if each.cost_ms > own_ms]
    return [*waits, *through_one(connection, details), *told]


def through_one(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Finding]:
    """Processes that exchange gradients through one of them, as with a parameter server.

    Evidence: they gather on one, and what it makes of that comes back, on the critical path.  That one's link carries
    n - 1 times the bytes each way.  A ring's links carry 2 (n - 1) / n of them, so n times less, and `cost_ms` is what
    that saves where bytes are all that takes time.  Contradicted where what is gathered is no gradient: where reducing
    takes longer, it is taken to be none.
    """
    on_path = {each.facts.id: each.facts.path_ms for each in details if each.facts.path_ms > 0}
    rows = connection.execute(sql.text("through_one", __package__)).fetchall()
    mine = [(min(ms, on_path[group]), processes) for group, ms, processes in rows if group in on_path]
    took_ms = sum(ms for ms, _ in mine)
    if not mine or took_ms <= 0:
        return []
    count = mine[0][1]
    what = f"{counted(count, 'process')} sent all to one of them and got it back, {took_ms:.0f} ms"
    advice = (
        f"exchange gradients by all_reduce, as DistributedDataParallel does: each link then carries 1/{count} as much"
    )
    return [Finding("one link", took_ms * (1 - 1 / count), what, "measured", advice)]


def or_else(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, str]:
    """By resource what else the time on it may be, and of time that is on none what most of it was, a sentence."""
    within = {"since": execution.scope.start_ms, "until": execution.scope.end_ms}
    row = connection.execute(sql.text("waited", __package__), {"operator": WAITING_IN_PYTHON, **within}).fetchone()
    found = dict(rules.or_else(connection, execution))
    if row is not None and row[0] >= _MOST * row[1] > 0:
        most = f", most in {row[2]}" if row[2] else ""
        found["unknown"] = f"threads waited in functions of Python{most}"
    return found
