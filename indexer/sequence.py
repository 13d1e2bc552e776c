"""The sequence head: a small network over a function's words in their order (two convolutions over five words each).

    texts = sequences(cut)                    every function's words, fields one after the other, each cut to a limit
    head = learn(texts, table, targets, …)    from labels and from the answers of a larger encoder (indexer.distil)
    read(head, table, texts)                  (n, k) logits

The inputs are vectors of the static embedding, so the network has only 122 thousand weights.  docs/classifiers.md has
its effect on accuracy, in addition to the two linear heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexer.embed import Ids, select
from crystalperf.indexer.vectors import Floats

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

LIMITS = {"name": 8, "class": 8, "package": 8, "doc": 50, "callees": 40, "code": 100}
"""The fields in reading order, with the maximum words of each."""

VECTOR_LENGTH = 8.0
KERNEL = 5
GROUPS = 4
BLOCKS = 2

ROWS = 32
STEP = 16
"""Texts are read `ROWS` at a time, padded to a multiple of `STEP` words.  A matrix product of another shape may sum in
another order, but the result of a function must not depend on the other functions in its batch."""


@dataclass(frozen=True)
class SequenceHead:
    """The weights.  D dimensions of the word vectors, d of the network, k resources."""

    projection: Floats
    """(d, D)"""
    field: Floats
    """(fields, d): added to each word of a field"""
    position: Floats
    """(longest field, d): added by the position in the field"""
    norm: Floats
    """(blocks + 1, 2, d): scale and shift of each layer's normalisation"""
    convolution: Floats
    """(blocks, d, d / groups, words)"""
    convolution_bias: Floats
    """(blocks, d)"""
    mixing: Floats
    """(blocks, d, d)"""
    mixing_bias: Floats
    """(blocks, d)"""
    output: Floats
    """(k, 2 d): of the words' mean and of their maximum"""
    bias: Floats
    """(k,)"""


def shapes(dimensions: int, width: int, count: int) -> dict[str, tuple[int, ...]]:
    """The shape of each part of a head."""
    return {
        "projection": (width, dimensions),
        "field": (len(LIMITS), width),
        "position": (max(LIMITS.values()), width),
        "norm": (BLOCKS + 1, 2, width),
        "convolution": (BLOCKS, width, width // GROUPS, KERNEL),
        "convolution_bias": (BLOCKS, width),
        "mixing": (BLOCKS, width, width),
        "mixing_bias": (BLOCKS, width),
        "output": (count, 2 * width),
        "bias": (count,),
    }


# 1. Texts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sequences:
    """The words of n functions in reading order: words, their fields and positions in these, flat; n + 1 starts."""

    ids: Ids
    fields: Ids
    places: Ids
    starts: Ids

    @property
    def lengths(self) -> Ids:
        return np.diff(self.starts)


def sequences(cut: Mapping[str, tuple[Ids, Ids]]) -> Sequences:
    """The words of functions, from their fields' words."""
    parts = []
    whole = np.arange(len(cut["name"][1]) - 1)
    for number, (field, limit) in enumerate(LIMITS.items()):
        ids, starts = select(cut[field], whole, limit)
        lengths = np.diff(starts)
        places = np.arange(len(ids)) - np.repeat(starts[:-1], lengths)
        parts.append((np.repeat(np.arange(len(whole)), lengths), ids, np.full(len(ids), number), places))
    row, ids, field_of, places = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(whole)))])
    return Sequences(ids[order], field_of[order], places[order], starts)


def _padded(texts: Sequences, rows: Ids, length: int) -> tuple[torch.Tensor, ...]:
    """(rows, length) words, fields, positions and a mask of words; a row of -1 is an empty text."""
    import torch

    lengths = np.where(rows < 0, 0, texts.starts[rows + 1] - texts.starts[rows])
    inside = np.arange(length) < lengths[:, None]
    at = (texts.starts[rows][:, None] + np.arange(length))[inside]
    found = [torch.from_numpy(inside)]
    for flat in (texts.ids, texts.fields, texts.places):
        filled = np.zeros(inside.shape, np.int64)
        filled[inside] = flat[at]
        found.insert(-1, torch.from_numpy(filled))
    return tuple(found)


# 2. The network -----------------------------------------------------------------------------------------------------


def _forward(
    weights: Mapping[str, torch.Tensor],
    vectors: torch.Tensor,
    field: torch.Tensor,
    place: torch.Tensor,
    inside: torch.Tensor,
    dropped: float = 0.0,
) -> torch.Tensor:
    """(n, k) logits of n texts, from projected word vectors (n, length, d)."""
    import torch
    from torch.nn import functional

    width = vectors.shape[2:]
    present = inside[:, :, None].float()
    state = vectors + weights["field"][field] + weights["position"][place]
    for block in range(BLOCKS):
        seen = functional.layer_norm(state, width, *weights["norm"][block]) * present
        convolved = functional.conv1d(
            seen.transpose(1, 2),
            weights["convolution"][block],
            weights["convolution_bias"][block],
            padding=KERNEL // 2,
            groups=GROUPS,
        )
        new = functional.gelu(convolved.transpose(1, 2))
        state = state + functional.linear(new, weights["mixing"][block], weights["mixing_bias"][block])
    state = functional.layer_norm(state, width, *weights["norm"][BLOCKS])
    mean = (state * present).sum(1) / present.sum(1).clamp(min=1)
    largest = state.masked_fill(present == 0, -1e4).amax(1) * (present.sum(1) > 0)
    pooled = functional.dropout(torch.cat([mean, largest], 1), dropped, training=dropped > 0)
    return functional.linear(pooled, weights["output"], weights["bias"])


def read(head: SequenceHead, table: Floats, texts: Sequences) -> Floats:
    """(n, k) logits of n texts over the (words, D) vectors of their words."""
    import torch

    weights = {name: torch.from_numpy(part) for name, part in vars(head).items()}
    found = np.zeros((len(texts.lengths), len(head.bias)), np.float32)
    lengths = np.maximum(-(-texts.lengths // STEP), 1) * STEP
    with torch.inference_mode():
        projected = torch.from_numpy(table @ head.projection.T)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            for at in range(0, len(rows), ROWS):
                some = np.full(ROWS, -1)
                some[: len(rows) - at] = rows[at : at + ROWS]
                ids, field, place, inside = _padded(texts, some, int(length))
                found[some[some >= 0]] = _forward(weights, projected[ids], field, place, inside)[some >= 0].numpy()
    return found


# 3. Learning --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schooling:
    """Training settings: AdamW, a learning rate with warm-up and linear decay."""

    width: int = 128
    epochs: int = 4
    batch: int = 32
    rate: float = 2e-3
    warm_up: int = 200
    decay: float = 0.02
    dropped: float = 0.2
    dropped_words: float = 0.1


def learn(
    texts: Sequences, table: Floats, targets: Floats, schooling: Schooling, seed: int, report: Callable[[str], None]
) -> SequenceHead:
    """The head that maximises the likelihood of the (n, k) probabilities `targets` of n texts."""
    import torch

    from crystalperf.indexer.descent import Course, descend  # which needs torch to be read

    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    weights = _fresh(table.shape[1], schooling.width, targets.shape[1])
    # Vectors of frequent words are short; scale them so that their mean length suits the layers.
    scale = np.float32(VECTOR_LENGTH / np.linalg.norm(table, axis=1).mean())
    vectors, expected = torch.from_numpy(table * scale), torch.from_numpy(targets)
    optimiser = torch.optim.AdamW(list(weights.values()), lr=schooling.rate, weight_decay=schooling.decay)

    def loss_of(rows: Ids) -> torch.Tensor:
        ids, field, place, inside = _padded(texts, rows, int(lengths[rows].max(initial=1)))
        kept = inside & torch.from_numpy(rng.random(inside.shape) >= schooling.dropped_words)
        found = _forward(weights, vectors[ids] @ weights["projection"].T, field, place, kept, schooling.dropped)
        return torch.nn.functional.cross_entropy(found, expected[rows])

    lengths = texts.lengths
    course = Course(schooling.epochs, schooling.batch, schooling.warm_up)
    descend(optimiser, lengths, course, rng, loss_of, lambda line: report(f"sequence head, {line}"))
    # Use the weights as shipped, with their rounding.
    learned = {name: each.detach().numpy() for name, each in weights.items()}
    learned["projection"] = learned["projection"] * scale
    return SequenceHead(**{name: rounded(each) for name, each in learned.items()})


def rounded(values: NDArray[np.float32]) -> Floats:
    """The weights rounded to half precision, as shipped."""
    return np.asarray(values.astype(np.float16), dtype=np.float32)


def _fresh(dimensions: int, width: int, count: int) -> dict[str, torch.Tensor]:
    """Initial weights: matrices are uniform, scaled by their number of inputs, as in torch's layers."""
    import torch

    inputs = {
        "projection": dimensions,
        "convolution": width // GROUPS * KERNEL,
        "mixing": width,
        "output": 2 * width,
    }
    weights = {}
    for name, shape in shapes(dimensions, width, count).items():
        if name in inputs:
            start = (2 * torch.rand(shape) - 1) / inputs[name] ** 0.5
        elif name in ("field", "position"):
            start = 0.02 * torch.randn(shape)
        else:
            start = torch.zeros(shape)
            if name == "norm":
                start[:, 0] = 1.0
        weights[name] = start.requires_grad_()
    return weights
