"""Queries for functions of indexes: by name, class or resource, with callers, callees and evidence of their vectors.

A function is a mapping with the columns of `functions` (indexes/schema.sql) except its numbers, and `index_name`;
shares have four decimals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from crystalperf.indexes import open_read_only, resources
from crystalperf.indexes.apis import device_api
from crystalperf.indexes.errors import CrystalPerfError, IndexFileError, InputError, Remedy, SettingError
from crystalperf.indexes.exports import Available, available, facts_of, locate, may_have
from crystalperf.indexes.frozen import frozen

MAX_SHOWN = 20
"""Maximum functions of one name to show with callers and callees."""

_IN_ORDER = "qualified_name, file, first_line, symbol"
"""The symbol orders functions on one line, so that pages of results do not overlap."""

Function = dict[str, Any]

Progress = Callable[[str], None]


@frozen
class Wanted:
    """A filter of functions: all conditions that are not empty must hold.

    name        the qualified name is this, or ends in it after a dot; or it is the symbol
    class_name  the enclosing type is this, or ends in it after a dot
    text        the qualified name contains it, ignoring case
    resource    the function's largest share is of this resource
    """

    name: str = ""
    class_name: str = ""
    text: str = ""
    resource: str = ""


def known_names() -> list[str]:
    """Names of the available indexes."""
    return [each.name for each in available()]


def indexes_at_hand() -> tuple[list[dict[str, Any]], list[CrystalPerfError]]:
    """A row per available index, by name, without unpacking prebuilt ones; and errors of unreadable indexes."""
    rows, broken = [], []
    for each in available():
        try:
            rows.append(_listed(each))
        except CrystalPerfError as error:
            broken.append(error)
    return rows, broken


def _listed(index: Available) -> dict[str, Any]:
    facts = facts_of(index)
    return {
        "name": index.name,
        "origin": index.origin,
        "functions": int(facts.get("functions", 0)),
        "built_at": facts.get("built_at", ""),
        "content_hash": facts.get("content_hash"),
        "path": str(index.path),
    }


def find(index_name: str, wanted: Wanted, *, limit: int, offset: int = 0) -> tuple[list[Function], int]:
    """The wanted functions of one index, by name, file and line, and their total number.

    Raises IndexFileError if there is no such index, SettingError if there is no such resource.
    """
    if wanted.resource and wanted.resource not in resources():
        raise SettingError(f"unknown resource '{wanted.resource}'; known resources: {', '.join(resources())}")
    conditions, values = _conditions(wanted)
    with opened(index_name) as connection:
        count = connection.execute(f"SELECT count(*) FROM functions WHERE {conditions}", values).fetchall()[0][0]
        found = connection.execute(
            f"SELECT * FROM functions WHERE {conditions} ORDER BY {_IN_ORDER} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        names = [each[0] for each in found.description or ()]
        rows = [_plain(index_name, dict(zip(names, row, strict=True)))[1] for row in found.fetchall()]
    return rows, int(count)


def _conditions(wanted: Wanted) -> tuple[str, list[object]]:
    conditions = [
        ("(qualified_name = ? OR ends_with(qualified_name, '.' || ?) OR symbol = ?)", 3, wanted.name),
        (
            "(class_name = ? OR ends_with(class_name, '.' || ?) OR package || '.' || class_name = ?)",
            3,
            wanted.class_name,
        ),
        ("contains(lower(qualified_name), lower(?))", 1, wanted.text),
        (f"{_largest()} = ?", 1, wanted.resource),
    ]
    used = [(condition, [text] * count) for condition, count, text in conditions if text]
    return " AND ".join(each for each, _ in used) or "true", [value for _, values in used for value in values]


def _largest() -> str:
    """SQL: the resource with the largest share; the first of several."""
    most = f"greatest({', '.join(resources())})"
    return "CASE " + " ".join(f"WHEN {each} = {most} THEN '{each}'" for each in resources()) + " END"


def of_name(
    function: str,
    names: Sequence[str] = (),
    *,
    why: Callable[[duckdb.DuckDBPyConnection, str, list[Function]], None] = lambda *_: None,
    progress: Progress = lambda _: None,
    passed_over: Callable[[CrystalPerfError], None] = lambda _: None,
) -> tuple[list[Function], int]:
    """Functions whose qualified name is, or ends in, this one, with `callers` and `callees`; and the number of further
    ones.

    `names` are the indexes to search; empty for all available ones, of which unreadable ones go to `passed_over`.
    `why` may add evidence from an index's open file to its functions.  Raises InputError if no function has the name.
    """
    if not function.strip():
        raise SettingError("FUNCTION: empty; give a function's name, or the end of it")
    chosen = list(names) or known_names()
    if not chosen:
        raise IndexFileError("there is no index", Remedy("build the index", {"index": "jdk-17"}))
    simple_name = function.removesuffix("().").rpartition(".")[2]
    at_hand = {each.name: each for each in available()}
    found: list[Function] = []
    more = 0
    for name in chosen:
        try:
            if not names and not may_have(at_hand[name], simple_name):
                continue
            progress(f"opening index {name}")
            path = locate(name)
            connection = open_read_only(path, "index")
        except IndexFileError as error:
            if names:
                raise
            passed_over(error)
            continue
        try:
            rows, left = _matching(connection, name, function, MAX_SHOWN - len(found))
            why(connection, name, rows)
        finally:
            connection.close()
        found += rows
        more += left
    if not found:
        raise InputError(f"{function}: no function with that name in {', '.join(chosen)}")
    return found, more


def _matching(
    connection: duckdb.DuckDBPyConnection, index_name: str, function: str, most: int
) -> tuple[list[Function], int]:
    conditions, values = _conditions(Wanted(name=function))
    rows = connection.execute(f"SELECT * FROM functions WHERE {conditions} ORDER BY {_IN_ORDER}", values).fetchall()
    names = [each[0] for each in connection.description or ()]
    found = []
    for row in rows[: max(most, 0)]:
        number, facts = _plain(index_name, dict(zip(names, row, strict=True)))
        callers = connection.execute(
            "SELECT DISTINCT qualified_name FROM calls JOIN functions ON function_id = caller_id WHERE callee_id = ?"
            " ORDER BY qualified_name",
            [number],
        ).fetchall()
        callees = connection.execute(
            "SELECT DISTINCT coalesce(qualified_name, callee_name) AS name FROM calls"
            " LEFT JOIN functions ON function_id = callee_id WHERE caller_id = ? ORDER BY name",
            [number],
        ).fetchall()
        found.append({**facts, "callers": [each[0] for each in callers], "callees": [each[0] for each in callees]})
    return found, len(rows) - len(found)


def _plain(index_name: str, row: dict[str, Any]) -> tuple[int, Function]:
    """The number of a function in its index, and its public fields."""
    number = row.pop("function_id")
    row.pop("enclosing_id")
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
    return number, {"index_name": index_name, **rounded}


def explain(connection: duckdb.DuckDBPyConnection, found: Sequence[Function]) -> dict[str, str]:
    """Add to each function of one open index the `evidence` and `provenance` of its vector; returns the metadata.

    Evidence is its callees, each with its largest share.  Device APIs among them are marked, also those outside the
    index if class files name their class.
    """
    metadata = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
    most = f"greatest({', '.join(resources())})"
    for facts in found:
        rows = connection.execute(
            f"SELECT DISTINCT qualified_name, concat({_largest()}, ' ', round(100 * {most}), ' %')"
            " FROM calls JOIN functions ON function_id = callee_id"
            " WHERE caller_id = (SELECT function_id FROM functions WHERE symbol = ?) ORDER BY ALL",
            [facts["symbol"]],
        ).fetchall()
        outside = connection.execute(
            "SELECT DISTINCT callee_name, '' FROM calls WHERE callee_id IS NULL AND callee_name LIKE '%_._%'"
            " AND caller_id = (SELECT function_id FROM functions WHERE symbol = ?) ORDER BY ALL",
            [facts["symbol"]],
        ).fetchall()
        callees = {name: _with_api(name, share) for name, share in [*rows, *outside]}
        facts["evidence"] = {"callees": {name: share for name, share in callees.items() if share}}
        facts["provenance"] = provenance(metadata)
    return metadata


def _with_api(name: str, share: str) -> str:
    """A callee's share, and its API if it is a device API; '' if neither is known."""
    class_name, _, method = name.rpartition(".")
    api = device_api(class_name, method)
    if api is None:
        return share
    return f"{share}{', ' if share else ''}{api.resource} API: {api.why}"


def provenance(metadata: Mapping[str, str]) -> dict[str, str]:
    """The provenance of an index's functions and vectors: source, revision, model, build."""
    known = {
        "source": _first_few(json.loads(metadata.get("source", "[]"))),
        "revision": metadata.get("source_revision", ""),
        "source_hash": metadata.get("source_hash", ""),
        "model": " ".join(filter(None, [metadata.get("model_name"), metadata.get("model_hash")])),
        "built": " ".join(filter(None, [metadata.get("built_at"), "by", metadata.get("tool_version")])),
        "content_hash": metadata.get("content_hash", ""),
    }
    return {key: value for key, value in known.items() if value}


def _first_few(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


@contextmanager
def opened(index_name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """An index, opened read-only.  Raises IndexFileError if there is no index of that name."""
    connection = open_read_only(locate(index_name), "index")
    try:
        yield connection
    finally:
        connection.close()
