"""Recognition of Spark's event logs, and of the parts of one log.

Every file is recognised by its content.  File names only give the order of the parts that Spark and Databricks roll,
which the content does not have.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark import saved
from crystalperf.query.frameworks.spark.log.arrays import elements, is_array
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems, shortened

# The number of blanks is limited, or a file of only newlines would be scanned once for each of them.
_EVENT = regex(rb'^[ \t\r]{0,100}(?:\[\s{0,100})?\{\s{0,100}"Event"\s{0,100}:\s{0,100}"([\w.$]{1,200})"', re.MULTILINE)
_START = b"SparkListenerApplicationStart"
_APP_ID = regex(rb'"spark\.app\.id"\s*:\s*"([\w.-]{1,200})"')

# Spark's rolled logs: events_<number>_<application>[_<attempt>][.<codec>][.compact]; and Databricks' logs.
_ROLLED = regex(r"events_(?P<number>\d{1,18})_(?P<app>.+?)(\.(zstd|zst|lz4|lzf|snappy))?(?P<compact>\.compact)?")
_ROLLED_FOLDER = regex(r"eventlog_v2_(?P<app>.+)")
_NAME_WITHIN = 1000  # bytes of an event that have its name
MARKS = regex(r"appstatus_")
"""Spark's files that mark the state of a rolled log."""

_DATABRICKS = regex(r"eventlog(?P<date>-\d{4}-\d\d-\d\d--\d\d-\d\d)?(\.(gz|zstd|zst))?")


def recognise(head: Head) -> LogPart | None:
    """An event log, by its first events; or a saved page of Spark's REST interface."""
    if b'"Event"' not in head.text:
        return saved.recognise(head)
    text = head.text if _START in head.text else head.deeper()
    if _EVENT.search(text) is None:
        return None
    app_id = _APP_ID.search(text)
    found = LogPart(head.part, head.folder, head.name, head.size, app_id=app_id[1].decode() if app_id else None)
    for line in _lines_with(text, _START):
        event = _json(line)
        return replace(
            found,
            app_id=_text(event.get("App ID")) or found.app_id,
            attempt=_text(event.get("App Attempt ID")),
            app_name=_text(event.get("App Name")),
            started=_float(event.get("Timestamp")),
            facts={"rollover": 0},
        )
    for line in _lines_with(text, b"DBCEventLoggingListenerMetadata"):
        event = _json(line)
        number, context = event.get("Rollover Number"), event.get("SparkContext Id")
        return replace(
            found,
            facts={
                "rollover": number if isinstance(number, int) else None,
                "context": context if isinstance(context, int) else None,
            },
        )
    return found


def gather(logs: Sequence[LogPart], problems: Problems) -> list[Application]:
    """The applications of these logs; the rolled parts of a log are in one folder."""
    groups: dict[tuple[object, ...], list[LogPart]] = {}
    pages = [each for each in logs if saved.PAGE in each.facts]
    for log in (each for each in logs if saved.PAGE not in each.facts):
        rolled = _ROLLED.fullmatch(log.name)
        if rolled:
            key: tuple[object, ...] = ("spark", log.folder, rolled["app"])
        elif _DATABRICKS.fullmatch(log.name) or log.facts.get("context") is not None:
            key = ("databricks", log.folder)
        else:
            key = ("single", log.part.name)
        groups.setdefault(key, []).append(log)
    found = [_application(each, problems) for group in groups.values() for each in _separated(group)]
    return found + saved.gather(pages, problems, others=bool(found))


def _lines_with(text: bytes, name: bytes) -> Iterator[bytes]:
    """Lines, or elements of an array, with the event of that name."""
    if is_array(text):
        yield from (each for each in elements(text) if name in each[:_NAME_WITHIN])
        return
    for match in _EVENT.finditer(text):
        if match[1] == name:
            end = text.find(b"\n", match.end())
            yield text[match.start() : len(text) if end < 0 else end]


def _json(line: bytes) -> dict[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return shortened(value) if isinstance(value, str) else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 2**53 else None


def _separated(group: list[LogPart]) -> list[list[LogPart]]:
    """Files whose names suggest one log, but which start different applications, as separate logs."""
    starts = {(each.app_id, each.attempt) for each in group if each.started is not None}
    return [group] if len(starts) < 2 else [[each] for each in group]


def _application(group: list[LogPart], problems: Problems) -> Application:
    """One application of the parts of its log, in order; gaps are reported."""
    found = Problems()
    rolled = all(_ROLLED.fullmatch(each.name) for each in group)
    if rolled:
        parts = _rolled_event_log(group, found)
        origin = group[0].folder.rstrip("!")
    elif len(group) > 1 or group[0].facts.get("context") is not None:
        parts = _databricks_event_log(group, found)
        origin = group[0].folder.rstrip("!")
    else:
        parts, origin = group, group[0].part.name
    named = next((each for each in parts if each.app_id), parts[0])
    by_name = _id_from_names(named) or os.path.basename(origin.rstrip("!/")) or "unknown"
    return Application(
        framework="spark",
        app_id=named.app_id or by_name,
        attempt=named.attempt,
        name=named.app_name,
        started_at_ms=named.started,
        log=LogFile(origin, tuple(each.part for each in parts), by_name, tuple(found)),
        size=sum(each.size for each in parts),
    )


def _rolled_event_log(group: list[LogPart], problems: Problems) -> list[LogPart]:
    """Parts by number; a compacted part replaces all before it."""
    numbered: dict[tuple[int, bool], LogPart] = {}
    for each in group:
        match = _ROLLED.fullmatch(each.name)
        assert match is not None
        numbered[int(match["number"]), match["compact"] is not None] = each
    compacted = max((number for number, compact in numbered if compact), default=None)
    if compacted is not None:
        meaning = "Spark compacted the log and dropped finished jobs from its older parts; they are missing here"
        where = numbered[compacted, True].part.name
        problems.add("compacted_log", "data loss", group[0].folder, where, meaning)
    kept = {
        number: each
        for (number, compact), each in numbered.items()
        if compacted is None or number > compacted or (compact and number == compacted)
    }
    numbers = sorted(kept)
    first = compacted if compacted is not None else 1
    missing = [number for number in range(first, min(numbers[-1], first + 100_000)) if number not in kept]
    _add_missing(problems, group[0].folder, missing)
    return [kept[number] for number in numbers]


def _databricks_event_log(group: list[LogPart], problems: Problems) -> list[LogPart]:
    """Parts by their number, and by the date in the name; the one without a date is the last."""

    def position(each: LogPart) -> tuple[int, str]:
        match = _DATABRICKS.fullmatch(each.name)
        date = match["date"] if match else None
        return (0, date) if date else (1, "")

    parts = sorted(group, key=position)
    contexts = {each.facts.get("context") for each in parts if each.facts.get("context") is not None}
    if len(contexts) > 1:
        meaning = "one folder has log parts of different Spark contexts; only those of the first are used"
        problems.add("several_contexts", "error", group[0].folder, None, meaning, len(contexts))
        first = next(each.facts.get("context") for each in parts if each.facts.get("context") is not None)
        parts = [each for each in parts if each.facts.get("context") in (None, first)]
    numbers = {number for each in parts if (number := each.facts.get("rollover")) is not None}
    unnumbered = sum(each.facts.get("rollover") is None for each in parts)
    missing = [number for number in range(max(numbers, default=0)) if number not in numbers]
    _add_missing(problems, group[0].folder, missing[unnumbered:])
    return parts


def _add_missing(problems: Problems, folder: str, missing: list[int]) -> None:
    if missing:
        meaning = f"parts of the log are missing, the first is number {missing[0]}; their events are unknown"
        problems.add("missing_part", "data loss", folder, f"part {missing[0]}", meaning, len(missing))


def _id_from_names(found: LogPart) -> str | None:
    """The application id in the name of a file or folder."""
    for pattern, name in ((_ROLLED, found.name), (_ROLLED_FOLDER, os.path.basename(found.folder))):
        match = pattern.fullmatch(name)
        if match:
            return match["app"]
    match = re.match(r"(app-\d{14}-\d+|application_\d+_\d+|local-\d+|spark-[0-9a-f]{32})", found.name)
    return match[1] if match else None
