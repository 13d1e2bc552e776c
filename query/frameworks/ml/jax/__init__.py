"""Everything CrystalPerf knows of JAX.

files.py       which files are traces; its profiler is TensorFlow's, and so are its XPlanes
operations.py  what a thread of the host did: operators of XLA, its runtime, Python
trace.py       a trace to the one that every framework hands over
setup.py       what a program needs so that it leaves one
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
