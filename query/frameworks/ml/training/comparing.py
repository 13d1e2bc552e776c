"""A training as a comparison sees it: the settings that matter, and its mean step by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query import sql
from crystalperf.query.diagnose.critical_operators import path_by
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks import Comparer, OperatorAccount, OperatorPlace, StepAccount
from crystalperf.query.frameworks.ml.training.batches import grows
from crystalperf.query.frameworks.ml.training.devices import MIX, MODEL, arithmetic
from crystalperf.query.results.answers import PathItem

BATCH = "batch"
"""The property with the number of examples in a batch of one process."""

BETWEEN = "waiting between operators"
"""The name of the path's time in which no operator ran."""

_PLACES: Mapping[tuple[str, bool], OperatorPlace] = {
    ("kernel", True): "device",
    ("runtime", True): "gap",
    ("copy", True): "copy",
    ("transfer", True): "copy",
    ("copy", False): "copy",
    ("transfer", False): "collective",
    ("collective", True): "collective",
    ("collective", False): "collective",
    ("input", False): "input",
    ("op", False): "host",
}
"""By an operation's kind, and whether it ran on an accelerator."""


@frozen
class _Ran:
    """The operations of one operator in one place: all of the scope, of all processes."""

    time_ms: float
    count: float
    flops: float | None
    moved: float | None
    bytes: float
    unit: str | None


def step(connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]) -> StepAccount:
    """The account of a scope's mean step."""
    facts = execution.properties
    whole = execution.scope.end_ms - execution.scope.start_ms
    one = connection.execute(
        "SELECT count(DISTINCT start_ms) FROM scopes WHERE start_ms >= ? - 1e-6 AND end_ms <= ? + 1e-6",
        [execution.scope.start_ms, execution.scope.end_ms],
    ).fetchone()
    recorded = one[0] if one else 0
    steps = max(int(facts["steps"]) if recorded > 1 and "steps" in facts else recorded, 1)
    found = _ran(connection, execution)
    processes = connection.execute("SELECT count(*) FROM training_devices WHERE NOT accelerator").fetchone()
    traced = max(processes[0] if processes else 1, 1)
    on_path: dict[tuple[OperatorPlace, str], float] = {}
    for each in path_by(connection, execution, path, sql.text("step_path", __package__)):
        on_path[_key(each.name)] = on_path.get(_key(each.name), 0.0) + each.time_ms
    left_ms = execution.runtime_ms - sum(on_path.values())
    operators = [
        _operator(place, name, on_path.get((place, name), 0.0) / steps, found.get((place, name)), steps * traced)
        for place, name in sorted({*found, *on_path})
    ]
    if whole > 0 and abs(left_ms) > 1e-6 * whole:  # a path that does not cover the scope
        operators.append(OperatorAccount("", "program", left_ms / steps, 0.0, 0.0, None, "", 0.0, False))
    return StepAccount(
        operators=tuple(operators),
        steps=steps,
        batch=float(facts[BATCH]) if BATCH in facts else None,
        accelerator=facts.get(MODEL),
        precision=arithmetic(facts.get(MIX, "")),
        processes=float(facts["processes"]) if "processes" in facts else None,
    )


def _operator(place: OperatorPlace, name: str, path_ms: float, ran: _Ran | None, steps: float) -> OperatorAccount:
    if ran is None:
        return OperatorAccount(name, place, path_ms, path_ms, 0.0, None, "", 0.0, False)
    work = ran.flops if ran.unit and ran.flops else ran.moved
    return OperatorAccount(
        name=name,
        place=place,
        path_ms=path_ms,
        time_ms=ran.time_ms / steps,
        count=ran.count / steps,
        work=work / steps if work else None,
        unit=ran.unit or "",
        bytes=ran.bytes / steps,
        grows=grows(name),
    )


def _ran(connection: duckdb.DuckDBPyConnection, execution: Execution) -> dict[tuple[OperatorPlace, str], _Ran]:
    span = {"start": execution.scope.start_ms, "end": execution.scope.end_ms}
    found: dict[tuple[OperatorPlace, str], _Ran] = {}
    for kind, accelerator, operator, *figures in connection.execute(
        sql.text("step_operators", __package__), span
    ).fetchall():
        key, ran = (_place(kind, accelerator=accelerator), operator), _Ran(*figures)
        found[key] = _added(found[key], ran) if key in found else ran
    return found


def _added(one: _Ran, other: _Ran) -> _Ran:
    """Two kinds of operations of the same operator and place."""
    flops, moved = (
        None if a is None or b is None else a + b for a, b in ((one.flops, other.flops), (one.moved, other.moved))
    )
    return _Ran(
        one.time_ms + other.time_ms, one.count + other.count, flops, moved, one.bytes + other.bytes,
        one.unit or other.unit,
    )  # fmt: skip


def _place(kind: str | None, *, accelerator: bool) -> OperatorPlace:
    return _PLACES.get((kind or "", accelerator), "device" if accelerator else "program")


def _key(name: str) -> tuple[OperatorPlace, str]:
    """The place and the operator of a row of step_path; a segment without operators is a wait."""
    kind, first, rest = name.partition("\t")
    if not first:
        return "program", BETWEEN
    accelerator, _, operator = rest.partition("\t")
    return _place(kind, accelerator=accelerator == "true"), operator


COMPARER = Comparer(
    settings={
        "accelerator": ("compute",),
        "accelerators": ("slots",),
        "backend": ("compute",),
        BATCH: ("compute",),
        "processes": ("slots",),
        "synchronous": ("slots",),
        "world_size": ("slots",),
    },
    measured=True,
    step=step,
)
