"""Creates the views of run files and indexes on a connection, and finds the names that statements mention."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb

from crystalperf.indexes import Table, resources, tables
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import OTHER
from crystalperf.query.sql import summed
from crystalperf.query.statements import computed
from crystalperf.query.statements.views import View, views, views_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Debug

_MISSING_COLUMN = regex(
    r'Referenced column "([^"]+)" not found|does not have a column named "([^"]+)"|Referenced table "([^"]+)" not found'
)

_SIMILAR = 0.75
"""Minimum similarity of two words, or of two names as a whole, to be the same with a slip."""

_MIN_SCORE = 0.6
"""Minimum share of a missing column's words that the nearest column has."""

_LISTS = regex(r"\b(show|describe|summarize|information_schema|sqlite_master|duckdb_\w+|pg_\w+)\b", re.IGNORECASE)
"""Words of a statement that lists tables or columns."""


def ship_indexes(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Make the views over the tables of all attached indexes that a statement needs.

    Call it after the views of tables exist, so that CrystalPerf's view replaces a table of the same name in a file.
    """
    _ship(connection, views("index"), resources(), statement)


def ship_run(connection: duckdb.DuckDBPyConnection, statement: str, debug: Callable[[], Debug]) -> None:
    """Make the views of the run attached as `run`, those of its framework, and the computed tables.

    Computed tables have rows, from the result of `debug`, if the statement mentions them.
    """
    own = tuple(name for (name,) in connection.execute("SELECT name FROM run.resources").fetchall())
    ((framework,),) = connection.execute("SELECT framework FROM run.runs").fetchall()[:1] or [("",)]
    _ship(connection, (*views("run"), *views_of(framework)), own, statement)
    filled = computed.tables(own)
    for table in filled:
        connection.execute(f"DROP VIEW IF EXISTS {table.name}")  # of a table of that name in the file
        for made in table.statements():
            connection.execute(made)
    mentioned = [each.name for each in filled if mentions(statement, [each.name])]
    for name, rows in computed.rows(debug(), mentioned).items() if mentioned else ():
        if rows:
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in rows[0])})", rows)


def _ship(connection: duckdb.DuckDBPyConnection, shipped: Sequence[View], names: Sequence[str], statement: str) -> None:
    """Make the views that a statement mentions, and those that these read; all for a statement that lists tables.

    Each takes some ms, and most statements need none of them.
    """
    by_name = {each.name: each for each in shipped}
    wanted = {name for name in by_name if _LISTS.search(statement) or mentions(statement, [name])}
    waiting = list(wanted)
    while waiting:
        more = by_name[waiting.pop()].words & by_name.keys() - wanted
        wanted |= more
        waiting += more
    parts = _parts(names)
    commented = mentions(statement, ["duckdb_columns"])
    for each in shipped:
        if each.name in wanted:
            with suppress(duckdb.CatalogException):  # not every run has the tables of the framework
                for made in each.statements(parts, names, commented=commented):
                    connection.execute(made)


def _parts(names: Sequence[str]) -> dict[str, str]:
    """The parts of views that depend on the resources: lists of columns, and the resource with the most."""
    with_other = [f"{each}_ms" for each in (*names, OTHER)]
    listed = ", ".join(names)
    return {
        "resources": listed,
        "largest": f"greatest({listed})",
        "label": f"CASE greatest({listed}) " + " ".join(f"WHEN {each} THEN '{each}'" for each in names) + " END",
        "weighted": ", ".join(f"sum({each} * weight_ms) / sum(weight_ms) AS {each}" for each in names),
        "waited": ", ".join(f"{summed(f'coalesce({each}, 0) * weight_ms')} AS {each}_ms" for each in names),
        "weight_ms": summed("weight_ms"),
        "all_ms": ", ".join(with_other),
        "plus_ms": " + ".join(with_other),
        "sums_ms": ", ".join(f"{summed(each)} AS {each}" for each in with_other),
        "most_ms": f"CASE greatest({', '.join(with_other)}) "
        + " ".join(f"WHEN {each} THEN '{each.removesuffix('_ms')}'" for each in with_other)
        + " END",
    }


# Names --------------------------------------------------------------------------------------------------------------


def index_names() -> set[str]:
    """Names of the tables and views that come with an index."""
    return _names(tables("index")) | _names(views("index"))


def run_names() -> set[str]:
    """Names of the tables, views and macros that a run file of any framework may have."""
    from crystalperf.query.inputs.registry import readable

    known = _names(tables("run")) | _names(views("run")) | _names(computed.tables(()))
    for name, framework in readable().items():
        known |= _names(framework.reader.raw()) | _names(views_of(name))
    return known


def _names(found: Iterable[Table] | Iterable[View]) -> set[str]:
    return {each.name for each in found}


def mentions(statement: str, names: Iterable[str]) -> bool:
    """Whether a statement contains one of the names as a word."""
    return re.search(rf"\b({'|'.join(sorted(names))})\b", statement, re.IGNORECASE) is not None


def nearest_column(message: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """The existing column nearest to the missing one in DuckDB's message; None for other messages, or without one."""
    missing = _MISSING_COLUMN.search(message)
    if missing is None:
        return None
    name = next(each for each in missing.groups() if each)
    bound = [each for line in message.split("\n") if line.startswith("Candidate") for each in line.split('"')[1::2]]
    columns = _columns(connection)
    named = {each.lower() for each in re.findall(r"\w+", message)} & columns.keys()  # it repeats the statement's line
    known = {(table, each) for table in named for each in columns[table]}
    known |= {("", each.rpartition(".")[2]) for each in bound}
    others = {(table, each) for table in columns.keys() - named for each in columns[table]}
    return _nearest_column(name, known) or _nearest_column(name, others, of_table=True)


def _nearest_column(name: str, known: Iterable[tuple[str, str]], *, of_table: bool = False) -> str | None:
    """The column, of (table, column), that has most words of a name, or parts of them; None if it lacks the last one.
    With `of_table`, as `table.column`.

    The words of a table count as those of its columns: `stage_nam` is the `name` of `stages`.
    """
    words = name.lower().split("_")

    def score(table: str, column: str) -> tuple[float, float, str]:
        shown = f"{table}.{column}" if of_table else column
        own = column.lower().split("_")
        found = [_alike(word, [*own, table.removesuffix("s")]) for word in words]
        whole = difflib.SequenceMatcher(None, name.lower(), column.lower()).ratio()
        if not _alike(words[-1], own) and whole < _SIMILAR:
            return 0.0, 0.0, shown
        return max(sum(found) / len(words), whole), whole, shown

    (most, _, column) = max((score(*each) for each in sorted(known)), default=(0.0, 0.0, ""))
    return column if most >= _MIN_SCORE else None


def _alike(word: str, others: Iterable[str]) -> bool:
    """Whether a word is the start of one of the others, begins with one, or is spelled like one."""
    return any(
        (len(min(word, each, key=len)) > 2 and (each.startswith(word) or word.startswith(each)))
        or difflib.SequenceMatcher(None, word, each).ratio() >= _SIMILAR
        for each in others
    )


def nearest_table(name: str, connection: duckdb.DuckDBPyConnection) -> str | None:
    """The table or view of a connection with the most similar name; None if none is similar."""
    existing = _existing(connection, "table_name")
    for table, kind in (("tasks", "run"), ("functions", "index")):
        existing |= _names(views(kind)) if table in existing else set()
    return nearest(name, existing)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The most similar one of the known names; None if none is similar."""
    plain = {each.rpartition(".")[2].lower(): each for each in sorted(known, reverse=True)}
    found = difflib.get_close_matches(name.lower(), plain, 1, 0.6)
    return plain[found[0]] if found else None


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """The columns of each table and view of a connection."""
    try:
        return dict(
            connection.execute(
                "SELECT lower(table_name), list(column_name) FROM duckdb_columns() WHERE NOT internal GROUP BY ALL"
            ).fetchall()
        )
    except duckdb.Error:
        return {}


def _existing(connection: duckdb.DuckDBPyConnection, what: str) -> set[str]:
    try:
        return {
            name for (name,) in connection.execute(f"SELECT {what} FROM duckdb_columns() WHERE NOT internal").fetchall()
        }
    except duckdb.Error:
        return set()
