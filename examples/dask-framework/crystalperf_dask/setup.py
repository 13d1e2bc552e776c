"""The lines that make a Dask job write all files that CrystalPerf reads."""

from __future__ import annotations

from typing import Any

from crystalperf.plugin import Setup


def text(job: Any) -> str:
    """Lines around a computation."""
    folder = job.folder or "/"
    return f'''# Dask: record the tasks' times, dependencies and stacks.
import json
from dask.distributed import performance_report, wait

with performance_report(filename="{folder}/dask-report.html"):
    future = client.compute(work)    # or work = work.persist(); keep the result, which keeps its graph
    wait(future)
    client.dump_cluster_state("{folder}/state")          # writes state.msgpack.gz: the tasks' dependencies

# CPU time of the tasks' threads, measured by the workers (distributed 2023.6 or later):
rows = client.run_on_scheduler(
    lambda dask_scheduler: [[*map(str, key), value] for key, value in
                            dask_scheduler.cumulative_worker_metrics.items() if isinstance(key, tuple)])
with open("{folder}/dask-metrics.json", "w") as file:
    json.dump({{"startstops": [], "scheduler": {{"address": client.scheduler.address}}, "metrics": rows}}, file)

result = future.result()
# Then: crystalperf analyze {folder}
'''


def facts(job: Any) -> dict[str, Any]:
    """The same by name."""
    folder = job.folder or "/"
    names = ("dask-report.html", "state.msgpack.gz", "dask-metrics.json")
    return {"folder": folder, "files": [f"{folder}/{name}" for name in names]}


SETUP = Setup(text, facts)
