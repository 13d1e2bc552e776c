"""The sentences of findings, recommendations, refusals and assumptions that only Spark has."""

from __future__ import annotations

from crystalperf.query.frameworks.spark import assumptions, findings, refusals, remarks
from crystalperf.query.frameworks.spark.recommendations import (
    AskForPartitions,
    AvoidBroadcast,
    CheckCapacity,
    CutCollection,
    CutFilesSmaller,
    ExtendMemory,
    FewerTasksPerGpu,
    FitTasksInMemory,
    GiveSchema,
    InProgram,
    KeepPartitions,
    ListFoldersInFewerTasks,
    MoreExecutors,
    MoreLocalSlots,
    PartitionWindow,
    ProfilePython,
    ReadDriverLog,
    ReadInPartitions,
    ReduceInPartitions,
    SendFewerRows,
    SetPartitions,
    SkipLocalityWait,
    SplitKeys,
    SplitSkewedJoin,
    SpreadRows,
    StartExecutorsEarlier,
)
from crystalperf.query.frameworks.spark.settings import size_text
from crystalperf.query.results import advice, missing
from crystalperf.query.results.recommendations import Affected, MoreMemory, Recommendation, SettingChange
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import capitalised, change_setting, setting_text, times, value_text
from crystalperf.query.text.sentences import text_of
from crystalperf.query.trace.amounts import counted, grouped, lasting, volume
from crystalperf.query.trace.vocabulary import Exhausted, plural

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        findings.Compiling: "tasks compiled generated code, or waited for another task to",
        advice.InspectCoordinator: "run fewer and larger queries over fewer files: the driver works alone",
        advice.FreeClusterCapacity: (
            "check that the cluster has free cores and memory for what one executor asks for (spark.executor.cores,"
            " spark.executor.memory)"
        ),
        advice.MoreTasks: "more partitions would use the idle slots",
        advice.SmallerTasks: "smaller partitions even out the last wave",
        advice.FewerTasks: "fewer, larger partitions",
        advice.RelaxPlacement: (
            "set spark.locality.wait to 0s, so that free executors take tasks whose data another has; rows that are"
            " kept lie evenly where all executors are there, and warm, when they are first computed"
        ),
        advice.InspectTaskWaits: (
            "look at what kept waiting tasks from free slots: waiting for a slot near their data (spark.locality.wait),"
            " or a driver too busy to hand them out"
        ),
        advice.FitCache: (
            "more memory per executor or more executors, so that all rows that are kept have room; or keep them"
            " smaller: serialized, and on disk too (StorageLevel.MEMORY_AND_DISK_SER)"
        ),
        findings.PartitionWindow: (
            "give the window a partitionBy: without one all rows pass through one task, whatever the partitions are"
        ),
        findings.MergeFewerPartitions: (
            "adaptive execution joined small partitions: a lower spark.sql.adaptive.coalescePartitions.minPartitionSize"
            " or advisoryPartitionSizeInBytes keeps more"
        ),
        findings.SmallerFileParts: (
            "a lower spark.sql.files.maxPartitionBytes, or files that can be split, would use the idle slots"
        ),
        findings.MoreSlices: "more slices where the data is handed to Spark would use the idle slots",
        findings.EvenCachedPartitions: (
            "the partitions that are kept differ in size: repartition the rows before they are kept"
        ),
        findings.SplitKeys: (
            "a few keys hold most rows: split them (salting), or let adaptive execution split skewed joins"
        ),
        findings.SplittableFiles: (
            "one of its files cannot be split (gzip, or one large row group): write smaller files"
        ),
        findings.SmallerRowGroups: (
            "its files have fewer row groups than Spark cut parts: write smaller row groups, or repartition the rows"
        ),
        findings.EvenFiles: (
            "its files, or their parts, differ in size: write them more evenly, or repartition the rows"
        ),
        findings.CommitFewerFiles: (
            "look at how output is put in place: fewer files and partitions take less, and so does a committer without"
            " renames where storage renames by copying"
        ),
        findings.ReuseGeneratedCode: (
            "the first query on an executor pays this: keep executors, or run queries of one shape together"
        ),
        findings.MergeFiles: (
            "merge the small files into ones of 100 MB or more: opening a file costs more than reading so little"
        ),
    }
)


@SENTENCES.of(findings.UnaskedSlots)
def unasked_slots(found: findings.UnaskedSlots, words: Words) -> str:
    first, others = found.stages[0], len(found.stages) - 1
    more = f"; and {others} more in the same way" if others else ""
    return f"{first.id} {first.name}: {unasked_stage(first, words)}{more}"


@SENTENCES.of(findings.UnaskedStage)
def unasked_stage(stage: findings.UnaskedStage, _words: Words) -> str:
    had = f"dynamic allocation had {stage.slots} slots for its {counted(stage.tasks, 'task')}"
    return f"{had}, and {stage.run_slots} at another time of the run"


@SENTENCES.of(findings.ManySmallFiles)
def small_files(found: findings.ManySmallFiles, _words: Words) -> str:
    did = "wrote" if isinstance(found, findings.SmallOutput) else "read"
    files = f"{counted(found.files, 'file')} of {volume(found.file_bytes)} on average"
    return f"{_stages(found.stage, found.other_stages)} {did} {files}"


@SENTENCES.of(findings.ReadAgain)
def read_again(found: findings.ReadAgain, _words: Words) -> str:
    where = _stages(found.stage, found.other_stages)
    return f"{where}: {counted(found.readers, found.scope)} read the same rows from storage"


def _stages(stage: str, others: int) -> str:
    return f"{stage} and {others} more" if others else stage


@SENTENCES.of(findings.GiveSchema)
def give_schema(found: findings.GiveSchema, _words: Words) -> str:
    if found.inferred:
        return "Spark reads the files to infer their schema: give the schema"
    return "Spark reads the files' schema in one task: give the schema, or read from a table that knows it"


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


@SENTENCES.of(remarks.StreamingQuery)
def streaming_query(found: remarks.StreamingQuery, _words: Words) -> str:
    name = f"streaming query {found.query}"
    if not found.batches:
        return f"{name}: {counted(found.triggers, 'trigger')}, none of which found rows to process"
    parts = [f"{100 * each.share:.0f} % {_BATCH_PARTS[each.key]}" for each in found.parts[:2] if each.share >= 0.01]
    each_ms = f" of {_seconds(found.middle_ms)}"
    if found.batches > 1:
        each_ms += f" each (the middle one; the longest {_seconds(found.longest_ms)})"
    where = f", {' and '.join(parts)}" if parts else ""
    return f"{name}: {counted(found.batches, 'batch')}{each_ms}{where}; {_pace(found)}"


_BATCH_PARTS = {
    "add_batch": "running the batch (addBatch)",
    "latest_offset": "asking the sources for new data (latestOffset)",
    "query_planning": "planning (queryPlanning)",
    "wal_commit": "noting in the checkpoint what to read (walCommit)",
    "get_batch": "making the sources' data frames (getBatch)",
    "commit_offsets": "noting in the checkpoint what is done (commitOffsets)",
}


def _pace(found: remarks.StreamingQuery) -> str:
    came, could = found.input_per_s, found.processed_per_s
    rates = f"{_rate(came)} came in and {_rate(could)} could be processed" if came is not None and could else ""
    if found.pace == "falls-behind" and (came or 0.0) > (could or 0.0) and rates:
        return f"{rates}: it falls behind"
    if found.pace == "falls-behind":
        waits = f"what waits at its sources grew from {found.waiting_first:.0f} to {found.waiting_last:.0f}"
        return f"{f'{rates}, and ' if rates else ''}{waits}: it falls behind"
    busy = None if found.busy_share is None else f"{100 * found.busy_share:.0f} %"
    if found.pace == "no-room":
        return (
            f"{f'{rates}, but ' if rates else ''}{busy} of the time is in batches: it has no room left, and the log"
            " does not say whether more waits at its sources"
        )
    pauses = f", a batch begins every {_seconds(found.interval_ms)} and is busy {busy} of it" if busy else ""
    return f"{rates}{pauses}: it keeps up" if rates else f"rates are not in the log{pauses}"


def _seconds(ms: float | None) -> str:
    ms = ms or 0.0
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def _rate(rows: float) -> str:
    return f"{rows:,.0f} rows/s".replace(",", " ") if rows >= 10 else f"{rows:.1f} rows/s"


@SENTENCES.of(remarks.MoreQueries)
def more_queries(found: remarks.MoreQueries, _words: Words) -> str:
    return f"{found.count} more streaming queries are in the table spark_batches"


@SENTENCES.of(missing.UnreadParts)
def unread_parts(found: missing.UnreadParts, _words: Words) -> str:
    lacks = {
        "missing_part": "the log lacks {count} of its parts",
        "compacted_log": "Spark dropped jobs that had ended from the log (it was compacted)",
        "second_application": "the log holds events of another application too, and nothing tells them apart",
    }
    return ", ".join(lacks[each.problem].format(count=each.count) for each in found.parts)


# Recommendations ------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        FewerTasksPerGpu: "Run fewer tasks at a time on a GPU, or give it smaller batches: its memory was full",
    }
)


def _conf(change: SettingChange) -> str:
    """A setting as spark-submit takes it."""
    if change.name == "spark.master":
        return f"--master '{change.after}'"  # a shell would take the brackets for a pattern of file names
    return f"--conf {change.name}={value_text(change.after)}"


def _affected(stages: Affected) -> str:
    """`stage:4.0 and 2 more: 4 tasks for 16 slots`."""
    return f"{_named(stages)}: {counted(stages.tasks, 'task')} for {counted(stages.slots, 'slot')}"


def _named(stages: Affected) -> str:
    return f"{stages.stage} and {stages.others} more" if stages.others else stages.stage


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    return tuple(map(_conf, found.settings))


@SENTENCES.of(ReadDriverLog)
def read_driver_log(found: ReadDriverLog, _words: Words) -> str:
    return f"Look in the driver's log for why it ended: it stopped Spark while {found.failed} was under way"


# … numbers of tasks


@SENTENCES.of(SetPartitions)
def set_partitions(found: SetPartitions, words: Words) -> str:
    return f"{change_setting(found, words)} ({_affected(found.stages)})"


@SENTENCES.of(ListFoldersInFewerTasks)
def list_folders_in_fewer_tasks(found: ListFoldersInFewerTasks, words: Words) -> str:
    return f"{change_setting(found, words)}: Spark lists each folder in a task of its own ({_affected(found.stages)})"


@SENTENCES.of(KeepPartitions)
def keep_partitions(found: KeepPartitions, words: Words) -> str:
    merges = "merges below the number of slots" if found.settings[0].after is True else "merges small partitions"
    return f"{change_setting(found, words)}: adaptive execution {merges} ({_affected(found.stages)})"


@SENTENCES.of(CutFilesSmaller)
def cut_files_smaller(found: CutFilesSmaller, words: Words) -> str:
    return f"{change_setting(found, words)}, so that Spark cuts smaller parts of the files ({_affected(found.stages)})"


@SENTENCES.of(SkipLocalityWait)
def skip_locality_wait(found: SkipLocalityWait, words: Words) -> str:
    where = _named(found.stages)
    if found.on_one_executor is not None:
        where += f": {found.on_one_executor} of {found.stages.tasks} tasks ran on one executor"
    return f"{change_setting(found, words)}, so that free executors take tasks whose data another has ({where})"


@SENTENCES.of(AskForPartitions)
def ask_for_partitions(found: AskForPartitions, _words: Words) -> str:
    return (
        f"Ask for {found.partitions} partitions where the program asks for {found.stages.tasks} (repartition or"
        f" coalesce; {_affected(found.stages)})"
    )


@SENTENCES.lines(InProgram)
def repartition(found: InProgram, _words: Words) -> tuple[str, ...]:
    name = "df" if found.sql else "rdd"
    return (f"{name} = {name}.repartition({found.partitions})",)


@SENTENCES.of(ReadInPartitions)
def read_in_partitions(found: ReadInPartitions, _words: Words) -> str:
    return f"Ask for {found.partitions} partitions where the files are read ({_affected(found.stages)})"


@SENTENCES.lines(ReadInPartitions)
def text_file(found: ReadInPartitions, _words: Words) -> tuple[str, ...]:
    return (f"rdd = sc.textFile(path, {found.partitions})  # of gzip: rdd.repartition({found.partitions})",)


@SENTENCES.of(SpreadRows)
def spread_rows(found: SpreadRows, _words: Words) -> str:
    stages, why = found.stages, "its files do not divide"
    if found.with_data is not None:
        why = f"{found.with_data} of {counted(stages.tasks, 'task')} had something to read, for {stages.slots} slots"
    return (
        f"Spread the rows over {found.partitions} partitions once {stages.name} has read them: {why}"
        f" ({_affected(stages)})"
    )


@SENTENCES.of(CutCollection)
def cut_collection(found: CutCollection, _words: Words) -> str:
    partitions = counted(found.partitions, "partition")
    return f"Cut what {found.stages.name} works on into {partitions} ({_affected(found.stages)})"


@SENTENCES.lines(CutCollection)
def parallelize(found: CutCollection, _words: Words) -> tuple[str, ...]:
    if found.sql:
        return (f"df = df.{'repartition' if found.more else 'coalesce'}({found.partitions})",)
    return (f"rdd = sc.parallelize(rows, {found.partitions})  # or rdd.repartition({found.partitions})",)


@SENTENCES.of(ReduceInPartitions)
def reduce_in_partitions(found: ReduceInPartitions, _words: Words) -> str:
    return f"Ask for {found.partitions} partitions of what {found.reads} reads ({_affected(found.stages)})"


@SENTENCES.lines(ReduceInPartitions)
def reduce_by_key(found: ReduceInPartitions, _words: Words) -> tuple[str, ...]:
    return (f"rdd.reduceByKey(merge, {found.partitions})  # the last argument of any such operation",)


# … rows and files


@SENTENCES.of(GiveSchema)
def recommend_schema(found: GiveSchema, _words: Words) -> str:
    jobs = counted(found.jobs, "job")
    if found.inferred:
        return f"Give the schema where files are read: {jobs} read them only to infer it ({found.stage} {found.name})"
    return f"Give the schema where files are read, or read tables: {jobs} of one task only read it ({found.name})"


@SENTENCES.lines(GiveSchema)
def schema(found: GiveSchema, _words: Words) -> tuple[str, ...]:
    if found.inferred:
        return ("spark.read.schema(schema).csv(path)  # or json, or what else it reads",)
    return ("spark.read.schema(schema).load(path)",)


@SENTENCES.of(SplitKeys)
def recommend_split_keys(found: SplitKeys, words: Words) -> str:
    stage = found.evidence
    return f"Split the few keys that hold most rows (salting): {stage.id} {stage.name}: {text_of(stage, words)}"


@SENTENCES.of(SplitSkewedJoin)
def split_skewed_join(found: SplitSkewedJoin, _words: Words) -> str:
    first, largest = found.settings[0], volume(found.largest_bytes)
    if first.after is not True:
        why = f"adaptive execution splits only larger partitions of a join, and its largest has {largest}"
    else:
        why = "it splits keys that hold most rows of a join"
        if found.threshold_bytes is not None:
            why += f"; but only partitions above {size_text(found.threshold_bytes)}, and the largest has {largest}"
    return f"{setting_text(first)}: {why} ({found.stage})"


@SENTENCES.of(PartitionWindow)
def recommend_window_partition(found: PartitionWindow, words: Words) -> str:
    return f"{capitalised(text_of(findings.PartitionWindow(), words))} ({found.stage})"


@SENTENCES.lines(PartitionWindow)
def window(_found: PartitionWindow, _words: Words) -> tuple[str, ...]:
    return ("Window.partitionBy(key).orderBy(…)  # instead of Window.orderBy(…)",)


def _sent(found: SendFewerRows) -> str:
    others = f", {found.others} more in the same way" if found.others else ""
    return f"{found.stage} ({found.name}) sent it {volume(found.sent_bytes)}{others}"


@SENTENCES.of(SendFewerRows)
def send_fewer_rows(found: SendFewerRows, _words: Words) -> str:
    return f"Bring fewer rows to the driver: {_sent(found)}"


@SENTENCES.lines(SendFewerRows)
def write_instead(_found: SendFewerRows, _words: Words) -> tuple[str, ...]:
    return ("df.write.parquet(path)  # instead of df.collect() or df.toPandas()",)


@SENTENCES.of(AvoidBroadcast)
def avoid_broadcast(found: AvoidBroadcast, _words: Words) -> str:
    return f"Join without a broadcast of so large a table, which goes through the driver: {_sent(found)}"


@SENTENCES.lines(AvoidBroadcast)
def no_broadcast(found: AvoidBroadcast, _words: Words) -> tuple[str, ...]:
    return (f"{_conf(found.settings[0])}  # and no broadcast()",)


@SENTENCES.of(ProfilePython)
def profile_python(found: ProfilePython, _words: Words) -> str:
    what = f"Profile the Python code that tasks wait for ({found.stage} {found.name})"
    if found.scalar_udf:
        what += "; a function that computes is faster as a pandas_udf, and fastest in functions of Spark SQL"
    return what


# … memory and executors

_RAN_OUT: dict[Exhausted, str] = {
    "heap": "a heap was too small",
    "container": "a container was killed for memory outside the heap",
    "killed": "an executor was killed from outside, most often for memory outside the heap",
}


@SENTENCES.of(MoreMemory)
def more_memory(found: MoreMemory, _words: Words) -> str:
    room = ", so that cached rows fit" if found.because == "kept" else ""
    return f"{setting_text(found.settings[0])}{room}"


@SENTENCES.of(ExtendMemory)
def extend_memory(found: ExtendMemory, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}: {_RAN_OUT[found.exhausted]}"


@SENTENCES.of(FitTasksInMemory)
def fit_tasks_in_memory(found: FitTasksInMemory, words: Words) -> str:
    return f"{change_setting(found, words)}, so that a task's rows fit its memory ({found.stage})"


@SENTENCES.of(MoreExecutors)
def more_executors(found: MoreExecutors, words: Words) -> str:
    if found.settings and found.settings[0].name == "spark.executor.instances":
        return setting_text(found.settings[0])
    more = f"{times(found.ratio).capitalize()} the executors, {found.before} → {found.after}"
    if found.settings:
        return f"{more}: {setting_text(found.settings[0])}"
    return f"{more}, on a cluster with room for them" if found.asked is not None else more


@SENTENCES.of(MoreLocalSlots)
def more_local_slots(found: MoreLocalSlots, words: Words) -> str:
    return f"{change_setting(found, words)}, on a machine with as many cores free"


@SENTENCES.of(StartExecutorsEarlier)
def start_executors_earlier(found: StartExecutorsEarlier, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}, so that executors are ready from the start"


@SENTENCES.of(CheckCapacity)
def check_capacity(found: CheckCapacity, _words: Words) -> str:
    cores = "not set" if found.executor_cores is None else value_text(found.executor_cores)
    default = " (the default)" if found.is_default_memory else ""
    return (
        "Check that the cluster has free cores and memory for one executor, for none ever came:"
        f" `spark.executor.cores` {cores}, `spark.executor.memory` {found.executor_memory}{default}"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.LocalRun: "a local run is one process, so it has no second executor; ask about cores=, its slots",
        assumptions.FilesPerPartition: (
            "a task that hands rows over writes a file for each partition, so it takes longer with more partitions and"
            " shorter with fewer"
        ),
        assumptions.PythonCounted: (
            "a task that waits for its Python worker waits for that worker's CPU: counted as cpu"
        ),
    }
)


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
