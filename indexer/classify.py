"""Which resource dominates a function: two linear heads over words and an embedding (paper, §3.2 and §3.3).

    classifier = load()                       the shipped model; or a folder that indexer.train wrote
    classifier.classify(functions)            Vectors, in the order given

    name, class, package, callees, code ─┬─ words ─────┐
                                         └─ embedding ─┴─ code head ──┐
    documentation, name, class ──────────┬─ words ─────┐              ├─ pooled ─ resource vector
                                         └─ embedding ─┴─ doc head ───┘

A head adds up what each word says of each resource (a word counts by how often it occurs and how rare it is, and
apart in each field: `read` in a name is not `read` in a package), and what the embedding says.  Both are linear, so
`explain` is exact: a logit is the sum of its words.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.embed import Embedding, Ids, Words, dequantise, load_embedding, load_words, static_embedding
from indexer.vectors import Floats, FunctionText, Remember, Vectors
from indexes.errors import BuildError

FORMAT = 1
"""Of a model's folder; another one is refused."""

CODE_CHARS = 4000
DOC_CHARS = 2000
"""What is read of a text: the start says what it is for, and long functions must not cost more than they tell."""

STATIC = "static"
"""The embedding that lies in the model's own folder."""

_DOCSTRING = re.compile(r"[rRuUbB]{0,2}(\"\"\"|''')[\s\S]*?\1")


def _simple_name(function: FunctionText) -> str:
    return re.split(r"\.|::", function.qualified_name)[-1]


def _code(function: FunctionText) -> str:
    code = function.code[: CODE_CHARS + DOC_CHARS]
    if function.language == "python" and function.doc:
        # A docstring is the documentation head's; the code head must do without where there is none.
        code = _DOCSTRING.sub("", code, count=1)
    return code[:CODE_CHARS]


FIELDS: dict[str, Callable[[FunctionText], str]] = {
    "name": _simple_name,
    "class": lambda function: function.class_name or "",
    "package": lambda function: function.package,
    "callees": lambda function: " ".join(function.callees),
    "code": _code,
    "doc": lambda function: function.doc[:DOC_CHARS],
}
"""The texts a head can be given."""


@dataclass(frozen=True)
class Head:
    """A linear classifier.  V words, D dimensions of all embedded texts, k resources."""

    fields: tuple[str, ...]
    """The fields whose words it counts, each with weights of its own."""
    texts: tuple[tuple[str, ...], ...]
    """What is embedded: several texts, each the fields joined; their vectors side by side are D dimensions."""
    rarity: Floats
    """(fields, V): the weight of a word's occurrence, 0 for words the training did not meet in the field."""
    words: Floats
    """(fields × V, k)"""
    embedding: Floats
    """(D, k)"""
    bias: Floats
    """(k,)"""

    @property
    def needs(self) -> tuple[str, ...]:
        """Every field it reads."""
        return tuple(dict.fromkeys((*self.fields, *(field for text in self.texts for field in text))))


@dataclass(frozen=True)
class Features:
    """What a head sees of n functions: sparse words (CSR) and the dense embedding."""

    columns: Ids
    """field × V + word, flat"""
    starts: Ids
    """(n + 1,)"""
    values: Floats
    """Weights of the words; those of one function have unit length."""
    embedding: Floats
    """(n, D)"""


@dataclass(frozen=True)
class Pooling:
    """How the heads' logits become one: softmax of code × code_weight + doc × doc_weight + bias.

    The weights hold the temperature, fitted so that probabilities are calibrated; `alone` is the code head's where
    there is no documentation, `doc_alone` and `doc_bias` are the documentation head's by itself.
    """

    alone: float
    code_weight: float
    doc_weight: float
    doc_alone: float
    bias: tuple[float, ...]
    """(k,): the shares of resources in nature, which no training set has."""
    doc_bias: tuple[float, ...]

    @staticmethod
    def even(count: int = 3) -> Pooling:
        """The average of both heads, as in the paper."""
        return Pooling(1.0, 0.5, 0.5, 1.0, (0.0,) * count, (0.0,) * count)


@dataclass(frozen=True)
class LinearClassifier:
    """A trained model; `Classifier` of indexer.vectors."""

    resources: tuple[str, ...]
    identity: Mapping[str, str]
    words: Words
    embedding: Embedding
    code: Head
    doc: Head
    pooling: Pooling

    def classify(self, functions: Sequence[FunctionText], remember: Remember | None = None) -> Vectors:
        """Resource vectors of functions, in their order."""
        judged = self.judge(functions) if remember is None else remember(functions, self.judge)
        code, doc = np.split(judged, 2, axis=1)
        combined = pool(self.pooling, code, doc)
        return Vectors(
            code=softmax(code * self.pooling.alone + np.array(self.pooling.bias, np.float32)),
            doc=softmax(doc * self.pooling.doc_alone + np.array(self.pooling.doc_bias, np.float32)),
            combined=combined,
            confidence=combined.max(axis=1),
        )

    def judge(self, functions: Sequence[FunctionText]) -> Floats:
        """(n, 2 k): the logits of the code head and of the documentation head, NaN without documentation."""
        cut = cut_words(functions, self.words, self.code.needs)
        code = logits(self.code, features(self.code, functions, cut, self.embedding))
        documented = np.array([bool(each.doc.strip()) for each in functions], dtype=bool)
        doc = np.full_like(code, np.nan)
        if documented.any():
            having = [each for each, is_documented in zip(functions, documented, strict=True) if is_documented]
            cut = cut_words(having, self.words, self.doc.needs)
            doc[documented] = logits(self.doc, features(self.doc, having, cut, self.embedding))
        return np.concatenate([code, doc], axis=1)

    def explain(self, function: FunctionText, top: int = 10) -> dict[str, list[tuple[str, str, float]]]:
        """For each resource the words that speak most for it against the mean of all: (field, word, logit).

        Exact for the words; what the embedding says is not among them.
        """
        names = self.words.tokenizer.get_vocab()
        words = sorted(names, key=lambda word: names[word])
        found: dict[str, list[tuple[str, str, float]]] = {each: [] for each in self.resources}
        parts_of: list[tuple[Head, float]] = [(self.code, self.pooling.alone)]
        if function.doc.strip():
            parts_of = [(self.code, self.pooling.code_weight), (self.doc, self.pooling.doc_weight)]
        for head, weight in parts_of:
            seen = features(head, [function], cut_words([function], self.words, head.needs), self.embedding)
            parts = head.words[seen.columns] * seen.values[:, None] * weight
            parts -= parts.mean(axis=1, keepdims=True)
            for column, part in zip(seen.columns, parts, strict=True):
                field, word = divmod(int(column), self.words.size)
                for resource, logit in zip(self.resources, part, strict=True):
                    found[resource].append((head.fields[field], words[word], float(logit)))
        return {each: sorted(parts, key=lambda part: -part[2])[:top] for each, parts in found.items()}


Cut = dict[str, tuple[Ids, Ids]]


def cut_words(functions: Sequence[FunctionText], words: Words, fields: Sequence[str]) -> Cut:
    """Each field's words (numbers, flat) and where each function's start."""
    return {field: words.encode([FIELDS[field](each) for each in functions]) for field in dict.fromkeys(fields)}


def features(head: Head, functions: Sequence[FunctionText], cut: Cut, embedding: Embedding) -> Features:
    """What a head sees of the functions."""
    columns, starts, values = count_words(head.fields, head.rarity, cut, len(functions))
    return Features(columns, starts, values, embed_texts(head.texts, functions, cut, embedding))


def embed_texts(
    texts: Sequence[tuple[str, ...]], functions: Sequence[FunctionText], cut: Cut, embedding: Embedding
) -> Floats:
    """(n, D) vectors of several texts of each function, side by side."""
    found = []
    for fields in texts:
        ids, starts = joined([cut[each] for each in fields], len(functions))
        whole = [] if embedding.is_static else ["\n".join(FIELDS[each](f) for each in fields) for f in functions]
        found.append(embedding.encode(whole, ids, starts))
    return np.concatenate(found, axis=1)


def count_words(fields: Sequence[str], rarity: Floats, cut: Cut, count: int) -> tuple[Ids, Ids, Floats]:
    """Columns, starts and values of the weighted words: (1 + ln occurrences) × rarity, rows of unit length."""
    size = rarity.shape[1]
    width = len(fields) * size
    keys = []
    for number, field in enumerate(fields):
        ids, starts = cut[field]
        keys.append(np.repeat(np.arange(count), np.diff(starts)) * width + number * size + ids)
    unique, occurrences = np.unique(np.concatenate(keys), return_counts=True)
    rows, columns = np.divmod(unique, width)
    values = (1.0 + np.log(occurrences)) * rarity.reshape(-1)[columns]
    kept = values > 0
    rows, columns, values = rows[kept], columns[kept], values[kept]
    norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=count))
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return columns, starts, (values / norms[rows]).astype(np.float32)


def logits(head: Head, seen: Features) -> Floats:
    """(n, k) logits of a head."""
    import torch

    with torch.inference_mode():
        words = torch.nn.functional.embedding_bag(
            torch.from_numpy(seen.columns),
            torch.from_numpy(head.words),
            torch.from_numpy(seen.starts[:-1]),
            mode="sum",
            per_sample_weights=torch.from_numpy(seen.values),
        )
    # A product of matrices adds up a row in another order when other rows are beside it.  With twice the digits that
    # does not show, so what is kept of a function is what would be computed.
    dense = seen.embedding.astype(np.float64) @ head.embedding.astype(np.float64)
    return np.asarray(words.numpy() + dense + head.bias, dtype=np.float32)


def pool(pooling: Pooling, code: Floats, doc: Floats) -> Floats:
    """(n, k) probabilities from the heads' logits; NaN rows of `doc` are functions without documentation."""
    both = code * pooling.code_weight + np.nan_to_num(doc) * pooling.doc_weight
    return softmax(np.where(np.isnan(doc), code * pooling.alone, both) + np.array(pooling.bias, np.float32))


def softmax(values: Floats) -> Floats:
    """Rows as probabilities; NaN rows stay NaN."""
    raised = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)


def load(model: str | None = None) -> LinearClassifier:
    """The classifiers: None for those shipped, else a folder that indexer.train wrote.

    Raises BuildError where there are none, or the files do not fit together.
    """
    folder = Path(str(files("indexer") / "weights")) if model is None else Path(model).expanduser()
    if not (folder / "config.json").is_file():
        raise BuildError(
            f"{folder if model is None else model}: no trained classifiers there; train them with"
            " `python -m indexer.train --out FOLDER` (an embedding of your choice: --embedding NAME)"
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("format") != FORMAT:
            found = config.get("format")
            raise BuildError(f"{folder}: a model of format {found}, and this version reads {FORMAT}; train it again")
        return _read(folder, config)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{folder}: damaged model ({error}); train it again") from error


def _read(folder: Path, config: dict[str, Any]) -> LinearClassifier:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(folder / "model.safetensors")
    except SafetensorError as error:
        raise BuildError(f"{folder / 'model.safetensors'}: damaged ({error}); train the model again") from error
    resources = tuple(str(each) for each in config["resources"])
    words = load_words(folder / "tokenizer.json")
    if config["embedding"] == STATIC:
        table = dequantise(tensors["embedding"], tensors["embedding_scale"])
        if table.shape[0] != words.size:
            raise ValueError(f"{table.shape[0]} vectors for {words.size} words")
        embedding = static_embedding(config["name"], table)
    else:
        embedding = load_embedding(config["embedding"])
    heads = {
        each: _read_head(config["heads"][each], tensors, each, (words.size, embedding.dimensions, len(resources)))
        for each in ("code", "doc")
    }
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        digest.update((folder / name).read_bytes())
    identity = {"name": str(config["name"]), "embedding": str(config["embedding"]), "hash": digest.hexdigest()[:16]}
    bias, doc_bias = (tuple(float(each) for each in config["pooling"][key]) for key in ("bias", "doc_bias"))
    if len(bias) != len(resources) or len(doc_bias) != len(resources):
        raise ValueError("a bias is needed for each resource")
    scales = {key: float(config["pooling"][key]) for key in ("alone", "code_weight", "doc_weight", "doc_alone")}
    pooling = Pooling(bias=bias, doc_bias=doc_bias, **scales)
    return LinearClassifier(resources, identity, words, embedding, heads["code"], heads["doc"], pooling)


def _read_head(
    config: dict[str, Any], tensors: Mapping[str, NDArray[Any]], name: str, sizes: tuple[int, int, int]
) -> Head:
    size, dimensions, count = sizes
    fields = tuple(str(each) for each in config["fields"])
    texts = tuple(tuple(str(each) for each in text) for text in config["texts"])
    if unknown := {*fields, *(field for text in texts for field in text)} - set(FIELDS):
        raise ValueError(f"unknown field {sorted(unknown)[0]}")
    shapes = {
        "rarity": (len(fields), size),
        "words": (len(fields) * size, count),
        "embedding": (dimensions * len(texts), count),
        "bias": (count,),
    }
    found: dict[str, Floats] = {}
    for part, shape in shapes.items():
        values = tensors[f"{name}_{part}"].astype(np.float32)
        if values.shape != shape:
            raise ValueError(f"{name}_{part} has shape {values.shape}, not {shape}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name}_{part} holds what is no number")
        found[part] = values
    return Head(fields, texts, **found)


def save(folder: Path, classifier: LinearClassifier, table: Floats | None, facts: Mapping[str, Any]) -> None:
    """Write config.json, model.safetensors and tokenizer.json; `table` is the static embedding, where it is that."""
    from safetensors.numpy import save_file

    from indexer.embed import quantise

    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, NDArray[Any]] = {}
    if table is not None:
        tensors["embedding"], tensors["embedding_scale"] = quantise(table)
    for name, head in (("code", classifier.code), ("doc", classifier.doc)):
        for part in ("rarity", "words", "embedding"):
            tensors[f"{name}_{part}"] = getattr(head, part).astype(np.float16)
        tensors[f"{name}_bias"] = head.bias
    save_file(tensors, folder / "model.safetensors")
    classifier.words.tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "format": FORMAT,
        "name": classifier.identity["name"],
        "resources": classifier.resources,
        "embedding": STATIC if table is not None else classifier.embedding.name,
        "heads": {
            name: {"fields": head.fields, "texts": head.texts}
            for name, head in (("code", classifier.code), ("doc", classifier.doc))
        },
        "pooling": asdict(classifier.pooling),
        **facts,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def without(functions: Sequence[FunctionText], field: str) -> list[FunctionText]:
    """The functions as if they had no documentation (`doc`) or called nothing (`callees`)."""
    blank: Any = () if field == "callees" else ""
    return [replace(each, **{field: blank}) for each in functions]


def joined(parts: Sequence[tuple[Ids, Ids]], count: int) -> tuple[Ids, Ids]:
    """The words of several fields as one text each."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([np.repeat(np.arange(count), np.diff(starts)) for _, starts in parts])
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    return np.concatenate([ids for ids, _ in parts])[order], starts
