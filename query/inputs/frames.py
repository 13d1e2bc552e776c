"""What the stack frames of a framework's processes mean, and how its names differ from those of its sources."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from crystalperf.query.trace.records import Columns

if TYPE_CHECKING:
    import duckdb

Role = Literal["unit", "idle", "rest", "scaffolding", "wait", "collection", "generated", "compute", "process"]
"""What a frame is besides a function.

unit         the root of a unit's work: a stack with it works for a unit
idle         the root of a pool's idle loop: a stack with it works for nobody
rest         sleeps, or waits for what is outside the run: a stack with it is on no resource, though it works for a unit
scaffolding  runs whatever it is given: runners, pools, iterators around iterators; never decides
wait         parks, sleeps, locks, polls: says that time passes, not on what; never decides
collection   containers and their iterators: the work is that of who uses them; never decides
generated    code that exists at run time only; what runs it decides
compute      native code that only computes: codecs, checksums; a thread in it is on the CPU, whoever decides
process      has another process of the same machine do the work; a thread that waits there waits for its CPU
"""


@dataclass(frozen=True)
class OperatorFrame:
    """The operator of a frame or of a plan's node.

    `kind` is one word for both sides; `pipeline` numbers the generated code it is in; a `weak` frame counts only
    where no other of its stack names an operator.
    """

    kind: str
    pipeline: int | None = None
    weak: bool = False


@dataclass(frozen=True)
class Operators:
    """How a framework's time is told apart by the operators of its plans.

    of_frame  (class name, method) of a frame → the operator it works for, None where it may be any
    times     the run file whose units, groups, operators and samples are in, whether it has samples → operator_times
    """

    of_frame: Callable[[str, str], OperatorFrame | None]
    times: Callable[[duckdb.DuckDBPyConnection, tuple[str, ...], bool], Columns]


@dataclass(frozen=True)
class Names:
    """How names in a framework's frames differ from those of its sources.

    `relocated` are prefixes that its build puts before the packages of libraries, with what stood there before; of
    classes that `generated` finds there is no source.  `python` are folders of Python frames and the package whose
    index has them, in the framework's own version.
    """

    relocated: tuple[tuple[str, str], ...] = ()
    generated: re.Pattern[str] | None = None
    python: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Frames:
    """What the stack frames of a framework's processes mean, and which process a recording is of."""

    annotate: Callable[[str, str], Role | None] = lambda _class, _method: None
    """(class name, method) of a frame → its Role, None for an ordinary function."""
    process: Callable[[str | None, str], tuple[str | None, str] | None] | None = None
    """(arguments of the recorded process, None where the recording lost them; name of the recording) → (application id
    where the arguments have it, worker id), None for a process of something else.  Without it recordings are ignored.
    """
    unit_thread: Callable[[str], str] = lambda name: name
    """Name of a thread → name of the thread of the unit that it works for, where a trace names these."""
    sources: Callable[[str | None], tuple[str, ...]] = lambda _version: ()
    """Version of the run → names of the indexes whose functions its frames may be, best first."""
    names: Names = Names()
    """How its class names differ from those of its sources."""
    operators: Operators | None = None
    """How time is attributed to operators."""
    spilling: tuple[str, str] | None = None
    """Two patterns of frames, 'package.Class.method:line': those below which a unit works for want of memory only, and
    those below them that it would work in anyway."""
