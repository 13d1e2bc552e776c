"""Classifier of functions by resource: two linear heads (paper, §3.2 and §3.3), and a small network over both texts.

    classifier = load()                       the shipped model (indexer.modelfile)
    classifier.classify(functions)            Vectors, in the order given
    classifier.vectors(judged, called)        the same, with the labels of typed callees as evidence

    name, class, package, callees, code ─┬─ words ─────┐
                                         └─ embedding ─┴─ code head ──┐
    documentation, name, class ──────────┬─ words ─────┐              ├─ pooled ─ resource vector
                                         └─ embedding ─┴─ doc head ───┤
    all of them, in their order ─────────── sequence head ────────────┘

A linear head sums the contributions of the words and of the embedding to each resource.  A word is weighted by its
frequency and rarity, separately in each field: `read` in a name is not `read` in a package.  So `explain` is exact for
the linear heads.  The sequence head (indexer.sequence) is optional, and absent from models trained without a teacher.
The labels of typed callees (indexer.evidence) add to the sum of the logits, if a model has weights for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crystalperf.indexer.embed import Embedding, Ids, Words, select
from crystalperf.indexer.evidence import Called
from crystalperf.indexer.sequence import SequenceHead, read, sequences
from crystalperf.indexer.vectors import Floats, FunctionText, Vectors

CODE_CHARS = 4000
DOC_CHARS = 2000
"""Maximum characters read of a text: its start describes its purpose, and long functions must not cost too much."""

_DOCSTRING = re.compile(r"[rRuUbB]{0,2}(\"\"\"|''')[\s\S]*?\1")


def _simple_name(function: FunctionText) -> str:
    return re.split(r"\.|::", function.qualified_name)[-1]


def _code(function: FunctionText) -> str:
    code = function.code[: CODE_CHARS + DOC_CHARS]
    if function.language == "python" and function.doc:
        # A docstring belongs to the documentation head; the code head must work without one.
        code = _DOCSTRING.sub("", code, count=1)
    return code[:CODE_CHARS]


FIELDS: dict[str, Callable[[FunctionText], str]] = {
    "name": _simple_name,
    "class": lambda function: function.class_name or "",
    "package": lambda function: function.package,
    "callees": lambda function: " ".join(function.callees),
    "code": _code,
    "doc": lambda function: function.doc[:DOC_CHARS],
}
"""The texts that a head can read."""


@dataclass(frozen=True)
class Head:
    """A linear classifier.  V words, D dimensions of all embedded texts, k resources."""

    fields: tuple[str, ...]
    """The fields whose words it counts, each with separate weights."""
    texts: tuple[tuple[str, ...], ...]
    """The embedded texts, each the fields joined; their concatenated vectors have D dimensions."""
    rarity: Floats
    """(fields, V) weight of a word's occurrence, 0 for words that did not occur in the field in training."""
    words: Floats
    """(fields × V, k)"""
    embedding: Floats
    """(D, k)"""
    bias: Floats
    """(k,)"""

    @property
    def needs(self) -> tuple[str, ...]:
        """Every field it reads."""
        return tuple(dict.fromkeys((*self.fields, *(field for text in self.texts for field in text))))


@dataclass(frozen=True)
class Features:
    """The inputs of a head for n functions: sparse words (CSR) and the dense embedding."""

    columns: Ids
    """field × V + word, flat"""
    starts: Ids
    """(n + 1,)"""
    values: Floats
    """Weights of the words; those of one function have unit length."""
    embedding: Floats
    """(n, D)"""


@dataclass(frozen=True)
class Calibration:
    """softmax(scale × logits + bias) is calibrated (temperature scaling, Guo et al. 2017, with a bias)."""

    scale: float
    bias: tuple[float, ...]
    """(k,)"""

    def probabilities(self, values: Floats) -> Floats:
        """(n, k) from (n, k) logits; NaN rows stay NaN."""
        return softmax(values * np.float32(self.scale) + np.array(self.bias, np.float32))


@dataclass(frozen=True)
class Pooling:
    """Pooling of the heads' logits into one vector: a weighted sum, then calibrated; also for each head alone."""

    code_weight: float
    doc_weight: float
    """Without documentation, the weight of the code head is 1."""
    combined: Calibration
    code: Calibration
    doc: Calibration

    @staticmethod
    def even(count: int = 3) -> Pooling:
        """The average of the linear heads, as in the paper."""
        plain = Calibration(1.0, (0.0,) * count)
        return Pooling(0.5, 0.5, plain, plain, plain)


@dataclass(frozen=True)
class PooledClassifier:
    """A trained model; `Classifier` of indexer.vectors."""

    resources: tuple[str, ...]
    identity: Mapping[str, str]
    words: Words
    embedding: Embedding
    code: Head
    doc: Head
    sequence: SequenceHead | None
    pooling: Pooling
    callees: Floats | None = None
    """(FEATURES, k) what each feature of typed callees adds to the logits; None for a model without them."""

    def classify(self, functions: Sequence[FunctionText]) -> Vectors:
        """Resource vectors of functions, in their order, each by its own text."""
        return self.vectors(self.judge(functions))

    def vectors(self, judged: Floats, called: Callable[[], Called] | None = None) -> Vectors:
        """Resource vectors of functions that were judged; `called` finds the typed callees among them."""
        code, doc, sequence = np.split(judged, 3, axis=1)
        total = added(self.pooling, code, doc, sequence)
        deciders: dict[int, int | str] = {}
        if self.callees is not None and called is not None:
            found, labels = called(), callee_labels(code, doc)
            own = self.pooling.combined.probabilities(total + found.without().features(labels) @ self.callees)
            total = total + found.features(labels) @ self.callees
            now = self.pooling.combined.probabilities(total).argmax(axis=1)
            changed = np.flatnonzero(now != own.argmax(axis=1)).tolist()
            deciders = found.deciders(labels, {row: self.resources[now[row]] for row in changed})
        combined = self.pooling.combined.probabilities(total)
        return Vectors(
            code=self.pooling.code.probabilities(code),
            doc=self.pooling.doc.probabilities(doc),
            combined=combined,
            confidence=combined.max(axis=1),
            deciders=deciders,
        )

    def judge(self, functions: Sequence[FunctionText]) -> Floats:
        """(n, 3 k): the logits of the code head, of the documentation head (NaN without documentation) and of the
        sequence head (0 without one)."""
        cut = cut_words(functions, self.words, tuple(FIELDS))
        code = logits(self.code, features(self.code, functions, cut, self.embedding))
        documented = np.flatnonzero([bool(each.doc.strip()) for each in functions])
        doc = np.full_like(code, np.nan)
        if len(documented):
            having = [functions[int(at)] for at in documented]
            theirs = {each: select(cut[each], documented) for each in self.doc.needs}
            doc[documented] = logits(self.doc, features(self.doc, having, theirs, self.embedding))
        sequence = np.zeros_like(code)
        if self.sequence is not None:
            sequence = read(self.sequence, self.embedding.table(), sequences(cut))
        return np.concatenate([code, doc, sequence], axis=1)

    def explain(self, function: FunctionText, top: int = 10) -> dict[str, list[tuple[str, str, float]]]:
        """For each resource the words with the largest contribution above the mean of all: (field, word, logit).

        It is exact for the words of the linear heads; contributions of the embedding and the sequence head are omitted.
        """
        names = self.words.tokenizer.get_vocab()
        words = sorted(names, key=lambda word: names[word])
        found: dict[str, list[tuple[str, str, float]]] = {each: [] for each in self.resources}
        parts_of: list[tuple[Head, float]] = [(self.code, 1.0)]
        if function.doc.strip():
            parts_of = [(self.code, self.pooling.code_weight), (self.doc, self.pooling.doc_weight)]
        for head, share in parts_of:
            weight = share * self.pooling.combined.scale
            seen = features(head, [function], cut_words([function], self.words, head.needs), self.embedding)
            parts = head.words[seen.columns] * seen.values[:, None] * weight
            parts -= parts.mean(axis=1, keepdims=True)
            for column, part in zip(seen.columns, parts, strict=True):
                field, word = divmod(int(column), self.words.size)
                for resource, logit in zip(self.resources, part, strict=True):
                    found[resource].append((head.fields[field], words[word], float(logit)))
        return {each: sorted(parts, key=lambda part: -part[2])[:top] for each, parts in found.items()}


Cut = dict[str, tuple[Ids, Ids]]


def cut_words(functions: Sequence[FunctionText], words: Words, fields: Sequence[str]) -> Cut:
    """The words of each field (numbers, flat) and the starts of the functions."""
    return {field: words.encode([FIELDS[field](each) for each in functions]) for field in dict.fromkeys(fields)}


def features(head: Head, functions: Sequence[FunctionText], cut: Cut, embedding: Embedding) -> Features:
    """The inputs of a head for the functions."""
    columns, starts, values = count_words(head.fields, head.rarity, cut, len(functions))
    return Features(columns, starts, values, embed_texts(head.texts, functions, cut, embedding))


def embed_texts(
    texts: Sequence[tuple[str, ...]], functions: Sequence[FunctionText], cut: Cut, embedding: Embedding
) -> Floats:
    """(n, D) vectors of several texts of each function, side by side."""
    found = []
    for fields in texts:
        ids, starts = joined([cut[each] for each in fields], len(functions))
        whole = [] if embedding.is_static else ["\n".join(FIELDS[each](f) for each in fields) for f in functions]
        found.append(embedding.encode(whole, ids, starts))
    return np.concatenate(found, axis=1)


def count_words(fields: Sequence[str], rarity: Floats, cut: Cut, count: int) -> tuple[Ids, Ids, Floats]:
    """Columns, starts and values of the weighted words: (1 + ln occurrences) × rarity, rows of unit length."""
    size = rarity.shape[1]
    width = len(fields) * size
    keys = []
    for number, field in enumerate(fields):
        ids, starts = cut[field]
        keys.append(np.repeat(np.arange(count), np.diff(starts)) * width + number * size + ids)
    unique, occurrences = np.unique(np.concatenate(keys), return_counts=True)
    rows, columns = np.divmod(unique, width)
    values = (1.0 + np.log(occurrences)) * rarity.reshape(-1)[columns]
    kept = values > 0
    rows, columns, values = rows[kept], columns[kept], values[kept]
    norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=count))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return columns, starts, (values / norms[rows]).astype(np.float32)


def logits(head: Head, seen: Features) -> Floats:
    """(n, k) logits of a head."""
    import torch

    with torch.inference_mode():
        words = torch.nn.functional.embedding_bag(
            torch.from_numpy(seen.columns),
            torch.from_numpy(head.words),
            torch.from_numpy(seen.starts[:-1]),
            mode="sum",
            per_sample_weights=torch.from_numpy(seen.values),
        )
    # A matrix product may sum a row in another order if the batch has other rows.  Double precision hides that, so
    # cached results equal computed ones.
    dense = seen.embedding.astype(np.float64) @ head.embedding.astype(np.float64)
    return np.asarray(words.numpy() + dense + head.bias, dtype=np.float32)


CODE_WEIGHT, DOC_WEIGHT = 0.8, 0.3
"""Weights of the linear heads' logits if both exist, the best for libraries left out of training.  The weight of the
sequence head is 1."""

UNCALIBRATED = replace(Pooling.even(), code_weight=CODE_WEIGHT, doc_weight=DOC_WEIGHT)


def added(pooling: Pooling, code: Floats, doc: Floats, sequence: Floats) -> Floats:
    """(n, k) weighted sums of the logits of all heads; NaN rows of `doc` are functions without documentation."""
    both = code * np.float32(pooling.code_weight) + doc * np.float32(pooling.doc_weight)
    return np.asarray(np.where(np.isnan(doc), code, both) + sequence, dtype=np.float32)


def callee_labels(code: Floats, doc: Floats) -> Floats:
    """(n, k) probabilities of functions as callees of others: by the linear heads alone, as the weights were fitted."""
    return softmax(added(UNCALIBRATED, code, doc, np.zeros_like(code)))


def softmax(values: Floats) -> Floats:
    """Rows as probabilities; NaN rows stay NaN."""
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)


def joined(parts: Sequence[tuple[Ids, Ids]], count: int) -> tuple[Ids, Ids]:
    """The words of several fields, joined to one text per function."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([np.repeat(np.arange(count), np.diff(starts)) for _, starts in parts])
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return np.concatenate([ids for ids, _ in parts])[order], starts
