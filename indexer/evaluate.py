"""Evaluation of the classifiers: the tables of docs/classifiers.md.

    python -m crystalperf.indexer.evaluate --texts texts.jsonl --table development

Every table trains the linear heads that it scores, over the embedding of `--model`, so that no head is scored on its
training data.  The sequence head of `--model` is not trained again; so it is scored on development sets and measured
functions only, which it has not seen.  Pooled probabilities of a development set use a pooling fitted on the other
development sets.  With `--called called.jsonl` the weights of typed callees are learned as well (indexer.callees), on
training functions by heads that have not seen their library; the shipped model has these weights.

    development   the paper's Table 4: every arm on every development set, as drawn and weighted to the natural mix
    folds         the paper's Table 1: folds over training functions by file, by library
    measured      functions of `--measured`, whose device was measured
    languages     trained on Scala alone, on all languages but one (the paper's claim of generality)
    words         the paper's Table 2
    noise         wrong labels (Fig 9), fewer labels
    lengths       length of the text, missing documentation (§7.4)
    mistakes      confusion, and the errors with the highest confidence
    front         macro-F1 against functions/s
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from crystalperf.indexer.callees import learn_callees, read_evidence
from crystalperf.indexer.classify import Head, PooledClassifier, Pooling, softmax
from crystalperf.indexer.embed import Embedding, Ids, Words, load_embedding
from crystalperf.indexer.examples import TRAIN, Labels, Prepared, folds, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, Judged, fit_pooling, judge, summed, train_heads, uncontradicted
from crystalperf.indexer.labels.tables import Reading, committed, read_labels, read_table
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.sequence import SequenceHead
from crystalperf.indexer.train import NAME, flip
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.wordvectors import Report, in_order
from crystalperf.indexes.errors import InputError, report_errors
from crystalperf.indexes.resources import resources

SEEDS = 5
PAPER_FOLDS = ("python-stdlib", "jdk-java.base")
"""The libraries of the paper's Table 1."""

COLUMNS = "accuracy % | macro-F1 % | ECE | Brier |"


# 1. Measures --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """Scores of probabilities: macro-F1 is over all resources, the calibration error of the largest probability."""

    accuracy: float
    macro_f1: float
    calibration_error: float
    brier: float


def score(probabilities: Floats, labels: Labels, weights: Floats | None = None) -> Score:
    """Scores of (n, k) probabilities; each function counts once or by its weight."""
    weights = np.ones(len(labels), np.float32) if weights is None else weights
    share = weights / weights.sum()
    predicted = probabilities.argmax(axis=1)
    largest = probabilities.max(axis=1)
    right = predicted == labels
    bins = np.minimum((largest * 10).astype(int), 9)
    gaps = [abs((share * (right - largest))[bins == each].sum()) for each in range(10)]
    one_hot = np.eye(probabilities.shape[1], dtype=np.float32)[labels]
    brier = (share * ((probabilities - one_hot) ** 2).sum(axis=1)).sum()
    f1 = np.mean(f1_by_class(predicted, labels, weights, probabilities.shape[1]))
    return Score(float((share * right).sum()), float(f1), float(sum(gaps)), float(brier))


def f1_by_class(predicted: Labels, labels: Labels, weights: Floats, count: int) -> list[float]:
    """F1 of each resource; 0 for one that is neither a label nor predicted."""
    found = []
    for each in range(count):
        hit = weights[(predicted == each) & (labels == each)].sum()
        found.append(float(2 * hit / max(weights[predicted == each].sum() + weights[labels == each].sum(), 1e-9)))
    return found


def spread(scores: Sequence[Score]) -> str:
    """Accuracy and macro-F1 in per cent, mean ± deviation, then calibration error and Brier score."""
    parts = []
    for values in ([each.accuracy for each in scores], [each.macro_f1 for each in scores]):
        parts.append(f"{100 * np.mean(values):5.1f} ± {100 * np.std(values):3.1f}")
    parts.append(f"{np.mean([each.calibration_error for each in scores]):.3f}")
    parts.append(f"{np.mean([each.brier for each in scores]):.3f}")
    return " | ".join(parts)


# 2. Splits ----------------------------------------------------------------------------------------------------------


def without_some_files(data: Prepared, rows: Ids, seed: int, share: float = 0.1) -> Ids:
    """Rows without those of a tenth of the files, to simulate another sample of training functions."""
    files = sorted({(data.examples[row].library, data.examples[row].file) for row in rows})
    dropped = np.random.default_rng(seed).random(len(files)) < share
    gone = {file for file, is_dropped in zip(files, dropped, strict=True) if is_dropped}
    return np.array(
        [row for row in rows if (data.examples[row].library, data.examples[row].file) not in gone], np.int64
    )


# 3. Arms ------------------------------------------------------------------------------------------------------------

TFIDF = "TF-IDF + logistic regression"
CODE_ARM = "code head"
DOC_ARM = "documentation head, where there is any"
AVERAGE = "average of both (paper)"
LINEAR = "linear heads, pooled"
ALL_HEADS = "all heads, pooled"
SHIPPED = "all heads and typed callees, pooled (shipped)"
READERS = "one annotator, against the other"


def arms(data: Prepared, train: Ids, test: Ids, labels: Labels, has_sequence: bool = False) -> dict[str, Floats]:
    """(n, k) probabilities for the functions `test` by every arm, trained on `train`; NaN rows where it has none.

    Development functions in `test` use a pooling fitted on the other development sets, all others one fitted on all.
    `has_sequence` means that the sequence head has seen no function of `test`.
    """
    heads = train_heads(data, train, labels)
    judged, tuning = judged_by(heads, data, test, has_sequence)
    code, doc = softmax(judged.code), softmax(judged.doc)
    found = {
        TFIDF: tfidf(data, train, test, labels),
        CODE_ARM: code,
        DOC_ARM: doc,
        AVERAGE: np.where(np.isnan(doc), code, (code + doc) / 2),
        LINEAR: pooled_by_others(data, judged.linear(), tuning.linear(), data.labels),
    }
    if tuning.sequence.any() and has_sequence:
        found[ALL_HEADS] = pooled_by_others(data, judged, tuning, data.labels)
        if data.callees is not None:
            more = by_callees(data, train, labels, heads)
            judged, tuning = judged.plus(more[judged.rows]), tuning.plus(more[tuning.rows])
            found[SHIPPED] = pooled_by_others(data, judged, tuning, data.labels)
    return found


def by_callees(data: Prepared, train: Ids, labels: Labels, heads: tuple[Head, Head]) -> Floats:
    """(n, k) what the typed callees of all examples add to their logits, zeros without evidence."""
    if data.callees is None:
        return np.zeros((len(data.examples), len(resources())), np.float32)
    weights, features = data.callees(data, train, labels, heads)
    return np.asarray(features @ weights, np.float32)


def judged_by(heads: tuple[Head, Head], data: Prepared, test: Ids, has_sequence: bool = False) -> tuple[Judged, Judged]:
    """The logits of the heads for the functions `test`, and for those on which poolings are fitted."""
    tuning = data.rows(*data.development)
    return judge(heads, data, test, has_sequence), judge(heads, data, tuning, has_sequence)


def pooled_by(train: Ids, data: Prepared, test: Ids, labels: Labels, has_sequence: bool = False) -> Floats:
    """Pooled probabilities for the functions `test` by heads trained on `train`, and by typed callees if it has the
    sequence head."""
    heads = train_heads(data, train, labels)
    judged, tuning = judged_by(heads, data, test, has_sequence)
    if has_sequence:
        more = by_callees(data, train, labels, heads)
        judged, tuning = judged.plus(more[judged.rows]), tuning.plus(more[tuning.rows])
    return pooled_by_others(data, judged, tuning, data.labels)


def pooled_by_others(data: Prepared, judged: Judged, tuning: Judged, labels: Labels) -> Floats:
    """Pooled probabilities; functions of a development set use a pooling fitted on the other sets (`tuning`)."""
    of_test = np.array([data.examples[row].set for row in judged.rows])
    of_tuning = np.array([data.examples[row].set for row in tuning.rows])
    scores = summed(judged)
    pooled = np.zeros_like(scores)
    for name in sorted(set(of_test)):
        inside, others = of_test == name, of_tuning != name
        chosen = tuning.at(others if others.any() else ~others)
        pooled[inside] = fit_pooling(chosen, labels[chosen.rows]).combined.probabilities(scores[inside])
    return pooled


def tfidf(data: Prepared, train: Ids, test: Ids, labels: Labels) -> Floats:
    """Probabilities by the baseline, see `tfidf_model`."""
    return tfidf_model(data, train, labels)([plain_text(data.examples[row].function) for row in test])


def tfidf_model(data: Prepared, train: Ids, labels: Labels) -> Callable[[Sequence[str]], Floats]:
    """The baseline: scikit-learn's TF-IDF over the words of code and documentation, and its logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]

    words = TfidfVectorizer(token_pattern=r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", sublinear_tf=True, min_df=2)
    model = make_pipeline(words, LogisticRegression(C=10, max_iter=300))
    model.fit([plain_text(data.examples[row].function) for row in train], labels[train])
    return lambda texts: np.asarray(model.predict_proba(texts), dtype=np.float32)


def plain_text(function: FunctionText) -> str:
    """Code and documentation as one text."""
    return f"{function.code}\n{function.doc}"


# 4. Tables ----------------------------------------------------------------------------------------------------------


def table_of_development_sets(data: Prepared, report: Report) -> None:
    """Every arm on every development set, and both mixes."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    sets = np.array([data.examples[row].set for row in development])
    found: dict[tuple[str, str, str], list[Score]] = defaultdict(list)
    for seed in range(SEEDS):
        some = without_some_files(data, train, seed)
        shares = np.bincount(data.labels[some], minlength=len(resources())) / len(some)
        majority = np.tile(shares.astype(np.float32), (len(development), 1))
        found_arms = arms(data, some, development, data.labels, has_sequence=True)
        for arm, probabilities in {"majority": majority, **found_arms}.items():
            for name in (*data.development, "all"):
                kept = ~np.isnan(probabilities[:, 0]) & ((sets == name) | (name == "all"))
                rows = development[kept]
                for mix, weights in (("natural", data.weights[rows]), ("as drawn", None)):
                    found[name, mix, arm].append(score(probabilities[kept], data.labels[rows], weights))
    for name in (*data.development, "all"):
        predicted, labels, weights = two_readings([name] if name != "all" else data.development)
        one_hot = np.eye(len(resources()), dtype=np.float32)[predicted]
        for mix, weighted in (("natural", weights), ("as drawn", None)) if len(labels) else ():
            found[name, mix, READERS].append(score(one_hot, labels, weighted))
    report(f"\n| development set | mix | arm | {COLUMNS}\n|---|---|---|---|---|---|---|")
    for (name, mix, arm), scores in sorted(found.items(), key=lambda item: item[0][:2]):
        report(f"| {name} | {mix} | {arm} | {spread(scores)} |")


def two_readings(sets: Sequence[str]) -> tuple[Labels, Labels, Floats]:
    """The labels of two annotators for the functions of development sets, and the weights of the functions.

    Functions that either annotator labelled as waiting are left out, as everywhere.
    """
    order = resources()
    weight = {each.id: each.weight for name in sets for each in read_labels(name)}
    readings: dict[str, list[str]] = defaultdict(list)
    for each in read_table(committed("readings"), Reading):
        if each.set in sets and each.kind == "independent":
            readings[each.id].append(each.label)
    pairs = [(key, *two) for key, two in readings.items() if len(two) == 2 and set(two) <= set(order)]
    first, second = (np.array([order.index(pair[side]) for pair in pairs], np.int64) for side in (1, 2))
    return first, second, np.array([weight[key] for key, *_ in pairs], np.float32)


def table_of_folds(data: Prepared, report: Report) -> None:
    """Folds over the training functions, by file and by library."""
    train = data.rows(TRAIN)
    paper = np.array([row for row in train if data.examples[row].library in PAPER_FOLDS], np.int64)
    if len(paper) > 100:
        report(f"\n10 folds by file over {', '.join(PAPER_FOLDS)}: {len(paper)} functions")
        splits = [folds(data, paper, 10, seed) for seed in range(SEEDS)]
        report_folds(data, splits, report)
        report("\nThe same folds, the functions of all other training libraries learned from too")
        report_folds(data, splits[:1], report, np.setdiff1d(train, paper))
    report(f"\n5 folds by file over all training libraries: {len(train)} functions")
    report_folds(data, [folds(data, train, 5, seed=0)], report)
    report(f"\n5 folds by library over all training libraries: {len(train)} functions")
    report_folds(data, [folds(data, train, 5, seed=0, by_library=True)], report)


def table_of_measured(data: Prepared, report: Report, measured: str = "measured") -> None:
    """Every arm on functions whose device was measured; none of them is in a training set."""
    train, rows = data.rows(TRAIN), data.rows(measured)
    if not len(rows):
        return
    report(f"\nTrained on all training functions, tested on measured ones: {len(rows)} functions")
    found: dict[str, list[tuple[Ids, Floats]]] = defaultdict(list)
    for seed in range(SEEDS):
        some = without_some_files(data, train, seed)
        for arm, probabilities in arms(data, some, rows, data.labels, has_sequence=True).items():
            found[arm].append((rows, probabilities))
    report_arms(data, found, report)


def report_folds(data: Prepared, splits: Sequence[Sequence[Ids]], report: Report, always: Ids | None = None) -> None:
    """Every arm over splits into folds; heads for a fold are trained on the other folds and on `always`."""
    always = np.zeros(0, np.int64) if always is None else always
    found: dict[str, list[tuple[Ids, Floats]]] = defaultdict(list)
    for parts in splits:
        whole: dict[str, list[Floats]] = defaultdict(list)
        everything = np.concatenate(parts)
        for part in parts:
            rows = np.union1d(always, np.setdiff1d(everything, part))
            for arm, probabilities in arms(data, rows, part, data.labels).items():
                whole[arm].append(probabilities)
        for arm, pieces in whole.items():
            found[arm].append((everything, np.concatenate(pieces)))
    report_arms(data, found, report)


def report_arms(data: Prepared, found: dict[str, list[tuple[Ids, Floats]]], report: Report) -> None:
    """A row for each arm, with F1 by class."""
    report(f"| arm | {COLUMNS} F1 " + ", ".join(resources()) + " |\n|---|---|---|---|---|---|")
    for arm, results in found.items():
        scores, by_class = [], []
        for rows, probabilities in results:
            kept = ~np.isnan(probabilities[:, 0])
            labels, predicted = data.labels[rows][kept], probabilities[kept].argmax(axis=1)
            scores.append(score(probabilities[kept], labels))
            by_class.append(f1_by_class(predicted, labels, np.ones(len(labels), np.float32), len(resources())))
        f1 = ", ".join(f"{100 * value:.1f}" for value in np.mean(by_class, axis=0))
        report(f"| {arm} | {spread(scores)} | {f1} |")


def table_of_languages(data: Prepared, report: Report) -> None:
    """Trained on Scala alone, and on every language but one, tested on functions in the others."""
    train = data.rows(TRAIN)
    languages = np.array([data.examples[row].function.language for row in train])
    report(f"\n| trained on | functions | tested on | functions | {COLUMNS}\n|---|---|---|---|---|---|---|---|")
    for name in sorted(set(languages)):
        test = train[languages == name]
        for title, rows in (("Scala", train[languages == "scala"]), (f"all but {name}", train[languages != name])):
            if name != title.lower() and len(rows):
                scores = []
                for seed in range(SEEDS):
                    pooled = pooled_by(without_some_files(data, rows, seed), data, test, data.labels)
                    scores.append(score(pooled, data.labels[test]))
                report(f"| {title} | {len(rows)} | {name} | {len(test)} | {spread(scores)} |")
    development = data.rows(*data.development)
    for title, rows in (("Scala", train[languages == "scala"]), ("all languages", train)):
        scores = []
        for seed in range(SEEDS):
            pooled = pooled_by(without_some_files(data, rows, seed), data, development, data.labels)
            scores.append(score(pooled, data.labels[development]))
        report(f"| {title} | {len(rows)} | development sets | {len(development)} | {spread(scores)} |")


def table_of_noise(data: Prepared, report: Report) -> None:
    """The effect of wrong labels and of fewer labels; development sets as drawn."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    report(f"\n| trained on | functions | {COLUMNS}\n|---|---|---|---|---|---|")
    for title, share, wrong, sift in (
        ("all", 1.0, 0.0, False),
        ("half", 0.5, 0.0, False),
        ("a quarter", 0.25, 0.0, False),
        ("10 % of labels flipped", 1.0, 0.1, False),
        ("20 % of labels flipped", 1.0, 0.2, False),
        ("all, sifted", 1.0, 0.0, True),
        ("10 % of labels flipped, sifted", 1.0, 0.1, True),
        ("20 % of labels flipped, sifted", 1.0, 0.2, True),
    ):
        scores, sizes = [], []
        for seed in range(SEEDS):
            shuffled = np.random.default_rng(seed).permutation(train)
            some = np.sort(shuffled[: round(share * len(train))])
            some = some if share < 1 else without_some_files(data, some, seed)
            labels = flip(data.labels, train, wrong, seed)
            some = uncontradicted(data, some, labels, seed) if sift else some
            pooled = pooled_by(some, data, development, labels)
            scores.append(score(pooled, data.labels[development]))
            sizes.append(len(some))
        report(f"| {title} | {np.mean(sizes):.0f} | {spread(scores)} |")


def table_of_lengths(data: Prepared, report: Report) -> None:
    """Accuracy by length of the text, and without documentation (§7.4); development sets as drawn."""
    development = data.rows(*data.development)
    judged, _ = judged_by(train_heads(data, data.rows(TRAIN), data.labels), data, development, has_sequence=True)
    combined = pooled_by_others(data, judged, judged, data.labels)
    blank = Judged(judged.rows, judged.code, np.full_like(judged.doc, np.nan), data.undocumented[development])
    undocumented = pooled_by_others(data, blank, judged, data.labels)
    labels = data.labels[development]
    right = combined.argmax(axis=1) == labels
    words = np.diff(data.cut["code"][1])[development] + np.diff(data.cut["doc"][1])[development]
    report("\n| words of code and documentation | functions | accuracy % |\n|---|---|---|")
    for low, high in ((0, 20), (20, 50), (50, 100), (100, 200), (200, 10**6)):
        chosen = (words >= low) & (words < high)
        if chosen.any():
            report(
                f"| {low} to {high if high < 10**6 else 'any'} | {chosen.sum()} | {100 * right[chosen].mean():.1f} |"
            )
    having = ~np.isnan(judged.doc[:, 0])
    report(f"\n| functions with documentation: {having.sum()} | {COLUMNS}\n|---|---|---|---|---|")
    for name, probabilities in (("with it", combined), ("without it", undocumented)):
        report(f"| {name} | {spread([score(probabilities[having], labels[having])])} |")


def table_of_words(data: Prepared, report: Report, top: int = 15) -> None:
    """The words with the largest weights, exact for a linear head; * marks words of code that no documentation has."""
    heads = train_heads(data, data.rows(TRAIN), data.labels)
    names = in_order(data.words)
    documented = heads[1].rarity[heads[1].fields.index("doc")] > 0
    for title, head in (("code", heads[0]), ("documentation", heads[1])):
        totals = word_weights(head, data.words)
        for number, resource in enumerate(resources()):
            best = np.argsort(-totals[:, number])[:top]
            marked = [names[each] + ("" if documented[each] or title != "code" else "*") for each in best]
            report(f"{title}, {resource}: {', '.join(marked)}")


def word_weights(head: Head, words: Words) -> Floats:
    """(V, k) contribution of a word to each logit above the mean of all, summed over the fields."""
    weights = head.words * head.rarity.reshape(-1, 1)
    weights = weights - weights.mean(axis=1, keepdims=True)
    return np.asarray(weights.reshape(len(head.fields), words.size, -1).sum(axis=0), dtype=np.float32)


def table_of_mistakes(data: Prepared, report: Report, top: int = 30) -> None:
    """Confusion on the development sets, and the errors with the highest confidence."""
    order = resources()
    development = data.rows(*data.development)
    combined = pooled_by(data.rows(TRAIN), data, development, data.labels, has_sequence=True)
    labels = data.labels[development]
    predicted = combined.argmax(axis=1)
    report("\n| label \\ predicted | " + " | ".join(order) + " |\n|---|" + "---|" * len(order))
    for each, name in enumerate(order):
        counts = [((labels == each) & (predicted == other)).sum() for other in range(len(order))]
        report(f"| {name} | " + " | ".join(map(str, counts)) + " |")
    wrong = np.flatnonzero(predicted != labels)
    for at in wrong[np.argsort(-combined[wrong].max(axis=1))][:top]:
        example = data.examples[development[at]]
        report(
            f"{example.set} {example.function.qualified_name}: {order[labels[at]]}, predicted"
            f" {order[predicted[at]]} {combined[at].max():.2f}"
        )


Model = tuple[str, Embedding, SequenceHead | None]
"""Title, embedding of the linear heads, sequence head."""


def table_of_the_front(data: Prepared, models: Sequence[Model], report: Report, timed: int = 2000) -> None:
    """Macro-F1 on the development sets as drawn against functions/s of the whole classifier, for each embedding, with
    and without a sequence head."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    sample = [data.examples[row].function for row in np.random.default_rng(0).permutation(train)[:timed]]
    report(f"\n| arm | functions/s | {COLUMNS}\n|---|---|---|---|---|---|")
    baseline = tfidf_model(data, train, data.labels)
    started = time.process_time()
    baseline([plain_text(each) for each in sample])
    rate = len(sample) / (time.process_time() - started)
    found = baseline([plain_text(data.examples[row].function) for row in development])
    report(f"| {TFIDF} | {rate:,.0f} | {spread([score(found, data.labels[development])])} |")
    for title, embedding, sequence in models:
        tested = with_sequence(prepare(data.examples, data.words, embedding, (CODE, DOC)), sequence, embedding)
        heads = train_heads(tested, train, data.labels)
        judged = judge(heads, tested, development, has_sequence=True)
        pooled = pooled_by_others(tested, judged, judged, data.labels)
        model = PooledClassifier(resources(), {"name": NAME}, data.words, embedding, *heads, sequence, Pooling.even())
        model.classify(sample[:100])
        started = time.process_time()
        model.classify(sample)
        rate = len(sample) / (time.process_time() - started)
        report(f"| {title} | {rate:,.0f} | {spread([score(pooled, data.labels[development])])} |")


# 5. All tables ------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[Prepared, Report], None]] = {
    "development": table_of_development_sets,
    "folds": table_of_folds,
    "measured": table_of_measured,
    "languages": table_of_languages,
    "words": table_of_words,
    "noise": table_of_noise,
    "lengths": table_of_lengths,
    "mistakes": table_of_mistakes,
}


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.evaluate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--texts", type=Path, required=True, help="labelled functions, from crystalperf.indexer.labels.rebuild"
    )
    parser.add_argument(
        "--measured", type=Path, help="measured ones, from crystalperf.indexer.labels.rebuild --measured"
    )
    parser.add_argument(
        "--model", help="a folder of crystalperf.indexer.train whose embedding is used; the shipped one if absent"
    )
    parser.add_argument("--called", type=Path, help="typed callees, from crystalperf.indexer.labels.called")
    parser.add_argument("--table", choices=[*TABLES, "front", "all"], default="all")
    parser.add_argument("--against", action="append", default=[], help="other embeddings for the table `front`")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)  # on tasks this small, threads only wait for each other
    model = load(chosen.model)
    examples = read_examples(chosen.texts)
    measured = read_examples(chosen.measured, has_training=False) if chosen.measured else []
    data = prepare([*examples, *measured], model.words, model.embedding, (CODE, DOC))
    data = with_sequence(data, model.sequence, model.embedding)
    if chosen.called is not None:
        evidence = read_evidence(chosen.called, [each.id for each in data.examples])
        data = replace(data, callees=partial(learn_callees, embedding=model.embedding, evidence=evidence, seed=0))
    if not data.development:
        raise InputError(f"{chosen.texts}: has no development set, which every table needs")
    for name, table in TABLES.items():
        if chosen.table in (name, "all"):
            table(data, print)
    if chosen.table == "front":
        models: list[Model] = [("linear heads", model.embedding, None)]
        if model.sequence is not None:
            models.append(("all heads (shipped)", model.embedding, model.sequence))
        models += [(f"linear heads over {name}", load_embedding(name), None) for name in chosen.against]
        table_of_the_front(data, models, print)


if __name__ == "__main__":
    sys.exit(main())
