"""Flink as a Framework."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crystalperf.query.frameworks import Advisor, Frames, Framework, Planner, Reader
from crystalperf.query.frameworks.flink import (
    advise,
    chained_operators,
    comparing,
    files,
    frames,
    notes,
    planning,
    private,
    sentences,
    series,
    setup,
    stream,
    trace,
    tunable,
    unbounded,
)
from crystalperf.query.trace.vocabulary import Vocabulary


def _collect(address: str, job: str | None, folder: Path, progress: Callable[[str], None]) -> Path:
    """See collect.collect; clients of clusters are imported only for an address."""
    from crystalperf.query.frameworks.flink import collect

    return collect.collect(address, job, folder, progress)


FLINK = Framework(
    name="flink",
    title="Flink",
    reader=Reader(
        recognise=files.recognise,
        read=trace.read_archive,
        gather=files.gather,
        companions=(series.SUFFIX,),
        raw=trace.raw_tables,
        private=private.PATTERNS,
        collect=_collect,
        frames=Frames(
            annotate=frames.annotate,
            process=frames.process,
            task_thread=frames.task_thread,
            sources=frames.sources,
            names=frames.NAMES,
            operators=chained_operators.OPERATORS,
        ),
    ),
    vocabulary=Vocabulary(
        worker="TaskManager",
        slot="slot",
        stage="vertex",
        task="subtask",
        driver="JobManager",
        scope="job",
        scopes=("job",),
        settings={
            "taskmanagers": "workers",
            "slots": "cores",
            "parallelism": "tasks",
            "memory": "memory",
            "taskmanager.numberOfTaskSlots": "cores",
            "taskmanager.memory.process.size": "memory",
        },
        exchanged_data="exchanged records",
        log="an archive of a Flink job",
        log_hint="give a file of the folder that jobmanager.archive.fs.dir names",
    ),
    planner=Planner(
        configured=planning.configured,
        replan=planning.replan,
        stream=stream.stream,
        shown_slots=planning.shown_slots,
        unbounded_reason=planning.unbounded_reason,
        slots_bring_cpu=False,  # slots share the CPU of their TaskManager
        checked_settings=lambda _run: {"tasks"},  # parallelism of all vertices (docs/flink.md)
    ),
    comparer=comparing.COMPARER,
    advisor=Advisor(
        idle_advice=advise.idle_advice,
        required_recording=advise.required_recording,
        unbounded_load=unbounded.load,
        buffering_candidate=advise.buffering_candidate,
        tunable=tunable.tunable,
        remarks=notes.remarks,
        was_cancelled=lambda why: why == trace.CALLED_OFF,
        setup=setup.SETUP,
        sentences=sentences.SENTENCES,
    ),
)
