"""Inputs of the command line and of Python: existing runs, logs on stdin, one path, files of other tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import Remedy
from tests.refusals import is_one_line, refused

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


def test_existing_run_is_shown_again(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
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
def test_existing_run_is_not_profiled_with_other_options(
    crystalperf: Answer, demo_run: cp.Run, more: list[str]
) -> None:
    code, out, err = crystalperf("analyze", demo_run.path, *more)
    assert (code, out) == (1, "")
    is_one_line(err, demo_run.path)


def test_run_of_another_application_is_replaced_only_with_force(
    crystalperf: Answer, demo: Path, tmp_path: Path
) -> None:
    place = tmp_path / "mine.duckdb"
    assert crystalperf("profile", demo / LOG, "-o", place)[0] == 0
    before = place.read_bytes()
    for command in ("profile", "analyze"):
        code, out, err = crystalperf(command, OTHER_LOG, "-o", place)
        assert (code, out) == (1, "")
        is_one_line(err, place, "app-20261121113629-0000", "--force")
        assert place.read_bytes() == before
    with refused(cp.CrystalPerfError, place, "app-20261121113629-0000", remedy=Remedy("replace it")):
        cp.profile(OTHER_LOG, output=place)
    assert crystalperf("profile", OTHER_LOG, "-o", place, "--force")[0] == 0
    assert cp.open_run(place).header().app_id != "app-20261121113629-0000"


def test_force_replaces_runs_and_nothing_else(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    place = tmp_path / "mine.txt"
    place.write_text("mine")
    code, _, err = crystalperf("profile", demo / LOG, "-o", place, "--force")
    assert code == 1
    is_one_line(err, place)
    assert place.read_text() == "mine"


# Standard input -----------------------------------------------------------------------------------------------------


def test_a_log_is_read_from_a_pipe(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    log = next((demo / LOG).glob("events_1_*"))
    place = tmp_path / "piped.duckdb"
    piped = as_user("analyze", "-", "-o", place, stdin=log.read_bytes())
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.decode() == crystalperf("analyze", log, "-o", place)[1]


@pytest.mark.later
def test_a_log_is_read_from_a_file_on_standard_input(demo: Path, tmp_path: Path) -> None:
    log, place = next((demo / LOG).glob("events_1_*")), tmp_path / "piped.duckdb"
    with log.open("rb") as stream:
        redirected = as_user("analyze", "-", "-o", place, stdin=stream.fileno())
    assert redirected.stdout == as_user("analyze", log, "-o", place).stdout


@pytest.mark.later
def test_unusable_input_from_a_pipe_is_reported() -> None:
    done = as_user("debug", "-", stdin=b"root:x:0:0\n")
    assert done.returncode == 1
    for each in (done, as_user("analyze", "-")):
        is_one_line(each.stderr.decode(), "/dev/stdin")


# Python -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["nosuch", "/etc/passwd", Path("/etc/passwd")])
def test_accepts_a_path_alone_as_text_or_path(path: str | Path) -> None:
    with refused(cp.CrystalPerfError) as error:
        cp.profile(path)
    assert str(error.value).startswith(f"{path}: "), "and not its first letter"


# Indexes ------------------------------------------------------------------------------------------------------------


def test_resolve_says_which_indexes_it_took_and_why(crystalperf: Answer) -> None:
    frame = "at java.util.HashMap.get(HashMap.java:564)"
    code, out, err = crystalperf("index", "resolve", frame)
    assert code == 0
    assert "(jdk-17 " in out
    is_one_line(err, "--index", "jdk-17", 1)
    assert crystalperf("index", "resolve", frame, "--index", "jdk-17")[2] == ""


# The demo -----------------------------------------------------------------------------------------------------------


def test_the_demo_is_the_recorded_run(crystalperf: Answer, demo_run: cp.Run, demo: Path) -> None:
    code, out, err = crystalperf("demo")
    assert code == 0
    shown = out.partition("Saved as")[0]
    assert shown == crystalperf("analyze", demo)[1].partition("Saved as")[0]
    is_one_line(err)
