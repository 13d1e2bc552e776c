"""The sentences of findings, recommendations, refusals and assumptions that only Spark has."""

from __future__ import annotations

from crystalperf.query.frameworks.spark import assumptions, findings, refusals
from crystalperf.query.model.amounts import counted, grouped, lasting, volume
from crystalperf.query.results import advice
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import Sentences
from crystalperf.query.vocabulary import plural

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------


@SENTENCES.of(findings.UnaskedSlots)
def unasked_slots(found: findings.UnaskedSlots, words: Words) -> str:
    first, others = found.stages[0], len(found.stages) - 1
    more = f"; and {others} more in the same way" if others else ""
    return f"{first.id} {first.name}: {unasked_stage(first, words)}{more}"


@SENTENCES.of(findings.UnaskedStage)
def unasked_stage(stage: findings.UnaskedStage, _words: Words) -> str:
    had = f"dynamic allocation had {stage.slots} slots for its {counted(stage.tasks, 'task')}"
    return f"{had}, and {stage.run_slots} at another time of the run"


@SENTENCES.of(findings.Compiling)
def compiling(_found: findings.Compiling, _words: Words) -> str:
    return "tasks compiled generated code, or waited for another task to"


@SENTENCES.of(findings.SmallFiles)
def small_files(found: findings.SmallFiles, _words: Words) -> str:
    files = f"{counted(found.files, 'file')} of {volume(found.file_bytes)} on average"
    return f"{_stages(found.stage, found.other_stages)} read {files}"


@SENTENCES.of(findings.SmallOutput)
def small_output(found: findings.SmallOutput, _words: Words) -> str:
    files = f"{counted(found.files, 'file')} of {volume(found.file_bytes)} on average"
    return f"{_stages(found.stage, found.other_stages)} wrote {files}"


@SENTENCES.of(findings.ReadAgain)
def read_again(found: findings.ReadAgain, _words: Words) -> str:
    where = _stages(found.stage, found.other_stages)
    return f"{where}: {counted(found.readers, found.scope)} read the same rows from storage"


def _stages(stage: str, others: int) -> str:
    return f"{stage} and {others} more" if others else stage


@SENTENCES.of(advice.InspectCoordinator)
def inspect_coordinator(_advice: advice.InspectCoordinator, _words: Words) -> str:
    return "run fewer and larger queries over fewer files: the driver works alone"


@SENTENCES.of(advice.FreeClusterCapacity)
def free_cluster_capacity(_advice: advice.FreeClusterCapacity, _words: Words) -> str:
    return (
        "check that the cluster has free cores and memory for what one executor asks for (spark.executor.cores,"
        " spark.executor.memory)"
    )


@SENTENCES.of(advice.MoreTasks)
def more_tasks(_advice: advice.MoreTasks, _words: Words) -> str:
    return "more partitions would use the idle slots"


@SENTENCES.of(advice.SmallerTasks)
def smaller_tasks(_advice: advice.SmallerTasks, _words: Words) -> str:
    return "smaller partitions even out the last wave"


@SENTENCES.of(advice.FewerTasks)
def fewer_tasks(_advice: advice.FewerTasks, _words: Words) -> str:
    return "fewer, larger partitions"


@SENTENCES.of(advice.RelaxPlacement)
def relax_placement(_advice: advice.RelaxPlacement, _words: Words) -> str:
    return (
        "set spark.locality.wait to 0s, so that free executors take tasks whose data another has; rows that are"
        " kept lie evenly where all executors are there, and warm, when they are first computed"
    )


@SENTENCES.of(advice.InspectTaskWaits)
def inspect_task_waits(_advice: advice.InspectTaskWaits, _words: Words) -> str:
    return (
        "look at what kept waiting tasks from free slots: waiting for a slot near their data (spark.locality.wait),"
        " or a driver too busy to hand them out"
    )


@SENTENCES.of(advice.FitCache)
def fit_cache(_advice: advice.FitCache, _words: Words) -> str:
    return (
        "more memory per executor or more executors, so that all rows that are kept have room; or keep them smaller:"
        " serialized, and on disk too (StorageLevel.MEMORY_AND_DISK_SER)"
    )


@SENTENCES.of(findings.GiveSchema)
def give_schema(found: findings.GiveSchema, _words: Words) -> str:
    if found.inferred:
        return "Spark reads the files to infer their schema: give the schema"
    return "Spark reads the files' schema in one task: give the schema, or read from a table that knows it"


@SENTENCES.of(findings.PartitionWindow)
def partition_window(_advice: findings.PartitionWindow, _words: Words) -> str:
    return "give the window a partitionBy: without one all rows pass through one task, whatever the partitions are"


@SENTENCES.of(findings.MergeFewerPartitions)
def merge_fewer_partitions(_advice: findings.MergeFewerPartitions, _words: Words) -> str:
    return (
        "adaptive execution joined small partitions: a lower"
        " spark.sql.adaptive.coalescePartitions.minPartitionSize or advisoryPartitionSizeInBytes keeps more"
    )


@SENTENCES.of(findings.SmallerFileParts)
def smaller_file_parts(_advice: findings.SmallerFileParts, _words: Words) -> str:
    return "a lower spark.sql.files.maxPartitionBytes, or files that can be split, would use the idle slots"


@SENTENCES.of(findings.MoreSlices)
def more_slices(_advice: findings.MoreSlices, _words: Words) -> str:
    return "more slices where the data is handed to Spark would use the idle slots"


@SENTENCES.of(findings.EvenCachedPartitions)
def even_cached_partitions(_advice: findings.EvenCachedPartitions, _words: Words) -> str:
    return "the partitions that are kept differ in size: repartition the rows before they are kept"


@SENTENCES.of(findings.SplitKeys)
def split_keys(_advice: findings.SplitKeys, _words: Words) -> str:
    return "a few keys hold most rows: split them (salting), or let adaptive execution split skewed joins"


@SENTENCES.of(findings.SplittableFiles)
def splittable_files(_advice: findings.SplittableFiles, _words: Words) -> str:
    return "one of its files cannot be split (gzip, or one large row group): write smaller files"


@SENTENCES.of(findings.SmallerRowGroups)
def smaller_row_groups(_advice: findings.SmallerRowGroups, _words: Words) -> str:
    return "its files have fewer row groups than Spark cut parts: write smaller row groups, or repartition the rows"


@SENTENCES.of(findings.EvenFiles)
def even_files(_advice: findings.EvenFiles, _words: Words) -> str:
    return "its files, or their parts, differ in size: write them more evenly, or repartition the rows"


@SENTENCES.of(findings.CommitFewerFiles)
def commit_fewer_files(_advice: findings.CommitFewerFiles, _words: Words) -> str:
    return (
        "look at how output is put in place: fewer files and partitions take less, and so does a committer without"
        " renames where storage renames by copying"
    )


@SENTENCES.of(findings.ReuseGeneratedCode)
def reuse_generated_code(_advice: findings.ReuseGeneratedCode, _words: Words) -> str:
    return "the first query on an executor pays this: keep executors, or run queries of one shape together"


@SENTENCES.of(findings.MergeFiles)
def merge_files(_advice: findings.MergeFiles, _words: Words) -> str:
    return "merge the small files into ones of 100 MB or more: opening a file costs more than reading so little"


@SENTENCES.of(findings.WriteFewerFiles)
def write_fewer_files(found: findings.WriteFewerFiles, _words: Words) -> str:
    if found.partitions is None:
        return "write fewer, larger files: coalesce or repartition the rows before they are written"
    return (
        "write fewer, larger files: repartition the rows by the columns of partitionBy before they are written, so that"
        f" not every task writes to each of the {grouped(found.partitions)} partitions"
    )


@SENTENCES.of(findings.CacheRows)
def cache_rows(found: findings.CacheRows, _words: Words) -> str:
    rows = f"keep the rows that several {plural(found.scope)} read"
    return f"{rows} (cache or persist), for memory has room for them"


@SENTENCES.of(advice.AvoidSpilling)
def avoid_spilling(found: advice.AvoidSpilling, _words: Words) -> str:
    if found.delegated:
        return "more memory for each Python worker (spark.python.worker.memory), or more partitions"
    return "more memory per executor, fewer slots, or more partitions"


@SENTENCES.of(advice.InspectEndedTasks)
def inspect_ended_tasks(found: advice.InspectEndedTasks, _words: Words) -> str:
    if found.status == "failed":
        return "look at why they failed: the whole stack is in the event log and on the stage's page of the UI"
    return "look at why they were killed: Spark ran speculative copies of slow tasks, or called work off"


@SENTENCES.of(advice.AvoidExhaustion)
def avoid_exhaustion(found: advice.AvoidExhaustion, _words: Words) -> str:
    return {
        "container": (
            "a larger spark.executor.memoryOverhead, fewer slots per executor (spark.executor.cores), or more"
            " partitions"
        ),
        "killed": (
            "the cluster manager's log says who killed it; where that was for memory, a larger"
            " spark.executor.memoryOverhead or fewer slots per executor"
        ),
        "heap": "more spark.executor.memory, fewer slots per executor (spark.executor.cores), or more partitions",
        "device": (
            "fewer tasks at a time on a GPU (spark.rapids.sql.concurrentGpuTasks), or smaller batches"
            " (spark.rapids.sql.batchSizeBytes)"
        ),
    }[found.exhausted]


# Recommendations ------------------------------------------------------------------------------------------------------

# Refusals and assumptions ---------------------------------------------------------------------------------------------


@SENTENCES.of(refusals.LocalRun)
def local_run(_refusal: refusals.LocalRun, _words: Words) -> str:
    return "a local run is one process, so it has no second executor; ask about cores=, its slots"


@SENTENCES.of(assumptions.StagesNotReplanned)
def stages_not_replanned(assumed: assumptions.StagesNotReplanned, _words: Words) -> str:
    return f"stages keep their recorded tasks, though Spark might cut others for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.SamePlan)
def same_plan(assumed: assumptions.SamePlan, _words: Words) -> str:
    return f"Spark would cut the same tasks for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.StagesReplanned)
def stages_replanned(assumed: assumptions.StagesReplanned, _words: Words) -> str:
    return (
        f"Spark would cut {assumed.stages} stage{'s' if assumed.stages > 1 else ''} into other tasks for"
        f" {_these(assumed.slots_only)} ({assumed.tasks} tasks become {assumed.planned_tasks}), which share its work in"
        " the recorded order (--no-replan keeps the tasks)"
    )


def _these(slots_only: bool) -> str:
    return "these slots" if slots_only else "this"


@SENTENCES.of(assumptions.FilesPerPartition)
def files_per_partition(_assumed: assumptions.FilesPerPartition, _words: Words) -> str:
    return (
        "a task that hands rows over writes a file for each partition, so it takes longer with more partitions and"
        " shorter with fewer"
    )


@SENTENCES.of(assumptions.LargeKeyKept)
def large_key_kept(assumed: assumptions.LargeKeyKept, _words: Words) -> str:
    first, more = assumed.stages[0], len(assumed.stages) - 1
    which = f"{first} and {more} more keep their" if more else f"{first} keeps its"
    return (
        f"{which} recorded tasks, of which one read far more than most: if that is one key, no number of partitions"
        " divides it"
    )


@SENTENCES.of(assumptions.CpuTimeMissing)
def cpu_time_missing(assumed: assumptions.CpuTimeMissing, _words: Words) -> str:
    collected = f", {lasting(assumed.garbage_ms)} of it garbage collection" if assumed.garbage_ms else ""
    return f"this log has no CPU time of tasks: cpu is the little that Spark times beside it{collected}"


@SENTENCES.of(assumptions.PythonCounted)
def python_counted(_assumed: assumptions.PythonCounted, _words: Words) -> str:
    return "a task that waits for its Python worker waits for that worker's CPU: counted as cpu"
