"""Experiment: the sequence head and its teacher, scored on libraries left out of all training.

    python -m crystalperf.indexer.baselines.encoder --texts texts.jsonl --sources DIR

`indexer.labels.rebuild` writes texts.jsonl, `indexer.labels.fetch` fills DIR.  A fifth of the libraries is left out of
all training: encoder, linear heads, sequence head.  The table scores each on the functions of these libraries and on
the development sets.  The experiment takes an hour on two cores and writes no files.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from crystalperf.indexer.distil import RerunCorrection, distil
from crystalperf.indexer.embed import Embedding
from crystalperf.indexer.evaluate import COLUMNS, pooled_by_others, score, spread
from crystalperf.indexer.examples import TRAIN, Prepared, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, Judged, judge, summed, train_heads
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.train import TEACHER
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import Report, unlabelled
from crystalperf.indexes.errors import InputError, report_errors

PARTS = 5


def is_left_out(library: str) -> bool:
    """Whether a library is left out of training: a fifth of them, by hash."""
    return int(hashlib.sha256(library.encode()).hexdigest(), 16) % PARTS == 0


def table(
    data: Prepared,
    embedding: Embedding,
    functions: Sequence[tuple[str, FunctionText]],
    encoder: str,
    seed: int,
    report: Report,
) -> None:
    """Train all arms without a fifth of the libraries; print their scores on these and on the development sets."""
    everything = data.rows(TRAIN)
    left_out = np.array([is_left_out(data.examples[row].library) for row in everything])
    train, unseen, development = everything[~left_out], everything[left_out], data.rows(*data.development)
    test = np.concatenate([development, unseen])
    heads = train_heads(data, train, data.labels)
    others = [each for each in functions if not is_left_out(each[0])]
    sequence, teacher = distil(
        RerunCorrection(data, train, data.labels, heads, embedding), others, encoder, seed, report
    )
    data = with_sequence(data, sequence, embedding)
    started = time.process_time()
    read = teacher.read([data.examples[row].function for row in test])
    rate = len(test) / (time.process_time() - started)
    judged = judge(heads, data, test, has_sequence=True)
    linear = summed(judged.linear())
    arms = {
        "encoder, fine-tuned": read,
        "linear heads": linear,
        "encoder and linear heads": read + linear,
        "sequence head": judged.sequence,
        "all heads (as shipped)": linear + judged.sequence,
    }
    sets = np.array([data.examples[row].set for row in test])
    report(f"\nThe encoder reads {rate:,.0f} functions a second of one core's CPU time.")
    report(f"Trained on {len(train)} functions, {len(unseen)} of libraries left out.")
    report(f"\n| tested on | arm | {COLUMNS}\n|---|---|---|---|---|---|")
    found = {arm: _pooled(data, test, values, len(development)) for arm, values in arms.items()}
    for name in ("libraries left out", "development sets", *data.development):
        kept = {"libraries left out": sets == TRAIN, "development sets": sets != TRAIN}.get(name, sets == name)
        for arm, pooled in found.items():
            report(f"| {name} | {arm} | {spread([score(pooled[kept], data.labels[test[kept]])])} |")


def _pooled(data: Prepared, test: np.ndarray, values: Floats, development: int) -> Floats:
    """Probabilities from logits; the first `development` functions are those that poolings are fitted on."""
    judged = Judged(test, values, np.full_like(values, np.nan), np.zeros_like(values))
    return pooled_by_others(data, judged, judged.at(np.arange(len(test)) < development), data.labels)


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.baselines.encoder", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--texts", type=Path, required=True, help="labelled functions, from crystalperf.indexer.labels.rebuild"
    )
    parser.add_argument("--sources", type=Path, required=True, help="libraries, from crystalperf.indexer.labels.fetch")
    parser.add_argument("--encoder", default=TEACHER, help="a sentence-transformers model, by hub name or folder")
    parser.add_argument("--seed", type=int, default=20210714)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # on tasks this small, threads only wait for each other
    examples = read_examples(chosen.texts)
    shipped = load()
    data = prepare(examples, shipped.words, shipped.embedding, (CODE, DOC))
    if not data.development:
        raise InputError(f"{chosen.texts}: no development set, by which the table judges")
    table(data, shipped.embedding, unlabelled(chosen.sources), chosen.encoder, chosen.seed, print)


if __name__ == "__main__":
    sys.exit(main())
