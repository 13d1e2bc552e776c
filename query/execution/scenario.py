"""KEY=VALUE: what the user would change about the resources of a run.

    cores=8   workers=2x   cpu_speed=1.5x   memory=8GiB   disk=500MB/s   network=10Gbps   cores=2,4,8

A value is absolute, or relative to the recorded run by an `x`.  In rates, b is bit and B is byte; k, M, G are
decimal and Ki, Mi, Gi binary, except that a size without B (`8g`) is binary, as JVMs and cluster managers read it.

Beside resources the work itself can be another, and how it is cut and given out:

    input=10x   units=400   units.GROUP=8   operator.NAME=2x   skew=none   scheduler=longest

Where the run is a flow of records, how many come is a setting too: rate=2x, or rate=5000 a second.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import Resource
from crystalperf.query.results.refusals import RecordedValueUnknown, RefusedError
from crystalperf.query.trace.amounts import grouped
from crystalperf.query.trace.vocabulary import SettingUnit, Vocabulary

OPERATOR = "operator."
"""What the setting of an operator begins with; its name follows."""

UNITS = "units."
"""What the setting of one group's units begins with; the group's id or the first words of its name follow."""

DEVICE = "device."
"""What the settings of accelerators begin with; no reruns have checked what they do."""

MOST_NAMED = 24
"""Operators or groups that are all named where one is asked for that is not there; of more, the half of that which look
most like it."""

SPEED = "cpu_speed"
"""What is asked of it is relative.  What a run had is stated in cores: the CPU that a process could use, of a slow core
or under a quota; 1 where nobody says."""

SCHEDULERS = ("fifo", "fair", "longest")

UNCHECKED = ("input", "units", "skew", "scheduler")
"""Settings of the work, not of resources; no reruns have checked what they do, nor what those of operators do, but for
those that a framework names."""

Configuration = Mapping[str, float | None]
"""What a run had, by setting: per worker or per host; None is unknown."""


@dataclass(frozen=True)
class Setting:
    """What can be changed about a run: its unit and its meaning, or what there is to choose from."""

    unit: SettingUnit
    meaning: str
    choices: tuple[str, ...] = ()


def settings_of(
    resources: Sequence[Resource],
    words: Vocabulary | None = None,
    operators: Iterable[str] = (),
    groups: Mapping[str, str] | None = None,
    *,
    flows: bool = False,
) -> dict[str, Setting]:
    """The settings of a run by key: workers, cores and memory, one for each of its resources, and its work.

    Their meanings are in the framework's `words`; `operators` are the names of those that the run has time of, `groups`
    has the names of groups whose units can be asked about by id, and `flows` is whether the run is a flow of records.
    """
    words = words or Vocabulary()
    return {
        "workers": Setting("count", f"{words.counted} of the application"),
        "cores": Setting("count", f"{words.unit} {words.lanes} of each {words.worker}"),
        **{each.setting: Setting(each.unit, _meaning(each, words)) for each in resources},
        "memory": Setting("bytes", f"memory of each {words.worker}"),
        "input": Setting("times", "the data that is read, and all that is made of it"),
        "units": Setting("count", f"{words.units} that {words.exchanged} is cut into"),
        "skew": Setting("choice", f"how unevenly the work of a {words.group} lies on its {words.units}", ("none",)),
        "scheduler": Setting("choice", f"which {words.group} gets a free {words.lane} first", SCHEDULERS),
        **{
            f"{OPERATOR}{words_of}": Setting("times", f"speed of the operators {words_of}")
            for words_of in dict.fromkeys(part for name in operators for part in _beginnings(name))
        },
        **{
            f"{UNITS}{called}": Setting("count", f"{words.units} of {called}")
            for called in dict.fromkeys(each for pair in (groups or {}).items() for each in called_by(*pair))
        },
        **({"rate": Setting("count", "records that the sources make per second")} if flows else {}),
    }


def called_by(group_id: str, name: str) -> list[str]:
    """What a user may call a group: its id, the first words of its name, and the first without number or colon."""
    first = re.split(r"[\[ ]", name, maxsplit=1)[0].rstrip(":")
    return [group_id, first, *_beginnings(name)] if first else [group_id]


def _beginnings(name: str) -> list[str]:
    """A name's first word, its first two words, and so on: what a user may call it by."""
    return [name[: match.end()].rstrip(",:") for match in re.finditer(r"[^ ]+", name)]


def is_unchecked(key: str) -> bool:
    """Whether no reruns have checked what a setting does."""
    return key in UNCHECKED or key.startswith((OPERATOR, UNITS, DEVICE))


def units_of(world: World, group_id: str, name: str) -> float:
    """How many times as many units a group has: those asked for by its name, else those of all groups."""
    asked = [world.ratios[key] for each in called_by(group_id, name) if (key := f"{UNITS}{each}") in world.ratios]
    return asked[0] if asked else world.ratio("units")


def is_meant(asked: str, name: str) -> bool:
    """Whether an operator's name is the one asked for, or begins with its words."""
    return asked in _beginnings(name)


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

_EXAMPLES: Mapping[SettingUnit, str] = {
    "count": "8 or 2x",
    "speed": "1.5x",
    "bytes": "8GiB or 0.5x",
    "bytes per second": "500MB/s, 10Gbps or 2x",
    "times": "2x",
}


@dataclass(frozen=True)
class Value:
    """One side of a KEY=VALUE: `absolute` in the setting's unit, a `ratio` to the recorded run, or a `choice`.

    `word` is what the user calls the setting.
    """

    word: str
    text: str
    absolute: float | None = None
    ratio: float | None = None
    choice: str | None = None

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

    def choice(self, key: str) -> str | None:
        """What was chosen of a setting that has choices; None where it stays as it was."""
        value = self.changes.get(key)
        return None if value is None else value.choice

    @property
    def operators(self) -> dict[str, float]:
        """By the first words of operators' names, how many times as fast they are."""
        return {key.removeprefix(OPERATOR): ratio for key, ratio in self.ratios.items() if key.startswith(OPERATOR)}

    def unchecked(self, checked: Collection[str] = ()) -> tuple[str, ...]:
        """Those of the changed settings whose effect no reruns have checked, by the user's words; reruns of the run's
        framework have `checked` some more."""
        return tuple(value.word for key, value in self.changes.items() if is_unchecked(key) and key not in checked)

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
        key = _key(key.strip(), known, words)
        if not equals:
            raise SettingError(f"'{text}': expected KEY=VALUE, for example cores=8 or network=2x")
        if key not in known:
            raise SettingError(_no_setting(key, shown, words))
        if key in found:
            raise SettingError(f"'{shown[key]}' is given twice; for several values write {shown[key]}=A,B")
        if "=" in value:
            raise SettingError(f"'{text}': several settings in one; give each of its own, for only values are listed")
        values = tuple(_value(shown[key], known[key], part.strip()) for part in value.split(","))
        if len(values) > 1 and not lists:
            raise SettingError(f"'{text}': one value is expected here")
        found[key] = values
    return found


def _key(word: str, known: Mapping[str, Setting], words: Mapping[str, str]) -> str:
    """The setting that a user means; operators are found however their names are capitalised."""
    if word in words:
        return words[word]
    first, dot, rest = word.partition(".")
    if dot and f"{words.get(first, first)}." in (OPERATOR, UNITS):
        word = f"{words.get(first, first)}.{rest}"
        return next((key for key in known if key.lower() == word.lower()), word)
    return word


def _nearest(wanted: str, there: Sequence[str]) -> str:
    """What there is by name; of many those that look most like what was wanted, and how many there are."""
    if len(there) <= MOST_NAMED:
        return ", ".join(there)
    from difflib import get_close_matches  # for a wrong name alone, and every command imports this module

    near = get_close_matches(wanted, there, MOST_NAMED // 2, cutoff=0.0)
    return f"{grouped(len(there))}, of which the nearest are {', '.join(near)}"


def _no_setting(key: str, shown: Mapping[str, str], words: Mapping[str, str]) -> str:
    operators = [
        word.removeprefix(OPERATOR) for word in shown.values() if word.startswith(OPERATOR) and " " not in word
    ]
    if key.startswith(OPERATOR):
        wanted = key.removeprefix(OPERATOR)
        there = f"it has {_nearest(wanted, operators)}" if operators else "its time is not told apart by operator"
        return f"'{wanted}' is no operator of this run; {there}"
    if key.startswith(UNITS):
        groups = [word.removeprefix(UNITS) for word in shown if word.startswith(UNITS) and " " not in word]
        wanted = key.removeprefix(UNITS)
        return f"'{wanted}' is not in this run; it has {_nearest(wanted, groups) or 'nothing of that kind'}"
    others = [word for word in shown.values() if not word.startswith((OPERATOR, UNITS))]
    more = [word for word in words if word not in others]
    also = f" (and {', '.join(more)})" if more else ""
    return f"'{key}' is nothing that can be changed; known are {', '.join(others)}, operator.NAME{also}"


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

    Raises RefusedError where an absolute value meets an unknown recorded one, SettingError where the values make no
    world: a fraction of a worker, more slots than can be replayed.
    """
    ratios = {}
    for key, value in changes.items():
        before = recorded.get(key)
        if value.choice is not None:
            continue
        if value.ratio is not None:
            ratios[key] = value.ratio
            if key in ("workers", "cores") and before is not None:
                after = before * value.ratio
                if abs(after - round(after)) > 1e-9 or after < 1:
                    raise SettingError(
                        f"{value.describe()}: {before:g} times {value.ratio:g} is no whole number of {value.word}"
                    )
        elif key == SPEED:
            raise _relative(value.word, value.text)
        elif before is None:
            raise RefusedError(RecordedValueUnknown(value.describe(), value.word))
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
            f"{', '.join(each.describe() for each in changes.values())}: {grouped(round(slots))} slots are more than"
            f" the {grouped(_MOST_SLOTS)} that can be replayed"
        )
    return World(changes, recorded, ratios)


def _value(word: str, setting: Setting, text: str) -> Value:
    unit = setting.unit
    if unit == "choice":
        if text not in setting.choices:
            raise SettingError(f"{word}={text}: not a value for {setting.meaning}; it can be {_or(setting.choices)}")
        return Value(word, text, choice=text)
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
    if unit == "times":
        raise wrong
    if unit == "speed":
        if suffix or word != SPEED:  # a clock rate would need the recorded one, which no log states
            raise _relative(word, text)
        return Value(word, text, absolute=number)
    if unit == "count":
        if suffix or number != int(number):
            raise wrong
        return Value(word, text, absolute=number)
    size = size_of(suffix, rate=unit == "bytes per second")
    if size is None:
        raise wrong
    return Value(word, text, absolute=number * size)


def _relative(word: str, text: str) -> SettingError:
    return SettingError(f"{word}={text}: give the speed relative to the recorded run, for example {word}=1.5x")


def _or(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else choices[0]


def size_of(suffix: str, *, rate: bool) -> float | None:
    """Bytes, or bytes per second, that one of the unit stands for; None if it is no such unit."""
    if rate:
        match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)(?P<what>bps|bit/s|b/s|Bps|B/s)$", suffix)
        if match is None:
            return None
        prefix = _PREFIX.get(match["prefix"].lower())
        return None if prefix is None else prefix / (8 if match["what"].startswith("b") else 1)
    if re.match(r"^[kKmMgGtT]i?$", suffix):  # 8g is 8 GiB to a JVM, and 8Gi to Kubernetes
        return _PREFIX[f"{suffix[0].lower()}i"]
    match = re.match(r"^(?P<prefix>[kKmMgGtT]?i?)[bB]$", suffix)
    return None if match is None else _PREFIX.get(match["prefix"].lower())
