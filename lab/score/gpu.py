"""Kernel times on another GPU, predicted and measured: ``python -m lab.score.gpu DIR``, Markdown tables.

`--write PAGE` puts them into a page.  `--fit` repeats the fit of the constants of `roofline.py`.  `--steps` scores
whole steps instead, `--every` with each answer (gpu_steps.py), `--terms` fits the terms of their ranges, and
`--coverage` counts how many ranges cover, also with the training left out of the fit (gpu_terms.py).

DIR has `rows.jsonl`, and for each GPU a folder with a trace of each training: `h100/chain-16384/….json.gz`.  The same
kernels ran on both GPUs, so the time of those that both traces have is predicted from the one and measured in the
other.  Each training is scored with constants that were fitted on all others.  Batches: the time of a step without
profiler, where the GPU limits it at both batch sizes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from crystalperf.query.frameworks.ml.pytorch.kernels import Kernels
from crystalperf.query.frameworks.ml.pytorch.kineto import Process, Ran
from crystalperf.query.frameworks.ml.training import chrome
from crystalperf.query.frameworks.ml.training.devices import GROWING, HBM, MODELS, model_of
from crystalperf.query.frameworks.ml.training.roofline import FITTED, Constants, Grid, Kernel, shares, summary
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import Problems
from lab.errors import LabError
from lab.pages import head, put, row
from lab.score import gpu_steps, gpu_terms

BOUND = ("chain", "resnet50", "resnet50_bf16", "tables")
"""The trainings that the GPU limits; README.md of the recordings has why."""

_GRID = tuple(
    Constants(attainable, steepness, floor)
    for attainable, steepness, floor in product(
        (0.78, 0.81, 0.84, 0.87, 0.9, 0.93), (2, 2.5, 3, 3.5, 4), (1, 1.5, 2, 2.5)
    )
)
Key = tuple[str, Grid | None, int | None]


@dataclass(frozen=True)
class Traced:
    """A trace's kernels on one device: each with what it is, its time in ms, and its work."""

    device: str
    kernels: Sequence[tuple[Key, float, Kernel]]

    def times(self) -> dict[Key, list[float]]:
        found: dict[Key, list[float]] = defaultdict(list)
        for key, ms, _ in self.kernels:
            found[key].append(ms)
        return found


@dataclass(frozen=True)
class Swap:
    """A prediction of one training's kernels on another device; times in ms of the kernels that both traces have."""

    kind: str
    before: str
    after: str
    was_ms: float
    predicted_ms: float
    measured_ms: float
    matched: float

    @property
    def off(self) -> float:
        return self.predicted_ms / self.measured_ms - 1

    @property
    def unchanged(self) -> float:
        """The error of "no change"."""
        return self.was_ms / self.measured_ms - 1


def read(path: Path, *, shapes: bool = True) -> Traced:
    """The kernels of a trace.  Without shapes as in a trace that was recorded without them.  Raises LabError."""
    process = Process("0")
    part = Part(str(path))
    names: dict[str, str] = {}
    for events in chrome.read(LogFile(str(path), (part,)), part, Problems(), process.header):
        process.take(events, names)
    numbers = {key: number for number, key in enumerate(process.threads)}
    launched: dict[int, tuple[int, Ran]] = {}
    operators: dict[int, list[Ran]] = {}
    for key, thread in process.threads.items():
        operators[numbers[key]] = thread.operators if shapes else []
        launched.update(
            {each.correlation: (numbers[key], each) for each in thread.calls if each.correlation is not None}
        )
    listed = process.header.get("deviceProperties")
    device = str(listed[0]["name"]) if isinstance(listed, list) and listed else ""
    if model_of(device) is None:
        raise LabError(f"{path}: the trace names no device of the table; record it with PyTorch 1.12 or newer")
    works = Kernels(process, launched, operators, {key[0]: device for key in process.streams})
    return Traced(
        device,
        [
            ((each.name, each.grid, each.bytes), (each.end - each.start) / 1e3, works.of(each, device))
            for stream in process.streams.values()
            for each in stream
        ],
    )


def swap(kind: str, before: Traced, after: Traced, constants: Constants = FITTED) -> Swap:
    """The time of the kernels that both traces have: as many of each as the trace with fewer has."""
    old, new = MODELS[model_of(before.device) or ""], MODELS[model_of(after.device) or ""]
    ratio = old.memory_gbps / new.memory_gbps
    was, is_ = before.times(), after.times()
    count = {key: min(len(was[key]), len(is_[key])) for key in was if key in is_}
    predicted = 0.0
    for key, ms, kernel in before.kernels:
        if key not in count:
            continue
        memory = 0.0
        if kernel.shares is not None:
            bound = shares(kernel.work, ms * 1e3, old, key[1] or Grid(), constants)
            memory = bound.by_resource.get(HBM.name, 0.0)
        predicted += count[key] / len(was[key]) * ms * (1 - memory + memory * ratio)
    was_ms = sum(number * statistics.mean(was[key]) for key, number in count.items())
    measured = sum(number * statistics.mean(is_[key]) for key, number in count.items())
    whole = sum(map(sum, was.values()))
    matched = sum(sum(was[key]) for key in count) / whole
    return Swap(kind, before.device, after.device, was_ms, predicted, measured, matched)


def swaps(traces: Mapping[str, Mapping[str, Traced]], constants: Constants = FITTED) -> Iterator[Swap]:
    """Both directions of each training."""
    for kind, by_gpu in traces.items():
        for before, after in (("h100", "h200"), ("h200", "h100")):
            if before in by_gpu and after in by_gpu:
                yield swap(kind, by_gpu[before], by_gpu[after], constants)


def left_out(traces: Mapping[str, Mapping[str, Traced]]) -> dict[str, Constants]:
    """For each training the constants with the smallest mean error on all others."""
    off = {each: {(one.kind, one.before): abs(one.off) for one in swaps(traces, each)} for each in _GRID}
    return {
        kind: min(_GRID, key=lambda each: sum(value for (other, _), value in off[each].items() if other != kind))
        for kind in traces
    }


@dataclass(frozen=True)
class Batch:
    """A prediction of a step with another batch, ms."""

    kind: str
    device: str
    batch: int
    other: int
    was_ms: float
    predicted_ms: float
    measured_ms: float


def batches(rows: Sequence[Mapping[str, object]], traces: Mapping[str, Mapping[str, Traced]]) -> Iterator[Batch]:
    """Steps of the trainings that the GPU limits, with the share of their kernels' time that grows."""
    steps = {
        (str(each["gpu"]), str(each["kind"]), int(str(each["batch"]))): float(str(each["step_ms"]))
        for each in rows
        if "step_ms" in each
    }
    for (gpu, kind, other), measured in steps.items():
        bases = [batch for name, own, batch in steps if (name, own) == (gpu, kind)]
        base = bases[0]  # the first of each training is the one that was traced
        if kind not in BOUND or other <= base or kind not in traces or gpu not in traces[kind]:
            continue  # with a smaller batch the host limits them, which the traced step does not show
        kernels = [(kernel, ms) for _, ms, kernel in traces[kind][gpu].kernels]
        facts = summary(kernels)
        growing = whole = 0.0
        for kernel, ms in kernels:
            for name, share in ({} if kernel.shares is None else kernel.shares.by_resource).items():
                whole += share * ms
                growing += share * ms * float(facts.get(f"{GROWING}{name}", 1))
        was = steps[gpu, kind, base]
        yield Batch(kind, gpu, base, other, was, was * (1 + growing / whole * (other / base - 1)), measured)


def load(folder: Path, *, shapes: bool = True) -> dict[str, dict[str, Traced]]:
    """Traces by training and GPU.  Raises LabError."""
    found: dict[str, dict[str, Traced]] = defaultdict(dict)
    for path in sorted([*folder.glob("*/*-*/*.json*"), *folder.glob("*/traces/*-*/full.json*")]):
        found[path.parent.name.rpartition("-")[0]][path.relative_to(folder).parts[0]] = read(path, shapes=shapes)
    if not found:
        raise LabError(f"{folder} has no traces; give a folder with h100/TRAINING-BATCH/….json.gz")
    return found


def lines(folder: Path) -> list[str]:
    """The tables of a folder of recordings."""
    full, light = load(folder), load(folder, shapes=False)
    fitted = left_out(full)
    ours = {(each.kind, each.before): each for kind in full for each in swaps({kind: full[kind]}, fitted[kind])}
    names = {(each.kind, each.before): each for each in swaps(light, FITTED)}
    said = head("training | from | >no change | >CrystalPerf | >without shapes | >kernels compared")
    for key, each in ours.items():
        to = f"{model_of(each.before)} to {model_of(each.after)}"
        said.append(
            row(
                each.kind, to, f"{100 * each.unchanged:+.0f} %", f"{100 * each.off:+.1f} %",
                f"{100 * names[key].off:+.1f} %", f"{100 * each.matched:.0f} %",
            )
        )  # fmt: skip
    for title, chosen in (("mean of those that the GPU limits", BOUND), ("mean of all", tuple(full))):
        means = [
            statistics.mean(abs(value) for key, value in each.items() if key[0] in chosen)
            for each in (
                {key: one.unchanged for key, one in ours.items()},
                {key: one.off for key, one in ours.items()},
                {key: one.off for key, one in names.items()},
            )
            if any(key[0] in chosen for key in each)
        ]
        cells = [f"{100 * each:.1f} %" for each in means]
        if any(key[0] in chosen for key in ours):
            said.append(row(title, "", *cells, ""))
    listed = folder / "rows.jsonl"
    if listed.exists():
        rows = [json.loads(each) for each in listed.read_text(encoding="utf-8").splitlines()]
        said += ["", *head("training | GPU | batch | >step [ms] | >predicted | >measured | >error")]
        said += [
            row(
                each.kind, each.device.upper(), f"{each.batch} to {each.other}", f"{each.was_ms:.1f}",
                f"{each.predicted_ms:.1f}", f"{each.measured_ms:.1f}",
                f"{100 * (each.predicted_ms / each.measured_ms - 1):+.0f} %",
            )
            for each in batches(rows, full)
        ]  # fmt: skip
    return said


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.score.gpu", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into a page")
    parser.add_argument("--steps", action="store_true", help="score whole steps instead of kernels")
    parser.add_argument("--every", action="store_true", help="with --steps: print each answer too")
    parser.add_argument("--terms", action="store_true", help="fit the terms of ranges.py to the answers about steps")
    parser.add_argument("--coverage", action="store_true", help="count the ranges of steps that cover the measured one")
    parser.add_argument("--fit", action="store_true", help="print the constants fitted on all, and on all but each")
    asked = parser.parse_args(argv)
    try:
        if asked.terms:
            print("\n".join(gpu_terms.terms(list(gpu_steps.scores(asked.folder)), asked.folder)))
            return 0
        if asked.coverage:
            scored = list(gpu_steps.scores(asked.folder))
            print("\n".join(gpu_terms.coverage(scored, list(gpu_terms.without_each(scored, asked.folder)))))
            return 0
        if asked.steps:
            print("\n".join(gpu_steps.lines(list(gpu_steps.scores(asked.folder)), every=asked.every)))
            return 0
        if asked.fit:
            traces = load(asked.folder)
            for kind, each in left_out({**traces}).items():
                print(f"without {kind}: {each}")
            for each in (FITTED, *(replace(FITTED, floor_us=floor) for floor in (1.0, 3.0))):
                found = [abs(one.off) for one in swaps(traces, each)]
                print(f"{each}: mean {100 * statistics.mean(found):.1f} %, worst {100 * max(found):.1f} %")
            return 0
        said = lines(asked.folder)
        if asked.write is not None:
            put(asked.write, "kernels on another GPU", said)
        else:
            print("\n".join(said))
    except LabError as error:
        print(f"lab.score.gpu: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
