"""Lookup of a value's sentence, in its framework's package or in CrystalPerf."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from importlib import import_module

from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.sentences import Sentences as Sentences
from crystalperf.query.results.words import Words

CORE = Sentences()
"""Sentences of the kinds that runs of any framework may have."""


def text_of(value: Kind, words: Words) -> str:
    """The sentence of a value: from its framework, else from CrystalPerf, else a list of its fields."""
    own = _of_framework(words.framework)
    write = (own and own.find(type(value))) or _core().find(type(value))
    return write(value, words) if write else _generic(value)


def texts_of(values: Iterable[Kind], words: Words) -> tuple[str, ...]:
    """The sentences of several values."""
    return tuple(text_of(each, words) for each in values)


def lines_of(value: Kind, words: Words) -> tuple[str, ...]:
    """Lines to paste that apply a recommendation, in the framework's configuration or language; empty if none."""
    own = _of_framework(words.framework)
    write = own and own.find_lines(type(value))
    return write(value, words) if write else ()


def _generic(value: Kind) -> str:
    """The fields of a value whose kind has no sentence: `idle-slots: cost_ms 12.5, slots 4`."""
    named = ", ".join(f"{each.name} {getattr(value, each.name)}" for each in fields(value))
    return f"{value.kind}: {named}" if named else value.kind


@cache
def _core() -> Sentences:
    """CORE with all sentences: importing these modules registers them."""
    for subject in (
        "findings",
        "missing",
        "not_recorded",
        "recommendations",
        "refusals",
        "assumptions",
        "comparison",
        "step_comparison",
        "stream_comparison",
        "gate",
        "tuning",
    ):
        import_module(f"crystalperf.query.text.{subject}")
    return CORE


def _of_framework(name: str) -> Sentences | None:
    from crystalperf.query.frameworks.registry import frameworks

    found = frameworks().get(name) if name else None
    return None if found is None else found.advisor.sentences
