"""What the model does not know: questions beyond its range get a bound instead of a figure."""

from __future__ import annotations

from indexes.resources import CPU, Resource
from query.model.execution import Execution
from query.model.world import World

MOST_SLOTS_RATIO = 16
"""Slots over recorded slots, or the reverse, beyond which nothing recorded tells how scheduling would do."""

MOST_WORKERS_RATIO = 8
"""The same for workers whose units read of each other: each would fetch from so many more senders."""

UNSEEN_SHARE = 0.2
"""Share of unit time from which what is unknown may be what a question is about."""

SEEN_SHARE = 0.02
"""Share of unit time on a device from which the run says something about it."""


def beyond(execution: Execution, world: World) -> str | None:
    """Why a question is outside the model's range, or None.

    Every speed of a device is inside: its time shrinks towards nothing, or grows with an interval that does.
    """
    words = execution.framework.vocabulary
    slots = world.ratio("cores") * world.ratio("workers")
    if max(slots, 1 / slots) > MOST_SLOTS_RATIO:
        return (
            f"{_times(slots)} the {words.unit} {words.lanes}: so far from what was recorded ({MOST_SLOTS_RATIO} times"
            f" either way), nothing tells how scheduling and the {words.coordinator} would do"
        )
    workers, remote = world.ratio("workers"), bool(execution.volumes.remote.any())
    exchanges = remote or bool(execution.volumes.local.any())
    if workers > 1 and exchanges and not remote:
        return (
            f"on its recorded {words.workers} all {words.exchanged} were local; with more of them most would cross the"
            " network, and nothing in the run tells how long that takes"
        )
    if workers > MOST_WORKERS_RATIO and exchanges:
        return (
            f"{_times(workers)} the {words.workers}: {words.units} would fetch {words.exchanged} from more than"
            f" {MOST_WORKERS_RATIO} times as many senders as in any {words.group} of the run"
        )
    return None


def lost(execution: Execution) -> str | None:
    """Why no question can be asked of a run whose log lacks most of its work, or None."""
    count = sum(each.lost for each in execution.lost)
    total = len(execution.units) + count
    if count <= UNSEEN_SHARE * total:
        return None
    return (
        f"{count} of {total} {execution.framework.vocabulary.units} have no end in the log, so what they did is unknown"
    )


def unseen(execution: Execution, world: World) -> tuple[Resource, float] | None:
    """The changed resource that unknown time may be, and the share of unit time that may be its, or None.

    Without samples logs time only some of what units do.  Of a device that was seen the run says something; where CPU
    time was measured, what is unknown was no computing.
    """
    if execution.has_samples:
        return None
    seen = execution.units.parts_ms.sum(axis=0) / (execution.units.parts_ms.sum() or 1.0)
    for position, each in enumerate(execution.resources):
        share = execution.evidence.unseen_cpu if each.name == CPU else execution.evidence.unseen
        is_seen = each.name != CPU and seen[position] >= SEEN_SHARE
        if world.ratio(each.setting) != 1 and share > UNSEEN_SHARE and not is_seen:
            return each, share
    return None


def _times(ratio: float) -> str:
    return f"{ratio:g} times" if ratio >= 1 else f"1/{1 / ratio:g} of"
