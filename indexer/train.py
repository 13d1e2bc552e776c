"""Train the classifiers.

    python -m crystalperf.indexer.train --texts texts.jsonl --sources DIR --sequence learn --out indexer/weights

`--called called.jsonl` also learns what the labels of typed callees say (indexer.callees).

`indexer.labels.rebuild` writes texts.jsonl: one labelled function a line, with its text.  DIR holds the libraries from
`indexer.labels.fetch`.  The embedding is trained on their unlabelled functions; with `--sequence learn` the sequence
head learns from a large encoder's answers for them.  `--embedding FOLDER` reuses the embedding of an earlier training,
`--embedding NAME` any sentence-transformers model.  `indexer.evaluate` scores the result.
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
from typing import Any

import numpy as np
import torch

from crystalperf.indexer.callees import learn_callees, read_evidence
from crystalperf.indexer.classify import PooledClassifier
from crystalperf.indexer.distil import Distillation, RerunCorrection, distil
from crystalperf.indexer.embed import Embedding, Ids, Words, dequantise, load_embedding, quantise, static_embedding
from crystalperf.indexer.examples import TRAIN, Example, Labels, Prepared, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, fit_pooling, judge, train_heads, uncontradicted
from crystalperf.indexer.modelfile import STATIC, load, save
from crystalperf.indexer.sequence import Schooling, SequenceHead
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import Lesson, Report, learn_embedding, unlabelled
from crystalperf.indexes.errors import InputError, report_errors
from crystalperf.indexes.resources import resources

NAME = "crystalperf-static"
TEACHER = "sentence-transformers/all-MiniLM-L6-v2"
SEQUENCE_HEADS = ("learn", "keep", "none")
SIFTINGS = ("auto", "always", "never")
SIFTED_FROM = 0.08
"""Minimum share of contradicted labels for sifting; ours have 5.5 %, with 10 % wrong labels it is 10.9 %."""


def flip(labels: Labels, rows: Ids, share: float, seed: int) -> Labels:
    """The labels, with a share of those in `rows` replaced by another resource, uniformly at random (Fig 9)."""
    rng = np.random.default_rng(seed)
    flipped = labels.copy()
    chosen = rows[rng.random(len(rows)) < share]
    flipped[chosen] = (flipped[chosen] + rng.integers(1, len(resources()), len(chosen))) % len(resources())
    return flipped


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.train", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--texts", type=Path, required=True, help="labelled functions, from crystalperf.indexer.labels.rebuild"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the model to")
    parser.add_argument(
        "--sources", type=Path, help="libraries from crystalperf.indexer.labels.fetch, to learn an embedding from"
    )
    parser.add_argument("--embedding", help="a folder of an earlier training, or a sentence-transformers model")
    parser.add_argument("--teacher", default=TEACHER, help="the model whose words the embedding starts from")
    parser.add_argument("--seed", type=int, default=20210714)
    parser.add_argument(
        "--sift",
        choices=SIFTINGS,
        default="auto",
        help="leave out labels that heads trained on other files contradict; auto: if they are many",
    )
    parser.add_argument(
        "--flipped", type=float, default=0.0, metavar="SHARE", help="share of labels to falsify (Fig 9)"
    )
    parser.add_argument(
        "--sequence",
        choices=SEQUENCE_HEADS,
        default="none",
        help="the sequence head: learned with the teacher's help from --sources (an hour), kept from --embedding, none",
    )
    parser.add_argument("--called", type=Path, help="typed callees, from crystalperf.indexer.labels.called")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # on tasks this small, threads only wait for each other
    origin = Origin(chosen.sources, chosen.embedding, chosen.teacher, chosen.sequence)
    train(
        chosen.texts,
        chosen.out,
        origin,
        chosen.seed,
        print,
        flipped=chosen.flipped,
        sift=chosen.sift,
        called=chosen.called,
    )


@dataclass(frozen=True)
class Origin:
    """The origin of the embedding: learned from `sources` and a teacher, unless one is named."""

    sources: Path | None = None
    embedding: str | None = None
    teacher: str = TEACHER
    sequence: str = "none"
    """One of SEQUENCE_HEADS."""


def train(  # noqa: PLR0913 - what a caller may set, by keyword
    texts: Path,
    out: Path,
    origin: Origin,
    seed: int,
    report: Report,
    *,
    flipped: float = 0.0,
    sift: str = "auto",
    called: Path | None = None,
) -> PooledClassifier:
    """Train everything, write it to `out` and report.

    `flipped` is a share of training labels to falsify.  `sift`, one of SIFTINGS, removes contradicted labels.  `called`
    is the file of typed callees; without it, the model does not use their labels.
    """
    started = time.monotonic()
    if origin.sequence == "learn" and origin.sources is None:
        raise InputError("a sequence head learns from unlabelled functions: name them with --sources")
    examples = read_examples(texts)
    counts = counted(examples, report)
    sequence = kept_sequence(origin) if origin.sequence == "keep" else None
    is_learning = origin.embedding is None or origin.sequence == "learn"
    functions = unlabelled(origin.sources) if origin.sources is not None and is_learning else []
    words, table, encoder = embedding_of(origin, functions, seed, report)
    if origin.sequence != "none" and not encoder.is_static:
        raise InputError(f"{encoder.name}: a sequence head reads the words of a static embedding; learn one")
    data = prepare(examples, words, encoder, (CODE, DOC))
    development = data.rows(*data.development)
    if not len(development):
        raise InputError(f"{texts}: has no development set, which the calibration needs")
    everything = data.rows(TRAIN)
    labels = flip(data.labels, everything, flipped, seed)
    rows = sifted(data, everything, labels, seed, sift, report)
    heads = train_heads(data, rows, labels)
    if origin.sequence == "learn":
        learned = RerunCorrection(data, rows, labels, heads, encoder)
        sequence, _ = distil(learned, functions, origin.teacher, seed, report)
    data = with_sequence(data, sequence, encoder)
    judged = judge(heads, data, development, has_sequence=True)
    callees = None
    if called is not None:
        evidence = read_evidence(called, [each.id for each in examples])
        callees, features = learn_callees(data, rows, labels, heads, encoder, evidence, seed)
        judged = judged.plus(features[development] @ callees)
    pooling = fit_pooling(judged, data.labels[development])
    facts = {
        "functions": {name: {r: counts[name, r] for r in resources()} for name in (TRAIN, *data.development)},
        "texts_sha256": hash_of(texts),
        "seed": seed,
        **({"called_sha256": hash_of(called)} if called is not None else {}),
        **({"flipped": flipped} if flipped else {}),
        **({"sifted": len(rows)} if rows is not everything else {}),
        "recipes": recipes(has_sequence=sequence is not None),
    }
    model = PooledClassifier(resources(), {"name": NAME}, words, encoder, *heads, sequence, pooling, callees)
    save(out, model, table, {"trained": facts})
    report(f"written to {out} after {time.monotonic() - started:.0f} s: {pooling}")
    report_speed(out, data, development, report)
    return load(str(out))


def counted(examples: Sequence[Example], report: Report) -> Counter[tuple[str, str]]:
    """The number of examples by set and resource, which are reported."""
    counts = Counter((each.set, resources()[each.label]) for each in examples)
    for (name, resource), count in sorted(counts.items()):
        report(f"{name}: {count} {resource}")
    return counts


def recipes(has_sequence: bool) -> dict[str, Any]:
    """The settings of the training of each part."""
    learning = {"sequence": asdict(Schooling()), "distillation": asdict(Distillation())} if has_sequence else {}
    return {"code": asdict(CODE), "doc": asdict(DOC), "embedding": asdict(Lesson()), **learning}


def hash_of(file: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def sifted(data: Prepared, rows: Ids, labels: Labels, seed: int, sift: str, report: Report) -> Ids:
    """The rows to train on: without those of contradicted labels, if `sift` says so or they are many."""
    if sift == "never":
        return rows
    kept = uncontradicted(data, rows, labels, seed)
    contradicted = 1 - len(kept) / len(rows)
    is_sifted = sift == "always" or contradicted > SIFTED_FROM
    fate = "left out" if is_sifted else "kept, because so few may be hard cases"
    report(f"{100 * contradicted:.1f} % of the labels are contradicted by heads trained on other files: {fate}")
    return kept if is_sifted else rows


def kept_sequence(origin: Origin) -> SequenceHead:
    """The sequence head of an earlier training.  Raises InputError if it has none."""
    found = load(origin.embedding).sequence if origin.embedding is not None else None
    if found is None:
        raise InputError(
            "--sequence keep: --embedding must name the folder of an earlier training with a sequence head"
        )
    return found


def embedding_of(
    origin: Origin, functions: Sequence[tuple[str, FunctionText]], seed: int, report: Report
) -> tuple[Words, Floats | None, Embedding]:
    """Words, the static table (if the embedding is static), and the embedding, by the arguments."""
    name = origin.embedding
    if name is None:
        if origin.sources is None:
            raise InputError("an embedding is learned from sources: give --sources, or one with --embedding")
        words, table = learn_embedding(functions, load_embedding(origin.teacher), Lesson(), seed, report)
        # Train on the embedding as shipped, with its rounding.
        table = dequantise(*quantise(table))
        return words, table, static_embedding(STATIC, table)
    if (Path(name) / "tokenizer.json").is_file() and (Path(name) / "config.json").is_file():
        earlier = load(name)
        if earlier.embedding.is_static:
            return earlier.words, earlier.embedding.table(), earlier.embedding
    shipped = load()
    return shipped.words, None, load_embedding(name)


def report_speed(out: Path, data: Prepared, rows: Ids, report: Report) -> None:
    """Load the written model; report its size, and its speed on the development functions."""
    classifier = load(str(out))
    functions = [data.examples[row].function for row in rows]
    classifier.classify(functions)
    started = time.perf_counter()
    classifier.classify(functions)
    rate = len(functions) / (time.perf_counter() - started)
    size = sum(path.stat().st_size for path in out.iterdir())
    report(f"{rate:,.0f} functions/s on one core, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
