"""The state of a running service: settings, catalog, query processes, jobs, uploads, statements."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import time
from pathlib import Path
from typing import Any

from crystalperf.indexes.temporary import make_private
from crystalperf.service.answers import Answers
from crystalperf.service.catalog import Catalog, Entry
from crystalperf.service.jobs import Jobs
from crystalperf.service.problems import ProblemError
from crystalperf.service.query_pool import QueryPool
from crystalperf.service.settings import Settings
from crystalperf.service.statements import Statements
from crystalperf.service.uploads import Uploads

_SCANNED_EVERY_S = 1.0

log = logging.getLogger("crystalperf.service")


class Service:
    """The running service, as the endpoints use it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        limits, folder = settings.limits, settings.home / "service"
        self.catalog = Catalog(settings.home / "runs")
        self.query_pool = QueryPool(limits, settings.named)
        self.answers = Answers(folder / "answers", limits.answers_bytes)
        self.jobs = Jobs(folder, limits, self._made)
        self.uploads = Uploads(self.jobs.inputs, self.jobs.uploads, self.jobs.protected, limits)
        self.statements = Statements(limits, settings.named)
        self.followers = 0
        self.began = time.time_ns()
        """Start time, ns.  It distinguishes this service's catalog numbers from those of earlier ones."""
        self._pending: list[Entry] = []
        self._running: list[asyncio.Future[None]] = []
        self._scanning = asyncio.Lock()

    async def start(self) -> None:
        """Start the processes and the background tasks."""
        make_private(self.settings.home)
        make_private(self.catalog.folder)
        self.jobs.start()
        await self.query_pool.start()
        self.statements.start()
        await self.scan()
        await asyncio.to_thread(self.answers.forget_others, self.catalog.entries)  # of runs deleted meanwhile
        self._running = [asyncio.ensure_future(each) for each in (self._scan_again(), self._fill_rows())]
        gc.freeze()  # the objects of the start live as long as the service: keep garbage collections from scanning them

    async def stop(self) -> None:
        """Stop the background tasks and end the processes."""
        for each in self._running:
            each.cancel()
        self.jobs.stop()
        self.query_pool.stop()
        self.statements.stop()
        await asyncio.sleep(0)

    async def scan(self) -> None:
        """Update the catalog with new, changed and deleted runs."""
        async with self._scanning:
            before = self.catalog.entries
            changed = await asyncio.to_thread(self.catalog.scan)
            for name in before.keys() - self.catalog.entries.keys():
                await asyncio.to_thread(self.answers.forget, name)
            if not changed:
                return
            known = await asyncio.to_thread(lambda: [self.answers.find(each, "summary", None) for each in changed])
        for entry, found in zip(changed, known, strict=True):
            if found is None:
                self._pending.append(entry)
            else:
                self.catalog.fill(entry, json.loads(found))

    async def query(self, question: str, **facts: object) -> Any:
        """The answer to a query, as a value.  Raises ProblemError."""
        return json.loads(await self.query_pool.query(question, **facts))

    async def remove(self, entry: Entry) -> None:
        """Delete a run and its cached answers."""

        def delete() -> None:
            entry.path.unlink(missing_ok=True)
            self.answers.forget(entry.name)

        await asyncio.to_thread(delete)
        await self.scan()

    def _made(self, _name: str) -> None:
        self._running.append(asyncio.ensure_future(self.scan()))
        self._running = [each for each in self._running if not each.done()]

    async def _scan_again(self) -> None:
        while True:
            await asyncio.sleep(_SCANNED_EVERY_S)
            try:
                await self.scan()
            except Exception as error:  # the loop must go on
                log.error("cannot scan for runs", exc_info=error)

    async def _fill_rows(self) -> None:
        """Compute the rows of pending runs, one at a time, while no query is in progress."""
        while True:
            if not self._pending or not self.query_pool.idle:
                await asyncio.sleep(0.1)
                continue
            entry = self._pending.pop(0)
            if self.catalog.entries.get(entry.name) != entry:
                continue
            try:
                found = await self.query("summary", run=str(entry.path))
                self.catalog.fill(entry, found["row"])
                await asyncio.to_thread(self._keep, entry, found)
            except ProblemError as problem:
                if problem.status == 503:
                    self._pending.append(entry)
                    await asyncio.sleep(1.0)
                else:
                    self.catalog.fail(entry, problem)
            except OSError:  # no process could be started: try again later
                self._pending.append(entry)
                await asyncio.sleep(1.0)
            except Exception as error:  # must not stop the rows of other runs
                log.error("cannot compute the summary of run %s", entry.name, exc_info=error)
                self.catalog.fail(entry, ProblemError(500, f"a bug of CrystalPerf ({type(error).__name__})"))

    def _keep(self, entry: Entry, found: dict[str, Any]) -> None:
        self.answers.forget(entry.name)  # of an earlier file with this name
        for question, facts in (("verdict", None), ("overview", None), ("debug", {"scope": "all"}), ("header", None)):
            self.answers.put(entry, question, facts, json.dumps(found[question]).encode())
        self.answers.put(entry, "summary", None, json.dumps(found["row"]).encode())


def below(folders: tuple[Path, ...], text: str) -> tuple[Path, Path]:
    """The resolved path below one of the folders, and that folder.  Raises ProblemError if there is none."""
    if not folders:
        raise ProblemError(403, "this service may not read a folder; start it with --folder DIR, or upload files")
    if "\0" in text:
        raise ProblemError(400, "path: expected an absolute path on the service's machine")
    for folder in folders:
        root = folder.resolve()
        place = (root / text).resolve()
        if place.is_relative_to(root) and os.path.exists(place):  # Path.exists() raises for a long name
            return place, root
    raise ProblemError(404, f"{text[:200]}: not found below a folder that the service may read")
