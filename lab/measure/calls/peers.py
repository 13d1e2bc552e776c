"""Connections to the servers of lab/measure/peers.py that several kinds of calls are made on."""

from __future__ import annotations

import contextlib
import socket

from lab.measure.calls.cases import Place


def lines(place: Place, text: bytes = b"SEND 200000\n") -> socket.socket:
    """A connection that has asked for something."""
    connection = socket.create_connection(place.address("lines"))
    connection.sendall(text)
    return connection


class Dialled(contextlib.AbstractContextManager["Dialled"]):
    """Asks a peer to connect to a port here."""

    def __init__(self, place: Place) -> None:
        self.control = socket.create_connection(place.address("dial"))

    def dial(self, port: int, text: str) -> None:
        self.control.sendall(f"DIAL {port} {text}\n".encode())

    def __exit__(self, *_: object) -> None:
        self.control.close()
