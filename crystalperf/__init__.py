"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?

import crystalperf as cp

run = cp.profile(["log/", "recordings/"])
print(run.debug().bottleneck)
print(run.predict(cores="2x").predicted_ms)
print(run.sql("SELECT most FROM group_resources").rows)
print(cp.index("jdk-17").functions(text="socket", resource="net").total)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crystalperf.functions import Function, Functions, Index, index
from indexes.errors import CrystalPerfError
from query import open_run, profile

if TYPE_CHECKING:
    from query import Debug, Header, Prediction, Run, Sweep, Verdict, as_json
    from query.answers.rows import Rows

__all__ = [
    "CrystalPerfError",
    "Debug",
    "Function",
    "Functions",
    "Header",
    "Index",
    "Prediction",
    "Rows",
    "Run",
    "Sweep",
    "Verdict",
    "as_json",
    "index",
    "open_run",
    "profile",
]


def __getattr__(name: str) -> object:
    if name == "Rows":
        from query.answers.rows import Rows

        return Rows
    if name in __all__:
        import query

        return getattr(query, name)
    raise AttributeError(f"module 'crystalperf' has no attribute '{name}'")
