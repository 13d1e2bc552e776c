# mypy: ignore-errors
"""Calls of logging's handlers that send to peers."""

from __future__ import annotations

import logging
import logging.handlers
from collections.abc import Iterator
from typing import Any

from lab.measure.calls.cases import Cases, Place
from lab.measure.calls.materials import MIB, noise

CASES = Cases()
case = CASES.case

RECORD = logging.makeLogRecord({"msg": "x" * 200})


@case(logging.handlers.SocketHandler.makeSocket)
def _make_socket(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SocketHandler(*place.address("lines"))
    yield lambda: [handler.makeSocket().close() for _ in range(5)]
    handler.close()


@case(logging.handlers.SocketHandler.send)
def _socket_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SocketHandler(*place.address("lines"))
    handler.createSocket()
    handler.send(b"SINK 4194304\n")
    yield lambda: handler.send(noise(4 * MIB))
    handler.close()


@case(logging.handlers.DatagramHandler.send)
def _datagrams(place: Place) -> Iterator[Any]:
    handler = logging.handlers.DatagramHandler(*place.address("udp"))
    yield lambda: [handler.send(b"x" * 500) for _ in range(300)]
    handler.close()


@case(logging.handlers.SysLogHandler.emit)
def _syslog(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SysLogHandler(place.address("udp"))
    yield lambda: [handler.emit(RECORD) for _ in range(300)]
    handler.close()


@case(logging.handlers.HTTPHandler.emit)
def _http_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.HTTPHandler(f"{place.peer}:{place.ports['http']}", "/log")
    yield lambda: handler.emit(RECORD)


@case(logging.handlers.SMTPHandler.emit)
def _smtp_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SMTPHandler(place.address("smtp"), "a@b", ["c@d"], "a")
    yield lambda: handler.emit(RECORD)
