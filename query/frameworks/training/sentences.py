"""The sentences of findings, recommendations, refusals and assumptions that only trainings have."""

from __future__ import annotations

from crystalperf.query.frameworks.training import findings, remarks
from crystalperf.query.frameworks.training.recommendations import CollectTraces
from crystalperf.query.model.amounts import counted
from crystalperf.query.results.words import Words
from crystalperf.query.text.registry import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------


@SENTENCES.of(findings.Input)
def input_waits(found: findings.Input, _words: Words) -> str:
    return f"steps waited {found.waited_ms:.0f} ms for their next batch"


@SENTENCES.of(findings.ReadAhead)
def read_ahead(_advice: findings.ReadAhead, _words: Words) -> str:
    return (
        "read ahead: more loader processes (`num_workers`) or queue threads, a longer prefetch, or less work for each"
        " example"
    )


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


@SENTENCES.of(remarks.MayBePageCache)
def may_be_page_cache(_found: remarks.MayBePageCache, _words: Words) -> str:
    return "Some of that may be copying from the page cache, which no trace distinguishes"


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
