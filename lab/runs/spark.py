"""One controlled run of real Spark: ``python -m lab.runs.spark --query q9 --network 100Mbps --out DIR``.

It starts a cluster, runs the workload from a driver, and stores in DIR what a user would have recorded (event log, one
recording per JVM), the logs, and ``run.json``: one row with the configuration and the time of the query.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.recordings.flags import jfr_flag
from lab.errors import LabError
from lab.machine.host import command_on
from lab.machine.shares import summarize
from lab.runs.cluster import (
    STORAGES,
    Cluster,
    ClusterConfig,
    find_java,
    find_spark,
    spawn,
    start_cluster,
    stop_processes,
)
from lab.runs.datasets import make_data
from lab.runs.samplers import SAMPLERS, async_flag, async_profiler_library, is_complete_recording
from lab.runs.workloads import WORKLOADS, Workload, find_workload
from lab.units import parse_bit_rate, parse_byte_rate, parse_size

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDING_TIMEOUT_S = 20.0
WARM_UPS = 3
"""Warm-up passes before the measured one. After one pass, the amount of compiled code varies at random: the CPU time of
the executors was 10.5 to 23.5 s in runs of the same query."""

# Spark 4 writes rolled, zstd-compressed logs by default; the two others are from older versions and custom settings.
EVENT_LOGS = {
    "rolled": {},
    "single": {"spark.eventLog.rolling.enabled": "false"},
    "plain": {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"},
}


@dataclass(frozen=True)
class Sampling:
    """How the JVMs are sampled; ``kind`` is one of ``SAMPLERS``."""

    kind: str = "jfr"
    sample_ms: int = 20
    threshold_ms: int = 1
    library: Path | None = None

    @property
    def folder(self) -> str:
        return {"jfr": "jfr", "async": "wall", "none": ""}[self.kind]

    def flag(self, file: str) -> str:
        """The JVM flag that records to ``file``, empty without a sampler."""
        if self.kind == "jfr":
            return jfr_flag(file, self.sample_ms, self.threshold_ms)
        if self.kind == "async":
            return async_flag(self.library or async_profiler_library(), file, self.sample_ms)
        return ""


@dataclass(frozen=True)
class RunConfig:
    """The complete configuration of a run."""

    query: str
    scale_factor: float
    cluster: ClusterConfig
    sampling: Sampling = Sampling()
    event_log: str = "rolled"
    repetition: int = 0
    timeout_s: float = 600.0
    spark_conf: dict[str, str] = field(default_factory=dict)
    truth: bool = True
    warm_ups: int = WARM_UPS


def spark_settings(config: RunConfig, workload: Workload, out: Path, driver_address: str) -> dict[str, str]:
    """Spark's settings for a run, for its properties file.

    They set the number of processors of a worker, because the JVM would otherwise size its collector and thread pools
    by the machine's.  The first job waits for all executors, so that a run has all slots from its start.
    """
    cluster = config.cluster
    recordings = out / config.sampling.folder
    executor_java = [f"-XX:ActiveProcessorCount={cluster.slots}", "-XX:+UseG1GC"]
    driver_java = []
    if config.sampling.kind != "none":
        executor_java.append(config.sampling.flag(f"{recordings}/executor-{{{{EXECUTOR_ID}}}}.jfr"))
        driver_java.append(config.sampling.flag(f"{recordings}/driver.jfr"))
    settings = {
        "spark.driver.bindAddress": driver_address,
        "spark.driver.host": driver_address,
        "spark.driver.memory": "1g",
        "spark.executor.cores": str(cluster.slots),
        "spark.executor.memory": f"{cluster.executor_memory_bytes // 2**20}m",
        "spark.cores.max": str(cluster.slots * cluster.workers),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (out / "eventlog").as_uri(),
        "spark.executor.extraJavaOptions": " ".join(executor_java),
        "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
        "spark.ui.enabled": "false",
    }
    if driver_java:
        settings["spark.driver.extraJavaOptions"] = " ".join(driver_java)
    return settings | EVENT_LOGS[config.event_log] | workload.spark_conf | config.spark_conf


def properties_text(settings: dict[str, str]) -> str:
    """A Spark properties file: a key, a blank, and the value to the end of the line."""
    for key, value in settings.items():
        if not re.fullmatch(r"[\w.-]+", key) or "\n" in value:
            raise LabError(f"'{key}={value}' is not a Spark setting; write spark.some.key=value.")
    return "".join(f"{key} {value}\n" for key, value in settings.items())


def _begin_when_ready(cluster: Cluster, result: Path, driver: subprocess.Popen[bytes], deadline: float) -> None:
    """Limit the nodes after the driver has prepared the data, then let it continue."""
    while not result.with_suffix(".ready").exists():
        if driver.poll() is not None or time.monotonic() > deadline:
            return
        time.sleep(0.02)
    cluster.begin()
    result.with_suffix(".go").touch()


def _run_driver(cluster: Cluster, config: RunConfig, out: Path, java: Path, spark: Path) -> dict[str, Any]:
    workload = find_workload(config.query)
    properties = out / "spark.properties"
    properties.write_text(properties_text(spark_settings(config, workload, out, cluster.driver_node.address)))
    result = out / "driver.json"
    command = cluster.driver_command(
        [
            str(spark / "bin" / "spark-submit"),
            "--master",
            cluster.master_url,
            "--properties-file",
            str(properties),
            str(REPOSITORY / "lab" / "runs" / "driver.py"),
            config.query,
            cluster.data_url,
            str(result),
            str(config.warm_ups),
        ]
    )
    environment = os.environ | {
        "SPARK_HOME": str(spark),
        "JAVA_HOME": str(java.resolve().parent.parent),
        "SPARK_LOCAL_IP": cluster.driver_node.address,
        "SPARK_LOCAL_DIRS": str(cluster.work / "driver"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
    }
    log = cluster.logs / "driver.log"
    driver = spawn(command, log, environment)
    deadline = time.monotonic() + config.timeout_s
    try:
        _begin_when_ready(cluster, result, driver, deadline)
        status = driver.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise LabError(f"The run did not end within {config.timeout_s:.0f} s (--timeout); see {log}.") from None
    finally:
        stop_processes([driver])
    if status != 0 or not result.exists():
        raise LabError(f"Spark's driver failed with exit status {status}; see {log}.")
    record: dict[str, Any] = json.loads(result.read_text())
    for file in (result, result.with_suffix(".ready"), result.with_suffix(".go")):
        file.unlink(missing_ok=True)
    return record


@contextlib.contextmanager
def _watched(cluster: Cluster, out: Path) -> Iterator[None]:
    """Sample the ground truth during the block, outside of the nodes' namespaces and on the driver's share of the
    CPU."""
    given = ["--driver", cluster.driver_node.address, "--out", str(out / "truth")]
    command = [sys.executable, "-m", "lab.machine.truth", *given]
    whole = command_on(cluster.driver_node, command, in_namespace=False, cgroups=cluster.driver_cgroups)
    process = spawn(whole, cluster.logs / "truth.log", os.environ, REPOSITORY)
    try:
        yield
    finally:
        stop_processes([process])


def _wait_for_recordings(folder: Path, workers: int) -> list[Path]:
    """The recordings of the driver and of at least one executor per worker, after all of them are complete."""
    deadline = time.monotonic() + RECORDING_TIMEOUT_S
    while True:
        found = sorted(folder.glob("*.jfr"))
        unfinished = [file.name for file in found if not is_complete_recording(file)]
        if len(found) > workers and not unfinished:
            return found
        if time.monotonic() > deadline:
            what = f"{', '.join(unfinished)} unfinished" if unfinished else f"{len(found)} of {workers + 1} there"
            raise LabError(f"The JVMs did not finish their recordings in {folder} ({what}); see the logs next to it.")
        time.sleep(0.1)


def _keep_executor_logs(work: Path, logs: Path) -> None:
    for file in work.glob("w*/app-*/*/std*"):
        if file.stat().st_size:
            shutil.copyfile(file, logs / f"executor-{file.parent.name}.{file.name}")


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def run_once(config: RunConfig, out: Path, data: Path | None = None) -> dict[str, Any]:
    """Do one run and return its row, which is also written to ``out``/run.json.

    Raises LabError if the machine, Spark or a recording fails; ``out`` then has the logs so far.
    """
    workload = find_workload(config.query)
    java, spark = find_java(), find_spark()
    out = out.resolve()
    if (out / "run.json").exists():
        raise LabError(f"{out} already contains a run; name another folder.")
    folder = make_data(workload.data, config.scale_factor, data).resolve()
    missing = [name for name in workload.files if not (folder / name).exists()]
    if missing:
        raise LabError(f"{folder} lacks {', '.join(missing)}; remove it, and the lab creates it again.")
    for name in ("eventlog", config.sampling.folder):
        (out / name).mkdir(parents=True, exist_ok=True)

    with start_cluster(config.cluster, out, folder, workload.files) as cluster:
        with _watched(cluster, out) if config.truth else contextlib.nullcontext():
            record = _run_driver(cluster, config, out, java, spark)
        recordings = []
        if config.sampling.kind != "none":
            recordings = _wait_for_recordings(out / config.sampling.folder, config.cluster.workers)
        _keep_executor_logs(cluster.work, cluster.logs)
    event_logs = sorted(path for path in (out / "eventlog").iterdir() if not path.name.startswith("."))
    row = {
        "workload": config.query,
        "scale_factor": config.scale_factor,
        "repetition": config.repetition,
        "configuration": asdict(config.cluster),
        "sampler": {
            "kind": config.sampling.kind,
            "sample_ms": config.sampling.sample_ms,
            "threshold_ms": config.sampling.threshold_ms,
        },
        "event_log": config.event_log,
        **record,
        "java_version": _java_version(java),
        "python_version": platform.python_version(),
        "kernel": platform.release(),
        "host_cpus": os.cpu_count(),
        "host_memory_bytes": _memory_bytes(),
        "event_logs": [str(path.relative_to(out)) for path in event_logs],
        "recordings": [str(path.relative_to(out)) for path in recordings],
    }
    if config.truth:
        row["truth"] = summarize(out / "truth", out / "eventlog", record["start_ms"], record["end_ms"])
    (out / "run.json").write_text(json.dumps(row, indent=2) + "\n")
    return row


def _java_version(java: Path) -> str:
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r'version "([^"]+)"', done.stderr)
    return match[1] if match else "unknown"


def parse_network(text: str) -> tuple[bool, int | None]:
    """(namespaces, bits per second) of ``none``, ``unlimited`` or a rate."""
    if text == "none":
        return False, None
    if text == "unlimited":
        return True, None
    return True, parse_bit_rate(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab.runs.spark", description=__doc__.split("\n")[0])
    parser.add_argument("--query", required=True, metavar="NAME", help=f"workload: {', '.join(WORKLOADS)}")
    parser.add_argument("--scale", type=float, default=1.0, metavar="SF", help="scale factor of the data (default 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for the run")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data (default: generated once in the cache)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="workers, one executor on each (default 2)")
    parser.add_argument("--slots", type=int, default=2, metavar="N", help="task slots per executor (default 2)")
    parser.add_argument("--cpu-quota", type=float, metavar="CORES", help="CPU cores per slot (needs root)")
    parser.add_argument("--memory", default="1g", metavar="SIZE", help="heap of an executor (default 1g)")
    parser.add_argument("--node-memory", metavar="SIZE", help="memory of a worker, page cache included (needs root)")
    parser.add_argument(
        "--network",
        default="none",
        metavar="RATE",
        help="rate of each worker's link, as 100Mbps; 'unlimited': namespaces with unlimited links; both need root; "
        "'none': loopback (default)",
    )
    parser.add_argument("--disk", metavar="RATE", help="rate at which a worker reads its data, as 8MB/s (needs root)")
    parser.add_argument("--storage", choices=STORAGES, default="local", help="the storage of the data (default local)")
    parser.add_argument(
        "--warm-ups",
        type=int,
        default=WARM_UPS,
        metavar="N",
        help=f"warm-up passes before the measured one (default {WARM_UPS}; 0: cold JVMs)",
    )
    parser.add_argument("--no-truth", action="store_true", help="leave out the sampling of /proc")
    parser.add_argument("--sampler", choices=SAMPLERS, default="jfr", help="the sampler of the JVMs (default jfr)")
    parser.add_argument("--sample-ms", type=int, default=20, metavar="MS", help="sampling period (default 20)")
    parser.add_argument(
        "--threshold-ms", type=int, default=1, metavar="MS", help="shortest wait that JFR records (default 1)"
    )
    parser.add_argument("--async-profiler", type=Path, metavar="LIB", help="libasyncProfiler.so (default: from Maven)")
    parser.add_argument("--event-log", choices=sorted(EVENT_LOGS), default="rolled", help="default rolled")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a Spark setting; repeatable")
    parser.add_argument("--repetition", type=int, default=0, metavar="N", help="the repetition number in the run's row")
    parser.add_argument("--timeout", type=float, default=600.0, metavar="S", help="time limit of the run (default 600)")
    return parser


def parse_arguments(arguments: Sequence[str]) -> tuple[RunConfig, Path, Path | None]:
    """The run, its output folder and its data folder, of a command line."""
    given = _parser().parse_args(arguments)
    conf = {}
    for text in given.conf:
        key, separator, value = text.partition("=")
        if not separator:
            raise LabError(f"'{text}' is not a Spark setting; write --conf spark.some.key=value.")
        conf[key] = value
    if given.warm_ups < 0:
        raise LabError("The number of warm-ups must be at least 0.")
    if given.sample_ms < 1 or given.threshold_ms < 0:
        raise LabError("The sampling period must be at least 1 ms, and the shortest wait at least 0 ms.")
    namespaces, network_bps = parse_network(given.network)
    cluster = ClusterConfig(
        workers=given.workers,
        slots=given.slots,
        executor_memory_bytes=parse_size(given.memory),
        slot_cpu_cores=given.cpu_quota,
        node_memory_bytes=None if given.node_memory is None else parse_size(given.node_memory),
        namespaces=namespaces,
        network_bps=network_bps,
        disk_bytes_per_s=None if given.disk is None else parse_byte_rate(given.disk),
        storage=given.storage,
    )
    sampling = Sampling(given.sampler, given.sample_ms, given.threshold_ms, given.async_profiler)
    config = RunConfig(
        query=find_workload(given.query).name,
        scale_factor=given.scale,
        cluster=cluster,
        sampling=sampling,
        event_log=given.event_log,
        repetition=given.repetition,
        timeout_s=given.timeout,
        spark_conf=conf,
        truth=not given.no_truth,
        warm_ups=given.warm_ups,
    )
    return config, given.out, given.data


def _end_in_order(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 with the row on stdout, 1 with one sentence on stderr."""
    # A signal raises an exception, so that every block cleans up.
    signal.signal(signal.SIGTERM, _end_in_order)
    signal.signal(signal.SIGHUP, _end_in_order)
    try:
        config, out, data = parse_arguments(sys.argv[1:] if arguments is None else arguments)
        row = run_once(config, out, data)
    except CrystalPerfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps({key: row[key] for key in ("workload", "repetition", "wall_ms", "rows")}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
