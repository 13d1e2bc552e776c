"""Everything CrystalPerf knows of TensorFlow.

files.py      which files are traces, and which of them make one run
messages.py   RunMetadata to typed values
graph.py      those to what the program did: kernels, what each waited for, steps
timeline.py   the same from Chrome's JSON
xplane.py     the same from XPlanes
operators.py  what operators do, by their names
trace.py      a trace of whatever kind to the one that every framework hands over
setup.py      what a program needs so that it leaves traces
"""

from __future__ import annotations

from crystalperf.query.frameworks.ml.tensorflow import files, setup
from crystalperf.query.frameworks.ml.training.framework import of_training

TENSORFLOW = of_training(
    name="tensorflow",
    title="TensorFlow",
    log_hint="keep the RunMetadata of a step, or give the folder that tf.profiler wrote",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
