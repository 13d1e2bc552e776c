"""Kinds of rows of `samples`: what a sample, or an interval that a recording measured, says of its thread."""

from __future__ import annotations

WAKING = "waking"
"""Kind of the end of a wait in which the thread waited for a CPU only; the wait itself has a row of its own."""

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
"""Intervals that belong to a thread, and their names in the run file; the last is cut off the end of the others."""

RUNNING = "running"
"""Kind of a wall-clock sample of a thread that ran or could have run, beside `wall` of one that was blocked."""

ON_CPU = ("execution", "cpu", RUNNING, WAKING)
"""Kinds whose thread ran code or waited for nothing but a CPU; a native or blocked one may wait for a device."""
