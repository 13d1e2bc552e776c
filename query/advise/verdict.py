"""The verdict on a run: what holds it up, what would help, where more stops helping, what to do next.

Everything that a door says of a run is decided here or in what the values hold; a door words and lays it out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING

from crystalperf.indexes.errors import CrystalPerfError, Remedy
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
    Sweep,
    Verdict,
    WhatIf,
)
from crystalperf.query.results.refusals import InvalidQuestion
from crystalperf.query.results.unseen import CodeUnsampled, NoIndex, NoSamples, Unseen
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    from crystalperf.query.advise.asked_run import AskedRun

KNEE = 0.10
"""More of a resource is worth it while doubling it saves this share of the runtime."""


_FASTER = {"2x": "twice as fast", "10x": "ten times as fast"}

_ASKED: dict[str, tuple[str, ...]] = {CPU: ("2x",), NET: ("2x", "10x"), DISK: ("2x",)}
"""How much faster each resource is asked to be, in this order; networks come in tenfold steps.  Any other: twice."""

_LADDER = "2x,4x,8x"


@dataclass(frozen=True)
class Question:
    """A question that is asked of every run: what it means to a reader, and the setting."""

    text: str
    setting: str


def usual_questions(header: Header, *, flows: bool = False) -> tuple[Question, ...]:
    """The usual questions to a run, without those that it cannot be asked."""
    return questions(header.resources, header.vocabulary, flows=flows, unasked=header.unasked)


def questions(
    resources: Sequence[Resource],
    vocabulary: Vocabulary,
    *,
    flows: bool = False,
    unasked: Collection[str] = (),
) -> tuple[Question, ...]:
    """The usual questions, in the words of the run's framework; of a run that `flows`, how much more it would take.

    `unasked` are settings that are left out.
    """
    if flows:
        units, workers = vocabulary.word_of("units"), vocabulary.word_of("workers")
        return (
            Question("one and a half times the records", "rate=1.5x"),
            Question("twice the records", "rate=2x"),
            Question(f"twice the {vocabulary.units} of all {vocabulary.groups}", f"{units}=2x"),
            Question(f"twice the {vocabulary.workers}", f"{workers}=2x"),
            *(
                Question(f"{each.device} {_FASTER['2x']}", f"{vocabulary.word_of(each.setting)}=2x")
                for each in resources
                if each.name in _ASKED
            ),
        )
    cores, workers, memory = (vocabulary.word_of(key) for key in ("cores", "workers", "memory"))
    found = []
    if "cores" not in unasked:
        found.append(Question(f"twice the {vocabulary.lanes} per {vocabulary.worker}", f"{cores}=2x"))
    if "workers" not in unasked:
        found.append(Question(f"twice the {vocabulary.counted}", f"{workers}=2x"))
    usual = list(_ASKED)
    in_order = sorted(resources, key=lambda each: usual.index(each.name) if each.name in usual else len(usual))
    by_setting: dict[str, Resource] = {}
    for each in in_order:
        by_setting.setdefault(each.setting, each)
    for each in by_setting.values():
        word = vocabulary.word_of(each.setting)
        found += [
            Question(f"{each.device} {_FASTER[ratio]}", f"{word}={ratio}") for ratio in _ASKED.get(each.name, ("2x",))
        ]
    if "memory" not in unasked:
        found += [Question("twice the memory", f"{memory}=2x"), Question("half the memory", f"{memory}=0.5x")]
    return tuple(found)


def verdict(run: AskedRun, progress: Callable[[str], None] = lambda _: None, *, path: bool = False) -> Verdict:
    """Explain a run and ask the usual questions of it.

    `progress` is told each step in a few words; `path` is as in Run.predict(), for who asks the same questions next.
    """
    progress("following the critical path")
    header, debug = run.header(), run.debug()
    answers, replayed_ms = [], None
    for question in _asked_of(header, debug):
        progress(f"what if: {question.text}")
        try:
            prediction = run.predict([question.setting], path=path)
        except CrystalPerfError as error:  # a question that makes no sense for this run is part of the answer
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

    def ask(setting: str) -> WhatIf | Prediction | None:
        key, _, value = setting.partition("=")
        told = known.get(f"{header.vocabulary.word_of(key)}={value}")
        if told is not None:
            return told
        try:
            return run.predict([setting], path=False)
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
        recommendations=ranked(run.candidates(debug), debug, header, ask) if debug.runtime_ms > 0 else (),
    )


def _asked_of(header: Header, debug: Debug) -> tuple[Question, ...]:
    return usual_questions(header, flows=debug.flow is not None) if debug.runtime_ms > 0 else ()


def what_if(question: str, prediction: Prediction) -> WhatIf:
    """The answer to one of the usual questions, which says so where another amount of work is done."""
    work = "" if prediction.work_ratio == 1 else f" ({prediction.work_ratio:g} times the work)"
    return WhatIf(
        f"{question}{work}",
        prediction.setting,
        prediction.predicted_ms,
        prediction.interval_ms,
        prediction.bound_ms,
        prediction.refused,
        prediction.remedy,
        prediction.flow,
        prediction.words,
    )


def best_help(what_ifs: Sequence[WhatIf], runtime_ms: float) -> WhatIf | None:
    """The doubling that would help most; None where none helps noticeably, or none is answered."""
    known = [(each.predicted_ms, each) for each in what_ifs if each.predicted_ms is not None and each.doubles]
    best_ms, best = min(known, key=lambda each: each[0], default=(runtime_ms, None))
    return best if best_ms < (1 - NOTICEABLE) * runtime_ms else None


def next_step(
    header: Header, bottleneck: Bottleneck, asked: Sequence[WhatIf] = (), debug: Debug | None = None
) -> NextStep:
    """Samples first, then an index of their code, then more of what holds the run up.

    More slots stand for more CPUs, unless that was `asked` and refused, or changes nothing in the framework.
    """
    framework = get(header.framework)
    if not header.has_samples and framework.takes_samples:
        return NextStep("setup", {"framework": framework.name})
    index = _first_index(framework, header)
    if header.has_samples and not header.indexes and index is not None:
        return NextStep("build", {"index": index})
    if debug is not None and debug.flow is not None:
        return NextStep("predict", {"setting": "rate=1.5x,2x,4x"})
    lanes = header.vocabulary.word_of("cores")
    setting = "cores" if "cores" not in header.unasked else "cpu_speed"
    refused = setting != "cores" or any(each.refused and each.setting.startswith(f"{lanes}=") for each in asked)
    for each in header.resources:
        if bottleneck.kind == "resource" and each.name == bottleneck.name and (each.name != CPU or refused):
            setting = each.setting
    return NextStep("predict", {"setting": f"{header.vocabulary.word_of(setting)}={_LADDER}"})


def completed(debug: Debug, header: Header) -> Debug:
    """The answer with the bottleneck by the name that the verdict gives it, and all that could not be seen."""
    return replace(debug, bottleneck=bottleneck_of(debug).name, unseen=not_seen(debug, header))


def not_seen(debug: Debug, header: Header) -> tuple[Unseen, ...]:
    """What could not be seen of a scope: what its diagnosis says, and code that is in no index or was not sampled."""
    framework = get(header.framework)
    found = list(debug.unseen)
    if header.has_samples and not header.indexes:
        index = _first_index(framework, header)
        found.insert(0, NoIndex(remedy=None if index is None else Remedy("build the index", {"index": index})))
    said = any(isinstance(each, CodeUnsampled | NoSamples) for each in found)
    if not header.has_samples and not said and framework.takes_samples:
        found.append(NoSamples(remedy=Remedy("set up the job", {"framework": framework.name})))
    return tuple(found)


def _first_index(framework: ReadableFramework, header: Header) -> str | None:
    """The index that a run needs before all others."""
    return next(iter(framework.reader.frames.sources(header.framework_version)), None)


def knee_of(sweep: Sweep) -> Knee | None:
    """The last point that still brings a tenth per doubling, where one setting is varied upwards; else None.

    Where a point does more work than the recorded run, its time for as much as that counts.
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
