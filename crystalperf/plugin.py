"""All that a package with a framework of its own imports; docs/writing-a-framework.md shows one."""

from __future__ import annotations

from indexes.errors import InputError
from indexes.resources import Resource
from indexes.schema import Table
from indexes.schema import read as tables_of
from query.frameworks import (
    Barriers,
    Framework,
    Growth,
    Job,
    MemoryRule,
    Names,
    OperatorFrame,
    Operators,
    Planned,
    Role,
    Rules,
    Setup,
    Vocabulary,
    jvm,
)
from query.inputs.containers import LogFile, Part, lines, pieces
from query.inputs.files import Application, Head, LogPart
from query.model.mistakes import mistakes
from query.model.policy import Policy, Waiting, by_rank, fair_share
from query.model.records import Problem, Problems
from query.model.trace import Bounds, Edge, Group, Scope, Trace, Unit, Worker, of_rows

__all__ = [
    "Application",
    "Barriers",
    "Bounds",
    "Edge",
    "Framework",
    "Group",
    "Growth",
    "Head",
    "InputError",
    "Job",
    "LogFile",
    "LogPart",
    "MemoryRule",
    "Names",
    "OperatorFrame",
    "Operators",
    "Part",
    "Planned",
    "Policy",
    "Problem",
    "Problems",
    "Resource",
    "Role",
    "Rules",
    "Scope",
    "Setup",
    "Table",
    "Trace",
    "Unit",
    "Vocabulary",
    "Waiting",
    "Worker",
    "by_rank",
    "fair_share",
    "jvm",
    "lines",
    "mistakes",
    "of_rows",
    "pieces",
    "tables_of",
]
