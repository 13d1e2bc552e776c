"""Records that the readers of a run share: columns of its tables, and what reading did not take as it stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from query.model.redaction import redacted

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Columns = dict[str, npt.NDArray[Any]]
"""One table: column name to a one-dimensional array, masked where values may be unknown; texts, lists and
mappings are object arrays with None for unknown.  DuckDB reads it as it stands."""

RunTables = dict[str, Columns]
"""Tables of a run file (the run part of indexes/schema.sql) by name."""

Severity = Literal["info", "data loss", "error"]
"""info: worth knowing; data loss: something that happened is not in the tables; error: the input contradicts itself
and a value was repaired or left out."""

LONGEST_TEXT = 300
"""Characters kept of a text that comes out of an input file."""


@dataclass(frozen=True)
class Problem:
    """One kind of thing that reading did not take as it stood; a row of the table import_stats."""

    name: str
    severity: Severity
    origin: str
    count: int
    first_where: str | None
    meaning: str


class Problems:
    """Counts problems by name and origin, so that a million of one kind stay one record.

    The first meaning and place of a kind are kept.
    """

    def __init__(self, start: Iterable[Problem] = ()) -> None:
        self._found: dict[tuple[str, str], Problem] = {}
        for each in start:
            self.add(each.name, each.severity, each.origin, each.first_where, each.meaning, each.count)

    def add(self, name: str, severity: Severity, origin: str, where: str | None, meaning: str, count: int = 1) -> None:
        known = self._found.get((name, origin))
        if known:
            severity, where, meaning, count = known.severity, known.first_where, known.meaning, known.count + count
        self._found[name, origin] = Problem(name, severity, origin, int(count), where, meaning)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._found.values())


def import_stats(problems: Iterable[Problem]) -> Columns:
    """The table import_stats."""
    rows = list(problems)
    columns: Columns = {
        name: objects([getattr(row, name) for row in rows])
        for name in ("name", "severity", "origin", "first_where", "meaning")
    }
    columns["count"] = np.array([row.count for row in rows], dtype=np.int64)
    return columns


def objects(values: Iterable[Any]) -> npt.NDArray[Any]:
    """An object array of one dimension, also where the values are lists."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):
        array[position] = item
    return array


def integers(values: Iterable[float | None] | npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """A masked int64 array; None and NaN are unknown."""
    array = numbers(values)
    return np.ma.MaskedArray(np.where(array.mask, 0.0, array.data).astype(np.int64), mask=array.mask)


def numbers(values: Iterable[float | None] | npt.NDArray[np.float64]) -> Any:
    """A masked float64 array; None and NaN are unknown."""
    given = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=np.float64)
    return np.ma.MaskedArray(given, mask=~np.isfinite(given))


def shortened(text: str | None, longest: int = LONGEST_TEXT) -> str | None:
    """A text of an input on one line, without control characters and secrets, cut to a length; None for a blank one."""
    if text is None:
        return None
    line = " ".join(text[: 4 * longest].split())
    line = redacted("".join(character for character in line if character.isprintable()))
    return (line if len(line) <= longest else line[: longest - 1] + "…") or None
