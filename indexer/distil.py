"""Distillation of a large encoder into the small sequence head (Hinton et al. 2015).

An encoder is fine-tuned on the labelled functions (indexer.teacher) and classifies unlabelled ones of the training
libraries.  The sequence head learns from its answers, averaged with those of the two linear heads, and from the labels.
This takes an hour on two cores, once per training.  Only the sequence head is shipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crystalperf.indexer.classify import UNCALIBRATED, Head, PooledClassifier, Pooling, added, cut_words, softmax
from crystalperf.indexer.embed import Embedding, Ids, Words
from crystalperf.indexer.examples import Labels, Prepared
from crystalperf.indexer.sequence import LIMITS, Schooling, SequenceHead, learn, sequences
from crystalperf.indexer.teacher import Teacher, fine_tune
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import Report
from crystalperf.indexes.resources import resources

BATCH = 20_000


@dataclass(frozen=True)
class Distillation:
    """The selection of unlabelled functions, and the smoothing of labels."""

    functions: int = 40_000
    unsure: float = 0.8
    """Half of the functions are uncertain: the heads give their most likely resource less than this.  Of the other half
    each resource has a third."""
    smoothing: float = 0.08
    """Share of a label's probability that is spread over all resources, because some labels are wrong."""


@dataclass(frozen=True)
class RerunCorrection:
    """The examples `rows` with their `labels`, and the two linear heads trained on them."""

    data: Prepared
    rows: Ids
    labels: Labels
    heads: tuple[Head, Head]
    embedding: Embedding


def distil(
    learned: RerunCorrection,
    unlabelled: Sequence[tuple[str, FunctionText]],
    encoder: str,
    seed: int,
    report: Report,
    distillation: Distillation | None = None,
    schooling: Schooling | None = None,
) -> tuple[SequenceHead, Teacher]:
    """Train a sequence head and its teacher on labelled examples and (library, function) pairs; returns both.

    `encoder` is a sentence-transformers model, by hub name or folder.
    """
    data, rows, labels, embedding = learned.data, learned.rows, learned.labels, learned.embedding
    plan = distillation or Distillation()
    functions = [data.examples[row].function for row in rows]
    count = len(resources())
    teacher = fine_tune(encoder, functions, labels[rows], count, seed, report)
    # Exclude examples from the unlabelled functions: they have a label, or models are tested on them.
    known = {each.function.code for each in data.examples}
    candidates = [each for each in unlabelled if each[1].code not in known]
    thought = heads_logits(learned.heads, data.words, embedding, [function for _, function in candidates])
    chosen = choose(softmax(thought), [library for library, _ in candidates], plan, seed)
    others = [candidates[at][1] for at in chosen]
    report(f"the encoder reads {len(others)} of {len(candidates)} unlabelled functions")
    answers = softmax((teacher.read(others) + thought[chosen]) / np.float32(2))
    known_answers = np.eye(count, dtype=np.float32)[labels[rows]] * (1 - plan.smoothing) + plan.smoothing / count
    cut = cut_words([*functions, *others], data.words, tuple(LIMITS))
    targets = np.concatenate([known_answers, answers]).astype(np.float32)
    head = learn(sequences(cut), embedding.table(), targets, schooling or Schooling(), seed, report)
    return head, teacher


def heads_logits(
    heads: tuple[Head, Head], words: Words, embedding: Embedding, functions: Sequence[FunctionText]
) -> Floats:
    """(n, k) logits of both linear heads together."""
    model = PooledClassifier(resources(), {}, words, embedding, *heads, None, Pooling.even())
    parts = [model.judge(functions[at : at + BATCH]) for at in range(0, len(functions), BATCH)]
    return np.concatenate([added(UNCALIBRATED, *np.split(part, 3, axis=1)) for part in parts])


def choose(probabilities: Floats, libraries: Sequence[str], plan: Distillation, seed: int) -> Ids:
    """The functions for the teacher: half uncertain, the rest balanced by resource; large libraries do not dominate."""
    rng = np.random.default_rng(seed)
    sizes = Counter(libraries)
    weight = np.array([sizes[each] ** -0.5 for each in libraries])
    sure, best = probabilities.max(axis=1) >= plan.unsure, probabilities.argmax(axis=1)
    count = probabilities.shape[1]
    groups = [(~sure, plan.functions // 2)]
    groups += [(sure & (best == each), plan.functions // 2 // count) for each in range(count)]
    found = []
    for chosen, size in groups:
        at = np.flatnonzero(chosen)
        share = weight[at] / weight[at].sum() if len(at) else None
        found.append(rng.choice(at, min(size, len(at)), replace=False, p=share))
    return np.sort(np.concatenate(found))
