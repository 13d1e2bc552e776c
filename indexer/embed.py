"""Tokenizer and sentence embeddings: texts as words and as vectors, by any sentence-transformers model.

    words = load_words(folder)               tokenizer.json: readFully → read, fully
    ids, starts = words.encode(texts)        every text's known words, one after the other
    embedding = load_embedding(None, folder) the static one of the classifiers, or any hub name or path
    embedding.encode(texts, ids, starts)     (n, d), unit length

The static embedding is a table of a vector per word, stored as int8 with a scale per word, averaged over a text's
words and run by sentence-transformers' StaticEmbedding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.errors import BuildError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Ids = NDArray[np.int64]

UNKNOWN = "[UNK]"
"""Word 0: every word outside the vocabulary; its vector is zero, and it is not a feature."""

_CAMEL_CASE = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"


@dataclass(frozen=True)
class Words:
    """A vocabulary of lower-case words, with the tokenizer that splits texts into them."""

    tokenizer: Tokenizer
    size: int

    def encode(self, texts: Sequence[str]) -> tuple[Ids, Ids]:
        """The known words of all texts (numbers, flat) and the start of each text's words; n + 1 starts."""
        # The fast variant omits positions in the text, which are not needed.
        encoded = [each.ids for each in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
        ids = np.fromiter((number for each in encoded for number in each), np.int64)
        rows = np.repeat(np.arange(len(texts)), [len(each) for each in encoded])
        known = ids != 0
        counts = np.bincount(rows[known], minlength=len(texts))
        return ids[known], np.concatenate([[0], np.cumsum(counts)])


def new_words(vocabulary: Iterable[str]) -> Words:
    """The tokenizer of a vocabulary: camelCase and snake_case are split, digits and signs dropped, case folded."""
    numbers = {UNKNOWN: 0}
    for word in vocabulary:
        numbers.setdefault(word, len(numbers))
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(_CAMEL_CASE), " "), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("[a-z]+"), "removed", invert=True)
    return Words(tokenizer, len(numbers))


def load_words(path: Path) -> Words:
    """Read tokenizer.json.  Raises BuildError if it is invalid."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise BuildError(f"{path}: not a tokenizer ({error}); train the model again") from error
    return Words(tokenizer, tokenizer.get_vocab_size())


def select(part: tuple[Ids, Ids], rows: Ids, limit: int | None = None) -> tuple[Ids, Ids]:
    """The first `limit` words of the texts in these rows."""
    ids, starts = part
    lengths = np.diff(starts)[rows]
    if limit is not None:
        lengths = np.minimum(lengths, limit)
    new = np.concatenate([[0], np.cumsum(lengths)])
    return ids[np.repeat(starts[rows] - new[:-1], lengths) + np.arange(new[-1])], new


@dataclass(frozen=True)
class Embedding:
    """Sentence embeddings: by an encoder, or as means of a static table over the vocabulary of `Words`."""

    name: str
    encoder: SentenceTransformer | None
    dimensions: int
    vectors: Floats | None = None
    """(words, d), of a static embedding"""

    @property
    def is_static(self) -> bool:
        return self.vectors is not None

    def encode(self, texts: Sequence[str], ids: Ids, starts: Ids) -> Floats:
        """(n, d) vectors of unit length, zero for a text without words; `ids` and `starts` are the texts' words."""
        found: Any
        if self.vectors is not None:
            import torch

            with torch.inference_mode():
                table, words = torch.from_numpy(self.vectors), torch.from_numpy(ids)
                found = torch.nn.functional.embedding_bag(words, table, torch.from_numpy(starts[:-1]), mode="mean")
                found = found.numpy()
        else:
            assert self.encoder is not None
            found = self.encoder.encode(list(texts), batch_size=64, show_progress_bar=False)
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        return np.asarray(found / np.maximum(norms, 1e-9), dtype=np.float32)

    def table(self) -> Floats:
        """(words, d) vectors of a static embedding."""
        assert self.vectors is not None
        return self.vectors


def static_embedding(name: str, table: Floats) -> Embedding:
    """The embedding of a (words, d) table whose row 0, the unknown word, is zero."""
    return Embedding(name, None, table.shape[1], table)


def load_embedding(name: str) -> Embedding:
    """Any sentence-transformers model, by hub name or path.  Raises BuildError if it cannot be loaded.

    Weights are read from safetensors only, and code in a model is never run.
    """
    from sentence_transformers import SentenceTransformer

    is_path = Path(name).expanduser().exists()
    try:
        encoder = SentenceTransformer(
            str(Path(name).expanduser()) if is_path else name,
            device="cpu",
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
            local_files_only=os.environ.get("HF_HUB_OFFLINE") == "1",
        )
    except Exception as error:  # any error of the hub, the network or the files
        reason = str(error).split("\n")[0][:200]
        raise BuildError(
            f"{name}: no sentence-transformers model could be loaded from there ({reason}); give a folder that holds"
            " one, or the name of one on the hub"
        ) from error
    return Embedding(name, encoder, int(encoder.get_embedding_dimension() or 0))


def quantise(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """int8 rows and the scale of each: table ≈ rows × scale[:, None]."""
    scale = np.maximum(np.abs(table).max(axis=1), 1e-12) / 127.0
    return np.rint(table / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def dequantise(rows: NDArray[np.int8], scale: Floats) -> Floats:
    """The floats of a quantised table."""
    return np.asarray(rows * scale[:, None], dtype=np.float32)
