"""Reads tasks, their threads and their dependencies from Dask's files.

A rectangle of the task stream is an action of a task.  Computing occupies a thread.  Before it, other threads fetch
remote data, read back spilled data and deserialize; after it, they spill data that does not fit into memory.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from crystalperf.plugin import InputError, LogFile, Part, Problems, pieces
from crystalperf_dask import page

ACTIONS = ("transfer", "disk-read", "disk-write", "deserialize")
_TASK = re.compile(r"<TaskState (.*) [\w-]+>", re.S)
_SIZES = {"B": 1, "kiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@dataclass
class Task:
    """A task that ran: the interval of its computation, Unix ms, and its other actions, (action, start, end)."""

    key: str
    worker: str
    thread: str
    start: float
    end: float
    failed: bool = False
    around: list[tuple[str, float, float]] = field(default_factory=list)


@dataclass
class Known:
    """The content of all files of a run."""

    tasks: list[Task] = field(default_factory=list)
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: str | None = None
    depends: dict[str, list[str]] | None = None
    """Dependencies by key; None without a dump."""
    released: dict[str, float] = field(default_factory=dict)
    """By key, the time at which the scheduler found the task ready, Unix ms."""
    priority: dict[str, tuple[float, ...]] = field(default_factory=dict)
    nbytes: dict[str, int] = field(default_factory=dict)
    """Size of the result, by key."""
    asked: float | None = None
    """The time at which the scheduler received the graph, Unix ms."""
    done: float | None = None
    icicle: page.Source | None = None
    metrics: list[tuple[str, str, float]] = field(default_factory=list)
    """(prefix, activity, seconds), over the lifetime of the cluster."""


def name_of(key: Any) -> str:
    """A key as text: the same for a tuple, for its list in JSON, and for its text."""
    return repr(tuple(key)) if isinstance(key, list | tuple) else str(key)


def layer_of(key: str) -> str:
    """The layer of a task: the name before a tuple's numbers; for other keys, the key itself."""
    found = re.match(r"\(['\"](.+?)['\"],", key)
    return found[1] if found else key


def prefix_of(key: str) -> str:
    """Dask's prefix of a key: its words before the first token or number."""
    found = re.match(r"\(['\"](.+?)['\"],", key)
    words = (found[1] if found else key).split("-")
    kept = words[:1]
    for each in words[1:]:
        if not each.isalpha() or re.fullmatch(r"[0-9a-f]{8}", each):
            break
        kept.append(each)
    return "-".join(kept) or "task"


def read(log: LogFile, problems: Problems) -> Known:
    """The content of a run's files.  Raises InputError if none of them has a task that ran."""
    known = Known()
    for part in log.parts:
        stored = b"".join(pieces(part, problems))
        if stored[1:11] == b"\xa9scheduler":
            _dump(stored, part, known, problems)
        elif stored[:64].lstrip()[:1] in (b"[", b"{"):
            _json(stored, part, known, problems)
        else:
            _page(stored, part, known, problems)
    if not known.tasks:
        raise InputError(f"{log.origin}: contains no task that ran; give the report of a block in which Dask computed")
    return known


# Pages ------------------------------------------------------------------------------------------------------------


def _page(text: bytes, part: Part, known: Known, problems: Problems) -> None:
    try:
        found = page.read(text)
    except (ValueError, TypeError, zlib.error):  # invalid packed columns
        found = None
    if found is None:
        raise InputError(f"{part.name}: truncated or damaged, its plots cannot be read; save the report again")
    if found.stream is None:
        raise InputError(f"{part.name}: has no task stream; give the file that performance_report wrote")
    known.version = found.summary.get("Dask.Distributed Version") or found.summary.get("Dask Version")
    icicle = found.icicles.get("Worker Profile (compute)") or found.icicles.get("Worker Profile")
    known.icicle = icicle if icicle and len(icicle["left"]) > 1 else None
    _rectangles(found.stream, part, known, problems)
    threads, count = (found.summary.get(name, "") for name in ("Threads", "Workers"))
    seen: dict[str, set[str]] = {}
    for each in known.tasks:
        seen.setdefault(each.worker, set()).add(each.thread)
    each_has = int(threads) // int(count) if threads.isdigit() and count.isdigit() and int(count) else 0
    memory = re.fullmatch(r"([\d.]+) (\w+)", found.summary.get("Memory", ""))
    bytes_each = None
    if memory and memory[2] in _SIZES and count.isdigit() and int(count):
        bytes_each = int(float(memory[1]) * _SIZES[memory[2]] / int(count))
    for worker, names in seen.items():
        known.workers.setdefault(worker, {"nthreads": max(len(names), each_has), "memory_limit": bytes_each})
    reported = found.summary.get("number of tasks", "")
    if reported.isdigit() and int(reported) > (ran := len(known.tasks)):
        meaning = f"the report counts {reported} tasks and shows {ran}"
        problems.add("lost tasks", "data loss", part.name, None, meaning)


def _rectangles(stream: page.Source, part: Part, known: Known, problems: Problems) -> None:
    """The tasks of a stream: the rectangles of a task are adjacent, each with its middle and its length."""
    task: Task | None = None
    before: list[tuple[str, float, float]] = []
    last = ""
    count = min(len(column) for column in stream.values() if column)
    alphas, colors = (stream.get(name) or [None] * count for name in ("alpha", "color"))
    for row in range(count):
        middle, length = stream["start"][row], stream["duration"][row]
        if not isinstance(middle, int | float) or not isinstance(length, int | float) or not length >= 0:
            problems.add("damaged rectangle", "data loss", part.name, f"row {row}", "a task without its time")
            continue
        key, name = name_of(stream["key"][row]), str(stream["name"][row])
        times = middle - length / 2, middle + length / 2
        if key != last:
            task, before, last = None, [], key
        action = next((each for each in ACTIONS if name.startswith(f"{each}-")), None)
        if action is not None and alphas[row] != 1:
            (before if task is None or times[0] < task.start else task.around).append((action, *times))
            continue
        thread, failed = str(stream["worker_thread"][row]), colors[row] == "black"
        task = Task(key, str(stream["worker"][row]), thread, *times, failed, before)
        before = []
        known.tasks.append(task)


# JSON -------------------------------------------------------------------------------------------------------------


def _json(text: bytes, part: Part, known: Known, problems: Problems) -> None:
    """The JSON of get_task_stream, and the CPU time of threads, which the lines of `setup` write."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{part.name}: not valid JSON, perhaps truncated; save the task stream again") from None
    said = found if isinstance(found, dict) else {"startstops": found}
    for each in said.get("startstops") or []:
        try:
            _message(each, known)
        except (KeyError, TypeError, ValueError, AttributeError):
            problems.add("damaged message", "data loss", part.name, None, "a task without its times was left out")
    for each in said.get("metrics") or []:
        if len(each) == 5 and each[0] == "execute" and each[3] == "seconds":
            known.metrics.append((str(each[1]), str(each[2]), float(each[4])))


def _message(message: Mapping[str, Any], known: Known) -> None:
    key, worker = name_of(message["key"]), str(message["worker"])
    rows = [(each["action"], each["start"] * 1e3, each["stop"] * 1e3) for each in message["startstops"]]
    around = [each for each in rows if each[0] != "compute"]
    for action, start, end in rows:
        if action == "compute":
            thread, failed = f"{worker}-{message['thread']}", message.get("status") != "OK"
            known.tasks.append(Task(key, worker, thread, start, end, failed, around))
            around = []
    known.workers.setdefault(worker, {"nthreads": None, "memory_limit": None})


# Dumps ------------------------------------------------------------------------------------------------------------


def _dump(stored: bytes, part: Part, known: Known, problems: Problems) -> None:
    """Adds the content of a dump.  If the dump is damaged, the content of the other files stays."""
    try:
        state = msgspec.msgpack.decode(stored, strict=False)
        found = _executed(state.get("workers") or {})
        _scheduler(state["scheduler"], known)
        for _, each in found:
            if (
                each.get("cls") == "ComputeTaskEvent" and known.depends is not None
            ):  # also of tasks that the scheduler has forgotten
                known.depends.setdefault(name_of(each["key"]), [name_of(one) for one in each.get("who_has") or {}])
        if not known.tasks:
            known.tasks += [
                Task(name_of(each["key"]), address, "", each["start"] * 1e3, each["stop"] * 1e3)
                for address, each in found
                if each.get("cls") == "ExecuteSuccessEvent"
            ]
            meaning = "a dump has only the last 1 000 events of each worker; add a report, which has all of its block"
            problems.add("dump alone", "info", part.name, None, meaning)
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        known.depends = None
        meaning = "the dump is truncated or damaged, so the dependencies of tasks are unknown"
        problems.add("damaged dump", "data loss", part.name, None, meaning)


def _executed(workers: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The workers' events, with the addresses of the workers."""
    return [
        (address, each)
        for address, worker in workers.items()
        if isinstance(worker, dict)
        for each in worker.get("stimulus_log") or []
    ]


def _scheduler(state: Mapping[str, Any], known: Known) -> None:
    """Workers, tasks and their transitions."""
    for address, each in (state.get("workers") or {}).items():
        known.workers[address] = {name: each.get(name) for name in ("nthreads", "memory_limit", "host")}
    mine = {each.key for each in known.tasks}
    known.depends = known.depends or {}
    for each in state["tasks"].values():
        key = name_of(each["key"])
        known.depends[key] = [_key(one) for one in each.get("dependencies") or []]
        if isinstance(each.get("nbytes"), int) and each["nbytes"] >= 0:
            known.nbytes[key] = each["nbytes"]
        known.priority[key] = tuple(one for one in each.get("priority") or () if isinstance(one, int | float))
    for said, _, finish, _, why, moment, *_ in state.get("transition_log") or []:
        key = name_of(said)
        if mine and key not in mine:
            continue
        if finish in ("processing", "queued", "no-worker"):
            known.released.setdefault(key, moment * 1e3)
        if finish in ("memory", "erred"):
            known.done = max(known.done or 0.0, moment * 1e3)
        if finish == "waiting" and (came := re.fullmatch(r"update-graph-([\d.]+)", str(why))):
            known.asked = min(known.asked or float("inf"), float(came[1]) * 1e3)


def _key(said: Any) -> str:
    """The key in a dump's text of a task: <TaskState 'x-1' memory>."""
    found = _TASK.fullmatch(str(said))
    text = found[1] if found else str(said)
    return text[1:-1] if text[:1] in "'\"" and text[:1] == text[-1:] else text
