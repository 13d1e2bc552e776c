"""Everything CrystalPerf knows of Dask.

files.py    which files are Dask's, and which of them are of one run
page.py     a page that Bokeh wrote to the columns of its plots
reading.py  reports, task streams and dumps to what ran and what it waited for
stacks.py   what the profiler saw, by resource
rules.py    what is taken for granted, and what a user can do
trace.py    that to the trace that every framework hands over
setup.py    what a job needs so that it leaves all of it
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
        lane="thread",
        group="step",
        unit="task",
        coordinator="scheduler",
        coordinating="the graph came in, tasks were sent out and results fetched",
        scope="graph",
        scopes=("graph",),
        settings={"workers": "workers", "threads": "cores"},
        exchanged="results of other tasks",
        log="a performance report of Dask",
        log_hint="give what performance_report wrote, and client.dump_cluster_state beside it",
    ),
    advisor=replace(rules.RULES, setup=setup.SETUP, sentences=sentences.SENTENCES),
)
