"""Frameworks: how each writes its log, names its frames, plans and schedules.

A framework is one file here, ending in one frozen `Framework` of plain functions.  Others come in by the entry point
group `crystalperf.frameworks`, whose entries name such a value; nothing else of CrystalPerf changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Literal

from indexes.errors import InputError

if TYPE_CHECKING:
    from query.inputs.containers import LogFile
    from query.model.execution import Execution
    from query.model.records import RunTables
    from query.model.world import World
    from query.whatif.replay import Policy

GROUP = "crystalperf.frameworks"

Role = Literal["task", "idle", "scaffolding", "wait", "collection", "generated", "compute", "process"]
"""What a frame is besides a function.

task         the root of a task: a stack with it works for a task
idle         the root of a pool's idle loop: a stack with it works for nobody
scaffolding  runs whatever it is given: runners, pools, iterators around iterators; never decides
wait         parks, sleeps, locks, polls: says that time passes, not on what; never decides
collection   containers and their iterators: the work is that of who uses them; never decides
generated    code that exists at run time only; what runs it decides
compute      native code that only computes: codecs, checksums; a thread in it is on the CPU, whoever decides
process      has another process of the same machine do the work; a thread that waits there waits for its CPU
"""


@dataclass(frozen=True)
class OperatorFrame:
    """The SQL operator of a frame or of a plan's node.

    `kind` is one word for both sides; `pipeline` numbers the generated code it is in; a `weak` frame counts only
    where no other of its stack names an operator.
    """

    kind: str
    pipeline: int | None = None
    weak: bool = False


@dataclass(frozen=True)
class Planned:
    """A run as its framework would plan it in a changed world, and what was assumed, a sentence each."""

    execution: Execution
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Framework:
    """The functions by which CrystalPerf knows a framework.

    parse       a log (query.inputs.containers) → the run tables it can fill, by name, columns as in indexes/schema.sql
    annotate    (class name, method) of a frame → its Role, or None for an ordinary function
    sources     the run's properties → names of the indexes whose functions its frames may be, best first
    replan      the run, a changed world, whether to → the run as the framework itself would plan it there
    schedule    the scheduler and the settings that the run names → how it gives out slots
    frame_operator  (class name, method) of a frame → the SQL operator it works for, None where it may be any
    node_operator   the name of a plan's node → the same word
    node_title  name, description and location of a plan's node → what a user knows it by
    titles      what time is called whose kind of operator has no node in the plan
    process     arguments of a recorded JVM (None where the recording lost them) and its file's name
                → (application id if it says, executor id or 'driver'), None if foreign
    spilling    frames ('package.Class.method:line') below which a task does what it does for want of memory only, and
                frames below those that it would work in anyway; two patterns, None where there are none
    """

    name: str
    parse: Callable[[LogFile], RunTables]
    annotate: Callable[[str, str], Role | None]
    sources: Callable[[str | None], tuple[str, ...]]
    replan: Callable[[Execution, World, bool], Planned]
    schedule: Callable[[str | None, Mapping[str, str]], Policy]
    process: Callable[[str | None, str], tuple[str | None, str] | None]
    frame_operator: Callable[[str, str], OperatorFrame | None]
    node_operator: Callable[[str], OperatorFrame]
    node_title: Callable[[str, str | None, str | None], str]
    titles: Mapping[str, str]
    spilling: tuple[str, str] | None = None


@cache
def frameworks() -> dict[str, Framework]:
    """All known frameworks by name, the built-in ones first."""
    from query.frameworks.spark import SPARK

    known = {SPARK.name: SPARK}
    for entry in entry_points(group=GROUP):
        framework = entry.load()
        known.setdefault(framework.name, framework)
    return known


def get(name: str) -> Framework:
    """A framework by name.  Raises InputError where there is none of that name."""
    try:
        return frameworks()[name]
    except KeyError:
        raise InputError(f"framework '{name}' is not known; known are {', '.join(frameworks())}") from None
