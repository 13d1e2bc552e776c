"""A whole configuration: the best of a grid (query.advise.configurations), with the predictor of what-ifs.

Scores compare times and costs in steps of ALIKE, so that a configuration that is cheaper, or changes less, wins over
one that is faster by less than any rerun would show.  For several runs, a score is that of the run that gains least:
the configuration should be good for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace

from crystalperf.indexes.frozen import frozen
from crystalperf.query.advise.configurations import SHAPE, Grid, Job, Shape
from crystalperf.query.advise.search import Found, Point, search
from crystalperf.query.advise.usual_what_ifs import NOTICEABLE
from crystalperf.query.execution.scenario import is_unchecked
from crystalperf.query.execution.tunable import Knob, Values
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.recommendations import Saving
from crystalperf.query.results.tuning import ChangesResult, NotPredicted, NotTuned, TunedRun, TunedSetting, Tuning

ALIKE = 0.01
"""Relative difference of times and costs that counts as none."""

HEADROOM = 2.0
"""A stream that saves cost sustains this many times its recorded rate, if it did before."""


@frozen
class Tuner:
    """A search for the best configuration of a grid."""

    grid: Grid
    progress: Callable[[str], None] = lambda _: None
    _known: dict[tuple[int, tuple[str, ...]], Prediction] = field(default_factory=dict)

    def texts(self, job: Job, values: Values) -> tuple[str, ...]:
        """A configuration as settings of a what-if for a run: the values that differ from its own."""
        found = []
        for key, value in values.items():
            knob = job.tunable.knob(key) or Knob(key, 1.0, unit="times")  # of a machine: network, disk, cpu_speed
            if not math.isclose(value, knob.recorded, rel_tol=1e-9):
                found.append(knob.text(value))
        return tuple(found)

    def predicted(self, values: Values) -> list[Prediction]:
        """The prediction of a configuration for each run."""
        found = []
        for number, job in enumerate(self.grid.jobs):
            key = number, self.texts(job, values)
            if key not in self._known:
                self.progress(f"what if: {', '.join(key[1]) or 'unchanged'}")
                self._known[key] = job.predict(key[1]) if key[1] else job.baseline
            found.append(self._known[key])
        return found

    def at(self, point: Point) -> tuple[float, ...] | None:
        """The score of a point; None if it is impossible or has no prediction."""
        found = self.grid.values(point)
        return None if found is None else self.score(*found)

    def score(self, values: Values, shape: Shape) -> tuple[float, ...] | None:
        """The score of a configuration: how much it misses the deadline, time and cost in the order of the goal."""
        answers = self.predicted(values)
        times = [_ratio(job.baseline, each) for job, each in zip(self.grid.jobs, answers, strict=True)]
        if any(each is None for each in times):
            return None
        time = max(each for each in times if each is not None)
        cost = self.cost_ratio(values, shape, answers)
        first, second = (time, cost) if self.grid.goal == "time" else (cost, time)
        changes = sum(len(self.texts(job, values)) for job in self.grid.jobs)
        late = 0.0 if self.grid.goal == "time" else self._late(answers, [each or 0.0 for each in times])
        return late, _step(first), _step(second), changes, first, second

    def _late(self, answers: Sequence[Prediction], times: Sequence[float]) -> float:
        """By how many steps a configuration is too slow for the goal cost; 0 if it is not."""
        deadline_ms = self.grid.limits.deadline_ms
        worst = max(
            _lateness(job.baseline, answer, ratio, deadline_ms)
            for job, answer, ratio in zip(self.grid.jobs, answers, times, strict=True)
        )
        return math.inf if math.isinf(worst) else float(math.ceil(max(math.log(worst), 0.0) / ALIKE))

    def cost_ratio(self, values: Values, shape: Shape, answers: Sequence[Prediction]) -> float:
        """The cost of a configuration over that of the recorded run, of the run for which it is highest."""
        found = []
        for job, answer in zip(self.grid.jobs, answers, strict=True):
            before, after = self.cost(job, job.baseline, None), self.cost(job, answer, self.per_hour(values, shape))
            found.append(after / before if before and after else 1.0)
        return max(found)

    def per_hour(self, values: Values, shape: Shape) -> float | None:
        """The price of a configuration for an hour, or its number of slots."""
        if self.grid.prices is not None or not {"workers", "cores"} & self.grid.knobs.keys():
            return shape.per_hour
        return values.get("workers", 1.0) * (values.get("cores", 1.0) if self.grid.slots_cost else 1.0)

    def cost(self, job: Job, answer: Prediction, per_hour: float | None) -> float | None:
        """The cost of a run, for a stream that of an hour; `per_hour` None is the recorded configuration's."""
        if per_hour is None:
            workers, cores = (job.tunable.recorded(key) for key in ("workers", "cores"))
            per_worker = cores if self.grid.slots_cost else 1.0
            per_hour = workers * (per_worker if self.grid.prices is None else self.grid.prices.ran_on.price_per_hour)
        if answer.stream is not None:
            return per_hour
        return None if answer.predicted_ms is None else per_hour * answer.predicted_ms / answer.work_ratio / 3.6e6

    # The answer

    def tune(self) -> Tuning:
        """The best configuration within the limits, with the saving of each of its lines."""
        found = search(self.grid.sizes, self.grid.start, self.at, most=self.grid.most)
        reached = self.grid.values(found.point)
        values, shape = reached if reached is not None else (self.grid.recorded, self.grid.shapes[0])
        if found.score is not None:
            values = self._pruned(values, shape)
        if not self._is_better(values, shape):
            values, shape = self.grid.recorded, self._own_shape()
        return self._answer(values, shape, found)

    def _own_shape(self) -> Shape:
        had = None if self.grid.prices is None else self.grid.prices.ran_on
        workers = self.grid.recorded.get("workers", 1.0)
        per_hour = None if had is None else had.price_per_hour * workers
        return Shape({}, per_hour, had.name if had is not None else "")

    def _pruned(self, values: Values, shape: Shape) -> Values:
        """A configuration without the changes that make it no better; noticeably, for settings without reruns."""
        for key in reversed(list(self.grid.knobs)):
            if key in shape.values and self.grid.prices is not None:
                continue
            before, after = self.score(values, shape), None
            kept = {**values, key: self.grid.recorded[key]}
            if kept != values and self.grid.allows(kept):
                after = self.score(kept, shape)
            step = NOTICEABLE if is_unchecked(key) else ALIKE
            if before is not None and after is not None and _is_alike(after, before, step):
                values = kept
        return values

    def _is_better(self, values: Values, shape: Shape) -> bool:
        """Whether a configuration is noticeably better than the recorded one, or that is not within the limits."""
        if not self.grid.allows(self.grid.recorded):
            return True
        before, after = self.score(self.grid.recorded, self._own_shape()), self.score(values, shape)
        if before is None or after is None:
            return after is not None
        return after[0] < before[0] or after[4] <= before[4] * (1 - NOTICEABLE)

    def _answer(self, values: Values, shape: Shape, found: Found) -> Tuning:
        answers, first = self.predicted(values), self.grid.jobs[0]
        changed = [key for key in values if not math.isclose(values[key], self.grid.recorded.get(key, 1.0))]
        names = ("cores", "memory", "workers", "input")
        stated = tuple(key for key in names if getattr(self.grid.limits, key) is not None)
        per_hour = self.per_hour(values, shape) if changed else None
        assumptions = tuple(dict.fromkeys(each for answer in answers for each in answer.assumptions))
        settings = sorted(self._lines(values, shape, changed), key=lambda each: -(each.saving.ms or 0.0))
        return Tuning(
            goal=self.grid.goal,
            measure=first.baseline.measure,
            limits=self.grid.bounds(stated),
            stated=stated,
            deadline_ms=self.grid.limits.deadline_ms,
            cost_unit="price" if self.grid.prices else "slot-hours" if self.grid.slots_cost else "worker-hours",
            machine=f"{values['workers']:.0f} × {shape.machine}" if shape.machine else "",
            runs=tuple(self._run(job, each, per_hour) for job, each in zip(self.grid.jobs, answers, strict=True)),
            setting=", ".join(self.texts(first, values)) if changed else "",
            settings=tuple(settings),
            unverified=tuple(
                key for key in changed if is_unchecked(key) and any(key not in job.checked for job in self.grid.jobs)
            ),
            not_tuned=tuple(self._not_tuned(changed)),
            tried=found.tried,
            possible=math.prod(self.grid.sizes),
            complete=found.complete,
            assumptions=assumptions if changed else (),
            words=first.baseline.words,
        )

    def _run(self, job: Job, answer: Prediction, per_hour: float | None) -> TunedRun:
        before, after = job.baseline.stream, answer.stream
        rates = None
        if before is not None and after is not None and before.recorded_max_per_s and after.max_per_s:
            rates = (before.recorded_max_per_s, after.max_per_s)
        return TunedRun(
            job.name,
            job.baseline.runtime_ms,
            answer.predicted_ms,
            answer.interval_ms,
            self.cost(job, job.baseline, None),
            self.cost(job, answer, per_hour),
            answer.work_ratio,
            rates,
        )

    def _lines(self, values: Values, shape: Shape, changed: Sequence[str]) -> Iterator[TunedSetting]:
        """The lines of a configuration, each with the saving that the configuration loses without it."""
        for key in changed:
            settings = tuple(self.grid.jobs[0].tunable.changes(key, values)) if key in self.grid.knobs else ()
            if not settings:
                continue
            without = {**values, key: self.grid.recorded[key]}
            if not self.grid.allows(without):  # these change only together
                without = {**values, **{each: self.grid.recorded[each] for each in SHAPE if each in self.grid.recorded}}
            line = TunedSetting(price="setting", because=key, saving=Saving("modelled"), settings=settings)
            yield self._with_effect(line, values, without, shape) if self.grid.allows(without) else line

    def _with_effect(self, line: TunedSetting, values: Values, without: Values, shape: Shape) -> TunedSetting:
        """A line with what the configuration loses without it, for the run that loses least."""
        tuned, others = self.predicted(values), self.predicted(without)
        cost_ratio = self.cost_ratio(without, shape, others) / self.cost_ratio(values, shape, tuned)
        changes = [
            (job.baseline.runtime_ms, ratio, _ratio(job.baseline, answer))
            for job, answer, other in zip(self.grid.jobs, tuned, others, strict=True)
            if (ratio := _ratio(job.baseline, other)) is not None
        ]
        known = [(whole_ms, one, other) for whole_ms, one, other in changes if other is not None]
        if len(known) < len(tuned):
            return replace(line, cost_ratio=cost_ratio)
        if any(each.stream is not None for each in tuned):
            return replace(line, cost_ratio=cost_ratio, rate_ratio=max(other / one for _, one, other in known))
        saving = Saving("modelled", min((one - other) * whole_ms for whole_ms, one, other in known))
        return replace(line, saving=saving, cost_ratio=cost_ratio)

    def _not_tuned(self, changed: Sequence[str]) -> Iterator[NotTuned]:
        """The settings that keep their values because no prediction covers them."""
        seen = set()
        for job in self.grid.jobs:
            for each in job.tunable.not_tuned:
                if each not in seen:
                    seen.add(each)
                    yield each
        for key, knob in self.grid.knobs.items():
            if key in changed:
                continue
            if knob.on_demand and self.grid.limits.input is None:
                yield ChangesResult(knob.name or key)
                continue
            alone = [
                answer
                for (_, texts), answer in self._known.items()
                if len(texts) == 1 and texts[0].startswith(f"{key}=")
            ]
            if alone and not any(each.is_answered for each in alone) and alone[0].refused:
                yield NotPredicted(knob.name or key, alone[0].refused[-1])


def _ratio(before: Prediction, after: Prediction) -> float | None:
    """The time of a configuration over the recorded one, for the same work: of a stream, that of a record at its
    highest rate; None without a prediction."""
    if after is before:
        return 1.0
    stream, recorded = after.stream, before.stream
    if stream is not None and recorded is not None:
        had = recorded.recorded_max_per_s or recorded.max_per_s
        return had / stream.max_per_s if had and stream.max_per_s else None
    if after.predicted_ms is None or before.runtime_ms <= 0:
        return None
    return max(after.predicted_ms / after.work_ratio / before.runtime_ms, 1e-9)


def _lateness(before: Prediction, after: Prediction, ratio: float, deadline_ms: float | None) -> float:
    """The time of a configuration over the longest that is accepted; of a stream, how far it is from HEADROOM times the
    recorded rate, or has more latency."""
    stream, recorded = after.stream, before.stream
    if stream is None or recorded is None:
        return ratio / (1 + NOTICEABLE) if deadline_ms is None else (after.predicted_ms or math.inf) / deadline_ms
    had = recorded.recorded_max_per_s or recorded.recorded_per_s
    rate = min(HEADROOM * recorded.recorded_per_s, had) / (stream.max_per_s or 1e-9) / (1 + NOTICEABLE)
    longest_ms = before.runtime_ms * (1 + NOTICEABLE) if deadline_ms is None else deadline_ms
    at_limit = before.predicted_ms is None
    return rate if at_limit else max(rate, (after.predicted_ms or math.inf) / longest_ms)


def _is_alike(after: Sequence[float], before: Sequence[float], step: float) -> bool:
    """Whether a score is no worse than another by `step` in time and in cost."""
    return after[0] <= before[0] and all(after[each] <= before[each] * (1 + step) for each in (4, 5))


def _step(ratio: float) -> float:
    """The step of ALIKE in which a ratio is."""
    return float(round(math.log(max(ratio, 1e-9)) / ALIKE)) if math.isfinite(ratio) else math.inf
