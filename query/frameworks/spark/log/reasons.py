"""Why operators stayed on the JVM, as engines write it to event logs.

Comet adds a section to the text of a plan, if spark.sql.extendedExplainProviders names its class (Spark 4.0 and newer);
Databricks adds one of Photon.  Gluten logs an event of its own.  RAPIDS and Auron write reasons to the driver's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw

from crystalperf.indexes.regex import regex
from crystalperf.query.trace.records import shortened

Reason = tuple[str, str]
"""The name of an operator, '' if the log does not say which, and why it stayed on the JVM."""

MAX_REASONS = 10_000
"""Most reasons of one query that are kept."""

_SECTION = regex(rb"== (?:Extended Information \(Comet\)|Photon Explanation) ==")
_END = regex(r"^== ", re.MULTILINE)
_OF_NODE = regex(r"[\s:+-]*(?P<name>[^\s:+-].*?) \[COMET: (?P<reason>.*?)\](?: \[COMET-INFO: .*)?")
_WHOLE_PLAN = "Comet accelerated "
_ID = regex(r"(?<=\w)#\d{1,18}L?\b")
_WORD = regex(r"\w*")
_NUMBERED = regex(r"\d+ ")


def explained(text: Raw) -> bytes | None:
    """The end of a plan's text from an engine's explanation on, still JSON; None if no engine explains it."""
    found = _SECTION.search(text)
    return None if found is None else b'"' + bytes(text)[found.start() :]


def in_plan(explanation: bytes) -> list[Reason] | None:
    """The reasons in an explanation, in the order of the plan's operators; None if it is damaged."""
    try:
        section = msgspec.json.decode(explanation, type=str)
    except msgspec.MsgspecError:
        return None
    title, _, body = _ID.sub("", section).partition("\n")  # with ids, the same query would differ at each run
    end = _END.search(body)
    lines = body[: end.start() if end else None].split("\n")
    read = _of_photon if "Photon" in title else _of_comet
    return [reason for reason, _ in zip(read(lines), range(MAX_REASONS), strict=False)]


def _of_comet(lines: list[str]) -> Iterator[Reason]:
    """Those of a tree of operators, or of a list (spark.comet.explain.format)."""
    is_tree = any(line.startswith(_WHOLE_PLAN) for line in lines)
    for line in lines:
        if (match := _OF_NODE.fullmatch(line.rstrip())) is not None:
            yield match["name"].strip(), shortened(match["reason"]) or ""
        elif not is_tree and line.strip():
            yield "", shortened(line.strip()) or ""


def _of_photon(lines: list[str]) -> Iterator[Reason]:
    """The lines after `… because:`, up to `Reference node:` and the operator that they are about."""
    reason: list[str] = []
    of_node = inside = False
    for line in (each.strip() for each in lines):
        if of_node and line:
            yield _WORD.match(line)[0], shortened(" ".join(reason)) or ""  # type: ignore[index]
            reason, of_node = [], False
        elif line.endswith("because:") and not inside:
            inside = True
        elif line.lower() == "reference node:":
            of_node = bool(reason)
        elif inside and line:
            reason.append(line)
    if reason:
        yield "", shortened(" ".join(reason)) or ""


def of_gluten(reasons: Mapping[str, str | None]) -> Iterator[Reason]:
    """The reasons in an event of Gluten, whose keys are numbered operators: `003 Project`."""
    for name, reason in sorted(reasons.items())[:MAX_REASONS]:
        if reason:
            yield _NUMBERED.sub("", name, count=1).strip(), shortened(reason) or ""
