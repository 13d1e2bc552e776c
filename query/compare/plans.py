"""The hash of a run's plans, by which runs of one job are recognised: their structure, without names of data."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

import duckdb

from crystalperf.indexes.regex import regex

_DIGITS = regex(r"[0-9]+")
_NUMBER = regex(r" \(\d+\)$")

_OPERATORS = "SELECT scope_id, node_id, parent_id, name FROM operators ORDER BY scope_id, node_id"
_STAGES = "SELECT DISTINCT coalesce(name, '') FROM stages"


def plan_hash(connection: duckdb.DuckDBPyConnection, adapters: Collection[str] = ()) -> str:
    """A hash of the distinct plans of a run's scopes: operators and their inputs; without plans, the names of stages.

    Operators in `adapters` (Comparer.adapters) are left out, because plans have or lack them by the number of slots and
    the size of the data.  Numbers are removed, because ids, lines and sizes change from run to run.
    """
    rows = connection.execute(_OPERATORS).fetchall()
    if not rows:
        names = {_DIGITS.sub("", name) for (name,) in connection.execute(_STAGES).fetchall()}
        return _hash(names)
    inputs: dict[tuple[str, int | None], list[tuple[int, str]]] = {}
    nodes = {(scope, node) for scope, node, _, _ in rows}
    for scope, node, parent, name in rows:
        inputs.setdefault((scope, parent if (scope, parent) in nodes else None), []).append((node, name))
    return _hash({_plan(scope, inputs, adapters) for scope, parent in inputs if parent is None})


def _plan(scope: str, inputs: dict[tuple[str, int | None], list[tuple[int, str]]], adapters: Collection[str]) -> str:
    """The operators of a scope, each after the number of those that it passes its rows through."""
    found, waiting = [], [(node, name, 0) for node, name in reversed(inputs[scope, None])]
    seen = set[int]()
    while waiting:
        node, name, depth = waiting.pop()
        if node in seen:  # a damaged log may have a cycle
            continue
        seen.add(node)
        plain = _NUMBER.sub("", name)
        kept = plain not in adapters
        if kept:
            found.append(f"{depth} {_DIGITS.sub('', plain)}")
        waiting += [(each, its, depth + kept) for each, its in reversed(inputs.get((scope, node), ()))]
    return "\n".join(found)


def _hash(texts: Collection[str]) -> str:
    return sha256("\n\n".join(sorted(texts)).encode()).hexdigest()[:16]
