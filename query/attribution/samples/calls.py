"""Classifies sampled stacks by the system call that their function makes, by its name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crystalperf.indexes.regex import regex
from crystalperf.query.attribution.code.names import FILE_CALLS
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.model import FILE_FORCE, FILE_READ, FILE_WRITE
from crystalperf.query.trace.records import Ints

_JDK = regex(r"(java|javax|jdk|sun|com\.sun)\.")
_WAITS = regex(
    r"(?i).*(wait|park|sleep|poll|select|accept|connect|lookup|receive|recv|send|force|sync|lock|transfer|load0)\w*$"
)
_READS_OR_WRITES = regex(r"(?i).*\.\w*(read|write)\w*$")
_FILE_CALL = regex(FILE_CALLS)
_NATIVE_CODE = regex(r"\.so\b|^\[")

NO_CALL = -1
"""Instead of one of jfr.INTERVAL_KINDS: a stack that does not wait for a file."""


def nonblocking_calls(recording: jfr.Recording, *, short_waits: bool) -> NDArray[np.bool_]:
    """Stacks with native code of the JDK that waits for no device as their leaf, (stacks + 1,), the last for no stack.

    The kernel serves most calls from memory: opening, closing, deleting a file, reading its length, waking a
    selector.  A thread in such a call has a CPU, or was preempted, which happens at the return of a call.  The same
    holds for reading and writing if the recording has `short_waits` too: samples within these are not counted, so the
    others are of shorter calls.
    """
    found = np.zeros(len(recording.stacks) + 1, dtype=bool)
    some = np.flatnonzero(np.diff(recording.stacks.offsets) > 0)
    leaves, leaf_of = np.unique(recording.stacks.frame_index[recording.stacks.offsets[:-1][some]], return_inverse=True)
    at_once = [
        bool(_JDK.match(name)) and not _WAITS.match(name) and (short_waits or not _READS_OR_WRITES.match(name))
        for name in map(recording.frames.name, leaves.tolist())
    ]
    found[some] = np.array(at_once, dtype=bool)[leaf_of]
    return found


def file_calls(recording: jfr.Recording) -> Ints:
    """The number in jfr.INTERVAL_KINDS of each stack's file call, (stacks + 1,), the last for no stack.

    NO_CALL unless the stack's topmost Java frame calls the kernel for a file.
    """
    native = [bool(_NATIVE_CODE.search(owner)) for owner in recording.frames.owners()]
    calls = [_call(name) for name in map(recording.frames.name, range(len(recording.frames)))]
    found = np.full(len(recording.stacks) + 1, NO_CALL, dtype=np.int64)
    for stack in range(len(recording.stacks)):
        java = (frame for frame in recording.stacks.frames(stack).tolist() if not native[frame])
        found[stack] = calls[first] if (first := next(java, None)) is not None else NO_CALL
    return found


def _call(name: str) -> int:
    if not _FILE_CALL.match(name):
        return NO_CALL
    return FILE_WRITE if "write" in name.lower() else FILE_FORCE if "force" in name.lower() else FILE_READ
