"""What can be changed about a run so that it takes less time, as data; crystalperf.query.text makes the sentences."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from crystalperf.query.results.findings import Finding
from crystalperf.query.results.kinds import Basis, Kind

Price = Literal["setting", "code", "machine", "record"]
"""What a change takes: a value of the configuration, an edit of the program, other machines, one more recording."""

Value = str | int | float | bool | None


@dataclass(frozen=True)
class SettingChange:
    """A setting of the framework, with its value in the run and the value to give it, as its configuration has them.

    before        None where the run did not set it and its default is not known
    before_bytes, after_bytes  the same in bytes, of settings that are amounts of memory or data
    is_default    whether `before` is the framework's default, which the run did not set
    """

    name: str
    before: Value
    after: Value
    before_bytes: float | None = None
    after_bytes: float | None = None
    is_default: bool = False


@dataclass(frozen=True)
class Saving:
    """How much shorter a run gets, ms, within which range, and how that is known.

    `ms` is None where only the most is known, which ends the range; `range_ms` is None where that is not known either,
    and begins below 0 where the run may take longer.
    """

    basis: Basis
    ms: float | None = None
    range_ms: tuple[float, float] | None = None


MODELLED, MEASURED, GUESSED = Saving("modelled"), Saving("measured"), Saving("guessed")
"""Savings of which only the basis is known yet."""


@dataclass(frozen=True)
class Affected:
    """The stage that a change is most about, with its tasks and slots, and how many others it is about."""

    stage: str
    name: str
    others: int
    tasks: int
    slots: int


@dataclass(frozen=True, kw_only=True)
class Recommendation(Kind):
    """One thing to change.

    price     what the change takes
    because   what it rests on: a finding's kind, or the setting of a what-if
    saving    what it saves
    settings  the settings that it changes; empty where it changes something else
    """

    price: Price
    because: str
    saving: Saving
    settings: tuple[SettingChange, ...] = ()

    @property
    def changes(self) -> frozenset[Hashable]:
        """What it changes: of two recommendations that change the same, an answer has the better one."""
        alike: Hashable = replace(self, because="", saving=Saving("measured"))
        return frozenset({alike, *(each.name for each in self.settings)})


@dataclass(frozen=True, kw_only=True)
class ChangeSetting(Recommendation):
    """Give settings other values."""

    kind: ClassVar[str] = "change-setting"


@dataclass(frozen=True, kw_only=True)
class MoreMemory(Recommendation):
    """Give each worker `ratio` times the memory."""

    kind: ClassVar[str] = "more-memory"

    ratio: float


@dataclass(frozen=True, kw_only=True)
class MoreWorkers(Recommendation):
    """Run on `ratio` times the workers; `before` and `after` are their numbers, None where the run does not say."""

    kind: ClassVar[str] = "more-workers"

    ratio: float
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class FasterDevice(Recommendation):
    """Use machines whose device of a resource is `ratio` times as fast."""

    kind: ClassVar[str] = "faster-device"

    resource: str
    ratio: float


@dataclass(frozen=True, kw_only=True)
class RaiseParallelism(Recommendation):
    """Run a busy stage of a stream in more tasks; `busy_share` is of the time of its busiest task."""

    kind: ClassVar[str] = "raise-parallelism"

    stage: str
    before: int
    after: int
    busy_share: float


@dataclass(frozen=True, kw_only=True)
class FixFailure(Recommendation):
    """Fix what failed first: `failed` is its id, `error` the framework's message, None where the log has none."""

    kind: ClassVar[str] = "fix-failure"

    failed: str
    error: str | None


@dataclass(frozen=True, kw_only=True)
class FollowAdvice(Recommendation):
    """Do what a finding advises."""

    kind: ClassVar[str] = "follow-advice"

    finding: Finding


@dataclass(frozen=True, kw_only=True)
class RecordSamples(Recommendation):
    """Record stack samples with the next run, for `framework` does not measure what a good part of its time went to."""

    kind: ClassVar[str] = "record-samples"

    framework: str


STOPPED = "stopped"
"""What a framework's own candidate rests on where the program ended its work, which is no error of that work."""


@dataclass(frozen=True)
class Candidate:
    """A recommendation before it is ranked.

    what_if      the setting whose prediction tells what it saves, KEY=VALUE; None where only a bound is known
    at_most_ms   what it can save at most: a finding's cost; None where only the what-if tells
    comes_first  whether nothing else counts before this is done
    """

    recommendation: Recommendation
    what_if: str | None = None
    at_most_ms: float | None = None
    comes_first: bool = False
