"""Recognition of traces of MXNet's profiler: Chrome's JSON that begins with the names of its devices."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.training.chrome import is_json
from crystalperf.query.frameworks.ml.training.files import application
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems

_EVENTS = regex(rb'"traceEvents"\s*:')
_DEVICE = regex(rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:cpu|gpu|cpu pinned|cpu shared)/\d*"')
_CALLS = regex(rb'"cat"\s*:\s*"MXNET_C_API"')


def recognise(head: Head) -> LogPart | None:
    """A trace of MXNet's profiler, by its beginning."""
    text = head.text
    if not is_json(text) or _EVENTS.search(text) is None or not (_DEVICE.search(text) or _CALLS.search(text)):
        return None
    return LogPart(head.part, head.folder, head.name, head.size)


def gather(parts: Sequence[LogPart], _problems: Problems) -> list[Application]:
    """Each trace is a run: processes do not record which others they train with."""
    return [application("mxnet", [each]) for each in parts]
