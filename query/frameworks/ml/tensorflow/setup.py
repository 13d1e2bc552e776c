"""The code with which a TensorFlow program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    folder = job.folder or "/"
    return f'''# TensorFlow 2: an XPlane of three steps.
import tensorflow as tf
tf.profiler.experimental.start("{folder}")
for step in range(3):
    with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        ...              # your training step
tf.profiler.experimental.stop()

# A graph in a session (tf.compat.v1, parameter servers): RunMetadata of single steps, which records dependencies.
import tensorflow.compat.v1 as tf
found = tf.RunMetadata()
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
session.run(train, options=options, run_metadata=found)
open(f"{job.folder}/worker{{task}}-step{{step}}.run_metadata.pb", "wb").write(found.SerializeToString())

# Then: crystalperf analyze {folder}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "trace_level": "FULL_TRACE", "output_partition_graphs": True}


SETUP = Setup(text, facts)
