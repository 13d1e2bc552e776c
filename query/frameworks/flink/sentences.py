"""The sentences of findings, recommendations, refusals and assumptions that only Flink has."""

from __future__ import annotations

import math

from crystalperf.query.frameworks.flink import assumptions, refusals, remarks
from crystalperf.query.frameworks.flink.recommendations import (
    BreakChain,
    CollectMetrics,
    CollectMetricsLonger,
    ShortenBufferTimeout,
)
from crystalperf.query.frameworks.flink.tunable import PARALLELISM, TASK_MANAGERS
from crystalperf.query.results import advice
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.tuning import TunedSetting
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import value_text

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        advice.StartWorkersSooner: "start TaskManagers with free slots before you submit the job",
        advice.InspectDriver: (
            "check the JobManager's log for what it does before the first vertex and after the last"
        ),
        remarks.UnknownLoad: (
            "The bottleneck of this stream is unknown, because the archive does not record how busy its vertices were."
            " A stream runs until it is stopped, so its runtime says nothing about its performance"
        ),
    }
)


@SENTENCES.of(remarks.Helpers)
def helpers(found: remarks.Helpers, _words: Words) -> str:
    what = "used the CPU" if found.is_cpu_time else "were sampled as running"
    listed = ", ".join(f"{each.does} {each.time_ms / 1e3:.1f} s" for each in found.helpers)
    return f"Besides subtasks, other threads of TaskManagers {what}: {listed}"


@SENTENCES.of(remarks.NoFlow)
def no_flow(found: remarks.NoFlow, _words: Words) -> str:
    return {
        "order": (
            "Records of this stream loop (an iteration). CrystalPerf does not model loops, so it predicts neither rate"
            " nor latency"
        ),
        "exchanges": (
            "This stream is one chain of operators. Flink counts only records that vertices exchange, so neither rate"
            " nor latency is known from its metrics: call `disableChaining()` on the operator after the source, and"
            " collect again"
        ),
        "time": (
            "This stream's metrics cover less than half a minute without a restart and with the same subtasks, so"
            " CrystalPerf predicts no latency: collect them for longer"
        ),
        "metrics": (
            "This job is a stream without collected metrics, so CrystalPerf predicts no latency: run"
            " `crystalperf collect flink URL` for at least half a minute while the job runs"
        ),
    }[found.lacking]


@SENTENCES.of(remarks.AssumedTimeout)
def assumed_timeout(found: remarks.AssumedTimeout, _words: Words) -> str:
    return (
        f"CrystalPerf assumes Flink's default buffer timeout, {found.due_ms:.0f} ms:"
        " execution.buffer-timeout.interval was not collected, and it cannot be inferred from few records or bursts"
    )


@SENTENCES.of(remarks.HeldRecords)
def held_records(found: remarks.HeldRecords, _words: Words) -> str:
    return (
        f"Operators of {found.vertex} hold a record for {found.external_wait_ms:.1f} ms on average, for example while"
        " they wait for asynchronous requests. CrystalPerf derives this from the records in and out, and assumes the"
        " same time at any rate, because the metrics do not show what responds"
    )


@SENTENCES.of(remarks.UntimedRequests)
def untimed_requests(found: remarks.UntimedRequests, _words: Words) -> str:
    return (
        f"Vertices with asynchronous requests: {', '.join(found.vertices)}. The metrics do not record how long the"
        " responses take: the true latency of a record is longer by that time"
    )


@SENTENCES.of(remarks.FullVertex)
def full_vertex(found: remarks.FullVertex, _words: Words) -> str:
    busy = f"{found.vertex} was busy for {100 * found.busy_share:.0f} % of its time"
    if found.sources_held_share is None:
        return f"{busy}, so this stream cannot process many more records than it receives"
    held = f"its sources were back-pressured for {100 * found.sources_held_share:.0f} % of theirs"
    return f"Bottleneck: {busy}, and {held}"


@SENTENCES.of(remarks.IdleSources)
def idle_sources(found: remarks.IdleSources, _words: Words) -> str:
    return f"This stream waits for records: its sources were idle for {100 * found.idle_share:.0f} % of their time"


@SENTENCES.of(remarks.KeptUp)
def kept_up(found: remarks.KeptUp, _words: Words) -> str:
    whose = " of its vertices"
    if found.measured != found.vertices:
        whose = f" of the {found.measured} of its {found.vertices} vertices that were measured"
    most = f"{max(math.ceil(100 * found.busy_share), 1)} % of its time ({found.vertex})"
    return f"This stream kept up with its records: none{whose} was busy for more than {most}"


# Recommendations ------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        CollectMetrics: (
            "Run `crystalperf collect flink URL` for half a minute or longer while this stream runs: its metrics show"
            " its latency and the highest rate that it sustains"
        ),
        CollectMetricsLonger: (
            "Collect this stream's metrics for longer: half a minute without a restart and with the same subtasks"
        ),
        BreakChain: (
            "Call `disableChaining()` on the operator after this stream's source: Flink counts only the records that"
            " vertices exchange, and a job of one chain exchanges none"
        ),
    }
)


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    """Settings in the syntax of Flink's configuration file."""
    return tuple(f"{each.name}: {value_text(each.after)}" for each in found.settings)


@SENTENCES.lines(TunedSetting)
def tuned_lines(found: TunedSetting, _words: Words) -> tuple[str, ...]:
    """Lines of Flink's configuration file; what is not set there is a comment."""
    lines = []
    for each in found.settings:
        if each.name.startswith(PARALLELISM):
            vertex = each.name.removeprefix(f"{PARALLELISM} of ")
            lines.append(f"# in the program: .{PARALLELISM}({each.after}) for {vertex}")
        else:
            lines.append(f"{'# ' if each.name == TASK_MANAGERS else ''}{each.name}: {value_text(each.after)}")
    return tuple(lines)


@SENTENCES.of(ShortenBufferTimeout)
def shorten_buffer_timeout(found: ShortenBufferTimeout, _words: Words) -> str:
    return (
        f"Send buffers sooner, `{found.settings[0].name}` {found.before_ms:.0f} → {found.after_ms} ms: records wait for"
        " this timeout in buffers that are not full; sending more buffers costs more CPU"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.EndlessStream: (
            "a stream runs until it is stopped, so there is no runtime to predict; to predict its latency and its"
            " highest rate, collect metrics for half a minute from a job whose vertices exchange records"
        ),
        refusals.SubtasksForInputUnknown: (
            "input: it is unknown how many subtasks Flink would use for other data; use parallelism= instead"
        ),
        assumptions.ParallelismKept: (
            "vertices keep their parallelism with any number of slots: slots only change which subtasks run at the same"
            " time"
        ),
    }
)


@SENTENCES.of(refusals.ParallelismOutOfRange)
def parallelism_out_of_range(refusal: refusals.ParallelismOutOfRange, _words: Words) -> str:
    return (
        f"parallelism: {refusal.recorded} → {refusal.wanted} subtasks of {refusal.vertex} is a change by more than"
        f" {refusal.most_ratio:g} times, and the archive does not show how Flink would distribute the records; choose"
        " a parallelism closer to the recorded one"
    )


@SENTENCES.of(assumptions.RecordsRespread)
def records_respread(assumed: assumptions.RecordsRespread, _words: Words) -> str:
    return (
        f"the subtasks of {assumed.vertices} vert{'ex' if assumed.vertices == 1 else 'ices'} get equal shares of the"
        " recorded subtasks' work, in their order"
    )


@SENTENCES.of(assumptions.HotSubtask)
def hot_subtask(assumed: assumptions.HotSubtask, _words: Words) -> str:
    return (
        f"one subtask of {assumed.vertex} has far more records than the others: if that is one key, more parallelism"
        " does not split it"
    )


@SENTENCES.of(assumptions.ParallelismLimited)
def parallelism_limited(assumed: assumptions.ParallelismLimited, _words: Words) -> str:
    return f"{assumed.vertex} can have no more than {assumed.most}"


@SENTENCES.of(assumptions.SingleSubtasksKept)
def single_subtasks_kept(assumed: assumptions.SingleSubtasksKept, _words: Words) -> str:
    others = " and others" if len(assumed.vertices) > 1 else ""
    return f"vertices with one subtask keep one ({assumed.vertices[0]}{others})"


@SENTENCES.of(assumptions.SlotsForSubtasks)
def slots_for_subtasks(assumed: assumptions.SlotsForSubtasks, _words: Words) -> str:
    return f"the run does not record its slots: CrystalPerf assumes {assumed.subtasks}, one per subtask of a vertex"
