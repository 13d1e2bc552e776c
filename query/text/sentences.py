"""Which function writes the sentence of a kind of value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.words import Words

K = TypeVar("K", bound=Kind)


class Sentences:
    """Sentences by the type of the value, a function each: `(value, words) → text`, without the full stop.

    SENTENCES = Sentences()

    @SENTENCES.of(IdleSlots)
    def idle_slots(found: IdleSlots, words: Words) -> str:
        return f"{counted(found.stages, words.vocabulary.group)} leave slots idle"
    """

    def __init__(self) -> None:
        self._by_type: dict[type[Kind], Callable[[Any, Words], str]] = {}

    def of(self, kind: type[K]) -> Callable[[Callable[[K, Words], str]], Callable[[K, Words], str]]:
        """Register the function below as the one that writes values of this type."""

        def register(write: Callable[[K, Words], str]) -> Callable[[K, Words], str]:
            self._by_type[kind] = write
            return write

        return register

    def find(self, kind: type[Kind]) -> Callable[[Any, Words], str] | None:
        """The function for a type, or for the nearest of its bases that has one; None without any."""
        return next((write for each in kind.__mro__ if (write := self._by_type.get(each))), None)


CORE = Sentences()
"""Sentences of the kinds that any framework's runs may have."""


def text_of(value: Kind, words: Words) -> str:
    """The sentence of a value: by its framework, else by CrystalPerf, else of its fields alone."""
    own = _of_framework(words.framework)
    write = (own and own.find(type(value))) or _core().find(type(value))
    return write(value, words) if write else _generic(value)


def texts_of(values: Iterable[Kind], words: Words) -> tuple[str, ...]:
    """The sentences of several values."""
    return tuple(text_of(each, words) for each in values)


def _generic(value: Kind) -> str:
    """`idle slots: cost_ms 12.5, slots 4`: what is known of a value whose kind has no sentence."""
    named = ", ".join(f"{each.name} {getattr(value, each.name)}" for each in fields(value))
    return f"{value.kind}: {named}" if named else value.kind


@cache
def _core() -> Sentences:
    """CORE, filled: each of these modules registers its own."""
    for subject in ("findings", "recommendations", "refusals", "assumptions"):
        import_module(f"crystalperf.query.text.{subject}")
    return CORE


def _of_framework(name: str) -> Sentences | None:
    from crystalperf.query.frameworks.known import frameworks

    found = frameworks().get(name) if name else None
    return None if found is None else found.sentences
