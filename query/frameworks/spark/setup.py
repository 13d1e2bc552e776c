"""What a Spark job needs so that it leaves a log and samples.

The text is a piece of spark-defaults.conf whose prose is comments.  The flags are those that lab/runs/samplers.py
records with (a test compares them), so that what is printed is what has been tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from query.frameworks import Setup

SAMPLE_MS = 20
"""Between two samples of a thread: some percent of a task's time are told apart within seconds, at no visible cost."""

THRESHOLD_MS = 1
"""Shortest wait or transfer that the flight recorder keeps."""

STACK_DEPTH = 256
"""Frames of a stack; the recorder's own 64 would cut the task's root off Spark's deeper stacks."""

_SAMPLED = ("ExecutionSample", "NativeMethodSample")
_WAITS = (
    "ThreadPark", "JavaMonitorWait", "JavaMonitorEnter", "ThreadSleep",
    "SocketRead", "SocketWrite", "FileRead", "FileWrite", "FileForce",
)  # fmt: skip
_CONDITIONS = (
    "ActiveRecording", "ActiveSetting", "JVMInformation", "OSInformation", "CPUInformation", "CPULoad",
    "GarbageCollection", "GCPhasePause", "GCHeapSummary", "ThreadStart", "ThreadEnd", "ThreadCPULoad",
)  # fmt: skip


def executor_file(folder: str) -> str:
    """Where an executor records; Spark puts the ids in, on every cluster manager."""
    return f"{folder}/crystalperf-{{{{APP_ID}}}}-executor-{{{{EXECUTOR_ID}}}}.jfr"


def driver_file(folder: str) -> str:
    """Where the driver records; Spark puts no id into its flags, so that this is one name for all."""
    return f"{folder}/crystalperf-driver.jfr"


def jfr_flag(file: str) -> str:
    """The JVM flags of a recording (Java 17 and later take the events in the flag itself)."""
    options = [f"filename={file}", "dumponexit=true", "maxsize=0", "settings=none"]
    for event in _SAMPLED:
        options += [f"+jdk.{event}#enabled=true", f"+jdk.{event}#period={SAMPLE_MS}ms"]
    for event in _WAITS:
        options += [
            f"+jdk.{event}#enabled=true", f"+jdk.{event}#threshold={THRESHOLD_MS}ms", f"+jdk.{event}#stackTrace=true"
        ]  # fmt: skip
    options += [f"+jdk.{event}#enabled=true" for event in _CONDITIONS]
    options += ["+jdk.CPULoad#period=1s", "+jdk.ThreadCPULoad#period=10s"]
    return f"-XX:FlightRecorderOptions:stackdepth={STACK_DEPTH} -XX:StartFlightRecording:{','.join(options)}"


def old_jfr_flag(file: str) -> str:
    """The same for Java 8 and 11, which know whole sets of settings only; waits below 20 ms stay unseen."""
    return (
        f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH} -XX:StartFlightRecording=settings=profile,"
        f"filename={file},dumponexit=true,maxsize=0"
    )


def async_flag(file: str) -> str:
    """async-profiler's wall clock, which sees every thread alike, also those that wait."""
    return f"-agentpath:/path/to/libasyncProfiler.so=start,event=wall,interval={SAMPLE_MS}ms,jfr,file={file}"


def settings(folder: str) -> Mapping[str, str]:
    """Spark's settings for a log and samples, from Java 17 on."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder or '/'}",
        "spark.executor.extraJavaOptions": jfr_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": jfr_flag(driver_file(folder)),
    }


def java_11_settings(folder: str) -> Mapping[str, str]:
    """The samples' settings for Java 8 and 11."""
    return {
        "spark.executor.extraJavaOptions": old_jfr_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": old_jfr_flag(driver_file(folder)),
    }


def async_settings(folder: str) -> Mapping[str, str]:
    """The samples' settings with async-profiler."""
    return {
        "spark.executor.extraJavaOptions": async_flag(executor_file(folder)),
        "spark.driver.extraJavaOptions": async_flag(driver_file(folder)),
    }


def kubernetes_settings(folder: str) -> Mapping[str, str]:
    """A volume that outlives the pods, mounted where they record."""
    prefix = "spark.kubernetes.{role}.volumes.persistentVolumeClaim.crystalperf"
    found = {}
    for role in ("executor", "driver"):
        name = prefix.format(role=role)
        found[f"{name}.mount.path"] = folder or "/"
        found[f"{name}.options.claimName"] = "YOUR-CLAIM"
    return found


def analyze_command(folder: str) -> str:
    """What to type when the job is done."""
    return f"crystalperf analyze {folder}/eventlog_v2_APP_ID {folder}/crystalperf-*.jfr"


def spark_text(folder: str) -> str:
    """The piece of spark-defaults.conf."""
    log, driver, executor, java_11 = (
        _lines(dict(list(settings(folder).items())[:2])),
        _lines({"spark.driver.extraJavaOptions": jfr_flag(driver_file(folder))}),
        _lines({"spark.executor.extraJavaOptions": jfr_flag(executor_file(folder))}),
        _lines(java_11_settings(folder), comment=True),
    )
    return f"""\
# What CrystalPerf needs: Spark's event log, and samples of what the JVMs do.
# Append this to conf/spark-defaults.conf, or give single lines to spark-submit
# as --conf 'KEY=VALUE'. Where extraJavaOptions are set already, join the two
# values in one line: the last one counts.

# 1  The event log, written by the driver. The folder must exist, or Spark does
#    not start. On YARN and Kubernetes take one that outlives the driver's
#    machine, such as hdfs:///spark-logs or s3a://bucket/spark-logs.
{log}

# 2  Samples by the JDK's flight recorder, Java 17 or later. {folder or "/"} must exist on
#    every node, or the executors do not start. A recording is complete when
#    its JVM has ended in order; of a killed one the last part is missing.
{executor}
{driver}

#    Java 8 and 11 take these instead; they see waits from 20 ms on:
{java_11}

#    async-profiler's wall clock, where its library is on every node, sees every
#    thread alike, waiting or not, at a little more cost:
{_lines(async_settings(folder), comment=True)}

# 3  Where the files land, when the job is done
#    Standalone, and local[N], where the driver's recording has the tasks too:
#      executors  {executor_file(folder)}
#                 on the worker's machine
#      driver     {driver_file(folder)}
#                 where spark-submit runs; the next application overwrites it
#      collect    scp 'WORKER:{folder}/crystalperf-APP_ID-*.jfr' recordings/
#    YARN: the same names on the nodes. Containers' own folders vanish with the
#      application, so leave the absolute path. The driver's recording lies on
#      the node of the application master (cluster mode).
#      collect    scp from the nodes, or let {folder or "/"} be a mounted share;
#                 the log: hdfs dfs -get /spark-logs/eventlog_v2_APP_ID
#    Kubernetes: pods take their files with them, so mount a volume that all of
#      them may write there:
{_lines(kubernetes_settings(folder), comment=True)}
#      collect    kubectl cp POD-WITH-THE-VOLUME:{folder or "/"} recordings/
#
#    Then:  {analyze_command(folder)}
"""


def facts(folder: str) -> dict[str, Any]:
    """All settings by name, and where the files land."""
    return {
        "settings": settings(folder),
        "settings_java_8_and_11": java_11_settings(folder),
        "settings_async_profiler": async_settings(folder),
        "settings_kubernetes": kubernetes_settings(folder),
        "files": {
            "event_log": f"{folder or '/'}",
            "executors": executor_file(folder).replace("{{APP_ID}}", "*").replace("{{EXECUTOR_ID}}", "*"),
            "driver": driver_file(folder),
        },
        "analyze": analyze_command(folder),
    }


def _lines(values: Mapping[str, str], *, comment: bool = False) -> str:
    return "\n".join(f"{'# ' if comment else ''}{key} {value}" for key, value in values.items())


SETUP = Setup(spark_text, facts)
