"""Locality of input: on the machine's own disks, in worker memory, or over the network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import duckdb

Reach = Literal["net", "replicas", "local", "memory"]
"""net: always over the network; replicas: local if the unit ran on a machine with a replica; local: this machine's
disks; memory: data that workers cached."""

KEPT = "memory:"
"""The root of data cached in worker memory."""

REPLICATED = ("hdfs", "viewfs", "maprfs", "webhdfs", "swebhdfs", "ofs", "o3fs")
"""Schemes of file systems that replicate blocks on several machines and report the locations."""

_LOCAL = ("file", "local")

FAR = ("rack", "any")
"""Values of `units.data_at` for units that ran on another machine than their data."""


def reach(root: str) -> Reach:
    """The reach of a file system; an unknown scheme counts as a network service, as nearly all are."""
    scheme = root.partition(":")[0]
    if root == KEPT:
        return "memory"
    return "local" if scheme in _LOCAL else "replicas" if scheme in REPLICATED else "net"


IN_WORKER = "worker"
"""Value of `units.data_at` for units that ran in the process that holds their data."""


def reaches(connection: duckdb.DuckDBPyConnection) -> dict[str, set[Reach]]:
    """The reaches of the inputs of each group that has inputs."""
    groups: dict[str, set[Reach]] = {}
    for group_id, root in connection.execute("SELECT group_id, root FROM group_inputs").fetchall():
        groups.setdefault(group_id, set()).add(reach(root))
    return groups


def far_groups(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The groups that read no local files, and whether each unit's locality decides if its input was remote.

    `inputs` are reaches().  A group that also reads local files is left out: the log does not say which file a unit
    read.  Cached data are remote for units that ran in another worker; in a group that also reads files, the units
    that found cached data (kept_groups) read locally.
    """
    files = {group_id: kinds - {"memory"} for group_id, kinds in inputs.items()}
    return {group_id: kinds != {"net"} for group_id, kinds in files.items() if "local" not in kinds}


def kept_groups(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The groups that read cached data, and whether only their units with IN_WORKER locality did.

    The other units of such a group read files, because memory capacity did not suffice for the cache.  `inputs` are
    reaches().
    """
    return {group_id: len(kinds) > 1 for group_id, kinds in inputs.items() if "memory" in kinds}
