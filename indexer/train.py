"""Train the classifiers.

    python -m indexer.train --texts texts.jsonl --sources DIR --out indexer/weights

texts.jsonl is what `indexer.labels.rebuild` writes: one labelled function a line, with its text.  DIR holds the
libraries that `indexer.labels.fetch` fetched; their functions, unlabelled, teach the embedding what the words of
code mean.  `--embedding FOLDER` takes the embedding of an earlier training instead of learning one, `--embedding
NAME` any sentence-transformers model.  How good the result is, `indexer.evaluate` says.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from indexer.classify import (
    STATIC,
    Cut,
    Features,
    Head,
    LinearClassifier,
    Pooling,
    count_words,
    load,
    logits,
    save,
    softmax,
)
from indexer.embed import Embedding, Ids, Words, dequantise, load_embedding, quantise, static_embedding
from indexer.examples import TRAIN, Labels, Prepared, Recipe, folds, prepare, read_examples, select
from indexer.vectors import Floats
from indexer.wordvectors import Lesson, Say, learn_embedding, unlabelled
from indexes.errors import InputError, told
from indexes.schema import resources

NAME = "crystalperf-static"
TEACHER = "sentence-transformers/all-MiniLM-L6-v2"
CODE_WEIGHT, DOC_WEIGHT = 0.8, 0.3
"""Of the heads' logits where there are both: what predicts functions of libraries left out of the training best."""


# 1. Heads -----------------------------------------------------------------------------------------------------------


CODE = Recipe(("name", "class", "package", "callees", "code"), (("name", "class"), ("callees",), ("code",)))
DOC = Recipe(("doc", "name", "class"), (("doc",), ("name", "class")))


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


def uncontradicted(data: Prepared, rows: Ids, labels: Labels, seed: int, least: float = 0.2, parts: int = 5) -> Ids:
    """The rows whose label is not contradicted: heads that learn from other files give it a probability of `least`.

    Most labels that are wrong fall (confident learning, Northcutt et al. 2021), and a few that are right and hard.
    """
    kept = []
    for part in folds(data, rows, parts, seed):
        judged = judge(train_heads(data, np.setdiff1d(rows, part), labels), data, part)
        of_label = softmax(summed(judged))[np.arange(len(part)), labels[part]]
        kept.append(part[of_label >= least])
    return np.sort(np.concatenate(kept))


# 2. From two heads to one calibrated vector ---------------------------------------------------------------------------


def summed(judged: Judged) -> Floats:
    """(n, k) logits of both heads together, of the code head where there is no documentation."""
    both = CODE_WEIGHT * judged.code + DOC_WEIGHT * judged.doc
    return np.asarray(np.where(np.isnan(both), judged.code, both), dtype=np.float32)


def fit_pooling(judged: Judged, labels: Labels) -> Pooling:
    """One scale and the bias of each resource under which the labels are likeliest, for both heads added up.

    Temperature scaling (Guo et al. 2017) with a bias.  How much each head counts is given: a few hundred functions
    are too few to learn that from (docs/classifiers.md).  Functions count as they were drawn, not as frequent as they
    are in nature: a profile's samples meet input and output more often than a list of functions does.
    """
    having = ~np.isnan(judged.doc[:, 0])
    scale, bias = _fit_scale(summed(judged), labels)
    doc_scale, doc_bias = _fit_scale(judged.doc[having], labels[having]) if having.any() else (1.0, (0.0,) * len(bias))
    return Pooling(scale, CODE_WEIGHT * scale, DOC_WEIGHT * scale, doc_scale, bias, doc_bias)


def _fit_scale(scores: Floats, labels: Labels) -> tuple[float, tuple[float, ...]]:
    given, target = torch.from_numpy(scores), torch.from_numpy(labels)
    scale = torch.ones(1, requires_grad=True)
    bias = torch.zeros(scores.shape[1], requires_grad=True)
    optimiser = torch.optim.LBFGS([scale, bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = torch.nn.functional.cross_entropy(given * scale + bias, target)
        # Where the functions say little, stay near what the heads say.
        total = total + 1e-3 * (scale - 1).square().sum() + 1e-3 * bias.square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return float(scale.detach()), tuple(float(each) for each in bias.detach())


# 3. All of it ---------------------------------------------------------------------------------------------------------


def flip(labels: Labels, rows: Ids, share: float, seed: int) -> Labels:
    """Labels of which a share of those in `rows` is another resource, each wrong one as often as the other (Fig 9)."""
    chance = np.random.default_rng(seed)
    flipped = labels.copy()
    chosen = rows[chance.random(len(rows)) < share]
    flipped[chosen] = (flipped[chosen] + chance.integers(1, len(resources()), len(chosen))) % len(resources())
    return flipped


@told
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m indexer.train", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=Path, required=True, help="labelled functions, from indexer.labels.rebuild")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the model to")
    parser.add_argument("--sources", type=Path, help="libraries from indexer.labels.fetch, to learn an embedding from")
    parser.add_argument("--embedding", help="a folder of an earlier training, or a sentence-transformers model")
    parser.add_argument("--teacher", default=TEACHER, help="the model whose words the embedding starts from")
    parser.add_argument("--seed", type=int, default=20210714)
    parser.add_argument(
        "--sift", action="store_true", help="leave out labels that heads trained on other files contradict"
    )
    parser.add_argument("--flipped", type=float, default=0.0, metavar="SHARE", help="of labels made wrong (Fig 9)")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # of tasks this small threads only wait for each other
    origin = Origin(chosen.sources, chosen.embedding, chosen.teacher)
    train(chosen.texts, chosen.out, origin, chosen.seed, print, flipped=chosen.flipped, sift=chosen.sift)


@dataclass(frozen=True)
class Origin:
    """Where the embedding comes from: learned from `sources` and a teacher, unless one is named."""

    sources: Path | None = None
    embedding: str | None = None
    teacher: str = TEACHER


def train(
    texts: Path, out: Path, origin: Origin, seed: int, say: Say, *, flipped: float = 0.0, sift: bool = False
) -> LinearClassifier:
    """Train everything, write it to `out` and report.

    `flipped` is a share of training labels to make wrong; `sift` leaves out those that others contradict.
    """
    started = time.monotonic()
    examples = read_examples(texts)
    counts = Counter((each.set, resources()[each.label]) for each in examples)
    for (name, resource), count in sorted(counts.items()):
        say(f"{name}: {count} {resource}")
    words, table, encoder = embedding_of(origin, seed, say)
    data = prepare(examples, words, encoder, (CODE, DOC))
    rows = data.rows(TRAIN)
    labels = flip(data.labels, rows, flipped, seed)
    if sift:
        counted = len(rows)
        rows = uncontradicted(data, rows, labels, seed)
        say(f"{counted - len(rows)} of {counted} labels are contradicted and left out")
    heads = train_heads(data, rows, labels)
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
            **({"flipped": flipped} if flipped else {}),
            **({"sifted": len(rows)} if sift else {}),
            "recipes": {"code": asdict(CODE), "doc": asdict(DOC), "embedding": asdict(Lesson())},
        }
    }
    save(out, LinearClassifier(resources(), {"name": NAME}, words, encoder, *heads, pooling), table, facts)
    say(f"written to {out} after {time.monotonic() - started:.0f} s: {pooling}")
    report_speed(out, data, development, say)
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
        return words, table, static_embedding(STATIC, table)
    if (Path(name) / "tokenizer.json").is_file() and (Path(name) / "config.json").is_file():
        earlier = load(name)
        if earlier.embedding.is_static:
            return earlier.words, earlier.embedding.table(), earlier.embedding
    shipped = load()
    return shipped.words, None, load_embedding(name)


def report_speed(out: Path, data: Prepared, rows: Ids, say: Say) -> None:
    """The written model, read back: how fast it is on the development functions, and how large."""
    classifier = load(str(out))
    functions = [data.examples[row].function for row in rows]
    classifier.classify(functions)
    started = time.perf_counter()
    classifier.classify(functions)
    rate = len(functions) / (time.perf_counter() - started)
    size = sum(path.stat().st_size for path in out.iterdir())
    say(f"{rate:,.0f} functions/s on one core, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
