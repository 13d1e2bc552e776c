"""What other numbers of processes do to a training: data parallelism, and parameter servers.

Every process keeps its batch, so a step does more work with more of them, and only its communication changes.  A ring
all-reduce sends 2 (n - 1) / n of its bytes over each link (Patarasuk and Yuan, 2009); a parameter server's link carries
the tensors of all workers.  Links, and how evenly processes run, stay as they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crystalperf.indexes.errors import NoAnswerError
from crystalperf.indexes.resources import NET
from crystalperf.query.frameworks import Planned
from crystalperf.query.model.execution import Execution
from crystalperf.query.model.world import World


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """How many processes a run had: its table of workers lists their accelerators, servers and links as well."""
    return {"workers": float(properties.get("processes", "1"))}


def replan(execution: Execution, world: World, _wanted: bool) -> Planned:
    """The run with its communication as other numbers of processes would have it.

    Raises NoAnswerError where nothing recorded tells that.
    """
    if world.ratio("units") != 1:
        raise NoAnswerError("operators are what the program calls; they are not cut anew")
    if world.ratio("cores") != 1:
        raise NoAnswerError("a thread or a stream does what its program gives it, however many there are")
    ratio = world.ratio("workers")
    if ratio == 1:
        return Planned(execution)
    count = int(execution.properties.get("processes", "1"))
    if ratio < 1:
        raise NoAnswerError(
            f"fewer processes than the run's {count}: nothing recorded tells which would go; trace a run with as few"
        )
    after = count * ratio
    if execution.properties.get("synchronous") == "no":
        factor, what = (
            ratio,
            "the link of each parameter server carries the tensors of all workers, one after the other",
        )
    elif count > 1:
        factor = ((after - 1) / after) / ((count - 1) / count)
        what = "collectives are rings, which send 2 (n - 1) / n of their bytes over each link"
    else:
        raise NoAnswerError(
            "a single process exchanges no gradients, so nothing recorded tells what exchanging them takes; trace two"
        )
    net = execution.names.index(NET)
    parts = execution.units.parts_ms.copy()
    longer = parts[:, net] * (factor - 1)
    parts[:, net] += longer
    units = execution.units
    said = f"{after:g} processes for {count}, each with its batch: a step does {ratio:g} times the work; {what}"
    changed = replace(execution, units=replace(units, parts_ms=parts, finish_ms=units.finish_ms + longer))
    return Planned(changed, (said,))
