"""The cost of a statement is bounded: in memory, in time, and when the user interrupts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crystalperf.query.statements import asking

Answer = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]

ENDLESS = "SELECT levenshtein(repeat('a', 10000000), repeat('b', 10000000))"


def test_statement_that_ignores_interrupts_is_stopped(crystalperf: Answer, run_copy: Path) -> None:
    code, out, err = crystalperf("sql", "--run", run_copy, "--timeout", "1", ENDLESS)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "--timeout" in err


def busy_child(process: subprocess.Popen[bytes]) -> str:
    """The process that answers, once it has used 2 s of CPU: to start takes less, so it is at the statement."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    begin = time.monotonic()
    while time.monotonic() - begin < 120:
        for child in children.read_text().split():
            words = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            if (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK") > 2.0:
                return child
        time.sleep(0.1)
    process.kill()
    raise AssertionError("no process became busy")


@pytest.mark.later
def test_first_interrupt_stops_the_statement(run_copy: Path) -> None:
    command = [sys.executable, "-m", "crystalperf.cli.main", "sql", "--run", str(run_copy), "--timeout", "0", ENDLESS]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # tests in the background ignore it, and so would it
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            child = busy_child(process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")
    assert not Path(f"/proc/{child}").exists()


def test_worker_process_ends_with_its_parent(run_copy: Path) -> None:
    command = [sys.executable, "-m", "crystalperf.cli.main", "sql", "--run", str(run_copy), "--timeout", "0", ENDLESS]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = busy_child(process)
    begin = time.monotonic()
    process.kill()
    process.wait()
    while Path(f"/proc/{child}/cmdline").exists() and Path(f"/proc/{child}/cmdline").read_bytes():
        assert time.monotonic() - begin < 60
        time.sleep(0.1)


def test_large_rows_are_sent_in_small_batches(crystalperf: Answer, run_copy: Path) -> None:
    statement = "SELECT range AS n, repeat('x', 100000) AS long FROM range(300)"
    code, out, err = crystalperf("sql", "--run", run_copy, "--json", statement)
    assert (code, err) == (0, "")
    assert [(each["n"], len(each["long"])) for each in json.loads(out)] == [(n, 100_000) for n in range(300)]


def test_messages_are_small_whatever_the_rows_are(run_copy: Path) -> None:
    request = asking.Request("SELECT range, repeat('x', 100000) FROM range(500)", str(run_copy), [], 1 << 30, 8 << 30)
    with asking.answering(request, 60) as (_, batches):
        sizes = [len(json.dumps(each)) for each in batches]
    assert max(sizes) < 8 * (1 << 20)
    assert sum(sizes) > 40_000_000


@pytest.mark.later
def test_memory_that_duckdb_does_not_count_has_a_limit(
    crystalperf: Answer, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "OTHER_ADDRESSES", 3 << 30)
    statement = "SELECT list(repeat('x', 1000000)) FROM range(100000)"
    code, out, err = crystalperf("sql", "--run", run_copy, "--json", statement)
    assert (code, err.count("\n")) == (1, 1)
    assert json.loads(out)["schema"] == "crystalperf.error/2"
    assert "memory" in err


def test_the_process_that_answers_has_its_limits(run_copy: Path) -> None:
    request = asking.Request("SELECT 1", str(run_copy), [], 1 << 30, 7 << 30)
    process = asking.started()
    with asking.answering(request, 60, process) as (_, batches):
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert [row for batch in batches for row in batch] == [[1]]
    for name, most in (("Max address space", 7 << 30), ("Max file size", 0), ("Max core file size", 0)):
        (line,) = (each for each in limits.splitlines() if each.startswith(name))
        assert line.removeprefix(name).split()[0] == str(most)


def test_default_time_limit_applies() -> None:
    import inspect

    from crystalperf.cli.commands import sql
    from crystalperf.query.sql.rows import TIMEOUT_S

    assert inspect.signature(sql).parameters["timeout"].default == TIMEOUT_S > 0


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT TIMESTAMPTZ '2026-11-21 10:00:00+00' AS a, 2 AS b, 3 AS b",
        "SELECT now() AS a",
        "SELECT now() AS a -- and so on",
        "SELECT now() AS a;",
        "SELECT current_timestamp, TIMETZ '10:00:00+02' AS t",
    ],
)
def test_timestamps_with_a_zone_need_no_other_package(statement: str, crystalperf: Answer, run_copy: Path) -> None:
    for how in ("--json", "--csv"):
        code, out, err = crystalperf("sql", "--run", run_copy, how, statement)
        assert (code, err) == (0, "")
        assert "20" in out or "10:00" in out


def test_the_process_that_answers_writes_no_file(run_copy: Path, crystalperf: Answer) -> None:
    before = sorted(os.listdir(run_copy.parent))
    crystalperf("sql", "--run", run_copy, "SELECT * FROM range(1000000) ORDER BY hash(range) LIMIT 3")
    assert sorted(os.listdir(run_copy.parent)) == before


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement", ["UPDATE EXTENSIONS", "FORCE CHECKPOINT", "SELECT error('x')", "SELECT 'a'::BLOB"]
)
def test_other_statements_end_in_an_answer_or_one_sentence(statement: str, crystalperf: Answer, run_copy: Path) -> None:
    code, out, err = crystalperf("sql", "--run", run_copy, statement)
    assert code in (0, 1)
    assert (out == "") == (code == 1)
    assert "bug" not in err
