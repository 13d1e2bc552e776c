"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?

import crystalperf as cp

run = cp.profile(["log/", "recordings/"])
print(run.debug().bottleneck)
print(run.predict(cores="2x").predicted_ms)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from indexes.errors import CrystalPerfError
from query import open_run, profile

if TYPE_CHECKING:
    from query import Debug, Header, Prediction, Run, Sweep, Verdict, as_json

__all__ = [
    "CrystalPerfError",
    "Debug",
    "Header",
    "Prediction",
    "Run",
    "Sweep",
    "Verdict",
    "as_json",
    "open_run",
    "profile",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        import query

        return getattr(query, name)
    raise AttributeError(f"module 'crystalperf' has no attribute '{name}'")
