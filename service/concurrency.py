"""A limit on concurrent work: up to a number of requests run, up to another number wait, and the rest are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from crystalperf.service.problems import ProblemError


class ConcurrencyLimit:
    """At most `most_running` run and `most_waiting` wait; `refusal` makes the problem from the number waiting."""

    def __init__(self, most_running: int, most_waiting: int, refusal: Callable[[int], ProblemError]) -> None:
        self._slots = asyncio.Semaphore(most_running)
        self._most_waiting = most_waiting
        self._refusal = refusal
        self._waiting = 0

    def check(self) -> None:
        """Raise ProblemError if the queue is full."""
        if self._waiting >= self._most_waiting:
            raise self._refusal(self._waiting)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block.  Raises ProblemError if the queue is full."""
        self.check()
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._slots.release()
