"""The code with which a PyTorch program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines for the training loop."""
    return f'''# In the program, around the training loop; each rank writes its own file.
import os, torch
from torch.profiler import profile, schedule

rank = os.environ.get("RANK", "0")
profiler = profile(
    activities=torch.profiler.supported_activities(),
    schedule=schedule(wait=5, warmup=2, active=3, repeat=1),
    on_trace_ready=lambda done: done.export_chrome_trace(f"{job.folder}/rank{{rank}}.pt.trace.json.gz"),
    record_shapes=True,  # for the bytes of collectives
    with_stack=True,     # for the lines of the program; slows the run, remove it to measure without
)
with profiler:
    for batch in loader:
        ...              # your training step
        profiler.step()

# Then: crystalperf analyze {job.folder or "/"}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"wait": 5, "warmup": 2, "active": 3, "folder": job.folder or "/", "file": "rank{RANK}.pt.trace.json.gz"}


SETUP = Setup(text, facts)
