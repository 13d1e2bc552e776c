"""TensorFlow: all code that is specific to it.

files.py      recognises traces, and groups those of one run
messages.py   RunMetadata as typed values
graph.py      those as the program's work: kernels, what each waited for, steps
timeline.py   the same from Chrome's JSON
xplane.py     the same from XPlanes
operator_kinds.py  kinds of operators, by their names
trace.py      a trace of any kind as a trace of the core
setup.py      the code with which a program records traces
"""

from __future__ import annotations

from crystalperf.query.frameworks.ml.tensorflow import files, setup
from crystalperf.query.frameworks.ml.training.framework import of_training

TENSORFLOW = of_training(
    name="tensorflow",
    title="TensorFlow",
    log_hint="give the RunMetadata of a step, or the folder that tf.profiler wrote",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
