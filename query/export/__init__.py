"""A run in the formats of other tools: stacks, spans, timelines and tables, with resources as labels.

    from crystalperf.query.export.formats import export
    export(run, "pprof", Path("q9.pb.gz"))

Rows stream from the run file to the output, so memory does not grow with the number of samples or tasks.
"""
