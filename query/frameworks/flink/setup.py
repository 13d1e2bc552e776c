"""What a Flink cluster needs so that its jobs leave archives and samples.

lab/runs/flink.py records with the same flags, so that what is printed is what has been tried.
"""

from __future__ import annotations

from typing import Any

from query.frameworks import Setup

SAMPLE_MS = 20
"""Between two samples of a thread."""

THRESHOLD_MS = 1
"""Shortest wait or transfer that the flight recorder keeps."""

_SAMPLED = ("ExecutionSample", "NativeMethodSample")
_WAITS = (
    "ThreadPark", "JavaMonitorWait", "JavaMonitorEnter", "ThreadSleep",
    "SocketRead", "SocketWrite", "FileRead", "FileWrite", "FileForce",
)  # fmt: skip
_CONDITIONS = (
    "ActiveRecording", "ActiveSetting", "JVMInformation", "OSInformation", "CPUInformation", "CPULoad",
    "GarbageCollection", "ThreadStart", "ThreadEnd",
)  # fmt: skip


def recording(file: str) -> str:
    """The JVM flags of a recording, for Java 17 and later."""
    options = [f"filename={file}", "dumponexit=true", "maxsize=0", "settings=none"]
    for event in _SAMPLED:
        options += [f"+jdk.{event}#enabled=true", f"+jdk.{event}#period={SAMPLE_MS}ms"]
    for event in _WAITS:
        options += [
            f"+jdk.{event}#enabled=true", f"+jdk.{event}#threshold={THRESHOLD_MS}ms", f"+jdk.{event}#stackTrace=true"
        ]  # fmt: skip
    options += [f"+jdk.{event}#enabled=true" for event in _CONDITIONS]
    return f"-XX:FlightRecorderOptions:stackdepth=256 -XX:StartFlightRecording:{','.join(options)}"


def facts(folder: str) -> dict[str, Any]:
    """Flink's settings by name; a folder as a recording's name lets each process choose a name in it."""
    return {
        "jobmanager.archive.fs.dir": f"file://{folder or '/'}",
        "env.java.opts.jobmanager": recording(f"{folder}/"),
        "env.java.opts.taskmanager": recording(f"{folder}/"),
    }


def text(folder: str) -> str:
    """A piece of Flink's configuration (conf/config.yaml, flink-conf.yaml before 1.19), prose as its comments."""
    found = facts(folder)
    options = [f'{key}: "{found[key]}"' for key in ("env.java.opts.jobmanager", "env.java.opts.taskmanager")]
    return "\n".join(
        [
            "# The archive of each job, written when the job ends: it is what is read.",
            f"jobmanager.archive.fs.dir: {found['jobmanager.archive.fs.dir']}",
            "",
            "# Stack samples, by Java's own flight recorder (Java 17 or newer), written when a process ends.",
            *options,
            "",
            "# Recordings are tied to TaskManagers by this name: give each TaskManager its own, for example with",
            "# -D taskmanager.resource-id=NAME where it is started (Kubernetes and YARN do so by themselves).",
            "",
            f"# Then: crystalperf analyze {folder or '/'}",
            "",
        ]
    )


SETUP = Setup(lambda job: text(job.folder), lambda job: facts(job.folder))
