"""Spark: all code that is specific to it.

files.py        recognises event logs, and groups the parts of one log
log/            lines to typed events, events to a collected run, that to Spark's own tables
trace.py        those as a trace of the core; raw.py: Spark's own tables (schema.sql)
frames.py       roles of frames, executors of processes
engines.py      engines that run operators instead of Spark; fallbacks.py: operators that stayed on the JVM
names.py        names of operators in plans, generated code and classes; sql_operators.py: task time by operator
lakehouse.py    changes and small files of Delta and Iceberg tables
statements.py   statements of the clients of a Connect or Thrift server
interactive.py  whether a person submits the work
demands.py      slots that stages need: resource profiles, barrier stages
shuffle_services.py   remote and merged shuffled data
scheduling.py   slots, locality, job barriers; partitions.py: partitioning; memory.py: the heap
rules.py        advice for findings, and findings of Spark alone; waits.py: of slots and speculative copies
advise/         recommendations with old and new values; recommendations.py: the kinds
streaming.py    streaming queries: remarks; batches.py: their micro-batches, for what-ifs
tunable.py      settings that a search for a configuration may change
comparing.py    settings and operators that matter if runs are compared
private.py      what is redacted in plans
history.py      logs from a History Server; pages.py, saved.py: pages of a running application, and saved ones
setup.py        the settings with which a job writes a log and samples
python/         time of Python workers, from profiles of them
framework.py    all of it as a Framework, which only the registry imports
"""
