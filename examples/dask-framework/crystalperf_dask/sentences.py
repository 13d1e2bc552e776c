"""The sentences of the kinds that only Dask has."""

from __future__ import annotations

from crystalperf.plugin import Sentences, Words
from crystalperf_dask import assumptions

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
