"""Spans in OTLP's JSON, as OpenTelemetry's Collector reads them: the run, its scopes, stages and tasks.

Each line is one ExportTraceServiceRequest with at most MAX_SPANS spans, which is the form of the Collector's file
receiver; a run with fewer spans is one line, which an OTLP endpoint takes as the body of a POST.
https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, BinaryIO

import msgspec

import crystalperf
from crystalperf.indexes.frozen import frozen
from crystalperf.query.export.source import Source, stage_label

NS_PER_MS = 1_000_000

MAX_SPANS = 5_000
"""Maximum spans of one line."""

_INTERNAL = 1
_UNSET, _ERROR = 0, 2

_FACTS = {
    "attempt": "task.attempt",
    "partition_index": "task.partition",
    "data_locality": "task.data_locality",
    "gc_ms": "task.gc_ms",
    "scheduler_delay_ms": "task.scheduler_delay_ms",
    "input_bytes": "task.input_bytes",
    "output_bytes": "task.output_bytes",
    "remote_read_bytes": "task.remote_read_bytes",
    "exchange_write_bytes": "task.exchange_write_bytes",
    "spill_disk_bytes": "task.spill_disk_bytes",
}
"""Columns of `tasks` that become attributes, after the prefix `crystalperf.`."""


@frozen
class _Span:
    """One span, and the key of the worker that it ran on; `attributes` without None."""

    worker: tuple[str | None, ...]
    body: dict[str, Any]


def write(source: Source, out: BinaryIO) -> None:
    """Write the spans of a run."""
    spans: list[_Span] = []
    for each in _Spans(source).all():
        spans.append(each)
        if len(spans) == MAX_SPANS:
            out.write(_line(source, spans))
            spans = []
    if spans:
        out.write(_line(source, spans))


def _line(source: Source, spans: Iterable[_Span]) -> bytes:
    """One request; spans of one worker are neighbours."""
    scope = {"name": "crystalperf", "version": crystalperf.__version__}
    groups = [
        {
            "resource": {"attributes": _attributes(_worker_facts(source, worker))},
            "scopeSpans": [{"scope": scope, "spans": [each.body for each in group]}],
        }
        for worker, group in groupby(spans, key=lambda each: each.worker)
    ]
    return msgspec.json.encode({"resourceSpans": groups}) + b"\n"


def _worker_facts(source: Source, worker: tuple[str | None, ...]) -> dict[str, Any]:
    """The resource of spans by OpenTelemetry's conventions: the service is the run, an instance is a worker."""
    worker_id, kind, host = worker
    return {
        "service.name": source.name,
        "service.namespace": source.framework,
        "service.instance.id": source.worker(worker_id, kind),
        "host.name": host,
        "crystalperf.app_id": source.app_id,
        "crystalperf.attempt": source.attempt,
        "crystalperf.framework.version": source.framework_version,
    }


class _Spans:
    """The spans of a run; their ids are hashes, so that two exports of a run are equal."""

    def __init__(self, source: Source) -> None:
        self._source = source
        identity = f"{source.framework}\0{source.app_id}\0{source.attempt}\0{source.started_at_ms}"
        self._key = identity.encode("utf-8", "replace")
        self._trace = hashlib.sha256(self._key).hexdigest()[:32]
        self._root = self._id("run", "")

    def all(self) -> Iterator[_Span]:
        """The run, scopes and stages on the driver, then tasks by worker."""
        yield from self._run()
        yield from self._scopes()
        yield from self._stages()
        yield from self._tasks()

    def _run(self) -> Iterator[_Span]:
        source = self._source
        sums = ", ".join(f"sum({name}_ms)" for name in source.resources)
        (parts,) = source.connection.execute(f"SELECT {sums} FROM tasks").fetchall()
        facts = _times(source, parts, "tasks.")
        yield self._span(self._root, None, source.name, (0.0, source.duration_ms), facts)

    def _scopes(self) -> Iterator[_Span]:
        for scope_id, parent, name, kind, start, end, status, error, call_site in self._source.rows(
            """
            SELECT scope_id, parent_id, name, kind, start_ms, coalesce(end_ms, ?), status, error, call_site FROM scopes
            ORDER BY start_ms, scope_id
            """,
            [self._source.duration_ms],
        ):
            facts = {"crystalperf.scope.id": scope_id, "crystalperf.scope.kind": kind, "crystalperf.status": status}
            facts["crystalperf.call_site"] = call_site
            above = self._root if parent is None else self._id("scope", parent)
            title = f"{scope_id} {name}" if name else scope_id
            yield self._span(self._id("scope", scope_id), above, title, (start, end), facts, status, error)

    def _stages(self) -> Iterator[_Span]:
        source = self._source
        links: dict[str, list[dict[str, Any]]] = {}
        for before, after, kind, why in source.rows(
            "SELECT source, target, kind, why FROM dependencies WHERE kind <> 'order' ORDER BY ALL"
        ):
            facts = {"crystalperf.dependency.kind": kind, "crystalperf.dependency.why": why}
            link = {"traceId": self._trace, "spanId": self._id("stage", before), "attributes": _attributes(facts)}
            links.setdefault(after, []).append(link)
        sums = ", ".join(f"{name}_ms" for name in source.resources)
        for stage_id, name, scope, start, end, status, failure, count, call_site, *parts in source.rows(
            f"""
            SELECT stage_id, name, scope_id, first_launch_ms, greatest(coalesce(end_ms, $1), first_launch_ms), status,
                failure, task_count, call_site, {sums}
            FROM stages WHERE first_launch_ms IS NOT NULL ORDER BY first_launch_ms, stage_id
            """,
            [source.duration_ms],
        ):
            facts = {"crystalperf.stage.id": stage_id, "crystalperf.stage.tasks": count, "crystalperf.status": status}
            facts |= {"crystalperf.call_site": call_site} | _times(source, parts)
            above = self._root if scope is None else self._id("scope", scope)
            title = stage_label(source, stage_id, name)
            found = self._span(self._id("stage", stage_id), above, title, (start, end), facts, status, failure)
            if stage_id in links:
                found.body["links"] = links[stage_id]
            yield found

    def _tasks(self) -> Iterator[_Span]:
        source = self._source
        sums = ", ".join(f"tasks.{name}_ms" for name in source.resources)
        columns = ", ".join(f"tasks.{each}" for each in _FACTS)
        task = source.vocabulary.task
        for row in source.rows(
            f"""
            SELECT task_id, tasks.stage_id, tasks.worker_id, workers.kind, coalesce(tasks.host, workers.host),
                launch_ms, greatest(finish_ms, launch_ms), status, reason, {columns}, {sums}
            FROM tasks LEFT JOIN workers USING (worker_id)
            ORDER BY tasks.worker_id, coalesce(tasks.host, workers.host), launch_ms, task_id
            """
        ):
            task_id, stage_id, worker_id, kind, host, start, end, status, reason = row[:9]
            facts = {"crystalperf.task.id": task_id, "crystalperf.stage.id": stage_id, "crystalperf.status": status}
            values = zip(_FACTS.values(), row[9 : 9 + len(_FACTS)], strict=True)
            facts |= {f"crystalperf.{name}": value for name, value in values}
            facts |= _times(source, row[9 + len(_FACTS) :])
            span_id, above = self._id("task", str(task_id)), self._id("stage", stage_id)
            title = f"{task} of {stage_id}"
            found = self._span(span_id, above, title, (start, end), facts, status, reason)
            yield _Span((worker_id, kind, host), found.body)

    def _span(
        self,
        span_id: str,
        above: str | None,
        name: str,
        between: tuple[float, float],
        facts: Mapping[str, Any],
        status: str = "succeeded",
        error: str | None = None,
    ) -> _Span:
        """A span on the driver."""
        start_ms, end_ms = between
        body = {
            "traceId": self._trace,
            "spanId": span_id,
            "name": name,
            "kind": _INTERNAL,
            "startTimeUnixNano": self._unix_ns(start_ms),
            "endTimeUnixNano": self._unix_ns(max(end_ms, start_ms)),
            "attributes": _attributes(facts),
            "status": {"code": _ERROR, "message": error or status} if status in _FAILED else {"code": _UNSET},
        }
        if above is not None:
            body["parentSpanId"] = above
        driver = self._source.vocabulary.driver
        return _Span((driver, "driver", None), body)

    def _unix_ns(self, at_ms: float) -> str:
        return str(self._source.started_at_ms * NS_PER_MS + round(at_ms * NS_PER_MS))

    def _id(self, kind: str, key: str) -> str:
        text = f"{kind}\0{key}".encode("utf-8", "replace")
        return hashlib.blake2b(text, key=self._key[:64], digest_size=8).hexdigest()


_FAILED = ("failed", "killed")


def _times(source: Source, parts: Iterable[float | None], prefix: str = "") -> dict[str, float | None]:
    """Time by resource as attributes, `crystalperf.resource.net_ms`."""
    names = (f"crystalperf.resource.{prefix}{name}_ms" for name in source.resources)
    return dict(zip(names, parts, strict=True))


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items() if value is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}
