"""The paper's classifiers and simpler ones, on the splits and by the measures of indexer.evaluate.

    python -m crystalperf.indexer.baselines --texts texts.jsonl --sources DIR

texts.jsonl is what `indexer.labels.rebuild` writes, DIR what `indexer.labels.fetch` fetched.  The encoders (recursive
autoencoder, GRU) are trained once, without labels, on functions of the training libraries; a second pair, for the
paper's own setting, on those written in Scala.  Then seeds of heads and splits vary.  The tables are printed.
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
from crystalperf.indexer.wordvectors import MAX_WORD_CHARS, Say, unlabelled
from crystalperf.indexes.errors import InputError, report_errors
from crystalperf.indexes.resources import resources

PENALTY = 0.03
"""scikit-learn's C over vectors of variance 1; the best of 0.003, 0.03 and 0.3 in folds over the training functions."""

AVERAGE = "average of tanh and GRU (paper)"


@dataclass(frozen=True)
class Sizes:
    """How much the encoders learn from."""

    functions: int = 30_000
    documents: int = 40_000
    reads: int = 80_000
    dimensions: int = 128
    rarest: int = 5
    """Functions that a word has to occur in, of at least two libraries."""


@dataclass(frozen=True)
class Encoded:
    """The labelled functions as the encoders see them: (n, d) each."""

    linear: Floats
    tanh: Floats
    doc: Floats


def encode(
    functions: Sequence[tuple[str, FunctionText]], examples: Sequence[Example], sizes: Sizes, seed: int, say: Say
) -> Encoded:
    """Train the encoders on unlabelled (library, function) pairs and encode the examples.

    Raises InputError where a function is of a framework that models are tested on.
    """
    if wrong := {library for library, _ in functions} & FRAMEWORKS:
        raise InputError(f"nothing of {', '.join(sorted(wrong))} may be trained on; leave these functions out")
    clock = _Clock(say)
    chance = np.random.default_rng(seed)
    words = vocabulary(functions, sizes.rarest)
    some = chance.permutation(len(functions))[: sizes.functions]
    documented = [at for at in chance.permutation(len(functions)) if functions[at][1].doc.strip()][: sizes.documents]
    clock.tell(f"{len(functions)} functions, {words.size} words")

    learned = [functions[at][1] for at in some]
    table = documents.word_vectors(
        words.encode([FIELDS["code"](each) for each in learned]), words.size, sizes.dimensions, seed
    )
    clock.tell("word vectors of code")
    forest = binary_trees(learned, words)
    started = time.process_time()
    own = binary_trees([each.function for each in examples], words)
    parsing_s = time.process_time() - started
    nodes = sum(len(each.leaves) + len(each.children) for each in forest.trees)
    clock.tell(f"{len(learned)} trees, {nodes} nodes; of the labelled functions {own.empty} have none")
    roots = []
    for has_tanh in (False, True):
        model = autoencoder.new_autoencoder(table, has_tanh, seed)
        errors = autoencoder.train_autoencoder(model, forest, autoencoder.Training(), seed)
        started = time.process_time()
        roots.append(autoencoder.root_vectors(model, own))
        reading_s = time.process_time() - started
        clock.tell(f"recursive autoencoder{' with tanh' * has_tanh}: errors {_listed(errors)}")

    cut = documents.cut_documents([functions[at][1].doc for at in documented], words)
    reader = documents.new_reader(
        documents.word_vectors(cut, words.size, sizes.dimensions, seed), sizes.dimensions, seed
    )
    clock.tell(f"word vectors of {len(documented)} documentations, {len(cut[0])} words")
    losses = documents.train_reader(reader, cut, documents.Training(sizes.reads), seed)
    started = time.process_time()
    doc = documents.document_vectors(reader, documents.cut_documents([each.function.doc for each in examples], words))
    gru_s = time.process_time() - started
    clock.tell(f"GRU: losses {_listed(losses)}")
    say(
        f"functions a second of one core: recursive autoencoder {len(examples) / (parsing_s + reading_s):,.0f}, parsing"
        f" included; GRU {len(examples) / gru_s:,.0f}"
    )
    return Encoded(roots[0], roots[1], doc)


def vocabulary(functions: Sequence[tuple[str, FunctionText]], rarest: int) -> Words:
    """The words that functions of at least two libraries use."""
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
    """(test, k) probabilities by every arm, trained on `train`; NaN rows where an arm says nothing."""
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


def table_of_development_sets(data: Prepared, encoded: Encoded, train: Ids, title: str, say: Say) -> None:
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
    say(f"\n{title}: {len(train)} functions, {data.documented[train].sum()} documented\n")
    say("| development set | mix | arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|---|---|")
    for (name, mix, arm), scores in sorted(found.items(), key=lambda item: item[0][:2]):
        say(f"| {name} | {mix} | {arm} | {spread(scores)} |")


def table_of_folds(data: Prepared, encoded: Encoded, count: int, say: Say) -> None:
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
    say(
        f"\n{count} folds by file over {', '.join(PAPER_FOLDS)}: {len(rows)},"
        f" {data.documented[rows].sum()} documented\n"
    )
    say("| arm | accuracy % | macro-F1 % | ECE | Brier |\n|---|---|---|---|---|")
    for arm, scores in found.items():
        say(f"| {arm} | {spread(scores)} |")
    for name, values in (("F1", f1), ("accuracy within the class", recall)):
        by_class = zip(resources(), 100 * np.mean(values, axis=0), strict=True)
        say(f"{name} by class, {AVERAGE}: {', '.join(f'{each} {value:.1f}' for each, value in by_class)}")


def run(texts: Path, functions: Sequence[tuple[str, FunctionText]], sizes: Sizes, seed: int, say: Say) -> None:
    """Train the encoders on `functions`, the heads on the texts, and print all tables."""
    examples = read_examples(texts)
    # Only splits and labels are asked for: the baselines have words and vectors of their own.
    data = prepare(examples, new_words(()), static_embedding("none", np.zeros((1, 1), np.float32)), ())
    train = data.rows(TRAIN)
    encoded = encode(functions, examples, sizes, seed, say)
    clock = _Clock(say)
    if data.development:
        table_of_development_sets(data, encoded, train, "trained on all", say)
        clock.tell("heads")
    table_of_folds(data, encoded, 10, say)
    clock.tell("heads")
    scala = np.array([row for row in train if data.examples[row].function.language == "scala"], np.int64)
    written = [each for each in functions if each[1].language == "scala"]
    if data.development and len(set(data.labels[scala])) == len(resources()) and written:
        encoded = encode(written, examples, sizes, seed, say)
        table_of_development_sets(data, encoded, scala, "trained on Scala alone, encoders too", say)
        clock.tell("encoders and heads")


@dataclass
class _Clock:
    """Tells what a step took, in seconds of this process's processors."""

    say: Say
    last: float = 0.0

    def __post_init__(self) -> None:
        self.last = time.process_time()

    def tell(self, what: str) -> None:
        now = time.process_time()
        self.say(f"{what} ({now - self.last:.0f} s of CPU)")
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
    torch.set_num_threads(1)  # of tasks this small threads only wait for each other
    read_examples(chosen.texts)  # fail before the sources are parsed
    run(chosen.texts, unlabelled(chosen.sources), Sizes(), chosen.seed, print)


if __name__ == "__main__":
    sys.exit(main())
