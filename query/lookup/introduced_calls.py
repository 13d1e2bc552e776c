"""Device calls that a code change introduces, by the labels of the indexes.

A call is typed if the surrounding text shows the class of its receiver: a class's own name, a constructor, the declared
type of a variable, a field or a parameter.  Otherwise it may mean all functions of that name, and counts only if most
of them use one device.  The changed code did not run, so the result is modelled, from the labels and the sampled time
of the calling function in the given run.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from crystalperf.indexes import resources
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import CPU
from crystalperf.query.lookup.hot import Heat

MAX_SHARE = 0.6
"""Minimum share of the functions of a name on one device, if the receiver's class is unknown."""

MIN_CONFIDENCE = 0.6
"""Minimum mean confidence of the labels: below it a call is about as likely not to use a device."""

_TYPE = r"([A-Z]\w*)(?:[<\[][^=;{}()\n]{0,80}[>\]])?"

_DECLARED = regex(rf"\s*:\s*{_TYPE}")
_MADE = regex(rf"\s*=\s*(?:new\s+)?{_TYPE}\s*\(")
_TYPED = regex(rf"\b{_TYPE}\s+$")
_ENDS = regex(r"\s*[=;,)]")

NEAR = 120
"""Characters before and after a name in which to look for its declaration."""

MAX_PLACES = 200
"""Maximum occurrences of a name to examine in a file."""


@frozen
class NewCall:
    """A call on a new line; `function` is the qualified name of the enclosing function, `made_on` the class of its
    receiver, '' if unknown."""

    file: str
    line: int
    text: str
    function: str
    name: str
    made_on: str


@frozen
class IntroducedCall:
    """A device call that a change introduces into a function.

    how         typed, if the class of its receiver is known; else by name
    share       share of the callee's time on `resource`; the mean of the functions that it may mean
    confidence  confidence of the label; the mean of these functions
    functions   the functions that it may mean, `total` in all, the first few by name
    heat        sampled time of the enclosing function; None if no sample on the critical path has it
    through     for a new enclosing function: the hot function that calls it
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


@frozen
class Labelled:
    """A function of an index that a call may mean, with its label."""

    qualified_name: str
    simple_name: str
    type_name: str
    shares: tuple[float, ...]
    confidence: float


class Known:
    """Functions by simple name; a constructor has the name of its class."""

    def __init__(self, functions: Iterable[Labelled]) -> None:
        self._by_name: dict[str, list[Labelled]] = defaultdict(list)
        for each in functions:
            self._by_name[each.type_name if each.simple_name == "<init>" else each.simple_name].append(each)

    def device(self, call: NewCall) -> tuple[str, str, list[Labelled]] | None:
        """Device, `typed` or `by name`, and the functions that a call may mean; None if it does not use a device."""
        candidates = self._by_name.get(call.name, [])
        typed = [each for each in candidates if call.made_on and each.type_name == call.made_on]
        if call.made_on and not typed and any(each.simple_name != "<init>" for each in candidates):
            # The class is not indexed, or inherits the method: other functions of the name are poor evidence.
            return None
        meant, how = (typed, "typed") if typed else (candidates, "by name")
        if not meant:
            return None
        labels = [_label(each) for each in meant]
        most = max(set(labels), key=labels.count)
        if most == CPU or labels.count(most) < MAX_SHARE * len(labels):
            return None
        agreed = [each for each, label in zip(meant, labels, strict=True) if label == most]
        sure = sum(each.confidence for each in agreed) / len(agreed) >= MIN_CONFIDENCE
        return (most, how, agreed) if sure else None


def introduced_calls(
    calls: Sequence[NewCall], known: Known, heat_of: dict[str, tuple[Heat, str | None]]
) -> list[IntroducedCall]:
    """The device calls among `calls`, those in the hottest functions first; `heat_of` is by function."""
    found = []
    for call in calls:
        device = known.device(call)
        if device is None:
            continue
        resource, how, meant = device
        number = resources().index(resource)
        heat, through = heat_of.get(call.function, (None, None))
        found.append(
            IntroducedCall(
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
    """The class of a call's receiver, by the text of its file; '' if unknown."""
    last = re.split(r"\.|::|->", receiver)[-1].strip("_ ") if receiver else ""
    if not last or last in ("this", "self", "super", "cls"):
        return name if name[:1].isupper() else ""
    if last[:1].isupper():
        return last
    for place in islice(re.finditer(rf"\b{re.escape(last)}\b", text), MAX_PLACES):
        before, after = text[max(0, place.start() - NEAR) : place.start()], text[place.end() : place.end() + NEAR]
        found = _DECLARED.match(after) or _MADE.match(after)  # Scala, Python; target of a constructor call
        if found is None and _ENDS.match(after):
            found = _TYPED.search(before)  # Java and C++
        if found is not None:
            return found[1]
    return ""


def _label(function: Labelled) -> str:
    return max(zip(function.shares, resources(), strict=True))[1]
