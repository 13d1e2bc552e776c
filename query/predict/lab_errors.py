"""Errors of predictors in the lab by the setting that changed: lab_errors.csv, which `python -m lab.score.changes`
writes."""

from __future__ import annotations

import csv
import io
from functools import cache
from importlib.resources import files

from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.predict.registry import CRYSTALPERF
from crystalperf.query.results.answers import LabError

SEVERAL = "several"
"""The setting of a scenario that changes more than one."""

WITHOUT_SAMPLES = "crystalperf, no samples"
"""CrystalPerf's own predictor for a log alone."""


@cache
def _errors() -> dict[tuple[str, str, str], LabError]:
    text = files(__package__).joinpath("lab_errors.csv").read_text(encoding="utf-8")
    return {
        (row["framework"], row["predictor"], row["changed"]): LabError(
            row["changed"],
            int(row["predictions"]),
            float(row["median_percent"]) / 100,
            float(row["p90_percent"]) / 100,
        )
        for row in csv.DictReader(io.StringIO(text))
    }


def lab_error(execution: Execution, predictor: str, scenario: Scenario) -> LabError | None:
    """The errors of a predictor in the lab for scenarios like this one; None if the lab has none."""
    if not scenario.changes:
        return None
    changed = next(iter(scenario.changes)) if len(scenario.changes) == 1 else SEVERAL
    name = WITHOUT_SAMPLES if predictor == CRYSTALPERF and not execution.has_samples else predictor
    return _errors().get((execution.words.framework, name, changed))
