"""Configurations of streaming queries to run and to predict: the baseline of each job, and changes of it.

    windows  rows of the rate source, aggregated by window and key, with their state in RocksDB
    dedupe   rows of JSON files, without duplicates, with their state in memory
    kafka    the same of rows of a topic of Kafka

Predictions start from a baseline's recorded run, in which the rate varies.  Configurations whose sha256(name) ends in
an odd hex digit are the test set, which is only scored.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

OVERLOAD = "overload"
"""The configuration whose rate is above the highest; it shows that rate."""

_RATES = {"windows": 5_000, "dedupe": 2_000, "kafka": 2_000}
_CHANGED = ((1, 2, 4), (2, 2, 4), (4, 2, 4), (1, 6, 4), (2, 6, 4), (1, 2, 8))
"""Factor on the rate, interval of the trigger in seconds, and partitions."""
_OVERLOADED = {"windows": 40, "dedupe": 30, "kafka": 30}


@dataclass(frozen=True)
class Configuration:
    """One point of the suite.

    Attributes:
        rate: rows per second, on average; constant unless `varied`.
        trigger_s: interval of the trigger, seconds.
        partitions: spark.sql.shuffle.partitions.
        seconds: how long it runs after the warm-up.
    """

    job: str
    name: str
    rate: int
    trigger_s: int = 2
    partitions: int = 4
    seconds: int = 36
    varied: bool = False

    @property
    def is_base(self) -> bool:
        return self.varied

    @property
    def role(self) -> str:
        if self.is_base:
            return "base"
        return ("even", "odd")[int(hashlib.sha256(self.name.encode()).hexdigest()[-1], 16) % 2]

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of `crystalperf predict` for it."""
        return f"rate={self.rate}", f"trigger={self.trigger_s}s", f"partitions={self.partitions}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def configurations() -> list[Configuration]:
    """All of them: the baseline of each job, changes of it, and an overloaded one."""
    found: list[Configuration] = []
    for job, rate in _RATES.items():
        found.append(Configuration(job, f"{job}-base", rate, seconds=60, varied=True))
        for factor, trigger_s, partitions in _CHANGED:
            name = f"{job}-rate{factor * rate}-trigger{trigger_s}-partitions{partitions}"
            seconds = 48 if trigger_s > 2 else 36
            found.append(Configuration(job, name, factor * rate, trigger_s, partitions, seconds))
        found.append(Configuration(job, f"{job}-{OVERLOAD}", rate * _OVERLOADED[job]))
    return found
