"""Flink: all code that is specific to it.

files.py     recognises archives of jobs
archive.py   an archive's pages as typed values
trace.py     those as a trace of the core, and Flink's own tables (schema.sql)
frames.py    roles of frames, processes and threads
chained_operators.py  time by operator of a chain, from samples
planning.py  models another parallelism and other slots
stream.py    a streaming job as a flow of records; held.py: how long its operators hold them
unbounded.py how busy a stream without collected metrics was
comparing.py streams without collected metrics, compared by how busy they were
advise.py    advice; recommendations.py: the kinds of recommendations
tunable.py   settings that a search for a configuration may change
private.py   what is redacted in plans
collect.py   an archive of a job from a running cluster; poll.py, series.py, tables.py: its metrics
setup.py     the settings with which a cluster writes archives and samples
framework.py  all of it as a Framework, which only the registry imports
"""
