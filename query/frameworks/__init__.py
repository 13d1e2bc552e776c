"""The contract of a framework: one package that knows how its logs, frames, plans and schedulers look.

A framework is a frozen `Framework` in three parts, each a dataclass of plain functions, documented at its fields:

Reader   turns its files into a trace; required (query.inputs.reader; stack frames: query.inputs.frames)
Planner  says what it would do in another scenario (query.execution.execution)
Advisor  has findings and recommendations of its own (query.diagnose.advisor)

Each part is defined in the lowest package that asks it.  What is missing is refused where it is asked for.  Built-in
frameworks are packages of this folder; others come in by the entry point group `crystalperf.frameworks`, whose entries
name such a value.  Nothing else in CrystalPerf knows a framework's words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crystalperf.query.diagnose.advisor import Advisor as Advisor
from crystalperf.query.diagnose.advisor import Job as Job
from crystalperf.query.diagnose.advisor import Setup as Setup
from crystalperf.query.execution.execution import Growth as Growth
from crystalperf.query.execution.execution import MemoryRule as MemoryRule
from crystalperf.query.execution.execution import Planned as Planned
from crystalperf.query.execution.execution import Planner as Planner
from crystalperf.query.execution.execution import Steady as Steady
from crystalperf.query.inputs.frames import Frames as Frames
from crystalperf.query.inputs.frames import Names as Names
from crystalperf.query.inputs.frames import OperatorFrame as OperatorFrame
from crystalperf.query.inputs.frames import Operators as Operators
from crystalperf.query.inputs.frames import Role as Role
from crystalperf.query.inputs.reader import Reader as Reader
from crystalperf.query.trace.vocabulary import Exhausted as Exhausted
from crystalperf.query.trace.vocabulary import Vocabulary as Vocabulary
from crystalperf.query.trace.vocabulary import either as either
from crystalperf.query.trace.vocabulary import plural as plural
from crystalperf.query.trace.vocabulary import with_article as with_article


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
    planner: Planner = field(default_factory=Planner)
    """What it would do in another scenario."""
    advisor: Advisor = field(default_factory=Advisor)
    """Findings and recommendations that only it has, and how a job is set up for recording."""

    @property
    def takes_samples(self) -> bool:
        """Whether a user can record samples that its runs are then analysed with."""
        return self.advisor.setup is not None and self.reader.frames.process is not None
