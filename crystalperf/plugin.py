"""All that a package with a framework of its own imports; docs/writing-a-framework.md shows one."""

from __future__ import annotations

from indexes.errors import InputError
from indexes.resources import Resource
from query.frameworks import (
    Barriers,
    Framework,
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
from query.inputs.containers import LogFile, lines
from query.inputs.files import Application, Head, LogPart
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
    "Head",
    "InputError",
    "LogFile",
    "LogPart",
    "MemoryRule",
    "Names",
    "OperatorFrame",
    "Operators",
    "Planned",
    "Policy",
    "Problem",
    "Problems",
    "Resource",
    "Role",
    "Rules",
    "Scope",
    "Setup",
    "Trace",
    "Unit",
    "Vocabulary",
    "Waiting",
    "Worker",
    "by_rank",
    "fair_share",
    "jvm",
    "lines",
    "of_rows",
]
