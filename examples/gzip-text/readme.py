"""Put the tool's answers about the recorded runs into README.md: ``python examples/gzip-text/readme.py``.

Each block of README.md that begins with ``$ crystalperf`` is run as it stands, in an empty folder in which
``recorded`` is the folder of committed recordings and ``functions.sql`` this example's, and gets what that prints.
A test compares the two.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
RECORDINGS = REPOSITORY / "lab" / "recordings" / "gzip-text"
_BLOCK = re.compile(r"(?<=^```\n)\$ (?P<command>crystalperf .*)\n(?P<answer>(?:(?!```).*\n)*)(?=^```$)", re.MULTILINE)


def answered(text: str) -> str:
    """The text with the answers of today's tool in its blocks.  Raises CalledProcessError where a command fails."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "recorded").symlink_to(RECORDINGS)
        (Path(folder) / "functions.sql").symlink_to(HERE / "functions.sql")
        return _BLOCK.sub(lambda block: f"$ {block['command']}\n{_answer(block['command'], Path(folder))}", text)


def _answer(command: str, folder: Path) -> str:
    own = {
        "CRYSTALPERF_HOME": str(folder / "home"),
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")]),
    }
    shell = f'crystalperf() {{ "{sys.executable}" -m cli.main "$@"; }}\n{command}'
    done = subprocess.run(
        ["bash", "-c", shell], cwd=folder, env=os.environ | own, stdout=subprocess.PIPE, text=True, check=True
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.rstrip("\n").split("\n"))


if __name__ == "__main__":
    readme = HERE / "README.md"
    readme.write_text(answered(readme.read_text(encoding="utf-8")), encoding="utf-8")
