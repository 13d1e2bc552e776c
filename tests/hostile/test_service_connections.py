"""Clients that hold a connection of the service: with no request, with half of one, or by not taking the answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvicorn

from crystalperf.service.connections import connection

SILENT_S = 0.05
LARGE = 64 << 20
"""Bytes of an answer that no buffer between the two holds."""


async def answers(scope: Any, receive: Any, send: Any) -> None:
    """Answers without reading what is sent, after many looks at the connection where that is asked."""
    if scope["path"] == "/late":
        await asyncio.sleep(20 * SILENT_S)
    body = bytes(LARGE) if scope["path"] == "/large" else b"here"
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(
    silent_s: float = SILENT_S,
) -> AsyncIterator[tuple[uvicorn.Server, asyncio.StreamReader, asyncio.StreamWriter]]:
    """A server, and a connection to it."""
    config = uvicorn.Config(
        answers, http=connection(silent_s), lifespan="off", log_config=None, access_log=False, timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        running = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        try:
            yield server, reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            server.should_exit = True
            await running


async def ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, drip: bytes) -> bytes:
    """The bytes received until the server ends the connection, while a byte is sent now and then."""
    got = b""
    for _ in range(2_000):
        try:
            async with asyncio.timeout(SILENT_S / 2):
                piece = await reader.read(1000)
        except TimeoutError:
            writer.write(drip)
            continue
        except ConnectionError:
            return got
        if not piece:
            return got
        got += piece
    raise AssertionError("the server holds the connection")


@pytest.mark.parametrize(
    ("sent", "drip", "answer"),
    [
        (b"", b"", b""),
        (b"GET / HTTP/1.1\r\nHost: ", b"x", b""),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", b"x", b"HTTP/1.1 200"),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT", b"T", b"HTTP/1.1 200"),
    ],
    ids=["no request", "a head that drips", "a body that drips", "half a second request"],
)
def test_idle_connection_is_closed(sent: bytes, drip: bytes, answer: bytes) -> None:
    async def reported() -> bytes:
        async with serving() as (_, reader, writer):
            writer.write(sent)
            return await ended(reader, writer, drip)

    assert asyncio.run(reported())[:12] == answer


def test_unread_answer_is_dropped_after_a_timeout() -> None:
    async def is_open() -> bool:
        async with serving() as (server, _, writer):
            writer.write(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")  # a reader that is not read takes 128 KiB at most
            while not server.server_state.total_requests:
                await asyncio.sleep(SILENT_S)
            for _ in range(200):
                if not server.server_state.connections:
                    return False
                await asyncio.sleep(SILENT_S)
            return True

    assert not asyncio.run(is_open())


def test_late_or_slowly_read_answer_arrives_and_the_connection_is_reused() -> None:
    async def taken() -> list[int]:
        sizes = []
        async with serving(10 * SILENT_S) as (_, reader, writer):
            for path in (b"/late", b"/", b"/large", b"/"):
                writer.write(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % path)
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.partition(b"content-length: ")[2].split()[0])
                left = size
                while left:
                    left -= len(await reader.readexactly(min(left, 8 << 20)))
                    await asyncio.sleep(SILENT_S / 2)
                sizes.append(size)
                await asyncio.sleep(4 * SILENT_S)
        return sizes

    assert asyncio.run(taken()) == [4, 4, LARGE, 4]
