"""The sentences that every door says of an answer, in the words of the run's framework.

A door brings its own way to write figures; what is said, and of what, is the same at all doors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from indexes.resources import Resource
    from query.answers.values import Bottleneck, Cause, Debug, Verdict
    from query.frameworks import Vocabulary


class Figures(Protocol):
    """How a door writes the times of an answer, in ms, all in one unit."""

    def number(self, ms: float, /) -> str:
        """Without the unit."""

    def text(self, ms: float, /) -> str:
        """With the unit."""

    def is_nothing(self, ms: float, /) -> bool:
        """Whether it rounds to zero, so that it is not worth a word."""

    def percent(self, part: float, whole: float, /) -> str:
        """One as a share of the other."""

    def change(self, after: float, before: float, /) -> str:
        """The signed change in percent."""


def cause_words(cause: Cause, vocabulary: Vocabulary) -> str:
    """What time on no resource was."""
    told: dict[Cause, str] = {
        "no worker": f"waiting for {vocabulary.workers}",
        "no scope": f"no {vocabulary.scope} running (the program itself)",
        "coordinator": f"{vocabulary.coordinator} (planning, submitting, collecting)",
        "no unit": f"no {vocabulary.unit} running",
        "starting": f"starting and ending {vocabulary.units}",
        "upstream": f"waiting for {vocabulary.units} of other {vocabulary.groups}",
        "unknown": "unknown",
    }
    return told[cause]


def device_name(resource: str, resources: Sequence[Resource]) -> str:
    """A resource as a sentence begins with it: CPU, Disk, Network."""
    return capitalised(next((each.device for each in resources if each.name == resource), resource))


def capitalised(text: str) -> str:
    """With its first letter large, the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def bottleneck_sentence(found: Bottleneck, debug: Debug, resources: Sequence[Resource], figures: Figures) -> str:
    """What holds a scope up, and by how many of how many seconds."""
    words, whole_ms = debug.vocabulary, debug.runtime_ms
    run = "this run" if debug.unsubmitted is None else "the work"
    if found.kind == "nothing":
        if debug.unsubmitted is not None:
            return "Nothing to explain: nothing was submitted."
        return "Nothing to explain: no time passes between the first and the last event of the log."
    share = figures.percent(found.time_ms, whole_ms)
    of = f"{figures.number(found.time_ms)} of {figures.text(whole_ms)}"
    on_path = f"{of} on the critical path ({share})"
    if found.kind == "resource":
        sentence = f"{device_name(found.name, resources)} holds {run} up: {on_path}."
        if found.second is None:
            return sentence
        return f"{sentence} {device_name(found.second, resources)} follows closely: {figures.text(found.second_ms)}."
    if found.kind == "coordinator":
        return (
            f"The {words.coordinator} holds {run} up: {of} ({share}) pass before, between and after the"
            f" {words.groups}, when no {words.unit} runs."
        )
    rest = ""
    if found.second is not None and not figures.is_nothing(found.second_ms):
        rest = f"; next is {found.second} with {figures.text(found.second_ms)}"
    if found.kind == "unknown":
        return f"No resource holds {run} up as far as can be seen: {on_path} went to waiting or to work unknown{rest}."
    what = capitalised(cause_words(cast("Cause", found.name), words))
    alone = ""
    if found.alone_ms is not None:
        alone = f" In all, {figures.text(found.alone_ms)} pass while no {words.unit} runs."
    return f"{what} holds {run} up: {on_path}{rest}.{alone}"


def unsubmitted_sentence(debug: Debug, whole: Figures, figures: Figures) -> str:
    """How much was left out because nothing was submitted; empty where nothing was.  `whole` writes the whole time."""
    found = debug.unsubmitted
    if found is None:
        return ""
    of = f"Nothing was submitted for {whole.number(found.left_out_ms)} of {whole.text(found.whole_ms)}"
    return f"{of}; the rest of this is about the {figures.text(debug.runtime_ms)} of work."


def help_sentence(verdict: Verdict, figures: Figures) -> str:
    """Which doubling would help most; empty where none is answered."""
    best = verdict.best
    if best is None or best.predicted_ms is None:
        asked = any(each.doubles and each.predicted_ms is not None for each in verdict.what_ifs)
        return "None of the doublings below would shorten it noticeably." if asked else ""
    then = f"{figures.text(best.predicted_ms)} ({figures.change(best.predicted_ms, verdict.debug.runtime_ms)})"
    return f"What would help most of the doublings below: {best.question}, {then}."
