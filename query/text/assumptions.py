"""Sentences of assumptions."""

from __future__ import annotations

from crystalperf.query.results import assumptions as kinds
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE, text_of
from crystalperf.query.trace.vocabulary import plural, with_article

_SECONDS_MS = 10_000.0
"""Times from this length on are written in seconds."""


# The prediction -------------------------------------------------------------------------------------------------------


@CORE.of(kinds.OtherPredictor)
def other_predictor(assumed: kinds.OtherPredictor, _words: Words) -> str:
    return f"predicted by {assumed.predictor}, which gives no interval"


@CORE.of(kinds.NoInterval)
def no_interval(assumed: kinds.NoInterval, _words: Words) -> str:
    return f"no reruns have checked predictions of {', '.join(assumed.settings)}, so there is no interval"


@CORE.of(kinds.BetweenEnds)
def between_ends(assumed: kinds.BetweenEnds, words: Words) -> str:
    return f"{text_of(assumed.unknown, words)}; the answer is between both ends of that"


@CORE.of(kinds.TimeImputed)
def time_imputed(assumed: kinds.TimeImputed, words: Words) -> str:
    known = words.vocabulary
    devices, waits = assumed.devices_ms / 1e3, assumed.cpu_wait_ms / 1e3
    text = (
        f"without samples, {assumed.imputed_ms / 1e3:.1f} of {assumed.task_ms / 1e3:.1f} s of {known.unit} time are"
        " shared out: "
    )
    there = f"reading files on other machines, as {assumed.recordings} recorded runs of the same kind spent such time"
    if assumed.waits_per_cpu_second is None:
        return f"{text}{devices:.1f} s to devices and {waits:.1f} s to waiting for a CPU in {there}"
    text += (
        f"{waits:.1f} s to waiting for a CPU, for {known.units} that read and wrote no files took"
        f" {assumed.waits_per_cpu_second:.1f} s more for each second of their CPU time"
    )
    return f"{text}; {devices:.1f} s of what is left to {there}" if devices > 0 else text


@CORE.of(kinds.CacheMisses)
def cache_misses(assumed: kinds.CacheMisses, words: Words) -> str:
    then = f"about {assumed.misses_left} would" if assumed.misses_left > 0 else "none would"
    return (
        f"{assumed.misses} of {assumed.reads} {words.vocabulary.units} read anew what {words.vocabulary.workers} were"
        f" to keep; with room for {assumed.ratio:.3g} times as much {then}"
    )


# Slots and tasks ------------------------------------------------------------------------------------------------------


@CORE.of(kinds.TasksKept)
def tasks_kept(_assumed: kinds.TasksKept, words: Words) -> str:
    return f"{words.vocabulary.groups} keep their recorded {words.vocabulary.units}"


@CORE.of(kinds.WorkersStay)
def workers_stay(_assumed: kinds.WorkersStay, words: Words) -> str:
    return (
        f"{words.vocabulary.workers} that were lost or given back in the recorded run stay until another takes their"
        " place, for they would be needed"
    )


@CORE.of(kinds.AddedSlots)
def added_slots(assumed: kinds.AddedSlots, words: Words) -> str:
    known = words.vocabulary
    brings = f"more {known.lanes} bring {with_article(known.worker)} no CPU"
    if assumed.with_cores:
        brings = f"every {known.unit} {known.lane} brings its own core"
    return f"{brings}, every added {known.worker} its own node"


@CORE.of(kinds.NodeShared)
def node_shared(_assumed: kinds.NodeShared, words: Words) -> str:
    return f"{words.vocabulary.units} that run on a node at a time share its disk and its network equally"


@CORE.of(kinds.SlotsIdle)
def slots_idle(assumed: kinds.SlotsIdle, words: Words) -> str:
    known = words.vocabulary
    return (
        f"of {assumed.slots} {known.lanes} at most {assumed.busy} have {with_article(known.unit)} at a time; the rest"
        " stay idle"
    )


@CORE.of(kinds.CpuLimited)
def cpu_limited(assumed: kinds.CpuLimited, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{with_article(known.worker)} gets no more CPU than the recorded ones did at most, {assumed.cores:.2f} cores a"
        f" {known.lane}, for they waited for it"
    )


@CORE.of(kinds.WorkEven)
def work_even(_assumed: kinds.WorkEven, words: Words) -> str:
    known = words.vocabulary
    return (
        f"the {known.units} of each {known.group} take equally long, as many as they were (a last round that fills few"
        f" {known.lanes} may take more than is saved); what spreading the work costs is not counted"
    )


@CORE.of(kinds.OperatorTime)
def operator_time(assumed: kinds.OperatorTime, words: Words) -> str:
    unit, ms = ("s", 1e3) if assumed.task_ms >= _SECONDS_MS else ("ms", 1.0)
    return (
        f"{assumed.operator} took {assumed.time_ms / ms:.1f} of {assumed.task_ms / ms:.1f} {unit} of"
        f" {words.vocabulary.unit} time"
    )


# Devices --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.CpuTimeScales)
def cpu_time_scales(_assumed: kinds.CpuTimeScales, words: Words) -> str:
    return f"CPU time scales inversely with the speed of a core; the {words.vocabulary.coordinator}'s own time too"


@CORE.of(kinds.DeviceTimeScales)
def device_time_scales(assumed: kinds.DeviceTimeScales, _words: Words) -> str:
    return f"time on the {assumed.device} scales inversely with its speed"


@CORE.of(kinds.DeviceBandwidth)
def device_bandwidth(assumed: kinds.DeviceBandwidth, _words: Words) -> str:
    return f"time on the {assumed.device} scales with its bandwidth, less the processing of each buffer"


@CORE.of(kinds.TransferTime)
def transfer_time(assumed: kinds.TransferTime, words: Words) -> str:
    return (
        f"of the {assumed.seen_ms / 1e3:.1f} s that {words.vocabulary.units} were seen on the {assumed.device}, what it"
        f" took to bring {assumed.moved_bytes / 1e6:.0f} MB changes with the bandwidth; the rest is latency"
    )


@CORE.of(kinds.TransferTimeAtLeast)
def transfer_time_at_least(assumed: kinds.TransferTimeAtLeast, words: Words) -> str:
    units = words.vocabulary.units
    return (
        f"the run does not tell how fast its {assumed.device} was, but that it carried"
        f" {8 * assumed.carried_bps / 1e6:.1f} Mbit/s: of the {assumed.seen_ms / 1e3:.1f} s that {units} were seen"
        f" there, what {assumed.moved_bytes / 1e6:.0f} MB take at that rate changes with the bandwidth; if something"
        f" else held the {units} up, none does, and the range reaches there"
    )


@CORE.of(kinds.TransferTimeUnknown)
def transfer_time_unknown(assumed: kinds.TransferTimeUnknown, words: Words) -> str:
    return (
        f"the run does not tell how fast its {assumed.device} was: the figure is the middle between all of the"
        f" {assumed.seen_ms / 1e3:.1f} s that {words.vocabulary.units} were seen there changing with the bandwidth, and"
        " none"
    )


# Memory and input -----------------------------------------------------------------------------------------------------


@CORE.of(kinds.WorkGrows)
def work_grows(_assumed: kinds.WorkGrows, words: Words) -> str:
    return (
        "all that is made of the data grows with it, and the plan stays; the"
        f" {words.vocabulary.coordinator}'s own time stays too"
    )


@CORE.of(kinds.MemorySuffices)
def memory_suffices(_assumed: kinds.MemorySuffices, _words: Words) -> str:
    return "memory is taken to suffice"


@CORE.of(kinds.TasksFit)
def tasks_fit(_assumed: kinds.TasksFit, words: Words) -> str:
    return f"every {words.vocabulary.unit} would still fit into memory"


@CORE.of(kinds.TasksShortOfMemory)
def tasks_short_of_memory(assumed: kinds.TasksShortOfMemory, words: Words) -> str:
    return (
        f"{assumed.tasks} of {assumed.total} {words.vocabulary.units} would need more memory than they have; what that"
        " costs is not counted"
    )


@CORE.of(kinds.MemorySufficed)
def memory_sufficed(assumed: kinds.MemorySufficed, words: Words) -> str:
    known = words.vocabulary
    spilled = "nothing was spilled"
    if assumed.delegates_spilled:
        spilled = f"processes that compute for {known.units} spilled, and no {known.worker} did"
    return f"{spilled}, and {100 * assumed.share:.0f} % of {known.unit} time was garbage collection: memory sufficed"


@CORE.of(kinds.MissingMemory)
def missing_memory(assumed: kinds.MissingMemory, _words: Words) -> str:
    return f"missing memory is written and read once at {assumed.rate_bps / 1e6:.0f} MB/s"


@CORE.of(kinds.SpillingScales)
def spilling_scales(assumed: kinds.SpillingScales, words: Words) -> str:
    return (
        f"spilling, {100 * assumed.share:.0f} % of {words.vocabulary.unit} time by its samples, grows and shrinks with"
        " its bytes"
    )


@CORE.of(kinds.PeakFits)
def peak_fits(_assumed: kinds.PeakFits, words: Words) -> str:
    return (
        f"every {words.vocabulary.unit}'s peak memory still fits; cached blocks and objects that live long are not"
        " counted"
    )


@CORE.of(kinds.GarbageScales)
def garbage_scales(assumed: kinds.GarbageScales, words: Words) -> str:
    return (
        f"garbage collection, {100 * assumed.share:.1f} % of {words.vocabulary.unit} time, comes"
        f" {assumed.ratio:.1f} times as often"
    )


# Streams --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.SpreadKept)
def spread_kept(_assumed: kinds.SpreadKept, words: Words) -> str:
    known = words.vocabulary
    return f"records spread over the {known.units} of a {known.group} as they did, whatever their number"


@CORE.of(kinds.OneKey)
def one_key(_assumed: kinds.OneKey, words: Words) -> str:
    known = words.vocabulary
    return f"what one {known.unit} has more than the others is one key's, which no {known.units} divide"


@CORE.of(kinds.CrossingCpuKept)
def crossing_cpu_kept(_assumed: kinds.CrossingCpuKept, _words: Words) -> str:
    return "CPU time for what crosses the network stays as it was: the run does not tell it"


@CORE.of(kinds.SlotsUnused)
def slots_unused(_assumed: kinds.SlotsUnused, words: Words) -> str:
    known = words.vocabulary
    return f"{known.lanes} alone change nothing: a job keeps its {known.units} (ask for these)"


@CORE.of(kinds.TasksEvenOverWorkers)
def tasks_even_over_workers(_assumed: kinds.TasksEvenOverWorkers, words: Words) -> str:
    return f"the {words.vocabulary.units} spread evenly over the {words.vocabulary.workers}"


@CORE.of(kinds.RecordsAlike)
def records_alike(_assumed: kinds.RecordsAlike, _words: Words) -> str:
    return "the records are of the same kind, and as unevenly spread over keys"


@CORE.of(kinds.SampledCpuScales)
def sampled_cpu_scales(_assumed: kinds.SampledCpuScales, _words: Words) -> str:
    return "what was seen on the CPU scales inversely with its speed"


@CORE.of(kinds.OutsideLatencyKept)
def outside_latency_kept(assumed: kinds.OutsideLatencyKept, _words: Words) -> str:
    return f"what {' and '.join(assumed.stations)} waits for outside is answered as fast as it was"


@CORE.of(kinds.RestKept)
def rest_kept(assumed: kinds.RestKept, _words: Words) -> str:
    return f"what {' and '.join(assumed.stations)} sleeps or waits for outside takes as long as it did"


@CORE.of(kinds.BufferTimeout)
def buffer_timeout(assumed: kinds.BufferTimeout, _words: Words) -> str:
    return (
        f"buffers are sent after {assumed.timeout_ms:.0f} ms at most: nothing states it, and too few records came to"
        " tell"
    )


@CORE.of(kinds.NetworkFree)
def network_free(_assumed: kinds.NetworkFree, _words: Words) -> str:
    return "the run does not tell how fast its network was; the way over it counts as nothing"


# Where recorded time went ---------------------------------------------------------------------------------------------


@CORE.of(kinds.InputCached)
def input_cached(assumed: kinds.InputCached, words: Words) -> str:
    known = words.vocabulary
    which = f"{assumed.stages} {known.groups if assumed.stages > 1 else known.group}"
    if assumed.tasks < assumed.total:
        which = f"{assumed.tasks} of {assumed.total} {known.units} of {which}"
    return f"input of {which} was in the memory of {known.workers}: no disk and no network carried it"


@CORE.of(kinds.InputMixed)
def input_mixed(assumed: kinds.InputMixed, _words: Words) -> str:
    return f"input from {assumed.root}: read together with local files, so reading stays counted as disk"


@CORE.of(kinds.InputRemote)
def input_remote(assumed: kinds.InputRemote, _words: Words) -> str:
    counted = "counted as net"
    if assumed.unmeasured_by is not None:
        counted = f"which {assumed.unmeasured_by} does not measure: it stays unknown"
    return f"input from {assumed.root}: read over the network, {counted}"


@CORE.of(kinds.InputPartlyRemote)
def input_partly_remote(assumed: kinds.InputPartlyRemote, words: Words) -> str:
    rest = "counted as net for these, as disk for the others"
    if assumed.unmeasured_by is not None:
        rest = f"{assumed.unmeasured_by} does not measure it"
    return (
        f"input from {assumed.root}: {assumed.tasks} of {assumed.total} {words.vocabulary.units} ran on a machine"
        f" without the data; {rest}"
    )


@CORE.of(kinds.MoreInputs)
def more_inputs(assumed: kinds.MoreInputs, _words: Words) -> str:
    return f"input from {assumed.count} more file systems, likewise"


@CORE.of(kinds.DeviceNotModelled)
def device_not_modelled(assumed: kinds.DeviceNotModelled, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{plural(assumed.device)} computed for this run and are not modelled: what more {known.lanes},"
        f" {known.workers} or CPUs would bring holds only as far as {known.units} do not wait for them"
    )
