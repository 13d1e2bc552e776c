"""Names and figures as every door shows them: text that steers nothing, times in one unit, shares, counts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crystalperf.query.trace.amounts import counted as counted
from crystalperf.query.trace.amounts import grouped as grouped
from crystalperf.query.trace.amounts import volume as volume

NOTHING = "."
"""What a table shows for no time at all, so that the eye finds what matters."""


def printable(text: str) -> str:
    r"""The text on one line, without characters that could steer a terminal or turn a line around.

    Names in logs come from strangers: an escape sequence in a query's name must not recolour the screen or hide a
    line, nor may a direction mark turn a name around.  Such characters are shown as Python would write them, `\x1b`.
    """
    if text.isprintable():
        return text
    return "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    if character.isspace():
        return " "
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


_APART = re.compile(r"(?<=\d) (?=(?:s|ms|min|h|%)(?!\w))")


def tied(text: str) -> str:
    """The text with each number kept on one line with its unit, by a no-break space."""
    return _APART.sub("\N{NO-BREAK SPACE}", text)


def cut_right(text: str, width: int) -> str:
    """The beginning of a long text."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


@dataclass(frozen=True)
class TimeUnit:
    """One unit for all the times of an answer, so that columns can be compared by eye."""

    name: str
    ms: float
    decimals: int

    def number(self, ms: float | None, *, signed: bool = False) -> str:
        """The number alone; a dot for what would round to zero, a question mark for what is not known."""
        if ms is None:
            return "?"
        value = ms / self.ms
        if abs(value) < 0.5 * 10**-self.decimals:
            return NOTHING
        return f"{value:{'+' if signed else ''}.{self.decimals}f}"

    def text(self, ms: float) -> str:
        """The number with its unit: `26.0 s`."""
        return f"{ms / self.ms:.{self.decimals}f} {self.name}"

    def is_nothing(self, ms: float) -> bool:
        """Whether the number is no more than a dot."""
        return self.number(ms) == NOTHING

    def percent(self, part: float, whole: float) -> str:
        """percent() of two times."""
        return percent(part, whole)

    def change(self, after: float, before: float) -> str:
        """change() between two times."""
        return change(after, before)


def time_unit(longest_ms: float) -> TimeUnit:
    """The unit in which a time of that length is read most easily."""
    if longest_ms < 20:  # a step of a small model: whole ms would leave nothing of its parts
        return TimeUnit("ms", 1.0, 2)
    if longest_ms < 2_000:
        return TimeUnit("ms", 1.0, 0)
    if longest_ms < 10_000_000:
        return TimeUnit("s", 1_000.0, 1)
    if longest_ms < 360_000_000:
        return TimeUnit("min", 60_000.0, 1)
    return TimeUnit("h", 3_600_000.0, 1)


def percent(part: float, whole: float) -> str:
    """`31 %`, and `<1 %` rather than a zero for something."""
    if whole <= 0:
        return "? %"
    value = 100 * part / whole
    return "<1 %" if 0 < value < 0.5 else f"{value:.0f} %"


def change(after: float, before: float) -> str:
    """The signed change in percent: `-43 %`."""
    if before <= 0:
        return "?"
    value = round(100 * (after - before) / before)
    return f"{value:+d} %" if value else "0 %"
