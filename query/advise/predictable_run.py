"""The interface of a run that verdicts and pages use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crystalperf.query.results.answers import Debug, Header, Prediction

if TYPE_CHECKING:
    from crystalperf.query.results.recommendations import Candidate


class PredictableRun(Protocol):
    """A run that can be diagnosed and predicted, as crystalperf.query.run.Run."""

    @property
    def path(self) -> Path:
        """Its run file."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def candidates(self, debug: Debug) -> Sequence[Candidate]:
        """Candidate recommendations for the whole run, whose diagnosis is `debug`."""

    def predict(self, settings: Sequence[str] = (), *, path: bool = True) -> Prediction:
        """The runtime under changed resources; `path` is whether to compute the predicted critical path by resource."""

    def ranged(self, texts: Sequence[str]) -> Prediction:
        """The same for one scenario, with a range even for settings whose effect no rerun has verified."""

    def baseline(self, scope: str = "all") -> Prediction:
        """The prediction of the baseline, with nothing changed."""
