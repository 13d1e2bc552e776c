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
from crystalperf.query.results import advice
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import value_text

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        advice.StartWorkersSooner: "have TaskManagers with free slots before the job is submitted",
        advice.InspectCoordinator: (
            "look at the JobManager's log for what it does before the first vertex and after the last"
        ),
        remarks.UnknownLoad: (
            "What holds this stream's records up is not known: nothing here says how busy its vertices were. It goes on"
            " until it is stopped, so how long it took says nothing"
        ),
    }
)


@SENTENCES.of(remarks.Helpers)
def helpers(found: remarks.Helpers, _words: Words) -> str:
    what = "used the CPU" if found.is_cpu_time else "were seen running"
    listed = ", ".join(f"{each.does} {each.time_ms / 1e3:.1f} s" for each in found.helpers)
    return f"Besides subtasks, threads of TaskManagers {what}: {listed}"


@SENTENCES.of(remarks.NoFlow)
def no_flow(found: remarks.NoFlow, _words: Words) -> str:
    return {
        "order": (
            "Records of this stream go round in it (an iteration), which no flow does here: neither its rate nor its"
            " latency is known"
        ),
        "exchanges": (
            "This stream's metrics were collected, but it is one chain: Flink counts records that vertices exchange, so"
            " neither its rate nor its latency is known; a chain that is cut once, by `disableChaining()` on the"
            " operator after the source, shows both"
        ),
        "time": (
            "This stream's metrics were collected, but not for half a minute without a restart and with the same"
            " subtasks, so no latency can be predicted: collect them for longer"
        ),
        "metrics": (
            "This job is a stream, but nothing has its sources' rate over time, so no latency can be predicted:"
            " `crystalperf collect flink URL` while it runs keeps what that takes, at least half a minute of it"
        ),
    }[found.lacking]


@SENTENCES.of(remarks.AssumedTimeout)
def assumed_timeout(found: remarks.AssumedTimeout, _words: Words) -> str:
    return (
        f"Buffers are assumed to be due after {found.due_ms:.0f} ms, Flink's default: no"
        " execution.buffer-timeout.interval was collected, and too few records came to infer it, or all in bursts"
    )


@SENTENCES.of(remarks.HeldRecords)
def held_records(found: remarks.HeldRecords, _words: Words) -> str:
    return (
        f"Operators of {found.vertex} hold a record for {found.held_ms:.1f} ms in the mean, by those that went in and"
        " had not come out, as for answers of asynchronous requests; at any other rate they are assumed to last as"
        " long, for nothing says what answers them"
    )


@SENTENCES.of(remarks.UntimedRequests)
def untimed_requests(found: remarks.UntimedRequests, _words: Words) -> str:
    return (
        f"Asynchronous requests are made in {', '.join(found.vertices)}: nothing that is collected says how long their"
        " answers take, and each record's time is longer by that"
    )


@SENTENCES.of(remarks.FullVertex)
def full_vertex(found: remarks.FullVertex, _words: Words) -> str:
    busy = f"{found.vertex} was busy for {100 * found.busy_share:.0f} % of its time"
    if found.sources_held_share is None:
        return f"{busy}, so this stream takes few more records than it gets"
    held = f"its sources were back-pressured for {100 * found.sources_held_share:.0f} % of theirs"
    return f"{busy} and holds this stream up: {held}"


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
            "Collect this stream's metrics while it runs, `crystalperf collect flink URL` for half a minute or longer:"
            " they show its latency, and the rate that it keeps up with"
        ),
        CollectMetricsLonger: (
            "Collect this stream's metrics for longer: half a minute without a restart and with the same subtasks"
        ),
        BreakChain: (
            "Break this stream's chain once, by `disableChaining()` on the operator behind its source: Flink counts the"
            " records that vertices exchange, and a job of one chain exchanges none"
        ),
    }
)


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    """As Flink's configuration file has settings."""
    return tuple(f"{each.name}: {value_text(each.after)}" for each in found.settings)


@SENTENCES.of(ShortenBufferTimeout)
def shorten_buffer_timeout(found: ShortenBufferTimeout, _words: Words) -> str:
    return (
        f"Send buffers sooner, `{found.settings[0].name}` {found.before_ms:.0f} → {found.after_ms} ms: they are not"
        " full by then, and more of them cost more CPU"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.EndlessStream: (
            "a stream goes on until it is stopped, so how long it took says nothing of it; its latency and its highest"
            " rate would tell, for which it takes half a minute of metrics of what its vertices exchange"
        ),
        refusals.SubtasksForInputUnknown: (
            "input: how many subtasks Flink would use for other data is not known; ask parallelism="
        ),
        assumptions.ParallelismKept: (
            "vertices keep their parallelism, whatever slots there are: these change which subtasks run side by side"
        ),
    }
)


@SENTENCES.of(refusals.ParallelismOutOfRange)
def parallelism_out_of_range(refusal: refusals.ParallelismOutOfRange, _words: Words) -> str:
    return (
        f"parallelism: {refusal.recorded} to {refusal.wanted} subtasks of {refusal.vertex} are more than"
        f" {refusal.most_ratio:g} times either way, and nothing recorded tells how records would spread"
    )


@SENTENCES.of(assumptions.RecordsRespread)
def records_respread(assumed: assumptions.RecordsRespread, _words: Words) -> str:
    return (
        f"records are spread over the subtasks of {assumed.vertices} vert{'ex' if assumed.vertices == 1 else 'ices'} in"
        " equal stretches of the recorded subtasks' work, in their order"
    )


@SENTENCES.of(assumptions.HotSubtask)
def hot_subtask(assumed: assumptions.HotSubtask, _words: Words) -> str:
    return (
        f"one subtask of {assumed.vertex} has far more than the others: if that is one key, no parallelism divides it"
    )


@SENTENCES.of(assumptions.ParallelismLimited)
def parallelism_limited(assumed: assumptions.ParallelismLimited, _words: Words) -> str:
    return f"{assumed.vertex} can have no more than {assumed.most}"


@SENTENCES.of(assumptions.SingleSubtasksKept)
def single_subtasks_kept(assumed: assumptions.SingleSubtasksKept, _words: Words) -> str:
    others = " and others" if len(assumed.vertices) > 1 else ""
    return f"vertices of one subtask keep it ({assumed.vertices[0]}{others})"


@SENTENCES.of(assumptions.SlotsForSubtasks)
def slots_for_subtasks(assumed: assumptions.SlotsForSubtasks, _words: Words) -> str:
    return f"there are as many slots as {assumed.subtasks} subtasks of a vertex take: the run has no number"
