"""What a step of training waited for, in sentences: its length, input, communication exposed or hidden, launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from crystalperf.indexes.resources import DISK
from crystalperf.query import sql
from crystalperf.query.explain.facts import Detail
from crystalperf.query.frameworks import Advisor
from crystalperf.query.frameworks.training import absent
from crystalperf.query.frameworks.training.assumptions import StepsByAccelerator
from crystalperf.query.frameworks.training.findings import Input, ReadAhead
from crystalperf.query.frameworks.training.operators import kind_times
from crystalperf.query.model.amounts import counted
from crystalperf.query.model.execution import Execution
from crystalperf.query.results.assumptions import Assumption

_WORTH = 0.02
"""Share of the time from which a sentence is worth its line."""


def told(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[str]:
    """What was measured of the scope's steps."""
    properties = execution.properties
    said = []
    if "step_ms" in properties:
        steps = counted(int(properties.get("steps", "1")), "step")
        processes = counted(int(properties.get("processes", "1")), "process")
        said.append(f"A step took {float(properties['step_ms']):.1f} ms on average ({steps}, {processes}).")
    start, end = execution.scope.start_ms, execution.scope.end_ms
    whole = end - start
    input_ms, _ = kind_times(connection, start, end).get("input", (0.0, 0.0))
    said += _input(input_ms, whole)
    said += _communication(connection, start, end)
    return said


def taken(_connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Assumption]:
    """What was taken for granted in counting its time."""
    queued = execution.properties.get("queued_ms")
    return [StepsByAccelerator(float(queued))] if queued else []


def _input(input_ms: float, whole_ms: float) -> list[str]:
    if input_ms < _WORTH * whole_ms:
        return []
    return [
        f"Input: threads waited {input_ms:.0f} ms for their next batch. What the loaders did meanwhile is in none of"
        " these traces; a profiler of their processes tells."
    ]


def input_waits(connection: duckdb.DuckDBPyConnection, details: Sequence[Detail]) -> list[Input]:
    """Steps that wait for their next batch.

    Evidence: operators that hand over a batch were under way on the critical path, or the loop asked its loader for
    one; what was computed meanwhile was another's.  Contradicted where the batch was there, for then they take no time.
    """
    waited = dict(
        connection.execute(
            "SELECT group_id, sum(upstream_ms) FROM units WHERE upstream_ms > 0 GROUP BY group_id"
        ).fetchall()
    )
    cost_ms = sum(min(each.facts.path_ms, waited.get(each.facts.id, 0.0)) for each in details)
    return [Input(cost_ms, "measured", ReadAhead(), cost_ms)] if cost_ms > 0 else []


def _communication(connection: duckdb.DuckDBPyConnection, start: float, end: float) -> list[str]:
    """How long bytes moved between processes, how much of it nothing else hid, and who waited for whom."""
    within = {"start": start, "end": end}
    moved, waited, last = connection.execute(sql.text("exchanged", __package__), within).fetchall()[0]
    if not moved and not waited:
        return []
    hidden = connection.execute(sql.text("hidden", __package__), within).fetchall()[0][0]
    exposed = max((moved or 0.0) - hidden, 0.0)
    said = [
        f"Communication: collectives moved bytes for {moved or 0.0:.0f} ms, summed over processes; nothing else ran"
        f" beside {exposed:.0f} ms of that."
    ]
    if waited and waited > 0:
        said.append(f"Before that, processes waited {waited:.0f} ms for the slowest, which was mostly {last}.")
    return said


def or_else(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Mapping[str, str]:
    """By resource, what else time on it may be, a sentence."""
    start, end = execution.scope.start_ms, execution.scope.end_ms
    _, reading_ms = kind_times(connection, start, end).get("python", (0.0, 0.0))
    found = dict(absent.or_else(connection, execution))
    if reading_ms >= absent.WORTH * (end - start) > 0:
        found[DISK] = "Some of that may be copying from the page cache, which no trace tells apart."
    return found


RULES = Advisor(told=told, more=input_waits, assumptions=taken, unmeasured=absent.unmeasured, or_else=or_else)
