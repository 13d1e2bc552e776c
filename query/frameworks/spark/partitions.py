"""Model of Spark's partitioning: the tasks of its stages with another number of slots.

Input files   FilePartition.maxSplitBytes: min(maxPartitionBytes, max(openCostInBytes, bytes / parallelism)); for RDDs,
              and before Spark 2.0 for queries too, by their blocks
Shuffles      adaptive execution merges partitions up to max(minPartitionSize, min(advisorySize, bytes / parallelism))
              (CoalesceShufflePartitions, with parallelismFirst at its default); others have a fixed number
Collections   parallelize() and the like use the default parallelism, which is the number of slots

More data give more tasks of a scan, because files and their blocks keep their size, and larger partitions of a shuffle.
Another spark.sql.shuffle.partitions repartitions the shuffles of queries, and is the maximum for adaptive execution.
Another spark.sql.files.maxPartitionBytes (`split`) repartitions the scans that it, or openCostInBytes, had partitioned,
with openCostInBytes lowered to it; not those of files that Spark had not split as the rule says, such as gzip.

A stage whose recorded number of tasks does not follow these rules stays unchanged.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

import numpy as np

from crystalperf.indexes.frozen import frozen
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import SPLIT, Scenario, Setting
from crystalperf.query.frameworks import Planned
from crystalperf.query.frameworks.spark.assumptions import (
    FilesPerPartition,
    LargeKeyKept,
    ProfilesScaled,
    SamePlan,
    ServiceKept,
    StagesNotReplanned,
    StagesReplanned,
)
from crystalperf.query.frameworks.spark.blocks import files_ms, with_partitions
from crystalperf.query.frameworks.spark.refusals import LocalRun
from crystalperf.query.frameworks.spark.settings import flag, is_local, size_bytes, whole
from crystalperf.query.frameworks.spark.shuffle_services import remote_service
from crystalperf.query.frameworks.spark.small_tasks import own_cost_share
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.trace.arrays import median, members
from crystalperf.query.trace.records import Ints

MIB = 2**20
LARGEST_PART, OPEN_COST = "spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"
DEFAULTS = {
    LARGEST_PART: 128 * MIB,
    OPEN_COST: 4 * MIB,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": 64 * MIB,
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": 256 * MIB,
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": MIB,
}
DEFAULT_PARTITIONS = 200
"""Spark's default of spark.sql.shuffle.partitions; a vendor's `auto` sizes partitions by bytes, as the rules do."""

FEW_MORE = 1.3
"""Maximum tasks per slot of a scan that counts as partitioned by slots: the ends of files add tasks."""

SKEWED = 4.0
"""A task that reads this many times the median has one large key, which more tasks do not divide."""


SETTINGS = {SPLIT: Setting("bytes", "bytes of files that a task of a query reads at most")}


def size_set(properties: Mapping[str, str], key: str) -> float:
    """The bytes of a setting of DEFAULTS, as set or by default."""
    return size_bytes(properties.get(key)) or DEFAULTS[key]


@frozen
class Parallelism:
    """Slots that Spark plans for, before and after, and the settings that it plans by.

    `partitions` and `partitions_after` are those of a query's shuffles, `input` is the ratio of input data.
    `packs_files` is whether this Spark partitions a query's files by FilePartition instead of by their blocks.
    """

    before: int
    after: int
    properties: Mapping[str, str]
    partitions: int = DEFAULT_PARTITIONS
    partitions_after: int = DEFAULT_PARTITIONS
    input: float = 1.0
    packs_files: bool = True
    split: float = 1.0
    """Ratio of spark.sql.files.maxPartitionBytes."""

    def size(self, key: str) -> float:
        return size_set(self.properties, key)

    def is_on(self, key: str) -> bool:
        return flag(self.properties.get(key)) is not False


def configured(properties: Mapping[str, str]) -> dict[str, float]:
    """The configured shuffle partitions and file partitions of a run's queries."""
    partitions = whole(properties.get("spark.sql.shuffle.partitions")) or DEFAULT_PARTITIONS
    return {"tasks": float(partitions), SPLIT: size_set(properties, LARGEST_PART)}


def replan(execution: Execution, scenario: Scenario, wanted: bool) -> Planned | Refusal:
    """The run with the tasks that Spark would plan in a scenario; unchanged if not wanted."""
    ratios = {key: scenario.ratio(key) for key in ("cores", "workers", "input", "tasks", SPLIT)}
    changed_by = [key for key, ratio in ratios.items() if ratio != 1]
    if not changed_by:
        return Planned(execution)
    if ratios["workers"] != 1 and is_local(execution.properties):
        return LocalRun()
    slots_only = set(changed_by) <= {"cores", "workers"}
    if not wanted:
        return Planned(execution, (StagesNotReplanned(slots_only),))
    planned, changed, kept = replan_tasks(execution, scenario)
    skewed = (*((LargeKeyKept(tuple(kept)),) if kept else ()), *_of_slots(execution, ratios))
    files = () if ratios["tasks"] == 1 or planned is execution else (FilesPerPartition(),)
    if not changed:
        return Planned(planned, (SamePlan(slots_only), *files, *skewed))
    cut = StagesReplanned(changed, len(execution.tasks), len(planned.tasks), slots_only)
    return Planned(planned, (*files, cut, *skewed))


def replan_tasks(execution: Execution, scenario: Scenario) -> tuple[Execution, int, list[str]]:
    """The execution replanned for other slots, the number of replanned stages, and the stages whose large key prevented
    it.
    """
    executors, cores = execution.recorded.get("workers"), execution.recorded.get("cores")
    before = round((executors or 0) * (cores or 0))
    after = max(round(before * scenario.ratio("cores") * scenario.ratio("workers")), 1)
    if not before or "spark.default.parallelism" in execution.properties:
        after = before  # Spark plans for a number other than the slots, or for an unknown one
    partitions = execution.recorded.get("tasks") or DEFAULT_PARTITIONS
    plan = Parallelism(
        max(before, 2),
        max(after, 2),
        execution.properties,
        round(partitions),
        max(round(partitions * scenario.ratio("tasks")), 1),
        scenario.ratio("input"),
        _packs_files(execution),
        scenario.ratio(SPLIT),
    )
    if plan.before == plan.after and plan.partitions == plan.partitions_after and plan.input == plan.split == 1:
        return execution, 0, []
    tasks, volumes = execution.tasks, execution.volumes
    counts: dict[int, int] = {}
    kept: list[str] = []
    stages = execution.dag.stages
    for number, of_stage in enumerate(members(tasks.stage, len(stages))):
        stage = stages[number]
        if stage.demand.together:  # the program fixes their number, for example of the workers of a training
            continue
        shuffled = volumes.remote_read[of_stage] + volumes.local_read[of_stage]
        wanted = _tasks_wanted(
            plan,
            len(of_stage),
            has_sql=stage.scope_id is not None,
            is_kept=bool(volumes.cached[of_stage].any()),
            input_bytes=volumes.input[of_stage],
            shuffle_bytes=shuffled,
        )
        if wanted != len(of_stage):
            counts[number] = wanted
        elif stage.scope_id is not None and _has_one_key(plan, wanted, shuffled):
            kept.append(stage.stage_id)
    changed = execution
    if counts:
        # For other slots or input, reruns verify predictions without it: their larger tasks hardly have such a cost.
        is_task_size = plan.partitions != plan.partitions_after or plan.split != 1
        cost = own_cost_share(execution) if is_task_size and plan.input == 1 else None
        changed = with_tasks(execution, counts, files_ms(execution, plan.partitions), cost)
    return with_partitions(changed, plan.partitions, plan.partitions_after), len(counts), kept


def _of_slots(execution: Execution, ratios: Mapping[str, float]) -> Iterator[Assumption]:
    """Assumptions about other executors or cores in runs with resource profiles or a remote shuffle service."""
    if ratios["cores"] == ratios["workers"] == 1:
        return
    own = next((each.stage_id for each in execution.dag.stages if each.demand.own_workers), None)
    if own is not None:
        yield ProfilesScaled(own)
    service = remote_service(execution.properties)
    if service is not None and execution.volumes.exchange_write.any():
        yield ServiceKept(service)


def _packs_files(execution: Execution) -> bool:
    """Whether FilePartition, which Spark has since 2.0, partitions a query's files.

    For a log without a version, CPU times of tasks show it, which Spark has since 2.1.
    """
    major = re.match(r"[0-9]+", execution.version or "")
    return int(major[0]) >= 2 if major else bool(execution.volumes.timed.any())


def _tasks_wanted(
    plan: Parallelism, count: int, *, has_sql: bool, is_kept: bool, input_bytes: Ints, shuffle_bytes: Ints
) -> int:
    """Tasks of a stage that ran `count` of them; `is_kept` is whether it read rows cached in executors' memory."""
    read, shuffled = float(input_bytes.sum()), float(shuffle_bytes.sum())
    ratio = plan.after / plan.before
    if is_kept and shuffled == 0:  # the partitions of the stage that computed it, larger with more data
        return max(round(count * ratio), 1) if plan.before <= count <= FEW_MORE * plan.before else count
    if read > 0 and shuffled == 0:
        packed = has_sql and plan.packs_files
        if packed and plan.split != 1 and plan.input == 1 and (cut := split_tasks(plan, count, read)) is not None:
            return cut
        if packed and plan.before <= count <= FEW_MORE * plan.before:
            count = round(count * ratio)
            return max(count, round(read * plan.input / plan.size("spark.sql.files.maxPartitionBytes")), 1)
        count = max(round(count * plan.input), 1)  # files and their blocks keep their size
        return max(count, plan.after) if packed and count > plan.before and ratio != 1 else count
    if shuffled > 0 and read == 0:
        return _partitions_wanted(plan, count, shuffle_bytes) if has_sql else count
    # Neither files nor shuffles: a collection of parallelize(), if its number of tasks fits.
    return max(round(count * ratio), 1) if count == plan.before and read == 0 and not has_sql else count


def split_tasks(plan: Parallelism, count: int, read: float) -> int | None:
    """Tasks of a scan of `read` bytes in `count` tasks with another size of file partitions; None if that size had not
    determined them, so that its effect is unknown."""
    largest, cost = plan.size(LARGEST_PART), plan.size(OPEN_COST)
    after = largest * plan.split
    if count > FEW_MORE * plan.before:
        files = count * largest  # all file partitions were full, with the costs of opening files
        return max(math.ceil(files / min(after, max(min(cost, after), files / plan.after))), 1)
    planned = read / min(largest, max(cost, read / plan.before))
    if count < min(plan.before, 0.75 * planned):  # files that Spark could not split
        return None
    if count < plan.before:  # reads fewer bytes than the files have, so these are at least as many tasks
        return max(round(read / min(after, max(min(cost, after), read / plan.after))), count)
    return None


def _partitions_wanted(plan: Parallelism, count: int, shuffle_bytes: Ints) -> int:
    """Tasks of a query's stage that reads shuffles and ran `count` of them."""
    adaptive = all(
        plan.is_on(key) for key in ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
    )
    if not adaptive or count >= plan.partitions:
        return (
            plan.partitions_after
            if count == plan.partitions and not _has_one_key(plan, count, shuffle_bytes)
            else count
        )
    if plan.after > plan.before and _is_skewed(shuffle_bytes):
        return min(count, plan.partitions_after)
    shuffled = float(shuffle_bytes.sum())
    now, then = _merged(plan, shuffled, plan.before), _merged(plan, shuffled * plan.input, plan.after)
    return min(max(round(count * then / now), 1), plan.partitions_after)


def _merged(plan: Parallelism, shuffle_bytes: float, slots: int) -> float:
    """Tasks of a shuffle after adaptive execution has merged partitions."""
    size = plan.size("spark.sql.adaptive.advisoryPartitionSizeInBytes")
    if plan.is_on("spark.sql.adaptive.coalescePartitions.parallelismFirst"):
        least = plan.size("spark.sql.adaptive.coalescePartitions.minPartitionSize")
        size = max(least, min(size, shuffle_bytes / slots))
    return float(max(np.ceil(shuffle_bytes / size), 1.0))


def _has_one_key(plan: Parallelism, count: int, shuffle_bytes: Ints) -> bool:
    """Whether more partitions were requested and a task reads so much more than most that it may have one large key."""
    return plan.partitions_after > plan.partitions == count and shuffle_bytes.max() > MIB and _is_skewed(shuffle_bytes)


def _is_skewed(shuffle_bytes: Ints) -> bool:
    return float(shuffle_bytes.max()) > SKEWED * max(median(shuffle_bytes), 1.0)
