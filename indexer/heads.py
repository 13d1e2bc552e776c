"""Training, inference and pooling of the two linear heads.

heads = train_heads(data, rows, labels)   both heads, on some examples
judged = judge(heads, data, rows)         their logits
pooling = fit_pooling(judged, labels)     the mapping from logits to calibrated probabilities
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from crystalperf.indexer.classify import (
    CODE_WEIGHT,
    DOC_WEIGHT,
    UNCALIBRATED,
    Calibration,
    Cut,
    Features,
    Head,
    Pooling,
    added,
    count_words,
    logits,
    softmax,
)
from crystalperf.indexer.embed import Ids, select
from crystalperf.indexer.examples import Labels, Prepared, Recipe, folds
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.resources import resources

# 1. Learning ----------------------------------------------------------------------------------------------------------


CODE = Recipe(("name", "class", "package", "callees", "code"), (("name", "class"), ("callees",), ("code",)))
DOC = Recipe(("doc", "name", "class"), (("doc",), ("name", "class")))


def seen_by(recipe: Recipe, rarity: Floats, data: Prepared, rows: Ids) -> Features:
    """The inputs of a head of this recipe for some examples."""
    cut = {each: select(data.cut[each], rows) for each in recipe.fields}
    columns, starts, values = count_words(recipe.fields, rarity, cut, len(rows))
    return Features(columns, starts, values, data.dense[recipe.texts][rows])


def train_head(recipe: Recipe, data: Prepared, rows: Ids, labels: Labels) -> Head:
    """A head trained on some examples, with `labels` for all of them."""
    cut = {each: select(data.cut[each], rows) for each in recipe.fields}
    rarity = rarity_of(cut, recipe.fields, len(rows), data.words.size)
    seen = seen_by(recipe, rarity, data, rows)
    learned = fit_head(seen, labels[rows], rarity.size, len(resources()), recipe)
    return Head(recipe.fields, recipe.texts, rarity, *learned)


def rarity_of(cut: Cut, fields: Sequence[str], count: int, size: int) -> Floats:
    """(fields, V) inverse document frequency, ln((1 + n) / (1 + df)) + 1; 0 for a word of a single function."""
    rarity = np.zeros((len(fields), size), np.float32)
    for number, field in enumerate(fields):
        ids, starts = cut[field]
        pairs = np.unique(np.repeat(np.arange(count), np.diff(starts)) * size + ids)
        frequency = np.bincount(pairs % size, minlength=size)
        rarity[number] = np.where(frequency >= 2, np.log((1 + count) / (1 + frequency)) + 1, 0)
    return rarity


def fit_head(seen: Features, labels: Labels, columns: int, count: int, recipe: Recipe) -> tuple[Floats, Floats, Floats]:
    """The weights (columns, k), (d, k) and bias (k,) of multinomial logistic regression, by L-BFGS (paper, fn 6)."""
    met, positions = np.unique(seen.columns, return_inverse=True)
    ids, starts = torch.from_numpy(positions.astype(np.int64)), torch.from_numpy(seen.starts[:-1])
    values, dense = torch.from_numpy(seen.values), torch.from_numpy(seen.embedding)
    target, importance = torch.from_numpy(labels), torch.full((len(labels),), 1 / max(len(labels), 1))
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
    """The logits of the heads for some examples; NaN rows without documentation, zeros without a sequence head."""

    rows: Ids
    code: Floats
    doc: Floats
    sequence: Floats

    def linear(self) -> Judged:
        """The same without the sequence head."""
        return replace(self, sequence=np.zeros_like(self.code))

    def plus(self, more: Floats) -> Judged:
        """The same with (n, k) `more` in the sum of the logits."""
        return replace(self, sequence=np.asarray(self.sequence + more, dtype=np.float32))

    def at(self, chosen: NDArray[np.bool_]) -> Judged:
        """The logits of some examples."""
        return Judged(self.rows[chosen], self.code[chosen], self.doc[chosen], self.sequence[chosen])


def train_heads(data: Prepared, rows: Ids, labels: Labels, code: Recipe = CODE, doc: Recipe = DOC) -> tuple[Head, Head]:
    """Train both heads; the documentation head learns from documented functions only."""
    return train_head(code, data, rows, labels), train_head(doc, data, rows[data.documented[rows]], labels)


def judge(heads: tuple[Head, Head], data: Prepared, rows: Ids, has_sequence: bool = False) -> Judged:
    """The heads' logits for some examples, and with `has_sequence` the sequence head's, for unseen examples."""
    code, doc = heads
    result = np.full((len(rows), len(resources())), np.nan, np.float32)
    having = data.documented[rows]
    if having.any():
        result[having] = logits(doc, seen_by(Recipe(doc.fields, doc.texts), doc.rarity, data, rows[having]))
    linear = logits(code, seen_by(Recipe(code.fields, code.texts), code.rarity, data, rows))
    return Judged(rows, linear, result, data.sequence[rows] if has_sequence else np.zeros_like(linear))


def uncontradicted(data: Prepared, rows: Ids, labels: Labels, seed: int, least: float = 0.2, parts: int = 5) -> Ids:
    """The rows whose label is plausible: heads trained on other files give it at least the probability `least`.

    This removes most wrong labels (confident learning, Northcutt et al. 2021), and a few hard but correct ones.
    """
    kept = []
    for part in folds(data, rows, parts, seed):
        judged = judge(train_heads(data, np.setdiff1d(rows, part), labels), data, part)
        of_label = softmax(summed(judged))[np.arange(len(part)), labels[part]]
        kept.append(part[of_label >= least])
    return np.sort(np.concatenate(kept))


# 2. From the heads to one calibrated vector ---------------------------------------------------------------------------


def summed(judged: Judged) -> Floats:
    """(n, k) weighted sums of the logits of all heads."""
    return added(UNCALIBRATED, judged.code, judged.doc, judged.sequence)


def fit_pooling(judged: Judged, labels: Labels) -> Pooling:
    """The scale and the biases of the resources that maximise the likelihood of the labels, for the sum of all heads.

    This is temperature scaling (Guo et al. 2017) with a bias.  The weights of the heads are constants, because a few
    hundred functions are too few to fit them (docs/classifiers.md).  Functions count as drawn, not by natural
    frequency: the samples of a profile hit input and output more often than a list of functions does.
    """
    having = ~np.isnan(judged.doc[:, 0])
    return Pooling(
        CODE_WEIGHT,
        DOC_WEIGHT,
        _fit_scale(summed(judged), labels),
        _fit_scale(judged.code, labels),
        _fit_scale(judged.doc[having], labels[having]),
    )


def _fit_scale(scores: Floats, labels: Labels) -> Calibration:
    if not len(labels):
        return UNCALIBRATED.combined
    given, target = torch.from_numpy(scores), torch.from_numpy(labels)
    scale = torch.ones(1, requires_grad=True)
    bias = torch.zeros(scores.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([scale, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = torch.nn.functional.cross_entropy(given * scale + bias, target)
        # Regularisation: with little data, stay near the output of the heads.
        total = total + 1e-3 * (scale - 1).square().sum() + 1e-3 * bias.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return Calibration(float(scale.detach()), tuple(float(each) for each in bias.detach()))
