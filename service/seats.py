"""Seats for what runs a few at a time: who finds none waits, and who finds too many waiting is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from crystalperf.service.problems import ProblemError


class Seats:
    """`refusal` makes the problem of one who is refused, from how many wait."""

    def __init__(self, seats: int, most_waiting: int, refusal: Callable[[int], ProblemError]) -> None:
        self._seats = asyncio.Semaphore(seats)
        self._most_waiting = most_waiting
        self._refusal = refusal
        self._waiting = 0

    def check(self) -> None:
        """Refuse one more where enough wait.  Raises ProblemError."""
        if self._waiting >= self._most_waiting:
            raise self._refusal(self._waiting)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A seat for the time of a block.  Raises ProblemError."""
        self.check()
        self._waiting += 1
        try:
            await self._seats.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._seats.release()
