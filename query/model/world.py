"""KEY=VALUE: what the user would change about the resources of a run.

    cores=8   workers=2x   cpu_speed=1.5x   memory=8GiB   disk=500MB/s   network=10Gbps   cores=2,4,8

A value is absolute, or relative to the recorded run by an `x`.  In rates, b is bit and B is byte; k, M, G are
decimal and Ki, Mi, Gi binary, except that a size without B (`8g`) is binary, as JVMs and cluster managers read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

from indexes.errors import NoAnswerError, Remedy, SettingError
from indexes.resources import Resource
from query.frameworks import Vocabulary

Unit = Literal["count", "speed", "bytes", "bytes per second"]

Configuration = Mapping[str, float | None]
"""What a run had, by setting: per worker or per host; None is unknown."""


@dataclass(frozen=True)
class Setting:
    """What can be changed about a run: its unit and its meaning."""

    unit: Unit
    meaning: str


def settings_of(resources: Sequence[Resource], words: Vocabulary | None = None) -> dict[str, Setting]:
    """The settings of a run by key: workers, cores and memory, and one for each of its resources.

    Their meanings are in the framework's `words`.
    """
    words = words or Vocabulary()
    return {
        "workers": Setting("count", f"{words.workers} of the application"),
        "cores": Setting("count", f"{words.unit} {words.lanes} of each {words.worker}"),
        **{each.setting: Setting(each.unit, _meaning(each, words)) for each in resources},
        "memory": Setting("bytes", f"memory of each {words.worker}"),
    }


def _meaning(resource: Resource, words: Vocabulary) -> str:
    what = "speed" if resource.unit == "speed" else "bandwidth"
    whose = {"worker": f" of each {words.worker}", "host": " of each node", "nobody": ""}[resource.shared_by]
    return f"{resource.device} {what}{whose}"


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
    """One side of a KEY=VALUE; either `absolute` (in the setting's unit) or `ratio` to the recorded run.

    `word` is what the user calls the setting.
    """

    word: str
    text: str
    absolute: float | None = None
    ratio: float | None = None

    def describe(self) -> str:
        return f"{self.word}={self.text}"


@dataclass(frozen=True)
class World:
    """One changed world: for each changed setting its value and the ratio to the recorded run."""

    changes: Mapping[str, Value] = field(default_factory=dict)
    recorded: Configuration = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)

    def ratio(self, key: str) -> float:
        """New over recorded; 1 for what is not changed."""
        return self.ratios.get(key, 1.0)

    def describe(self) -> str:
        return ", ".join(each.describe() for each in self.changes.values()) or "unchanged"


def parse_settings(
    texts: Iterable[str], known: Mapping[str, Setting], words: Mapping[str, str], *, lists: bool
) -> dict[str, tuple[Value, ...]]:
    """KEY=VALUE texts to values by key.

    `known` are the settings of the run, `words` its framework's own words for them; `lists` permits comma separated
    values.  Raises SettingError.
    """
    shown = {key: next((word for word, other in words.items() if other == key), key) for key in known}
    found: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = words.get(key.strip(), key.strip())
        if not equals:
            raise SettingError(f"'{text}': expected KEY=VALUE, for example cores=8 or network=2x")
        if key not in known:
            more = [word for word in words if word not in shown.values()]
            also = f" (and {', '.join(more)})" if more else ""
            raise SettingError(f"'{key}' is not a resource; known are {', '.join(shown.values())}{also}")
        if key in found:
            raise SettingError(f"'{shown[key]}' is given twice; for several values write {shown[key]}=A,B")
        values = tuple(_value(shown[key], known[key], part.strip()) for part in value.split(","))
        if len(values) > 1 and not lists:
            raise SettingError(f"'{text}': one value is expected here")
        found[key] = values
    return found


def combinations(changes: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Every combination of the listed values, in order, last key fastest."""
    return [dict(zip(changes, values, strict=True)) for values in product(*changes.values())]


def recorded_resources(known: Configuration, stated: Mapping[str, Sequence[Value]]) -> dict[str, float | None]:
    """What the log tells, completed by what the user states.

    The user's word wins, but not over workers and slots, which the replay takes from the log.  Raises SettingError.
    """
    facts = dict(known)
    for key, (value, *_) in stated.items():
        if value.absolute is None:
            raise SettingError(
                f"recorded {value.describe()}: an absolute value is expected, for example {value.word}=1Gbps"
            )
        if key in ("workers", "cores") and facts.get(key) not in (None, value.absolute):
            raise SettingError(
                f"recorded {value.describe()}: the log says that the run had {facts[key]:g}; leave it out"
            )
        facts[key] = value.absolute
    return facts


def changed_world(changes: Mapping[str, Value], recorded: Configuration) -> World:
    """One changed world.

    Raises NoAnswerError where an absolute value meets an unknown recorded one, SettingError where the values make no
    world: a fraction of a worker, more slots than can be replayed.
    """
    ratios = {}
    for key, value in changes.items():
        before = recorded.get(key)
        if value.ratio is not None:
            ratios[key] = value.ratio
            if key in ("workers", "cores") and before is not None:
                after = before * value.ratio
                if abs(after - round(after)) > 1e-9 or after < 1:
                    raise SettingError(
                        f"{value.describe()}: {before:g} times {value.ratio:g} is no whole number of {value.word}"
                    )
        elif before is None:
            raise NoAnswerError(
                f"{value.describe()}: the run does not tell what it had",
                Remedy("state what the run had", {"setting": value.word}),
            )
        else:
            assert value.absolute is not None
            ratios[key] = value.absolute / before
        if not 1 / _FARTHEST_RATIO <= ratios[key] <= _FARTHEST_RATIO:
            raise SettingError(f"{value.describe()}: more than a million times away from what the run had")
    slots = 1.0
    for key in ("workers", "cores"):
        slots *= (recorded.get(key) or 1.0) * ratios.get(key, 1.0)
    if slots > _MOST_SLOTS:
        raise SettingError(
            f"{', '.join(each.describe() for each in changes.values())}: {slots:.3g} slots are more than the"
            f" {_MOST_SLOTS} that can be replayed"
        )
    return World(changes, recorded, ratios)


def _value(word: str, setting: Setting, text: str) -> Value:
    unit = setting.unit
    wrong = SettingError(f"{word}={text}: not a value for {setting.meaning}; write for example {_EXAMPLES[unit]}")
    match = _NUMBER.match(text.removeprefix("-"))
    if match is None:
        raise wrong
    number, suffix = float(match["number"]), match["unit"]
    if text.startswith("-") or number == 0:
        raise SettingError(f"{word}={text}: the value must be greater than zero")
    if number == float("inf"):
        raise wrong
    if suffix in ("x", "X"):
        return Value(word, text, ratio=number)
    if unit == "speed":
        # An absolute clock rate would need the recorded one, which no log states.
        raise SettingError(f"{word}={text}: give the speed relative to the recorded run, for example {word}=1.5x")
    if unit == "count":
        if suffix or number != int(number):
            raise wrong
        return Value(word, text, absolute=number)
    size = _size(suffix, rate=unit == "bytes per second")
    if size is None:
        raise wrong
    return Value(word, text, absolute=number * size)


def _size(suffix: str, *, rate: bool) -> float | None:
    """Bytes, or bytes per second, that one of the unit stands for; None if it is no such unit."""
    if rate:
        match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)(?P<what>bps|bit/s|b/s|Bps|B/s)$", suffix)
        if match is None:
            return None
        prefix = _PREFIX.get(match["prefix"].lower())
        return None if prefix is None else prefix / (8 if match["what"].startswith("b") else 1)
    if re.match(r"^[kKmMgGtT]$", suffix):  # 8g is 8 GiB to a JVM
        return _PREFIX[suffix.lower() + "i"]
    match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)[bB]$", suffix)
    return None if match is None else _PREFIX.get(match["prefix"].lower())
