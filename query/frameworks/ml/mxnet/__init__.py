"""Everything CrystalPerf knows of MXNet.

files.py   which files are traces
trace.py   what a trace tells to the trace that every framework hands over
setup.py   what a program needs so that it leaves one
"""

from __future__ import annotations

from crystalperf.query.frameworks.ml.mxnet import files, setup
from crystalperf.query.frameworks.ml.training.framework import of_training

MXNET = of_training(
    name="mxnet",
    title="MXNet",
    log_hint="give what mx.profiler.dump wrote",
    recognise=files.recognise,
    gather=files.gather,
    setup=setup.SETUP,
)
