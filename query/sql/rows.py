"""Answers as rows: what SQL gives, and what every other answer has to list, for notebooks and data frames.

Neither pandas nor pyarrow is needed until a data frame or an Arrow table is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow

TIMEOUT_S = 600.0
"""How long a SELECT may take unless whoever asks says otherwise, at the terminal too; 0 is for ever."""

MOST_IN_HTML = 60
"""Rows that a notebook shows."""


@dataclass(frozen=True, repr=False)
class Rows:
    """Rows of an answer: names of the columns, their types in DuckDB's words, and a tuple of values per row.

    Iterating gives a mapping per row.  A column name that occurs twice is numbered (`m`, `m_2`).
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __repr__(self) -> str:
        first = f", first {self.rows[0]!r:.200}" if self.rows else ""
        return f"<Rows {len(self.rows)} of ({', '.join(self.columns)}){first}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, position: int) -> dict[str, Any]:
        return dict(zip(self.columns, self.rows[position], strict=True))

    def column(self, name: str) -> tuple[Any, ...]:
        """The values of one column.  Raises KeyError where there is none of that name."""
        if name not in self.columns:
            raise KeyError(f"no column '{name}'; there are {', '.join(self.columns)}")
        number = self.columns.index(name)
        return tuple(row[number] for row in self.rows)

    def arrow(self) -> pyarrow.Table:
        """As a table of Arrow, of DuckDB's types.  Raises ImportError where pyarrow is not installed."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError(
                "an Arrow table needs pyarrow, which the extra crystalperf[arrow] installs", name="pyarrow"
            ) from error
        fields = _schema(self.columns, self.types)
        arrays = [
            pa.array([_arrow_value(row[number], self.types[number]) for row in self.rows], type=field.type)
            for number, field in enumerate(fields)
        ]
        return pa.Table.from_arrays(arrays, schema=fields)

    def df(self) -> pandas.DataFrame:
        """As a data frame of pandas.  Raises ImportError where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "a data frame needs pandas, which the extra crystalperf[pandas] installs", name="pandas"
            ) from error
        return pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))

    def _repr_html_(self) -> str:
        return table_html(self.columns, self.rows)


class Listed:
    """An answer that lists something: `rows()` says what, a data frame and a notebook show it."""

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__}: {sentence_of(self)}>"
        except TypeError:  # no run was opened yet, which registers the sentences
            return object.__repr__(self)

    def rows(self) -> Rows:
        """What the answer lists, as rows; times in ms.

        Of where time went: one per stretch of the critical path.  Of a prediction: one per group.  Of several
        predictions, and of what would help: one per question.
        """
        return rows_of(self)

    def df(self) -> pandas.DataFrame:
        """rows() as a data frame of pandas.  Raises ImportError where pandas is not installed."""
        return self.rows().df()

    def arrow(self) -> pyarrow.Table:
        """rows() as a table of Arrow.  Raises ImportError where pyarrow is not installed."""
        return self.rows().arrow()

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(sentence_of(self))}</b></p>{self.rows()._repr_html_()}"


@singledispatch
def rows_of(answer: Any) -> Rows:
    """The rows of an answer; query.text.notebook has them.  Raises TypeError for one that lists nothing."""
    raise TypeError(f"{type(answer).__name__} lists nothing")


@singledispatch
def sentence_of(answer: Any) -> str:
    """An answer in a sentence, as a notebook shows above its rows; query.text.notebook has them."""
    raise TypeError(f"{type(answer).__name__} has no sentence")


def table_html(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table for a notebook; everything in it is escaped, for names are strangers'."""
    head = "".join(f"<th>{escape(each)}</th>" for each in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(each))}</td>' for each in row)}</tr>" for row in rows[:MOST_IN_HTML]
    )
    more = f"<p>{len(rows) - MOST_IN_HTML} more rows</p>" if len(rows) > MOST_IN_HTML else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def of_mappings(found: Sequence[Mapping[str, Any]]) -> Rows:
    """Rows with the keys of the first mapping as columns; one of numbers is DOUBLE or BIGINT, any other VARCHAR."""
    columns = tuple(found[0]) if found else ()
    rows = tuple(tuple(each.get(name) for name in columns) for each in found)
    return Rows(columns, tuple(_type([row[number] for row in rows]) for number in range(len(columns))), rows)


def _type(values: Sequence[object]) -> str:
    known = [each for each in values if each is not None]
    if known and all(isinstance(each, bool) for each in known):
        return "BOOLEAN"
    if known and all(isinstance(each, int) for each in known):
        return "BIGINT"
    return "DOUBLE" if known and all(isinstance(each, int | float) for each in known) else "VARCHAR"


def _schema(columns: Sequence[str], types: Sequence[str]) -> pyarrow.Schema:
    """The schema that DuckDB itself gives such columns."""
    import pyarrow as pa

    from crystalperf.indexes import guard

    if not columns:
        return pa.schema([])
    connection = guard.fresh()
    try:
        made: Any = connection.sql(f"SELECT {', '.join(f'NULL::{each}' for each in types)} LIMIT 0").to_arrow_table()
    finally:
        connection.close()
    return pa.schema([field.with_name(name) for field, name in zip(made.schema, columns, strict=True)])


def _arrow_value(value: Any, type_: str) -> Any:
    """A value as pyarrow takes it: a MAP as its pairs."""
    return list(value.items()) if isinstance(value, dict) and type_.startswith("MAP") else value


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}".replace(",", " ") if isinstance(value, float) else str(value)
