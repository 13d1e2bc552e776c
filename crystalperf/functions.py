"""The Python API of an index: its functions with their resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from crystalperf.indexes.frozen import frozen
from crystalperf.query.sql.rows import TIMEOUT_S, Rows, of_mappings

if TYPE_CHECKING:
    import pandas
    import pyarrow

MOST = 100
"""Default maximum functions of an answer."""


@frozen
class Function:
    """A function of an index.

    qualified_name  as its language writes it
    label           the resource that takes most of its time
    share           that share, 0 to 1
    confidence      calibrated probability that the label is right, 0 to 1
    resources       share of its time by resource, 0 to 1; they sum to 1
    where           FILE:LINE, relative to the root of the source
    symbol          unique, stable name
    facts           its other columns in the index's table `functions` (indexes/schema.sql)

    """

    index_name: str
    qualified_name: str
    label: str
    share: float
    confidence: float
    resources: Mapping[str, float]
    where: str
    symbol: str
    facts: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"<Function {self.qualified_name} {self.label} {self.share:.2f}, {self.where}>"


@frozen
class Functions:
    """A page of the `total` matching functions: a sequence, and rows for data frames."""

    found: tuple[Function, ...]
    total: int

    def __repr__(self) -> str:
        first = f", first {self.found[0].qualified_name}" if self.found else ""
        return f"<Functions {len(self.found)} of {self.total}{first}>"

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Function]:
        return iter(self.found)

    def __getitem__(self, position: int) -> Function:
        return self.found[position]

    def rows(self) -> Rows:
        """One row per function."""
        return of_mappings(
            [
                {"qualified_name": each.qualified_name, "label": each.label, "share": each.share}
                | {"confidence": each.confidence, **each.resources}
                | {"where": each.where, "index_name": each.index_name, "symbol": each.symbol}
                for each in self.found
            ]
        )

    def df(self) -> pandas.DataFrame:
        """rows() as a pandas data frame.  Raises ImportError if pandas is not installed."""
        return self.rows().df()

    def arrow(self) -> pyarrow.Table:
        """rows() as an Arrow table.  Raises ImportError if pyarrow is not installed."""
        return self.rows().arrow()

    def _repr_html_(self) -> str:
        return self.rows()._repr_html_()


@frozen
class Index:
    """An index by name, such as `jdk-17`; files are opened by the first query."""

    name: str

    def functions(
        self,
        name: str = "",
        *,
        class_name: str = "",
        text: str = "",
        resource: str = "",
        limit: int = MOST,
        offset: int = 0,
    ) -> Functions:
        """The functions that match all filters, sorted by name, file and line; at most `limit` after `offset`.

        name        the qualified name, or the part of it after any dot
        class_name  the enclosing type, or the part of it after any dot
        text        a part of the qualified name, ignoring case
        resource    the resource with the largest share of the function's time

        Raises IndexFileError if there is no such index, SettingError if there is no such resource.
        """
        from crystalperf.query.lookup.functions import Wanted, find

        filters = Wanted(name=name, class_name=class_name, text=text, resource=resource)
        found, total = find(self.name, filters, limit=limit, offset=offset)
        return Functions(tuple(map(_function, found)), total)

    def sql(self, statement: str, *, timeout_s: float = TIMEOUT_S) -> Rows:
        """The rows of one SELECT over the index's tables and views, as in Run.sql()."""
        from crystalperf.query.statements.whole import answer

        return answer(statement, None, [self.name], timeout_s)


def index(name: str) -> Index:
    """The index of that name.  Raises IndexFileError if there is none."""
    from crystalperf.indexes.exports import locate

    locate(name)
    return Index(name)


def _function(facts: Mapping[str, Any]) -> Function:
    from crystalperf.indexes import resources

    shares = {each: float(facts[each]) for each in resources()}
    label = max(shares, key=lambda each: shares[each])
    return Function(
        index_name=facts["index_name"],
        qualified_name=facts["qualified_name"],
        label=label,
        share=shares[label],
        confidence=facts["confidence"],
        resources=shares,
        where=f"{facts['file']}:{facts['first_line']}",
        symbol=facts["symbol"],
        facts=facts,
    )
