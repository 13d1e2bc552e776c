"""Recognises job histories, job configurations and Starfish's profiles, by their content, and groups those of one job.

Hadoop 0.20 and 1 write text, one event per line; 2 writes Avro's JSON and 3 its binary format by default, both with
their schema in the second line.  The configuration of a job is an XML file with the same job id in its name, which is
the only place where it has it.  A profile has it in its content; of several, one that Starfish adjusted for compression
(`adj_…`) is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crystalperf.plugin import Application, Head, LogFile, LogPart, Problems

CONF, TEXT, AVRO, PROFILE = range(4)
"""Kinds of file, in LogPart.facts."""

_JOB = re.compile(r"job_\d+_\d+")
_EVENTS_NAMESPACE = b"org.apache.hadoop.mapreduce.jobhistory"


def recognise(head: Head) -> LogPart | None:
    """Recognises a history, a configuration or a profile by its first bytes."""
    text = head.text.lstrip()
    if text.startswith(b"Meta VERSION=") and b"JOBID=" in text:
        kind = TEXT
    elif text.startswith((b"Avro-Json", b"Avro-Binary")) and _EVENTS_NAMESPACE in text:
        kind = AVRO
    elif b"<configuration>" in text[:1000] and b"<name>mapred" in text:
        kind = CONF
    elif b'<job_profile id="job_' in text[:1000]:
        kind = PROFILE
    else:
        return None
    said = _JOB.search(head.name if kind == CONF else head.deeper().decode("utf-8", errors="replace"))
    return LogPart(head.part, head.folder, head.name, head.size, app_id=said[0] if said else None, facts={"kind": kind})


def gather(parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """One run for each history, with the configuration and the profile of its job."""
    histories = [each for each in parts if each.facts["kind"] in (TEXT, AVRO)]
    found, ignored = [], []
    for each in histories:
        own = [
            one
            for one in parts
            if one.facts["kind"] == CONF and one.app_id == each.app_id and one.folder == each.folder
        ]
        app_id = each.app_id or each.name
        profiles = [one for one in parts if one.facts["kind"] == PROFILE and one.app_id == each.app_id]
        profiles.sort(key=lambda one: not one.name.startswith("adj"))
        ignored += [one.part.name for one in profiles[1:]]
        log = LogFile(each.part.name, (each.part, *(one.part for one in (*own[:1], *profiles[:1]))), app_id)
        found.append(Application("mapreduce", app_id, None, None, None, log, each.size))
    used = {*ignored, *(part.name for each in found for part in each.log.parts)}
    for each in parts:
        if each.part.name not in used:
            meaning = "a job configuration or profile was left out: there is no history of this job with it"
            problems.add("configuration alone", "info", each.part.name, None, meaning)
    return found
