"""The heap that a job needed, by its log."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import duckdb

from crystalperf.query import profile
from crystalperf.query.frameworks.spark.needs import needs

MIB = 1 << 20


def needs_mib(log: Path) -> dict[str, int]:
    """By the log of a run: the heap in ``use``, the ``safe`` one, and the one with ``no_more_spills``, MiB."""
    with tempfile.TemporaryDirectory() as folder:
        run = profile([log], output=Path(folder) / "run.duckdb")
        with duckdb.connect(str(run.path), read_only=True) as connection:
            properties = dict(connection.execute("SELECT properties FROM runs").fetchall()[0][0])
            found = needs(connection, properties)
    assert found is not None
    sizes = {"use": found.used_bytes, "safe": found.safe_bytes, "no_more_spills": found.needed_bytes}
    return {name: math.ceil(size / MIB) for name, size in sizes.items()}
