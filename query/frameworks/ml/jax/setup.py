"""The code with which a JAX program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    folder = job.folder or "/"
    return f'''# JAX: an XPlane of three steps. First run a few steps without it, which compile.
import jax
with jax.profiler.trace("{folder}"):
    for step in range(3):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            ...          # your training step
            jax.block_until_ready(state)   # without it, the step ends before its work does

# Then: crystalperf analyze {folder}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "step_annotation": "train"}


SETUP = Setup(text, facts)
