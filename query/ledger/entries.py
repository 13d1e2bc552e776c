"""The entries of a ledger: a run that a command read, with the predictions and recommendations that it printed.

An entry is a line of JSON.  A field of a later version is ignored, so an entry may gain fields, but not lose any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from crystalperf.indexes.frozen import frozen

By = Literal["analyze", "predict", "profile", "compare", "ledger"]
"""The command that wrote an entry."""

Identity = tuple[str, str, str | None, int]
"""Identifies a run: framework, id of the application, its attempt, its start in Unix ms."""

Job = tuple[str, str, str]
"""Identifies a job: framework, name of the application, hash of its plans."""


@frozen
class RunFacts:
    """A run as its log records it.

    plan        hash of its plans (query.compare.plans)
    runtime_ms  without pauses, for trainings of the recorded steps; `step_ms` is that of one step, None without steps
    ended_well  whether the log has its end, and it succeeded or recovered
    resources   workers, cores, memory (bytes), tasks (partitions) and input (bytes), as far as known
    settings    of the framework, by name
    scopes      durations of its first scopes, ms, by id
    """

    framework: str
    name: str
    app_id: str
    attempt: str | None
    started_at_ms: int
    plan: str
    runtime_ms: float
    step_ms: float | None
    ended_well: bool
    resources: Mapping[str, float]
    settings: Mapping[str, str]
    scopes: Mapping[str, float] = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        return self.framework, self.app_id, self.attempt, self.started_at_ms

    @property
    def job(self) -> Job:
        return self.framework, self.name, self.plan

    def value_ms(self, scope: str) -> float | None:
        """The duration that a prediction of a scope is held against: of one step, of the run, or of the scope."""
        if scope == "all":
            return self.step_ms if self.step_ms else self.runtime_ms
        return self.scopes.get(scope)


@frozen
class Predicted:
    """A prediction for a scope of the run.

    expected      resources of the scenario, by the keys of RunFacts.resources
    unstated      settings of the scenario that no log records, as the user typed them, by key
    predicted_ms  the duration as in RunFacts.value_ms, with both ends of its 90 % range
    model         the predictor of another package; empty for the built-in one
    reruns        number of other runs that corrected it
    """

    setting: str
    scope: str
    expected: Mapping[str, float]
    unstated: Mapping[str, str]
    predicted_ms: float
    range_ms: tuple[float, float] | None = None
    model: str = ""
    reruns: int = 0


@frozen
class Change:
    """A recommended value of a setting, as its configuration has it; `bytes` is both values as an amount of data."""

    name: str
    before: str | None
    after: str
    after_bytes: float | None = None


@frozen
class Recommended:
    """A recommendation: its sentence, lines to paste, and the saving that it claimed, ms.

    `saving_ms` is None if only a bound, the end of `range_ms`, was known.
    """

    kind: str
    text: str
    lines: tuple[str, ...]
    changes: tuple[Change, ...]
    saving_ms: float | None
    range_ms: tuple[float, float] | None
    basis: str


@frozen
class Entry:
    """A run that a command read at `at_ms` (Unix time), and the answers about it."""

    at_ms: int
    version: str
    by: By
    run: RunFacts
    predictions: tuple[Predicted, ...] = ()
    recommendations: tuple[Recommended, ...] = ()
