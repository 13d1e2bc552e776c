"""The sentences of answers for every interface, in the vocabulary of the run's framework.

An interface brings its own format of figures; the sentences are the same in all interfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.advise.usual_what_ifs import NOTICEABLE, happens_once, informative
from crystalperf.query.execution.scenario import called_by
from crystalperf.query.results.findings import CacheMissTime, GarbageCollection, Straggler
from crystalperf.query.text.figures import counted, counted_digits, cut_right, grouped, percent, printable, time_unit
from crystalperf.query.text.findings import explained
from crystalperf.query.text.sentences import text_of
from crystalperf.query.trace.vocabulary import plural, with_article

if TYPE_CHECKING:
    from crystalperf.indexes.errors import Remedy
    from crystalperf.indexes.resources import Resource
    from crystalperf.query.results.answers import (
        Bottleneck,
        Cause,
        Debug,
        Disagreement,
        Header,
        Knee,
        Outcome,
        Prediction,
        StationStats,
        StreamFacts,
        StreamPrediction,
        Sweep,
        Verdict,
        WhatIf,
    )
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.recommendations import Cost, Recommendation, Saving
    from crystalperf.query.results.refusals import Refusal
    from crystalperf.query.trace.vocabulary import Exhausted, Vocabulary

_LONGEST_ERROR = 120
"""Maximum characters of an error."""

FAR_OFF = 0.2
"""Maximum replay error of the baseline, as a share, at which what-ifs are reliable."""

_LONGEST_NAME = 40
"""Maximum characters of a run's name."""

WORTH_SHOWING = 0.02
"""A segment of the critical path, or a cause of other time, is shown from this share of the runtime."""

WORTH_A_WORD = 0.05
"""The runner-up of a cause, and the total without a running task, are named from this share of the runtime."""

MUCH = 0.2
"""Cache misses, and costs that nothing times, are part of the first sentence from this share of the runtime."""

WELL_COVERED = 0.9
"""From this share of the stack samples in indexed code on, the samples without it change no answer."""

NEARLY_ALL = 0.9
"""CPU time is called garbage collection if this share of it is."""


WithRemedy = Callable[[str, "Remedy | None"], str]
"""A sentence, and its remedy → both as one text, in an interface's own terms."""


class Figures(Protocol):
    """How an interface formats the times of an answer, given in ms, all in one unit."""

    def number(self, ms: float, /) -> str:
        """A time without its unit."""

    def text(self, ms: float, /) -> str:
        """A time with its unit."""

    def is_nothing(self, ms: float, /) -> bool:
        """Whether a time rounds to zero, so that it is not shown."""

    def percent(self, part: float, whole: float, /) -> str:
        """The share of `part` in `whole`, in percent."""

    def change(self, after: float, before: float, /) -> str:
        """The signed change in percent."""


def header_facts(header: Header) -> list[str]:
    """The run in short: name, framework, workers and slots, duration, steps."""
    words, version = header.vocabulary, header.framework_version or "of unknown version"
    slots = "" if header.slots_per_worker is None else f" x {counted(header.slots_per_worker, words.slot)}"
    if header.worker_sizes:
        slots = f" ({_sizes_words(header)})"
    facts = [
        cut_right(printable(header.name), _LONGEST_NAME),
        f"{header.framework_title} {printable(version)}",
        f"{workers_words(header)}{slots}" if header.workers else "",
        time_unit(header.duration_ms).text(header.duration_ms),
        _steps_words(header),
        "" if header.complete else "log incomplete",
    ]
    return [each for each in facts if each]


_SIZES_SHOWN = 3
"""Maximum sizes of workers that are listed."""


def _sizes_words(header: Header) -> str:
    """The sizes of workers that differ: `1 x 4 and 2 x 8 slots`, or `4 to 32 slots`."""
    sizes, slots = header.worker_sizes, header.vocabulary.slots
    if len(sizes) > _SIZES_SHOWN:
        return f"{sizes[0].slots} to {sizes[-1].slots} {slots}"
    texts = [f"{each.workers} x {each.slots}" for each in sizes]
    return f"{', '.join(texts[:-1])} and {texts[-1]} {slots}"


_MARKED = 0.97
"""A traced step below this share of the step: the program marks ends of steps before devices have done their work."""


def _steps_words(header: Header) -> str:
    if header.steps is None or header.step_ms is None:
        return ""
    unit, traced_ms = time_unit(header.step_ms), header.traced_step_ms
    likely = header.step_interval_ms
    within = "" if likely is None else f"90 % range: {unit.number(likely[0])} to {unit.number(likely[1])}; "
    traced = "" if traced_ms is None else f" without the profiler ({within}traced: {unit.text(traced_ms)})"
    if traced_ms is not None and traced_ms < _MARKED * header.step_ms:
        traced = f" (the program marks one every {unit.text(traced_ms)}, before its work is done)"
    return f"{counted(header.steps, 'step')} of {unit.text(header.step_ms)}{traced}"


def efficiency_sentences(debug: Debug, most: int) -> list[str]:
    """The rates that operators reached on devices, the longest first, a sentence each."""
    unit = time_unit(debug.runtime_ms)

    def reached(value: float | None, scale: float, name: str, share: float | None) -> str:
        if value is None:
            return ""
        return (
            f", {grouped(round(value / scale))} {name}{'' if share is None else f' ({percent(share, 1)} of the peak)'}"
        )

    return [
        f"on devices, {each.operator} takes {unit.text(each.time_ms)}, bound by {each.bound}"
        f"{reached(each.flops_per_s, 1e12, 'TFLOP/s', each.flops_share)}"
        f"{reached(each.bytes_per_s, 1e9, 'GB/s', each.bytes_share)}"
        for each in debug.efficiency[:most]
        if not unit.is_nothing(each.time_ms)
    ]


def step_sentence(header: Header, answer: Prediction) -> str:
    """The predicted duration of one step of a run; empty for a run without steps."""
    if answer.steady_step_ms is not None:
        before_ms, steady_ms = answer.steady_step_ms
        unit, more = time_unit(before_ms), _more_examples(answer)
        return f"In the steady state, a step would take {unit.text(steady_ms)} instead of {unit.text(before_ms)}{more}."
    after_ms = step_ms(header, answer.predicted_ms, answer.runtime_ms, answer.scope)
    if header.step_ms is None or after_ms is None:
        return ""
    unit = time_unit(header.step_ms)
    more = _more_examples(answer)
    return f"A step would take {unit.text(after_ms)} instead of {unit.text(header.step_ms)}{more}."


def no_effect_sentence(header: Header, answer: Prediction, figures: Figures) -> str:
    """Why a scenario changes nothing noticeable; empty if it does, and for streams, whose rates say so."""
    if answer.predicted_ms is None or answer.stream is not None or answer.work_ratio != 1 or answer.runtime_ms <= 0:
        return ""
    if abs(answer.predicted_ms - answer.runtime_ms) >= NOTICEABLE * answer.runtime_ms:
        return ""
    of = f"of the {figures.text(answer.runtime_ms)}"
    reasons = []
    for setting in answer.setting.split(", "):
        word = setting.partition("=")[0]
        device = next((each for each in header.resources if header.vocabulary.word_of(each.setting) == word), None)
        named = word.partition(".")[2]
        stage = next((each for each in answer.stages if named and named in called_by(each.id, each.name)), None)
        if device is not None and device.name in answer.resource_ms:
            on_it = figures.text(answer.resource_ms[device.name])
            reasons.append(f"the critical path is on the {device.device} for {on_it} {of}")
        elif stage is not None:
            reasons.append(f"{stage.name} ({stage.id}) takes {figures.text(stage.recorded_ms)} {of}")
    why = "; ".join(reasons) or "the critical path does not wait for what it changes"
    return f"No effect (under {100 * NOTICEABLE:.0f} %): {why}."


def examples_ratio(answer: Prediction) -> float | None:
    """The speedup of a training's throughput in a scenario, in examples per second; None without a predicted time."""
    if answer.predicted_ms is None or answer.predicted_ms <= 0:
        return None
    return answer.work_ratio * answer.runtime_ms / answer.predicted_ms


def _more_examples(answer: Prediction) -> str:
    """The change of a training's throughput, if a step does another amount of work; else empty."""
    faster = examples_ratio(answer)
    if answer.work_ratio == 1 or faster is None:
        return ""
    return f" and do {answer.work_ratio:g} times the work: {faster:.2f} times the examples per second"


def step_ms(header: Header, predicted_ms: float | None, runtime_ms: float, scope: str) -> float | None:
    """The duration of one step, ms, if the whole run takes `predicted_ms`; None for a run without steps."""
    if header.step_ms is None or predicted_ms is None or scope != "all" or runtime_ms <= 0:
        return None
    return header.step_ms * predicted_ms / runtime_ms


def samples_sentence(header: Header, debug: Debug) -> str:
    """The limits of the samples: the code that no index covers, and other processes; empty if both matter little."""
    samples, words = debug.samples, debug.vocabulary
    if not header.has_samples or not samples.on_tasks:  # recordings_sentence() says the latter
        return ""
    found = []
    covered = samples.resolved / samples.on_tasks
    if covered < WELL_COVERED:
        found.append(
            f"Only {percent(samples.resolved, samples.on_tasks)} of the {grouped(samples.on_tasks)} stack samples of"
            f" {words.tasks} are in code that an index covers; the resource of the others is known only from the log."
        )
    if any(each.cause == "delegated" for each in debug.named_parts) or debug.other_ms.get("delegated", 0.0) > 0:
        found.append(f"No stack sample shows the code of {_delegates(words)}.")
    return " ".join(found)


def other_applications_sentence(header: Header) -> str:
    """That the input has other applications, or attempts, than the one of the answer; empty if it has none."""
    found = [each.meaning for each in header.problems if each.name == "several_applications"]
    return f"{capitalised(found[0])}." if found else ""


_UNUSABLE = ("unmatched recording", "unreadable recording")
"""Names of problems with recordings that were given for this run, and cannot be used."""

_UNUSED = (*_UNUSABLE, "foreign recording", "other application", "other time")
"""Names of problems with which a recording is left out."""


def recordings_sentence(header: Header, debug: Debug) -> str:
    """The recordings that were not used, and why; empty if all were, or if there are none."""
    words, none_used = debug.vocabulary, not debug.samples.on_tasks
    unused = [each for each in header.problems if each.name in (_UNUSED if none_used else _UNUSABLE)]
    if debug.scope not in ("all", "whole"):
        unused = unused if none_used else []
    if unused:
        unused.sort(key=lambda each: _UNUSED.index(each.name))
        count = sum(each.count for each in unused)
        many = "No recording was used" if none_used else f"{counted(count, 'recording')} could not be used"
        more = f" (and {count - 1} more, see `debug`)" if count > 1 else ""
        return f"{many}: {unused[0].meaning}{more}."
    if not none_used or not header.has_samples or debug.scope not in ("all", "whole"):
        return ""
    return (
        f"No recording shows {with_article(words.task)} of this run: none of the {grouped(debug.samples.total)} stack"
        f" samples is of a thread of {words.tasks}. Give the recordings of the {words.workers} that ran them."
    )


def other_words(debug: Debug, figures: Figures) -> str:
    """The causes of time on no resource with their times; empty if none is large enough."""
    causes = [(cause, ms) for cause, ms in debug.other_ms.items() if ms >= WORTH_SHOWING * debug.runtime_ms]
    return "; ".join(
        f"{figures.text(ms)} {cause_words(cause, debug.vocabulary)}"
        for cause, ms in causes
        if not figures.is_nothing(ms)
    )


def disagreement_words(found: Disagreement) -> str:
    """A disagreement between an index's labels and the log's measurements."""
    label = f"the index says {found.resource} {100 * found.label_share:.0f} %"
    if found.label_share > found.at_most_share:
        bound = f"the log allows at most {100 * found.at_most_share:.0f} %"
    else:
        bound = f"the log shows at least {100 * found.at_least_share:.0f} %"
    return f"{found.stage}: {label}, {bound} of running time"


def cause_words(cause: Cause, vocabulary: Vocabulary) -> str:
    """A cause of time on no resource, to follow its seconds."""
    driver_work = f" ({vocabulary.driver_work})" if vocabulary.driver_work else ""
    texts: dict[Cause, str] = {
        "no worker": f"waiting for {vocabulary.workers}",
        "start": f"before the first {vocabulary.scope} (start)",
        "no scope": f"{_none(vocabulary)} running (the program itself)",
        "end": f"after the last {vocabulary.scope}",
        "driver": f"{vocabulary.driver} alone{driver_work}",
        "no task": f"no {vocabulary.task} running",
        "starting": f"launching {vocabulary.tasks} and returning results",
        "upstream": f"waiting for {_upstream(vocabulary)}",
        "delegated": f"waiting for {_delegates(vocabulary)}",
        "unknown": "of unknown cause",
        "filling": "in buffers until they are full or time out",
        "queueing": "queueing behind other records",
        "held": "waiting for responses to asynchronous requests",
        "sleeping": "sleeping or waiting for external systems, by the sampled code",
        "no slot": f"waiting for {vocabulary.slots}",
    }
    return texts[cause]


def _cause_name(cause: Cause, vocabulary: Vocabulary) -> str:
    """A cause of time on no resource as a noun within a sentence: `Otherwise: the program itself`."""
    named: dict[Cause, str] = {
        "start": "the start",
        "no scope": "the program itself",
        "driver": f"the {vocabulary.driver} alone",
        "no task": f"time without any {vocabulary.task}",
        "delegated": f"waiting for {_delegates(vocabulary)}",
        "unknown": "time of unknown cause",
        "filling": "waiting in buffers",
    }
    return named.get(cause) or cause_words(cause, vocabulary)


def _upstream(vocabulary: Vocabulary) -> str:
    return vocabulary.upstream or f"{vocabulary.tasks} of other {vocabulary.stages}"


def _delegates(vocabulary: Vocabulary) -> str:
    return plural(vocabulary.delegate) if vocabulary.delegate else f"processes that compute for {vocabulary.tasks}"


def _none(vocabulary: Vocabulary) -> str:
    """The words for no scope of any kind: `no query or job`."""
    return f"no {' or '.join((vocabulary.scope, *vocabulary.scopes[1:]))}"


def device_name(resource: str, resources: Sequence[Resource]) -> str:
    """A resource at the start of a sentence: CPU, Disk, Network."""
    return capitalised(_device_word(resource, resources))


def _device_word(resource: str, resources: Sequence[Resource]) -> str:
    """A resource within a sentence: CPU, disk, network."""
    return next((each.device for each in resources if each.name == resource), resource)


def capitalised(text: str) -> str:
    """The text with an uppercase first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def bottleneck_sentence(found: Bottleneck, debug: Debug, resources: Sequence[Resource], figures: Figures) -> str:
    """The bottleneck of a scope with its share of the runtime; or why there is none."""
    it = "" if debug.scope in ("all", "whole") else f" of {debug.scope}"
    if debug.unsubmitted is not None:
        it = " of the work"
    if debug.stream is not None:
        it = " of the latency"
    if debug.unbounded:
        return f"{text_of(debug.unbounded, debug.words)}."
    if debug.missing_data:
        return _doubtful_sentence(found, debug, resources, it, figures)
    if found.kind == "nothing":
        if debug.unsubmitted is not None:
            return f"No bottleneck: nothing was submitted in all of {_whole_text(debug)}."
        return "No bottleneck: no time passes between the first and the last event of the log."
    small = _small_files(debug, figures) if found.kind == "unknown" else ""
    return _limited_by(found, debug, resources, it, figures) + small + _cache_misses(debug, figures)


def _whole_text(debug: Debug) -> str:
    whole_ms = 0.0 if debug.unsubmitted is None else debug.unsubmitted.total_ms
    return time_unit(whole_ms).text(whole_ms)


def _cache_misses(debug: Debug, figures: Figures) -> str:
    """The cost of cache misses, if it is large: they may be the reason why a device is the bottleneck."""
    cost_ms = sum(each.cost_ms for each in debug.findings if isinstance(each, CacheMissTime))
    if cost_ms < MUCH * debug.runtime_ms:
        return ""
    words = debug.vocabulary
    cost = figures.text(cost_ms)
    return f" Cache misses: {words.workers} read data again that they should have cached, which cost up to {cost}."


def _small_files(debug: Debug, figures: Figures) -> str:
    """The possible cost of many small files, as an explanation of time of unknown cause, which nothing times."""
    costs = [each for each in debug.findings if each.is_untimed and each.cost_ms >= MUCH * debug.runtime_ms]
    if not costs:
        return ""
    most = max(costs, key=lambda each: each.cost_ms)
    return f" A possible cause: {text_of(most, debug.words)}, which cost up to {figures.text(most.cost_ms)}."


def _limited_by(found: Bottleneck, debug: Debug, resources: Sequence[Resource], it: str, figures: Figures) -> str:
    words, whole_ms = debug.vocabulary, debug.runtime_ms
    of = f"{figures.number(found.time_ms)} of {figures.text(whole_ms)} ({figures.percent(found.time_ms, whole_ms)})"
    second = "" if found.second is None else _part_name(found.second, debug, resources)
    if found.kind == "resource":
        close = f" Second largest: {second}, {figures.text(found.second_ms)}." if second else ""
        if (rival := _rival(found, debug)) is not None:
            name = _resource_name(rival, debug, resources)
            close += f" If enough of that went to {name}, the bottleneck is {name}."
        other = debug.other_causes.get(found.name)
        alternative = "" if other is None else f" {text_of(other, debug.words)}."
        return f"Bottleneck{it}: {_resource_name(found.name, debug, resources)}, {of}.{alternative}{close}"
    if found.kind == "finding":
        close = f" Second largest: {second}, {figures.text(found.second_ms)}." if second else ""
        return f"Bottleneck{it}: {_finding_name(found.name, debug)}, {of}{_finding_words(found.name, debug)}.{close}"
    if found.second_ms < WORTH_A_WORD * whole_ms:
        second = ""
    if found.kind == "part":
        remark = next(each.remark for each in debug.named_parts if each.remark.kind == found.name)
        following = f" Otherwise: {second}, {figures.text(found.second_ms)}." if second else ""
        return f"Bottleneck{it}: {text_of(remark, debug.words)}: {of}.{following}"
    if found.kind == "unknown":
        known = f" Largest known part: {second}, {figures.text(found.second_ms)}." if second else ""
        if found.name in debug.other_causes:
            did = text_of(debug.other_causes[found.name], debug.words)
            return f"Bottleneck{it}: not a resource. For {of}, {did}.{known}"
        return f"Bottleneck{it}: unknown. Nothing recorded shows where {of} went.{known}"
    texts: dict[str, str] = {
        "no worker": f"waiting for {words.workers}, {of}.",
        "start": f"the start, {of}: the {words.driver} and the program run before the first {words.scope}.",
        "no scope": f"the program itself, {of}: {_none(words)} runs.",
        "end": f"the end, {of}: no {words.scope} runs any more.",
        "driver": f"the {words.driver}, {of}: it works alone.",
        "no task": f"gaps, {of}: a {words.stage} is active, but none of its {words.tasks} runs.",
        "starting": f"launching {words.tasks} and returning results, {of}.",
        "upstream": f"waiting for {_upstream(words)}, {of}.",
        "delegated": f"waiting for {_delegates(words)}, {of}. The log does not show whether they compute or wait.",
        "filling": f"waiting in buffers, {of}.",
        "queueing": f"queueing behind other records, {of}.",
        "held": f"waiting for responses to asynchronous requests, {of}.",
        "sleeping": f"sleeping or waiting for external systems, {of}, by the sampled code.",
        "no slot": f"waiting for {words.slots}, {of}{_explained_by(found, debug)}.",
    }
    alone = ""
    if found.no_task_ms is not None and found.no_task_ms - found.time_ms >= WORTH_A_WORD * whole_ms:
        alone = f" In total, no {words.task} runs for {figures.text(found.no_task_ms)}."
    following = f" Otherwise: {second}, {figures.text(found.second_ms)}." if second else ""
    return f"Bottleneck{it}: {texts[found.name]}{alone}{following}"


def _finding_name(kind: str, debug: Debug) -> str:
    """The cause of a finding as a noun."""
    if kind != Straggler.kind:
        return "garbage collection"
    stages = sum(len(each.stages) for each in debug.findings if isinstance(each, Straggler))
    return "one straggler" if stages == 1 else "stragglers"


def _finding_words(kind: str, debug: Debug) -> str:
    """The largest finding of a kind, after a colon."""
    if kind == Straggler.kind:
        stages = [stage for each in debug.findings if isinstance(each, Straggler) for stage in each.stages]
        most = max(stages, key=lambda each: each.alone_ms)
        return f": {most.id} {most.name}: {text_of(most, debug.words)}"
    first = next(each for each in debug.findings if isinstance(each, GarbageCollection))
    tasks, share = debug.vocabulary.tasks, f"{100 * first.share:.0f} %"
    return f": {share} of the time of {first.stage.id}'s {tasks}; {debug.vocabulary.workers} are short of memory"


def _explained_by(found: Bottleneck, debug: Debug) -> str:
    """The framework's explanation of a cause, after a colon; empty if it has none."""
    said = debug.other_causes.get(found.name)
    return "" if said is None else f": {text_of(said, debug.words)}"


def noticeable_findings(findings: Iterable[Finding], figures: Figures) -> list[Finding]:
    """Findings whose cost does not round to zero in the answer's unit; the JSON has all findings."""
    return [each for each in findings if each.is_note or not figures.is_nothing(each.cost_ms)]


def _rival(found: Bottleneck, debug: Debug) -> str | None:
    """The resource that would exceed the bottleneck if all time of unknown cause were on it; None if none would, or if
    unknown time is not the runner-up."""
    if found.second != "unknown":
        return None
    others = {name: ms for name, ms in debug.resource_ms.items() if name not in (found.name, OTHER) and ms > 0}
    rival = max(others, key=lambda each: others[each], default=None)
    return rival if rival is not None and others[rival] + found.second_ms > found.time_ms else None


def _part_name(name: str, debug: Debug, resources: Sequence[Resource]) -> str:
    """A resource or a Cause within a sentence."""
    if name in debug.other_ms or name == "unknown":
        return _cause_name(cast("Cause", name), debug.vocabulary)
    return _resource_name(name, debug, resources)


def _resource_name(resource: str, debug: Debug, resources: Sequence[Resource]) -> str:
    """A resource within a sentence.  If nearly all CPU time is garbage collection, as in logs without other CPU times,
    the text says so, because a faster CPU would not help."""
    name = _device_word(resource, resources)
    on_it_ms = sum(each.resource_ms.get(resource, 0.0) for each in debug.stages)
    collecting_ms = sum(each.gc_ms for each in debug.stages)
    if resource == CPU and collecting_ms > 0 and collecting_ms >= NEARLY_ALL * on_it_ms:
        return f"garbage collection on the {name}"
    return name


def _doubtful_sentence(
    found: Bottleneck, debug: Debug, resources: Sequence[Resource], it: str, figures: Figures
) -> str:
    """The inconclusive verdict: what is missing, how much time that may hide, and the bottleneck of the known rest."""
    whole_ms = debug.runtime_ms
    missing = "; ".join(text_of(each.missing, debug.words) for each in debug.missing_data)
    sentence = f"Bottleneck{it}: unknown, because {missing}."
    if not figures.is_nothing(found.time_ms):
        share = figures.percent(found.time_ms, whole_ms)
        beyond = (
            "" if all(each.time_ms > 0 for each in debug.missing_data) else ", and time that the log does not record"
        )
        sentence += (
            f" The missing data may hide {figures.number(found.time_ms)} of {figures.text(whole_ms)} ({share}){beyond}."
        )
    if found.second is None or figures.is_nothing(found.second_ms):
        return sentence
    name = _known_part(found.second, debug, resources)
    return f"{sentence} Largest known part: {name}, {figures.text(found.second_ms)}."


def _known_part(name: str, debug: Debug, resources: Sequence[Resource]) -> str:
    """A resource, Cause, kind of finding or named part within a sentence."""
    devices = {each.name: each.device for each in resources}
    parts = {each.remark.kind: each.remark for each in debug.named_parts}
    if name in (Straggler.kind, GarbageCollection.kind):
        return _finding_name(name, debug)
    if name in parts:
        return text_of(parts[name], debug.words)
    return devices.get(name) or _cause_name(cast("Cause", name), debug.vocabulary)


def unsubmitted_sentence(debug: Debug, whole: Figures, figures: Figures) -> str:
    """The time left out because nothing was submitted; empty if there is none.  `whole` formats the whole time."""
    found = debug.unsubmitted
    if found is None or debug.runtime_ms <= 0:  # the first sentence says so
        return ""
    of = f"{whole.number(found.left_out_ms)} of {whole.text(found.total_ms)}"
    whose = "" if found.interactive else ": the program waited or did something else"
    work = figures.text(debug.runtime_ms)
    return f"Nothing was submitted for {of}{whose}. The figures below cover the {work} of work."


def stream_sentences(debug: Debug, resources: Sequence[Resource]) -> tuple[str, ...]:
    """The rate of a stream, its highest sustained rate, and its limit; else what comes before the bottleneck."""
    stream, words = debug.stream, debug.vocabulary
    if stream is None:
        return () if debug.leading is None else (f"{text_of(debug.leading, debug.words)}.",)
    uneven = _uneven(stream)
    return tuple(
        each
        if uneven is None or uneven.id == stream.limit
        else f"{each} Records are uneven: {_heaviest(uneven, words)}."
        for each in _rate_sentences(stream, words, resources, uneven)
    )


_SKEWED = 1.3
"""Ratio of a task's records to the mean of its stage from which they count as uneven …"""

_CLEARLY_SKEWED = 1.5
"""… and the same for a stage that does not limit the rate."""


def _uneven(stream: StreamFacts) -> StationStats | None:
    """The limiting stage, if one of its tasks gets far more records than the others, else the most uneven stage; None
    without any."""
    return max(
        (each for each in stream.stations if each.tasks > 1 and _is_uneven(each, stream)),
        key=lambda each: (each.id == stream.limit, each.heaviest_share * each.tasks),
        default=None,
    )


def _heaviest(station: StationStats, words: Vocabulary) -> str:
    """The task of a stage with the most records, and its share of them."""
    task = f"{words.task} {station.heaviest_task + 1} of {station.tasks}"
    return f"{task} of {station.name} ({station.id}) gets {100 * station.heaviest_share:.0f} % of its records"


def _is_uneven(station: StationStats, stream: StreamFacts) -> bool:
    least = _SKEWED if station.id == stream.limit else _CLEARLY_SKEWED
    return station.heaviest_share * station.tasks >= least


def _rate_sentences(
    stream: StreamFacts, words: Vocabulary, resources: Sequence[Resource], uneven: StationStats | None
) -> tuple[str, ...]:
    """The rate, its maximum, and what limits it."""
    named = {each.id: each.name for each in stream.stations}
    rate, with_what = per_second(stream.rate_per_s), _with(stream.limit_resource, resources) or _resting(stream)
    who = f"{named[stream.limit]} ({stream.limit})" if stream.limit in named else f"{words.worker} {stream.limit}"
    if uneven is not None and uneven.id == stream.limit:
        who = _heaviest(uneven, words)
    first = (
        f"{who} and saturates first" if uneven is not None and uneven.id == stream.limit else f"{who} saturates first"
    )
    if stream.at_limit:
        if stream.limit_kind == "worker":
            return (
                f"Rate limit: {who} has no CPU left. The job is at its limit, {rate}, and its sources are blocked.",
            )
        shown = {each.id: each for each in stream.stations}
        if stream.limit_kind == "hop":
            source, target = (shown[each] for each in stream.limit.split(">"))
            return (
                f"Rate limit: the connection between {source.name} ({source.id}) and {target.name} ({target.id}), which"
                f" may be the network. The job is at its limit, {rate}, but nothing measured is fully busy: the first"
                f" is blocked {100 * source.blocked_share:.0f} % of its time, and the second is busy"
                f" {100 * target.busiest_share:.0f} %.",
            )
        busiest = shown[stream.limit].busiest_share
        and_busy = f" and is busy {100 * busiest:.0f} %" if uneven is not None and uneven.id == stream.limit else ""
        is_busy = and_busy or f", busy {100 * busiest:.0f} %"
        return (
            f"Rate limit: {who}{is_busy} of its time{with_what}. The job is at its limit, {rate}:"
            " backpressure slows its sources.",
        )
    if stream.max_per_s is None:
        return (f"Highest rate: unknown. Recorded: {rate}, and the job keeps up.",)
    busy = next(
        (f" (now {100 * each.busiest_share:.0f} % busy)" for each in stream.stations if each.id == stream.limit), ""
    )
    if stream.is_lower_bound:
        return (
            f"Highest rate: at least {per_second(stream.max_per_s)}; {first}{with_what}. Recorded:"
            f" {rate}, and the job keeps up.",
        )
    return (
        f"Highest rate: {per_second(stream.max_per_s)}; {first}{with_what}{busy}. Recorded: {rate}, and"
        " the job keeps up.",
    )


def most_sentence(stream: StreamPrediction, vocabulary: Vocabulary, resources: Sequence[Resource]) -> str:
    """The maximum sustained rate of a stream in a scenario, and what limits it; empty if unknown."""
    if stream.max_per_s is None:
        return ""
    if stream.limit_kind == "batches":
        return _most_in_batches(stream, stream.max_per_s)
    low, high = stream.max_per_s_interval or (stream.max_per_s, stream.max_per_s)
    who = f"{vocabulary.worker} {stream.limit}" if stream.limit_kind == "worker" else stream.limit
    before = "" if stream.recorded_max_per_s is None else f" (recorded: {per_second(stream.recorded_max_per_s)})"
    if stream.is_lower_bound:
        return (
            f"Highest rate: at least {per_second(stream.max_per_s)}{before};"
            f" {who} saturates first{_with(stream.limit_resource, resources)}. It may be higher, because records take"
            " longer at a low rate."
        )
    spread = f", 90 % range {counted_digits(low)} to {counted_digits(high)}" if stream.max_per_s_interval else ""
    return (
        f"Highest rate: {per_second(stream.max_per_s)}{before}{spread}; {who} saturates"
        f" first{_with(stream.limit_resource, resources)}."
    )


def _most_in_batches(stream: StreamPrediction, max_per_s: float) -> str:
    """The maximum sustained rate of a stream that is processed in batches."""
    before = "" if stream.recorded_max_per_s is None else f" (recorded: {per_second(stream.recorded_max_per_s)})"
    if stream.is_lower_bound or stream.max_per_s_interval is None:
        return (
            f"Highest rate of {stream.limit}: at least {per_second(max_per_s)}{before}; the recorded batches are too"
            " small or too alike to show more."
        )
    low, high = stream.max_per_s_interval
    return (
        f"Highest rate of {stream.limit}: {per_second(max_per_s)}{before}, 90 % range {counted_digits(low)} to"
        f" {counted_digits(high)}; above it, each batch takes longer than the one before."
    )


def batch_sentence(stream: StreamPrediction) -> str:
    """The mean batch of a stream in a scenario, and whether it keeps up; empty if unknown."""
    batch = stream.batch
    if batch is None or batch.rows is None or batch.time_ms is None or batch.interval_ms is None:
        return ""
    recorded = _batch_words(batch.recorded_rows, batch.recorded_ms, batch.recorded_interval_ms)
    keeps = "The stream keeps up"
    if batch.keeps_pace is False:
        keeps += ", but a batch takes longer than its interval, so that batches follow each other without a pause"
    return f"{_batch_words(batch.rows, batch.time_ms, batch.interval_ms)} (recorded: {recorded}). {keeps}."


def _batch_words(rows: float, time_ms: float, interval_ms: float) -> str:
    unit = time_unit(max(time_ms, interval_ms))
    return f"{counted_digits(rows)} rows a batch, {unit.text(time_ms)} each, one every {unit.text(interval_ms)}"


def per_second(rate: float) -> str:
    """A rate with three significant digits: `12 300 records/s`."""
    return f"{counted_digits(rate)} records/s"


def _resting(stream: StreamFacts) -> str:
    """That the limiting station sleeps or waits outside for half of its busy time or more; else empty."""
    share = next((each.sleeping_share for each in stream.stations if each.id == stream.limit), 0.0)
    return f", which sleeps or waits for external systems {100 * share:.0f} % of its busy time" if share >= 0.5 else ""


def _with(resource: str, resources: Sequence[Resource]) -> str:
    device = next((each.device for each in resources if each.name == resource), "")
    return f", limited by {device}" if device else ""


def unmodelled_sentence(debug: Debug) -> str:
    """That a device without a model computed for the run; empty if none did."""
    if debug.unmodelled is None:
        return ""
    return f"{plural(debug.unmodelled)} also computed but are not modelled: no what-if covers more or faster ones."


def bound_words(bound_ms: tuple[float | None, float | None] | None, runtime_ms: float, figures: Figures) -> str:
    """The bounds of a runtime without a prediction; empty if there are none."""
    low, high = informative(bound_ms, runtime_ms) or (None, None)
    if low is not None and high is not None:
        same = figures.text(low) == figures.text(high)
        return figures.text(low) if same else f"{figures.number(low)} to {figures.text(high)}"
    if low is not None:
        return f"at least {figures.text(low)}"
    return "" if high is None else f"at most {figures.text(high)}"


def by_refusal(refused: Iterable[Prediction | WhatIf]) -> dict[Refusal, list[Prediction | WhatIf]]:
    """Refused what-ifs by refusal."""
    found: dict[Refusal, list[Prediction | WhatIf]] = {}
    for answer in refused:
        for refusal in answer.refused:
            found.setdefault(refusal, []).append(answer)
    return found


def _why(refusal: Refusal, answers: Sequence[Prediction | WhatIf], with_remedy: WithRemedy) -> str:
    """Why some what-ifs are refused, with the remedy."""
    return printable(with_remedy(text_of(refusal, answers[0].words), answers[0].remedy))


def not_known_sentences(
    refused: Iterable[Prediction | WhatIf], runtime_ms: float, figures: Figures, with_remedy: WithRemedy
) -> list[str]:
    """The refused what-ifs, a sentence for each reason, with their bounds."""
    by_reason: dict[tuple[str, str], list[str]] = {}  # refusals that differ only in numbers may have the same text
    for refusal, answers in by_refusal(refused).items():
        for each in answers:
            bound = bound_words(each.bound_ms, runtime_ms, figures)
            start, setting = ("Only bounds", f"{each.setting} {bound}") if bound else ("No prediction", each.setting)
            by_reason.setdefault((start, _why(refusal, answers, with_remedy)), []).append(printable(setting))
    return [f"{start} for {', '.join(settings)}: {why}." for (start, why), settings in by_reason.items()]


def refusal_sentence(points: Sequence[Prediction], figures: Figures, with_remedy: WithRemedy) -> str:
    """Why there is no prediction, with the bounds of the first point."""
    first = points[0]
    reasons = list(
        dict.fromkeys(_why(refusal, answers, with_remedy) for refusal, answers in by_refusal(points).items())
    )
    sentence = f"no prediction for {first.setting}: " if len(points) == 1 else "no prediction: "
    sentence += "; ".join(reasons or ["the run does not show enough"])
    bound = bound_words(first.bound_ms, first.runtime_ms, figures)
    return f"{sentence}; it would take {bound}" if bound else sentence


def same_sentence(same: Sequence[WhatIf]) -> str:
    """The usual what-ifs without effect on the time, apart from those that do more work in it; empty without any."""
    none = ", ".join(each.question for each in same if each.work_ratio == 1)
    more = ", ".join(each.question for each in same if each.work_ratio != 1)
    found = [f"No effect (under 3 %): {none}." if none else "", f"More work in the same time: {more}." if more else ""]
    return " ".join(filter(None, found))


def measure_word(measure: str) -> str:
    """The measure of an answer's times for a table's head: latency or runtime."""
    return "latency" if measure in ("latency", "throughput") else "runtime"


def replay_sentence(replayed_ms: float, runtime_ms: float, figures: Figures) -> str:
    """The replay error: the model's runtime of the baseline."""
    off = figures.change(replayed_ms, runtime_ms)
    sentence = f"Check: the model gives the unchanged run {figures.text(replayed_ms)} (error {off})."
    return (
        f"{sentence} Do not rely on its predictions."
        if abs(replayed_ms - runtime_ms) > FAR_OFF * runtime_ms
        else sentence
    )


def check_sentences(verdict: Verdict, figures: Figures, ranges: str) -> str:
    """The notes below the what-ifs: the replay error, the meaning of a range (`ranges` is its name, '' without ranges),
    and for a failed run that all times end at the failure."""
    debug = verdict.debug
    if verdict.replayed_ms is None:
        return ""
    found = [replay_sentence(verdict.replayed_ms, debug.runtime_ms, figures)]
    if ranges:
        found.append(range_sentence(ranges))
    if debug.outcome is not None and debug.outcome.status == "failed":
        found.append("All times and predictions stop at the failure.")
    return " ".join(found)


def range_sentence(name: str) -> str:
    """The meaning of a prediction's range."""
    return f"{name}: 9 of 10 runs with the change end within it."


def knee_sentence(knee: Knee, sweep: Sweep) -> str:
    """Where more of a resource stops being worth it, and by which rule."""
    setting, rule = sweep.points[knee.point].setting, f"{100 * knee.least_share:.0f} %"
    if knee.point + 1 == len(sweep.points):
        then = "this is true up to the last value"
    else:
        then = f"beyond {setting} it saves less" if knee.point or knee.worth else "here it never does"
    what = " of the time for the same work" if any(each.work_ratio != 1 for each in sweep.points) else ""
    return f"More is worth it while doubling saves at least {rule}{what}: {then}."


def saving_text(saving: Saving, figures: Figures) -> str:
    """The saving of a recommendation with its basis and range; empty if it is unknown."""
    if saving.ms is None:
        return "" if saving.range_ms is None else f"saves at most {figures.text(saving.range_ms[1])} ({saving.basis})"
    saves = f"saves about {figures.text(saving.ms)} ({saving.basis}"
    if saving.range_ms is None:
        return f"{saves}; not validated by reruns)"
    low, high = saving.range_ms
    if figures.is_nothing(low):
        return f"{saves}; 90 % range: up to {figures.text(high)})"
    if low < 0:
        between = f"{figures.text(high)} faster to {figures.text(-low)} slower"
        return f"{saves}; 90 % range: {between}, because reruns vary)"
    return f"{saves}; 90 % range: {figures.number(low)} to {figures.text(high)})"


def gain_sentences(found: Recommendation, figures: Figures) -> str:
    """The saving and the cost of a recommendation, as sentences; empty if neither is known."""
    texts = (saving_text(found.saving, figures), cost_text(found.cost))
    return " ".join(f"{capitalised(each)}." for each in texts if each)


def cost_text(cost: Cost | None) -> str:
    """The cost of a change that needs machines; empty if it needs none, or if nothing is known."""
    if cost is None or cost.after_s <= 0:
        return ""
    if cost.other_machines:
        return f"costs less if these machines cost less than {cost.before_s / cost.after_s:.2f} times as much per hour"
    thing = " of memory" if cost.unit == "GiB" else ""
    long, name = (1.0, "seconds") if cost.before_s < 360 else (3600.0, "hours")
    return f"costs {cost.after_s / long:.3g} {cost.unit}-{name}{thing} per run instead of {cost.before_s / long:.3g}"


def nothing_to_do(verdict: Verdict) -> str:
    """The sentence for a run without recommendations; empty if there are some, or if no time could be saved."""
    if verdict.recommendations or verdict.debug.runtime_ms <= 0:
        return ""
    if not verdict.debug.conclusive:
        return "Analyze a complete log of the job: what would help depends on the missing data."
    least = f"{100 * NOTICEABLE:.0f} % of the time"
    also = " and 1 s" if happens_once(verdict.debug, verdict.header) else ""
    return f"No change that CrystalPerf models saves {least}{also} or more."


# How it ended ---------------------------------------------------------------------------------------------------------


def outcome_sentences(debug: Debug, figures: Figures) -> tuple[str, ...]:
    """The outcome of a scope, the most important first, at most four sentences; empty if it succeeded."""
    ended, words = debug.outcome, debug.vocabulary
    if ended is None:
        return ()
    whole = debug.scope in ("all", "whole")
    whose = "The run" if whole else debug.scope
    scopes = [each for each in ended.tallies if each.kind not in (words.stage, words.task)]
    failed = next((each for each in scopes if each.failed), None) or ended.tally(words.stage)
    reason = _why_failed(ended) if failed.failed else ""
    many = f"{failed.failed} of {counted(failed.total, failed.kind)} failed"
    found = []
    if ended.status == "failed":
        if not failed.failed:
            reason = f"its process ended with exit code {ended.exit_code}"
        elif failed.total > 1 or whole:
            reason = f"{many}{reason}"
        else:
            reason = reason.removeprefix(": ")
        found.append(f"{whose} failed: {reason}.")
    elif ended.status == "unfinished":
        open_ones = next((each for each in scopes if each.unfinished), None)
        if open_ones:
            under_way = f"{counted(open_ones.unfinished, open_ones.kind)} active"
            if ended.cut:
                found.append(f"The log ends before {'the run' if whole else debug.scope} does, with {under_way}.")
            else:
                found.append(f"The run ended with {under_way}." if whole else f"The log has no end of {debug.scope}.")
        if failed.failed:
            found.append(f"{many}{reason}.")
    elif failed.failed:
        found.append(f"{whose} completed, but {many}{reason}.")
    called_off = next((each for each in scopes if each.cancelled), None)
    if called_off:
        were = "was" if called_off.cancelled == 1 else "were"
        found.append(f"{called_off.cancelled} of {counted(called_off.total, called_off.kind)} {were} cancelled.")
    found += [
        *_tasks_failed(ended, words, figures, with_reason=not failed.failed),
        *_workers_lost(ended, words, figures),
    ]
    if ended.memory is not None and ended.memory != "device":  # the error itself names a device
        found.append(memory_sentence(ended.memory, words))
    return tuple(found)


def _why_failed(ended: Outcome) -> str:
    errors = list(
        dict.fromkeys(explained(each.error) for each in ended.failures if each.kind == ended.failures[0].kind)
    )
    others = f" (and {counted(len(errors) - 1, 'other error')})" if len(errors) > 1 else ""
    return f": {_cut(errors[0])}{others}" if errors else ""


def _tasks_failed(ended: Outcome, words: Vocabulary, figures: Figures, *, with_reason: bool) -> list[str]:
    tasks = ended.tally(words.task)
    with_workers = sum(each.recomputed_tasks for each in ended.lost) >= tasks.failed
    if not tasks.failed or (with_workers and ended.reason_names_lost_worker):
        return []  # the sentence about lost workers covers these tasks
    took = f"which took {figures.text(ended.failed_ms)} of {words.task} time"
    sentence = f"{tasks.failed} of {counted(tasks.total, words.task)} failed, {took}"
    if ended.retried_tasks == tasks.failed:
        sentence += ", and ran again"
    elif ended.retried_tasks:
        sentence += f"; {ended.retried_tasks} of them ran again"
    reason = f": {_cut(ended.reason)}" if with_reason and ended.reason else ""
    return [f"{sentence}{reason}."]


def _workers_lost(ended: Outcome, words: Vocabulary, figures: Figures) -> list[str]:
    lost = ended.lost
    if not lost:
        return []
    when = "" if len(lost) == 1 else "the first "
    sentence = f"{len(lost)} of {counted(ended.workers, words.worker)} {'was' if len(lost) == 1 else 'were'} lost, "
    sentence += f"{when}{figures.text(lost[0].lost_ms)} after the start: {_cut(explained(lost[0].why))}."
    redone = sum(each.recomputed_tasks for each in lost)
    if redone:
        took = figures.text(sum(each.recomputed_ms for each in lost))
        whose = "its" if len(lost) == 1 else "their"
        sentence += f" {redone} of {whose} {words.tasks} ran again; their first attempts took {took}."
    return [sentence]


def memory_sentence(kind: Exhausted, words: Vocabulary) -> str:
    """The sentence about what ran out of memory."""
    delegate = words.delegate or f"process that computes for {words.tasks}"
    texts: dict[Exhausted, str] = {
        "container": f"A container ran out of memory: {with_article(words.worker)} exceeded its total limit.",
        "heap": f"A heap ran out of memory: the data of {words.tasks} did not fit.",
        "device": f"A device such as a GPU ran out of memory: the data of {words.tasks} did not fit.",
        "delegate": f"{capitalised(with_article(delegate))} ran out of memory: its data did not fit.",
        "killed": (
            f"{capitalised(with_article(words.worker))} was killed from outside, most often because it exceeded the"
            " memory limit of its container."
        ),
    }
    return texts[kind]


def workers_words(header: Header) -> str:
    """The number of workers of a run: `9 workers`, or `at most 2 workers at a time (9 in all)`."""
    words = header.vocabulary
    if header.workers_in_all <= header.workers:
        return counted(header.workers, words.worker)
    return f"at most {counted(header.workers, words.worker)} at a time ({header.workers_in_all} in all)"


def _cut(text: str) -> str:
    """A text of the log, cut to _LONGEST_ERROR characters, without a full stop at its end."""
    return (text if len(text) <= _LONGEST_ERROR else f"{text[: _LONGEST_ERROR - 1]}…").rstrip(". ")
