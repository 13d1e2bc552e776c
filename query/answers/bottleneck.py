"""What holds a scope up, of what its critical path is known to be made of."""

from __future__ import annotations

from indexes.resources import OTHER
from query.answers.values import Bottleneck, Debug, Parts

CLOSE_SECOND = 0.75
"""A second resource is named from this share of the bottleneck's time."""


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
    cause = max(by_cause, key=lambda each: by_cause[each], default=None)
    return largest if cause is None or on_resources[largest] >= by_cause[cause] else cause


def bottleneck_of(debug: Debug) -> Bottleneck:
    """What holds a scope up: the resource with the most time on the critical path, or what took more than it.

    Time on no resource counts by its largest cause, for its causes have nothing to do with each other.  Where no cause
    is larger than the largest resource, yet more than half of the time passed while the coordinator alone moved the
    path on, that holds it up.  Where something is missing that could change this, it is unknown.
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
    cause, cause_ms = max(debug.other_ms.items(), key=lambda each: each[1], default=("unknown", other_ms))
    if most_ms > 0 and most_ms >= min(other_ms, cause_ms):
        others = {name: ms for name, ms in on_resources.items() if name != largest}
        second = max(others, key=lambda each: others[each], default=None)
        if second is None or others[second] < CLOSE_SECOND * most_ms:
            return Bottleneck("resource", largest, most_ms, most_ms / whole_ms)
        return Bottleneck("resource", largest, most_ms, most_ms / whole_ms, second, others[second])
    next_one = largest if most_ms > 0 else None
    if cause != "unknown":
        alone_ms = debug.no_unit_ms if debug.no_unit_ms > cause_ms else None
        return Bottleneck("cause", cause, cause_ms, cause_ms / whole_ms, next_one, most_ms, alone_ms)
    if debug.coordinator_ms > max(most_ms, whole_ms / 2):
        share = debug.coordinator_ms / whole_ms
        return Bottleneck("coordinator", "coordinator", debug.coordinator_ms, share, next_one, most_ms)
    return Bottleneck("unknown", "unknown", cause_ms, cause_ms / whole_ms, next_one, most_ms)
