"""Spark as a Framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crystalperf.query.frameworks import DelegateProfiles, Frames, Framework, Operators, Planner, Reader
from crystalperf.query.frameworks.spark import (
    advise,
    batches,
    comparing,
    demands,
    engine_sentences,
    files,
    frames,
    interactive,
    memory,
    names,
    partitions,
    private,
    raw,
    results,
    rules,
    scheduling,
    setup,
    sql_operators,
    tunable,
    waits,
)
from crystalperf.query.frameworks.spark.python import worker_frames
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems, RunTables
from crystalperf.query.trace.vocabulary import Vocabulary


def _read_log(log: LogFile) -> Trace:
    """See trace.read_log; the reader of logs is imported only for a log."""
    from crystalperf.query.frameworks.spark import trace

    return trace.read_log(log)


def _served(address: str, app: str | None, folder: Path, progress: Callable[[str], None]) -> Path | None:
    """See history.served; clients of servers are imported only for an address."""
    from crystalperf.query.frameworks.spark import history

    return history.served(address, app, folder, progress)


def _python_tables(
    profiles: Sequence[tuple[str, Any]], trace: Trace, problems: Problems, labels: Callable[..., Any]
) -> RunTables:
    """See profiles.read; it is imported only for profiles of Python workers."""
    from crystalperf.query.frameworks.spark.python import profiles as python_profiles

    return python_profiles.read(profiles, trace, problems, labels)


SPARK = Framework(
    name="spark",
    title="Spark",
    reader=Reader(
        recognise=files.recognise,
        read=_read_log,
        gather=files.gather,
        marks=files.MARKS,
        raw=raw.raw_tables,
        private=private.PATTERNS,
        served=_served,
        interactive=interactive.interactive,
        occupied=results.occupied,
        delegates=rules.runs_python,
        delegate_profiles=DelegateProfiles(worker_frames.is_worker, _python_tables),
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
        slot="slot",
        stage="stage",
        task="task",
        driver="driver",
        driver_work="planning, listing files, collecting",
        scope="query",
        scopes=("sql", "job"),
        settings={
            "executors": "workers",
            "cores": "cores",
            "memory": "memory",
            "partitions": "tasks",
            "spark.executor.instances": "workers",
            "spark.executor.cores": "cores",
            "spark.executor.memory": "memory",
            "spark.sql.shuffle.partitions": "tasks",
            "spark.sql.files.maxPartitionBytes": "split",
        },
        exchanged_data="shuffled data",
        delegate="Python worker",
        log="an event log of Spark",
        log_hint="give the log that spark.eventLog.dir names",
    ),
    planner=Planner(
        schedule=scheduling.schedule,
        barriers=scheduling.JobBarriers,
        configured=partitions.configured,
        settings=partitions.SETTINGS,
        replan=partitions.replan,
        memory=memory.MEMORY,
        excluded_settings=demands.excluded_settings,
        held=waits.held,
        demands=demands.demands,
        refused=demands.refused,
        micro_batches=batches.micro_batches,
        sizes_workers=True,
        loads_code=True,
    ),
    comparer=comparing.COMPARER,
    advisor=replace(
        rules.RULES,
        candidates=advise.candidates,
        resizing_candidate=advise.resized,
        tunable=tunable.tunable,
        metrics={"shuffle": "exchanged"},
        setup=setup.SETUP,
        sentences=engine_sentences.SENTENCES,
    ),
)
