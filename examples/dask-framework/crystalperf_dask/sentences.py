"""Sentences for the kinds of findings and assumptions that only Dask has."""

from __future__ import annotations

from crystalperf.plugin import Sentences, Words
from crystalperf_dask import assumptions, rules

SENTENCES = Sentences()


@SENTENCES.of(assumptions.ThreadsByProfile)
def threads_by_profile(_assumed: assumptions.ThreadsByProfile, _words: Words) -> str:
    return (
        "Dask's own profiler shows what the tasks' threads did: tasks with the same name behave alike, and a thread"
        " computes unless it waits in Python's own modules"
    )


@SENTENCES.of(assumptions.ComputingTogether)
def computing_together(_assumed: assumptions.ComputingTogether, _words: Words) -> str:
    return (
        "numpy, pandas and similar libraries compute on several threads of a worker at a time; other Python code runs"
        " on one thread of a worker at a time"
    )


@SENTENCES.of(rules.MorePartitions)
def more_partitions(_advice: rules.MorePartitions, _words: Words) -> str:
    return "more, smaller partitions would use the idle threads"


@SENTENCES.of(rules.DumpState)
def dump_state(_found: rules.DumpState, _words: Words) -> str:
    return "Dump the cluster's state too: a report lacks the dependencies of tasks"
