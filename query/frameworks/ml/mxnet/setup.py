"""The code with which an MXNet program records traces."""

from __future__ import annotations

from typing import Any

from crystalperf.query.frameworks import Job, Setup


def text(job: Job) -> str:
    """Lines around the training loop."""
    return f'''# In the program, around a few steps of training.
import mxnet as mx

mx.profiler.set_config(profile_symbolic=True, profile_imperative=True, profile_api=True,
                       filename="{job.folder}/mxnet.json")
mx.profiler.set_state("run")
...                        # some steps
mx.nd.waitall()            # finish the operators that these steps submitted
mx.profiler.set_state("stop")
mx.profiler.dump()

# Then: crystalperf analyze {job.folder or "/"}
'''


def facts(job: Job) -> dict[str, Any]:
    """The same by name."""
    return {"folder": job.folder or "/", "file": "mxnet.json"}


SETUP = Setup(text, facts)
