"""Computed tables for SQL, which only code can fill: the critical path and the findings of a run.

They have rows if a statement mentions them, for the whole run as `analyze` reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from crystalperf.indexes.schema import Table, read
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import text_of

if TYPE_CHECKING:
    from crystalperf.query.results.answers import Debug


@cache
def tables(names: tuple[str, ...]) -> tuple[Table, ...]:
    """The tables, for resources of these names."""
    return read(files("crystalperf.query.sql.views").joinpath("computed.sql").read_text(encoding="utf-8"), names)


def rows(answer: Debug, wanted: Iterable[str]) -> dict[str, list[list[Any]]]:
    """The rows of the wanted tables, from the analysis of the whole run."""
    return {each: _ROWS[each](answer) for each in wanted}


def _critical_path(answer: Debug) -> list[list[Any]]:
    return [
        [number, each.id, each.name, each.start_ms, each.end_ms, *each.resource_ms.values()]
        for number, each in enumerate(answer.critical_path)
    ]


def _findings(answer: Debug) -> list[list[Any]]:
    words = answer.words
    return [
        [each.kind, each.cost_ms, text_of(each, words), each.basis, advice_text(each, words)]
        for each in answer.findings
    ]


_ROWS: dict[str, Callable[[Debug], list[list[Any]]]] = {"critical_path": _critical_path, "findings": _findings}
