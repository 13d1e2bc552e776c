"""The ledger as an answer: predictions held against later runs, and recommendations that were applied, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.noise import Difference

Status = Literal["applied", "applied-among-others", "changed-otherwise", "not-applied", "no-later-run", "unknown"]
"""Whether later runs have the recommended values.

applied            all of them, and no other setting that matters differs, but for those of other recommendations
applied-among-others  all of them, but other settings differ as well, so the saving is not known
changed-otherwise  other values than before, but not the recommended ones
unknown            the recommendation changes something that logs do not record, such as the program
"""


@frozen
class Match:
    """A later run with the resources of a prediction.

    recorded, run  ids of the application that was predicted from, and of the later run
    made_at, started_at  times in UTC, ISO 8601
    setting        of the prediction; `scope` is the part of the run that it is about
    predicted_ms, actual_ms  for a training of one step
    """

    recorded: str
    run: str
    made_at: str
    started_at: str
    setting: str
    scope: str
    predicted_ms: float
    range_ms: tuple[float, float] | None
    actual_ms: float

    @property
    def error_ratio(self) -> float:
        """(predicted − actual) / actual."""
        return self.predicted_ms / self.actual_ms - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the actual duration is in the 90 % range of the prediction; None without a range."""
        return None if self.range_ms is None else self.range_ms[0] <= self.actual_ms <= self.range_ms[1]


@frozen
class Accuracy:
    """The accuracy of several predictions.

    predictions     of which a later run is known; `runs` are these later runs
    median_error_ratio, median_absolute_error_ratio  over the predictions, each of which counts once: its error is that
                    for the median of its runs
    inside_share    share of the runs inside the range, the mean over the predictions; None without ranges
    inside_range_share  its 90 % interval for so many independent predictions (Wilson, 1927)
    """

    predictions: int
    runs: int
    median_error_ratio: float
    median_absolute_error_ratio: float
    inside_share: float | None
    inside_range_share: tuple[float, float] | None


@frozen
class Month:
    """The accuracy for later runs that started in a month, such as 2026-11, in UTC."""

    month: str
    accuracy: Accuracy


@frozen
class Followed:
    """A recommendation, and the runs before and after it was applied.

    changes      the recommended values, by setting
    advised_at   when it was first made, UTC
    claimed_ms   the saving that it claimed, with its range; None if only a bound was known
    together     number of other recommendations that the same later runs applied: the saving is that of all
    difference   the runtimes before and after, with the noise of such jobs; None if it was not applied
    """

    kind: str
    text: str
    lines: tuple[str, ...]
    changes: Mapping[str, str]
    advised_at: str
    claimed_ms: float | None
    claimed_range_ms: tuple[float, float] | None
    status: Status
    together: int = 0
    difference: Difference | None = None

    @property
    def saved_ms(self) -> float | None:
        """How much shorter the runs after are than those before, by their medians; None if it was not applied."""
        return None if self.difference is None else self.difference.before_ms - self.difference.after_ms


@frozen
class JobLedger:
    """The predictions and recommendations for a job: one framework, name and plan.

    plan     hash of its plans; another plan of the same name is another job
    kept     predictions in the ledger, and `runs` that it knows
    matches  the newest first
    months   the oldest first
    """

    framework: str
    name: str
    plan: str
    kept: int
    runs: int
    accuracy: Accuracy | None
    months: tuple[Month, ...]
    matches: tuple[Match, ...]
    recommendations: tuple[Followed, ...]


@frozen
class Ledger:
    """Predictions held against later runs, by job.

    file         the ledger's file; `entries` are its lines, `damaged_lines` the numbers of lines that cannot be read
    writable     whether new predictions are kept
    unstated     predictions that no log can be held against, because logs do not record their settings
    unfinished_runs  later runs that failed or have no end, which are not compared
    backtest     whether runs count that began before the prediction, too
    accuracy     over all jobs
    """

    file: str
    entries: int
    damaged_lines: tuple[int, ...]
    writable: bool
    unstated: int
    unfinished_runs: int
    backtest: bool
    accuracy: Accuracy | None
    jobs: tuple[JobLedger, ...]
