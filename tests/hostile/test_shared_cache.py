"""Processes that share a cache do not destroy each other's work, also where all have the same number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf import indexes
from crystalperf.indexes import temporary
from crystalperf.indexes.errors import IndexFileError
from crystalperf.query.run import Run

Answer = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "runs" / "speculation"


def test_builders_with_equal_process_ids_do_not_collide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)
    path = tmp_path / "a.duckdb"
    with indexes.create(path, "index", {"note": "first"}), indexes.create(path, "index", {"note": "second"}):
        pass
    assert indexes.attach(__import__("duckdb").connect(), path, "index", "a")["note"] == "first"  # the last to finish
    assert os.listdir(tmp_path) == ["a.duckdb"]


def test_build_in_progress_is_not_removed_as_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another process, which cannot know it by its number."""
    with temporary.building_folder(tmp_path / "a") as folder:
        program = (
            "import sys, pathlib; from crystalperf.indexes import temporary;"
            " temporary.remove_stale(pathlib.Path(sys.argv[1]))"
        )
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, check=True)
        assert folder.is_dir()


def test_leftovers_of_a_killed_build_are_removed_by_the_next(tmp_path: Path) -> None:
    program = """if True:
        import os, pathlib, sys
        from crystalperf.indexes import temporary
        with temporary.building_folder(pathlib.Path(sys.argv[1])) as folder:
            (folder / "part").write_text("half")
            os._exit(9)
    """
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a")], cwd=ROOT, check=False)
    (left,) = tmp_path.iterdir()
    with temporary.building_folder(tmp_path / "b"):
        assert not left.exists()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("lock", [False, True])
def test_unlocked_folder_is_stale_after_a_minute(tmp_path: Path, lock: bool) -> None:
    """Of a process that was killed between making the folder and holding its lock, or that is just there."""
    left = tmp_path / ".a.17.building"
    left.mkdir()
    if lock:
        (left / "lock").touch()
    temporary.remove_stale(tmp_path)
    assert left.is_dir()
    old = time.time() - 2 * temporary.LOCKED_WITHIN_S
    os.utime(left, (old, old))
    temporary.remove_stale(tmp_path)
    assert not left.exists()


def test_without_working_locks_age_decides_what_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with temporary.building_folder(tmp_path / "a") as folder:
        temporary.remove_stale(tmp_path)
        assert folder.is_dir()
        old = time.time() - 2 * temporary.GIVEN_UP_S
        os.utime(folder, (old, old))
        temporary.remove_stale(tmp_path)
        assert not folder.exists()


def test_files_of_a_user_are_never_taken_for_temporaries(tmp_path: Path) -> None:
    old = time.time() - 2 * temporary.GIVEN_UP_S
    for name in (".hidden", "a.1.building", ".notes.building", "run.duckdb"):
        (tmp_path / name).write_text("mine")
        os.utime(tmp_path / name, (old, old))
    (tmp_path / ".run.duckdb.17.building").write_text("of an earlier version")
    os.utime(tmp_path / ".run.duckdb.17.building", (old, old))
    temporary.remove_stale(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".hidden", ".notes.building", "a.1.building", "run.duckdb"]


def test_threads_that_profile_one_log_all_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda _: cp.profile([LOG]), range(3)))
    assert len({run.path for run in runs}) == 1
    assert all(run.header().complete for run in runs)
    assert os.listdir(tmp_path / "home" / "runs") == [runs[0].path.name]


def test_run_file_is_private_to_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    before = os.umask(0)
    try:
        run = cp.profile([LOG])
    finally:
        os.umask(before)
    assert run.path.stat().st_mode & 0o777 == 0o600
    assert run.path.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_a_run_being_made_is_in_a_private_folder(tmp_path: Path) -> None:
    with indexes.create(tmp_path / "a.duckdb", "run", {}):
        (building,) = tmp_path.iterdir()
        assert building.stat().st_mode & 0o777 == 0o700


def test_a_build_that_fails_leaves_nothing(tmp_path: Path, run_copy: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IndexFileError), indexes.create(tmp_path / "folder", "run", {}):
        pass
    assert os.listdir(tmp_path / "folder") == []
    assert sorted(os.listdir(tmp_path)) == ["folder", "run"]
    assert Run(run_copy).header().complete


def test_next_removal_finishes_a_killed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the lock went, and before the rest did: nothing holds the folder, and it is not old."""

    def killed(folder: Path, **_: object) -> None:
        (Path(folder) / "lock").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("crystalperf.indexes.temporary.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt), temporary.building_folder(tmp_path / "a") as folder:
            (folder / "half").write_text("x")
    assert len(os.listdir(tmp_path)) == 1
    temporary.remove_stale(tmp_path)
    assert not os.listdir(tmp_path)
