"""The sentences of findings, recommendations, refusals and assumptions that only Flink has."""

from __future__ import annotations

from crystalperf.query.frameworks.flink import assumptions, refusals
from crystalperf.query.results import advice
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------


@SENTENCES.of(advice.StartWorkersSooner)
def start_workers_sooner(_advice: advice.StartWorkersSooner, _words: Words) -> str:
    return "have TaskManagers with free slots before the job is submitted"


@SENTENCES.of(advice.InspectCoordinator)
def inspect_coordinator(_advice: advice.InspectCoordinator, _words: Words) -> str:
    return "look at the JobManager's log for what it does before the first vertex and after the last"


# Recommendations ------------------------------------------------------------------------------------------------------

# Refusals and assumptions ---------------------------------------------------------------------------------------------


@SENTENCES.of(refusals.EndlessStream)
def endless_stream(_refusal: refusals.EndlessStream, _words: Words) -> str:
    return (
        "a stream goes on until it is stopped, so how long it took says nothing of it; its latency and its highest rate"
        " would tell, for which it takes half a minute of metrics of what its vertices exchange"
    )


@SENTENCES.of(refusals.SubtasksForInputUnknown)
def subtasks_for_input_unknown(_refusal: refusals.SubtasksForInputUnknown, _words: Words) -> str:
    return "input: how many subtasks Flink would use for other data is not known; ask parallelism="


@SENTENCES.of(refusals.ParallelismOutOfRange)
def parallelism_out_of_range(refusal: refusals.ParallelismOutOfRange, _words: Words) -> str:
    return (
        f"parallelism: {refusal.recorded} to {refusal.wanted} subtasks of {refusal.vertex} are more than"
        f" {refusal.most_ratio:g} times either way, and nothing recorded tells how records would spread"
    )


@SENTENCES.of(assumptions.ParallelismKept)
def parallelism_kept(_assumed: assumptions.ParallelismKept, _words: Words) -> str:
    return "vertices keep their parallelism, whatever slots there are: these change which subtasks run side by side"


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
