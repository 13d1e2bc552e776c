"""Spark's own tables of a run that was made up: a few rows, with the columns that reading a log gives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.log.tables import tables
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import RunTables, integers, numbers, objects

START = 1_795_257_733_277
DURATION_MS = 1000
EVENTS = (
    {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
    {"Event": "SparkListenerApplicationStart", "App Name": "made", "App ID": "app-1", "Timestamp": START},
    {"Event": "SparkListenerApplicationEnd", "Timestamp": START + DURATION_MS},
)

Row = Mapping[str, Any]


def spark_tables(**rows: Sequence[Row]) -> RunTables:
    """The tables of a run of a second, with these rows; what a row leaves out is unknown."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_text("".join(f"{json.dumps(event)}\n" for event in EVENTS), encoding="utf-8")
        found = tables(collect(LogFile("log", (Part(str(path)),))))
    for name, given in rows.items():
        unknown = {column for row in given for column in row} - set(found[name])
        assert not unknown, f"Spark's {name} have no {unknown}"
        found[name] = {
            column: _like(values, [row.get(column) for row in given]) for column, values in found[name].items()
        }
    return found


def _like(values: npt.NDArray[Any], given: list[Any]) -> npt.NDArray[Any]:
    """Values as the column of a log has them."""
    if values.dtype.kind == "f":
        return numbers(given)  # type: ignore[no-any-return]
    if values.dtype.kind == "i":
        return integers(given)
    return np.array(given, dtype=bool) if values.dtype.kind == "b" else objects(given)
