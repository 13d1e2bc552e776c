"""Python functions of users (UDFs) in plans: their names, and their time on the critical path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb

from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query import sql
from crystalperf.query.diagnose.critical_operators import path_by
from crystalperf.query.execution.execution import Execution
from crystalperf.query.frameworks.spark.remarks import PythonFunctions, PythonGroup
from crystalperf.query.results.answers import NamedPart, PathItem

RUNS_PYTHON = regex("Python|Pandas|InArrow|ArrowEval")
"""In the names of operators that run functions of users in Python workers."""

SCALAR_UDF = "BatchEvalPython"
"""The operator of functions that take one row at a time."""

_CALL = regex(r"(<lambda>|[A-Za-z_]\w*)\(")
_RESULT = regex(r"#(\d{1,18})")


def named_parts(
    connection: duckdb.DuckDBPyConnection, execution: Execution, path: Sequence[PathItem]
) -> list[NamedPart]:
    """The time of Python functions on the critical path, as one part; empty if no plan has any.

    It is the time on the CPU or on no resource of the plan nodes that run them, and of the generated code that feeds
    them (sql_operators).  Several functions of a stage run at the same time, in processes that wait for each other, so
    only their sum is known.
    """
    if not sql.has_rows(connection, "operators"):
        return []
    rows = connection.execute(
        """
        SELECT stage_id, detail FROM operator_stages JOIN operators USING (scope_id, node_id)
        WHERE regexp_matches(name, ?)
        ORDER BY stage_id, node_id DESC
        """,
        [RUNS_PYTHON.pattern],
    ).fetchall()
    names: dict[str, tuple[str, ...]] = {}
    for stage, detail in rows:
        names[stage] = tuple(dict.fromkeys((*names.get(stage, ()), *functions(detail or ""))))
    groups: list[PythonGroup] = []
    whole_ms = dict.fromkeys((CPU, OTHER), 0.0)
    for each in path_by(connection, execution, path, sql.text("path_by_python", __package__)):
        if not (called := names.get(each.name)):
            continue
        own_ms = {name: each.resource_ms.get(name, 0.0) for name in whole_ms}
        groups.append(PythonGroup(called, sum(own_ms.values())))
        whole_ms = {name: ms + own_ms[name] for name, ms in whole_ms.items()}
    return [NamedPart(PythonFunctions(tuple(groups)), whole_ms, "delegated")] if groups else []


def functions(detail: str) -> tuple[str, ...]:
    """The Python functions in a plan node's description, in its order: calls whose result has a number.

    >>> functions("BatchEvalPython [normalise(cast(id#0L as int))#1, score(x#2)#3], [pythonUDF0#4]")
    ('normalise', 'score')
    """
    return tuple(dict.fromkeys(name for name, _ in numbered_functions(detail)))


def numbered_functions(text: str) -> Iterator[tuple[str, int]]:
    """The Python functions in a plan node's description, with the ids of their results, which Spark's profiles have."""
    for match in _CALL.finditer(text):
        depth = 1
        for place in range(match.end(), len(text)):
            depth += {"(": 1, ")": -1}.get(text[place], 0)
            if depth == 0:
                if (number := _RESULT.match(text, place + 1)) is not None:
                    yield match[1], int(number[1])
                break
