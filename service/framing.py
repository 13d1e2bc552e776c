"""Messages between the service and its processes: a letter, the length (8 bytes, little endian), the content.

service → process   Q  a query, JSON
process → service   A  the answer, as bytes      E  {kind of error, message, remedy}, JSON
"""

from __future__ import annotations

import asyncio
from typing import BinaryIO

MAX_BYTES = 256 << 20


def framed(kind: str, content: bytes) -> bytes:
    """The bytes of one message."""
    return kind.encode() + len(content).to_bytes(8, "little") + content


def read(stream: BinaryIO) -> tuple[str, bytes] | None:
    """The next message; None at the end of the stream."""
    head = stream.read(9)
    if len(head) < 9:
        return None
    size = int.from_bytes(head[1:], "little")
    content = stream.read(size)
    return (head[:1].decode(), content) if len(content) == size else None


async def received(stream: asyncio.StreamReader) -> tuple[str, bytes]:
    """The next message.  Raises asyncio.IncompleteReadError if the process has ended."""
    head = await stream.readexactly(9)
    size = int.from_bytes(head[1:], "little")
    if size > MAX_BYTES:
        raise asyncio.IncompleteReadError(b"", size)
    return head[:1].decode(), await stream.readexactly(size)
