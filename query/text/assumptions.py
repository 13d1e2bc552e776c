"""Sentences of assumptions."""

from __future__ import annotations

from crystalperf.query.results import assumptions as kinds
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE, text_of
from crystalperf.query.trace.amounts import counted
from crystalperf.query.trace.vocabulary import plural, with_article

_SECONDS_MS = 10_000.0
"""Times from this length on are written in seconds."""


# The prediction -------------------------------------------------------------------------------------------------------


@CORE.of(kinds.OtherPredictor)
def other_predictor(assumed: kinds.OtherPredictor, _words: Words) -> str:
    return f"the prediction is from {assumed.predictor}, which gives no interval"


@CORE.of(kinds.NoTerm)
def no_term(assumed: kinds.NoTerm, _words: Words) -> str:
    return f"{assumed.predictor} has no term for {', '.join(assumed.settings)}, which changes nothing in its prediction"


@CORE.of(kinds.NoInterval)
def no_interval(assumed: kinds.NoInterval, _words: Words) -> str:
    return f"no reruns have checked predictions of {', '.join(assumed.settings)}, so there is no interval"


@CORE.of(kinds.BetweenEnds)
def between_ends(assumed: kinds.BetweenEnds, words: Words) -> str:
    return f"{text_of(assumed.unknown, words)}; the prediction is between both bounds"


@CORE.of(kinds.TimeImputed)
def time_imputed(assumed: kinds.TimeImputed, words: Words) -> str:
    known = words.vocabulary
    devices, waits = assumed.devices_ms / 1e3, assumed.cpu_wait_ms / 1e3
    text = (
        f"without samples, CrystalPerf imputes the resource of {assumed.imputed_ms / 1e3:.1f} of"
        f" {assumed.task_ms / 1e3:.1f} s of {known.task} time: "
    )
    there = f"reading files on other machines, from priors of {assumed.recordings} recorded runs of the same kind"
    if assumed.waits_per_cpu_second is None:
        return f"{text}{devices:.1f} s on devices and {waits:.1f} s of CPU wait in {there}"
    text += (
        f"{waits:.1f} s of CPU wait, because {known.tasks} without file reads and writes took"
        f" {assumed.waits_per_cpu_second:.1f} s more for each second of CPU time"
    )
    return f"{text}; {devices:.1f} s of the rest for {there}" if devices > 0 else text


@CORE.of(kinds.CacheMisses)
def cache_misses(assumed: kinds.CacheMisses, words: Words) -> str:
    then = f"about {assumed.misses_left} have one" if assumed.misses_left > 0 else "none has one"
    return (
        f"{assumed.misses} of {assumed.reads} {words.vocabulary.tasks} had a cache miss; with {assumed.ratio:.3g} times"
        f" the cache memory, {then}"
    )


# Slots and tasks ------------------------------------------------------------------------------------------------------


@CORE.of(kinds.TasksKept)
def tasks_kept(_assumed: kinds.TasksKept, words: Words) -> str:
    return f"{words.vocabulary.stages} keep their recorded {words.vocabulary.tasks}"


@CORE.of(kinds.WorkersStay)
def workers_stay(_assumed: kinds.WorkersStay, words: Words) -> str:
    return f"{words.vocabulary.workers} that were lost or released in the recorded run stay until others replace them"


@CORE.of(kinds.AddedSlots)
def added_slots(assumed: kinds.AddedSlots, words: Words) -> str:
    known = words.vocabulary
    brings = f"added {known.slots} bring no CPU core"
    if assumed.with_cores:
        brings = f"every {known.task} {known.slot} brings its own core"
    return f"{brings}, every added {known.worker} brings its own node"


@CORE.of(kinds.NodeShared)
def node_shared(_assumed: kinds.NodeShared, words: Words) -> str:
    return f"concurrent {words.vocabulary.tasks} on a node share its disk and its network equally"


@CORE.of(kinds.SlotsIdle)
def slots_idle(assumed: kinds.SlotsIdle, words: Words) -> str:
    known = words.vocabulary
    return (
        f"of {assumed.slots} {known.slots}, at most {assumed.busy} run {with_article(known.task)} at a time; the rest"
        " stay idle"
    )


@CORE.of(kinds.CpuLimited)
def cpu_limited(assumed: kinds.CpuLimited, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{known.workers} get at most as much CPU as the recorded ones, {assumed.cores:.2f} cores per {known.slot},"
        " because those waited for CPUs"
    )


@CORE.of(kinds.WorkEven)
def work_even(_assumed: kinds.WorkEven, words: Words) -> str:
    known = words.vocabulary
    return (
        f"the {known.tasks} of each {known.stage} take equally long and keep their number (a last wave with few"
        f" {known.tasks} may cost more than this saves); spreading the work costs nothing"
    )


@CORE.of(kinds.OperatorTime)
def operator_time(assumed: kinds.OperatorTime, words: Words) -> str:
    unit, ms = ("s", 1e3) if assumed.task_ms >= _SECONDS_MS else ("ms", 1.0)
    return (
        f"{assumed.operator} took {assumed.time_ms / ms:.1f} of {assumed.task_ms / ms:.1f} {unit} of"
        f" {words.vocabulary.task} time"
    )


# Devices --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.CpuTimeScales)
def cpu_time_scales(_assumed: kinds.CpuTimeScales, words: Words) -> str:
    return f"CPU time, including the {words.vocabulary.driver}'s, scales inversely with the speed of a core"


@CORE.of(kinds.DeviceTimeScales)
def device_time_scales(assumed: kinds.DeviceTimeScales, _words: Words) -> str:
    return f"time on the {assumed.device} scales inversely with its speed"


@CORE.of(kinds.DeviceBandwidth)
def device_bandwidth(assumed: kinds.DeviceBandwidth, _words: Words) -> str:
    return f"time on the {assumed.device} scales with its bandwidth, except for processing each buffer"


@CORE.of(kinds.TransferTime)
def transfer_time(assumed: kinds.TransferTime, words: Words) -> str:
    return (
        f"of the {assumed.seen_ms / 1e3:.1f} s that {words.vocabulary.tasks} spent on the {assumed.device}, the"
        f" transfer of {assumed.moved_bytes / 1e6:.0f} MB scales with the bandwidth; the rest is latency"
    )


@CORE.of(kinds.TransferTimeAtLeast)
def transfer_time_at_least(assumed: kinds.TransferTimeAtLeast, words: Words) -> str:
    tasks = words.vocabulary.tasks
    return (
        f"the speed of the recorded {assumed.device} is unknown, but it carried {8 * assumed.carried_bps / 1e6:.1f}"
        f" Mbit/s: of the {assumed.seen_ms / 1e3:.1f} s that {tasks} spent there, the transfer of"
        f" {assumed.moved_bytes / 1e6:.0f} MB at that rate scales with the bandwidth; if {tasks} waited for something"
        " else, nothing scales, which the range includes"
    )


@CORE.of(kinds.TransferTimeUnknown)
def transfer_time_unknown(assumed: kinds.TransferTimeUnknown, words: Words) -> str:
    return (
        f"the speed of the recorded {assumed.device} is unknown: the prediction is the middle between two bounds, that"
        f" all of the {assumed.seen_ms / 1e3:.1f} s that {words.vocabulary.tasks} spent there scales with the"
        " bandwidth, and that nothing does"
    )


# Memory and input -----------------------------------------------------------------------------------------------------


@CORE.of(kinds.WorkGrows)
def work_grows(_assumed: kinds.WorkGrows, words: Words) -> str:
    return (
        "all time of processing data grows with the data; the plan and the"
        f" {words.vocabulary.driver}'s own time stay the same"
    )


@CORE.of(kinds.MemorySuffices)
def memory_suffices(_assumed: kinds.MemorySuffices, _words: Words) -> str:
    return "memory suffices"


@CORE.of(kinds.TasksFit)
def tasks_fit(_assumed: kinds.TasksFit, words: Words) -> str:
    return f"every {words.vocabulary.task} still fits into memory"


@CORE.of(kinds.MemoryPressure)
def tasks_short_of_memory(assumed: kinds.MemoryPressure, words: Words) -> str:
    return (
        f"{assumed.tasks} of {assumed.total} {words.vocabulary.tasks} would need more memory than they have; the"
        " prediction adds no time for that"
    )


@CORE.of(kinds.MemorySufficed)
def memory_sufficed(assumed: kinds.MemorySufficed, words: Words) -> str:
    known = words.vocabulary
    spilled = "nothing spilled"
    if assumed.delegates_spilled:
        spilled = f"processes that compute for {known.tasks} spilled, and no {known.worker} did"
    return f"{spilled}, and {100 * assumed.share:.0f} % of {known.task} time was garbage collection: memory sufficed"


@CORE.of(kinds.MissingMemory)
def missing_memory(assumed: kinds.MissingMemory, _words: Words) -> str:
    return f"data that does not fit into memory is written and read once, at {assumed.rate_bps / 1e6:.0f} MB/s"


@CORE.of(kinds.SpillingScales)
def spilling_scales(assumed: kinds.SpillingScales, words: Words) -> str:
    return f"spilling, {100 * assumed.share:.0f} % of {words.vocabulary.task} time by samples, scales with its bytes"


@CORE.of(kinds.LiveDataFits)
def live_data_fits(assumed: kinds.LiveDataFits, words: Words) -> str:
    return (
        f"live data fits into {assumed.memory_bytes / 2**20:.0f} MiB, or {words.vocabulary.workers} run out of memory:"
        f" only {assumed.safe_bytes / 2**20:.0f} MiB are known to suffice"
    )


@CORE.of(kinds.PeakFits)
def peak_fits(_assumed: kinds.PeakFits, words: Words) -> str:
    return (
        f"the peak memory of every {words.vocabulary.task} still fits; this does not count cached blocks and long-lived"
        " objects"
    )


@CORE.of(kinds.GarbageCollectionScales)
def garbage_scales(assumed: kinds.GarbageCollectionScales, words: Words) -> str:
    return (
        f"garbage collection, {100 * assumed.share:.1f} % of {words.vocabulary.task} time, runs"
        f" {assumed.ratio:.1f} times as often"
    )


# Streams --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.SpreadKept)
def spread_kept(_assumed: kinds.SpreadKept, words: Words) -> str:
    known = words.vocabulary
    return f"records spread over the {known.tasks} of a {known.stage} as recorded, for any number of {known.tasks}"


@CORE.of(kinds.OneKey)
def one_key(_assumed: kinds.OneKey, words: Words) -> str:
    known = words.vocabulary
    return f"the extra load of the busiest {known.task} is one key, which more {known.tasks} cannot divide"


@CORE.of(kinds.CrossingCpuKept)
def crossing_cpu_kept(_assumed: kinds.CrossingCpuKept, _words: Words) -> str:
    return "the CPU time of network transfers is unknown and stays as recorded"


@CORE.of(kinds.SlotsUnused)
def slots_unused(_assumed: kinds.SlotsUnused, words: Words) -> str:
    known = words.vocabulary
    return f"more {known.slots} alone change nothing, because a job keeps its {known.tasks}: set those instead"


@CORE.of(kinds.TasksEvenOverWorkers)
def tasks_even_over_workers(_assumed: kinds.TasksEvenOverWorkers, words: Words) -> str:
    return f"{words.vocabulary.tasks} are spread evenly over {words.vocabulary.workers}"


@CORE.of(kinds.RecordsAlike)
def records_alike(_assumed: kinds.RecordsAlike, _words: Words) -> str:
    return "records are of the same kind and have the same key skew"


@CORE.of(kinds.SampledCpuScales)
def sampled_cpu_scales(_assumed: kinds.SampledCpuScales, _words: Words) -> str:
    return "sampled CPU time scales inversely with the speed of the CPU"


@CORE.of(kinds.OutsideLatencyKept)
def outside_latency_kept(assumed: kinds.OutsideLatencyKept, _words: Words) -> str:
    return f"external systems answer {' and '.join(assumed.stations)} as fast as in the recorded run"


@CORE.of(kinds.RestKept)
def rest_kept(assumed: kinds.RestKept, _words: Words) -> str:
    return f"sleeps and external waits of {' and '.join(assumed.stations)} take as long as in the recorded run"


@CORE.of(kinds.BufferTimeout)
def buffer_timeout(assumed: kinds.BufferTimeout, _words: Words) -> str:
    return (
        f"the buffer timeout is {assumed.timeout_ms:.0f} ms, the default: the recorded one is unknown, and too few"
        " records arrived to infer it"
    )


@CORE.of(kinds.StateKept)
def state_kept(_assumed: kinds.StateKept, _words: Words) -> str:
    return "a row takes as much work as recorded, with as much state"


@CORE.of(kinds.BatchesUnlimited)
def batches_unlimited(_assumed: kinds.BatchesUnlimited, _words: Words) -> str:
    return "no setting of the sources limits the rows of a batch"


@CORE.of(kinds.RateProcessed)
def rate_processed(_assumed: kinds.RateProcessed, _words: Words) -> str:
    return "the recorded stream fell behind, so its recorded rate is that of the rows that it processed"


@CORE.of(kinds.OtherStreamsKept)
def other_streams_kept(assumed: kinds.OtherStreamsKept, _words: Words) -> str:
    return f"{counted(assumed.count, 'other stream')} of the run keep their rates"


@CORE.of(kinds.RowsEvenOverTasks)
def rows_even_over_tasks(_assumed: kinds.RowsEvenOverTasks, words: Words) -> str:
    return f"the rows of a batch are spread evenly over the {words.vocabulary.tasks} of a {words.vocabulary.stage}"


@CORE.of(kinds.NetworkFree)
def network_free(_assumed: kinds.NetworkFree, _words: Words) -> str:
    return "the speed of the recorded network is unknown; transfers count as 0 s"


# Where recorded time went ---------------------------------------------------------------------------------------------


@CORE.of(kinds.InputCached)
def input_cached(assumed: kinds.InputCached, words: Words) -> str:
    known = words.vocabulary
    which = f"{assumed.stages} {known.stages if assumed.stages > 1 else known.stage}"
    if assumed.tasks < assumed.total:
        which = f"{assumed.tasks} of {assumed.total} {known.tasks} of {which}"
    return f"input of {which} was cached in the memory of {known.workers}: it used no disk and no network"


@CORE.of(kinds.InputMixed)
def input_mixed(assumed: kinds.InputMixed, _words: Words) -> str:
    return f"input from {assumed.root}: read together with local files, so all reading counts as disk time"


@CORE.of(kinds.InputRemote)
def input_remote(assumed: kinds.InputRemote, _words: Words) -> str:
    counted = "counts as network time"
    if assumed.unmeasured_by is not None:
        counted = f"is unknown, because {assumed.unmeasured_by} does not measure it"
    return f"input from {assumed.root}: reading goes over the network and {counted}"


@CORE.of(kinds.InputPartlyRemote)
def input_partly_remote(assumed: kinds.InputPartlyRemote, words: Words) -> str:
    rest = "reading counts as network time for these and as disk time for the others"
    if assumed.unmeasured_by is not None:
        rest = f"{assumed.unmeasured_by} does not measure the time of reading"
    return (
        f"input from {assumed.root}: {assumed.tasks} of {assumed.total} {words.vocabulary.tasks} ran on a machine"
        f" without the data; {rest}"
    )


@CORE.of(kinds.MoreInputs)
def more_inputs(assumed: kinds.MoreInputs, _words: Words) -> str:
    return f"input from {assumed.count} more file systems: as above"


@CORE.of(kinds.DeviceNotModelled)
def device_not_modelled(assumed: kinds.DeviceNotModelled, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{plural(assumed.device)} computed for this run and are not modelled: predictions for more {known.slots},"
        f" {known.workers} or CPUs are right only if {known.tasks} do not wait for {plural(assumed.device)}"
    )
