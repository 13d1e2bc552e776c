"""The paper's model as printed (§5, Algorithms 1 and 2): all time on a resource scales with it, and tasks stay as
recorded.

The resource vectors are those of the run as CrystalPerf has them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crystalperf.plugin import PAPER as PRINTED
from crystalperf.plugin import Execution, Predictor, Scenario, replay_ms


def _predict(execution: Execution, scenario: Scenario) -> float:
    slots = replace(execution.slots, cpu_cores=np.full(len(execution.slots), np.inf))
    bare = replace(execution, slots=slots, repeated=None)  # the cost of first waves is from the run itself
    return replay_ms(bare, scenario, PRINTED)


PAPER = Predictor(_predict, source="CrystalPerf, ATC 2021, section 5", runs=frozenset(("batch", "training")))
