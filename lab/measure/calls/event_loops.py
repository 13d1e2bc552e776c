"""Calls of asyncio on connections to peers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

from lab.measure.calls.cases import Cases, Place
from lab.measure.calls.materials import MIB, noise
from lab.measure.calls.peers import lines

CASES = Cases()


def streams(function: Any, text: bytes, use: Callable[[Any, Any], Any]) -> None:
    def workload(place: Place) -> Iterator[Any]:
        loop = asyncio.new_event_loop()
        reader, writer = loop.run_until_complete(asyncio.open_connection(*place.address("lines")))
        writer.write(text)
        yield lambda: loop.run_until_complete(use(reader, writer))
        writer.close()
        loop.close()

    CASES.append((function, workload))


streams(asyncio.StreamReader.read, b"SEND 100000\n", lambda reader, _: reader.read(100))
streams(asyncio.StreamReader.readline, b"hello\n", lambda reader, _: reader.readline())
streams(asyncio.StreamReader.readexactly, b"SEND 100000\n", lambda reader, _: reader.readexactly(100000))
streams(asyncio.StreamReader.readuntil, b"hello\n", lambda reader, _: reader.readuntil(b"o"))
streams(
    asyncio.StreamWriter.drain, b"SINK 4194304\n", lambda _, writer: (writer.write(noise(4 * MIB)), writer.drain())[1]
)


def looped(function: Any, use: Callable[[Place, asyncio.AbstractEventLoop], Any]) -> None:
    def workload(place: Place) -> Iterator[Any]:
        loop = asyncio.new_event_loop()
        yield lambda: loop.run_until_complete(use(place, loop))
        loop.close()

    CASES.append((function, workload))


async def _open(place: Place) -> None:
    for _ in range(5):
        _, writer = await asyncio.open_connection(*place.address("lines"))
        writer.close()


async def _sock_connect(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    for _ in range(5):
        with socket.socket() as its:
            its.setblocking(False)
            await loop.sock_connect(its, place.address("lines"))


async def _sock_recv(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    with lines(place, b"hello\n") as its:
        its.setblocking(False)
        await loop.sock_recv(its, 100)


async def _sock_sendall(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    with lines(place, b"SINK 4194304\n") as its:
        its.setblocking(False)
        await loop.sock_sendall(its, noise(4 * MIB))


looped(asyncio.open_connection, lambda p, _: _open(p))
looped(asyncio.BaseEventLoop.create_connection, lambda p, _: _open(p))
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_connect, _sock_connect)
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_recv, _sock_recv)
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_sendall, _sock_sendall)
looped(asyncio.BaseEventLoop.call_soon, lambda _, loop: _soon(loop))


async def _soon(loop: asyncio.AbstractEventLoop) -> None:
    for _ in range(10000):
        loop.call_soon(int)
