"""Recommendations on scans: filters that do not reach files, and tables whose files do not fit the filters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark import plan_costs as costs
from crystalperf.query.frameworks.spark.plans import ROWS, Plan, amount, table
from crystalperf.query.frameworks.spark.rewrites import (
    FilterPlainColumn,
    PrunePartitions,
    ScanFacts,
    SortFiles,
    Wrapped,
)
from crystalperf.query.frameworks.spark.sql_operators import Node
from crystalperf.query.results.recommendations import GUESSED, Candidate

MAX_KEPT = 0.2
"""Largest share of rows that a filter keeps if reading fewer of them is worth a change of the program …"""

MAX_KEPT_SORTED = 0.01
"""… and of the files: sorted, they are read in row groups."""

FEWEST_ROWS = 1e5
"""Fewest rows of a scan that is worth it."""

FEWEST_ROWS_SORTED = 1e6
"""A scan of fewer rows may have read a single row group, as it does if the files are sorted."""

_SKIPS_ROWS = regex(r"parquet|orc|delta|iceberg", re.IGNORECASE)
"""Formats with minima and maxima of columns, by which Spark skips parts of files."""

_COLUMN = r"[A-Za-z_][\w.]*#\d+L?"
_VALUE = r"(?:[^()#]|\([^()#]*\))+"
_PLAIN = regex(
    rf"\(?(?:{_COLUMN} (?:=|<=>|<|>|<=|>=|IN) \(?{_VALUE}|{_VALUE} (?:=|<|>|<=|>=) {_COLUMN}|{_COLUMN} INSET .*"
    rf"|StartsWith\({_COLUMN}, .*)\)*"
)
_NULL = regex(r"\(?is(not)?null\(.*\)\)?")
_WRAPPED = regex(
    rf"(cast|year|month|dayofmonth|hour|to_date|date_format|date_trunc|trunc|substring|substr|concat|coalesce|floor|ceil"
    rf"|unix_timestamp|from_unixtime|date_add|date_sub|left)\((?:[\w ,']*?, )?({_COLUMN})"
)
"""Functions of a column whose comparison can be written as one of the column itself."""

_ARITHMETIC = regex(rf"\(({_COLUMN}) ([-+*/]) [\d.]+\)")
_PYTHON = regex(r"pythonUDF\d+#\d+")
_NUMBER = regex(r"#\d+L?")


@frozen
class Filtered:
    """A scan below a filter; `conditions` are the parts of that, all of which have to hold."""

    plan: Plan
    scan: Node
    stage: StageStats
    conditions: tuple[str, ...]
    read: float
    kept: float
    python: str

    @property
    def kept_share(self) -> float:
        return self.kept / self.read

    @property
    def most_ms(self) -> float:
        """The time of reading and filtering the rows that were not kept."""
        return self.stage.facts.path_ms * (1 - costs.starting_share(self.stage)) * (1 - self.kept_share)

    def facts(self, others: int) -> ScanFacts:
        files = amount(self.scan, "number of files read"), amount(self.scan, "size of files read")
        return ScanFacts(self.stage.facts.id, table(self.scan), self.read, self.kept, *files, others)


def candidates(plans: Sequence[Plan], details: Mapping[str, StageStats]) -> Iterator[Candidate]:
    """At most one recommendation of each kind for a table, with the sum of its scans."""
    found = [each for plan in plans for each in filtered(plan, details)]
    wrapping = [(each, wrapped(each)) for each in found]
    by_function = {id(each): how for each, how in wrapping if how is not None and each.kept_share <= MAX_KEPT}
    unpruned = {id(each): columns for each in found if (columns := unpruned_by(each)) is not None}
    for same in _by_table(each for each in found if id(each) in unpruned):
        first, partitions = same[0], amount(same[0].scan, "number of partitions read") or 0.0
        yield _at_most(
            same,
            PrunePartitions(
                price="code", because="plan", saving=GUESSED, scan=first.facts(len(same) - 1),
                partitions=int(partitions), columns=unpruned[id(first)], by_python=bool(first.python),
            ),
        )  # fmt: skip
    for same in _by_table(each for each in found if id(each) in by_function and id(each) not in unpruned):
        how, function, column = by_function[id(same[0])]
        yield _at_most(
            same,
            FilterPlainColumn(
                price="code", because="plan", saving=GUESSED, scan=same[0].facts(len(same) - 1),
                wrapped=how, function=function, column=column,
            ),
        )  # fmt: skip
    for same in _by_table(each for each in found if id(each) not in {*unpruned, *by_function} and needs_sorting(each)):
        columns = compared(same[0].conditions)
        yield _at_most(
            same,
            SortFiles(price="code", because="plan", saving=GUESSED, scan=same[0].facts(len(same) - 1), columns=columns),
        )


def _at_most(same: Sequence[Filtered], value: FilterPlainColumn | PrunePartitions | SortFiles) -> Candidate:
    stages = {each.stage.facts.id: each.most_ms for each in same}
    return Candidate(value, at_most_ms=sum(stages.values()))


def _by_table(found: Iterator[Filtered]) -> list[list[Filtered]]:
    """Scans of the same table, those with the most time first."""
    groups: dict[str, list[Filtered]] = {}
    for each in sorted(found, key=lambda one: -one.most_ms):
        groups.setdefault(table(each.scan), []).append(each)
    return list(groups.values())


def filtered(plan: Plan, details: Mapping[str, StageStats]) -> Iterator[Filtered]:
    """Scans with a filter right above, as far as the log has their rows."""
    for scan in plan.nodes:
        if scan.what.kind != "scan" or not _SKIPS_ROWS.search(f"{scan.name} {scan.detail}"):
            continue
        stage = next((details[each] for each in scan.metrics if each in details), None)
        read = amount(scan, ROWS)
        if stage is None or stage.facts.path_ms <= 0 or read is None or read < FEWEST_ROWS:
            continue
        conditions, kept, python = _filters(plan, scan)
        if conditions and kept is not None:
            yield Filtered(plan, scan, stage, tuple(conditions), read, kept, python)


def _filters(plan: Plan, scan: Node) -> tuple[list[str], float | None, str]:
    """The conditions of the filters right above a scan, the rows that they keep, and the Python functions between."""
    conditions: list[str] = []
    kept, python = None, ""
    for node in plan.above(scan):
        if node.what.kind == "filter":
            conditions += conjuncts(node.detail.removeprefix("Filter").strip())
            kept = amount(node, ROWS)
        elif node.what.kind == "python":
            python = node.detail
        elif node.what.kind not in ("columnartorow", "inputadapter", "wholestagecodegen", "project"):
            break
    uses_python = any(_PYTHON.search(each) for each in conditions)
    return conditions, kept, python if uses_python else ""


def conjuncts(text: str) -> list[str]:
    """The parts of a condition that are joined by AND, without outer parentheses.

    >>> conjuncts("(isnotnull(a#1) AND ((a#1 = 3) OR (a#1 = 4)))")
    ['isnotnull(a#1)', '((a#1 = 3) OR (a#1 = 4))']
    """
    parts, depth, begin, place = [], 0, 0, 0
    inner = text[1:-1] if text.startswith("(") and _closes_at_end(text) else text
    while place < len(inner):
        depth += {"(": 1, ")": -1}.get(inner[place], 0)
        if depth == 0 and inner.startswith(" AND ", place):
            parts.append(inner[begin:place])
            begin = place + 5
        place += 1
    if not parts:
        return [text] if text else []
    return [each for part in (*parts, inner[begin:]) for each in conjuncts(part)]


def _closes_at_end(text: str) -> bool:
    depth = 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return place == len(text) - 1
    return False


def wrapped(found: Filtered) -> tuple[Wrapped, str, str] | None:
    """The kind of function that the filter compares, its name, and its column; None if a part of the filter compares a
    column itself, which reaches the scan, or if it has no such function."""
    own = [each for each in found.conditions if not _NULL.fullmatch(each)]
    if not own or any(_PLAIN.fullmatch(each) for each in own):
        return None
    for each in own:
        if _PYTHON.search(each) and (called := re.search(rf"(\w+)\(({_COLUMN})", found.python)):
            return "python", called[1], _NUMBER.sub("", called[2])
        if match := _WRAPPED.search(each):
            return ("cast" if match[1] == "cast" else "function"), match[1], _NUMBER.sub("", match[2])
        if match := _ARITHMETIC.search(each):
            return "function", match[2], _NUMBER.sub("", match[1])
    return None


def unpruned_by(found: Filtered) -> tuple[str, ...] | None:
    """The columns by which a table is partitioned whose query read all partitions although it kept few rows; empty if
    the plan does not show them, None if that is not so."""
    partitions = amount(found.scan, "number of partitions read") or 0.0
    if partitions < 2 or found.kept_share > MAX_KEPT or "PartitionFilters: []" not in found.scan.detail:
        return None
    listed = re.search(r"\[([^\]]*)\]", found.scan.detail)
    schema = re.search(r"ReadSchema: struct<(.*)", found.scan.detail)
    if listed is None or schema is None or "..." in schema[1] or not schema[1].endswith(">"):
        return ()
    stored = set(re.findall(r"(?:^|,)(\w+):", schema[1]))
    columns = [_NUMBER.sub("", each.strip()) for each in listed[1].split(",")]
    return tuple(each for each in columns if re.fullmatch(r"\w+", each) and each not in stored)


def needs_sorting(found: Filtered) -> bool:
    """Whether a scan knows its filter, but skips few of the rows that it drops."""
    few = found.kept_share <= MAX_KEPT_SORTED and found.read >= FEWEST_ROWS_SORTED
    return few and bool(compared(found.conditions))


def compared(conditions: Sequence[str]) -> tuple[str, ...]:
    """The columns that a filter compares themselves."""
    plain = (each for each in conditions if _PLAIN.fullmatch(each))
    return tuple(dict.fromkeys(_NUMBER.sub("", name) for each in plain for name in re.findall(_COLUMN, each)))
