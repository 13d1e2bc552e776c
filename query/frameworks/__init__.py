"""The contract of a framework: one package that knows how its logs, frames, plans and schedulers look.

A framework is a frozen `Framework` of plain functions.  Three are required: to recognise a file, to say which files
make one run, and to read them into a trace (query.model.trace).  The others are optional; what is missing is refused in
a sentence where it is asked for.  Built-in ones lie in this folder; others come in by the entry point group
`crystalperf.frameworks`, whose entries name such a value.  Nothing else of CrystalPerf knows a framework's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import duckdb

    from crystalperf.indexes.schema import Table
    from crystalperf.query.answers.values import Debug, Finding
    from crystalperf.query.explain.chances import Chance
    from crystalperf.query.explain.facts import Detail
    from crystalperf.query.inputs.containers import LogFile
    from crystalperf.query.inputs.files import Application, Head, LogPart
    from crystalperf.query.model.dag import Group
    from crystalperf.query.model.execution import Execution
    from crystalperf.query.model.flow import Flow
    from crystalperf.query.model.policy import Policy
    from crystalperf.query.model.records import Columns, Floats, Problems
    from crystalperf.query.model.trace import Trace
    from crystalperf.query.model.world import World
    from crystalperf.query.results.assumptions import Assumption
    from crystalperf.query.results.refusals import Refusal
    from crystalperf.query.text.sentences import Sentences

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

Exhausted = Literal["container", "heap", "device", "killed"]
"""What ran out of memory.

container   what a worker and all its processes may use
heap        the memory that its process manages itself
device      that of a device such as a GPU
killed      a worker was killed from outside, as it is for its container's sake; nothing says that it was
"""


def plural(noun: str) -> str:
    """`workers`, `queries`, `processes`, `vertices`."""
    if noun.endswith("ex"):
        return f"{noun[:-2]}ices"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def either(words: Sequence[str]) -> str:
    """`a log`, `a log or a trace`, `a log, a trace or a timeline`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def with_article(noun: str) -> str:
    """`a worker`, `an operator`."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


@dataclass(frozen=True)
class Vocabulary:
    """A framework's words for what the trace contract calls worker, lane, group, unit, coordinator and scope.

    `scopes` are the kinds of scopes that it has, the one that a user thinks in first.  `settings` are its words for the
    settings of a what-if; the first for a setting is the one that is shown.  `exchanged` is what units read of
    each other; `upstream` is what they wait for while others work, units of other groups where it is empty;
    `delegate` is a process that computes for units, where a framework has such ones;
    `coordinating` is what the coordinator does while no unit runs; `log` names its log, with the article, and
    `log_hint` says where a user finds it.
    """

    worker: str = "worker"
    lane: str = "slot"
    group: str = "group"
    unit: str = "unit"
    coordinator: str = "coordinator"
    coordinating: str = ""
    scope: str = "scope"
    scopes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    exchanged: str = "data that units read of each other"
    upstream: str = ""
    delegate: str = ""
    log: str = "a log"
    log_hint: str = ""

    @property
    def workers(self) -> str:
        return plural(self.worker)

    @property
    def lanes(self) -> str:
        return plural(self.lane)

    @property
    def groups(self) -> str:
        return plural(self.group)

    @property
    def units(self) -> str:
        return plural(self.unit)

    @property
    def counted(self) -> str:
        """What the setting of workers counts, in words: of a training its processes, which devices are more than."""
        word = self.word_of("workers")
        return self.workers if word.casefold() in ("workers", self.workers.casefold()) else word

    def word_of(self, setting: str) -> str:
        """What the user calls a setting."""
        return next((word for word, key in self.settings.items() if key == setting), setting)


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


class Barriers(Protocol):
    """What a coordinator waited for before it submitted a group whose dependencies its log does not state.

    Asked in order of submission: `sources` for each group, then `add` once it is in the graph.
    """

    def sources(self, group: Group, limit_ms: float, known: Mapping[str, str]) -> dict[str, str]:
        """The groups that it waited for and why, of those that had ended by `limit_ms`; `known` is what is stated."""

    def add(self, group: Group, sources: Mapping[str, str]) -> None:
        """Take note of a group and of what it waited for in the end."""


@dataclass(frozen=True)
class Rules:
    """What a framework's user can do about a finding, and findings that only it has; all of it optional.

    idle         a group that left lanes idle → what to do, None where nothing can or need be done
    skew         a group of which one unit reads much more than most → what to do
    advice       by Finding.rule what to do, where that is more than what holds of any framework
    own_device   whether a group's time on devices has a finding of its own
    delegates    what a group reads and writes → whether other processes compute for its units, which so wait for no CPU
                 themselves
    delegated    the run file → by group the share of its units' time on no resource in which such processes computed or
                 waited, as far as the log tells; of other groups that delegate it is all that nothing else tells of
    spilled_by   the run file, the groups of a scope → names of the operators that spilled, that of the most first
    more         the run file, the groups of a scope → further findings
    assumptions  the run file, a scope → what was taken for granted in counting its time
    told         the same → what the framework measured of itself that no other answer says, a sentence each
    unmodelled   the run file, a scope → a device that computed for its units and is in no resource, None without one
    chances      the run file, a scope, its groups, its answer → what users can change about it, in its terms
    unmeasured   the run file → what to record before what its user asks for can be told, None where all of it is there
    unending     the run file, a scope → what is said first of a run that has no end of its own, as a stream that goes
                 on until it is stopped; None of any other
    or_else      the run file, a scope → by resource what else the time on it may be, a sentence; by `unknown` what
                 most of the time on none was, the end of one
    filling      a flow, ms that a record of it spends in buffers that fill → how that is changed
    resized      a scope, `workers`, `cores` or `memory`, times what it had → how that is changed, None where it is not
    released     why a worker ended → whether it was sent home, and not lost
    called_off   why a scope or a unit failed → whether it was somebody's wish
    exhausted    an error, or why a worker ended → what ran out of memory, None where nothing did
    """

    idle: Callable[[Detail], str | None] | None = None
    skew: Callable[[Detail], str] | None = None
    advice: Mapping[str, str] = field(default_factory=dict)
    own_device: Callable[[Detail], bool] = lambda _detail: False
    delegates: Callable[[str], bool] = lambda _what: False
    delegated: Callable[[duckdb.DuckDBPyConnection], Mapping[str, float]] = lambda _run: {}
    spilled_by: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], list[str]] = lambda _run, _details: []
    more: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], list[Finding]] = lambda _run, _details: []
    assumptions: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Assumption]] = lambda _run, _scope: ()
    told: Callable[[duckdb.DuckDBPyConnection, Execution], list[str]] = lambda _run, _scope: []
    unmodelled: Callable[[duckdb.DuckDBPyConnection, Execution], str | None] = lambda _run, _scope: None
    chances: Callable[[duckdb.DuckDBPyConnection, Execution, Sequence[Detail], Debug], Sequence[Chance]] | None = None
    unmeasured: Callable[[duckdb.DuckDBPyConnection], str | None] = lambda _run: None
    unending: Callable[[duckdb.DuckDBPyConnection, Execution], str | None] = lambda _run, _scope: None
    or_else: Callable[[duckdb.DuckDBPyConnection, Execution], Mapping[str, str]] = lambda _run, _scope: {}
    filling: Callable[[Flow, float], Chance] | None = None
    resized: Callable[[Execution, str, float], Chance | None] | None = None
    released: Callable[[str | None], bool] = lambda _reason: False
    called_off: Callable[[str], bool] = lambda _error: False
    exhausted: Callable[[str], Exhausted | None] = lambda _text: None

    def spills_apart(self, what: str, scope: str | None) -> bool:
        """Whether processes that compute for a group's units spill for want of their own memory, and no worker does.

        Within a scope, as a query is one, they keep no rows.
        """
        return scope is None and self.delegates(what)


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
class Framework:
    """The functions by which CrystalPerf knows a framework.

    Required:
    recognise   the first bytes of a file → what they say of the run, None where the file is no log of this framework
    gather      the recognised files → applications, each with the parts of its log in order
    read        a log → the trace of its run; raises InputError, one sentence

    Optional:
    vocabulary  its words
    marks       names of files beside its logs that hold no log, such as marks of its state
    companions  endings of files that belong to the log whose name stands before them
    raw         tables in its own words that its traces carry
    annotate    (class name, method) of a frame → its Role, or None for an ordinary function
    process     arguments of a recorded process (None where the recording lost them) and its file's name
                → (application id if it says, worker id), None if foreign; without it recordings are left out
    unit_thread name of a thread → that of the thread of the unit that it works for, where a trace names these
    sources     version of the run → names of the indexes whose functions its frames may be, best first
    names       how its class names differ from its sources'
    operators   how time is told apart by operator
    spilling    frames ('package.Class.method:line') below which a unit does what it does for want of memory only, and
                frames below those that it would work in anyway; two patterns
    barriers    the groups of a scope → what its coordinator waited for where the log does not say; without it only
                stated dependencies hold
    schedule    the scheduler, the settings and the version that the run names → how it gives out lanes
    configured  properties of a run → what it had by setting, beside workers, cores and memory: `units`, which it cuts
                exchanged data into; and these three where its tables list other things than are asked about
    replan      the run, a changed world, whether to → the run as the framework itself would plan it there, or a Refusal
                where nothing recorded tells that
    growth      the run → how much of its time grows with the data; without it all that is made of them does
    steady      the run, a changed world → its steps once it has settled, None where it is as it was recorded
    flow        the run file, a scope of it → it as a flow of records; None where it is none, or was not measured
    shown_lanes  the most lanes of a worker, properties of a run → as many as its user counts, 0 where nothing tells
                where its units ran
    unsure      the run, a changed world → why its answer lies between two ends, and the world that the other end is of;
                None where it does not
    endless     properties of a run → why nothing is told of how long it would take, None where it has an end of its own
    memory      what a worker's memory is to its units
    rules       what its user can do, and its own findings
    sentences   the sentences of kinds of findings, recommendations, refusals and assumptions that only it has
    setup       what a job needs so that it leaves a log and samples
    served      an address, an application to choose, a folder of the cache, progress → the log that a server of its own
                hands out, as a file below that folder; None where no such server answers
    attended    the run's name and properties → whether a person submits its work, at a shell or in a notebook; None
                where the log does not tell
    occupied    the run file → stretches (start, end), ms, in which the program worked at what it had been given, so
                that nobody was thinking while nothing was submitted
    unread_work names of its reader's problems after which scopes may have been under way that the log does not have,
                each with words for it that have a {count}
    unread_start  names of its reader's problems where the log lacks the start of the run, or mixes it with another's
    private     where names and plans have what a page for strangers must not have: patterns with a group `table`, the
                name of a table, or `literal`, a value of a statement
    expand      KEY=VALUE of a what-if → the same in settings of resources, where the framework has a word for several
    excerpt     whether its logs hold a moment of what goes on for hours, as a trace of some steps does
    tells_upstream  whether what units waited for upstream is in the same log; else it may have taken any resource
    unasked     properties of a run → settings that the usual questions leave out: no trace tells what they change, or
                the run cannot have more of them
    in_order    whether the units of a group ran one after the other, as operators of a thread do
    lanes_bring_cpu  whether a worker with more lanes gets more CPU, as where its container is as large as its lanes
    loads_code  whether its workers load and compile code as they meet it, as recorded runs told
    checked     the run → settings of the work, such as units, whose effect reruns have checked, so that answers have a
                range
    resolution_ms  how far apart an end and the start that it causes may be in its log
    """

    name: str
    title: str
    recognise: Callable[[Head], LogPart | None]
    read: Callable[[LogFile], Trace]
    gather: Callable[[Sequence[LogPart], Problems], list[Application]] | None = None
    vocabulary: Vocabulary = Vocabulary()
    marks: re.Pattern[str] | None = None
    companions: tuple[str, ...] = ()
    raw: Callable[[], tuple[Table, ...]] = tuple
    annotate: Callable[[str, str], Role | None] = lambda _class, _method: None
    process: Callable[[str | None, str], tuple[str | None, str] | None] | None = None
    unit_thread: Callable[[str], str] = lambda name: name
    sources: Callable[[str | None], tuple[str, ...]] = lambda _version: ()
    names: Names = Names()
    operators: Operators | None = None
    spilling: tuple[str, str] | None = None
    barriers: Callable[[Sequence[Group]], Barriers] | None = None
    schedule: Callable[[str | None, Mapping[str, str], str | None], Policy] | None = None
    configured: Callable[[Mapping[str, str]], Mapping[str, float]] | None = None
    replan: Callable[[Execution, World, bool], Planned | Refusal] | None = None
    growth: Callable[[Execution], Growth] | None = None
    steady: Callable[[Execution, World], Steady | None] = lambda _run, _world: None
    flow: Callable[[duckdb.DuckDBPyConnection, Execution], Flow | None] | None = None
    shown_lanes: Callable[[int | None, Mapping[str, str]], int | None] = lambda lanes, _properties: lanes
    unsure: Callable[[Execution, World], tuple[Refusal, World] | None] = lambda _run, _world: None
    endless: Callable[[Mapping[str, str]], Refusal | None] = lambda _properties: None
    memory: MemoryRule | None = None
    rules: Rules | None = None
    sentences: Sentences | None = None
    setup: Setup | None = None
    collect: Callable[[str, str | None, Path, Callable[[str], None]], Path] | None = None
    served: Callable[[str, str | None, Path, Callable[[str], None]], Path | None] | None = None
    attended: Callable[[str | None, Mapping[str, str]], bool | None] = lambda _name, _properties: None
    occupied: Callable[[duckdb.DuckDBPyConnection], Sequence[tuple[float, float]]] = lambda _run: ()
    unread_work: Mapping[str, str] = field(default_factory=dict)
    unread_start: frozenset[str] = frozenset()
    private: tuple[re.Pattern[str], ...] = ()
    expand: Callable[[str], tuple[str, ...]] = lambda text: (text,)
    unasked: Callable[[Mapping[str, str]], Collection[str]] = lambda _properties: ()
    in_order: bool = False
    excerpt: bool = False
    tells_upstream: bool = True
    lanes_bring_cpu: bool = True
    loads_code: bool = False
    checked: Callable[[Execution], Collection[str]] = lambda _run: ()
    resolution_ms: float = 1.0

    @property
    def takes_samples(self) -> bool:
        """Whether a user can record samples that its runs are then told by."""
        return self.setup is not None and self.process is not None
