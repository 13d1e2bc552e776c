"""What verdicts and pages ask of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crystalperf.query.results.answers import Debug, Header, Prediction

if TYPE_CHECKING:
    from crystalperf.query.results.recommendations import Candidate


class AskedRun(Protocol):
    """A run that answers questions, as crystalperf.query.run.Run does."""

    @property
    def path(self) -> Path:
        """Its file."""

    def header(self) -> Header:
        """What the run is."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def candidates(self, debug: Debug) -> Sequence[Candidate]:
        """What could be changed about the whole run, of which `debug` is the answer."""

    def predict(self, settings: Sequence[str] = (), *, path: bool = True) -> Prediction:
        """The runtime under changed resources; `path` is whether to compute what it goes to."""

    def unchanged(self, scope: str = "all") -> Prediction:
        """The prediction in which nothing is changed."""
