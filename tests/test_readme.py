"""The report that the README shows is the one that `make demo` prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_report_shown_is_that_of_the_demo(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"```\n\$ crystalperf analyze [^\n]*\n(.*?)```", text, re.DOTALL)
    assert shown is not None
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "analyze", str(ROOT / "lab" / "recordings" / "demo-q9")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"CRYSTALPERF_HOME": str(tmp_path), "COLUMNS": "80"},
    )
    printed = {line.rstrip() for line in done.stdout.split("\n")}
    wanted = [line.rstrip() for line in shown[1].split("\n") if line.strip() not in ("", "...")]
    assert len(wanted) >= 8
    assert [line for line in wanted if line not in printed] == []
