"""What a user's files and folders hold: event logs grouped by application, and recordings of stack samples.

Every file is recognised by its content.  Names are read for one thing only: the order in which Spark and Databricks
roll the parts of a log, which no content tells.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from indexes.errors import InputError
from query.inputs.containers import ZIP_MAGIC, LogFile, Part, filesystem, head, is_url, members, opened
from query.model.records import Problem, Problems, shortened
from query.recordings.jfr import is_jfr

Kind = Literal["event log", "jfr", "collapsed", "zip", "empty", "unknown"]

_HEAD_BYTES = 64 << 10
_DEEPER_HEAD_BYTES = 8 << 20  # an EnvironmentUpdate of some hundred KB may stand before the start
_MOST_FILES = 20_000
_EVENT = re.compile(rb'^\s*\{\s*"Event"\s*:\s*"([\w.$]{1,200})"', re.MULTILINE)
_START = b"SparkListenerApplicationStart"
_APP_ID = re.compile(rb'"spark\.app\.id"\s*:\s*"([\w.-]{1,200})"')
_COLLAPSED_LINE = re.compile(r".+\S \d+(\.\d+)?\r?")

# Spark's rolled logs: events_<number>_<application>[_<attempt>][.<codec>][.compact]; and Databricks' logs.
_ROLLED = re.compile(r"events_(?P<number>\d{1,18})_(?P<app>.+?)(\.(zstd|zst|lz4|lzf|snappy))?(?P<compact>\.compact)?")
_ROLLED_FOLDER = re.compile(r"eventlog_v2_(?P<app>.+)")
_EMPTY_MARK = re.compile(r"\.|appstatus_")  # checksums and Spark's mark of a rolled log's state
_DATABRICKS = re.compile(r"eventlog(?P<date>-\d{4}-\d\d-\d\d--\d\d-\d\d)?(\.(gz|zstd|zst))?")

_KNOWN_MAGICS = (
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG", "a PNG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file"),
    (b"\x7fELF", "a program"),
    (b"\x04\x22\x4d\x18", "an lz4 frame; unpack it with `lz4 -d` first"),
    (b"BZh", "a bzip2 file; unpack it first"),
    (b"\xfd7zXZ", "an xz file; unpack it first"),
    (b"SQLite format", "an SQLite database"),
)
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip, Zstandard


@dataclass(frozen=True)
class Application:
    """One attempt of one application, and its event log.  `started_at_ms` is Unix time, None where unknown."""

    app_id: str
    attempt: str | None
    name: str | None
    started_at_ms: float | None
    log: LogFile


@dataclass(frozen=True)
class SampleFile:
    """A recording of stack samples."""

    path: str
    kind: Literal["jfr", "collapsed"]


@dataclass(frozen=True)
class Inputs:
    """Applications, the newest attempt of each first; recordings in order of their names; what was passed over."""

    applications: tuple[Application, ...]
    samples: tuple[SampleFile, ...]
    problems: tuple[Problem, ...]

    def choose(self, app: str | None = None) -> Application:
        """The one application, or the one of that id (`app-1`, or `app-1/2` for attempt 2 of it).

        Raises InputError where there is none or the choice is open.
        """
        if not self.applications:
            what = "only recordings of stack samples were given" if self.samples else "nothing that was given is one"
            raise InputError(f"no Spark event log: {what}; give the log that spark.eventLog.dir names")
        found = [each for each in self.applications if app in (None, each.app_id, f"{each.app_id}/{each.attempt}")]
        ids = list(dict.fromkeys(each.app_id for each in found))
        if not found:
            raise InputError(f"no application '{app}' in the input; it holds {_listed(self.applications)}")
        if len(ids) > 1:
            raise InputError(
                f"the input holds {len(ids)} applications, choose one with --app: {_listed(self.applications)}"
            )
        return found[0]


@dataclass(frozen=True)
class _Found:
    """One file, or member of a zip, and what its head says."""

    part: Part
    folder: str
    name: str
    size: int
    kind: Kind
    app_id: str | None = None
    attempt: str | None = None
    app_name: str | None = None
    started: float | None = None
    rollover: int | None = None
    context: int | None = None
    what: str = ""


def discover(paths: Sequence[str | Path]) -> Inputs:
    """What the given files, folders and URLs hold, in any order.

    Raises InputError, one sentence, for a path that does not exist, cannot be read, or was named and is of no use;
    what is of no use inside a folder is counted in `problems`.
    """
    if not paths:
        raise InputError("no input: give an event log, and recordings of stack samples where there are any")
    problems = Problems()
    found: dict[str, _Found] = {}
    for path in map(str, paths):
        for each in _files(path, problems):
            found.setdefault(each.part.name, each)
    logs = [each for each in found.values() if each.kind == "event log"]
    samples = [
        SampleFile(each.part.path, "jfr" if each.kind == "jfr" else "collapsed")
        for each in sorted(found.values(), key=lambda each: each.part.name)
        if each.kind in ("jfr", "collapsed")
    ]
    applications = _newest_first([_application(group, problems) for group in _groups(logs)], problems)
    if not applications and not samples:
        raise InputError(
            f"{', '.join(map(str, paths))}: holds neither a Spark event log nor a recording of stack samples;"
            " give the log that spark.eventLog.dir names"
        )
    return Inputs(tuple(applications), tuple(samples), tuple(problems))


# Files ------------------------------------------------------------------------------------------------------------


def _files(path: str, problems: Problems) -> Iterator[_Found]:
    """The usable files of a path that the user named."""
    if is_url(path):
        yield from _url_files(path, problems)
    elif os.path.isdir(path):
        yield from _folder_files(path, problems)
    elif not os.path.exists(path):
        raise InputError(f"{path}: no such file or folder")
    else:
        yield from _named(_sniff(Part(path), path))


def _url_files(url: str, problems: Problems) -> Iterator[_Found]:
    system, inner = filesystem(url)
    try:
        if not system.isdir(inner):
            if not system.exists(inner):
                raise InputError(f"{url}: no such file or folder")
            yield from _named(_sniff(Part(url), url))
            return
        below = sorted(system.find(inner))
    except OSError as error:
        raise InputError(f"{url}: cannot be read ({error.strerror or error})") from error
    yield from _unnamed((system.unstrip_protocol(each) for each in below), url, problems)


def _folder_files(folder: str, problems: Problems) -> Iterator[_Found]:
    def refused(error: OSError) -> None:
        meaning = "folders that cannot be read were passed over"
        problems.add("unreadable_folder", "data loss", folder, error.filename, meaning)

    paths: list[str] = []
    for where, folders, files in os.walk(folder, onerror=refused):  # never follows links to folders
        folders.sort()
        paths += (os.path.join(where, name) for name in sorted(files) if not _EMPTY_MARK.match(name))
        if len(paths) > _MOST_FILES:
            raise InputError(f"{folder}: holds more than {_MOST_FILES} files; name the folder of one application")
    yield from _unnamed(paths, folder, problems)


def _unnamed(paths: Iterable[str], folder: str, problems: Problems) -> Iterator[_Found]:
    """Files within a folder that the user named; what is of no use is counted."""
    for path in paths:
        try:
            found = _sniff(Part(path), path)
        except InputError as error:
            problems.add("unreadable_file", "data loss", folder, path, f"files were passed over: {error}")
            continue
        for each in found:
            if each.kind in ("unknown", "zip"):
                meaning = "files that are neither event logs nor recordings of samples were passed over"
                problems.add("other_file", "info", folder, path, meaning)
            elif each.kind != "empty":
                yield each


def _named(found: list[_Found]) -> list[_Found]:
    """What a file holds that the user named; raises InputError where it is of no use."""
    good = [each for each in found if each.kind in ("event log", "jfr", "collapsed")]
    if good:
        return good
    first = found[0]
    what = {"empty": "is empty", "zip": "is a zip archive without an event log in it"}.get(first.kind)
    raise InputError(
        f"{first.part.path}: {what or f'is {first.what}'}; expected an event log of Spark, or stack samples as a JFR"
        " recording or collapsed stacks"
    )


def _sniff(part: Part, path: str) -> list[_Found]:
    """What a file is, by its first bytes; several where it is a zip archive."""
    folder, name = os.path.split(path)
    with opened(part) as stored:
        start = stored.read(4096)
    if not start:
        return [_Found(part, folder, name, 0, "empty")]
    if start.startswith(ZIP_MAGIC) and part.member is None:
        found = [each for member in members(path)[:_MOST_FILES] for each in _sniff_member(path, member)]
        return found or [_Found(part, folder, name, 0, "zip")]
    size = _size(part)
    if is_jfr(start):
        return [_Found(part, folder, name, size, "jfr")]
    text = head(part, _HEAD_BYTES)
    if b'"Event"' in text:
        if _START not in text and len(text) >= _HEAD_BYTES:
            text = head(part, _DEEPER_HEAD_BYTES)
        if (log := _sniffed_log(part, folder, name, size, text)) is not None:
            return [log]
    if _is_collapsed(text):
        return [_Found(part, folder, name, size, "collapsed")]
    return [_Found(part, folder, name, size, "unknown", what=_described(start, text))]


def _sniff_member(path: str, member: str) -> list[_Found]:
    found = _sniff(Part(path, member), f"{path}!/{member}")
    return [each for each in found if each.kind == "event log"]


def _size(part: Part) -> int:
    if part.member is not None or is_url(part.path):
        return 0
    return os.stat(part.path).st_size


def _sniffed_log(part: Part, folder: str, name: str, size: int, text: bytes) -> _Found | None:
    """An event log, by its first events."""
    first = _EVENT.search(text)
    if first is None:
        return None
    app_id = _APP_ID.search(text)
    found = _Found(part, folder, name, size, "event log", app_id=app_id[1].decode() if app_id else None)
    for line in _lines_with(text, _START):
        event = _json(line)
        return replace(
            found,
            app_id=_text(event.get("App ID")) or found.app_id,
            attempt=_text(event.get("App Attempt ID")),
            app_name=_text(event.get("App Name")),
            started=_float(event.get("Timestamp")),
            rollover=0,
        )
    for line in _lines_with(text, b"DBCEventLoggingListenerMetadata"):
        event = _json(line)
        number, context = event.get("Rollover Number"), event.get("SparkContext Id")
        return replace(
            found,
            rollover=number if isinstance(number, int) else None,
            context=context if isinstance(context, int) else None,
        )
    return found


def _lines_with(text: bytes, name: bytes) -> Iterator[bytes]:
    """Lines that are the event of that name."""
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


def _is_collapsed(text: bytes) -> bool:
    """Stacks as text, one a line: frames with semicolons between them, a space, a weight."""
    try:
        lines = text[: text.rfind(b"\n")].decode().split("\n") if b"\n" in text else [text.decode()]
    except UnicodeDecodeError:
        return False
    lines = [line for line in lines if line.strip()][:200]
    good = sum(_COLLAPSED_LINE.fullmatch(line) is not None for line in lines)
    return good > 0.9 * len(lines) and any(";" in line for line in lines)


def _described(start: bytes, text: bytes) -> str:
    for magic, what in _KNOWN_MAGICS:
        if start.startswith(magic):
            return what
    if start.startswith(_COMPRESSED) and text.startswith(_COMPRESSED):
        return "compressed more than once; unpack it once first"
    if not text.strip():
        return "blank"
    if b"\0" in text:
        return "a binary file of a kind not known here"
    if text.lstrip().startswith((b"{", b"[")):
        return "JSON, but holds no event of Spark"
    return "text, but neither events of Spark nor collapsed stacks"


# Applications -----------------------------------------------------------------------------------------------------


def _groups(logs: list[_Found]) -> list[list[_Found]]:
    """Files that are parts of one log, in no order yet: parts that Spark or Databricks rolled lie in one folder."""
    groups: dict[tuple[object, ...], list[_Found]] = {}
    for log in logs:
        rolled = _ROLLED.fullmatch(log.name)
        if rolled:
            key: tuple[object, ...] = ("spark", log.folder, rolled["app"])
        elif _DATABRICKS.fullmatch(log.name) or log.context is not None:
            key = ("databricks", log.folder)
        else:
            key = ("single", log.part.name)
        groups.setdefault(key, []).append(log)
    return [each for group in groups.values() for each in _separated(group)]


def _separated(group: list[_Found]) -> list[list[_Found]]:
    """Files whose names suggest one log, but which start applications of their own, are logs of their own."""
    starts = {(each.app_id, each.attempt) for each in group if each.started is not None}
    return [group] if len(starts) < 2 else [[each] for each in group]


def _application(group: list[_Found], problems: Problems) -> Application:
    """One application of the parts of its log, in their order; gaps are named."""
    found = Problems()
    rolled = all(_ROLLED.fullmatch(each.name) for each in group)
    if rolled:
        parts = _rolled_parts(group, found)
        origin = group[0].folder.rstrip("!")
    elif len(group) > 1 or group[0].context is not None:
        parts = _databricks_parts(group, found)
        origin = group[0].folder.rstrip("!")
    else:
        parts, origin = group, group[0].part.name
    named = next((each for each in parts if each.app_id), parts[0])
    by_name = _id_from_names(named) or os.path.basename(origin.rstrip("!/")) or "unknown"
    return Application(
        app_id=named.app_id or by_name,
        attempt=named.attempt,
        name=named.app_name,
        started_at_ms=named.started,
        log=LogFile(origin, tuple(each.part for each in parts), by_name, tuple(found)),
    )


def _rolled_parts(group: list[_Found], problems: Problems) -> list[_Found]:
    """Parts by number; a compacted part stands for itself and all before it."""
    numbered: dict[tuple[int, bool], _Found] = {}
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


def _databricks_parts(group: list[_Found], problems: Problems) -> list[_Found]:
    """Parts by the number that each says, and by the date in the name; the one without a date is the last."""

    def position(each: _Found) -> tuple[int, str]:
        match = _DATABRICKS.fullmatch(each.name)
        date = match["date"] if match else None
        return (0, date) if date else (1, "")

    parts = sorted(group, key=position)
    contexts = {each.context for each in parts if each.context is not None}
    if len(contexts) > 1:
        meaning = "parts in one folder are of different Spark contexts; those of the first were kept"
        problems.add("several_contexts", "error", group[0].folder, None, meaning, len(contexts))
        first = next(each.context for each in parts if each.context is not None)
        parts = [each for each in parts if each.context in (None, first)]
    numbers = {each.rollover for each in parts if each.rollover is not None}
    unnumbered = sum(each.rollover is None for each in parts)
    missing = [number for number in range(max(numbers, default=0)) if number not in numbers]
    _add_missing(problems, group[0].folder, missing[unnumbered:])
    return parts


def _add_missing(problems: Problems, folder: str, missing: list[int]) -> None:
    if missing:
        meaning = f"parts of the log are missing, the first is number {missing[0]}; what happened in them is unknown"
        problems.add("missing_part", "data loss", folder, f"part {missing[0]}", meaning, len(missing))


def _id_from_names(found: _Found) -> str | None:
    """The application id that Spark put into the name of a file or folder."""
    for pattern, name in ((_ROLLED, found.name), (_ROLLED_FOLDER, os.path.basename(found.folder))):
        match = pattern.fullmatch(name)
        if match:
            return match["app"]
    match = re.match(r"(app-\d{14}-\d+|application_\d+_\d+|local-\d+|spark-[0-9a-f]{32})", found.name)
    return match[1] if match else None


def _newest_first(applications: list[Application], problems: Problems) -> list[Application]:
    """Attempts of an application in order, the newest first; several logs of one attempt: the one that says most."""

    def age(each: Application) -> tuple[float, str, bool, int]:
        attempt = (each.attempt or "").zfill(20)
        finished = not each.log.origin.endswith(".inprogress")
        return (each.started_at_ms or 0.0, attempt, finished, sum(_size(part) for part in each.log.parts))

    ordered = sorted(applications, key=age, reverse=True)
    kept: dict[tuple[str, str | None], Application] = {}
    for each in ordered:
        key = each.app_id, each.attempt
        if key in kept:
            meaning = f"several logs of one attempt of {each.app_id}; the newest was kept"
            problems.add("repeated_log", "info", each.log.origin, None, meaning)
        else:
            kept[key] = each
    attempts: dict[str, list[Application]] = {}
    for each in kept.values():
        attempts.setdefault(each.app_id, []).append(each)
    for app_id, several in attempts.items():
        if len(several) > 1:
            others = ", ".join(str(each.attempt) for each in several[1:])
            meaning = (
                f"{app_id} has several attempts; the newest is answered for, --app {app_id}/N takes another ({others})"
            )
            problems.add("several_attempts", "info", several[0].log.origin, None, meaning, len(several))
    return list(kept.values())


def _listed(applications: Sequence[Application]) -> str:
    texts = [f"{each.app_id} ({each.name})" if each.name else each.app_id for each in applications]
    texts = list(dict.fromkeys(texts))
    return ", ".join(texts[:20]) + (f" and {len(texts) - 20} more" if len(texts) > 20 else "")
