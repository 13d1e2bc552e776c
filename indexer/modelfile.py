"""Reading and writing of model folders: config.json, model.safetensors, tokenizer.json, sequence.safetensors.

    classifier = load()               the shipped model
    classifier = load(folder)         one that indexer.train wrote

No pickle is used, so that a model from a stranger is only data.  Inconsistent files raise a one-sentence error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexer.classify import FIELDS, Calibration, Head, PooledClassifier, Pooling
from crystalperf.indexer.embed import dequantise, load_embedding, load_words, quantise, static_embedding
from crystalperf.indexer.evidence import FEATURES
from crystalperf.indexer.sequence import SequenceHead, shapes
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.errors import BuildError

FORMAT = 2
"""The format version of a model folder; other versions are refused."""

SEQUENCE = "sequence.safetensors"
"""A separate file, so that the linear heads can be trained again without it."""

CALLEES = "callees"
"""The tensor with the weights of typed callees; models without it are valid."""

STATIC = "static"
"""The name of the embedding in the model's folder."""


def load(model: str | None = None) -> PooledClassifier:
    """Load the classifiers: None for the shipped ones, else a folder that indexer.train wrote.

    Raises BuildError if there are none, or if the files are inconsistent.
    """
    folder = Path(str(files("crystalperf.indexer") / "weights")) if model is None else Path(model).expanduser()
    if not (folder / "config.json").is_file():
        raise BuildError(
            f"{folder if model is None else model}: no trained classifiers there; train them with"
            " `python -m crystalperf.indexer.train --out FOLDER` (an embedding of your choice: --embedding NAME)"
        )
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("format") != FORMAT:
            found = config.get("format")
            raise BuildError(f"{folder}: a model of format {found}, but this version reads {FORMAT}; train it again")
        return _read(folder, config)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{folder}: damaged model ({error}); train it again") from error


def _read(folder: Path, config: dict[str, Any]) -> PooledClassifier:
    tensors = _tensors(folder / "model.safetensors")
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
    for name in ("config.json", "model.safetensors", "tokenizer.json", *([SEQUENCE] if config["sequence"] else [])):
        digest.update((folder / name).read_bytes())
    identity = {"name": str(config["name"]), "embedding": str(config["embedding"]), "hash": digest.hexdigest()[:16]}
    found = config["pooling"]
    calibrations = {each: _read_calibration(found[each], len(resources)) for each in ("combined", "code", "doc")}
    pooling = Pooling(float(found["code_weight"]), float(found["doc_weight"]), **calibrations)
    if config["sequence"] and not embedding.is_static:
        raise ValueError("a sequence head needs a static embedding")
    sequence = _read_sequence(folder, embedding.dimensions, len(resources)) if config["sequence"] else None
    callees = _weights(tensors, CALLEES, (len(FEATURES), len(resources))) if CALLEES in tensors else None
    both = heads["code"], heads["doc"]
    return PooledClassifier(resources, identity, words, embedding, *both, sequence, pooling, callees)


def _read_calibration(config: Mapping[str, Any], count: int) -> Calibration:
    bias = tuple(float(each) for each in config["bias"])
    if len(bias) != count:
        raise ValueError("a bias is needed for each resource")
    return Calibration(float(config["scale"]), bias)


def _read_sequence(folder: Path, dimensions: int, count: int) -> SequenceHead:
    tensors = _tensors(folder / SEQUENCE)
    expected = shapes(dimensions, len(tensors["projection"]), count)
    return SequenceHead(**{name: _weights(tensors, name, shape) for name, shape in expected.items()})


def _tensors(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise BuildError(f"{path}: damaged ({error}); train the model again") from error


def _weights(tensors: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> Floats:
    """A tensor as floats.  Raises ValueError if it has another shape or non-finite values."""
    values = tensors[name].astype(np.float32)
    if values.shape != shape:
        raise ValueError(f"{name} has shape {values.shape}, not {shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains a value that is not a number")
    return values


def _read_head(
    config: dict[str, Any], tensors: Mapping[str, NDArray[Any]], name: str, sizes: tuple[int, int, int]
) -> Head:
    size, dimensions, count = sizes
    fields = tuple(str(each) for each in config["fields"])
    texts = tuple(tuple(str(each) for each in text) for text in config["texts"])
    if unknown := {*fields, *(field for text in texts for field in text)} - set(FIELDS):
        raise ValueError(f"unknown field {sorted(unknown)[0]}")
    expected = {
        "rarity": (len(fields), size),
        "words": (len(fields) * size, count),
        "embedding": (dimensions * len(texts), count),
        "bias": (count,),
    }
    return Head(fields, texts, **{part: _weights(tensors, f"{name}_{part}", shape) for part, shape in expected.items()})


def save(folder: Path, classifier: PooledClassifier, table: Floats | None, facts: Mapping[str, Any]) -> None:
    """Write config.json, model.safetensors, tokenizer.json, and sequence.safetensors if there is a sequence head.

    `table` is the static embedding, if the model has one.
    """
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, NDArray[Any]] = {}
    if table is not None:
        tensors["embedding"], tensors["embedding_scale"] = quantise(table)
    for name, head in (("code", classifier.code), ("doc", classifier.doc)):
        for part in ("rarity", "words", "embedding"):
            tensors[f"{name}_{part}"] = getattr(head, part).astype(np.float16)
        tensors[f"{name}_bias"] = head.bias
    if classifier.callees is not None:
        tensors[CALLEES] = classifier.callees.astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
    (folder / SEQUENCE).unlink(missing_ok=True)
    if classifier.sequence is not None:
        parts = {name: part.astype(np.float16) for name, part in vars(classifier.sequence).items()}
        save_file(parts, folder / SEQUENCE)
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
        "sequence": classifier.sequence is not None,
        "pooling": asdict(classifier.pooling),
        **facts,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
