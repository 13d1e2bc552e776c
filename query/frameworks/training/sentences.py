"""The sentences of findings, recommendations, refusals and assumptions that only trainings have."""

from __future__ import annotations

from crystalperf.query.frameworks.training.recommendations import CollectTraces
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

# Recommendations ------------------------------------------------------------------------------------------------------


@SENTENCES.of(CollectTraces)
def collect_traces(found: CollectTraces, _words: Words) -> str:
    return (
        f"Give the traces of all {found.ranks} ranks, in one folder: how long collectives waited for {found.missing} of"
        " them is not known"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------
