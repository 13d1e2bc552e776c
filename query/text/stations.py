"""The stages of a stream as a table: their record rates and utilization."""

from __future__ import annotations

from crystalperf.query.results.answers import Debug
from crystalperf.query.text.answers import capitalised
from crystalperf.query.text.figures import grouped, percent


def stations_table(debug: Debug) -> tuple[list[str], list[list[str]]]:
    """Column heads, and a row for each stage in the order of the stream; both empty for other runs.

    The first two columns are the stage's id and name.
    """
    if debug.stream is None:
        return [], []
    words = debug.vocabulary
    rows = [
        [
            each.id,
            each.name,
            grouped(each.tasks),
            grouped(round(each.records_per_s)),
            f"{1e3 * each.record_ms:.1f}",
            percent(each.busy_share, 1.0),
            percent(each.busiest_share, 1.0),
            percent(each.blocked_share, 1.0),
        ]
        for each in debug.stream.stations
    ]
    return [capitalised(words.stage), "", words.tasks, "records/s", "µs each", "busy", "busiest", "blocked"], rows


def stations_note(debug: Debug) -> str:
    """The note that explains the table's shares."""
    words = debug.vocabulary
    return (
        f"Busy: the mean share of time in which its {words.tasks} were busy; busiest: the share of the busiest"
        f" {words.task}; blocked: the share in which backpressure from downstream blocked it."
    )
