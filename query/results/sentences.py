"""The registry of the functions that write the sentences of kinds of values."""

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
    """Functions that write sentences, by the type of the value: `(value, words) → text`, without the full stop.

    SENTENCES = Sentences()

    @SENTENCES.of(IdleSlots)
    def idle_slots(found: IdleSlots, words: Words) -> str:
        return f"{counted(found.stages, words.vocabulary.stage)} leave slots idle"

    `lines` does the same for lines of configuration or code that apply a recommendation.
    """

    def __init__(self, base: Sentences | None = None) -> None:
        """`base` is the fallback for kinds without a sentence here."""
        self._base = base
        self._text: dict[type[Kind], Text[Any]] = {}
        self._lines: dict[type[Kind], Lines[Any]] = {}

    def of(self, kind: type[K]) -> Callable[[Text[K]], Text[K]]:
        """Register the decorated function as the writer of sentences of this type."""
        return _registering(self._text, kind)

    def fixed(self, texts: Mapping[type[Kind], str]) -> None:
        """Register fixed sentences of types whose values all have the same text."""
        for kind, text in texts.items():
            self._text[kind] = _constant(text)

    def lines(self, kind: type[K]) -> Callable[[Lines[K]], Lines[K]]:
        """Register the decorated function as the writer of lines to paste of this type."""
        return _registering(self._lines, kind)

    def find(self, kind: type[Kind]) -> Text[Any] | None:
        """The writer of a type, or of its nearest base class that has one; None if there is none."""
        own = _nearest(self._text, kind)
        return own if own or self._base is None else self._base.find(kind)

    def find_lines(self, kind: type[Kind]) -> Lines[Any] | None:
        """The writer of the lines of a type, or of its nearest base class that has one; None if there is none."""
        own = _nearest(self._lines, kind)
        return own if own or self._base is None else self._base.find_lines(kind)


def _constant(text: str) -> Text[Any]:
    return lambda _value, _words: text


def _registering(known: dict[type[Kind], Any], kind: type[Kind]) -> Callable[[F], F]:
    def register(write: F) -> F:
        known[kind] = write
        return write

    return register


def _nearest(known: Mapping[type, F], kind: type[Kind]) -> F | None:
    return next((write for each in kind.__mro__ if (write := known.get(each))), None)
