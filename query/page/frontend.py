"""How an interface words what a user can do: as a command to type, or as an address to request."""

from __future__ import annotations

from collections.abc import Callable

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.answers import NextStep


def _alone(sentence: str, remedy: Remedy | None) -> str:
    return sentence


@frozen
class Frontend:
    """How an interface words what a user can do.

    run          the name of the run in commands
    with_remedy  a sentence, and its remedy → both as one text
    next         the next step → a command to paste
    """

    run: str = "RUN"
    with_remedy: Callable[[str, Remedy | None], str] = _alone
    next: Callable[[NextStep], str] = lambda _step: ""


PLAIN_FRONTEND = Frontend()
"""An interface without commands of its own."""
