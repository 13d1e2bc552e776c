"""JAX: all code that is specific to it.

files.py       recognises traces; its profiler is TensorFlow's, and so are its XPlanes
operations.py  operations of a host thread: operators of XLA, its runtime, Python
trace.py       a trace as a trace of the core
setup.py       the code with which a program records one
"""

from __future__ import annotations

from crystalperf.query.frameworks.ml.jax import files, setup
from crystalperf.query.frameworks.ml.training.framework import of_training

JAX = of_training(
    name="jax",
    title="JAX",
    log_hint="give the folder that jax.profiler.trace wrote",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
