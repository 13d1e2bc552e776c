"""Advice about findings, as data; query.text.findings and a framework's `sentences` write the text."""

from __future__ import annotations

from typing import ClassVar, Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.kinds import Kind, Price
from crystalperf.query.trace.vocabulary import Exhausted


@frozen
class Advice(Kind):
    """Advice about a finding; subclasses have its names and numbers."""

    requires: ClassVar[Price] = "code"

    @property
    def price(self) -> Price:
        """The effort of following it; a kind sets `requires` if that is the same for all of its advice."""
        return self.requires

    @property
    def at_start(self) -> bool:
        """Whether it is about the start, which every run has."""
        return False


# Tasks and slots ------------------------------------------------------------------------------------------------------


@frozen
class MoreTasks(Advice):
    """Use more, smaller tasks, because there are fewer tasks than slots."""

    kind: ClassVar[str] = "more-tasks"


@frozen
class SmallerTasks(Advice):
    """Use smaller tasks, so that the last wave is shorter."""

    kind: ClassVar[str] = "smaller-tasks"


@frozen
class FewerTasks(Advice):
    """Use fewer, larger tasks, because starting each takes long."""

    kind: ClassVar[str] = "fewer-tasks"


@frozen
class SpreadInput(Advice):
    """Spread the input more evenly over the tasks."""

    kind: ClassVar[str] = "spread-input"


@frozen
class RelaxPlacement(Advice):
    """Relax data locality so that tasks run on free slots, or spread their data over all workers."""

    kind: ClassVar[str] = "relax-placement"
    requires: ClassVar[Price] = "setting"


@frozen
class InspectTaskWaits(Advice):
    """Find out why tasks waited although slots were free."""

    kind: ClassVar[str] = "inspect-task-waits"
    requires: ClassVar[Price] = "inspect"


# Memory ---------------------------------------------------------------------------------------------------------------


@frozen
class MoreMemory(Advice):
    """Give each worker more memory, or let fewer slots share it."""

    kind: ClassVar[str] = "more-memory"
    requires: ClassVar[Price] = "machine"

    fewer_slots: bool


@frozen
class AvoidSpilling(Advice):
    """Give more memory to the operators that spilled, or process less data at a time.

    `delegated` is whether other processes than the workers spilled.
    """

    kind: ClassVar[str] = "avoid-spilling"

    delegated: bool


@frozen
class FitCache(Advice):
    """Provide enough memory for all cached data."""

    kind: ClassVar[str] = "fit-cache"
    requires: ClassVar[Price] = "machine"


@frozen
class AvoidExhaustion(Advice):
    """Prevent another exhaustion of the memory that ran out."""

    kind: ClassVar[str] = "avoid-exhaustion"
    requires: ClassVar[Price] = "machine"

    exhausted: Exhausted


# CPUs, devices and hosts ----------------------------------------------------------------------------------------------


@frozen
class MoreCpu(Advice):
    """Provide CPUs for all tasks: a larger limit, dedicated machines, or fewer slots."""

    kind: ClassVar[str] = "more-cpu"
    requires: ClassVar[Price] = "machine"

    larger_limit: bool
    own_machines: bool
    slots: Literal["same", "fewer", "fewer-than-cores"]

    @property
    def price(self) -> Price:
        return "machine" if self.larger_limit or self.own_machines else "setting"


@frozen
class InspectHost(Advice):
    """Find out why a resource of a host is slower than on its peers."""

    kind: ClassVar[str] = "inspect-host"
    requires: ClassVar[Price] = "inspect"

    host: str
    resource: str


@frozen
class CompareHosts(Advice):
    """Compare the host that a slow task ran on with its peers."""

    kind: ClassVar[str] = "compare-hosts"
    requires: ClassVar[Price] = "inspect"


@frozen
class InspectComputation(Advice):
    """Look at the computation for the rows of a slow task."""

    kind: ClassVar[str] = "inspect-computation"
    requires: ClassVar[Price] = "inspect"


@frozen
class InspectDevice(Advice):
    """Find out why tasks wait for a device that hardly moves data."""

    kind: ClassVar[str] = "inspect-device"
    requires: ClassVar[Price] = "inspect"

    resource: str


@frozen
class RecordSamples(Advice):
    """Record stack samples, because nothing else shows what a task did."""

    kind: ClassVar[str] = "record-samples"
    requires: ClassVar[Price] = "record"


# Workers, the driver and the program -----------------------------------------------------------------------------


@frozen
class KeepWorkers(Advice):
    """Keep workers alive between runs."""

    kind: ClassVar[str] = "keep-workers"
    requires: ClassVar[Price] = "setting"

    @property
    def at_start(self) -> bool:
        return True


@frozen
class StartWorkersSooner(Advice):
    """Start workers before the run needs them."""

    kind: ClassVar[str] = "start-workers-sooner"
    requires: ClassVar[Price] = "setting"

    @property
    def at_start(self) -> bool:
        return True


@frozen
class FreeClusterCapacity(Advice):
    """Check that the cluster has free capacity for a worker."""

    kind: ClassVar[str] = "free-cluster-capacity"
    requires: ClassVar[Price] = "inspect"


@frozen
class ReadWorkerLog(Advice):
    """Read the last lines of the log of a worker that was lost."""

    kind: ClassVar[str] = "read-worker-log"
    requires: ClassVar[Price] = "inspect"

    worker: str
    host: str | None


@frozen
class InspectEndedTasks(Advice):
    """Look at why tasks failed or were killed."""

    kind: ClassVar[str] = "inspect-ended-tasks"
    requires: ClassVar[Price] = "inspect"

    status: Literal["failed", "killed"]


@frozen
class InspectProgram(Advice):
    """Look at what the program does between scopes, before the first (`start`), or after the last of them."""

    kind: ClassVar[str] = "inspect-program"
    requires: ClassVar[Price] = "inspect"

    when: Literal["start", "between", "end"] = "between"

    @property
    def at_start(self) -> bool:
        return self.when == "start"


@frozen
class InspectDriver(Advice):
    """Look at what the driver does while no task runs; the run has `scopes` of its primary kind."""

    kind: ClassVar[str] = "inspect-driver"
    requires: ClassVar[Price] = "inspect"

    scopes: int
