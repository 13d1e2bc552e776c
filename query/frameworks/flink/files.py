"""Which files are archives of Flink jobs.

The JobManager writes one file a job when the job ends, {"archive":[{"path":"/jobs/overview","json":"{…}"},…]}: the
pages that its REST interface had for the job by then.
"""

from __future__ import annotations

import re

from query.inputs.files import Head, LogPart
from query.model.records import shortened

_ARCHIVE = re.compile(rb'\s{0,100}\{\s{0,100}"archive"\s{0,100}:\s{0,100}\[')
_OVERVIEW = re.compile(
    rb'\\"jid\\"\s{0,9}:\s{0,9}\\"(?P<id>[0-9a-f]{32})\\"'
    rb'(?:\s{0,9},\s{0,9}\\"name\\"\s{0,9}:\s{0,9}\\"(?P<name>(?:[^"\\]|\\\\.){0,900}?)\\")?'
)
_START = re.compile(rb'\\"start-time\\"\s{0,9}:\s{0,9}(?P<ms>[0-9]{1,16})')


def recognise(head: Head) -> LogPart | None:
    """An archive, by its beginning; its first page tells the job."""
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
