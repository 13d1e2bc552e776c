"""Formats counts, volumes of data and times for sentences."""

from __future__ import annotations

from crystalperf.query.trace.vocabulary import plural

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def grouped(number: int) -> str:
    """`6 104`: thousands apart."""
    return f"{number:,}".replace(",", " ")


def counted(number: int, noun: str) -> str:
    """`1 function`, `2 queries`, `6 104 functions`."""
    return f"{grouped(number)} {noun if number == 1 else plural(noun)}"


def volume(amount: float) -> str:
    """Bytes in the unit in which they are below 1 024: `381 GiB`, `1.6 GiB`, `12 KiB`, `0 bytes`."""
    for unit in _UNITS:
        if amount < 1023.5 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 9.95 or unit == "bytes" else f"{amount:.1f} {unit}"


def lasting(ms: float) -> str:
    """A time within a sentence: `2.1 s`, and `38 ms` if it is below a tenth of a second."""
    return f"{ms / 1000:.1f} s" if ms >= 99.5 or ms <= 0 else f"{ms:.0f} ms"


def part_of(part_ms: float, whole_ms: float, whose: str = "the") -> str:
    """`30.0 of the 40.0 s`; in ms if the whole is below a second."""
    if whole_ms < 1000:
        return f"{part_ms:.0f} of {whose} {whole_ms:.0f} ms"
    return f"{part_ms / 1000:.1f} of {whose} {whole_ms / 1000:.1f} s"
