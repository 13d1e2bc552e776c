"""Background profiling jobs, with their state on disk: an accepted job survives a restart of the service.

    HOME/service/jobs/ID.json          a job; written under another name, made durable, then renamed
    HOME/service/inputs/HASH/…         the files of uploads, named by content hash, until their jobs end
    HOME/service/inputs/fetched/…      the logs fetched from servers, until their jobs end
    HOME/service/uploads/…             uploads in progress; leftovers of a killed service are removed

A job that a restart interrupted starts again and writes to the same run file.  After MAX_STARTS interruptions it has
failed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from crystalperf.indexes.children import own_module, reported_remedy
from crystalperf.indexes.temporary import make_durable, make_private
from crystalperf.service.problems import ProblemError, busy, sentence
from crystalperf.service.profiler import Work
from crystalperf.service.query_pool import resident_bytes
from crystalperf.service.settings import Limits

FOLDERS = ("jobs", "inputs", "uploads")
"""The subfolders of the service's folder."""

MAX_STARTS = 5
"""Maximum starts of a job that restarts interrupt."""

MAX_KEPT = 500
"""Maximum number of ended jobs in the list."""

MAX_STEPS = 200

_LOOKED_AT_S = 1.0

_LONGEST_LINE = 1 << 20
"""Maximum bytes of a line from a process."""

log = logging.getLogger("crystalperf.service")

State = Literal["waiting", "running", "done", "failed", "cancelled"]
OVER: frozenset[State] = frozenset(("done", "failed", "cancelled"))


class Step(msgspec.Struct, frozen=True):
    """A step of a job, and its start (Unix time in ms)."""

    at_ms: int
    message: str


class Job(msgspec.Struct):
    """A profile in the background.  Times are Unix times in ms.

    `inputs` are the names that the client gave, `run` is the new run, `problem` says why there is none.  If `starts` is
    above 1, a restart of the service interrupted the job before.
    """

    id: str
    state: State
    made_at_ms: int
    inputs: list[str]
    app: str | None = None
    indexes: list[str] = []
    starts: int = 0
    ended_at_ms: int | None = None
    run: str | None = None
    problem: str | None = None
    steps: list[Step] = []


class _Kept(msgspec.Struct):
    """A job as stored in its file, with fields that clients do not see."""

    job: Job
    paths: list[str]
    within: str | None
    addresses: bool = False
    """Whether the paths are addresses of logs on servers."""


class Jobs:
    """All jobs; one object for a service.  It calls `made` with the name of each new run."""

    def __init__(self, folder: Path, limits: Limits, made: Callable[[str], None]) -> None:
        self._folder = folder
        self._limits = limits
        self._made = made
        self._kept: dict[str, _Kept] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._changed = asyncio.Condition()
        self._running: set[asyncio.Future[None]] = set()
        self._stopping = False
        self.protected: set[str] = set()
        """Inputs that a job is about to be made of."""

    @property
    def inputs(self) -> Path:
        """The folder of uploaded files."""
        return self._folder / "inputs"

    @property
    def uploads(self) -> Path:
        """The folder of uploads in progress."""
        return self._folder / "uploads"

    @property
    def _fetched(self) -> Path:
        return self.inputs / "fetched"

    def start(self) -> None:
        """Read the stored jobs, remove incomplete files, and continue unfinished jobs."""
        for each in (self._folder, self._folder / "jobs", self.inputs):
            make_private(each)
        shutil.rmtree(self.uploads, ignore_errors=True)
        make_private(self.uploads)
        for path in sorted((self._folder / "jobs").iterdir()):
            if path.suffix != ".json":
                path.unlink(missing_ok=True)  # half written
                continue
            with suppress(OSError, msgspec.DecodeError):
                kept = _decoded(path.read_bytes())
                self._kept[kept.job.id] = kept
        for kept in self._kept.values():
            if kept.job.state == "running":
                kept.job.state = "waiting"
                if kept.job.starts >= MAX_STARTS:
                    self._over(kept, "failed", problem=f"the service stopped {MAX_STARTS} times during this job")
        self._clear_inputs()
        for _ in range(self._limits.jobs):
            running = asyncio.ensure_future(self._work())
            self._running.add(running)

    def stop(self) -> None:
        """End the processes; their jobs start again with the next service."""
        self._stopping = True
        for each in self._running:
            each.cancel()
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.kill()

    # Questions ------------------------------------------------------------------------------------------------------

    def listed(self) -> list[Job]:
        """All jobs, the newest first."""
        return sorted((each.job for each in self._kept.values()), key=lambda each: each.id, reverse=True)

    def get(self, job_id: str) -> Job:
        """The job of that id.  Raises ProblemError if there is none."""
        kept = self._kept.get(job_id)
        if kept is None:
            raise ProblemError(404, f"there is no job '{job_id[:100]}'; /api/jobs lists the jobs")
        return kept.job

    @property
    def waiting(self) -> int:
        """The number of waiting jobs."""
        return sum(each.job.state == "waiting" for each in self._kept.values())

    async def events(self, job_id: str, *, alive_s: float = 15.0) -> AsyncIterator[Job | None]:
        """The job after each change until it ends; None every `alive_s` without a change."""
        sent = b""
        while True:
            job = self.get(job_id)
            if (now := msgspec.json.encode(job)) != sent:
                sent = now
                yield job
                continue  # it may have changed while it was sent
            if job.state in OVER:
                return
            async with self._changed:
                try:
                    await asyncio.wait_for(self._changed.wait(), alive_s)
                except TimeoutError:
                    yield None

    # Changes --------------------------------------------------------------------------------------------------------

    def check_queue(self) -> None:
        """Raise ProblemError if too many jobs wait."""
        if self.waiting >= self._limits.waiting_jobs:
            raise busy(f"{self.waiting} jobs are waiting already; send it again later", status=429, retry_after_s=30)

    def add(
        self,
        paths: list[str],
        names: list[str],
        app: str | None,
        indexes: list[str],
        *,
        within: str | None = None,
        addresses: bool = False,
    ) -> Job:
        """Add a job; it is on disk when this returns.  Raises ProblemError if too many wait."""
        self.check_queue()
        now = time.time()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now))
        job_id = f"{stamp}{int(now * 1000) % 1000:03}-{secrets.token_hex(4)}"
        job = Job(job_id, "waiting", int(now * 1000), names, app, indexes)
        kept = _Kept(job, paths, within, addresses)
        self._write(kept)
        self._kept[job.id] = kept
        self._forget_old()
        self._notify()
        return job

    def cancel(self, job_id: str) -> None:
        """Cancel a job; remove one that has ended."""
        kept = self._kept[self.get(job_id).id]
        if kept.job.state in OVER:
            self._forget(kept)
            return
        if (process := self._processes.get(job_id)) is not None:
            with suppress(ProcessLookupError):
                process.kill()
        self._over(kept, "cancelled", problem="it was cancelled")
        self._clear_inputs()

    def _over(self, kept: _Kept, state: State, *, run: str | None = None, problem: str | None = None) -> None:
        kept.job.state, kept.job.run, kept.job.problem = state, run, problem
        kept.job.ended_at_ms = int(time.time() * 1000)
        try:
            self._write(kept)
        finally:
            self._notify()

    def _forget(self, kept: _Kept) -> None:
        self._place(kept.job.id).unlink(missing_ok=True)
        self._kept.pop(kept.job.id, None)

    def _forget_old(self) -> None:
        over = [self._kept[each.id] for each in self.listed() if each.state in OVER]
        for kept in over[MAX_KEPT:]:
            self._forget(kept)

    def _clear_inputs(self) -> None:
        """Remove the uploaded files that no job needs any more; files that cannot be removed now stay."""
        left = [each for each in self._kept.values() if each.job.state not in OVER]
        paths = [Path(path) for each in left for path in each.paths]
        needed = self.protected.union(*([str(path), str(path.parent)] for path in paths))
        if any(each.addresses for each in left):
            needed.add(str(self._fetched))
        with suppress(OSError):
            for each in self.inputs.iterdir():
                if str(each) not in needed:
                    shutil.rmtree(each, ignore_errors=True)

    def _place(self, job_id: str) -> Path:
        return self._folder / "jobs" / f"{job_id}.json"

    def _write(self, kept: _Kept) -> None:
        """Write a job durably: sync the content, then rename, then sync the folder."""
        place = self._place(kept.job.id)
        half = place.with_suffix(".half")
        try:
            with half.open("wb") as stream:
                stream.write(msgspec.json.encode(kept))
                stream.flush()
                os.fsync(stream.fileno())
            half.replace(place)
        except OSError:
            half.unlink(missing_ok=True)
            raise
        make_durable(place.parent)

    def _notify(self) -> None:
        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        running = asyncio.ensure_future(notify())
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    # Work -----------------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            waiting = [each for each in self._kept.values() if each.job.state == "waiting"]
            if not waiting:
                async with self._changed:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), 5.0)
                continue
            kept = min(waiting, key=lambda each: each.job.id)
            try:
                await self._do(kept)
            except Exception as error:  # must not stop the waiting jobs
                if kept.job.state not in OVER:
                    with suppress(OSError):
                        self._over(kept, "failed", problem=_why(error))
            self._clear_inputs()

    async def _do(self, kept: _Kept) -> None:
        job, limits = kept.job, self._limits
        job.state, job.starts, job.steps = "running", job.starts + 1, []
        self._write(kept)
        process = await asyncio.create_subprocess_exec(
            *own_module("crystalperf.service.profiler"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        self._processes[job.id] = process
        assert process.stdin is not None
        work = Work(
            paths=kept.paths,
            app=job.app,
            indexes=job.indexes,
            within=kept.within,
            fetched=str(self._fetched) if kept.addresses else None,
            memory_bytes=limits.job_memory_bytes,
            file_bytes=limits.job_file_bytes,
            seconds=limits.job_s,
        )
        watch = asyncio.ensure_future(self._watch(process))
        try:
            if job.state in OVER:  # cancelled while the process was started
                return
            with suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(work))
                process.stdin.close()
            last = await self._followed(process, job)
            why = watch.result() if watch.done() else ""
        finally:
            watch.cancel()
            self._processes.pop(job.id, None)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if job.state in OVER or self._stopping:
            return
        if "run" in last:
            self._made(last["run"])
            self._over(kept, "done", run=last["run"])
        elif "error" in last:
            sent = last["error"]
            self._over(kept, "failed", problem=self._named(kept, sentence(sent["message"], reported_remedy(sent))))
        else:
            self._over(kept, "failed", problem=why or "the profiling process crashed; use a smaller part of the input")

    def _named(self, kept: _Kept, text: str) -> str:
        """A sentence with the client's names of the inputs instead of paths on this machine."""
        runs = self._folder.parent / "runs"
        inputs = (*kept.paths, *(str(Path(each).parent) for each in kept.paths))
        for folder in (kept.within, str(runs), str(self._fetched), *inputs):
            if folder is not None and folder != str(self.inputs):
                text = text.replace(f"{folder}/", "")
        return text.replace(f"{self.inputs}/", "")

    async def _followed(self, process: asyncio.subprocess.Process, job: Job) -> dict[str, Any]:
        """Record each step that the process reports; returns its last line, with the run or the error."""
        assert process.stdout is not None
        last: dict[str, Any] = {}
        while line := await process.stdout.readline():
            try:
                last = json.loads(line)
            except ValueError:
                break
            if "step" in last and len(job.steps) < MAX_STEPS:
                job.steps.append(Step(int(time.time() * 1000), str(last["step"])))
                self._notify()
        return last

    async def _watch(self, process: asyncio.subprocess.Process) -> str:
        """Kill a process that exceeds its limits; returns the reason."""
        limits = self._limits
        until = time.monotonic() + limits.job_s
        why = ""
        while not why:
            await asyncio.sleep(_LOOKED_AT_S)
            if time.monotonic() > until:
                why = f"the job exceeded its limit of {limits.job_s:g} s; use a smaller part of the input"
            elif resident_bytes(process.pid) > limits.job_memory_bytes:
                why = f"the job exceeded its limit of {limits.job_memory_bytes >> 20} MiB of memory"
        with suppress(ProcessLookupError):
            process.kill()
        return why


def _decoded(content: bytes) -> _Kept:
    """A stored job.  Raises msgspec.DecodeError.

    A version before this one stored the text of a step as `said`; its unfinished jobs must not lose their inputs.
    """
    stored = msgspec.json.decode(content, type=dict[str, Any])
    job = stored.get("job")
    for step in job.get("steps") or () if isinstance(job, dict) else ():
        if isinstance(step, dict) and "said" in step:
            step["message"] = step.pop("said")
    return msgspec.convert(stored, _Kept)


def _why(error: Exception) -> str:
    """The reason why a job failed outside of its process."""
    if isinstance(error, OSError):  # a full disk
        return f"the job failed ({error.strerror or error})"
    log.error("a job", exc_info=error)
    return f"a bug of CrystalPerf ({type(error).__name__}); please report it"
