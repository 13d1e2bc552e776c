"""Request bodies, with limits on size and time so that no client can keep a connection open for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request

from crystalperf.service.problems import ProblemError
from crystalperf.service.settings import Limits


async def pieces(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """The chunks of a body as they arrive.

    Raises ProblemError if no chunk arrives for `silent_s`, or if the rate is below `slowest_bps` after `slow_after_s`,
    and ClientDisconnect if the client has closed the connection.
    """
    taken, began = 0, time.monotonic()
    body = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(limits.silent_s):
                piece = await anext(body)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise ProblemError(408, f"no data arrived for {limits.silent_s:g} s; send the request again") from None
        taken += len(piece)
        passed_s = time.monotonic() - began
        if passed_s > limits.slow_after_s and taken < limits.slowest_bps * passed_s:
            raise ProblemError(408, f"less than {limits.slowest_bps} bytes/s arrived; send the request again")
        yield piece


async def whole(request: Request, limits: Limits, most_bytes: int) -> bytes:
    """The bytes of a body.  Raises ProblemError if there are more than `most_bytes`, and what pieces() raises."""
    length = request.headers.get("content-length", "0")
    content = bytearray()
    if not length.isdecimal() or int(length) <= most_bytes:
        async for piece in pieces(request, limits):
            content += piece
            if len(content) > most_bytes:
                break
        else:
            return bytes(content)
    raise ProblemError(413, f"the body is larger than {most_bytes >> 10} KiB, the limit of this route")


async def decoded(request: Request, kind: type[Any], limits: Limits, most_bytes: int | None = None) -> Any:
    """The JSON body of a request as a value of `kind`, at most `body_bytes` by default.  Raises as whole() does."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise ProblemError(415, "the body must be JSON; send it with Content-Type: application/json")
    content = await whole(request, limits, most_bytes or limits.body_bytes)
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, f"invalid body: {str(error)[:200]}") from error
