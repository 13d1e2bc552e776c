"""Measure what functions of Python's library, fsspec, requests and urllib3 spend their time on.

    python -m lab.measure.python SOURCES SCRATCH

SOURCES is what indexer.labels.fetch fetched. Each workload of calls/ is run a few times in a child process, with and
without strace (paper, §3.4). It runs on a disk with empty caches and against servers that take their time (host.py,
peers.py). The results go to indexer/labels/measured.tsv. A function is left out where this interpreter's text of it is
not the text in SOURCES. Root makes for better conditions: caches of names are emptied too, and peers are a round trip
away. Needs strace, and fsspec, requests, urllib3 and aiohttp of the versions in libraries.toml.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from crystalperf.indexes.errors import CrystalPerfError, SettingError
from lab.measure.host import Host, prepared
from lab.measure.places import find, python_lines, same_text
from lab.measure.strace import MARK, STRACE, Blocked, blocked_times, parse_strace
from lab.measure.table import describe, store
from lab.measure.times import Run, Shares, middle, middle_blocked, shares

WARM_RUNS = 1
"""The first run imports, compiles and fills tables: not counted."""
PLAIN_RUNS = 3
TRACED_RUNS = 2

PACKAGES = ("fsspec", "requests", "urllib3")


@dataclass(frozen=True, slots=True)
class Function:
    """Where the interpreter says a measured function is."""

    path: str
    qualified: str
    line: int


# --- the child ---------------------------------------------------------------------------------------------------


def child(folder: Path, peer: str, ports: dict[str, int], runs: int, only: str) -> None:
    """Run every workload `runs` times; one JSON object a line to standard output, answers from standard input.

    Asks `cool` and `sync` of the parent, since both are traced calls that are not the workload's.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a measured function prints is no message

    def tell(**message: object) -> None:
        print(json.dumps(message), file=out, flush=True)

    def ask(what: str) -> str:
        tell(ask=what)
        if not (line := sys.stdin.readline()):
            raise SystemExit(1)  # the parent is gone
        return line.strip()

    from lab.measure.calls.all import CASES
    from lab.measure.calls.cases import Place

    for number, (function, workload) in enumerate(CASES):
        where = function_of(function)
        if where is None or not re.search(only, where.qualified):
            if where is None:
                tell(failed=number, why=f"{function!r} is not written in Python")
            continue
        tell(case=number, **asdict(where))
        for run in range(runs):
            place = folder / "w"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            gc.collect()
            ask("sync")
            try:
                for call in workload(Place(place, peer, ports)):
                    if call is None:
                        gc.collect()  # an open file would keep the file system from being unmounted
                        if (answer := ask("cool")) != "ok":
                            raise OSError(answer)
                    else:
                        tell(result=number, run=run, **asdict(timed(call, number, run, ask)))
            except Exception as error:  # a workload that fails says so, and the others go on
                tell(failed=number, why=f"{type(error).__name__}: {error}")
                break
    tell(done=len(CASES))


def function_of(function: Any) -> Function | None:
    """The place of a function, method, class method or generator function; None where it is not Python code."""
    its = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(its, "__code__", None)
    if code is None:
        return None
    path = code.co_filename
    if path.startswith("<frozen"):  # os and a few others are compiled into the interpreter
        path = str(sys.modules[its.__module__].__file__)
    return Function(path, its.__qualname__, code.co_firstlineno)


def timed(call: Callable[[], Any], number: int, run: int, ask: Callable[[str], str]) -> Run:
    """One run between two marks; nothing slow before it, a peer may be answering already."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as schedule:
        gc.disable()
        queued = _queued_ns(schedule)
        os.access(f"{MARK}/{number}/{run}/begin", os.F_OK)
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        result = call()
        wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
        os.access(f"{MARK}/{number}/{run}/end", os.F_OK)
        queued = _queued_ns(schedule) - queued
        gc.enable()
    deferred = int(ask("sync"))
    del result
    return Run(wall / 1e6, cpu / 1e6, queued / 1e6, deferred / 1e6)


def _queued_ns(schedule: IO[str]) -> int:
    schedule.seek(0)
    return int(schedule.read().split()[1])


# --- the parent --------------------------------------------------------------------------------------------------


@contextmanager
def peers() -> Iterator[dict[str, int]]:
    """The ports of the servers of peers.py, by name."""
    with subprocess.Popen(
        [sys.executable, "-m", "lab.measure.peers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.kill()


def serve(command: Sequence[str], host: Host, environment: dict[str, str]) -> Generator[dict[str, Any], None, None]:
    """Run a child, do what it asks, and pass on what it tells; raises SettingError where it ends before it is done.

    Whatever ends this, the child ends with it, and what strace traces: the group is killed.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        done = False
        try:
            for line in process.stdout:
                message = json.loads(line)
                if "ask" in message:
                    process.stdin.write(f"{answer(message['ask'], host)}\n")
                    process.stdin.flush()
                elif "done" in message:
                    done = True
                else:
                    yield message
            process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if not done:
        raise SettingError(f"{' '.join(command[:3])} … ended with code {process.returncode} before it was done")


def answer(asked: str, host: Host) -> str:
    """What a child gets for `cool` or `sync`."""
    if asked == "sync":
        return str(host.sync())
    try:
        host.cool()
    except SettingError as error:
        return str(error)
    return "ok"


def measure(
    command: Callable[[int], Sequence[str]], host: Host, environment: dict[str, str], scratch: Path
) -> tuple[dict[int, dict[str, Any]], dict[int, tuple[Shares, Run]]]:
    """Run a child of so many runs plainly, then under strace; (what it says of each case, results) by case."""
    told: dict[int, dict[str, Any]] = {}
    runs: dict[int, list[Run]] = defaultdict(list)
    for message in serve(command(WARM_RUNS + PLAIN_RUNS), host, environment):
        if "case" in message:
            told[message["case"]] = message
        elif "failed" in message:
            print(f"left out: {told.get(message['failed'], {}).get('qualified', '')} {message['why']}", flush=True)
            runs.pop(message["failed"], None)
        elif message["run"] >= WARM_RUNS:
            values = (message[name] for name in ("wall_ms", "cpu_ms", "queued_ms", "deferred_ms"))
            runs[message["result"]].append(Run(*values))
    trace = scratch / "strace.txt"
    for message in serve([*STRACE, "-o", str(trace), *command(WARM_RUNS + TRACED_RUNS)], host, environment):
        if "failed" in message:
            runs.pop(message["failed"], None)
    with trace.open(encoding="utf-8", errors="replace") as lines:
        times = blocked_times(parse_strace(lines))
    trace.unlink()
    blocked: dict[int, list[Blocked]] = defaultdict(list)
    for (number, run), its in times.items():
        if run >= WARM_RUNS:
            blocked[number].append(its)
    results = {}
    for number, its_runs in runs.items():
        if len(its_runs) == PLAIN_RUNS and blocked[number]:
            run_ = middle(its_runs)
            results[number] = (shares(run_, middle_blocked(blocked[number])), run_)
    return told, results


def place_in(sources: Path, path: str) -> tuple[str, str] | None:
    """(library, file within it) of a path of this interpreter."""
    parts = Path(path).parts
    for package in PACKAGES:
        if package in parts:
            relative = "/".join(parts[parts.index(package) :])
            found = sorted((sources / package).rglob(relative))
            return (package, found[0].relative_to(sources / package).as_posix()) if found else None
    for root in {Path(os.__file__).parent, Path(os.__file__).resolve().parent}:
        if Path(path).is_relative_to(root):
            return "python-stdlib", f"Lib/{Path(path).relative_to(root).as_posix()}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.measure.python", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sources", type=Path, help="the sources that crystalperf.indexer.labels.fetch fetched")
    parser.add_argument("scratch", type=Path, help="a folder on a disk, with 3 GB free")
    parser.add_argument(
        "--only",
        default="",
        help="only functions whose name this regular expression finds; the others stay as they were measured",
    )
    parser.add_argument("--folders", type=int, default=300, help="how many folders 300 small files are scattered over")
    parser.add_argument("--table", type=Path, help="where the results go instead of measured.tsv")
    arguments = parser.parse_args()
    if not shutil.which("strace"):
        print("strace is needed and was not found; on Debian and Ubuntu install the package strace", file=sys.stderr)
        return 1
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["CRYSTALPERF_MEASURE_FOLDERS"] = str(arguments.folders)
    try:
        with prepared(arguments.scratch) as host, peers() as ports:

            def command(runs: int) -> list[str]:
                its = [str(host.folder), host.peer, json.dumps(ports), str(runs), arguments.only]
                return [sys.executable, "-m", "lab.measure.python", "--child", *its]

            told, results = measure(command, host, environment, arguments.scratch)
        return report(arguments.sources, told, results, arguments.table, some=bool(arguments.only))
    except CrystalPerfError as error:
        print(error, file=sys.stderr)
        return 1


def report(
    sources: Path,
    told: dict[int, dict[str, Any]],
    results: dict[int, tuple[Shares, Run]],
    table: Path | None,
    *,
    some: bool,
) -> int:
    """Print what was measured and put it into measured.tsv."""
    wanted: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for number in sorted(results):
        its = told[number]
        found = place_in(sources, its["path"])
        if found is None or not same_text(Path(its["path"]), sources / found[0] / found[1], its["qualified"]):
            print(f"left out: {its['qualified']} of {its['path']} is not the text in {sources}")
            continue
        wanted[found[0]].setdefault((found[1], its["qualified"]), number)
    rows = []
    for library, places in wanted.items():
        lines = {
            (file, name): python_lines((sources / library / file).read_text(encoding="utf-8"), name)
            for file, name in places
        }
        located = find(library, places, sources, {key: span[0] for key, span in lines.items() if span})
        for key, number in places.items():
            its_shares, run = results[number]
            rows.append((located[key], its_shares, run, PLAIN_RUNS, "strace"))
            print(describe(library, key[1], its_shares, run))
    replaced = frozenset() if some else frozenset(["python-stdlib", *PACKAGES])
    print(f"{len(rows)} functions measured, {store(rows, replaced, table)} in {table or 'measured.tsv'}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        tempfile.tempdir = sys.argv[2]
        child(Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5]), sys.argv[6])
        os._exit(0)
    sys.exit(main())
