"""Locality of input: on the machine's own disks, in worker memory, or over the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import duckdb

Reach = Literal["net", "replicas", "local", "memory"]
"""net: always over the network; replicas: local if the task ran on a machine with a replica; local: this machine's
disks; memory: data that workers cached."""

CACHE_ROOT = "memory:"
"""The root of data cached in worker memory."""

REPLICATED = ("hdfs", "viewfs", "maprfs", "webhdfs", "swebhdfs", "ofs", "o3fs")
"""Schemes of file systems that replicate blocks on several machines and report the locations."""

_LOCAL = ("file", "local")

REMOTE_LOCALITIES = ("rack", "any")
"""Values of `tasks.data_locality` for tasks that ran on another machine than their data."""


def reach(root: str) -> Reach:
    """The reach of a file system; an unknown scheme counts as a network service, as nearly all are."""
    scheme = root.partition(":")[0]
    if root == CACHE_ROOT:
        return "memory"
    return "local" if scheme in _LOCAL else "replicas" if scheme in REPLICATED else "net"


PROCESS_LOCAL = "worker"
"""Value of `tasks.data_locality` for tasks that ran in the process that holds their data."""


def reaches(connection: duckdb.DuckDBPyConnection) -> dict[str, set[Reach]]:
    """The reaches of the inputs of each stage that has inputs."""
    stages: dict[str, set[Reach]] = {}
    for stage_id, root in connection.execute("SELECT stage_id, root FROM stage_inputs").fetchall():
        stages.setdefault(stage_id, set()).add(reach(root))
    return stages


def far_stages(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The stages that read no local files, and whether each task's locality decides if its input was remote.

    `inputs` are reaches().  A stage that also reads local files is left out: the log does not say which file a task
    read.  Cached data are remote for tasks that ran in another worker; in a stage that also reads files, the tasks
    that found cached data (kept_stages) read locally.
    """
    files = {stage_id: kinds - {"memory"} for stage_id, kinds in inputs.items()}
    return {stage_id: kinds != {"net"} for stage_id, kinds in files.items() if "local" not in kinds}


def kept_stages(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The stages that read cached data, and whether only their tasks with PROCESS_LOCAL locality did.

    The other tasks of such a stage read files, because memory capacity did not suffice for the cache.  `inputs` are
    reaches().
    """
    return {stage_id: len(kinds) > 1 for stage_id, kinds in inputs.items() if "memory" in kinds}
