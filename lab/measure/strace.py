"""What a call waited in, told by strace: the kind of every system call between the marks of a run (paper, §3.4)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Kind = Literal["file", "socket", "wait", "other"]

MARK = "/crystalperf-measure"
"""Paths under it, which do not exist, are asked for before and after each call: /MARK/<workload>/<run>/begin."""

TRACED = "%file,%desc,%network,?sync,futex,clock_nanosleep,?nanosleep,wait4,waitid"
STRACE = ("strace", "-f", "-ttt", "-T", "-y", "-s", "8", "-qq", "--seccomp-bpf", "-e", f"trace={TRACED}")

_LINE = re.compile(r"^(\d+) +(\d+\.\d+) (.*)$", re.DOTALL)
_RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$", re.DOTALL)
_CALL = re.compile(r"^(\w+)\((.*)$", re.DOTALL)
_TOOK = re.compile(r"<(\d+\.\d+)>$")
_MARKED = re.compile(rf'"{MARK}/(\d+)/(\d+)/(begin|end)"')
_NETWORK = frozenset(
    [
        "socket",
        "socketpair",
        "bind",
        "listen",
        "accept",
        "accept4",
        "connect",
        "getsockname",
        "getpeername",
        "sendto",
        "sendmsg",
        "sendmmsg",
        "recvfrom",
        "recvmsg",
        "recvmmsg",
        "shutdown",
        "setsockopt",
        "getsockopt",
    ]
)
_WAITS = frozenset(["futex", "clock_nanosleep", "nanosleep", "wait4", "waitid"])
_POLLS = frozenset(["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"])
_NO_DEVICE = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/tty", "/proc/", "/sys/", MARK)
_PATH = re.compile(r'"(/[^"]*)"|<(/[^>]*)>')


@dataclass(frozen=True, slots=True)
class Call:
    """A system call as strace saw it; times in seconds."""

    thread: int
    name: str
    arguments: str
    start_s: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class Blocked:
    """Time in the system calls of one run of a workload, by kind, milliseconds."""

    file_ms: float = 0.0
    socket_ms: float = 0.0
    wait_ms: float = 0.0


def parse_strace(lines: Iterable[str]) -> list[Call]:
    """The calls of `strace -f -ttt -T -y`, by start; a call cut in two by another thread's is put together again.

    Lines that are no finished call (signals, exits, calls cut off by the end) are left out.
    """
    calls: list[Call] = []
    open_calls: dict[int, tuple[str, str, float]] = {}
    for line in lines:
        if not (match := _LINE.match(line.rstrip("\n"))):
            continue
        thread, start, rest = int(match[1]), float(match[2]), match[3]
        if resumed := _RESUMED.match(rest):
            name, arguments, start = open_calls.pop(thread, ("", "", 0.0))
            if name != resumed[1]:
                continue
            arguments += resumed[2]
        elif called := _CALL.match(rest):
            name, arguments = called[1], called[2]
            if arguments.endswith("<unfinished ...>"):
                open_calls[thread] = (name, arguments.removesuffix("<unfinished ...>"), start)
                continue
        else:
            continue
        if took := _TOOK.search(arguments):
            calls.append(Call(thread, name, arguments[: took.start()], start, float(took[1])))
    return sorted(calls, key=lambda call: call.start_s)


def kind(call: Call) -> Kind:
    """What a system call waits for, by its descriptor or path; `other` costs time but touches no device."""
    if call.name in _NETWORK:
        return "socket"
    if call.name in _WAITS:
        return "wait"
    if call.name in _POLLS:
        return "socket" if "<socket:" in call.arguments or call.name.startswith("epoll") else "wait"
    # A copy from a file to a socket waits for the slower one.
    if "<socket:" in call.arguments or "<TCP" in call.arguments or "<UDP" in call.arguments:
        return "socket"
    if "<pipe:" in call.arguments:
        return "wait"
    if "<anon_inode:" in call.arguments:
        return "other"
    paths = [one or other for one, other in _PATH.findall(call.arguments)]
    return "file" if call.name == "sync" or any(not path.startswith(_NO_DEVICE) for path in paths) else "other"


def blocked_times(calls: Sequence[Call]) -> dict[tuple[int, int], Blocked]:
    """By (workload, run): the time between its marks, by kind of system call.

    strace itself makes each call longer; that is told by the marks, which cost next to nothing, and taken off. While
    the calling thread waits for another thread of the process, the other thread's files and sockets count.
    """
    marks: dict[tuple[int, int], dict[str, Call]] = defaultdict(dict)
    for call in calls:
        if match := _MARKED.search(call.arguments):
            marks[int(match[1]), int(match[2])][match[3]] = call
    durations = [call.duration_s for its in marks.values() for call in its.values()]
    overhead_s = median(durations) if durations else 0.0
    found: dict[tuple[int, int], Blocked] = {}
    starts = [call.start_s for call in calls]
    by_thread: dict[int, list[Call]] = defaultdict(list)
    for call in calls:
        by_thread[call.thread].append(call)
    for key, its in marks.items():
        if len(its) < 2:
            continue
        begin, end = its["begin"], its["end"]
        first_s = begin.start_s + begin.duration_s
        inside = list(calls[bisect_left(starts, first_s) : bisect_left(starts, end.start_s)])
        # An event loop may be in its wait for a socket when the call begins; one that outlasts the call is idle.
        for its_calls in by_thread.values():
            before = bisect_left(its_calls, first_s, key=lambda call: call.start_s) - 1
            if before >= 0 and first_s < its_calls[before].start_s + its_calls[before].duration_s < end.start_s:
                inside.append(its_calls[before])
        found[key] = _blocked(inside, begin.thread, overhead_s)
    return found


def _blocked(calls: Sequence[Call], caller: int, overhead_s: float) -> Blocked:
    total: dict[Kind, float] = {"file": 0.0, "socket": 0.0, "wait": 0.0, "other": 0.0}
    waits: list[tuple[float, float]] = []
    others: list[tuple[float, float, Kind]] = []
    for call in calls:
        its, end = kind(call), call.start_s + call.duration_s
        if call.thread == caller:
            total[its] += max(0.0, call.duration_s - overhead_s)
            if its == "wait":
                waits.append((call.start_s, end))
        elif its in ("file", "socket"):
            others.append((call.start_s, end, its))
    others.sort()
    starts = [start for start, _, _ in others]
    longest_s = max((end - start for start, end, _ in others), default=0.0)
    for start, end in waits:
        helped: dict[Kind, float] = {"file": 0.0, "socket": 0.0}
        for at in range(bisect_left(starts, start - longest_s), bisect_left(starts, end)):
            other_start, other_end, its = others[at]
            helped[its] += max(0.0, min(end, other_end) - max(start, other_start) - overhead_s)
        if (both := helped["file"] + helped["socket"]) > 0:
            scale = min(1.0, max(0.0, end - start - overhead_s) / both)
            total["file"] += helped["file"] * scale
            total["socket"] += helped["socket"] * scale
            total["wait"] -= both * scale
    return Blocked(1e3 * total["file"], 1e3 * total["socket"], 1e3 * max(0.0, total["wait"]))
