"""Support for Hadoop MapReduce in CrystalPerf.

files.py        recognises job histories, configurations and profiles, and groups those of one job
history.py      reads histories: text (Hadoop 0.20 and 1), Avro's JSON (2) and its binary format (3)
avro.py         decodes Avro's binary format
trace.py        converts task attempts to the trace that CrystalPerf analyzes
planning.py     another number of reducers, and assumptions of predictions
starfish.py     the phases of a map and of a reducer by Starfish's model
starfish_job.py the job by that model: the predictor `starfish`
"""

from __future__ import annotations

from crystalperf.plugin import Framework, Planner, Reader, Vocabulary
from crystalperf_mapreduce import files, planning, trace

MAPREDUCE = Framework(
    name="mapreduce",
    title="Hadoop MapReduce",
    reader=Reader(
        recognise=files.recognise, read=trace.of_log, gather=files.gather, raw=trace.raw, resolution_ms=1000.0
    ),
    planner=Planner(configured=planning.configured, replan=planning.replan),
    advisor=planning.ADVISOR,
    vocabulary=Vocabulary(
        worker="node",
        slot="slot",
        stage="phase",
        task="task",
        driver="job tracker",
        driver_work="setting up the job, assigning tasks to nodes by their heartbeats, and committing the output",
        settings={"nodes": "workers", "slots": "cores", "reducers": "tasks"},
        exchanged_data="map outputs",
        log="a job history of Hadoop",
        log_hint="give the job history (.jhist, or the file of a job in logs/history) and its _conf.xml",
    ),
)
