"""Sentences of refusals: why there is no prediction."""

from __future__ import annotations

from crystalperf.query.results import refusals as kinds
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE, texts_of
from crystalperf.query.trace.amounts import counted

_MIB = 2**20


# The question ---------------------------------------------------------------------------------------------------------


@CORE.of(kinds.InvalidQuestion)
def invalid_question(refusal: kinds.InvalidQuestion, _words: Words) -> str:
    return refusal.error


@CORE.of(kinds.RecordedValueUnknown)
def recorded_value_unknown(refusal: kinds.RecordedValueUnknown, _words: Words) -> str:
    return f"the recorded value of {refusal.setting} is unknown"


@CORE.of(kinds.PredictorNotForRun)
def predictor_not_for_run(refusal: kinds.PredictorNotForRun, _words: Words) -> str:
    names = {"batch": "jobs that end", "training": "trainings", "stream": "streams"}
    predicted = " and ".join(names.get(each, each) for each in refusal.kinds)
    return (
        f"{refusal.predictor} predicts {predicted} only, and the run is a"
        f" {refusal.kind_of_run if refusal.kind_of_run != 'batch' else 'job that ends'}"
    )


@CORE.of(kinds.PredictorNeedsRuns)
def predictor_needs_runs(refusal: kinds.PredictorNeedsRuns, _words: Words) -> str:
    return (
        f"{refusal.predictor} is fitted to runs of the job and needs at least {counted(refusal.least, 'other run')};"
        f" {refusal.given or 'none'} {'is' if refusal.given < 2 else 'are'} given"
    )


@CORE.of(kinds.RunsAlike)
def runs_alike(refusal: kinds.RunsAlike, words: Words) -> str:
    what = f"number of {words.vocabulary.slots}" if refusal.what == "slots" else "size of input"
    return f"all runs have the same {what}, so {refusal.predictor} cannot fit its effect"


@CORE.of(kinds.UsefulTimeUnknown)
def useful_time_unknown(refusal: kinds.UsefulTimeUnknown, _words: Words) -> str:
    return f"{refusal.predictor} needs busy times of the stream, and none were recorded"


@CORE.of(kinds.ExchangeUnknown)
def exchange_unknown(refusal: kinds.ExchangeUnknown, _words: Words) -> str:
    return f"{refusal.predictor} needs the bytes of collectives between processes, and the run has none"


@CORE.of(kinds.BandwidthNotStated)
def bandwidth_not_stated(refusal: kinds.BandwidthNotStated, words: Words) -> str:
    return f"{refusal.predictor} needs the recorded {refusal.setting} bandwidth of each {words.vocabulary.worker}"


@CORE.of(kinds.LatencyNotPredicted)
def latency_not_predicted(refusal: kinds.LatencyNotPredicted, _words: Words) -> str:
    return f"{refusal.predictor} gives rates only"


@CORE.of(kinds.RerunNotPredicted)
def rerun_not_predicted(refusal: kinds.RerunNotPredicted, words: Words) -> str:
    why = "; ".join(texts_of(refusal.refusals, words)) or "there is no interval for such a change"
    return f"{refusal.run} does not help here, because CrystalPerf cannot predict {refusal.setting}: {why}"


# Extrapolation --------------------------------------------------------------------------------------------------------


@CORE.of(kinds.SlotsOutOfRange)
def slots_out_of_range(refusal: kinds.SlotsOutOfRange, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{_times(refusal.ratio)} the {known.task} {known.slots} is too far from the recorded run"
        f" (at most {refusal.most_ratio:g} times more or fewer); how scheduling and the {known.driver} scale is"
        " unknown"
    )


@CORE.of(kinds.SendersOutOfRange)
def senders_out_of_range(refusal: kinds.SendersOutOfRange, words: Words) -> str:
    known = words.vocabulary
    return (
        f"with {_times(refusal.ratio)} the {known.workers}, {known.tasks} would fetch {known.exchanged_data} from more"
        f" than {refusal.most_ratio:g} times as many senders as in any {known.stage} of the run"
    )


@CORE.of(kinds.RemoteReadsUnknown)
def remote_reads_unknown(_refusal: kinds.RemoteReadsUnknown, words: Words) -> str:
    known = words.vocabulary
    return (
        f"in the recorded run, all {known.exchanged_data} were local; with more {known.workers}, most would cross the"
        " network, whose speed the run does not show"
    )


@CORE.of(kinds.CacheFull)
def cache_full(_refusal: kinds.CacheFull, words: Words) -> str:
    known = words.vocabulary
    return (
        f"cached data of {known.workers} did not fit into memory in the recorded run, and how many more cache misses"
        f" {known.tasks} would have is unknown"
    )


@CORE.of(kinds.CacheTooSmall)
def cache_too_small(refusal: kinds.CacheTooSmall, words: Words) -> str:
    known = words.vocabulary
    is_short = refusal.cached_bytes > refusal.capacity_bytes
    rest = "the rest" if is_short else "the data that does not fit because it is spread unevenly"
    return (
        f"{known.workers} cached {refusal.cached_bytes / _MIB:.0f} MiB in memory and would have space for"
        f" {refusal.capacity_bytes / _MIB:.0f} MiB; how long {known.tasks} take to read again {rest} is unknown"
    )


@CORE.of(kinds.PlanUnknown)
def plan_unknown(refusal: kinds.PlanUnknown, words: Words) -> str:
    return f"how {refusal.framework} would repartition its {words.vocabulary.stages} is unknown"


@CORE.of(kinds.WorkersUnknown)
def workers_unknown(_refusal: kinds.WorkersUnknown, words: Words) -> str:
    known = words.vocabulary
    return f"the log names no {known.workers}, so the number of {known.task} {known.slots} is unknown"


@CORE.of(kinds.SlotsTooFew)
def slots_too_few(_refusal: kinds.SlotsTooFew, _words: Words) -> str:
    return "one pipeline needs more concurrent slots than there are"


@CORE.of(kinds.NoWorkerLeft)
def no_worker_left(_refusal: kinds.NoWorkerLeft, _words: Words) -> str:
    return "the simulation cannot finish: all recorded workers end before the work is done"


# Missing from the log -------------------------------------------------------------------------------------------------


@CORE.of(kinds.TasksWithoutEnd)
def tasks_without_end(refusal: kinds.TasksWithoutEnd, words: Words) -> str:
    return (
        f"{refusal.tasks} of {refusal.total} {words.vocabulary.tasks} have no end in the log, so their work is unknown"
    )


@CORE.of(kinds.TimeUnknown)
def time_unknown(refusal: kinds.TimeUnknown, words: Words) -> str:
    return (
        f"the run has no stack samples, and nothing else shows which resource {100 * refusal.share:.0f} % of"
        f" {words.vocabulary.task} time used"
    )


@CORE.of(kinds.SpillTimeUnknown)
def spill_time_unknown(_refusal: kinds.SpillTimeUnknown, _words: Words) -> str:
    return "the run has no stack samples, and nothing else shows how long it spilled"


@CORE.of(kinds.BandwidthUnknown)
def bandwidth_unknown(refusal: kinds.BandwidthUnknown, words: Words) -> str:
    return (
        f"the speed of the recorded {' and '.join(refusal.devices)} is unknown, so all of the time that"
        f" {words.vocabulary.tasks} spent there may change with the bandwidth, or none of it"
    )


# Memory ---------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.MemoryUnknown)
def memory_unknown(_refusal: kinds.MemoryUnknown, words: Words) -> str:
    return f"how much memory each {words.vocabulary.worker} had is unknown"


@CORE.of(kinds.MemoryBelowMinimum)
def memory_below_minimum(refusal: kinds.MemoryBelowMinimum, _words: Words) -> str:
    return (
        f"{refusal.memory_bytes / _MIB:.0f} MiB of memory is below the minimum with which {refusal.framework} starts"
        f" ({refusal.least_bytes / _MIB:.0f} MiB)"
    )


@CORE.of(kinds.MemoryRunsOut)
def memory_runs_out(refusal: kinds.MemoryRunsOut, words: Words) -> str:
    return (
        f"with {refusal.memory_bytes / _MIB:.0f} MiB, {words.vocabulary.workers} would likely run out of memory: by"
        f" their use in the recorded run, they need at least {refusal.floor_bytes / _MIB:.0f} MiB"
    )


@CORE.of(kinds.MemoryNeedUnknown)
def memory_need_unknown(_refusal: kinds.MemoryNeedUnknown, _words: Words) -> str:
    return "how much of its memory the run needed is unknown"


@CORE.of(kinds.SpilledMemoryUnknown)
def spilled_memory_unknown(refusal: kinds.SpilledMemoryUnknown, words: Words) -> str:
    return (
        f"{refusal.disk_bytes / _MIB:.0f} MiB spilled to disk, and the log does not record how much memory"
        f" {words.vocabulary.tasks} lacked"
    )


@CORE.of(kinds.GarbageCollectionSavingUnknown)
def garbage_saving_unknown(refusal: kinds.GarbageCollectionSavingUnknown, words: Words) -> str:
    return (
        f"garbage collection took {100 * refusal.share:.0f} % of {words.vocabulary.task} time, and the saving from"
        " more memory is unknown"
    )


@CORE.of(kinds.LiveHeapUnknown)
def live_heap_unknown(refusal: kinds.LiveHeapUnknown, words: Words) -> str:
    return (
        f"garbage collection already took {100 * refusal.share:.0f} % of {words.vocabulary.task} time, and the size of"
        " the live heap is unknown"
    )


# Streams --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.NotModelledForStreams)
def not_modelled_for_streams(refusal: kinds.NotModelledForStreams, _words: Words) -> str:
    return f"the effect of {refusal.setting} on a stream is not modelled"


@CORE.of(kinds.RateUnknown)
def rate_unknown(_refusal: kinds.RateUnknown, _words: Words) -> str:
    return "the rate of the sources is unknown, and the latency depends on it"


@CORE.of(kinds.SpreadOutOfRange)
def spread_out_of_range(refusal: kinds.SpreadOutOfRange, words: Words) -> str:
    return (
        f"{refusal.ratio:g} times the {words.vocabulary.tasks} of {refusal.station} is too far from the recorded run"
        f" (at most {refusal.most_ratio:g} times more or fewer); how records would be distributed is unknown"
    )


@CORE.of(kinds.BusyTimeUnknown)
def busy_time_unknown(refusal: kinds.BusyTimeUnknown, words: Words) -> str:
    return f"the resource of {100 * refusal.share:.0f} % of the {words.vocabulary.tasks}' busy time is unknown"


@CORE.of(kinds.LimitNotMeasured)
def limit_not_measured(refusal: kinds.LimitNotMeasured, _words: Words) -> str:
    network = "if it may be the network, state its recorded speed"
    if refusal.network_known:
        network = "a network of the stated speed is not saturated, so it may be the transfer latency of buffers"
    return (
        f"the bottleneck was not measured: {refusal.source} waits, but {refusal.target}, which receives its records, is"
        f" only {100 * refusal.target_busy_share:.0f} % busy; {network}"
    )


@CORE.of(kinds.AtLimit)
def at_limit(_refusal: kinds.AtLimit, _words: Words) -> str:
    return (
        "the recorded run was at its limit, where the size of buffers decides the latency; only the sustained rate"
        " would change"
    )


@CORE.of(kinds.RateBeyondMeasured)
def rate_beyond_measured(refusal: kinds.RateBeyondMeasured, _words: Words) -> str:
    return (
        f"{_rate(refusal.rate_per_s)} records/s is too far from the recorded run: the sustained rate is at least"
        f" {_rate(refusal.sustained_per_s)}, and at more than {refusal.most_ratio:g} times the recorded rate each"
        " record may take less time than recorded"
    )


@CORE.of(kinds.RateNotSustained)
def rate_not_sustained(refusal: kinds.RateNotSustained, words: Words) -> str:
    which = f"{words.vocabulary.worker} " if refusal.limit_kind == "worker" else ""
    full = f"{which}{refusal.limit} is busy all the time"
    if refusal.limit_kind == "batches":
        full = f"the batches of {refusal.limit} take longer than the rows of the next one take to arrive"
    if refusal.limit_kind == "hop":
        full = f"the connection between {refusal.limit.replace('>', ' and ')} is saturated"
    return (
        f"{_rate(refusal.rate_per_s)} records/s exceeds the sustained rate: from {_rate(refusal.sustained_per_s)} on,"
        f" {full}, and the latency grows without bound"
    )


@CORE.of(kinds.RateNearLimit)
def rate_near_limit(refusal: kinds.RateNearLimit, _words: Words) -> str:
    sustained = f"{'at least ' if refusal.is_lower_bound else ''}{_rate(refusal.sustained_per_s)}"
    return (
        f"{_rate(refusal.rate_per_s)} records/s is so close to the sustained rate ({sustained}) that an error of a few"
        " percent changes the latency by a large factor"
    )


@CORE.of(kinds.TooFewBatches)
def too_few_batches(refusal: kinds.TooFewBatches, _words: Words) -> str:
    return (
        f"the log has {refusal.batches} batches with rows after the start of the stream, and at least"
        f" {refusal.least} show how the time of a batch depends on its rows: record it for longer"
    )


@CORE.of(kinds.BatchesAlike)
def batches_alike(refusal: kinds.BatchesAlike, _words: Words) -> str:
    return (
        f"all {refusal.batches} batches have about {_rate(refusal.rows)} rows, so how much of their time is for rows is"
        " unknown: record the stream while its rate varies, or while it catches up after a pause"
    )


@CORE.of(kinds.RowTimeUncertain)
def row_time_uncertain(refusal: kinds.RowTimeUncertain, _words: Words) -> str:
    return (
        f"the time of the {refusal.batches} batches varies for other reasons than their rows; a thousand rows take"
        f" {1e3 * refusal.low_row_ms:.2g} to {1e3 * refusal.high_row_ms:.2g} ms: record the stream for longer"
    )


@CORE.of(kinds.BatchStagesDiffer)
def batch_stages_differ(refusal: kinds.BatchStagesDiffer, words: Words) -> str:
    return (
        f"the effect of {refusal.setting} on a batch is unknown, because its batches do not all run the same"
        f" {words.vocabulary.stages}, or the number of {words.vocabulary.slots} is not recorded"
    )


@CORE.of(kinds.BufferTimeUnknown)
def buffer_time_unknown(_refusal: kinds.BufferTimeUnknown, _words: Words) -> str:
    return "most of the latency is time in buffers, whose timeout is unknown: too few records arrived to infer it"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}".replace(",", " ")


def _times(ratio: float) -> str:
    return f"{ratio:g} times" if ratio >= 1 else f"1/{1 / ratio:g} of"
