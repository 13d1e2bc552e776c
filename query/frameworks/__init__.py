"""The contract of a framework: a package that reads its logs, frames and plans, and models its scheduler.

A framework is a frozen `Framework` in four parts, each a dataclass of functions or values, documented at its fields:

Reader   turns its files into a trace; required (query.inputs.reader; stack frames: query.inputs.frames)
Planner  says what the framework would do in another scenario (query.execution.execution)
Advisor  adds findings and recommendations of the framework's own (query.diagnose.advisor)
Comparer says which settings and operators matter if runs are compared (query.diagnose.comparer)

Each part is defined in the lowest package that calls it.  The caller refuses what a framework does not implement.
Built-in frameworks are packages of this folder; other packages add theirs through the entry point group
`crystalperf.frameworks`, with entries that name a `Framework`.  The rest of CrystalPerf uses no framework's terms.
"""

from __future__ import annotations

from dataclasses import field

from crystalperf.indexes.frozen import frozen
from crystalperf.query.diagnose.advisor import Advisor as Advisor
from crystalperf.query.diagnose.advisor import Job as Job
from crystalperf.query.diagnose.advisor import Setup as Setup
from crystalperf.query.diagnose.comparer import Comparer as Comparer
from crystalperf.query.diagnose.comparer import OperatorAccount as OperatorAccount
from crystalperf.query.diagnose.comparer import OperatorPlace as OperatorPlace
from crystalperf.query.diagnose.comparer import StepAccount as StepAccount
from crystalperf.query.diagnose.comparer import StreamAccount as StreamAccount
from crystalperf.query.execution.execution import Ends as Ends
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
from crystalperf.query.inputs.reader import DelegateProfiles as DelegateProfiles
from crystalperf.query.inputs.reader import Reader as Reader
from crystalperf.query.trace.vocabulary import Exhausted as Exhausted
from crystalperf.query.trace.vocabulary import Vocabulary as Vocabulary
from crystalperf.query.trace.vocabulary import either as either
from crystalperf.query.trace.vocabulary import plural as plural
from crystalperf.query.trace.vocabulary import with_article as with_article


@frozen
class Framework:
    """A framework in four parts; only the reader is required."""

    name: str
    """Its key: in run files, on the command line, and the name of its package."""
    title: str
    """Its display name."""
    reader: Reader
    """Recognises its files and reads the trace in them."""
    vocabulary: Vocabulary = Vocabulary()
    """Its terms for workers, slots, stages and tasks."""
    planner: Planner = field(default_factory=Planner)
    """Models what it would do in another scenario."""
    advisor: Advisor = field(default_factory=Advisor)
    """Findings and recommendations of this framework alone, and the setup of a job for recording."""
    comparer: Comparer = field(default_factory=Comparer)
    """The settings and operators of this framework that matter if runs are compared."""

    @property
    def takes_samples(self) -> bool:
        """Whether users can record samples with which runs of this framework are analysed."""
        return self.advisor.setup is not None and self.reader.frames.process is not None
