"""Recognition of traces of JAX: XPlanes and files of its trace viewer, with JAX's own names in them."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.tensorflow import files
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.trace.records import Problems

_MARKS = regex(rb"jax(?:lib)?_version|PjitFunction\(|py_xla_execute|PjRtCApiLoadedExecutable")


def recognise(head: Head) -> LogPart | None:
    """A trace of JAX, by its beginning."""
    found = files.recognise(head)
    if found is None or not found.facts.keys() & {"xplane", "timeline"}:
        return None
    return found if _MARKS.search(head.deeper()) else None


def gather(parts: Sequence[LogPart], problems: Problems) -> list[Application]:
    """The XPlanes of a folder are one run, and the trace viewer's files of them are left out."""
    return files.gather(parts, problems, "jax")
