"""CrystalPerf: where did a dataflow job's time go, and what if its resources were different?

An example:

    import crystalperf as cp

    run = cp.profile(["log/", "recordings/"])
    print(run.debug().bottleneck)
    print(run.predict("cores=2x").predicted_ms)
    print(run.sql("SELECT most FROM stage_resources").rows)
    print(cp.index("jdk-17").functions(text="socket", resource="net").total)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from crystalperf.functions import Function, Functions, Index, index
    from crystalperf.indexes.errors import CrystalPerfError, Remedy
    from crystalperf.query import Debug, Header, Prediction, Run, Sweep, Verdict, as_json, open_run, profile
    from crystalperf.query.frameworks.registry import Settings
    from crystalperf.query.page.frontend import Frontend
    from crystalperf.query.results.answers import Advice, Choice, Offer, Predictions
    from crystalperf.query.results.comparison import Comparison
    from crystalperf.query.results.ledger import Ledger
    from crystalperf.query.results.page import PageData
    from crystalperf.query.results.recommendations import Candidate
    from crystalperf.query.results.refusals import Refusal
    from crystalperf.query.results.tuning import Goal, Tuning
    from crystalperf.query.results.words import Words
    from crystalperf.query.run import Other, compare, ledger, tune
    from crystalperf.query.sql.rows import Rows
    from crystalperf.query.text.as_json import Answer

__all__ = [
    "Advice",
    "Answer",
    "Candidate",
    "Choice",
    "Comparison",
    "CrystalPerfError",
    "Debug",
    "Frontend",
    "Function",
    "Functions",
    "Goal",
    "Header",
    "Index",
    "Ledger",
    "Offer",
    "Other",
    "PageData",
    "Prediction",
    "Predictions",
    "Refusal",
    "Remedy",
    "Rows",
    "Run",
    "Settings",
    "Sweep",
    "Tuning",
    "Verdict",
    "Words",
    "as_json",
    "compare",
    "index",
    "ledger",
    "open_run",
    "profile",
    "tune",
]


# Importing any module imports this one first, in child processes too: so it imports no other module eagerly.
_WHERE = {
    "crystalperf.functions": ("Function", "Functions", "Index", "index"),
    "crystalperf.indexes.errors": ("CrystalPerfError", "Remedy"),
    "crystalperf.query.page.frontend": ("Frontend",),
    "crystalperf.query.results.comparison": ("Comparison",),
    "crystalperf.query.results.ledger": ("Ledger",),
    "crystalperf.query.results.page": ("PageData",),
    "crystalperf.query.sql.rows": ("Rows",),
    "crystalperf.query.text.as_json": ("Answer",),
    "crystalperf.query.results.answers": ("Advice", "Choice", "Offer", "Predictions"),
    "crystalperf.query.advise.candidates": ("Candidate",),
    "crystalperf.query.frameworks.registry": ("Settings",),
    "crystalperf.query.results.refusals": ("Refusal",),
    "crystalperf.query.results.tuning": ("Goal", "Tuning"),
    "crystalperf.query.results.words": ("Words",),
    "crystalperf.query.run": ("Other", "compare", "ledger", "tune"),
}


def __getattr__(name: str) -> object:
    if name in __all__:
        module = next((module for module, names in _WHERE.items() if name in names), "crystalperf.query")
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'crystalperf' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
