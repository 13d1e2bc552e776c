"""CPU time of operators by their rows, to estimate what another plan saves.

Spark times sorts and the writing of shuffle files, but not the work per row around them.  The rates are those of Spark
4.0.1 with compiled code on one machine (4 million rows of 24, 64 and 96 bytes).  A stage whose tasks took more CPU time
than the rates say was slower for each row, up to SLOWER times: young processes, other CPUs.  A saving is a share of a
stage's time on the critical path, so that waiting is divided like computing.
"""

from __future__ import annotations

from crystalperf.indexes.frozen import frozen
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.frameworks.spark.plans import ROWS, WRITTEN_BYTES, WRITTEN_ROWS, Plan, amount
from crystalperf.query.frameworks.spark.sql_operators import Node
from crystalperf.query.results.kinds import Basis
from crystalperf.query.results.recommendations import Saving

LEAST, MOST = 0.5, 1.5
"""Range of a saving by rates, as factors."""

SLOWER = 2.0
"""Most times that a stage's rows may cost more than the rates say; more is work that the rates do not know."""

MAX_SHARE = 0.95
"""Largest share of a stage's own time that a change may remove."""


@frozen
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
AGGREGATE = Rate(100)
"""Aggregating rows by hashing their keys."""
PROBE = Rate(150)
"""Looking rows up in the hash table of a broadcast side."""
HASH_JOIN = Rate(280)
"""Building hash tables of the small side's partitions, and looking rows up there; per row of the large side."""

BROADCAST_MS_PER_BYTE = 25e-6
"""Collecting, building and sending a table that is broadcast, while nothing else runs."""


def path_ms(plan: Plan, detail: StageStats, cpu_ms: float) -> float:
    """The part of a stage's time on the critical path that `cpu_ms` of its tasks' CPU time by rates takes, without
    starting tasks."""
    facts, known_ms = detail.facts, max(_known_ms(plan, detail.facts.id), cpu_ms)
    own_ms = detail.own_cpu_ms or facts.task_ms - facts.starting_ms
    if own_ms <= 0 or facts.task_ms <= 0:
        return 0.0
    slower = min(max(own_ms / known_ms, 1.0), SLOWER) if known_ms > 0 else 1.0
    return facts.path_ms * (1 - starting_share(detail)) * min(slower * cpu_ms / own_ms, MAX_SHARE)


def _known_ms(plan: Plan, stage: str) -> float:
    """CPU time by rates of a stage's operators whose rows are known."""
    known_ms = 0.0
    for node in plan.nodes:
        kind, metrics = node.what.kind, node.metrics.get(stage, {})
        if kind == "exchange" and not _is_repeated(plan, node):
            size, written = amount(node, WRITTEN_BYTES) or 0.0, amount(node, WRITTEN_ROWS) or 0.0
            known_ms += WRITE.cpu_ms(metrics.get(WRITTEN_ROWS, 0.0), metrics.get(WRITTEN_BYTES, 0.0))
            rows = metrics.get("records read", 0.0)
            known_ms += READ.cpu_ms(rows, size * rows / written if written else 0.0)
        elif kind == "scan":
            known_ms += SCAN.cpu_ms(metrics.get(ROWS, 0.0))
        elif kind.endswith("aggregate") and metrics:
            known_ms += AGGREGATE.cpu_ms(sum(plan.rows(each) or 0.0 for each in plan.inputs(node)))
        elif kind == "sortmergejoin" and metrics:
            known_ms += SORT_AND_MERGE.cpu_ms(sum(plan.rows(each) or 0.0 for each in plan.inputs(node, {"sort"})))
    return known_ms


def _is_repeated(plan: Plan, node: Node) -> bool:
    """Whether an exchange has an earlier node, because it was reused."""
    return any(each.what.kind == "exchange" and each.metrics == node.metrics for each in plan.nodes[: node.node_id])


def starting_share(detail: StageStats) -> float:
    """The share of starting and ending tasks in a stage's task time."""
    return min(detail.facts.starting_ms / detail.facts.task_ms, 1.0) if detail.facts.task_ms > 0 else 0.0


def estimated(ms: float, most_ms: float, basis: Basis = "modelled") -> Saving:
    """A saving by rates, with its range; at most `most_ms`."""
    ms = min(ms, most_ms)
    return Saving(basis, ms, (LEAST * ms, min(MOST * ms, most_ms)))
