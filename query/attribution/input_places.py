"""Where input lies: on this machine's disks or, over the network, on somebody else's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import duckdb

Reach = Literal["net", "replicas", "local", "memory"]
"""net: always over the network; replicas: local where a unit ran beside a replica; local: this machine's disks;
memory: of the workers, which kept what they had read or computed before."""

KEPT = "memory:"
"""The root of what workers kept in memory."""

REPLICATED = ("hdfs", "viewfs", "maprfs", "webhdfs", "swebhdfs", "ofs", "o3fs")
"""Schemes of file systems that keep blocks on several machines and tell on which."""

_LOCAL = ("file", "local")

FAR = ("rack", "any")
"""How far from their worker the data of units were that ran on another machine than these (`units.data_at`)."""


def reach(root: str) -> Reach:
    """How far a file system is; one that is not known is a service somewhere, as nearly all are."""
    scheme = root.partition(":")[0]
    if root == KEPT:
        return "memory"
    return "local" if scheme in _LOCAL else "replicas" if scheme in REPLICATED else "net"


IN_WORKER = "worker"
"""Where the data of units were that ran in the process that holds them."""


def reaches(connection: duckdb.DuckDBPyConnection) -> dict[str, set[Reach]]:
    """How far the inputs of each group are that has some."""
    groups: dict[str, set[Reach]] = {}
    for group_id, root in connection.execute("SELECT group_id, root FROM group_inputs").fetchall():
        groups.setdefault(group_id, set()).add(reach(root))
    return groups


def far_groups(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The groups that read no local files, and whether it is each unit's place that says if its input was far.

    `inputs` are reaches().  A group that also reads local files is left out: nothing tells which file a unit read.
    What workers kept is far of the units that ran elsewhere; of a group that reads files beside it, the units that
    found it (kept_groups) were not.
    """
    files = {group_id: kinds - {"memory"} for group_id, kinds in inputs.items()}
    return {group_id: kinds != {"net"} for group_id, kinds in files.items() if "local" not in kinds}


def kept_groups(inputs: Mapping[str, set[Reach]]) -> dict[str, bool]:
    """The groups that read what workers kept in memory, and whether only those of their units did that ran in the
    process that kept it (IN_WORKER); the others read files, for what was to be kept had no room.

    `inputs` are reaches().
    """
    return {group_id: len(kinds) > 1 for group_id, kinds in inputs.items() if "memory" in kinds}
