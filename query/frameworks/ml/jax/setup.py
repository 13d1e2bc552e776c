"""The code with which a JAX program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    folder = job.folder or "/"
    return f'''# JAX: the time of a step without the profiler, then an XPlane of six steps.
import jax, time
state = ...              # first a few training steps, which compile; `state` is what they return
jax.block_until_ready(state)
begin = time.perf_counter()
for step in range(20):
    state = ...          # your training step
jax.block_until_ready(state)
print(f"untraced step: {{(time.perf_counter() - begin) / 20 * 1e3:.2f}} ms")

options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0   # 1 in a second run adds functions of Python, and slows the host
with jax.profiler.trace("{folder}", profiler_options=options):
    for step in range(3):
        state = ...      # your training step, without a mark: the profiler still starts
    jax.block_until_ready(state)
    for step in range(6):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            state = ...  # your training step
            if jax.default_backend() != "gpu":   # the trace of a GPU shows when its work ends, others do not
                jax.block_until_ready(state)
    jax.block_until_ready(state)

# Then: crystalperf analyze {folder}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "step_annotation": "train"}


SETUP = Setup(text, facts)
