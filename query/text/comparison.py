"""Sentences of a comparison: the verdict, the causes, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.query.results import comparison as results
from crystalperf.query.results.words import Words
from crystalperf.query.text.answers import capitalised, cause_words
from crystalperf.query.text.figures import TimeUnit, change, percent, time_unit
from crystalperf.query.text.sentences import CORE, text_of
from crystalperf.query.text.stream_comparison import stream_verdict, what_takes
from crystalperf.query.trace.amounts import counted, lasting, volume
from crystalperf.query.trace.vocabulary import plural, with_article

OPERATORS_SHOWN = 3
SETTINGS_SHOWN = 2


def unit_of(found: results.Comparison) -> TimeUnit:
    """The unit of all times of a comparison; those of a step have a decimal, because parts of it are short."""
    longest_ms = max(found.before.runtime_ms, found.after.runtime_ms)
    unit = time_unit(longest_ms)
    if found.stream is not None and longest_ms < 1:
        return TimeUnit("µs", 1e-3, 1)
    return TimeUnit("ms", 1.0, 1) if found.step is not None and 20 <= longest_ms < 2_000 else unit


def verdict_sentence(found: results.Comparison) -> str:
    """Whether the runs after took longer, with the range of the ratio and its basis."""
    seen = found.difference
    before_ms, after_ms = found.before.runtime_ms, found.after.runtime_ms
    unit = unit_of(found)
    what = what_takes(found) if found.step is None else f"{with_article(found.words.vocabulary.scope)} takes "
    times = f"{what}{unit.text(after_ms)} instead of {unit.text(before_ms)} ({change(after_ms, before_ms)})"
    low, high = (change(each, 1.0) for each in (seen.ratio_low, seen.ratio_high))
    runs = seen.runs_before + seen.runs_after
    basis = {
        "repeated runs": f"by the spread of {runs} runs",
        "typical spread": "by the usual spread of such jobs",
    }[seen.source]
    sure = f"90 % range: {low} to {high}, {basis}"
    if first := stream_verdict(found):
        return f"{first}."
    if not found.decided:
        return f"Not decided: {times}; not all runs are complete."
    if seen.verdict != "no change":
        return f"{capitalised(seen.verdict)}: {times}; {sure}."
    if round(100 * seen.ratio_low) > 100 or round(100 * seen.ratio_high) < 100:  # as the range is printed
        word = "longer" if seen.ratio > 1 else "shorter"
        return f"Probably {word}: {times}; {sure}. Compare several runs of each side to be sure."
    return f"No change beyond noise: {times}; {sure}."


def examples_sentence(found: results.Comparison) -> str:
    """The time of an example, if both sides have batches of other sizes; '' otherwise."""
    step = found.step
    if step is None or not step.before.batch or not step.after.batch or step.before.batch == step.after.batch:
        return ""
    before_ms, after_ms = found.before.runtime_ms / step.before.batch, found.after.runtime_ms / step.after.batch
    before, after = (f"{each:.3g} ms" for each in (before_ms, after_ms))
    return f"An example takes {after} instead of {before} ({change(after_ms, before_ms)})."


def prediction_sentence(found: results.PredictedChange, words: Words) -> str:
    """The prediction of the runs before for the resources of those after."""
    settings = ", ".join(found.settings)
    made = "" if found.made_at is None else f" on {found.made_at[:10]}"
    if found.predicted_ms is None or found.error_ratio is None:
        why = "; ".join(text_of(each, words) for each in found.refused)
        return f"Predicted from the first side for {settings}: nothing{f', because {why}' if why else ''}."
    unit = time_unit(max(found.predicted_ms, found.actual_ms))
    off = abs(found.error_ratio)
    rest = f"{percent(off, 1.0)} too {'long' if found.error_ratio > 0 else 'short'}" if off >= 0.005 else "exact"
    held = ""
    if found.interval_ms is not None:
        low, high = found.interval_ms
        inside = low <= found.actual_ms <= high
        held = f"; {'inside' if inside else 'outside'} the 90 % range of {unit.number(low)} to {unit.text(high)}"
    return f"Predicted from the first side{made} for {settings}: {unit.text(found.predicted_ms)}, {rest}{held}."


def setting_words(found: results.SettingChange) -> str:
    """A setting with its old and new value."""
    before, after = ("default" if each is None else each for each in (found.before, found.after))
    return f"{found.key}: {before} → {after}"


def operator_words(found: Sequence[results.OperatorChange], *, count: bool = True) -> str:
    """The operators that were added and that are gone, without those that are neither; each with its number."""
    added = [_times(each.name, each.after - each.before if count else 1) for each in found if each.after > each.before]
    gone = [_times(each.name, each.before - each.after if count else 1) for each in found if each.before > each.after]
    return "; ".join(
        f"{word} {', '.join(names[:OPERATORS_SHOWN])}{' …' if len(names) > OPERATORS_SHOWN else ''}"
        for word, names in (("added:", added), ("gone:", gone))
        if names
    )


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{count} × {name}"


def _because(settings: Sequence[results.SettingChange]) -> str:
    """The settings that may be the reason, to follow a cause."""
    texts = [setting_words(each) for each in settings[:SETTINGS_SHOWN]]
    return f" ({'; '.join(texts)})" if texts else ""


def _for_same(before_bytes: float, after_bytes: float) -> str:
    """The bytes that both sides read."""
    if before_bytes <= 0 and after_bytes <= 0:
        return "for the same work"
    if abs(after_bytes - before_bytes) <= 0.05 * max(before_bytes, after_bytes):
        return f"for the same {volume(after_bytes)}"
    return f"for {volume(after_bytes)} instead of {volume(before_bytes)}"


def instead(before_ms: float, after_ms: float) -> str:
    """Two times, in a unit that shows their difference."""
    before, after = lasting(before_ms), lasting(after_ms)
    if before == after and max(before_ms, after_ms) < 1_000:
        before, after = f"{before_ms:.0f} ms", f"{after_ms:.0f} ms"
    return f"{after} instead of {before}"


@CORE.of(results.ChangedInput)
def changed_input(part: results.ChangedInput, _words: Words) -> str:
    word = "more" if part.after_bytes > part.before_bytes else "less"
    return f"{word} input: {volume(part.after_bytes)} instead of {volume(part.before_bytes)}"


@CORE.of(results.ChangedData)
def changed_data(part: results.ChangedData, words: Words) -> str:
    word = "more" if part.after_bytes > part.before_bytes else "less"
    texts = f"{volume(part.after_bytes)} instead of {volume(part.before_bytes)}"
    return f"{word} data for {plural(words.vocabulary.stage)} from the same input: {texts}"


@CORE.of(results.ChangedSlots)
def changed_slots(part: results.ChangedSlots, words: Words) -> str:
    vocabulary = words.vocabulary
    counts = f"{part.after_slots:.0f} instead of {part.before_slots:.0f}"
    if part.after_slots == part.before_slots:
        return f"{vocabulary.slots} that came at another time"
    word = "fewer" if part.after_slots < part.before_slots else "more"
    workers = ""
    if part.before_workers and part.after_workers and part.before_workers != part.after_workers:
        workers = f", on {counted(round(part.after_workers), vocabulary.worker)} instead of {part.before_workers:.0f}"
    return f"{word} {vocabulary.slots}: {counts}{workers}"


@CORE.of(results.ChangedMemory)
def changed_memory(part: results.ChangedMemory, words: Words) -> str:
    before, after = part.before_memory_bytes, part.after_memory_bytes
    facts = []
    if before and after and before != after:
        facts.append(f"{volume(after)} instead of {volume(before)} for each {words.vocabulary.worker}")
    else:
        facts += [setting_words(each) for each in part.settings[:SETTINGS_SHOWN]]
    if part.before_spill_bytes or part.after_spill_bytes:
        facts.append(f"spilled {volume(part.after_spill_bytes)} instead of {volume(part.before_spill_bytes)}")
    if part.before_gc_ms or part.after_gc_ms:
        facts.append(f"garbage collection {instead(part.before_gc_ms, part.after_gc_ms)}")
    return f"memory: {'; '.join(facts)}"


@CORE.of(results.Spilled)
def spilled(part: results.Spilled, _words: Words) -> str:
    return f"spilling: {volume(part.after_bytes)} instead of {volume(part.before_bytes)}"


@CORE.of(results.Collected)
def collected(part: results.Collected, words: Words) -> str:
    return f"garbage collection: {instead(part.before_ms, part.after_ms)} of {words.vocabulary.task} time"


@CORE.of(results.DeviceRate)
def device_rate(part: results.DeviceRate, words: Words) -> str:
    times = instead(part.before_ms, part.after_ms)
    same = _for_same(part.before_bytes, part.after_bytes)
    return f"{words.device_name(part.resource)}: {times} of {words.vocabulary.task} time {same}"


@CORE.of(results.ComputeTime)
def compute_time(part: results.ComputeTime, _words: Words) -> str:
    same = _for_same(part.before_bytes, part.after_bytes)
    return f"CPU time of the same plan: {instead(part.before_ms, part.after_ms)} {same}"


@CORE.of(results.ComputeWait)
def compute_wait(part: results.ComputeWait, words: Words) -> str:
    task = words.vocabulary.task
    if part.start_ratio is None:
        return f"waiting for a CPU: {instead(part.before_ms, part.after_ms)} of {task} time"
    start = f"starting a {task} takes {part.start_ratio:.1f} times as long"
    speed = "slower or more shared" if part.start_ratio > 1 else "faster or less shared"
    if (part.after_ms - part.before_ms) * part.ms <= 0:  # another number of slots changes the sum of all tasks, too
        return f"CPUs are {speed}: {start}"
    return f"CPUs are {speed}: {start}; time on no resource {instead(part.before_ms, part.after_ms)}"


@CORE.of(results.Delegated)
def delegated(part: results.Delegated, words: Words) -> str:
    who = plural(words.vocabulary.delegate) if words.vocabulary.delegate else "processes that compute for others"
    return f"{who}: {instead(part.before_ms, part.after_ms)} for the same data"


@CORE.of(results.Reading)
def reading(part: results.Reading, words: Words) -> str:
    same = _for_same(part.before_bytes, part.after_bytes)
    return f"{plural(words.vocabulary.stage)} that read input: {instead(part.before_ms, part.after_ms)} {same}"


@CORE.of(results.ChangedVersion)
def changed_version(part: results.ChangedVersion, _words: Words) -> str:
    return f"version {part.after} instead of {part.before}: another CPU time of the same plan"


@CORE.of(results.ChangedSkew)
def changed_skew(part: results.ChangedSkew, words: Words) -> str:
    skews = f"{part.after_skew:.1f} times the mean, instead of {part.before_skew:.1f}"
    return f"data skew: the largest {words.vocabulary.task} reads {skews}"


@CORE.of(results.ChangedBalance)
def changed_balance(part: results.ChangedBalance, words: Words) -> str:
    shares = f"{percent(part.after_use_share, 1.0)} instead of {percent(part.before_use_share, 1.0)}"
    return f"use of {words.vocabulary.slots}: {shares} while the {words.vocabulary.stage} runs"


@CORE.of(results.ChangedTasks)
def changed_tasks(part: results.ChangedTasks, words: Words) -> str:
    counts = f"{part.after_tasks:.0f} instead of {part.before_tasks:.0f}"
    word = "more" if part.after_tasks > part.before_tasks else "fewer"
    return f"{word} {words.vocabulary.tasks}: {counts}{_because(part.settings)}"


@CORE.of(results.TaskOverhead)
def task_overhead(part: results.TaskOverhead, words: Words) -> str:
    times = f"starting and ending {words.vocabulary.tasks}: {instead(part.before_ms, part.after_ms)}"
    if part.before_tasks == part.after_tasks:
        return times
    return f"{times}, for {part.after_tasks:.0f} instead of {part.before_tasks:.0f}"


@CORE.of(results.LostWorkers)
def lost_workers(part: results.LostWorkers, words: Words) -> str:
    lost = f"{part.after_lost} instead of {part.before_lost}" if part.before_lost else f"{part.after_lost}"
    again = f"; work of {lasting(part.after_repeated_ms)} was lost" if part.after_repeated_ms > 0 else ""
    return f"lost {words.vocabulary.workers}: {lost}{again}, and replacements start cold"


@CORE.of(results.Repeated)
def repeated(part: results.Repeated, words: Words) -> str:
    return f"failed and repeated {words.vocabulary.tasks}: {instead(part.before_ms, part.after_ms)}"


@CORE.of(results.ChangedPlan)
def changed_plan(part: results.ChangedPlan, _words: Words) -> str:
    operators = operator_words(part.operators)
    return f"another plan{f', {operators}' if operators else ''}{_because(part.settings)}"


@CORE.of(results.ChangedWork)
def changed_work(part: results.ChangedWork, words: Words) -> str:
    stage = words.vocabulary.stage
    sides = [
        f"{counted(count, stage)} only {word}"
        for count, word in ((part.after_only, "after"), (part.before_only, "before"))
        if count
    ]
    return f"other work: {', '.join(sides)}"


@CORE.of(results.Waited)
def waited(part: results.Waited, words: Words) -> str:
    return f"{cause_words(part.cause, words.vocabulary)}: {instead(part.before_ms, part.after_ms)}"


@CORE.of(results.Unexplained)
def unexplained(_part: results.Unexplained, _words: Words) -> str:
    return "unexplained"


@CORE.of(results.DifferentJobs)
def different_jobs(found: results.DifferentJobs, words: Words) -> str:
    share = percent(found.matched_share, 1.0)
    return (
        f"only {share} of the time is in {plural(words.vocabulary.stage)} that both sides have: these are probably"
        " different jobs"
    )


@CORE.of(results.OneSideSampled)
def one_side_sampled(found: results.OneSideSampled, words: Words) -> str:
    side = "after" if found.after else "before"
    return (
        f"only the runs {side} have samples, so times of {words.vocabulary.tasks} by resource are not comparable: give"
        " both sides their recordings, or neither"
    )


@CORE.of(results.NotSucceeded)
def not_succeeded(found: results.NotSucceeded, _words: Words) -> str:
    what = "failed" if found.status == "failed" else "has no end in its log"
    return f"{found.run} {what}, so its time is not that of the whole job"


@CORE.of(results.PausesLeftOut)
def pauses_left_out(found: results.PausesLeftOut, _words: Words) -> str:
    sides = f"{lasting(found.before_ms)} before and {lasting(found.after_ms)} after"
    return (
        f"pauses in which nothing was submitted are left out, {sides}: scope `whole` includes them, as budgets of"
        " runtimes do"
    )
