"""Many clients that follow one job at once: as many as the limit get events, the others a problem, at any speed."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any

from starlette.requests import Request

from crystalperf.service.endpoints import jobs
from crystalperf.service.problems import ProblemError
from crystalperf.service.settings import Limits

LIMIT, CLIENTS = 4, 50


class Jobs:
    """A job that changes once."""

    def get(self, job_id: str) -> None: ...

    async def events(self, job_id: str) -> Any:
        yield None
        await asyncio.sleep(0.05)


def test_clients_that_arrive_together_are_counted() -> None:
    service: Any = SimpleNamespace(followers=0, jobs=Jobs(), settings=SimpleNamespace(limits=Limits(events=LIMIT)))
    seen: Counter[str] = Counter()

    async def follow() -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "asgi": {"spec_version": "2.4"}}

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(60)
            return {"type": "http.disconnect"}

        async def send(_: Any) -> None:
            await asyncio.sleep(0)

        try:
            response = await jobs.events(service, Request(scope), {"job": "x"})
        except ProblemError as problem:
            seen[str(problem.status)] += 1
            return
        await asyncio.sleep(0)  # others are answered meanwhile
        await response(scope, receive, send)
        seen["followed"] += 1

    async def all_at_once() -> None:
        await asyncio.gather(*(follow() for _ in range(CLIENTS)))

    asyncio.run(all_at_once())
    assert seen == {"followed": LIMIT, "503": CLIENTS - LIMIT}
    assert service.followers == 0
