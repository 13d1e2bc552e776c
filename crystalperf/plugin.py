"""The API for packages that add a framework; docs/writing-a-framework.md has an example."""

from __future__ import annotations

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.resources import Resource
from crystalperf.indexes.schema import Table
from crystalperf.indexes.schema import read as tables_of
from crystalperf.query.execution.dag import Barriers
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario, tasks_of
from crystalperf.query.execution.scheduling import Policy, Waiting, by_rank, fair_share
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
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.recommendations import Candidate, Recommendation, Saving, SettingChange
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.sentences import Sentences
from crystalperf.query.results.words import Words
from crystalperf.query.simulate.repartition import with_tasks
from crystalperf.query.trace.contract import Bounds, Edge, Scope, Stage, Task, Trace, Worker, of_rows
from crystalperf.query.trace.records import Problem, Problems
from crystalperf.query.trace.validate import validate
from crystalperf.query.trace.vocabulary import Vocabulary

__all__ = [
    "Advice",
    "Advisor",
    "Application",
    "Assumption",
    "Barriers",
    "Bounds",
    "Candidate",
    "Comparer",
    "Edge",
    "Execution",
    "Finding",
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
    "Planned",
    "Planner",
    "Policy",
    "Problem",
    "Problems",
    "Reader",
    "Recommendation",
    "Refusal",
    "Remark",
    "Resource",
    "Role",
    "Saving",
    "Scenario",
    "Scope",
    "Sentences",
    "SettingChange",
    "Setup",
    "Stage",
    "StepAccount",
    "StreamAccount",
    "Table",
    "Task",
    "Trace",
    "Vocabulary",
    "Waiting",
    "Words",
    "Worker",
    "by_rank",
    "fair_share",
    "jvm",
    "lines",
    "of_rows",
    "pieces",
    "tables_of",
    "tasks_of",
    "validate",
    "with_tasks",
]
