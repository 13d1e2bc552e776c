"""A real Flink job on this machine: a session cluster of one JobManager and two TaskManagers, each a JVM of its own.

    python -m lab.runs.flink HOME -o DIR

HOME is a distribution of Flink with its `lib` folder, such as the folder `deps` of the package apache-flink-libraries.
DIR then has `archive/` with the job's archive, `collected/` with what `crystalperf collect` makes of the same job,
`recordings/` with a flight recording of each JVM, and the logs;
`crystalperf analyze DIR/archive DIR/recordings` answers.  The cluster is not shaped: this run shows that real files are
read, and its times are the machine's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import LabError
from query.frameworks.flink.collect import collect
from query.recordings.flags import jfr_flag

PORT = 8081
TASK_MANAGERS = 2
SLOTS = 2
START_TIMEOUT_S = 180.0
JOB_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 60.0
_MIB = 2**20

# What bin/flink-daemon.sh gives a JVM from Java 17 on.
_EXPORTS = ("java.base/sun.net.util", "java.rmi/sun.rmi.registry")
_OPENS = tuple(
    f"java.base/{package}"
    for package in (
        "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text", "java.time",
        "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
    )
)  # fmt: skip

SQL = """
CREATE TABLE orders (o_orderkey BIGINT, o_status STRING, o_priority STRING, o_comment STRING)
WITH ('connector' = 'filesystem', 'path' = 'file://{data}/orders.csv', 'format' = 'csv');
CREATE TABLE lineitem (l_orderkey BIGINT, l_price DOUBLE, l_discount DOUBLE, l_shipdate STRING, l_comment STRING)
WITH ('connector' = 'filesystem', 'path' = 'file://{data}/lineitem.csv', 'format' = 'csv');
CREATE TABLE revenues (priority STRING, shipdate STRING, revenue DOUBLE, lines BIGINT)
WITH ('connector' = 'filesystem', 'path' = 'file://{out}', 'format' = 'csv');
INSERT INTO revenues
SELECT o_priority, l_shipdate, SUM(l_price * (1 - l_discount)) AS revenue, COUNT(*)
FROM orders JOIN lineitem ON o_orderkey = l_orderkey
WHERE o_status <> 'P' GROUP BY o_priority, l_shipdate ORDER BY revenue DESC
"""
"""A join, an aggregate and a sort: `join and sort`."""


def write_data(folder: Path, rows: int) -> None:
    """Two tables of the same numbers each time: lines of orders, and a quarter as many orders."""
    folder.mkdir(parents=True, exist_ok=True)
    source = random.Random(1)
    orders = rows // 4
    with (folder / "orders.csv").open("w", encoding="ascii") as file:
        for key in range(orders):
            file.write(f"{key},{source.choice('OFP')},{source.randint(1, 5)}-PRIORITY,comment {source.random()}\n")
    with (folder / "lineitem.csv").open("w", encoding="ascii") as file:
        for _ in range(rows):
            day = f"1996-{source.randint(1, 12):02d}-{source.randint(1, 28):02d}"
            key, price, discount = source.randrange(orders), source.randint(100, 100_000) / 100, source.random() / 10
            file.write(f"{key},{price},{discount:.2f},{day},comment {source.random()}\n")


def configuration(out: Path) -> str:
    """config.yaml of the cluster; timeouts that a crowded machine needs."""
    return "\n".join(
        [
            "jobmanager.rpc.address: localhost",
            "jobmanager.memory.process.size: 1024m",
            f"jobmanager.archive.fs.dir: file://{out / 'archive'}",
            "taskmanager.host: localhost",
            f"taskmanager.numberOfTaskSlots: {SLOTS}",
            f"rest.port: {PORT}",
            "rest.bind-address: localhost",
            "pekko.startup-timeout: 180s",
            "pekko.ask.timeout: 180s",
            "heartbeat.timeout: 300000",
            "slot.request.timeout: 300000",
            "",
        ]
    )


def task_manager_memory() -> list[str]:
    """The memory of a TaskManager as bin/taskmanager.sh works it out, 1.2 GiB in all."""
    sizes = {
        "task.heap.size": 384, "task.off-heap.size": 0, "network.min": 64, "network.max": 64, "managed.size": 256,
        "framework.heap.size": 128, "framework.off-heap.size": 128, "jvm-metaspace.size": 192,
        "jvm-overhead.min": 192, "jvm-overhead.max": 192,
    }  # fmt: skip
    return [part for name, mib in sizes.items() for part in ("-D", f"taskmanager.memory.{name}={mib * _MIB}b")]


def java(home: Path, out: Path, flags: Sequence[str], main: Sequence[str]) -> list[str]:
    """A JVM with Flink's class path."""
    modules = [f"--add-exports={each}=ALL-UNNAMED" for each in _EXPORTS]
    modules += [f"--add-opens={each}=ALL-UNNAMED" for each in _OPENS]
    logging = f"-Dlog4j.configurationFile={out / 'conf/log4j.properties'}"
    return ["java", *modules, *flags, logging, "-cp", f"{home / 'lib'}/*", *main]


@contextlib.contextmanager
def process(name: str, command: Sequence[str], out: Path) -> Iterator[None]:
    """A JVM of the cluster; it is asked to end, so that it writes its recording."""
    with (out / f"{name}.log").open("wb") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        running.terminate()
        try:
            running.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster(home: Path, out: Path) -> Iterator[None]:
    """A session cluster with all its slots.  Raises LabError where it does not come up."""
    conf = out / "conf"
    for each in (conf, out / "archive", out / "recordings"):
        each.mkdir(parents=True, exist_ok=True)
    (conf / "config.yaml").write_text(configuration(out), encoding="ascii")
    (conf / "log4j.properties").write_text(
        "rootLogger.level = INFO\nrootLogger.appenderRef.out.ref = out\nappender.out.name = out\n"
        "appender.out.type = CONSOLE\nappender.out.layout.type = PatternLayout\n"
        "appender.out.layout.pattern = %d %p %c{1} %m%n\n",
        encoding="ascii",
    )
    with contextlib.ExitStack() as stack:
        flags = ["-Xmx448m", *jfr_flag(f"{out}/recordings/jobmanager.jfr").split()]
        main = ["org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint", "--configDir", str(conf)]
        stack.enter_context(process("jobmanager", java(home, out, flags, main), out))
        for number in range(1, TASK_MANAGERS + 1):
            name = f"tm{number}"
            flags = ["-Xmx512m", "-XX:MaxDirectMemorySize=400m"]
            flags += jfr_flag(f"{out}/recordings/taskmanager-{name}.jfr").split()
            main = ["org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "--configDir", str(conf)]
            main += ["-D", f"taskmanager.resource-id={name}", "-D", f"taskmanager.cpu.cores={SLOTS}"]
            main += task_manager_memory()
            stack.enter_context(process(name, java(home, out, flags, main), out))
        _wait_for(lambda: _asked("/overview").get("slots-available") == SLOTS * TASK_MANAGERS, "all slots")
        yield


def _asked(page: str) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"http://localhost:{PORT}{page}", timeout=30) as answer:
            found: dict[str, object] = json.load(answer)
            return found
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError):
        return {}


def _wait_for(done: object, what: str, timeout_s: float = START_TIMEOUT_S) -> None:
    until = time.monotonic() + timeout_s
    while not done():  # type: ignore[operator]
        if time.monotonic() > until:
            raise LabError(f"Flink: no {what} within {timeout_s:.0f} s; its logs say why")
        time.sleep(1.0)


def run(home: Path, out: Path, rows: int) -> Path:
    """Run the job once; returns its archive.  Raises LabError."""
    out = out.absolute()
    if not list((home / "lib").glob("flink-dist-*.jar")):
        raise LabError(f"{home}: no lib/flink-dist-*.jar; give a distribution of Flink")
    if shutil.which("java") is None:
        raise LabError("java: not found; Flink needs Java 17")
    write_data(out / "data", rows)
    (out / "job.sql").write_text(SQL.format(data=out / "data", out=out / "revenues"), encoding="ascii")
    with cluster(home, out):
        main = [str(Path(__file__).with_name("FlinkBatch.java")), str(out / "job.sql"), str(PORT)]
        command = java(home, out, [], [*main, str(SLOTS * TASK_MANAGERS), "join and sort"])
        with (out / "job.log").open("wb") as log:
            code = subprocess.run(command, stdout=log, stderr=log, timeout=JOB_TIMEOUT_S, check=False).returncode
        if code:
            raise LabError(f"the job ended with code {code}; {out / 'job.log'} says why")
        collected = collect(f"http://localhost:{PORT}", None, out / "collected", lambda _: None)
        print(f"collected {collected}", file=sys.stderr)
        archive = out / "archive"
        _wait_for(lambda: any(archive.iterdir()), "archive")
        time.sleep(1.0)  # it is written in place
        return next(archive.iterdir())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.runs.flink", description="run a real job on a real Flink")
    parser.add_argument("home", type=Path, metavar="HOME", help="a distribution of Flink")
    parser.add_argument("-o", "--out", type=Path, default=Path("lab-runs/flink"), metavar="DIR")
    parser.add_argument("--rows", type=int, default=600_000, metavar="N", help="lines of orders (default 600000)")
    given = parser.parse_args(arguments)
    try:
        print(run(given.home, given.out, given.rows))
    except (LabError, subprocess.TimeoutExpired) as error:
        print(f"python -m lab.runs.flink: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
