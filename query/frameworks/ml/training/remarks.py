"""Kinds of remarks of trainings alone: on steps, and on other possible causes of time on a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from crystalperf.indexes.frozen import frozen
from crystalperf.query.results.remarks import Remark


@frozen
class StepTime(Remark):
    """The mean step time, over `steps` steps of `processes` processes."""

    kind: ClassVar[str] = "step-time"

    step_ms: float
    steps: int
    processes: int


@frozen
class InputWait(Remark):
    """Threads waited for their next batch."""

    kind: ClassVar[str] = "input-wait"

    waited_ms: float


@frozen
class Communication(Remark):
    """How long collectives moved bytes, summed over processes; nothing else ran during `exposed_ms` of that."""

    kind: ClassVar[str] = "communication"

    moved_ms: float
    exposed_ms: float


@frozen
class WaitForSlowest(Remark):
    """Processes waited for the slowest before bytes moved, mostly for this one."""

    kind: ClassVar[str] = "wait-for-slowest"

    waited_ms: float
    slowest: str | None


@frozen
class MayBePageCache(Remark):
    """Some time on the disk may be copying from the page cache."""

    kind: ClassVar[str] = "may-be-page-cache"


@frozen
class MayWaitForRanks(Remark):
    """Some time on the network may be waiting for ranks without a trace: `absent` of `ranks`."""

    kind: ClassVar[str] = "may-wait-for-ranks"

    absent: int
    ranks: int


@frozen
class UnevenSteps(Remark):
    """Of `steps` traced steps the longest took `longest_ms` and the shortest `shortest_ms`, so a mean is uncertain."""

    kind: ClassVar[str] = "uneven-steps"
    on_first_screen: ClassVar[bool] = True

    steps: int
    shortest_ms: float
    longest_ms: float


@frozen
class DeviceMemoryPeak(Remark):
    """The highest use of an accelerator's memory: `peak_bytes` in blocks of the program, by the `parts` of a step that
    asked for them, `reserved_bytes` by the framework, of `capacity_bytes`; None if that is unknown."""

    kind: ClassVar[str] = "device-memory-peak"
    on_first_screen: ClassVar[bool] = True

    peak_bytes: int
    reserved_bytes: int
    capacity_bytes: int | None
    parts: Mapping[str, int]


@frozen
class ProfilerIncluded(Remark):
    """Steps include what the profiler cost the host, and have no 90 % range: it is known for one rank of PyTorch alone,
    because steps of several `ranks` depend on each other."""

    kind: ClassVar[str] = "profiler-included"
    on_first_screen: ClassVar[bool] = True

    ranks: int


@frozen
class HostLaunches(Remark):
    """The host launches work on the accelerator more slowly than that does it: `busy_ms` of a step of `step_ms`."""

    kind: ClassVar[str] = "host-launches"

    busy_ms: float
    step_ms: float


@frozen
class HostWaitsForResults(HostLaunches):
    """The same, and it waits for the accelerator's results so many `times` a step, most in the function `place`."""

    kind: ClassVar[str] = "host-waits-for-results"

    times: float
    place: str | None


@frozen
class AcceleratorLimits(Remark):
    """The accelerator limits the steps: the path's time by what bounds its kernels, ms."""

    kind: ClassVar[str] = "accelerator-limits"

    memory_ms: float
    arithmetic_ms: float
    latency_ms: float


@frozen
class NoOperator(Remark):
    """Time of the training's thread in which no operator ran, and no Python function was traced."""

    kind: ClassVar[str] = "no-operator"
