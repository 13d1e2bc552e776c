"""Which function writes the sentence of a kind of value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.words import Words

K = TypeVar("K", bound=Kind)
F = TypeVar("F", bound=Callable[..., Any])
Text = Callable[[K, Words], str]
Lines = Callable[[K, Words], tuple[str, ...]]


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
        self._text: dict[type[Kind], Text[Any]] = {}
        self._lines: dict[type[Kind], Lines[Any]] = {}

    def of(self, kind: type[K]) -> Callable[[Text[K]], Text[K]]:
        """Register the function below as the one that writes values of this type."""
        return _registering(self._text, kind)

    def fixed(self, texts: Mapping[type[Kind], str]) -> None:
        """Sentences of kinds of which any value says the same."""
        for kind, text in texts.items():
            self._text[kind] = _saying(text)

    def lines(self, kind: type[K]) -> Callable[[Lines[K]], Lines[K]]:
        """Register the function below as the one that writes the lines to paste of values of this type."""
        return _registering(self._lines, kind)

    def find(self, kind: type[Kind]) -> Text[Any] | None:
        """The function for a type, or for the nearest of its bases that has one; None without any."""
        own = _nearest(self._text, kind)
        return own if own or self._base is None else self._base.find(kind)

    def find_lines(self, kind: type[Kind]) -> Lines[Any] | None:
        """The same for its lines."""
        own = _nearest(self._lines, kind)
        return own if own or self._base is None else self._base.find_lines(kind)


def _saying(text: str) -> Text[Any]:
    return lambda _value, _words: text


def _registering(known: dict[type[Kind], Any], kind: type[Kind]) -> Callable[[F], F]:
    def register(write: F) -> F:
        known[kind] = write
        return write

    return register


def _nearest(known: Mapping[type, F], kind: type[Kind]) -> F | None:
    return next((write for each in kind.__mro__ if (write := known.get(each))), None)
