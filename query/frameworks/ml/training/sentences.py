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
        remarks.MayBePageCache: (
            "Part of that may be copies from the page cache: traces do not distinguish them from disk reads"
        ),
    }
)


@SENTENCES.of(findings.ReadAhead)
def read_ahead(advice: findings.ReadAhead, _words: Words) -> str:
    more = "more" if advice.times is None else f"{advice.times:.1f} times as many"
    return (
        f"prefetch batches: use {more} loader processes (`num_workers`) or queue threads, prefetch more batches, or do"
        " less work per example"
    )


@SENTENCES.of(findings.Input)
def input_waits(found: findings.Input, _words: Words) -> str:
    return f"steps waited {found.waited_ms:.0f} ms for their next batch"


@SENTENCES.of(remarks.StepTime)
def step_time(found: remarks.StepTime, _words: Words) -> str:
    over = f"{counted(found.steps, 'step')}, {counted(found.processes, 'process')}"
    return f"A step took {found.step_ms:.1f} ms on average ({over})"


@SENTENCES.of(remarks.UnevenSteps)
def uneven_steps(found: remarks.UnevenSteps, _words: Words) -> str:
    return (
        f"The longest of {counted(found.steps, 'traced step')} took {found.longest_ms:.1f} ms, the shortest"
        f" {found.shortest_ms:.1f} ms: their mean is uncertain, so trace more steps"
    )


@SENTENCES.of(remarks.InputWait)
def input_wait(found: remarks.InputWait, _words: Words) -> str:
    return (
        f"Input: threads waited {found.waited_ms:.0f} ms for their next batch. The traces do not cover the loader"
        " processes; profile these to find the cause"
    )


@SENTENCES.of(remarks.Communication)
def communication(found: remarks.Communication, _words: Words) -> str:
    return (
        f"Communication: collectives moved bytes for {found.moved_ms:.0f} ms, summed over processes; nothing else ran"
        f" during {found.exposed_ms:.0f} ms of that"
    )


@SENTENCES.of(remarks.WaitForSlowest)
def wait_for_slowest(found: remarks.WaitForSlowest, _words: Words) -> str:
    waited = f"processes waited {found.waited_ms:.0f} ms for the slowest process"
    return f"Before bytes moved, {waited}, mostly for {found.slowest}"


@SENTENCES.of(remarks.MayWaitForRanks)
def may_wait_for_ranks(found: remarks.MayWaitForRanks, _words: Words) -> str:
    return f"Part of that may be waiting for {found.absent} of {found.ranks} ranks, because their traces are missing"


# Recommendations ------------------------------------------------------------------------------------------------------


@SENTENCES.of(CollectTraces)
def collect_traces(found: CollectTraces, _words: Words) -> str:
    return (
        f"Put the traces of all {found.ranks} ranks into one folder and analyze it: {found.missing} are missing, so how"
        " long collectives waited for these ranks is unknown"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------

SENTENCES.fixed(
    {
        refusals.OperatorsFixed: "the program defines its operators; no setting splits them",
        refusals.SlotsFixed: "a thread or stream runs what its program submits to it, however many there are",
        refusals.SingleProcess: (
            "a single process exchanges no gradients, so the time to exchange them is unknown; trace a run with two"
        ),
    }
)


@SENTENCES.of(refusals.FewerProcesses)
def fewer_processes(refusal: refusals.FewerProcesses, _words: Words) -> str:
    return (
        f"the trace does not show which of the run's {refusal.recorded} processes would be removed; trace a run with"
        " fewer processes"
    )


@SENTENCES.of(refusals.RanksWithoutTrace)
def ranks_without_trace(refusal: refusals.RanksWithoutTrace, _words: Words) -> str:
    return f"traces of {refusal.missing} of {refusal.ranks} ranks are missing, and collectives may have waited for them"


@SENTENCES.of(assumptions.MoreProcesses)
def more_processes(assumed: assumptions.MoreProcesses, _words: Words) -> str:
    what = "the link of each parameter server carries the tensors of all workers, one after the other"
    if assumed.synchronous:
        what = "collectives are rings, which send 2 (n - 1) / n of their bytes over each link"
    return (
        f"{assumed.processes:g} processes instead of {assumed.recorded}, each with its own batch: a step does"
        f" {assumed.ratio:g} times the work; {what}"
    )


@SENTENCES.of(assumptions.BatchGrows)
def batch_grows(assumed: assumptions.BatchGrows, _words: Words) -> str:
    fixed = "operators on parameters (such as an optimizer) and the exchange of gradients"
    if assumed.launches:
        fixed = "operators on parameters (such as an optimizer), the exchange of gradients and the CPU's launches"
    return f"operators on examples take time in proportion to the batch; {fixed} take as long as recorded"


@SENTENCES.of(assumptions.StepsReachSteadyState)
def steps_reach_steady_state(assumed: assumptions.StepsReachSteadyState, _words: Words) -> str:
    return (
        "workers do not wait for each other, so the step time depends on which of their transfers overlap: with the"
        f" recorded resources, a step in steady state takes {assumed.steady_ms:.0f} ms on average (traced steps took"
        f" {assumed.traced_ms:.0f} ms); in the scenario, {assumed.in_step_ms:.0f} ms if all workers fetch and send at"
        f" the same time, {assumed.apart_ms:.0f} ms if some fetch while others send"
    )


@SENTENCES.of(assumptions.SendingCost)
def sending_cost(assumed: assumptions.SendingCost, _words: Words) -> str:
    had = "is assumed to have had one core" if assumed.cores == 1 else f"had {assumed.cores:g} of a core"
    return (
        f"sending and receiving take {assumed.least_ms:.2g} to {assumed.most_ms:.2g} ms of CPU per MB, also on servers;"
        f" each process {had}"
    )


@SENTENCES.of(assumptions.WithoutProfiler)
def without_profiler(assumed: assumptions.WithoutProfiler, _words: Words) -> str:
    if assumed.traced_ms < 0.97 * assumed.step_ms:
        return (
            f"a step takes {assumed.step_ms:.1f} ms, as its accelerator needs; the program marks one every"
            f" {assumed.traced_ms:.1f} ms, before that work is done"
        )
    return (
        f"a step takes {assumed.step_ms:.1f} ms without the profiler, which slows the host and not the GPU"
        f" (traced: {assumed.traced_ms:.1f} ms); all times are without it"
    )


@SENTENCES.of(assumptions.StepsByAccelerator)
def steps_by_accelerator(assumed: assumptions.StepsByAccelerator, _words: Words) -> str:
    return (
        f"steps end when the accelerator has finished their work: {assumed.queued_ms:.1f} ms of it were still queued"
        " when the program marked the end of the last step"
    )
