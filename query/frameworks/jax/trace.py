"""A JAX trace as the trace that every framework hands over."""

from __future__ import annotations

from query.frameworks.jax.operations import of_line
from query.frameworks.tensorflow import trace
from query.inputs.containers import LogFile
from query.model.trace import Trace


def read(log: LogFile) -> Trace:
    """The trace of a run.  Raises InputError, one sentence."""
    return trace.read(log, "jax", of_line)
