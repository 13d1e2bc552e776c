"""The pool of query processes: each answers one query at a time, within limits of time and memory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crystalperf.indexes.children import own_module, reported_remedy
from crystalperf.service import framing
from crystalperf.service.concurrency import ConcurrencyLimit
from crystalperf.service.problems import STATUSES, ProblemError, busy
from crystalperf.service.settings import Limits

_STATUS = {kind.__name__: status for kind, status in STATUSES.items()}

_LOOKED_AT_S = 1.0
"""Interval of memory checks of a busy process."""


@dataclass(eq=False)
class _QueryProcess:
    process: asyncio.subprocess.Process
    last: str | None = None
    """The run of the last query, which the process has open."""


class QueryPool:
    """Answers queries (service.query_process.QUESTIONS); concurrent requests for the same query share one answer.

    `named` removes this machine's folders from a sentence.
    """

    def __init__(self, limits: Limits, named: Callable[[str], str]) -> None:
        self._limits = limits
        self._named = named
        self._free: list[_QueryProcess] = []
        self._limit = ConcurrencyLimit(
            limits.query_processes,
            limits.waiting_questions,
            lambda waiting: busy(f"{waiting} queries are waiting already; try again in a moment"),
        )
        self._under_way: dict[str, asyncio.Future[bytes]] = {}
        self._all: set[_QueryProcess] = set()

    async def start(self) -> None:
        """Start the processes, so that the first query need not wait for one."""
        self._free = [await self._started() for _ in range(self._limits.query_processes)]

    def stop(self) -> None:
        """End all processes."""
        for each in list(self._all):
            self._end(each)

    @property
    def idle(self) -> bool:
        """Whether no query is in progress."""
        return not self._under_way

    async def query(self, question: str, **facts: object) -> bytes:
        """The answer as JSON, as the process sent it.  Raises ProblemError."""
        key = json.dumps([question, facts], sort_keys=True)
        if (same := self._under_way.get(key)) is not None:
            return await asyncio.shield(same)
        self._limit.check()
        pending = asyncio.ensure_future(self._answered(question, facts))
        self._under_way[key] = pending

        def over(done: asyncio.Future[bytes]) -> None:
            self._under_way.pop(key, None)
            if not done.cancelled():
                done.exception()  # mark the exception as retrieved if nobody waits

        pending.add_done_callback(over)
        return await asyncio.shield(pending)

    async def _answered(self, question: str, facts: Mapping[str, object]) -> bytes:
        async with self._limit.slot():
            return await self._by_one(question, facts)

    async def _by_one(self, question: str, facts: Mapping[str, object]) -> bytes:
        run = facts.get("run")
        worker = next((each for each in self._free if run is not None and each.last == run), None)
        worker = worker or (self._free[0] if self._free else await self._started())
        if worker in self._free:
            self._free.remove(worker)
        try:
            kind, content = await self._exchanged(worker, question, facts)
        except BaseException:
            self._end(worker)
            raise
        worker.last = run if isinstance(run, str) else worker.last
        if resident_bytes(worker.process.pid) > self._limits.query_process_bytes:
            self._end(worker)
        else:
            self._free.append(worker)
        if kind == "E":
            failure = json.loads(content)
            status = 500 if failure["kind"] == "Bug" else _STATUS.get(failure["kind"], 422)
            raise ProblemError(status, self._named(failure["message"]), remedy=reported_remedy(failure))
        return content

    async def _exchanged(self, worker: _QueryProcess, question: str, facts: Mapping[str, object]) -> tuple[str, bytes]:
        process = worker.process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(framing.framed("Q", json.dumps({"question": question, "facts": facts}).encode()))
        waits = asyncio.ensure_future(framing.received(process.stdout))
        try:
            for _ in range(max(1, int(self._limits.question_s / _LOOKED_AT_S))):
                done, _ = await asyncio.wait({waits}, timeout=_LOOKED_AT_S)
                if done:
                    return waits.result()
                if resident_bytes(process.pid) > self._limits.question_memory_bytes:
                    raise ProblemError(422, "the query exceeded its memory limit; use a smaller scope of the run")
        except (asyncio.IncompleteReadError, ConnectionError):
            raise busy("the query process crashed; try again, or use a smaller scope of the run") from None
        finally:
            waits.cancel()
            with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
                await waits
        raise busy(
            f"the query exceeded its limit of {self._limits.question_s:g} s; use a smaller scope of the run",
            retry_after_s=60,
        )

    async def _started(self) -> _QueryProcess:
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}
        process = await asyncio.create_subprocess_exec(
            *own_module("crystalperf.service.query_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        worker = _QueryProcess(process)
        self._all.add(worker)
        return worker

    def _end(self, worker: _QueryProcess) -> None:
        self._all.discard(worker)
        if worker in self._free:
            self._free.remove(worker)
        with suppress(ProcessLookupError):
            worker.process.kill()


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
