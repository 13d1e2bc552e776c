"""A Spark standalone cluster on one machine: a master and workers as processes, each worker a node of its own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.machine.disk import data_files, drop_pages, node_copy, warm_pages
from lab.machine.host import (
    SUBNET,
    Node,
    borrowed_machine,
    check_host,
    command_on,
    limit_rates,
    make_cgroups,
    shape_network,
    whole_disk,
)
from lab.runs import hdfs

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
DAEMON_MEMORY = "256m"
STORAGES = ("local", "hdfs")
_STORAGE_HOST = 200


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
        disk_bytes_per_s: rate at which each worker reads its own copy of the data, dropped from the page cache first;
            None leaves the data in the page cache.
        storage: ``local``, or ``hdfs`` for a storage node whose cable is as wide as all workers' together.
    """

    workers: int = 2
    slots: int = 2
    executor_memory_bytes: int = 2**30
    slot_cpu_cores: float | None = None
    node_memory_bytes: int | None = None
    namespaces: bool = False
    network_bps: int | None = None
    disk_bytes_per_s: int | None = None
    storage: str = "local"

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
        if self.storage not in STORAGES:
            raise LabError(f"There is no storage '{self.storage}'; choose one of {', '.join(STORAGES)}.")
        if self.storage == "hdfs" and not self.namespaces:
            raise LabError("A storage node needs network namespaces; give a --network rate, or 'unlimited'.")
        if self.disk_bytes_per_s is not None and self.storage != "local":
            raise LabError("A disk rate is that of workers that read their own disk; use it with --storage local.")
        if self.disk_bytes_per_s is not None and self.disk_bytes_per_s < 10**5:
            raise LabError("A disk of less than 0.1 MB/s makes no sense; ask for more.")


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs: where its master listens, and how to start a driver beside it."""

    config: ClusterConfig
    master_url: str
    driver_node: Node
    driver_cgroups: list[Path]
    workers: list[Node]
    shaped: list[Node]
    data_url: str
    input_files: list[Path]
    logs: Path
    work: Path

    def driver_command(self, command: Sequence[str]) -> list[str]:
        """The command that runs a driver on the driver's (never shaped) node."""
        return command_on(self.driver_node, command, in_namespace=self.config.namespaces, cgroups=self.driver_cgroups)

    def begin(self) -> None:
        """Put all rates in force, and the input in or out of the page cache: what is measured begins now.

        JVMs start and warm up at full speed, since that is no part of what is measured.
        """
        disk = None
        if self.config.disk_bytes_per_s is None:
            warm_pages(self.input_files)
        else:
            drop_pages(self.input_files)
            disk = whole_disk(self.input_files[0])
        shape_network(self.shaped)
        for node in self.workers:
            limit_rates(node, disk)


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
        Node(
            name=f"w{i}",
            address=f"{base}.{first + i}",
            rate_bps=config.network_bps,
            cpu_cores=cpu,
            memory_bytes=config.node_memory_bytes,
            protected=protected,
            disk_bytes_per_s=config.disk_bytes_per_s,
        )
        for i in range(1, config.workers + 1)
    ]
    return driver, workers


def storage_node(config: ClusterConfig) -> Node:
    """The storage node: its cable is no bottleneck before the workers' cables are, its CPU is not limited."""
    rate_bps = None if config.network_bps is None else config.network_bps * config.workers
    return Node("storage", f"{SUBNET}.{_STORAGE_HOST}", rate_bps, protected=config.slot_cpu_cores is not None)


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
    flags = [f"-Xmx{DAEMON_MEMORY}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [str(java), "-cp", f"{spark}/jars/*", *flags, class_name, *arguments]


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


def spawn(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
    *,
    appends: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own; what it prints goes to `log`, behind what is there if it `appends`."""
    with log.open("ab" if appends else "wb") as stream:
        return subprocess.Popen(
            command,
            stdout=stream,
            stderr=stream,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )


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
def start_cluster(config: ClusterConfig, folder: Path, data: Path, names: Sequence[str] = ()) -> Iterator[Cluster]:
    """A running cluster, whose logs and work folders lie in ``folder``; gone again when the block is left.

    ``names`` are the files or folders of the data set ``data`` that the workload reads. Raises LabError where the
    machine cannot do it or Spark does not start in time. What an earlier, killed run left behind is removed first.
    """
    limited = not {config.slot_cpu_cores, config.node_memory_bytes, config.disk_bytes_per_s} <= {None}
    check_host(namespaces=config.namespaces, limits=limited)
    java, spark = find_java(), find_spark()
    driver, workers = cluster_nodes(config)
    storage = storage_node(config) if config.storage == "hdfs" else None
    logs, work = folder / "logs", folder / "work"
    for path in (logs, work):
        path.mkdir(parents=True, exist_ok=True)
    store = hdfs.store_folder(data)
    if storage is not None:
        hdfs.fetch_hdfs(spark)

    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, work, ignore_errors=True)
        shaped = [*workers, *([storage] if storage else [])] if config.namespaces else []
        stack.enter_context(borrowed_machine([driver, *shaped] if config.namespaces else []))
        driver_cgroups = make_cgroups(driver)
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(lambda: stop_processes(processes[::-1]))

        def start(
            node: Node,
            name: str,
            cgroups: Sequence[Path],
            command: Sequence[str],
            copy: tuple[Path, Path] | None = None,
        ) -> tuple[Path, subprocess.Popen[bytes]]:
            log = logs / f"{name}.log"
            whole = command_on(node, command, in_namespace=config.namespaces, cgroups=cgroups, own_copy=copy)
            environment = os.environ | {
                "SPARK_HOME": str(spark),
                "JAVA_HOME": str(java.resolve().parent.parent),
                "SPARK_SCALA_VERSION": "2.13",  # else the worker looks for a source build to start executors from
                "SPARK_LOCAL_IP": node.address,
                "SPARK_LOCAL_DIRS": str(work / node.name / "local"),
            }
            process = spawn(whole, log, environment)
            processes.append(process)
            return log, process

        input_files = data_files(data / name for name in names)
        data_url, configuration, storage_cgroups = str(data), work / "hdfs", []
        waits: list[tuple[Path, str, int, subprocess.Popen[bytes]]] = []
        if storage is not None:
            storage_cgroups = make_cgroups(storage)
            hdfs.write_configuration(configuration, store, storage.address)
            hdfs.format_store(java, spark, configuration, store)
            data_url = f"hdfs://{storage.address}:{hdfs.PORT}"
            for name, class_name in (("namenode", hdfs.NAMENODE), ("datanode", hdfs.DATANODE)):
                command = hdfs.hadoop_command(java, spark, configuration, class_name)
                log, process = start(storage, name, storage_cgroups, command)
                if name == "namenode":
                    waits.append((log, hdfs.READY, 1, process))

        package = "org.apache.spark.deploy"
        listen = ["--host", driver.address, "--port", "0", "--webui-port", "0"]
        master = daemon_command(java, spark, f"{package}.master.Master", listen)
        master_log, master_process = start(driver, "master", driver_cgroups, master)
        url = _wait_for_line(master_log, r"Starting Spark master at (spark://[0-9.]+:[0-9]+)", 1, master_process)
        # A worker offers what its executor asks for, and no more: one executor on each, all started at once.
        memory_mb = config.executor_memory_bytes // 2**20 + 64
        for node in workers:
            copy = None
            if config.disk_bytes_per_s is not None:
                copy = (node_copy(data, names, node.name), data)
                input_files += data_files(copy[0] / name for name in names)
            listen = ["--host", node.address, "--port", "0", "--webui-port", "0", "--cores", str(config.slots)]
            offer = ["--memory", f"{memory_mb}m", "--work-dir", str(work / node.name), url]
            worker = daemon_command(java, spark, f"{package}.worker.Worker", [*listen, *offer])
            start(node, f"worker-{node.name}", make_cgroups(node), worker, copy)
        waits.append((master_log, r"Registering worker", config.workers, master_process))
        for wait in waits:
            _wait_for_line(*wait)
        if storage is not None:
            if missing := hdfs.missing(store, names):
                command = hdfs.fill_command(java, spark, configuration, data, missing)
                hdfs.fill(command_on(storage, command, in_namespace=True, cgroups=storage_cgroups), store, missing)
            input_files = data_files([store / "data"])
        yield Cluster(config, url, driver, driver_cgroups, workers, shaped, data_url, input_files, logs, work)
