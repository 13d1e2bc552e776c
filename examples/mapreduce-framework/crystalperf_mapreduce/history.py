"""Reads job histories of three formats to the same values: a job and its task attempts.

A line of the text format is a kind of event and KEY="VALUE" pairs with escaped dots, quotes and equal signs; it ends
with a dot.  Counters are {(group)(its name)[(counter)(its name)(value)]…}….  The events of Avro, in JSON or
binary, have the same facts under other names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from xml.etree import ElementTree

from crystalperf.plugin import LogFile, Part, Problems, lines, pieces
from crystalperf_mapreduce.avro import Decoder
from crystalperf_mapreduce.starfish_job import profile_json

BINARY = b"Avro-Binary"
"""Begin of a history in Avro's binary format."""

_PAIR = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_COUNTER = re.compile(r"\[\(([^()]*)\)\([^()]*\)\((-?\d+)\)\]")
_AVRO_KIND = re.compile(r"(MAP|REDUCE|SETUP|CLEANUP)_ATTEMPT_(STARTED|FINISHED|FAILED|KILLED)")
_STATUS = {"SUCCESS": "succeeded", "SUCCEEDED": "succeeded", "FAILED": "failed", "KILLED": "killed"}


@dataclass
class Attempt:
    """An attempt of a task; times in Unix ms, None if the history ends before."""

    kind: str
    """map, reduce, setup or cleanup"""
    task: str
    tracker: str | None = None
    start: int | None = None
    mapped: int | None = None
    """end of the map function; then its last spill and the merge of its spills follow"""
    shuffled: int | None = None
    sorted: int | None = None
    end: int | None = None
    status: str = "unfinished"
    error: str | None = None
    counters: dict[str, int] = field(default_factory=dict)


@dataclass
class Job:
    """A job and its attempts by id; times in Unix ms."""

    job_id: str | None = None
    name: str | None = None
    submitted: int | None = None
    launched: int | None = None
    finished: int | None = None
    status: str | None = None
    maps: int | None = None
    reduces: int | None = None
    attempts: dict[str, Attempt] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""
    """Starfish's profile of the job, in JSON."""
    is_text: bool = True


def read(log: LogFile, problems: Problems) -> Job:
    """The job of a history, its first part; others are its configuration and profile.  Damaged lines are counted."""
    job = Job()
    begin = b"".join(islice(pieces(log.parts[0], Problems()), 2))  # the first may have a few bytes only
    if begin.startswith(BINARY):
        _binary(job, b"".join(pieces(log.parts[0], problems)), log.origin, problems)
    else:
        _lines(job, log, problems)
    for part in log.parts[1:]:
        _described(job, part, problems)
    return job


def _lines(job: Job, log: LogFile, problems: Problems) -> None:
    for number, line in enumerate(lines(LogFile(log.origin, log.parts[:1]), problems), 1):
        text = line.decode("utf-8", errors="replace")
        try:
            if text.startswith("Avro-Json"):
                job.is_text = False
            elif not job.is_text:
                event = json.loads(text)
                if "event" in event:  # the first is their schema
                    _avro(job, event["type"], _plain(event["event"]))
            else:
                _text(job, text)
        except (ValueError, KeyError, TypeError, AttributeError):
            meaning = "a line is not an event of a job history"
            problems.add("damaged line", "error", log.origin, f"line {number}", meaning)


def _binary(job: Job, content: bytes, origin: str, problems: Problems) -> None:
    """The events after the line of the format and that of their schema."""
    job.is_text = False
    events = None
    try:
        _, schema, rest = content.split(b"\n", 2)
        events = Decoder(json.loads(schema), rest)
        for event in events.values():
            _avro(job, event["type"], event["event"])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        place = None if events is None else f"byte {len(content) - len(rest) + events.at}"
        problems.add("damaged history", "error", origin, place, "the history is read up to this place")


def _described(job: Job, part: Part, problems: Problems) -> None:
    """Add the configuration or the profile of a job, both XML."""
    try:
        root = ElementTree.fromstring(b"".join(pieces(part, problems)))
    except ElementTree.ParseError:
        meaning = "the job configuration, or the profile, is not complete XML"
        problems.add("damaged configuration", "error", part.name, None, meaning)
        return
    if root.tag == "job_profile":
        job.profile = profile_json(root)
        return
    job.conf = {each.findtext("name", ""): each.findtext("value", "") for each in root.iter("property")}


# Text ---------------------------------------------------------------------------------------------------------------


def _text(job: Job, line: str) -> None:
    kind = line.partition(" ")[0]
    facts = {key: _ESCAPED.sub(r"\1", value) for key, value in _PAIR.findall(line)}
    if kind == "Job":
        job.job_id = facts.get("JOBID", job.job_id)
        job.name = facts.get("JOBNAME", job.name)
        job.status = facts.get("JOB_STATUS", job.status)
        job.submitted = _whole(facts, "SUBMIT_TIME", job.submitted)
        job.launched = _whole(facts, "LAUNCH_TIME", job.launched)
        job.finished = _whole(facts, "FINISH_TIME", job.finished)
        job.maps, job.reduces = _whole(facts, "TOTAL_MAPS", job.maps), _whole(facts, "TOTAL_REDUCES", job.reduces)
    elif kind in ("MapAttempt", "ReduceAttempt"):
        default = Attempt(facts["TASK_TYPE"].lower(), facts["TASKID"])
        attempt = job.attempts.setdefault(facts["TASK_ATTEMPT_ID"], default)
        tracker = facts.get("TRACKER_NAME", "").removeprefix("tracker_").partition(":")[0]
        attempt.tracker = attempt.tracker or tracker or facts.get("HOSTNAME", "").rpartition("/")[2] or None
        attempt.start = _whole(facts, "START_TIME", attempt.start)
        attempt.shuffled = _whole(facts, "SHUFFLE_FINISHED", attempt.shuffled)
        attempt.sorted = _whole(facts, "SORT_FINISHED", attempt.sorted)
        attempt.end = _whole(facts, "FINISH_TIME", attempt.end)
        attempt.status = _STATUS.get(facts.get("TASK_STATUS", ""), attempt.status)
        attempt.error = facts.get("ERROR") or attempt.error
        attempt.counters |= {name: int(value) for name, value in _COUNTER.findall(facts.get("COUNTERS", ""))}


def _whole(facts: Mapping[str, str], key: str, default: int | None) -> int | None:
    return int(facts[key]) if facts.get(key) else default


# Avro ---------------------------------------------------------------------------------------------------------------


def _avro(job: Job, kind: str, facts: Mapping[str, Any]) -> None:
    if kind == "JOB_SUBMITTED":
        job.job_id, job.name, job.submitted = facts["jobid"], facts["jobName"], facts["submitTime"]
    elif kind == "JOB_INITED":
        job.launched, job.maps, job.reduces = facts["launchTime"], facts["totalMaps"], facts["totalReduces"]
    elif kind in ("JOB_FINISHED", "JOB_FAILED", "JOB_KILLED", "JOB_ERROR"):
        job.finished = facts["finishTime"]
        job.status = "SUCCESS" if kind == "JOB_FINISHED" else facts.get("jobStatus", kind.removeprefix("JOB_"))
    elif (of_attempt := _AVRO_KIND.fullmatch(kind)) is not None:
        attempt = job.attempts.setdefault(facts["attemptId"], Attempt(of_attempt[1].lower(), facts["taskid"]))
        if of_attempt[2] == "STARTED":
            attempt.start, attempt.tracker = facts["startTime"], facts.get("trackerName")
            return
        attempt.tracker = _plain(facts.get("hostname")) or attempt.tracker
        attempt.mapped = facts.get("mapFinishTime")
        attempt.shuffled, attempt.sorted = facts.get("shuffleFinishTime"), facts.get("sortFinishTime")
        attempt.end = facts["finishTime"]
        attempt.status = _STATUS.get(facts.get("taskStatus") or facts.get("status") or of_attempt[2], "succeeded")
        attempt.error = _plain(facts.get("error")) or None
        attempt.counters |= dict(_avro_counters(_plain(facts.get("counters")) or {}))


def _plain(value: Any) -> Any:
    """A value of a union, which Avro writes as {type: value}, or the value itself."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _avro_counters(counters: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for group in counters.get("groups", ()):
        for each in group["counts"]:
            yield each["name"], int(each["value"])
