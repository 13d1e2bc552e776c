"""The configurations among which a search chooses: a grid of what runs of a job can be asked for.

It has a dimension for the shape (workers and slots of a worker together, because limits bind their product; with a
price list also the machine), one for the memory of a slot, and one for each other knob of the framework.  Shapes and
memory follow from the limits, which by default are what the recorded runs had.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path

from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.advise.machine_prices import COLUMNS, Machine, read_machines
from crystalperf.query.advise.search import Point
from crystalperf.query.execution.scenario import parse_settings, settings_of
from crystalperf.query.execution.tunable import Knob, Tunable, Values
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.tuning import Goal
from crystalperf.query.trace.vocabulary import Vocabulary

SHAPE = ("workers", "cores", "memory")
"""Knobs that the limits bind together."""

_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Slots of a worker to try, times the recorded ones."""

_FILLS = (1.0, 0.75, 0.5, 0.375, 0.25, 0.125)
"""Slots of all workers to try, times the limit."""

_MEMORIES = (1.0, 1.5, 2.0, 4.0)
"""Memory of a slot to try, times the recorded one.  Less is tried only where a limit asks for it."""

_MIB = 2**20

_WORK, _WORK_OF_A_RUN = 2_400_000, 12_000
"""Tasks that a search replays in all, and the cost of a prediction in tasks besides those of its run: a search takes
some 15 s on two cores."""

_LEAST, _MOST = 24, 160
"""Predictions of a search, at least and at most."""


@frozen
class Limits:
    """The most that a configuration may ask for: slots and memory (bytes) of all workers, workers, input as a ratio,
    and the longest runtime; None where the recorded run sets it."""

    cores: float | None = None
    memory: float | None = None
    workers: float | None = None
    input: float | None = None
    deadline_ms: float | None = None


@frozen
class Prices:
    """A price list, and the recorded run's machine in it; one worker on each machine."""

    machines: Sequence[Machine]
    ran_on: Machine


@frozen
class Job:
    """A recorded run of the job to tune.

    predict  settings of a what-if → the prediction, with its interval; refused if it is impossible
    checked  settings of the work whose effect reruns have verified
    tasks    the number of its tasks, on which the time of a prediction depends
    """

    name: str
    tunable: Tunable
    baseline: Prediction
    predict: Callable[[Sequence[str]], Prediction]
    checked: Collection[str]
    tasks: int


@frozen
class Shape:
    """Workers, slots of each and the rest of a machine, as values; `per_hour` is its price, or its number of slots."""

    values: Values
    per_hour: float | None
    machine: str = ""


@frozen
class Grid:
    """The configurations of some runs of a job within the limits."""

    jobs: Sequence[Job]
    goal: Goal
    limits: Limits
    prices: Prices | None = None

    @cached_property
    def knobs(self) -> Mapping[str, Knob]:
        """The knobs that all runs have, by key; with the values of the first run."""
        first, *rest = self.jobs
        shared = (each for each in first.tunable.knobs if all(job.tunable.knob(each.key) for job in rest))
        return {each.key: each for each in shared}

    @cached_property
    def recorded(self) -> Values:
        """The configuration of the first run."""
        return {key: each.recorded for key, each in self.knobs.items()}

    @property
    def most(self) -> int:
        """The maximum of predictions for each run, which bounds the time of a search."""
        work = sum(job.tasks + _WORK_OF_A_RUN for job in self.jobs)
        return min(max(round(_WORK / work), _LEAST), _MOST)

    @cached_property
    def shapes(self) -> Sequence[Shape]:
        """The shapes within the limits: those with the most slots first, the recorded one among them."""
        return self._shapes() if self.prices is None else self._machines(self.prices)

    @cached_property
    def memories(self) -> Sequence[float]:
        """The memory of a slot, times the recorded one."""
        return _MEMORIES if "memory" in self.knobs and self.jobs[0].tunable.least_bytes is not None else (1.0,)

    @cached_property
    def others(self) -> Mapping[str, Sequence[float]]:
        """The values of the other knobs, by key."""
        knobs = [each for each in self.knobs.values() if each.key not in SHAPE]
        room = max((self.most // 2 - len(self.shapes)) // max(len(knobs), 1), 4)
        return {each.key: _thinned(self._values_of(each), each.recorded, room) for each in knobs}

    @property
    def slots_cost(self) -> bool:
        """Whether slots are what a configuration costs, not workers."""
        return self.jobs[0].tunable.slots_cost

    @property
    def sizes(self) -> list[int]:
        return [len(self.shapes), len(self.memories), *(len(each) for each in self.others.values())]

    @property
    def start(self) -> Point:
        """The recorded configuration, or the first within the limits."""
        own = {key: self.recorded[key] for key in ("workers", "cores") if key in self.recorded}
        shape = next((number for number, each in enumerate(self.shapes) if own.items() <= each.values.items()), 0)
        return (shape, 0, *(values.index(self.recorded[key]) for key, values in self.others.items()))

    def _values_of(self, knob: Knob) -> list[float]:
        """The values of a knob for all runs, ascending, with the recorded one."""
        if knob.on_demand and self.limits.input is None:
            return [knob.recorded]
        found = {knob.recorded, *knob.values}
        for job in self.jobs[1:]:
            other = job.tunable.knob(knob.key)
            found |= {other.recorded, *other.values} if other is not None and other.unit != "times" else set()
        most = self.limits.input if knob.on_demand and self.limits.input is not None else math.inf
        return sorted(each for each in found if each <= most or each == knob.recorded)

    def bounds(self, stated: Sequence[str]) -> dict[str, float]:
        """The limits of the search: those that the user stated, and unless it chooses machines, what the runs had."""
        had = [key for key in ("cores", "memory") if key in self.knobs and self.prices is None]
        had += ["workers"] if "workers" in self.knobs and not self.slots_cost else []
        return {key: self.most_of(key) for key in dict.fromkeys((*had, *stated))}

    def most_of(self, key: str) -> float:
        """The limit of slots (`cores`), workers or memory of all workers, by default as the largest run had."""
        stated: float | None = getattr(self.limits, key)
        if stated is not None:
            return stated
        if key == "input":
            return 1.0
        if key == "workers":
            return math.inf if self.slots_cost else max(job.tunable.recorded("workers") for job in self.jobs)
        if key == "cores" and self.limits.workers is not None:
            return self.limits.workers * max(job.tunable.recorded("cores") for job in self.jobs)
        had = []
        for job in self.jobs:
            workers, value = (job.tunable.recorded(each) for each in ("workers", key))
            had.append(workers * (job.tunable.asked_bytes(value) if key == "memory" else value))
        return max(had)

    def _shapes(self) -> list[Shape]:
        if not {"workers", "cores"} & self.knobs.keys():
            slots = self.jobs[0].tunable.recorded("workers") * self.jobs[0].tunable.recorded("cores")
            return [Shape({}, slots)]
        most, widths = self.most_of("cores"), {self.recorded.get("cores", 1.0)}
        if "cores" in self.knobs:
            widths |= {max(float(round(each * self.recorded["cores"])), 1.0) for each in _WIDTHS}
            if self.limits.cores is None:  # no recording shows whether the machines have more
                widths = {each for each in widths if each <= self.recorded["cores"]}
            widths |= {most} if "workers" not in self.knobs else set()
        counts = {self.recorded.get("workers", 1.0)}
        pairs = set(product(counts, widths))
        if "workers" in self.knobs:
            pairs |= {(float(math.floor(fill * most / width)), width) for fill in _FILLS for width in widths}
        fit = [
            (count, width)
            for count, width in pairs
            if count >= 1 and count * width <= most and count <= self.most_of("workers")
        ]
        fit.sort(key=lambda each: (-each[0] * each[1], abs(math.log(each[1] / self.recorded.get("cores", 1.0)))))
        own = self.recorded.get("workers", 1.0), self.recorded.get("cores", 1.0)
        keep = {"workers", "cores"} & self.knobs.keys()
        room = max(self.most // 3, 8)
        chosen = [each for number, each in enumerate(fit) if number < room or each == own]
        return [
            Shape(
                {key: each for key, each in zip(("workers", "cores"), pair, strict=True) if key in keep},
                math.prod(pair),
            )
            for pair in chosen
        ]

    def _machines(self, prices: Prices) -> list[Shape]:
        """The same of a price list: numbers of each machine; without a limit, the goal cost may use more slots than the
        runs had, because they pay for themselves."""
        had, found = prices.ran_on, []
        for machine in prices.machines:
            ratios = {
                key: after / before
                for key in COLUMNS
                if (before := had.amounts[key]) is not None and (after := machine.amounts[key]) is not None
            }
            cores = max(math.floor(self.recorded["cores"] * ratios.pop("cores", 1.0) + 1e-9), 1)
            values = {f"{key}": ratio for key, ratio in ratios.items() if key != "memory"}
            if "memory" in ratios and "memory" in self.knobs:
                values["memory"] = math.floor(self.recorded["memory"] * ratios["memory"] / _MIB) * _MIB
            counts = {max(round(fill * self.most_of("cores") / cores), 1) for fill in (*_FILLS, 1.5, 2.0, 3.0, 4.0)}
            if machine.name == had.name:
                counts.add(round(self.recorded["workers"]))
            limit = math.inf if self.limits.cores is None and self.goal == "cost" else self.most_of("cores")
            found += [
                Shape(
                    {**values, "workers": float(count), "cores": float(cores)},
                    machine.price_per_hour * count,
                    machine.name,
                )
                for count in sorted(counts)
                if count <= (machine.most or count) and count * cores <= limit and count <= self.most_of("workers")
            ]
        return found

    def values(self, point: Point) -> tuple[Values, Shape] | None:
        """The configuration at a point, with its shape; None if the framework or the limits do not allow it."""
        shape = self.shapes[point[0]]
        found = dict(self.recorded) | dict(shape.values)
        if "memory" in self.knobs and "memory" not in shape.values:
            memory = self._memory(found, self.memories[point[1]])
            if memory is None:
                return None
            found["memory"] = memory
        for (key, values), number in zip(self.others.items(), point[2:], strict=True):
            found[key] = values[number]
        return (found, shape) if self.allows(found) else None

    def _memory(self, values: Values, ratio: float) -> float | None:
        """Memory of a worker, bytes: `ratio` times as much for a slot as recorded, cut to the limit; None below the
        least that it needs."""
        tunable, recorded = self.jobs[0].tunable, self.recorded["memory"]
        cores = values.get("cores", 1.0) / self.recorded.get("cores", 1.0)
        wanted, most = ratio * cores * recorded, self.most_of("memory") / values.get("workers", 1.0)
        if tunable.asked_bytes(wanted) > most:
            share = most / tunable.asked_bytes(wanted)
            wanted *= share
            while tunable.asked_bytes(wanted) > most:
                wanted -= _MIB
        wanted = recorded if wanted == recorded else math.floor(wanted / _MIB) * _MIB
        return wanted if wanted >= recorded or self._suffices(values, wanted) else None

    def _suffices(self, values: Values, memory: float) -> bool:
        """Whether workers with less memory than recorded have what each of the runs needs."""
        return memory > 0 and all(
            job.tunable.least_bytes is not None and job.tunable.least_bytes(values.get("cores", 1.0)) <= memory
            for job in self.jobs
        )

    def allows(self, values: Values) -> bool:
        """Whether a configuration is within the limits, and the framework runs with it."""
        workers, cores = values.get("workers", 1.0), values.get("cores", 1.0)
        is_bound = self.prices is None and bool({"workers", "cores"} & self.knobs.keys())
        if is_bound and (workers * cores > self.most_of("cores") or workers > self.most_of("workers")):
            return False
        memory, recorded = values.get("memory"), self.recorded.get("memory")
        if self.prices is None and memory is not None and recorded is not None:
            asked = self.jobs[0].tunable.asked_bytes(memory) * workers
            if asked > self.most_of("memory") * (1 + 1e-9):
                return False
            if memory / cores < recorded / self.recorded.get("cores", 1.0) and not self._suffices(values, memory):
                return False
        return all(job.tunable.is_possible({**_own(job, self.recorded), **values}) for job in self.jobs)


def _thinned(values: Sequence[float], recorded: float, most: int) -> list[float]:
    """At most `most` of some ascending values, evenly spaced, with the recorded one."""
    if len(values) <= most:
        return list(values)
    kept = {values[round(number * (len(values) - 1) / (most - 2))] for number in range(most - 1)}
    return sorted(kept | {recorded})


def _own(job: Job, values: Mapping[str, float]) -> dict[str, float]:
    """All values of a run's knobs, those in `values` from there."""
    return {each.key: values.get(each.key, each.recorded) for each in job.tunable.knobs}


def limits_of(texts: Sequence[str], words: Vocabulary, deadline_ms: float | None) -> Limits:
    """Limits from KEY=VALUE texts, also several in one, separated by commas.  Raises SettingError."""
    settings = settings_of((), words)
    known = {key: settings[key] for key in ("cores", "memory", "workers", "input")}
    parts = [part.strip() for text in texts for part in text.split(",")]
    found = parse_settings(parts, known, words.settings, lists=False)
    for key, (value,) in found.items():
        if value.absolute is None and key != "input":
            raise SettingError(
                f"{value.describe()}: a limit is an absolute value, for example cores=32 or memory=64GiB"
            )
    amounts = {key: value.ratio if key == "input" else value.absolute for key, (value,) in found.items()}
    return Limits(
        amounts.get("cores"), amounts.get("memory"), amounts.get("workers"), amounts.get("input"), deadline_ms
    )


def prices_of(path: Path | None, ran_on: str) -> Prices | None:
    """The price list of a file, with the runs' machine; None without a file.  Raises InputError, SettingError."""
    if path is None:
        return None
    machines = read_machines(path)
    had = next((each for each in machines if each.name == ran_on), None)
    if had is None:
        known = ", ".join(each.name for each in machines)
        raise SettingError(f"'{ran_on}' is not a machine of the table; it has {known}")
    return Prices(machines, had)
