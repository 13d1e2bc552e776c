"""JAX as a Framework."""

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
