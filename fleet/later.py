"""The runs of a fleet, for predictions of a user's ledger that they are held against."""

from __future__ import annotations

from pathlib import Path

from crystalperf.fleet.summary import opened
from crystalperf.query.ledger.entries import RunFacts
from crystalperf.query.ledger.matching import KnownRun

_RUNS = """
    SELECT
        framework, name, app_id, attempt, epoch_ms(started_at) AS started_at_ms, plan_hash AS plan, runtime_ms,
        complete AND outcome IN ('succeeded', 'recovered') AS ended_well,
        resources, settings, input_bytes, epoch_ms(read_at) AS read_at_ms
    FROM runs
    WHERE measure = 'makespan' AND runtime_ms > 0
"""


def known_runs(folder: Path) -> list[KnownRun]:
    """The runs whose runtime is known; steps of trainings and streams are left out.  Raises InputError."""
    with opened(folder) as connection:
        cursor = connection.execute(_RUNS)
        names = [each[0] for each in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    found = []
    for row in rows:
        seen_ms, read_bytes = row.pop("read_at_ms"), row.pop("input_bytes")
        row["resources"] = {**row["resources"], "input": float(read_bytes)}
        found.append(KnownRun(RunFacts(step_ms=None, **row), seen_ms))
    return found
