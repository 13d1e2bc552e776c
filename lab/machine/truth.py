"""Ground truth of a run: task threads and executors, sampled from /proc.

``python -m lab.machine.truth --driver ADDRESS --out DIR`` finds the executors of the driver at that address, samples
their task threads every 50 ms until SIGTERM, and writes DIR/ticks.parquet and DIR/processes.parquet.

A thread's ``schedstat`` has its time on the CPU and in the run queue, in ns. ``syscall`` has its state otherwise:
``running`` (it waits for the CPU, or the quota is exhausted), or the system call that it sleeps in, and the kind of
file of that call. A waiting page fault has no call; it counts as disk.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np

from lab.errors import LabError

PERIOD_MS = 50
PROCESS_PERIOD_MS = 500
# The kernel has the first 15 characters of the thread name "Executor task launch worker for task …".
TASK_THREAD = "Executor task l"
# Java's asynchronous file channels read on unnamed threads; the task then waits on a futex.
HELPER_THREAD = "Thread-"

RUNNING, DISK, NETWORK, FUTEX, HELPED_DISK, PEER, OTHER = range(7)
CLASSES = ("running", "disk", "network", "futex", "helped disk", "peer", "other")

_ON_FILE = {
    "x86_64": {0: "read", 1: "write", 17: "pread", 18: "pwrite", 19: "readv", 20: "writev", 40: "sendfile"},
    "aarch64": {63: "read", 64: "write", 67: "pread", 68: "pwrite", 65: "readv", 66: "writev", 71: "sendfile"},
}
_ON_DISK = {"x86_64": {2, 74, 75, 77, 257, 277, 285}, "aarch64": {46, 47, 56, 82, 83, 84}}  # open, fsync, truncate …
_ON_NETWORK = {
    "x86_64": {7, 23, 42, 43, 44, 45, 46, 47, 232, 270, 271, 281, 288},  # poll, select, connect, accept, send, receive
    "aarch64": {22, 72, 73, 202, 203, 206, 207, 211, 212, 242},
}
_ON_FUTEX = {"x86_64": 202, "aarch64": 98}


def classify(call: str, fd_target: str, machine: str = "x86_64") -> int:
    """Class of a thread from the text of its ``syscall`` file and what the call's descriptor points to ("" unknown)."""
    word = call.split(" ", 1)[0].strip()
    if word in ("running", ""):
        return RUNNING
    number = int(word)
    if number == -1 or number in _ON_DISK[machine]:
        return DISK
    if number == _ON_FUTEX[machine]:
        return FUTEX
    if number in _ON_NETWORK[machine]:
        return NETWORK
    if number in _ON_FILE[machine]:
        if fd_target.startswith("/"):
            return DISK
        return NETWORK if fd_target.startswith("socket:") else OTHER
    return OTHER


def uses_descriptor(call: str, machine: str = "x86_64") -> bool:
    """Whether a call's class depends on its descriptor."""
    word = call.split(" ", 1)[0]
    return word.isdigit() and int(word) in _ON_FILE[machine]


@dataclass
class _Thread:
    schedstat: int
    syscall: int
    is_task: bool


@dataclass
class _Executor:
    pid: int
    name: str
    threads: dict[int, _Thread] = field(default_factory=dict)
    looked_at: dict[int, int] = field(default_factory=dict)
    children: list[int] = field(default_factory=list)
    cpu_ms: dict[int, float] = field(default_factory=dict)
    """CPU time of each of its processes at the last sample, so that the time of ended processes counts."""


@dataclass
class Recording:
    """Rows under way, one list a column."""

    ticks: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    processes: list[tuple[int, int, float, int, int, int, int, float]] = field(default_factory=list)


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def find_executors(driver: str) -> dict[int, str]:
    """Executor id of each process that is an executor of the driver at an address."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            command = _read(f"/proc/{entry}/cmdline").split("\0")
            if f"CoarseGrainedScheduler@{driver}:" not in " ".join(command) or "java" not in command[0]:
                continue
            if "--executor-id" in command:
                found[int(entry)] = command[command.index("--executor-id") + 1]
    return found


def _children(parents: set[int]) -> dict[int, list[int]]:
    """All descendants of each process, by one look at the whole table."""
    parent_of = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _read(f"/proc/{entry}/stat").rpartition(")")[2].split()
            if len(fields) > 1:
                parent_of[int(entry)] = int(fields[1])
    found: dict[int, list[int]] = {parent: [] for parent in parents}
    for pid in parent_of:
        above = parent_of.get(pid)
        while above:
            if above in parents:
                found[above].append(pid)
            above = parent_of.get(above)
    return found


class Sampler:
    """The state of one recording: open files of the sampled threads."""

    def __init__(self, driver: str) -> None:
        self.driver = driver
        self.executors: dict[int, _Executor] = {}
        self.recording = Recording()
        self.machine = platform.machine()
        if self.machine not in _ON_FILE:
            raise LabError(f"System calls of {self.machine} are unknown; the ground truth needs x86_64 or aarch64.")

    def look_for_executors(self) -> None:
        """Find executors that are new, and the processes that they started (Python workers)."""
        for pid, name in find_executors(self.driver).items():
            self.executors.setdefault(pid, _Executor(pid, name))
        for pid, children in _children(set(self.executors)).items():
            self.executors[pid].children = children

    def look_for_threads(self) -> None:
        """Find task threads that are new; a thread gets its name a moment after it was made."""
        for executor in self.executors.values():
            try:
                numbers = os.listdir(f"/proc/{executor.pid}/task")
            except OSError:
                continue
            for text in numbers:
                number = int(text)
                looks = executor.looked_at.get(number, 0)
                if number in executor.threads or looks > 3:
                    continue
                executor.looked_at[number] = looks + 1
                folder = f"/proc/{executor.pid}/task/{text}"
                name = _read(f"{folder}/comm").strip()
                if name == TASK_THREAD or name.startswith(HELPER_THREAD):
                    with contextlib.suppress(OSError):
                        executor.threads[number] = _Thread(
                            os.open(f"{folder}/schedstat", os.O_RDONLY),
                            os.open(f"{folder}/syscall", os.O_RDONLY),
                            name == TASK_THREAD,
                        )

    def _state(self, executor: _Executor, thread: _Thread) -> int:
        call = os.pread(thread.syscall, 200, 0).decode()
        target = ""
        if uses_descriptor(call, self.machine):
            with contextlib.suppress(OSError, IndexError, ValueError):
                target = os.readlink(f"/proc/{executor.pid}/fd/{int(call.split(' ')[1], 16)}")
        return classify(call, target, self.machine)

    def tick(self) -> None:
        """One sample of every task thread."""
        for executor in self.executors.values():
            helper_on_disk = 0
            seen = []
            for number, thread in list(executor.threads.items()):
                try:
                    state = self._state(executor, thread)
                    if not thread.is_task:
                        helper_on_disk += state == DISK
                        continue
                    on_cpu, waited, _ = os.pread(thread.schedstat, 100, 0).split()
                except OSError:  # the thread ended
                    os.close(thread.schedstat)
                    os.close(thread.syscall)
                    del executor.threads[number]
                    continue
                seen.append((number, int(on_cpu), int(waited), state))
            if not seen:
                continue
            now_ns = time.time_ns()
            busy_peers = sum(_is_running(pid) for pid in executor.children)
            for number, on_cpu_ns, waited_ns, state in seen:
                if state == FUTEX and helper_on_disk > 0:
                    helper_on_disk -= 1
                    state = HELPED_DISK
                elif state == NETWORK and busy_peers > 0:
                    busy_peers -= 1
                    state = PEER
                self.recording.ticks.append((now_ns, executor.pid, number, on_cpu_ns, waited_ns, state))

    def look_at_processes(self) -> None:
        """CPU time, bytes and throttling of every executor, its children's CPU with it."""
        for executor in self.executors.values():
            seen = {pid: _cpu_ms(pid) for pid in (executor.pid, *executor.children)}
            if seen[executor.pid] is None:
                continue
            executor.cpu_ms.update((pid, used) for pid, used in seen.items() if used is not None)
            inout = _numbers(_read(f"/proc/{executor.pid}/io"))
            received, sent = _network_bytes(_read(f"/proc/{executor.pid}/net/dev"))
            read, written = (inout.get(name, 0) for name in ("read_bytes", "write_bytes"))
            used = time.time_ns(), executor.pid, sum(executor.cpu_ms.values()), read, written
            self.recording.processes.append((*used, received, sent, _throttled_ms(executor.pid)))

    def write(self, folder: Path) -> None:
        """Write both tables as Parquet."""
        folder.mkdir(parents=True, exist_ok=True)
        name_of = {pid: executor.name for pid, executor in self.executors.items()}
        with duckdb.connect() as connection:
            for name, columns in COLUMNS.items():
                rows = getattr(self.recording, name)
                found = list(zip(*rows, strict=True)) or [()] * len(columns)
                arrays = {key: np.array(each, kind) for (key, kind), each in zip(columns.items(), found, strict=True)}
                arrays["executor_id"] = np.array([name_of[pid] for pid in found[1]], dtype=object)
                connection.register("columns", arrays)
                types = "REPLACE (executor_id::VARCHAR AS executor_id)"
                target = str(folder / f"{name}.parquet").replace("'", "''")
                connection.execute(f"COPY (SELECT * {types} FROM columns) TO '{target}' (COMPRESSION zstd)")
                connection.unregister("columns")


COLUMNS: dict[str, dict[str, type[np.generic] | type[object]]] = {
    "ticks": {
        "time_ns": np.int64, "executor_id": object, "thread": np.int32, "on_cpu_ns": np.int64,
        "run_queue_ns": np.int64, "class": np.int8,
    },
    "processes": {
        "time_ns": np.int64, "executor_id": object, "cpu_ms": np.float64, "read_bytes": np.int64,
        "write_bytes": np.int64, "received_bytes": np.int64, "sent_bytes": np.int64, "throttled_ms": np.float64,
    },
}  # fmt: skip
"""Both tables; `executor_id` begins as a process id."""


def _numbers(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"^(\w+):? (\d+)$", text, re.MULTILINE)}


def _is_running(pid: int) -> bool:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].lstrip()[:1] == "R"


def _cpu_ms(pid: int) -> float | None:
    """CPU time of a process, over all its threads; None if it has ended."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    if len(fields) <= 12 or fields[0] in "ZX":
        return None
    return 1000.0 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _network_bytes(text: str) -> tuple[int, int]:
    """Received and sent bytes of a namespace's link (eth0); without namespaces, those of the machine."""
    match = re.search(r"^\s*eth0:\s*(\d+)(?:\s+\d+){7}\s+(\d+)", text, re.MULTILINE)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _throttled_ms(pid: int) -> float:
    """Time for which the quota throttled a process's CPU cgroup."""
    for line in _read(f"/proc/{pid}/cgroup").split("\n"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(",") or (controllers == "" and path):
            root = "/sys/fs/cgroup/cpu" if controllers else "/sys/fs/cgroup"
            numbers = _numbers(_read(f"{root}{path}/cpu.stat"))
            if "throttled_time" in numbers:
                return numbers["throttled_time"] / 1e6
            if "throttled_usec" in numbers:
                return numbers["throttled_usec"] / 1e3
    return 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Sample until SIGTERM, then write."""
    parser = argparse.ArgumentParser(prog="python -m lab.machine.truth", description="Sample task threads from /proc.")
    parser.add_argument("--driver", required=True, metavar="ADDRESS", help="address of the driver")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder for the tables")
    parser.add_argument("--period-ms", type=int, default=PERIOD_MS, metavar="MS", help=f"default {PERIOD_MS}")
    given = parser.parse_args(arguments)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    try:
        sampler = Sampler(given.driver)
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    step_s = given.period_ms / 1000
    next_executors = next_processes = next_threads = 0.0
    while not ended:
        begin = time.monotonic()
        if begin >= next_executors:
            sampler.look_for_executors()
            next_executors = begin + (1.0 if sampler.executors else 0.2)
        if begin >= next_threads:
            sampler.look_for_threads()
            next_threads = begin + 2 * step_s
        sampler.tick()
        if begin >= next_processes:
            sampler.look_at_processes()
            next_processes = begin + PROCESS_PERIOD_MS / 1000
        time.sleep(max(0.005, step_s - (time.monotonic() - begin)))
    sampler.look_at_processes()
    sampler.write(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
