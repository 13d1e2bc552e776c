"""Sentences and table cells of the ledger, for every interface."""

from __future__ import annotations

from collections.abc import Iterator

from crystalperf.query.results.ledger import Accuracy, Followed, JobLedger, Ledger, Match
from crystalperf.query.text.figures import change, counted, time_unit

JOB_HEADS = ("job", "kept", "held", "runs", "error", "absolute", "in range")
MATCH_HEADS = ("run of", "setting", "predicted", "actual", "error", "90 % range", "held")
MONTH_HEADS = ("month", "held", "runs", "error", "absolute", "in range")

_UNKNOWN = "-"


def headline(answer: Ledger) -> str:
    """The accuracy over all jobs in one sentence, or why there is none."""
    kept = sum(each.kept for each in answer.jobs)
    seen = answer.accuracy
    if seen is None:
        later = "" if answer.backtest else " that began later"
        return (
            f"No figure yet: of {counted(kept, 'prediction')}, none has a run with the predicted resources{later}."
            if kept
            else f"No predictions are kept yet in {answer.file}."
        )
    held = f"{counted(seen.predictions, 'prediction')} held against {counted(seen.runs, 'run')}"
    text = f"{held}: median error {ratio(seen.median_error_ratio)}, absolute {_absolute(seen)}"
    if seen.inside_share is None or seen.inside_range_share is None:
        return f"{text}."
    low, high = seen.inside_range_share
    return (
        f"{text}; {100 * seen.inside_share:.0f} % of the runs are in the 90 % range of their prediction (90 % interval"
        f" {100 * low:.0f} to {100 * high:.0f} %)."
    )


def notes(answer: Ledger) -> Iterator[str]:
    """The limits of the answer, and how to get more of it."""
    file = answer.file
    if answer.backtest:
        yield "Runs that began before the prediction count as well, so this is a backtest."
    if answer.unfinished_runs:
        yield f"{counted(answer.unfinished_runs, 'later run')} failed or has no end in its log, so it is not compared."
    if answer.unstated and answer.accuracy is None:
        yield (
            f"{counted(answer.unstated, 'prediction')} changed settings that logs do not record, such as the network:"
            " state them for a run, RUN,network=10Gbps, to compare it."
        )
    if answer.damaged_lines:
        shown = ", ".join(map(str, answer.damaged_lines[:5])) + (", …" if len(answer.damaged_lines) > 5 else "")
        yield (
            f"{file}: {counted(len(answer.damaged_lines), 'line')} cannot be read (number {shown}); all others count,"
            " so delete these lines or leave them."
        )
    if not answer.writable:
        yield f"{file}: cannot be written, so new predictions are not kept; name another file in CRYSTALPERF_LEDGER."


def job_cells(found: JobLedger) -> tuple[str, ...]:
    """A row of JOB_HEADS."""
    return found.name, str(found.kept), *_cells(found.accuracy)


def month_cells(month: str, found: Accuracy) -> tuple[str, ...]:
    """A row of MONTH_HEADS."""
    return month, *_cells(found)


def _cells(seen: Accuracy | None) -> tuple[str, ...]:
    if seen is None:
        return (_UNKNOWN,) * 5
    return (
        str(seen.predictions),
        str(seen.runs),
        ratio(seen.median_error_ratio),
        _absolute(seen),
        _UNKNOWN if seen.inside_share is None else inside(seen),
    )


def match_cells(found: Match) -> tuple[str, ...]:
    """A row of MATCH_HEADS."""
    unit = time_unit(max(found.predicted_ms, found.actual_ms))
    scope = "" if found.scope == "all" else f" ({found.scope})"
    ends, held = _UNKNOWN, _UNKNOWN
    if found.range_ms is not None:
        ends = f"{unit.number(found.range_ms[0])} to {unit.number(found.range_ms[1])}"
        held = "inside" if found.inside else "outside"
    return (
        found.started_at[:10],
        f"{found.setting}{scope}",
        unit.text(found.predicted_ms),
        unit.text(found.actual_ms),
        ratio(found.error_ratio),
        ends,
        held,
    )


def followed_sentence(found: Followed) -> str:
    """Whether a recommendation was applied, and what that saved."""
    values = ", ".join(f"{name}={value}" for name, value in found.changes.items()) or found.text
    seen, saved_ms = found.difference, found.saved_ms
    if seen is None or saved_ms is None:
        words = {
            "applied": "applied, but no run before it is known",
            "applied-among-others": "applied together with other settings, so the saving is unknown",
            "changed-otherwise": "later runs have other values",
            "not-applied": "not applied in later runs",
            "no-later-run": "no later run yet",
            "unknown": "logs do not record whether it was applied",
        }[found.status]
        return f"{values}: {words}; claimed {_claimed(found)}"
    unit = time_unit(max(seen.before_ms, seen.after_ms))
    low, high = change(seen.ratio_low, 1.0), change(seen.ratio_high, 1.0)
    noise = (
        "" if seen.verdict == "shorter" else ", not beyond noise" if seen.verdict == "no change" else ", so it harmed"
    )
    more = f", together with {counted(found.together, 'other recommendation')}" if found.together else ""
    runs = f"{counted(seen.runs_before, 'run')} before, {seen.runs_after} after"
    return (
        f"{values}: applied{more}; {'saved' if saved_ms >= 0 else 'lost'} {unit.text(abs(saved_ms))} of"
        f" {unit.text(seen.before_ms)}"
        f" ({change(seen.after_ms, seen.before_ms)}, 90 % range {low} to {high}{noise}; {runs}); claimed"
        f" {_claimed(found)}"
    )


def _claimed(found: Followed) -> str:
    ends = found.claimed_range_ms
    if found.claimed_ms is not None:
        return time_unit(abs(found.claimed_ms)).text(found.claimed_ms)
    return "nothing" if ends is None else f"at most {time_unit(ends[1]).text(ends[1])}"


def ratio(value: float) -> str:
    """A signed error in percent."""
    return change(1.0 + value, 1.0)


def _absolute(seen: Accuracy) -> str:
    return f"{100 * seen.median_absolute_error_ratio:.0f} %"


def inside(seen: Accuracy) -> str:
    """The share of runs inside the range, with its 90 % interval: `92 % (75 to 98 %)`."""
    if seen.inside_share is None:
        return _UNKNOWN
    interval = seen.inside_range_share
    ends = "" if interval is None else f" ({100 * interval[0]:.0f}-{100 * interval[1]:.0f} %)"
    return f"{100 * seen.inside_share:.0f} %{ends}"
