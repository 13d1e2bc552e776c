"""MXNet as a Framework."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.mxnet import files, setup
from crystalperf.query.frameworks.ml.training.framework import of_training

MXNET = of_training(
    name="mxnet",
    title="MXNet",
    log_hint="give the file that mx.profiler.dump wrote",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
