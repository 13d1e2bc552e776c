"""The sentences of findings, recommendations, refusals and assumptions that only Spark has."""

from __future__ import annotations

from crystalperf.query.frameworks import Exhausted
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
from crystalperf.query.frameworks.spark.rules import ADVICE, ONE_WINDOW
from crystalperf.query.frameworks.spark.settings import size_text
from crystalperf.query.model.amounts import counted, volume
from crystalperf.query.results.recommendations import Affected, InspectDriver, MoreMemory, Recommendation, SettingChange
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import change_setting, setting_text, times, value_text
from crystalperf.query.text.sentences import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

# Recommendations ------------------------------------------------------------------------------------------------------


def _conf(change: SettingChange) -> str:
    """A setting as spark-submit takes it."""
    if change.name == "spark.master":
        return f"--master '{change.after}'"  # a shell would take the brackets for a pattern of file names
    return f"--conf {change.name}={value_text(change.after)}"


def _stages(stages: Affected) -> str:
    """`stage:4.0 and 2 more: 4 tasks for 16 slots`."""
    return f"{_named(stages)}: {counted(stages.tasks, 'task')} for {counted(stages.slots, 'slot')}"


def _named(stages: Affected) -> str:
    return f"{stages.stage} and {stages.others} more" if stages.others else stages.stage


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    return tuple(map(_conf, found.settings))


@SENTENCES.of(InspectDriver)
def inspect_driver(_found: InspectDriver, _words: Words) -> str:
    return ADVICE["coordinator"]


@SENTENCES.of(ReadDriverLog)
def read_driver_log(found: ReadDriverLog, _words: Words) -> str:
    return f"Look in the driver's log for why it ended: it stopped Spark while {found.failed} was under way"


# … numbers of tasks


@SENTENCES.of(SetPartitions)
def set_partitions(found: SetPartitions, words: Words) -> str:
    return f"{change_setting(found, words)} ({_stages(found.stages)})"


@SENTENCES.of(ListFoldersInFewerTasks)
def list_folders_in_fewer_tasks(found: ListFoldersInFewerTasks, words: Words) -> str:
    return f"{change_setting(found, words)}: Spark lists each folder in a task of its own ({_stages(found.stages)})"


@SENTENCES.of(KeepPartitions)
def keep_partitions(found: KeepPartitions, words: Words) -> str:
    merges = "merges below the number of slots" if found.settings[0].after is True else "merges small partitions"
    return f"{change_setting(found, words)}: adaptive execution {merges} ({_stages(found.stages)})"


@SENTENCES.of(CutFilesSmaller)
def cut_files_smaller(found: CutFilesSmaller, words: Words) -> str:
    return f"{change_setting(found, words)}, so that Spark cuts smaller parts of the files ({_stages(found.stages)})"


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
        f" coalesce; {_stages(found.stages)})"
    )


@SENTENCES.lines(AskForPartitions)
def repartition(found: AskForPartitions | SpreadRows, _words: Words) -> tuple[str, ...]:
    name = "df" if found.sql else "rdd"
    return (f"{name} = {name}.repartition({found.partitions})",)


@SENTENCES.of(ReadInPartitions)
def read_in_partitions(found: ReadInPartitions, _words: Words) -> str:
    return f"Ask for {found.partitions} partitions where the files are read ({_stages(found.stages)})"


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
        f" ({_stages(stages)})"
    )


SENTENCES.lines(SpreadRows)(repartition)


@SENTENCES.of(CutCollection)
def cut_collection(found: CutCollection, _words: Words) -> str:
    partitions = counted(found.partitions, "partition")
    return f"Cut what {found.stages.name} works on into {partitions} ({_stages(found.stages)})"


@SENTENCES.lines(CutCollection)
def parallelize(found: CutCollection, _words: Words) -> tuple[str, ...]:
    if found.sql:
        return (f"df = df.{'repartition' if found.more else 'coalesce'}({found.partitions})",)
    return (f"rdd = sc.parallelize(rows, {found.partitions})  # or rdd.repartition({found.partitions})",)


@SENTENCES.of(ReduceInPartitions)
def reduce_in_partitions(found: ReduceInPartitions, _words: Words) -> str:
    return f"Ask for {found.partitions} partitions of what {found.reads} reads ({_stages(found.stages)})"


@SENTENCES.lines(ReduceInPartitions)
def reduce_by_key(found: ReduceInPartitions, _words: Words) -> tuple[str, ...]:
    return (f"rdd.reduceByKey(merge, {found.partitions})  # the last argument of any such operation",)


# … rows and files


@SENTENCES.of(GiveSchema)
def give_schema(found: GiveSchema, _words: Words) -> str:
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
def split_keys(found: SplitKeys, _words: Words) -> str:
    return f"Split the few keys that hold most rows (salting): {found.stage}: {found.evidence}"


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
def partition_window(found: PartitionWindow, _words: Words) -> str:
    return f"{ONE_WINDOW[0].upper()}{ONE_WINDOW[1:]} ({found.stage})"


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


@SENTENCES.of(FewerTasksPerGpu)
def fewer_tasks_per_gpu(_found: FewerTasksPerGpu, _words: Words) -> str:
    return "Run fewer tasks at a time on a GPU, or give it smaller batches: its memory was full"


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
