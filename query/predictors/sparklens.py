"""Sparklens: the recorded tasks, with their recorded times, on another number of slots.

Its scheduler gives each free slot the next task of a stage whose parents have ended; the time without any task stays.
Here the replay does this, and its change is applied to the recorded runtime, where Sparklens gives the replay's time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.plugin import PAPER, Execution, Predictor, Scenario, replay_ms

_SLOTS = ("workers", "cores")
_AS_RECORDED = replace(PAPER, warmup=False)


def _predict(execution: Execution, scenario: Scenario) -> float:
    ratios = {key: ratio for key, ratio in scenario.ratios.items() if key in _SLOTS}
    if not ratios:
        return execution.runtime_ms
    alone = replace(scenario, changes={key: scenario.changes[key] for key in ratios}, ratios=ratios)
    slots = replace(execution.slots, cpu_cores=np.full(len(execution.slots), np.inf))
    return replay_ms(replace(execution, slots=slots), alone, _AS_RECORDED)


SPARKLENS = Predictor(
    _predict,
    source="Qubole, Sparklens: CompletionEstimator and PQParallelStageScheduler",
    runs=frozenset(("batch",)),
    settings=lambda _run: _SLOTS,
)
