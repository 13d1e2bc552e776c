"""The limit of a kernel's time, from its work: arithmetic, bandwidth of the device's memory, or neither.

The roofline (Williams et al., CACM 2009) compares what a kernel reached with the device's peaks.  A kernel near the
peak bandwidth gains from bandwidth.  One far below both peaks is bound by latency: its grid is too small, it follows
indexes or adds atomically, or it waits for its own instructions.  In between both count: the share of the time that
follows bandwidth is (reached / attainable bandwidth) ^ STEEPNESS.

The constants were fitted on eight trainings whose kernels ran on an H100 and an H200, which differ in bandwidth alone:
`python -m lab.score.gpu` repeats the fit, and scores it on the training that it left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from crystalperf.query.frameworks.ml.training.devices import FULL, GPU, GROWING, HBM, LATENCY, MIX, WIDE, Model, Unit

Bound = Literal["compute", "memory", "latency"]


@dataclass(frozen=True, slots=True)
class Constants:
    """`attainable` is the share of the peak bandwidth that a kernel can reach; `floor_us` the time that starting and
    ending a kernel takes on any device; `busy` the share of the peak arithmetic from which on it alone is the limit."""

    attainable: float = 0.84
    steepness: float = 3.0
    floor_us: float = 2.0
    busy: float = 0.35


FITTED = Constants()


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a kernel: floating-point operations on one kind of unit, and bytes that cross the device's memory.

    None is unknown.  A kernel of two passes reads `again` bytes once more, from memory only if the cache cannot hold
    what all blocks keep between the passes, `row_bytes` each.  `known_by` is how: by the shapes of the operator that
    launched it, by its own grid and name, or by its name alone.
    """

    flops: float | None = None
    unit: Unit | None = None
    bytes: float | None = None
    again: float = 0.0
    row_bytes: float = 0.0
    known_by: Literal["shapes", "grid", "name"] = "name"

    @property
    def is_product(self) -> bool:
        """Whether arithmetic is what it mainly does: matrix products, convolutions, attention."""
        return self.unit is not None


@dataclass(frozen=True, slots=True)
class Grid:
    """A kernel's blocks, and the threads of each; 0 blocks for copies, which are not kernels of threads."""

    blocks: int = 0
    threads: int = 0

    def fills(self, model: Model | None) -> bool:
        """Whether it has 512 threads for each multiprocessor, a quarter of what one holds."""
        units = (model.units if model is not None else None) or _UNITS
        return self.blocks == 0 or (self.blocks >= units and self.blocks * self.threads >= 512 * units)

    def resident(self, model: Model) -> int:
        """Blocks that run at once, at most."""
        a_unit = min(2048 // self.threads, 32) if 0 < self.threads <= 2048 else 1
        return min(self.blocks, (model.units or _UNITS) * a_unit)


_UNITS = 100


def grid_of(grid: Any, block: Any) -> Grid | None:
    """A grid as CUPTI records it: [x, y, z] of blocks, and of threads of a block.  None if it is anything else."""
    sizes = [
        math.prod(each)
        for each in (grid, block)
        if isinstance(each, list)
        and 0 < len(each) <= 3
        and all(isinstance(one, int) and 0 < one < 1 << 31 for one in each)
    ]
    return Grid(*sizes) if len(sizes) == 2 else None


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a kernel's time by what bounds it; they sum to 1."""

    arithmetic: float = 0.0
    memory: float = 0.0
    latency: float = 0.0

    @property
    def by_resource(self) -> dict[str, float]:
        named = {GPU.name: self.arithmetic, HBM.name: self.memory, LATENCY.name: self.latency}
        return {name: share for name, share in named.items() if share > 0}

    @property
    def bound(self) -> Bound:
        """The largest share."""
        named: dict[Bound, float] = {"compute": self.arithmetic, "memory": self.memory, "latency": self.latency}
        return max(named, key=lambda each: named[each])


def shares(work: Work, us: float, model: Model | None, grid: Grid, constants: Constants = FITTED) -> Shares:
    """Shares of the time of a kernel of `us` µs.

    On an unknown device, and for work that is not known, the kernel's kind decides: arithmetic for products, bandwidth
    for others, and latency if it is short or its grid small.
    """
    if us <= 0:
        return Shares(latency=1.0)
    floor = min(constants.floor_us / us, 1.0)
    rest = 1.0 - floor
    body_us = us - constants.floor_us
    if body_us <= 0:
        return Shares(latency=1.0)
    if model is None or (work.bytes is None and work.flops is None):
        guessed = _guessed(work, grid.fills(model)) * rest
        if work.is_product:
            return Shares(arithmetic=guessed, latency=1.0 - guessed)
        return Shares(memory=guessed, latency=1.0 - guessed)
    memory = 0.0
    if work.bytes is not None:
        reached = moved_bytes(work, model, grid) / (body_us * 1e-6) / (model.memory_gbps * 1e9)
        near = min(reached / constants.attainable, 1.0) ** constants.steepness
        memory = near / max(reached, 1.0) * rest  # what exceeds the peak came from a cache
    arithmetic = 0.0
    if work.is_product:
        arithmetic = rest - memory
        peak = model.peak_flops(work.unit) if work.unit is not None else None
        if work.flops is not None and peak:
            reached = work.flops / (body_us * 1e-6) / peak
            if reached > _IMPOSSIBLE:  # a helper of a product: it prepares or adds up
                return Shares(latency=1.0)
            arithmetic *= min(reached / constants.busy, 1.0)
    return Shares(arithmetic, memory, max(1.0 - memory - arithmetic, 0.0))


def moved_bytes(work: Work, model: Model, grid: Grid) -> float:
    """Bytes from and to memory: a second pass over rows that fit in the cache does not count."""
    if work.bytes is None:
        return 0.0
    kept = work.row_bytes * grid.resident(model)
    fits = model.l2_mb is not None and kept <= model.l2_mb * 1e6 / 2  # each half of a large cache keeps its own copy
    return work.bytes if fits else work.bytes + work.again


_IMPOSSIBLE = 1.5
_LIKELY_FULL = 0.6
_LIKELY_PRODUCT = 1.0


def _guessed(work: Work, full: bool) -> float:
    """The share that its kind's resource bounds if its work is unknown."""
    if work.is_product:
        return _LIKELY_PRODUCT
    return _LIKELY_FULL if full else 0.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's work and what bounds it; `shares` is None for a copy between memories.

    `fills` is whether its grid fills the device, `grows` whether its work grows with the batch: not if its largest
    tensor is a parameter; `wide` whether that is float32 and not a parameter.  `kind` is set for copies.
    """

    work: Work
    shares: Shares | None
    fills: bool
    grows: bool
    kind: str = ""
    wide: bool = False
    bytes: float | None = None
    """Bytes through the device's memory, with the second passes that its cache could not hold."""

    @property
    def bound(self) -> str:
        """The limit of most of its time, for people: compute, memory, latency or copy."""
        return "copy" if self.shares is None or self.kind else self.shares.bound


def summary(kernels: Iterable[tuple[Kernel, float]]) -> dict[str, str]:
    """Properties of a run on which device swaps and batches depend, from its kernels and their times in ms."""
    mix: dict[str, float] = {}
    whole, growing = ({GPU.name: 0.0, HBM.name: 0.0, LATENCY.name: 0.0} for _ in range(2))
    full = wide = 0.0
    for each, ms in kernels:
        if each.shares is None:
            continue
        for name, share in each.shares.by_resource.items():
            whole[name] += share * ms
            if each.grows and (name != LATENCY.name or each.fills):
                growing[name] += share * ms
        if each.work.unit is not None:
            mix[each.work.unit] = mix.get(each.work.unit, 0.0) + each.shares.arithmetic * ms
        if each.fills:
            full += each.shares.latency * ms
        if each.wide:
            wide += each.shares.memory * ms
    return {
        MIX: " ".join(f"{unit}:{ms:.6g}" for unit, ms in sorted(mix.items()) if ms > 0),
        FULL: f"{full / whole[LATENCY.name]:.4g}" if whole[LATENCY.name] > 0 else "",
        WIDE: f"{wide / whole[HBM.name]:.4g}" if whole[HBM.name] > 0 else "",
        **{f"{GROWING}{name}": f"{growing[name] / ms:.4g}" for name, ms in whole.items() if ms > 0},
    }
