"""Fetches pages of a server over HTTP, for the readers of all frameworks.

A server may be slow, wrong or hostile.  Each request has one deadline for everything: connecting, headers, body and
its end.  Several requests may have a budget together (Server.within).  Bodies are limited in size and decoded by type.
Redirects are followed only within the server that the user named, because others may be able to make it redirect
elsewhere.
"""

from __future__ import annotations

import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpcore
import msgspec

from crystalperf.indexes.errors import InputError
from crystalperf.query.trace.records import shortened

TIMEOUT_S = 30.0
"""Timeout of a connection, and between two pieces of an answer."""

PAGE_S = 120.0
"""Deadline of a page."""

LOG_S = 4 * 3600.0
"""Deadline of a log."""

MAX_PAGE_BYTES = 64 << 20
"""Maximum size of a page: a list of hundreds of thousands of applications fits; most have at most some MB."""

SLOW_AFTER_S, SLOWEST_BPS = 60.0, 1024
"""After this time an answer slower than this rate fails: a server may send a byte a minute for ever."""

_MAX_REDIRECTS = 4
_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    OSError,
    ValueError,
)

_T = TypeVar("_T")


class _Clock:
    """The time by which the current request must be over, and that of the current budget."""

    def __init__(self) -> None:
        self.request_s = self.budget_s = float("inf")

    def left_s(self, timeout_s: float | None) -> float:
        """The timeout of one operation.  Raises httpcore.ReadTimeout after the deadline."""
        left_s = min(self.request_s, self.budget_s) - time.monotonic()
        if left_s <= 0:
            raise httpcore.ReadTimeout("the answer took too long")
        return min(left_s, TIMEOUT_S if timeout_s is None else timeout_s)


class _Stream(httpcore.NetworkStream):
    """A connection whose operations end at a deadline: a timeout alone starts again with each byte."""

    def __init__(self, stream: httpcore.NetworkStream, clock: _Clock) -> None:
        self._stream, self._clock = stream, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.left_s(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._clock.left_s(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._clock.left_s(timeout)), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    def __init__(self, clock: _Clock) -> None:
        self._sockets, self._clock = httpcore.SyncBackend(), clock

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        timeout = self._clock.left_s(timeout)
        return _Stream(self._sockets.connect_tcp(host, port, timeout, local_address, socket_options), self._clock)


class Server:
    """A server by its address, without a trailing slash; subclasses explain their errors."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._clock = _Clock()
        self._pool: httpcore.ConnectionPool | None = None

    @contextmanager
    def within(self, budget_s: float) -> Iterator[None]:
        """Limit the time of all requests in the block together."""
        self._clock.budget_s = time.monotonic() + budget_s
        try:
            yield
        finally:
            self._clock.budget_s = float("inf")

    @property
    def is_out_of_time(self) -> bool:
        """Whether the budget is used up."""
        return time.monotonic() >= self._clock.budget_s

    @contextmanager
    def opened(self, page: str, deadline_s: float = LOG_S) -> Iterator[Iterator[bytes]]:
        """The pieces of an answer.  Raises InputError if there is none."""
        self._clock.request_s = time.monotonic() + deadline_s
        try:
            with self._answer(page) as body:
                yield body
        except _ERRORS as error:
            raise self.silent(str(error) or type(error).__name__) from error

    @contextmanager
    def _answer(self, page: str) -> Iterator[Iterator[bytes]]:
        url = self.address + page
        for _ in range(_MAX_REDIRECTS + 1):
            ascii_url = urllib.parse.quote(url, safe="%/:=&?~#+!$,;'@()*[]")
            with self._connections().stream("GET", ascii_url, headers={"User-Agent": "crystalperf"}) as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    url = self._redirected(url, answer)
                    continue
                if answer.status != 200:
                    raise self.refused(page, answer.status)
                yield answer.iter_stream()
                return
        raise InputError(f"{self.address}{page}: redirects more than {_MAX_REDIRECTS} times")

    def _redirected(self, url: str, answer: httpcore.Response) -> str:
        named = dict(answer.headers).get(b"location") or dict(answer.headers).get(b"Location") or b""
        target = urllib.parse.urljoin(url, named.decode("latin-1"))
        before, after = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            shown = shortened(f"{after.scheme}://{after.netloc}")
            raise InputError(f"{url}: redirects to another server, {shown}; if that is right, use its address")
        return target

    def _connections(self) -> httpcore.ConnectionPool:
        """The connections, through the proxy that the environment names, if any."""
        if self._pool is None:
            parts = urllib.parse.urlsplit(self.address)
            bypassed = parts.hostname is None or urllib.request.proxy_bypass(parts.hostname)
            proxy = None if bypassed else urllib.request.getproxies().get(parts.scheme)
            self._pool = httpcore.ConnectionPool(
                ssl_context=ssl.create_default_context(),
                proxy=None if proxy is None else httpcore.Proxy(proxy),
                max_connections=1,
                max_keepalive_connections=0,  # each request closes its own: nobody closes a server
                network_backend=_Backend(self._clock),
            )
        return self._pool

    def fetched(self, page: str) -> bytes:
        """A whole page.  Raises InputError."""
        with self.opened(page, PAGE_S) as answer:
            return b"".join(pieces(answer, f"{self.address}{page}", MAX_PAGE_BYTES))

    def decoded(self, page: str, kind: type[_T]) -> _T:
        """A page as this type.  Raises InputError, also for JSON of another shape."""
        return self.as_type(page, self.fetched(page), kind)

    def as_type(self, page: str, text: bytes, kind: type[_T]) -> _T:
        """The text of a page as this type.  Raises InputError."""
        try:
            return msgspec.json.decode(text, type=kind, strict=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self.unlike(page, shortened(str(error)) or "") from error

    def unlike(self, page: str, why: str) -> InputError:
        """The error for a page of another shape."""
        return InputError(f"{self.address}{page}: is not the page that it should be ({why})")

    def refused(self, page: str, status: int) -> InputError:
        """The error for an answer with another status than 200."""
        return InputError(f"{self.address}{page}: responds with status {status}")

    def silent(self, reason: str) -> InputError:
        """The error for no answer at all."""
        return InputError(f"{self.address}: no response ({shortened(reason)}); check the address")


def pieces(answer: Iterable[bytes], where: str, most_bytes: int) -> Iterator[bytes]:
    """The pieces of an answer.  Raises InputError for one that is too large or too slow."""
    begin, size = time.monotonic(), 0
    for piece in answer:
        size += len(piece)
        if size > most_bytes:
            raise InputError(f"{where}: larger than the limit of {most_bytes >> 20} MiB")
        passed_s = time.monotonic() - begin
        if passed_s > SLOW_AFTER_S and size < SLOWEST_BPS * passed_s:
            raise InputError(f"{where}: sends less than {SLOWEST_BPS} bytes a second; stopped after {passed_s:.0f} s")
        yield piece
