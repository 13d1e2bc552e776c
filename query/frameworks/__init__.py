"""The contract of a framework: one package that knows how its logs, frames, plans and schedulers look.

A framework is a frozen `Framework` in three parts, each a dataclass of plain functions, documented at its fields: a
`Reader` (required) turns its files into a trace, a `Planner` says what it does in another scenario, and an `Advisor`
has findings and recommendations of its own.  What is missing is refused where it is asked for.  Built-in frameworks are
packages of this folder; others come in by the entry point group `crystalperf.frameworks`, whose entries name such a
value.  Nothing else in CrystalPerf knows a framework's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crystalperf.query.trace.vocabulary import Exhausted as Exhausted
from crystalperf.query.trace.vocabulary import Vocabulary as Vocabulary
from crystalperf.query.trace.vocabulary import either as either
from crystalperf.query.trace.vocabulary import plural as plural
from crystalperf.query.trace.vocabulary import with_article as with_article

if TYPE_CHECKING:
    import duckdb

    from crystalperf.indexes.schema import Table
    from crystalperf.query.advise.candidates import Candidate
    from crystalperf.query.diagnose.group_statistics import Detail, Diagnosis
    from crystalperf.query.execution.dag import Barriers, GroupRun
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.execution.scenario import World
    from crystalperf.query.execution.scheduling import Policy
    from crystalperf.query.execution.stream import Flow
    from crystalperf.query.inputs.containers import LogFile
    from crystalperf.query.inputs.files import Application, Head, LogPart
    from crystalperf.query.results.advice import Advice
    from crystalperf.query.results.assumptions import Assumption
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.recommendations import Recommendation
    from crystalperf.query.results.refusals import Refusal
    from crystalperf.query.results.remarks import Remark
    from crystalperf.query.text.registry import Sentences
    from crystalperf.query.trace.contract import Trace
    from crystalperf.query.trace.records import Columns, Floats, Problems

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
class MemoryRule:
    """What a worker's memory is to its units.

    usable      memory of a worker in bytes, the run's properties → what its units may hold together
    least_bytes a worker does not start with less
    """

    usable: Callable[[float, Mapping[str, str]], float]
    least_bytes: float = 0.0


@dataclass(frozen=True)
class Planned:
    """A run as its framework would plan it in a changed world, and what that assumes.

    `lanes` is how many times its lanes there are taken to be beside what was asked.
    """

    execution: Execution
    assumptions: tuple[Assumption, ...] = ()
    lanes: float = 1.0


@dataclass(frozen=True)
class Growth:
    """How much of each group's time grows with the data, by resource, (groups, resources + 1), and what that
    assumes."""

    shares: Floats
    assumption: Assumption


@dataclass(frozen=True)
class Steady:
    """A run that its recording shows before it has settled: a step once it has, as recorded and in a changed world, ms.

    `ends_ms` are the least and the most that one may take in the changed world however it settles; `assumptions` says
    what that assumes.
    """

    before_ms: float
    after_ms: float
    ends_ms: tuple[float, float]
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True)
class Job:
    """A job that is to be set up.

    `folder` is an absolute path where recordings go, without a slash at its end; `place` is where the job runs, a word
    of Setup.places, the first where it is ''; `version` is the framework's, '' where nobody said.
    """

    folder: str
    place: str = ""
    version: str = ""


@dataclass(frozen=True)
class Setup:
    """What a job needs so that it leaves a log and samples.

    text    a job → a piece of the framework's own configuration, prose as its comments
    facts   the same → the settings by name, for scripts
    places  where jobs run, by the word for it: its title; none where that makes no difference
    """

    text: Callable[[Job], str]
    facts: Callable[[Job], dict[str, Any]]
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Advisor:
    """Findings and recommendations that only a framework has, and how its jobs are set up.  All of it is optional."""

    idle: Callable[[Detail], Advice | None] | None = None
    """A group that left slots idle → what to do, None where nothing can or need be done."""
    skew: Callable[[Detail], Advice] | None = None
    """A group of which one unit reads much more than most → what to do."""
    own_device: Callable[[Detail], bool] = lambda _detail: False
    """Whether a group's time on devices has a finding of its own."""
    delegates: Callable[[frozenset[str]], bool] = lambda _uses: False
    """What a group reads and writes → whether other processes compute for its units, so that these wait for no CPU."""
    delegated: Callable[[duckdb.DuckDBPyConnection], Mapping[str, float]] = lambda _run: {}
    """The run file → by group the share of its units' time on no resource in which such processes computed or waited,
    as far as the log has it; of other groups that delegate it is all that nothing else accounts for."""
    spilled_by: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], list[str]] = lambda _run, _details: []
    """The run file, the groups of a scope → names of the operators that spilled, the one with most bytes first."""
    more: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], Sequence[Finding]] = lambda _run, _details: ()
    """The run file, the groups of a scope → findings of its own."""
    assumptions: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Assumption]] = lambda _run, _scope: ()
    """The run file, a scope → what was assumed in attributing its time."""
    told: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Remark]] = lambda _run, _scope: ()
    """The run file, a scope → what the framework measured of itself that no other answer has."""
    unmodelled: Callable[[duckdb.DuckDBPyConnection, Execution], str | None] = lambda _run, _scope: None
    """The run file, a scope → a device that computed for its units and is in no resource, None without one."""
    candidates: Callable[[duckdb.DuckDBPyConnection, Execution, Diagnosis], Sequence[Candidate]] | None = None
    """The run file, a scope, its diagnosis → what users can change about it, in its terms."""
    unmeasured: Callable[[duckdb.DuckDBPyConnection], Recommendation | None] = lambda _run: None
    """The run file → what to record before what its user asks for can be answered, None where all of it is there."""
    unending: Callable[[duckdb.DuckDBPyConnection, Execution], Remark | None] = lambda _run, _scope: None
    """The run file, a scope → what comes first of a run without an end of its own, as a stream that goes on until it is
    stopped; None of any other."""
    or_else: Callable[[duckdb.DuckDBPyConnection, Execution], Mapping[str, Remark]] = lambda _run, _scope: {}
    """The run file, a scope → by resource what else the time on it may be; by `unknown` what most of the time on none
    was."""
    filling: Callable[[Flow, float], Candidate] | None = None
    """A stream, ms that a record of it spends in buffers that fill → how that is changed."""
    resized: Callable[[Execution, str, float], Candidate | None] | None = None
    """A scope, `workers`, `cores` or `memory`, the factor → how that is changed, None where it cannot be."""
    released: Callable[[str | None], bool] = lambda _reason: False
    """Why a worker ended → whether it was released, and not lost."""
    called_off: Callable[[str], bool] = lambda _error: False
    """Why a scope or a unit failed → whether somebody cancelled it."""
    exhausted: Callable[[str], Exhausted | None] = lambda _text: None
    """An error, or why a worker ended → what ran out of memory, None where nothing did."""
    setup: Setup | None = None
    """What a job needs so that it leaves a log and samples."""
    sentences: Sentences | None = None
    """The sentences of kinds of findings, recommendations, refusals and assumptions that only it has."""

    def spills_apart(self, uses: frozenset[str], scope: str | None) -> bool:
        """Whether processes that compute for a group's units spill for want of their own memory, and no worker does.

        Within a scope, as a query is one, they keep no rows.
        """
        return scope is None and self.delegates(uses)


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


@dataclass(frozen=True)
class Reader:
    """What a framework's files are, and the trace in them.  `recognise` and `read` are required."""

    recognise: Callable[[Head], LogPart | None]
    """The first bytes of a file → what they say of the run, None where the file is no log of this framework."""
    read: Callable[[LogFile], Trace]
    """A log → the trace of its run (crystalperf.query.trace.contract); raises InputError, one sentence."""
    gather: Callable[[Sequence[LogPart], Problems], list[Application]] | None = None
    """The recognised files → applications, each with the parts of its log in order; without it each file is one."""
    frames: Frames = Frames()
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


@dataclass(frozen=True)
class Planner:
    """What a framework itself would do in another scenario: schedule, cut work, use memory.  All of it is optional."""

    schedule: Callable[[str | None, Mapping[str, str], str | None], Policy] | None = None
    """(scheduler, settings, version that the run names) → how it assigns slots."""
    barriers: Callable[[Sequence[GroupRun]], Barriers] | None = None
    """The groups of a scope → what its coordinator waited for where the log does not say; without it only stated
    dependencies hold."""
    configured: Callable[[Mapping[str, str]], Mapping[str, float]] | None = None
    """Properties of a run → what it had by setting besides workers, cores and memory: `units`, into which it cuts
    exchanged data; and those three where its tables list other things than users count."""
    replan: Callable[[Execution, World, bool], Planned | Refusal] | None = None
    """(the run, a scenario, whether adaptive planning may change plans) → the run as it would be planned there."""
    growth: Callable[[Execution], Growth] | None = None
    """The run → how much of its time grows with the data; without it, all that is made of the data does."""
    steady: Callable[[Execution, World], Steady | None] = lambda _run, _world: None
    """The run, a scenario → its steps after warm-up, None where they are as recorded."""
    flow: Callable[[duckdb.DuckDBPyConnection, Execution], Flow | None] | None = None
    """The run file, a scope of it → it as a stream; None where it is none, or was not measured."""
    shown_lanes: Callable[[int | None, Mapping[str, str]], int | None] = lambda lanes, _properties: lanes
    """(most slots of a worker, properties) → slots as its user counts them, 0 where nothing says where units ran."""
    unsure: Callable[[Execution, World], tuple[Refusal, World] | None] = lambda _run, _world: None
    """The run, a scenario → why its answer lies between two bounds, and the scenario of the other bound."""
    endless: Callable[[Mapping[str, str]], Refusal | None] = lambda _properties: None
    """Properties of a run → why no runtime is predicted, None where it ends by itself."""
    memory: MemoryRule | None = None
    """What a worker's memory is to its units."""
    expand: Callable[[str], tuple[str, ...]] = lambda text: (text,)
    """KEY=VALUE of a what-if → the same in settings of resources, where one word stands for several."""
    unasked: Callable[[Mapping[str, str]], Collection[str]] = lambda _properties: ()
    """Properties of a run → settings that the usual what-ifs leave out: no trace shows what they change, or the run
    cannot have more of them."""
    lanes_bring_cpu: bool = True
    """Whether a worker with more slots gets more CPU, as where its container is sized by its slots."""
    loads_code: bool = False
    """Whether its workers load and compile code as they meet it (JVM warm-up)."""
    checked: Callable[[Execution], Collection[str]] = lambda _run: ()
    """The run → settings of the work, such as `units`, whose effect reruns have checked, so that answers have an
    interval."""


@dataclass(frozen=True)
class Framework:
    """What CrystalPerf knows of a framework, in three parts of which only the reader is required."""

    name: str
    """Its key: in run files, on the command line, of its package."""
    title: str
    """What people call it."""
    reader: Reader
    """What its files are, and the trace in them."""
    vocabulary: Vocabulary = Vocabulary()
    """Its words for workers, slots, groups and units."""
    planner: Planner = Planner()
    """What it would do in another scenario."""
    advisor: Advisor = Advisor()
    """Findings and recommendations that only it has, and how a job is set up for recording."""

    @property
    def takes_samples(self) -> bool:
        """Whether a user can record samples that its runs are then analysed with."""
        return self.advisor.setup is not None and self.reader.frames.process is not None
