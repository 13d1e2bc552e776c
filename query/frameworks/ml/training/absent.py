"""Ranks that took part in a training and left no trace: a collective's time is then the network's, or waiting for them.

A kernel of a collective begins as its own rank reaches it, and ends on all ranks at once.  Where the others are not
there, nothing tells when the last of them came, and from when on bytes moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb

from crystalperf.indexes.resources import NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import World
from crystalperf.query.frameworks.ml.training.operator_times import kind_times
from crystalperf.query.frameworks.ml.training.recommendations import CollectTraces
from crystalperf.query.frameworks.ml.training.refusals import RanksWithoutTrace
from crystalperf.query.frameworks.ml.training.remarks import MayWaitForRanks
from crystalperf.query.results.recommendations import Saving
from crystalperf.query.results.refusals import Refusal

WORTH = 0.1
"""Share of a run's time that its collectives take, from which ranks without a trace are worth a word."""


def _absent(properties: Mapping[str, str]) -> tuple[int, int]:
    """How many ranks left no trace, of how many; 0 where all did, or nothing tells."""
    count, traced = (int(properties.get(each, "1")) for each in ("processes", "traced"))
    return (count - traced if "traced" in properties else 0), count


def other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, MayWaitForRanks]:
    """By resource, what else time on it may be."""
    absent, count = _absent(execution.properties)
    if absent <= 0 or not _matters(connection, execution.scope.start_ms, execution.scope.end_ms):
        return {}
    return {NET: MayWaitForRanks(absent, count)}


def required_recording(connection: duckdb.DuckDBPyConnection) -> CollectTraces | None:
    """What to give so that waiting for other ranks is told apart from the network."""
    (properties, end_ms) = connection.execute("SELECT properties, duration_ms FROM runs").fetchall()[0]
    absent, count = _absent(properties or {})
    if absent <= 0 or not _matters(connection, 0.0, end_ms):
        return None
    return CollectTraces(price="record", because="measure", saving=Saving("measured"), ranks=count, missing=absent)


def other_bound(execution: Execution, world: World) -> tuple[Refusal, World] | None:
    """Why what another network, or more ranks, make of a run lies between two ends, and the world at the other one.

    There collectives waited for ranks all the time.  None where no rank lacks its trace.
    """
    absent, count = _absent(execution.properties)
    settings = {"network", "workers"} & {key for key in world.ratios if world.ratio(key) != 1}
    if absent <= 0 or not settings:
        return None
    other = replace(world, ratios={key: each for key, each in world.ratios.items() if key not in settings})
    return RanksWithoutTrace(absent, count), other


def _matters(connection: duckdb.DuckDBPyConnection, since_ms: float, until_ms: float) -> bool:
    collectives_ms, _ = kind_times(connection, since_ms, until_ms).get("collective", (0.0, 0.0))
    return collectives_ms >= WORTH * (until_ms - since_ms) > 0
