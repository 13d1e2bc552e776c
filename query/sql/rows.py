"""Answers as rows, for notebooks and data frames: results of SQL, and the lists in other answers.

Pandas and pyarrow are imported only for a data frame or an Arrow table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from html import escape
from typing import TYPE_CHECKING, Any

from crystalperf.indexes.frozen import frozen

if TYPE_CHECKING:
    import pandas
    import pyarrow

TIMEOUT_S = 600.0
"""Default timeout of a SELECT, also at the terminal; 0 means no limit."""

MAX_IN_HTML = 60
"""Maximum rows that a notebook shows."""


@frozen
class Rows:
    """Rows of an answer: names of the columns, DuckDB's names of their types, and a tuple of values per row.

    Iteration gives a mapping per row.  Repeated column names are numbered (`m`, `m_2`).
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
        """The values of one column.  Raises KeyError if there is no such column."""
        if name not in self.columns:
            raise KeyError(f"unknown column '{name}'; known columns: {', '.join(self.columns)}")
        number = self.columns.index(name)
        return tuple(row[number] for row in self.rows)

    def arrow(self) -> pyarrow.Table:
        """The rows as a table of Arrow, with DuckDB's types.  Raises ImportError if pyarrow is not installed."""
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
        """The rows as a data frame of pandas.  Raises ImportError if pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "a data frame needs pandas, which the extra crystalperf[pandas] installs", name="pandas"
            ) from error
        return pd.DataFrame.from_records(list(self.rows), columns=list(self.columns))

    def _repr_html_(self) -> str:
        return table_html(self.columns, self.rows)


class Tabular:
    """An answer with a list: `rows()` returns it, data frames and notebooks show it."""

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__}: {sentence_of(self)}>"
        except TypeError:  # opening a run registers the sentences
            return object.__repr__(self)

    def rows(self) -> Rows:
        """The list in the answer, as rows; times in ms.

        For an analysis: one per segment of the critical path.  For a prediction: one per stage.  For several
        predictions and for recommendations: one per scenario.
        """
        return rows_of(self)

    def df(self) -> pandas.DataFrame:
        """rows() as a data frame of pandas.  Raises ImportError if pandas is not installed."""
        return self.rows().df()

    def arrow(self) -> pyarrow.Table:
        """rows() as a table of Arrow.  Raises ImportError if pyarrow is not installed."""
        return self.rows().arrow()

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(sentence_of(self))}</b></p>{self.rows()._repr_html_()}"


@singledispatch
def rows_of(answer: Any) -> Rows:
    """The rows of an answer; query.text.notebook registers them.  Raises TypeError for an answer without a list."""
    raise TypeError(f"{type(answer).__name__} lists nothing")


@singledispatch
def sentence_of(answer: Any) -> str:
    """The sentence that a notebook shows above an answer's rows; query.text.notebook registers it."""
    raise TypeError(f"{type(answer).__name__} has no sentence")


def table_html(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """An HTML table for a notebook; all text is escaped, because names are untrusted."""
    head = "".join(f"<th>{escape(each)}</th>" for each in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(each))}</td>' for each in row)}</tr>" for row in rows[:MAX_IN_HTML]
    )
    more = f"<p>{len(rows) - MAX_IN_HTML} more rows</p>" if len(rows) > MAX_IN_HTML else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def of_mappings(found: Sequence[Mapping[str, Any]]) -> Rows:
    """Rows with the keys of the first mapping as columns, of type BOOLEAN, BIGINT, DOUBLE, else VARCHAR."""
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
    """The Arrow schema that DuckDB itself uses for columns of these types."""
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
    """A value in pyarrow's form: a MAP as its pairs."""
    return list(value.items()) if isinstance(value, dict) and type_.startswith("MAP") else value


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}".replace(",", " ") if isinstance(value, float) else str(value)
