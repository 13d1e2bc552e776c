"""The contract of a framework's log reader: the required part of a framework's package."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.schema import Table
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.inputs.frames import Frames
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems, RunTables
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.recordings.profiles import Profile


DelegateStack = Sequence[tuple[str, str, int]]
"""The frames of a stack, the leaf first: class name or file, function, line."""


@frozen
class StackLabel:
    """The indexed function that a stack is attributed to, and its share of each resource, by name."""

    index_name: str
    symbol: str
    shares: Mapping[str, float]


Labels = Callable[[Sequence[DelegateStack]], Sequence[StackLabel | None]]
"""Stacks → the label of each by indexes, None for one without an indexed function."""


@frozen
class DelegateProfiles:
    """How profiles of processes that compute for tasks, such as Python workers, are attributed to stages.

    is_delegate  (class name or file, function) of a frame → whether only such processes have it
    read         (file name, profile) of each, the trace, the problems, labels of stacks → tables of the framework's own
                 (Reader.raw)
    """

    is_delegate: Callable[[str, str], bool]
    read: Callable[[Sequence[tuple[str, Profile]], Trace, Problems, Labels], RunTables]


@frozen
class Reader:
    """Recognises a framework's files and reads their trace.  `recognise` and `read` are required."""

    recognise: Callable[[Head], LogPart | None]
    """The first bytes of a file → its LogPart, None if the file is not a log of this framework."""
    read: Callable[[LogFile], Trace]
    """A log → the trace of its run (crystalperf.query.trace.contract); raises InputError, one sentence."""
    gather: Callable[[Sequence[LogPart], Problems], list[Application]] | None = None
    """The recognised files → applications, each with the parts of its log in order; without it each file is one."""
    frames: Frames = field(default_factory=Frames)
    """How to interpret stack frames."""
    marks: re.Pattern[str] | None = None
    """Pattern of names of files next to its logs that are not logs, such as markers of a log's state."""
    companions: tuple[str, ...] = ()
    """Suffixes of files that belong to the log with the same name without the suffix."""
    raw: Callable[[], tuple[Table, ...]] = tuple
    """The framework's own tables in its traces; only its own package reads them."""
    private: tuple[re.Pattern[str], ...] = ()
    """Patterns of private text in names and plans, which anonymization replaces: a regex group `table` matches the name
    of a table, a group `literal` a value of a statement."""
    collect: Callable[[str, str | None, Path, Callable[[str], None]], Path] | None = None
    """(address, application, folder, progress) → a log made from the data that a running cluster reports."""
    served: Callable[[str, str | None, Path, Callable[[str], None]], Path | None] | None = None
    """(address, application, folder of the cache, progress) → the log from the framework's own server, a file below
    that folder; None if the address is not such a server."""
    interactive: Callable[[str | None, Mapping[str, str]], bool | None] = lambda _name, _properties: None
    """The run's name and properties → whether a person submits its work, at a shell or in a notebook; None if the log
    does not say."""
    occupied: Callable[[duckdb.DuckDBPyConnection], Sequence[tuple[float, float]]] = lambda _run: ()
    """The run file → intervals (start, end), ms, in which the program worked on results: time without submitted work
    there is not the user's think time."""
    unread_work: frozenset[str] = frozenset()
    """Names of its reader's problems after which the log may lack scopes."""
    counted_problems: frozenset[str] = frozenset()
    """Names of its reader's problems whose meaning includes their number."""
    unread_start: frozenset[str] = frozenset()
    """Names of its reader's problems for logs that lack the start of the run, or mix it with another's."""
    resolution_ms: float = 1.0
    """Maximum time in its log between an end and the start that it causes."""
    excerpt: bool = False
    """Whether its logs cover a short part of a run of hours, such as a trace of some steps."""
    in_order: bool = False
    """Whether the tasks of a stage ran in sequence, like operators of a thread."""
    has_upstream_waits: bool = True
    """Whether the log has the tasks' waits for upstream; otherwise this time may be on any resource."""
    delegates: Callable[[frozenset[str]], bool] = lambda _uses: False
    """Kinds of data that a stage reads and writes → whether other processes compute for its tasks, so that these have
    no CPU wait."""
    delegate_profiles: DelegateProfiles | None = None
    """How profiles of these processes are read; without it they are left out."""


class ReadableFramework(Protocol):
    """The part of a framework that reading logs and recordings needs; query.frameworks.Framework has the rest."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def vocabulary(self) -> Vocabulary: ...
