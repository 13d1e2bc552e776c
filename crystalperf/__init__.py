"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?

import crystalperf as cp

run = cp.profile(["eventlog/", "executors/"])
print(run.debug().bottleneck)
print(run.predict(cores="2x").predicted_ms)
"""

from indexes.errors import CrystalPerfError
from query import Debug, Header, Prediction, Run, Sweep, open_run, profile

__all__ = ["CrystalPerfError", "Debug", "Header", "Prediction", "Run", "Sweep", "open_run", "profile"]
