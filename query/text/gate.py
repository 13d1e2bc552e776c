"""Sentences and table cells of budgets, for every interface."""

from __future__ import annotations

from crystalperf.query.results import gate
from crystalperf.query.results.words import Words
from crystalperf.query.text.figures import counted, grouped, time_unit, volume
from crystalperf.query.text.sentences import CORE, text_of

HEADS = ("budget", "limit", "value", "90 % range", "outcome")
"""The columns of ``cells``."""

_MEASURES = {
    "runtime": "runtime",
    "step": "duration of a step",
    "latency": "latency of a record",
    "throughput": "time per record",
}


@CORE.of(gate.MetricMissing)
def metric_missing(found: gate.MetricMissing, _words: Words) -> str:
    return f"the runs do not record {found.metric}"


@CORE.of(gate.LogsIncomplete)
def logs_incomplete(found: gate.LogsIncomplete, _words: Words) -> str:
    return f"the log of {', '.join(found.runs)} does not reach the end of the application, so the value is too small"


@CORE.of(gate.RangeOnBothSides)
def range_on_both_sides(_found: gate.RangeOnBothSides, _words: Words) -> str:
    return "the 90 % range of the prediction is on both sides of the budget; a run with these resources would decide"


@CORE.of(gate.BaselineTooNoisy)
def baseline_too_noisy(found: gate.BaselineTooNoisy, _words: Words) -> str:
    if found.runs_needed is None:
        more = f"even {found.runs_most} runs on each side would not decide, because the difference is so near to it"
    else:
        more = f"about {found.runs_needed} runs on each side would decide"
    return f"the 90 % range is on both sides of the budget; {more}"


@CORE.of(gate.PredictionRefused)
def prediction_refused(found: gate.PredictionRefused, words: Words) -> str:
    return f"no prediction: {text_of(found.refused, words)}"


def headline(answer: gate.Gate) -> str:
    """The outcome in one sentence."""
    total = len(answer.checks)
    names = {
        outcome: [each.name for each in answer.checks if each.outcome == outcome] for outcome in ("over", "undecided")
    }
    undecided = f"Undecided: {', '.join(names['undecided'])}"
    if names["over"]:
        return f"Over budget: {', '.join(names['over'])}." + (f" {undecided}." if names["undecided"] else "")
    if names["undecided"]:
        return f"{undecided}."
    return f"Within {'the budget' if total == 1 else f'all {total} budgets'}."


def cells(check: gate.Check) -> tuple[str, ...]:
    """A row of HEADS."""
    value = "unknown" if check.value is None else amount(check, check.value, signed=True)
    return check.name, check.stated, value, _range(check), check.outcome


def amount(check: gate.Check, value: float, *, signed: bool = False) -> str:
    """A value in the unit of a check; `signed` is whether it is a change, if the check is of one."""
    if check.unit == "ms":
        return time_unit(value).text(value)
    if check.unit == "bytes":
        return volume(value)
    if check.unit == "count":
        return grouped(round(value))
    sign = "+" if signed and check.difference is not None else ""
    return f"{100 * value:{sign}.3g} %"


def _range(check: gate.Check) -> str:
    if check.low is None and check.high is None:
        return ""
    if check.low is None or check.high is None:
        low, high = check.low, check.high
        return f"at most {amount(check, high)}" if high is not None else f"at least {amount(check, low or 0.0)}"
    return f"{amount(check, check.low, signed=True)} to {amount(check, check.high, signed=True)}"


def check_sentence(check: gate.Check, words: Words) -> str:
    """One check as a sentence without its end: `runtime: 86.3 s, over the budget of 60.0 s`."""
    _, limit, value, around, _ = cells(check)
    around = f" (90 % range: {around})" if around else ""
    state = {"within": "within", "over": "over", "undecided": "undecided against"}[check.outcome]
    why = f"; {text_of(check.undecided, words)}" if check.undecided is not None else ""
    return f"{check.name}: {value}{around}, {state} the budget of {limit}{why}"


def notes(answer: gate.Gate) -> list[str]:
    """Sentences that help to judge the values: the sides, the basis of a range, other differences of the sides."""
    found = []
    compared = next((each.difference for each in answer.checks if each.difference is not None), None)
    if compared is not None:
        unit = time_unit(max(compared.before_ms, compared.after_ms))
        sides = f"{unit.text(compared.after_ms)} against {unit.text(compared.before_ms)}"
        counts = f"medians of {counted(compared.runs_after, 'run')} and {compared.runs_before}"
        found.append(f"{_MEASURES[answer.measure]}: {sides} ({counts})".capitalize() + ".")
        if compared.source == "typical spread":
            found.append(
                "No side has repeated runs, so the range is that of the usual spread of such jobs: record more runs."
            )
    elif len(answer.runs) > 1:
        found.append(f"Values are medians of {counted(len(answer.runs), 'run')}.")
    for each in answer.unlike:
        what = {
            "input": "input",
            "workers": answer.words.vocabulary.workers,
            "slots": f"{answer.words.vocabulary.slots} of each {answer.words.vocabulary.worker}",
        }[each.what]
        before, after = (volume(x) if each.what == "input" else grouped(round(x)) for x in (each.before, each.after))
        found.append(f"Other {what}: {after} instead of {before}.")
    return found
