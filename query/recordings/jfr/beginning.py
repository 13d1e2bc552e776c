"""Recognition of recordings by their first bytes."""

from __future__ import annotations

import zlib

MAGIC = b"FLR\0"
GZIP_MAGIC = b"\x1f\x8b"
MAX_WRAPPERS = 4


def is_jfr(head: bytes) -> bool:
    """Whether a file that begins with `head` (some hundred bytes are enough) is a recording, plain or in gzip."""
    for _ in range(MAX_WRAPPERS):
        if head[:2] != GZIP_MAGIC:
            break
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 4096)
        except zlib.error:
            return False
    return head[:4] == MAGIC
