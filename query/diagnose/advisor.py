"""The extension point of a framework's package: its own findings, recommendations, and setup of a job for recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.trace.vocabulary import Exhausted

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.diagnose.stage_statistics import Diagnosis, StageStats
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.execution.stream import Stream
    from crystalperf.query.execution.tunable import Tunable
    from crystalperf.query.results.advice import Advice
    from crystalperf.query.results.answers import Efficiency, NamedPart, PathItem
    from crystalperf.query.results.assumptions import Assumption
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.recommendations import Candidate, Recommendation
    from crystalperf.query.results.remarks import Remark


@frozen
class Job:
    """A job to set up for recording.

    `folder` is the absolute path for recordings, without a trailing slash; `place` is where the job runs, a key of
    Setup.places, '' for the first; `version` is the framework's, '' if unknown.
    """

    folder: str
    place: str = ""
    version: str = ""


@frozen
class Setup:
    """The configuration with which a job records a log and samples.

    text    a job → lines of the framework's own configuration, with explanations as comments
    facts   a job → the settings by name, for scripts
    places  titles of the places where jobs run, by key; empty if the place makes no difference
    needs_folder  whether the folder has to exist before a job starts
    """

    text: Callable[[Job], str]
    facts: Callable[[Job], dict[str, Any]]
    places: Mapping[str, str] = field(default_factory=dict)
    needs_folder: bool = False


@frozen
class Advisor:
    """A framework's own findings and recommendations, and the setup of its jobs.  All of it is optional."""

    idle_advice: Callable[[StageStats], Advice | None] | None = None
    """A stage that left slots idle → the advice; None if nothing can or need be done."""
    skew_advice: Callable[[StageStats], Advice] | None = None
    """A stage with data skew, where one task reads much more than most → the advice."""
    has_device_finding: Callable[[StageStats], bool] = lambda _detail: False
    """Whether a stage's time on devices has a finding of its own."""
    delegated_shares: Callable[[duckdb.DuckDBPyConnection], Mapping[str, float]] = lambda _run: {}
    """The run file → by stage, the share of its tasks' time on no resource in which the delegated processes computed or
    waited, as far as the log has it; for other stages that delegate, all time without another cause counts."""
    spilling_operators: Callable[[duckdb.DuckDBPyConnection, Sequence[StageStats]], list[str]] = lambda *_: []
    """The run file, the stages of a scope → names of the operators that spilled, most bytes first."""
    findings: Callable[[duckdb.DuckDBPyConnection, Sequence[StageStats]], Sequence[Finding]] = lambda _run, _details: ()
    """The run file, the stages of a scope → the framework's own findings."""
    assumptions: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Assumption]] = lambda _run, _scope: ()
    """The run file, a scope → the assumptions of attributing its time."""
    remarks: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Remark]] = lambda _run, _scope: ()
    """The run file, a scope → the framework's own measurements that no finding has."""
    unmodelled_device: Callable[[duckdb.DuckDBPyConnection, Execution], str | None] = lambda _run, _scope: None
    """The run file, a scope → a device that computed for its tasks but has no resource; None without one."""
    candidates: Callable[[duckdb.DuckDBPyConnection, Execution, Diagnosis], Sequence[Candidate]] | None = None
    """The run file, a scope, its diagnosis → candidate recommendations in the framework's terms."""
    required_recording: Callable[[duckdb.DuckDBPyConnection], Recommendation | None] = lambda _run: None
    """The run file → the recording that an analysis of this run still needs; None if nothing is missing."""
    unbounded_load: Callable[[duckdb.DuckDBPyConnection, Execution], Remark | None] = lambda _run, _scope: None
    """The run file, a scope → the leading remark about an unbounded run, such as a stream that runs until it is
    stopped; None for any other run."""
    leading: Callable[[duckdb.DuckDBPyConnection, Execution], Remark | None] = lambda _run, _scope: None
    """The run file, a scope → what a reader has to know before the bottleneck; None for most runs."""
    other_causes: Callable[[duckdb.DuckDBPyConnection, Execution], Mapping[str, Remark]] = lambda _run, _scope: {}
    """The run file, a scope → by resource, another possible cause of the time on it; by `unknown`, what most of the
    time on no resource was."""
    named_parts: Callable[[duckdb.DuckDBPyConnection, Execution, Sequence[PathItem]], Sequence[NamedPart]] = (
        lambda _run, _scope, _path: ()
    )
    """The run file, a scope, its critical path → the parts of that which the framework names, such as a device that
    starts; they do not overlap."""
    efficiency: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Efficiency]] = lambda _run, _scope: ()
    """The run file, a scope → the work that its operators did on devices, and the devices' peaks."""
    call_sites: Callable[[duckdb.DuckDBPyConnection], Mapping[str, str]] = lambda _run: {}
    """The run file → by stage, where in the user's program its work was requested, as far as the log has it."""
    buffering_candidate: Callable[[Stream, float], Candidate] | None = None
    """A stream, ms that a record spends in buffers that fill → the candidate that changes it."""
    resizing_candidate: Callable[[Execution, str, float], Candidate | None] | None = None
    """A scope, `workers`, `cores` or `memory`, the factor → the candidate that changes it; None if it cannot be."""
    tunable: Callable[[duckdb.DuckDBPyConnection, Execution], Tunable] | None = None
    """The run file, a scope → what a search for a better configuration may change of the run."""
    was_released: Callable[[str | None], bool] = lambda _reason: False
    """The reason why a worker ended → whether it was released, not lost."""
    was_cancelled: Callable[[str], bool] = lambda _error: False
    """The error of a scope or a task → whether a user cancelled it."""
    was_superseded: Callable[[str], bool] = lambda _reason: False
    """Why a task was killed → whether another attempt of it had succeeded; the framework has a finding about those."""
    exhausted_memory: Callable[[str], Exhausted | None] = lambda _text: None
    """An error, or the reason why a worker ended → what ran out of memory; None if nothing did."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """The framework's words for metrics of a budget, with their keys (query.compare.metrics)."""
    setup: Setup | None = None
    """The configuration with which a job records a log and samples."""
    sentences: Sentences | None = None
    """Sentences of the framework's own kinds of findings, recommendations, refusals and assumptions."""
