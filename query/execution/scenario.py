"""Scenarios: KEY=VALUE settings that change the resources or the work of a run.

    cores=8   workers=2x   cpu_speed=1.5x   memory=8GiB   disk=500MB/s   network=10Gbps   cores=2,4,8

A value is absolute, or relative to the recorded run by an `x`.  In rates, b is bit and B is byte; k, M, G are
decimal and Ki, Mi, Gi binary, except that a size without B (`8g`) is binary, as JVMs and cluster managers read it.

Other settings change the work itself, how it is partitioned, and how it is scheduled:

    input=10x   tasks=400   tasks.STAGE=8   operator.NAME=2x   skew=none   scheduler=longest

For a stream, the rate of records is a setting too: rate=2x, or rate=5000 a second; for one that is processed in
batches, also the interval between them: trigger=30s.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import product

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.indexes.resources import Resource
from crystalperf.query.results.refusals import RecordedValueUnknown, RefusedError
from crystalperf.query.trace.amounts import grouped
from crystalperf.query.trace.vocabulary import SettingUnit, Vocabulary

OPERATOR = "operator."
"""Prefix of an operator's setting; its name follows."""

TASKS = "tasks."
"""Prefix of the setting for one stage's tasks; the stage's id or the first words of its name follow."""

DEVICE = "device."
"""Prefix of the settings of accelerators; no reruns have verified their effect."""

MAX_NAMED = 24
"""Maximum operators or stages that an error lists in full; if there are more, it lists half as many close matches."""

SPEED = "cpu_speed"
"""The setting of CPU speed; its values are relative.  The recorded value is stated in cores: the CPU that a process
could use, of a slow core or under a quota; 1 if not stated."""

_NAMES = 10_000
"""Names of stages and operators whose prefixes are remembered: each scenario asks for those of all of a run."""

RATE, TRIGGER = "rate", "trigger"
"""The settings of streams: records per second, and seconds between the starts of two batches."""

SCHEDULERS = ("fifo", "fair", "longest")

SPLIT = "split"
"""The setting for the bytes of input that a task reads at most, of frameworks that split files by a size."""

UNCHECKED = ("input", "tasks", SPLIT, "skew", "scheduler")
"""Settings of the work, not of resources.  No reruns have verified their effect, nor that of operator settings, except
for those that a framework names."""

Configuration = Mapping[str, float | None]
"""Recorded values of a run by setting, per worker or per host; None is unknown."""


@frozen
class Setting:
    """A setting of scenarios: its unit and its meaning, or its choices."""

    unit: SettingUnit
    meaning: str
    choices: tuple[str, ...] = ()
    means: str = ""
    """The key of the same setting under the name by which it is stored; empty if this is it."""


def settings_of(
    resources: Sequence[Resource],
    words: Vocabulary | None = None,
    operators: Iterable[str] = (),
    stages: Mapping[str, str] | None = None,
    *,
    is_stream: bool = False,
    in_batches: bool = False,
) -> dict[str, Setting]:
    """The settings of a run by key: workers, cores and memory, one for each of its resources, and its work.

    Their meanings are in the framework's `words`.  `operators` are the names of operators with known time, `stages` has
    the names of stages with a setting for their tasks, by id, `is_stream` is whether the run is a stream, and
    `in_batches` whether it is one that is processed in batches.
    """
    words = words or Vocabulary()
    return {
        "workers": Setting("count", f"{words.counted} of the application"),
        "cores": Setting("count", f"{words.task} {words.slots} of each {words.worker}"),
        **{each.setting: Setting(each.unit, _meaning(each, words)) for each in resources},
        "memory": Setting("bytes", f"memory of each {words.worker}"),
        "input": Setting("times", "the input data, and all data computed from it"),
        "tasks": Setting("count", f"{words.tasks} into which {words.exchanged_data} is partitioned"),
        "skew": Setting(
            "choice", f"how unevenly the work of a {words.stage} is spread over its {words.tasks}", ("none",)
        ),
        "scheduler": Setting("choice", f"which {words.stage} gets a free {words.slot} first", SCHEDULERS),
        **{
            f"{OPERATOR}{prefix}": Setting("times", f"speed of the operators {prefix}")
            for prefix in dict.fromkeys(part for name in operators for part in _prefixes(name))
        },
        **{
            f"{TASKS}{called}": Setting("count", f"{words.tasks} of {called}")
            for called in dict.fromkeys(each for pair in (stages or {}).items() for each in called_by(*pair))
        },
        **_of_chained(stages or {}, words),
        **({RATE: Setting("count", "records that the sources make per second")} if is_stream or in_batches else {}),
        **({TRIGGER: Setting("seconds", "time from the start of a batch to the next")} if in_batches else {}),
    }


def _of_chained(stages: Mapping[str, str], words: Vocabulary) -> dict[str, Setting]:
    """Settings for the tasks of the only stage that runs an operator with this name behind its first one."""
    begin = {each.lower() for pair in stages.items() for each in called_by(*pair)}
    found: dict[str, set[str]] = {}
    for stage_id, name in stages.items():
        for operator in re.split(r"\s*->\s*", name)[1:]:
            for called in _prefixes(operator.strip(" ()")):
                if called.lower() not in begin:
                    found.setdefault(called, set()).add(stage_id)
    return {
        f"{TASKS}{called}": Setting("count", f"{words.tasks} of {called}", means=f"{TASKS}{next(iter(only))}")
        for called, only in found.items()
        if len(only) == 1
    }


def called_by(stage_id: str, name: str) -> list[str]:
    """Names by which users can refer to a stage: its id, prefixes of its name in words, and its first word without
    number or colon."""
    return [stage_id, *_prefixes(name)]


@lru_cache(_NAMES)
def _prefixes(name: str) -> tuple[str, ...]:
    """A name's first word without number or colon, its first word, its first two words, and so on: the names by which
    users can refer to it."""
    first = re.split(r"[\[ ]", name, maxsplit=1)[0].rstrip(":,")
    listed = [name[: match.end()].rstrip(",:") for match in re.finditer(r"[^ ]+", name)]
    return (first, *listed) if first and first not in listed else tuple(listed)


def is_unchecked(key: str) -> bool:
    """Whether no reruns have verified the effect of a setting."""
    return key in UNCHECKED or key.startswith((OPERATOR, TASKS, DEVICE))


def tasks_of(scenario: Scenario, stage_id: str, name: str) -> float:
    """The factor on a stage's number of tasks: that of the setting for the stage, else that for all stages."""
    own = [scenario.ratios[key] for each in called_by(stage_id, name) if (key := f"{TASKS}{each}") in scenario.ratios]
    return own[0] if own else scenario.ratio("tasks")


def is_meant(wanted: str, name: str) -> bool:
    """Whether an operator's name is `wanted`, or begins with its words."""
    return wanted in _prefixes(name)


def _meaning(resource: Resource, words: Vocabulary) -> str:
    what = "speed" if resource.unit == "speed" else "bandwidth"
    whose = {"worker": f" of each {words.worker}", "host": " of each node", "nobody": ""}[resource.shared_by]
    return f"{resource.device} {what}{whose}"


_NUMBER = regex(r"^(?P<number>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[A-Za-z/]*)$")
_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_MAX_SLOTS = 200_000
"""Maximum slots of a scenario: a replay of more takes minutes, and no cluster has them."""

_FARTHEST_RATIO = 1e6
"""Maximum ratio of new to recorded; beyond it a prediction is meaningless, and soon overflows."""

_EXAMPLES: Mapping[SettingUnit, str] = {
    "count": "8 or 2x",
    "speed": "1.5x",
    "bytes": "8GiB or 0.5x",
    "bytes per second": "500MB/s, 10Gbps or 2x",
    "times": "2x",
    "seconds": "30s or 2x",
}


@frozen
class Value:
    """One side of a KEY=VALUE: `absolute` in the setting's unit, a `ratio` to the recorded run, or a `choice`.

    `word` is the user's word for the setting.
    """

    word: str
    text: str
    absolute: float | None = None
    ratio: float | None = None
    choice: str | None = None

    def describe(self) -> str:
        return f"{self.word}={self.text}"


@frozen
class Scenario:
    """One scenario: for each changed setting, its value and the ratio to the recorded run."""

    changes: Mapping[str, Value] = field(default_factory=dict)
    recorded: Configuration = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)

    def ratio(self, key: str) -> float:
        """New over recorded value of a setting; 1 if it is not changed."""
        return self.ratios.get(key, 1.0)

    def amount(self, key: str) -> float | None:
        """The new value of a setting in its unit; None if it is not changed, or given as a ratio."""
        value = self.changes.get(key)
        return None if value is None else value.absolute

    def choice(self, key: str) -> str | None:
        """The chosen value of a setting with choices; None if it is not changed."""
        value = self.changes.get(key)
        return None if value is None else value.choice

    @property
    def operators(self) -> dict[str, float]:
        """The speedup of operators, by the first words of their names."""
        return {key.removeprefix(OPERATOR): ratio for key, ratio in self.ratios.items() if key.startswith(OPERATOR)}

    def unchecked(self, checked: Collection[str] = ()) -> tuple[str, ...]:
        """The user's words for changed settings whose effect no reruns have verified; reruns of the run's framework
        have also verified those of `checked`."""
        return tuple(value.word for key, value in self.changes.items() if is_unchecked(key) and key not in checked)

    def describe(self) -> str:
        return ", ".join(each.describe() for each in self.changes.values()) or "unchanged"


def parse_settings(
    texts: Iterable[str], known: Mapping[str, Setting], words: Mapping[str, str], *, lists: bool
) -> dict[str, tuple[Value, ...]]:
    """Parse KEY=VALUE texts into values by key.

    `known` are the settings of the run, `words` its framework's own words for them; `lists` permits comma separated
    values.  Raises SettingError.
    """
    found: dict[str, tuple[Value, ...]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        key = _key(key.strip(), known, words)
        if not equals:
            raise SettingError(f"'{text}': expected KEY=VALUE, for example cores=8 or network=2x")
        if key not in known:
            raise SettingError(_no_setting(key, {each: _shown(each, words) for each in known}, words))
        key = known[key].means or key
        if key in found:
            shown = _shown(key, words)
            raise SettingError(f"'{shown}' is given twice; for several values, write {shown}=A,B")
        if "=" in value:
            raise SettingError(
                f"'{text}': several settings in one; give each separately, because a comma separates values"
            )
        values = tuple(_value(_shown(key, words), known[key], part.strip()) for part in value.split(","))
        if len(values) > 1 and not lists:
            raise SettingError(f"'{text}': one value is expected here")
        found[key] = values
    return found


def _key(word: str, known: Mapping[str, Setting], words: Mapping[str, str]) -> str:
    """The setting for a user's word; the case of operator names does not matter."""
    if word in words:
        return words[word]
    first, dot, rest = word.partition(".")
    if dot and f"{words.get(first, first)}." in (OPERATOR, TASKS):
        word = f"{words.get(first, first)}.{rest}"
        return next((key for key in known if key.lower() == word.lower()), word)
    return word


def _shown(key: str, words: Mapping[str, str]) -> str:
    """The framework's word for a setting, the reverse of _key: `tasks.HashJoin` is parallelism.HashJoin in Flink."""
    first, dot, rest = key.partition(".")
    wanted = first if key.startswith(TASKS) else key
    word = next((word for word, other in words.items() if other == wanted), wanted)
    return f"{word}{dot}{rest}" if key.startswith(TASKS) else word


def _nearest(wanted: str, known: Sequence[str]) -> str:
    """A list of the known names; if there are many, their number and the closest matches."""
    if len(known) <= MAX_NAMED:
        return ", ".join(known)
    from difflib import get_close_matches  # only wrong names need it, and every command imports this module

    near = get_close_matches(wanted, known, MAX_NAMED // 2, cutoff=0.0)
    return f"{grouped(len(known))}, of which the nearest are {', '.join(near)}"


def _no_setting(key: str, shown: Mapping[str, str], words: Mapping[str, str]) -> str:
    operators = [
        word.removeprefix(OPERATOR) for word in shown.values() if word.startswith(OPERATOR) and " " not in word
    ]
    if key.startswith(OPERATOR):
        wanted = key.removeprefix(OPERATOR)
        names = f"it has {_nearest(wanted, operators)}" if operators else "its log has no time by operator"
        return f"'{wanted}' is not an operator of this run; {names}"
    if key.startswith(TASKS):
        stages = [word.removeprefix(TASKS) for word in shown if word.startswith(TASKS) and " " not in word]
        wanted = key.removeprefix(TASKS)
        return f"'{wanted}' is not in this run; it has {_nearest(wanted, stages) or 'nothing of that kind'}"
    others = [word for each, word in shown.items() if not each.startswith((OPERATOR, TASKS))]
    more = [word for word in words if word not in others]
    also = f" (and {', '.join(more)})" if more else ""
    return f"'{key}' is not a setting of this run; it has {', '.join(others)}, operator.NAME{also}"


def combinations(changes: Mapping[str, Sequence[Value]]) -> list[dict[str, Value]]:
    """Every combination of the listed values, in order, last key fastest."""
    return [dict(zip(changes, values, strict=True)) for values in product(*changes.values())]


def recorded_resources(known: Configuration, stated: Mapping[str, Sequence[Value]]) -> dict[str, float | None]:
    """The recorded values in the log, completed by those that the user states.

    The user's value wins, except for workers and slots, which the replay takes from the log.  Raises SettingError.
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


def scenario_of(changes: Mapping[str, Value], recorded: Configuration) -> Scenario:
    """The scenario of some changes.

    Raises RefusedError for an absolute value of a setting whose recorded value is unknown, SettingError for values that
    are impossible: a fraction of a worker, or more slots than can be replayed.
    """
    ratios = {}
    for key, value in changes.items():
        before = recorded.get(key)
        if value.choice is not None:
            continue
        if value.ratio is not None:
            ratios[key] = value.ratio
            if key in ("workers", "cores") and before is not None and before == int(before):
                after = before * value.ratio
                if abs(after - round(after)) > 1e-9 or after < 1:
                    raise SettingError(
                        f"{value.describe()}: {before:g} times {value.ratio:g} is not a whole number of {value.word}"
                    )
        elif key == SPEED:
            raise _relative(value.word, value.text)
        elif before is None:
            raise RefusedError(RecordedValueUnknown(value.describe(), value.word))
        else:
            assert value.absolute is not None
            ratios[key] = value.absolute / before
        if not 1 / _FARTHEST_RATIO <= ratios[key] <= _FARTHEST_RATIO:
            raise SettingError(f"{value.describe()}: more than a million times away from the recorded value")
    slots = 1.0
    for key in ("workers", "cores"):
        slots *= (recorded.get(key) or 1.0) * ratios.get(key, 1.0)
    if slots > _MAX_SLOTS:
        raise SettingError(
            f"{', '.join(each.describe() for each in changes.values())}: {grouped(round(slots))} slots are more than"
            f" the {grouped(_MAX_SLOTS)} that can be simulated"
        )
    return Scenario(changes, recorded, ratios)


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
    if unit == "seconds":
        if suffix not in _SECONDS:
            raise wrong
        return Value(word, text, absolute=number * _SECONDS[suffix])
    size = size_of(suffix, rate=unit == "bytes per second")
    if size is None:
        raise wrong
    return Value(word, text, absolute=number * size)


def _relative(word: str, text: str) -> SettingError:
    return SettingError(f"{word}={text}: give the speed relative to the recorded run, for example {word}=1.5x")


def _or(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else choices[0]


def size_of(suffix: str, *, rate: bool) -> float | None:
    """Bytes, or bytes per second, of a unit suffix; None if the suffix is unknown."""
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
