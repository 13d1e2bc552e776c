"""What a user of Spark can set or write so that a run is shorter, each with its present and its new value.

Numbers of partitions come from the run's own slots and bytes.  A setting is named only where it is what cut the tasks:
spark.sql.shuffle.partitions where a stage has as many tasks, the rules of query.frameworks.spark.partitions for scans.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb

from crystalperf.query.answers.values import Debug
from crystalperf.query.explain.chances import STOPPED, Chance
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.lanes import idle_slots, starting_units
from crystalperf.query.explain.findings.parts import LITTLE_BYTES
from crystalperf.query.explain.findings.stragglers import straggler
from crystalperf.query.frameworks.spark import results
from crystalperf.query.frameworks.spark.findings import PartitionWindow
from crystalperf.query.frameworks.spark.memory import usable_bytes
from crystalperf.query.frameworks.spark.partitions import DEFAULT_PARTITIONS, MIB, size_set
from crystalperf.query.frameworks.spark.rules import (
    MOST_EXECUTORS,
    RULES,
    infers_schema,
    most_slots,
    one_window,
    reads_files,
    reads_schema,
    unasked_slots,
)
from crystalperf.query.frameworks.spark.scheduling import LOCALITY_WAIT
from crystalperf.query.frameworks.spark.settings import flag, is_local, size_bytes, whole
from crystalperf.query.model.amounts import counted, volume
from crystalperf.query.model.execution import Execution
from crystalperf.query.results.findings import (
    Garbage,
    IdleStage,
    Kept,
    MoreData,
    NoWorker,
    Spilling,
    StageCost,
    StartingStage,
    StragglerStage,
)
from crystalperf.query.text.findings import on_one
from crystalperf.query.text.sentences import text_of

PARTITIONS = "spark.sql.shuffle.partitions"
MEMORY = "spark.executor.memory"
PYTHON_MEMORY = "spark.python.worker.memory"
DEFAULT_PYTHON_MEMORY = 512 * 2**20
"""What a Python worker may hold of an RDD before it spills."""
CORES = "spark.executor.cores"
GPU_TASKS = "spark.rapids.sql.concurrentGpuTasks"
OVERHEAD = "spark.executor.memoryOverhead"
DEFAULT_MEMORY = "1g"

A_TASK_BYTES = 64 * MIB
"""What a task reads of a shuffle where adaptive execution cuts it (advisoryPartitionSizeInBytes)."""

_ADAPTIVE = "spark.sql.adaptive.enabled"
_SKEW_JOIN = "spark.sql.adaptive.skewJoin"
_ADVISED = "spark.sql.adaptive.advisoryPartitionSizeInBytes"

LEAST_PART_BYTES = MIB / 16
"""Smaller parts of files are not worth a task."""

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
DEFAULT_LISTING = 10_000
"""The most tasks that list folders, and how many they are where it is not set."""

A_TASK_MS = 1000.0
"""A task of this length is long enough that handing it out counts for little."""

MOST_WAVES = 4
"""A last wave is evened out by the number of tasks where there are so few waves; else it is no matter of the number."""

LEAST_OVERHEAD = 384 * MIB
OVERHEAD_SHARE = 0.1
"""Of executor memory, what Spark adds for all that is no heap, where it is not set (spark.executor.memoryOverhead)."""


@dataclass(frozen=True)
class Cut:
    """A stage that another number of tasks would help: how many it should have, and what that can bring."""

    detail: Detail
    wanted: int
    part: IdleStage | StartingStage

    @property
    def has_empty_tasks(self) -> bool:
        """Whether so few of its tasks had anything to read that slots were idle."""
        return isinstance(self.part, IdleStage) and self.part.cause == "empty-tasks"


def chances(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[Detail], debug: Debug
) -> list[Chance]:
    """What could be changed, in no order."""
    on_path = [each for each in details if each.facts.path_ms > 0]
    listing = _listing_stages(connection)
    every = list(_cuts(execution, on_path, most_slots(connection, execution.properties)))
    cuts = [each for each in every if each.detail.facts.id not in listing]
    return [
        *_stopped(debug),
        *_out_of_memory(execution, debug),
        *_schemas(execution, on_path),
        *_shuffles(execution.properties, cuts),
        *_scans(execution.properties, cuts, debug),
        *_bound(execution, on_path, debug),
        *_collections(execution.properties, cuts),
        *_listings(execution.properties, [each for each in every if each.detail.facts.id in listing]),
        *_skew(execution, on_path, debug),
        *_windows(on_path, debug),
        *_memory(execution, on_path, debug),
        *results.chances(connection, on_path, debug),
        *_python(on_path, debug),
        *_late_executors(execution, debug),
        *_no_executors(execution, debug),
    ]


def shown(name: str, before: str, after: str) -> str:
    """A setting with its present and its new value."""
    return f"`{name}` {before} → {after}"


def conf(name: str, value: str) -> tuple[str, ...]:
    """The line to paste into spark-submit."""
    return (f"--conf {name}={value}",)


def size(amount: float) -> str:
    """Bytes as Spark's settings take them, rounded to three figures up: 512m, 12g, 64k."""
    for unit, one in (("g", 2**30), ("m", MIB), ("k", 2**10)):
        if amount >= one and (unit != "g" or amount % one == 0 or amount >= 10 * one):
            return f"{math.ceil(amount / one)}{unit}"
    return f"{max(math.ceil(amount / 1024), 1)}k"


# Numbers of tasks -----------------------------------------------------------------------------------------------------


def _cuts(execution: Execution, details: Sequence[Detail], most: int) -> Iterator[Cut]:
    """Stages whose findings a number of tasks would answer: too few, a last wave half empty, or far too short ones.

    Too few are also those for which dynamic allocation asked for fewer than the `most` slots of the run.
    """
    for detail in details:
        facts = detail.facts
        if facts.slots < 1 or (facts.units == 1 and reads_schema(detail)) or infers_schema(detail):
            continue
        if one_window(detail):
            continue
        for part in idle_slots(RULES, detail):
            has_few = part.cause in ("few-tasks", "empty-tasks")
            if has_few and facts.longest_ms < A_TASK_MS:
                continue  # parts of so short a task would be all starting and ending
            if has_few:
                yield Cut(detail, facts.slots, part)
            elif part.cause == "last-wave" and facts.waves <= MOST_WAVES and (facts.skew_time or 1.0) < 2:
                yield Cut(detail, math.ceil(facts.waves) * facts.slots, part)
        for unasked in unasked_slots([detail], most):
            yield Cut(replace(detail, facts=replace(facts, slots=most)), most, unasked)
        for starting in starting_units(detail):
            work_ms = facts.unit_ms - facts.starting_ms
            least = max(detail.read_bytes / A_TASK_BYTES, work_ms / A_TASK_MS, 1)
            wanted = math.ceil(least / facts.slots) * facts.slots
            if wanted * 2 <= facts.units:
                yield Cut(detail, wanted, starting)


def _listing_stages(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Stages in which Spark lists folders, before a query reads them: InMemoryFileIndex names their jobs so."""
    rows = connection.execute(
        """
        SELECT group_id
        FROM groups JOIN (SELECT unnest(stage_ids) AS stage FROM spark_jobs WHERE starts_with(name, ?))
            ON starts_with(group_id, concat('stage:', stage, '.'))
        """,
        ["Listing leaf files and directories for "],
    ).fetchall()
    return {group for (group,) in rows}


def _listings(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Iterator[Chance]:
    """Stages that list folders: a task each, up to a setting; no program hands out what they work on."""
    mine = [each for each in cuts if each.part.kind == "starting-units"]
    if mine:
        wanted, where, most_ms = _told(mine)
        present = properties.get(LISTING) or f"{DEFAULT_LISTING} (the default)"
        what = f"{shown(LISTING, present, str(wanted))}: Spark lists each folder in a task of its own ({where})"
        yield Chance("setting", what, "starting-units", "modelled", None, most_ms, conf(LISTING, str(wanted)))


def _bound(execution: Execution, details: Sequence[Detail], debug: Debug) -> Iterator[Chance]:
    """Stages whose tasks left slots idle to run where their data are: what it brings at most not to wait for that."""
    found = [(part, each) for each in details for part in idle_slots(RULES, each) if part.cause == "bound-to-data"]
    if found:
        part, first = max(found, key=lambda each: each[0].cost_ms)
        facts, before = first.facts, execution.properties.get(LOCALITY_WAIT) or "3s (the default)"
        others = f" and {len(found) - 1} more" if len(found) > 1 else ""
        where = f"{facts.id}{others}" + on_one(part, debug.words, ":")
        what = (
            f"{shown(LOCALITY_WAIT, before, '0s')}, so that free executors take tasks whose data another has ({where})"
        )
        most_ms = sum(part.cost_ms for part, _ in found)
        yield Chance("setting", what, "idle-slots", "modelled", None, most_ms, conf(LOCALITY_WAIT, "0s"))


def _told(cuts: Sequence[Cut]) -> tuple[int, str, float]:
    """Of cuts of one kind: the number of tasks wanted, the stage that it is most about, and what it brings at most."""
    first = max(cuts, key=lambda each: each.part.cost_ms)
    facts = first.detail.facts
    others = f" and {len(cuts) - 1} more" if len(cuts) > 1 else ""
    where = f"{facts.id}{others}: {counted(facts.units, 'task')} for {counted(facts.slots, 'slot')}"
    return first.wanted, where, sum(each.part.cost_ms for each in cuts)


def _shuffles(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Iterator[Chance]:
    """Stages that read a shuffle: of queries, by the setting that cut them; of RDDs, where they are written."""
    mine = [each for each in cuts if "shuffle read" in each.detail.uses]
    rest = [each for each in mine if not each.has_empty_tasks]
    count = whole(properties.get(PARTITIONS)) or DEFAULT_PARTITIONS
    of_sql = [each for each in rest if each.detail.facts.scope is not None]
    fixed = [each for each in of_sql if each.detail.facts.units == count]
    present = properties.get(PARTITIONS) or f"{DEFAULT_PARTITIONS} (the default)"
    for rule in ("idle-slots", "starting-units"):
        same = [each for each in fixed if each.part.kind == rule]
        if same:
            wanted, where, most_ms = _told(same)
            what = f"{shown(PARTITIONS, present, str(wanted))} ({where})"
            yield Chance("setting", what, rule, "modelled", f"units={wanted}", most_ms, conf(PARTITIONS, str(wanted)))
    fewer = [each for each in of_sql if each.detail.facts.units < count and each.part.kind == "idle-slots"]
    asked = [each for each in fewer if not _may_be_merged(properties, each.detail)]
    if asked:
        wanted, where, most_ms = _told(asked)
        facts = max(asked, key=lambda each: each.part.cost_ms).detail.facts
        what = (
            f"Ask for {wanted} partitions where the program asks for {facts.units} (repartition or coalesce; {where})"
        )
        line = f"df = df.repartition({wanted})"
        yield Chance("code", what, "idle-slots", "modelled", None, most_ms, (line,))
    merged = [each for each in fewer if each not in asked]
    if merged:
        yield _kept_apart(properties, merged)
    yield from _shuffles_of_rdds(properties, [each for each in rest if each.detail.facts.scope is None])


def _shuffles_of_rdds(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Iterator[Chance]:
    """Stages that read a shuffle of RDDs: by the setting where they have as many tasks as it says, else where they are
    written, for the program says itself how many."""
    key = "spark.default.parallelism"
    by_setting = [each for each in cuts if each.detail.facts.units == whole(properties.get(key))]
    if by_setting:
        wanted, where, most_ms = _told(by_setting)
        what = f"{shown(key, properties[key], str(wanted))} ({where})"
        yield Chance("setting", what, by_setting[0].part.kind, "modelled", None, most_ms, conf(key, str(wanted)))
    by_program = [each for each in cuts if each not in by_setting]
    if by_program:
        wanted, where, most_ms = _told(by_program)
        largest = max(by_program, key=lambda each: each.part.cost_ms).detail
        what = f"Ask for {wanted} partitions of what {largest.place or largest.facts.name} reads ({where})"
        lines = (f"rdd.reduceByKey(merge, {wanted})  # the last argument of any such operation",)
        yield Chance("code", what, by_program[0].part.kind, "modelled", None, most_ms, lines)


def _may_be_merged(properties: Mapping[str, str], detail: Detail) -> bool:
    """Whether adaptive execution may have merged a stage's partitions: it makes none far larger than it is told to."""
    adapts = flag(properties.get("spark.sql.adaptive.enabled")) is not False
    return adapts and detail.read_bytes <= 1.5 * size_set(properties, _ADVISED) * detail.facts.units


def _kept_apart(properties: Mapping[str, str], merged: Sequence[Cut]) -> Chance:
    """Partitions that adaptive execution merged below the number of slots, by the setting that let it."""
    wanted, where, most_ms = _told(merged)
    first = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
    if flag(properties.get(first)) is False:
        what = f"{shown(first, 'false', 'true')}: adaptive execution merges below the number of slots ({where})"
        return Chance("setting", what, "idle-slots", "modelled", None, most_ms, conf(first, "true"))
    key = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
    largest = max(merged, key=lambda each: each.part.cost_ms).detail
    before = size_set(properties, key)
    after = min(largest.read_bytes / wanted, before / 2)
    what = f"{shown(key, size(before), size(after))}: adaptive execution merges small partitions ({where})"
    return Chance("setting", what, "idle-slots", "modelled", None, most_ms, conf(key, size(after)))


def _scans(properties: Mapping[str, str], cuts: Sequence[Cut], debug: Debug) -> Iterator[Chance]:
    """Stages that read files.

    For queries Spark cuts them into parts of min(maxPartitionBytes, max(openCostInBytes, bytes / slots)).  Where a task
    read more than such a part the files could not be cut, and rows have to be spread once they are read.
    """
    mine = [each for each in cuts if reads_files(each.detail) and each.part.kind == "idle-slots"]
    largest, cost = (size_set(properties, key) for key in _CUTS_FILES)
    by_size: list[Cut] = []
    by_hand: dict[str, list[Cut]] = {}
    for each in mine:
        facts, read_bytes = each.detail.facts, each.detail.read_bytes
        part_bytes = min(largest, max(cost, read_bytes / max(facts.slots, 1)))
        if each.has_empty_tasks:
            by_hand.setdefault(text_of(each.part, debug.words), []).append(each)
        elif facts.scope is None:
            by_hand.setdefault("", []).append(each)
        elif facts.most_bytes > 1.2 * part_bytes:
            by_hand.setdefault("its files do not divide", []).append(each)
        elif read_bytes / each.wanted >= LEAST_PART_BYTES:
            by_size.append(each)
    if by_size:
        wanted, where, most_ms = _told(by_size)
        first = max(by_size, key=lambda each: each.part.cost_ms).detail
        after = first.read_bytes / wanted
        key, before = (_CUTS_FILES[1], cost) if after < cost else (_CUTS_FILES[0], largest)
        what = f"{shown(key, size(before), size(after))}, so that Spark cuts smaller parts of the files ({where})"
        yield Chance("setting", what, "idle-slots", "modelled", None, most_ms, conf(key, size(after)))
    of_rdds = by_hand.pop("", [])
    if of_rdds:  # by their blocks, unless the program asks for more
        wanted, where, most_ms = _told(of_rdds)
        what = f"Ask for {wanted} partitions where the files are read ({where})"
        line = f"rdd = sc.textFile(path, {wanted})  # of gzip: rdd.repartition({wanted})"
        yield Chance("code", what, "idle-slots", "modelled", None, most_ms, (line,))
    for why, these in by_hand.items():
        wanted, where, most_ms = _told(these)
        name = max(these, key=lambda each: each.part.cost_ms).detail.facts.name
        what = f"Spread the rows over {wanted} partitions once {name} has read them"
        what += f": {why} ({where})"
        line = f"df = df.repartition({wanted})" if these[0].detail.facts.scope else f"rdd = rdd.repartition({wanted})"
        yield Chance("code", what, "idle-slots", "modelled", None, most_ms, (line,))


_CUTS_FILES = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")


def _collections(properties: Mapping[str, str], cuts: Sequence[Cut]) -> Iterator[Chance]:
    """Stages of rows that the program hands over, or of anything else that it cuts itself."""
    mine = [each for each in cuts if "scan" not in each.detail.uses and "shuffle read" not in each.detail.uses]
    for rule in ("idle-slots", "starting-units"):
        same = [each for each in mine if each.part.kind == rule and not each.has_empty_tasks]
        if same:
            wanted, where, most_ms = _told(same)
            name = max(same, key=lambda each: each.part.cost_ms).detail.facts.name
            what = f"Cut what {name} works on into {counted(wanted, 'partition')} ({where})"
            line = f"rdd = sc.parallelize(rows, {wanted})  # or rdd.repartition({wanted})"
            if same[0].detail.facts.scope is not None:
                line = f"df = df.{'repartition' if rule == 'idle-slots' else 'coalesce'}({wanted})"
            yield Chance("code", what, rule, "modelled", None, most_ms, (line,))


def _schemas(execution: Execution, details: Sequence[Detail]) -> Iterator[Chance]:
    """Jobs that only read the schema of files, and need not with a schema given: from their ends, in a stage of one
    task each, or from all of their rows."""
    inferring = [each for each in details if infers_schema(each)]
    if inferring:
        longest = max(inferring, key=lambda each: each.facts.path_ms).facts
        what = f"Give the schema where files are read: {counted(len(inferring), 'job')} read them only to infer it"
        what += f" ({longest.id} {longest.name})"
        most_ms = sum(each.facts.path_ms for each in inferring)
        line = "spark.read.schema(schema).csv(path)  # or json, or what else it reads"
        yield Chance("code", what, "idle-slots", "measured", None, most_ms, (line,))
    mine = [each for each in details if each.facts.units == 1 and reads_schema(each)]
    if mine:
        most_ms = sum(each.facts.path_ms for each in mine)
        what = f"Give the schema where files are read, or read tables: {len(mine)} job"
        what += f"{'s' if len(mine) > 1 else ''} of one task only read it ({mine[0].facts.name})"
        yield Chance("code", what, "idle-slots", "measured", None, most_ms, ("spark.read.schema(schema).load(path)",))


# Rows -----------------------------------------------------------------------------------------------------------------


def _skew(execution: Execution, details: Sequence[Detail], debug: Debug) -> Iterator[Chance]:
    """Stages that read a shuffle and wait for the task of a large key, or leave most tasks nothing to read."""
    found = [
        (detail, part)
        for detail in details
        if "shuffle read" in detail.uses
        for part in (*straggler(RULES, detail, ()), *idle_slots(RULES, detail))
        if _is_skew(detail, part)
    ]
    if not found:
        return
    most_ms = sum(part.cost_ms for _, part in found)
    detail, part = max(found, key=lambda each: each[1].cost_ms)
    joins = any("Join" in each and "Broadcast" not in each for each in detail.operators)
    group = f"{part.id} {part.name}"
    if joins and (adapting := _splits(execution.properties, detail, group)) is not None:
        yield replace(adapting, at_most_ms=most_ms)
        return
    what = f"Split the few keys that hold most rows (salting): {group}: {text_of(part, debug.words)}"
    yield Chance("code", what, "straggler", "modelled", None, most_ms)


def _is_skew(detail: Detail, part: StageCost) -> bool:
    """Whether a stage waits for a task with more data than the others, or most of its tasks have none."""
    if isinstance(part, StragglerStage):
        return isinstance(part.cause, MoreData)
    return isinstance(part, IdleStage) and part.cause == "empty-tasks" and detail.read_bytes > LITTLE_BYTES


def _windows(details: Sequence[Detail], debug: Debug) -> Iterator[Chance]:
    """Windows over all rows at once, which one task computes."""
    mine = [(each, part) for each in details if one_window(each) for part in idle_slots(RULES, each)]
    if mine:
        most_ms = sum(part.cost_ms for _, part in mine)
        _, part = max(mine, key=lambda each: each[1].cost_ms)
        advice = text_of(PartitionWindow(), debug.words)
        what = f"{advice[0].upper()}{advice[1:]} ({part.id} {part.name})"
        line = "Window.partitionBy(key).orderBy(…)  # instead of Window.orderBy(…)"
        yield Chance("code", what, "idle-slots", "modelled", None, most_ms, (line,))


def _splits(properties: Mapping[str, str], detail: Detail, group: str) -> Chance | None:
    """Adaptive execution's own splitting of large keys, where it is off, or where the largest is too small for it; None
    where it had the chance to split, or where nothing tells that there is such a thing."""
    enabled = flag(properties.get(_ADAPTIVE))
    if enabled is None and {"AQEShuffleRead", "CustomShuffleReader"} & set(detail.operators):
        enabled = True
    most_bytes, key = detail.facts.most_bytes, f"{_SKEW_JOIN}.skewedPartitionThresholdInBytes"
    threshold = size_set(properties, key)
    if enabled is None or most_bytes <= 0 or (enabled and most_bytes > threshold):
        return None
    lines = [] if enabled else [*conf(_ADAPTIVE, "true")]
    told = "" if enabled else f"{shown(_ADAPTIVE, 'false', 'true')}: it splits keys that hold most rows of a join"
    if most_bytes <= threshold:  # it splits what is larger than that, into parts of the advised size
        part = size(most_bytes / max(detail.facts.slots, 2))
        lines += [*conf(key, part), *conf(_ADVISED, part)]
        told = (
            f"{told}; but only partitions above {size(threshold)}, and the largest has {volume(most_bytes)}"
            if told
            else f"{shown(key, size(threshold), part)}: adaptive execution splits only larger partitions of a join, and"
            f" its largest has {volume(most_bytes)}"
        )
    return Chance("setting", f"{told} ({group})", "straggler", "modelled", None, None, tuple(lines))


# Memory ---------------------------------------------------------------------------------------------------------------


def _stopped(debug: Debug) -> Iterator[Chance]:
    """That the program itself stopped Spark while work was under way: what it did that for is in no event."""
    outcome = debug.outcome
    if outcome is None or outcome.status != "failed" or not outcome.failures:
        return
    first = outcome.failures[0]
    if "SparkContext was shut down" in first.error:
        what = f"Look in the driver's own log for why it ended: it stopped Spark while {first.id} was under way"
        yield Chance("code", what, STOPPED, "measured", comes_first=True)


def _out_of_memory(execution: Execution, debug: Debug) -> Iterator[Chance]:
    """What the run died of, where it was memory."""
    memory = None if debug.outcome is None else debug.outcome.memory
    if memory is None or is_local(execution.properties):
        return
    heap = size_bytes(execution.properties.get(MEMORY)) or 2.0**30
    if memory == "heap":
        chance = _doubled(MEMORY, execution.properties.get(MEMORY) or f"{DEFAULT_MEMORY} (the default)", 2 * heap)
        yield replace(chance, what=f"{chance.what}: a heap was too small", why="outcome", comes_first=True)
        return
    if memory == "device":
        what = "Run fewer tasks at a time on a GPU, or give it smaller batches: its memory was full"
        yield Chance("setting", what, "outcome", "modelled", lines=conf(GPU_TASKS, "1"), comes_first=True)
        return
    stated = size_bytes(execution.properties.get(OVERHEAD), "m")
    before = stated or max(LEAST_OVERHEAD, OVERHEAD_SHARE * heap)
    chance = _doubled(OVERHEAD, size(before) if stated else f"{size(before)} (the default)", 2 * before)
    why = "a container was killed for memory beside the heap"
    if memory == "killed":
        why = "an executor was killed from outside, most often for memory beside the heap"
    sure = memory == "container"
    failed = debug.outcome is not None and debug.outcome.status == "failed"
    what, basis = f"{chance.what}: {why}", chance.basis if sure else "guessed"
    yield replace(chance, what=what, why="outcome", basis=basis, comes_first=sure or failed)


def _doubled(key: str, before: str, after: float) -> Chance:
    return Chance("setting", shown(key, before, size(after)), key, "modelled", None, None, conf(key, size(after)))


def _memory(execution: Execution, details: Sequence[Detail], debug: Debug) -> Iterator[Chance]:
    """More memory against collections, spills and rows computed anew; more partitions against spills of a shuffle's
    readers."""
    costs = {each.kind: each.cost_ms for each in debug.findings if isinstance(each, Garbage | Spilling | Kept)}
    if not costs:
        return
    if "kept" in costs:  # the heap that is full of them is collected for nothing, too
        costs = {**costs, "kept": costs["kept"] + costs.get("garbage", 0.0)}
    worst = max(costs, key=lambda each: costs[each])
    by_python = [RULES.spills_apart(each.uses, each.facts.scope) for each in details if each.facts.spill_bytes]
    if worst == "spilling" and by_python and all(by_python):
        stated = execution.properties.get(PYTHON_MEMORY)
        before = size_bytes(stated) or DEFAULT_PYTHON_MEMORY
        chance = _doubled(PYTHON_MEMORY, stated or f"{size(before)} (the default)", 2 * before)
        yield replace(chance, why=worst, at_most_ms=costs[worst])
        return
    resize = resized(execution, "memory", 2.0)
    if resize is not None:
        what = f"{resize.what}, so that rows that are kept have room" if worst == "kept" else resize.what
        yield replace(resize, what=what, why=worst, at_most_ms=costs[worst])
    spilled = [
        each
        for each in details
        if each.spill_memory_bytes and each.facts.scope is not None and "shuffle read" in each.uses
    ]
    count = whole(execution.properties.get(PARTITIONS)) or DEFAULT_PARTITIONS
    at_count = [each for each in spilled if each.facts.units >= count]
    if not at_count:
        return
    largest = max(at_count, key=lambda each: each.spill_memory_bytes)
    heap = size_bytes(execution.properties.get(MEMORY)) or 2.0**30
    a_task = usable_bytes(heap, execution.properties) / max(execution.recorded.get("cores") or 1.0, 1.0)
    times = 1 + largest.spill_memory_bytes / largest.facts.units / max(a_task, 1.0)
    wanted = min(math.ceil(times), 8) * count
    present = execution.properties.get(PARTITIONS) or f"{DEFAULT_PARTITIONS} (the default)"
    what = f"{shown(PARTITIONS, present, str(wanted))}, so that a task's rows fit its memory ({largest.facts.id})"
    yield Chance("setting", what, "spilling", "modelled", None, costs.get("spilling"), conf(PARTITIONS, str(wanted)))


# Python -------


def _python(details: Sequence[Detail], debug: Debug) -> Iterator[Chance]:
    """A look at the code of Python workers that tasks wait for; what it does is in no log."""
    cost_ms = debug.other_ms.get("delegated", 0.0)
    mine = [each for each in details if RULES.delegates(each.uses)]
    if not mine or cost_ms <= 0:
        return
    longest = max(mine, key=lambda each: each.facts.path_ms)
    what = f"Profile the Python code that tasks wait for ({longest.facts.id} {longest.facts.name})"
    if "BatchEvalPython" in longest.operators:
        what += "; a function that computes is faster as a pandas_udf, and fastest in functions of Spark SQL"
    yield Chance("code", what, "delegated", "guessed", None, cost_ms, conf("spark.python.profile", "true"))


# Executors ------------------------------------------------------------------------------------------------------------


def _late_executors(execution: Execution, debug: Debug) -> Iterator[Chance]:
    """Executors that came late, where Spark itself asks for them one after the other."""
    cost = next((each.cost_ms for each in debug.findings if isinstance(each, NoWorker)), None)
    key = "spark.dynamicAllocation.initialExecutors"
    executors = execution.recorded.get("workers")
    if cost is None or not executors or not flag(execution.properties.get("spark.dynamicAllocation.enabled")):
        return
    before = execution.properties.get(key) or execution.properties.get("spark.dynamicAllocation.minExecutors") or "0"
    if (whole(before) or 0) < executors:
        after = f"{executors:.0f}"
        what = f"{shown(key, before, after)}, so that executors are there from the start"
        yield Chance("setting", what, "no-worker", "measured", None, cost, conf(key, after))


def _no_executors(execution: Execution, debug: Debug) -> Iterator[Chance]:
    """That no executor ever came, with what one asks for."""
    cost = next((each.cost_ms for each in debug.findings if isinstance(each, NoWorker)), None)
    if cost is None or execution.recorded.get("workers") or len(execution.units):
        return
    properties = execution.properties
    memory = properties.get(MEMORY) or f"{DEFAULT_MEMORY} (the default)"
    cores = properties.get(CORES) or "not set"
    what = (
        "Check that the cluster has free cores and memory for one executor, for none ever came:"
        f" `{CORES}` {cores}, `{MEMORY}` {memory}"
    )
    yield Chance("setting", what, "no-worker", "measured", at_most_ms=cost)


def resized(execution: Execution, key: str, ratio: float) -> Chance | None:
    """More executors, or slots of the one process that a local master has; more memory."""
    properties, recorded = execution.properties, execution.recorded
    master, local = properties.get("spark.master", ""), is_local(properties)
    if key == "memory":
        name = "spark.driver.memory" if local else MEMORY
        given = recorded.get("memory") if local else size_bytes(properties.get(MEMORY), "m") or recorded.get("memory")
        before = properties.get(name) or (size(given) if given else f"{DEFAULT_MEMORY} (the default)")
        after = ratio * (size_bytes(before, "m") or given or 2.0**30)
        return Chance("setting", shown(name, before, size(after)), key, "modelled", f"memory={ratio:g}x", None,
                      conf(name, size(after)))  # fmt: skip
    executors, cores = recorded.get("workers"), recorded.get("cores")
    if local:
        if not cores:
            return None
        # local[N, how often a task may fail]
        failures = re.fullmatch(r"local\[[^,\]]*(,[^\]]*)\]", master.replace(" ", ""))
        wider = f"local[{ratio * cores:.0f}{failures[1] if failures else ''}]"
        what = f"{shown('spark.master', master, wider)}, on a machine with as many cores free"
        line = f"--master '{wider}'"  # a shell would take the brackets for a pattern of file names
        return Chance("machine", what, "cores", "modelled", f"cores={ratio:g}x", None, (line,))
    if not executors:
        return None
    now, then = f"{executors:.0f}", f"{ratio * executors:.0f}"
    twice, name, value = f"Twice the executors, {now} → {then}", "spark.executor.instances", then
    if flag(properties.get("spark.dynamicAllocation.enabled")):
        name = "spark.dynamicAllocation.minExecutors"
        largest = whole(properties.get(MOST_EXECUTORS))
        if largest is not None and largest < ratio * executors:
            name = MOST_EXECUTORS  # Spark does not start where the fewest are more than the most
        twice += f": {shown(name, properties.get(name) or '0', then)}"
    elif most := whole(properties.get("spark.cores.max")):
        name, value = "spark.cores.max", f"{ratio * most:.0f}"
        twice += f": {shown(name, str(most), value)}"
    elif asked := whole(properties.get(name)):
        if asked > executors:  # as many as are asked for there was no room for
            return Chance(
                "machine", f"{twice}, on a cluster with room for them", key, "modelled", f"workers={ratio:g}x"
            )
        # One that came in the place of another may have been there beside it.
        value = f"{ratio * asked:.0f}"
        twice = shown(name, str(asked), value)
    else:
        return Chance("machine", twice, key, "modelled", f"workers={ratio:g}x")
    return Chance("setting", twice, key, "modelled", f"workers={ratio:g}x", None, conf(name, value))
