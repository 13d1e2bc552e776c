"""The sentences of findings, recommendations, refusals and assumptions that only trainings have."""

from __future__ import annotations

from crystalperf.query.frameworks.training import findings
from crystalperf.query.frameworks.training.recommendations import CollectTraces
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import Sentences

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


# Recommendations ------------------------------------------------------------------------------------------------------


@SENTENCES.of(CollectTraces)
def collect_traces(found: CollectTraces, _words: Words) -> str:
    return (
        f"Give the traces of all {found.ranks} ranks, in one folder: how long collectives waited for {found.missing} of"
        " them is not known"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------
