"""Sentences about what the data of a run does not show."""

from __future__ import annotations

from crystalperf.query.results import unseen
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import CORE
from crystalperf.query.trace.vocabulary import plural

_SHOWN = 5
"""Maximum workers without a recording that are named."""


@CORE.of(unseen.SequenceContradicted)
def sequence_contradicted(found: unseen.SequenceContradicted, _words: Words) -> str:
    return f"what waited for what: {found.problem}"


@CORE.of(unseen.CodeUnlabelled)
def code_unlabelled(found: unseen.CodeUnlabelled, _words: Words) -> str:
    return f"code: {found.problem}"


@CORE.of(unseen.NoIndex)
def no_index(_found: unseen.NoIndex, _words: Words) -> str:
    return "code: there are samples, but no index of the code they are in, so its time stays `other`"


@CORE.of(unseen.NoSamples)
def no_samples(_found: unseen.NoSamples, _words: Words) -> str:
    return "code: the run left no stack samples"


@CORE.of(unseen.TimeUnmeasured)
def time_unmeasured(found: unseen.TimeUnmeasured, _words: Words) -> str:
    return f"{_unmeasured(found)}, which is in `other`"


@CORE.of(unseen.CodeUnsampled)
def code_unsampled(found: unseen.CodeUnsampled, _words: Words) -> str:
    why = "none of the recordings given could be used" if found.unusable else "the run left no stack samples"
    return f"what code ran, for {why}; {_unmeasured(found)} is in `other`"


def _unmeasured(found: unseen.TimeUnmeasured) -> str:
    storage = "reading and writing storage, " if found.storage else ""
    return f"what {found.framework} does not time itself ({storage}waiting for a CPU)"


@CORE.of(unseen.CoordinatorUnsampled)
def coordinator_unsampled(_found: unseen.CoordinatorUnsampled, words: Words) -> str:
    coordinator, groups = words.vocabulary.coordinator, words.vocabulary.groups
    return f"the {coordinator}'s own time: it left no recording, so what it did between the {groups} is `other`"


@CORE.of(unseen.AllWorkersUnsampled)
def all_workers_unsampled(found: unseen.AllWorkersUnsampled, words: Words) -> str:
    return (
        f"code of {words.vocabulary.units}: no {words.vocabulary.worker} left a recording, so what {found.framework}"
        " does not measure itself is `other`"
    )


@CORE.of(unseen.WorkersUnsampled)
def workers_unsampled(found: unseen.WorkersUnsampled, words: Words) -> str:
    names = ", ".join(found.workers[:_SHOWN]) + (" …" if len(found.workers) > _SHOWN else "")
    return (
        f"{len(found.workers)} of {found.of_workers} {words.vocabulary.workers} left no recording ({names});"
        " the others speak for them"
    )


@CORE.of(unseen.OperatorsUnknown)
def operators_unknown(found: unseen.OperatorsUnknown, words: Words) -> str:
    vocabulary = words.vocabulary
    whose = f"the {plural(vocabulary.scope)}' {vocabulary.unit} time"
    why = f"too few samples fell into these {vocabulary.groups}"
    if found.framework is not None:
        why = f"{found.framework} times only some of them; stack samples tell the others"
    return f"operators: {100 * found.share:.0f} % of {whose} could not be given to one; {why}"


@CORE.of(unseen.BlockedThreadsUnsampled)
def blocked_threads_unsampled(_found: unseen.BlockedThreadsUnsampled, _words: Words) -> str:
    return "blocked threads: the recordings have neither wall-clock samples nor park events"


@CORE.of(unseen.RecordingLeftOut)
def recording_left_out(found: unseen.RecordingLeftOut, _words: Words) -> str:
    return f"{found.recording}: {found.problem}"


@CORE.of(unseen.MoreRecordingsLeftOut)
def more_recordings_left_out(found: unseen.MoreRecordingsLeftOut, _words: Words) -> str:
    return f"{found.recordings} more recordings that were left out"


@CORE.of(unseen.CpuLimitUnknown)
def cpu_limit_unknown(_found: unseen.CpuLimitUnknown, words: Words) -> str:
    return f"the CPU time of {words.vocabulary.workers}: when it runs out is not known"


@CORE.of(unseen.RecordLatencyUnmeasured)
def record_latency_unmeasured(_found: unseen.RecordLatencyUnmeasured, _words: Words) -> str:
    return "the time of a record as such: it is worked out from rates, busy time and queues"
