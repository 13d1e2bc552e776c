"""The verdict on a run: its bottleneck, what would help, the knee of each resource, and the next step.

The values decide everything that an interface shows of a run; an interface only words and arranges it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import CrystalPerfError, Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import CPU, DISK, NET, Resource
from crystalperf.query.advise.ranking import ranked
from crystalperf.query.advise.usual_what_ifs import NOTICEABLE
from crystalperf.query.diagnose.bottleneck import bottleneck_of as bottleneck_of
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.results.answers import (
    Bottleneck,
    Debug,
    Header,
    Knee,
    NextStep,
    Prediction,
    StreamFacts,
    Sweep,
    Verdict,
    WhatIf,
)
from crystalperf.query.results.not_recorded import CodeUnsampled, NoIndex, NoSamples, NotRecorded
from crystalperf.query.results.refusals import InvalidQuestion
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    from crystalperf.query.advise.predictable_run import PredictableRun

KNEE = 0.10
"""More of a resource is worth it as long as doubling it saves this share of the runtime."""


_FASTER = {"2x": "twice as fast", "10x": "ten times as fast"}

_RATIOS: dict[str, tuple[str, ...]] = {CPU: ("2x",), NET: ("2x", "10x"), DISK: ("2x",)}
"""Speedups of each resource's device in the usual what-ifs, in this order; networks come in tenfold steps.  Any other
resource: twice."""

_LADDER = "2x,4x,8x"


@frozen
class PredictionRequest:
    """A usual what-if, predicted for every run: its text for a reader, and the setting."""

    text: str
    setting: str


def usual_what_ifs(header: Header, *, is_stream: bool = False) -> tuple[PredictionRequest, ...]:
    """The usual what-ifs of a run, without excluded settings; `is_stream` is whether it is a stream."""
    return questions(
        header.resources,
        header.vocabulary,
        is_stream=is_stream,
        excluded_settings=header.excluded_settings,
        slots_bring_cpu=get(header.framework).planner.slots_bring_cpu,
        sizes=[each.slots for each in header.worker_sizes],
    )


def questions(
    resources: Sequence[Resource],
    vocabulary: Vocabulary,
    *,
    is_stream: bool = False,
    excluded_settings: Collection[str] = (),
    slots_bring_cpu: bool = False,
    sizes: Sequence[int] = (),
) -> tuple[PredictionRequest, ...]:
    """The usual what-ifs, in the words of the run's framework; for a stream (`is_stream`), about rates and parallelism.

    `excluded_settings` are left out.  `slots_bring_cpu` is whether more slots get more CPU (Planner).  `sizes` are the
    numbers of slots of workers, if these differ: there is a question for each.
    """
    if is_stream:
        tasks, workers = vocabulary.word_of("tasks"), vocabulary.word_of("workers")
        return (
            PredictionRequest("one and a half times the records", "rate=1.5x"),
            PredictionRequest("twice the records", "rate=2x"),
            PredictionRequest(f"twice the {vocabulary.tasks} of all {vocabulary.stages}", f"{tasks}=2x"),
            PredictionRequest(f"twice the {vocabulary.workers}", f"{workers}=2x"),
            *(
                PredictionRequest(f"{each.device} {_FASTER['2x']}", f"{vocabulary.word_of(each.setting)}=2x")
                for each in resources
                if each.name in _RATIOS
            ),
        )
    cores, workers, memory = (vocabulary.word_of(key) for key in ("cores", "workers", "memory"))
    found = []
    if "cores" not in excluded_settings:
        end = " and CPU" if slots_bring_cpu else f" per {vocabulary.worker}"
        found.append(PredictionRequest(f"twice the {vocabulary.slots}{end}", f"{cores}=2x"))
        found += [
            PredictionRequest(f"{each} {vocabulary.slots} per {vocabulary.worker}", f"{cores}={each}")
            for each in _some(sizes)
        ]
    if "workers" not in excluded_settings:
        found.append(PredictionRequest(f"twice the {vocabulary.counted}", f"{workers}=2x"))
    usual = list(_RATIOS)
    in_order = sorted(resources, key=lambda each: usual.index(each.name) if each.name in usual else len(usual))
    by_setting: dict[str, Resource] = {}
    for each in in_order:
        by_setting.setdefault(each.setting, each)
    for each in by_setting.values():
        if each.setting in excluded_settings:
            continue
        word = vocabulary.word_of(each.setting)
        found += [
            PredictionRequest(f"{each.device} {_FASTER[ratio]}", f"{word}={ratio}")
            for ratio in _RATIOS.get(each.name, ("2x",))
        ]
    if "memory" not in excluded_settings:
        found += [
            PredictionRequest("twice the memory", f"{memory}=2x"),
            PredictionRequest("half the memory", f"{memory}=0.5x"),
        ]
    return tuple(found)


def _some(sizes: Sequence[int]) -> list[int]:
    """The smallest and the largest size, and the middle one of several others."""
    return sorted({sizes[0], sizes[len(sizes) // 2], sizes[-1]}) if sizes else []


def verdict(run: PredictableRun, progress: Callable[[str], None] = lambda _: None, *, path: bool = False) -> Verdict:
    """Diagnose a run and predict the usual what-ifs.

    `progress` receives a short description of each step; `path` is as in Run.predict(), for callers that use the same
    predictions next.
    """
    progress("following the critical path")
    header, debug = run.header(), run.debug()
    answers, replayed_ms = [], None
    for question in _what_ifs_of(header, debug):
        progress(f"what if: {question.text}")
        try:
            prediction = run.predict([question.setting], path=path)
        except CrystalPerfError as error:  # an invalid what-if is listed with its error
            refused = (InvalidQuestion(str(error)),)
            answers.append(
                WhatIf(question.text, question.setting, None, refused=refused, remedy=error.remedy, words=debug.words)
            )
            continue
        replayed_ms = prediction.replayed_ms
        answers.append(what_if(question.text, prediction))
    bottleneck = bottleneck_of(debug)
    progress("what could be changed, and what that would bring")
    known = {each.setting: each for each in answers}

    def predict(setting: str) -> WhatIf | Prediction | None:
        key, _, value = setting.partition("=")
        found = known.get(f"{header.vocabulary.word_of(key)}={value}")
        if found is not None:
            return found
        try:
            return run.ranged([setting])
        except CrystalPerfError:
            return None

    return Verdict(
        run=str(run.path),
        header=header,
        debug=debug,
        bottleneck=bottleneck,
        replayed_ms=replayed_ms,
        what_ifs=tuple(answers),
        best=best_help(answers, debug.runtime_ms),
        next=next_step(header, bottleneck, answers, debug),
        recommendations=ranked(run.candidates(debug), debug, header, predict) if debug.runtime_ms > 0 else (),
    )


def _what_ifs_of(header: Header, debug: Debug) -> tuple[PredictionRequest, ...]:
    return usual_what_ifs(header, is_stream=debug.stream is not None) if debug.runtime_ms > 0 else ()


def what_if(question: str, prediction: Prediction) -> WhatIf:
    """The answer to a usual what-if; its text says if the scenario does another amount of work."""
    work = "" if prediction.work_ratio == 1 else f" ({prediction.work_ratio:g} times the work)"
    return WhatIf(
        f"{question}{work}",
        prediction.setting,
        prediction.predicted_ms,
        prediction.interval_ms,
        prediction.bound_ms,
        prediction.refused,
        prediction.remedy,
        prediction.stream,
        prediction.words,
        prediction.work_ratio,
    )


def best_help(what_ifs: Sequence[WhatIf], runtime_ms: float) -> WhatIf | None:
    """The doubling with the shortest predicted runtime; None if none helps noticeably or has a prediction."""
    known = [(each.predicted_ms, each) for each in what_ifs if each.predicted_ms is not None and each.doubles]
    best_ms, best = min(known, key=lambda each: each[0], default=(runtime_ms, None))
    return best if best_ms < (1 - NOTICEABLE) * runtime_ms else None


def next_step(
    header: Header, bottleneck: Bottleneck, what_ifs: Sequence[WhatIf] = (), debug: Debug | None = None
) -> NextStep:
    """The next step: record samples, then index their code, then predict more of the limiting resource; higher rates of
    a stream that is processed in batches.

    For the CPU, that is more slots, unless this what-if was refused or changes nothing in the framework.
    """
    framework = get(header.framework)
    if debug is not None and debug.in_batches:
        return NextStep("predict", {"setting": "rate=1x,2x,4x"})
    if not header.has_samples and framework.takes_samples:
        return NextStep("setup", {"framework": framework.name})
    index = _first_index(framework, header)
    if header.has_samples and not header.indexes and index is not None:
        return NextStep("build", {"index": index})
    if debug is not None and debug.stream is not None:
        return NextStep("predict", {"setting": _next_of_stream(debug.stream, header.vocabulary)})
    slots = header.vocabulary.word_of("cores")
    setting = "cores" if "cores" not in header.excluded_settings else "cpu_speed"
    refused = setting != "cores" or any(each.refused and each.setting.startswith(f"{slots}=") for each in what_ifs)
    for each in header.resources:
        if bottleneck.kind == "resource" and each.name == bottleneck.name and (each.name != CPU or refused):
            if each.setting in header.excluded_settings:
                return NextStep("report")
            setting = each.setting
    word = header.vocabulary.word_of(setting)
    if debug is not None and any(each.setting.startswith(f"{word}=") and _is_vain(each, debug) for each in what_ifs):
        better = _most_effective(what_ifs, debug)
        if better is None:
            return NextStep("report")
        word = better
    return NextStep("predict", {"setting": f"{word}={_LADDER}"})


def _is_vain(answer: WhatIf, debug: Debug) -> bool:
    """Whether a doubling was just found to have no effect."""
    if not answer.doubles or answer.predicted_ms is None:
        return False
    return answer.predicted_ms > (1 - NOTICEABLE) * debug.runtime_ms


def _most_effective(what_ifs: Sequence[WhatIf], debug: Debug) -> str | None:
    """The user's word for the setting whose doubling saves most; None if none saves anything noticeable."""
    best = best_help(what_ifs, debug.runtime_ms)
    return None if best is None else best.setting.partition("=")[0]


def _next_of_stream(stream: StreamFacts, words: Vocabulary) -> str:
    """The next question about a stream: higher rates, or if it is at its limit, more of what limits it."""
    if not stream.at_limit:
        return "rate=1.5x,2x,4x"
    if stream.limit_kind == "station":
        return f"{words.word_of('tasks')}.{stream.limit}=2x,4x"
    if stream.limit_kind == "worker":
        return f"{words.word_of('workers')}=2x,4x"
    return "rate=0.5x,0.25x"  # nothing measured limits it, so only lower rates have predictions


def completed(debug: Debug, header: Header) -> Debug:
    """The diagnosis with the bottleneck of the verdict, and all missing data."""
    return replace(debug, bottleneck=bottleneck_of(debug).name, not_recorded=not_recorded_notes(debug, header))


def not_recorded_notes(debug: Debug, header: Header) -> tuple[NotRecorded, ...]:
    """The missing data of a scope: those of its diagnosis, and code without an index or without samples."""
    framework = get(header.framework)
    found = list(debug.not_recorded)
    if header.has_samples and not header.indexes:
        index = _first_index(framework, header)
        found.insert(0, NoIndex(remedy=None if index is None else Remedy("build the index", {"index": index})))
    is_reported = any(isinstance(each, CodeUnsampled | NoSamples) for each in found)
    if not header.has_samples and not is_reported and framework.takes_samples:
        found.append(NoSamples(remedy=Remedy("set up the job", {"framework": framework.name})))
    return tuple(found)


def _first_index(framework: ReadableFramework, header: Header) -> str | None:
    """The most important index for a run of this framework and version; None if there is none to build."""
    return next(iter(framework.reader.frames.sources(header.framework_version)), None)


def knee_of(sweep: Sweep) -> Knee | None:
    """The knee of a sweep that varies one setting upwards: the last point that saves 10 % per doubling; else None.

    If a point does more work than the recorded run, its time counts per recorded amount of work.
    """
    points, amounts = sweep.points, sweep.amounts
    times = [each.predicted_ms / each.work_ratio for each in points if each.predicted_ms is not None]
    if len(points) < 2 or not len(points) == len(amounts) == len(times):
        return None
    if any(after <= before for before, after in pairwise(amounts)):
        return None
    knee = 0
    for (before, slower), (after, faster) in pairwise(zip(amounts, times, strict=True)):
        if faster <= 0 or 1 - (faster / slower) ** (1 / log2(after / before)) < KNEE:
            break
        knee += 1
    return Knee(knee, worth=times[knee] <= (1 - KNEE) * points[0].runtime_ms, least_share=KNEE)
