"""KEY=VALUE: what the user would change about the resources of a run.

    cores=8   executors=2x   cpu_speed=1.5x   memory=8GiB   disk=500MB/s   network=10Gbps   cores=2,4,8

A value is absolute, or relative to the recorded run by an `x`.  In rates, b is bit and B is byte; k, M, G are
decimal and Ki, Mi, Gi binary, except that Spark's own sizes (`8g`) are binary, as Spark reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from indexes.errors import NoAnswerError, SettingError

Unit = Literal["count", "speed", "bytes", "bytes per second"]

KEYS: Mapping[str, tuple[Unit, str]] = {
    "executors": ("count", "executors of the application"),
    "cores": ("count", "task slots of each executor"),
    "cpu_speed": ("speed", "speed of a core"),
    "memory": ("bytes", "memory of each executor"),
    "disk": ("bytes per second", "storage bandwidth of each node"),
    "network": ("bytes per second", "network bandwidth of each node"),
}
"""The keys, their unit and their meaning."""

KEY_OF_RESOURCE: Mapping[str, str] = {"cpu": "cpu_speed", "disk": "disk", "net": "network"}
"""The key that changes the speed of a resource."""

ALIASES: Mapping[str, str] = {
    "spark.executor.instances": "executors",
    "spark.executor.cores": "cores",
    "spark.executor.memory": "memory",
}

_NUMBER = re.compile(r"^(?P<number>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[A-Za-z/]*)$")
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_MOST_SLOTS = 200_000
"""A replay of more takes minutes, and no cluster has them."""

_FARTHEST_RATIO = 1e6
"""Between new and recorded; beyond it a prediction means nothing, and soon overflows."""

_EXAMPLES: Mapping[Unit, str] = {
    "count": "8 or 2x",
    "speed": "1.5x",
    "bytes": "8GiB or 0.5x",
    "bytes per second": "500MB/s, 10Gbps or 2x",
}


@dataclass(frozen=True)
class Value:
    """One side of a KEY=VALUE; either `absolute` (in the key's unit) or `ratio` to the recorded run."""

    text: str
    absolute: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Resources:
    """Resources of a run: what it had, or what it would have.  Per executor or per node; None is unknown."""

    executors: float | None = None
    cores: float | None = None
    cpu_speed: float | None = 1.0
    memory: float | None = None
    disk: float | None = None
    network: float | None = None


@dataclass(frozen=True)
class World:
    """One changed world: for each changed key its value and the ratio to the recorded run."""

    changes: Mapping[str, Value]
    recorded: Resources
    ratios: Mapping[str, float]

    def ratio(self, key: str) -> float:
        """New over recorded; 1 for what is not changed."""
        return self.ratios.get(key, 1.0)

    def describe(self) -> str:
        return ", ".join(f"{key}={value.text}" for key, value in self.changes.items()) or "unchanged"


def parse_settings(settings: Iterable[str], *, lists: bool) -> dict[str, tuple[Value, ...]]:
    """KEY=VALUE texts to values by key.  Raises SettingError; `lists` permits comma separated values."""
    found: dict[str, tuple[Value, ...]] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = ALIASES.get(key.strip(), key.strip())
        if not equals:
            raise SettingError(f"'{setting}': expected KEY=VALUE, for example cores=8 or network=2x")
        if key not in KEYS:
            raise SettingError(f"'{key}' is not a resource; known are {', '.join(KEYS)} (and {', '.join(ALIASES)})")
        if key in found:
            raise SettingError(f"'{key}' is given twice; for several values write {key}=A,B")
        values = tuple(_value(key, part.strip()) for part in text.split(","))
        if len(values) > 1 and not lists:
            raise SettingError(f"'{setting}': one value is expected here")
        found[key] = values
    return found


def combinations(changes: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Every combination of the listed values, in order, last key fastest."""
    return [dict(zip(changes, values, strict=True)) for values in product(*changes.values())]


def recorded_resources(known: Resources, stated: Mapping[str, Sequence[Value]]) -> Resources:
    """What the log tells, completed by what the user states with --recorded.

    The user's word wins, but not over executors and slots, which the replay takes from the log.  Raises SettingError.
    """
    facts = {key: getattr(known, key) for key in KEYS}
    for key, (value, *_) in stated.items():
        if value.absolute is None:
            raise SettingError(f"--recorded {key}={value.text}: an absolute value is expected, for example {key}=1Gbps")
        if KEYS[key][0] == "count" and facts[key] not in (None, value.absolute):
            raise SettingError(
                f"--recorded {key}={value.text}: the log says that the run had {facts[key]:g}; leave it out"
            )
        facts[key] = value.absolute
    return Resources(**facts)


def changed_world(changes: Mapping[str, Value], recorded: Resources) -> World:
    """One changed world.

    Raises NoAnswerError where an absolute value meets an unknown recorded one, SettingError where the values make no
    world: a fraction of an executor, more slots than can be replayed.
    """
    ratios = {}
    for key, value in changes.items():
        before = getattr(recorded, key)
        if value.ratio is not None:
            ratios[key] = value.ratio
            if KEYS[key][0] == "count" and before is not None:
                after = before * value.ratio
                if abs(after - round(after)) > 1e-9 or after < 1:
                    raise SettingError(
                        f"{key}={value.text}: {before:g} times {value.ratio:g} is no whole number of {key}"
                    )
        elif before is None:
            raise NoAnswerError(
                f"{key}={value.text}: the run does not tell what it had; add --recorded {key}=…, or ask for a ratio"
                f" such as {key}=2x"
            )
        else:
            assert value.absolute is not None
            ratios[key] = value.absolute / before
        if not 1 / _FARTHEST_RATIO <= ratios[key] <= _FARTHEST_RATIO:
            raise SettingError(f"{key}={value.text}: more than a million times away from what the run had")
    slots = 1.0
    for key in ("executors", "cores"):
        slots *= (getattr(recorded, key) or 1.0) * ratios.get(key, 1.0)
    if slots > _MOST_SLOTS:
        raise SettingError(
            f"{', '.join(f'{key}={value.text}' for key, value in changes.items())}: {slots:.3g} task slots are"
            f" more than the {_MOST_SLOTS} that can be replayed"
        )
    return World(changes, recorded, ratios)


def _value(key: str, text: str) -> Value:
    unit = KEYS[key][0]
    wrong = SettingError(f"{key}={text}: not a value for {KEYS[key][1]}; write for example {_EXAMPLES[unit]}")
    match = _NUMBER.match(text.removeprefix("-"))
    if match is None:
        raise wrong
    number, suffix = float(match["number"]), match["unit"]
    if text.startswith("-") or number == 0:
        raise SettingError(f"{key}={text}: the value must be greater than zero")
    if number == float("inf"):
        raise wrong
    if suffix in ("x", "X"):
        return Value(text, ratio=number)
    if unit == "speed":
        # An absolute clock rate would need the recorded one, which no log states.
        raise SettingError(f"{key}={text}: give the speed relative to the recorded run, for example {key}=1.5x")
    if unit == "count":
        if suffix or number != int(number):
            raise wrong
        return Value(text, absolute=number)
    size = _size(suffix, rate=unit == "bytes per second")
    if size is None:
        raise wrong
    return Value(text, absolute=number * size)


def _size(suffix: str, *, rate: bool) -> float | None:
    """Bytes, or bytes per second, that one of the unit stands for; None if it is no such unit."""
    if rate:
        match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)(?P<what>bps|bit/s|b/s|Bps|B/s)$", suffix)
        if match is None:
            return None
        prefix = _PREFIX.get(match["prefix"].lower())
        return None if prefix is None else prefix / (8 if match["what"].startswith("b") else 1)
    if re.match(r"^[kKmMgGtT]$", suffix):  # Spark's own sizes: 8g is 8 GiB
        return _PREFIX[suffix.lower() + "i"]
    match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)[bB]$", suffix)
    return None if match is None else _PREFIX.get(match["prefix"].lower())
