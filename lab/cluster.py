"""A Spark standalone cluster on one machine: a master and workers as processes, each worker a node of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.host import (
    SUBNET,
    LabError,
    Node,
    build_network,
    check_host,
    command_on,
    machine_lock,
    make_cgroups,
    remove_borrowed,
)

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
DAEMON_MEMORY = "256m"


@dataclass(frozen=True)
class ClusterConfig:
    """The knobs of a cluster.

    Attributes:
        workers: number of workers, one executor on each.
        slots: tasks that an executor runs at a time (``spark.executor.cores``).
        executor_memory_bytes: heap of an executor.
        slot_cpu_cores: CPU time per second that one slot stands for; a worker gets ``slots`` times as much.
            None leaves the workers all of the machine's cores.
        node_memory_bytes: memory of a worker's node, page cache included; None for no limit.
        namespaces: whether each node has a network namespace of its own.
        network_bps: rate of each worker's cable in bits per second, in each direction; None leaves it unshaped.
    """

    workers: int = 2
    slots: int = 2
    executor_memory_bytes: int = 2**30
    slot_cpu_cores: float | None = None
    node_memory_bytes: int | None = None
    namespaces: bool = False
    network_bps: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= 100:
            raise LabError(f"A cluster of {self.workers} workers cannot be started; ask for 1 to 100.")
        if not 1 <= self.slots <= 256:
            raise LabError(f"{self.slots} task slots per executor make no sense; ask for 1 to 256.")
        if self.slot_cpu_cores is not None and not 0.05 <= self.slot_cpu_cores <= 64:
            raise LabError(f"A quota of {self.slot_cpu_cores} CPU cores per slot makes no sense; ask for 0.05 to 64.")
        if self.executor_memory_bytes < 450 * 2**20:
            raise LabError("Spark refuses executors of less than 450 MiB; ask for more memory.")
        if self.network_bps is not None and not self.namespaces:
            raise LabError("A shaped network needs network namespaces.")


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs: where its master listens, and how to start a driver beside it."""

    config: ClusterConfig
    master_url: str
    driver_node: Node
    driver_cgroups: list[Path]
    logs: Path
    work: Path

    def driver_command(self, command: Sequence[str]) -> list[str]:
        """The command that runs a driver on the driver's (never shaped) node."""
        return command_on(self.driver_node, command, in_namespace=self.config.namespaces, cgroups=self.driver_cgroups)


def cluster_nodes(config: ClusterConfig) -> tuple[Node, list[Node]]:
    """The driver's node (with the master on it) and the workers' nodes.

    Without namespaces every node still has an address of its own in 127.0.0.0/8, since executors that share an
    address read each other's shuffle files from disk and leave the network out.
    """
    base, first = (SUBNET, 2) if config.namespaces else ("127.0.77", 2)
    protected = config.slot_cpu_cores is not None
    driver = Node("driver", f"{base}.{first}", protected=protected)
    cpu = None if config.slot_cpu_cores is None else config.slot_cpu_cores * config.slots
    workers = [
        Node(f"w{i}", f"{base}.{first + i}", config.network_bps, cpu, config.node_memory_bytes, protected)
        for i in range(1, config.workers + 1)
    ]
    return driver, workers


def find_java() -> Path:
    """The JVM that starts Spark: ``$JAVA_HOME/bin/java``, else the one on the path; JDK 17 or later."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None)
    if found is None:
        raise LabError("Spark 4 needs Java 17; install it with 'apt-get install openjdk-17-jre-headless'.")
    done = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r'version "(\d+)', done.stderr)
    if match is None or int(match[1]) < 17:
        raise LabError(f"Spark 4 needs Java 17 or later, and {found} is older; set JAVA_HOME to a newer one.")
    return Path(found)


def find_spark() -> Path:
    """The folder of the installed pyspark, which carries all of Spark (``jars/``, ``bin/``)."""
    try:
        import pyspark
    except ImportError:
        raise LabError("The lab needs pyspark; install it with 'pip install pyspark==4.0.1'.") from None
    return Path(pyspark.__file__).parent


def daemon_command(java: Path, spark: Path, class_name: str, arguments: Sequence[str]) -> list[str]:
    """The command of a master or worker daemon, started without the shell scripts that would detach it."""
    return [str(java), "-cp", f"{spark}/jars/*", f"-Xmx{DAEMON_MEMORY}", "-XX:+UseSerialGC", class_name, *arguments]


def _wait_for_line(log: Path, pattern: str, count: int, process: subprocess.Popen[bytes]) -> str:
    """The last of ``count`` lines of a log that match, once they are there."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        found = re.findall(pattern, log.read_text(errors="replace"))
        if len(found) >= count:
            return str(found[count - 1])
        if process.poll() is not None:
            raise LabError(f"A Spark daemon ended while starting; its log is {log}.")
        if time.monotonic() > deadline:
            raise LabError(f"Spark's cluster did not start within {START_TIMEOUT_S:.0f} s; see {log}.")
        time.sleep(0.1)


def stop_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, then make them; bounded by ``STOP_TIMEOUT_S``."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)


@contextlib.contextmanager
def start_cluster(config: ClusterConfig, folder: Path) -> Iterator[Cluster]:
    """A running cluster, whose logs and work folders lie in ``folder``; gone again when the block is left.

    Raises LabError where the machine cannot do it or Spark does not start in time. What an earlier, killed run left
    behind is removed first.
    """
    limited = config.slot_cpu_cores is not None or config.node_memory_bytes is not None
    check_host(namespaces=config.namespaces, limits=limited)
    java, spark = find_java(), find_spark()
    driver, workers = cluster_nodes(config)
    logs, work = folder / "logs", folder / "work"
    for path in (logs, work):
        path.mkdir(parents=True, exist_ok=True)

    with contextlib.ExitStack() as stack:
        stack.enter_context(machine_lock())
        if left := remove_borrowed():
            print(f"removed what an earlier run left: {', '.join(left)}", file=sys.stderr)
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        stack.callback(remove_borrowed)
        if config.namespaces:
            build_network([driver, *workers])

        driver_cgroups = make_cgroups(driver)

        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(lambda: stop_processes(processes[::-1]))

        def start(node: Node, name: str, cgroups: Sequence[Path], class_name: str, arguments: Sequence[str]) -> Path:
            log = logs / f"{name}.log"
            command = command_on(
                node,
                daemon_command(java, spark, class_name, arguments),
                in_namespace=config.namespaces,
                cgroups=cgroups,
            )
            environment = os.environ | {
                "SPARK_HOME": str(spark),
                "JAVA_HOME": str(java.resolve().parent.parent),
                "SPARK_SCALA_VERSION": "2.13",  # else the worker looks for a source build to start executors from
                "SPARK_LOCAL_IP": node.address,
                "SPARK_LOCAL_DIRS": str(work / node.name / "local"),
            }
            with log.open("wb") as stream:
                processes.append(
                    subprocess.Popen(
                        command,
                        stdout=stream,
                        stderr=stream,
                        stdin=subprocess.DEVNULL,
                        env=environment,
                        start_new_session=True,
                    )
                )
            return log

        package = "org.apache.spark.deploy"
        master_log = start(
            driver,
            "master",
            driver_cgroups,
            f"{package}.master.Master",
            ["--host", driver.address, "--port", "0", "--webui-port", "0"],
        )
        url = _wait_for_line(master_log, r"Starting Spark master at (spark://[0-9.]+:[0-9]+)", 1, processes[0])
        # A worker offers what its executor asks for, and no more: one executor on each, all started at once.
        memory_mb = config.executor_memory_bytes // 2**20 + 64
        for node in workers:
            start(
                node,
                f"worker-{node.name}",
                make_cgroups(node),
                f"{package}.worker.Worker",
                [
                    "--host",
                    node.address,
                    "--port",
                    "0",
                    "--webui-port",
                    "0",
                    "--cores",
                    str(config.slots),
                    "--memory",
                    f"{memory_mb}m",
                    "--work-dir",
                    str(work / node.name),
                    url,
                ],
            )
        _wait_for_line(master_log, r"Registering worker", config.workers, processes[0])
        yield Cluster(config, url, driver, driver_cgroups, logs, work)
