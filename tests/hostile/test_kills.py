"""SIGKILL at random moments of two processes that share a cache: nothing half-written, nothing lost.

CRYSTALPERF_TEST_KILLS says how many processes are killed; 1 000 before a release.  The processes are forked from one
that has imported everything, and all have the number 1, as in containers.  A process is killed when it has had some
CPU time, not after some time of the clock, so that a busy machine has them killed at the same moments as an idle one.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crystalperf.indexes import store, temporary
from crystalperf.indexes.exports import import_index, prebuilt_folder, verify

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "runs" / "speculation"
KILLS = int(os.environ.get("CRYSTALPERF_TEST_KILLS", "16"))
LONGEST_CPU_S = 0.6
LONGEST_WAIT_S = 60.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

WHAT = ("analyze", "profile", "unpack", "import", "export", "build")

_NURSERY = """
import os, signal, sys
from pathlib import Path

import crystalperf as cp
import crystalperf.query.runfile.pipeline, crystalperf.query.run
from crystalperf.cli.main import run as type_command
from crystalperf.indexes import store
from crystalperf.indexes.exports import built_path, export_index, import_index, locate
from crystalperf.query.frameworks.registry import frameworks
try:
    import crystalperf.indexer.build
    from crystalperf.indexer.sources import open_source
    from tests.hash_classifier import HashClassifier
except ImportError:  # without the extra, an index is built of rows
    open_source = None

log, folder = Path(sys.argv[1]), Path(sys.argv[2])
frameworks()


def build():
    path = folder / "made.duckdb"
    if open_source is None:
        with store.create(path, "index", {"content_hash": "none"}) as connection:
            connection.execute("INSERT INTO classes SELECT 'a.B$' || range, 'x', 1, 2 FROM range(3000)")
    else:
        crystalperf.indexer.build.build("acme-1", open_source("acme-1", [folder / "sources"]), output=path, workers=1,
                            classifier=HashClassifier())


def forever(what):
    number = 0
    while True:
        number += 1
        if what == "analyze":  # the log changes, so the kept run is made again while the other process may read it
            os.utime(next(log.rglob("events_*")), (number, number + os.times().elapsed))
            assert type_command(["analyze", str(log)]) in (0, 4)
        elif what == "profile":
            assert type_command(["profile", str(log), "-o", str(folder / "run.duckdb")]) == 0
            (folder / "run.duckdb").unlink(missing_ok=True)
        elif what == "unpack":
            locate("parquet-1.15.2").unlink(missing_ok=True)
        elif what == "import":
            import_index(folder / "given", built_path("parquet-1.15.2"))
        elif what == "export":
            export_index(folder / "given.duckdb", folder / "exported")
        else:
            build()


signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.getpid = lambda: 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            forever(line.strip())
        except BaseException:
            import traceback
            traceback.print_exc()
        os._exit(1)
    print(child, flush=True)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(LOG, tmp_path / "log")
    shutil.copytree(ROOT / "tests" / "data" / "sources" / "python", tmp_path / "sources")
    (tmp_path / "given").symlink_to(prebuilt_folder() / "parquet-1.15.2")
    import_index(tmp_path / "given", tmp_path / "given.duckdb")
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    return tmp_path


def cpu_s(process: int) -> float | None:
    """The peak memory of a process so far; None if it is gone."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(words[11]) + int(words[12])) / CLOCK_TICKS


def kill_both(processes: dict[int, float]) -> None:
    """Kill each process when it has had so much CPU time."""
    waiting = dict(processes)
    given_up = time.monotonic() + LONGEST_WAIT_S
    while waiting:
        for process, moment_s in list(waiting.items()):
            had_s = cpu_s(process)
            assert had_s is not None, "a process ended by itself"
            if had_s >= moment_s or time.monotonic() > given_up:
                os.kill(process, signal.SIGKILL)
                del waiting[process]
        time.sleep(0.002)
    while any(cpu_s(each) is not None for each in processes):
        time.sleep(0.002)


def named(folder: Path) -> list[Path]:
    """Every database that has its name, none of what is being built."""
    return [
        each
        for each in folder.rglob("*.duckdb")
        if not any(part.startswith(".") for part in each.relative_to(folder).parts)
    ]


def check(folder: Path, seen: dict[Path, tuple[int, int]]) -> None:
    """Checks that all named files are complete; `seen` has the files that were checked before and are unchanged."""
    there = named(folder)
    for path in there:
        status = path.stat()
        if seen.get(path) == (status.st_ino, status.st_mtime_ns):
            continue
        seen[path] = status.st_ino, status.st_mtime_ns
        kind = "run" if path.stem == "run" or path.parent.name == "runs" else "index"
        facts = store.checked(path, kind)  # type: ignore[arg-type]
        if kind == "index" and facts.get("content_hash") != "none":
            verify(path)
    kept = {path for path in seen if path.parent.name == "runs" or path.name in ("given.duckdb", "made.duckdb")}
    assert kept <= set(there), "a file is missing that existed before"
    exported = folder / "exported"
    if exported.exists():
        signature = exported.stat().st_ino, exported.stat().st_mtime_ns
        if seen.get(exported) != signature:
            import_index(exported, folder / "again.duckdb")
            seen[exported] = signature


@pytest.mark.later  # kills processes at random for 5 s
def test_killed_processes_leave_complete_files(place: Path) -> None:
    moments = random.Random(16)
    seen: dict[Path, tuple[int, int]] = {}
    command = [sys.executable, "-c", _NURSERY, str(place / "log"), str(place)]
    with (place / "errors").open("wb") as errors:
        nursery = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert nursery.stdout.readline() == b"ready\n", (place / "errors").read_text()
        for number in range(0, KILLS, 2):
            pair, first = {}, WHAT[number // 2 % len(WHAT)]
            # Two processes that make and remove the same run would disturb each other.
            others = [each for each in WHAT if (first, each) != ("profile", "profile")]
            for what in (first, moments.choice(others)):
                nursery.stdin.write(f"{what}\n".encode())
                nursery.stdin.flush()
                pair[int(nursery.stdout.readline())] = moments.uniform(0, LONGEST_CPU_S)
            kill_both(pair)
            errors_text = (place / "errors").read_text()
            assert "Traceback" not in errors_text, errors_text
            assert "crystalperf:" not in errors_text, errors_text
            check(place, seen)
    finally:
        nursery.stdin.close()
        nursery.wait()
        nursery.stdout.close()
    for left in place.rglob(".*.building"):  # one killed before it could lock its folder leaves it for a minute
        for each in (left / "lock", left):
            if each.exists():
                os.utime(each, (0, 0))
    for folder in [place, *(each for each in (place / "home").rglob("*") if each.is_dir())]:
        if folder.is_dir():
            temporary.remove_stale(folder)
    assert not [each for each in place.rglob(".*") if each.name.endswith((".building", ".removed"))]
