"""The runs of a comparison, and their accounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.compare.accounts import Account, account
from crystalperf.query.compare.pooling import scaled
from crystalperf.query.diagnose.comparer import StepAccount
from crystalperf.query.execution.load import ALL
from crystalperf.query.frameworks.registry import get

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.results.answers import Debug, Header, Prediction


class ComparableRun(Protocol):
    """A run that can be compared, as crystalperf.query.run.Run."""

    @property
    def path(self) -> Path:
        """Its run file."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def debug(self, scope: str = "all") -> Debug:
        """Where the time of a scope went."""

    def execution(self, scope: str = "all") -> Execution:
        """A scope as arrays."""

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The locked, read-only connection."""

    def predict(self, settings: Sequence[str] = (), *, scope: str = "all", path: bool = True) -> Prediction:
        """The runtime under changed resources."""


@dataclass(frozen=True)
class Given:
    """One run of a side, the name by which the user gave it, and the scope of it to compare."""

    run: ComparableRun
    name: str
    scope: str = ALL


@dataclass(frozen=True)
class Accounts:
    """The accounts of a run: by stage, and of a run of repeated steps by operator.  Times are of the run, or of a mean
    step."""

    stages: Account
    step: StepAccount | None = None

    @property
    def runtime_ms(self) -> float:
        return self.stages.runtime_ms


def checked(before: Sequence[Given], after: Sequence[Given]) -> None:
    """Raise InputError or SettingError if the sides cannot be compared at all."""
    if not before or not after:
        raise SettingError("each side of a comparison needs a run")
    first, seen = before[0], dict[tuple[str, str], str]()
    for each in (*before, *after):
        own, known = each.run.header(), first.run.header()
        if own.framework != known.framework:
            raise InputError(
                f"{each.name}: a run of {own.framework_title}, but {first.name} is one of {known.framework_title};"
                " compare runs of one framework"
            )
        key = str(each.run.path), each.scope
        if key in seen:
            raise InputError(f"{each.name}: is the same run as {seen[key]}; name another run of the job")
        seen[key] = each.name


def accounts(given: Given, progress: Callable[[str], None]) -> Accounts:
    """The accounts of a run.  Raises InputError if it cannot be compared."""
    progress(f"reading {given.name}")
    execution = given.run.execution(given.scope)
    if execution.stream is not None:
        raise InputError(
            f"{given.name}: is a stream of records, and only runs that end are compared; compare the output of"
            " `analyze` for both streams"
        )
    if not execution.runtime_ms > 0:
        raise InputError(f"{given.name}: no time passes in it; compare runs that did something")
    debug, header, framework = given.run.debug(given.scope), given.run.header(), get(execution.words.framework)
    with given.run.reading() as connection:
        lost = debug.outcome.lost if debug.outcome else ()
        found = account(connection, execution, framework.advisor, lost)
        if framework.comparer.step is None:
            return Accounts(found)
        step = framework.comparer.step(connection, execution, debug.critical_path)
    whole = given.scope == ALL and header.step_ms is not None
    length_ms = header.step_ms if whole and header.step_ms else execution.runtime_ms / step.steps
    return Accounts(scaled(found, length_ms, length_ms / execution.runtime_ms), step)
