"""The contract for stack frames: roles, operators and names in the frames of a framework's processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.trace.records import Columns

if TYPE_CHECKING:
    import duckdb

Role = Literal["task", "idle", "rest", "scaffolding", "wait", "collection", "generated", "compute", "process"]
"""The role of a frame in attribution.  Time is never attributed to scaffolding, wait or collection frames.

task         the root of a task's work: a stack with it works for a task
idle         the root of a pool's idle loop: a stack with it works for no task
rest         sleeps, or waits for something outside the run: a stack with it works for a task, but uses no resource
scaffolding  calls arbitrary code: runners, pools, iterators around iterators
wait         parks, sleeps, locks, polls: time passes, but the frame does not show on what
collection   containers and their iterators: the work belongs to their caller
generated    code that exists at run time only; time is attributed to its caller
compute      native code that only computes: codecs, checksums; a thread in it is on the CPU, for any attributed frame
process      delegates work to another process of the same machine; a thread that waits there waits for its CPU
"""


@frozen
class OperatorFrame:
    """The operator of a frame or of a plan's node.

    `kind` is one word for both; `pipeline` numbers the generated code that contains it.  A `weak` frame counts only if
    no other frame of its stack names an operator.
    """

    kind: str
    pipeline: int | None = None
    weak: bool = False


@frozen
class Operators:
    """How a framework's time is attributed to the operators of its plans.

    of_frame  (class name, method) of a frame → the operator it works for, None if it may be any
    times     a run file with tasks, stages, operators and samples, whether it has samples → operator_times
    """

    of_frame: Callable[[str, str], OperatorFrame | None]
    times: Callable[[duckdb.DuckDBPyConnection, tuple[str, ...], bool], Columns]


@frozen
class Names:
    """How names in a framework's frames differ from those of its sources.

    `relocated` are prefixes of packages that its build relocates, with the original prefixes.  Classes that match
    `generated` have no source.  `python` are folders of Python frames and the package whose index has them, in the
    framework's own version.
    """

    relocated: tuple[tuple[str, str], ...] = ()
    generated: re.Pattern[str] | None = None
    python: tuple[tuple[str, str], ...] = ()


@frozen
class Frames:
    """How to interpret the stack frames of a framework's processes, and which process a recording is of."""

    annotate: Callable[[str, str], Role | None] = lambda _class, _method: None
    """(class name, method) of a frame → its Role, None for an ordinary function."""
    process: Callable[[str | None, str], tuple[str | None, str] | None] | None = None
    """(arguments of the recorded process, None if the recording lost them; name of the recording) → (application id,
    None if not in the arguments; worker id), None for a foreign process.  Without it recordings are ignored.
    """
    task_thread: Callable[[str], str] = lambda name: name
    """Name of a thread → name of the thread of the task that it works for, if the trace names task threads."""
    sources: Callable[[str | None], tuple[str, ...]] = lambda _version: ()
    """Version of the run → names of the indexes whose functions its frames may be, best first."""
    names: Names = Names()
    """How its names differ from those of its sources."""
    operators: Operators | None = None
    """How time is attributed to operators."""
    spilling: tuple[str, str] | None = None
    """Two patterns of frames, 'package.Class.method:line': callers of work that only a lack of memory causes (spill),
    and callees within it that the task would run anyway."""
