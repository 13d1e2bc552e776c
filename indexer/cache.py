"""What a build keeps for the next one: parsed files, and what the classifiers' heads said of functions.

    <cache>/builds/NAME-VERSION.kept     written by every build, read by the next of this version or the nearest one

Everything is found by a hash of all it depends on: a file's by its path, its text and the parser, a function's by
everything a classifier is given of it and the model.  So a version that differs in few files costs little more than
these, and what is recalled is what would have been computed.  Classes are not kept but made anew from what the heads
said.  A file that is damaged, or another version's, is as good as none.
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

MOST_BYTES = 256 << 20
"""Of all builds' together; the oldest go first.  Spark's takes 12 MB."""

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
    """What an earlier build left, and what this one will leave."""

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
        """A file as an earlier build parsed it, by the hash of its path and text."""
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
        """Keep what was parsed, unless it is nothing: that a file took too long is a matter of the moment."""
        if parsed.functions or not parsed.errors:
            self._files[digest] = self._compress(msgspec.msgpack.encode(parsed))

    def remember(self, functions: Sequence[FunctionText], compute: Compute) -> Floats:
        """The rows that `compute` gives for these functions; it is asked only for those not known."""
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
        """Leave everything this build used for the next one.  A cache that cannot be written is none."""
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
        if len(contents) > MOST_BYTES // 2:
            return
        with suppress(OSError):
            with building_folder(self._path) as folder:
                temporary = folder / self._path.name
                with temporary.open("wb") as target:
                    target.write(_MAGIC + hashlib.blake2b(contents).digest())
                    target.write(contents)
                os.replace(temporary, self._path)
            _make_room(self._path.parent)


@cache
def parser_identity() -> str:
    """Changes with everything that decides what the parser finds in a file."""
    digest = hashlib.sha256()
    room = files("crystalperf.indexer")
    sources = [room / each for each in _PARSER] + sorted((room / "queries").iterdir(), key=lambda each: each.name)
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
    """What the build of this version left, else that of the nearest version of the package."""
    nearest = closest(index_name, (each.stem for each in _folder().glob("*.kept")))
    return _read(_folder() / f"{nearest}.kept") if nearest is not None else None


def _read(path: Path) -> _Contents | None:
    start = len(_MAGIC) + hashlib.blake2b().digest_size
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        content = memoryview(path.read_bytes())
        if content[:start] != _MAGIC + hashlib.blake2b(content[start:]).digest():
            return None
        return msgspec.msgpack.decode(content[start:], type=_Contents)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _make_room(folder: Path) -> None:
    """Remove the builds whose turn it is longest ago, until the rest fits."""
    left = MOST_BYTES
    for _, size, path in sorted(
        ((each.stat().st_mtime, each.stat().st_size, each) for each in folder.glob("*.kept")), reverse=True
    ):
        left -= size
        if left < 0:
            path.unlink(missing_ok=True)
