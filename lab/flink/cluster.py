"""A Flink session cluster on one machine: a JobManager and TaskManagers, each a separate JVM and node.

HOME is a distribution of Flink with its `lib` folder, such as the folder `deps` of the package apache-flink-libraries.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crystalperf.query.recordings.flags import jfr_flag
from lab.errors import LabError
from lab.machine.host import (
    SUBNET,
    Node,
    check_host,
    command_on,
    limit_rates,
    make_cgroups,
    shape_network,
    shared_machine,
)
from lab.runs.cluster import find_java, spawn, stop_processes

PORT = 8081
START_TIMEOUT_S = 180.0
_MIB = 2**20

# JVM options of bin/flink-daemon.sh for Java 17 and later.
_EXPORTS = ("java.base/sun.net.util", "java.rmi/sun.rmi.registry")
_OPENS = tuple(
    f"java.base/{package}"
    for package in (
        "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text", "java.time",
        "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
    )
)  # fmt: skip

_LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.name = out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
"""


_SINKS = (
    "org.apache.flink.streaming.api.functions.sink."  # the package in Flink 1 of classes that Flink 2 has in `legacy`
)


@dataclass(frozen=True)
class FlinkConfig:
    """The parameters of a cluster.

    Attributes:
        task_managers: number of TaskManagers, each a separate node.
        slots: slots of each.
        cpu_cores: CPU time per second of each TaskManager; None for no limit.
        network_bps: rate of each TaskManager's link in bits per second, in each direction; None for no limit.
        namespaces: whether each node has a separate network namespace.
        recorded: whether TaskManagers write flight recordings.
    """

    task_managers: int = 2
    slots: int = 2
    cpu_cores: float | None = None
    network_bps: int | None = None
    namespaces: bool = False
    recorded: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.task_managers <= 16 or not 1 <= self.slots <= 64:
            raise LabError("A cluster has 1 to 16 TaskManagers of 1 to 64 slots.")
        if self.network_bps is not None and not self.namespaces:
            raise LabError("A shaped network needs network namespaces.")


@dataclass(frozen=True)
class FlinkCluster:
    """A running cluster.

    `jobs` is the class path of the lab's own jobs; `processes` are the TaskManagers' processes by name.
    """

    config: FlinkConfig
    home: Path
    out: Path
    jobs: Path
    node: Node
    workers: tuple[Node, ...]
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def host(self) -> str:
        return self.node.address

    @property
    def address(self) -> str:
        return f"http://{self.host}:{PORT}"

    def compared(self, command: Sequence[str]) -> list[str]:
        """The command line for a program on the JobManager's node, which has no limits."""
        return command_on(self.node, command, in_namespace=self.config.namespaces, cgroups=[])

    def client(self, main: Sequence[str]) -> list[str]:
        """The command of a client that submits a job of the lab."""
        return self.compared(_java(self.home, self.jobs, self.out, ["-Xmx256m", "-XX:TieredStopAtLevel=1"], main))

    def asked(self, page: str) -> dict[str, object]:
        """A response of the JobManager; empty if it does not respond."""
        program = "import sys,urllib.request as u;sys.stdout.write(u.urlopen(sys.argv[1],timeout=30).read().decode())"
        done = subprocess.run(
            self.compared([sys.executable, "-c", program, self.address + page]), capture_output=True, check=False
        )
        try:
            found: dict[str, object] = json.loads(done.stdout)
        except ValueError:
            return {}
        return found

    def begin(self) -> None:
        """Apply all limits: the measurement begins now."""
        shape_network(self.workers if self.config.namespaces else [])
        for node in self.workers:
            limit_rates(node)


def compile_jobs(home: Path, folder: Path) -> Path:
    """The class path of the lab's own jobs, compiled against a distribution.  Raises LabError."""
    dist = next((home / "lib").glob("flink-dist-*.jar"), None)
    if dist is None:
        raise LabError(f"{home}: no lib/flink-dist-*.jar; give a distribution of Flink")
    compiler = shutil.which("javac")
    if compiler is None:
        raise LabError("The lab needs javac; install a JDK of Java 17, such as openjdk-17-jdk-headless.")
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for each in sorted(Path(__file__).parent.glob("*.java")):
        text = each.read_text(encoding="utf-8")
        if dist.name.removeprefix("flink-dist-").startswith("2."):
            text = text.replace(_SINKS, f"{_SINKS}legacy.")
        sources.append(str(folder / each.name))
        Path(sources[-1]).write_text(text, encoding="utf-8")
    command = [compiler, "-nowarn", "-cp", f"{home / 'lib'}/*", "-d", str(folder), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"The lab's jobs do not compile against {home}: {done.stderr.strip()[:500]}")
    return folder


def cluster_nodes(config: FlinkConfig) -> tuple[Node, tuple[Node, ...]]:
    """The nodes of the JobManager and the TaskManagers, each with a separate address."""
    base = SUBNET if config.namespaces else "127.0.77"
    limited = config.cpu_cores is not None
    workers = tuple(
        Node(f"tm{number}", f"{base}.{2 + number}", config.network_bps, config.cpu_cores, protected=limited)
        for number in range(1, config.task_managers + 1)
    )
    return Node("jm", f"{base}.2", protected=limited), workers


def configuration(config: FlinkConfig, out: Path, host: str) -> str:
    """config.yaml of the cluster, with timeouts for a busy machine."""
    return "\n".join(
        [
            f"jobmanager.rpc.address: {host}",
            f"jobmanager.bind-host: {host}",
            "jobmanager.memory.process.size: 1024m",
            f"jobmanager.archive.fs.dir: file://{out / 'archive'}",
            f"taskmanager.numberOfTaskSlots: {config.slots}",
            "taskmanager.load-balance.mode: slots",
            f"rest.port: {PORT}",
            f"rest.address: {host}",
            f"rest.bind-address: {host}",
            "rest.flamegraph.enabled: true",
            "metrics.fetcher.update-interval: 1000",
            f"io.tmp.dirs: {out / 'tmp'}",
            "pekko.startup-timeout: 180s",
            "pekko.ask.timeout: 180s",
            "heartbeat.timeout: 300000",
            "slot.request.timeout: 300000",
            "",
        ]
    )


def task_manager_memory() -> list[str]:
    """The memory of a TaskManager as bin/taskmanager.sh computes it, 1.2 GiB in total."""
    sizes = {
        "task.heap.size": 384, "task.off-heap.size": 0, "network.min": 64, "network.max": 64, "managed.size": 256,
        "framework.heap.size": 128, "framework.off-heap.size": 128, "jvm-metaspace.size": 192,
        "jvm-overhead.min": 192, "jvm-overhead.max": 192,
    }  # fmt: skip
    return [part for name, mib in sizes.items() for part in ("-D", f"taskmanager.memory.{name}={mib * _MIB}b")]


def _java(home: Path, jobs: Path, out: Path, flags: Sequence[str], main: Sequence[str]) -> list[str]:
    """A JVM with Flink's class path and the lab's own jobs."""
    modules = [f"--add-exports={each}=ALL-UNNAMED" for each in _EXPORTS]
    modules += [f"--add-opens={each}=ALL-UNNAMED" for each in _OPENS]
    logging = f"-Dlog4j.configurationFile={out / 'conf/log4j.properties'}"
    return [str(find_java()), *modules, *flags, logging, "-cp", f"{jobs}:{home / 'lib'}/*", *main]


@contextlib.contextmanager
def start_cluster(config: FlinkConfig, home: Path, jobs: Path, out: Path) -> Iterator[FlinkCluster]:
    """A session cluster with all its slots, its logs and recordings in `out`; it stops at the end of the block.

    Raises LabError if the machine cannot run it, or if the cluster does not start in time.
    """
    out = out.absolute()
    check_host(namespaces=config.namespaces, limits=config.cpu_cores is not None)
    for name in ("conf", "archive", "recordings", "tmp", "logs"):
        (out / name).mkdir(parents=True, exist_ok=True)
    node, workers = cluster_nodes(config)
    (out / "conf/config.yaml").write_text(configuration(config, out, node.address), encoding="ascii")
    (out / "conf/log4j.properties").write_text(_LOGGING, encoding="ascii")
    with contextlib.ExitStack() as stack:
        stack.enter_context(shared_machine([node, *workers] if config.namespaces else []))
        processes: dict[str, subprocess.Popen[bytes]] = {}
        stack.callback(lambda: stop_processes(list(processes.values())[::-1]))

        def start(where: Node, name: str, flags: Sequence[str], main: Sequence[str]) -> None:
            command = _java(home, jobs, out, flags, main)
            cgroups = make_cgroups(where)
            whole = command_on(where, command, in_namespace=config.namespaces, cgroups=cgroups)
            processes[name] = spawn(whole, out / f"logs/{name}.log", dict(os.environ))

        main = ["org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"]
        start(node, "jobmanager", ["-Xmx448m"], [*main, "--configDir", str(out / "conf")])
        for each in workers:
            flags = ["-Xmx512m", "-XX:MaxDirectMemorySize=400m"]
            if config.recorded:
                flags += jfr_flag(f"{out}/recordings/taskmanager-{each.name}.jfr").split()
            main = ["org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "--configDir", str(out / "conf")]
            for key, value in (
                ("taskmanager.resource-id", each.name),
                ("taskmanager.cpu.cores", str(config.cpu_cores or config.slots)),
                ("taskmanager.host", each.address),
                ("taskmanager.bind-host", each.address),
            ):
                main += ["-D", f"{key}={value}"]
            start(each, each.name, flags, [*main, *task_manager_memory()])
        managers = {name: process for name, process in processes.items() if name != "jobmanager"}
        cluster = FlinkCluster(config, home, out, jobs, node, workers, managers)
        wanted = config.slots * config.task_managers
        wait_for(lambda: cluster.asked("/overview").get("slots-available") == wanted, f"{wanted} slots")
        yield cluster


def wait_for(done: Callable[[], bool], what: str, timeout_s: float = START_TIMEOUT_S) -> None:
    """Wait until it is done.  Raises LabError after the timeout."""
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > until:
            raise LabError(f"Flink: no {what} within {timeout_s:.0f} s; its logs say why")
        time.sleep(0.5)
