"""The paper's classifiers and simpler ones, on the splits and by the measures of indexer.evaluate.

    python -m crystalperf.indexer.baselines --texts texts.jsonl --sources DIR

`indexer.labels.rebuild` writes texts.jsonl, `indexer.labels.fetch` fills DIR.  The encoders (recursive autoencoder and
GRU) are trained once, without labels, on functions of the training libraries.  A second pair, for the paper's setting,
is trained on those written in Scala.  Then the seeds of heads and splits vary.  The command prints the tables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

from crystalperf.indexer.baselines import autoencoder, documents
from crystalperf.indexer.baselines.trees import binary_trees
from crystalperf.indexer.classify import FIELDS
from crystalperf.indexer.embed import Ids, Words, new_words, static_embedding
from crystalperf.indexer.evaluate import (
    PAPER_FOLDS,
    SEEDS,
    Score,
    f1_by_class,
    score,
    spread,
    tfidf,
    without_some_files,
)
from crystalperf.indexer.examples import TRAIN, Example, Prepared, folds, prepare, read_examples
from crystalperf.indexer.labels.reserve import FRAMEWORKS
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import MAX_WORD_CHARS, Report, unlabelled
from crystalperf.indexes.errors import InputError, report_errors
from crystalperf.indexes.resources import resources

PENALTY = 0.03
"""scikit-learn's C over vectors of variance 1; the best of 0.003, 0.03 and 0.3 in folds over the training functions."""

AVERAGE = "average of tanh and GRU (paper)"


@dataclass(frozen=True)
class Sizes:
    """How much data the encoders learn from."""

    functions: int = 30_000
    documents: int = 40_000
    reads: int = 80_000
    dimensions: int = 128
    rarest: int = 5
    """Minimum number of functions, of two or more libraries, in which a word occurs."""


@dataclass(frozen=True)
class Encoded:
    """The labelled functions as vectors of the encoders: (n, d) each."""

    linear: Floats
    tanh: Floats
    doc: Floats


def encode(
    functions: Sequence[tuple[str, FunctionText]], examples: Sequence[Example], sizes: Sizes, seed: int, report: Report
) -> Encoded:
    """Train the encoders on unlabelled (library, function) pairs and encode the examples.

    Raises InputError if a function belongs to a framework that models are tested on.
    """
    if wrong := {library for library, _ in functions} & FRAMEWORKS:
        raise InputError(f"functions of {', '.join(sorted(wrong))} must not be used for training; leave them out")

    clock = _Clock(report)
    rng = np.random.default_rng(seed)
    words = vocabulary(functions, sizes.rarest)
    some = rng.permutation(len(functions))[: sizes.functions]
    documented = [at for at in rng.permutation(len(functions)) if functions[at][1].doc.strip()][: sizes.documents]
    clock.step_done(f"{len(functions)} functions, {words.size} words")

    learned = [functions[at][1] for at in some]
    table = documents.word_vectors(
        words.encode([FIELDS["code"](each) for each in learned]), words.size, sizes.dimensions, seed
    )
    clock.step_done("word vectors of code")
    forest = binary_trees(learned, words)
    started = time.process_time()
    labelled_trees = binary_trees([each.function for each in examples], words)
    parsing_s = time.process_time() - started
    nodes = sum(len(each.leaves) + len(each.children) for each in forest.trees)
    clock.step_done(f"{len(learned)} trees, {nodes} nodes; of the labelled functions {labelled_trees.empty} have none")
    roots = []
    for has_tanh in (False, True):
        model = autoencoder.new_autoencoder(table, has_tanh, seed)
        errors = autoencoder.train_autoencoder(model, forest, autoencoder.Training(), seed)
        started = time.process_time()
        roots.append(autoencoder.root_vectors(model, labelled_trees))
        reading_s = time.process_time() - started
        clock.step_done(f"recursive autoencoder{' with tanh' * has_tanh}: errors {_listed(errors)}")

    cut = documents.cut_documents([functions[at][1].doc for at in documented], words)
    reader = documents.new_reader(
        documents.word_vectors(cut, words.size, sizes.dimensions, seed), sizes.dimensions, seed
    )
    clock.step_done(f"word vectors of {len(documented)} documentations, {len(cut[0])} words")
    losses = documents.train_reader(reader, cut, documents.Training(sizes.reads), seed)
    started = time.process_time()
    doc = documents.document_vectors(reader, documents.cut_documents([each.function.doc for each in examples], words))
    gru_s = time.process_time() - started
    clock.step_done(f"GRU: losses {_listed(losses)}")
    report(
        f"functions a second of one core: recursive autoencoder {len(examples) / (parsing_s + reading_s):,.0f}, parsing"
        f" included; GRU {len(examples) / gru_s:,.0f}"
    )
    return Encoded(roots[0], roots[1], doc)


def vocabulary(functions: Sequence[tuple[str, FunctionText]], rarest: int) -> Words:
    """The words that functions of two or more libraries use."""
    everything = new_words(())
    split, normal = everything.tokenizer.pre_tokenizer, everything.tokenizer.normalizer
    libraries: dict[str, set[str]] = defaultdict(set)
    frequency: Counter[str] = Counter()
    for library, each in functions:
        text = normal.normalize_str(f"{FIELDS['code'](each)}\n{FIELDS['doc'](each)}")
        for word in {piece for piece, _ in split.pre_tokenize_str(text)}:
            libraries[word].add(library)
            frequency[word] += 1
    known = (word for word, count in frequency.items() if count >= rarest and len(word) <= MAX_WORD_CHARS)
    return new_words(sorted(word for word in known if len(libraries[word]) > 1))


def arms(data: Prepared, encoded: Encoded, train: Ids, test: Ids, seed: int) -> dict[str, Floats]:
    """(test, k) probabilities of every arm, trained on `train`; NaN rows where an arm has no prediction."""
    count = len(resources())
    shares = np.bincount(data.labels[train], minlength=count) / len(train)
    linear, tanh = (_lbfgs(each, data, train, test) for each in (encoded.linear, encoded.tanh))
    documented = train[data.documented[train]]
    head = documents.sgd_head(encoded.doc[documented], data.labels[documented], count, seed)
    with torch.inference_mode():
        doc = head(torch.from_numpy(encoded.doc[test])).softmax(1).numpy()
    doc = np.where(data.documented[test, None], doc, np.nan).astype(np.float32)
    return {
        "majority": np.tile(shares.astype(np.float32), (len(test), 1)),
        "TF-IDF + logistic regression": tfidf(data, train, test, data.labels),
        "recursive autoencoder": linear,
        "recursive autoencoder with tanh": tanh,
        "GRU, where there is documentation": doc,
        "average of linear and GRU": np.where(np.isnan(doc), linear, (linear + doc) / 2),
        AVERAGE: np.where(np.isnan(doc), tanh, (tanh + doc) / 2),
    }


def _lbfgs(vectors: Floats, data: Prepared, train: Ids, test: Ids) -> Floats:
    """Multinomial logistic regression by L-BFGS."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=300))
    model.fit(vectors[train], data.labels[train])
    return np.asarray(model.predict_proba(vectors[test]), dtype=np.float32)


def table_of_development_sets(data: Prepared, encoded: Encoded, train: Ids, title: str, report: Report) -> None:
    """Table 4 of the paper: trained on `train` less a tenth of its files, tested on every development set."""
    test = data.rows(*data.development)
    sets = np.array([data.examples[row].set for row in test])
    found: dict[tuple[str, str, str], list[Score]] = defaultdict(list)
    for seed in range(SEEDS):
        for arm, probabilities in arms(data, encoded, without_some_files(data, train, seed), test, seed).items():
            for name in ("all", *data.development):
                kept = ~np.isnan(probabilities[:, 0]) & ((sets == name) | (name == "all"))
                rows = test[kept]
                for mix, weights in (("as drawn", np.ones(len(rows), np.float32)), ("natural", data.weights[rows])):
                    if len(rows):
                        found[name, mix, arm].append(score(probabilities[kept], data.labels[rows], weights))
    report(f"\n{title}: {len(train)} functions, {data.documented[train].sum()} documented\n")
    report("| development set | mix | arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|---|---|")
    for (name, mix, arm), scores in sorted(found.items(), key=lambda item: item[0][:2]):
        report(f"| {name} | {mix} | {arm} | {spread(scores)} |")


def table_of_folds(data: Prepared, encoded: Encoded, count: int, report: Report) -> None:
    """Table 1 of the paper: folds by file over the functions of Python's and the JDK's standard libraries."""
    rows = np.array([row for row in data.rows(TRAIN) if data.examples[row].library in PAPER_FOLDS], np.int64)
    if len(rows) < 10 * count:
        return
    found: dict[str, list[Score]] = defaultdict(list)
    f1, recall = [], []
    for seed in range(SEEDS):
        parts = folds(data, rows, count, seed)
        whole: dict[str, list[Floats]] = defaultdict(list)
        for part in parts:
            for arm, probabilities in arms(data, encoded, np.setdiff1d(rows, part), part, seed).items():
                whole[arm].append(probabilities)
        labels = data.labels[np.concatenate(parts)]
        for arm, pieces in whole.items():
            probabilities = np.concatenate(pieces)
            kept = ~np.isnan(probabilities[:, 0])
            ones = np.ones(kept.sum(), np.float32)
            found[arm].append(score(probabilities[kept], labels[kept], ones))
            if arm == AVERAGE:
                predicted = probabilities.argmax(axis=1)
                f1.append(f1_by_class(predicted, labels, ones, len(resources())))
                recall.append([(predicted[labels == each] == each).mean() for each in range(len(resources()))])
    report(
        f"\n{count} folds by file over {', '.join(PAPER_FOLDS)}: {len(rows)},"
        f" {data.documented[rows].sum()} documented\n"
    )
    report("| arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|")
    for arm, scores in found.items():
        report(f"| {arm} | {spread(scores)} |")
    for name, values in (("F1", f1), ("accuracy within the class", recall)):
        by_class = zip(resources(), 100 * np.mean(values, axis=0), strict=True)
        report(f"{name} by class, {AVERAGE}: {', '.join(f'{each} {value:.1f}' for each, value in by_class)}")


def run(texts: Path, functions: Sequence[tuple[str, FunctionText]], sizes: Sizes, seed: int, report: Report) -> None:
    """Train the encoders on `functions`, the heads on the texts, and print all tables."""
    examples = read_examples(texts)
    # Only splits and labels are needed: the baselines have separate words and vectors.
    data = prepare(examples, new_words(()), static_embedding("none", np.zeros((1, 1), np.float32)), ())
    train = data.rows(TRAIN)
    encoded = encode(functions, examples, sizes, seed, report)
    clock = _Clock(report)
    if data.development:
        table_of_development_sets(data, encoded, train, "trained on all", report)
        clock.step_done("heads")
    table_of_folds(data, encoded, 10, report)
    clock.step_done("heads")
    scala = np.array([row for row in train if data.examples[row].function.language == "scala"], np.int64)
    written = [each for each in functions if each[1].language == "scala"]
    if data.development and len(set(data.labels[scala])) == len(resources()) and written:
        encoded = encode(written, examples, sizes, seed, report)
        table_of_development_sets(data, encoded, scala, "trained on Scala alone, encoders too", report)
        clock.step_done("encoders and heads")


@dataclass
class _Clock:
    """Reports the CPU time of each step, s."""

    report: Report
    last: float = 0.0

    def __post_init__(self) -> None:
        self.last = time.process_time()

    def step_done(self, what: str) -> None:
        now = time.process_time()
        self.report(f"{what} ({now - self.last:.0f} s of CPU)")
        self.last = now


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{each:.3f}" for each in values)


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.baselines", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--texts", type=Path, required=True, help="labelled functions, from crystalperf.indexer.labels.rebuild"
    )
    parser.add_argument("--sources", type=Path, required=True, help="libraries, from crystalperf.indexer.labels.fetch")
    parser.add_argument("--seed", type=int, default=20210714)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # threads would only wait for each other on tasks this small
    read_examples(chosen.texts)  # fail before the sources are parsed
    run(chosen.texts, unlabelled(chosen.sources), Sizes(), chosen.seed, print)


if __name__ == "__main__":
    sys.exit(main())
