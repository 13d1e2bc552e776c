"""SIGKILL at random moments of two processes that share a cache: nothing half-written, nothing lost.

CRYSTALPERF_TEST_KILLS says how many; the issue asks for 1 000 before a release.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from indexes import store, temporary
from indexes.exports import import_index, verify

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "runs" / "speculation"
KILLS = int(os.environ.get("CRYSTALPERF_TEST_KILLS", "8"))

_PROGRAM = """
import sys
from pathlib import Path
import crystalperf as cp
from indexes import temporary
from indexes.exports import built_path, export_index, import_index, locate
what, log, folder = sys.argv[1:]
print("ready", flush=True)
while True:
    if what == "profile":
        cp.profile([log], output=Path(folder) / "run.duckdb").debug()
        (Path(folder) / "run.duckdb").unlink(missing_ok=True)
    elif what == "cache":
        cp.profile([log]).debug()
    elif what == "unpack":
        locate("parquet-1.15.2").unlink(missing_ok=True)
    elif what == "import":
        import_index(Path(folder) / "given", built_path("parquet-1.15.2"))
    else:
        export_index(Path(folder) / "given.duckdb", Path(folder) / "exported")
"""
WHAT = ("profile", "cache", "unpack", "import", "export")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from indexes.exports import prebuilt_folder

    (tmp_path / "given").symlink_to(prebuilt_folder() / "parquet-1.15.2")
    import_index(tmp_path / "given", tmp_path / "given.duckdb")
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    return tmp_path


def started(what: str, place: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _PROGRAM, what, str(LOG), str(place)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def named(folder: Path) -> list[Path]:
    """Everything that has its name, none of what is being built."""
    return [each for each in folder.rglob("*") if not any(part.startswith(".") for part in each.parts[-3:])]


def test_killed_processes_leave_whole_files(place: Path) -> None:
    moments = random.Random(16)
    for number in range(KILLS):
        pair = [started(WHAT[number % len(WHAT)], place), started(moments.choice(WHAT), place)]
        time.sleep(moments.uniform(0, 1.5))
        for each in pair:
            each.send_signal(signal.SIGKILL)
        for each in pair:
            _, err = each.communicate()
            assert not err, err.decode()
        for path in named(place):
            if path.suffix == ".duckdb":
                kind = "run" if "run" in path.stem or path.parent.name == "runs" else "index"
                assert store.checked(path, kind)  # type: ignore[arg-type]
                if kind == "index":
                    verify(path)
        if (place / "exported").exists():
            import_index(place / "exported", place / "again.duckdb")
    for folder in [place, *(each for each in (place / "home").rglob("*") if each.is_dir())]:
        if folder.is_dir():
            temporary.remove_stale(folder)
    assert not [each for each in place.rglob(".*") if each.name.endswith(".building")]
