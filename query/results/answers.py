"""The answers, as frozen values; query.text.as_json makes JSON of them, the contract that scripts rely on.

Times are ms since application start, lengths are ms.  Resource mappings have the names of the run's resources and
`other`, in that order.  Words in values are keys; the sentences that every door says of them are made in
query.text.answers, from the words of the run's framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.resources import Resource
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.missing import Missing
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.unseen import Unseen
from crystalperf.query.results.words import Words
from crystalperf.query.sql.rows import Listed
from crystalperf.query.trace.vocabulary import Exhausted, Vocabulary

Parts = Mapping[str, float]
"""ms by resource, and `other`."""

Cause = Literal[
    "no worker", "no scope", "coordinator", "no unit", "starting", "upstream", "delegated", "unknown", "filling",
    "queueing", "held", "resting",
]  # fmt: skip
"""What time on no resource was.

no worker     nothing could run, for no worker was there
no scope      none was under way: the user's own program
coordinator   it planned, submitted, collected
no unit       a group was under way, and none of its units
starting      units were started and ended
upstream      units waited for those of a group that they share a pipeline with
delegated     units waited for other processes that compute for them, and nothing tells what those did
unknown       nothing tells
filling       a record waited in a buffer until that was full or due
queueing      a record waited for those before it
held          a record waited until something outside had answered, as asynchronous requests do
resting       threads slept, or waited for something outside, while a record was theirs
"""


@dataclass(frozen=True)
class PathItem:
    """One stretch of the critical path; `resource_ms` sums to end − start."""

    id: str
    name: str
    start_ms: float
    end_ms: float
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return self.end_ms - self.start_ms


@dataclass(frozen=True)
class PathOperator:
    """What an operator has of the critical path, over so many of its groups (query.diagnose.critical_operators)."""

    name: str
    groups: int
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return sum(self.resource_ms.values())


@dataclass(frozen=True)
class SampleCounts:
    """Stack samples: all, those on unit threads, and of those the ones whose deciding frame is indexed code.

    A thread that waits in the framework's own loop for something to do has no code to place, and is on no unit here.
    `skipped` says, by reason, how many samples on unit threads had frames passed over, or nothing that decides.
    """

    total: int
    on_units: int
    resolved: int
    skipped: Mapping[str, int]


@dataclass(frozen=True)
class ScopeItem:
    """A scope that was under way; `id` is what a question about it is asked by."""

    id: str
    name: str
    start_ms: float
    end_ms: float | None


@dataclass(frozen=True)
class Tally:
    """How the scopes of one kind, the groups or the units of a run ended; `kind` is the framework's word.

    `cancelled` were called off by somebody's wish, and are not among those that failed.
    """

    kind: str
    total: int
    failed: int
    unfinished: int = 0
    cancelled: int = 0


@dataclass(frozen=True)
class Failed:
    """A scope or a group that failed.

    `error` is what was thrown, on one line, without stack, package and wrappers; None where the log does not say.
    `units` failed in it, which ran for `unit_ms` in sum.
    """

    kind: str
    id: str
    name: str
    error: str | None
    units: int = 0
    unit_ms: float = 0.0


@dataclass(frozen=True)
class LostWorker:
    """A worker that went while there was work to do, and was not sent home.

    `why` is what the framework says of it, None where it says nothing.  `redone_units` ran on it and had to run again,
    for they ended with it or what they had made was lost; they had run for `redone_ms` in sum.
    """

    worker: str
    host: str | None
    added_ms: float
    lost_ms: float
    why: str | None
    redone_units: int = 0
    redone_ms: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """How a scope ended, and what its failures cost.

    status        succeeded; failed, where the run or its last scope did; recovered, where something failed and the run
                  went on to its end; unfinished, where its end is not in the log
    tallies       scopes by kind, the outermost first, then groups, then units, each by attempts
    failures      the first of those that failed, scopes before groups; the scopes whose own units failed come first
    failed_ms     unit time of attempts that failed
    reason        why most of these did
    names_loss    whether that names what the framework says of the first lost worker
    retried_units  attempts that failed and were tried again …
    retried_ms    … and their unit time
    lost          workers that were lost, the first first
    workers       workers that there ever were
    memory        what ran out of memory, if anything did
    exit_code     what the run's process ended with, where the log tells and it is of the whole run
    cut           whether the log ends before the scope does; without that, what is unfinished was under way at the end
    """

    status: Literal["succeeded", "failed", "recovered", "unfinished"]
    tallies: tuple[Tally, ...] = ()
    failures: tuple[Failed, ...] = ()
    failed_ms: float = 0.0
    reason: str | None = None
    names_loss: bool = False
    retried_units: int = 0
    retried_ms: float = 0.0
    lost: tuple[LostWorker, ...] = ()
    workers: int = 0
    memory: Exhausted | None = None
    exit_code: int | None = None
    cut: bool = False

    def tally(self, kind: str) -> Tally:
        """The tally of a kind; of one that there is none of, zeros."""
        return next((each for each in self.tallies if each.kind == kind), Tally(kind, 0, 0))


@dataclass(frozen=True)
class Doubt:
    """Something missing that could change the first sentence, so that the verdict is inconclusive.

    missing   what the log lacks
    time_ms   how much of the critical path it may be, in ms; 0 where it is beyond what the log has
    least     what holds the scope up, by name, if nothing is missing after all
    most      … and if all of it is; None where that may be anything
    rest      what takes most of the time that is known, by name, and rest_ms of it
    """

    missing: Missing
    time_ms: float
    least: str | None = None
    most: str | None = None
    rest: str | None = None
    rest_ms: float = 0.0


@dataclass(frozen=True)
class Unsubmitted:
    """Stretches in which nothing was submitted, left out of the scope: `left_out_ms` of `whole_ms`.

    `attended` is whether the log says that a person submits, who thinks and types then; else a program may have been
    busy with something of its own.
    """

    left_out_ms: float
    whole_ms: float
    stretches: int
    attended: bool = True


@dataclass(frozen=True)
class FunctionTime:
    """A function that decided samples on unit threads, with the time they stand for.

    `callee` is what it called that most of that was spent in, `callee_ms`, where it called any code but the platform's.
    """

    qualified_name: str
    index_name: str
    resource: str
    share: float
    time_ms: float
    callee: str | None = None
    callee_ms: float = 0.0


@dataclass(frozen=True)
class OperatorTime:
    """Unit time of one operator over the groups it ran in; `basis` says what attributed it.

    `scope` is the scope whose plan it is in, None for time of groups without one.  `node_id` is None for time that
    belongs to no operator: starting units, compiling, not attributed.
    """

    scope: str | None
    node_id: int | None
    name: str
    groups: tuple[str, ...]
    basis: str
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return sum(self.resource_ms.values())


@dataclass(frozen=True)
class GroupFacts:
    """How the units of one group went.  Times of units are summed over them unless said otherwise.

    `path_ms` is its wall-clock on the critical path, `idle_ms` the slots' time without a unit while it ran.
    `median_bytes` and `most_bytes` are of what one unit read, from storage and from other units.
    """

    id: str
    name: str
    scope: str | None
    units: int
    slots: int
    length_ms: float
    path_ms: float
    median_ms: float
    longest_ms: float
    median_bytes: float
    most_bytes: float
    unit_ms: float
    idle_ms: float
    starting_ms: float
    queued_ms: float
    gc_ms: float
    spill_bytes: int
    resource_ms: Parts

    @property
    def waves(self) -> float:
        """How often its units fill all slots; below 1 there are fewer units than slots."""
        return self.units / self.slots if self.slots else 0.0

    @property
    def skew_time(self) -> float | None:
        """The longest unit's time in medians; None for one unit."""
        return self.longest_ms / self.median_ms if self.units > 1 and self.median_ms > 0 else None

    @property
    def skew_bytes(self) -> float | None:
        """What the unit that read most read, in medians; None for one unit or where most read nothing."""
        return self.most_bytes / self.median_bytes if self.units > 1 and self.median_bytes > 0 else None


@dataclass(frozen=True)
class Disagreement:
    """A group where the index's labels claim more or less of a resource than the log's measurements allow."""

    group: str
    resource: str
    label_share: float
    at_least_share: float
    at_most_share: float


@dataclass(frozen=True)
class StationFacts:
    """A group through which records flow; shares are of its units' time, `busiest_share` of the unit that has most.

    `record_ms` is its own time for one record, `shares` what that is on, by resource; `resting_share` of it is on none:
    threads slept, or waited for something outside.
    """

    id: str
    name: str
    units: int
    records_per_s: float
    busy_share: float
    busiest_share: float
    blocked_share: float
    record_ms: float
    shares: Parts
    resting_share: float = 0.0


@dataclass(frozen=True)
class FlowFacts:
    """A run that is a flow of records, over a steady stretch of it.

    `rate_per_s` is what its sources made, `most_per_s` what would be sustained, None where nothing tells; `limit` is
    what is busy all the time then, the id of a group or a worker (`limit_kind`), and `limit_resource` with what; of a
    run at its limit also `hop`, SOURCE>TARGET, where the one is held up and the other has time left.
    `at_least` is whether more than that may be sustained, for it lies far from what was recorded.  `markers_ms` is the
    time of a record by the framework's own probes, None without any.
    """

    start_ms: float
    end_ms: float
    rate_per_s: float
    most_per_s: float | None
    limit: str
    limit_kind: str
    limit_resource: str
    at_limit: bool
    at_least: bool
    markers_ms: float | None
    stations: tuple[StationFacts, ...] = ()


@dataclass(frozen=True)
class FlowChange:
    """What a changed world would make of a flow's rates; None where nothing tells.  See FlowFacts."""

    recorded_per_s: float
    rate_per_s: float
    recorded_most_per_s: float | None
    most_per_s: float | None
    most_per_s_interval: tuple[float, float] | None
    limit: str
    limit_kind: str
    limit_resource: str
    at_least: bool = False


@dataclass(frozen=True, repr=False)
class Debug(Listed):
    """Where the time of a scope went.

    `bottleneck` is what holds it up, by name: a resource, a Cause, or `unknown`; query.diagnose.bottleneck says how
    that is decided.  `other_ms` says what the time on the critical path was that no resource accounts for, by cause.
    `coordinator_ms` is the wall-clock of the critical path in which the coordinator alone moved it on, 0 where the log
    has no scopes and so does not tell whether it had anything to do; `no_unit_ms` that of the scope in which no unit
    ran, whatever was waited for.  `unmodelled` is a device that computed for units and is in no resource, so that no
    answer knows what more of it would bring.
    `told` is what the framework measured of itself.  `unending` is what comes first of a run without an end of its own,
    as a stream that goes on until it is stopped; None of any other.
    `or_else` is by resource what else the time on it may be; by `unknown` what threads did in it.
    `path_operators` is the critical path by operator where groups are runs of unlike operators; otherwise it is empty.
    `framework` is its name, and `resources` are those of the run: sentences are made of them (`words`).
    """

    scope: str
    measure: str
    runtime_ms: float
    bottleneck: str
    resource_ms: Parts
    critical_path: tuple[PathItem, ...]
    samples: SampleCounts
    scopes: tuple[ScopeItem, ...]
    findings: tuple[Finding, ...] = ()
    functions: tuple[FunctionTime, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    other_ms: Mapping[Cause, float] = field(default_factory=dict)
    groups: tuple[GroupFacts, ...] = ()
    operators: tuple[OperatorTime, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    coordinator_ms: float = 0.0
    no_unit_ms: float = 0.0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    outcome: Outcome | None = None
    doubts: tuple[Doubt, ...] = ()
    unsubmitted: Unsubmitted | None = None
    unmodelled: str | None = None
    told: tuple[Remark, ...] = ()
    flow: FlowFacts | None = None
    path_operators: tuple[PathOperator, ...] = ()
    unending: Remark | None = None
    or_else: Mapping[str, Remark] = field(default_factory=dict)
    framework: str = ""
    resources: tuple[Resource, ...] = ()

    @property
    def words(self) -> Words:
        """What sentences about it need."""
        return Words(self.framework, self.vocabulary, self.resources)

    @property
    def conclusive(self) -> bool:
        """Whether nothing that is missing could change what holds the scope up, and its length says something."""
        return not self.doubts and not self.unending


@dataclass(frozen=True)
class GroupPrediction:
    id: str
    name: str
    recorded_ms: float
    predicted_ms: float | None


@dataclass(frozen=True)
class Rerun:
    """Another run of the same job: what changed there, what was predicted of that from the recorded run, and how long
    it took."""

    run: str
    setting: str
    predicted_ms: float
    actual_ms: float


@dataclass(frozen=True)
class Learned:
    """What a prediction was before other runs of the job were looked at, and these (query.predict.rerun_errors)."""

    reruns: tuple[Rerun, ...]
    predicted_ms: float
    interval_ms: tuple[float, float]


@dataclass(frozen=True, repr=False)
class Prediction(Listed):
    """What a changed world would make of a scope.

    `predicted_ms` is None where the question is refused; then `refused` has the reasons, `remedy` what the user can do
    about the last of them, and `bound_ms` what can be proved all the same.  `interval_ms` holds 90 % of actual
    runtimes, and `interval_shares` says what makes it wide (query.predict.interval).  `replay_error_ratio` is (replayed
    − runtime) / runtime of the unchanged run.  `learned` is what other runs of the job changed about it.
    `settled_step_ms` is one step as recorded and as predicted, once a run that was recorded before it has settled has.
    `work_ratio` is how many times the recorded run's work is done in that time, by all processes together.
    `resource_ms` says what the predicted runtime goes to along its critical path; it is empty where the question is
    refused, and where another package's model answers.
    Of a run that is a flow of records times are one record's; `flow` has the rates, told where times are refused too.
    """

    scope: str
    measure: str
    setting: str
    runtime_ms: float
    replayed_ms: float
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None
    interval_shares: Mapping[str, float] = field(default_factory=dict)
    bound_ms: tuple[float | None, float | None] | None = None
    groups: tuple[GroupPrediction, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    refused: tuple[Refusal, ...] = ()
    remedy: Remedy | None = None
    learned: Learned | None = None
    resource_ms: Parts = field(default_factory=dict)
    flow: FlowChange | None = None
    settled_step_ms: tuple[float, float] | None = None
    work_ratio: float = 1.0
    words: Words = field(default_factory=Words)

    def with_refusal(self, refusal: Refusal, bound_ms: tuple[float | None, float | None] | None = None) -> Prediction:
        """The same without a time, for this reason, with what can be proved all the same."""
        return replace(self, refused=(refusal,), remedy=refusal.remedy, bound_ms=bound_ms)

    def refusing(self, setting: str, refusal: Refusal, remedy: Remedy | None = None) -> Prediction:
        """The answer to a question that cannot be asked of this run: what is known of the run, and why."""
        return replace(
            self,
            setting=setting,
            predicted_ms=None,
            interval_ms=None,
            interval_shares={},
            bound_ms=None,
            groups=tuple(replace(each, predicted_ms=None) for each in self.groups),
            assumptions=(),
            refused=(refusal,),
            remedy=remedy or refusal.remedy,
            resource_ms={},
            settled_step_ms=None,
            work_ratio=1.0,
        )

    @property
    def replay_error_ratio(self) -> float:
        return (self.replayed_ms - self.runtime_ms) / self.runtime_ms if self.runtime_ms else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether anything is predicted: a time, or how many records would be taken."""
        return self.predicted_ms is not None or (self.flow is not None and self.flow.most_per_s is not None)


@dataclass(frozen=True, repr=False)
class Sweep(Listed):
    """One prediction per listed value, in the order given.

    `amounts` are what the one resource that is varied is at each point, in its unit or relative to the recorded run;
    empty where several settings are set, values of both kinds are listed, or it is the work that is varied.
    """

    points: tuple[Prediction, ...]
    amounts: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(("<Sweep:", *(f"  {each!r}" for each in self.points))) + ">"


@dataclass(frozen=True)
class Advised:
    """One more run of the job that could be made: half of the range of each question that it would leave, a share."""

    setting: str
    half_width_shares: tuple[float, ...]


@dataclass(frozen=True)
class Advice:
    """Which one more run would tell most about some questions, the one that leaves the least range first.

    `questions` are the settings that are asked about, `half_width_shares` half of their ranges now, as shares of what
    is predicted.
    """

    questions: tuple[str, ...]
    half_width_shares: tuple[float, ...]
    runs: tuple[Advised, ...]


@dataclass(frozen=True)
class Offer:
    """So many of a machine, what the job would take on them, and what that costs, in the unit of the price list.

    holds     whether the deadline is held: yes where 19 of 20 reruns would, perhaps where it is more likely than not
    unbeaten  whether nothing is both cheaper and faster
    """

    machine: str
    workers: int
    setting: str
    predicted_ms: float | None = None
    interval_ms: tuple[float, float] | None = None
    price: float | None = None
    price_range: tuple[float, float] | None = None
    holds: Literal["yes", "perhaps", "no"] | None = None
    unbeaten: bool = False
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What a job would cost on other machines, the cheapest first, those that cannot be told last.

    It ran on `workers` of `machine`, which comes to `price`.
    """

    measure: str
    runtime_ms: float
    machine: str
    workers: int
    price: float
    deadline_ms: float | None
    offers: tuple[Offer, ...]
    words: Words = field(default_factory=Words)

    @property
    def cheapest(self) -> Offer | None:
        """The cheapest that holds the deadline; without one, the cheapest."""
        return next((each for each in self.offers if each.price is not None and each.holds in (None, "yes")), None)

    @property
    def perhaps(self) -> Offer | None:
        """The cheapest that holds the deadline more likely than not, where it is cheaper than what surely does."""
        found = next((each for each in self.offers if each.holds in ("yes", "perhaps")), None)
        return None if found == self.cheapest else found


@dataclass(frozen=True)
class ReadingProblem:
    """Something that reading a log or a recording did not take as it stood, `count` times.

    `name` is its kind, `severity` is info, data loss or error; `meaning` says the count where it is more than once.
    """

    severity: str
    meaning: str
    name: str = ""
    count: int = 1


@dataclass(frozen=True)
class Header:
    """What a run is, in the few words at the top of a verdict.

    At most `workers` were there at a time to run units, of `workers_in_all`, each with `slots_per_worker` at most; 0
    where nothing tells where units ran.
    `problems` has the worst first.  A run that does the same again and again did it `steps` times, in `step_ms` each on
    average; both are None of any other.  `unasked` are settings that the usual questions leave out.
    """

    app_id: str
    name: str
    framework: str
    framework_title: str
    framework_version: str | None
    measure: str
    workers: int
    workers_in_all: int
    slots_per_worker: int | None
    duration_ms: float
    complete: bool
    problems: tuple[ReadingProblem, ...]
    indexes: tuple[str, ...]
    has_samples: bool
    resources: tuple[Resource, ...]
    vocabulary: Vocabulary
    steps: int | None = None
    step_ms: float | None = None
    unasked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Profiled:
    """A run that was read and kept."""

    run: str
    header: Header


@dataclass(frozen=True)
class Bottleneck:
    """What holds a scope up.

    kind          a resource; a cause of time on no resource; the coordinator, with all the time in which it alone moved
                  the path on; unknown, where most time is on no resource and no cause stands out, or where something
                  is missing (Debug.doubts); nothing, where no time passes
    name          the resource's name, or the Cause
    time_ms       of wall-clock on the critical path that it takes …
    share         … and of the scope's runtime
    second        the resource or Cause that comes next: where a resource holds the run up, only one that follows
                  closely; where a Cause does in which no unit runs, none that is part of alone_ms
    second_ms     its time
    alone_ms      of a cause: the whole time in which no unit ran, where it is longer
    """

    kind: Literal["resource", "cause", "coordinator", "unknown", "nothing"]
    name: str
    time_ms: float
    share: float
    second: str | None = None
    second_ms: float = 0.0
    alone_ms: float | None = None


@dataclass(frozen=True)
class Knee:
    """Where more of a resource stops being worth it.

    `point` is the position of the last point of a sweep that still brings `least_share` of the time for the same
    work per doubling.  `worth` is whether that is shorter there by that share than in the recorded run.
    """

    point: int
    worth: bool
    least_share: float


@dataclass(frozen=True)
class WhatIf:
    """One of the usual questions, and the answer; `predicted_ms` is None where it is refused (see Prediction).

    Of a run that is a flow of records `flow` has the rates, told where times are refused too.
    """

    question: str
    setting: str
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None
    bound_ms: tuple[float | None, float | None] | None = None
    refused: tuple[Refusal, ...] = ()
    remedy: Remedy | None = None
    flow: FlowChange | None = None
    words: Words = field(default_factory=Words)

    @property
    def doubles(self) -> bool:
        """Whether it asks for twice of one thing, so that it can be compared with others that do."""
        return self.setting.endswith("=2x")


@dataclass(frozen=True)
class NextStep:
    """What to do next, for a door to word in its own terms; `facts` are what it needs for that.

    setup     a job that leaves samples (framework)
    build     an index of the code that the samples are in (index)
    predict   what more of the resource that holds the run up would bring (setting)
    """

    kind: Literal["setup", "build", "predict"]
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Verdict(Listed):
    """What holds a run up, where its time went, what would help, and what to do next.

    `replayed_ms` is what the model makes of the run with nothing changed.  `best` is the doubling that helps most, None
    where none does noticeably.  `run` is the run file.
    """

    run: str
    header: Header
    debug: Debug
    bottleneck: Bottleneck
    replayed_ms: float | None
    what_ifs: tuple[WhatIf, ...]
    best: WhatIf | None
    next: NextStep
    recommendations: tuple[Recommendation, ...] = ()

    @property
    def replay_error_ratio(self) -> float | None:
        """How far off the model is where nothing changes; None where it could not replay the run."""
        runtime_ms = self.debug.runtime_ms
        if self.replayed_ms is None:
            return None
        return (self.replayed_ms - runtime_ms) / runtime_ms if runtime_ms else 0.0


@dataclass(frozen=True)
class Failure:
    """A question that has no answer: what happened, and what can be done about it."""

    what: str
    remedy: Remedy | None = None
