"""Cost comparison of machine types: the runtime and price of a job on each type of a price list.

The price list is a CSV table with a row for each type:

    name,price_per_hour,cores,memory,network,disk,cpu_speed,most
    small,0.096,2,8GiB,1Gbps,,1,20

`name` and `price_per_hour` are required.  The other columns say what one machine has; an empty cell means the same as
the recorded machine.  `most` is the maximum number of machines.  The job ran on one of the types, one worker on each;
predictions for other types use the ratios of the columns, so recorded bandwidths need not be known.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.execution.scenario import size_of
from crystalperf.query.results.answers import Choice, Offer, Prediction

COLUMNS = ("cores", "memory", "network", "disk", "cpu_speed")
"""Columns with the resources of a machine, each named after the setting that changes it."""

FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Default numbers of workers to predict, as multiples of the recorded number."""

MAX_TYPES = 200

_AMOUNT = regex(r"^(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>[A-Za-z/]*)$")
_DURATION = regex(r"^(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>ms|s|min|m|h|d)?$")
_UNIT_MS = {"ms": 1.0, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7}


@frozen
class Machine:
    """A machine type.  `amounts` are by column, in bytes, bytes per second or counts; None for an empty cell."""

    name: str
    price_per_hour: float
    most: int | None
    amounts: dict[str, float | None]


def read_machines(path: Path) -> tuple[Machine, ...]:
    """Read the machine types of a table.  Raises InputError, which names the row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a CSV table of machines ({_reason(error)})") from error
    heads = list(rows[0]) if rows else []
    for must in ("name", "price_per_hour"):
        if must not in heads:
            raise InputError(
                f"{path}: no column '{must}'; a table of machines has the columns name, price_per_hour and cores,"
                " separated by commas"
            )
    if len(rows) > MAX_TYPES:
        raise InputError(f"{path}: {len(rows)} machines; at most {MAX_TYPES} can be compared at a time")
    found = tuple(_machine(path, number, row) for number, row in enumerate(rows, 2))
    twice = [each.name for each in found if sum(other.name == each.name for other in found) > 1]
    if twice:
        raise InputError(f"{path}: '{twice[0]}' is in the table twice")
    return found


def _reason(error: Exception) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else "not UTF-8 text"


def _machine(path: Path, number: int, row: dict[str, str | None]) -> Machine:
    where = f"{path}, line {number}"
    name = (row["name"] or "").strip()
    if not name:
        raise InputError(f"{where}: the machine has no name")
    price, most = _count(where, "price_per_hour", row), _count(where, "most", row)
    if price is None:
        raise InputError(f"{where}: '{name}' has no price_per_hour")
    return Machine(name, price, None if most is None else int(most), {key: _amount(where, key, row) for key in COLUMNS})


def _count(where: str, column: str, row: dict[str, str | None]) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{where}: {column} is '{text}', but must be a number above zero")
    return value


def _amount(where: str, column: str, row: dict[str, str | None]) -> float | None:
    """The amount in a cell, in bytes, bytes per second, or a count; None for an empty cell.  Raises InputError."""
    text = (row.get(column) or "").strip()
    if not text:
        return None
    match = _AMOUNT.match(text)
    one = None if match is None else _one(column, match["unit"])
    if match is None or one is None or float(match["number"]) <= 0:
        example = {"memory": "16GiB", "network": "10Gbps", "disk": "500MB/s"}.get(column, "4")
        raise InputError(f"{where}: {column} is '{text}'; write for example {example}")
    return float(match["number"]) * one


def _one(column: str, unit: str) -> float | None:
    """The factor of a unit in a column; None for an invalid unit, such as a bare B."""
    if column in ("cores", "cpu_speed"):
        return 1.0 if not unit else None
    return size_of(unit, rate=column != "memory") if unit[:1] not in ("b", "B") else None


def duration_ms(text: str) -> float:
    """`10m`, `90 s` or `1.5h` in ms; a number alone is seconds.  Raises SettingError."""
    match = _DURATION.match(text.strip())
    found = float(match["number"]) * _UNIT_MS[match["unit"] or "s"] if match else 0.0
    if found <= 0:
        raise SettingError(f"'{text}': not a time; write for example 10m, 90s or 1.5h")
    return found


@frozen
class PriceRequest:
    """A request to predict the job on `workers` machines of a type, as the settings of a prediction."""

    machine: Machine
    workers: int
    settings: tuple[str, ...]


def questions(
    machines: Sequence[Machine], ran_on: str, workers: int, cores: int | None, counts: Sequence[int]
) -> Iterator[PriceRequest]:
    """The requests for a run on `workers` machines of the type `ran_on`, with `cores` slots each.

    `counts` are the numbers of machines to predict; empty: FACTORS times the recorded number.  Raises SettingError.
    """
    had = next((each for each in machines if each.name == ran_on), None)
    if had is None:
        known = ", ".join(each.name for each in machines)
        raise SettingError(f"'{ran_on}' is not a machine of the table; it has {known}")
    wanted = counts or sorted({max(round(workers * factor), 1) for factor in FACTORS})
    for machine in machines:
        ratios = {}
        for key in COLUMNS:
            before, after = had.amounts[key], machine.amounts[key]
            if before is not None and after is not None and before != after:
                ratios[key] = after / before
        slots = ratios.pop("cores", None)
        same = tuple(f"{key}={ratio:.12g}x" for key, ratio in ratios.items())
        if slots is not None and cores is not None:  # a fraction of a slot is useless
            same = (f"cores={max(math.floor(cores * slots + 1e-9), 1)}", *same)
        for count in wanted:
            if machine.most is None or count <= machine.most:
                yield PriceRequest(machine, count, (f"workers={count}", *same))


def offer(request: PriceRequest, prediction: Prediction) -> Offer:
    """The offer of a request: its predicted runtime and price, each with its interval."""
    per_ms = request.machine.price_per_hour * request.workers / 3.6e6
    known = Offer(request.machine.name, request.workers, ", ".join(request.settings))
    if prediction.predicted_ms is None:
        return replace(known, refused=prediction.refused)
    interval = prediction.interval_ms
    return replace(
        known,
        predicted_ms=prediction.predicted_ms,
        interval_ms=interval,
        price=prediction.predicted_ms * per_ms,
        price_range=None if interval is None else (interval[0] * per_ms, interval[1] * per_ms),
    )


def chosen(unchanged: Prediction, ran_on: PriceRequest, offers: Sequence[Offer], deadline_ms: float | None) -> Choice:
    """The offers by price, refused ones last; each says whether it meets the deadline and is Pareto-optimal."""
    priced = sorted((each for each in offers if each.price is not None), key=lambda each: each.price or 0.0)
    fastest, kept = math.inf, []
    for each in priced:
        assert each.predicted_ms is not None
        kept.append(replace(each, pareto_optimal=each.predicted_ms < fastest, meets_deadline=_holds(each, deadline_ms)))
        fastest = min(fastest, each.predicted_ms)
    refused = [each for each in offers if each.price is None]
    return Choice(
        measure=unchanged.measure,
        runtime_ms=unchanged.runtime_ms,
        machine=ran_on.machine.name,
        workers=ran_on.workers,
        price=ran_on.machine.price_per_hour * ran_on.workers * unchanged.runtime_ms / 3.6e6,
        deadline_ms=deadline_ms,
        offers=(*kept, *refused),
        words=unchanged.words,
    )


def _holds(found: Offer, deadline_ms: float | None) -> Literal["yes", "likely", "no"] | None:
    if deadline_ms is None or found.predicted_ms is None:
        return None
    surely = found.interval_ms is not None and found.interval_ms[1] <= deadline_ms
    return "yes" if surely else "likely" if found.predicted_ms <= deadline_ms else "no"
