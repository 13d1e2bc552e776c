"""How the maker of a page words what a user can do: a command to type, an address to ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crystalperf.indexes.errors import Remedy
from crystalperf.query.results.answers import NextStep


def _alone(sentence: str, remedy: Remedy | None) -> str:
    return sentence


@dataclass(frozen=True)
class Door:
    """How the maker of a page words what a user can do.

    run   what a command calls the run
    tell  a sentence, and what can be done about it → both
    next  the next step → a command to paste
    """

    run: str = "RUN"
    tell: Callable[[str, Remedy | None], str] = _alone
    next: Callable[[NextStep], str] = lambda _step: ""


ANY_DOOR = Door()
"""Says what it can without terms of its own."""
