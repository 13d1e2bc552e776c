"""Which function writes the sentence of a kind of value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.words import Words

K = TypeVar("K", bound=Kind)


class Sentences:
    """Sentences by the type of the value, a function each: `(value, words) → text`, without the full stop.

    SENTENCES = Sentences()

    @SENTENCES.of(IdleSlots)
    def idle_slots(found: IdleSlots, words: Words) -> str:
        return f"{counted(found.groups, words.vocabulary.group)} leave lanes idle"

    `lines` does the same for the lines of configuration or code that carry out a recommendation.
    """

    def __init__(self, base: Sentences | None = None) -> None:
        """`base` has those of kinds that this one has none for."""
        self._base = base
        self._text: dict[type[Kind], Callable[[Any, Words], str]] = {}
        self._lines: dict[type[Kind], Callable[[Any, Words], tuple[str, ...]]] = {}

    def of(self, kind: type[K]) -> Callable[[Callable[[K, Words], str]], Callable[[K, Words], str]]:
        """Register the function below as the one that writes values of this type."""

        def register(write: Callable[[K, Words], str]) -> Callable[[K, Words], str]:
            self._text[kind] = write
            return write

        return register

    def lines(
        self, kind: type[K]
    ) -> Callable[[Callable[[K, Words], tuple[str, ...]]], Callable[[K, Words], tuple[str, ...]]]:
        """Register the function below as the one that writes the lines to paste of values of this type."""

        def register(write: Callable[[K, Words], tuple[str, ...]]) -> Callable[[K, Words], tuple[str, ...]]:
            self._lines[kind] = write
            return write

        return register

    def find(self, kind: type[Kind]) -> Callable[[Any, Words], str] | None:
        """The function for a type, or for the nearest of its bases that has one; None without any."""
        own = next((write for each in kind.__mro__ if (write := self._text.get(each))), None)
        return own if own or self._base is None else self._base.find(kind)

    def find_lines(self, kind: type[Kind]) -> Callable[[Any, Words], tuple[str, ...]] | None:
        """The same for its lines."""
        own = next((write for each in kind.__mro__ if (write := self._lines.get(each))), None)
        return own if own or self._base is None else self._base.find_lines(kind)
