"""Fetches pages of a server over HTTP.

Answers are limited in size and time.  Redirects are followed only within the server that the user named, because
others may be able to make it redirect elsewhere.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import IO, Any

from crystalperf.indexes.errors import InputError
from crystalperf.query.trace.records import shortened

TIMEOUT_S = 30.0
"""Timeout of a connection, and between two pieces of an answer."""

MAX_PAGE_BYTES = 64 << 20
"""Maximum size of a page: a list of hundreds of thousands of applications fits; most have at most some MB."""

SLOW_AFTER_S, SLOWEST_BPS = 60.0, 1024
"""After this time an answer slower than this rate fails: a server may send a byte a minute for ever."""

_MAX_REDIRECTS = 4


class _SameServer(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects within the server that the user named."""

    max_redirections = _MAX_REDIRECTS

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        before, after = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if (before.scheme, before.netloc) != (after.scheme, after.netloc):
            shown = shortened(f"{after.scheme}://{after.netloc}")
            raise InputError(f"{req.full_url}: redirects to another server, {shown}; if that is right, use its address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Server:
    """A server by its address, without a trailing slash; subclasses explain their errors."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._opener = urllib.request.build_opener(_SameServer)

    @contextmanager
    def opened(self, page: str) -> Iterator[IO[bytes]]:
        """The bytes of an answer.  Raises InputError if there is none."""
        try:
            with self._opener.open(self.address + page, timeout=TIMEOUT_S) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            raise self.refused(page, error) from error
        except (OSError, ValueError, HTTPException) as error:
            raise self.silent(str(getattr(error, "reason", None) or error)) from error

    def fetched(self, page: str) -> bytes:
        """A whole page.  Raises InputError."""
        with self.opened(page) as answer:
            return b"".join(pieces(answer, f"{self.address}{page}", MAX_PAGE_BYTES))

    def refused(self, page: str, error: urllib.error.HTTPError) -> InputError:
        """The error for an answer with a status of 300 or more."""
        return InputError(f"{self.address}{page}: responds with status {error.code}")

    def silent(self, reason: str) -> InputError:
        """The error for no answer at all."""
        return InputError(f"{self.address}: no response ({shortened(reason)}); check the address")


def pieces(answer: IO[bytes], where: str, most_bytes: int) -> Iterator[bytes]:
    """The pieces of an answer.  Raises InputError for one that is too large or too slow."""
    begin, size = time.monotonic(), 0
    while piece := answer.read1(1 << 20) if hasattr(answer, "read1") else answer.read(1 << 16):
        size += len(piece)
        if size > most_bytes:
            raise InputError(f"{where}: larger than the limit of {most_bytes >> 20} MiB")
        passed_s = time.monotonic() - begin
        if passed_s > SLOW_AFTER_S and size < SLOWEST_BPS * passed_s:
            raise InputError(f"{where}: sends less than {SLOWEST_BPS} bytes a second; stopped after {passed_s:.0f} s")
        yield piece
