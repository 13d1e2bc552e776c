"""Formatting of names and figures for all interfaces: safe text, times in one unit, shares, counts."""

from __future__ import annotations

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.trace.amounts import counted as counted
from crystalperf.query.trace.amounts import grouped as grouped
from crystalperf.query.trace.amounts import volume as volume

NOTHING = "."
"""A table's entry for a time that rounds to zero, so that larger times stand out."""


def printable(text: str) -> str:
    r"""The text on one line, without characters that control a terminal or the direction of text.

    Names in logs are untrusted: an escape sequence in a query's name must not recolour the screen or hide a line, and a
    direction mark must not reverse a name.  Such characters are escaped as in Python, `\x1b`.
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


_APART = regex(r"(?<=\d) (?=(?:s|ms|min|h|%)(?!\w))")


def tied(text: str) -> str:
    """The text with a no-break space between each number and its unit."""
    return _APART.sub("\N{NO-BREAK SPACE}", text)


def cut_right(text: str, width: int) -> str:
    """The text, cut to `width` characters with an ellipsis if it is longer."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


@frozen
class TimeUnit:
    """The unit of all times in an answer, so that columns are easy to compare: `ms` per unit, and its decimals."""

    name: str
    ms: float
    decimals: int

    def number(self, ms: float | None, *, signed: bool = False) -> str:
        """The number without unit; a dot if it rounds to zero, a question mark if it is unknown."""
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
        """Whether the time rounds to zero."""
        return self.number(ms) == NOTHING

    def percent(self, part: float, whole: float) -> str:
        """The share of one time in another, as percent() writes it."""
        return percent(part, whole)

    def change(self, after: float, before: float) -> str:
        """The relative change between two times, as change() writes it."""
        return change(after, before)


def time_unit(longest_ms: float) -> TimeUnit:
    """The unit that suits times up to `longest_ms`."""
    if longest_ms < 20:  # a step of a small model: its parts would round to 0 ms
        return TimeUnit("ms", 1.0, 2)
    if longest_ms < 2_000:
        return TimeUnit("ms", 1.0, 0)
    if longest_ms < 10_000_000:
        return TimeUnit("s", 1_000.0, 1)
    if longest_ms < 360_000_000:
        return TimeUnit("min", 60_000.0, 1)
    return TimeUnit("h", 3_600_000.0, 1)


def percent(part: float, whole: float) -> str:
    """A share in percent: `31 %`, and `<1 %` for a small share above zero."""
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


def counted_digits(rate: float) -> str:
    """A number with three significant digits: `12 300`."""
    return f"{float(f'{rate:.3g}'):,.0f}".replace(",", " ") if rate >= 10 else f"{rate:.3g}"
