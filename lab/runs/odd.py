"""Small real runs of what ordinary runs lack: ``python -m lab.runs.odd all --out DIR``, or one by its name.

Each starts a cluster of its own on this machine, without quotas or namespaces, and leaves an event log (and where it
says so, recordings) in DIR/NAME.  They are for their logs' shape, not for their times.  Paths in the logs are DIR's:
Spark, Python and the program are reached through links and copies in it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.query.recordings.flags import jfr_flag
from lab.errors import LabError, MachineBusyError
from lab.machine.host import machine_lock
from lab.runs.cluster import daemon_command, find_java, find_spark, spawn, stop_processes
from lab.runs.spark import properties_text

PORT = 17_077
TIMEOUT_S = 240.0
WAIT_S = 900.0
_SINGLE = {"spark.eventLog.rolling.enabled": "false"}
_TYPED = """import sys; from pathlib import Path; sys.path.insert(0, {folder!r})
import odd_driver; odd_driver.PROGRAMS[{name!r}](spark, Path({work!r}))
exit()
"""
_HISTORY_SERVER = "org.apache.spark.deploy.history.HistoryServer"

# A clock that is ahead: what the JVM asks for the time of day goes through this instead of the C library.
CLOCK_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long ahead(void) { const char *text = getenv("CLOCK_AHEAD_S"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    if (!result && id == CLOCK_REALTIME) now->tv_sec += ahead();
    return result;
}
int gettimeofday(struct timeval *now, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    if (!result && now) now->tv_sec += ahead();
    return result;
}
"""


@dataclass(frozen=True)
class OddRun:
    """One run: a program of lab/runs/odd_driver.py, and the cluster and the settings it needs.

    Without `workers` the driver runs the tasks.  `clock_ahead_s` is of the last worker; `compact` has a History Server
    compact a copy of the log afterwards; `fails` says that the program does not end well, and is not to; `shell` types
    the program into the shell of pyspark.
    """

    name: str
    what: str
    program: str
    conf: dict[str, str] = field(default_factory=dict)
    workers: int = 2
    slots: int = 2
    record: bool = False
    clock_ahead_s: int = 0
    compact: bool = False
    fails: bool = False
    shell: bool = False


def _codec(name: str) -> OddRun:
    conf = _SINGLE | {"spark.eventLog.compress": "true", "spark.eventLog.compression.codec": name}
    return OddRun(name, f"a log compressed with {name}", "small", conf)


RUNS: dict[str, OddRun] = {
    each.name: each
    for each in (
        OddRun(
            "rolled",
            "Spark 4's defaults: a log rolled and compressed, of several parts; and the same, compacted",
            "many",
            {"spark.eventLog.rolling.maxFileSize": "10m"},
            compact=True,
        ),
        _codec("lz4"),
        _codec("snappy"),
        _codec("lzf"),
        OddRun(
            "speculation",
            "a straggler overtaken by its speculative copy",
            "speculation",
            {"spark.speculation": "true", "spark.speculation.interval": "200ms"},
        ),
        OddRun("fetch-failure", "shuffle files lost on disk: a stage fails to fetch and is retried", "fetch_failure"),
        OddRun("killed-executor", "an executor killed in the middle of a stage, and replaced", "killed_executor"),
        OddRun(
            "dynamic-allocation",
            "executors that come with work and go when idle",
            "dynamic_allocation",
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.shuffleTracking.enabled": "true",
                "spark.dynamicAllocation.minExecutors": "1",
                "spark.dynamicAllocation.initialExecutors": "1",
                "spark.dynamicAllocation.maxExecutors": "4",
                "spark.dynamicAllocation.executorIdleTimeout": "3s",
                "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
                "spark.executor.cores": "1",
            },
        ),
        OddRun("cancelled-job", "a job cancelled half-way", "cancelled_job"),
        OddRun(
            "several-queries",
            "queries of three users at once in one application, in FAIR pools",
            "several_queries",
            {"spark.scheduler.mode": "FAIR"},
        ),
        OddRun(
            "streaming",
            "micro-batches of a streaming query",
            "streaming",
            {"spark.sql.shuffle.partitions": "4"},
        ),
        OddRun(
            "clock-off",
            "an executor whose clock is 3 s ahead; recordings too",
            "clock_off",
            record=True,
            clock_ahead_s=3,
        ),
    )
}


_SMALL = _SINGLE | {"spark.sql.shuffle.partitions": "8"}

RECORDINGS: dict[str, OddRun] = {
    each.name: each
    for each in (
        OddRun(
            "idle-shell",
            "a shell in which hardly anything was typed",
            "idle_shell",
            _SMALL,
            workers=0,
            slots=4,
            shell=True,
        ),
        OddRun("survived-failure", "a job that failed, and a program that went on", "survived_failure", _SMALL),
        OddRun(
            "failed-at-end",
            "a query that failed, and the program with it",
            "failed_at_end",
            _SMALL,
            fails=True,
            workers=0,
            slots=4,
        ),
        OddRun(
            "lost-executor",
            "an executor killed in the middle of a stage, its work done again",
            "killed_executor",
            _SMALL,
        ),
        OddRun("out-of-heap", "a task that wanted more than the heap", "heap", _SMALL),
        OddRun("cut-off", "a driver killed in the middle of a stage", "cut_off", _SMALL, fails=True),
        OddRun(
            "dropped-events",
            "ends of tasks that Spark dropped, for its queue was full",
            "dropped_events",
            _SMALL | {"spark.scheduler.listenerbus.eventqueue.eventLog.capacity": "2"},
            workers=0,
            slots=4,
        ),
        OddRun(
            "nested-queries",
            "commands that run queries of their own, on cached parents",
            "nested",
            _SMALL,
            workers=0,
            slots=4,
        ),
        OddRun("tiny-tasks", "a thousand tasks of a few ms", "tiny_tasks", _SMALL, workers=0, slots=4),
        OddRun(
            "skewed-key",
            "a key that nearly all rows have",
            "skewed_key",
            _SMALL | {"spark.sql.adaptive.enabled": "false"},
        ),
        OddRun("threads", "jobs of three threads at once", "threads", _SMALL, workers=0, slots=4),
        OddRun(
            "speculative-copies",
            "a straggler overtaken by its speculative copy",
            "speculation",
            _SMALL | {"spark.speculation": "true", "spark.speculation.interval": "200ms"},
        ),
        OddRun(
            "micro-batches",
            "a streaming query",
            "micro_batches",
            _SMALL | {"spark.sql.shuffle.partitions": "4"},
            workers=0,
            slots=4,
        ),
        OddRun("python-udf", "a function of Python's on every row", "python_udf", _SMALL, workers=0, slots=4),
        OddRun("busy-driver", "a program that works on results by itself", "driver_works", _SMALL, workers=0, slots=4),
    )
}
"""Those whose logs are kept in lab/recordings/odd: what people's logs are like, one file each."""


def make(run: OddRun, out: Path) -> Path:
    """Do one run below `out`; returns the folder with its log.  Raises LabError where it fails."""
    java, spark = find_java(), find_spark()
    folder = out / run.name
    if folder.exists():
        raise LabError(f"{folder} is there already; remove it, or name another folder.")
    log, work = folder / "eventlog", out / "work"
    shutil.rmtree(work, ignore_errors=True)
    for path in (log, work, out / "logs"):
        path.mkdir(parents=True, exist_ok=True)
    for link, target in ((out / "spark", spark), (out / "env", Path(sys.prefix))):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    program = out / "odd_driver.py"
    shutil.copyfile(Path(__file__).with_name("odd_driver.py"), program)
    properties = out / "spark.properties"
    properties.write_text(properties_text(_settings(run, folder)))
    environment = os.environ | {
        "SPARK_HOME": str(out / "spark"),
        "JAVA_HOME": str(java.resolve().parent.parent),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(work / "driver"),
        "PYSPARK_PYTHON": str(out / "env" / "bin" / "python"),
        "PYTHONPATH": "",
    }
    with _cluster(run, out, java, environment) as master:
        options = ["--master", master, "--properties-file", str(properties)]
        if run.shell:
            typed = out / "typed.py"
            typed.write_text(_TYPED.format(folder=str(out), name=run.program, work=str(work)))
            environment |= {"PYSPARK_DRIVER_PYTHON_OPTS": "-i"}
            command = [
                "sh",
                "-c",
                f'exec "$@" < {shlex.quote(str(typed))}',
                "sh",
                str(out / "spark" / "bin" / "pyspark"),
            ]
            command += options
        else:
            command = [str(out / "spark" / "bin" / "spark-submit"), *options, str(program), run.program, str(work)]
        _finish(command, environment, out, f"{run.name}-driver", fails=run.fails)
    if run.compact:
        _compact(log, folder / "compacted", out, java, environment)
    shutil.rmtree(work, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _machine() -> Iterator[None]:
    """The machine, once no other lab run has it: a sweep gives it back after each of its runs."""
    deadline = time.monotonic() + WAIT_S
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(machine_lock())
                break
            except MachineBusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield


def _settings(run: OddRun, folder: Path) -> dict[str, str]:
    java_options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    if run.record:
        (folder / "jfr").mkdir()
        java_options.append(jfr_flag(f"{folder}/jfr/executor-{{{{EXECUTOR_ID}}}}.jfr"))
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.executor.cores": str(run.slots),
        "spark.executor.extraJavaOptions": " ".join(java_options),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0" if "dynamic" not in run.name else "0.2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "eventlog").as_uri(),
        "spark.ui.enabled": "false",
    } | run.conf


@contextlib.contextmanager
def _cluster(run: OddRun, out: Path, java: Path, environment: dict[str, str]) -> Iterator[str]:
    """A master and workers, each worker with an address of its own, as speculation wants other hosts.

    Without workers, the driver runs the tasks.
    """
    if not run.workers:
        yield f"local[{run.slots}]"
        return
    spark = out / "spark"
    processes: list[subprocess.Popen[bytes]] = []
    package = "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{PORT}"
    try:
        arguments = ["--host", "127.0.0.1", "--port", str(PORT), "--webui-port", "0"]
        processes.append(_started(daemon_command(java, spark, f"{package}.master.Master", arguments), environment, out))
        for number in range(run.workers):
            address = f"127.0.0.{number + 2}"
            own = environment | {"SPARK_LOCAL_IP": address, "SPARK_LOCAL_DIRS": str(out / "work" / f"w{number}")}
            if run.clock_ahead_s and number == run.workers - 1:
                own |= {"LD_PRELOAD": str(_clock_library(out)), "CLOCK_AHEAD_S": str(run.clock_ahead_s)}
            arguments = ["--host", address, "--port", "0", "--webui-port", "0", "--cores", str(run.slots)]
            arguments += ["--memory", "2g", "--work-dir", str(out / "work" / f"d{number}"), master]
            processes.append(_started(daemon_command(java, spark, f"{package}.worker.Worker", arguments), own, out))
        yield master
    finally:
        stop_processes(processes[::-1])


def _started(command: Sequence[str], environment: dict[str, str], out: Path) -> subprocess.Popen[bytes]:
    return spawn(command, out / "logs" / "daemons.log", environment, out, appends=True)


def _finish(command: Sequence[str], environment: dict[str, str], out: Path, name: str, *, fails: bool) -> None:
    log = out / "logs" / f"{name}.log"
    process = spawn(command, log, environment, out)
    try:
        status = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise LabError(f"The driver did not end within {TIMEOUT_S:.0f} s; see {log}.") from None
    finally:
        stop_processes([process])
    if bool(status) != fails:
        raise LabError(f"The driver ended with exit status {status}; see {log}.")


def _clock_library(out: Path) -> Path:
    source, library = out / "clock.c", out / "clock.so"
    compiler = shutil.which("cc")
    if compiler is None:
        raise LabError("A clock that is off needs a C compiler; install it with 'apt-get install gcc'.")
    source.write_text(CLOCK_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True, timeout=60)
    return library


def _compact(log: Path, copy: Path, out: Path, java: Path, environment: dict[str, str]) -> None:
    """Have a History Server compact a copy of a rolled log: all but its last part become one."""
    shutil.copytree(log, copy)
    command = daemon_command(java, out / "spark", _HISTORY_SERVER, [])
    flags = {
        "spark.history.fs.logDirectory": copy.as_uri(),
        "spark.history.fs.update.interval": "1s",
        "spark.history.fs.eventLog.rolling.maxFilesToRetain": "1",
        "spark.history.fs.eventLog.rolling.compaction.score.threshold": "0.1",
        "spark.history.ui.port": "0",
    }
    command[1:1] = [f"-D{key}={value}" for key, value in flags.items()]
    server = _started(command, environment, out)
    try:
        deadline = time.monotonic() + 60
        while not any(copy.rglob("*.compact")):
            if server.poll() is not None or time.monotonic() > deadline:
                raise LabError(f"The History Server compacted nothing; see {out / 'logs' / 'daemons.log'}.")
            time.sleep(0.2)
        time.sleep(3)  # it deletes the parts that the compacted one stands for
    finally:
        stop_processes([server])


def _copy(log: Path, target: Path) -> None:
    """Copy the one file of a log.  Raises LabError where it has several."""
    files = [each for each in log.rglob("*") if each.is_file() and not each.name.startswith(".")]
    if len(files) != 1:
        raise LabError(f"{log} holds {len(files)} files; only a log of one file is copied.")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(files[0], target)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.runs.odd", description=__doc__.split("\n")[0])
    known = RUNS | RECORDINGS
    sets = {"all": list(RUNS), "recordings": list(RECORDINGS)}
    words = (*sets, *known)
    parser.add_argument("names", nargs="+", choices=words, metavar="NAME", help=", ".join(words))
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the runs are kept")
    parser.add_argument("--to", type=Path, metavar="DIR", help="also copy logs of one file there, as NAME.zstd")
    given = parser.parse_args(arguments)
    names = list(dict.fromkeys(name for each in given.names for name in sets.get(each, [each])))
    failed = 0
    with _machine():
        for name in names:
            begin = time.monotonic()
            try:
                folder = make(known[name], given.out.absolute())
                if given.to is not None:
                    _copy(folder / "eventlog", given.to / f"{name}.zstd")
            except CrystalPerfError as error:
                print(f"error: {name}: {error}", file=sys.stderr, flush=True)
                failed = 1
                continue
            files = [each for each in folder.rglob("*") if each.is_file()]
            size = sum(each.stat().st_size for each in files) >> 10
            print(f"{name}: {time.monotonic() - begin:.0f} s, {len(files)} files, {size} KiB", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
