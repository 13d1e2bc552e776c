"""Parsers of the values of Spark's settings, in the forms of users, vendors and newer versions.

An invalid value does not prevent an analysis: CrystalPerf uses Spark's default, and the run reports it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping

from crystalperf.indexes.regex import regex

_SIZE = regex(r"([0-9]{1,15})([kmgtp]?)i?b?")
_SHIFT = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_TIME = regex(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([a-z]*)")
_TIME_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7}
_VERSION = regex(r"v?([0-9]{1,9}(?:[.+-][A-Za-z0-9_]{1,40}){0,10})", re.ASCII)


def size_bytes(text: str | None, unit: str = "") -> float | None:
    """Bytes of a size such as 64m, 134217728b, 4g or 128MB; a number alone is in `unit`: '' for bytes, m for MiB."""
    match = _SIZE.fullmatch((text or "").strip().lower().replace(" ", ""))
    if match is None:
        return None
    plain = match[0] == match[1]
    size = int(match[1]) << _SHIFT.get(unit if plain else match[2], 0)
    return float(size) if size < 1 << 60 else None


def duration_ms(text: str | None) -> float | None:
    """A time such as 3s, 500ms, or plain milliseconds."""
    match = _TIME.fullmatch((text or "").strip().lower())
    unit = _TIME_MS.get(match[2] or "ms") if match else None
    return None if match is None or unit is None else float(match[1]) * unit


def is_local(properties: Mapping[str, str]) -> bool:
    """Whether a run was one process, its driver and its only executor."""
    master = properties.get("spark.master") or ""
    return master.startswith("local") and not master.startswith("local-cluster")


def whole(text: str | None) -> int | None:
    """A whole number of at least 1."""
    found = re.fullmatch(r"[0-9]{1,9}", (text or "").strip())
    return int(found[0]) or None if found else None


def number(text: str | None) -> float | None:
    """A number, not negative."""
    return float(text) if text and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else None


def share(text: str | None) -> float | None:
    """A share of a whole, between 0 and 1."""
    try:
        value = float((text or "").strip())
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value <= 1 else None


def flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").strip().lower())


def version_number(text: str | None) -> str | None:
    """The version in a log's text: 3.5.1 for `v3.5.1` and for `3.5.1 (build 7)`; None for a word without a number."""
    match = _VERSION.match((text or "").strip())
    return match[1].rstrip(".+-") if match else None


def version_tuple(text: str | None) -> tuple[int, int] | None:
    """The first two numbers of a version: (3, 5) for 3.5.1; None if unknown."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", version_number(text) or "")
    return (int(found[1]), int(found[2])) if found else None


def size_text(amount: float) -> str:
    """Bytes as Spark's settings take them, rounded up to three figures: 512m, 12g, 64k."""
    for unit, one in (("g", 2**30), ("m", 2**20), ("k", 2**10)):
        if amount >= one and (unit != "g" or amount % one == 0 or amount >= 10 * one):
            return f"{math.ceil(amount / one)}{unit}"
    return f"{max(math.ceil(amount / 1024), 1)}k"


READ: Mapping[str, Callable[[str | None], object]] = {
    "spark.sql.shuffle.partitions": whole,
    "spark.memory.fraction": share,
    "spark.task.cpus": number,
    "spark.executor.cores": whole,
    "spark.driver.cores": whole,
    "spark.executor.memory": size_bytes,
    "spark.driver.memory": size_bytes,
    "spark.locality.wait": duration_ms,
    "spark.locality.wait.node": duration_ms,
    "spark.sql.files.maxPartitionBytes": size_bytes,
    "spark.sql.files.openCostInBytes": size_bytes,
    "spark.sql.adaptive.enabled": flag,
    "spark.sql.adaptive.coalescePartitions.enabled": flag,
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": flag,
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": size_bytes,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": size_bytes,
}
"""The settings that answers depend on, and the parser of each."""


def unread(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The settings of a run that affect results and have a value that cannot be parsed."""
    for key, read in READ.items():
        value = properties.get(key, "")
        if value.strip() and read(value) is None:
            yield key, value
