"""Kinds of findings, remarks and advice of PyTorch alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.remarks import Remark


@dataclass(frozen=True)
class Lost(Finding):
    """Time on the critical path lost by threads: `lost_ms`, of which `disk_ms` on the disk, most in `names`."""

    lost_ms: float
    disk_ms: float
    names: tuple[str, ...]


@dataclass(frozen=True)
class UnexplainedWait(Lost):
    """Threads waited while no traced operation ran on an accelerator."""

    kind: ClassVar[str] = "untraced-wait"


@dataclass(frozen=True)
class FreeingMemory(Lost):
    """Threads freed memory of the accelerator."""

    kind: ClassVar[str] = "freeing-memory"


@dataclass(frozen=True)
class Starting(Lost):
    """Threads started the accelerator and its libraries."""

    kind: ClassVar[str] = "starting"


@dataclass(frozen=True)
class UnexplainedHostTime(Lost):
    """Time of a thread between operators with an unknown cause."""

    kind: ClassVar[str] = "unknown-host-time"


@dataclass(frozen=True)
class WaitingInPython(Lost):
    """Threads waited in Python functions."""

    kind: ClassVar[str] = "waiting-in-python"


@dataclass(frozen=True)
class OwnBatches(Lost):
    """A thread of the training produced its batches itself."""

    kind: ClassVar[str] = "own-batches"


@dataclass(frozen=True)
class FirstUse(Lost):
    """Launches took long because they used a kernel for the first time."""

    kind: ClassVar[str] = "first-use"


@dataclass(frozen=True)
class OneLink(Finding):
    """All of the `processes` exchange gradients through one of them, which took `took_ms`."""

    kind: ClassVar[str] = "single-link-exchange"

    processes: int
    took_ms: float


@dataclass(frozen=True)
class WaitsInPython(Remark):
    """Most time on no resource was waiting in Python functions, most of it in this one."""

    kind: ClassVar[str] = "waits-in-python"

    function: str | None


@dataclass(frozen=True)
class StartsAccelerator(Remark):
    """Time in which threads started the accelerator and its libraries."""

    kind: ClassVar[str] = "starting-accelerator"


@dataclass(frozen=True)
class WaitsForAccelerator(Remark):
    """Time in which threads waited for the accelerator while nothing traced ran on it."""

    kind: ClassVar[str] = "waiting-for-accelerator"


@dataclass(frozen=True)
class FreesMemory(Remark):
    """Time in which threads freed memory of the accelerator."""

    kind: ClassVar[str] = "freeing-accelerator-memory"


@dataclass(frozen=True)
class FirstUses(Remark):
    """Time in which launches loaded their kernels."""

    kind: ClassVar[str] = "first-uses"


@dataclass(frozen=True)
class SlowRank(Remark):
    """Time in which all other processes waited for this one."""

    kind: ClassVar[str] = "slow-rank"

    process: str


@dataclass(frozen=True)
class MakesBatches(Remark):
    """Time in which the training's thread made its batches itself."""

    kind: ClassVar[str] = "making-batches"


@dataclass(frozen=True)
class LaunchBound(Finding):
    """The accelerator is idle for `idle_ms` because the host launches too slowly, `launches` in a step."""

    kind: ClassVar[str] = "launch-bound"

    idle_ms: float
    launches: float


@dataclass(frozen=True)
class Synchronises(Finding):
    """The host waits for the accelerator so many `times` a step, most in the function `place`."""

    kind: ClassVar[str] = "synchronisations"

    times: float
    place: str | None


@dataclass(frozen=True)
class DeviceMemoryBound(Finding):
    """Kernels that the bandwidth of the accelerator's memory limits take `kernels_ms` of the path."""

    kind: ClassVar[str] = "device-memory-bound"

    kernels_ms: float


# Advice ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SynchroniseLess(Advice):
    """Synchronise less within a step, and trace all that runs on the accelerator."""

    kind: ClassVar[str] = "synchronise-less"


@dataclass(frozen=True)
class ReuseDeviceMemory(Advice):
    """Let PyTorch keep memory of the accelerator for reuse."""

    kind: ClassVar[str] = "reuse-device-memory"


@dataclass(frozen=True)
class WarmUp(Advice):
    """Warm up before tracing."""

    kind: ClassVar[str] = "warm-up"


@dataclass(frozen=True)
class TracePython(Advice):
    """Trace Python functions too."""

    kind: ClassVar[str] = "trace-python"


@dataclass(frozen=True)
class OverlapPythonWaits(Advice):
    """Find out what Python functions wait for, and overlap that with the training."""

    kind: ClassVar[str] = "overlap-python-waits"


@dataclass(frozen=True)
class UseLoaders(Advice):
    """Have loader processes prefetch batches."""

    kind: ClassVar[str] = "use-loaders"


@dataclass(frozen=True)
class LaunchLess(Advice):
    """Launch fewer kernels, or all at once."""

    kind: ClassVar[str] = "launch-less"


@dataclass(frozen=True)
class AskLater(Advice):
    """Ask for results less often, or later."""

    kind: ClassVar[str] = "ask-later"


@dataclass(frozen=True)
class MoveFewerBytes(Advice):
    """Move fewer bytes in the accelerator's memory."""

    kind: ClassVar[str] = "move-fewer-bytes"


@dataclass(frozen=True)
class AllReduce(Advice):
    """Exchange gradients by all_reduce between so many processes."""

    kind: ClassVar[str] = "all-reduce"

    processes: int
