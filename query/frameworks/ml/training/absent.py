"""Ranks without a trace: the time of a collective is then on the network, or waiting for these ranks.

A kernel of a collective begins as its own rank reaches it, and ends on all ranks at once.  Without the traces of the
others it is unknown when the last of them arrived, and from when on bytes moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import duckdb

from crystalperf.indexes.resources import NET
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.frameworks.ml.training.operator_times import kind_times
from crystalperf.query.frameworks.ml.training.recommendations import CollectTraces
from crystalperf.query.frameworks.ml.training.refusals import RanksWithoutTrace
from crystalperf.query.frameworks.ml.training.remarks import MayWaitForRanks
from crystalperf.query.results.recommendations import Saving
from crystalperf.query.results.refusals import Refusal

WORTH = 0.1
"""Minimum share of collectives in a run's time for which ranks without a trace are reported."""


def _absent(properties: Mapping[str, str]) -> tuple[int, int]:
    """The number of ranks without a trace, and of all ranks; 0 if all have one, or if unknown."""
    count, traced = (int(properties.get(each, "1")) for each in ("processes", "traced"))
    return (count - traced if "traced" in properties else 0), count


def other_causes(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, MayWaitForRanks]:
    """By resource, other possible causes of time on it."""
    absent, count = _absent(execution.properties)
    if absent <= 0 or not _matters(connection, execution.scope.start_ms, execution.scope.end_ms):
        return {}
    return {NET: MayWaitForRanks(absent, count)}


def required_recording(connection: duckdb.DuckDBPyConnection) -> CollectTraces | None:
    """The traces to add so that waiting for other ranks can be separated from the network."""
    (properties, end_ms) = connection.execute("SELECT properties, duration_ms FROM runs").fetchall()[0]
    absent, count = _absent(properties or {})
    if absent <= 0 or not _matters(connection, 0.0, end_ms):
        return None
    return CollectTraces(price="record", because="measure", saving=Saving("measured"), ranks=count, missing=absent)


def other_bound(execution: Execution, scenario: Scenario) -> tuple[Refusal, Scenario] | None:
    """Why a prediction for another network, or for more ranks, is a range, and the scenario of its other bound.

    At that bound collectives waited for ranks all the time.  None if all ranks have a trace.
    """
    absent, count = _absent(execution.properties)
    settings = {"network", "workers"} & {key for key in scenario.ratios if scenario.ratio(key) != 1}
    if absent <= 0 or not settings:
        return None
    other = replace(scenario, ratios={key: each for key, each in scenario.ratios.items() if key not in settings})
    return RanksWithoutTrace(absent, count), other


def _matters(connection: duckdb.DuckDBPyConnection, since_ms: float, until_ms: float) -> bool:
    collectives_ms, _ = kind_times(connection, since_ms, until_ms).get("collective", (0.0, 0.0))
    return collectives_ms >= WORTH * (until_ms - since_ms) > 0
