"""SQL statements over HTTP: each in a separate process, with limited concurrency and one idle process ready."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.statements import asking
from crystalperf.query.statements.asking import Form, answering, index_files, request_for
from crystalperf.query.statements.rows import csv_parts, json_parts
from crystalperf.service.concurrency import ConcurrencyLimit
from crystalperf.service.problems import ProblemError, busy, of_error
from crystalperf.service.settings import Limits


class Statements:
    """Runs statements; `named` removes this machine's folders from a sentence."""

    def __init__(self, limits: Limits, named: Callable[[str], str]) -> None:
        self._limits = limits
        self._named = named
        self._limit = ConcurrencyLimit(
            limits.sql,
            limits.waiting_sql,
            lambda waiting: busy(
                f"{waiting} statements are waiting already; try again in a moment", status=429, retry_after_s=5
            ),
        )
        self._spare: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the idle process."""
        self._spare = asking.started()

    def stop(self) -> None:
        """End the idle process."""
        if self._spare is not None:
            asking.end(self._spare)
            self._spare = None

    async def execute(
        self,
        statement: str,
        form: str,
        *,
        run: Path | None = None,
        runs: Sequence[tuple[str, Path]] = (),
        indexes: Sequence[str] = (),
    ) -> bytes:
        """The answer in JSON, CSV, Arrow or Parquet.  Raises ProblemError."""
        return b"".join(await self._run_in_slot(statement, form, run, runs, indexes))

    async def rows(
        self,
        statement: str,
        *,
        most: int,
        run: Path | None = None,
        runs: Sequence[tuple[str, Path]] = (),
        indexes: Sequence[str] = (),
    ) -> tuple[list[str], list[list[Any]]]:
        """The columns and the first rows, at most `most` + 1.  Raises ProblemError."""
        first: list[Any] = await self._run_in_slot(statement, f"first {most + 1}", run, runs, indexes)
        return first[0], first[1]

    async def _run_in_slot(
        self, statement: str, form: str, run: Path | None, runs: Sequence[tuple[str, Path]], indexes: Sequence[str]
    ) -> list[Any]:
        async with self._limit.slot():
            spare, self._spare = self._spare, None
            try:
                return await asyncio.to_thread(self._run, statement, form, run, runs, indexes, spare)
            except CrystalPerfError as error:
                problem = of_error(error)
                problem.what = self._named(problem.what)
                raise problem from error
            finally:
                if self._spare is None:
                    self._spare = asking.started()

    def _run(
        self,
        statement: str,
        form: str,
        run: Path | None,
        runs: Sequence[tuple[str, Path]],
        indexes: Sequence[str],
        spare: subprocess.Popen[bytes] | None,
    ) -> list[Any]:
        limits = self._limits
        sent: Form = form if form in ("arrow", "parquet") else "rows"  # type: ignore[assignment]
        try:
            files = index_files(statement, run, indexes)
            request = request_for(
                statement,
                run,
                files,
                runs=runs,
                form=sent,
                memory_bytes=limits.sql_memory_bytes,
                most_bytes=2 * limits.sql_answer_bytes,  # a single value may be as large as memory
            )
        except BaseException:
            if spare is not None:
                asking.end(spare)
            raise
        with answering(request, limits.sql_s, spare) as (columns, batches):
            if form.startswith("first"):
                most, rows = int(form.split()[1]), []
                for batch in batches:
                    rows += batch
                    if len(rows) >= most:
                        break
                return [columns, rows[:most]]
            if sent != "rows":
                return self._bounded(batches)
            parts = json_parts(columns, batches) if form == "json" else csv_parts(columns, batches)
            return self._bounded(each.encode() for each in parts)

    def _bounded(self, parts: Any) -> list[bytes]:
        found: list[bytes] = []
        size = 0
        for part in parts:
            size += len(part)
            if size > self._limits.sql_answer_bytes:
                most = self._limits.sql_answer_bytes >> 20
                raise ProblemError(413, f"the answer is larger than {most} MiB; select less, or add LIMIT")
            found.append(part)
        return found
