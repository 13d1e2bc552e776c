"""The processes that answer questions: a few, each for one question at a time, ended where one takes too much."""

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
from crystalperf.service.problems import STATUSES, ProblemError, busy
from crystalperf.service.seats import Seats
from crystalperf.service.settings import Limits

_STATUS = {kind.__name__: status for kind, status in STATUSES.items()}

_LOOKED_AT_S = 1.0
"""How often the memory of a process that is at work is looked at."""


@dataclass(eq=False)
class _Asker:
    process: asyncio.subprocess.Process
    last: str | None = None
    """The run that it was last asked of, which it has open."""


class Askers:
    """Asks questions (service.asker.QUESTIONS); the same question asked twice at once is worked out once.

    `named` takes this machine's folders out of a sentence.
    """

    def __init__(self, limits: Limits, named: Callable[[str], str]) -> None:
        self._limits = limits
        self._named = named
        self._free: list[_Asker] = []
        self._seats = Seats(
            limits.askers,
            limits.waiting_questions,
            lambda waiting: busy(f"{waiting} questions wait already; ask again in a moment"),
        )
        self._under_way: dict[str, asyncio.Future[bytes]] = {}
        self._all: set[_Asker] = set()

    async def start(self) -> None:
        """Start the processes, so that the first question need not wait for one."""
        self._free = [await self._started() for _ in range(self._limits.askers)]

    def stop(self) -> None:
        """End all processes."""
        for each in list(self._all):
            self._end(each)

    @property
    def idle(self) -> bool:
        """Whether nothing is asked right now."""
        return not self._under_way

    async def ask(self, question: str, **facts: object) -> bytes:
        """The answer, as the process sent it.  Raises ProblemError."""
        key = json.dumps([question, facts], sort_keys=True)
        if (same := self._under_way.get(key)) is not None:
            return await asyncio.shield(same)
        self._seats.check()
        asked = asyncio.ensure_future(self._answered(question, facts))
        self._under_way[key] = asked

        def over(done: asyncio.Future[bytes]) -> None:
            self._under_way.pop(key, None)
            if not done.cancelled():
                done.exception()  # of a question that nobody waits for any more

        asked.add_done_callback(over)
        return await asyncio.shield(asked)

    async def _answered(self, question: str, facts: Mapping[str, object]) -> bytes:
        async with self._seats.taken():
            return await self._by_one(question, facts)

    async def _by_one(self, question: str, facts: Mapping[str, object]) -> bytes:
        run = facts.get("run")
        asker = next((each for each in self._free if run is not None and each.last == run), None)
        asker = asker or (self._free[0] if self._free else await self._started())
        if asker in self._free:
            self._free.remove(asker)
        try:
            kind, content = await self._exchanged(asker, question, facts)
        except BaseException:
            self._end(asker)
            raise
        asker.last = run if isinstance(run, str) else asker.last
        if resident_bytes(asker.process.pid) > self._limits.asker_bytes:
            self._end(asker)
        else:
            self._free.append(asker)
        if kind == "E":
            told = json.loads(content)
            status = 500 if told["kind"] == "Bug" else _STATUS.get(told["kind"], 422)
            raise ProblemError(status, self._named(told["what"]), remedy=reported_remedy(told))
        return content

    async def _exchanged(self, asker: _Asker, question: str, facts: Mapping[str, object]) -> tuple[str, bytes]:
        process = asker.process
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
                    raise ProblemError(422, "the question needs more memory than it may take; ask of a part of the run")
        except (asyncio.IncompleteReadError, ConnectionError):
            raise busy("the process that worked on the answer ended; ask again, or of a part of the run") from None
        finally:
            waits.cancel()
            with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
                await waits
        raise busy(
            f"the answer takes longer than {self._limits.question_s:g} s; ask of a part of the run", retry_after_s=60
        )

    async def _started(self) -> _Asker:
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "1"}
        process = await asyncio.create_subprocess_exec(
            *own_module("crystalperf.service.asker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        asker = _Asker(process)
        self._all.add(asker)
        return asker

    def _end(self, asker: _Asker) -> None:
        self._all.discard(asker)
        if asker in self._free:
            self._free.remove(asker)
        with suppress(ProcessLookupError):
            asker.process.kill()


def resident_bytes(pid: int) -> int:
    """Memory of a process; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
