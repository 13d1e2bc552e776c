"""What a call spends its time on, told by the machine: the common part of measure_python.py and measure_jvm.py.

A workload is run some times as it is, which gives wall clock, CPU time and time in the run queue of the calling
thread, and some times under strace, which gives the kind of every system call it waited in (paper, §3.4). The time a
thread was off the processor without being ready to run is blocked time; it is divided among files, sockets and other
waits as the traced calls were. What a call left to the kernel to write later is disk time too: it is told by syncing
the file system right after the call, and kept apart as `deferred`.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Literal

from indexer.labels.functions import Located, functions_of, source_lines, text_hash
from indexer.labels.libraries import libraries
from indexer.labels.tables import Measured, Reading, committed, read_table, write_table
from indexes.errors import InputError

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


@dataclass(frozen=True, slots=True)
class Run:
    """One untraced run of a workload: the calling thread's clocks, milliseconds."""

    wall_ms: float
    cpu_ms: float
    queued_ms: float  # ready to run, but another thread had the processor
    deferred_ms: float  # what syncing the file system took right after


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the time of a call without the run queue, plus the deferred writing; they sum to 1."""

    cpu: float
    disk: float
    net: float
    wait: float
    deferred: float  # the part of disk that came after the call

    def label(self) -> str:
        """The largest share's name."""
        return max(("cpu", "disk", "net", "wait"), key=lambda name: float(getattr(self, name)))


# --- strace ------------------------------------------------------------------------------------------------------


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


# --- shares ------------------------------------------------------------------------------------------------------


def shares(run: Run, blocked: Blocked) -> Shares:
    """Where a run's time went. Blocked time of which no traced call tells the kind counts as a wait."""
    off_ms = max(0.0, run.wall_ms - run.cpu_ms - run.queued_ms)
    known_ms = blocked.file_ms + blocked.socket_ms + blocked.wait_ms
    file_ms, socket_ms = (
        off_ms * each / known_ms if known_ms else 0.0 for each in (blocked.file_ms, blocked.socket_ms)
    )
    total_ms = run.cpu_ms + off_ms + run.deferred_ms
    if total_ms <= 0:
        raise InputError("a run that took no time cannot be divided; give its workload more to do")
    return Shares(
        run.cpu_ms / total_ms,
        (file_ms + run.deferred_ms) / total_ms,
        socket_ms / total_ms,
        max(0.0, off_ms - file_ms - socket_ms) / total_ms,
        run.deferred_ms / total_ms,
    )


def middle(runs: Sequence[Run]) -> Run:
    """The median of every clock: a run that another program disturbed does not count."""
    return Run(
        *(
            median(values)
            for values in zip(*((r.wall_ms, r.cpu_ms, r.queued_ms, r.deferred_ms) for r in runs), strict=True)
        )
    )


def middle_blocked(runs: Sequence[Blocked]) -> Blocked:
    """The median of every kind."""
    return Blocked(
        *(median(values) for values in zip(*((r.file_ms, r.socket_ms, r.wait_ms) for r in runs), strict=True))
    )


# --- places in the sources ---------------------------------------------------------------------------------------


def python_lines(source: str, qualified: str, line: int = 0) -> tuple[int, int] | None:
    """First and last line of a Python function by its __qualname__; the definition nearest to `line`."""
    found: list[tuple[int, int]] = []

    def search(node: ast.AST, path: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                its = (*path, child.name)
                if ".".join(its) == qualified and not isinstance(child, ast.ClassDef):
                    found.append((child.lineno, child.end_lineno or child.lineno))
                search(child, its)
            else:
                search(child, path)

    search(ast.parse(source), ())
    return min(found, key=lambda lines: abs(lines[0] - line)) if found else None


def same_text(one: Path, other: Path, qualified: str) -> bool:
    """Whether two versions of a Python file have the same text of a function."""
    texts = []
    for path in (one, other):
        lines = python_lines(path.read_text(encoding="utf-8"), qualified)
        if lines is None:
            return False
        texts.append(text_hash(source_lines(path)[lines[0] - 1 : lines[1]]))
    return texts[0] == texts[1]


_ANNOTATION = re.compile(r"@\w+(?:\([^)]*\))?|\bfinal\b")


def parameter_types(signature: str) -> tuple[str, ...]:
    """The simple names of a Java method's parameter types, without their type arguments.

    >>> parameter_types("public static Path write(Path path, Iterable<? extends CharSequence> lines, OpenOption... o)")
    ('Path', 'Iterable', 'OpenOption...')
    """
    inside = signature[signature.find("(") + 1 :] if "(" in signature else ""
    depth, end = 1, len(inside)
    for position, character in enumerate(inside):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            end = position
            break
    inside = _ANNOTATION.sub(" ", inside[:end])
    previous = ""
    while previous != inside:
        previous, inside = inside, re.sub(r"<[^<>]*>", " ", inside)
    types = []
    for parameter in inside.split(","):
        words = re.sub(r"\s*(\.\.\.|\[\])", r"\1 ", parameter).split()
        if len(words) >= 2:
            simple = words[0] if words[0].endswith("...") else words[0].rpartition(".")[2]
            types.append(simple + "[]" * words[1].count("[]"))  # `byte b[]` is an array too
    return tuple(types)


def find(
    library: str, wanted: Iterable[tuple[str, str]], folder: Path, lines: Mapping[tuple[str, str], int] | None = None
) -> dict[tuple[str, str], Located]:
    """Functions by (file, name), where name is the end of the qualified name.

    Of several, the one at the first line that `lines` tells, or for Java the one with the parameter types that follow
    the name, `write(byte[],int,int)`. Raises InputError naming the first that is missing or ambiguous.
    """
    its = next(each for each in libraries() if each.name == library)
    pairs = list(wanted)
    by_file: dict[str, list[Located]] = defaultdict(list)
    for located in functions_of(its, folder, {file for file, _ in pairs}):
        by_file[located.file].append(located)
    found: dict[tuple[str, str], Located] = {}
    for file, name in pairs:
        plain, bracket, types = name.partition("(")
        same = [
            each
            for each in by_file[file]
            if f".{each.function.qualified_name}".endswith(f".{plain}")
            and (not bracket or ",".join(parameter_types(each.function.signature)) == types.rstrip(")"))
        ]
        if len(same) > 1 and lines and (file, name) in lines:
            same = [min(same, key=lambda each: abs(each.function.first_line - lines[file, name]))]
        if len(same) != 1:
            kinds = "; ".join(f"({','.join(parameter_types(each.function.signature))})" for each in same)
            raise InputError(f"{library}: {file} has {len(same)} functions {name} {kinds}")
        found[file, name] = same[0]
    return found


# --- the table ---------------------------------------------------------------------------------------------------


def describe(library: str, name: str, its: Shares, run: Run) -> str:
    """One line for a reader."""
    return (
        f"{its.label():5} cpu {its.cpu:.2f} disk {its.disk:.2f} ({its.deferred:.2f}) net {its.net:.2f}"
        f" wait {its.wait:.2f} {run.wall_ms:8.1f} ms {library} {name}"
    )


Row = tuple[Located, Shares, Run, int, str]
"""Function, shares, median run, number of runs, tool."""


def store(rows: Iterable[Row], replaced: frozenset[str], path: Path | None = None) -> int:
    """Put measured functions into measured.tsv, and take out all others of the libraries in `replaced`; how many there
    are now. A function keeps its id, so that readings of it stay valid, and no id is given twice."""
    path = path or committed("measured")
    known = read_table(path, Measured) if path.is_file() else []
    readings = path.with_name("measured_readings.tsv")
    given = {each.id for each in known}
    given |= {each.id for each in read_table(readings, Reading)} if readings.is_file() else set()
    kept = {_key(each): each for each in known if each.library not in replaced}
    ids = {_key(each): each.id for each in known}
    following = 1 + max((int(each[1:]) for each in given), default=-1)
    for located, its, run, runs, tool in rows:
        function = located.function
        key = (located.library, located.file, function.qualified_name, located.text_hash)
        if key not in ids:
            ids[key] = f"m{following:04d}"
            following += 1
        kept[key] = Measured(
            ids[key],
            located.library,
            located.version,
            located.file,
            function.first_line,
            function.last_line,
            function.qualified_name,
            located.text_hash,
            its.label(),
            its.cpu,
            its.disk,
            its.net,
            its.wait,
            its.deferred,
            run.wall_ms,
            runs,
            tool,
        )
    write_table(path, Measured, sorted(kept.values(), key=lambda each: each.id))
    return len(kept)


def _key(its: Measured) -> tuple[str, str, str, str]:
    return its.library, its.file, its.qualified_name, its.text_hash
