"""Update the output of CrystalPerf in README.md: ``python examples/gzip-text/readme.py``.

It runs the command of each block that begins with ``$ crystalperf``, in an empty folder with ``recorded`` (the
committed recordings) and this example's ``functions.sql``, and replaces the block's output. It also updates the table
of reruns, from their times and the predictions. A test compares README.md with the result.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
RECORDINGS = REPOSITORY / "lab" / "recordings" / "gzip-text"
_BLOCK = re.compile(r"(?<=^```\n)\$ (?P<command>crystalperf .*)\n(?P<answer>(?:(?!```).*\n)*)(?=^```$)", re.MULTILINE)
_TABLE = re.compile(r"^\| where \|.*\n(?:\|.*\n)*", re.MULTILINE)
_ROWS = {"1-core": ("this machine", "1 core", "2 cores"), "cluster": ("cluster", "4 slots", "8 slots")}


def answered(text: str) -> str:
    """The text with current output in its blocks.  Raises CalledProcessError if a command fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "recorded").symlink_to(RECORDINGS)
        (folder / "functions.sql").symlink_to(HERE / "functions.sql")
        text = _BLOCK.sub(lambda block: f"$ {block['command']}\n{_answer(block['command'], folder)}", text)
        table = _table(folder)
        return _TABLE.sub(lambda _: table, text)


def _answer(command: str, folder: Path) -> str:
    own = {
        "CRYSTALPERF_HOME": str(folder / "home"),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    shell = f'crystalperf() {{ "{sys.executable}" -m crystalperf.cli.main "$@"; }}\n{command}'
    done = subprocess.run(
        ["bash", "-c", shell], cwd=folder, env=os.environ | own, stdout=subprocess.PIPE, text=True, check=True
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip("\n").split("\n"))


def _table(folder: Path) -> str:
    rows = ["| where | with | runs [s] | median [s] | predicted [s] | deviation |", "|---|---|---|---|---|---|"]
    for name, reruns in json.loads((RECORDINGS / "reruns.json").read_text(encoding="utf-8")).items():
        where, base, doubled = _ROWS[name]
        rows.append(f"| {where} | {base} | {_seconds(reruns['1'])} | | |")
        predicted_s, likely = _predicted(name, reruns["scope"], folder)
        deviation = predicted_s / statistics.median(reruns["2x"]) - 1
        rows.append(
            f"| | {doubled} | {_seconds(reruns['2x'])} | {predicted_s:.2f}{likely} | {deviation:+.0%} |".replace(
                "-", "−"
            )
        )
    return "".join(f"{row}\n" for row in rows)


def _seconds(runs: list[float]) -> str:
    return f"{', '.join(f'{run:.2f}' for run in runs)} | {statistics.median(runs):.2f}"


def _predicted(name: str, scope: str, folder: Path) -> tuple[float, str]:
    _answer(f"crystalperf profile recorded/{name} -o {name}.duckdb", folder)
    predict = f"crystalperf predict {name}.duckdb --set cores=2x --scope {scope} --json"
    answer: dict[str, Any] = json.loads(_answer(predict, folder))
    interval = answer.get("interval_ms")
    likely = "" if interval is None else f" ({interval[0] / 1000:.1f} to {interval[1] / 1000:.1f})"
    return float(answer["predicted_ms"]) / 1000, likely


if __name__ == "__main__":
    readme = HERE / "README.md"
    readme.write_text(answered(readme.read_text(encoding="utf-8")), encoding="utf-8")
