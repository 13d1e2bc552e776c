"""The runs of a comparison, and their accounts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.compare.accounts import Account, account
from crystalperf.query.compare.functions import SampledFunctions, sampled_functions
from crystalperf.query.compare.pooling import scaled
from crystalperf.query.compare.streams import comparable, measured
from crystalperf.query.diagnose.comparer import StepAccount, StreamAccount
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


@frozen
class Given:
    """One run of a side, the name by which the user gave it, and the scope of it to compare."""

    run: ComparableRun
    name: str
    scope: str = ALL


@frozen
class Accounts:
    """The accounts of a run: by stage, of a run of repeated steps by operator, and of a stream by record.  Times are of
    the run, or of a mean step.  `functions` are its sampled stacks, None without samples."""

    stages: Account
    step: StepAccount | None = None
    stream: StreamAccount | None = None
    functions: SampledFunctions | None = None

    @property
    def runtime_ms(self) -> float:
        """The time to compare: of the run, of a mean step, or of a record or a batch of a stream."""
        of_stream = 0.0 if self.stream is None else self.stream.time_ms
        return of_stream or self.stages.runtime_ms


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
    if not execution.runtime_ms > 0:
        raise InputError(f"{given.name}: no time passes in it; compare runs that did something")
    debug, header, framework = given.run.debug(given.scope), given.run.header(), get(execution.words.framework)
    with given.run.reading() as connection:
        lost = debug.outcome.lost if debug.outcome else ()
        found = account(connection, execution, framework.advisor, lost)
        functions = sampled_functions(connection, execution) if execution.has_samples else None
        if execution.stream is not None and debug.stream is not None:
            return Accounts(found, stream=measured(execution, debug.stream), functions=functions)
        if (stream := framework.comparer.stream(connection, execution)) is not None:
            return Accounts(found, stream=stream, functions=functions)
        if framework.comparer.step is None:
            return Accounts(found, functions=functions)
        step = framework.comparer.step(connection, execution, debug.critical_path)
    whole = given.scope == ALL and header.step_ms is not None
    length_ms = header.step_ms if whole and header.step_ms else execution.runtime_ms / step.steps
    return Accounts(scaled(found, length_ms, length_ms / execution.runtime_ms), step, functions=functions)


def of_one_kind(read: Sequence[Sequence[Accounts]]) -> list[list[Accounts]]:
    """The accounts of both sides by one measure.  Raises InputError if some runs are streams and others are not."""
    streams = [each.stream for side in read for each in side if each.stream is not None]
    if len(streams) not in (0, sum(map(len, read))):
        raise InputError("some of the runs are streams and others end by themselves; compare runs of one kind")
    found = iter(comparable(streams))
    return [[replace(each, stream=next(found, None)) for each in side] for side in read]
