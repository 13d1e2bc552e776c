"""JVM flags for a flight recording with the events that CrystalPerf reads, for Java 17 and later."""

from __future__ import annotations

SAMPLE_MS = 20
"""Sampling period: within seconds it resolves some percent of a task's time, without measurable overhead."""

THRESHOLD_MS = 1
"""Shortest wait or transfer that the flight recorder records."""

STACK_DEPTH = 256
"""Maximum frames of a stack; the recorder's default of 64 would cut the root off deeper stacks."""

_SAMPLED = ("ExecutionSample", "NativeMethodSample")
_WAITS = (
    "ThreadPark", "JavaMonitorWait", "JavaMonitorEnter", "ThreadSleep",
    "SocketRead", "SocketWrite", "FileRead", "FileWrite", "FileForce",
)  # fmt: skip
# The conditions of the run. Not the environment and the list of processes: they are private.
_CONDITIONS = (
    "ActiveRecording", "ActiveSetting", "JVMInformation", "OSInformation", "CPUInformation", "CPULoad",
    "ContainerConfiguration", "ContainerCPUThrottling", "NetworkUtilization",
    "GarbageCollection", "GCPhasePause", "GCHeapSummary", "ThreadStart", "ThreadEnd", "ThreadCPULoad",
)  # fmt: skip
_EACH_SECOND = ("CPULoad", "ContainerCPUThrottling", "NetworkUtilization")


def jfr_settings(sample_ms: int = SAMPLE_MS, threshold_ms: int = THRESHOLD_MS) -> dict[str, str]:
    """The recorder's settings by event and setting, `jdk.ExecutionSample#period`; all other events are off."""
    settings: dict[str, str] = {}
    for event in _SAMPLED:
        settings |= {f"jdk.{event}#enabled": "true", f"jdk.{event}#period": f"{sample_ms}ms"}
    for event in _WAITS:
        settings |= {
            f"jdk.{event}#enabled": "true",
            f"jdk.{event}#threshold": f"{threshold_ms}ms",
            f"jdk.{event}#stackTrace": "true",
        }
    settings |= {f"jdk.{event}#enabled": "true" for event in _CONDITIONS}
    settings |= {f"jdk.{event}#period": "1s" for event in _EACH_SECOND}
    return settings | {"jdk.ThreadCPULoad#period": "10s"}


def jfr_flag(file: str, sample_ms: int = SAMPLE_MS, threshold_ms: int = THRESHOLD_MS) -> str:
    """The flags, including the events, to record to `file` until the JVM exits normally.

    If `file` is a folder, each process chooses a name in it; Java 17 does not support ``%p``.  ``maxsize=0`` lifts the
    limit of 250 MB, beyond which the JVM would drop the oldest part.
    """
    options = [f"filename={file}", "dumponexit=true", "maxsize=0", "settings=none"]
    options += [f"+{name}={value}" for name, value in jfr_settings(sample_ms, threshold_ms).items()]
    return f"-XX:FlightRecorderOptions:stackdepth={STACK_DEPTH} -XX:StartFlightRecording:{','.join(options)}"
