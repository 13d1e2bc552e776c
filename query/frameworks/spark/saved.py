"""Saved pages of Spark's REST interface, a file each: for clusters that CrystalPerf cannot reach.

The files of an application are in one folder, or one archive.  Each is recognised by its content:

    applications   /api/v1/applications, or /api/v1/applications/APP
    environment    /api/v1/applications/APP/environment
    executors      …/allexecutors
    jobs           …/jobs
    stages         …/stages?details=true, which has the tasks (Spark 3.1 and newer)
    queries        …/sql?details=true&planDescription=false&length=100000; optional
    version        /api/v1/version; optional
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.pages import Page, Pages, events
from crystalperf.query.inputs.bounds import is_dense
from crystalperf.query.inputs.containers import Batch, LogFile, Part, archive, head, pieces
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems, shortened

_PATTERNS = {
    "version": rb'\{\s{0,99}"spark"\s{0,99}:\s{0,99}"[^"]{1,100}"\s{0,99}\}\s{0,99}$',
    "environment": rb'\{\s{0,99}"runtime"\s{0,99}:\s{0,99}\{\s{0,99}"javaVersion"',
    "executors": rb'\[\s{0,99}\{\s{0,99}"id"\s{0,99}:\s{0,99}"[^"]{1,200}"\s{0,99},\s{0,99}"hostPort"',
    "jobs": rb'\[\s{0,99}\{\s{0,99}"jobId"\s{0,99}:\s{0,99}\d',
    "stages": rb'\[\s{0,99}\{\s{0,99}"status"\s{0,99}:\s{0,99}"[A-Z]{1,20}"\s{0,99},\s{0,99}"stageId"\s{0,99}:',
    "queries": rb'\[\s{0,99}\{\s{0,99}"id"\s{0,99}:\s{0,99}\d{1,18}\s{0,99},\s{0,99}"status"\s{0,99}:\s{0,99}"',
    "applications": rb'(\[\s{0,99})?\{\s{0,99}"id"\s{0,99}:\s{0,99}"[^"]{1,200}"\s{0,99},\s{0,99}"name"\s{0,99}:'
    rb'\s{0,99}"[^"\n]{0,400}"\s{0,99},\s{0,99}"(?:attempts|coresGranted|maxCores|coresPerExecutor|memoryPerExecutorMB)"',
}
_PAGES = {name: regex(rb"\s{0,99}" + pattern) for name, pattern in _PATTERNS.items()}
_NUMBERS = {name: number for number, name in enumerate(_PATTERNS)}
_REQUIRED = ("applications", "environment", "executors", "jobs", "stages")
_ADDRESSES = {
    "applications": "applications",
    "environment": "applications/APP/environment",
    "executors": "applications/APP/allexecutors",
    "jobs": "applications/APP/jobs",
    "stages": "applications/APP/stages?details=true",
}
_APP_ID = regex(rb'\[\s{0,99}"spark\.app\.id"\s{0,99},\s{0,99}"([\w.-]{1,200})"')
_START_BYTES = 1000
MAX_PAGE_BYTES = 64 << 20
"""Maximum size of a page, unpacked: it is in memory as a whole, with all of its values."""

PAGE = "page"
"""The fact of a part that has the number of its page."""


def recognise(text: Head) -> LogPart | None:
    """A saved page, by its start; None for another file."""
    name = page_of(text.text)
    if name is None:
        return None
    app_id = _APP_ID.search(text.deeper()) if name == "environment" else None
    return LogPart(
        text.part, text.folder, text.name, text.size,
        app_id=app_id[1].decode() if app_id else None, facts={PAGE: _NUMBERS[name]},
    )  # fmt: skip


def page_of(text: bytes) -> str | None:
    """The page that a text is, by its start; None for another text."""
    start = text[:_START_BYTES]
    return next((name for name, pattern in _PAGES.items() if pattern.match(start)), None)


def gather(parts: Sequence[LogPart], problems: Problems, *, others: bool) -> list[Application]:
    """The applications of saved pages, one of each folder.

    A folder without a required page raises InputError; if there are `others`, logs or complete folders, it is only
    added to the problems.
    """
    groups: dict[str, list[LogPart]] = {}
    for part in parts:
        groups.setdefault(part.folder, []).append(part)
    found, lacking = [], []
    for folder, group in groups.items():
        known = {each.facts[PAGE] for each in group}
        missing = [name for name in _REQUIRED if _NUMBERS[name] not in known]
        if missing:
            lacking.append((folder, _lacks(group, missing)))
            continue
        environment = next(each for each in group if each.facts[PAGE] == _NUMBERS["environment"])
        attempt = _attempt(group, environment.app_id)
        found.append(
            Application(
                framework="spark",
                app_id=environment.app_id or os.path.basename(folder.rstrip("!/")) or "unknown",
                attempt=attempt.get("attemptId"),
                name=attempt.get("name"),
                started_at_ms=attempt.get("startTimeEpoch"),
                log=LogFile(folder.rstrip("!") or ".", tuple(each.part for each in group), environment.app_id),
                size=sum(each.size for each in group),
            )
        )
    if lacking and not found and not others:
        raise InputError(lacking[0][1])
    for folder, meaning in lacking:
        problems.add("incomplete_pages", "data loss", folder, None, f"not used: {meaning}")
    return found


def _lacks(group: Sequence[LogPart], missing: Sequence[str]) -> str:
    """Which saved pages are missing, as a sentence."""
    needed = ", ".join(f"/api/v1/{_ADDRESSES[name]}" for name in missing)
    return f"{group[0].part.name}: is a saved page of Spark's REST interface; save next to it also {needed}"


def _attempt(group: Sequence[LogPart], app_id: str | None) -> dict[str, Any]:
    """The newest attempt of the application in the list of them, with its name; empty if the list has it not."""
    part = next(each.part for each in group if each.facts[PAGE] == _NUMBERS["applications"])
    try:
        page = _decoded(part, Problems())
    except InputError:
        return {}
    listed = _application(page, app_id)
    attempts = listed.get("attempts")
    first = attempts[0] if isinstance(attempts, list) and attempts and isinstance(attempts[0], dict) else {}
    number, start = first.get("attemptId"), first.get("startTimeEpoch")
    return {
        "name": shortened(name) if isinstance(name := listed.get("name"), str) else None,
        "attemptId": number if isinstance(number, str) else None,
        "startTimeEpoch": float(start) if isinstance(start, int | float) else None,
    }


def _application(page: Any, app_id: str | None) -> Mapping[str, Any]:
    """The entry of an application in the list of them; the first one if its id is unknown."""
    entries = [each for each in (page if isinstance(page, list) else [page]) if isinstance(each, dict)]
    return next((each for each in entries if app_id in (None, each.get("id"))), {})


def is_saved(log: LogFile) -> bool:
    """Whether a log is a group of saved pages."""
    return len(log.parts) >= len(_REQUIRED) and page_of(head(log.parts[0], _START_BYTES)) is not None


def event_batches(log: LogFile, problems: Problems) -> Iterator[Batch]:
    """The events that saved pages make, a line each.  Raises InputError for a page of another shape."""
    try:
        for number, event in enumerate(events(_pages(log, problems)), 1):
            yield Batch(log.parts[0], number, msgspec.json.encode(event))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, IndexError) as error:
        why = f"a value is missing or of another type: {shortened(repr(error))}"
        raise InputError(
            f"{log.origin}: the saved pages are not as Spark writes them ({why}); save them again"
        ) from error


def _pages(log: LogFile, problems: Problems) -> Pages:
    """The pages of a log.  Raises InputError, and errors of Python for values of another type."""
    texts = _texts(log, problems)
    stages = _rows(texts, "stages", log)
    if not any(stage.get("tasks") for stage in stages) and any(stage.get("numCompleteTasks") for stage in stages):
        raise InputError(f"{log.origin}: the saved stages have no tasks; save stages?details=true (Spark 3.1 or newer)")
    return Pages(
        version=str((texts.get("version") or {}).get("spark") or ""),
        application=_application(texts["applications"], log.app_id),
        environment=texts["environment"],
        executors=_rows(texts, "executors", log),
        jobs=_rows(texts, "jobs", log),
        stages=stages,
        tasks={(each["stageId"], each["attemptId"]): _tasks(each) for each in stages},
        queries=_rows(texts, "queries", log),
    )


def _texts(log: LogFile, problems: Problems) -> dict[str | None, Any]:
    """The contents of saved pages by their names; an archive is unpacked once."""
    with ExitStack() as stack:
        for path in {part.path for part in log.parts if part.member is not None}:
            stack.enter_context(archive(path))
        return {page_of(head(part, _START_BYTES)): _decoded(part, problems) for part in log.parts}


def _tasks(stage: Page) -> list[Page]:
    """The tasks of a stage in the order of their ids."""
    tasks = stage.get("tasks")
    rows = [each for each in tasks.values() if isinstance(each, dict)] if isinstance(tasks, dict) else []
    return sorted(rows, key=lambda each: each.get("taskId") or 0)


def _rows(texts: Mapping[str | None, Any], name: str, log: LogFile) -> list[Page]:
    """The rows of a page that is a list; empty if the page is missing."""
    rows = texts.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        raise InputError(f"{log.origin}: the saved page of {name} is not a list of objects; save it again")
    return rows


def _decoded(part: Part, problems: Problems) -> Any:
    """The content of a page.  Raises InputError if it is too large, or not JSON."""
    found, size = [], 0
    for piece in pieces(part, problems):
        found.append(piece)
        size += len(piece)
        if size > MAX_PAGE_BYTES:
            limit = f"more than {MAX_PAGE_BYTES >> 20} MiB"
            raise InputError(f"{part.name}: the saved page has {limit}; analyze the address of the application instead")
    text = b"".join(found)
    if is_dense(text):
        raise InputError(f"{part.name}: the saved page has too many values; analyze the application's address instead")
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{part.name}: the saved page is not complete JSON; save it again") from error
