"""Sentences about what the data of a run does not show."""

from __future__ import annotations

from crystalperf.query.results import unseen
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE
from crystalperf.query.trace.vocabulary import plural

_SHOWN = 5
"""Maximum workers without a recording that are named."""


@CORE.of(unseen.SequenceContradicted)
def sequence_contradicted(found: unseen.SequenceContradicted, words: Words) -> str:
    return f"the order of {words.vocabulary.groups}: {found.problem}"


@CORE.of(unseen.CodeUnlabelled)
def code_unlabelled(found: unseen.CodeUnlabelled, _words: Words) -> str:
    return f"code: {found.problem}"


@CORE.of(unseen.NoIndex)
def no_index(_found: unseen.NoIndex, _words: Words) -> str:
    return "code: no index covers the sampled code, so its time counts as `other`"


@CORE.of(unseen.NoSamples)
def no_samples(_found: unseen.NoSamples, _words: Words) -> str:
    return "code: the run has no stack samples"


@CORE.of(unseen.TimeUnmeasured)
def time_unmeasured(found: unseen.TimeUnmeasured, _words: Words) -> str:
    return f"{_unmeasured(found)}; it counts as `other`"


@CORE.of(unseen.CodeUnsampled)
def code_unsampled(found: unseen.CodeUnsampled, _words: Words) -> str:
    why = "no usable recording" if found.unusable else "no stack samples"
    return f"the code that ran ({why}); {_unmeasured(found)} counts as `other`"


def _unmeasured(found: unseen.TimeUnmeasured) -> str:
    storage = "storage I/O, " if found.storage else ""
    return f"time that {found.framework} does not measure ({storage}CPU wait)"


@CORE.of(unseen.CoordinatorUnsampled)
def coordinator_unsampled(_found: unseen.CoordinatorUnsampled, words: Words) -> str:
    coordinator, groups = words.vocabulary.coordinator, words.vocabulary.groups
    return f"the {coordinator}: it has no recording, so its time between the {groups} counts as `other`"


@CORE.of(unseen.AllWorkersUnsampled)
def all_workers_unsampled(found: unseen.AllWorkersUnsampled, words: Words) -> str:
    return (
        f"code of {words.vocabulary.units}: no {words.vocabulary.worker} has a recording, so time that"
        f" {found.framework} does not measure counts as `other`"
    )


@CORE.of(unseen.WorkersUnsampled)
def workers_unsampled(found: unseen.WorkersUnsampled, words: Words) -> str:
    names = ", ".join(found.workers[:_SHOWN]) + (" …" if len(found.workers) > _SHOWN else "")
    return (
        f"{len(found.workers)} of {found.of_workers} {words.vocabulary.workers}: they have no recording ({names}), so"
        " samples of the others represent them"
    )


@CORE.of(unseen.OperatorsUnknown)
def operators_unknown(found: unseen.OperatorsUnknown, words: Words) -> str:
    vocabulary = words.vocabulary
    whose = f"the {plural(vocabulary.scope)}' {vocabulary.unit} time"
    why = f"these {vocabulary.groups} have too few samples"
    if found.framework is not None:
        why = f"{found.framework} measures only some of them; stack samples show the others"
    return f"operators: {100 * found.share:.0f} % of {whose} is not attributed to one; {why}"


@CORE.of(unseen.BlockedThreadsUnsampled)
def blocked_threads_unsampled(_found: unseen.BlockedThreadsUnsampled, _words: Words) -> str:
    return "blocked threads: the recordings have no wall-clock samples and no park events"


@CORE.of(unseen.RecordingLeftOut)
def recording_left_out(found: unseen.RecordingLeftOut, _words: Words) -> str:
    return f"{found.recording}: {found.problem}"


@CORE.of(unseen.MoreRecordingsLeftOut)
def more_recordings_left_out(found: unseen.MoreRecordingsLeftOut, _words: Words) -> str:
    return f"{found.recordings} more recordings that were not used"


@CORE.of(unseen.CpuLimitUnknown)
def cpu_limit_unknown(_found: unseen.CpuLimitUnknown, words: Words) -> str:
    return f"CPU limits of {words.vocabulary.workers}: whether their CPUs were fully used is unknown"


@CORE.of(unseen.RecordLatencyUnmeasured)
def record_latency_unmeasured(_found: unseen.RecordLatencyUnmeasured, _words: Words) -> str:
    return "the latency of single records: CrystalPerf models it from rates, busy time and queues"
