"""Everything CrystalPerf knows of Spark.

files.py        which files are event logs, and which make one
log/            lines to typed events, events to what they say of the run, that to Spark's own tables
trace.py        those to the trace that every framework hands over
frames.py       roles of frames, executors of processes
names.py        names of operators in plans, generated code and classes; sql_operators.py: task time by operator
attended.py     whether a person submits the work
scheduling.py   slots, locality, job barriers; partitions.py: tasks cut anew; memory.py: the heap
rules.py        what a user can do about a finding
advise/         what can be set or written, from what to what; recommendations.py: the kinds
private.py      what of plans a page for strangers must not have
history.py      logs from a History Server
setup.py        what a job needs so that it leaves a log and samples
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from crystalperf.query.frameworks import Frames, Framework, Operators, Planner, Reader
from crystalperf.query.frameworks.spark import (
    advise,
    attended,
    files,
    frames,
    memory,
    names,
    partitions,
    private,
    results,
    rules,
    scheduling,
    sentences,
    settings,
    setup,
    sql_operators,
    trace,
)
from crystalperf.query.trace.vocabulary import Vocabulary


def _served(address: str, app: str | None, folder: Path, progress: Callable[[str], None]) -> Path | None:
    """What history.served says; clients of servers are imported where there is an address."""
    from crystalperf.query.frameworks.spark import history

    return history.served(address, app, folder, progress)


SPARK = Framework(
    name="spark",
    title="Spark",
    reader=Reader(
        recognise=files.recognise,
        read=trace.read_log,
        gather=files.gather,
        marks=files.MARKS,
        raw=trace.raw_tables,
        private=private.PATTERNS,
        served=_served,
        attended=attended.attended,
        occupied=results.occupied,
        delegates=rules.runs_python,
        unread_work=frozenset({"missing_part", "compacted_log", "second_application"}),
        counted_problems=frozenset({"missing_task_ends"}),
        unread_start=frozenset({"application_start", "second_application"}),
        frames=Frames(
            annotate=frames.annotate,
            process=frames.process,
            sources=frames.sources,
            names=frames.NAMES,
            operators=Operators(names.of_frame, sql_operators.operator_times),
            spilling=frames.SPILLING,
        ),
    ),
    vocabulary=Vocabulary(
        worker="executor",
        lane="slot",
        group="stage",
        unit="task",
        coordinator="driver",
        coordinating="planning, listing files, collecting",
        scope="query",
        scopes=("sql", "job"),
        settings={
            "executors": "workers",
            "cores": "cores",
            "memory": "memory",
            "partitions": "units",
            "spark.executor.instances": "workers",
            "spark.executor.cores": "cores",
            "spark.executor.memory": "memory",
            "spark.sql.shuffle.partitions": "units",
        },
        exchanged="shuffled data",
        delegate="Python worker",
        log="an event log of Spark",
        log_hint="give the log that spark.eventLog.dir names",
    ),
    planner=Planner(
        schedule=scheduling.schedule,
        barriers=scheduling.JobBarriers,
        configured=partitions.configured,
        replan=partitions.replan,
        memory=memory.MEMORY,
        excluded_settings=lambda properties: ("workers",) if settings.is_local(properties) else (),
        loads_code=True,
    ),
    advisor=replace(
        rules.RULES,
        candidates=advise.candidates,
        resizing_candidate=advise.resized,
        setup=setup.SETUP,
        sentences=sentences.SENTENCES,
    ),
)
