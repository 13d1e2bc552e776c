"""The labelled functions: read, cut into words, and embedded once for all trainings.

examples = read_examples(path)            texts.jsonl, written by indexer.labels.rebuild
data = prepare(examples, words, embedding, [CODE, DOC])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from crystalperf.indexer.classify import FIELDS, Cut, Head, cut_words, embed_texts
from crystalperf.indexer.embed import Embedding, Ids, Words
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved
from crystalperf.indexer.sequence import SequenceHead, read, sequences
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.resources import resources

TRAIN = "train"
DEVELOPMENT = "dev-"
"""Prefix of the names of development sets."""

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Example:
    """A labelled function.  `set` is `train` or a development set's name."""

    function: FunctionText
    label: int
    set: str
    library: str
    file: str
    """Functions of one file are always on the same side of a split."""
    weight: float
    """Sampling weight that restores the natural mix of a development set."""
    id: str = ""
    first_line: int = 0


def read_examples(path: Path, has_training: bool = True) -> list[Example]:
    """The lines of texts.jsonl whose label is a resource, so not `wait`.

    Raises InputError if a line is damaged, or if a required training set lacks a resource.
    """
    order = resources()
    examples = []
    try:
        with path.open("rb") as opened:
            for number, line in enumerate(opened, start=1):
                try:
                    record = msgspec.json.decode(line, type=_Record)
                except msgspec.DecodeError as error:
                    raise InputError(
                        f"{path}, line {number}: {error}; write it with crystalperf.indexer.labels.rebuild"
                    ) from error
                if record.set == TRAIN and record.library in FRAMEWORKS:
                    raise InputError(
                        f"{path}, line {number}: functions of {record.library} must not be used for training"
                    )
                if record.library in FRAMEWORKS and is_reserved(record.file):
                    raise InputError(f"{path}, line {number}: {record.file} is reserved for verification")
                if record.label in order:
                    examples.append(_example(record, order.index(record.label)))
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; write it with `python -m crystalperf.indexer.labels.rebuild`"
        ) from error
    if has_training and {each.label for each in examples if each.set == TRAIN} != set(range(len(order))):
        raise InputError(f"{path}: the training set needs functions of every resource: {', '.join(order)}")
    return examples


class _Record(msgspec.Struct):
    """A line of texts.jsonl."""

    set: str
    library: str
    file: str
    language: str
    qualified_name: str
    label: str
    weight: float
    code: str
    doc: str
    package: str
    class_name: str | None
    callees: tuple[str, ...]
    id: str = ""
    first_line: int = 0


def _example(record: _Record, label: int) -> Example:
    function = FunctionText(
        record.code,
        record.doc,
        record.language,
        record.qualified_name,
        record.class_name,
        record.package,
        record.callees,
    )
    return Example(
        function, label, record.set, record.library, record.file, record.weight, record.id, record.first_line
    )


@dataclass(frozen=True)
class Recipe:
    """The inputs of a head, and its L2 penalties, which are strong where weights are many and functions few."""

    fields: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    words: float = 5e-5
    embedding: float = 5e-4


LearnCallees = Callable[["Prepared", Ids, Labels, tuple[Head, Head]], tuple[Floats, Floats]]
"""From training rows, all labels and the heads trained on them: the weights of typed callees, and the features of all
examples (indexer.callees)."""


@dataclass(frozen=True)
class Prepared:
    """Examples cut into words and embedded once, for all the trainings on parts of them."""

    examples: tuple[Example, ...]
    labels: Labels
    weights: Floats
    documented: NDArray[np.bool_]
    words: Words
    cut: Cut
    dense: dict[tuple[tuple[str, ...], ...], Floats]
    """(n, D) vectors by the texts embedded."""
    sequence: Floats
    """(n, k) logits of a sequence head, zeros without one.  On its own training examples they are not a valid test."""
    undocumented: Floats
    """(n, k) the same without the examples' documentation."""
    callees: LearnCallees | None = None

    def rows(self, *sets: str) -> Ids:
        """The examples of these sets."""
        return np.array([at for at, each in enumerate(self.examples) if each.set in sets], np.int64)

    @property
    def development(self) -> tuple[str, ...]:
        """The development sets among them."""
        return tuple(sorted({each.set for each in self.examples if each.set.startswith(DEVELOPMENT)}))


def prepare(examples: Sequence[Example], words: Words, embedding: Embedding, recipes: Iterable[Recipe]) -> Prepared:
    """Cut and embed examples for heads of these recipes."""
    functions = [each.function for each in examples]
    cut = cut_words(functions, words, tuple(FIELDS))
    dense = {each.texts: embed_texts(each.texts, functions, cut, embedding) for each in recipes}
    return Prepared(
        tuple(examples),
        np.array([each.label for each in examples], np.int64),
        np.array([each.weight for each in examples], np.float32),
        np.array([bool(each.function.doc.strip()) for each in examples]),
        words,
        cut,
        dense,
        np.zeros((len(examples), len(resources())), np.float32),
        np.zeros((len(examples), len(resources())), np.float32),
    )


def with_sequence(data: Prepared, head: SequenceHead | None, embedding: Embedding) -> Prepared:
    """The data with the logits of a sequence head for all examples."""
    if head is None:
        return data
    nothing = (np.zeros(0, np.int64), np.zeros(len(data.examples) + 1, np.int64))
    logits, undocumented = (
        read(head, embedding.table(), sequences(cut)) for cut in (data.cut, {**data.cut, "doc": nothing})
    )
    return replace(data, sequence=logits, undocumented=undocumented)


def folds(data: Prepared, rows: Ids, count: int, seed: int, by_library: bool = False) -> list[Ids]:
    """Rows in `count` parts (fewer if there are fewer files); functions of a file, or of a library, stay together."""

    def group(row: int) -> tuple[str, ...]:
        example = data.examples[row]
        return (example.library,) if by_library else (example.library, example.file)

    groups = sorted({group(row) for row in rows})
    fold = dict(zip(groups, np.random.default_rng(seed).permutation(len(groups)) % count, strict=True))
    of_row = np.array([fold[group(row)] for row in rows])
    return [rows[of_row == each] for each in sorted(set(of_row))]
