"""`crystalperf prime`: the whole usage on one screen, for an agent that has a terminal."""

from __future__ import annotations

_TEXT = """\
crystalperf says where the time of a dataflow job went, and what would make it
faster. It reads what the job left (its log; recordings of stacks), runs
nothing, sends nothing. --json on each command prints JSON alone on stdout.

crystalperf analyze LOG [RECORDINGS…]     start here: what holds it up, what to do;
                                          the last lines name the RUN for the rest
crystalperf debug RUN [--scope sql:3]     critical path, seconds by resource, findings
crystalperf predict RUN --set cores=2x    runtime if: workers cores cpu_speed memory
  --set network=2x,4x --set disk=500MB/s  disk network input skew=none partitions=400
crystalperf sql "SELECT …" --run RUN      --index NAME; --json --csv; SHOW TABLES
crystalperf index list                    indexes of code: function → cpu, disk, net
crystalperf index show FUNCTION --why     label of a function, and what it rests on
crystalperf setup {framework} --on PLACE        what to add to a job so that it leaves samples

SQL, of a run:   critical_path findings group_resources scope_resources
  worker_resources operator_resources unit_skew hot_functions waits stacks_of(…)
  and all tables; of indexes: labelled callees callers functions. Times are ms.
  SELECT function, sum(time_ms) ms, any_value(label) FROM hot_functions GROUP BY 1
    ORDER BY ms DESC LIMIT 10
  SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'waits'

Exit: 0 answer, 1 one sentence on stderr says what to do, 2 wrong command line,
4 an answer, but what the log lacks could change its first sentence.
measured = in the log; modelled = follows by an assumption; guessed = fits too.
Ranges hold 9 of 10 reruns. No samples: labels and functions are not known.
Tools (crystalperf mcp): analyze debug predict sql functions why; answers have
rows, limit, offset, next_offset, and some 4 000 tokens at most.
"""


def prime_text() -> str:
    """The usage as text: at most 45 lines of 90 columns."""
    from crystalperf.query.frameworks.registry import frameworks

    return _TEXT.replace("{framework}", next(iter(frameworks())))


def prime() -> int:
    """Print the usage."""
    from crystalperf.cli.output import write

    write(prime_text())
    return 0
