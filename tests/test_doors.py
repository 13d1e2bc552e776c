"""What is given at the doors, the terminal and Python: runs made before, logs on stdin, one path, other's files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import crystalperf as cp

ROOT = Path(__file__).parent.parent
LOG = "eventlog_v2_app-20261121113629-0000"
OTHER_LOG = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"

Answer = Callable[..., tuple[int, str, str]]


def as_user(*arguments: object, stdin: bytes | int = subprocess.DEVNULL) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own, fed through a pipe."""
    fed = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "crystalperf.cli.main", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        check=False,
        **fed,
    )


# A run that was made before -----------------------------------------------------------------------------------------


def test_a_run_made_before_is_shown_again(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    place = tmp_path / "q9.duckdb"
    code, first, _ = crystalperf("analyze", demo / LOG, "-o", place)
    assert code == 0
    before = place.stat().st_mtime_ns
    assert crystalperf("analyze", place)[:2] == (0, first)
    assert place.stat().st_mtime_ns == before


def test_a_run_in_the_cache_is_shown_again_by_its_name(crystalperf: Answer, demo_run: cp.Run) -> None:
    code, out, _ = crystalperf("analyze", demo_run.path.stem)
    assert code == 0
    assert out == crystalperf("analyze", demo_run.path)[1]


@pytest.mark.parametrize("more", [["-o", "other.duckdb"], ["--app", "app-1"], ["--index", "jdk-17"]])
def test_a_run_made_before_is_not_made_in_another_way(crystalperf: Answer, demo_run: cp.Run, more: list[str]) -> None:
    code, out, err = crystalperf("analyze", demo_run.path, *more)
    assert (code, out) == (1, "")
    assert "was profiled before" in err


def test_another_applications_run_is_replaced_by_force_alone(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine.duckdb"
    assert crystalperf("profile", demo / LOG, "-o", place)[0] == 0
    before = place.read_bytes()
    for command in ("profile", "analyze"):
        code, out, err = crystalperf(command, OTHER_LOG, "-o", place)
        assert (code, out) == (1, "")
        assert "holds the run of app-20261121113629-0000, not of " in err
        assert "--force" in err
        assert place.read_bytes() == before
    with pytest.raises(cp.CrystalPerfError, match="holds the run of"):
        cp.profile(OTHER_LOG, output=place)
    assert crystalperf("profile", OTHER_LOG, "-o", place, "--force")[0] == 0
    assert cp.open_run(place).header().app_id != "app-20261121113629-0000"


def test_force_replaces_runs_and_nothing_else(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine.txt"
    place.write_text("mine")
    code, _, err = crystalperf("profile", demo / LOG, "-o", place, "--force")
    assert code == 1
    assert "is no run file, so it stays" in err
    assert place.read_text() == "mine"


# Standard input -----------------------------------------------------------------------------------------------------


def test_a_log_is_read_from_a_pipe(demo: Path, tmp_path: Path) -> None:
    log = next((demo / LOG).glob("events_1_*"))
    place = tmp_path / "piped.duckdb"
    piped = as_user("analyze", "-", "-o", place, stdin=log.read_bytes())
    assert piped.returncode == 0, piped.stderr
    with log.open("rb") as stream:
        assert as_user("analyze", "-", "-o", place, stdin=stream.fileno()).stdout == piped.stdout
    assert piped.stdout == as_user("analyze", log, "-o", place).stdout


def test_what_a_pipe_brings_is_told_as_such() -> None:
    done = as_user("debug", "-", stdin=b"root:x:0:0\n")
    assert done.returncode == 1
    assert done.stderr.startswith(b"crystalperf: /dev/stdin: is text of a kind not known here")
    assert as_user("analyze", "-").stderr.startswith(b"crystalperf: /dev/stdin: is empty")


# Python -------------------------------------------------------------------------------------------------------------


def test_one_path_is_one_path() -> None:
    with pytest.raises(cp.CrystalPerfError, match=r"^nosuch: no such file or folder$"):
        cp.profile("nosuch")
    with pytest.raises(cp.CrystalPerfError, match=r"^/etc/passwd: is text of a kind not known here"):
        cp.profile("/etc/passwd")
    with pytest.raises(cp.CrystalPerfError, match=r"^/etc/passwd: is text of a kind not known here"):
        cp.profile(Path("/etc/passwd"))


# Indexes ------------------------------------------------------------------------------------------------------------


def test_resolve_says_which_indexes_it_took_and_why(crystalperf: Answer) -> None:
    frame = "at java.util.HashMap.get(HashMap.java:564)"
    code, out, err = crystalperf("index", "resolve", frame)
    assert code == 0
    assert "(jdk-17 " in out
    assert "No --index was given" in err
    assert "the first that knows a frame answered: jdk-17 (1 frame)" in err
    assert crystalperf("index", "resolve", frame, "--index", "jdk-17")[2] == ""


# The demo -----------------------------------------------------------------------------------------------------------


def test_the_demo_is_the_recorded_run(crystalperf: Answer, demo_run: cp.Run, demo: Path) -> None:
    code, out, err = crystalperf("demo")
    assert code == 0
    shown = out.partition("Kept as")[0]
    assert shown == crystalperf("analyze", demo)[1].partition("Kept as")[0]
    assert "a recorded run that comes with CrystalPerf" in err
