"""Sentences about what the data of a run does not show."""

from __future__ import annotations

from crystalperf.query.results import not_recorded
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE
from crystalperf.query.trace.vocabulary import plural

_SHOWN = 5
"""Maximum workers without a recording that are named."""


@CORE.of(not_recorded.SequenceContradicted)
def sequence_contradicted(found: not_recorded.SequenceContradicted, words: Words) -> str:
    return f"the order of {words.vocabulary.stages}: {found.problem}"


@CORE.of(not_recorded.CodeUnlabelled)
def code_unlabelled(found: not_recorded.CodeUnlabelled, _words: Words) -> str:
    return f"code: {found.problem}"


@CORE.of(not_recorded.NoIndex)
def no_index(_found: not_recorded.NoIndex, _words: Words) -> str:
    return "code: no index covers the sampled code, so its time counts as `other`"


@CORE.of(not_recorded.NoSamples)
def no_samples(_found: not_recorded.NoSamples, _words: Words) -> str:
    return "code: the run has no stack samples"


@CORE.of(not_recorded.TimeUnmeasured)
def time_unmeasured(found: not_recorded.TimeUnmeasured, _words: Words) -> str:
    return f"{_unmeasured(found)}; it counts as `other`"


@CORE.of(not_recorded.CodeUnsampled)
def code_unsampled(found: not_recorded.CodeUnsampled, _words: Words) -> str:
    why = "no usable recording" if found.unusable else "no stack samples"
    return f"the code that ran ({why}); {_unmeasured(found)} counts as `other`"


def _unmeasured(found: not_recorded.TimeUnmeasured) -> str:
    storage = "storage I/O, " if found.storage else ""
    return f"time that {found.framework} does not measure ({storage}CPU wait)"


@CORE.of(not_recorded.DriverUnsampled)
def driver_unsampled(_found: not_recorded.DriverUnsampled, words: Words) -> str:
    driver, stages = words.vocabulary.driver, words.vocabulary.stages
    return f"the {driver}: it has no recording, so its time between the {stages} counts as `other`"


@CORE.of(not_recorded.AllWorkersUnsampled)
def all_workers_unsampled(found: not_recorded.AllWorkersUnsampled, words: Words) -> str:
    return (
        f"code of {words.vocabulary.tasks}: no {words.vocabulary.worker} has a recording, so time that"
        f" {found.framework} does not measure counts as `other`"
    )


@CORE.of(not_recorded.WorkersUnsampled)
def workers_unsampled(found: not_recorded.WorkersUnsampled, words: Words) -> str:
    names = ", ".join(found.workers[:_SHOWN]) + (" …" if len(found.workers) > _SHOWN else "")
    return (
        f"{len(found.workers)} of {found.of_workers} {words.vocabulary.workers}: they have no recording ({names}), so"
        " samples of the others represent them"
    )


@CORE.of(not_recorded.OperatorsUnknown)
def operators_unknown(found: not_recorded.OperatorsUnknown, words: Words) -> str:
    vocabulary = words.vocabulary
    whose = f"the {plural(vocabulary.scope)}' {vocabulary.task} time"
    why = f"these {vocabulary.stages} have too few samples"
    if found.framework is not None:
        why = f"{found.framework} measures only some of them; stack samples show the others"
    return f"operators: {100 * found.share:.0f} % of {whose} is not attributed to one; {why}"


@CORE.of(not_recorded.BlockedThreadsUnsampled)
def blocked_threads_unsampled(_found: not_recorded.BlockedThreadsUnsampled, _words: Words) -> str:
    return "blocked threads: the recordings have no wall-clock samples and no park events"


@CORE.of(not_recorded.RecordingLeftOut)
def recording_left_out(found: not_recorded.RecordingLeftOut, _words: Words) -> str:
    return f"{found.recording}: {found.problem}"


@CORE.of(not_recorded.MoreRecordingsLeftOut)
def more_recordings_left_out(found: not_recorded.MoreRecordingsLeftOut, _words: Words) -> str:
    return f"{found.recordings} more recordings that were not used"


@CORE.of(not_recorded.CpuLimitUnknown)
def cpu_limit_unknown(_found: not_recorded.CpuLimitUnknown, words: Words) -> str:
    return f"CPU limits of {words.vocabulary.workers}: whether their CPUs were fully used is unknown"


@CORE.of(not_recorded.RecordLatencyUnmeasured)
def record_latency_unmeasured(_found: not_recorded.RecordLatencyUnmeasured, _words: Words) -> str:
    return "the latency of single records: CrystalPerf models it from rates, busy time and queues"
