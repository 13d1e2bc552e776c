"""The paper's embedding of documentation: word vectors, a GRU over them, its last state (§3.2; Cho et al. 2014).

The paper's word vectors come from Flair, a language model that must be downloaded.  CrystalPerf computes them from the
documentation of the training libraries: positive pointwise mutual information of words within a window of five words,
reduced by SVD, the matrix that word2vec's skip-gram factorises (Levy & Goldberg 2014).

The GRU is trained once, without labels: a decoder predicts the words of the text from its last state (the autoencoder
of Dai & Le 2015, with a decoder that ignores order).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, diags
from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped]
from torch.nn.utils.rnn import pack_padded_sequence

from crystalperf.indexer.classify import DOC_CHARS
from crystalperf.indexer.embed import Ids, Words, select
from crystalperf.indexer.vectors import Floats

MAX_WORDS = 120
"""Maximum words of a text that the GRU reads."""

_LINK = re.compile(r"(?:https?|ftp)://\S+|www\.\S+")


def cut_documents(texts: Sequence[str], words: Words) -> tuple[Ids, Ids]:
    """The words of documentation and the start of each text, without links and punctuation."""
    return words.encode([_LINK.sub(" ", each[:DOC_CHARS]) for each in texts])


def word_vectors(part: tuple[Ids, Ids], size: int, dimensions: int, seed: int, window: int = 5) -> Floats:
    """(size, dimensions) vectors of unit length from texts cut into words; zero for words that do not occur."""
    ids, starts = part
    text = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    counts = coo_matrix((size, size), dtype=np.float32).tocsr()
    for distance in range(1, window + 1):
        together = text[distance:] == text[:-distance]
        left, right = ids[:-distance][together], ids[distance:][together]
        counts += coo_matrix((np.ones(len(left), np.float32), (left, right)), (size, size)).tocsr()
    counts = (counts + counts.T).tocsr()
    met = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1)
    # Context frequencies are smoothed; otherwise rare words would be near each other only.
    context = met**0.75 / (met**0.75).sum()
    ratios = (diags(1 / met) @ counts @ diags(1 / context)).tocsr()
    ratios.data = np.log(np.maximum(ratios.data, 1))
    reduced = TruncatedSVD(dimensions, random_state=seed).fit(ratios)
    vectors = (ratios @ reduced.components_.T) / np.sqrt(np.maximum(reduced.singular_values_, 1e-9))
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.asarray(vectors, dtype=np.float32)


@dataclass(frozen=True)
class Reader:
    """A GRU, its word vectors, and the decoder from its last state to the words of a text."""

    table: torch.Tensor
    """(words, d)"""
    gru: torch.nn.GRU
    decoder: torch.nn.Linear


@dataclass(frozen=True)
class Training:
    """Training settings of the GRU."""

    reads: int
    """Total number of texts read; a smaller corpus is read more often."""
    batch: int = 64
    rate: float = 2e-3
    shortest: int = 3
    """Minimum words of a training text."""


def new_reader(table: Floats, hidden: int, seed: int) -> Reader:
    torch.manual_seed(seed)
    gru = torch.nn.GRU(table.shape[1], hidden, batch_first=True)
    return Reader(torch.from_numpy(table), gru, torch.nn.Linear(hidden, len(table)))


def last_states(reader: Reader, part: tuple[Ids, Ids], rows: Ids) -> torch.Tensor:
    """(rows, hidden) states after the last word of each text, zero for one without words."""
    ids, starts = part
    lengths = np.minimum(np.diff(starts)[rows], MAX_WORDS)
    padded = np.zeros((len(rows), max(1, int(lengths.max(initial=1)))), np.int64)
    inside = np.arange(padded.shape[1]) < lengths[:, None]
    padded[inside] = ids[(starts[rows][:, None] + np.arange(padded.shape[1]))[inside]]
    vectors = reader.table[torch.from_numpy(padded)]
    packed = pack_padded_sequence(
        vectors, torch.from_numpy(np.maximum(lengths, 1)), batch_first=True, enforce_sorted=False
    )
    state: torch.Tensor = reader.gru(packed)[1]
    return state[0] * torch.from_numpy(lengths > 0)[:, None]


def train_reader(reader: Reader, part: tuple[Ids, Ids], training: Training, seed: int) -> list[float]:
    """Train the GRU in place to predict the words of texts, with more weight on rare ones; returns the epoch losses."""
    ids, starts = part
    size, lengths = len(reader.table), np.diff(starts)
    rng = np.random.default_rng(seed)
    texts = np.repeat(np.arange(len(lengths)), lengths)
    frequency = np.bincount(np.unique(texts * size + ids) % size, minlength=size)
    rarity = torch.from_numpy((np.log((1 + len(lengths)) / (1 + frequency)) + 1).astype(np.float32))
    usable = np.flatnonzero(lengths >= training.shortest)
    weights = [*reader.gru.parameters(), *reader.decoder.parameters()]
    optimiser = torch.optim.Adam(weights, lr=training.rate)
    losses = []
    for _ in range(max(1, round(training.reads / max(1, len(usable))))):
        # A batch has texts of similar length, so that little of it is padding.
        order = usable[np.argsort(np.minimum(lengths[usable], MAX_WORDS) + 5 * rng.random(len(usable)))]
        found = []
        for at in rng.permutation(-(-len(order) // training.batch)):
            rows = order[at * training.batch : (at + 1) * training.batch]
            words, begins = (torch.from_numpy(each) for each in select(part, rows, MAX_WORDS))
            target = torch.zeros(len(rows), size)
            target.index_put_((torch.arange(len(rows)).repeat_interleave(begins.diff()), words), rarity[words], True)
            predicted = reader.decoder(last_states(reader, part, rows))
            loss = torch.nn.functional.cross_entropy(predicted, target / target.sum(1, keepdim=True))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(reader.gru.parameters(), 1.0)
            optimiser.step()
            found.append(loss.item())
        losses.append(float(np.mean(found)))
    return losses


def document_vectors(reader: Reader, part: tuple[Ids, Ids], batch: int = 256) -> Floats:
    """(texts, hidden) last states."""
    count = len(part[1]) - 1
    with torch.inference_mode():
        found = [last_states(reader, part, np.arange(at, min(at + batch, count))) for at in range(0, count, batch)]
    return np.asarray(torch.cat(found).numpy(), dtype=np.float32)


def sgd_head(
    vectors: Floats, labels: NDArray[np.int64], resources: int, seed: int, epochs: int = 100, batch: int = 32
) -> torch.nn.Linear:
    """A linear head by SGD, rate 0.1, halved when the loss has not fallen for three epochs (paper, fn 6; Flair)."""
    torch.manual_seed(seed)
    head = torch.nn.Linear(vectors.shape[1], resources)
    optimiser = torch.optim.SGD(head.parameters(), lr=0.1)
    annealing = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.5, patience=3)
    inputs, target = torch.from_numpy(vectors), torch.from_numpy(labels)
    for _ in range(epochs):
        total = 0.0
        for rows in torch.split(torch.randperm(len(labels)), batch):
            loss = torch.nn.functional.cross_entropy(head(inputs[rows]), target[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.item() * len(rows)
        annealing.step(total / len(labels))
        if optimiser.param_groups[0]["lr"] < 1e-4:
            break
    return head
