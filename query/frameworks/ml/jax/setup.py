"""The code with which a JAX program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    folder = job.folder or "/"
    return f'''# JAX: the time of a step without the profiler, then an XPlane of six steps.
import jax, time
...                      # first a few training steps, which compile
begin = time.perf_counter()
for step in range(20):
    ...                  # your training step
jax.block_until_ready(state)
print(f"untraced step: {{(time.perf_counter() - begin) / 20 * 1e3:.1f}} ms")

with jax.profiler.trace("{folder}"):
    for step in range(6):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            ...          # your training step
            jax.block_until_ready(state)   # without it, the step ends before its work does

# Then: crystalperf analyze {folder}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "step_annotation": "train"}


SETUP = Setup(text, facts)
