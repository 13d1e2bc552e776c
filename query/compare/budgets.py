"""Budgets as users state them: `runtime=10m`, `spill=1GB`, `predicted[cores=0.5x]=20m`, and the file crystalperf.toml.

[gate]
max-slowdown = "10%"

[gate.max]
runtime = "10m"
"predicted[cores=0.5x]" = "20m"
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.indexes.regex import regex
from crystalperf.query.compare.metrics import METRICS
from crystalperf.query.execution.scenario import size_of
from crystalperf.query.results.gate import Budget, Unit

FILE = "crystalperf.toml"

SLOWDOWN = "slowdown"
PREDICTED = "predicted"

_PREDICTED = regex(r"predicted\[(?P<settings>[^\]]+)\]")
_AMOUNT = regex(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z%]*)")
_MS = {"ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6}
_EXAMPLES: Mapping[Unit, str] = {"ms": "10m, 90s, 1.5h or 250ms", "bytes": "1GB", "share": "10%", "count": "0"}


def budget(text: str, words: Mapping[str, str]) -> Budget:
    """A budget of METRIC=VALUE or predicted[SETTING,…]=VALUE; `words` are other words for metrics, with their keys.

    Raises SettingError.
    """
    match = re.fullmatch(r"(?P<name>[^\[=]+(?:\[[^\]]*\])?)=(?P<value>.*)", text.strip())
    if match is None:
        raise SettingError(f"'{text}': expected METRIC=VALUE, for example runtime=10m or predicted[cores=0.5x]=20m")
    return named(match["name"].strip(), match["value"].strip(), words)


def named(name: str, value: str, words: Mapping[str, str]) -> Budget:
    """A budget by its name and its value.  Raises SettingError."""
    if predicted := _PREDICTED.fullmatch(name):
        settings = tuple(each.strip() for each in predicted["settings"].split(",") if each.strip())
        return Budget(name, PREDICTED, "ms", _amount(name, value, "ms"), value, settings)
    key = words.get(name, name)
    if key not in METRICS:
        near = difflib.get_close_matches(name, [*METRICS, *words], 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(METRICS)} and predicted[SETTING]"
        raise SettingError(f"'{name}': not a metric; {meant}")
    unit = METRICS[key].unit
    return Budget(name, key, unit, _amount(name, value, unit), value)


def slowdown(value: str) -> Budget:
    """The budget of a slowdown: `10%`.  Raises SettingError."""
    return Budget(SLOWDOWN, SLOWDOWN, "share", _amount("max-slowdown", value, "share"), value)


def _amount(name: str, value: str, unit: Unit) -> float:
    match = _AMOUNT.fullmatch(value)
    one = None if match is None else _one(match["unit"], unit)
    if match is None or one is None or not math.isfinite(float(match["number"])):
        raise SettingError(f"{name}={value}: not a limit for {name}; write for example {_EXAMPLES[unit]}")
    if unit == "share" and not match["unit"] and float(match["number"]) >= 1:
        raise SettingError(f"{name}={value}: a share of 1 or more needs its unit; write {name}={value}%")
    return float(match["number"]) * one


def _one(suffix: str, unit: Unit) -> float | None:
    """The factor of a suffix; None if it does not suit the unit."""
    if unit == "ms":
        return _MS.get(suffix or "s")
    if unit == "bytes":
        return 1.0 if not suffix else size_of(suffix, rate=False)
    if unit == "share":
        return {"%": 0.01, "": 1.0}.get(suffix)
    return 1.0 if not suffix else None


def of_file(path: Path, words: Mapping[str, str]) -> list[Budget]:
    """The budgets of a file's table [gate].  Raises InputError, with the place in the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    gate = _table(path, "gate", content.get("gate", {}))
    if unknown := sorted(set(gate) - {"max", "max-slowdown"}):
        raise InputError(f"{path}: [gate] has the key '{unknown[0]}'; it can have max-slowdown and the table max")
    try:
        found = [
            named(name, _text(value), words) for name, value in _table(path, "gate.max", gate.get("max", {})).items()
        ]
        return found + ([slowdown(_text(gate["max-slowdown"]))] if "max-slowdown" in gate else [])
    except SettingError as error:
        raise InputError(f"{path}: {error}") from error


def _table(path: Path, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InputError(f"{path}: {name} is not a table; write [{name}] and its keys below")
    return value


def _text(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else repr(value)


def together(stated: Sequence[Budget], of_the_file: Sequence[Budget]) -> list[Budget]:
    """All budgets; one that is stated replaces the file's of the same metric, by whichever of its words.

    Raises SettingError if a source limits a metric twice.
    """
    for source in (stated, of_the_file):
        seen = dict[tuple[str, tuple[str, ...]], str]()
        for each in source:
            if (first := seen.setdefault(_limited(each), each.name)) != each.name:
                raise SettingError(f"'{first}' and '{each.name}' are two limits of one metric; give one")
        if len(seen) < len(source):
            names = [each.name for each in source]
            raise SettingError(f"'{next(name for name in names if names.count(name) > 1)}' has two limits; give one")
    replaced = {_limited(each) for each in stated}
    return [*(each for each in of_the_file if _limited(each) not in replaced), *stated]


def _limited(budget: Budget) -> tuple[str, tuple[str, ...]]:
    """The metric that a budget limits, with its settings in one order."""
    return budget.metric, tuple(sorted(budget.settings))
