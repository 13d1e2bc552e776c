"""Empty files of the schema, kept like compiled Python: made once for each version of the code, then read.

DuckDB creates the tables of a run and their comments with some 400 statements.  The bytes of the empty file are kept in
the folder of compiled code, or where that is not writable, in the cache.  Like compiled code they are not kept if
Python may not write it (PYTHONDONTWRITEBYTECODE).
"""

from __future__ import annotations

import os
import sys
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from crystalperf.indexes.cache import cache_folder, is_own
from crystalperf.indexes.temporary import make_private

_DIGEST_BYTES = 32


def kept(name: str, made_from: str) -> bytes | None:
    """The content kept under a name, if it was made from this text, by this user; None for any other."""
    for folder in _folders():
        with suppress(OSError, zlib.error), (folder / name).open("rb") as file:
            found = file.read()
            if not is_own(os.fstat(file.fileno())) or found[:_DIGEST_BYTES] != sha256(made_from.encode()).digest():
                continue
            content = zlib.decompress(found[2 * _DIGEST_BYTES :])
            if sha256(content).digest() == found[_DIGEST_BYTES : 2 * _DIGEST_BYTES]:
                return content
    return None


def keep(name: str, made_from: str, content: bytes) -> None:
    """Keep a content for the next process.  Does nothing where no place is writable."""
    if sys.dont_write_bytecode:
        return
    whole = sha256(made_from.encode()).digest() + sha256(content).digest() + zlib.compress(content, 1)
    for folder in _folders():
        with suppress(OSError):
            make_private(folder)
            temporary = folder / f"{name}.{os.getpid()}"
            try:
                temporary.write_bytes(whole)
                temporary.replace(folder / name)
            finally:
                temporary.unlink(missing_ok=True)
            return


def _folders() -> tuple[Path, Path]:
    return Path(__file__).parent / "__pycache__", cache_folder() / "empty"
