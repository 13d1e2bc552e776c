"""The sentences that every door says of an answer, in the words of the run's framework.

A door brings its own way to write figures; what is said, and of what, is the same at all doors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.advise.usual_what_ifs import NOTICEABLE, happens_once, informative
from crystalperf.query.results.findings import Kept
from crystalperf.query.text.figures import counted, cut_right, grouped, percent, printable, time_unit
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
        FlowChange,
        FlowFacts,
        Header,
        Knee,
        Outcome,
        Prediction,
        Sweep,
        Verdict,
        WhatIf,
    )
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.recommendations import Saving
    from crystalperf.query.results.refusals import Refusal
    from crystalperf.query.trace.vocabulary import Exhausted, Vocabulary

_LONGEST_ERROR = 120
"""Characters shown of an error."""

FAR_OFF = 0.2
"""A model that is off by more where nothing changes says little of what changes."""

_LONGEST_NAME = 40
"""Characters shown of a run's name."""

WORTH_SHOWING = 0.02
"""A stretch of the critical path, or a cause of other time, is shown from this share of the runtime."""

WORTH_A_WORD = 0.05
"""What comes after a cause, or beside it, is named from this share of the runtime."""

MUCH = 0.2
"""What had no room in memory is told at once from this share of the runtime."""

NEARLY_ALL = 0.9
"""The CPU's time is told as garbage collection from this share of it."""


Told = Callable[[str, "Remedy | None"], str]
"""A sentence, and what can be done about it → both, in a door's own terms."""


class Figures(Protocol):
    """How a door writes the times of an answer, in ms, all in one unit."""

    def number(self, ms: float, /) -> str:
        """Without the unit."""

    def text(self, ms: float, /) -> str:
        """With the unit."""

    def is_nothing(self, ms: float, /) -> bool:
        """Whether it rounds to zero, so that it is not worth a word."""

    def percent(self, part: float, whole: float, /) -> str:
        """One as a share of the other."""

    def change(self, after: float, before: float, /) -> str:
        """The signed change in percent."""


def header_facts(header: Header) -> list[str]:
    """What ran, on what, for how long."""
    words, version = header.vocabulary, header.framework_version or "of unknown version"
    slots = "" if header.slots_per_worker is None else f" x {counted(header.slots_per_worker, words.lane)}"
    facts = [
        cut_right(printable(header.name), _LONGEST_NAME),
        f"{header.framework_title} {printable(version)}",
        f"{workers_words(header)}{slots}" if header.workers else "",
        time_unit(header.duration_ms).text(header.duration_ms),
        "" if header.steps is None or header.step_ms is None else _steps_words(header.steps, header.step_ms),
        "" if header.complete else "log incomplete",
    ]
    return [each for each in facts if each]


def _steps_words(steps: int, step_ms: float) -> str:
    return f"{counted(steps, 'step')} of {time_unit(step_ms).text(step_ms)}"


def step_sentence(header: Header, answer: Prediction) -> str:
    """What a prediction for the whole of a run makes of one of its steps; empty where it has none."""
    if answer.settled_step_ms is not None:
        before_ms, settled_ms = answer.settled_step_ms
        unit, more = time_unit(before_ms), _more_examples(answer)
        return f"A step of settled workers would take {unit.text(settled_ms)} instead of {unit.text(before_ms)}{more}."
    after_ms = step_ms(header, answer.predicted_ms, answer.runtime_ms, answer.scope)
    if header.step_ms is None or after_ms is None:
        return ""
    unit = time_unit(header.step_ms)
    more = _more_examples(answer)
    return f"A step would take {unit.text(after_ms)} instead of {unit.text(header.step_ms)}{more}."


def examples_ratio(answer: Prediction) -> float | None:
    """How many times as many examples a second a training has in a changed world; None where no time is told."""
    if answer.predicted_ms is None or answer.predicted_ms <= 0:
        return None
    return answer.work_ratio * answer.runtime_ms / answer.predicted_ms


def _more_examples(answer: Prediction) -> str:
    """What becomes of a training's speed where a step does another amount of work."""
    faster = examples_ratio(answer)
    if answer.work_ratio == 1 or faster is None:
        return ""
    return f" and do {answer.work_ratio:g} times the work: {faster:.2f} times as many examples a second"


def step_ms(header: Header, predicted_ms: float | None, runtime_ms: float, scope: str) -> float | None:
    """What one step of a run takes where the whole of it takes so long, ms; None where it has none."""
    if header.step_ms is None or predicted_ms is None or scope != "all" or runtime_ms <= 0:
        return None
    return header.step_ms * predicted_ms / runtime_ms


def samples_sentence(header: Header, debug: Debug) -> str:
    """On what the figures rest: how many of the samples are in known code; empty without samples."""
    if not header.has_samples:
        return ""
    samples, units = debug.samples, debug.vocabulary.units
    share = percent(samples.resolved, samples.on_units)
    return f"{share} of the {grouped(samples.on_units)} stack samples of {units} are in code that an index has."


def other_words(debug: Debug, figures: Figures) -> str:
    """What the time on no resource was, cause by cause; empty where none is worth showing."""
    causes = [(cause, ms) for cause, ms in debug.other_ms.items() if ms >= WORTH_SHOWING * debug.runtime_ms]
    return "; ".join(
        f"{figures.text(ms)} {cause_words(cause, debug.vocabulary)}"
        for cause, ms in causes
        if not figures.is_nothing(ms)
    )


def disagreement_words(found: Disagreement) -> str:
    """Where a label says other than the log's own measurements."""
    label = f"the index says {found.resource} {100 * found.label_share:.0f} %"
    if found.label_share > found.at_most_share:
        bound = f"the log permits at most {100 * found.at_most_share:.0f} %"
    else:
        bound = f"the log has at least {100 * found.at_least_share:.0f} %"
    return f"{found.group}: {label}, {bound} of running time"


def cause_words(cause: Cause, vocabulary: Vocabulary) -> str:
    """What time on no resource was, after its seconds."""
    coordinating = f" ({vocabulary.coordinating})" if vocabulary.coordinating else ""
    told: dict[Cause, str] = {
        "no worker": f"waiting for {vocabulary.workers}",
        "no scope": f"{_none(vocabulary)} running (the program itself)",
        "coordinator": f"{vocabulary.coordinator} alone{coordinating}",
        "no unit": f"no {vocabulary.unit} running",
        "starting": f"starting and ending {vocabulary.units}",
        "upstream": f"waiting for {_upstream(vocabulary)}",
        "delegated": f"waiting for {_delegates(vocabulary)}",
        "unknown": "of unknown cause",
        "filling": "in buffers that fill until they are full or due",
        "queueing": "waiting for the records before it",
        "held": "waiting for answers of asynchronous requests",
        "resting": "asleep or waiting for what is outside, as the code has it",
    }
    return told[cause]


def _cause_name(cause: Cause, vocabulary: Vocabulary) -> str:
    """A cause of time on no resource within a sentence that names it: `the program itself comes next`."""
    named: dict[Cause, str] = {
        "no scope": "the program itself",
        "coordinator": f"the {vocabulary.coordinator} alone",
        "no unit": f"time without any {vocabulary.unit}",
        "delegated": f"waiting for {_delegates(vocabulary)}",
        "unknown": "time of unknown cause",
        "filling": "waiting in buffers",
    }
    return named.get(cause) or cause_words(cause, vocabulary)


def _upstream(vocabulary: Vocabulary) -> str:
    return vocabulary.upstream or f"{vocabulary.units} of other {vocabulary.groups}"


def _delegates(vocabulary: Vocabulary) -> str:
    return plural(vocabulary.delegate) if vocabulary.delegate else f"processes that compute for {vocabulary.units}"


def _none(vocabulary: Vocabulary) -> str:
    """No scope of any kind: `no query or job`."""
    return f"no {' or '.join((vocabulary.scope, *vocabulary.scopes[1:]))}"


def device_name(resource: str, resources: Sequence[Resource]) -> str:
    """A resource as a sentence begins with it: CPU, Disk, Network."""
    return capitalised(_device_word(resource, resources))


def _device_word(resource: str, resources: Sequence[Resource]) -> str:
    """A resource within a sentence: CPU, disk, network."""
    return next((each.device for each in resources if each.name == resource), resource)


def capitalised(text: str) -> str:
    """With its first letter large, the others as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def bottleneck_sentence(found: Bottleneck, debug: Debug, resources: Sequence[Resource], figures: Figures) -> str:
    """What holds a scope up, and by how many of how many seconds."""
    it = "this run" if debug.scope in ("all", "whole") else debug.scope
    if debug.unsubmitted is not None:
        it = "the work"
    if debug.flow is not None:
        it = "a record"
    if debug.unending:
        return f"{text_of(debug.unending, debug.words)}."
    if debug.doubts:
        return _doubtful_sentence(found, debug, resources, it, figures)
    if found.kind == "nothing":
        if debug.unsubmitted is not None:
            return f"Nothing to explain: nothing was submitted in all of {_whole_text(debug)}."
        return "Nothing to explain: no time passes between the first and the last event of the log."
    small = _small_files(debug, figures) if found.kind == "unknown" else ""
    return _held_up(found, debug, resources, it, figures) + small + _no_room(debug, figures)


def _whole_text(debug: Debug) -> str:
    whole_ms = 0.0 if debug.unsubmitted is None else debug.unsubmitted.whole_ms
    return time_unit(whole_ms).text(whole_ms)


def _no_room(debug: Debug, figures: Figures) -> str:
    """That units read anew what was to be kept in memory, where that cost much: it holds up whatever device it uses."""
    cost_ms = sum(each.cost_ms for each in debug.findings if isinstance(each, Kept))
    if cost_ms < MUCH * debug.runtime_ms:
        return ""
    words = debug.vocabulary
    cost = figures.text(cost_ms)
    return f" What {words.workers} were to keep in memory was not there: reading it anew cost up to {cost}."


def _small_files(debug: Debug, figures: Figures) -> str:
    """What many small files may have cost, beside time of unknown cause: nothing else tells of it."""
    costs = [each for each in debug.findings if each.is_untimed and each.cost_ms >= MUCH * debug.runtime_ms]
    if not costs:
        return ""
    most = max(costs, key=lambda each: each.cost_ms)
    return f" It may be the files: {text_of(most, debug.words)}, which cost up to {figures.text(most.cost_ms)}."


def _held_up(found: Bottleneck, debug: Debug, resources: Sequence[Resource], it: str, figures: Figures) -> str:
    words, whole_ms = debug.vocabulary, debug.runtime_ms
    of = f"{figures.number(found.time_ms)} of {figures.text(whole_ms)} ({figures.percent(found.time_ms, whole_ms)})"
    second = "" if found.second is None else _part_name(found.second, debug, resources)
    if found.kind == "resource":
        close = f" {capitalised(second)} comes close: {figures.text(found.second_ms)}." if second else ""
        if (rival := _rival(found, debug)) is not None:
            name = _resource_name(rival, debug, resources)
            close += f" Were most of that on {name}, {name} would hold {it} up instead."
        other = debug.or_else.get(found.name)
        doubt = "" if other is None else f" {text_of(other, debug.words)}."
        return f"{capitalised(_resource_name(found.name, debug, resources))} holds {it} up: {of}.{doubt}{close}"
    if found.second_ms < WORTH_A_WORD * whole_ms:
        second = ""
    if found.kind == "unknown":
        known = f" The largest part that is known is {second}: {figures.text(found.second_ms)}." if second else ""
        if found.name in debug.or_else:
            did = text_of(debug.or_else[found.name], debug.words)
            return f"No resource holds {it} up: for {of}, {did}.{known}"
        return f"What holds {it} up is not known: for {of}, nothing recorded says what the time went to.{known}"
    told: dict[str, str] = {
        "no worker": f"Waiting for {words.workers} holds {it} up: {of}.",
        "no scope": f"The program itself holds {it} up: for {of}, {_none(words)} is running.",
        "coordinator": f"The {words.coordinator} holds {it} up: it works alone for {of}.",
        "no unit": f"Gaps hold {it} up: for {of}, a {words.group} is under way, and none of its {words.units} runs.",
        "starting": f"Starting and ending {words.units} holds {it} up: {of}.",
        "upstream": f"Waiting for {_upstream(words)} holds {it} up: {of}.",
        "delegated": (
            f"Waiting for {_delegates(words)} holds {it} up: {of}. Whether they compute or wait themselves is not"
            " recorded."
        ),
        "filling": f"Waiting in buffers that fill until they are full or due holds {it} up: {of}.",
        "queueing": f"Waiting for the records before it holds {it} up: {of}.",
        "held": f"Waiting for answers of asynchronous requests holds {it} up: {of}.",
        "resting": f"Sleeping or waiting for what is outside, as the code has it, holds {it} up: {of}.",
    }
    alone = ""
    if found.alone_ms is not None and found.alone_ms - found.time_ms >= WORTH_A_WORD * whole_ms:
        alone = f" In all, no {words.unit} runs for {figures.text(found.alone_ms)}."
    following = f" {capitalised(second)} comes next: {figures.text(found.second_ms)}." if second else ""
    return f"{told[found.name]}{alone}{following}"


def noticeable_findings(findings: Iterable[Finding], figures: Figures) -> list[Finding]:
    """Findings whose cost does not round to nothing in the answer's unit; the JSON has the others too."""
    return [each for each in findings if not figures.is_nothing(each.cost_ms)]


def _rival(found: Bottleneck, debug: Debug) -> str | None:
    """The resource that would have more time than what holds a scope up if all of unknown cause were on it; None where
    none would, or little is unknown."""
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
    """A resource within a sentence.  Time on the CPU that is nearly all collecting garbage, as where a log has no other
    time on it, is told as that: a faster CPU is not what helps."""
    name = _device_word(resource, resources)
    on_it_ms = sum(each.resource_ms.get(resource, 0.0) for each in debug.groups)
    collecting_ms = sum(each.gc_ms for each in debug.groups)
    if resource == CPU and collecting_ms > 0 and collecting_ms >= NEARLY_ALL * on_it_ms:
        return f"garbage collection on the {name}"
    return name


def _doubtful_sentence(
    found: Bottleneck, debug: Debug, resources: Sequence[Resource], it: str, figures: Figures
) -> str:
    """What is missing, how much of the time that may be, and what the rest says."""
    whole_ms = debug.runtime_ms
    missing = "; ".join(text_of(each.missing, debug.words) for each in debug.doubts)
    sentence = f"What holds {it} up cannot be told: {missing}."
    if not figures.is_nothing(found.time_ms):
        share = figures.percent(found.time_ms, whole_ms)
        beyond = "" if all(each.time_ms > 0 for each in debug.doubts) else ", and time that the log does not have"
        sentence += f" That may be {figures.number(found.time_ms)} of {figures.text(whole_ms)} ({share}){beyond}."
    if found.second is None or figures.is_nothing(found.second_ms):
        return sentence
    devices = {each.name: each.device for each in resources}
    name = devices.get(found.second) or _cause_name(cast("Cause", found.second), debug.vocabulary)
    return f"{sentence} Of what is known, {name} takes most: {figures.text(found.second_ms)}."


def unsubmitted_sentence(debug: Debug, whole: Figures, figures: Figures) -> str:
    """How much was left out because nothing was submitted; empty where nothing was.  `whole` writes the whole time."""
    found = debug.unsubmitted
    if found is None or debug.runtime_ms <= 0:  # the first sentence says so
        return ""
    of = f"{whole.number(found.left_out_ms)} of {whole.text(found.whole_ms)}"
    whose = "" if found.attended else ", in which the program waited or was busy with something else"
    work = figures.text(debug.runtime_ms)
    return f"Nothing was submitted for {of}{whose}. All that follows is about the {work} of work."


def flow_sentences(debug: Debug, resources: Sequence[Resource]) -> tuple[str, ...]:
    """How many records a flow takes, how many it would, and what is busy all the time then; none for other runs."""
    flow, words = debug.flow, debug.vocabulary
    if flow is None:
        return ()
    named = {each.id: each.name for each in flow.stations}
    rate, with_what = per_second(flow.rate_per_s), _with(flow.limit_resource, resources) or _resting(flow)
    who = f"{named[flow.limit]} ({flow.limit})" if flow.limit in named else f"{words.worker} {flow.limit}"
    if flow.at_limit:
        if flow.limit_kind == "worker":
            return (f"The job is at its limit, {rate}: {who} has no CPU to spare, and its sources are held up.",)
        shown = {each.id: each for each in flow.stations}
        if flow.limit_kind == "hop":
            source, target = (shown[each] for each in flow.limit.split(">"))
            return (
                f"The job is at its limit, {rate}, and nothing that was measured is busy all the time:"
                f" {source.name} ({source.id}) is held up for {100 * source.blocked_share:.0f} % of its time, and"
                f" {target.name} ({target.id}), which takes from it, is busy for {100 * target.busiest_share:.0f} %. So"
                " what lies between holds it up, which may be the network.",
            )
        busiest = shown[flow.limit].busiest_share
        return (
            f"The job is at its limit, {rate}: {who} is busy for {100 * busiest:.0f} % of its time{with_what}, and"
            " holds up what feeds it.",
        )
    if flow.most_per_s is None:
        return (f"The job keeps up with {rate}; how many it would take is not known.",)
    busy = next(
        (f", now {100 * each.busiest_share:.0f} % of it" for each in flow.stations if each.id == flow.limit), ""
    )
    if flow.at_least:
        return (
            f"The job keeps up with {rate}, and would with {per_second(flow.most_per_s)} at least: so far from its"
            f" limit, each record takes more time than it would there. {who} would be full first{with_what}.",
        )
    return (
        f"The job keeps up with {rate}, and would with at most {per_second(flow.most_per_s)}: then {who} is busy all"
        f" the time{with_what}{busy}.",
    )


def most_sentence(flow: FlowChange, vocabulary: Vocabulary, resources: Sequence[Resource]) -> str:
    """How many records a flow would take in a changed world, and what is busy all the time then."""
    if flow.most_per_s is None:
        return ""
    low, high = flow.most_per_s_interval or (flow.most_per_s, flow.most_per_s)
    who = f"{vocabulary.worker} {flow.limit}" if flow.limit_kind == "worker" else flow.limit
    before = "" if flow.recorded_most_per_s is None else f" (recorded: {per_second(flow.recorded_most_per_s)})"
    if flow.at_least:
        return (
            f"{per_second(flow.most_per_s)} are sustained at least{before}, for so far from the limit each record takes"
            f" more time than it would there; {who} would be full first{_with(flow.limit_resource, resources)}."
        )
    return (
        f"At most {per_second(flow.most_per_s)} are sustained{before}, in 9 of 10 cases {counted_digits(low)} to"
        f" {counted_digits(high)}: then {who} is busy all the time{_with(flow.limit_resource, resources)}."
    )


def per_second(rate: float) -> str:
    """`12 300 records/s`, with three digits that count."""
    return f"{counted_digits(rate)} records/s"


def counted_digits(rate: float) -> str:
    """`12 300`, with three digits that count."""
    return f"{float(f'{rate:.3g}'):,.0f}".replace(",", " ") if rate >= 10 else f"{rate:.3g}"


def _resting(flow: FlowFacts) -> str:
    """That what is busy all the time is so for the most part with nothing."""
    share = next((each.resting_share for each in flow.stations if each.id == flow.limit), 0.0)
    return f", and sleeps or waits for what is outside for {100 * share:.0f} % of that" if share >= 0.5 else ""


def _with(resource: str, resources: Sequence[Resource]) -> str:
    device = next((each.device for each in resources if each.name == resource), "")
    return f", with {device}" if device else ""


def unmodelled_sentence(debug: Debug) -> str:
    """That a device computed of which no answer knows anything; empty where none did."""
    if debug.unmodelled is None:
        return ""
    return f"{plural(debug.unmodelled)} computed too and are not modelled: no what-if knows what more of them brings."


def bound_words(bound_ms: tuple[float | None, float | None] | None, runtime_ms: float, figures: Figures) -> str:
    """What can be said of a runtime that is not predicted; empty where that is nothing."""
    low, high = informative(bound_ms, runtime_ms) or (None, None)
    if low is not None and high is not None:
        same = figures.text(low) == figures.text(high)
        return figures.text(low) if same else f"{figures.number(low)} to {figures.text(high)}"
    if low is not None:
        return f"at least {figures.text(low)}"
    return "" if high is None else f"at most {figures.text(high)}"


def by_refusal(refused: Iterable[Prediction | WhatIf]) -> dict[Refusal, list[Prediction | WhatIf]]:
    """Unanswered questions by the reason."""
    found: dict[Refusal, list[Prediction | WhatIf]] = {}
    for answer in refused:
        for refusal in answer.refused:
            found.setdefault(refusal, []).append(answer)
    return found


def _why(refusal: Refusal, answers: Sequence[Prediction | WhatIf], tell: Told) -> str:
    """Why some questions have no answer, and what can be done about it."""
    return printable(tell(text_of(refusal, answers[0].words), answers[0].remedy))


def not_known_sentences(
    refused: Iterable[Prediction | WhatIf], runtime_ms: float, figures: Figures, tell: Told
) -> list[str]:
    """What is not answered, a sentence for each reason, with what can be said all the same."""
    asked: dict[str, list[str]] = {}  # refusals that differ in their numbers alone may read alike
    for refusal, answers in by_refusal(refused).items():
        for each in answers:
            bound = bound_words(each.bound_ms, runtime_ms, figures)
            setting = printable(f"{each.setting} ({bound})" if bound else each.setting)
            asked.setdefault(_why(refusal, answers, tell), []).append(setting)
    return [f"Not known: {', '.join(settings)}; {why}." for why, settings in asked.items()]


def refusal_sentence(points: Sequence[Prediction], figures: Figures, tell: Told) -> str:
    """Why there is no answer, with what can be said all the same."""
    first = points[0]
    reasons = list(dict.fromkeys(_why(refusal, answers, tell) for refusal, answers in by_refusal(points).items()))
    sentence = f"{first.setting}: no answer, for " if len(points) == 1 else "no answer: "
    sentence += "; ".join(reasons or ["the run does not tell"])
    bound = bound_words(first.bound_ms, first.runtime_ms, figures)
    return f"{sentence}; it would take {bound}" if bound else sentence


def same_sentence(same: Sequence[WhatIf]) -> str:
    """The usual questions that change nothing; empty where there are none."""
    return f"No effect (under 3 %): {', '.join(each.question for each in same)}." if same else ""


def measure_word(measure: str) -> str:
    """What the times of an answer are of, as a table's head says it."""
    return "latency" if measure in ("latency", "throughput") else "runtime"


def replay_sentence(replayed_ms: float, runtime_ms: float, figures: Figures) -> str:
    """How far off the model is where nothing changes."""
    off = figures.change(replayed_ms, runtime_ms)
    sentence = f"Check: for the run as it was, the model says {figures.text(replayed_ms)} ({off})."
    return f"{sentence} Do not rely on it." if abs(replayed_ms - runtime_ms) > FAR_OFF * runtime_ms else sentence


def check_sentences(verdict: Verdict, figures: Figures, ranges: str) -> str:
    """What stands below the what-ifs that change the runtime: how far off the model is, what a range is (`ranges` names
    it, where there are some), and of a run that failed up to what end all times are."""
    debug = verdict.debug
    if verdict.replayed_ms is None:
        return ""
    found = [replay_sentence(verdict.replayed_ms, debug.runtime_ms, figures)]
    if ranges:
        found.append(range_sentence(ranges))
    if debug.outcome is not None and debug.outcome.status == "failed":
        found.append("All these times are up to where the run failed.")
    return " ".join(found)


def range_sentence(name: str) -> str:
    """What the range is that stands beside a prediction."""
    return f"{name}: 9 of 10 reruns would end there."


def knee_sentence(knee: Knee, sweep: Sweep) -> str:
    """Where more stops being worth it, and by what rule."""
    setting, rule = sweep.points[knee.point].setting, f"{100 * knee.least_share:.0f} %"
    if knee.point + 1 == len(sweep.points):
        then = "it does up to the last value asked"
    else:
        then = "here it never does" if knee.point == 0 else f"beyond {setting} it saves less"
    what = " of the time for the same work" if any(each.work_ratio != 1 for each in sweep.points) else ""
    return f"More is worth it while doubling it saves {rule}{what}: {then}."


def saving_text(saving: Saving, figures: Figures) -> str:
    """What a recommendation saves, how that is known, and within what range; empty where nothing is known of it."""
    if saving.ms is None:
        return "" if saving.range_ms is None else f"saves at most {figures.text(saving.range_ms[1])} ({saving.basis})"
    saves = f"saves about {figures.text(saving.ms)} ({saving.basis}"
    if saving.range_ms is None:
        return f"{saves}; no rerun has checked it)"
    low, high = saving.range_ms
    if figures.is_nothing(low):
        return f"{saves}; 90 % range: up to {figures.text(high)})"
    if low < 0:
        between = f"{figures.text(high)} shorter to {figures.text(-low)} longer"
        return f"{saves}; 90 % range: {between}, for runs vary by themselves)"
    return f"{saves}; 90 % range: {figures.number(low)} to {figures.text(high)})"


def nothing_to_do(verdict: Verdict) -> str:
    """The sentence that stands for recommendations; empty where there are some, or no time that any could save."""
    if verdict.recommendations or verdict.debug.runtime_ms <= 0:
        return ""
    if not verdict.debug.conclusive:
        return "Analyze a whole log of the job: what this one lacks decides what would help."
    least = f"{100 * NOTICEABLE:.0f} % of the time"
    also = " and 1 s" if happens_once(verdict.debug, verdict.header) else ""
    return f"Nothing that CrystalPerf can work out saves as much as {least}{also}."


# How it ended ---------------------------------------------------------------------------------------------------------


def outcome_sentences(debug: Debug, figures: Figures) -> tuple[str, ...]:
    """How a scope ended, the most important first, four at most; none where all went well."""
    ended, words = debug.outcome, debug.vocabulary
    if ended is None:
        return ()
    whole = debug.scope in ("all", "whole")
    whose = "The run" if whole else debug.scope
    scopes = [each for each in ended.tallies if each.kind not in (words.group, words.unit)]
    failed = next((each for each in scopes if each.failed), None) or ended.tally(words.group)
    told = _why_failed(ended) if failed.failed else ""
    many = f"{failed.failed} of {counted(failed.total, failed.kind)} failed"
    found = []
    if ended.status == "failed":
        if not failed.failed:
            told = f"its process ended with exit code {ended.exit_code}"
        elif failed.total > 1 or whole:
            told = f"{many}{told}"
        else:
            told = told.removeprefix(": ")
        found.append(f"{whose} failed: {told}.")
    elif ended.status == "unfinished":
        open_ones = next((each for each in scopes if each.unfinished), None)
        if open_ones:
            under_way = f"{counted(open_ones.unfinished, open_ones.kind)} under way"
            if ended.cut:
                found.append(f"The log ends before {'the run' if whole else debug.scope} does, with {under_way}.")
            else:
                found.append(f"The run ended with {under_way}." if whole else f"The log has no end of {debug.scope}.")
        if failed.failed:
            found.append(f"{many}{told}.")
    elif failed.failed:
        found.append(f"{whose} went on to its end, but {many}{told}.")
    called_off = next((each for each in scopes if each.cancelled), None)
    if called_off:
        were = "was" if called_off.cancelled == 1 else "were"
        found.append(f"{called_off.cancelled} of {counted(called_off.total, called_off.kind)} {were} cancelled.")
    found += [
        *_units_failed(ended, words, figures, with_reason=not failed.failed),
        *_workers_lost(ended, words, figures),
    ]
    if ended.memory is not None and ended.memory != "device":  # of a device the error itself says it
        found.append(memory_sentence(ended.memory, words))
    return tuple(found)


def _why_failed(ended: Outcome) -> str:
    errors = list(
        dict.fromkeys(explained(each.error) for each in ended.failures if each.kind == ended.failures[0].kind)
    )
    others = f" (and {counted(len(errors) - 1, 'other error')})" if len(errors) > 1 else ""
    return f": {_cut(errors[0])}{others}" if errors else ""


def _units_failed(ended: Outcome, words: Vocabulary, figures: Figures, *, with_reason: bool) -> list[str]:
    units = ended.tally(words.unit)
    with_workers = sum(each.redone_units for each in ended.lost) >= units.failed
    if not units.failed or (with_workers and ended.names_loss):
        return []  # or it is told of their workers
    took = f"which took {figures.text(ended.failed_ms)} of {words.unit} time"
    sentence = f"{units.failed} of {counted(units.total, words.unit)} failed, {took}"
    if ended.retried_units == units.failed:
        sentence += ", and ran again"
    elif ended.retried_units:
        sentence += f"; {ended.retried_units} of them ran again"
    reason = f": {_cut(ended.reason)}" if with_reason and ended.reason else ""
    return [f"{sentence}{reason}."]


def _workers_lost(ended: Outcome, words: Vocabulary, figures: Figures) -> list[str]:
    lost = ended.lost
    if not lost:
        return []
    when = "" if len(lost) == 1 else "the first "
    sentence = f"{len(lost)} of {counted(ended.workers, words.worker)} {'was' if len(lost) == 1 else 'were'} lost, "
    sentence += f"{when}{figures.text(lost[0].lost_ms)} after the start: {_cut(explained(lost[0].why))}."
    redone = sum(each.redone_units for each in lost)
    if redone:
        took = figures.text(sum(each.redone_ms for each in lost))
        whose = "its" if len(lost) == 1 else "their"
        sentence += f" {redone} of {whose} {words.units} ran again, which had taken {took}."
    return [sentence]


def memory_sentence(kind: Exhausted, words: Vocabulary) -> str:
    """What ran out of memory."""
    told: dict[Exhausted, str] = {
        "container": f"A container ran out of memory: {with_article(words.worker)} used more than it was given in all.",
        "heap": f"A heap ran out of memory: what {words.units} held did not fit.",
        "device": f"A device ran out of memory, such as a GPU: what {words.units} held on it did not fit.",
        "killed": (
            f"{capitalised(with_article(words.worker))} was killed from outside, most often for more memory than its"
            " container may use."
        ),
    }
    return told[kind]


def workers_words(header: Header) -> str:
    """How many workers a run had: 9 workers, or at most 2 workers at a time (9 in all)."""
    words = header.vocabulary
    if header.workers_in_all <= header.workers:
        return counted(header.workers, words.worker)
    return f"at most {counted(header.workers, words.worker)} at a time ({header.workers_in_all} in all)"


def _cut(text: str) -> str:
    """A text of the log, short enough for a line or two, without a stop at its end."""
    return (text if len(text) <= _LONGEST_ERROR else f"{text[: _LONGEST_ERROR - 1]}…").rstrip(". ")
