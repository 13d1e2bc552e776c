"""A Spark standalone cluster on one machine: a master and workers as processes, each worker a separate node."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.machine.disk import data_files, drop_pages, node_copy, warm_pages
from lab.machine.host import (
    SUBNET,
    Node,
    check_host,
    command_on,
    limit_rates,
    make_cgroups,
    shape_network,
    shared_machine,
    whole_disk,
)
from lab.runs import hdfs

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
DAEMON_MEMORY = "256m"
STORAGES = ("local", "hdfs")
_STORAGE_HOST = 200
_PACKAGE = "org.apache.spark.deploy"


@dataclass(frozen=True)
class ClusterConfig:
    """The parameters of a cluster.

    Attributes:
        workers: number of workers, one executor on each.
        slots: tasks that an executor runs at a time (``spark.executor.cores``).
        executor_memory_bytes: heap of an executor.
        slot_cpu_cores: CPU time per second of one slot; a worker gets ``slots`` times as much. None for no limit.
        node_memory_bytes: memory of a worker's node, page cache included; None for no limit.
        namespaces: whether each node has a separate network namespace.
        network_bps: rate of each worker's link in bits per second, in each direction; None for no limit.
        disk_bytes_per_s: rate at which each worker reads its own copy of the data, dropped from the page cache first;
            None leaves the data in the page cache.
        storage: ``local``, or ``hdfs`` for a storage node whose link has the rate of all workers' links together.
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
            raise LabError(f"A cluster of {self.workers} workers cannot be started; use 1 to 100.")
        if not 1 <= self.slots <= 256:
            raise LabError(f"{self.slots} task slots per executor are out of range; use 1 to 256.")
        if self.slot_cpu_cores is not None and not 0.05 <= self.slot_cpu_cores <= 64:
            raise LabError(f"A quota of {self.slot_cpu_cores} CPU cores per slot is out of range; use 0.05 to 64.")
        if self.executor_memory_bytes < 450 * 2**20:
            raise LabError("Spark refuses executors of less than 450 MiB; ask for more memory.")
        if self.network_bps is not None and not self.namespaces:
            raise LabError("A network rate needs network namespaces.")
        if self.storage not in STORAGES:
            raise LabError(f"There is no storage '{self.storage}'; choose one of {', '.join(STORAGES)}.")
        if self.storage == "hdfs" and not self.namespaces:
            raise LabError("A storage node needs network namespaces; give a --network rate, or 'unlimited'.")
        if self.disk_bytes_per_s is not None and self.storage != "local":
            raise LabError("A disk rate applies only to workers with local data; use it with --storage local.")
        if self.disk_bytes_per_s is not None and self.disk_bytes_per_s < 10**5:
            raise LabError("A disk rate must be at least 0.1 MB/s.")


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the address of its master, and the command to start a driver."""

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
        """The command that runs a driver on the driver's node, which has no limits."""
        return command_on(self.driver_node, command, in_namespace=self.config.namespaces, cgroups=self.driver_cgroups)

    def begin(self) -> None:
        """Apply all limits, and load the input into the page cache or drop it: the measurement begins now.

        JVMs start and warm up without limits, because that is not part of the measurement.
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

    Without namespaces every node still has a separate address in 127.0.0.0/8, because executors with the same address
    read each other's shuffle files from disk instead of over the network.
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
    """The storage node: its link is not slower than the workers' links together, and its CPU has no limit."""
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


def spark_environment() -> dict[str, str]:
    """The environment of Spark's programs: Java, Spark, and this Python for its workers.  Raises LabError."""
    return os.environ | {
        "JAVA_HOME": str(find_java().resolve().parent.parent),
        "SPARK_HOME": str(find_spark()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def find_spark() -> Path:
    """The folder of the installed pyspark, which contains all of Spark (``jars/``, ``bin/``)."""
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
    """Wait for ``count`` matching lines of a log; returns the last one."""
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
    """Start a process in a separate session; its output goes to `log`, at its end if it `appends`."""
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
    """Terminate processes, and kill them after ``STOP_TIMEOUT_S``."""
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


@dataclass
class _Starter:
    """Starts the processes of one cluster; `processes` are those started so far."""

    config: ClusterConfig
    java: Path
    spark: Path
    logs: Path
    work: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(
        self,
        node: Node,
        name: str,
        cgroups: Sequence[Path],
        command: Sequence[str],
        copy: tuple[Path, Path] | None = None,
    ) -> tuple[Path, subprocess.Popen[bytes]]:
        """The log of a process on a node, and the process; `copy` is its own copy of the data and where it sees it."""
        log = self.logs / f"{name}.log"
        whole = command_on(node, command, in_namespace=self.config.namespaces, cgroups=cgroups, own_copy=copy)
        environment = os.environ | {
            "SPARK_HOME": str(self.spark),
            "JAVA_HOME": str(self.java.resolve().parent.parent),
            "SPARK_SCALA_VERSION": "2.13",  # otherwise the worker searches for a source build to start executors from
            "SPARK_LOCAL_IP": node.address,
            "SPARK_LOCAL_DIRS": str(self.work / node.name / "local"),
        }
        self.processes.append(spawn(whole, log, environment))
        return log, self.processes[-1]

    def master(self, driver: Node, cgroups: Sequence[Path]) -> tuple[str, Path, subprocess.Popen[bytes]]:
        """The address of a master, its log and its process."""
        listen = ["--host", driver.address, "--port", "0", "--webui-port", "0"]
        command = daemon_command(self.java, self.spark, f"{_PACKAGE}.master.Master", listen)
        log, process = self.start(driver, "master", cgroups, command)
        return _wait_for_line(log, r"Starting Spark master at (spark://[0-9.]+:[0-9]+)", 1, process), log, process

    def worker(self, node: Node, url: str, copy: tuple[Path, Path] | None) -> None:
        """A worker, which offers exactly the resources of one executor; all workers start at the same time."""
        memory_mb = self.config.executor_memory_bytes // 2**20 + 64
        listen = ["--host", node.address, "--port", "0", "--webui-port", "0", "--cores", str(self.config.slots)]
        offer = ["--memory", f"{memory_mb}m", "--work-dir", str(self.work / node.name), url]
        command = daemon_command(self.java, self.spark, f"{_PACKAGE}.worker.Worker", [*listen, *offer])
        self.start(node, f"worker-{node.name}", make_cgroups(node), command, copy)

    def storage(self, node: Node, cgroups: Sequence[Path], store: Path) -> tuple[Path, subprocess.Popen[bytes]]:
        """HDFS on a node: the NameNode's log and process."""
        configuration = self.work / "hdfs"
        hdfs.write_configuration(configuration, store, node.address)
        hdfs.format_store(self.java, self.spark, configuration, store)
        found = [
            self.start(node, name, cgroups, hdfs.hadoop_command(self.java, self.spark, configuration, class_name))
            for name, class_name in (("namenode", hdfs.NAMENODE), ("datanode", hdfs.DATANODE))
        ]
        return found[0]

    def fill(self, node: Node, cgroups: Sequence[Path], store: Path, data: Path, names: Sequence[str]) -> None:
        """Copy missing files to HDFS."""
        if missing := hdfs.missing(store, names):
            command = hdfs.fill_command(self.java, self.spark, self.work / "hdfs", data, missing)
            hdfs.fill(command_on(node, command, in_namespace=True, cgroups=cgroups), store, missing)


@contextlib.contextmanager
def start_cluster(config: ClusterConfig, folder: Path, data: Path, names: Sequence[str] = ()) -> Iterator[Cluster]:
    """A running cluster with its logs and work folders in ``folder``; it stops at the end of the block.

    ``names`` are the files or folders of the data set ``data`` that the workload reads. Raises LabError if the machine
    cannot run it, or if Spark does not start in time. Leftovers of an earlier, killed run are removed first.
    """
    limited = not {config.slot_cpu_cores, config.node_memory_bytes, config.disk_bytes_per_s} <= {None}
    check_host(namespaces=config.namespaces, limits=limited)
    driver, workers = cluster_nodes(config)
    storage = storage_node(config) if config.storage == "hdfs" else None
    starter = _Starter(config, find_java(), find_spark(), folder / "logs", folder / "work")
    for path in (starter.logs, starter.work):
        path.mkdir(parents=True, exist_ok=True)
    store = hdfs.store_folder(data)
    if storage is not None:
        hdfs.fetch_hdfs(starter.spark)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, starter.work, ignore_errors=True)
        shaped = [*workers, *([storage] if storage else [])] if config.namespaces else []
        stack.enter_context(shared_machine([driver, *shaped] if config.namespaces else []))
        driver_cgroups = make_cgroups(driver)
        stack.callback(lambda: stop_processes(starter.processes[::-1]))
        input_files = data_files(data / name for name in names)
        if storage is not None:
            storage_cgroups = make_cgroups(storage)
            name_log, name_node = starter.storage(storage, storage_cgroups, store)
        url, master_log, master = starter.master(driver, driver_cgroups)
        for node in workers:
            copy = None
            if config.disk_bytes_per_s is not None:
                copy = (node_copy(data, names, node.name), data)
                input_files += data_files(copy[0] / name for name in names)
            starter.worker(node, url, copy)
        if storage is not None:
            _wait_for_line(name_log, hdfs.READY, 1, name_node)
        _wait_for_line(master_log, r"Registering worker", config.workers, master)
        data_url = str(data)
        if storage is not None:
            starter.fill(storage, storage_cgroups, store, data, names)
            data_url, input_files = f"hdfs://{storage.address}:{hdfs.PORT}", data_files([store / "data"])
        yield Cluster(
            config, url, driver, driver_cgroups, workers, shaped, data_url, input_files, starter.logs, starter.work
        )
