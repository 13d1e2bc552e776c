"""The JVM flags of a flight recording that tells what is read here, for Java 17 and later."""

from __future__ import annotations

SAMPLE_MS = 20
"""Between two samples of a thread: some percent of a unit's time are told apart within seconds, at no visible cost."""

THRESHOLD_MS = 1
"""Shortest wait or transfer that the flight recorder keeps."""

STACK_DEPTH = 256
"""Frames of a stack; the recorder's own 64 would cut the root off deeper stacks."""

_SAMPLED = ("ExecutionSample", "NativeMethodSample")
_WAITS = (
    "ThreadPark", "JavaMonitorWait", "JavaMonitorEnter", "ThreadSleep",
    "SocketRead", "SocketWrite", "FileRead", "FileWrite", "FileForce",
)  # fmt: skip
_CONDITIONS = (
    "ActiveRecording", "ActiveSetting", "JVMInformation", "OSInformation", "CPUInformation", "CPULoad",
    "GarbageCollection", "GCPhasePause", "GCHeapSummary", "ThreadStart", "ThreadEnd", "ThreadCPULoad",
)  # fmt: skip


def jfr_flag(file: str) -> str:
    """The flags, with the events in themselves; a folder as the file's name lets each process choose a name in it."""
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
