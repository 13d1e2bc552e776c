"""Timeouts of idle connections, because each holds a file descriptor and memory of the service.

uvicorn closes a connection that is idle after a response.  It would wait for ever for a first request, for the rest of
a head that arrives byte by byte, for the rest of an unread body, and for a client that does not read its response.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


def connection(silent_s: float) -> type[H11Protocol]:
    """uvicorn's protocol class with this timeout: a connection is closed after one to two times `silent_s`."""

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._more_came = False
            self._look(None)

        def data_received(self, data: bytes) -> None:
            self._more_came = True
            super().data_received(data)

        def on_response_complete(self) -> None:
            self._more_came = False
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._next_look.cancel()
            super().connection_lost(exc)

        def _look(self, before: tuple[object, int] | None) -> None:
            responding = self.cycle is not None and not self.cycle.response_complete
            idle = self.cycle is not None and not self._more_came  # uvicorn ends it
            untaken_bytes = self.transport.get_write_buffer_size()
            now = (self.cycle, untaken_bytes)
            if now == before and (untaken_bytes or not (responding or idle)):
                self.transport.abort()
            else:
                self._next_look = self.loop.call_later(silent_s, self._look, now)

    return Connection
