"""The sentences of findings, recommendations, refusals and assumptions that only Spark has."""

from __future__ import annotations

from crystalperf.query.frameworks.spark import assumptions, refusals
from crystalperf.query.model.amounts import lasting
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

# Recommendations ------------------------------------------------------------------------------------------------------

# Refusals and assumptions ---------------------------------------------------------------------------------------------


@SENTENCES.of(refusals.LocalRun)
def local_run(_refusal: refusals.LocalRun, _words: Words) -> str:
    return "a local run is one process, so it has no second executor; ask about cores=, its slots"


@SENTENCES.of(assumptions.StagesNotReplanned)
def stages_not_replanned(assumed: assumptions.StagesNotReplanned, _words: Words) -> str:
    return f"stages keep their recorded tasks, though Spark might cut others for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.SamePlan)
def same_plan(assumed: assumptions.SamePlan, _words: Words) -> str:
    return f"Spark would cut the same tasks for {_these(assumed.slots_only)}"


@SENTENCES.of(assumptions.StagesReplanned)
def stages_replanned(assumed: assumptions.StagesReplanned, _words: Words) -> str:
    return (
        f"Spark would cut {assumed.stages} stage{'s' if assumed.stages > 1 else ''} into other tasks for"
        f" {_these(assumed.slots_only)} ({assumed.tasks} tasks become {assumed.planned_tasks}), which share its work in"
        " the recorded order (--no-replan keeps the tasks)"
    )


def _these(slots_only: bool) -> str:
    return "these slots" if slots_only else "this"


@SENTENCES.of(assumptions.FilesPerPartition)
def files_per_partition(_assumed: assumptions.FilesPerPartition, _words: Words) -> str:
    return (
        "a task that hands rows over writes a file for each partition, so it takes longer with more partitions and"
        " shorter with fewer"
    )


@SENTENCES.of(assumptions.LargeKeyKept)
def large_key_kept(assumed: assumptions.LargeKeyKept, _words: Words) -> str:
    first, more = assumed.stages[0], len(assumed.stages) - 1
    which = f"{first} and {more} more keep their" if more else f"{first} keeps its"
    return (
        f"{which} recorded tasks, of which one read far more than most: if that is one key, no number of partitions"
        " divides it"
    )


@SENTENCES.of(assumptions.CpuTimeMissing)
def cpu_time_missing(assumed: assumptions.CpuTimeMissing, _words: Words) -> str:
    collected = f", {lasting(assumed.garbage_ms)} of it garbage collection" if assumed.garbage_ms else ""
    return f"this log has no CPU time of tasks: cpu is the little that Spark times beside it{collected}"


@SENTENCES.of(assumptions.PythonCounted)
def python_counted(_assumed: assumptions.PythonCounted, _words: Words) -> str:
    return "a task that waits for its Python worker waits for that worker's CPU: counted as cpu"
