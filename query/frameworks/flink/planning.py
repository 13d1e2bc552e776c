"""What Flink would do with another parallelism, and with other slots.

A vertex's parallelism is the job's, not the cluster's: other slots alone let more or fewer subtasks run side by side.
With another parallelism a vertex's records are spread over other subtasks; how, the log does not tell, so each new one
gets an equal stretch of the recorded subtasks' work, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from indexes.errors import NoAnswerError
from query.frameworks import Planned
from query.model.execution import Execution
from query.model.recut import with_units
from query.model.world import UNITS, World, units_of

SKEWED = 2.0
"""A subtask with this many times the median's time has a key of its own, which more subtasks do not divide."""

MOST_RATIO = 16
"""Parallelism over the recorded one, or the reverse, beyond which nothing recorded tells how records would spread."""


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """What a cluster had by setting, where its configuration was collected: slots of each TaskManager."""
    slots = properties.get("taskmanager.numberOfTaskSlots", "")
    return {"cores": float(slots)} if slots.isdigit() and int(slots) > 0 else {}


def replan(execution: Execution, world: World, wanted: bool) -> Planned:
    """The run with the subtasks that another parallelism gives it.  Raises NoAnswerError beyond the model's range."""
    if world.ratio("input") != 1:
        raise NoAnswerError("input: how many subtasks Flink would use for other data is not known; ask parallelism=")
    said = []
    counts = _counts(execution, world) if wanted else {}
    for number, count in counts.items():
        had = int((execution.units.group == number).sum())
        if max(count / had, had / count) > MOST_RATIO:
            name = execution.dag.groups[number].name
            raise NoAnswerError(
                f"parallelism: {had} to {count} subtasks of {name} are more than {MOST_RATIO} times either way, and"
                " nothing recorded tells how records would spread"
            )
    if world.ratio("cores") != 1 or world.ratio("workers") != 1:
        said.append(
            "vertices keep their parallelism, whatever slots there are: these change which subtasks run side by side"
        )
    if not counts:
        return Planned(execution, tuple(said))
    skewed = [
        execution.dag.groups[number].name for number, count in counts.items() if _skewed(execution, number, count)
    ]
    said.append(
        f"records are spread over the subtasks of {len(counts)} vert{'ex' if len(counts) == 1 else 'ices'} in equal"
        " stretches of the recorded subtasks' work, in their order"
    )
    if skewed:
        said.append(
            f"one subtask of {skewed[0]} has far more than the others: if that is one key, no parallelism divides it"
        )
    kept = [each.name for number, each in enumerate(execution.dag.groups) if number not in counts]
    if kept and world.ratio("units") != 1:
        said.append(f"vertices of one subtask keep it ({kept[0]}{' and others' if len(kept) > 1 else ''})")
    return Planned(with_units(execution, counts), tuple(said))


def _counts(execution: Execution, world: World) -> dict[int, int]:
    """Subtasks by the vertex's number, of those whose parallelism changes."""
    recorded = np.bincount(execution.units.group, minlength=len(execution.dag.groups))
    widest = int(recorded.max(initial=1))
    named = any(key.startswith(UNITS) for key in world.ratios)
    found = {}
    for number, group in enumerate(execution.dag.groups):
        ratio = units_of(world, group.group_id, group.name)
        if not named and recorded[number] == 1 and widest > 1:
            continue  # a global sort or aggregate, or a source of one file
        count = max(round(float(recorded[number]) * ratio), 1)
        if count != recorded[number]:
            found[number] = count
    return found


def _skewed(execution: Execution, number: int, count: int) -> bool:
    mine = execution.units.group == number
    own = (execution.units.duration_ms - execution.units.upstream_ms)[mine]
    return count > len(own) > 1 and bool(own.max() > SKEWED * np.median(own))
