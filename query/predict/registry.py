"""The predictors by name: those of the package query/predictors, and the entry points of other packages."""

from __future__ import annotations

from importlib import import_module

from crystalperf.indexes.errors import SettingError
from crystalperf.query.predict.predictor import Predictor
from crystalperf.query.trace.plugins import entries

CRYSTALPERF = "crystalperf"
"""The name of CrystalPerf's own model."""

ALL = "all"
"""In place of a name: every predictor."""

BUILT_IN = ("paper", "ernest", "sparklens", "amdahl", "linear", "monotasks", "ds2", "autoscaler", "paleo")
"""Each is a module of the package, with a constant of the same name in capitals."""


def names() -> tuple[str, ...]:
    """The names of all predictors, CrystalPerf's own first."""
    return tuple(dict.fromkeys((CRYSTALPERF, *BUILT_IN, *entries("predictors"))))


def find(name: str) -> Predictor:
    """A predictor other than CrystalPerf's own.  Raises SettingError for an unknown name, or one given twice."""
    others = entries("predictors")
    if name in (*BUILT_IN, CRYSTALPERF, ALL) and name in others:
        raise SettingError(
            f"'{name}' names a built-in predictor and one of another package; rename the entry point of the other"
        )
    if name in BUILT_IN:
        found: Predictor = getattr(import_module(f"crystalperf.query.predictors.{name}"), name.upper())
        return found
    if name not in others:
        raise SettingError(f"'{name}' is not a predictor; known are {', '.join(names())}, and {ALL} for all of them")
    other = others[name]
    return other if isinstance(other, Predictor) else Predictor(other)
