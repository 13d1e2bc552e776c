"""Rates and sizes as people write them: ``100Mbps``, ``8MB/s``, ``512m``."""

from __future__ import annotations

import re

from lab.errors import LabError

_BIT_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_BYTE_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_bit_rate(text: str) -> int:
    """Bits per second of ``100Mbps``, ``1Gbit/s``, ``12.5MB/s`` (b is bit, B is byte; decimal units)."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kKmMgG]?)(?:(bps|bit/s|bit|b/s)|(Bps|B/s))\s*", text)
    if match is None or float(match[1]) <= 0:
        raise LabError(f"'{text}' is not a network rate; write a positive number with its unit, as 100Mbps or 12MB/s.")
    bits = float(match[1]) * _BIT_UNITS[match[2].lower()] * (8 if match[4] else 1)
    return round(bits)


def parse_byte_rate(text: str) -> int:
    """Bytes per second of ``8MB/s`` or ``64Mbps`` (b is bit, B is byte; decimal units)."""
    return max(1, parse_bit_rate(text) // 8)


def parse_size(text: str) -> int:
    """Bytes of ``1g``, ``512m``, ``1.5GiB`` (binary units, as Spark and the JVM read them)."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([kKmMgGtT]?)(?:i?[bB])?\s*", text)
    if match is None or float(match[1]) <= 0:
        raise LabError(f"'{text}' is not a size; write a positive number with its unit, as 512m or 1g.")
    return round(float(match[1]) * _BYTE_UNITS[match[2].lower()])
