"""Sentences of refusals: why there is no prediction."""

from __future__ import annotations

from crystalperf.query.results import refusals as kinds
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE, texts_of

_MIB = 2**20


# The question ---------------------------------------------------------------------------------------------------------


@CORE.of(kinds.InvalidQuestion)
def invalid_question(refusal: kinds.InvalidQuestion, _words: Words) -> str:
    return refusal.error


@CORE.of(kinds.RecordedValueUnknown)
def recorded_value_unknown(refusal: kinds.RecordedValueUnknown, _words: Words) -> str:
    return f"{refusal.asked}: the run does not tell what it had"


@CORE.of(kinds.RerunNotPredicted)
def rerun_not_predicted(refusal: kinds.RerunNotPredicted, words: Words) -> str:
    why = "; ".join(texts_of(refusal.refusals, words)) or "there is no interval for such a change"
    return f"{refusal.run} says nothing of this run: {refusal.setting} cannot be predicted, for {why}"


# Extrapolation --------------------------------------------------------------------------------------------------------


@CORE.of(kinds.SlotsOutOfRange)
def slots_out_of_range(refusal: kinds.SlotsOutOfRange, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{_times(refusal.ratio)} the {known.unit} {known.lanes}: so far from what was recorded"
        f" ({refusal.most_ratio:g} times either way), nothing tells how scheduling and the {known.coordinator} would do"
    )


@CORE.of(kinds.SendersOutOfRange)
def senders_out_of_range(refusal: kinds.SendersOutOfRange, words: Words) -> str:
    known = words.vocabulary
    return (
        f"{_times(refusal.ratio)} the {known.workers}: {known.units} would fetch {known.exchanged} from more than"
        f" {refusal.most_ratio:g} times as many senders as in any {known.group} of the run"
    )


@CORE.of(kinds.RemoteReadsUnknown)
def remote_reads_unknown(_refusal: kinds.RemoteReadsUnknown, words: Words) -> str:
    known = words.vocabulary
    return (
        f"on its recorded {known.workers} all {known.exchanged} were local; with more of them most would cross the"
        " network, and nothing in the run tells how long that takes"
    )


@CORE.of(kinds.CacheFull)
def cache_full(_refusal: kinds.CacheFull, words: Words) -> str:
    known = words.vocabulary
    return (
        f"what {known.workers} keep in memory had no room there already, and nothing in the run tells how much more"
        f" of it {known.units} would read anew"
    )


@CORE.of(kinds.CacheTooSmall)
def cache_too_small(refusal: kinds.CacheTooSmall, words: Words) -> str:
    known = words.vocabulary
    is_short = refusal.cached_bytes > refusal.room_bytes
    rest = "the rest" if is_short else "what finds none, for it is not spread evenly,"
    return (
        f"{known.workers} kept {refusal.cached_bytes / _MIB:.0f} MiB in memory and would have room for"
        f" {refusal.room_bytes / _MIB:.0f} MiB; nothing in the run tells how long {known.units} take to read {rest}"
        " anew"
    )


@CORE.of(kinds.PlanUnknown)
def plan_unknown(refusal: kinds.PlanUnknown, words: Words) -> str:
    return f"nothing is known of how {refusal.framework} would cut its {words.vocabulary.groups} anew"


@CORE.of(kinds.WorkersUnknown)
def workers_unknown(_refusal: kinds.WorkersUnknown, words: Words) -> str:
    known = words.vocabulary
    return f"the log names no {known.workers}, so the number of {known.unit} {known.lanes} is unknown"


@CORE.of(kinds.SlotsTooFew)
def slots_too_few(_refusal: kinds.SlotsTooFew, _words: Words) -> str:
    return "what runs in one pipeline needs more slots at a time than there are"


@CORE.of(kinds.NoWorkerLeft)
def no_worker_left(_refusal: kinds.NoWorkerLeft, _words: Words) -> str:
    return "the replay cannot finish: work is left for which no worker was alive"


# What the log lacks ---------------------------------------------------------------------------------------------------


@CORE.of(kinds.TasksWithoutEnd)
def tasks_without_end(refusal: kinds.TasksWithoutEnd, words: Words) -> str:
    return (
        f"{refusal.tasks} of {refusal.total} {words.vocabulary.units} have no end in the log, so what they did is"
        " unknown"
    )


@CORE.of(kinds.TimeUnknown)
def time_unknown(refusal: kinds.TimeUnknown, words: Words) -> str:
    return (
        f"the run left no samples, and nothing else tells what {100 * refusal.share:.0f} % of {words.vocabulary.unit}"
        " time went to"
    )


@CORE.of(kinds.SpillTimeUnknown)
def spill_time_unknown(_refusal: kinds.SpillTimeUnknown, _words: Words) -> str:
    return "the run left no samples, and nothing else tells how long it spilled"


@CORE.of(kinds.BandwidthUnknown)
def bandwidth_unknown(refusal: kinds.BandwidthUnknown, words: Words) -> str:
    return (
        f"the run does not tell how fast its {' and '.join(refusal.devices)} was, so of the time that its"
        f" {words.vocabulary.units} were seen there all may change with the bandwidth, or none"
    )


# Memory ---------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.MemoryUnknown)
def memory_unknown(_refusal: kinds.MemoryUnknown, words: Words) -> str:
    return f"the run does not tell how much memory each {words.vocabulary.worker} had"


@CORE.of(kinds.MemoryBelowMinimum)
def memory_below_minimum(refusal: kinds.MemoryBelowMinimum, _words: Words) -> str:
    return (
        f"{refusal.memory_bytes / _MIB:.0f} MiB of memory is less than {refusal.framework} starts with"
        f" ({refusal.least_bytes / _MIB:.0f} MiB)"
    )


@CORE.of(kinds.MemoryNeedUnknown)
def memory_need_unknown(_refusal: kinds.MemoryNeedUnknown, _words: Words) -> str:
    return "nothing in the run tells how much of its memory it needed"


@CORE.of(kinds.SpilledMemoryUnknown)
def spilled_memory_unknown(refusal: kinds.SpilledMemoryUnknown, words: Words) -> str:
    return (
        f"{refusal.disk_bytes / _MIB:.0f} MiB were spilled to disk, and the log does not tell how much memory"
        f" {words.vocabulary.units} lacked for that"
    )


@CORE.of(kinds.GarbageSavingUnknown)
def garbage_saving_unknown(refusal: kinds.GarbageSavingUnknown, words: Words) -> str:
    return (
        f"{100 * refusal.share:.0f} % of {words.vocabulary.unit} time went to garbage collection, which more memory"
        " would shorten by an amount this run does not tell"
    )


@CORE.of(kinds.LiveHeapUnknown)
def live_heap_unknown(refusal: kinds.LiveHeapUnknown, words: Words) -> str:
    return (
        f"{100 * refusal.share:.0f} % of {words.vocabulary.unit} time went to garbage collection already, and this run"
        " does not tell how much of the heap is in use for good"
    )


# Streams --------------------------------------------------------------------------------------------------------------


@CORE.of(kinds.NotModelledForStreams)
def not_modelled_for_streams(refusal: kinds.NotModelledForStreams, _words: Words) -> str:
    return f"what {refusal.setting} would do to a stream is not modelled"


@CORE.of(kinds.RateUnknown)
def rate_unknown(_refusal: kinds.RateUnknown, _words: Words) -> str:
    return "the run does not tell its sources' rate, and without it no latency can be predicted"


@CORE.of(kinds.SpreadOutOfRange)
def spread_out_of_range(refusal: kinds.SpreadOutOfRange, words: Words) -> str:
    return (
        f"{refusal.ratio:g} times the {words.vocabulary.units} of {refusal.station}: so far from what was recorded"
        f" ({refusal.most_ratio:g} times either way), nothing tells how records would spread"
    )


@CORE.of(kinds.BusyTimeUnknown)
def busy_time_unknown(refusal: kinds.BusyTimeUnknown, words: Words) -> str:
    return (
        f"nothing recorded tells what {100 * refusal.share:.0f} % of the {words.vocabulary.units}' busy time went to,"
        f" so all of it may change with the {refusal.device}, or nothing"
    )


@CORE.of(kinds.LimitNotMeasured)
def limit_not_measured(refusal: kinds.LimitNotMeasured, _words: Words) -> str:
    network = "state how fast the network was, if it may be that"
    if refusal.network_known:
        network = "a network as fast as stated is not full, so it may be how long buffers are on their way"
    return (
        f"what holds this run up was not measured: {refusal.source} has to wait, and {refusal.target}, which takes from"
        f" it, has time left ({100 * refusal.target_busy_share:.0f} % busy); {network}"
    )


@CORE.of(kinds.AtLimit)
def at_limit(_refusal: kinds.AtLimit, _words: Words) -> str:
    return (
        "the recorded run was at its limit, where records wait for as long as its buffers are deep; what changes is how"
        " many it can take"
    )


@CORE.of(kinds.RateBeyondMeasured)
def rate_beyond_measured(refusal: kinds.RateBeyondMeasured, _words: Words) -> str:
    return (
        f"{_rate(refusal.rate_per_s)} records/s are beyond what this run tells: {_rate(refusal.sustained_per_s)} are"
        f" sustained at least, and at more than {refusal.most_ratio:g} times the recorded rate each record may take"
        " less time than it did"
    )


@CORE.of(kinds.RateNotSustained)
def rate_not_sustained(refusal: kinds.RateNotSustained, words: Words) -> str:
    which = words.vocabulary.worker if refusal.limit_kind == "worker" else words.vocabulary.group
    full = f"{which} {refusal.limit} is busy"
    if refusal.limit_kind == "hop":
        full = f"what lies between {refusal.limit.replace('>', ' and ')} is full"
    return (
        f"{_rate(refusal.rate_per_s)} records/s are more than it sustains: from {_rate(refusal.sustained_per_s)} on"
        f" {full} all the time, and records wait longer and longer"
    )


@CORE.of(kinds.RateNearLimit)
def rate_near_limit(refusal: kinds.RateNearLimit, _words: Words) -> str:
    sustained = f"{'at least ' if refusal.at_least else ''}{_rate(refusal.sustained_per_s)}"
    return (
        f"at {_rate(refusal.rate_per_s)} records/s it is so near to what it sustains ({sustained}) that an error of"
        " some percent in that changes several times how long records wait"
    )


@CORE.of(kinds.BufferTimeUnknown)
def buffer_time_unknown(_refusal: kinds.BufferTimeUnknown, _words: Words) -> str:
    return "how long buffers fill is most of it, which nothing states, and too few records came to tell"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}".replace(",", " ")


def _times(ratio: float) -> str:
    return f"{ratio:g} times" if ratio >= 1 else f"1/{1 / ratio:g} of"
