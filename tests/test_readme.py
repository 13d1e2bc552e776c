"""What the README shows is what users get: the report of `make demo`, and Python that a type checker takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crystalperf.query.run import Run

ROOT = Path(__file__).resolve().parent.parent


def test_the_report_shown_is_that_of_the_demo(demo_run: Run, shared_home: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n\$ crystalperf analyze [^\n]*\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    done = subprocess.run(
        [sys.executable, "-m", "crystalperf.cli.main", "analyze", str(ROOT / "lab" / "recordings" / "demo-q9")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"CRYSTALPERF_HOME": str(shared_home), "COLUMNS": "80"},
    )
    printed = {line.rstrip() for line in done.stdout.split("\n")}
    wanted = [line.rstrip() for line in shown[1].split("\n") if line.strip() not in ("", "...")]
    assert len(wanted) >= 8
    assert [line for line in wanted if line not in printed] == []


def test_the_python_shown_passes_a_strict_type_checker(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="the dev extra is not installed")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    # The second is wrong on purpose: if it passed too, the package had no types that a checker finds.
    (tmp_path / "shown.py").write_text(shown, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(f"{shown}print(run.debug().bottlenecks)\n", encoding="utf-8")
    # As in a user's project: without this repository's configuration, from which libraries are silent.
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--follow-imports", "silent"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), "--no-error-summary", "shown.py", "wrong.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )
    (error,) = done.stdout.rstrip("\n").split("\n")
    assert error.startswith("wrong.py:"), done.stdout + done.stderr
    assert 'has no attribute "bottlenecks"' in error
