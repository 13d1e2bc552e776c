"""Everything CrystalPerf knows of Flink.

files.py     which files are archives of jobs
archive.py   an archive's pages to typed values
trace.py     those to the trace that every framework hands over, and to Flink's own tables (schema.sql)
frames.py    roles of frames, processes and threads
chained_operators.py  operators of a chain told apart by samples
planning.py  what another parallelism, and other slots, would do
stream.py    a streaming job as a flow of records; held.py: how long its operators hold them
unbounded.py how busy a stream was of which no metrics were collected
advise.py    what its user can change; recommendations.py: the kinds
private.py   what of plans a page for strangers must not have
collect.py   an archive of a job from a running cluster; poll.py, series.py, tables.py: its metrics
setup.py     what a cluster needs so that it leaves archives and samples
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crystalperf.query.frameworks import Advisor, Frames, Framework, Planner, Reader
from crystalperf.query.frameworks.flink import (
    advise,
    chained_operators,
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
    unbounded,
)
from crystalperf.query.trace.vocabulary import Vocabulary


def _collect(address: str, job: str | None, folder: Path, progress: Callable[[str], None]) -> Path:
    """What collect.collect says; clients of clusters are imported where there is an address."""
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
            unit_thread=frames.unit_thread,
            sources=frames.sources,
            names=frames.NAMES,
            operators=chained_operators.OPERATORS,
        ),
    ),
    vocabulary=Vocabulary(
        worker="TaskManager",
        lane="slot",
        group="vertex",
        unit="subtask",
        coordinator="JobManager",
        scope="job",
        scopes=("job",),
        settings={
            "taskmanagers": "workers",
            "slots": "cores",
            "parallelism": "units",
            "memory": "memory",
            "taskmanager.numberOfTaskSlots": "cores",
            "taskmanager.memory.process.size": "memory",
        },
        exchanged="exchanged records",
        log="an archive of a Flink job",
        log_hint="give a file of the folder that jobmanager.archive.fs.dir names",
    ),
    planner=Planner(
        configured=planning.configured,
        replan=planning.replan,
        flow=stream.flow,
        shown_lanes=planning.shown_lanes,
        unbounded_reason=planning.unbounded_reason,
        lanes_bring_cpu=False,  # slots share the CPU of their TaskManager
        checked_settings=lambda _run: {"units"},  # parallelism of all vertices (docs/flink.md)
    ),
    advisor=Advisor(
        idle_advice=advise.idle_advice,
        required_recording=advise.required_recording,
        unbounded_load=unbounded.load,
        buffering_candidate=advise.buffering_candidate,
        remarks=notes.remarks,
        was_cancelled=lambda why: why == trace.CALLED_OFF,
        setup=setup.SETUP,
        sentences=sentences.SENTENCES,
    ),
)
