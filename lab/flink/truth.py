"""Ground truth: ages of records at the sinks, and the CPU time of TaskManagers' threads from /proc."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP_S = 15
"""Seconds at the start of a stream that do not count: JVMs compile, and buffers are full of waiting records."""

LAST_S = 2
"""Seconds at its end that do not count: sources stop one after the other."""

_PER_OCTAVE = 10


@dataclass(frozen=True)
class Ages:
    """Ages of records at the sinks in a period, ms; `per_s` is the number of records per second.

    `records` is the total number, including those before and after the period.
    """

    mean_ms: float
    median_ms: float
    p95_ms: float
    per_s: float
    seconds: int
    records: int


def ages(folder: Path) -> Ages | None:
    """The ages that sinks wrote, without warm-up and end; None if there are none."""
    by_second: dict[int, list[tuple[int, float, dict[int, int]]]] = {}
    for file in sorted(folder.glob("ages-*.csv")):
        for line in file.read_text(encoding="ascii").split("\n"):
            fields = line.split(",")
            if len(fields) > 3:
                each_bucket = {int(key): int(value) for key, _, value in (each.partition(":") for each in fields[3:])}
                by_second.setdefault(int(fields[0]), []).append((int(fields[1]), float(fields[2]), each_bucket))
    if not by_second:
        return None
    first, last = min(by_second) + WARM_UP_S, max(by_second) - LAST_S
    chosen = [each for second, rows in by_second.items() if first <= second <= last for each in rows]
    count = sum(each[0] for each in chosen)
    if not count:
        return None
    buckets: dict[int, int] = {}
    for _, _, mine in chosen:
        for key, value in mine.items():
            buckets[key] = buckets.get(key, 0) + value
    return Ages(
        mean_ms=sum(each[1] for each in chosen) / count / 1e3,
        median_ms=_quantile(buckets, 0.5),
        p95_ms=_quantile(buckets, 0.95),
        per_s=count / (last - first + 1),
        seconds=last - first + 1,
        records=sum(each[0] for rows in by_second.values() for each in rows),
    )


def _quantile(buckets: Mapping[int, int], share: float) -> float:
    """A quantile in ms, with the 7 % precision of a bucket."""
    wanted = share * sum(buckets.values())
    for key in sorted(buckets):
        wanted -= buckets[key]
        if wanted <= 0:
            return float(2 ** ((key + 0.5) / _PER_OCTAVE)) / 1e3
    return 0.0


@dataclass
class ThreadTimes:
    """CPU time of the threads of processes, sampled every half second during the block.

    `first_ms` and `last_ms` are by the names of process and thread (15 characters in the kernel), summed over threads
    with the same name.
    """

    pids: Mapping[str, int]
    seen_ms: dict[tuple[str, str, int], tuple[float, float]] = field(default_factory=dict)
    """By process, thread name and number: CPU time at the first and the last sample after the mark."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> ThreadTimes:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def mark(self) -> None:
        """Count from now on."""
        self.seen_ms = {key: (last, last) for key, (_, last) in self.seen_ms.items()}

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            for name, pid in self.pids.items():
                for task in Path(f"/proc/{pid}/task").glob("*"):
                    with contextlib.suppress(OSError, ValueError, IndexError):
                        comm = (task / "comm").read_text().strip()
                        on_cpu = int((task / "schedstat").read_text().split()[0]) / 1e6
                        key = name, comm, int(task.name)
                        self.seen_ms[key] = (self.seen_ms.get(key, (on_cpu, on_cpu))[0], on_cpu)

    def by_name(self) -> dict[str, dict[str, float]]:
        """CPU time since the mark, ms, by process and by thread name without numbers; without zeros."""
        found: dict[str, dict[str, float]] = {}
        for (process, comm, _), (first, last) in self.seen_ms.items():
            if last > first:
                name = re.sub(r"[#(]?\d+.*$", "", comm).strip() or comm
                mine = found.setdefault(process, {})
                mine[name] = round(mine.get(name, 0.0) + last - first, 1)
        return found
