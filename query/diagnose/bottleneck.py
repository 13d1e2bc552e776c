"""The bottleneck of a scope, from the resources and causes of its critical path."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.results.answers import Bottleneck, Cause, Debug, Parts
from crystalperf.query.results.findings import GarbageCollection, Straggler

CLOSE_SECOND = 0.75
"""The runner-up to a limiting resource is named from this share of its time."""

ALONE: tuple[Cause, ...] = ("no worker", "start", "no scope", "end", "driver", "no task", "no slot")
"""Causes of time without a running task; their total is reported as one figure."""


def bottleneck_in(resource_ms: Parts, debug: Debug) -> str:
    """The bottleneck of a predicted run, by name, from its critical path by resource: a resource, or a Cause.

    Time on no resource is assumed to have the causes of the recorded run, whose diagnosis is `debug`.
    """
    before_ms = debug.resource_ms.get(OTHER, 0.0)
    by_cause = {
        cause: resource_ms.get(OTHER, 0.0) * ms / before_ms for cause, ms in debug.other_ms.items() if before_ms > 0
    }
    on_resources = {name: ms for name, ms in resource_ms.items() if name != OTHER}
    largest = max(on_resources, key=lambda each: on_resources[each])
    if not by_cause or on_resources[largest] >= max(by_cause.values()):
        return largest
    return _leading(by_cause)


def specific_bottleneck(debug: Debug) -> str | None:
    """The bottleneck of a recorded run, by name, if no prediction shows its like: a part of the path that the
    framework names, or the cause of a finding; None if it is a resource or a Cause."""
    found = bottleneck_of(debug)
    return found.name if found.kind in ("part", "finding") else None


def _leading(by_cause: Mapping[Cause, float]) -> Cause:
    """The main cause of time on no resource: the largest, or the largest known one without a running task if those
    causes together exceed `unknown`."""
    largest = max(by_cause, key=lambda each: by_cause[each])
    alone = {cause: by_cause[cause] for cause in ALONE if cause in by_cause}
    if largest == "unknown" and sum(alone.values()) > by_cause[largest]:
        return max(alone, key=lambda each: alone[each])
    return largest


def bottleneck_of(debug: Debug) -> Bottleneck:
    """The bottleneck of a scope: the resource with the most time on the critical path, or a cause with more.

    Time on no resource counts by its largest cause, because its causes are independent.  If that cause is unknown and
    only the driver was active on the path for more than half of the time, the driver is the bottleneck.
    A part of the path that the framework names comes first if it is larger than all others.  Unknown causes count only
    if they exceed the time without a running task.  If missing data could change the bottleneck, it is unknown.
    """
    if debug.missing_data:
        first, missing_ms = debug.missing_data[0], sum(each.time_ms for each in debug.missing_data)
        share = missing_ms / debug.runtime_ms if debug.runtime_ms > 0 else 0.0
        return Bottleneck("unknown", "unknown", missing_ms, share, first.rest, first.rest_ms)
    whole_ms = debug.runtime_ms
    if whole_ms <= 0:
        return Bottleneck("nothing", "unknown", 0.0, 0.0)
    on_resources = {name: ms for name, ms in debug.resource_ms.items() if name != OTHER}
    largest = max(on_resources, key=lambda each: on_resources[each])
    most_ms, other_ms = on_resources[largest], debug.resource_ms.get(OTHER, 0.0)
    by_cause: dict[Cause, float] = dict(debug.other_ms) or {"unknown": other_ms}
    parts: dict[str, float] = {**on_resources}
    parts.update((str(each), ms) for each, ms in by_cause.items())
    if (part := _named_part(debug, parts)) is not None:
        return part
    if (cause_found := _of_findings(debug, on_resources, by_cause)) is not None:
        return cause_found
    if most_ms > 0 and most_ms >= min(other_ms, max(by_cause.values())):
        second, second_ms = _next(parts, {largest})
        if second_ms < CLOSE_SECOND * most_ms:
            return Bottleneck("resource", largest, most_ms, most_ms / whole_ms)
        return Bottleneck("resource", largest, most_ms, most_ms / whole_ms, second, second_ms)
    cause = _leading(by_cause)
    cause_ms = by_cause[cause]
    # Causes without a running task are reported as one figure, so none of them is the runner-up of another.
    second, second_ms = _next(parts, {*ALONE} if cause in ALONE else {cause})
    if cause != "unknown":
        no_task_ms = debug.no_task_ms if debug.no_task_ms > cause_ms else None
        return Bottleneck("cause", cause, cause_ms, cause_ms / whole_ms, second, second_ms, no_task_ms)
    if debug.driver_ms > max(most_ms, whole_ms / 2):
        share = debug.driver_ms / whole_ms
        second, second_ms = _next(parts, {*ALONE, "unknown"})
        return Bottleneck("driver", "driver", debug.driver_ms, share, second, second_ms)
    return Bottleneck("unknown", "unknown", cause_ms, cause_ms / whole_ms, second, second_ms)


def _named_part(debug: Debug, parts: Mapping[str, float]) -> Bottleneck | None:
    """The largest part that the framework names, if it is larger than what all parts leave of each resource and cause;
    `parts` is the path by resource and cause."""
    if not debug.named_parts:
        return None
    rest = dict(parts)
    for each in debug.named_parts:
        for name, ms in each.resource_ms.items():
            key = each.cause if name == OTHER else name
            rest[key] = rest.get(key, 0.0) - ms
    largest = max(debug.named_parts, key=lambda each: each.time_ms)
    second, second_ms = _next(rest, ())
    if largest.time_ms <= max(second_ms, 0.0):
        return None
    return Bottleneck(
        "part", largest.remark.kind, largest.time_ms, largest.time_ms / debug.runtime_ms, second, second_ms
    )


def _of_findings(debug: Debug, on_resources: Mapping[str, float], by_cause: Mapping[Cause, float]) -> Bottleneck | None:
    """A bottleneck that is the cause of a finding, more specific than a resource; None if there is none.

    Stragglers that ran alone for more than half of the runtime; or garbage collection, which is a part of the CPU's
    time, if it takes more than the rest of that, and than each other resource and known cause.
    """
    whole_ms = debug.runtime_ms
    alone_ms = sum(stage.alone_ms for each in debug.findings if isinstance(each, Straggler) for stage in each.stages)
    collecting_ms = sum(each.cost_ms for each in debug.findings if isinstance(each, GarbageCollection))
    if alone_ms > whole_ms / 2 and alone_ms >= collecting_ms:
        return Bottleneck("finding", Straggler.kind, alone_ms, alone_ms / whole_ms)
    parts: dict[str, float] = {**on_resources, **{str(each): ms for each, ms in by_cause.items()}}
    parts[CPU] = max(parts.get(CPU, 0.0) - collecting_ms, 0.0)
    second, second_ms = _next(parts, ())
    if collecting_ms <= 0 or collecting_ms <= _next(parts, {"unknown"})[1]:
        return None
    second = second if second_ms >= CLOSE_SECOND * collecting_ms else None
    kind = GarbageCollection.kind
    return Bottleneck("finding", kind, collecting_ms, collecting_ms / whole_ms, second, second_ms if second else 0.0)


def _next(parts: Mapping[str, float], without: Collection[str]) -> tuple[str | None, float]:
    """The runner-up: the largest part besides those in `without`, and its time; None if there is none."""
    others = {name: ms for name, ms in parts.items() if ms > 0 and name not in without}
    second = max(others, key=lambda each: others[each], default=None)
    return second, 0.0 if second is None else others[second]
