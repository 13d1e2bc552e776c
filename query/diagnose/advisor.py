"""What a framework's package may add to answers: findings, recommendations, and how a job is set up for recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crystalperf.query.results.sentences import Sentences
from crystalperf.query.trace.vocabulary import Exhausted

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.diagnose.group_statistics import Detail, Diagnosis
    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.execution.stream import Flow
    from crystalperf.query.results.advice import Advice
    from crystalperf.query.results.assumptions import Assumption
    from crystalperf.query.results.findings import Finding
    from crystalperf.query.results.recommendations import Candidate, Recommendation
    from crystalperf.query.results.remarks import Remark


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

    idle_advice: Callable[[Detail], Advice | None] | None = None
    """A group that left slots idle → what to do, None where nothing can or need be done."""
    skew_advice: Callable[[Detail], Advice] | None = None
    """A group of which one unit reads much more than most → what to do."""
    has_device_finding: Callable[[Detail], bool] = lambda _detail: False
    """Whether a group's time on devices has a finding of its own."""
    delegated_shares: Callable[[duckdb.DuckDBPyConnection], Mapping[str, float]] = lambda _run: {}
    """The run file → by group the share of its units' time on no resource in which such processes computed or waited,
    as far as the log has it; of other groups that delegate it is all that nothing else accounts for."""
    spilling_operators: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], list[str]] = lambda _run, _details: []
    """The run file, the groups of a scope → names of the operators that spilled, the one with most bytes first."""
    findings: Callable[[duckdb.DuckDBPyConnection, Sequence[Detail]], Sequence[Finding]] = lambda _run, _details: ()
    """The run file, the groups of a scope → findings of its own."""
    assumptions: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Assumption]] = lambda _run, _scope: ()
    """The run file, a scope → what was assumed in attributing its time."""
    remarks: Callable[[duckdb.DuckDBPyConnection, Execution], Sequence[Remark]] = lambda _run, _scope: ()
    """The run file, a scope → what the framework measured of itself that no other answer has."""
    unmodelled_device: Callable[[duckdb.DuckDBPyConnection, Execution], str | None] = lambda _run, _scope: None
    """The run file, a scope → a device that computed for its units and is in no resource, None without one."""
    candidates: Callable[[duckdb.DuckDBPyConnection, Execution, Diagnosis], Sequence[Candidate]] | None = None
    """The run file, a scope, its diagnosis → what users can change about it, in its terms."""
    required_recording: Callable[[duckdb.DuckDBPyConnection], Recommendation | None] = lambda _run: None
    """The run file → what to record before what its user asks for can be answered, None where all of it is there."""
    unbounded_load: Callable[[duckdb.DuckDBPyConnection, Execution], Remark | None] = lambda _run, _scope: None
    """The run file, a scope → what comes first of a run without an end of its own, as a stream that goes on until it is
    stopped; None of any other."""
    other_causes: Callable[[duckdb.DuckDBPyConnection, Execution], Mapping[str, Remark]] = lambda _run, _scope: {}
    """The run file, a scope → by resource what else the time on it may be; by `unknown` what most of the time on none
    was."""
    buffering_candidate: Callable[[Flow, float], Candidate] | None = None
    """A stream, ms that a record of it spends in buffers that fill → how that is changed."""
    resizing_candidate: Callable[[Execution, str, float], Candidate | None] | None = None
    """A scope, `workers`, `cores` or `memory`, the factor → how that is changed, None where it cannot be."""
    was_released: Callable[[str | None], bool] = lambda _reason: False
    """Why a worker ended → whether it was released, and not lost."""
    was_cancelled: Callable[[str], bool] = lambda _error: False
    """Why a scope or a unit failed → whether somebody cancelled it."""
    exhausted_memory: Callable[[str], Exhausted | None] = lambda _text: None
    """An error, or why a worker ended → what ran out of memory, None where nothing did."""
    setup: Setup | None = None
    """What a job needs so that it leaves a log and samples."""
    sentences: Sentences | None = None
    """The sentences of kinds of findings, recommendations, refusals and assumptions that only it has."""
