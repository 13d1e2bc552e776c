"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?

import crystalperf as cp

run = cp.profile(["log/", "recordings/"])
print(run.debug().bottleneck)
print(run.predict(cores="2x").predicted_ms)
print(run.sql("SELECT most FROM group_resources").rows)
print(cp.index("jdk-17").functions(text="socket", resource="net").total)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from crystalperf.functions import Function, Functions, Index, index
    from crystalperf.indexes.errors import CrystalPerfError
    from crystalperf.query import Debug, Header, Prediction, Run, Sweep, Verdict, as_json, open_run, profile
    from crystalperf.query.answers.rows import Rows

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


# Every module below, those of child processes too, is imported through this one: it imports none of them itself.
_WHERE = {
    "CrystalPerfError": "crystalperf.indexes.errors",
    "Rows": "crystalperf.query.answers.rows",
    **dict.fromkeys(("Function", "Functions", "Index", "index"), "crystalperf.functions"),
}


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module(_WHERE.get(name, "crystalperf.query")), name)
    raise AttributeError(f"module 'crystalperf' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
