"""Loads the bytes of a recording from a path, bytes or a stream, plain or wrapped in gzip or lz4."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import zlib
from pathlib import Path
from typing import IO, BinaryIO, cast

from .beginning import GZIP_MAGIC, MAGIC, MAX_WRAPPERS
from .model import JfrError, ProblemLog

LZ4_MAGIC = b"\x04\x22\x4d\x18"
MAX_UNWRAPPED_BYTES = 8 << 30
MAX_LZ4_BYTES = 2 << 30
BLOCK_BYTES = 1 << 20
MAX_READ_BYTES = 512 << 20
"""Maximum size of a file that is read into memory.  Of a larger one a copy is mapped, because truncation of a mapped
file kills the process."""
FREE_BYTES, MAX_RATIO = 64 << 20, 300
"""Limits of an unpacked size: bytes that are always allowed, and beyond them a ratio; recordings pack to a tenth."""


def load(source: str | Path | bytes | BinaryIO, log: ProblemLog) -> tuple[memoryview, str]:
    """The recording's bytes, unwrapped, and a name for messages."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        view, name = memoryview(source).cast("B"), "the recording"
    elif isinstance(source, (str, Path)):
        name = os.fspath(source)
        try:
            with open(name, "rb") as file:
                view = _read(file)
        except OSError as error:
            raise JfrError(f"{name}: cannot be read ({error.strerror or error}).") from None
    else:
        name = str(getattr(source, "name", "the recording"))
        view = memoryview(source.read())
    most = min(max(FREE_BYTES, MAX_RATIO * len(view)), MAX_UNWRAPPED_BYTES)
    for _ in range(MAX_WRAPPERS):
        if bytes(view[:2]) == GZIP_MAGIC:
            view = _gunzip(view, name, log, most)
        elif bytes(view[:4]) == LZ4_MAGIC:
            view = _unlz4(view, name, most)
        else:
            break
    if not len(view):
        raise JfrError(f"{name}: the file is empty; a flight recording begins with the bytes FLR.")
    if bytes(view[:4]) != MAGIC:
        raise JfrError(f"{name}: not a flight recording (it does not begin with the bytes FLR).")
    return view, name


def _read(file: IO[bytes]) -> memoryview:
    """The current bytes of a file, which may grow or shrink meanwhile."""
    start = file.read(MAX_READ_BYTES)
    if len(start) < MAX_READ_BYTES:
        return memoryview(start)
    with tempfile.TemporaryFile() as copy:  # has no name, so that no other process can truncate it
        copy.write(start)
        del start
        shutil.copyfileobj(file, copy, BLOCK_BYTES)
        copy.flush()
        return _map(copy)


def _too_much(name: str, most: int) -> JfrError:
    return JfrError(f"{name}: unpacks to more than {most >> 20} MiB, which no recording would; unpack it first.")


def _map(file: IO[bytes]) -> memoryview:
    try:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (ValueError, OSError):
        # Empty files, pipes and devices cannot be mapped.
        return memoryview(file.read())


def _gunzip(view: memoryview, name: str, log: ProblemLog, most: int) -> memoryview:
    """Every member of a gzip file, through a temporary file if it is large; it ends at damage."""
    total = 0
    with tempfile.SpooledTemporaryFile(max_size=64 << 20) as spool:
        pos = 0
        pending = b""
        inflate = zlib.decompressobj(wbits=31)
        try:
            while pos < len(view) or pending:
                if not pending:
                    pending = bytes(view[pos : pos + BLOCK_BYTES])
                    pos += len(pending)
                out = inflate.decompress(pending, BLOCK_BYTES)
                pending = inflate.unconsumed_tail
                total += len(out)
                if total > most:
                    raise _too_much(name, most)
                spool.write(out)
                if inflate.eof:
                    pending = inflate.unused_data
                    if not pending:
                        pending = bytes(view[pos : pos + BLOCK_BYTES])
                        pos += len(pending)
                    if pending[:1] != GZIP_MAGIC[:1]:
                        break  # the end, or padding behind the last member
                    inflate = zlib.decompressobj(wbits=31)
            while not inflate.eof:
                out = inflate.decompress(inflate.unconsumed_tail, BLOCK_BYTES)
                if not out:
                    break
                total += len(out)
                if total > most:
                    raise _too_much(name, most)
                spool.write(out)
            damaged = not inflate.eof
        except zlib.error:
            damaged = True
        if damaged:
            log.add(
                "gzip cut",
                "data loss",
                f"byte {total} of the unpacked file",
                "the gzip wrapper ends early or is damaged",
            )
        spool.seek(0)
        if total > 64 << 20:
            return _map(cast(IO[bytes], spool))
        return memoryview(spool.read())


def _unlz4(view: memoryview, name: str, most: int) -> memoryview:
    try:
        import cramjam
    except ImportError:
        raise JfrError(f"{name}: wrapped in lz4; install the package cramjam or unpack it with lz4 -d.") from None
    # Into memory of a fixed size, of which only the filled pages are used: the ratio may be 255 to 1.
    size = min(256 * len(view), MAX_LZ4_BYTES, most)
    memory = mmap.mmap(-1, size)
    try:
        written = cramjam.lz4.decompress_into(bytes(view), memory)
    except (cramjam.DecompressionError, OSError):
        meaning = "is damaged, cut, or larger than 2 GiB; unpack it first (lz4 -d)"
        raise JfrError(f"{name}: wrapped in lz4 that {meaning}.") from None
    return memoryview(memory)[:written]
