"""The work of a process' kernels: what launched each, what it did, and what bounded it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.pytorch.work import VECTORIZED, Launch, launch, work
from crystalperf.query.frameworks.ml.training.devices import MODELS, PCIE, Model, model_of
from crystalperf.query.frameworks.ml.training.roofline import Grid, Kernel, Work, moved_bytes, shares

_UPDATES = regex(r"^aten::_(?:foreach|fused)_")
_ACCUMULATES = regex(r"AccumulateGrad")
_LONG_US = 100.0
_DEEPEST = 200
"""Operators looked at before a launch, for the one that contains it."""

_work = lru_cache(maxsize=20_000)(work)


class Kernels:
    """Finds the work of kernels of one process.

    `devices` are names of its devices by number.  Kernels of steps that ended before the trace began have no recorded
    launch: they get the shapes of another kernel with the same name and grid.
    """

    def __init__(
        self,
        process: Process,
        launched: Mapping[int, tuple[int, Ran]],
        theirs: Mapping[int, list[Ran]],
        devices: Mapping[str, str],
    ) -> None:
        self._launched = launched
        self._operators = {key: sorted(each, key=lambda one: one.start) for key, each in theirs.items()}
        self._starts = {key: [one.start for one in each] for key, each in self._operators.items()}
        self._read: dict[int, Launch | None] = {}
        self._by: dict[int, Launch] = {}
        self._same: dict[tuple[str, Grid | None], Launch] = {}
        self._parameters = self._shapes_of_parameters()
        self._halved = self._fewer_elements(process, devices)
        for of_stream in process.streams.values():
            for each in of_stream:
                if (by := self._launched_by(each)) is not None:
                    self._by[id(each)] = by
                    self._same.setdefault((each.name, each.grid), by)

    def of(self, each: Ran, device: str | None) -> Kernel:
        """A kernel on a device, named as in the trace."""
        model, us, grid = _model(device), each.end - each.start, each.grid or Grid()
        if each.name.startswith(("Memcpy", "Memset")):
            return _copy(each, us, model)
        by = self._by.get(id(each)) or self._same.get((each.name, each.grid))
        done = _work(each.name, grid.blocks, by)
        if done.known_by == "grid" and self._halved and VECTORIZED in each.name and done.bytes is not None:
            done = replace(done, bytes=done.bytes / 2)
        largest = max(by.tensors, key=lambda one: one.bytes, default=None) if by is not None else None
        parameter = not done.is_product and (
            (by is not None and any(by.lists)) or (largest is not None and largest.shape in self._parameters)
        )
        return Kernel(
            done,
            shares(done, us, model, grid),
            grid.fills(model),
            not parameter,
            wide=not parameter and largest is not None and largest.kind == "float",
            bytes=done.bytes if model is None or done.bytes is None else moved_bytes(done, model, grid),
        )

    def _fewer_elements(self, process: Process, devices: Mapping[str, str]) -> bool:
        """Whether vectorized kernels have half the elements a block, as in older versions of PyTorch.

        With all of them most long kernels, whose data no cache holds, would exceed the bandwidth of their device.
        """
        above, whole = 0.0, 0.0
        for (device, _), ran in process.streams.items():
            if (model := _model(devices.get(device))) is None:
                continue
            for each in ran:
                us = each.end - each.start
                of_one_kind = (
                    VECTORIZED in each.name and "copy" not in each.name
                )  # copies may change the kind of number
                if of_one_kind and us > _LONG_US and each.grid is not None:
                    moved = _work(each.name, each.grid.blocks, None).bytes or 0.0
                    whole += us
                    above += us if moved / us > 1.1 * model.memory_gbps * 1e3 else 0.0
        return above > whole / 2

    def _launched_by(self, each: Ran) -> Launch | None:
        """The inputs of the innermost operator that launched a kernel, if they were recorded."""
        host = self._launched.get(each.correlation) if each.correlation is not None else None
        if host is None or host[0] not in self._starts:
            return None
        operators = self._operators[host[0]]
        last = bisect_right(self._starts[host[0]], host[1].start) - 1
        for place in range(last, max(last - _DEEPEST, -1), -1):
            if operators[place].end >= host[1].start:
                return self._inputs(operators[place])
        return None

    def _inputs(self, operator: Ran) -> Launch | None:
        key = id(operator)
        if key not in self._read:
            self._read[key] = None if operator.inputs is None else launch(operator.name, *operator.inputs)
        return self._read[key]

    def _shapes_of_parameters(self) -> frozenset[tuple[int, ...]]:
        """Shapes of what the optimizer updates; where these are not recorded, of gradients that are accumulated, among
        which may be those of inputs."""
        for pattern in (_UPDATES, _ACCUMULATES):
            found: set[tuple[int, ...]] = set()
            names = {one.name for operators in self._operators.values() for one in operators}
            named = {each for each in names if pattern.search(each)}
            for each in (one for operators in self._operators.values() for one in operators):
                if each.name in named and (by := self._inputs(each)) is not None:
                    found.update(one.shape for one in (*by.tensors, *(one for listed in by.lists for one in listed)))
            if found:
                return frozenset(found)
        return frozenset()


@cache
def _model(device: str | None) -> Model | None:
    found = model_of(device)
    return None if found is None else MODELS[found]


def _copy(each: Ran, us: float, model: Model | None) -> Kernel:
    """A copy within the device's memory, which reads and writes, or one between memories; or a fill of memory."""
    within = not re.search(r"HtoD|DtoH|PtoP", each.name)
    passes = 1 if each.name.startswith("Memset") else 2
    done = Work(
        bytes=float(passes * each.bytes) if within and each.bytes is not None and each.bytes < 1 << 50 else None,
        known_by="grid",
    )
    if not within:
        return Kernel(done, None, True, True, PCIE.name)
    return Kernel(done, shares(done, us, model, Grid()), True, True, "copy", bytes=done.bytes)


def by_lane(process: Process, numbers: Mapping[tuple[str, str], int]) -> dict[int, list[Ran]]:
    """Operators of threads by the number of their lane."""
    return {numbers[key]: list(thread.operators) for key, thread in process.threads.items() if key in numbers}
