"""The whole content of a file, for formats that are one document."""

from __future__ import annotations

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.containers import Part, pieces
from crystalperf.query.trace.records import Problems

MAX_BYTES = 256 << 20
"""Maximum unpacked size."""


def content(path: str, what: str, problems: Problems) -> bytes:
    """The decompressed content of a file.  Raises InputError if it is larger than MAX_BYTES."""
    found = bytearray()
    for piece in pieces(Part(path), problems):
        found += piece
        if len(found) > MAX_BYTES:
            raise InputError(f"{path}: {what} of more than {MAX_BYTES >> 20} MiB; record a shorter time")
    return bytes(found)
