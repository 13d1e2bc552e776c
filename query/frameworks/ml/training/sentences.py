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
        remarks.NoOperator: "time without any operator",
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


@SENTENCES.of(remarks.HostLaunches)
def host_launches(found: remarks.HostLaunches, _words: Words) -> str:
    return (
        "the host launches work more slowly than the GPU does it"
        f" (busy for {_of(found.busy_ms, found.step_ms)} ms of a step)"
    )


@SENTENCES.of(remarks.AcceleratorLimits)
def accelerator_limits(found: remarks.AcceleratorLimits, _words: Words) -> str:
    parts = {"its memory": found.memory_ms, "arithmetic": found.arithmetic_ms, "latency": found.latency_ms}
    shown = sorted((each for each in parts.items() if each[1] >= 0.5), key=lambda each: -each[1])
    return f"the GPU (kernels limited by {', '.join(f'{name} {ms:.0f} ms' for name, ms in shown)})"


@SENTENCES.of(remarks.HostWaitsForResults)
def host_waits_for_results(found: remarks.HostWaitsForResults, _words: Words) -> str:
    return (
        f"the host, which launches work and waits for the GPU's results {found.times:.0f} times a step"
        f"{_at(found.place)} (GPU busy for {_of(found.busy_ms, found.step_ms)} ms)"
    )


def _of(part_ms: float, whole_ms: float) -> str:
    digits = 1 if whole_ms >= 1 else 2
    return f"{part_ms:.{digits}f} of {whole_ms:.{digits}f}"


def _at(place: str | None) -> str:
    return "" if place is None else f", mostly in {place}"


_PARTS = {
    "before": "parameters, the optimizer's state and data",
    "forward": "activations of the forward pass",
    "backward": "the backward pass",
    "gradients": "gradients",
    "optimizer": "the optimizer",
}
_SMALL = 0.01
"""Smaller shares of the memory are not named."""


def _gb(size: float) -> str:
    return f"{size / 1e9:.3g}"


@SENTENCES.of(remarks.DeviceMemoryPeak)
def device_memory_peak(found: remarks.DeviceMemoryPeak, _words: Words) -> str:
    of = "" if found.capacity_bytes is None else f" of {_gb(found.capacity_bytes)}"
    shown = [
        f"{_gb(size)} {_PARTS.get(part, part)}"
        for part, size in found.parts.items()
        if size >= _SMALL * found.peak_bytes
    ]
    return (
        f"GPU memory: at most {_gb(found.peak_bytes)}{of} GB ({_gb(found.reserved_bytes)} reserved), of that"
        f" {', '.join(shown)}"
    )


@SENTENCES.of(remarks.ProfilerIncluded)
def profiler_included(found: remarks.ProfilerIncluded, _words: Words) -> str:
    why = "how much is not known here"
    if found.ranks > 1:
        why = f"steps of {found.ranks} processes depend on each other, so only those of one are computed without it"
    return f"Steps include what the profiler cost the host, and answers have no range: {why}"


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


SENTENCES.fixed(
    {
        refusals.PrecisionUnknown: (
            "the trace does not show which operators would compute in 16-bit numbers, nor what converting costs"
        ),
        assumptions.OtherHost: (
            "another device is in another machine, whose CPU is assumed to be as fast; where the host limits the steps,"
            " that CPU decides, and the range allows for it"
        ),
    }
)


@SENTENCES.of(assumptions.MemoryNeeded)
def memory_needed(assumed: assumptions.MemoryNeeded, _words: Words) -> str:
    needs = f"{_gb(assumed.least_bytes)} to {_gb(assumed.most_bytes)}"
    if assumed.capacity_bytes is None:
        return f"a batch {assumed.ratio:g} times as large needs {needs} GB of the GPU's memory"
    said = {True: "fits", False: "does not fit", None: "may not fit"}[assumed.fits]
    return (
        f"a batch {assumed.ratio:g} times as large {said} into the GPU's memory: it needs {needs} of"
        f" {_gb(assumed.capacity_bytes)} GB"
    )


@SENTENCES.of(assumptions.Narrower)
def narrower(assumed: assumptions.Narrower, _words: Words) -> str:
    return (
        f"at best: all products in float32 and TF32 run in 16-bit numbers, {assumed.arithmetic:.3g} times as fast, and"
        f" all float32 that are not parameters take half the bytes (kernels on memory: {assumed.memory:.3g} times as"
        " fast)"
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
