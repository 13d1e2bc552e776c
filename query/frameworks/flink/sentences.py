"""The sentences of findings, recommendations, refusals and assumptions that only Flink has."""

from __future__ import annotations

from crystalperf.query.text.sentences import Sentences

SENTENCES = Sentences()

# Findings -------------------------------------------------------------------------------------------------------------

# Recommendations ------------------------------------------------------------------------------------------------------

# Refusals and assumptions ---------------------------------------------------------------------------------------------
