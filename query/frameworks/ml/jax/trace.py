"""A JAX trace as a trace of the core (query.trace)."""

from __future__ import annotations

from crystalperf.query.frameworks.ml.jax.operations import of_line
from crystalperf.query.frameworks.ml.tensorflow import trace
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.trace.contract import Trace


def read(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError."""
    return trace.read(log, "jax", of_line)
