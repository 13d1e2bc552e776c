"""Records that the readers of runs share: columns of tables, and reading problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.redaction import redacted

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Columns = dict[str, npt.NDArray[Any]]
"""One table: column name to a one-dimensional array, masked where values may be unknown; texts, lists and
mappings are object arrays with None for unknown, or `Coded`.  DuckDB reads it directly."""

RunTables = dict[str, Columns]
"""Tables of a run file (the run part of indexes/schema.sql) by name."""

Severity = Literal["info", "data loss", "error"]
"""info: worth knowing; data loss: the tables lack something that happened; error: the input contradicts itself, and a
value was repaired or left out."""

LONGEST_TEXT = 300
"""Maximum characters kept of a text from an input file."""


LARGEST = 2**53
"""Maximum integer in a run's tables, 9 PB: float64 is exact up to it, and sums of a few still fit an int64."""


class Coded:
    """A dictionary-encoded column of texts: in a million rows each text is kept once.

    `codes` are (rows,), indexes of `texts`, which has None for unknown.  It reads like the decoded object array.
    """

    dtype = np.dtype(object)

    def __init__(self, codes: npt.NDArray[Any], texts: Sequence[str | None]) -> None:
        self.codes: npt.NDArray[np.int32] = codes.astype(np.int32)
        self.texts = list(texts)

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return objects(self.texts or [None])[self.codes]

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, int | np.integer):
            return self.texts[self.codes[where]]
        return objects(self.texts or [None])[self.codes[where]]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self.tolist())

    def tolist(self) -> list[str | None]:
        """The texts, row by row."""
        return [self.texts[code] for code in self.codes.tolist()]


def coded(codes: npt.NDArray[Any], texts: Sequence[str | None]) -> Any:
    """A column of texts by their numbers; see Coded."""
    return Coded(codes, texts)


def numbered(column: Any) -> Ints:
    """A number for each row of a column of texts, (rows,): equal for equal texts."""
    texts = column.texts if isinstance(column, Coded) else column.tolist()
    of_text: dict[str | None, int] = {}
    numbers_of_texts = np.array([of_text.setdefault(text, len(of_text)) for text in texts], dtype=np.int64)
    return numbers_of_texts[column.codes] if isinstance(column, Coded) else numbers_of_texts


def renamed(column: npt.NDArray[Any], names: Mapping[str, str]) -> Any:
    """A column of texts replaced by other names, None for texts without one."""
    if isinstance(column, Coded):
        return Coded(column.codes, [names.get(each or "") for each in column.texts])
    return objects([names.get(each) for each in column.tolist()])


CONTRADICTED = "contradicted_dependency"
"""The name of the problem of dependencies that a trace states, but its times contradict."""


@frozen
class Problem:
    """One kind of reading problem; a row of the table import_stats."""

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
        origin, meaning = as_text(origin), as_text(meaning)
        where = None if where is None else as_text(where)
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
    """An object array of one dimension, also if the values are lists."""
    items = list(values)
    return np.fromiter(items, dtype=object, count=len(items))


def integers(values: Iterable[float | None] | npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """A masked int64 array; None, NaN and implausible numbers (see LARGEST) are unknown."""
    array = numbers(values)
    mask = array.mask | (np.abs(array.data) > LARGEST)
    return np.ma.MaskedArray(np.where(mask, 0.0, array.data).astype(np.int64), mask=mask)


def numbers(values: Iterable[float | None] | npt.NDArray[np.float64]) -> Any:
    """A masked float64 array; None and NaN are unknown."""
    given = values if isinstance(values, np.ndarray) else np.array(list(values), dtype=np.float64)
    return np.ma.MaskedArray(given, mask=~np.isfinite(given))


def table(names: str, rows: Iterable[Sequence[Any]], *, whole: str = "", real: str = "") -> Columns:
    """A table of rows with a value for each name; columns named in `whole` are integers, in `real` floats, all others
    texts or lists.  Names are separated by spaces."""
    wholes, reals = whole.split(), real.split()
    columns = list(zip(*rows, strict=True)) or [()] * len(names.split())
    return {
        name: integers(values) if name in wholes else numbers(values) if name in reals else objects(values)
        for name, values in zip(names.split(), columns, strict=True)
    }


def as_text(text: str) -> str:
    """Text that can be encoded: a file's name may have undecodable bytes, which Python keeps as surrogates."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def uses_of(what: str | None) -> frozenset[str]:
    """Kinds of data that the tasks of a stage read and write, from stages.io_kinds: comma-separated words."""
    return frozenset(each for each in (what or "").split(", ") if each)


def shortened(text: str | None, longest: int = LONGEST_TEXT) -> str | None:
    """An input's text on one line, without control characters and secrets, cut to `longest`; None for a blank one."""
    if text is None:
        return None
    line = " ".join(text[: 4 * longest].split())
    if not line.isprintable():
        line = "".join(character for character in line if character.isprintable())
    line = redacted(line)
    return (line if len(line) <= longest else line[: longest - 1] + "…") or None
