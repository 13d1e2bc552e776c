"""Support for Dask in CrystalPerf.

files.py    recognises Dask's files, and groups those of one run
page.py     reads the columns behind the plots of a Bokeh page
reading.py  reads tasks and dependencies from reports, task streams and dumps
stacks.py   attributes the profiler's samples to resources
rules.py    assumptions and recommendations
trace.py    converts tasks to the trace that CrystalPerf analyzes
setup.py    lines that make a job write all these files
"""

from __future__ import annotations

from dataclasses import replace

from crystalperf.plugin import Framework, Reader, Vocabulary
from crystalperf_dask import files, rules, sentences, setup, trace

DASK = Framework(
    name="dask",
    title="Dask",
    reader=Reader(recognise=files.recognise, read=trace.of_log, gather=files.gather, resolution_ms=1.0),
    vocabulary=Vocabulary(
        worker="worker",
        slot="thread",
        stage="step",
        task="task",
        driver="scheduler",
        driver_work="receiving the graph, sending tasks and fetching results",
        scope="graph",
        scopes=("graph",),
        settings={"workers": "workers", "threads": "cores"},
        exchanged_data="results of other tasks",
        log="a performance report of Dask",
        log_hint="give the file of performance_report, and that of client.dump_cluster_state if you have it",
    ),
    advisor=replace(rules.RULES, setup=setup.SETUP, sentences=sentences.SENTENCES),
)
