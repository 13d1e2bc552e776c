"""The sentences of findings, recommendations, refusals and assumptions that only trainings have."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.training import assumptions, findings, refusals, remarks
from crystalperf.query.frameworks.ml.training.recommendations import CollectTraces
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.trace.amounts import counted

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        findings.ReadAhead: (
            "read ahead: more loader processes (`num_workers`) or queue threads, a longer prefetch, or less work for"
            " each example"
        ),
        remarks.MayBePageCache: "Some of that may be copying from the page cache, which no trace distinguishes",
    }
)


@SENTENCES.of(findings.Input)
def input_waits(found: findings.Input, _words: Words) -> str:
    return f"steps waited {found.waited_ms:.0f} ms for their next batch"


@SENTENCES.of(remarks.StepTime)
def step_time(found: remarks.StepTime, _words: Words) -> str:
    over = f"{counted(found.steps, 'step')}, {counted(found.processes, 'process')}"
    return f"A step took {found.step_ms:.1f} ms on average ({over})"


@SENTENCES.of(remarks.InputWait)
def input_wait(found: remarks.InputWait, _words: Words) -> str:
    return (
        f"Input: threads waited {found.waited_ms:.0f} ms for their next batch. What the loaders did meanwhile is in"
        " none of these traces; a profiler of their processes shows it"
    )


@SENTENCES.of(remarks.Communication)
def communication(found: remarks.Communication, _words: Words) -> str:
    return (
        f"Communication: collectives moved bytes for {found.moved_ms:.0f} ms, summed over processes; nothing else ran"
        f" during {found.exposed_ms:.0f} ms of that"
    )


@SENTENCES.of(remarks.WaitForSlowest)
def wait_for_slowest(found: remarks.WaitForSlowest, _words: Words) -> str:
    waited = f"processes waited {found.waited_ms:.0f} ms for the slowest"
    return f"Before that, {waited}, which was mostly {found.slowest}"


@SENTENCES.of(remarks.MayWaitForRanks)
def may_wait_for_ranks(found: remarks.MayWaitForRanks, _words: Words) -> str:
    return f"Some of that may be waiting for {found.absent} of its {found.ranks} ranks, whose traces are not here"


# Recommendations ------------------------------------------------------------------------------------------------------


@SENTENCES.of(CollectTraces)
def collect_traces(found: CollectTraces, _words: Words) -> str:
    return (
        f"Give the traces of all {found.ranks} ranks, in one folder: how long collectives waited for {found.missing} of"
        " them is not known"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.OperatorsFixed: "operators are what the program calls; they are not cut anew",
        refusals.LanesFixed: "a thread or a stream does what its program gives it, however many there are",
        refusals.SingleProcess: (
            "a single process exchanges no gradients, so nothing recorded tells what exchanging them takes; trace two"
        ),
    }
)


@SENTENCES.of(refusals.FewerProcesses)
def fewer_processes(refusal: refusals.FewerProcesses, _words: Words) -> str:
    return (
        f"fewer processes than the run's {refusal.recorded}: nothing recorded tells which would go; trace a run with as"
        " few"
    )


@SENTENCES.of(refusals.RanksWithoutTrace)
def ranks_without_trace(refusal: refusals.RanksWithoutTrace, _words: Words) -> str:
    return f"collectives may have waited for {refusal.missing} of its {refusal.ranks} ranks, whose traces are not here"


@SENTENCES.of(assumptions.MoreProcesses)
def more_processes(assumed: assumptions.MoreProcesses, _words: Words) -> str:
    what = "the link of each parameter server carries the tensors of all workers, one after the other"
    if assumed.synchronous:
        what = "collectives are rings, which send 2 (n - 1) / n of their bytes over each link"
    return (
        f"{assumed.processes:g} processes for {assumed.recorded}, each with its batch: a step does {assumed.ratio:g}"
        f" times the work; {what}"
    )


@SENTENCES.of(assumptions.BatchGrows)
def batch_grows(assumed: assumptions.BatchGrows, _words: Words) -> str:
    launching = ", and so does what a CPU does to have an accelerator compute" if assumed.launches else ""
    return (
        "what works on examples takes as many times as long as the batch is larger; what works on parameters, as an"
        f" optimizer does, and exchanging gradients take as long as they did{launching}"
    )


@SENTENCES.of(assumptions.StepsSettle)
def steps_settle(assumed: assumptions.StepsSettle, _words: Words) -> str:
    return (
        f"steps of workers that do not wait for each other: {assumed.settled_ms:.0f} ms as recorded, in the mean of how"
        f" they may stand to each other, where the traced ones took {assumed.traced_ms:.0f} ms; those that stay in step"
        f" would take {assumed.in_step_ms:.0f} ms, and those that fetch while others send {assumed.apart_ms:.0f}"
    )


@SENTENCES.of(assumptions.SendingCost)
def sending_cost(assumed: assumptions.SendingCost, _words: Words) -> str:
    had = "are taken to have had a core each" if assumed.cores == 1 else f"had {assumed.cores:g} of a core each"
    return (
        f"sending and receiving take {assumed.least_ms:.2g} to {assumed.most_ms:.2g} ms of CPU for each MB, on a server"
        f" too; processes {had}"
    )


@SENTENCES.of(assumptions.StepsByAccelerator)
def steps_by_accelerator(assumed: assumptions.StepsByAccelerator, _words: Words) -> str:
    return (
        f"steps are told by their accelerator: {assumed.queued_ms:.1f} ms of their work were left to it when the last"
        " of them was marked"
    )
