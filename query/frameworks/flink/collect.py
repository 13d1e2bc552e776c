"""Collection of a running job's pages as the archive that the JobManager would write, and of its metrics.

For clusters without jobmanager.archive.fs.dir, for jobs that never end, and for rates, queues and latencies, which no
archive has: sampled once a second (poll.py).  In addition to the job's own pages the archive gets `/overview` of the
cluster, which has Flink's version.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from crystalperf.indexes.errors import InputError, Remedy
from crystalperf.indexes.regex import regex
from crystalperf.indexes.temporary import building_folder
from crystalperf.query.frameworks.flink.poll import FLUSH_EVERY, Poll
from crystalperf.query.frameworks.flink.rest import Attempt, Job, Jobs, Rest, Vertex
from crystalperf.query.frameworks.flink.series import SUFFIX
from crystalperf.query.trace.records import shortened

Progress = Callable[[str], None]

POLL_S = 1.0
KEEP_S = 10.0
"""Seconds between two requests of all pages; until a job ends, only its state is requested once a second."""

PAGES_S, SAMPLE_S = 300.0, 30.0
"""Budget of all pages together, and of one sample; the pages fetched until then are kept."""

MAX_BYTES, MAX_PAGES = 256 << 20, 4_096
"""Maximum size of all pages together, and number of pages of a vertex's earlier attempts."""

MAX_ATTEMPTS = 16
"""Maximum earlier attempts of a subtask that are requested: Flink's default limit
(`jobmanager.execution.attempts-history-size`)."""

_MAX_FAILURES = 10
"""Consecutive polls without an answer after which the cluster counts as gone: a session cluster may restart in that
time."""

_ENDED = frozenset(["FINISHED", "FAILED", "CANCELED", "SUSPENDED"])
_JOB_PAGES = ("/config", "/plan", "/exceptions", "/checkpoints", "/checkpoints/config", "/accumulators")
_ADDRESS = regex(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?")


def collect(address: str, job: str | None, folder: Path, progress: Progress) -> Path:
    """Wait until a job ends, or until the user interrupts, and write its pages to a file of the folder.

    `address` is the JobManager's, http://HOST:8081.  Without `job` it is the running job, or the one that ran last.
    Metrics are appended continuously to the file next to it, after those of earlier collections of the same job; the
    pages replace earlier ones.  Raises InputError.
    """
    if _ADDRESS.fullmatch(address) is None:
        raise InputError(f"{shortened(address)}: not the address of a JobManager; give http://HOST:8081")
    rest = Rest(address.rstrip("/"))
    chosen = job or _chosen(rest)
    if re.fullmatch(r"[0-9a-f]{32}", chosen) is None:
        raise InputError(f"{shortened(chosen)}: not the id of a job; copy its 32 digits from Flink's web page")
    kept: list[dict[str, str]] = []
    try:
        for kept in _rounds(rest, chosen, folder, progress):
            _written(folder, chosen, kept)  # so that the file is complete even if the process is killed
    except KeyboardInterrupt:
        if not kept:
            raise
    return _written(folder, chosen, kept)


def _chosen(rest: Rest) -> str:
    jobs = [each for each in rest.decoded("/jobs/overview", Jobs).jobs if each.jid]
    running = [each for each in jobs if each.state not in _ENDED]
    if len(running) > 1:
        ids = ", ".join(f"{shortened(each.jid, 40)} ({shortened(each.name or '', 40)})" for each in running[:8])
        raise InputError(f"{rest.address}: several jobs run: {ids}", Remedy("choose a job"))
    found = max(running or jobs, key=lambda each: each.start_ms or 0, default=None)
    if found is None:
        raise InputError(f"{rest.address}: no job has run there yet; submit one, then try again")
    return found.jid


def _rounds(rest: Rest, job: str, folder: Path, progress: Progress) -> Iterator[list[dict[str, str]]]:
    """The job's pages while it runs, and once more when it has ended.

    Raises InputError if the job does not exist; ends if the cluster goes away.
    """
    pages, failures, due = _pages(rest, job), 0, time.monotonic() + KEEP_S
    yield pages
    if _state(pages) in _ENDED:
        return
    with rest.within(PAGES_S):
        poll = Poll(rest, job, rest.as_type("", pages[0]["json"].encode(), Job), folder / f"{job}{SUFFIX}")
    try:
        while (state := _state(pages)) not in _ENDED:
            progress(f"job {job[:8]} is {state.lower()}; press Ctrl-C to stop and keep the collected data")
            time.sleep(POLL_S - time.time() % POLL_S)
            poll.flush(FLUSH_EVERY)
            try:
                _, page = rest.job(f"/jobs/{job}")
                ended = page.state in _ENDED
                poll.follow(page)
                with suppress(InputError), rest.within(SAMPLE_S):  # not every version has every metric
                    poll.sample(round(time.time() * 1000))
                if ended or time.monotonic() >= due:
                    pages, due = _pages(rest, job, pages), time.monotonic() + KEEP_S
                    poll.follow_workers()
                    yield pages
                failures = 0
            except InputError:
                failures += 1
                if failures >= _MAX_FAILURES:
                    progress("the cluster is gone; the data collected until then is kept")
                    return
    finally:
        poll.flush()


def _state(pages: list[dict[str, str]]) -> str:
    """The state on the job's own page, which is the first."""
    return str(json.loads(pages[0]["json"]).get("state", ""))


def _pages(rest: Rest, job: str, before: Iterable[dict[str, str]] = ()) -> list[dict[str, str]]:
    """The pages of a job as in an archive, the job's own first; pages of `before` that no longer change are reused.

    Raises InputError if the job's own page does not exist.
    """
    base = f"/jobs/{job}"
    text, page = rest.job(base)
    found, known = {base: text}, {each["path"]: each["json"] for each in before}
    wheres = [f"{base}/vertices/{vertex.id}" for vertex in page.vertices]
    others = [f"{base}{each}" for each in _JOB_PAGES] + ["/overview"]
    size = 0
    with rest.within(PAGES_S):
        for path in others + [f"{where}{each}" for where in wheres for each in ("", "/subtasktimes", "/taskmanagers")]:
            with suppress(InputError):  # not every version has every page
                found[path] = rest.text(path)
            size += len(found.get(path, ""))
            if size > MAX_BYTES or rest.is_out_of_time:
                break  # the rest is missing; what there is answers
        for where in wheres:
            if size <= MAX_BYTES and not rest.is_out_of_time:
                found |= _earlier_attempts(rest, where, found.get(where, "{}"), known)
        found |= _cluster_settings(rest, base)
    summary = _fields(text)
    overview = {"jobs": [{key: summary.get(key) for key in ("jid", "name", "state", "start-time", "end-time")}]}
    listed = [("/jobs/overview", json.dumps(overview)), *found.items()]
    return [{"path": path, "json": text} for path, text in sorted(listed, key=lambda each: each[0] != base)]


def _fields(text: str) -> dict[str, Any]:
    """The fields of a page that a typed decoder has accepted."""
    found: dict[str, Any] = json.loads(text)
    return found


_KEPT_SETTINGS = regex(
    r"(taskmanager\.(numberOfTaskSlots|memory\..*|network\.memory\..*)|parallelism\.default|restart-strategy[\w.-]*"
    r"|state\.backend[\w.-]*|execution\.(buffer-timeout|checkpointing|batch-shuffle-mode|runtime-mode)[\w.-]*"
    r"|metrics\.(latency\.\w+|fetcher\.update-interval))"
)
"""The cluster's settings that answers depend on: others may hold secrets."""


def _cluster_settings(rest: Rest, base: str) -> dict[str, str]:
    with suppress(InputError, ValueError, RecursionError):
        pairs = json.loads(rest.text("/jobmanager/config"))
        kept = [each for each in pairs if isinstance(each, dict) and _KEPT_SETTINGS.fullmatch(str(each.get("key", "")))]
        return {f"{base}/jobmanager/config": json.dumps(kept)}
    return {}


def _earlier_attempts(rest: Rest, where: str, page: str, known: Mapping[str, str]) -> dict[str, str]:
    """Attempts before the last, which the page of a vertex does not have; ended ones are reused from the `known`
    pages.  No more than MAX_PAGES, and until the budget ends."""
    found: dict[str, str] = {}
    with suppress(InputError):
        for subtask in rest.as_type(where, page.encode(), Vertex).subtasks:
            for attempt in range(max(subtask.attempt - MAX_ATTEMPTS, 0), subtask.attempt):
                path = f"{where}/subtasks/{subtask.subtask}/attempts/{attempt}"
                if rest.is_out_of_time or len(found) >= MAX_PAGES:
                    return found
                with suppress(InputError):  # a cluster may keep fewer
                    found[path] = known[path] if _has_ended(rest, known.get(path)) else rest.text(path)
    return found


def _has_ended(rest: Rest, page: str | None) -> bool:
    """Whether a page of an attempt no longer changes."""
    with suppress(InputError):
        return page is not None and rest.as_type("", page.encode(), Attempt).status in _ENDED
    return False


def _written(folder: Path, job: str, pages: list[dict[str, str]]) -> Path:
    """Write the archive atomically.  Raises InputError."""
    path = folder / job
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with building_folder(path) as building:
            made = building / "archive"
            # The list of jobs comes first, because it identifies an archive.
            pages = sorted(pages, key=lambda each: each["path"] != "/jobs/overview")
            made.write_text(json.dumps({"archive": pages}, separators=(",", ":")), encoding="utf-8")
            made.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})", Remedy("choose another place")) from error
    return path
