"""What a large encoder reads out of functions, taught to the small sequence head.

An encoder is fine-tuned on the labelled functions (indexer.teacher) and asked about unlabelled ones of the training
libraries.  Its answers, averaged with those of the two linear heads, are what the sequence head learns, beside the
labels (Hinton et al. 2015).  An hour on two cores, once per training; what is shipped is the sequence head alone.
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
from crystalperf.indexer.wordvectors import Say
from crystalperf.indexes.resources import resources

BATCH = 20_000


@dataclass(frozen=True)
class Distillation:
    """Which unlabelled functions are asked about, and how labels count."""

    functions: int = 40_000
    unsure: float = 0.8
    """Half of the functions are such as the heads give their likeliest resource less than this; of the others each
    resource has a third."""
    smoothing: float = 0.08
    """Of a label's probability given to all resources alike: some labels are wrong."""


@dataclass(frozen=True)
class Learned:
    """The examples `rows` with their `labels`, and the two linear heads that learned from them."""

    data: Prepared
    rows: Ids
    labels: Labels
    heads: tuple[Head, Head]
    embedding: Embedding


def distil(
    learned: Learned,
    unlabelled: Sequence[tuple[str, FunctionText]],
    encoder: str,
    seed: int,
    say: Say,
    distillation: Distillation | None = None,
    schooling: Schooling | None = None,
) -> tuple[SequenceHead, Teacher]:
    """A sequence head and its teacher, from labelled examples and (library, function) pairs.

    `encoder` is a sentence-transformers model, by hub name or folder.
    """
    data, rows, labels, embedding = learned.data, learned.rows, learned.labels, learned.embedding
    plan = distillation or Distillation()
    functions = [data.examples[row].function for row in rows]
    count = len(resources())
    teacher = fine_tune(encoder, functions, labels[rows], count, seed, say)
    # An example that is also among the unlabelled has its label already, or is one that models are tested on.
    known = {each.function.code for each in data.examples}
    asked = [each for each in unlabelled if each[1].code not in known]
    thought = heads_logits(learned.heads, data.words, embedding, [function for _, function in asked])
    chosen = choose(softmax(thought), [library for library, _ in asked], plan, seed)
    others = [asked[at][1] for at in chosen]
    say(f"the encoder reads {len(others)} of {len(asked)} unlabelled functions")
    answers = softmax((teacher.read(others) + thought[chosen]) / np.float32(2))
    known_answers = np.eye(count, dtype=np.float32)[labels[rows]] * (1 - plan.smoothing) + plan.smoothing / count
    cut = cut_words([*functions, *others], data.words, tuple(LIMITS))
    targets = np.concatenate([known_answers, answers]).astype(np.float32)
    head = learn(sequences(cut), embedding.table(), targets, schooling or Schooling(), seed, say)
    return head, teacher


def heads_logits(
    heads: tuple[Head, Head], words: Words, embedding: Embedding, functions: Sequence[FunctionText]
) -> Floats:
    """(n, k) logits of both linear heads together."""
    model = PooledClassifier(resources(), {}, words, embedding, *heads, None, Pooling.even())
    parts = [model.judge(functions[at : at + BATCH]) for at in range(0, len(functions), BATCH)]
    return np.concatenate([added(UNCALIBRATED, *np.split(part, 3, axis=1)) for part in parts])


def choose(probabilities: Floats, libraries: Sequence[str], plan: Distillation, seed: int) -> Ids:
    """Which functions to ask about: half of them unclear, the rest of every resource, no library by its size alone."""
    chance = np.random.default_rng(seed)
    sizes = Counter(libraries)
    weight = np.array([sizes[each] ** -0.5 for each in libraries])
    sure, best = probabilities.max(axis=1) >= plan.unsure, probabilities.argmax(axis=1)
    count = probabilities.shape[1]
    groups = [(~sure, plan.functions // 2)]
    groups += [(sure & (best == each), plan.functions // 2 // count) for each in range(count)]
    found = []
    for chosen, wanted in groups:
        at = np.flatnonzero(chosen)
        share = weight[at] / weight[at].sum() if len(at) else None
        found.append(chance.choice(at, min(wanted, len(at)), replace=False, p=share))
    return np.sort(np.concatenate(found))
