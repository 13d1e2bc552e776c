"""``python -m lab.runs.executors KIND --out DIR``: the event log of a run with special executors or stages.

    task-profile   a stage whose tasks request two cores of the executors that there are (a resource profile)
    profiles       a stage with executors of its own (a resource profile, with dynamic allocation)
    starved        the same on a cluster that is full with executors of the first stages
    barrier        a barrier stage
    decommission   an executor that is decommissioned, and copies its shuffle files to another one
    wide-…         task-profile and barrier on executors with twice the slots, to check predictions

They run on a standalone cluster of this machine: two workers of two slots, three for `starved`, four for
`profiles`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.runs import recorded
from lab.runs.cluster import Cluster, ClusterConfig, find_spark, spark_environment, start_cluster

TIMEOUT_S = 240
MEMORY_MB = 470

_ON_DEMAND = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "5s",
    "spark.dynamicAllocation.maxExecutors": "3",
}
_DECOMMISSION = {
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
    "spark.storage.decommission.rddBlocks.enabled": "true",
    "spark.storage.decommission.replicationReattemptInterval": "2s",
}
KINDS: dict[str, tuple[ClusterConfig, dict[str, str]]] = {
    "task-profile": (ClusterConfig(), {}),
    "profiles": (ClusterConfig(workers=4), _ON_DEMAND),
    "starved": (ClusterConfig(workers=3), _ON_DEMAND),
    "barrier": (ClusterConfig(), {}),
    "decommission": (ClusterConfig(), _DECOMMISSION),
    "wide-task-profile": (ClusterConfig(slots=4), {}),
    "wide-barrier": (ClusterConfig(slots=4), {}),
}
"""The cluster and the settings of each kind."""


def record(kind: str, out: Path) -> Path:
    """The log of a run of a kind.  Raises LabError if it fails."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    cluster, settings = KINDS[kind]
    with start_cluster(cluster, out / "cluster", out) as started:
        _submit(kind.removeprefix("wide-"), started, settings, out)
    logs = sorted((out / "logs").iterdir())
    if len(logs) != 1:
        raise LabError(f"{len(logs)} event logs instead of one in {out / 'logs'}; see {out / 'spark.txt'}.")
    return logs[0]


def _submit(job: str, cluster: Cluster, more: dict[str, str], out: Path) -> None:
    """Run a job on a cluster."""
    address = cluster.driver_node.address
    settings = more | {
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.executor.cores": str(cluster.config.slots),
        "spark.executor.memory": f"{MEMORY_MB}m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (out / "logs").as_uri(),
        "spark.ui.enabled": "false",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    submit = [str(find_spark() / "bin" / "spark-submit"), "--master", cluster.master_url, *words]
    program = Path(__file__).with_name("executors_job.py")
    environment = spark_environment() | {"SPARK_LOCAL_IP": address, "SPARK_LOCAL_DIRS": str(cluster.work / "driver")}
    with (out / "spark.txt").open("wb") as log:
        try:
            done = subprocess.run(
                cluster.driver_command([*submit, str(program), job]),
                env=environment, cwd=out, stdout=log, stderr=log, timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LabError(f"Spark did not end in {TIMEOUT_S} s; see {out / 'spark.txt'}.") from None
    if done.returncode:
        raise LabError(f"Spark ended with exit status {done.returncode}; see {out / 'spark.txt'}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    return recorded.run("lab.runs.executors", __doc__, KINDS, record, arguments)


if __name__ == "__main__":
    sys.exit(main())
