"""Recognition of archives of Flink jobs, and of collected metrics next to them.

The JobManager writes one file per job when the job ends, {"archive":[{"path":"/jobs/overview","json":"{…}"},…]}: the
pages that its REST interface had for the job by then.  `crystalperf collect` writes such a file too, JOB, and the job's
metrics to JOB.series.gz.  Naming either of the two reads both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.flink.series import SUFFIX
from crystalperf.query.inputs.containers import LogFile, Part, is_url
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems, shortened

_ARCHIVE = regex(rb'\s{0,100}\{\s{0,100}"archive"\s{0,100}:\s{0,100}\[')
_OVERVIEW = regex(
    rb'\\"jid\\"\s{0,9}:\s{0,9}\\"(?P<id>[0-9a-f]{32})\\"'
    rb'(?:\s{0,9},\s{0,9}\\"name\\"\s{0,9}:\s{0,9}\\"(?P<name>(?:[^"\\]|\\\\.){0,900}?)\\")?'
)
_START = regex(rb'\\"start-time\\"\s{0,9}:\s{0,9}(?P<ms>[0-9]{1,16})')
_PAGE = regex(
    rb'\s{0,100}\{\s{0,100}"jid"\s{0,9}:\s{0,9}"(?P<id>[0-9a-f]{32})"'
    rb'(?:\s{0,9},\s{0,99}"name"\s{0,9}:\s{0,9}"(?P<name>[^"\\]{0,900})")?'
)
"""The page /jobs/JOB of Flink's REST interface, in a form that users save."""

_SERIES = regex(rb'\{"flink":"series","job":"(?P<id>[0-9a-f]{32})"')

_SERIES_PART = {"series": 1}


def recognise(head: Head) -> LogPart | None:
    """An archive or metrics, by the job in the first page of the one or the first line of the other."""
    if (series := _SERIES.match(head.text)) is not None:
        job = series["id"].decode()
        return LogPart(head.part, head.folder, head.name, head.size, app_id=job, facts=_SERIES_PART)
    if (page := _PAGE.match(head.text)) is not None and b'"vertices"' in head.text:
        name = page["name"]
        job = page["id"].decode()
        title = None if name is None else shortened(name.decode("utf-8", "replace"))
        return LogPart(head.part, head.folder, head.name, head.size, app_id=job, app_name=title)
    if _ARCHIVE.match(head.text) is None:
        return None
    job, start = _OVERVIEW.search(head.text), _START.search(head.text)
    if job is None:
        return None
    name = job["name"]
    return LogPart(
        head.part,
        head.folder,
        head.name,
        head.size,
        app_id=job["id"].decode(),
        app_name=None if name is None else shortened(name.decode("utf-8", "replace")),
        started=None if start is None else float(start["ms"]),
    )


def gather(parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """An application for each archive, with the metrics of its job; metrics without an archive are left out."""
    series: dict[str, Part] = {str(each.app_id): each.part for each in parts if each.facts}
    archives = [each for each in parts if not each.facts]
    found = [
        _application(each, series.get(str(each.app_id)) or _counterpart(each.part, of_archive=True))
        for each in archives
    ]
    known = {each.app_id for each in archives}
    for job, part in series.items():
        if job in known:
            continue
        archive = _counterpart(part, of_archive=False)
        if archive is None:
            meaning = f"metrics of job {job} are left out, because its archive, the file {job} next to them, is missing"
            problems.add("series alone", "data loss", part.name, None, meaning)
        else:
            found.append(_application(LogPart(archive, "", job, 0, app_id=job), part))
    return found


def _counterpart(part: Part, *, of_archive: bool) -> Part | None:
    """The metrics next to an archive (or, if not `there`, the archive next to metrics), if the file exists."""
    if part.member is not None or is_url(part.path):
        return None
    path = part.path + SUFFIX if of_archive else part.path.removesuffix(SUFFIX)
    return Part(path) if path != part.path and os.path.isfile(path) else None


def _application(each: LogPart, series: Part | None) -> Application:
    parts = (each.part,) if series is None else (each.part, series)
    return Application(
        framework="flink",
        app_id=each.app_id or each.name,
        attempt=None,
        name=each.app_name,
        started_at_ms=each.started,
        log=LogFile(each.part.name, parts, each.app_id or each.name),
        size=each.size,
    )
