"""The answers, as frozen values; query.text.as_json converts them to JSON, the contract for scripts.

Times are ms since application start, lengths are ms.  Resource mappings have the names of the run's resources and
`other`, in that order.  Texts in values are keys; query.text.answers writes the sentences for every interface, in the
vocabulary of the run's framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Literal

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import Resource
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.missing import Missing
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.words import Words
from crystalperf.query.sql.rows import Tabular
from crystalperf.query.trace.vocabulary import Exhausted, Vocabulary

Parts = Mapping[str, float]
"""ms by resource, and `other`."""

Cause = Literal[
    "no worker", "no scope", "driver", "no task", "starting", "upstream", "delegated", "unknown", "filling",
    "queueing", "held", "sleeping", "no slot", "start", "end",
]  # fmt: skip
"""The cause of time on no resource.

no worker     nothing could run, because no worker was available
no scope      no scope was active between two of them: the user's own program ran
driver        it planned, submitted tasks, collected results
no task       a stage was active, but none of its tasks ran
starting      tasks were started and ended
upstream      tasks waited for tasks of another stage in their pipeline
delegated     tasks waited for other processes that compute for them; what these did is not recorded
unknown       not recorded
filling       a record waited in a buffer until that was full or timed out
queueing      a record waited for those before it
held          a record waited for an answer from outside, as with asynchronous requests
sleeping      threads slept, or waited for something outside, while they processed a record
no slot       a submitted stage waited for slots that it could use, although others were free
start         before the first scope: the framework and the user's program started
end           after the last scope
"""


@frozen
class PathItem:
    """One segment of the critical path; `resource_ms` sums to end − start."""

    id: str
    name: str
    start_ms: float
    end_ms: float
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return self.end_ms - self.start_ms


@frozen
class PathOperator:
    """An operator's time on the critical path, in `stages` of its stages (query.diagnose.critical_operators)."""

    name: str
    stages: int
    resource_ms: Parts

    @property
    def time_ms(self) -> float:
        return sum(self.resource_ms.values())


@frozen
class Efficiency:
    """The work of an operator on a device, and shares of the device's peaks.

    `count` parts of it took `time_ms`, most of that bound by `bound`: compute, memory, latency or copy.  `known_by` is
    how most of its work is known: shapes, grid or name.  Operations and bytes a second are over the parts of which they
    are known, and their shares are of the device's peaks; None if not known.
    """

    operator: str
    count: int
    time_ms: float
    bound: str
    known_by: str
    flops_per_s: float | None
    flops_share: float | None
    bytes_per_s: float | None
    bytes_share: float | None


@frozen
class SampleCounts:
    """Stack samples: all, those on task threads, and among these the ones whose attributed frame is indexed code.

    A thread that waits for work in the framework's own loop does not count as a task thread.  `skipped` is, by reason,
    the number of samples on task threads with skipped frames, or without a frame to attribute.
    """

    total: int
    on_tasks: int
    resolved: int
    skipped: Mapping[str, int]


@frozen
class ScopeItem:
    """A scope that was active; `id` selects it in an analysis."""

    id: str
    name: str
    start_ms: float
    end_ms: float | None


@frozen
class Tally:
    """How the scopes of one kind, the stages or the tasks of a run ended; `kind` is the framework's word.

    `cancelled` were cancelled by a user, and do not count as failed.
    """

    kind: str
    total: int
    failed: int
    unfinished: int = 0
    cancelled: int = 0


@frozen
class Failed:
    """A scope or a stage that failed.

    `error` is the exception on one line, without stack, package and wrappers; None if the log has none.  `tasks` failed
    in it, after running for `task_ms` in total.
    """

    kind: str
    id: str
    name: str
    error: str | None
    tasks: int = 0
    task_ms: float = 0.0


@frozen
class LostWorker:
    """A worker that ended while there was work to do, without being released.

    `why` is the framework's reason, None if it has none.  `recomputed_tasks` ran on it and had to run again, because
    they ended with it or their results were lost; they had run for `recomputed_ms` in total.
    """

    worker: str
    host: str | None
    added_ms: float
    lost_ms: float
    why: str | None
    recomputed_tasks: int = 0
    recomputed_ms: float = 0.0


@frozen
class Outcome:
    """How a scope ended, and what its failures cost.

    status        succeeded; failed: the run or its last scope failed; recovered: something failed and the run went on
                  to its end; unfinished: its end is not in the log
    tallies       scopes by kind, the outermost first, then stages, then tasks, each by attempts
    failures      the first failures, scopes before stages; scopes with failed tasks of their own come first
    failed_ms     task time of failed attempts
    reason        the most common reason of these
    reason_names_lost_worker    whether that reason contains the framework's reason for the first lost worker
    retried_tasks  failed attempts that were retried …
    retried_ms    … and their task time
    lost          lost workers, in order of their loss
    workers       total number of workers
    memory        what ran out of memory, None if nothing did
    exit_code     exit code of the run's process, None if the log has none or the scope is a part of the run
    cut           whether the log ends before the scope; if not, unfinished work was active at the end
    """

    status: Literal["succeeded", "failed", "recovered", "unfinished"]
    tallies: tuple[Tally, ...] = ()
    failures: tuple[Failed, ...] = ()
    failed_ms: float = 0.0
    reason: str | None = None
    reason_names_lost_worker: bool = False
    retried_tasks: int = 0
    retried_ms: float = 0.0
    lost: tuple[LostWorker, ...] = ()
    workers: int = 0
    memory: Exhausted | None = None
    exit_code: int | None = None
    cut: bool = False

    def tally(self, kind: str) -> Tally:
        """The tally of a kind; zeros if there is none."""
        return next((each for each in self.tallies if each.kind == kind), Tally(kind, 0, 0))


@frozen
class MissingDataDoubt:
    """Missing data that could change the bottleneck, so that the verdict is inconclusive.

    missing   what the log lacks
    time_ms   the maximum time of the critical path that it may hide, ms; 0 if the time is outside the log
    least     the bottleneck, by name, if no time is missing
    most      … and if all of it is; None if it could be anything
    rest      the largest part of the known time, by name, and its time rest_ms
    """

    missing: Missing
    time_ms: float
    least: str | None = None
    most: str | None = None
    rest: str | None = None
    rest_ms: float = 0.0


@frozen
class Unsubmitted:
    """Intervals without submitted work, left out of the scope: `left_out_ms` of `total_ms`.

    `interactive` is whether the log shows an interactive session, in which a person thinks and types then; else the
    user's program may have been busy.
    """

    left_out_ms: float
    total_ms: float
    intervals: int
    interactive: bool = True


@frozen
class FunctionTime:
    """A function to which samples on task threads are attributed, with the time that they represent.

    `callee` is the function that it called and that took most of that time, `callee_ms`, if it is not platform code.
    """

    qualified_name: str
    index_name: str
    resource: str
    share: float
    time_ms: float
    callee: str | None = None
    callee_ms: float = 0.0


@frozen
class OperatorTime:
    """Task time of one operator over the stages in which it ran; `basis` is the evidence for attributing it.

    `scope` is the scope whose plan has the operator, None for time of stages without a plan.  `node_id` is None for
    time that belongs to no operator: starting tasks, compiling, not attributed.  `call_site` is where in the user's
    program the scope was requested, None if the log does not record it.
    """

    scope: str | None
    node_id: int | None
    name: str
    stages: tuple[str, ...]
    basis: str
    resource_ms: Parts
    call_site: str | None = None

    @property
    def time_ms(self) -> float:
        return sum(self.resource_ms.values())


@frozen
class StageFacts:
    """Statistics of the tasks of one stage.  Times are sums over the tasks unless stated otherwise.

    `path_ms` is its wall-clock time on the critical path, `idle_ms` the slot time without a task while it ran.
    `median_bytes` and `most_bytes` are of the bytes that one task read, from storage and from other tasks.
    """

    id: str
    name: str
    scope: str | None
    tasks: int
    slots: int
    length_ms: float
    path_ms: float
    median_ms: float
    longest_ms: float
    median_bytes: float
    most_bytes: float
    task_ms: float
    idle_ms: float
    starting_ms: float
    scheduler_delay_ms: float
    gc_ms: float
    spill_bytes: int
    resource_ms: Parts

    @property
    def waves(self) -> float:
        """Tasks over slots, how often its tasks fill all slots; below 1, there are fewer tasks than slots."""
        return self.tasks / self.slots if self.slots else 0.0

    @property
    def skew_time(self) -> float | None:
        """Skew of time: the longest task's time over the median; None for one task."""
        return self.longest_ms / self.median_ms if self.tasks > 1 and self.median_ms > 0 else None

    @property
    def skew_bytes(self) -> float | None:
        """Data skew: the most bytes that a task read over the median; None for one task, or if most read nothing."""
        return self.most_bytes / self.median_bytes if self.tasks > 1 and self.median_bytes > 0 else None


@frozen
class Disagreement:
    """A stage whose index labels give a resource more or less time than the log's measurements allow."""

    stage: str
    resource: str
    label_share: float
    at_least_share: float
    at_most_share: float


@frozen
class StationStats:
    """Statistics of a stage of a stream; shares are of its tasks' time, `busiest_share` of the busiest task's.

    `record_ms` is its own time for one record, `shares` are its shares by resource; `sleeping_share` is on no resource:
    threads slept, or waited for something outside.  Task `heaviest_task`, counted from 0, gets `heaviest_share` of its
    records.
    """

    id: str
    name: str
    tasks: int
    records_per_s: float
    busy_share: float
    busiest_share: float
    blocked_share: float
    record_ms: float
    shares: Parts
    sleeping_share: float = 0.0
    heaviest_task: int = 0
    heaviest_share: float = 0.0


@frozen
class StreamFacts:
    """Statistics of a stream of records, over a steady interval of the run.

    `rate_per_s` is the rate of its sources, `max_per_s` the maximum sustained rate, None if unknown.  `limit` is what
    is saturated at that rate: the id of a stage or a worker (`limit_kind`), and `limit_resource` its resource; for a
    run at its limit also `hop`, SOURCE>TARGET, if the source is blocked and the target has time left.
    `is_lower_bound` is whether `max_per_s` is a lower bound, because it is far from the recorded rate.
    `probe_latency_ms` is the latency of a record by the framework's own probes, None without any.
    """

    start_ms: float
    end_ms: float
    rate_per_s: float
    max_per_s: float | None
    limit: str
    limit_kind: str
    limit_resource: str
    at_limit: bool
    is_lower_bound: bool
    probe_latency_ms: float | None
    stations: tuple[StationStats, ...] = ()


@frozen
class BatchPrediction:
    """The mean batch of a stream that is processed in batches, as recorded and in a scenario.

    A batch of `rows` takes `time_ms`, and the next one begins `interval_ms` after it; these are None if the rate is
    above the highest, or if the time is unknown.  `keeps_pace` is whether a batch ends before the next one is due; if
    not, batches follow each other without a pause, and are larger.  `recorded_` figures are those of the recorded run.
    """

    query: str
    recorded_rows: float
    recorded_ms: float
    recorded_interval_ms: float
    rows: float | None = None
    time_ms: float | None = None
    time_range_ms: tuple[float, float] | None = None
    interval_ms: float | None = None
    keeps_pace: bool | None = None


@frozen
class StreamPrediction:
    """The predicted rates of a stream in a scenario; None if unknown.  See StreamFacts.

    `limit_kind` is `batches` if batches get longer than the rows of the next one take to arrive; `limit` is then the
    name of the stream, and `batch` has its batches.
    """

    recorded_per_s: float
    rate_per_s: float
    recorded_max_per_s: float | None
    max_per_s: float | None
    max_per_s_interval: tuple[float, float] | None
    limit: str
    limit_kind: str
    limit_resource: str
    is_lower_bound: bool = False
    batch: BatchPrediction | None = None


@frozen
class NamedPart:
    """A part of the critical path with a name of its own, and its wall-clock time by resource; `cause` is that of its
    time on no resource."""

    remark: Remark
    resource_ms: Parts
    cause: Cause = "unknown"

    @property
    def time_ms(self) -> float:
        """Its wall-clock time on the path, ms."""
        return sum(self.resource_ms.values())


@frozen
class Debug(Tabular):
    """The diagnosis of a scope: where its time went.

    `bottleneck` is a resource, a Cause, or `unknown`, by the rules of query.diagnose.bottleneck.  `other_ms` is the
    critical-path time on no resource, by cause.  `driver_ms` is the wall-clock time of the critical path in which only
    the driver was active, 0 if the log has no scopes and so does not show whether the driver worked; `no_task_ms` is
    the wall-clock time of the scope without a running task, for any reason.  `unmodelled` is a device that computed for
    tasks but has no resource, so that no prediction covers it.  `measurements` are the framework's own measurements.
    `unbounded` is the leading remark about an unbounded run, such as a stream that runs until it is stopped; None for
    any other run.  `other_causes` is, by resource, another possible cause of the time on it; by `unknown`, what threads
    did in that time.  `leading` is what comes before the bottleneck, such as that a stream falls behind; None for most
    runs.  `in_batches` is whether the run is a stream that is processed in batches, whose rate what-ifs can change.
    `named_parts` are parts of the critical path that the framework names better than a resource or cause does.
    `path_operators` is the critical path by operator if stages run different operators one after the other, else empty.
    `efficiency` is what operators reached on devices, longest first.  `framework` is the framework's name, and
    `resources` are those of the run, for sentences (`words`).
    """

    __repr__ = Tabular.__repr__

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
    not_recorded: tuple[NotRecorded, ...] = ()
    other_ms: Mapping[Cause, float] = field(default_factory=dict)
    stages: tuple[StageFacts, ...] = ()
    operators: tuple[OperatorTime, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    driver_ms: float = 0.0
    no_task_ms: float = 0.0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    outcome: Outcome | None = None
    missing_data: tuple[MissingDataDoubt, ...] = ()
    unsubmitted: Unsubmitted | None = None
    unmodelled: str | None = None
    measurements: tuple[Remark, ...] = ()
    stream: StreamFacts | None = None
    path_operators: tuple[PathOperator, ...] = ()
    efficiency: tuple[Efficiency, ...] = ()
    unbounded: Remark | None = None
    other_causes: Mapping[str, Remark] = field(default_factory=dict)
    named_parts: tuple[NamedPart, ...] = ()
    leading: Remark | None = None
    in_batches: bool = False
    framework: str = ""
    resources: tuple[Resource, ...] = ()

    @property
    def words(self) -> Words:
        """The context for sentences about it."""
        return Words(self.framework, self.vocabulary, self.resources)

    @property
    def conclusive(self) -> bool:
        """Whether missing data cannot change the bottleneck, and the run is not unbounded."""
        return not self.missing_data and not self.unbounded


@frozen
class StagePrediction:
    id: str
    name: str
    recorded_ms: float
    predicted_ms: float | None


@frozen
class Rerun:
    """Another run of the same job: its changed settings, its prediction from the recorded run, and its actual
    runtime."""

    run: str
    setting: str
    predicted_ms: float
    actual_ms: float


@frozen
class RerunCorrection:
    """Other runs of the job, and the prediction before it was corrected by them (query.predict.rerun_errors)."""

    reruns: tuple[Rerun, ...]
    predicted_ms: float
    interval_ms: tuple[float, float]


@frozen
class Prediction(Tabular):
    """The prediction of a scope's runtime in a scenario.

    `predicted_ms` is None if the prediction is refused; then `refused` has the reasons, `remedy` what the user can do
    about the last of them, and `bound_ms` the lower and upper bound, as far as they are known.  `interval_ms` covers
    90 % of actual runtimes, and `interval_shares` are the contributions to its width (query.predict.interval).
    `replay_error_ratio` is (replayed − runtime) / runtime of the baseline.  `rerun_correction` is the correction by
    other runs of the job.  `steady_step_ms` is the recorded and the predicted duration of one step in the steady state,
    for a run that was recorded during warm-up.  `work_ratio` is the work done in that time, by all processes together,
    over the recorded run's.  `resource_ms` is the predicted critical path by resource; it is empty if the prediction is
    refused, or if another package's model made it.

    For a stream, times are those of one record; `stream` has the rates,
    which are predicted even if times are refused.
    """

    __repr__ = Tabular.__repr__

    scope: str
    measure: str
    setting: str
    runtime_ms: float
    replayed_ms: float
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None
    interval_shares: Mapping[str, float] = field(default_factory=dict)
    bound_ms: tuple[float | None, float | None] | None = None
    stages: tuple[StagePrediction, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    refused: tuple[Refusal, ...] = ()
    remedy: Remedy | None = None
    rerun_correction: RerunCorrection | None = None
    resource_ms: Parts = field(default_factory=dict)
    stream: StreamPrediction | None = None
    steady_step_ms: tuple[float, float] | None = None
    work_ratio: float = 1.0
    words: Words = field(default_factory=Words)

    def with_refusal(self, refusal: Refusal, bound_ms: tuple[float | None, float | None] | None = None) -> Prediction:
        """The same prediction without a time, with this refusal and these bounds."""
        return replace(self, refused=(refusal,), remedy=refusal.remedy, bound_ms=bound_ms)

    def refusing(self, setting: str, refusal: Refusal, remedy: Remedy | None = None) -> Prediction:
        """The refused prediction of a setting: the facts of the run, and the refusal."""
        return replace(
            self,
            setting=setting,
            predicted_ms=None,
            interval_ms=None,
            interval_shares={},
            bound_ms=None,
            stages=tuple(replace(each, predicted_ms=None) for each in self.stages),
            assumptions=(),
            refused=(refusal,),
            remedy=remedy or refusal.remedy,
            resource_ms={},
            steady_step_ms=None,
            work_ratio=1.0,
        )

    @property
    def replay_error_ratio(self) -> float:
        return (self.replayed_ms - self.runtime_ms) / self.runtime_ms if self.runtime_ms else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether anything is predicted: a time, or a sustained rate."""
        return self.predicted_ms is not None or (self.stream is not None and self.stream.max_per_s is not None)


@frozen
class LabError:
    """The absolute errors of a predictor in the lab, on runs of the framework that differ in the same setting.

    `changed` is that setting, or `several`; `median_ratio` and `p90_ratio` are of `predictions` of them, and 9 of 10
    errors are at most `p90_ratio`.
    """

    changed: str
    predictions: int
    median_ratio: float
    p90_ratio: float


@frozen
class NamedPrediction:
    """A predictor by its name, the publication that it is from, its prediction, and its errors in the lab, None if
    the lab has none for such a change."""

    predictor: str
    source: str
    prediction: Prediction
    lab: LabError | None = None


@frozen
class Predictions:
    """The predictions of all predictors for one scenario, CrystalPerf's own first; `runtime_ms` is as recorded.

    Only CrystalPerf's own has an interval.
    """

    scope: str
    measure: str
    setting: str
    runtime_ms: float
    predictions: tuple[NamedPrediction, ...]
    words: Words = field(default_factory=Words)


@frozen
class Sweep(Tabular):
    """One prediction per listed value, in the order given.

    `amounts` are the values of the one varied resource at each point, in its unit or relative to the recorded run;
    empty if several settings vary, if both kinds of values are listed, or if the work varies.
    """

    points: tuple[Prediction, ...]
    amounts: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return "\n".join(("<Sweep:", *(f"  {each!r}" for each in self.points))) + ">"


@frozen
class Advised:
    """A candidate for the next run to record: the half width of each prediction's interval after it, as a share."""

    setting: str
    half_width_shares: tuple[float, ...]


@frozen
class Advice:
    """Recommended next runs to record, the one that narrows intervals most first.

    `questions` are the settings to predict, `half_width_shares` the current half widths of their intervals, as shares
    of the predictions.
    """

    questions: tuple[str, ...]
    half_width_shares: tuple[float, ...]
    runs: tuple[Advised, ...]


@frozen
class Offer:
    """An offer: a number of machines of a type, with the job's predicted runtime and price, in the price list's unit.

    meets_deadline  yes if 19 of 20 reruns would, likely if that is more likely than not
    pareto_optimal  whether nothing is both cheaper and faster
    """

    machine: str
    workers: int
    setting: str
    predicted_ms: float | None = None
    interval_ms: tuple[float, float] | None = None
    price: float | None = None
    price_range: tuple[float, float] | None = None
    meets_deadline: Literal["yes", "likely", "no"] | None = None
    pareto_optimal: bool = False
    refused: tuple[Refusal, ...] = ()


@frozen
class Choice:
    """The costs of a job on other machines, the cheapest first, refused offers last.

    The recorded run used `workers` of `machine`, which costs `price`.
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
        """The cheapest offer that meets the deadline; without a deadline, the cheapest."""
        return next(
            (each for each in self.offers if each.price is not None and each.meets_deadline in (None, "yes")), None
        )

    @property
    def likely(self) -> Offer | None:
        """The cheapest offer that meets the deadline more likely than not, if it is cheaper than `cheapest`."""
        found = next((each for each in self.offers if each.meets_deadline in ("yes", "likely")), None)
        return None if found == self.cheapest else found


@frozen
class ReadingProblem:
    """A problem of reading a log or a recording, which occurred `count` times.

    `name` is its kind, `severity` is info, data loss or error; `meaning` includes the count if it is more than one.
    """

    severity: str
    meaning: str
    name: str = ""
    count: int = 1


@frozen
class WorkerSize:
    """The number of workers with the same number of slots."""

    slots: int
    workers: int


@frozen
class Header:
    """The facts of a run at the top of a verdict.

    At most `workers` ran tasks at a time, of `workers_in_all`, each with at most `slots_per_worker`; 0 if the log does
    not record where tasks ran.  `worker_sizes` are the different numbers of slots of workers, ascending, empty if all
    have the same.
    `problems` has the worst first.  A run of repeated steps has `steps` of them, of `step_ms` on average, and if the
    profiler's cost was taken out, of `traced_step_ms` as traced, with the 90 % range `step_interval_ms`; these are None
    for other runs.  `excluded_settings` are settings that the usual what-ifs exclude.
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
    traced_step_ms: float | None = None
    step_interval_ms: tuple[float, float] | None = None
    excluded_settings: tuple[str, ...] = ()
    worker_sizes: tuple[WorkerSize, ...] = ()


@frozen
class Profiled:
    """A run that was read and stored as a run file."""

    run: str
    header: Header


@frozen
class Bottleneck:
    """The bottleneck of a scope.

    kind          a resource; a cause of time on no resource; a part of the path that the framework names, by the kind
                  of its remark (Debug.named_parts); the driver, with all the time in which only it was
                  active on the path; unknown: most time is on no resource without a main cause, or data is missing
                  (Debug.doubts); nothing: no time passes; finding: the cause of a finding takes more than each resource
    name          the resource's name, the Cause, or the kind of the part's remark or of the finding
    time_ms       its wall-clock time on the critical path …
    share         … and that as a share of the scope's runtime
    second        the runner-up, a resource or Cause: for a resource, only if it follows closely; for a Cause without a
                  running task, none that is part of no_task_ms
    second_ms     its time
    no_task_ms      for a cause: the total time without a running task, if it is longer
    """

    kind: Literal["resource", "cause", "part", "driver", "unknown", "nothing", "finding"]
    name: str
    time_ms: float
    share: float
    second: str | None = None
    second_ms: float = 0.0
    no_task_ms: float | None = None


@frozen
class Knee:
    """The knee of a sweep: where more of a resource stops being worth it.

    `point` is the position of the last point of a sweep that still saves `least_share` of the time for the same work
    per doubling.  `worth` is whether the time there is shorter by that share than in the recorded run.
    """

    point: int
    worth: bool
    least_share: float


@frozen
class WhatIf:
    """A usual what-if and its prediction; `predicted_ms` is None if it is refused (see Prediction).

    For a stream, `stream` has the rates, which are predicted even if times are refused.
    """

    question: str
    setting: str
    predicted_ms: float | None
    interval_ms: tuple[float, float] | None = None
    bound_ms: tuple[float | None, float | None] | None = None
    refused: tuple[Refusal, ...] = ()
    remedy: Remedy | None = None
    stream: StreamPrediction | None = None
    words: Words = field(default_factory=Words)
    work_ratio: float = 1.0

    @property
    def doubles(self) -> bool:
        """Whether it doubles one setting, so that it is comparable with other doublings."""
        return self.setting.endswith("=2x")


@frozen
class NextStep:
    """The next step, which an interface words in its own terms with `facts`.

    setup     set up the job so that it records samples (framework)
    build     build an index of the sampled code (index)
    predict   predict more of the limiting resource (setting)
    report    write the page of the run, because no doubling has an effect
    """

    kind: Literal["setup", "build", "predict", "report"]
    facts: Mapping[str, str] = field(default_factory=dict)


@frozen
class Verdict(Tabular):
    """The verdict on a run: its bottleneck, its diagnosis, what-ifs, recommendations, and the next step.

    `replayed_ms` is the model's runtime of the baseline.  `best` is the doubling that helps most, None if none helps
    noticeably.  `run` is the run file.
    """

    __repr__ = Tabular.__repr__

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
        """The relative error of the replayed baseline; None if the run could not be replayed."""
        runtime_ms = self.debug.runtime_ms
        if self.replayed_ms is None:
            return None
        return (self.replayed_ms - runtime_ms) / runtime_ms if runtime_ms else 0.0


@frozen
class Failure:
    """An error: what happened, and its remedy."""

    message: str
    remedy: Remedy | None = None
