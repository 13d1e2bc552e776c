"""TensorFlow as a Framework."""

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
