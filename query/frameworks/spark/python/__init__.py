"""Time of Spark's Python workers, from profiles of them next to an event log.

worker_frames.py  what a worker did in a sampled stack: the user's code, serialization, waiting for the JVM
stages.py         the stages of a run that Python workers computed for, and the functions in their plans
profiles.py       stacks by stage: spark_python_times, spark_python_functions
calls.py          profiles of calls, by stage, for the same tables
memory_lines.py   memory profiles, by stage: spark_python_memory
tables.py         the rows of these tables
split.py          the task time of such a stage by part
"""
