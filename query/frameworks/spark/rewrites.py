"""Kinds of recommendations that give a query another plan."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.recommendations import Affected, ChangeSetting, Recommendation

# Joins ----------------------------------------------------------------------------------------------------------------


@frozen
class Side:
    """A side of a join: the table that its rows come from, empty if they come from several; its rows, and their bytes
    in memory; and whether they are groups of the table's rows."""

    table: str
    rows: float
    size_bytes: float
    grouped: bool = False


@frozen
class JoinFacts:
    """A join in a stage: its operator, the columns of its keys, its sides by size, the number of other joins that the
    change affects, and whether it only filters the large side (IN, EXISTS, left_semi)."""

    stage: str
    operator: str
    keys: tuple[str, ...]
    large: Side
    small: Side
    others: int
    filters: bool = False


@frozen(kw_only=True)
class BroadcastSmallSide(Recommendation):
    """Broadcast the small side of a join, up to `most_bytes`, which fit the driver; `settings` are empty if only a hint
    makes Spark do that."""

    kind: ClassVar[str] = "broadcast-small-side"

    join: JoinFacts
    most_bytes: float

    @property
    def changes(self) -> frozenset[Hashable]:
        """The join, which has one best form."""
        return super().changes | {("join", self.join.stage)}


@frozen(kw_only=True)
class HashShuffledJoin(ChangeSetting):
    """Join by a hash table of the small side's partitions instead of sorting both sides.

    `partition_bytes` is the largest partition of the small side; `settings` are empty if only a hint makes Spark do it.
    """

    kind: ClassVar[str] = "hash-shuffled-join"

    join: JoinFacts
    partition_bytes: float

    @property
    def changes(self) -> frozenset[Hashable]:
        """The join, which has one best form."""
        return super().changes | {("join", self.join.stage)}


Rewriting = Literal["alternatives", "not-in", "range", "inequality", "function", "filter"]
"""How the condition of a join that compares all pairs can get an equality.

alternatives  it has equalities, joined by OR: a union of joins, one for each
not-in        NOT IN, which has to compare with nulls: NOT EXISTS, an anti join
range         a value lies between two of the other side: equal buckets of the value, and the exact condition
inequality    one comparison of the sides: buckets, if matches lie close together
function      a function of both sides: an expression of each side that is equal for all pairs that match
filter        it has no condition, but a filter above it has an equality of the sides
"""


@frozen(kw_only=True)
class JoinByKey(Recommendation):
    """Give a join of all pairs an equality: it compared `pairs` pairs, of which `matches` matched, None if unknown."""

    kind: ClassVar[str] = "join-by-key"

    join: JoinFacts
    condition: str
    rewriting: Rewriting
    pairs: float
    matches: float | None


# Scans ----------------------------------------------------------------------------------------------------------------


@frozen
class ScanFacts:
    """A scan in a stage whose rows a filter right above it mostly drops.

    `files_bytes` are the bytes of the files that it read, None if unknown; `others` scans had the same problem.
    """

    stage: str
    table: str
    rows_read: float
    rows_kept: float
    files: float | None
    files_bytes: float | None
    others: int


Wrapped = Literal["python", "cast", "function"]
"""The kind of function of a column that a filter compares: a Python function, a cast, or a function of Spark."""


@frozen(kw_only=True)
class FilterPlainColumn(Recommendation):
    """Compare a column itself, so that Spark passes the filter to the scan: it compares `function` of `column`."""

    kind: ClassVar[str] = "filter-plain-column"

    scan: ScanFacts
    wrapped: Wrapped
    function: str
    column: str


@frozen(kw_only=True)
class PrunePartitions(Recommendation):
    """Filter on a column by which a table is partitioned: a query read `partitions` of its partitions.

    `columns` are those columns, empty if the plan does not show them; `by_python` is whether a Python function compared
    one.
    """

    kind: ClassVar[str] = "prune-partitions"

    scan: ScanFacts
    partitions: int
    columns: tuple[str, ...]
    by_python: bool


@frozen(kw_only=True)
class SortFiles(Recommendation):
    """Write a table sorted by the columns that a filter compares: the scan knows the filter, but skips few rows."""

    kind: ClassVar[str] = "sort-files"

    scan: ScanFacts
    columns: tuple[str, ...]


# Repeated work --------------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ReuseExchange(ChangeSetting):
    """Compute the rows once that a query shuffles `times` times, from `tables`.

    `settings` are empty if only the program can.  `rows` and `size_bytes` are those of the first time; `is_same` is
    whether the times select the same columns; `stage` repeated it, as did `others` other parts of plans.  `partitions`
    are enough for the rows if the shuffle makes more, which adaptive execution does not merge if the rows are cached.
    """

    kind: ClassVar[str] = "reuse-exchange"

    stage: str
    tables: tuple[str, ...]
    times: int
    rows: float
    size_bytes: float | None
    is_same: bool
    others: int
    partitions: int | None = None


# Adaptive execution ---------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class EnableAdaptive(ChangeSetting):
    """Let adaptive execution merge small partitions, which is off: `stages` had far more tasks than needed."""

    kind: ClassVar[str] = "enable-adaptive"

    stages: Affected
    a_task_bytes: float

    @property
    def changes(self) -> frozenset[Hashable]:
        """The number of partitions, too, which it sets by their size."""
        return super().changes | {"spark.sql.shuffle.partitions"}
