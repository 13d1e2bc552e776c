"""The sentences of recommendations that give a query another plan."""

from __future__ import annotations

from crystalperf.query.frameworks.spark import sentences
from crystalperf.query.frameworks.spark.recommendations import SplitKeys
from crystalperf.query.frameworks.spark.rewrites import (
    BroadcastSmallSide,
    EnableAdaptive,
    FilterPlainColumn,
    HashShuffledJoin,
    JoinByKey,
    JoinFacts,
    PrunePartitions,
    ReuseExchange,
    Rewriting,
    ScanFacts,
    Side,
    SortFiles,
)
from crystalperf.query.frameworks.spark.sentences import setting_lines
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import counted_digits
from crystalperf.query.text.recommendations import change_setting, setting_text
from crystalperf.query.trace.amounts import counted, grouped, volume

SENTENCES = Sentences(base=sentences.SENTENCES)


def _rows(side: Side) -> str:
    """`3 000 rows (items, 72 kB)`."""
    table = f"{'groups of ' if side.grouped else ''}{side.table}, " if side.table else ""
    return f"{grouped(round(side.rows))} rows ({table}{volume(side.size_bytes)})"


def _others(join: JoinFacts) -> str:
    return f"; {counted(join.others, 'more join')} like it" if join.others else ""


def _a_join(join: JoinFacts) -> str:
    return "a join that only filters rows (IN, EXISTS, left_semi)" if join.filters else "a join"


def _key(join: JoinFacts) -> str:
    """The argument of DataFrame.join for the keys."""
    return f'"{join.keys[0]}"' if len(join.keys) == 1 else "keys"


def _setting(found: BroadcastSmallSide | HashShuffledJoin) -> str:
    return f"{setting_text(found.settings[0])}: " if found.settings else ""


@SENTENCES.of(BroadcastSmallSide)
def broadcast_small_side(found: BroadcastSmallSide, _words: Words) -> str:
    join = found.join
    do = "broadcasts" if found.settings else "Broadcast"
    return (
        f"{_setting(found)}{do} the small side of {_a_join(join)}: {join.operator} in {join.stage} shuffles"
        f" {_rows(join.large)} to join {_rows(join.small)}{_others(join)}; not if that may grow beyond"
        f" {volume(found.most_bytes)}"
    )


@SENTENCES.lines(BroadcastSmallSide)
def broadcast_hint(found: BroadcastSmallSide, words: Words) -> tuple[str, ...]:
    kind = ', "left_semi"' if found.join.filters else ""
    hint = f"df.join(broadcast(small), {_key(found.join)}{kind})"
    if not found.settings:
        return (hint, "# in SQL: SELECT /*+ BROADCAST(small) */ …")
    return (*setting_lines(found, words), f"# or for one join: {hint}")


@SENTENCES.of(HashShuffledJoin)
def hash_shuffled_join(found: HashShuffledJoin, _words: Words) -> str:
    join = found.join
    do = "hashes" if found.settings else "Hash"
    return (
        f"{_setting(found)}{do} the small side of a join instead of sorting both: {join.operator} in {join.stage} sorts"
        f" {_rows(join.large)} and {_rows(join.small)}{_others(join)}; not if its partitions, now up to"
        f" {volume(found.partition_bytes)}, may outgrow a task's memory"
    )


@SENTENCES.lines(HashShuffledJoin)
def hash_hint(found: HashShuffledJoin, words: Words) -> tuple[str, ...]:
    hint = f'df.join(small.hint("shuffle_hash"), {_key(found.join)})'
    return (*setting_lines(found, words), f"# or for one join: {hint}") if found.settings else (hint,)


_PAIRS: dict[Rewriting, str] = {
    "alternatives": "join once for each of its equalities, and unite the results without duplicates",
    "not-in": "use NOT EXISTS or a left_anti join: NOT IN compares every row because of nulls",
    "range": "join on equal buckets of the value, and keep the exact condition",
    "inequality": "join on equal buckets of the value, if pairs that match lie close together",
    "function": "join on an expression of each side that is equal for all pairs that match",
    "filter": "join on the columns that the filter after it compares",
}


@SENTENCES.of(JoinByKey)
def join_by_key(found: JoinByKey, _words: Words) -> str:
    join = found.join
    matched = f", of which {counted_digits(found.matches)} match" if found.matches is not None else ""
    return (
        f"Give a join an equality: {join.operator} in {join.stage} compares all {counted_digits(found.pairs)} pairs of"
        f" {counted_digits(join.large.rows)} and {counted_digits(join.small.rows)} rows{matched}, by {found.condition};"
        f" {_PAIRS[found.rewriting]}{_others(join)}"
    )


@SENTENCES.lines(JoinByKey)
def join_by_key_lines(found: JoinByKey, _words: Words) -> tuple[str, ...]:
    return _PAIR_LINES[found.rewriting]


_PAIR_LINES: dict[Rewriting, tuple[str, ...]] = {
    "alternatives": (
        "a.join(b, a.x == b.x).union(a.join(b, a.y == b.y)).distinct()",
        "# instead of a.join(b, (a.x == b.x) | (a.y == b.y))",
    ),
    "not-in": ('a.join(b, a.x == b.x, "left_anti")  # if x is never null',),
    "range": (
        'a.withColumn("bucket", expr("value div w"))  # w: the width',
        'b.withColumn("bucket", explode(expr("sequence(low div w, high div w)")))',
        '# join on "bucket" and the exact condition',
    ),
    "inequality": (
        'a.withColumn("bucket", expr("value div w"))  # w: the largest difference',
        '# b: the buckets around its value; join on "bucket" and the condition',
    ),
    "function": ("a.join(b, (f(a.x) == g(b.x)) & condition)  # equal for all matches",),
    "filter": ("a.join(b, a.x == b.x)  # instead of a.crossJoin(b)",),
}


@SENTENCES.of(ReuseExchange)
def reuse_exchange(found: ReuseExchange, _words: Words) -> str:
    size = f", {volume(found.size_bytes)}" if found.size_bytes is not None else ""
    what = f"computes and shuffles the same rows {found.times} times ({grouped(round(found.rows))} rows{size}"
    tables = f" of {', '.join(found.tables)}" if found.tables else ""
    others = f", and {counted(found.others, 'more part')} of plans" if found.others else ""
    if found.settings:
        return f"{setting_text(found.settings[0])}: a query {what}{tables}; {found.stage}{others})"
    why = "" if found.is_same else "; the times differ in their columns"
    return (
        f"Compute the rows once: a query {what}{tables}; {found.stage}{others}){why}; not if they do not fit in memory"
        " or on disk"
    )


@SENTENCES.lines(ReuseExchange)
def reuse_lines(found: ReuseExchange, words: Words) -> tuple[str, ...]:
    if found.settings:
        return setting_lines(found, words)
    if found.partitions is None:
        return ("df = df.cache()  # before its columns are selected",)
    return (
        f"df = df.coalesce({found.partitions}).cache()  # before its columns are selected",
        "# Without coalesce, cached rows keep all shuffle partitions: adaptive execution does not merge them.",
    )


@SENTENCES.of(EnableAdaptive)
def enable_adaptive(found: EnableAdaptive, words: Words) -> str:
    stages = found.stages
    more = f" and {stages.others} more" if stages.others else ""
    return (
        f"{change_setting(found, words)}: adaptive execution merges small partitions ({stages.stage}{more}:"
        f" {counted(stages.tasks, 'task')} of {volume(found.a_task_bytes)} on average)"
    )


# Scans


def _read(scan: ScanFacts) -> str:
    """`of 4 000 000 rows of events that stage:3.0 reads (2 files, 193 MiB), the filter `…` keeps 52`."""
    files = "" if scan.files is None else f" ({counted(int(scan.files), 'file')}"
    if files:
        files += ")" if scan.files_bytes is None else f", {volume(scan.files_bytes)})"
    others = f" and {counted(scan.others, 'more scan')}" if scan.others else ""
    return (
        f"of {grouped(round(scan.rows_read))} rows of {scan.table} that {scan.stage}{others} reads{files}, the filter"
        f" keeps {grouped(round(scan.rows_kept))}"
    )


@SENTENCES.of(FilterPlainColumn)
def filter_plain_column(found: FilterPlainColumn, _words: Words) -> str:
    what = {"python": "the Python function ", "cast": "", "function": ""}[found.wrapped]
    return (
        f"Filter on {found.column} itself, not on {what}{found.function} of it, so that Spark skips rows in files:"
        f" {_read(found.scan)}; no effect if rows that match are in all parts of the files"
    )


@SENTENCES.lines(FilterPlainColumn)
def filter_lines(found: FilterPlainColumn, _words: Words) -> tuple[str, ...]:
    return (f'df.filter("{found.column} >= … AND {found.column} < …")',)


@SENTENCES.of(PrunePartitions)
def prune_partitions(found: PrunePartitions, _words: Words) -> str:
    by = f" {', '.join(found.columns)}" if found.columns else " its partition columns"
    how = ", without a Python function" if found.by_python else " too"
    return (
        f"Filter on{by}{how}, so that Spark reads fewer of the {grouped(found.partitions)} partitions of"
        f" {found.scan.table}: {_read(found.scan)}; no effect if all partitions have such rows"
    )


@SENTENCES.lines(PrunePartitions)
def prune_lines(found: PrunePartitions, _words: Words) -> tuple[str, ...]:
    column = found.columns[0] if found.columns else "partition_column"
    return (f'df.filter("{column} BETWEEN … AND …")  # next to the other filter',)


@SENTENCES.of(SortFiles)
def sort_files(found: SortFiles, _words: Words) -> str:
    columns = ", ".join(found.columns)
    return (
        f"Write {found.scan.table} sorted by {columns}, if it is read more often than written: {_read(found.scan)}, but"
        " such rows are in all parts of the files"
    )


@SENTENCES.lines(SortFiles)
def sort_lines(found: SortFiles, _words: Words) -> tuple[str, ...]:
    columns = ", ".join(f'"{each}"' for each in found.columns)
    return (f"df.sort({columns}).write.parquet(path)  # once",)


# Skew


@SENTENCES.lines(SplitKeys)
def salt_lines(found: SplitKeys, _words: Words) -> tuple[str, ...]:
    parts = max(2 * found.slots, 4)
    salted = f'withColumn("salt", (rand() * {parts}).cast("int"))'
    if found.operator == "join":
        copies = f'withColumn("salt", explode(expr("sequence(0, {parts - 1})")))'
        return (f"large = large.{salted}", f"small = small.{copies}", 'large.join(small, [key, "salt"])')
    if found.operator == "window":
        return (f"df = df.{salted}", '# the first n rows by Window.partitionBy(key, "salt"), then by key')
    if found.operator == "repartition":
        return (f'df.repartition(n, key, (rand() * {parts}).cast("int"))',)
    if found.operator == "aggregation":
        return (f"df = df.{salted}", 'df.groupBy(key, "salt").agg(…).groupBy(key).agg(…)')
    return ()
