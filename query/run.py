"""A profiled run: open its file, ask it questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from query.answers import Debug, Header, Prediction, Sweep


class Run:
    """One run file.  Opening is cheap; questions read what they need."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> Header:
        raise NotImplementedError

    def debug(self, scope: str = "all") -> Debug:
        """Critical path, seconds on each resource along it, bottleneck (paper §4.2).

        `scope` is `all`, `sql:ID`, `job:ID` or `START..END` in ms since application start.
        """
        raise NotImplementedError

    def predict(
        self,
        settings: Sequence[str] = (),
        *,
        recorded: Sequence[str] = (),
        scope: str = "all",
        **changes: object,
    ) -> Prediction | Sweep:
        """The runtime under changed resources: `predict(["cores=2x"])` or `predict(cores="2x")` (paper §5).

        Several settings are one changed world; a list (`cores=2,4,8`) gives a Sweep.
        """
        raise NotImplementedError
