"""The worker that a recording is of: by its name, the threads of its tasks, its host and port, or its start."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

import numpy as np

from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.contract import Trace

UNNAMED = "?"
"""The worker of a process whose arguments name none."""

MAX_START_MS = 60_000.0
"""Maximum time from the start of a recording until its worker is known to the driver."""


def worker_of(
    named: str,
    name: str,
    recording: jfr.Recording,
    trace: Trace,
    framework: ReadableFramework,
    start_ms: float,
    taken: Collection[str] = (),
) -> str | None:
    """The worker of a recording, `named` by its process; None if the run has no such worker, or several may be it.

    `name` is the recording's file, `start_ms` the time of its first event since the run's start, NaN if unknown, and
    `taken` are workers that have a recording.
    """
    if named in known_workers(trace) or named == framework.vocabulary.driver.lower():
        return named
    by_thread = _of_threads(recording, trace, framework)
    if by_thread:
        return by_thread
    arguments = recording.jvm.java_arguments if recording.jvm else ""
    if named != UNNAMED or (arguments == "" and not has_tasks(recording, framework)):
        return None
    left = {each: host for each, host in _hosts(trace).items() if each not in taken}
    # Arguments name other processes, too.
    own = [word for word in arguments.split() if "@" not in word and "jobmanager" not in word]
    text = " ".join([*own, name])
    by_name = [each for each in left if _has_id(text, each, framework.vocabulary.worker)]
    on_host = [each for each, host in left.items() if _has_host(text, host)]
    at_port = [each for each in on_host or left if _port(each) in re.findall(r"\d+", text)]
    for found in (by_name, at_port, on_host, _started(trace, on_host or list(left), start_ms)):
        if len(found) == 1:
            return found[0]
    return next(iter(left)) if len(left) == 1 and not trace.task_threads else None


def known_workers(trace: Trace) -> set[str]:
    """The workers of a run, and those that only its tasks name."""
    return {str(each) for table in (trace.workers, trace.tasks) for each in table.get("worker_id", ())}


def has_tasks(recording: jfr.Recording, framework: ReadableFramework) -> bool:
    """Whether a stack of the recording has the root frame of a task."""
    annotate, frames = framework.reader.frames.annotate, recording.frames
    pairs = set(zip(frames.class_id.tolist(), frames.method_id.tolist(), strict=True))
    return any(annotate(frames.class_names[of], frames.method_names[method]) == "task" for of, method in pairs)


def _of_threads(recording: jfr.Recording, trace: Trace, framework: ReadableFramework) -> str | None:
    """The worker whose tasks have the names of the recording's threads, if most of these are of one worker."""
    if not trace.task_threads:
        return None
    task_thread = framework.reader.frames.task_thread
    seen = {task_thread(each.java_name or each.os_name) for each in recording.threads}
    ran = [str(each) for each in trace.tasks["worker_id"].tolist()]
    shared = Counter(of for of, thread in zip(ran, trace.task_threads, strict=True) if thread in seen)
    (first, count), (_, second) = (*shared.most_common(2), ("", 0), ("", 0))[:2]
    return first if count > second else None


def _hosts(trace: Trace) -> dict[str, str]:
    """The host of each worker that may run tasks, '' if unknown."""
    columns = [trace.workers.get(name, ()) for name in ("worker_id", "kind", "host")]
    return {str(each): str(host or "") for each, kind, host in zip(*columns, strict=True) if kind == "worker"}


def _has_id(text: str, worker_id: str, worker: str) -> bool:
    """Whether a text has the id of a worker, after the word for workers if it is a number."""
    wanted = f"{worker}-{worker_id}" if worker_id.isdigit() else worker_id
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text, re.IGNORECASE) is not None


def _has_host(text: str, host: str) -> bool:
    """Whether a text has a host, or its first part."""
    short = host if host[:1].isdigit() else host.partition(".")[0]
    return bool(host) and re.search(rf"(?<![\w.]){re.escape(short)}(?!\w)", text) is not None


def _port(worker_id: str) -> str:
    """The port in an id as `host:port-suffix`, '' if it has none."""
    found = re.search(r":(\d{2,5})(?:-|$)", worker_id)
    return found[1] if found else ""


def _started(trace: Trace, workers: Collection[str], start_ms: float) -> list[str]:
    """The workers that were added soon after a recording started."""
    added = dict(zip(map(str, trace.workers["worker_id"]), np.asarray(trace.workers["added_ms"], float), strict=True))
    return [each for each in workers if 0 <= added[each] - start_ms <= MAX_START_MS]
