"""What a framework's package has to say so that its logs are read: the part of the contract that is required."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.schema import Table
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.inputs.frames import Frames
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Reader:
    """What a framework's files are, and the trace in them.  `recognise` and `read` are required."""

    recognise: Callable[[Head], LogPart | None]
    """The first bytes of a file → what they say of the run, None where the file is no log of this framework."""
    read: Callable[[LogFile], Trace]
    """A log → the trace of its run (crystalperf.query.trace.contract); raises InputError, one sentence."""
    gather: Callable[[Sequence[LogPart], Problems], list[Application]] | None = None
    """The recognised files → applications, each with the parts of its log in order; without it each file is one."""
    frames: Frames = field(default_factory=Frames)
    """What stack frames mean."""
    marks: re.Pattern[str] | None = None
    """Names of files next to its logs that hold no log, such as markers of its state."""
    companions: tuple[str, ...] = ()
    """Endings of files that belong to the log whose name precedes them."""
    raw: Callable[[], tuple[Table, ...]] = tuple
    """Tables in its own terms that its traces carry; only its own package reads them."""
    private: tuple[re.Pattern[str], ...] = ()
    """Where names and plans have what a page for strangers must not show: patterns with a group `table`, the name of a
    table, or `literal`, a value of a statement."""
    collect: Callable[[str, str | None, Path, Callable[[str], None]], Path] | None = None
    """(address, application, folder, progress) → the log that it makes from what a running cluster reports."""
    served: Callable[[str, str | None, Path, Callable[[str], None]], Path | None] | None = None
    """(address, application, folder of the cache, progress) → the log that a server of its own hands out, a file below
    that folder; None where no such server answers."""
    attended: Callable[[str | None, Mapping[str, str]], bool | None] = lambda _name, _properties: None
    """The run's name and properties → whether a person submits its work, at a shell or in a notebook; None where the
    log does not say."""
    occupied: Callable[[duckdb.DuckDBPyConnection], Sequence[tuple[float, float]]] = lambda _run: ()
    """The run file → intervals (start, end), ms, in which the program worked on results, so that nobody was thinking
    while nothing was submitted."""
    unread_work: frozenset[str] = frozenset()
    """Names of its reader's problems after which the log may lack scopes."""
    counted_problems: frozenset[str] = frozenset()
    """Names of its reader's problems whose meaning says how many there are."""
    unread_start: frozenset[str] = frozenset()
    """Names of its reader's problems where the log lacks the start of the run, or mixes it with another's."""
    resolution_ms: float = 1.0
    """How far apart an end and the start that it causes may be in its log."""
    excerpt: bool = False
    """Whether its logs hold a moment of what goes on for hours, as a trace of some steps does."""
    in_order: bool = False
    """Whether the units of a group ran one after the other, as operators of a thread do."""
    tells_upstream: bool = True
    """Whether the log also has what units waited for upstream; else that may have taken any resource."""
    delegates: Callable[[frozenset[str]], bool] = lambda _uses: False
    """What a group reads and writes → whether other processes compute for its units, so that these wait for no CPU."""


class ReadableFramework(Protocol):
    """A framework as those know it who read its logs and recordings; query.frameworks.Framework has the rest."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def vocabulary(self) -> Vocabulary: ...
