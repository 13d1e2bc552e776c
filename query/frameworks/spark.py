"""Everything CrystalPerf knows of Spark.

Reading an event log goes through three steps, each a module of its own: query/spark_events.py makes typed events of
lines, query/spark_run.py collects what they say, query/spark_tables.py makes tables of it.
"""

from __future__ import annotations

from query.logfiles import LogFile
from query.records import RunTables
from query.spark_run import collect
from query.spark_tables import tables


def parse(log: LogFile) -> RunTables:
    """The tables of a run file that one attempt's event log fills.

    runs, executors, sql_executions, operators, jobs, stages, tasks and import_stats, with the columns of
    indexes/schema.sql except those that samples and the analysis fill.  Raises InputError, one sentence, where the
    log cannot be read or holds no event of an application.
    """
    return tables(collect(log))
