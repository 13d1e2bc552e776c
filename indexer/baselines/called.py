"""Experiment: do the labels of typed callees, as a rule or as features of the heads, improve a function's label?

    python -m crystalperf.indexer.baselines.called --texts texts.jsonl measured.jsonl --called called.jsonl

`indexer.labels.called` writes called.jsonl.  Callees are classified with linear heads trained on other libraries, and
the results passed to the heads of the function in five ways.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from crystalperf.indexer.callees import PARTS, Evidence, Heads, fit_callees, read_evidence
from crystalperf.indexer.classify import PooledClassifier
from crystalperf.indexer.embed import Ids
from crystalperf.indexer.evaluate import judged_by, pooled_by_others, score, spread, without_some_files
from crystalperf.indexer.evidence import OF_LABELS
from crystalperf.indexer.examples import TRAIN, Prepared, folds, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, Judged, judge, summed, train_heads
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.errors import report_errors
from crystalperf.indexes.resources import resources

_SURE = 0.9
_CLEAR = 0.1


def ruled(probabilities: Floats, evidence: Evidence, labels: Floats, rows: Ids) -> Floats:
    """The probabilities, replaced by certainty where the callees are clear.

    If one callee clearly uses a device and no callee clearly uses the other, the function gets that label.  A function
    whose callees are all known and use no device is labelled cpu.
    """
    order = resources()
    cpu, devices = order.index("cpu"), [order.index(each) for each in ("disk", "net")]
    changed = probabilities.copy()
    for row, at in zip(changed, rows, strict=True):
        line = evidence.lines[at]
        if line is None:
            continue
        theirs = labels[[evidence.keys[each] for each in line["callees"]]][:, devices]
        sure = {order[each] for column, each in enumerate(devices) if (theirs[:, column] > _SURE).any()}
        sure |= set(line["devices"])
        if len(sure) == 1:
            row[:] = np.eye(len(order))[order.index(sure.pop())]
        elif not sure and len(theirs) and not line["unknown"] and not line["outside"] and theirs.max() < _CLEAR:
            row[:] = np.eye(len(order))[cpu]
    return changed


@dataclass(frozen=True)
class Bench:
    """All examples of a table with the evidence of their callees."""

    data: Prepared
    model: PooledClassifier
    evidence: Evidence

    def with_features(self, *features: Floats) -> Prepared:
        """The examples with these features appended to the embedding of the code head."""
        dense = np.concatenate([self.data.dense[CODE.texts], *features], axis=1).astype(np.float32)
        return replace(self.data, dense={**self.data.dense, CODE.texts: dense})


def table(texts: Sequence[Path], called: Path, hard: str, seeds: int, model: PooledClassifier) -> None:
    """Print the scores of every arm, trained without and with the functions whose ids begin with `hard`.

    Changes are against today's heads without these functions: 95 % of a paired bootstrap over the tested functions,
    in points of accuracy, for the first training.
    """
    examples = [each for path in texts for each in read_examples(path, has_training=False)]
    data = with_sequence(prepare(examples, model.words, model.embedding, (CODE, DOC)), model.sequence, model.embedding)
    evidence = read_evidence(called, [each.id for each in examples])
    bench = Bench(data, model, evidence)
    is_hard = np.array([each.id.startswith(hard) for each in examples])
    runs = [{learned: _answers(bench, is_hard, learned, seed) for learned in (False, True)} for seed in range(seeds)]
    measures = ("accuracy %", "change", "macro-F1 %", "Brier")
    print(
        "| tested on | arm | " + " | ".join([*measures, *(f"{each} with hard functions" for each in measures)]) + " |"
    )
    print("|---" * 10 + "|")
    for tested, (rows, weights) in _tests(data, is_hard).items():
        labels = data.labels[rows]
        rng = np.random.default_rng(0)
        draws = [rng.integers(0, len(rows), len(rows)) for _ in range(DRAWS)]
        before = runs[0][False][TODAY][rows].argmax(axis=1) == labels
        for arm in runs[0][False]:
            cells = [tested, arm]
            for learned in (False, True):
                found = [run[learned][arm][rows] for run in runs]
                scores = [score(each, labels, weights) for each in found]
                gained = (found[0].argmax(axis=1) == labels).astype(np.float32) - before
                share = np.ones(len(rows), np.float32) if weights is None else weights
                changes = [100 * np.average(gained[draw], weights=share[draw]) for draw in draws]
                low, high = np.percentile(changes, (2.5, 97.5))
                accuracy, macro_f1, _, brier = spread(scores).split(" | ")
                is_base = arm == TODAY and not learned
                cells += [accuracy, "" if is_base else f"{low:+.1f} to {high:+.1f}", macro_f1, brier]
            print(f"| {' | '.join(cells)} |", flush=True)


TODAY = "today's heads"
DRAWS = 2000
"""Of the bootstrap."""


def _tests(data: Prepared, is_hard: NDArray[np.bool_]) -> dict[str, tuple[Ids, Floats | None]]:
    """The test sets, and the weights of their functions if these are not equal."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    found: dict[str, tuple[Ids, Floats | None]] = {
        "libraries left out": (train[~is_hard[train]], None),
        "libraries left out, hard functions": (train[is_hard[train]], None),
        "development sets": (development, None),
        "development sets, natural": (development, data.weights[development]),
    }
    for name in data.development:
        rows = data.rows(name)
        found |= {name: (rows, None), f"{name}, natural": (rows, data.weights[rows])}
    return {**found, "measured": (data.rows("measured"), None)}


def _answers(bench: Bench, is_hard: NDArray[np.bool_], learned: bool, seed: int) -> dict[str, Floats]:
    """(n, k) probabilities of all examples by every arm: of training functions by heads without their library.

    The sequence head answers for the others alone, which it has not seen.  `learned` says whether hard functions are
    trained on.  Each seed has other folds; from the second on the functions of a tenth of the files are left out.
    """
    data, labels = bench.data, bench.data.labels
    everything, development = data.rows(TRAIN), data.rows(*data.development)
    train = everything if learned else everything[~is_hard[everything]]
    parts = folds(data, everything, PARTS, seed, by_library=True)
    apart = [(part, train_heads(data, np.setdiff1d(train, part), labels)) for part in parts]
    whole = (np.zeros(0, np.int64), train_heads(data, train, labels))
    callees = bench.evidence.labels_by([*apart, whole], data, bench.model.embedding)
    both = bench.evidence.features(data.examples, callees)
    of_labels, of_distances = np.split(both, [len(OF_LABELS)], axis=1)
    some = _some_files(data, train, seed)
    others = (development, data.rows("measured"))

    def answers_of(its: Prepared, heads: Sequence[tuple[Ids, Heads]], more: Callable[[Judged, Ids], Judged]) -> Floats:
        """The answers of the heads of each part; the last heads classify all but training functions."""
        found = np.zeros((len(data.examples), len(resources())), np.float32)
        for part, its_heads in heads[:-1]:
            rows = np.setdiff1d(train, part)
            judged, tuning = (more(each, rows) for each in judged_by(its_heads, its, part))
            found[part] = pooled_by_others(its, judged, tuning, labels)
        for test in others:
            judged, tuning = (more(each, some) for each in judged_by(heads[-1][1], its, test, has_sequence=True))
            found[test] = pooled_by_others(its, judged, tuning, labels)
        return found

    def learn(its: Prepared) -> list[tuple[Ids, Heads]]:
        """Train heads for each part, and for the rest."""
        apart = [(part, train_heads(its, np.setdiff1d(train, part), labels)) for part in parts]
        return [*apart, (whole[0], train_heads(its, some, labels))]

    today = [*apart, (whole[0], train_heads(data, some, labels) if seed else whole[1])]
    answers = {TODAY: answers_of(data, today, lambda judged, _: judged)}
    answers["rule"] = ruled(answers[TODAY], bench.evidence, callees, np.arange(len(data.examples)))
    for arm, features in (("callees' devices", of_distances), ("callees' labels", of_labels), ("both", both)):
        its = bench.with_features(features)
        answers[arm] = answers_of(its, learn(its), lambda judged, _: judged)
    logits = np.zeros((len(data.examples), len(resources())), np.float32)
    for part, heads in apart:
        logits[part] = summed(judge(heads, data, part))

    def with_both(judged: Judged, rows: Ids) -> Judged:
        more = both[judged.rows] @ fit_callees(logits, both, labels, rows)
        return judged.plus(more)

    answers["both, added to the logits"] = answers_of(data, today, with_both)
    return answers


def _some_files(data: Prepared, train: Ids, seed: int) -> Ids:
    """All training functions the first time, then without those of a tenth of the files."""
    return without_some_files(data, train, seed) if seed else train


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.baselines.called", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--texts", type=Path, nargs="+", required=True, help="labelled functions, then measured ones")
    parser.add_argument("--called", type=Path, required=True, help="from crystalperf.indexer.labels.called")
    parser.add_argument("--hard", default="v", metavar="PREFIX", help="of the ids of hard functions")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--model", help="take the words and the sequence head of another model")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # on tasks this small, threads only wait for each other
    table(arguments.texts, arguments.called, arguments.hard, arguments.seeds, load(arguments.model))


if __name__ == "__main__":
    sys.exit(main())
