"""Recognises Dask's files, and groups the files of one run.

A performance report, a page of the task stream, and `client.get_task_stream()` as JSON have the times of tasks.  A dump
of the cluster's state has their dependencies.  A dump and a report belong to one run if they are in one folder and have
the same scheduler address.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from pathlib import PurePath

from crystalperf.plugin import Application, Head, LogFile, LogPart, Problems

PAGE, STREAM, DUMP, METRICS = range(4)
"""Kinds of file, in LogPart.facts."""

_TITLE = re.compile(rb"<title>\s*Dask (?:Performance Report|Task Stream)\s*</title>")
_ADDRESS = re.compile(r"Address: (\S+?) ?<|address\W{1,4}(\w+://[\w.:\[\]-]+)")


def recognise(head: Head) -> LogPart | None:
    """Recognises a file of Dask by its first bytes."""
    if _TITLE.search(head.text):
        kind = PAGE
    elif head.text.startswith((b"\x83\xa9scheduler", b"\x82\xa9scheduler")):
        kind = DUMP
    elif head.text.lstrip()[:1] in (b"[", b"{") and b'"startstops"' in head.text:
        kind = METRICS if b'"startstops": []' in head.text else STREAM
    else:
        return None
    text = head.deeper() if kind == PAGE else head.text
    found = _ADDRESS.search(html.unescape(text.decode("utf-8", errors="replace")))
    address = (found[1] or found[2]) if found else None
    return LogPart(head.part, head.folder, head.name, head.size, app_id=address, facts={"kind": kind})


def gather(parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """One run for each page or stream, with the dumps in its folder that have its scheduler or no scheduler."""
    said = [each for each in parts if each.facts["kind"] in (PAGE, STREAM)]
    alone = len({each.folder for each in said}) == len(said)  # one per folder: a file without a scheduler belongs to it
    of_folder = {each.folder: each for each in said} if alone else {}
    found: dict[str, list[LogPart]] = {each.part.name: [each] for each in said}
    for dump in sorted((each for each in parts if each not in said), key=lambda each: each.facts["kind"] or 0):
        fitting = [each for each in said if each.folder == dump.folder and each.app_id in (dump.app_id, None)]
        if not fitting and dump.folder in of_folder:
            meaning = "a file was left out because its scheduler is not that of the report"
            problems.add("other scheduler", "info", dump.part.name, None, meaning)
        elif not fitting and dump.facts["kind"] == DUMP:
            found[dump.part.name] = [dump]
        for each in fitting:
            found[each.part.name].append(dump)
    return [_application(members) for members in found.values()]


def _application(parts: Sequence[LogPart]) -> Application:
    first = parts[0]
    place = PurePath(first.folder).name
    name = f"{place}-{first.name}" if place else first.name
    app_id = re.sub(r"[^\w.-]+", "-", re.sub(r"\.(html|json|msgpack)(\.gz)?$", "", name))
    log = LogFile(first.part.name, tuple(each.part for each in parts), app_id)
    return Application("dask", app_id, None, place or None, None, log, sum(each.size for each in parts))
