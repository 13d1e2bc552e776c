"""Sentences of a tuned configuration, and its fragment of the framework's configuration file."""

from __future__ import annotations

from collections.abc import Iterator

from crystalperf.query.results import tuning as kinds
from crystalperf.query.results.tuning import TunedSetting, Tuning
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import change, counted_digits, printable, time_unit, volume
from crystalperf.query.text.recommendations import setting_text
from crystalperf.query.text.sentences import CORE, lines_of, text_of, texts_of

CORE.fixed(
    {
        kinds.Unmodelled: "CrystalPerf has no model of its effect",
        kinds.ValueNotRecorded: "the log does not record its value",
        kinds.WithoutEffect: "nothing in the run depends on it",
        kinds.ChangesResult: "it changes the result of the job; allow it with a limit, such as 4x",
    }
)


@CORE.of(kinds.NotPredicted)
def not_predicted(found: kinds.NotPredicted, words: Words) -> str:
    return text_of(found.refusal, words)


@CORE.of(TunedSetting)
def tuned_setting(found: TunedSetting, _words: Words) -> str:
    return f"{', '.join(map(setting_text, found.settings))}: {without_sentence(found)}"


def without_sentence(found: TunedSetting) -> str:
    """The effect of a line: the time and the cost of the tuned configuration without it."""
    ms, cost = found.saving.ms, found.cost_ratio
    parts = []
    if ms:
        parts.append(f"the run takes {time_unit(abs(ms)).text(abs(ms))} {'longer' if ms > 0 else 'less'}")
    if found.rate_ratio is not None and change(found.rate_ratio, 1.0) != "0 %":
        parts.append(f"the highest rate is {change(found.rate_ratio, 1.0)}")
    if cost is not None and change(cost, 1.0) != "0 %":
        parts.append(f"{'costs' if ms else 'the cost is'} {change(cost, 1.0)}")
    return f"without it, {' and '.join(parts)}" if parts else "belongs to the other settings"


def headline(answer: Tuning) -> str:
    """The predicted effect of the whole configuration, of several runs on the one that gains least."""
    if not answer.setting:
        return "No configuration within the limits is noticeably better than the recorded one."
    run = max(answer.runs, key=lambda each: (each.predicted_ms or 0.0) / each.work_ratio / each.runtime_ms)
    who = f"{printable(run.name)}: " if len(answer.runs) > 1 else ""
    if run.rate_per_s is not None:
        before, after = run.rate_per_s
        rate = f"up to {counted_digits(after)} records/s instead of {counted_digits(before)}"
        cost = ""
        if run.cost and run.predicted_cost and run.cost != run.predicted_cost:
            cost = f"; {cost_sentence(answer, run.predicted_cost, run.cost)}"
        return f"{who}{rate} ({change(after, before)}){cost}."
    unit, after_ms = time_unit(run.runtime_ms), run.predicted_ms or 0.0
    found = f"{who}{unit.text(after_ms)} instead of {unit.text(run.runtime_ms)} ({change(after_ms, run.runtime_ms)})"
    if run.work_ratio != 1:
        found += f" for {run.work_ratio:g} times the work"
    if run.interval_ms is not None:
        low, high = run.interval_ms
        found += f"; 90 % range: {unit.number(low)} to {unit.text(high)}"
    if run.cost and run.predicted_cost:
        found += f"; {cost_sentence(answer, run.predicted_cost, run.cost)}"
    return f"{found}."


def cost_sentence(answer: Tuning, after: float, before: float) -> str:
    """The cost of a run, tuned and recorded."""
    words = answer.words.vocabulary
    counted = {"price": "", "slot-hours": f" hours of {words.slots}", "worker-hours": f" hours of {words.counted}"}
    return f"cost {after:.3g}{counted[answer.cost_unit]} instead of {before:.3g} ({change(after, before)})"


def limits_text(answer: Tuning) -> str:
    """The limits of the search: `at most 32 slots and 64.0 GB of memory`."""
    words = answer.words.vocabulary
    parts = []
    for key, value in answer.limits.items():
        if key == "memory":
            shown = f"{volume(value)} of memory"
        elif key == "input":
            shown = f"{value:g} times the {words.word_of(key)}"
        else:
            shown = f"{value:g} {words.slots if key == 'cores' else words.counted}"
        is_stated = key in answer.stated or (key == "cores" and "workers" in answer.stated)
        parts.append(shown if is_stated else f"{shown} (as recorded)")
    return f"at most {' and '.join(parts)}" if parts else "no limits"


def robust_sentence(answer: Tuning) -> str:
    """Which run decides, of several; empty for one."""
    count = len(answer.runs)
    return (
        f"Of {count} runs, the one that gains least decides: the configuration is the best for it." if count > 1 else ""
    )


def machine_sentence(answer: Tuning) -> str:
    """The machines of a price list; empty without one."""
    return f"Machines: {answer.machine}, one {answer.words.vocabulary.worker} on each." if answer.machine else ""


def wider_sentence(answer: Tuning) -> str:
    """The slots that each worker needs of its machine, if these are more than recorded; empty otherwise."""
    words = answer.words.vocabulary
    for each in answer.settings:
        before, after = each.settings[0].before, each.settings[0].after
        if each.because == "cores" and isinstance(before, int) and isinstance(after, int) and after > before:
            needs = f"Each {words.worker} needs a machine for {after} {words.slots}"
            return f"{needs}; the log does not record whether yours are large enough."
    return ""


def unverified_sentence(answer: Tuning) -> str:
    """The settings of the work without reruns; empty without any."""
    if not answer.unverified:
        return ""
    words = ", ".join(answer.words.vocabulary.word_of(each) for each in answer.unverified)
    return f"No rerun has verified the effect of {words}; the range includes that there is none."


def not_tuned_sentences(answer: Tuning) -> Iterator[str]:
    """The settings that keep their values, by reason."""
    by_reason: dict[str, list[str]] = {}
    for each, why in zip(answer.not_tuned, texts_of(answer.not_tuned, answer.words), strict=True):
        by_reason.setdefault(why, []).append(each.setting)
    for why, settings in by_reason.items():
        yield f"Not tuned: {', '.join(settings)} ({why})"


def next_sentence(answer: Tuning) -> str:
    """The next run to record; empty if no range can be narrowed."""
    advice = answer.advice
    if advice is None or not advice.runs:
        return ""
    best = advice.runs[0]
    if best.setting == "unchanged":
        how = "once more unchanged"
    else:
        how = "once with this configuration" if best.setting == answer.setting else f"once with {best.setting}"
    now, then = 100 * advice.half_width_shares[0], 100 * best.half_width_shares[0]
    return f"Run the job {how} next: the range of its prediction narrows from ± {now:.0f} % to ± {then:.0f} %."


def fragment(answer: Tuning) -> str:
    """The configuration as a fragment of the framework's configuration file, with the reason of each line; if nothing
    is better, comments only."""
    comments = [
        f"crystalperf tune --goal {answer.goal}, {limits_text(answer)}",
        headline(answer),
        robust_sentence(answer),
        unverified_sentence(answer),
        *(f"{each}." for each in not_tuned_sentences(answer)),
        machine_sentence(answer) or wider_sentence(answer),
    ]
    lines = [f"# {printable(each)}" for each in comments if each]
    for each in answer.settings:
        lines += ["", f"# {printable(text_of(each, answer.words))}"]
        lines += [printable(line) for line in lines_of(each, answer.words)]
    return "".join(f"{line}\n" for line in lines)
