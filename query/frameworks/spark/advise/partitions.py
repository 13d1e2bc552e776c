"""Recommendations on numbers of tasks: too few, a last wave half empty, or far too short ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.stages import Stages, affected, reads_shuffle, reads_storage
from crystalperf.query.frameworks.spark.findings import Call, SmallOutput
from crystalperf.query.frameworks.spark.partitions import DEFAULT_PARTITIONS, MIB, size_set
from crystalperf.query.frameworks.spark.recommendations import (
    AskForPartitions,
    CutCollection,
    KeepPartitions,
    ListFoldersInFewerTasks,
    ReduceInPartitions,
    SetPartitions,
)
from crystalperf.query.frameworks.spark.rewrites import EnableAdaptive
from crystalperf.query.frameworks.spark.rules import (
    infers_schema,
    one_window,
    program_call,
    reads_schema,
    unasked_slots,
)
from crystalperf.query.frameworks.spark.settings import flag, whole
from crystalperf.query.results.findings import IdleStage, StartingStage
from crystalperf.query.results.recommendations import MODELLED, Affected, Candidate, SettingChange

PARTITIONS = "spark.sql.shuffle.partitions"
PARALLELISM = "spark.default.parallelism"

A_TASK_BYTES = 64 * MIB
"""The shuffle input of a task under adaptive execution (advisoryPartitionSizeInBytes)."""

ADVISED = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
ADAPTIVE = "spark.sql.adaptive.enabled"
_MERGES = "spark.sql.adaptive.coalescePartitions.enabled"
_KEEPS_SLOTS = "spark.sql.adaptive.coalescePartitions.parallelismFirst"
_MIN_SIZE = "spark.sql.adaptive.coalescePartitions.minPartitionSize"

LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
DEFAULT_LISTING = 10_000
"""The maximum of tasks that list folders, and its default."""

A_TASK_MS = 1000.0
"""A task of this length is long enough that scheduling it costs little."""

MAX_WAVES = 4
"""Maximum waves for which the number of tasks evens out the last wave; with more it makes no difference."""


@frozen
class Cut:
    """A stage that another number of tasks would speed up: the recommended number, and the saving."""

    detail: StageStats
    wanted: int
    cost: IdleStage | StartingStage

    @property
    def has_empty_tasks(self) -> bool:
        """Whether so few of its tasks had input that slots were idle."""
        return isinstance(self.cost, IdleStage) and self.cost.cause == "empty-tasks"


@frozen
class Cuts:
    """Stages that one change speeds up; the first has the largest cost."""

    first: Cut
    stages: Affected
    most_ms: float

    @property
    def wanted(self) -> int:
        return self.first.wanted


def together(cuts: Sequence[Cut]) -> Cuts:
    """Cuts that one change speeds up."""
    first = max(cuts, key=lambda each: each.cost.cost_ms)
    return Cuts(first, affected(first.detail, len(cuts) - 1), sum(each.cost.cost_ms for each in cuts))


def cuts(stages: Stages, most: int) -> Iterator[Cut]:
    """Stages with findings that another number of tasks resolves: too few, a last wave half empty, or far too short
    ones.

    Too few are also those for which dynamic allocation requested fewer than the `most` slots of the run.
    """
    for detail in stages.details:
        facts = detail.facts
        if facts.slots < 1 or (facts.tasks == 1 and reads_schema(detail)) or infers_schema(detail):
            continue
        if one_window(detail):
            continue
        for idle in stages.costs_of(detail, IdleStage):
            has_few = idle.cause in ("few-tasks", "empty-tasks")
            if has_few and facts.longest_ms < A_TASK_MS:
                continue  # parts of such a short task would be mostly overhead
            if has_few:
                yield Cut(detail, facts.slots, idle)
            elif idle.cause == "last-wave" and facts.waves <= MAX_WAVES and (facts.skew_time or 1.0) < 2:
                yield Cut(detail, math.ceil(facts.waves) * facts.slots, idle)
        for unasked in unasked_slots([detail], most):
            yield Cut(replace(detail, facts=replace(facts, slots=most)), most, unasked)
        for starting in stages.costs_of(detail, StartingStage):
            wanted = _fewer(detail)
            if wanted * 2 <= facts.tasks:
                yield Cut(detail, wanted, starting)


def listings(properties: Mapping[str, str], stage_cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages that list folders: a task each, up to a setting; the program does not control the number."""
    found = [each for each in stage_cuts if each.cost.kind == "starting-tasks"]
    if found:
        all_of = together(found)
        change = changed(properties, LISTING, all_of.wanted, DEFAULT_LISTING)
        value = ListFoldersInFewerTasks(
            price="setting", because="starting-tasks", saving=MODELLED, settings=(change,), stages=all_of.stages
        )
        yield Candidate(value, at_most_ms=all_of.most_ms)


def _fewer(detail: StageStats) -> int:
    """The number of tasks that are long enough for a stage: whole waves, 1, 4, 16 … of them by its CPU time.

    Times vary with the load of the machine, so the number is a power of 4: a rerun of the same job gets the same one.
    More are needed only for the bytes of its input.
    """
    facts = detail.facts
    work_ms = min(detail.own_cpu_ms or math.inf, facts.task_ms - facts.starting_ms)
    waves = max(work_ms / A_TASK_MS / facts.slots, 1.0)
    steady = 4 ** round(math.log(waves, 4))
    return int(max(steady, math.ceil(detail.read_bytes / A_TASK_BYTES / facts.slots)) * facts.slots)


def in_program(stage_cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages with few tasks because of a call of the program in their plan: coalesce(1), repartition(1)."""
    by_call: dict[Call, list[Cut]] = {}
    for each in stage_cuts:
        if (call := program_call(each.detail)) is not None:
            by_call.setdefault(call, []).append(each)
    for called, same in by_call.items():
        all_of = together(same)
        value = AskForPartitions(
            price="code", because="idle-slots", saving=MODELLED,
            partitions=all_of.wanted, stages=all_of.stages, sql=True, call=called,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=all_of.most_ms)


def shuffles(properties: Mapping[str, str], stage_cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages that read a shuffle: of queries, by the setting that partitioned them; of RDDs, where they are written."""
    reading = [each for each in stage_cuts if reads_shuffle(each.detail) and not each.has_empty_tasks]
    count = whole(properties.get(PARTITIONS)) or DEFAULT_PARTITIONS
    of_sql = [each for each in reading if each.detail.facts.scope is not None]
    fixed = [each for each in of_sql if each.detail.facts.tasks == count]
    for rule in ("idle-slots", "starting-tasks"):
        same = [each for each in fixed if each.cost.kind == rule]
        if same:
            all_of = together(same)
            if rule == "starting-tasks":
                yield from _merging(properties, all_of)
            change = changed(properties, PARTITIONS, all_of.wanted, DEFAULT_PARTITIONS)
            found = _set(rule, change, all_of, f"tasks={all_of.wanted}")
            # A task writes a file, so fewer tasks write fewer and larger ones.
            writes_less = rule == "starting-tasks" and any("output" in each.detail.uses for each in same)
            yield replace(found, covers=frozenset({SmallOutput.kind})) if writes_less else found
    fewer = [each for each in of_sql if each.detail.facts.tasks < count and each.cost.kind == "idle-slots"]
    by_code = [each for each in fewer if not _may_be_merged(properties, each.detail)]
    if by_code:
        all_of = together(by_code)
        value = AskForPartitions(
            price="code", because="idle-slots", saving=MODELLED,
            partitions=all_of.wanted, stages=all_of.stages, sql=True,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=all_of.most_ms)
    merged = [each for each in fewer if each not in by_code]
    if merged:
        yield _kept_apart(properties, together(merged))
    yield from _shuffles_of_rdds(properties, [each for each in reading if each.detail.facts.scope is None])


def _set(because: str, change: SettingChange, all_of: Cuts, what_if: str | None = None) -> Candidate:
    value = SetPartitions(price="setting", because=because, saving=MODELLED, settings=(change,), stages=all_of.stages)
    return Candidate(value, what_if, all_of.most_ms)


def _merging(properties: Mapping[str, str], all_of: Cuts) -> Iterator[Candidate]:
    """Adaptive execution's own merging of small partitions, if the run has it off: it leaves about as many tasks as the
    setting that is recommended for them."""
    off = [key for key in (ADAPTIVE, _MERGES) if flag(properties.get(key)) is False]
    if off:
        value = EnableAdaptive(
            price="setting", because="starting-tasks", saving=MODELLED,
            settings=tuple(changed(properties, key, True) for key in off), stages=all_of.stages,
            a_task_bytes=all_of.first.detail.read_bytes / max(all_of.stages.tasks, 1),
        )  # fmt: skip
        yield Candidate(value, f"tasks={all_of.wanted}", all_of.most_ms)


def _shuffles_of_rdds(properties: Mapping[str, str], stage_cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages that read a shuffle of RDDs: by the setting if it equals their number of tasks, else where the shuffle is
    written, because the program sets the number."""
    by_setting = [each for each in stage_cuts if each.detail.facts.tasks == whole(properties.get(PARALLELISM))]
    if by_setting:
        all_of = together(by_setting)
        yield _set(by_setting[0].cost.kind, changed(properties, PARALLELISM, all_of.wanted), all_of)
    by_program = [each for each in stage_cuts if each not in by_setting]
    if by_program:
        all_of = together(by_program)
        detail = all_of.first.detail
        value = ReduceInPartitions(
            price="code", because=by_program[0].cost.kind, saving=MODELLED,
            partitions=all_of.wanted, stages=all_of.stages, reads=detail.place or detail.facts.name,
        )  # fmt: skip
        yield Candidate(value, at_most_ms=all_of.most_ms)


def _may_be_merged(properties: Mapping[str, str], detail: StageStats) -> bool:
    """Whether adaptive execution may have merged a stage's partitions: it makes none far larger than its target."""
    adapts = flag(properties.get("spark.sql.adaptive.enabled")) is not False
    return adapts and detail.read_bytes <= 1.5 * size_set(properties, ADVISED) * detail.facts.tasks


def _kept_apart(properties: Mapping[str, str], all_of: Cuts) -> Candidate:
    """Partitions that adaptive execution merged below the number of slots, by the setting that allows it."""
    if flag(properties.get(_KEEPS_SLOTS)) is False:
        change = changed(properties, _KEEPS_SLOTS, True)
    else:
        before = size_set(properties, _MIN_SIZE)
        change = changed_size(properties, _MIN_SIZE, min(all_of.first.detail.read_bytes / all_of.wanted, before / 2))
    value = KeepPartitions(
        price="setting", because="idle-slots", saving=MODELLED, settings=(change,), stages=all_of.stages
    )
    return Candidate(value, at_most_ms=all_of.most_ms)


def collections(stage_cuts: Sequence[Cut]) -> Iterator[Candidate]:
    """Stages of a local collection, or of any other data that the program partitions itself."""
    own = [each for each in stage_cuts if not reads_storage(each.detail) and not reads_shuffle(each.detail)]
    for rule in ("idle-slots", "starting-tasks"):
        same = [each for each in own if each.cost.kind == rule and not each.has_empty_tasks]
        if same:
            all_of = together(same)
            value = CutCollection(
                price="code", because=rule, saving=MODELLED,
                partitions=all_of.wanted, stages=all_of.stages, sql=same[0].detail.facts.scope is not None,
                more=rule == "idle-slots",
            )  # fmt: skip
            yield Candidate(value, at_most_ms=all_of.most_ms)
