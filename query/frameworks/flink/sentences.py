"""The sentences of findings, recommendations, refusals and assumptions that only Flink has."""

from __future__ import annotations

from crystalperf.query.frameworks.flink.recommendations import (
    BreakChain,
    CollectMetrics,
    CollectMetricsLonger,
    ShortenBufferTimeout,
)
from crystalperf.query.results import advice
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.words import Words
from crystalperf.query.text.recommendations import value_text
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


@SENTENCES.lines(Recommendation)
def setting_lines(found: Recommendation, _words: Words) -> tuple[str, ...]:
    """As Flink's configuration file has settings."""
    return tuple(f"{each.name}: {value_text(each.after)}" for each in found.settings)


@SENTENCES.of(ShortenBufferTimeout)
def shorten_buffer_timeout(found: ShortenBufferTimeout, _words: Words) -> str:
    return (
        f"Send buffers sooner, `{found.settings[0].name}` {found.before_ms:.0f} → {found.after_ms} ms: they are not"
        " full by then, and more of them cost more CPU"
    )


@SENTENCES.of(CollectMetrics)
def collect_metrics(_found: CollectMetrics, _words: Words) -> str:
    return (
        "Collect this stream's metrics while it runs, `crystalperf collect flink URL` for half a minute or longer: they"
        " show its latency, and the rate that it keeps up with"
    )


@SENTENCES.of(CollectMetricsLonger)
def collect_metrics_longer(_found: CollectMetricsLonger, _words: Words) -> str:
    return "Collect this stream's metrics for longer: half a minute without a restart and with the same subtasks"


@SENTENCES.of(BreakChain)
def break_chain(_found: BreakChain, _words: Words) -> str:
    return (
        "Break this stream's chain once, by `disableChaining()` on the operator behind its source: Flink counts the"
        " records that vertices exchange, and a job of one chain exchanges none"
    )


# Refusals and assumptions ---------------------------------------------------------------------------------------------
