"""Recognition of TensorFlow's traces, and of those that make one run.

RunMetadata   one Session.run with FULL_TRACE; all of a folder are one run, of one worker or several
timeline      the same as Chrome's JSON, without bytes and with invented threads
XPlane        the output of tf.profiler, a file for each process and session of profiling
summary       a file of events that embeds RunMetadata
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.chrome import is_json
from crystalperf.query.frameworks.ml.training.files import application
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems

KINDS = ("run metadata", "timeline", "xplane", "summary")

_SUMMARY = b"brain.Event:"
_TAGGED = regex(rb"\x42[\x80-\xff]{0,4}[\x00-\x7f]\x0a[\x00-\x7f]")
_TIMELINE = regex(rb'"cat"\s*:\s*"Op"|"cat"\s*:\s*"DataFlow"|"name"\s*:\s*"Allocators"')
_VIEWER = regex(rb'"name"\s*:\s*"/(?:host|device):[^"]{1,80}"')
_SHOWN = regex(r"[._]trace\.json(?:\.gz)?$")  # the trace viewer's file of an XPlane
_EVENTS = regex(rb'"traceEvents"\s*:')
_OTHERS = regex(rb'"(?:schemaVersion|baseTimeNanoseconds|deviceProperties)"\s*:')


def recognise(head: Head) -> LogPart | None:
    """A trace of TensorFlow, by its beginning."""
    kind = kind_of(head)
    if kind is None:
        return None
    return LogPart(head.part, head.folder, head.name, head.size, facts={kind: 1})


def kind_of(head: Head) -> str | None:
    """One of KINDS; None for any other file."""
    text = head.text
    if text[:1] == b"\n" and _is_run_metadata(text):
        return "run metadata"
    if text[:1] == b"\n" and _is_xplane(text):
        return "xplane"
    if _SUMMARY in text[:64]:
        return "summary" if _TAGGED.search(head.deeper()) else None
    if is_json(text) and _EVENTS.search(text) and not _OTHERS.search(text[:4096]):
        return "timeline" if _TIMELINE.search(text) or _VIEWER.search(text) else None
    return None


def _after_length(text: bytes, place: int) -> int:
    """The place after a varint of at most ten bytes."""
    for offset in range(10):
        if place + offset < len(text) and text[place + offset] < 128:
            return place + offset + 1
    return len(text)


def _is_run_metadata(text: bytes) -> bool:
    """Whether the text begins with three nested messages, the innermost the name of a device:
    step_stats.dev_stats.device.
    """
    inner = _after_length(text, 1)
    if text[inner : inner + 1] != b"\n":
        return False
    device = _after_length(text, inner + 1)
    if text[device : device + 1] != b"\n":
        return False
    name = _after_length(text, device + 1)
    return re.match(rb"/(?:job:|gpu:|cpu:|device:|host:|task:|replica:)", text[name : name + 12]) is not None


def _is_xplane(text: bytes) -> bool:
    """Whether the text begins with a plane: its number, if not 0, and its name."""
    place = _after_length(text, 1)
    if text[place : place + 1] == b"\x08":
        place = _after_length(text, place + 1)
    if text[place : place + 1] != b"\x12":
        return False
    name = _after_length(text, place + 1)
    return re.match(rb"/(?:host|device):|Task Environment|#", text[name : name + 20]) is not None


def gather(parts: Sequence[LogPart], _problems: Problems, framework: str = "tensorflow") -> list[Application]:
    """RunMetadata of a folder are one run, and so are its XPlanes; each timeline is a run.

    If a folder has the same steps in several forms, the most detailed one is read.
    """
    kinds = {part: kind for part in range(len(parts)) for kind in KINDS if kind in parts[part].facts}
    groups: dict[tuple[str, str], list[LogPart]] = {}
    for number, each in enumerate(parts):
        kind = kinds[number]
        key = each.part.name if kind == "timeline" else each.folder
        groups.setdefault((kind, key), []).append(each)
    whole = {each.folder for (kind, _), several in groups.items() if kind == "run metadata" for each in several}
    found = []
    for (kind, _), several in groups.items():
        if kind in ("timeline", "summary") and several[0].folder in whole:
            continue
        if kind == "timeline" and _SHOWN.search(several[0].name) and ("xplane", several[0].folder) in groups:
            continue
        found.append(application(framework, sorted(several, key=lambda each: _natural(each.name))))
    return found


def _natural(name: str) -> tuple[str | int, ...]:
    """A sort key that orders names by the numbers in them."""
    return tuple(int(each) if each.isdigit() else each for each in re.split(r"(\d+)", name))
