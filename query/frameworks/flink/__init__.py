"""Everything CrystalPerf knows of Flink.

files.py     which files are archives of jobs
archive.py   an archive's pages to typed values
trace.py     those to the trace that every framework hands over, and to Flink's own tables (schema.sql)
frames.py    roles of frames, processes and threads
planning.py  what other slots would do
collect.py   an archive of a job from a running cluster
setup.py     what a cluster needs so that it leaves archives and samples
"""

from __future__ import annotations

from query.frameworks import Framework, Vocabulary
from query.frameworks.flink import collect, files, frames, planning, setup, trace

FLINK = Framework(
    name="flink",
    title="Flink",
    recognise=files.recognise,
    read=trace.read_archive,
    raw=trace.raw_tables,
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
            "memory": "memory",
            "taskmanager.numberOfTaskSlots": "cores",
            "taskmanager.memory.process.size": "memory",
        },
        exchanged="exchanged records",
        log="an archive of a Flink job",
        log_hint="give a file of the folder that jobmanager.archive.fs.dir names",
    ),
    annotate=frames.annotate,
    process=frames.process,
    unit_thread=frames.unit_thread,
    sources=frames.sources,
    names=frames.NAMES,
    replan=planning.replan,
    setup=setup.SETUP,
    collect=collect.collect,
)
