"""The sentences of findings, recommendations, refusals and assumptions that only Spark has."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.query.frameworks.spark import assumptions, findings, refusals, remarks
from crystalperf.query.frameworks.spark.recommendations import (
    AskForPartitions,
    AvoidBroadcast,
    CheckCapacity,
    CutCollection,
    CutFilesLarger,
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
    RightSizeMemory,
    SendFewerRows,
    SetPartitions,
    SkipLocalityWait,
    SplitFiles,
    SplitKeys,
    SplitSkewedJoin,
    SpreadRows,
    StartExecutorsEarlier,
)
from crystalperf.query.frameworks.spark.settings import size_text
from crystalperf.query.results import advice, missing
from crystalperf.query.results.recommendations import Affected, MoreMemory, Recommendation, SettingChange
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.tuning import TunedSetting
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import (
    change_setting,
    memory_hours,
    setting_text,
    times,
    value_text,
)
from crystalperf.query.text.sentences import text_of
from crystalperf.query.trace.amounts import counted, grouped, lasting, volume
from crystalperf.query.trace.vocabulary import Exhausted, plural

SENTENCES = Sentences()

SMALL_SHARE = 0.01
"""Statements and sessions with a smaller share of the task time are not named."""

LONGEST_STATEMENT = 60
"""Characters of a statement's text in a sentence."""

MANY_QUERIES = 10
"""With fewer queries, most of the driver's time is not due to their number."""

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        findings.Compiling: "tasks compiled generated code, or waited for another task to",
        advice.FreeClusterCapacity: (
            "check that the cluster has enough free cores and memory for one executor (spark.executor.cores,"
            " spark.executor.memory)"
        ),
        advice.MoreTasks: "use more partitions, so that all slots have work",
        advice.SmallerTasks: "use smaller partitions, so that the last wave of tasks is shorter",
        advice.FewerTasks: "use fewer, larger partitions",
        advice.RelaxPlacement: (
            "set spark.locality.wait to 0s, so that free executors run tasks even if another executor has the data;"
            " cached data is spread evenly if all executors run, and are warmed up, when it is first computed"
        ),
        advice.InspectTaskWaits: (
            "find out why tasks waited although slots were free: they waited for a slot near their data"
            " (spark.locality.wait), or the driver was too busy to assign them"
        ),
        advice.FitCache: (
            "give executors more memory or use more executors, so that all cached data fits; or cache it in a"
            " smaller form: serialized, and on disk too (StorageLevel.MEMORY_AND_DISK_SER)"
        ),
        findings.PartitionWindow: ("give the window a partitionBy: without one, a single task processes all rows"),
        findings.MergeFewerPartitions: (
            "adaptive execution merged small partitions: lower spark.sql.adaptive.coalescePartitions.minPartitionSize"
            " or advisoryPartitionSizeInBytes to keep more of them"
        ),
        findings.SmallerFileParts: (
            "lower spark.sql.files.maxPartitionBytes, or write files that Spark can split, so that all slots have work"
        ),
        findings.MoreSlices: "pass the data to Spark in more slices, so that all slots have work",
        findings.EvenCachedPartitions: ("cached partitions differ in size: repartition the rows before you cache them"),
        findings.SplitKeys: (
            "a few keys have most rows: split them (salting), or let adaptive execution split skewed joins"
        ),
        findings.SplittableFiles: (
            "Spark cannot split one of its files (gzip, or one large row group): write smaller files"
        ),
        findings.SmallerRowGroups: (
            "its files have fewer row groups than partitions: write smaller row groups, or repartition the rows"
        ),
        findings.EvenFiles: (
            "its files, or their parts, differ in size: write files of equal size, or repartition the rows"
        ),
        findings.CommitFewerFiles: (
            "check how Spark commits the output: write fewer files and partitions, or, if your storage renames by"
            " copying, use a committer without renames"
        ),
        findings.ReuseGeneratedCode: (
            "the first query on an executor compiles the code: keep executors running, or run similar queries together"
        ),
        findings.SpeculateLess: (
            "start copies later: raise spark.speculation.multiplier or spark.speculation.quantile"
        ),
        findings.NarrowMerge: (
            "let the MERGE skip files: add the table's partition or clustering columns to its ON condition, or cluster"
            " the table by the join key (CLUSTER BY, or OPTIMIZE … ZORDER BY)"
        ),
    }
)


@SENTENCES.of(findings.RaisePartitions)
def raise_partitions(advice: findings.RaisePartitions, _words: Words) -> str:
    few = f"{advice.call}({advice.partitions})"
    return f"the program's `{few}` makes {counted(advice.partitions, 'task')}: use more partitions, or drop the call"


@SENTENCES.of(findings.UnaskedSlots)
def unasked_slots(found: findings.UnaskedSlots, words: Words) -> str:
    first, others = found.stages[0], len(found.stages) - 1
    more = f"; {counted(others, 'more stage')} had the same problem" if others else ""
    return f"{first.id} {first.name}: {unasked_stage(first, words)}{more}"


@SENTENCES.of(findings.UnaskedStage)
def unasked_stage(stage: findings.UnaskedStage, _words: Words) -> str:
    had = f"dynamic allocation gave it {stage.slots} slots for its {counted(stage.tasks, 'task')}"
    return f"{had}, although the run had {stage.run_slots} at another time"


@SENTENCES.of(findings.ManySmallFiles)
def small_files(found: findings.ManySmallFiles, _words: Words) -> str:
    did = "wrote" if isinstance(found, findings.SmallOutput) else "read"
    files = f"{counted(found.files, 'file')} of {volume(found.file_bytes)} on average"
    return f"{_stages(found.stage, found.other_stages)} {did} {files}"


@SENTENCES.of(findings.MergeFiles)
def merge_files(advice: findings.MergeFiles, _words: Words) -> str:
    why = "opening a small file costs more than reading it"
    if advice.format is None or not advice.table:
        how = " (OPTIMIZE)" if advice.format == "delta" else " (rewrite_data_files)" if advice.format else ""
        return f"merge the small files into files of 100 MB or more{how}: {why}"
    if advice.format == "delta":
        return (
            f"compact the table: OPTIMIZE {advice.table}; and let writers do it (table property"
            f" delta.autoOptimize.autoCompact = true): {why}"
        )
    catalog, _, table = advice.table.partition(".")
    return (
        f"compact the table: CALL {catalog}.system.rewrite_data_files(table => '{table}'); and write fewer files (table"
        f" property write.distribution-mode = hash): {why}"
    )


@SENTENCES.of(findings.MergeScan)
def merge_scan(found: findings.MergeScan, _words: Words) -> str:
    table = f" into {found.table}" if found.table else ""
    return (
        f"{found.scope}: MERGE{table} scanned {counted(found.files, 'file')} for matches, and replaced {found.replaced}"
    )


@SENTENCES.of(findings.ReadAgain)
def read_again(found: findings.ReadAgain, _words: Words) -> str:
    where = _stages(found.stage, found.other_stages)
    return f"{where}: {counted(found.readers, found.scope)} read the same rows from storage"


@SENTENCES.of(findings.Speculation)
def speculation(found: findings.Speculation, _words: Words) -> str:
    where = _stages(found.stage, found.other_stages)
    raced = f"{found.won} of {counted(found.copies, 'copy')} of slow tasks ended first"
    saved = f" and saved at least {lasting(found.saved_ms)}" if found.saved_ms > 0 else ""
    lost = f"attempts that lost ran for {lasting(found.lost_ms)} of task time"
    return f"speculation in {where}: {raced}{saved}; {lost}"


@SENTENCES.of(findings.SlotsAwaited)
def slots_awaited(found: findings.SlotsAwaited, _words: Words) -> str:
    return (
        f"{_awaited(found)}; {counted(found.other_stages, 'more stage')} waited too"
        if found.other_stages
        else _awaited(found)
    )


@SENTENCES.of(remarks.AwaitedSlots)
def awaited_slots(found: remarks.AwaitedSlots, _words: Words) -> str:
    return _awaited(found.finding)


def _awaited(found: findings.SlotsAwaited) -> str:
    """Which stage waited for slots, and for what."""
    there = f"{found.free} of {counted(found.slots, 'slot')} were free" if found.slots else "it had none"
    came = f"executor {found.executor} came {lasting(found.added_ms)} later" if found.added_ms else ""
    if found.why == "executors":
        when = f" ({came})" if came else ""
        return f"{found.stage} {found.name} ran only on executors that came later{when}, although {there}"
    until = "; none of its tasks ever started" if not found.started else f" until {came}" if came else ""
    why = {
        "barrier": f"is a barrier stage: its {counted(found.tasks, 'task')} start together, and {there}",
        "profile": f"needs resource profile {found.profile}, and {there}",
        "unknown": f"got no slot, although {there}",
    }[found.why]
    return f"{found.stage} {found.name} {why}{until}"


@SENTENCES.of(findings.ProvideSlots)
def provide_slots(found: findings.ProvideSlots, _words: Words) -> str:
    if found.why == "barrier":
        return (
            f"have {found.tasks} free slots before a barrier stage of {found.tasks} tasks starts"
            " (spark.executor.instances, spark.dynamicAllocation.minExecutors, the cluster's quota), or give it fewer"
            " partitions"
        )
    if found.why == "profile":
        return "request executors of that profile earlier, check the quota, or run the stage with another profile"
    return "check the cluster's quota, excluded nodes, and the resources that tasks request"


def _stages(stage: str, others: int) -> str:
    return f"{stage} and {others} more" if others else stage


@SENTENCES.of(findings.GiveSchema)
def give_schema(found: findings.GiveSchema, _words: Words) -> str:
    if found.inferred:
        return "Spark reads the files to infer their schema: specify the schema"
    return "Spark reads the files' schema in one task: specify the schema, or read from a table, which has it"


@SENTENCES.of(findings.WriteFewerFiles)
def write_fewer_files(found: findings.WriteFewerFiles, _words: Words) -> str:
    if found.partitions is None:
        return "write fewer, larger files: coalesce or repartition the rows before you write them"
    return (
        "write fewer, larger files: repartition the rows by the columns of partitionBy before you write them, so that"
        f" each task writes to few of the {grouped(found.partitions)} partitions"
    )


@SENTENCES.of(findings.CacheRows)
def cache_rows(found: findings.CacheRows, _words: Words) -> str:
    return f"cache the rows that several {plural(found.scope)} read (cache or persist): they fit in memory"


@SENTENCES.of(advice.InspectDriver)
def inspect_driver(todo: advice.InspectDriver, _words: Words) -> str:
    if todo.scopes >= MANY_QUERIES:
        return f"run fewer than {todo.scopes} queries, larger ones and over fewer files: the driver works alone"
    return (
        "check what the driver does meanwhile: it plans queries, lists files and commits output; for the first query it"
        " also loads classes, which takes some seconds"
    )


@SENTENCES.of(advice.AvoidSpilling)
def avoid_spilling(found: advice.AvoidSpilling, _words: Words) -> str:
    if found.delegated:
        return "give each Python worker more memory (spark.python.worker.memory), or use more partitions"
    return "give executors more memory or fewer slots, or use more partitions"


@SENTENCES.of(advice.InspectEndedTasks)
def inspect_ended_tasks(found: advice.InspectEndedTasks, _words: Words) -> str:
    if found.status == "failed":
        return "find out why they failed: the event log and the stage's page in the Spark UI have the full stack trace"
    return "find out why they were killed: Spark ran speculative copies of slow tasks, or cancelled work"


@SENTENCES.of(advice.AvoidExhaustion)
def avoid_exhaustion(found: advice.AvoidExhaustion, _words: Words) -> str:
    return {
        "container": (
            "raise spark.executor.memoryOverhead, use fewer slots per executor (spark.executor.cores), or use more"
            " partitions"
        ),
        "killed": (
            "check the cluster manager's log for what killed it; if it was memory, raise"
            " spark.executor.memoryOverhead or use fewer slots per executor"
        ),
        "heap": (
            "raise spark.executor.memory, use fewer slots per executor (spark.executor.cores), or use more partitions"
        ),
        "device": (
            "run fewer tasks at a time on a GPU (spark.rapids.sql.concurrentGpuTasks), or use smaller batches"
            " (spark.rapids.sql.batchSizeBytes)"
        ),
        "delegate": (
            "use less memory in the Python function, send it fewer rows at a time"
            " (spark.sql.execution.arrow.maxRecordsPerBatch), or raise spark.executor.pyspark.memory"
        ),
    }[found.exhausted]


@SENTENCES.of(remarks.StreamingQuery)
def streaming_query(found: remarks.StreamingQuery, _words: Words) -> str:
    name = f"streaming query {found.query}"
    if not found.batches:
        return f"{name}: {counted(found.triggers, 'trigger')}, but no rows to process"
    parts = [f"{100 * each.share:.0f} % {_BATCH_PARTS[each.key]}" for each in found.parts[:2] if each.share >= 0.01]
    each_ms = f" of {_seconds(found.middle_ms)}"
    if found.batches > 1:
        each_ms += f" each (median; the longest {_seconds(found.longest_ms)})"
    where = f", {' and '.join(parts)}" if parts else ""
    most = ""
    if found.max_per_s is not None:
        most = f"; highest rate {'at least ' if found.is_lower_bound else ''}{_rate(found.max_per_s)}"
    return f"{name}: {counted(found.batches, 'batch')}{each_ms}{where}; {_pace(found)}{most}"


@SENTENCES.of(remarks.StreamState)
def stream_state(found: remarks.StreamState, _words: Words) -> str:
    where = " in RocksDB" if found.in_rocksdb else ""
    size = "" if found.size_bytes is None else f", {volume(found.size_bytes)} of memory"
    rows = "" if found.rows_last is None else f"{grouped(round(found.rows_last))} rows{where}{size}; "
    first = found.rows_first or 0.0
    if first and (found.rows_last or 0.0) >= _GROWN * first:
        rows = f"{rows}after the first batch it had {grouped(round(first))}; "
    more = f" ({counted(found.others, 'other operator')} with state)" if found.others else ""
    if found.fewer_partitions is not None:
        count = counted(found.fewer_partitions, "partition")
        more += f"; with {count}, and a new checkpoint, a batch would take {_seconds(found.fewer_batch_ms)}"
    return (
        f"state of {found.operator} in {found.query}: {rows}each of its {found.partitions} partitions takes"
        f" {_seconds(found.commit_ms)} to commit it, once a batch of {_seconds(found.batch_ms)}{more}"
    )


_GROWN = 2.0
"""Ratio of the last to the first number of rows of a state from which its growth is mentioned."""

_BATCH_PARTS = {
    "add_batch": "running the batch (addBatch)",
    "latest_offset": "querying the sources for new data (latestOffset)",
    "query_planning": "planning (queryPlanning)",
    "wal_commit": "writing the offsets to read to the checkpoint (walCommit)",
    "get_batch": "creating the sources' data frames (getBatch)",
    "commit_offsets": "writing the processed offsets to the checkpoint (commitOffsets)",
}


def _pace(found: remarks.StreamingQuery) -> str:
    came, could = found.input_per_s, found.processed_per_s
    rates = f"input {_rate(came)}, capacity {_rate(could)}" if came is not None and could else ""
    if found.pace == "falls-behind" and (came or 0.0) > (could or 0.0) and rates:
        return f"{rates}: it falls behind"
    if found.pace == "falls-behind":
        waits = f"the backlog of its sources grew from {found.waiting_first:.0f} to {found.waiting_last:.0f}"
        return f"{f'{rates}, and ' if rates else ''}{waits}: it falls behind"
    busy = None if found.busy_share is None else f"{100 * found.busy_share:.0f} %"
    if found.pace == "no-headroom":
        return (
            f"{f'{rates}, but ' if rates else ''}batches run {busy} of the time: it has no spare capacity, and the log"
            " does not record the backlog of its sources"
        )
    pauses = f", a batch starts every {_seconds(found.interval_ms)} and runs for {busy} of that" if busy else ""
    return f"{rates}{pauses}: it keeps up" if rates else f"the log has no rates{pauses}"


def _seconds(ms: float | None) -> str:
    ms = ms or 0.0
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def _rate(rows: float) -> str:
    return f"{rows:,.0f} rows/s".replace(",", " ") if rows >= 10 else f"{rows:.1f} rows/s"


@SENTENCES.of(remarks.FallsBehind)
def falls_behind(found: remarks.FallsBehind, _words: Words) -> str:
    query = found.query
    name = f"The stream falls behind: {query.query}"
    if query.input_per_s is not None and query.processed_per_s and query.input_per_s > query.processed_per_s:
        behind = f"receives {query.input_per_s:.0f} rows/s and processes {query.processed_per_s:.0f}"
    else:
        behind = f"has a backlog that grew from {query.waiting_first:.0f} to {query.waiting_last:.0f} rows"
    return f"{name} {behind}. It keeps up only if its batches get shorter; the times below are of the recorded batches"


_GROUPS_SHOWN = 3


@SENTENCES.of(remarks.PythonFunctions)
def python_functions(found: remarks.PythonFunctions, _words: Words) -> str:
    by_name: dict[tuple[str, ...], float] = {}
    for each in found.groups:
        by_name[each.functions] = by_name.get(each.functions, 0.0) + each.time_ms
    shown = [
        f"{', '.join(f'`{name}`' for name in names)}{f' ({lasting(ms)})' if len(by_name) > 1 else ''}"
        for names, ms in list(by_name.items())[:_GROUPS_SHOWN]
    ]
    more = f" and {len(by_name) - len(shown)} more" if len(by_name) > len(shown) else ""
    summed = " (the log has only their sum)" if any(len(names) > 1 for names in by_name) else ""
    return f"Python UDFs {', '.join(shown)}{more}{summed}"


@SENTENCES.of(remarks.MoreQueries)
def more_queries(found: remarks.MoreQueries, _words: Words) -> str:
    return f"The table spark_batches has {found.count} more streaming queries"


@SENTENCES.of(remarks.TableChange)
def table_change(found: remarks.TableChange, _words: Words) -> str:
    table = f" of {found.table}" if found.table else ""
    parts = [
        f"{lasting(ms)} {what}"
        for ms, what in ((found.scan_ms, "to find the files with matches"), (found.rewrite_ms, "to rewrite these"))
        if ms
    ]
    spent = f", of that {' and '.join(parts)}" if parts else ""
    text = f"{found.scope}: {found.operation.upper()}{table} took {lasting(found.whole_ms)}{spent}"
    if found.files is not None and found.files_scanned is not None:
        text += f"; it scanned {found.files_scanned} of {counted(found.files, 'file')}"
        text += f", and replaced {found.files_removed} by {found.files_added}"
    if found.deletion_vectors:
        text += f"; it wrote {counted(found.deletion_vectors, 'deletion vector')}"
    more = f"; the view spark_table_changes has {counted(found.others, 'more change')}" if found.others else ""
    return text + more


@SENTENCES.of(remarks.Statements)
def statements(found: remarks.Statements, _words: Words) -> str:
    failed = f", {found.failed} failed or canceled" if found.failed else ""
    text = f"{counted(found.count, 'statement')} of {counted(found.session_count, 'session')}{failed}"
    if not any(each.task_ms for each in found.heaviest):
        return text
    heaviest = "; ".join(_statement(each) for each in found.heaviest if each.share >= SMALL_SHARE)
    text += f". Most task time: {heaviest}"
    if found.session_count > 1:
        of = ", ".join(_session(each) for each in found.sessions if each.share >= SMALL_SHARE)
        text += f". By session: {of}"
    return text


def _statement(found: remarks.HeavyStatement) -> str:
    user = f" of {found.user}" if found.user else ""
    said = f", {_cut(found.text)}" if found.text else ""
    return f"{found.scope}{user} ({100 * found.share:.0f} %, {lasting(found.length_ms)}{said})"


def _session(found: remarks.HeavySession) -> str:
    name = (found.session or "unknown")[:8]
    user = f" of {found.user}" if found.user else ""
    return f"{name}{user} {100 * found.share:.0f} % ({counted(found.statements, 'statement')})"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_STATEMENT else f"{text[: LONGEST_STATEMENT - 1]}…"


@SENTENCES.of(missing.UnreadParts)
def unread_parts(found: missing.UnreadParts, _words: Words) -> str:
    lacks = {
        "missing_part": "the log lacks {count} of its parts",
        "compacted_log": "Spark compacted the log and dropped finished jobs from it",
        "second_application": "the log also has events of another application, which cannot be separated",
    }
    return ", ".join(lacks[each.problem].format(count=each.count) for each in found.parts)


@SENTENCES.of(remarks.HeapOversized)
def heap_oversized(found: remarks.HeapOversized, _words: Words) -> str:
    used = f"at most {volume(found.used_bytes)} of {volume(found.heap_bytes)} heap were in use, garbage included"
    return f"The heap is larger than it needs to be: {used}; {size_text(found.safe_bytes)} would do"


@SENTENCES.of(remarks.HeapNearLimit)
def heap_near_limit(found: remarks.HeapNearLimit, _words: Words) -> str:
    collected = f"{100 * found.gc_share:.0f} % of task time in GC"
    whole = f", {counted(found.full_gcs, 'full collection')}" if found.full_gcs else ""
    return (
        f"The heap of {volume(found.heap_bytes)} is near its limit ({collected}{whole}):"
        f" less than {volume(found.floor_bytes)} would likely run out"
    )


@SENTENCES.of(remarks.ProfileStages)
def profile_stages(found: remarks.ProfileStages, _words: Words) -> str:
    requests = {
        who: ", ".join(f"{name} {_requested(name, amount)}" for by, name, amount in found.requests if by == who)
        for who in ("executor", "task")
    }
    known = "; ".join(f"{who}: {text}" for who, text in requests.items() if text)
    runs = "runs" if not found.others else "run"
    text = f"{_stages(found.stage, found.others)} {runs} with resource profile {found.profile} ({known})"
    if found.usable_slots < found.slots:
        text += f": of {counted(found.slots, 'slot')}, at most {found.usable_slots} can be in use by such a stage"
    return text


def _requested(name: str, amount: float) -> str:
    return volume(amount) if "emory" in name or name == "offHeap" else f"{amount:g}"


@SENTENCES.of(remarks.BarrierStages)
def barrier_stages(found: remarks.BarrierStages, _words: Words) -> str:
    more = f"; so {'does' if found.others == 1 else 'do'} {found.others} more" if found.others else ""
    return f"{found.stage} is a barrier stage: its {counted(found.tasks, 'task')} need as many free slots at once{more}"


@SENTENCES.of(remarks.Decommissioned)
def decommissioned(found: remarks.Decommissioned, _words: Words) -> str:
    count = len(found.executors)
    who = f"executor {found.executors[0]}" if count == 1 else f"{count} executors"
    begin = f"the cluster took {who} away after a notice (decommissioning), {lasting(found.first_ms)} after the start"
    if found.redone_tasks:
        redone = f"{counted(found.redone_tasks, 'task')} ran again ({lasting(found.redone_ms)} of task time)"
    else:
        redone = "no task ran again"
    hint = "" if found.moved else "; executors copy their shuffle files first with spark.storage.decommission.enabled"
    return f"{begin}; {redone}{hint}"


@SENTENCES.of(remarks.RemoteShuffle)
def remote_shuffle(found: remarks.RemoteShuffle, _words: Words) -> str:
    moved = f"{volume(found.written_bytes)} written, {volume(found.read_bytes)} read"
    return (
        f"{found.service} keeps shuffled data ({moved}), not the executors: time in writing and waiting for them counts"
        f" as network, and may be that of {found.service}'s disks"
    )


@SENTENCES.of(remarks.PushedShuffle)
def pushed_shuffle(found: remarks.PushedShuffle, _words: Words) -> str:
    share = 100 * found.merged_bytes / (found.read_bytes or 1)
    text = f"push-based shuffle had merged {share:.0f} % of the shuffled data that tasks read"
    text += f" ({volume(found.read_bytes)})"
    if found.fallbacks:
        text += (
            f"; {counted(found.fallbacks, 'merged block')} could not be read, and the original ones were read instead"
        )
    return text


# Recommendations ------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        FewerTasksPerGpu: "Run fewer tasks at a time on a GPU, or use smaller batches: its memory was full",
    }
)


def _conf(change: SettingChange) -> str:
    """A setting in the syntax of spark-submit."""
    if change.name == "spark.master":
        return f"--master '{change.after}'"  # quotes: a shell would expand the brackets
    return f"--conf {change.name}={value_text(change.after)}"


def _affected(stages: Affected) -> str:
    """`stage:4.0 and 2 more: 4 tasks for 16 slots`."""
    return f"{_named(stages)}: {counted(stages.tasks, 'task')} for {counted(stages.slots, 'slot')}"


def _named(stages: Affected) -> str:
    return f"{stages.stage} and {stages.others} more" if stages.others else stages.stage


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    return tuple(line for each in found.settings for line in _setting_lines(each))


def _setting_lines(change: SettingChange) -> tuple[str, ...]:
    """The lines of a setting: on the command line, or in the program if that sets it, because it has precedence."""
    value = value_text(change.after)
    if change.name == "spark.master":  # which of them a program uses is not recorded
        return (f'{_conf(change)}  # or in the program: .master("{value}")',)
    in_program = f'.config("{change.name}", "{value}")'
    if change.set_by in ("program", "session"):
        line = in_program if change.set_by == "program" else f'spark.conf.set("{change.name}", "{value}")'
        no_effect = _commented(_conf(change), "no effect while it does")
        return (*_commented(line, "in the program, which sets it"), *no_effect)
    if change.set_by == "unclear":
        return (_conf(change), *_commented(in_program, "if the program sets it"))
    return (_conf(change),)


MOST_COLUMNS = 73
"""The longest line to paste that a screen of 80 columns shows in one line."""


def _commented(line: str, comment: str) -> tuple[str, ...]:
    """A line with a comment after it, or above it if that is too long."""
    whole = f"{line}  # {comment}"
    return (whole,) if len(whole) <= MOST_COLUMNS else (f"# {comment}:", line)


@SENTENCES.lines(TunedSetting)
def tuned_lines(found: TunedSetting, _words: Words) -> tuple[str, ...]:
    """Lines of spark-defaults.conf, each after what a program that sets it has to change."""
    lines: list[str] = []
    for each in found.settings:
        value, own = value_text(each.after), each.name != "spark.master"
        in_program = f'.config("{each.name}", "{value}")' if own else f'.master("{value}")'
        if each.set_by == "session":
            lines.append(f'# The program sets it, so change it there: spark.conf.set("{each.name}", "{value}")')
        elif each.set_by == "program":
            lines.append(f"# The program sets it, so change it there: {in_program}")
        elif each.set_by == "unclear":
            lines.append(f"# If the program sets it, change it there: {in_program}")
        lines.append(f"{each.name} {value}")
    return tuple(lines)


@SENTENCES.of(ReadDriverLog)
def read_driver_log(found: ReadDriverLog, _words: Words) -> str:
    return f"Check the driver's log for why it ended: it stopped Spark while {found.failed} was running"


# Numbers of tasks


@SENTENCES.of(SetPartitions)
def set_partitions(found: SetPartitions, words: Words) -> str:
    return f"{change_setting(found, words)} ({_affected(found.stages)})"


@SENTENCES.of(ListFoldersInFewerTasks)
def list_folders_in_fewer_tasks(found: ListFoldersInFewerTasks, words: Words) -> str:
    return f"{change_setting(found, words)}: Spark starts one task per folder that it lists ({_affected(found.stages)})"


@SENTENCES.of(KeepPartitions)
def keep_partitions(found: KeepPartitions, words: Words) -> str:
    merges = "left fewer partitions than slots" if found.settings[0].after is True else "merged small partitions"
    return f"{change_setting(found, words)}: adaptive execution {merges} ({_affected(found.stages)})"


@SENTENCES.of(CutFilesSmaller)
def cut_files_smaller(found: CutFilesSmaller, words: Words) -> str:
    return (
        f"{change_setting(found, words)}, so that Spark makes smaller partitions of files ({_affected(found.stages)})"
    )


@SENTENCES.of(CutFilesLarger)
def cut_files_larger(found: CutFilesLarger, words: Words) -> str:
    return f"{change_setting(found, words)}, so that Spark makes larger partitions of files ({_affected(found.stages)})"


@SENTENCES.of(SkipLocalityWait)
def skip_locality_wait(found: SkipLocalityWait, words: Words) -> str:
    where = _named(found.stages)
    if found.on_one_executor is not None:
        where += f": {found.on_one_executor} of {found.stages.tasks} tasks ran on one executor"
    return f"{change_setting(found, words)}, so that free executors run tasks even if another has the data ({where})"


@SENTENCES.of(AskForPartitions)
def ask_for_partitions(found: AskForPartitions, _words: Words) -> str:
    if found.call is not None:
        few = f"`{found.call}({found.stages.tasks})`"
        return f"Use {found.partitions} partitions instead of {few} in the program ({_affected(found.stages)})"
    return (
        f"Use {found.partitions} partitions where the program sets {found.stages.tasks} (repartition or"
        f" coalesce; {_affected(found.stages)})"
    )


@SENTENCES.lines(InProgram)
def repartition(found: InProgram, _words: Words) -> tuple[str, ...]:
    name = "df" if found.sql else "rdd"
    return (f"{name} = {name}.repartition({found.partitions})",)


@SENTENCES.lines(AskForPartitions)
def instead(found: AskForPartitions, words: Words) -> tuple[str, ...]:
    if found.call is None:
        return repartition(found, words)
    return (f"df = df.{found.call}({found.partitions})  # instead of {found.call}({found.stages.tasks})",)


@SENTENCES.of(ReadInPartitions)
def read_in_partitions(found: ReadInPartitions, _words: Words) -> str:
    return f"Read the files into {found.partitions} partitions ({_affected(found.stages)})"


@SENTENCES.lines(ReadInPartitions)
def text_file(found: ReadInPartitions, _words: Words) -> tuple[str, ...]:
    return (f"rdd = sc.textFile(path, {found.partitions})  # for gzip files: rdd.repartition({found.partitions})",)


@SENTENCES.of(SpreadRows)
def spread_rows(found: SpreadRows, _words: Words) -> str:
    stages = found.stages
    return (
        f"Repartition the rows into {found.partitions} partitions after {stages.name} reads them: {found.with_data} of"
        f" {counted(stages.tasks, 'task')} had input, for {stages.slots} slots ({_affected(stages)})"
    )


@SENTENCES.of(SplitFiles)
def split_files(found: SplitFiles, _words: Words) -> str:
    return (
        f"Store the input as Parquet, as uncompressed text, or in {found.partitions} files: Spark reads each of its"
        f" files in one task, because it cannot split them ({_affected(found.stages)})"
    )


@SENTENCES.of(CutCollection)
def cut_collection(found: CutCollection, _words: Words) -> str:
    partitions = counted(found.partitions, "partition")
    return f"Split the input of {found.stages.name} into {partitions} ({_affected(found.stages)})"


@SENTENCES.lines(CutCollection)
def parallelize(found: CutCollection, _words: Words) -> tuple[str, ...]:
    if found.sql:
        return (f"df = df.{'repartition' if found.more else 'coalesce'}({found.partitions})",)
    return (f"rdd = sc.parallelize(rows, {found.partitions})  # or rdd.repartition({found.partitions})",)


@SENTENCES.of(ReduceInPartitions)
def reduce_in_partitions(found: ReduceInPartitions, _words: Words) -> str:
    return f"Use {found.partitions} partitions for the shuffle that {found.reads} reads ({_affected(found.stages)})"


@SENTENCES.lines(ReduceInPartitions)
def reduce_by_key(found: ReduceInPartitions, _words: Words) -> tuple[str, ...]:
    return (f"rdd.reduceByKey(merge, {found.partitions})  # the last argument of each such operation",)


# Rows and files


@SENTENCES.of(GiveSchema)
def recommend_schema(found: GiveSchema, _words: Words) -> str:
    jobs = counted(found.jobs, "job")
    if found.inferred:
        return f"Specify the schema of the files: {jobs} read them only to infer it ({found.stage} {found.name})"
    return f"Specify the schema of the files, or read tables: {jobs} of one task only read it ({found.name})"


@SENTENCES.lines(GiveSchema)
def schema(found: GiveSchema, _words: Words) -> tuple[str, ...]:
    if found.inferred:
        return ("spark.read.schema(schema).csv(path)  # or json, or your format",)
    return ("spark.read.schema(schema).load(path)",)


@SENTENCES.of(SplitKeys)
def recommend_split_keys(found: SplitKeys, words: Words) -> str:
    stage = found.evidence
    return f"Split the few keys that have most rows (salting): {stage.id} {stage.name}: {text_of(stage, words)}"


@SENTENCES.of(SplitSkewedJoin)
def split_skewed_join(found: SplitSkewedJoin, _words: Words) -> str:
    first, largest = found.settings[0], volume(found.largest_bytes)
    if first.after is not True:
        why = f"adaptive execution splits only larger partitions of a join; its largest has {largest}"
    else:
        why = "it splits keys that have most rows of a join"
        if found.threshold_bytes is not None:
            why += f", but only partitions above {size_text(found.threshold_bytes)}; the largest has {largest}"
    return f"{setting_text(first)}: {why} ({found.stage})"


@SENTENCES.of(PartitionWindow)
def recommend_window_partition(found: PartitionWindow, words: Words) -> str:
    what = text_of(findings.PartitionWindow(), words)
    return f"If the program may order rows in parts, {what} ({found.stage})"


@SENTENCES.lines(PartitionWindow)
def window(_found: PartitionWindow, _words: Words) -> tuple[str, ...]:
    return ("Window.partitionBy(key).orderBy(…)  # instead of Window.orderBy(…)",)


def _sent(found: SendFewerRows) -> str:
    others = f", and {counted(found.others, 'more stage')} did the same" if found.others else ""
    return f"{found.stage} ({found.name}) sent it {volume(found.sent_bytes)}{others}"


@SENTENCES.of(SendFewerRows)
def send_fewer_rows(found: SendFewerRows, _words: Words) -> str:
    return f"Send fewer rows to the driver: {_sent(found)}"


@SENTENCES.lines(SendFewerRows)
def write_instead(_found: SendFewerRows, _words: Words) -> tuple[str, ...]:
    return ("df.write.parquet(path)  # instead of df.collect() or df.toPandas()",)


@SENTENCES.of(AvoidBroadcast)
def avoid_broadcast(found: AvoidBroadcast, _words: Words) -> str:
    return f"Do not broadcast so large a table in a join, because it passes through the driver: {_sent(found)}"


@SENTENCES.lines(AvoidBroadcast)
def no_broadcast(found: AvoidBroadcast, _words: Words) -> tuple[str, ...]:
    return (f"{_conf(found.settings[0])}  # and remove broadcast()",)


@SENTENCES.of(ProfilePython)
def profile_python(found: ProfilePython, _words: Words) -> str:
    what = f"{_python_code(found.functions)} that tasks wait for"
    where = f"({found.stage} {found.name})"
    if found.scalar_udf:
        return (
            f"Rewrite {what} with Spark SQL functions, which are fastest, or as a pandas_udf, which is faster {where}"
        )
    return f"Profile {what} {where}"


def _python_code(functions: Sequence[str]) -> str:
    """Python functions by their names, if there are any."""
    if not functions:
        return "the Python code"
    shown, left = functions[:_GROUPS_SHOWN], len(functions) - _GROUPS_SHOWN
    names = ", ".join(f"`{name}`" for name in shown)
    more = f" and {left} more" if left > 0 else ""
    return f"the Python {'function' if len(functions) == 1 else 'functions'} {names}{more}"


# Memory and executors

_RAN_OUT: dict[Exhausted, str] = {
    "heap": "a heap was too small",
    "container": "a container exceeded its memory limit, because of memory outside the heap",
    "delegate": "the limit of a Python worker was too small",
    "killed": "an executor was killed from outside, most often because of memory outside the heap",
}


@SENTENCES.of(MoreMemory)
def more_memory(found: MoreMemory, _words: Words) -> str:
    effect = ", so that cached data fits" if found.because == "cache-misses" else ""
    return f"{setting_text(found.settings[0])}{effect}"


@SENTENCES.of(ExtendMemory)
def extend_memory(found: ExtendMemory, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}: {_RAN_OUT[found.exhausted]}"


@SENTENCES.of(RightSizeMemory)
def right_size_memory(found: RightSizeMemory, _words: Words) -> str:
    used = f"at most {volume(found.used_bytes)} of {volume(found.heap_bytes)} heap were in use, garbage included"
    frees = f"frees {memory_hours(found.freed_byte_ms)} ({100 * found.share:.0f} % of its memory)"
    return f"{', '.join(map(setting_text, found.settings))}: {used}. Shortens nothing, but {frees}"


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
    return f"{more}, on a cluster that has capacity for them" if found.asked is not None else more


@SENTENCES.of(MoreLocalSlots)
def more_local_slots(found: MoreLocalSlots, words: Words) -> str:
    return f"{change_setting(found, words)}, on a machine with that many free cores"


@SENTENCES.of(StartExecutorsEarlier)
def start_executors_earlier(found: StartExecutorsEarlier, _words: Words) -> str:
    return f"{setting_text(found.settings[0])}, so that executors are ready from the start"


@SENTENCES.of(CheckCapacity)
def check_capacity(found: CheckCapacity, _words: Words) -> str:
    cores = "not set" if found.executor_cores is None else value_text(found.executor_cores)
    default = " (the default)" if found.is_default_memory else ""
    return (
        "Check that the cluster has enough free cores and memory for one executor, because none ever started:"
        f" `spark.executor.cores` {cores}, `spark.executor.memory` {found.executor_memory}{default}"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.LocalRun: "a local run is one process without a second executor; change its slots with cores= instead",
        assumptions.FilesPerPartition: (
            "a task that writes a shuffle writes one file for each partition, so it takes longer with more partitions"
            " and shorter with fewer"
        ),
        assumptions.CheckpointRenewed: (
            "the query starts from a new checkpoint, because a checkpoint fixes spark.sql.shuffle.partitions of a query"
            " with state"
        ),
        assumptions.PythonCounted: (
            "time in which a task waits for its Python worker counts as cpu, the CPU time of that worker"
        ),
    }
)


@SENTENCES.of(refusals.BarrierTooWide)
def barrier_too_wide(refusal: refusals.BarrierTooWide, _words: Words) -> str:
    return (
        f"{refusal.stage} is a barrier stage, whose {counted(refusal.tasks, 'task')} start at the same time: Spark does"
        f" not run it on {counted(refusal.slots, 'slot')}"
    )


@SENTENCES.of(refusals.TaskTooWide)
def task_too_wide(refusal: refusals.TaskTooWide, _words: Words) -> str:
    return (
        f"a task of {refusal.stage} takes {refusal.slots:g} slots of an executor by its resource profile, and executors"
        f" would have {refusal.executor_slots:g}"
    )


@SENTENCES.of(refusals.ProfilesDiffer)
def profiles_differ(_refusal: refusals.ProfilesDiffer, _words: Words) -> str:
    return "executors' profiles differ; give a factor"  # one line of the first screen


@SENTENCES.of(refusals.ShuffleElsewhere)
def shuffle_elsewhere(refusal: refusals.ShuffleElsewhere, _words: Words) -> str:
    return (
        f"{refusal.service} keeps shuffled data on machines of its own, whose {refusal.device} the log does not show;"
        " predictions for other executors, cores, CPU speed and memory are possible"
    )


@SENTENCES.of(assumptions.ProfilesScaled)
def profiles_scaled(assumed: assumptions.ProfilesScaled, _words: Words) -> str:
    return (
        f"the executors of {assumed.stage}, which have a resource profile of their own, change as all others do; the"
        " program sets their cores and memory"
    )


@SENTENCES.of(assumptions.ServiceKept)
def service_kept(assumed: assumptions.ServiceKept, _words: Words) -> str:
    return f"{assumed.service} takes and serves shuffled data as fast as recorded, also for other executors"


@SENTENCES.of(assumptions.StagesNotReplanned)
def stages_not_replanned(assumed: assumptions.StagesNotReplanned, _words: Words) -> str:
    return f"stages keep their recorded tasks, although Spark might plan others for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.SamePlan)
def same_plan(assumed: assumptions.SamePlan, _words: Words) -> str:
    return f"Spark would plan the same tasks for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.StagesReplanned)
def stages_replanned(assumed: assumptions.StagesReplanned, _words: Words) -> str:
    return (
        f"Spark would split {assumed.stages} stage{'s' if assumed.stages > 1 else ''} into other tasks for"
        f" {_these(assumed.slots_only)} ({assumed.tasks} tasks become {assumed.planned_tasks}); these share the work in"
        " the recorded order (--no-replan keeps the recorded tasks)"
    )


def _these(slots_only: bool) -> str:
    return "these slots" if slots_only else "this change"


@SENTENCES.of(assumptions.LargeKeyKept)
def large_key_kept(assumed: assumptions.LargeKeyKept, _words: Words) -> str:
    first, more = assumed.stages[0], len(assumed.stages) - 1
    which = f"{first} and {more} more keep their" if more else f"{first} keeps its"
    return (
        f"{which} recorded tasks, because one read far more than most: if that is one key, more partitions do not"
        " split it"
    )


@SENTENCES.of(assumptions.CpuTimeMissing)
def cpu_time_missing(assumed: assumptions.CpuTimeMissing, _words: Words) -> str:
    collected = f", {lasting(assumed.garbage_ms)} of it garbage collection" if assumed.garbage_ms else ""
    return f"this log has no CPU time of tasks: cpu has only Spark's other timings{collected}"
