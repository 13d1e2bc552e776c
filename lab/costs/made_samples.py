"""Generate any number of samples for a run without samples, with invented methods.

There are 20 000 stacks of 20 to 59 frames, which share their first frames and diverge further up, so that their tree
has half a million branches.  All attributed functions have the same label.  The same run gets the same samples.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

STACKS = 20_000
TICK_MS = 20


def add(run: Path, ticks: int = 70) -> int:
    """Give each task of a run file this many samples, one every TICK_MS; returns the run's number of samples."""
    with duckdb.connect(str(run)) as connection:
        connection.execute(
            f"""
            INSERT INTO stacks
                (stack_id, frames, truncated, attributed_depth, index_name, symbol, operator, cpu, disk, net)
            SELECT number, [
                'org.example.package' || (hash(number // (depth * depth + 1), depth) % 97) || '.SomeClass'
                    || (hash(number // (depth * depth + 1), depth) % 499) || '.method' || depth || ':' || (number % 300)
                FOR depth IN range(20 + number % 40)
            ], false, 3, 'made-1', 'symbol' || number, ['scan', 'sort', NULL][1 + number % 3], 0.6, 0.1, 0.3
            FROM range({STACKS}) AS numbers(number)
            """
        )
        connection.execute(
            f"""
            INSERT INTO samples (time_ms, worker_id, thread, stack_id, kind, weight_ms, task_id)
            SELECT launch_ms + {TICK_MS} * tick, worker_id, 'thread', (hash(task_id, tick) % {STACKS})::INTEGER,
                'execution', {TICK_MS}, task_id
            FROM tasks, range({ticks}) AS ticks(tick)
            """
        )
        row = connection.execute("SELECT count(*) FROM samples").fetchone()
    assert row is not None
    return int(row[0])
