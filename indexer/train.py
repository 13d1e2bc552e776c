"""Train the classifiers and say how good they are, from top to bottom.

    python -m indexer.train --texts texts.jsonl --sources DIR --out indexer/weights

texts.jsonl is what `indexer.labels.rebuild` writes: one labelled function a line, with its text.  DIR holds the
libraries that `indexer.labels.fetch` fetched; their functions, unlabelled, teach the embedding what the words of
code mean.  `--embedding FOLDER` takes the embedding of an earlier training instead of learning one, `--embedding
NAME` any sentence-transformers model.  The tables of docs/classifiers.md are printed by the way (`--tables`).
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from indexer.classify import (
    FIELDS,
    STATIC,
    Cut,
    Features,
    Head,
    LinearClassifier,
    Pooling,
    count_words,
    cut_words,
    embed_texts,
    joined,
    load,
    logits,
    pool,
    save,
    softmax,
)
from indexer.embed import Embedding, Ids, Words, dequantise, load_embedding, new_words, quantise, static_embedding
from indexer.labels.reserve import FRAMEWORKS, is_reserved
from indexer.vectors import Floats, FunctionText
from indexes.errors import CrystalPerfError, InputError
from indexes.schema import resources

NAME = "crystalperf-static"
TEACHER = "sentence-transformers/all-MiniLM-L6-v2"
TRAIN = "train"
SEEDS = 5

MAX_WORD_CHARS = 24
SMOOTHING = 1e-2
_WORD = re.compile("[a-z]+")

Labels = NDArray[np.int64]
Say = Callable[[str], None]


# 1. The labelled functions ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    """A labelled function.  `set` is `train` or a development set's name."""

    function: FunctionText
    label: int
    set: str
    library: str
    file: str
    """Functions of one file never fall on both sides of a split."""
    weight: float
    """Carries a development set back to the natural mix."""


def read_examples(path: Path) -> list[Example]:
    """The lines of texts.jsonl whose label is a resource; `wait` is none.  Raises InputError where one is damaged."""
    order = resources()
    examples = []
    try:
        with path.open("rb") as opened:
            for number, line in enumerate(opened, start=1):
                try:
                    record = msgspec.json.decode(line, type=_Record)
                except msgspec.DecodeError as error:
                    raise InputError(f"{path}, line {number}: {error}; write it with indexer.labels.rebuild") from error
                if record.set == TRAIN and record.library in FRAMEWORKS:
                    raise InputError(f"{path}, line {number}: nothing of {record.library} may be trained on")
                if record.library in FRAMEWORKS and is_reserved(record.file):
                    raise InputError(f"{path}, line {number}: {record.file} is reserved for verification")
                if record.label in order:
                    examples.append(_example(record, order.index(record.label)))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; write it with `python -m indexer.labels.rebuild`") from error
    if {each.label for each in examples if each.set == TRAIN} != set(range(len(order))):
        raise InputError(f"{path}: the training set needs functions of every resource: {', '.join(order)}")
    return examples


class _Record(msgspec.Struct):
    """A line of texts.jsonl."""

    set: str
    library: str
    file: str
    language: str
    qualified_name: str
    label: str
    weight: float
    code: str
    doc: str
    package: str
    class_name: str | None
    callees: tuple[str, ...]


def _example(record: _Record, label: int) -> Example:
    function = FunctionText(
        record.code,
        record.doc,
        record.language,
        record.qualified_name,
        record.class_name,
        record.package,
        record.callees,
    )
    return Example(function, label, record.set, record.library, record.file, record.weight)


# 2. The embedding ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lesson:
    """How the embedding is learned: pairs of texts that belong together, against all others of a batch."""

    dimensions: int = 256
    epochs: int = 4
    batch: int = 512
    temperature: float = 0.05
    rate: float = 2e-3
    kept: float = 0.5
    """Share of the teacher's vectors in the result: what it knows of English that libraries do not teach."""
    dropped: float = 0.1
    """Share of the words of code left out at random, so that no single word decides."""
    code_words: int = 250
    doc_words: int = 120


def learn_embedding(
    functions: Sequence[tuple[str, FunctionText]], teacher: Embedding, lesson: Lesson, seed: int, say: Say
) -> tuple[Words, Floats]:
    """Words and their vectors from unlabelled (library, function) pairs.

    A word starts as the teacher's vector of it, reduced by PCA, the frequent ones small (smooth inverse frequency,
    Arora et al. 2017; the distillation of model2vec).  Then the vectors learn by contrast: of a batch, which
    documentation belongs to which code, and which name?  (The objective of sentence-transformers'
    MultipleNegativesRankingLoss.)  Words that one library alone uses are left out, so that the vocabulary is of
    code and not of a library.
    """
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    libraries = defaultdict(set)
    frequency: Counter[str] = Counter()
    everything = new_words(())
    for library, function in functions:
        text = "\n".join(FIELDS[each](function) for each in ("name", "class", "package", "code", "doc"))
        normal = everything.tokenizer.normalizer.normalize_str(text)
        for word in set(_WORD.findall(normal)):
            libraries[word].add(library)
            frequency[word] += 1
    # Equal frequencies in order of the alphabet, for sets have none.
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))
    known = [word for word in ranked if len(libraries[word]) > 1 and len(word) <= MAX_WORD_CHARS]
    words = new_words(known)
    cut = cut_words([function for _, function in functions], words, ("name", "class", "code", "doc"))
    name = joined([cut["class"], cut["name"]], len(functions))
    code, doc = cut["code"], cut["doc"]
    lengths = {each: np.diff(part[1]) for each, part in (("code", code), ("doc", doc), ("name", name))}
    documented = np.flatnonzero((lengths["code"] >= 4) & (lengths["doc"] >= 4))
    named = np.flatnonzero((lengths["code"] >= 6) & (lengths["name"] >= 2))
    say(f"{len(functions)} functions, {words.size} words, {len(documented)} documented")
    start = _distilled(words, teacher, lesson, frequency, len(functions))
    table = torch.from_numpy(start.copy()).requires_grad_()
    steps = lesson.epochs * 2 * (len(documented) // lesson.batch)
    optimiser = torch.optim.Adam([table], lr=lesson.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, max(1, steps))
    for epoch in range(lesson.epochs):
        losses = []
        batches = [(rows, doc, lesson.doc_words) for rows in _batches(documented, lesson.batch, chance)]
        some = chance.choice(named, min(len(named), len(documented)), replace=False)
        batches += [(rows, name, lesson.doc_words) for rows in _batches(some, lesson.batch, chance)]
        for at in chance.permutation(len(batches)):
            rows, other, limit = batches[at]
            left = _mean(table, code, rows, lesson.code_words, lesson.dropped, chance)
            right = _mean(table, other, rows, limit, 0.0, chance)
            scores = left @ right.T / lesson.temperature
            target = torch.arange(len(rows))
            both = [torch.nn.functional.cross_entropy(each, target) for each in (scores, scores.T)]
            loss = (both[0] + both[1]) / 2
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        say(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}")
    learned = lesson.kept * start + (1 - lesson.kept) * table.detach().numpy()
    learned[0] = 0
    return words, np.asarray(learned, dtype=np.float32)


def _distilled(words: Words, teacher: Embedding, lesson: Lesson, frequency: Counter[str], count: int) -> Floats:
    """(words, d) vectors of the teacher, reduced and weighted."""
    names = _in_order(words)
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
    table: torch.Tensor, part: tuple[Ids, Ids], rows: Ids, limit: int, dropped: float, chance: np.random.Generator
) -> torch.Tensor:
    """(rows, d) unit means of the words of these rows' texts."""
    ids, starts = select(part, rows, limit)
    if dropped:
        kept = chance.random(len(ids)) >= dropped
        kept[starts[:-1]] = True
        counts = np.add.reduceat(kept, starts[:-1])
        ids, starts = ids[kept], np.concatenate([[0], np.cumsum(counts)])
    means = torch.nn.functional.embedding_bag(torch.from_numpy(ids), table, torch.from_numpy(starts[:-1]), mode="mean")
    return torch.nn.functional.normalize(means, dim=1)


def _batches(rows: Ids, size: int, chance: np.random.Generator) -> list[Ids]:
    shuffled = chance.permutation(rows)
    return [shuffled[start : start + size] for start in range(0, len(shuffled) - size + 1, size)]


def _in_order(words: Words) -> list[str]:
    numbers = words.tokenizer.get_vocab()
    return sorted(numbers, key=lambda word: numbers[word])


def unlabelled(folder: Path) -> list[tuple[str, FunctionText]]:
    """Every function of the training libraries under `folder`; of Spark, Flink and TensorFlow nothing."""
    from indexer.labels.sample import training_pools

    found: dict[str, tuple[str, FunctionText]] = {}
    for functions in training_pools(folder).values():
        for each in functions:
            function = each.function
            text = FunctionText(
                function.code,
                function.doc,
                each.language,
                function.qualified_name,
                function.class_name,
                function.package,
                each.callees,
            )
            found.setdefault(each.text_hash, (each.library, text))
    return list(found.values())


# 3. Heads -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """What a head reads, and its L2 penalties: strong ones where there are many weights and few functions."""

    fields: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    words: float = 1e-4
    embedding: float = 3e-3


CODE = Recipe(("name", "class", "package", "callees", "code"), (("name", "class"), ("callees",), ("code",)))
DOC = Recipe(("doc", "name", "class"), (("doc",), ("name", "class")))


@dataclass(frozen=True)
class Prepared:
    """Examples cut into words and embedded once, for all the trainings on parts of them."""

    examples: tuple[Example, ...]
    labels: Labels
    weights: Floats
    documented: NDArray[np.bool_]
    words: Words
    cut: Cut
    dense: dict[tuple[tuple[str, ...], ...], Floats]
    """(n, D) vectors by the texts embedded."""

    def rows(self, *sets: str) -> Ids:
        """The examples of these sets."""
        return np.array([at for at, each in enumerate(self.examples) if each.set in sets], np.int64)

    @property
    def development(self) -> tuple[str, ...]:
        return tuple(sorted({each.set for each in self.examples} - {TRAIN}))


def prepare(examples: Sequence[Example], words: Words, embedding: Embedding, recipes: Iterable[Recipe]) -> Prepared:
    """Cut and embed examples for heads of these recipes."""
    functions = [each.function for each in examples]
    cut = cut_words(functions, words, tuple(FIELDS))
    dense = {each.texts: embed_texts(each.texts, functions, cut, embedding) for each in recipes}
    return Prepared(
        tuple(examples),
        np.array([each.label for each in examples], np.int64),
        np.array([each.weight for each in examples], np.float32),
        np.array([bool(each.function.doc.strip()) for each in examples]),
        words,
        cut,
        dense,
    )


def select(part: tuple[Ids, Ids], rows: Ids, limit: int | None = None) -> tuple[Ids, Ids]:
    """The words of some rows' texts, of each the first `limit`."""
    ids, starts = part
    lengths = np.diff(starts)[rows]
    if limit is not None:
        lengths = np.minimum(lengths, limit)
    new = np.concatenate([[0], np.cumsum(lengths)])
    return ids[np.repeat(starts[rows] - new[:-1], lengths) + np.arange(new[-1])], new


def seen_by(recipe: Recipe, rarity: Floats, data: Prepared, rows: Ids) -> Features:
    """What a head of this recipe sees of some examples."""
    cut = {each: select(data.cut[each], rows) for each in recipe.fields}
    columns, starts, values = count_words(recipe.fields, rarity, cut, len(rows))
    return Features(columns, starts, values, data.dense[recipe.texts][rows])


def train_head(recipe: Recipe, data: Prepared, rows: Ids, labels: Labels, weights: Floats | None = None) -> Head:
    """A head trained on some examples, with `labels` for all of them."""
    cut = {each: select(data.cut[each], rows) for each in recipe.fields}
    rarity = rarity_of(cut, recipe.fields, len(rows), data.words.size)
    seen = seen_by(recipe, rarity, data, rows)
    importance = np.ones(len(rows), np.float32) if weights is None else weights
    learned = fit_head(seen, labels[rows], importance, rarity.size, len(resources()), recipe)
    return Head(recipe.fields, recipe.texts, rarity, *learned)


def rarity_of(cut: Cut, fields: Sequence[str], count: int, size: int) -> Floats:
    """(fields, V) inverse document frequency, ln((1 + n) / (1 + df)) + 1; 0 for a word met in one function only."""
    rarity = np.zeros((len(fields), size), np.float32)
    for number, field in enumerate(fields):
        ids, starts = cut[field]
        pairs = np.unique(np.repeat(np.arange(count), np.diff(starts)) * size + ids)
        frequency = np.bincount(pairs % size, minlength=size)
        rarity[number] = np.where(frequency >= 2, np.log((1 + count) / (1 + frequency)) + 1, 0)
    return rarity


def fit_head(
    seen: Features, labels: Labels, weights: Floats, columns: int, count: int, recipe: Recipe
) -> tuple[Floats, Floats, Floats]:
    """The weights (columns, k), (d, k) and bias (k,) of multinomial logistic regression, by L-BFGS (paper, fn 6)."""
    met, positions = np.unique(seen.columns, return_inverse=True)
    ids, starts = torch.from_numpy(positions.astype(np.int64)), torch.from_numpy(seen.starts[:-1])
    values, dense = torch.from_numpy(seen.values), torch.from_numpy(seen.embedding)
    target, importance = torch.from_numpy(labels), torch.from_numpy(weights / weights.sum())
    words = torch.zeros(len(met), count, requires_grad=True)
    embedding = torch.zeros(dense.shape[1], count, requires_grad=True)
    bias = torch.zeros(count, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [words, embedding, bias], max_iter=100, history_size=10, tolerance_change=1e-6, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        scores = torch.nn.functional.embedding_bag(ids, words, starts, mode="sum", per_sample_weights=values)
        each = torch.nn.functional.cross_entropy(scores + dense @ embedding + bias, target, reduction="none")
        total = (each * importance).sum()
        total = total + recipe.words * words.square().sum() + recipe.embedding * embedding.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    whole = np.zeros((columns, count), np.float32)
    whole[met] = words.detach().numpy()
    return whole, embedding.detach().numpy().copy(), bias.detach().numpy().copy()


@dataclass(frozen=True)
class Judged:
    """The logits of both heads for some examples; NaN rows of `doc` where there is no documentation."""

    rows: Ids
    code: Floats
    doc: Floats


def train_heads(data: Prepared, rows: Ids, labels: Labels, code: Recipe = CODE, doc: Recipe = DOC) -> tuple[Head, Head]:
    """Both heads; the documentation head learns from what is documented."""
    return train_head(code, data, rows, labels), train_head(doc, data, rows[data.documented[rows]], labels)


def judge(heads: tuple[Head, Head], data: Prepared, rows: Ids) -> Judged:
    """The heads' logits for some examples."""
    code, doc = heads
    result = np.full((len(rows), len(resources())), np.nan, np.float32)
    having = data.documented[rows]
    if having.any():
        result[having] = logits(doc, seen_by(Recipe(doc.fields, doc.texts), doc.rarity, data, rows[having]))
    return Judged(rows, logits(code, seen_by(Recipe(code.fields, code.texts), code.rarity, data, rows)), result)


# 4. From two heads to one calibrated vector -------------------------------------------------------------------------


def fit_pooling(judged: Judged, labels: Labels) -> Pooling:
    """The weights of the heads and the bias of each resource under which the labels are likeliest.

    Temperature scaling (Guo et al. 2017) with a weight for each head.  Functions count as they were drawn, not as
    frequent as they are in nature: a profile's samples meet input and output more often than a list of functions
    does, and macro-F1 is better in both mixes (docs/classifiers.md).
    """
    code, doc = torch.from_numpy(judged.code), torch.from_numpy(np.nan_to_num(judged.doc))
    having = torch.from_numpy(~np.isnan(judged.doc[:, 0]))
    target = torch.from_numpy(labels)
    start = torch.tensor([1.0, 0.5, 0.5, 1.0])
    scales = start.clone().requires_grad_()
    biases = torch.zeros(2, code.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([scales, biases], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        both = code * scales[1] + doc * scales[2]
        combined = torch.where(having[:, None], both, code * scales[0]) + biases[0]
        alone = doc * scales[3] + biases[1]
        # A few hundred functions decide: where they say little, stay near plain averaging.
        total = 1e-3 * (scales - start).square().sum() + 1e-3 * biases.square().sum()
        for scores, chosen in ((combined, torch.ones_like(having)), (alone, having)):
            each = torch.nn.functional.cross_entropy(scores[chosen], target[chosen], reduction="sum")
            total = total + each / len(target)
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    alone, code_weight, doc_weight, doc_alone = (float(each) for each in scales.detach())
    bias, doc_bias = ([float(each) for each in row] for row in biases.detach())
    return Pooling(alone, code_weight, doc_weight, doc_alone, tuple(bias), tuple(doc_bias))


# 5. Measures --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """How good probabilities are: macro-F1 over all resources, calibration error of the largest probability."""

    accuracy: float
    macro_f1: float
    calibration_error: float
    brier: float


def score(probabilities: Floats, labels: Labels, weights: Floats) -> Score:
    """Weighted measures of (n, k) probabilities."""
    share = weights / weights.sum()
    predicted = probabilities.argmax(axis=1)
    largest = probabilities.max(axis=1)
    right = predicted == labels
    bins = np.minimum((largest * 10).astype(int), 9)
    gaps = [abs((share * (right - largest))[bins == each].sum()) for each in range(10)]
    one_hot = np.eye(probabilities.shape[1], dtype=np.float32)[labels]
    brier = (share * ((probabilities - one_hot) ** 2).sum(axis=1)).sum()
    f1 = np.mean(f1_by_class(predicted, labels, weights, probabilities.shape[1]))
    return Score(float((share * right).sum()), float(f1), float(sum(gaps)), float(brier))


def f1_by_class(predicted: Labels, labels: Labels, weights: Floats, count: int) -> list[float]:
    """F1 of each resource; 0 for one that is neither there nor predicted."""
    found = []
    for each in range(count):
        hit = weights[(predicted == each) & (labels == each)].sum()
        found.append(float(2 * hit / max(weights[predicted == each].sum() + weights[labels == each].sum(), 1e-9)))
    return found


def spread(scores: Sequence[Score]) -> str:
    """Accuracy and macro-F1 in per cent, mean ± deviation, then calibration error and Brier score."""
    parts = []
    for values in ([each.accuracy for each in scores], [each.macro_f1 for each in scores]):
        parts.append(f"{100 * np.mean(values):5.1f} ± {100 * np.std(values):3.1f}")
    parts.append(f"{np.mean([each.calibration_error for each in scores]):.3f}")
    parts.append(f"{np.mean([each.brier for each in scores]):.3f}")
    return " | ".join(parts)


# 6. Tables ----------------------------------------------------------------------------------------------------------


def without_some_files(data: Prepared, rows: Ids, seed: int, share: float = 0.1) -> Ids:
    """Rows without those of a tenth of the files: what another draw of training functions might have been."""
    files = sorted({(data.examples[row].library, data.examples[row].file) for row in rows})
    dropped = np.random.default_rng(seed).random(len(files)) < share
    gone = {file for file, is_dropped in zip(files, dropped, strict=True) if is_dropped}
    return np.array(
        [row for row in rows if (data.examples[row].library, data.examples[row].file) not in gone], np.int64
    )


def folds(data: Prepared, rows: Ids, count: int, seed: int) -> list[Ids]:
    """Rows in `count` parts, functions of one file together."""
    files = sorted({(data.examples[row].library, data.examples[row].file) for row in rows})
    fold = dict(zip(files, np.random.default_rng(seed).permutation(len(files)) % count, strict=True))
    of_row = np.array([fold[data.examples[row].library, data.examples[row].file] for row in rows])
    return [rows[of_row == each] for each in range(count)]


def pooled_by_others(data: Prepared, judged: Judged, labels: Labels) -> Floats:
    """Pooled probabilities of development functions, each set's with the pooling fitted on the other sets."""
    sets = np.array([data.examples[row].set for row in judged.rows])
    pooled = np.zeros_like(judged.code)
    for name in data.development:
        inside = sets == name
        others = ~inside if not inside.all() else inside
        tuned = Judged(judged.rows[others], judged.code[others], judged.doc[others])
        pooling = fit_pooling(tuned, labels[tuned.rows])
        pooled[inside] = pool(pooling, judged.code[inside], judged.doc[inside])
    return pooled


def arms(data: Prepared, train: Ids, test: Ids) -> dict[str, Floats]:
    """Probabilities for the development functions `test` by every arm, trained on `train`."""
    labels = data.labels
    judged = judge(train_heads(data, train, labels), data, test)
    code, doc = softmax(judged.code), softmax(judged.doc)
    shares = np.bincount(labels[train], minlength=len(resources())) / len(train)
    return {
        "majority": np.tile(shares.astype(np.float32), (len(test), 1)),
        "TF-IDF + logistic regression": tfidf(data, train, test, labels),
        "code head": code,
        "documentation head, where there is any": doc,
        "average of both (paper)": np.where(np.isnan(doc), code, (code + doc) / 2),
        "pooled (shipped)": pooled_by_others(data, judged, labels),
    }


def tfidf(data: Prepared, train: Ids, test: Ids, labels: Labels) -> Floats:
    """The baseline: scikit-learn's TF-IDF over the words of code and documentation, and its logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]

    words = TfidfVectorizer(token_pattern=r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", sublinear_tf=True, min_df=2)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=300))
    texts = [f"{each.function.code}\n{each.function.doc}" for each in data.examples]
    model.fit([texts[row] for row in train], labels[train])
    return np.asarray(model.predict_proba([texts[row] for row in test]), dtype=np.float32)


def table_of_development_sets(data: Prepared, say: Say) -> None:
    """Table 4 of the paper: every arm on every development set, its pooling fitted on the others."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    sets = np.array([data.examples[row].set for row in development])
    found: dict[tuple[str, str, str], list[Score]] = defaultdict(list)
    for seed in range(SEEDS):
        for arm, probabilities in arms(data, without_some_files(data, train, seed), development).items():
            for name in (*data.development, "all"):
                kept = ~np.isnan(probabilities[:, 0]) & ((sets == name) | (name == "all"))
                rows = development[kept]
                for mix, weights in (("natural", data.weights[rows]), ("as drawn", np.ones(len(rows), np.float32))):
                    found[name, mix, arm].append(score(probabilities[kept], data.labels[rows], weights))
    say("\n| development set | mix | arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|---|---|")
    for (name, mix, arm), scores in sorted(found.items(), key=lambda item: item[0][:2]):
        say(f"| {name} | {mix} | {arm} | {spread(scores)} |")


def table_of_folds(data: Prepared, libraries: Sequence[str] | None, count: int, say: Say) -> None:
    """Table 1 of the paper: folds over the training functions (of some libraries), grouped by file."""
    train = data.rows(TRAIN)
    rows = np.array([row for row in train if libraries is None or data.examples[row].library in libraries], np.int64)
    if len(rows) < 10 * count:
        return
    found: dict[str, list[Score]] = defaultdict(list)
    f1: list[list[float]] = []
    for seed in range(SEEDS if libraries else 1):
        whole: dict[str, list[Floats]] = defaultdict(list)
        parts = folds(data, rows, count, seed)
        for part in parts:
            others = np.setdiff1d(rows, part)
            heads = train_heads(data, others, data.labels)
            judged = judge(heads, data, part)
            code, doc = softmax(judged.code), softmax(judged.doc)
            whole["code head"].append(code)
            whole["documentation head, where there is any"].append(doc)
            whole["average of both (paper)"].append(np.where(np.isnan(doc), code, (code + doc) / 2))
            whole["TF-IDF + logistic regression"].append(tfidf(data, others, part, data.labels))
        order = np.concatenate(parts)
        for arm, pieces in whole.items():
            probabilities = np.concatenate(pieces)
            kept = ~np.isnan(probabilities[:, 0])
            labels = data.labels[order][kept]
            found[arm].append(score(probabilities[kept], labels, np.ones(len(labels), np.float32)))
            if arm.startswith("average"):
                f1.append(f1_by_class(probabilities.argmax(axis=1), labels, np.ones(len(labels), np.float32), 3))
    say(f"\n{count} folds by file over {', '.join(libraries) if libraries else 'all training libraries'}: {len(rows)}")
    say("| arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|")
    for arm, scores in found.items():
        say(f"| {arm} | {spread(scores)} |")
    by_class = [f"{name} {100 * value:.1f}" for name, value in zip(resources(), np.mean(f1, axis=0), strict=True)]
    say(f"F1 by class of the average: {', '.join(by_class)}")


def table_of_arms(data: Prepared, say: Say) -> None:
    """What parts of the training set do, and wrong labels: trained on Scala alone; 10 % and 20 % flipped (Fig 9)."""
    train = data.rows(TRAIN)
    development = data.rows(*data.development)
    scala = np.array([row for row in train if data.examples[row].function.language == "scala"], np.int64)
    half = np.sort(np.random.default_rng(0).permutation(train)[: len(train) // 2])
    trainings: list[tuple[str, Ids, float]] = [("all", train, 0.0), ("Scala alone", scala, 0.0), ("half", half, 0.0)]
    trainings += [("10 % of labels flipped", train, 0.1), ("20 % of labels flipped", train, 0.2)]
    say("\n| trained on | functions | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|---|")
    for name, rows, flipped in trainings:
        scores = []
        for seed in range(SEEDS):
            labels = flip(data.labels, rows, flipped, seed)
            some = without_some_files(data, rows, seed)
            judged = judge(train_heads(data, some, labels), data, development)
            ones = np.ones(len(development), np.float32)
            scores.append(score(pooled_by_others(data, judged, data.labels), data.labels[development], ones))
        say(f"| {name} | {len(rows)} | {spread(scores)} |")


def flip(labels: Labels, rows: Ids, share: float, seed: int) -> Labels:
    """Labels of which a share of those in `rows` is another resource, each wrong one as often as the other (Fig 9)."""
    chance = np.random.default_rng(seed)
    flipped = labels.copy()
    chosen = rows[chance.random(len(rows)) < share]
    flipped[chosen] = (flipped[chosen] + chance.integers(1, len(resources()), len(chosen))) % len(resources())
    return flipped


def table_of_lengths(data: Prepared, judged: Judged, pooling: Pooling, say: Say) -> None:
    """How accuracy grows with the text, and what missing documentation costs (§7.4)."""
    rows = judged.rows
    combined = pool(pooling, judged.code, judged.doc)
    undocumented = pool(pooling, judged.code, np.full_like(judged.doc, np.nan))
    right = combined.argmax(axis=1) == data.labels[rows]
    words = np.diff(data.cut["code"][1])[rows] + np.diff(data.cut["doc"][1])[rows]
    say("\n| words of code and documentation | functions | accuracy % |\n|---|---|---|")
    for low, high in ((0, 20), (20, 50), (50, 100), (100, 200), (200, 10**6)):
        chosen = (words >= low) & (words < high)
        if chosen.any():
            say(f"| {low} to {high if high < 10**6 else 'any'} | {chosen.sum()} | {100 * right[chosen].mean():.1f} |")
    having = ~np.isnan(judged.doc[:, 0])
    labels, ones = data.labels[rows], np.ones(len(rows), np.float32)
    for name, probabilities in (("with documentation", combined), ("the same without it", undocumented)):
        one = score(probabilities[having], labels[having], ones[having])
        say(f"{name}: {having.sum()} functions, accuracy {one.accuracy:.3f}, macro-F1 {one.macro_f1:.3f}")


def table_of_words(heads: tuple[Head, Head], words: Words, say: Say, top: int = 15) -> None:
    """Table 2 of the paper, exact for a linear head: the words with the largest weights, over all fields."""
    names = _in_order(words)
    for title, head in (("code", heads[0]), ("documentation", heads[1])):
        weights = head.words * head.rarity.reshape(-1, 1)
        weights = (weights - weights.mean(axis=1, keepdims=True)).reshape(len(head.fields), words.size, -1).sum(axis=0)
        for number, resource in enumerate(resources()):
            best = np.argsort(-weights[:, number])[:top]
            say(f"{title}, {resource}: {', '.join(names[each] for each in best)}")


def table_of_mistakes(data: Prepared, judged: Judged, pooling: Pooling, say: Say, top: int = 30) -> None:
    """Confusion, and the mistakes that the model was surest of."""
    order = resources()
    combined = pool(pooling, judged.code, judged.doc)
    labels = data.labels[judged.rows]
    predicted = combined.argmax(axis=1)
    say("\n| label \\ predicted | " + " | ".join(order) + " |\n|---|" + "---|" * len(order))
    for each, name in enumerate(order):
        counts = [((labels == each) & (predicted == other)).sum() for other in range(len(order))]
        say(f"| {name} | " + " | ".join(map(str, counts)) + " |")
    wrong = np.flatnonzero(predicted != labels)
    for at in wrong[np.argsort(-combined[wrong].max(axis=1))][:top]:
        example = data.examples[judged.rows[at]]
        say(
            f"{example.set} {example.function.qualified_name}: {order[labels[at]]}, predicted"
            f" {order[predicted[at]]} {combined[at].max():.2f}"
        )


# 7. All of it -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m indexer.train", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=Path, required=True, help="labelled functions, from indexer.labels.rebuild")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the model to")
    parser.add_argument("--sources", type=Path, help="libraries from indexer.labels.fetch, to learn an embedding from")
    parser.add_argument("--embedding", help="a folder of an earlier training, or a sentence-transformers model")
    parser.add_argument("--teacher", default=TEACHER, help="the model whose words the embedding starts from")
    parser.add_argument("--seed", type=int, default=20210714)
    parser.add_argument("--tables", action="store_true", help="print all tables of docs/classifiers.md")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # of tasks this small threads only wait for each other
    try:
        origin = Origin(chosen.sources, chosen.embedding, chosen.teacher)
        train(chosen.texts, chosen.out, origin, chosen.seed, chosen.tables, print)
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True)
class Origin:
    """Where the embedding comes from: learned from `sources` and a teacher, unless one is named."""

    sources: Path | None = None
    embedding: str | None = None
    teacher: str = TEACHER


def train(texts: Path, out: Path, origin: Origin, seed: int, has_tables: bool, say: Say) -> LinearClassifier:
    """Train everything, write it to `out` and report."""
    started = time.monotonic()
    examples = read_examples(texts)
    counts = Counter((each.set, resources()[each.label]) for each in examples)
    for (name, resource), count in sorted(counts.items()):
        say(f"{name}: {count} {resource}")
    words, table, encoder = embedding_of(origin, seed, say)
    data = prepare(examples, words, encoder, (CODE, DOC))
    rows = data.rows(TRAIN)
    heads = train_heads(data, rows, data.labels)
    development = data.rows(*data.development)
    if not len(development):
        raise InputError(f"{texts}: no development set, which the calibration needs")
    judged = judge(heads, data, development)
    pooling = fit_pooling(judged, data.labels[development])
    facts = {
        "trained": {
            "functions": {name: {r: counts[name, r] for r in resources()} for name in (TRAIN, *data.development)},
            "texts_sha256": hashlib.sha256(texts.read_bytes()).hexdigest(),
            "seed": seed,
            "recipes": {"code": asdict(CODE), "doc": asdict(DOC), "embedding": asdict(Lesson())},
        }
    }
    save(out, LinearClassifier(resources(), {"name": NAME}, words, encoder, *heads, pooling), table, facts)
    say(f"written to {out} after {time.monotonic() - started:.0f} s: {pooling}")
    report_shipped(out, data, development, say)
    if has_tables:
        table_of_development_sets(data, say)
        table_of_folds(data, ("python-stdlib", "jdk-java.base"), 10, say)
        table_of_folds(data, None, 5, say)
        table_of_arms(data, say)
        table_of_lengths(data, judged, pooling, say)
        table_of_words(heads, words, say)
        table_of_mistakes(data, judged, pooling, say)
    return load(str(out))


def embedding_of(origin: Origin, seed: int, say: Say) -> tuple[Words, Floats | None, Embedding]:
    """Words, the static table where it is one, and the embedding, as the arguments want it."""
    name = origin.embedding
    if name is None:
        if origin.sources is None:
            raise InputError("an embedding is learned from sources: give --sources, or one with --embedding")
        words, table = learn_embedding(unlabelled(origin.sources), load_embedding(origin.teacher), Lesson(), seed, say)
        # What is trained on is what is shipped, rounding included.
        table = dequantise(*quantise(table))
        return words, table, static_embedding(STATIC, words, table)
    if (Path(name) / "tokenizer.json").is_file() and (Path(name) / "config.json").is_file():
        earlier = load(name)
        if earlier.embedding.is_static:
            return earlier.words, earlier.embedding.table(), earlier.embedding
    shipped = load()
    return shipped.words, None, load_embedding(name)


def report_shipped(out: Path, data: Prepared, rows: Ids, say: Say) -> None:
    """The written model, read back, on the development sets together: its figures and its speed."""
    classifier = load(str(out))
    functions = [data.examples[row].function for row in rows]
    classifier.classify(functions)
    started = time.perf_counter()
    vectors = classifier.classify(functions)
    rate = len(functions) / (time.perf_counter() - started)
    for mix, weights in (("natural", data.weights[rows]), ("as drawn", np.ones(len(rows), np.float32))):
        say(f"shipped, pooling fitted on these, {mix}: {spread([score(vectors.combined, data.labels[rows], weights)])}")
    size = sum(path.stat().st_size for path in out.iterdir())
    say(f"{rate:,.0f} functions/s on one core, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
