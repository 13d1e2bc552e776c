"""The terms of the ranges of steps on a GPU, and how often ranges cover: ``python -m lab.score.gpu DIR --terms``.

Terms are fitted as query/frameworks/ml/pytorch/ranges.py says: those of the host on trainings whose kind is even (the
last byte of the SHA-256 of its name), from blocks of timed steps and from what an event of the profiler must have cost;
all others from the errors of answers.  `--coverage` fits them once for each training, without it, and asks again.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from crystalperf.query.frameworks.ml.pytorch import ranges, untraced
from crystalperf.query.frameworks.ml.pytorch.kineto import Process
from crystalperf.query.frameworks.ml.pytorch.ranges import Terms
from crystalperf.query.frameworks.ml.training import chrome
from crystalperf.query.frameworks.ml.training.devices import MODELS
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import Problems
from lab.pages import head, row
from lab.score.gpu_steps import Score, limit, measured, scores, traces

_QUANTILES = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75, 1.75)
"""Student's, for the middle 90 % of so many errors; more than these have nearly the normal distribution's 1.645."""

_OF_THREE = 0.449
"""The variance of the median of three blocks, in variances of one."""

_GRID = tuple(each / 20 for each in range(31))
"""Shares of a launch that an event may have cost."""


def name_of(kind: str) -> str:
    """A training without its number of loader processes."""
    return kind.partition(":")[0]


def is_even(kind: str) -> bool:
    """Whether terms of the host may be fitted on a training."""
    return hashlib.sha256(name_of(kind).encode()).digest()[-1] % 2 == 0


def _term(errors: Sequence[float]) -> float | None:
    """The half width of the range of some errors; None without errors."""
    if not errors:
        return None
    root = math.sqrt(statistics.mean(each**2 for each in errors))
    return root * (_QUANTILES[len(errors) - 1] if len(errors) <= len(_QUANTILES) else 1.645)


def blocks(folder: Path) -> dict[str, list[float]]:
    """By training that the host limits, the variance of the logarithm of a block of steps within each of its runs."""
    found: dict[str, list[float]] = defaultdict(list)
    for path in (folder / "rows.jsonl", *sorted(folder.glob("*/rows.jsonl"))):
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            each = json.loads(line)
            if len(each.get("blocks_ms", ())) > 1 and limit(each["kind"]) == "host":
                found[name_of(each["kind"])].append(statistics.variance(map(math.log, each["blocks_ms"])))
    return found


def event_shares(folder: Path) -> dict[str, list[float]]:
    """By training that the host limits, the cost of an event with which each trace gives the measured step."""
    found: dict[str, list[float]] = defaultdict(list)
    steps = measured(folder)
    for one in traces(folder):
        if limit(one.kind) != "host" or (one.gpu, one.kind, one.batch) not in steps:
            continue
        process, part = Process("0"), Part(str(one.path))
        names: dict[str, str] = {}
        for events in chrome.read(LogFile(str(one.path), (part,)), part, Problems(), process.header):
            process.take(events, names)
        took, target = untraced.steps_at(process, _GRID), steps[one.gpu, one.kind, one.batch]
        found[name_of(one.kind)].append(_crossing(took, target))
    return found


def _crossing(took: Sequence[float], target: float) -> float:
    """The share whose step is the target; the nearest one if no step is."""
    for (low, slow), (high, fast) in pairwise(zip(_GRID, took, strict=True)):
        if fast <= target <= slow:
            return low + (high - low) * (slow - target) / (slow - fast) if slow > fast else low
    return min(zip(_GRID, took, strict=True), key=lambda each: abs(each[1] - target))[0]


def host_terms(
    variances: dict[str, list[float]], costs: dict[str, list[float]], kinds: Collection[str]
) -> tuple[float | None, float | None]:
    """The terms `host` and `cost` from these kinds; None without runs of them."""
    of_blocks = [each for kind in kinds for each in variances.get(kind, ())]
    host = 1.645 * math.sqrt(statistics.mean(of_blocks) * (1 + _OF_THREE)) if of_blocks else None
    return host, _term([each - untraced.EVENT_SHARE for kind in kinds for each in costs.get(kind, ())])


def fitted(
    found: Sequence[Score], variances: dict[str, list[float]], costs: dict[str, list[float]], left_out: str = ""
) -> Terms:
    """The terms without one training; those of which nothing is left stay."""

    def error(questions: Collection[str], limited: str, far: float = 1.0) -> float | None:
        return _term(
            [
                math.log(each.predicted_ms / each.measured_ms) / far
                for each in found
                if each.predicted_ms is not None
                and each.question.partition(" ")[0] in questions
                and limit(each.recorded.kind) == limited
                and name_of(each.recorded.kind) != left_out
            ]
        )

    host, cost = host_terms(variances, costs, [each for each in variances if is_even(each) and each != left_out])
    known = {
        "host": host,
        "cost": cost,
        "other_host": error(("device",), "host"),
        "loaders": error(("untraced", "batch"), "input"),
        "other_loaders": error(("device",), "input"),
        "device": error(("untraced",), "GPU"),
        "memory_slope": error(("device",), "GPU", math.log(MODELS["H200"].memory_gbps / MODELS["H100"].memory_gbps)),
        "batch_slope": error(("batch",), "GPU", math.log(2)),
    }
    return replace(ranges.FITTED, **{name: each for name, each in known.items() if each is not None})


_SHOWN = ("host", "cost", "other_host", "loaders", "other_loaders", "device", "memory_slope", "batch_slope")


def terms(found: Sequence[Score], folder: Path) -> list[str]:
    """Tables: the terms with all trainings, and with each of them left out; the host's on even and on odd kinds."""
    variances, costs = blocks(folder), event_shares(folder)
    kinds = dict.fromkeys(name_of(each.recorded.kind) for each in found)
    said = head(f"without | {' | '.join(f'>{each}' for each in _SHOWN)}")
    for each in ("", *kinds):
        of = fitted(found, variances, costs, each)
        said.append(row(each or "(all)", *(f"{getattr(of, name):.3f}" for name in _SHOWN)))
    said += ["", *head("kinds that the host limits | >runs | >host | >traces | >share of an event | >cost")]
    for title, chosen in (("even", True), ("odd", False)):
        own = [each for each in variances if is_even(each) == chosen]
        host, cost = host_terms(variances, costs, own)
        spread = [each for kind in own for each in costs.get(kind, ())]
        said.append(
            row(
                f"{title}: {', '.join(own)}", str(sum(len(variances[each]) for each in own)),
                "" if host is None else f"{host:.3f}", str(len(spread)),
                f"{min(spread):.2f} to {max(spread):.2f}" if spread else "", "" if cost is None else f"{cost:.3f}",
            )
        )  # fmt: skip
    return said


def without_each(found: Sequence[Score], folder: Path) -> Iterator[Score]:
    """The same questions, with terms that were fitted without the training that is asked about."""
    variances, costs = blocks(folder), event_shares(folder)
    for kind in dict.fromkeys(name_of(each.recorded.kind) for each in found):
        with patch.object(ranges, "FITTED", fitted(found, variances, costs, kind)):
            yield from scores(folder, kind)


def coverage(found: Sequence[Score], left_out: Sequence[Score]) -> list[str]:
    """A table: how many ranges hold the measured step, as fitted and with the training left out; even and odd kinds."""
    said = head("question | limited by | kinds | >answers | >in range | >left out | >median width")
    by: dict[tuple[str, str, bool], list[tuple[Score, Score]]] = defaultdict(list)
    order = {(each.recorded.path, each.question): each for each in left_out}
    for each in found:
        key = (each.question.partition(" ")[0], limit(each.recorded.kind), not is_even(each.recorded.kind))
        by[key].append((each, order[each.recorded.path, each.question]))
    for (question, limited, odd), pairs in sorted(by.items()):
        said.append(row(question, limited, "odd" if odd else "even", str(len(pairs)), *_covered(pairs)))
    said.append(row("all", "", "", str(len(found)), *_covered([each for pairs in by.values() for each in pairs])))
    return said


def _covered(pairs: Sequence[tuple[Score, Score]]) -> Iterator[str]:
    for side in (0, 1):
        of = [each[side].covered for each in pairs if each[side].covered is not None]
        yield f"{sum(map(bool, of))} of {len(of)}"
    widths = [
        (one.high - one.low) / 2 / one.predicted_ms
        for one, _ in pairs
        if one.low is not None and one.high is not None and one.predicted_ms
    ]
    yield f"± {100 * statistics.median(widths):.0f} %" if widths else ""
