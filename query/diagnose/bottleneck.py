"""What holds a scope up, of what its critical path is known to be made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crystalperf.indexes.resources import OTHER
from crystalperf.query.results.answers import Bottleneck, Cause, Debug, Parts

CLOSE_SECOND = 0.75
"""What comes second to a resource is named from this share of its time."""

ALONE: tuple[Cause, ...] = ("no worker", "no scope", "coordinator", "no unit")
"""Causes of time in which no unit runs: one answer for all of them, how long that is in all."""


def bottleneck_in(resource_ms: Parts, debug: Debug) -> str:
    """What would hold a predicted run up, by name, of what its critical path goes to: a resource, or a Cause.

    Time on no resource is taken to have the same causes as in the recorded run, of which `debug` is the answer.
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


def _leading(by_cause: Mapping[Cause, float]) -> Cause:
    """The cause that stands for time on no resource: the largest, but none that is unknown where no unit runs for
    longer, for that is known."""
    largest = max(by_cause, key=lambda each: by_cause[each])
    alone = {cause: by_cause[cause] for cause in ALONE if cause in by_cause}
    if largest == "unknown" and sum(alone.values()) > by_cause[largest]:
        return max(alone, key=lambda each: alone[each])
    return largest


def bottleneck_of(debug: Debug) -> Bottleneck:
    """What holds a scope up: the resource with the most time on the critical path, or what took more than it.

    Time on no resource counts by its largest cause, for its causes have nothing to do with each other.  Where no cause
    is larger than the largest resource, yet more than half of the time passed while the coordinator alone moved the
    path on, that holds it up.  Time of unknown cause does so where no unit runs for less long.  Where something is
    missing that could change this, it is unknown.
    """
    if debug.doubts:
        first, missing_ms = debug.doubts[0], sum(each.time_ms for each in debug.doubts)
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
    if most_ms > 0 and most_ms >= min(other_ms, max(by_cause.values())):
        second, second_ms = _next(parts, {largest})
        if second_ms < CLOSE_SECOND * most_ms:
            return Bottleneck("resource", largest, most_ms, most_ms / whole_ms)
        return Bottleneck("resource", largest, most_ms, most_ms / whole_ms, second, second_ms)
    cause = _leading(by_cause)
    cause_ms = by_cause[cause]
    # What of the rest passes while no unit runs is told in one figure with a cause of such time.
    second, second_ms = _next(parts, {*ALONE} if cause in ALONE else {cause})
    if cause != "unknown":
        alone_ms = debug.no_unit_ms if debug.no_unit_ms > cause_ms else None
        return Bottleneck("cause", cause, cause_ms, cause_ms / whole_ms, second, second_ms, alone_ms)
    if debug.coordinator_ms > max(most_ms, whole_ms / 2):
        share = debug.coordinator_ms / whole_ms
        second, second_ms = _next(parts, {*ALONE, "unknown"})
        return Bottleneck("coordinator", "coordinator", debug.coordinator_ms, share, second, second_ms)
    return Bottleneck("unknown", "unknown", cause_ms, cause_ms / whole_ms, second, second_ms)


def _next(parts: Mapping[str, float], without: Collection[str]) -> tuple[str | None, float]:
    """The largest of the others, and its time; None where there is none."""
    others = {name: ms for name, ms in parts.items() if ms > 0 and name not in without}
    second = max(others, key=lambda each: others[each], default=None)
    return second, 0.0 if second is None else others[second]
