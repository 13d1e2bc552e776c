"""Servers that lie: a JobManager or a History Server on this machine with one hostile page.

Each lie writes to the connection of one request.  LIES has those of HTTP, SHAPES those of JSON.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

JOB, VERTEX = "a" * 32, "b" * 32

Lie = Callable[[socket.socket], None]

PAGES: dict[str, Any] = {
    "/jobs/overview": {"jobs": [{"jid": JOB, "name": "j", "state": "FINISHED", "start-time": 1, "end-time": 2000}]},
    f"/jobs/{JOB}": {
        "jid": JOB, "name": "j", "state": "FINISHED", "start-time": 1, "end-time": 2000, "duration": 1999,
        "vertices": [{"id": VERTEX, "name": "v", "parallelism": 1, "status": "FINISHED"}],
        "plan": {"jid": JOB, "nodes": [{"id": VERTEX, "parallelism": 1, "description": "v"}]},
    },
    f"/jobs/{JOB}/vertices/{VERTEX}": {
        "id": VERTEX, "name": "v", "parallelism": 1,
        "subtasks": [{"subtask": 0, "attempt": 0, "status": "FINISHED", "start-time": 1, "end-time": 1900}],
    },
    "/overview": {"flink-version": "1.20.3"},
    "/taskmanagers": {"taskmanagers": [{"id": "t", "slotsNumber": 1, "hardware": {"cpuCores": 1}}]},
    "/jobmanager/config": [],
    "/api/v1/version": {"spark": "4.0.1"},
    "/api/v1/applications": [
        {"id": "app-1", "name": "x", "attempts": [{"attemptId": "1", "startTimeEpoch": 1, "lastUpdatedEpoch": 5}]}
    ],
}  # fmt: skip
"""Pages of both servers, by path."""


def raw(text: bytes) -> Lie:
    """Send a text and close the connection."""
    return lambda client: client.sendall(text)


def endless(head: bytes, unit: bytes, pause_s: float = 0.0) -> Lie:
    """Send a head, and then a unit again and again until the client leaves."""

    def lie(client: socket.socket) -> None:
        client.sendall(head)
        while True:
            client.sendall(unit)
            time.sleep(pause_s)

    return lie


_OK = b"HTTP/1.1 200 OK\r\n"
LIES: dict[str, Lie] = {
    "nothing": raw(b""),
    "no HTTP": raw(b"\x00\xff\r\n\r\n"),
    "no status": raw(b"HTTP/1.1 \r\n\r\n"),
    "a long status": raw(b"HTTP/1.1 99999999999999999999 x\r\n\r\n"),
    "two lengths": raw(_OK + b"Content-Length: 1\r\nContent-Length: 9\r\n\r\n{}"),
    "a negative length": raw(_OK + b"Content-Length: -1\r\n\r\n{}"),
    "a short body": raw(_OK + b"Content-Length: 100\r\n\r\n{}"),
    "no chunk": raw(_OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "a redirect to nothing": raw(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
    "a redirect with bytes": raw(b"HTTP/1.1 302 Found\r\nLocation: \xff\x01//[\r\nContent-Length: 0\r\n\r\n"),
    "dripped body": endless(_OK + b"Content-Length: 100000\r\n\r\n", b" ", 0.05),
    "dripped headers": endless(_OK, b"X", 0.05),
    "endless headers": endless(_OK, b"X: " + b"y" * 1000 + b"\r\n"),
    "endless header": endless(_OK + b"X: ", b"y" * 1000),
    "endless continue": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless body": endless(_OK + b"\r\n", b" " * 65536),
    "endless chunks": endless(_OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "endless trailers": endless(_OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n", 0.0),
}
"""By name, an answer that is not HTTP as it should be, or has no end."""


def job(**fields: Any) -> dict[str, Any]:
    """The job's page with other fields."""
    return {**PAGES[f"/jobs/{JOB}"], **fields}


SHAPES: dict[str, tuple[str, Any]] = {
    "jobs are text": ("/jobs/overview", {"jobs": "x"}),
    "a job without an id": ("/jobs/overview", {"jobs": [{"state": "RUNNING"}]}),
    "an id with blanks": ("/jobs/overview", {"jobs": [{"jid": "a b\n../x", "state": "RUNNING"}]}),
    "a list": (f"/jobs/{JOB}", []),
    "no vertices": (f"/jobs/{JOB}", {"state": "FINISHED"}),
    "vertices that are numbers": (f"/jobs/{JOB}", job(vertices=[1])),
    "a vertex id with blanks": (f"/jobs/{JOB}", job(vertices=[{"id": "a b\r\nX: y"}])),
    "a billion subtasks": (f"/jobs/{JOB}", job(state="RUNNING", vertices=[{"id": VERTEX, "parallelism": 10**9}])),
    "many vertices": (f"/jobs/{JOB}", job(vertices=[{"id": f"{number:032x}"} for number in range(5000)])),
    "many subtasks": (
        f"/jobs/{JOB}", job(vertices=[{"id": f"{number:032x}", "parallelism": 30000} for number in range(9)])
    ),
    "deep JSON": (f"/jobs/{JOB}", b"[" * 100_000),
    "a lone surrogate": (f"/jobs/{JOB}", b'{"vertices": [{"id": "\\ud800"}]}'),
}  # fmt: skip
"""By name, a page of a JobManager, and its content of another shape, after which nothing can be collected."""


@contextmanager
def serving(pages: dict[str, Any]) -> Iterator[str]:
    """The address of a server with PAGES and these: JSON, bytes, or a lie."""
    every, listener = {**PAGES, **pages}, socket.create_server(("127.0.0.1", 0))

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                if not (piece := client.recv(65536)):
                    return
                request += piece
            page = every.get(request.split(b" ")[1].decode("latin-1").partition("?")[0], every.get("*"))
            if callable(page):
                page(client)
            elif page is None:
                client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                body = page if isinstance(page, bytes) else json.dumps(page).encode()
                head = _OK + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                client.sendall(head + body)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
