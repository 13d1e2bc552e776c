"""A series of real runs: makes the missing runs in order; the same call later continues with the rest."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lab.errors import LabError
from lab.machine.host import when_free

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

MAX_FAILURES = 3


def make_missing(
    missing: Sequence[T],
    run: Callable[[T], str],
    name: Callable[[T], str],
    after: Callable[[], None],
    *,
    minutes: float | None,
    first_guess_s: float = 0.0,
) -> int:
    """Make runs and return the number still missing; prints a line of progress for each to stderr.

    `run` makes one run and returns its result, `after` is called after a successful run.  A failed run is left for the
    next call; raises LabError after MAX_FAILURES in a row.  A run is not started if it would end after the limit of
    `minutes`, by the median of earlier runs.
    """
    until = None if minutes is None else time.monotonic() + 60 * minutes
    print(f"{len(missing)} runs are missing", file=sys.stderr, flush=True)
    failures = done = 0
    took: list[float] = []
    for position, one in enumerate(missing, 1):
        if until is not None and time.monotonic() + (statistics.median(took) if took else first_guess_s) > until:
            print(f"stopped after {minutes:g} min (--limit)", file=sys.stderr, flush=True)
            break
        begin = time.monotonic()
        try:
            found = when_free(partial(run, one))
            failures, done = 0, done + 1
        except (LabError, subprocess.TimeoutExpired) as error:
            failures += 1
            if failures == MAX_FAILURES:
                raise LabError(f"{failures} runs failed in a row; the last ({name(one)}): {error}") from error
            found = f"failed: {error}"
        took.append(time.monotonic() - begin)
        ends = time.strftime("%H:%M", time.localtime(time.time() + statistics.median(took) * (len(missing) - position)))
        print(f"[{position}/{len(missing)}] {name(one)}: {found}; ends about {ends}", file=sys.stderr, flush=True)
        if not failures:
            after()
    return len(missing) - done


def read_lines(out: Path, key: Callable[[dict[str, Any]], K]) -> dict[K, str]:
    """The lines of OUT/rows.jsonl by a key of their rows; empty without the file."""
    file = out / "rows.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {key(json.loads(line)): line for line in lines}


def write_lines(out: Path, lines: Iterable[str]) -> None:
    """Write OUT/rows.jsonl, replacing it."""
    building = out / "rows.partial"
    building.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    building.rename(out / "rows.jsonl")
