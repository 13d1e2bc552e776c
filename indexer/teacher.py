"""A sentence encoder fine-tuned on the labels: the teacher of the sequence head, and a baseline.

teacher = fine_tune(name, functions, labels, …)   all layers learn, under a linear head over mean and maximum
teacher.read(functions)                           (n, k) logits, some 30 functions a second of a core
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from crystalperf.indexer.classify import FIELDS
from crystalperf.indexer.descent import Course, descend
from crystalperf.indexer.embed import Ids, load_embedding
from crystalperf.indexer.examples import Labels
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import Report
from crystalperf.indexes.errors import InputError

_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


@dataclass(frozen=True)
class Training:
    """Fine-tuning settings: AdamW, a learning rate with warm-up and linear decay."""

    tokens: int = 160
    """Maximum tokens of a text."""
    epochs: int = 2
    batch: int = 32
    rate: float = 8e-5
    head_rate: float = 1e-3
    warm_up: int = 60
    smoothing: float = 0.05


class Tuned(torch.nn.Module):
    """An encoder and a linear head over the mean and the maximum of its last layer."""

    def __init__(self, encoder: torch.nn.Module, width: int, count: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropped = torch.nn.Dropout(0.1)
        self.head = torch.nn.Linear(2 * width, count)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(n, k) logits of (n, tokens) texts."""
        last = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        inside = mask[:, :, None].float()
        mean = (last * inside).sum(1) / inside.sum(1)
        largest = (last + (inside - 1) * 1e4).max(1).values
        logits: torch.Tensor = self.head(self.dropped(torch.cat([mean, largest], 1)))
        return logits


def as_text(function: FunctionText) -> str:
    """A function as one text, the most informative parts first, since the end may be cut: names, docs, calls, code."""
    field = {name: _JOINTS.sub(" ", read(function)) for name, read in FIELDS.items()}
    place = field["package"].rpartition(".")[2]
    return (
        f"{field['name']} of {field['class']} in {place}. {field['doc'][:250]} calls {field['callees'][:250]} :"
        f" {field['code'][:1500]}"
    )


@contextmanager
def all_processors() -> Iterator[None]:
    """Let torch use every processor for the block; small tasks are faster on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Teacher:
    """A fine-tuned encoder and its tokenizer."""

    tokenizer: Any
    model: Tuned
    tokens: int

    def cut(self, functions: Sequence[FunctionText]) -> list[list[int]]:
        """The tokens of functions' texts."""
        texts = [as_text(each) for each in functions]
        return [self.tokenizer(each, truncation=True, max_length=self.tokens)["input_ids"] for each in texts]

    def read(self, functions: Sequence[FunctionText]) -> Floats:
        """(n, k) logits of functions."""
        return read_tokens(self.model, self.cut(functions))


def fine_tune(
    name: str, functions: Sequence[FunctionText], labels: Labels, count: int, seed: int, report: Report
) -> Teacher:
    """A sentence-transformers model, by hub name or folder, trained on labelled functions of `count` resources.

    This takes half an hour for 10 000 functions on two cores.  Raises BuildError if there is no such model, InputError
    if it has no layers.
    """
    training = Training()
    loaded = load_embedding(name)
    assert loaded.encoder is not None
    layers = getattr(loaded.encoder[0], "auto_model", None)
    if not isinstance(layers, torch.nn.Module):
        raise InputError(f"{name}: has no layers to fine-tune; name a transformer")
    shape: Any = layers.config
    torch.manual_seed(seed)
    teacher = Teacher(loaded.encoder.tokenizer, Tuned(layers, shape.hidden_size, count), training.tokens)
    teach(teacher.model, teacher.cut(functions), labels, training, report)
    return teacher


@all_processors()
def teach(model: Tuned, texts: Sequence[Sequence[int]], labels: Labels, training: Training, report: Report) -> None:
    """Train all weights of the model in place on texts cut into tokens."""
    optimiser = torch.optim.AdamW(
        [
            {"params": list(model.encoder.parameters()), "lr": training.rate},
            {"params": list(model.head.parameters()), "lr": training.head_rate},
        ],
        weight_decay=0.01,
    )

    def loss_of(rows: Ids) -> torch.Tensor:
        found = model(*_padded([texts[row] for row in rows]))
        target = torch.from_numpy(labels[rows])
        return torch.nn.functional.cross_entropy(found, target, label_smoothing=training.smoothing)

    model.train()
    lengths = np.array([len(text) for text in texts])
    course = Course(training.epochs, training.batch, training.warm_up)
    descend(optimiser, lengths, course, np.random.default_rng(0), loss_of, lambda line: report(f"encoder, {line}"))


@all_processors()
def read_tokens(model: Tuned, texts: Sequence[Sequence[int]], batch: int = 64) -> Floats:
    """(n, k) logits of texts cut into tokens."""
    model.eval()
    order = np.argsort([len(text) for text in texts], kind="stable")
    found = np.zeros((len(texts), model.head.out_features), np.float32)
    with torch.inference_mode():
        for at in range(0, len(order), batch):
            rows = order[at : at + batch]
            found[rows] = model(*_padded([texts[row] for row in rows])).numpy()
    return found


def _padded(texts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(text) for text in texts])
    inside = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.zeros(inside.shape, dtype=torch.long)
    ids[inside] = torch.tensor([token for text in texts for token in text])
    return ids, inside.long()
