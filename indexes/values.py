"""Checks the values of a run file once, when it is opened, because somebody may have changed them.

Analysis takes the values of a run file as CrystalPerf wrote them.  A file from a stranger may have NaN for a time, a
worker twice, or no resources.  schema.sql states the types; this module adds ranges, keys, references, required rows
and sums.  DuckDB evaluates all of it in one statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb

from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.resources import resources, with_other
from crystalperf.indexes.schema import Table

LARGEST = 2.0**53
"""Maximum of a number of one task or process; readers of logs leave out larger ones (query.trace.records)."""

LARGEST_SUM = 2.0**80
"""Maximum of a sum, and of a number with another sign or unit."""

LARGEST_COUNT = 1 << 31
"""Maximum of a number of slots, cores or tasks."""

TOLERANCE = 1e-6
"""Of a sum of times, relative to the end of its row."""

_COUNTS = {"slots", "cores", "task_count", "processors"}
_ROUNDING = 1e-6
"""Shares of a time are differences, which may round to less than zero."""

_SIGNED = {"clock_offset_ms", "started_at_ms"}
_KEYS = {
    "metadata": "key",
    "resources": "name",
    "workers": "worker_id",
    "scopes": "scope_id",
    "stages": "stage_id",
    "tasks": "task_id",
    "nodes": "node_id",
    "stacks": "stack_id",
    "operators": "(scope_id, node_id)",
}
_REFERENCES = (
    ("dependencies", "source", "stages", "stage_id"),
    ("dependencies", "target", "stages", "stage_id"),
    ("tasks", "stage_id", "stages", "stage_id"),
    ("nodes", "stage_id", "stages", "stage_id"),
    ("edges", "source", "nodes", "node_id"),
    ("edges", "target", "nodes", "node_id"),
    ("samples", "stack_id", "stacks", "stack_id"),
    ("operator_times", "stage_id", "stages", "stage_id"),
)
_WORDS = {
    ("resources", "unit"): ("speed", "bytes per second"),
    ("resources", "shared_by"): ("worker", "host", "nobody"),
}
_INTERVALS = {"tasks": ("launch_ms", "finish_ms"), "nodes": ("start_ms", "end_ms")}
"""By table, the times of start and end; its parts by resource sum to the time between them."""
_TIMED = {"tasks", "stages", "workers", "nodes", "runs"}
"""Tables whose times and bytes are not negative."""

_NUMBERS = ("DOUBLE", "FLOAT", "INTEGER", "BIGINT")

Condition = tuple[str, str]
"""SQL that is true for a wrong row or table, and a clause for the sentence."""


def check_values(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    found: Mapping[str, Mapping[str, str]],
    declared: Sequence[Table],
) -> None:
    """Raise IndexFileError for the first value of the attached database `checked` that no run can have.

    `found` has the types of the columns of all tables, `declared` the tables of schema.sql for the file's resources.
    """
    fixed = {each.name: each for each in declared}
    names = [each for each in found["stacks"] if f"{each}_ms" in found["nodes"]]
    of_rows = {name: list(_of_rows(name, each, fixed.get(name), names)) for name, each in found.items()}
    whole = [
        (f"EXISTS (FROM checked.{name} WHERE {' OR '.join(f'({sql})' for sql, _ in each)})", each)
        for name, each in of_rows.items()
    ]
    whole += [(sql, [(sql, clause)]) for sql, clause in _of_tables(names)]
    question = " UNION ALL ".join(f"SELECT {place} AS place WHERE {sql}" for place, (sql, _) in enumerate(whole))
    (place,) = connection.execute(f"SELECT min(place) FROM ({question})").fetchall()[0]
    if place is None:
        return
    clauses = whole[place][1]
    if len(clauses) > 1:  # the same question for each condition of this table
        table = list(of_rows)[place]
        clauses = [
            each
            for each in clauses
            if connection.execute(f"SELECT 1 FROM checked.{table} WHERE {each[0]} LIMIT 1").fetchall()
        ]
    raise IndexFileError(f"{path}: {clauses[0][1]}; it is damaged, or somebody changed it", Remedy("profile again"))


def _of_rows(
    table: str, columns: Mapping[str, str], declared: Table | None, names: Sequence[str]
) -> Iterator[Condition]:
    """Missing values, ranges, words and sums."""
    needed = set() if declared is None else {each.name for each in declared.columns if "NOT NULL" in each.type}
    for name, type_ in columns.items():
        where = f"{table}.{name}"
        if name in needed or where == "resources.moves":
            yield f"{name} IS NULL", f"a row has no {where}"
        if type_ in _NUMBERS:
            low, high = _range(table, name)
            yield f"{name} NOT BETWEEN {low!r} AND {high!r}", f"{where} has a number that no run can have"
        elif (table, name) in _WORDS:
            allowed = ", ".join(f"'{each}'" for each in _WORDS[table, name])
            yield f"{name} NOT IN ({allowed})", f"{where} has an unknown word"
        elif type_ == "VARCHAR":
            yield f"contains({name}, chr(0))", f"{where} has a NUL character"
    if table in _INTERVALS:
        start, end = _INTERVALS[table]
        parts = " + ".join(f"{each}_ms" for each in with_other(names))
        yield f"{end} < {start}", f"a row of {table} ends before it starts"
        yield (
            f"abs({parts} - ({end} - {start})) > {TOLERANCE} * (1 + {end})",
            f"the times by resource in {table} do not sum to the time of a row",
        )


def _range(table: str, name: str) -> tuple[float, float]:
    if name in _COUNTS:
        return 0.0, float(LARGEST_COUNT)
    if name in _SIGNED:
        return -LARGEST, LARGEST
    if table in _TIMED and name.endswith(("_ms", "_bytes")):
        return -_ROUNDING, LARGEST
    return -LARGEST_SUM, LARGEST_SUM


def _of_tables(names: Sequence[str]) -> Iterator[Condition]:
    """Required rows, keys, and ids that another table does not have."""
    yield "(SELECT count(*) FROM checked.runs) <> 1", "it has not exactly one run"
    required = sorted({*resources(), *names})
    listed = ", ".join(f"'{each}'" for each in required)
    yield (
        f"(SELECT count(*) FROM checked.resources WHERE name IN ({listed})) <> {len(required)}"
        f" OR (SELECT count(*) FROM checked.resources) <> {len(required)}",
        "its resources do not match its tables",
    )
    for table, key in _KEYS.items():
        yield (
            f"(SELECT count(*) > count(DISTINCT {key}) FROM checked.{table})",
            f"two rows of {table} have the same {key}",
        )
    for source, column, target, key in _REFERENCES:
        yield (
            f"EXISTS (FROM checked.{source} s ANTI JOIN checked.{target} t ON s.{column} = t.{key}"
            f" WHERE s.{column} IS NOT NULL)",
            f"{source}.{column} has the id of a row that {target} does not have",
        )
