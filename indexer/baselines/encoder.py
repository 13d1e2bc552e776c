"""A sentence encoder fine-tuned on the labels: what a richer reading of the same texts is worth, and what it costs.

    python -m indexer.baselines.encoder --texts texts.jsonl --encoder sentence-transformers/all-MiniLM-L6-v2

texts.jsonl is what `indexer.labels.rebuild` writes.  All layers of the encoder learn, under a linear head over mean and
maximum of the last layer's vectors.  The table judges it alone, and its logits averaged with those of the shipped
heads, which learn from the same functions.  Half an hour on two cores; nothing is written.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from indexer.classify import FIELDS, load
from indexer.embed import Ids, load_embedding
from indexer.evaluate import COLUMNS, pooled_by_others, score, spread
from indexer.examples import TRAIN, Labels, Prepared, prepare, read_examples
from indexer.train import CODE, DOC, TEACHER, Judged, judge, summed, train_heads
from indexer.vectors import Floats, FunctionText
from indexer.wordvectors import Say
from indexes.errors import InputError, told
from indexes.schema import resources

_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


@dataclass(frozen=True)
class Training:
    """How the encoder is fine-tuned: AdamW, the rate rising over the first steps and then falling in a line."""

    tokens: int = 160
    """Of a text; what comes later is not read."""
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
    """A function as one text, what tells most first, for the end may be cut: names, documentation, calls, code."""
    field = {name: _JOINTS.sub(" ", read(function)) for name, read in FIELDS.items()}
    place = field["package"].rpartition(".")[2]
    return (
        f"{field['name']} of {field['class']} in {place}. {field['doc'][:250]} calls {field['callees'][:250]} :"
        f" {field['code'][:1500]}"
    )


def fine_tune(model: Tuned, texts: Sequence[Sequence[int]], labels: Labels, training: Training, say: Say) -> None:
    """Train all of the model in place on texts cut into tokens."""
    steps = training.epochs * -(-len(texts) // training.batch)
    optimiser = torch.optim.AdamW(
        [
            {"params": model.encoder.parameters(), "lr": training.rate},
            {"params": model.head.parameters(), "lr": training.head_rate},
        ],
        weight_decay=0.01,
    )
    slope = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / training.warm_up) * max(0.02, 1 - step / steps)
    )
    chance = np.random.default_rng(0)
    model.train()
    started = time.monotonic()
    for epoch in range(1, training.epochs + 1):
        losses = []
        for rows in _batches(texts, training.batch, chance):
            loss = torch.nn.functional.cross_entropy(
                model(*_padded([texts[row] for row in rows])),
                torch.from_numpy(labels[rows]),
                label_smoothing=training.smoothing,
            )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            slope.step()
            losses.append(loss.item())
        say(f"epoch {epoch}: loss {np.mean(losses):.3f} after {time.monotonic() - started:.0f} s")


def read(model: Tuned, texts: Sequence[Sequence[int]], batch: int = 64) -> Floats:
    """(n, k) logits of texts cut into tokens."""
    model.eval()
    order = np.argsort([len(text) for text in texts], kind="stable")
    found = np.zeros((len(texts), model.head.out_features), np.float32)
    with torch.inference_mode():
        for at in range(0, len(order), batch):
            rows = order[at : at + batch]
            found[rows] = model(*_padded([texts[row] for row in rows])).numpy()
    return found


def _batches(texts: Sequence[Sequence[int]], size: int, chance: np.random.Generator) -> Iterator[Ids]:
    """All texts once in batches of about the same length, so that little of them is padding."""
    lengths = np.array([len(text) for text in texts])
    order = np.argsort(lengths * (1 + 0.2 * chance.random(len(texts))))
    for at in chance.permutation(-(-len(texts) // size)):
        yield order[at * size : (at + 1) * size]


def _padded(texts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(text) for text in texts])
    inside = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.zeros(inside.shape, dtype=torch.long)
    ids[inside] = torch.tensor([token for text in texts for token in text])
    return ids, inside.long()


def table(data: Prepared, tokenizer: Any, encoder: torch.nn.Module, width: int, seed: int, say: Say) -> None:
    """Fine-tune on the training set and print the development sets as drawn, each pooled by the others."""
    training = Training()
    texts = [
        tokenizer(as_text(each.function), truncation=True, max_length=training.tokens)["input_ids"]
        for each in data.examples
    ]
    train, development = data.rows(TRAIN), data.rows(*data.development)
    torch.manual_seed(seed)
    model = Tuned(encoder, width, len(resources()))
    fine_tune(model, [texts[row] for row in train], data.labels[train], training, say)
    started = time.process_time()
    tuned = read(model, [texts[row] for row in development])
    rate = len(development) / (time.process_time() - started)
    ours = judge(train_heads(data, train, data.labels), data, development)
    nothing: Floats = np.full_like(tuned, np.nan)
    arms = {
        "encoder, fine-tuned": Judged(development, tuned, nothing),
        "shipped heads": ours,
        "both, logits averaged": Judged(development, (tuned + summed(ours)) / np.float32(2), nothing),
    }
    sets = np.array([data.examples[row].set for row in development])
    say(f"\nThe encoder reads {rate:,.0f} functions a second of one core's CPU time.")
    say(f"\n| development set | arm | {COLUMNS}\n|---|---|---|---|---|---|")
    found = {arm: pooled_by_others(data, judged, judged, data.labels) for arm, judged in arms.items()}
    for name in ("all", *data.development):
        kept = (sets == name) | (name == "all")
        for arm, pooled in found.items():
            say(f"| {name} | {arm} | {spread([score(pooled[kept], data.labels[development[kept]])])} |")


@told
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m indexer.baselines.encoder", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--texts", type=Path, required=True, help="labelled functions, from indexer.labels.rebuild")
    parser.add_argument("--encoder", default=TEACHER, help="a sentence-transformers model, by hub name or folder")
    parser.add_argument("--seed", type=int, default=20210714)
    chosen = parser.parse_args(arguments)
    examples = read_examples(chosen.texts)
    shipped = load()
    data = prepare(examples, shipped.words, shipped.embedding, (CODE, DOC))
    if not data.development:
        raise InputError(f"{chosen.texts}: no development set, by which the table judges")
    loaded = load_embedding(chosen.encoder)
    assert loaded.encoder is not None
    layers = getattr(loaded.encoder[0], "auto_model", None)
    if not isinstance(layers, torch.nn.Module):
        raise InputError(f"{chosen.encoder}: has no layers to fine-tune; name a transformer, such as {TEACHER}")
    shape: Any = layers.config
    table(data, loaded.encoder.tokenizer, layers, shape.hidden_size, chosen.seed, print)


if __name__ == "__main__":
    sys.exit(main())
