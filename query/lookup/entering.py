"""Calls that a change of code brings into functions, and what the indexes say that they take.

A call is typed where the text around it tells the class of what it is made on: a class's own name, a constructor, a
declared type, a field's or a parameter's.  Else all functions of that name are meant, and only where most of them take
a device is that told.  Nothing was run, so what is told is modelled: by the labels, and by how hot the function was in
the run that is at hand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from crystalperf.indexes import resources
from crystalperf.indexes.resources import CPU
from crystalperf.query.lookup.hot import Heat

MOST_SHARE = 0.6
"""Of the functions of a name that must take one device, where nothing tells which of them is meant."""

LEAST_CONFIDENCE = 0.6
"""Of the labels, on average: below that a call is as likely to be none of a device."""

_TYPE = r"([A-Z]\w*)(?:[<\[][^=;{}()\n]{0,80}[>\]])?"

_DECLARED = re.compile(rf"\s*:\s*{_TYPE}")
_MADE = re.compile(rf"\s*=\s*(?:new\s+)?{_TYPE}\s*\(")
_TYPED = re.compile(rf"\b{_TYPE}\s+$")
_ENDS = re.compile(r"\s*[=;,)]")

NEAR = 120
"""Characters before and behind a name in which it is declared."""

MOST_PLACES = 200
"""Of a name in a file that are looked at."""


@dataclass(frozen=True)
class NewCall:
    """A call on a new line; `function` is the qualified name of the one that it is written in, `made_on` the class of
    its receiver, '' where nothing tells it."""

    file: str
    line: int
    text: str
    function: str
    name: str
    made_on: str


@dataclass(frozen=True)
class Entering:
    """A device call that a change brings into a function.

    how         typed, where the class of what it is made on is told; else by name
    share       of the time of what it calls, on `resource`; the mean of the functions that it may mean
    confidence  that the label is right, the mean of these
    functions   the functions that it may mean, `total` in all, the first few by name
    heat        how hot the function is that it enters; None where no sample on the critical path had it
    through     of a function that is new: the hot one that calls it
    """

    call: NewCall
    resource: str
    how: str
    share: float
    confidence: float
    functions: tuple[str, ...]
    total: int
    heat: Heat | None
    through: str | None = None


@dataclass(frozen=True)
class Labelled:
    """A function that an index has, as far as a call may mean it."""

    qualified_name: str
    simple_name: str
    type_name: str
    shares: tuple[float, ...]
    confidence: float


class Known:
    """Functions by simple name; a constructor is called by its class."""

    def __init__(self, functions: Iterable[Labelled]) -> None:
        self._by_name: dict[str, list[Labelled]] = defaultdict(list)
        for each in functions:
            self._by_name[each.type_name if each.simple_name == "<init>" else each.simple_name].append(each)

    def device(self, call: NewCall) -> tuple[str, str, list[Labelled]] | None:
        """Device, `typed` or `by name`, and the functions that a call may mean; None where it is none of a device."""
        candidates = self._by_name.get(call.name, [])
        typed = [each for each in candidates if call.made_on and each.type_name == call.made_on]
        if call.made_on and not typed and any(each.simple_name != "<init>" for each in candidates):
            # A class that is in no index, or inherits the method: others of the name say little then.
            return None
        meant, how = (typed, "typed") if typed else (candidates, "by name")
        if not meant:
            return None
        labels = [_label(each) for each in meant]
        most = max(set(labels), key=labels.count)
        if most == CPU or labels.count(most) < MOST_SHARE * len(labels):
            return None
        agreed = [each for each, label in zip(meant, labels, strict=True) if label == most]
        sure = sum(each.confidence for each in agreed) / len(agreed) >= LEAST_CONFIDENCE
        return (most, how, agreed) if sure else None


def entering(calls: Sequence[NewCall], known: Known, heat_of: dict[str, tuple[Heat, str | None]]) -> list[Entering]:
    """The device calls among some, what enters the hottest functions first; `heat_of` is by function."""
    found = []
    for call in calls:
        told = known.device(call)
        if told is None:
            continue
        resource, how, meant = told
        number = resources().index(resource)
        heat, through = heat_of.get(call.function, (None, None))
        found.append(
            Entering(
                call=call,
                resource=resource,
                how=how,
                share=sum(each.shares[number] for each in meant) / len(meant),
                confidence=sum(each.confidence for each in meant) / len(meant),
                functions=tuple(sorted({each.qualified_name for each in meant})[:3]),
                total=len(meant),
                heat=heat,
                through=through,
            )
        )
    return sorted(found, key=lambda each: (-(each.heat.time_ms if each.heat else 0.0), each.call.file, each.call.line))


def made_on(receiver: str, name: str, text: str) -> str:
    """The class that a call is made on, by the text of its file; '' where that does not tell it."""
    last = re.split(r"\.|::|->", receiver)[-1].strip("_ ") if receiver else ""
    if not last or last in ("this", "self", "super", "cls"):
        return name if name[:1].isupper() else ""
    if last[:1].isupper():
        return last
    for place in islice(re.finditer(rf"\b{re.escape(last)}\b", text), MOST_PLACES):
        before, after = text[max(0, place.start() - NEAR) : place.start()], text[place.end() : place.end() + NEAR]
        found = _DECLARED.match(after) or _MADE.match(after)  # Scala and Python; what a constructor is assigned to
        if found is None and _ENDS.match(after):
            found = _TYPED.search(before)  # Java and C++
        if found is not None:
            return found[1]
    return ""


def _label(function: Labelled) -> str:
    return max(zip(function.shares, resources(), strict=True))[1]
