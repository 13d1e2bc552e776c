"""Training of the weights of typed callees: what the labels of the functions that a function calls say of its own.

evidence = read_evidence(called, ids)              called.jsonl, from indexer.labels.called
labels = evidence.labels_by(parts, data, model)    of callees, by heads that have not seen their library
weights = fit_callees(logits, features, …)         (FEATURES, k), what each feature adds to the logits
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crystalperf.indexer.classify import Head, softmax
from crystalperf.indexer.distil import heads_logits
from crystalperf.indexer.embed import Embedding, Ids
from crystalperf.indexer.evidence import DEVICES, Called, Callees
from crystalperf.indexer.examples import Example, Labels, Prepared, folds
from crystalperf.indexer.heads import judge, summed, train_heads
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexes.resources import resources

Heads = tuple[Head, Head]

PARTS = 5
"""Groups of libraries, each of which is judged by heads that have not seen it."""


@dataclass(frozen=True)
class Evidence:
    """The line of called.jsonl of each example (None without typed calls), and the called functions."""

    lines: Sequence[Mapping[str, Any] | None]
    keys: Mapping[str, int]
    functions: Sequence[FunctionText]
    libraries: Sequence[str]

    def called(self, examples: Sequence[Example]) -> Called:
        """The typed callees of the examples, and after these the called functions, whose own are not known."""
        texts = [*(each.function for each in examples), *self.functions]
        its = {
            row: Callees(
                tuple(line["devices"]),
                tuple(len(examples) + self.keys[each] for each in line["callees"]),
                line["outside"],
                line["unknown"],
            )
            for row, line in enumerate(self.lines)
            if line is not None
        }
        found = Called.of(its, [simple_name(each.qualified_name) for each in texts])
        nearest = found.nearest.copy()
        for row, line in enumerate(self.lines):
            nearest[row] = [0 if line is None else line["hops"].get(device, 0) for device in DEVICES]
        return replace(found, nearest=nearest)

    def labels_by(self, parts: Sequence[tuple[Ids, Heads]], data: Prepared, embedding: Embedding) -> Floats:
        """(functions, k) probabilities of all callees, by linear heads that were not trained on their library.

        The last of `parts` has no rows; its heads classify the callees of libraries in no part, such as frameworks.
        """
        found = np.zeros((len(self.functions), len(resources())), np.float32)
        library = np.array(self.libraries)
        missing = np.ones(len(library), bool)
        for part, heads in parts:
            names = {data.examples[row].library for row in part}
            its = np.flatnonzero(np.isin(library, sorted(names)) if len(part) else missing)
            missing[its] = False
            callees = [self.functions[int(at)] for at in its]
            if callees:
                found[its] = softmax(heads_logits(heads, data.words, embedding, callees))
        return found

    def features(self, examples: Sequence[Example], labels: Floats) -> Floats:
        """(examples, FEATURES) features, from the (functions, k) probabilities of the callees."""
        of_examples = np.zeros((len(examples), labels.shape[1]), np.float32)
        return self.called(examples).features(np.concatenate([of_examples, labels]))[: len(examples)]


def read_evidence(called: Path, ids: Sequence[str]) -> Evidence:
    """Read called.jsonl for the examples with these ids."""
    by_id: dict[str, Mapping[str, Any]] = {}
    keys: dict[str, int] = {}
    functions: list[FunctionText] = []
    of: list[str] = []
    for line in called.read_text(encoding="utf-8").split("\n")[:-1]:
        each = json.loads(line)
        if "id" in each:
            by_id[each["id"]] = each
        elif each["key"] not in keys:
            keys[each["key"]] = len(functions)
            names = ("code", "doc", "language", "qualified_name", "class_name", "package")
            text = {name: each[name] for name in names}
            functions.append(FunctionText(**text, callees=tuple(each["callees"])))
            of.append(each["library"])
    return Evidence([by_id.get(each) for each in ids], keys, functions, of)


def simple_name(qualified: str) -> str:
    """The last part of a qualified name."""
    return qualified.rpartition(".")[2]


def fit_callees(logits: Floats, features: Floats, labels: Labels, rows: Ids) -> Floats:
    """(features, k) contribution of each feature to the logits, fitted on `rows`, which the heads have not seen."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    fitted = LogisticRegression(C=1.0, max_iter=1000).fit(np.hstack([logits, features])[rows], labels[rows])
    count = logits.shape[1]
    of_logits, of_features = fitted.coef_[:, :count], fitted.coef_[:, count:]
    # The pooling scales logits and contributions alike, so the contributions are brought to the scale of the logits.
    scale = float(np.mean(np.diag(of_logits)) - (of_logits.sum() - np.trace(of_logits)) / count / (count - 1))
    return np.asarray(of_features.T / scale, dtype=np.float32)


def learn_callees(
    data: Prepared, rows: Ids, labels: Labels, heads: Heads, embedding: Embedding, evidence: Evidence, seed: int
) -> tuple[Floats, Floats]:
    """The weights of typed callees, learned from training functions, and the (n, FEATURES) features of all examples.

    A training function and its callees are judged by heads that have not seen its library, all others by `heads`.
    """
    logits = np.zeros((len(data.examples), len(resources())), np.float32)
    parts = []
    for part in folds(data, rows, PARTS, seed, by_library=True):
        apart = train_heads(data, np.setdiff1d(rows, part), labels)
        logits[part] = summed(judge(apart, data, part))
        parts.append((part, apart))
    callees = evidence.labels_by([*parts, (np.zeros(0, np.int64), heads)], data, embedding)
    features = evidence.features(data.examples, callees)
    return fit_callees(logits, features, labels, rows), features
