"""The paper's embedding of code: a recursive autoencoder over binary trees (§3.2; Socher et al. 2011).

A parent's vector is p = W [left : right] + b, in the variant with tanh p = tanh(W [left : right] + b), scaled to unit
length as in Socher et al.: with the paper's formula vectors grow with depth, to lengths of 10⁶.  The decoder rebuilds
both children from it, r = V p + c.  A leaf is the mean of the vectors of its words, which are not trained.  The root's
vector is the vector of the function.

Training minimises, over all nodes, ‖child − rebuilt child‖², weighted by the child's share of the leaves.  The child is
a constant in this error: otherwise equal vectors for all nodes would minimise it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from crystalperf.indexer.baselines.trees import Forest, Levels, by_level
from crystalperf.indexer.vectors import Floats


@dataclass(frozen=True)
class Autoencoder:
    """Weights over vectors of d dimensions, and the word vectors they were trained with."""

    table: torch.Tensor
    """(words, d)"""
    encoder: torch.Tensor
    """W, (d, 2d)"""
    encoder_bias: torch.Tensor
    decoder: torch.Tensor
    """V, (2d, d)"""
    decoder_bias: torch.Tensor
    has_tanh: bool

    @property
    def weights(self) -> tuple[torch.Tensor, ...]:
        """The trained weights."""
        return self.encoder, self.encoder_bias, self.decoder, self.decoder_bias


@dataclass(frozen=True)
class Training:
    """Training settings of the autoencoder."""

    epochs: int = 4
    batch: int = 64
    rate: float = 1e-3


def new_autoencoder(table: Floats, has_tanh: bool, seed: int) -> Autoencoder:
    """Initial weights: a parent is near the mean of its children, and children are rebuilt as their parent."""
    generator = torch.Generator().manual_seed(seed)
    d = table.shape[1]
    unit = torch.eye(d)
    noise = torch.randn(2, d, 2 * d, generator=generator) * 0.1 / d**0.5
    return Autoencoder(
        torch.from_numpy(table),
        torch.cat([unit, unit], 1) / 2 + noise[0],
        torch.zeros(d),
        torch.cat([unit, unit], 0) + noise[1].T,
        torch.zeros(2 * d),
        has_tanh,
    )


def train_autoencoder(model: Autoencoder, forest: Forest, training: Training, seed: int) -> list[float]:
    """Train in place on trees, without labels; returns the mean error of each epoch."""
    rng = np.random.default_rng(seed)
    trees = [each for each in forest.trees if len(each.leaves) > 1]
    leaves = leaf_vectors(model, forest)
    steps = training.epochs * -(-len(trees) // training.batch)
    optimiser = torch.optim.Adam(model.weights, lr=training.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, max(1, steps))
    errors = []
    for _ in range(training.epochs):
        order = rng.permutation(len(trees))
        found = []
        for start in range(0, len(order), training.batch):
            levels = by_level([trees[at] for at in order[start : start + training.batch]])
            error, gradients = error_of(model, levels, *encode(model, levels, leaves))
            for weight, gradient in zip(model.weights, gradients, strict=True):
                weight.grad = gradient
            torch.nn.utils.clip_grad_norm_(model.weights, 1.0)
            optimiser.step()
            schedule.step()
            found.append(error)
        errors.append(float(np.mean(found)))
    return errors


def leaf_vectors(model: Autoencoder, forest: Forest) -> torch.Tensor:
    """(identifiers, d): the mean of an identifier's words, of unit length."""
    ids, starts = torch.from_numpy(forest.ids), torch.from_numpy(forest.starts[:-1])
    return torch.nn.functional.normalize(torch.nn.functional.embedding_bag(ids, model.table, starts, mode="mean"))


def encode(model: Autoencoder, levels: Levels, leaves: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(nodes, d) unit vectors of all nodes of a batch, level by level, and (inner nodes, 1) lengths they had before."""
    count = len(levels.leaves)
    nodes = torch.empty(count + len(levels.children), leaves.shape[1])
    nodes[:count] = leaves[torch.from_numpy(levels.leaves)]
    lengths = torch.empty(len(levels.children), 1)
    children = torch.from_numpy(levels.children)
    for start, end in levels.bounds:
        parents = torch.addmm(model.encoder_bias, nodes[children[start:end]].flatten(1), model.encoder.T)
        if model.has_tanh:
            parents = parents.tanh()
        lengths[start:end] = parents.norm(dim=1, keepdim=True).clamp(min=1e-6)
        nodes[count + start : count + end] = parents / lengths[start:end]
    return nodes, lengths


def error_of(
    model: Autoencoder, levels: Levels, nodes: torch.Tensor, lengths: torch.Tensor
) -> tuple[float, tuple[torch.Tensor, ...]]:
    """The error of rebuilding, and its gradient for each of the weights.

    The gradient is computed by hand, from the roots down: autograd would keep a copy of all nodes for each level.
    """
    count, total = len(levels.leaves), len(levels.children)
    children, inner = torch.from_numpy(levels.children), nodes[count:]
    pairs = nodes[children]
    difference = torch.addmm(model.decoder_bias, inner, model.decoder.T).view_as(pairs) - pairs
    share = torch.from_numpy(levels.shares)[..., None]
    error = float((share * difference.square()).sum() / total)
    rebuilt = (2 / total * share * difference).flatten(1)
    gradient = torch.zeros_like(nodes)
    gradient[count:] = rebuilt @ model.decoder
    for start, end in reversed(levels.bounds):
        here, length = inner[start:end], lengths[start:end]
        # Of unit length, then of tanh.
        part = gradient[count + start : count + end]
        part = (part - here * (part * here).sum(1, keepdim=True)) / length
        if model.has_tanh:
            part = part * (1 - (here * length).square())
        gradient[count + start : count + end] = part
        # Every node has one parent, so nothing is added twice.
        gradient[children[start:end]] += (part @ model.encoder).view(-1, *pairs.shape[1:])
    below = gradient[count:]
    return error, (below.T @ pairs.flatten(1), below.sum(0), rebuilt.T @ inner, rebuilt.sum(0))


def root_vectors(model: Autoencoder, forest: Forest, batch: int = 256) -> Floats:
    """(functions, d): the root vector of each tree; zero for an empty tree."""
    vectors = np.zeros((len(forest.trees), model.table.shape[1]), np.float32)
    leaves = leaf_vectors(model, forest)
    full = np.array([at for at, each in enumerate(forest.trees) if len(each.leaves)], np.int64)
    for start in range(0, len(full), batch):
        rows = full[start : start + batch]
        levels = by_level([forest.trees[row] for row in rows])
        nodes, _ = encode(model, levels, leaves)
        vectors[rows] = nodes[torch.from_numpy(levels.roots)].numpy()
    return vectors
