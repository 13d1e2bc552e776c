"""The sentences of findings, recommendations, refusals and assumptions that only Flink has."""

from __future__ import annotations

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
