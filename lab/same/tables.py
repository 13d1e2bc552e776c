"""Answers as tables: the values of each field in order, by its path; and the form in which the reference stores them.

{"stages": [{"id": "a", "ms": 1}, {"id": "b"}]}  →  {"stages#": [2], "stages[]/id": ["a", "b"],
                                                     "stages[]/ms": [1, null]}
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Column = Sequence[Any] | Mapping[str, Any]
"""All values of a field at one path, or what the reference stores for many values."""
Table = dict[str, Column]

VOLATILE = frozenset(("read_at", "kept_at_ms", "state", "version"))
"""Keys whose values differ from one collection to the next, or from one release to another."""
OURS = frozenset(
    (
        *("schema", "rule", "kind", "basis", "resource", "status", "severity", "measure", "most", "framework"),
        *("bottleneck", "setting", "settings", "question", "questions", "label", "reason"),
    )
)
"""Keys of values that are CrystalPerf's own words, not the log's."""
DIGITS = 10
"""Significant digits of a stored number."""
LONG, FEW = 40, 12
"""Columns with more values are stored as sums, unless they have few texts."""


def tables_of(answers: Mapping[str, Any]) -> dict[str, Table]:
    """Each answer as a table."""
    return {question: table_of(answer) for question, answer in answers.items()}


def table_of(answer: Any) -> Table:
    """An answer as a table."""
    cells: dict[str, dict[int, Any]] = defaultdict(dict)
    rows: dict[str, int] = defaultdict(int)

    def visit(value: Any, path: str, row: int) -> None:
        if isinstance(value, dict):
            for key, each in value.items():
                if key not in VOLATILE:
                    visit(each, f"{path}/{str(key).replace('/', '∕')}" if path else str(key), row)
        elif isinstance(value, list):
            cells[f"{path}#"][row] = len(value)
            for each in value:
                number = rows[f"{path}[]"]
                rows[f"{path}[]"] += 1
                visit(each, f"{path}[]", number)
        else:
            cells[path][row] = _rounded(value)

    visit(answer if isinstance(answer, dict) else {"": answer}, "", 0)
    table: Table = {}
    for path, found in cells.items():
        height = rows[path if path.endswith("[]") else path.rpartition("[]")[0] + "[]"] if "[]" in path else 1
        column = [found.get(row) for row in range(height)]
        if any(column) or not path.endswith("#"):
            table[path] = column  # a list of nulls equals an empty one
    return table


def kept_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The stored form: sums for long columns, no texts for public logs."""
    return {
        name: {
            "public": each["public"],
            "kept": True,
            "answers": {q: kept_table(table, each["public"]) for q, table in each["answers"].items()},
        }
        for name, each in inputs.items()
    }


def kept_table(table: Mapping[str, Column], public: bool) -> Table:
    """The stored form of a table."""
    return {path: kept(path, column, public) for path, column in table.items()}


def kept(path: str, column: Column, public: bool) -> Column:
    """The stored form of a column."""
    if isinstance(column, Mapping):
        return column
    if public and path.replace("[]", "").rpartition("/")[2] not in OURS:
        column = [without_words(each) if isinstance(each, str) else each for each in column]
    if len(column) <= LONG:
        return column
    if all(each is None or is_number(each) for each in column):
        known = [(place, each) for place, each in enumerate(column, 1) if each is not None]
        moment = sum(place * each for place, each in known) / len(column)
        return {"count": len(known), "sum": _rounded(sum(each for _, each in known)), "moment": _rounded(moment)}
    return column if len(set(map(str, column))) <= FEW else {"digest": digest(column)}


def named(text: str) -> list[str]:
    """The stages, vertices, queries … that a sentence names, without their attempts."""
    return sorted(set(re.findall(r"\b[a-z]+:\d+", text)))


def without_words(text: str) -> str:
    """The stored form of a text from a public log."""
    return " ".join((digest([text]), *named(text))) if text else text


def digest(values: Iterable[Any]) -> str:
    """A short name of values."""
    return hashlib.blake2b("\n".join(map(str, values)).encode(), digest_size=6).hexdigest()


def is_number(value: Any) -> bool:
    """Whether a value is a figure."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(value: Any) -> Any:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
