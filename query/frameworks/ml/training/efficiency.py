"""The operations and bytes a second that kernels reached, by operator, and the peaks of the accelerator."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from crystalperf.query import sql
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.ml.training.devices import GROWING, MODEL, MODELS, UNITS
from crystalperf.query.results.answers import Efficiency


def of_kernels(connection: duckdb.DuckDBPyConnection, execution: Execution) -> Sequence[Efficiency]:
    """Those of a scope, longest first; shares are None if the accelerators are not of one model of the table."""
    if not any(each.startswith(GROWING) for each in execution.properties):
        return []  # no kernels, or a run file of an older version, which has no work of kernels
    model = MODELS.get(execution.properties.get(MODEL, ""))
    peaks = {unit: None if model is None else model.peak_flops(unit) for unit in UNITS}
    cases = " ".join(f"WHEN '{unit}' THEN {peak!r}" for unit, peak in peaks.items() if peak is not None)
    question = sql.text("efficiency", __package__).format(
        peaks=f"CASE unit {cases} END" if cases else "NULL::DOUBLE",
        memory="NULL" if model is None else repr(model.memory_gbps * 1e9),
    )
    span = {"start": execution.scope.start_ms, "end": execution.scope.end_ms}
    return [Efficiency(*each) for each in connection.execute(question, span).fetchall()]
