"""The code with which a PyTorch program records traces, and times its steps without a profiler."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup

_WARM, _TIMED, _WARMUP, _ACTIVE = 5, 20, 2, 6
"""Steps that are not timed, timed without the profiler, profiled but not traced, and traced.  Batches of loader
processes arrive in groups, so few traced steps may all be quick or all slow."""


def text(job: Job) -> str:
    """Lines for the training loop."""
    last = _WARM + _TIMED
    steps = last + 1 + _WARMUP + _ACTIVE
    return f'''# In the program, around a training loop of at least {steps} steps; each rank writes its own file.
import os, time, torch
from torch.profiler import profile, schedule

rank = os.environ.get("RANK", "0")
os.makedirs("{job.folder or "/"}", exist_ok=True)
profiler = profile(
    activities=torch.profiler.supported_activities(),
    schedule=schedule(wait={last + 1}, warmup={_WARMUP}, active={_ACTIVE}, repeat=1),
    on_trace_ready=lambda done: done.export_chrome_trace(f"{job.folder}/rank{{rank}}.pt.trace.json.gz"),
    record_shapes=True,   # for bytes of collectives, and FLOPs of kernels
    # with_stack=True,    # for lines of the program; slows the host, so add it in a second run
)
with profiler:
    for number, batch in enumerate(loader):
        if number in ({_WARM}, {last}):  # the profiler is off: {_TIMED} steps between two synchronisations
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if number == {last}:
                print(f"untraced step: {{(time.perf_counter() - began) / {_TIMED} * 1e3:.2f}} ms")
            began = time.perf_counter()
        ...               # your training step
        profiler.step()

# Then: crystalperf analyze {job.folder or "/"}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {
        "wait": _WARM + _TIMED + 1,
        "warmup": _WARMUP,
        "active": _ACTIVE,
        "timed_steps": _TIMED,
        "folder": job.folder or "/",
        "file": "rank{RANK}.pt.trace.json.gz",
    }


SETUP = Setup(text, facts)
