"""Recommendations: changes that shorten a run, as data; crystalperf.query.text writes the sentences."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.kinds import Basis, Kind
from crystalperf.query.results.kinds import Price as Price

Value = str | int | float | bool | None

SetBy = Literal["", "program", "session", "unclear"]


@frozen
class SettingChange:
    """A setting of the framework, with its value in the run and the recommended value, as its configuration has them.

    before        None if the run did not set it and its default is unknown
    before_bytes, after_bytes  both values in bytes, for settings that are amounts of memory or data
    is_default    whether `before` is the framework's default, which the run did not set
    set_by        what set it, by which its lines differ: the program's start, its session, one of several that the log
                  does not distinguish; empty for the command line, and if unknown
    """

    name: str
    before: Value
    after: Value
    before_bytes: float | None = None
    after_bytes: float | None = None
    is_default: bool = False
    set_by: SetBy = ""


@frozen
class Saving:
    """How much shorter a run gets, ms, with its range and basis.

    `ms` is None if only an upper bound is known, which is the end of the range; `range_ms` is None if there is no bound
    either, and begins below 0 if the run may take longer.
    """

    basis: Basis
    ms: float | None = None
    range_ms: tuple[float, float] | None = None

    @property
    def expected_ms(self) -> float:
        """The saving to expect: the predicted one, or half of what it is at most; 0 if nothing is known."""
        if self.ms is not None:
            return self.ms
        return 0.0 if self.range_ms is None else BOUND_WEIGHT * self.range_ms[1]

    @property
    def may_lengthen(self) -> bool:
        """Whether its range includes longer runs."""
        return self.range_ms is not None and self.range_ms[0] < 0


BOUND_WEIGHT = 0.5
"""The part of an upper bound that counts as the saving."""

CostUnit = Literal["core", "GiB", "machine"]
"""The unit of what a run reserves: a core (a slot), memory, or a machine (a worker)."""


@frozen
class Cost:
    """The reservations of the whole run before and after a change that needs machines, in seconds of a unit.

    If only an upper bound of the saving is known, `after_s` is that of a run that saves nothing.  `other_machines` is
    whether the change needs machines of another type: it costs less if their price per hour is less than `before_s` /
    `after_s` times the price of the recorded ones.
    """

    unit: CostUnit
    before_s: float
    after_s: float
    other_machines: bool = False


MODELLED, MEASURED, GUESSED = Saving("modelled"), Saving("measured"), Saving("guessed")
"""Savings before their prediction, with the basis only."""


@frozen
class Affected:
    """The stage that a change affects most, with its tasks and slots, and the number of other affected stages."""

    stage: str
    name: str
    others: int
    tasks: int
    slots: int


@frozen(kw_only=True)
class Recommendation(Kind):
    """A recommended change.

    price     what the change requires
    because   its evidence: the kind of a finding, or the setting of a what-if
    saving    how much shorter the run gets
    settings  the settings that it changes; empty if it changes something else
    cost      what more or other machines cost; None if it needs none, or if nothing is known
    call_site  where in the user's program the work of its (first) stage was requested; None if the log has none
    """

    price: Price
    because: str
    saving: Saving
    settings: tuple[SettingChange, ...] = ()
    cost: Cost | None = None
    call_site: str | None = None

    @property
    def stage_id(self) -> str | None:
        """The stage that it is about, or the first of several; None if it is not about stages."""
        for value in (self, getattr(self, "finding", None)):
            for name in ("stages", "stage", "evidence"):
                found = getattr(value, name, None)
                found = found[0] if isinstance(found, tuple) and found else found
                stage = found if isinstance(found, str) else getattr(found, "stage", None) or getattr(found, "id", None)
                if isinstance(stage, str):
                    return stage.partition(" ")[0]
        return None

    @property
    def changes(self) -> frozenset[Hashable]:
        """The things that it changes: of two recommendations that change the same, an answer has the better one."""
        alike: Hashable = replace(self, because="", saving=Saving("measured"), cost=None, call_site=None)
        return frozenset({alike, *(each.name for each in self.settings)})


@frozen(kw_only=True)
class ChangeSetting(Recommendation):
    """Give settings other values."""

    kind: ClassVar[str] = "change-setting"


@frozen(kw_only=True)
class MoreMemory(Recommendation):
    """Give each worker `ratio` times the memory."""

    kind: ClassVar[str] = "more-memory"

    ratio: float


@frozen(kw_only=True)
class LessMemory(Recommendation):
    """Give each worker less memory, which shortens nothing but frees `freed_byte_ms` of memory times time."""

    kind: ClassVar[str] = "less-memory"

    freed_byte_ms: float


@frozen(kw_only=True)
class MoreWorkers(Recommendation):
    """Run on `ratio` times the workers; `before` and `after` are their numbers, None if unknown."""

    kind: ClassVar[str] = "more-workers"

    ratio: float
    before: int | None = None
    after: int | None = None


@frozen(kw_only=True)
class FasterDevice(Recommendation):
    """Use machines whose device of a resource is `ratio` times as fast."""

    kind: ClassVar[str] = "faster-device"

    resource: str
    ratio: float


@frozen(kw_only=True)
class RaiseParallelism(Recommendation):
    """Raise the parallelism of a busy stage of a stream; `busy_share` is that of its busiest task.

    For a stream at its limit, `rate_per_s` is its highest rate before and after, and `rate_range_per_s` the range of
    the latter; `at_least` is whether it is a lower bound.
    """

    kind: ClassVar[str] = "raise-parallelism"

    stage: str
    before: int
    after: int
    busy_share: float
    name: str = ""
    rate_per_s: tuple[float, float] | None = None
    rate_range_per_s: tuple[float, float] | None = None
    at_least: bool = False


@frozen(kw_only=True)
class FixFailure(Recommendation):
    """Fix the first failure: `failed` is its id, `error` the framework's message, None if the log has none."""

    kind: ClassVar[str] = "fix-failure"

    failed: str
    error: str | None


@frozen(kw_only=True)
class FollowAdvice(Recommendation):
    """Follow the advice of a finding."""

    kind: ClassVar[str] = "follow-advice"

    finding: Finding


@frozen(kw_only=True)
class RecordSamples(Recommendation):
    """Record stack samples with the next run, because `framework` does not measure where much of the time went."""

    kind: ClassVar[str] = "record-samples"

    framework: str


STOPPED = "stopped"
"""`because` of a framework's own candidate if the program stopped its work, which is not an error of that work."""


@frozen
class Candidate:
    """A recommendation before ranking.

    what_if      the setting whose prediction gives the saving, KEY=VALUE; None if only a bound is known
    at_most_ms   the upper bound of the saving, the cost of a finding; None if only the what-if gives the saving
    comes_first  whether it ranks above all candidates that do not
    covers       kinds of findings that the change resolves too, so that their own advice is left out
    """

    recommendation: Recommendation
    what_if: str | None = None
    at_most_ms: float | None = None
    comes_first: bool = False
    covers: frozenset[str] = frozenset()
