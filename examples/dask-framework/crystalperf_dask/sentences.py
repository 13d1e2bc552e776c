"""The sentences of the kinds that only Dask has."""

from __future__ import annotations

from crystalperf.plugin import Sentences, Words
from crystalperf_dask import assumptions, rules

SENTENCES = Sentences()


@SENTENCES.of(assumptions.ThreadsByProfile)
def threads_by_profile(_assumed: assumptions.ThreadsByProfile, _words: Words) -> str:
    return (
        "what tasks' threads did is taken from Dask's own profile: tasks of one name are alike, and a thread that does"
        " not wait in Python's own modules computes"
    )


@SENTENCES.of(assumptions.ComputingTogether)
def computing_together(_assumed: assumptions.ComputingTogether, _words: Words) -> str:
    return (
        "numpy, pandas and the like compute on several threads of a worker at a time; of other Python code only one"
        " thread of a worker runs at a time"
    )


@SENTENCES.of(rules.MorePartitions)
def more_partitions(_advice: rules.MorePartitions, _words: Words) -> str:
    return "more, smaller partitions would use the idle threads"


@SENTENCES.of(rules.DumpState)
def dump_state(_found: rules.DumpState, _words: Words) -> str:
    return "Dump the cluster's state too: a report does not say what tasks waited for"
