"""`crystalperf prime`: the whole usage on one screen, for an agent that has a terminal."""

from __future__ import annotations

_TEXT = """\
crystalperf reports where a dataflow job's time went and what would make it
faster. It reads the job's log and recordings of stacks; it does not run the job
or send data. With --json, each command prints only JSON on stdout.

crystalperf analyze LOG [RECORDINGS…]     start here: bottleneck, what to do;
                                          the last lines name RUN for other commands
crystalperf debug RUN [--scope sql:3]     critical path, seconds by resource, findings
crystalperf predict RUN --set cores=2x    runtime if: workers cores cpu_speed memory
  --set network=2x,4x --set disk=500MB/s  disk network input skew=none partitions=400
crystalperf compare BEFORE AFTER          slower beyond noise? by which causes?
crystalperf sql "SELECT …" --run RUN      --index NAME; --json --csv; SHOW TABLES
crystalperf index list                    indexes of code: function → cpu, disk, net
crystalperf index show FUNCTION --why     label of a function, with its evidence
crystalperf setup {framework} --on PLACE        job settings that record a log and samples

SQL, of a run:   critical_path findings stage_resources scope_resources
  worker_resources operator_resources task_skew hot_functions waits stacks_of(…)
  and all tables; of indexes: labelled callees callers functions. Times are ms.
  SELECT function, sum(time_ms) ms, any_value(label) FROM hot_functions GROUP BY 1
    ORDER BY ms DESC LIMIT 10
  SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'waits'

Exit: 0 answer, 1 error (stderr has one sentence with the fix), 2 wrong command
line. If missing data could change an answer, `conclusive` in its JSON is false.
measured = in the log; modelled = measured plus a named assumption; guessed =
fits the data, but other causes may fit too. 90 % ranges cover 9 of 10 reruns.
If a run has no samples, its functions and labels are unknown.
Tools (crystalperf mcp): analyze debug predict compare sql functions why; answers
have rows, limit, offset, next_offset, and at most about 4 000 tokens.
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
