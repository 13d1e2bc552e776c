"""SECURITY.md: what it says about connections is true, and what it names exists."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "SECURITY.md"

WATCHED = """
import json, sys
from pathlib import Path
seen = []
sys.addaudithook(lambda event, values: seen.append(event) if event.startswith("socket.") else None)
from crystalperf.cli.main import run
codes = [run(each) for each in json.loads(sys.argv[1])]
Path(sys.argv[2]).write_text(json.dumps([codes, seen]))
"""


def watched(commands: list[list[str]], folder: Path) -> tuple[list[int], list[str]]:
    """The exit codes of commands in one process, and the events of sockets during them."""
    out = folder / "seen.json"
    command = [sys.executable, "-c", WATCHED, json.dumps(commands), str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    codes, seen = json.loads(out.read_text())
    return codes, seen


def test_analysis_prediction_and_report_open_no_socket(tmp_path: Path) -> None:
    run, page = str(tmp_path / "run.duckdb"), str(tmp_path / "run.html")
    log = str(ROOT / "tests/data/eventlog/q9.zstd")
    commands = [["analyze", log, "-o", run], ["predict", run, "--set", "cores=2x"], ["report", run, "-o", page]]
    assert watched(commands, tmp_path) == ([0, 0, 0], [])


def test_an_address_that_the_user_gives_opens_a_socket(tmp_path: Path) -> None:
    codes, seen = watched([["analyze", "http://127.0.0.1:1"]], tmp_path)
    assert codes == [1]
    assert "socket.connect" in seen


@pytest.mark.parametrize("question", ["send", "download", "execute", "trust", "report"])
def test_first_table_answers_the_questions_of_users(question: str) -> None:
    first = PAGE.read_text(encoding="utf-8").partition("\n## ")[0]
    assert re.search(rf"^\| W?H?\w+ .*\b{question}\b.*\? \| ", first, re.MULTILINE)


def test_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`((?:tests|indexes|indexer|query|service)/[\w./]+)`", PAGE.read_text(encoding="utf-8"))
    assert named
    assert all((ROOT / each).exists() for each in named)
