"""Cache of builds: parsed files, and the outputs of the classifiers' heads for functions.

    <cache>/builds/NAME-VERSION.kept     written by every build, read by the next of this version or the nearest one

The keys are hashes of all inputs: path, text and parser for a file; the classifier's input and the model for a
function.  So a version that differs in few files costs little more than these files, and cached results equal computed
ones.  Labels are not cached: they are computed from the outputs of the heads.  A damaged file, or one of another cache
version, is ignored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np
import zstandard

from crystalperf.indexer.records import ParsedFile
from crystalperf.indexer.vectors import Compute, Floats, FunctionText
from crystalperf.indexes.exports import cache_folder, closest
from crystalperf.indexes.temporary import building_folder

MAX_BYTES = 256 << 20
"""Maximum total size of all builds; the oldest are evicted first.  Spark's takes 12 MB."""

_MAGIC = b"CrystalPerf build 1\n"
_KEY_BYTES = 16
_PARSER = ("parse.py", "documentation.py", "pyfacts.py", "records.py")
_GRAMMARS = ("tree-sitter", "tree-sitter-cpp", "tree-sitter-java", "tree-sitter-python", "tree-sitter-scala")


class _Contents(msgspec.Struct, array_like=True):
    parser: str
    """Identity of the parser that made `files`."""
    files: dict[bytes, bytes]
    """Hash of path and text → ParsedFile, MessagePack in Zstandard."""
    model: str
    """Identity of the model that made `judged`."""
    width: int
    functions: bytes
    """Keys of functions, 16 bytes each."""
    judged: bytes
    """A row of `width` float32 for each key."""


class Kept:
    """The results of an earlier build, and those that this build will store."""

    def __init__(self, index_name: str, model: Mapping[str, str]) -> None:
        self._path = _folder() / f"{index_name}.kept"
        self._parser = parser_identity()
        self._model = msgspec.json.encode(dict(sorted(model.items()))).decode()
        earlier = _read_nearest(index_name)
        known = earlier is not None and earlier.parser == self._parser
        self._old_files = earlier.files if earlier is not None and known else {}
        self._files: dict[bytes, bytes] = {}
        self._old_functions: dict[bytes, int] = {}
        self._old_judged = np.zeros((0, 0), np.float32)
        if earlier is not None and earlier.model == self._model and earlier.width > 0:
            keys = earlier.functions
            found = [keys[at : at + _KEY_BYTES] for at in range(0, len(keys), _KEY_BYTES)]
            rows = np.frombuffer(earlier.judged, "<f4")
            if len(rows) == len(found) * earlier.width:
                self._old_functions = {key: row for row, key in enumerate(found)}
                self._old_judged = rows.reshape(len(found), earlier.width)
        self._functions: list[bytes] = []
        self._judged: list[Floats] = []
        self._compress = zstandard.ZstdCompressor(level=1).compress
        self._decompress = zstandard.ZstdDecompressor().decompress

    def file(self, digest: bytes) -> ParsedFile | None:
        """The file parsed by an earlier build, by the hash of its path and text."""
        kept = self._old_files.get(digest)
        if kept is None:
            return None
        try:
            found = msgspec.msgpack.decode(self._decompress(kept), type=ParsedFile)
        except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        self._files[digest] = kept
        return found

    def keep_file(self, digest: bytes, parsed: ParsedFile) -> None:
        """Store a parsed file, unless it is empty: a timeout need not occur again."""
        if parsed.functions or not parsed.errors:
            self._files[digest] = self._compress(msgspec.msgpack.encode(parsed))

    def remember(self, functions: Sequence[FunctionText], compute: Compute) -> Floats:
        """The rows of these functions; `compute` is called only for those not cached."""
        keys = [hashlib.blake2b(msgspec.msgpack.encode(each), digest_size=_KEY_BYTES).digest() for each in functions]
        rows = np.array([self._old_functions.get(key, -1) for key in keys], np.int64)
        missing = np.flatnonzero(rows < 0)
        if len(missing) == len(functions):
            judged = compute(functions)
        else:
            judged = self._old_judged[rows]
            if len(missing):
                judged[missing] = compute([functions[int(at)] for at in missing])
        self._functions += keys
        self._judged.append(judged)
        return judged

    def write(self) -> None:
        """Write everything that this build used.  A cache that is not writable is ignored."""
        judged = np.concatenate(self._judged) if self._judged else np.zeros((0, 0), np.float32)
        contents = msgspec.msgpack.encode(
            _Contents(
                self._parser,
                self._files,
                self._model,
                judged.shape[1],
                b"".join(self._functions),
                judged.astype("<f4").tobytes(),
            )
        )
        if len(contents) > MAX_BYTES // 2:
            return
        with suppress(OSError):
            with building_folder(self._path) as folder:
                temporary = folder / self._path.name
                with temporary.open("wb") as target:
                    target.write(_MAGIC + hashlib.blake2b(contents).digest())
                    target.write(contents)
                os.replace(temporary, self._path)
            _evict_oldest(self._path.parent)


@cache
def parser_identity() -> str:
    """A hash of everything that determines the parser's result."""
    digest = hashlib.sha256()
    package = files("crystalperf.indexer")
    sources = [package / each for each in _PARSER] + sorted((package / "queries").iterdir(), key=lambda each: each.name)
    for each in [*sources, files("crystalperf.indexes") / "names.py"]:
        if each.is_file():
            digest.update(each.name.encode() + b"\0" + each.read_bytes())
    for grammar in _GRAMMARS:
        with suppress(PackageNotFoundError):
            digest.update(f"{grammar} {version(grammar)}\0".encode())
    return digest.hexdigest()


def _folder() -> Path:
    return cache_folder() / "builds"


def _read_nearest(index_name: str) -> _Contents | None:
    """The cache of this version's build, else of the nearest version of the package."""
    nearest = closest(index_name, (each.stem for each in _folder().glob("*.kept")))
    return _read(_folder() / f"{nearest}.kept") if nearest is not None else None


def _read(path: Path) -> _Contents | None:
    start = len(_MAGIC) + hashlib.blake2b().digest_size
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = memoryview(path.read_bytes())
        if content[:start] != _MAGIC + hashlib.blake2b(content[start:]).digest():
            return None
        return msgspec.msgpack.decode(content[start:], type=_Contents)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _evict_oldest(folder: Path) -> None:
    """Remove the least recently used builds until the rest fits."""
    left = MAX_BYTES
    for _, size, path in sorted(
        ((each.stat().st_mtime, each.stat().st_size, each) for each in folder.glob("*.kept")), reverse=True
    ):
        left -= size
        if left < 0:
            path.unlink(missing_ok=True)
