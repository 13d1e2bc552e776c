"""The static embedding: word vectors learned from the unlabelled functions of the training libraries.

functions = unlabelled(folder)            libraries from indexer.labels.fetch, without frameworks
words, table = learn_embedding(functions, teacher, Lesson(), seed, print)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from crystalperf.indexer.classify import FIELDS, cut_words, joined
from crystalperf.indexer.embed import Embedding, Ids, Words, new_words, select
from crystalperf.indexer.examples import TRAIN
from crystalperf.indexer.labels.functions import Located, functions_of, is_handwritten
from crystalperf.indexer.labels.libraries import libraries, source_files
from crystalperf.indexer.labels.reserve import FRAMEWORKS
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexes.errors import InputError

MAX_WORD_CHARS = 24
WORDS = 16_500
"""Maximum words: their vectors and weights take 6 MB."""
LIBRARIES_PER_WORD = 3
FILES_PER_LIBRARY = 600
FUNCTIONS_PER_LIBRARY = 2000
HEAD_BYTES = 3000
SMOOTHING = 1e-2
_WORD = re.compile("[a-z]+")

Report = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Lesson:
    """Training settings of the embedding, which learns by contrast between matching texts and others of a batch."""

    dimensions: int = 256
    words: int = WORDS
    libraries: int = LIBRARIES_PER_WORD
    """Minimum libraries that use a word, so that the vocabulary is not specific to a library."""
    epochs: int = 4
    batch: int = 512
    temperature: float = 0.05
    rate: float = 2e-3
    kept: float = 0.5
    """Share of the teacher's vectors in the result: its knowledge of English that the libraries lack."""
    dropped: float = 0.1
    """Share of the words of code dropped at random, so that no single word decides."""
    code_words: int = 250
    doc_words: int = 120


def learn_embedding(
    functions: Sequence[tuple[str, FunctionText]], teacher: Embedding, lesson: Lesson, seed: int, report: Report
) -> tuple[Words, Floats]:
    """Words and their vectors from unlabelled (library, function) pairs.

    The initial vector of a word is the teacher's, reduced by PCA and scaled down for frequent words (smooth inverse
    frequency, Arora et al. 2017; the distillation of model2vec).  Then the vectors are trained by contrast: to match
    documentation, and names, with code within a batch (the objective of sentence-transformers'
    MultipleNegativesRankingLoss).
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    used_by = defaultdict(set)
    frequency: Counter[str] = Counter()
    everything = new_words(())
    for library, function in functions:
        text = "\n".join(FIELDS[each](function) for each in ("name", "class", "package", "code", "doc"))
        normal = everything.tokenizer.normalizer.normalize_str(text)
        for word in set(_WORD.findall(normal)):
            used_by[word].add(library)
            frequency[word] += 1
    # Equal frequencies in alphabetical order, because sets are unordered.
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
    known = [each for each in ranked if len(used_by[each]) >= lesson.libraries and len(each) <= MAX_WORD_CHARS]
    words = new_words(known[: lesson.words])
    cut = cut_words([function for _, function in functions], words, ("name", "class", "code", "doc"))
    name = joined([cut["class"], cut["name"]], len(functions))
    code, doc = cut["code"], cut["doc"]
    lengths = {each: np.diff(part[1]) for each, part in (("code", code), ("doc", doc), ("name", name))}
    documented = np.flatnonzero((lengths["code"] >= 4) & (lengths["doc"] >= 4))
    named = np.flatnonzero((lengths["code"] >= 6) & (lengths["name"] >= 2))
    report(f"{len(functions)} functions, {words.size} words, {len(documented)} documented")
    start = _distilled(words, teacher, lesson, frequency, len(functions))
    table = torch.from_numpy(start.copy()).requires_grad_()
    steps = lesson.epochs * 2 * (len(documented) // lesson.batch)
    optimiser = torch.optim.Adam([table], lr=lesson.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, max(1, steps))
    for epoch in range(lesson.epochs):
        losses = []
        batches = [(rows, doc, lesson.doc_words) for rows in _batches(documented, lesson.batch, rng)]
        some = rng.choice(named, min(len(named), len(documented)), replace=False)
        batches += [(rows, name, lesson.doc_words) for rows in _batches(some, lesson.batch, rng)]
        for at in rng.permutation(len(batches)):
            rows, other, limit = batches[at]
            left = _mean(table, code, rows, lesson.code_words, lesson.dropped, rng)
            right = _mean(table, other, rows, limit, 0.0, rng)
            scores = left @ right.T / lesson.temperature
            target = torch.arange(len(rows))
            both = [torch.nn.functional.cross_entropy(each, target) for each in (scores, scores.T)]
            loss = (both[0] + both[1]) / 2
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        report(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}")
    learned = lesson.kept * start + (1 - lesson.kept) * table.detach().numpy()
    learned[0] = 0
    return words, np.asarray(learned, dtype=np.float32)


def _distilled(words: Words, teacher: Embedding, lesson: Lesson, frequency: Counter[str], count: int) -> Floats:
    """(words, d) vectors of the teacher, reduced by PCA and weighted."""
    names = in_order(words)
    nothing = np.zeros(0, np.int64)
    vectors = teacher.encode(names, nothing, nothing)
    vectors -= vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    reduced = vectors @ axes[: lesson.dimensions].T
    if reduced.shape[1] < lesson.dimensions:
        raise InputError(f"{teacher.name}: {reduced.shape[1]} dimensions, {lesson.dimensions} are needed of a teacher")
    reduced /= np.maximum(np.linalg.norm(reduced, axis=1, keepdims=True), 1e-9)
    share = np.array([frequency[name] for name in names], np.float32) / count
    reduced *= (SMOOTHING / (SMOOTHING + share))[:, None]
    reduced[0] = 0
    return np.asarray(reduced, dtype=np.float32)


def _mean(
    table: torch.Tensor, part: tuple[Ids, Ids], rows: Ids, limit: int, dropped: float, rng: np.random.Generator
) -> torch.Tensor:
    """(rows, d) unit means of the words of these rows' texts."""
    ids, starts = select(part, rows, limit)
    if dropped:
        kept = rng.random(len(ids)) >= dropped
        kept[starts[:-1]] = True
        counts = np.add.reduceat(kept, starts[:-1])
        ids, starts = ids[kept], np.concatenate([[0], np.cumsum(counts)])
    means = torch.nn.functional.embedding_bag(torch.from_numpy(ids), table, torch.from_numpy(starts[:-1]), mode="mean")
    return torch.nn.functional.normalize(means, dim=1)


def _batches(rows: Ids, size: int, rng: np.random.Generator) -> list[Ids]:
    shuffled = rng.permutation(rows)
    return [shuffled[start : start + size] for start in range(0, len(shuffled) - size + 1, size)]


def in_order(words: Words) -> list[str]:
    numbers = words.tokenizer.get_vocab()
    return sorted(numbers, key=lambda word: numbers[word])


def unlabelled(folder: Path) -> list[tuple[str, FunctionText]]:
    """(library, function) of every training library under `folder`, without Spark, Flink and TensorFlow.

    Large libraries are sampled evenly by file and function, so that no library dominates the meaning of words.
    """
    chosen: list[tuple[str, FunctionText]] = []
    met: set[str] = set()
    for library in libraries():
        if library.set != TRAIN or library.name in FRAMEWORKS:
            continue
        root = folder / library.name
        names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
        names = evenly([name for name in names if is_handwritten(name, _head(root / name))], FILES_PER_LIBRARY)
        new = []
        for each in functions_of(library, folder, names):
            if each.text_hash not in met:
                met.add(each.text_hash)
                new.append((library.name, as_text(each)))
        chosen += evenly(new, FUNCTIONS_PER_LIBRARY)
    return chosen


def as_text(located: Located) -> FunctionText:
    """A function as the input of a classifier."""
    function = located.function
    return FunctionText(
        function.code,
        function.doc,
        located.language,
        function.qualified_name,
        function.class_name,
        function.package,
        located.callees,
    )


def evenly(items: list[T], count: int) -> list[T]:
    """At most `count` items, at equal distances."""
    return items[:: max(1, -(-len(items) // count))]


def _head(path: Path) -> str:
    with path.open("rb") as opened:
        return opened.read(HEAD_BYTES).decode("utf-8", "replace")
