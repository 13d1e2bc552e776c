"""Kinds of rows of `samples`: the state of the thread in a sample, or in an interval that a recording measured."""

from __future__ import annotations

WAKING = "waking"
"""Kind of the CPU wait at the end of a wait; the wait itself has its own row."""

TIMED_KINDS = {
    "SOCKET_READ": "socket read",
    "SOCKET_WRITE": "socket write",
    "FILE_READ": "file read",
    "FILE_WRITE": "file write",
    "FILE_FORCE": "file force",
    "PARK": "park",
    "SLEEP": "sleep",
    "MONITOR_WAIT": "wait",
    "MONITOR_ENTER": "enter",
    "WAKING": WAKING,
}
"""Intervals that belong to a thread, and their names in the run file; the last is split off the end of the others."""

RUNNING = "running"
"""Kind of a wall-clock sample of a thread that ran or could have run; a blocked one has `wall`."""

ON_CPU = ("execution", "cpu", RUNNING, WAKING)
"""Kinds whose thread ran code or was in CPU wait; a native or blocked one may wait for a device."""
