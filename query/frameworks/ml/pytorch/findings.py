"""Kinds of findings, remarks and advice of PyTorch alone."""

from __future__ import annotations

from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.kinds import Price
from crystalperf.query.results.remarks import Remark


@frozen
class Lost(Finding):
    """Time on the critical path lost by threads: `lost_ms`, of which `disk_ms` on the disk, most in `names`."""

    lost_ms: float
    disk_ms: float
    names: tuple[str, ...]


@frozen
class UnexplainedWait(Lost):
    """Threads waited while no traced operation ran on an accelerator."""

    kind: ClassVar[str] = "untraced-wait"


@frozen
class FreeingMemory(Lost):
    """Threads freed memory of the accelerator."""

    kind: ClassVar[str] = "freeing-memory"


@frozen
class Starting(Lost):
    """Threads started the accelerator and its libraries."""

    kind: ClassVar[str] = "starting"


@frozen
class UnexplainedHostTime(Lost):
    """Time of a thread between operators with an unknown cause."""

    kind: ClassVar[str] = "unknown-host-time"


@frozen
class WaitingInPython(Lost):
    """Threads waited in Python functions."""

    kind: ClassVar[str] = "waiting-in-python"


@frozen
class OwnBatches(Lost):
    """A thread of the training produced its batches itself."""

    kind: ClassVar[str] = "own-batches"


@frozen
class FirstUse(Lost):
    """Launches took long because they used a kernel for the first time."""

    kind: ClassVar[str] = "first-use"


@frozen
class OneLink(Finding):
    """All of the `processes` exchange gradients through one of them, which took `took_ms`."""

    kind: ClassVar[str] = "single-link-exchange"

    processes: int
    took_ms: float


@frozen
class WaitsInPython(Remark):
    """Most time on no resource was waiting in Python functions, most of it in this one."""

    kind: ClassVar[str] = "waits-in-python"

    function: str | None


@frozen
class StartsAccelerator(Remark):
    """Time in which threads started the accelerator and its libraries."""

    kind: ClassVar[str] = "starting-accelerator"


@frozen
class WaitsForAccelerator(Remark):
    """Time in which threads waited for the accelerator while nothing traced ran on it."""

    kind: ClassVar[str] = "waiting-for-accelerator"


@frozen
class FreesMemory(Remark):
    """Time in which threads freed memory of the accelerator."""

    kind: ClassVar[str] = "freeing-accelerator-memory"


@frozen
class FirstUses(Remark):
    """Time in which launches loaded their kernels."""

    kind: ClassVar[str] = "first-uses"


@frozen
class SlowRank(Remark):
    """Time in which all other processes waited for this one."""

    kind: ClassVar[str] = "slow-rank"

    process: str


@frozen
class MakesBatches(Remark):
    """Time in which the training's thread made its batches itself."""

    kind: ClassVar[str] = "making-batches"


@frozen
class LaunchBound(Finding):
    """The accelerator is idle for `idle_ms` because the host launches too slowly, `launches` in a step."""

    kind: ClassVar[str] = "launch-bound"

    idle_ms: float
    launches: float


@frozen
class Synchronises(Finding):
    """The host waits for the accelerator so many `times` a step, most in the function `place`."""

    kind: ClassVar[str] = "synchronisations"

    times: float
    place: str | None


@frozen
class DeviceMemoryBound(Finding):
    """Kernels that the bandwidth of the accelerator's memory limits take `kernels_ms` of the path."""

    kind: ClassVar[str] = "device-memory-bound"

    kernels_ms: float


# Advice ---------------------------------------------------------------------------------------------------------------


@frozen
class SynchroniseLess(Advice):
    """Synchronise less within a step, and trace all that runs on the accelerator."""

    kind: ClassVar[str] = "synchronise-less"


@frozen
class ReuseDeviceMemory(Advice):
    """Let PyTorch keep memory of the accelerator for reuse."""

    kind: ClassVar[str] = "reuse-device-memory"


@frozen
class WarmUp(Advice):
    """Warm up before tracing."""

    kind: ClassVar[str] = "warm-up"
    requires: ClassVar[Price] = "record"


@frozen
class TracePython(Advice):
    """Trace Python functions too."""

    kind: ClassVar[str] = "trace-python"
    requires: ClassVar[Price] = "record"


@frozen
class OverlapPythonWaits(Advice):
    """Find out what Python functions wait for, and overlap that with the training."""

    kind: ClassVar[str] = "overlap-python-waits"
    requires: ClassVar[Price] = "inspect"


@frozen
class UseLoaders(Advice):
    """Have loader processes prefetch batches."""

    kind: ClassVar[str] = "use-loaders"


@frozen
class LaunchLess(Advice):
    """Launch fewer kernels, or all at once."""

    kind: ClassVar[str] = "launch-less"


@frozen
class AskLater(Advice):
    """Ask for results less often, or later."""

    kind: ClassVar[str] = "ask-later"


@frozen
class MoveFewerBytes(Advice):
    """Move fewer bytes in the accelerator's memory."""

    kind: ClassVar[str] = "move-fewer-bytes"


@frozen
class AllReduce(Advice):
    """Exchange gradients by all_reduce between so many processes."""

    kind: ClassVar[str] = "all-reduce"

    processes: int
