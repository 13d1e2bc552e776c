"""The API for packages that add a framework or a predictor; docs/writing-a-framework.md has an example."""

from __future__ import annotations

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.resources import Resource
from crystalperf.indexes.schema import Table
from crystalperf.indexes.schema import read as tables_of
from crystalperf.query.execution.dag import Barriers
from crystalperf.query.execution.execution import Exchange, Execution
from crystalperf.query.execution.scenario import Scenario, tasks_of
from crystalperf.query.execution.scheduling import Policy, Waiting, by_rank, fair_share
from crystalperf.query.execution.stream import Station, Stream
from crystalperf.query.frameworks import (
    Advisor,
    Comparer,
    Frames,
    Framework,
    Growth,
    Job,
    MemoryRule,
    Names,
    OperatorAccount,
    OperatorFrame,
    Operators,
    Planned,
    Planner,
    Reader,
    Role,
    Setup,
    StepAccount,
    StreamAccount,
    jvm,
)
from crystalperf.query.inputs.containers import LogFile, Part, lines, pieces
from crystalperf.query.inputs.files import Application, Head, LogPart
from crystalperf.query.predict.estimate import replay_ms
from crystalperf.query.predict.nonnegative import nonnegative_fit
from crystalperf.query.predict.predictor import Predictor, SustainedRate
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.recommendations import Candidate, Recommendation, Saving, SettingChange
from crystalperf.query.results.refusals import (
    BandwidthNotStated,
    ExchangeUnknown,
    Refusal,
    RefusedError,
    RunsAlike,
    UsefulTimeUnknown,
)
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.simulate.transfers import PAPER, Physics
from crystalperf.query.trace.contract import Bounds, Edge, Scope, Stage, Task, Trace, Worker, of_rows
from crystalperf.query.trace.records import Floats, Problem, Problems
from crystalperf.query.trace.validate import validate
from crystalperf.query.trace.vocabulary import Vocabulary

__all__ = [
    "PAPER",
    "Advice",
    "Advisor",
    "Application",
    "Assumption",
    "BandwidthNotStated",
    "Barriers",
    "Bounds",
    "Candidate",
    "Comparer",
    "Edge",
    "Exchange",
    "ExchangeUnknown",
    "Execution",
    "Finding",
    "Floats",
    "Frames",
    "Framework",
    "Growth",
    "Head",
    "InputError",
    "Job",
    "LogFile",
    "LogPart",
    "MemoryRule",
    "Names",
    "OperatorAccount",
    "OperatorFrame",
    "Operators",
    "Part",
    "Physics",
    "Planned",
    "Planner",
    "Policy",
    "Predictor",
    "Problem",
    "Problems",
    "Reader",
    "Recommendation",
    "Refusal",
    "RefusedError",
    "Remark",
    "Resource",
    "Role",
    "RunsAlike",
    "Saving",
    "Scenario",
    "Scope",
    "Sentences",
    "SettingChange",
    "Setup",
    "Stage",
    "Station",
    "StepAccount",
    "Stream",
    "StreamAccount",
    "SustainedRate",
    "Table",
    "Task",
    "Trace",
    "UsefulTimeUnknown",
    "Vocabulary",
    "Waiting",
    "Words",
    "Worker",
    "by_rank",
    "fair_share",
    "jvm",
    "lines",
    "nonnegative_fit",
    "of_rows",
    "pieces",
    "replay_ms",
    "tables_of",
    "tasks_of",
    "validate",
    "with_tasks",
]
