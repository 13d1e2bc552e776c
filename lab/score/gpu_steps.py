"""Steps on a GPU, predicted from traces and measured without a profiler: ``python -m lab.score.gpu DIR --steps``.

DIR has the traces of each GPU, `h100/KIND-BATCH/….json.gz` or `h100/traces/KIND-BATCH/MODE.json.gz`, and `rows.jsonl`,
or one of each GPU, with measured steps.  From each trace the step without the profiler is computed, and the step on the
other GPU, with other batches, with other loader processes and without launches, where such a step was measured.  "No
change" answers with the measured step of the trace's own training.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import crystalperf
from crystalperf import Run
from lab.errors import LabError
from lab.pages import head, row

HOST = frozenset(("gpt_tiny", "gpt_bf16", "cells", "recurrent", "chatty", "wide", "resnet50_amp"))
"""Trainings whose host limits them, or a host that waits for numbers; the GPU limits all others without loaders."""

FOLDED = ("light", "full", "")
"""Modes whose traces are asked what-ifs; the others score the untraced step alone."""


@dataclass(frozen=True)
class Recorded:
    """A trace: its GPU, training as in rows.jsonl, batch and profiler options ('' if there is one trace alone)."""

    gpu: str
    kind: str
    batch: int
    mode: str
    path: Path


@dataclass(frozen=True)
class Score:
    """A question to a trace, its answer and the measured step, ms; `low` and `high` are None without a range."""

    recorded: Recorded
    question: str
    unchanged_ms: float
    predicted_ms: float | None
    low: float | None
    high: float | None
    measured_ms: float

    @property
    def off(self) -> float | None:
        return None if self.predicted_ms is None else self.predicted_ms / self.measured_ms - 1

    @property
    def covered(self) -> bool | None:
        if self.low is None and self.high is None:
            return None
        return (self.low or 0.0) <= self.measured_ms <= (float("inf") if self.high is None else self.high)


def traces(folder: Path) -> list[Recorded]:
    """The traces of a folder.  Raises LabError."""
    found = []
    for pattern in ("*/*-*/*.json*", "*/traces/*-*/*.json*"):
        for path in sorted(folder.glob(pattern)):
            kind, _, batch = path.parent.name.rpartition("-")
            name, _, loaders = kind.rpartition("_")
            kind = f"{name}:{loaders}" if name in ("input", "sleeping") else kind
            mode = path.name.partition(".")[0]
            gpu = path.relative_to(folder).parts[0]
            found.append(Recorded(gpu, kind, int(batch), "" if mode.startswith("rank") else mode, path))
    if not found:
        raise LabError(f"{folder} has no traces; give a folder with h100/TRAINING-BATCH/….json.gz")
    return found


def measured(folder: Path) -> dict[tuple[str, str, int], float]:
    """Measured steps by GPU, training and batch, ms."""
    rows = [
        json.loads(line)
        for path in (folder / "rows.jsonl", *sorted(folder.glob("*/rows.jsonl")))
        if path.exists()
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return {(each["gpu"], each["kind"], each["batch"]): each["step_ms"] for each in rows if "step_ms" in each}


def questions(one: Recorded, steps: dict[tuple[str, str, int], float]) -> Iterator[tuple[str, tuple[str, str], float]]:
    """What-ifs whose steps were measured: a name, the setting as key and value, and the measured step."""
    name, _, loaders = one.kind.partition(":")
    for (gpu, kind, batch), took in sorted(steps.items()):
        if kind == one.kind and batch == one.batch and gpu != one.gpu:
            yield "device", ("device", f"{one.gpu.upper()}:{gpu.upper()}"), took
        if gpu != one.gpu:
            continue
        if kind == one.kind and batch in (one.batch * 2, one.batch / 2):
            yield f"batch {batch / one.batch:g}x", ("batch", f"{batch / one.batch:g}x"), took
        others = kind.partition(":")[2]
        alike = kind.startswith(f"{name}:") and kind != one.kind and batch == one.batch
        if alike and "0" not in (loaders, others):
            yield f"loaders {loaders} to {others}", ("loader_workers", f"{int(others) / int(loaders):g}x"), took
        if kind == f"{one.kind}+graph" and batch == one.batch:
            yield "launch=0", ("launch", "0"), took
        if kind == f"{one.kind}_amp" and batch == one.batch:
            yield "precision=bf16", ("precision", "bf16"), took


def scores(folder: Path, kind: str = "") -> Iterator[Score]:
    """All questions to all traces of a folder, or to those of one training."""
    steps = measured(folder)
    for one in traces(folder):
        if kind and one.kind.partition(":")[0] != kind:
            continue
        with TemporaryDirectory() as cache:
            yield from of_run(one, crystalperf.profile(str(one.path), output=f"{cache}/run.duckdb"), steps)


def of_run(one: Recorded, run: Run, steps: dict[tuple[str, str, int], float]) -> Iterator[Score]:
    """All questions to a trace whose own training was measured."""
    base = steps.get((one.gpu, one.kind, one.batch))
    if base is None:
        return
    properties = dict(run.sql("SELECT properties FROM runs").rows[0][0])
    count = int(properties.get("steps", "1"))
    step = float(properties["step_ms"])
    low, high = (float(properties[f"step_{end}_ms"]) if "busy_ms" in properties else None for end in ("low", "high"))
    yield Score(one, "untraced", float(properties.get("traced_step_ms", step)), step, low, high, base)
    for name, (key, value), took in questions(one, steps) if one.mode in FOLDED else ():
        answer = run.predict(f"{key}={value}")
        low, high = answer.interval_ms or answer.bound_ms or (None, None)
        yield Score(
            one, name, base,
            None if answer.predicted_ms is None else answer.predicted_ms / count,
            None if low is None else low / count, None if high is None else high / count, took,
        )  # fmt: skip


def limit(kind: str) -> str:
    """The limit of a training: input, host or GPU."""
    name = kind.partition(":")[0]
    return "input" if name in ("input", "sleeping") else "host" if name in HOST else "GPU"


def costs(found: Sequence[Score]) -> list[str]:
    """A table: the traced step over the measured one, by the profiler's options, of trainings that the host limits."""
    said = head("training | GPU | >step [ms] | >light | >shapes | >stacks | >full")
    by: dict[tuple[str, str], dict[str, Score]] = defaultdict(dict)
    for each in found:
        if each.question == "untraced" and limit(each.recorded.kind) == "host":
            by[each.recorded.kind, each.recorded.gpu][each.recorded.mode or "full"] = each
    for (kind, gpu), modes in sorted(by.items()):
        times = (
            f"{modes[mode].unchanged_ms / modes[mode].measured_ms:.2f}" if mode in modes else ""
            for mode in ("light", "shapes", "stacks", "full")
        )
        said.append(row(kind, gpu.upper(), f"{next(iter(modes.values())).measured_ms:.1f}", *times))
    return said


def lines(found: Sequence[Score], *, every: bool) -> list[str]:
    """Tables: the mean by question and by what limits the training; with `every`, each answer."""
    by: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for each in found:
        question = each.question.partition(" ")[0]
        question = f"{question}, {each.recorded.mode or 'full'}" if question == "untraced" else question
        by[question, limit(each.recorded.kind)].append(each)
    said = head("question | limited by | >answers | >no answer | >mean error | >worst | >no change | >in range")
    for (question, limited), of in sorted(by.items()):
        off = [abs(each.off) for each in of if each.off is not None]
        plain = statistics.mean(abs(each.unchanged_ms / each.measured_ms - 1) for each in of)
        covered = [each.covered for each in of if each.covered is not None]
        said.append(
            row(
                question, limited, str(len(off)), str(len(of) - len(off)),
                f"{100 * statistics.mean(off):.1f} %" if off else "", f"{100 * max(off):.0f} %" if off else "",
                f"{100 * plain:.1f} %", f"{sum(covered)} of {len(covered)}" if covered else "",
            )
        )  # fmt: skip
    said += ["", *costs(found)]
    if every:
        said += [
            "",
            *head("training | GPU | trace | question | >no change [ms] | >predicted | >range | >measured | >error"),
        ]
        for each in found:
            one = each.recorded
            bounds = ("" if end is None else f"{end:.1f}" for end in (each.low, each.high))
            said.append(
                row(
                    f"{one.kind} {one.batch}", one.gpu.upper(), one.mode or "full", each.question,
                    f"{each.unchanged_ms:.1f}", "" if each.predicted_ms is None else f"{each.predicted_ms:.1f}",
                    "" if each.covered is None else "–".join(bounds), f"{each.measured_ms:.1f}",
                    "" if each.off is None else f"{100 * each.off:+.0f} %",
                )
            )  # fmt: skip
    return said
