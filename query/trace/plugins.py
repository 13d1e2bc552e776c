"""Plugins of other packages, by entry points.

crystalperf.frameworks   a query.frameworks.Framework
crystalperf.annotators   (class name, method) of a frame → its Role, or None; called after the framework's own
crystalperf.schedulers   (settings of the run) → query.execution.scheduling.Policy; by the name that the run gives its
                         scheduler
crystalperf.predictors   (execution, scenario) → runtime in ms, or a query.predict.predictor.Predictor; by the name in
                         the request

A plugin that cannot be loaded is left out and reported by broken(), so that the others still work.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal

EntryPointGroup = Literal["frameworks", "annotators", "schedulers", "predictors"]


_entry_points = cache(entry_points)  # reads a file of every installed package


@cache
def _loaded(group: EntryPointGroup) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    found: dict[str, Any] = {}
    broken: dict[str, str] = {}
    for entry in _entry_points().select(group=f"crystalperf.{group}"):
        try:
            found.setdefault(entry.name, entry.load())
        except Exception as error:  # another package's module may raise anything
            broken[entry.value] = " ".join(str(error).split()) or type(error).__name__
    return found, broken


def entries(group: EntryPointGroup) -> Mapping[str, Any]:
    """The loaded plugins of a group, by the names of their entry points."""
    return _loaded(group)[0]


def is_any_installed() -> bool:
    """Whether another package has a plugin of any group."""
    return any(group.startswith("crystalperf.") for group in _entry_points().groups)


def broken() -> dict[str, str]:
    """The plugins that could not be loaded, by module, and why."""
    groups: tuple[EntryPointGroup, ...] = ("frameworks", "annotators", "schedulers", "predictors")
    return {what: why for group in groups for what, why in _loaded(group)[1].items()}
