"""The code with which a TensorFlow program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    folder = job.folder or "/"
    return f'''# TensorFlow 2: the time of a step without the profiler, then an XPlane of six steps.
import time
import tensorflow as tf
...                      # first a few training steps, which build the graph
tf.test.experimental.sync_devices()
begin = time.perf_counter()
for step in range(20):
    ...                  # your training step
tf.test.experimental.sync_devices()
print(f"untraced step: {{(time.perf_counter() - begin) / 20 * 1e3:.1f}} ms")

tf.profiler.experimental.start("{folder}")
for step in range(6):
    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        ...              # your training step
tf.test.experimental.sync_devices()
tf.profiler.experimental.stop()

# A graph in a session (tf.compat.v1, parameter servers): RunMetadata of single steps, which records dependencies.
import os, time
import tensorflow.compat.v1 as tf
task = 0                 # the number of this worker
...                      # first a few training steps
begin = time.perf_counter()
for step in range(20):
    session.run(train)   # your session and its training step
print(f"untraced step: {{(time.perf_counter() - begin) / 20 * 1e3:.1f}} ms")

os.makedirs("{folder}", exist_ok=True)
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
for step in range(4):
    found = tf.RunMetadata()
    session.run(train, options=options, run_metadata=found)
    if step > 0:         # the first one has the profiler's own start
        with open(f"{folder}/worker{{task}}-step{{step}}.run_metadata.pb", "wb") as file:
            file.write(found.SerializeToString())

# Then: crystalperf analyze {folder}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "trace_level": "FULL_TRACE", "output_partition_graphs": True}


SETUP = Setup(text, facts)
