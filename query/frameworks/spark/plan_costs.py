"""CPU time of operators by their rows, to estimate what another plan saves.

Spark times sorts and the writing of shuffle files, but not the work per row around them.  The rates are those of Spark
4.0.1 with compiled code on one machine (4 million rows of 24, 64 and 96 bytes).  A stage whose tasks took more CPU time
than the rates say was slower for each row, up to SLOWER times: young processes, other CPUs.  A saving is a share of a
stage's time on the critical path, so that waiting is divided like computing.
"""

from __future__ import annotations

from dataclasses import dataclass

from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.results.kinds import Basis
from crystalperf.query.results.recommendations import Saving

LEAST, MOST = 0.5, 1.5
"""Range of a saving by rates, as factors."""

SLOWER = 2.0
"""Most times that a stage's rows may cost more than the rates say; more is work that the rates do not know."""

MAX_SHARE = 0.95
"""Largest share of a stage's own time that a change may remove."""


@dataclass(frozen=True)
class Rate:
    """CPU time of an operator, ns per row and per byte of it in memory."""

    row_ns: float
    byte_ns: float = 0.0

    def cpu_ms(self, rows: float, size_bytes: float = 0.0) -> float:
        return (self.row_ns * rows + self.byte_ns * size_bytes) * 1e-6


SCAN = Rate(250)
"""Decoding rows of columnar files."""
WRITE = Rate(100, 2.5)
"""Partitioning, serializing and compressing rows for a shuffle."""
READ = Rate(180, 0.5)
"""Decompressing and deserializing shuffled rows."""
SORT_AND_MERGE = Rate(600)
"""Sorting rows by a join's keys, and merging them with those of the other side."""
PROBE = Rate(150)
"""Looking rows up in the hash table of a broadcast side."""
HASH_JOIN = Rate(280)
"""Building hash tables of the small side's partitions, and looking rows up there; per row of the large side."""

BROADCAST_MS_PER_BYTE = 25e-6
"""Collecting, building and sending a table that is broadcast, while nothing else runs."""


def path_ms(detail: StageStats, cpu_ms: float, known_ms: float) -> float:
    """The part of a stage's time on the critical path that `cpu_ms` of its tasks' CPU time by rates takes, without
    starting tasks; `known_ms` is the CPU time by rates of all its operators whose rows are known."""
    facts = detail.facts
    own_ms = detail.own_cpu_ms or facts.task_ms - facts.starting_ms
    if own_ms <= 0 or facts.task_ms <= 0:
        return 0.0
    slower = min(max(own_ms / known_ms, 1.0), SLOWER) if known_ms > 0 else 1.0
    return facts.path_ms * (1 - starting_share(detail)) * min(slower * cpu_ms / own_ms, MAX_SHARE)


def starting_share(detail: StageStats) -> float:
    """The share of starting and ending tasks in a stage's task time."""
    return min(detail.facts.starting_ms / detail.facts.task_ms, 1.0) if detail.facts.task_ms > 0 else 0.0


def estimated(ms: float, most_ms: float, basis: Basis = "modelled") -> Saving:
    """A saving by rates, with its range; at most `most_ms`."""
    ms = min(ms, most_ms)
    return Saving(basis, ms, (LEAST * ms, min(MOST * ms, most_ms)))
