"""The what-ifs of a page: a prediction for each setting of the grid, the same as `predict` gives.

Every resource is varied alone, and those that help most also in pairs.  A prediction replays the run a few times, so
runs with many tasks get fewer of them: the usual what-ifs, which the verdict has predicted already, and the most
informative of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.advise.verdict import knee_of
from crystalperf.query.diagnose.bottleneck import bottleneck_in, specific_bottleneck
from crystalperf.query.execution.scenario import Setting, settings_of
from crystalperf.query.results.answers import Prediction, Sweep
from crystalperf.query.results.page import Curve, Grid, Pair, Point
from crystalperf.query.text.answers import WithRemedy, knee_sentence, most_sentence, refusal_sentence
from crystalperf.query.text.figures import grouped, time_unit

if TYPE_CHECKING:
    from crystalperf.query.advise.predictable_run import PredictableRun
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Verdict
    from crystalperf.query.trace.vocabulary import Vocabulary

MAX_SETTINGS = 60

MAX_REPLAYED = 20_000
"""Maximum tasks to replay for settings beyond the usual ones, summed over settings: takes some seconds …"""

COMPILED = 4
"""… and this many times as many, if the replay's loop is compiled."""

COMMAND = "crystalperf predict {run} --set {settings}"

RATIOS: Mapping[str, tuple[float, ...]] = {
    "count": (2.0, 4.0, 0.5, 8.0, 3.0, 1.5, 6.0, 16.0),
    "speed": (2.0, 1.5, 4.0, 0.5, 1.25, 3.0, 0.75, 8.0),
    "bytes": (2.0, 0.5, 4.0, 0.75, 1.5, 0.25, 3.0, 8.0),
    "bytes per second": (2.0, 10.0, 0.5, 4.0, 25.0, 0.25, 100.0, 0.1),
}
"""Ratios to predict, new over recorded, by the unit of the setting; the most informative first."""

PAIRED = 3
"""Number of settings that are varied in pairs, those that help most …"""

PAIR_RATIOS = ((2.0, 2.0), (4.0, 4.0), (2.0, 4.0), (4.0, 2.0))
"""… and the ratios of each pair."""

Ratios = tuple[tuple[str, float], ...]
"""One point of the grid: its settings, each with the ratio of new over recorded."""

Answers = Mapping[Ratios, Prediction]


def grid(
    run: PredictableRun,
    execution: Execution,
    verdict: Verdict,
    stages: Sequence[str],
    with_remedy: WithRemedy,
    *,
    compiled: bool,
    full: bool,
) -> Grid:
    """Predict the points of the grid.

    `stages` are those whose predicted durations are kept; `with_remedy` adds the remedy to a refusal.  `compiled` is
    whether the replay's loop is compiled; with `full`, all points are predicted, which can take long.
    """
    header, debug = verdict.header, verdict.debug
    words, is_stream = header.vocabulary, debug.stream is not None
    settable = settings_of(header.resources, words, is_stream=is_stream)
    keys = ["cores", "workers", *(each.setting for each in header.resources), "memory"]
    keys = [each for each in keys if each not in header.excluded_settings]
    usual = [_usual(each.setting, words) for each in verdict.what_ifs]
    if is_stream:  # a stream has no replay and gets the usual what-ifs only
        keys = list(dict.fromkeys(key for ratios in usual for key, _ in ratios))
    answers: dict[Ratios, Prediction] = {}
    for ratios in usual:
        _predict(run, ratios, words, answers)
    more: list[Ratios] = []
    if usual and not is_stream:
        more = [each for each in _more(keys, settable, answers, debug.runtime_ms) if each not in answers]
    replayed = MAX_REPLAYED * (COMPILED if compiled else 1)
    most = MAX_SETTINGS if full else len(usual) + replayed // max(len(execution.tasks), 1)
    left_out = []
    for ratios in more:
        if len(answers) < min(most, MAX_SETTINGS):
            _predict(run, ratios, words, answers)
        else:
            left_out.append(ratios)
    lengths = {each.id: each.recorded_ms for answer in answers.values() for each in answer.stages}
    shown = _Shown(execution, verdict, tuple(each for each in stages if each in lengths), with_remedy)
    pairs = dict.fromkeys((ratios[0][0], ratios[1][0]) for ratios in answers if len(ratios) == 2)
    coarser = ""
    if left_out and most < MAX_SETTINGS:
        coarser = (
            f"{grouped(len(answers))} settings were predicted instead of {MAX_SETTINGS}, because each requires replays"
            f" of {grouped(len(execution.tasks))} {words.tasks}"
        )
    return Grid(
        recorded_ms=debug.runtime_ms,
        bottleneck=specific_bottleneck(debug) or debug.bottleneck,
        resource_ms=debug.resource_ms,
        stages=shown.stages,
        stage_ms=tuple(lengths[each] for each in shown.stages),
        curves=tuple(shown.curve(key, settable[key], answers) for key in keys if _of(answers, key)),
        pairs=tuple(shown.pair(one, other, answers) for one, other in pairs),
        coarser=coarser,
        command=COMMAND,
    )


def _usual(setting: str, words: Vocabulary) -> Ratios:
    """The grid point of a usual what-if, such as `network=10x`."""
    word, _, value = setting.partition("=")
    return ((words.settings.get(word, word), float(value.removesuffix("x"))),)


def _predict(run: PredictableRun, ratios: Ratios, words: Vocabulary, answers: dict[Ratios, Prediction]) -> None:
    settings = [f"{words.word_of(key)}={ratio:g}x" for key, ratio in ratios]
    try:
        answers[ratios] = run.predict(settings)
    except CrystalPerfError:  # an invalid point, such as half of one worker
        return


def _more(
    keys: Sequence[str], settable: Mapping[str, Setting], answers: Answers, runtime_ms: float
) -> Iterator[Ratios]:
    """Further points, the most informative first: each setting alone, rank by rank, and pairs of the best settings."""

    def helped(key: str) -> float:
        answer = answers.get(((key, 2.0),))
        return runtime_ms if answer is None or answer.predicted_ms is None else answer.predicted_ms

    best = sorted(keys, key=helped)[:PAIRED]
    together = [((one, a), (other, b)) for a, b in PAIR_RATIOS for one, other in combinations(best, 2)]
    for rank in range(max(map(len, RATIOS.values()))):
        yield from (((key, RATIOS[settable[key].unit][rank]),) for key in sorted(keys, key=helped))
        if rank >= 1:
            yield from together[:PAIRED]
            together = together[PAIRED:]


def _of(answers: Answers, *keys: str) -> list[tuple[Ratios, Prediction]]:
    """The predictions that vary exactly these settings, in order of their ratios."""
    found = [(ratios, answer) for ratios, answer in answers.items() if tuple(key for key, _ in ratios) == keys]
    return sorted(found, key=lambda each: [ratio for _, ratio in each[0]])


class _Shown:
    """Predictions as values of the page."""

    def __init__(
        self, execution: Execution, verdict: Verdict, stages: tuple[str, ...], with_remedy: WithRemedy
    ) -> None:
        self.execution, self.debug, self.words = execution, verdict.debug, verdict.header.vocabulary
        self.resources = verdict.header.resources
        self.stages, self.with_remedy = stages, with_remedy

    def curve(self, key: str, setting: Setting, answers: Answers) -> Curve:
        found = _of(answers, key)
        rising = [(each[0][1], answer) for each, answer in found if each[0][1] > 1 and answer.predicted_ms is not None]
        sweep = Sweep(tuple(answer for _, answer in rising), tuple(ratio for ratio, _ in rising))
        knee = knee_of(sweep)
        worth = None if knee is None or not knee.worth else sweep.amounts[knee.point]
        return Curve(
            key=self.words.word_of(key),
            label=setting.meaning,
            unit=setting.unit,
            recorded=self.execution.recorded.get(key),
            points=tuple(self._point(ratios, answer) for ratios, answer in found),
            knee=next((number for number, (each, _) in enumerate(found) if each[0][1] == worth), None),
            knee_text="" if knee is None else knee_sentence(knee, sweep),
        )

    def pair(self, one: str, other: str, answers: Answers) -> Pair:
        points = tuple(self._point(ratios, answer) for ratios, answer in _of(answers, one, other))
        return Pair((self.words.word_of(one), self.words.word_of(other)), points)

    def _point(self, ratios: Ratios, answer: Prediction) -> Point:
        lengths = {each.id: each.predicted_ms for each in answer.stages}
        known = answer.predicted_ms is not None
        had = [self.execution.recorded.get(key) for key, _ in ratios]
        return Point(
            setting=answer.setting,
            ratios=tuple(ratio for _, ratio in ratios),
            amounts=tuple(None if each is None else each * ratio for each, (_, ratio) in zip(had, ratios, strict=True)),
            predicted_ms=answer.predicted_ms,
            interval_ms=answer.interval_ms,
            bound_ms=answer.bound_ms,
            refused="" if known else self._refused(answer),
            bottleneck=self._bottleneck(answer),
            resource_ms=answer.resource_ms,
            stage_ms=tuple(lengths.get(each) for each in self.stages) if known else (),
        )

    def _bottleneck(self, answer: Prediction) -> str | None:
        """The bottleneck of a predicted run; None if the recorded one is more specific than a resource or a cause."""
        if not answer.resource_ms or specific_bottleneck(self.debug):
            return None
        return bottleneck_in(answer.resource_ms, self.debug)

    def _refused(self, answer: Prediction) -> str:
        """The refusal of a runtime, and for a stream the sustained rate, which is predicted even then."""
        sentence = refusal_sentence([answer], time_unit(answer.runtime_ms), self.with_remedy)
        most = "" if answer.stream is None else most_sentence(answer.stream, self.words, self.resources)
        return f"{sentence}. {most}" if most else sentence
