"""Keeping what a command answered in the user's ledger, after the answer is on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crystalperf.query.ledger.entries import By
    from crystalperf.query.results.answers import Prediction, WhatIf
    from crystalperf.query.results.recommendations import Recommendation
    from crystalperf.query.run import Run


def remember(
    run: Run,
    by: By,
    answers: Sequence[Prediction | WhatIf] = (),
    recommendations: Sequence[Recommendation] = (),
    recorded: Sequence[str] = (),
    model: str = "",
) -> str:
    """Add an entry about a run, and return it as JSON, '' if there is none.

    A failure, such as a full disk, costs the entry: the answer is out already.
    """
    with suppress(Exception):
        from crystalperf import __version__
        from crystalperf.query.ledger.facts import keep

        return keep(run, by, __version__, answers, recommendations, recorded, model)
    return ""


def remember_again(entry: str) -> None:
    """Add an entry that remember() returned, with the present time.  A failure costs the entry."""
    with suppress(Exception):
        from crystalperf.query.ledger.store import append_again

        append_again(entry)
