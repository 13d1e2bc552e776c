"""Checkouts of commits, and the cost of commands of crystalperf in them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.costs.processes import Cost, cost

ROOT = Path(__file__).parents[2]

ANSWERED = (0, 4)
"""Exit codes of an answer; 4 is an inconclusive answer before 0.1.0, because checkouts may be of any age."""

_PROGRAM = "import sys; sys.argv[0] = 'crystalperf'; from {} import main; main()"
_SCRIPT = re.compile(r'^crystalperf = "([\w.]+):main"', re.MULTILINE)


@contextmanager
def checkout(commit: str, scratch: Path) -> Iterator[Path]:
    """A working tree of a commit below `scratch`, with the compiled replay loop; removed after the block."""
    place = scratch / f"checkout-{commit}"
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(place), commit], check=True)
    try:
        build = [sys.executable, "-c", "from setuptools import setup; setup()", "--quiet", "build_ext", "--inplace"]
        subprocess.run(build, cwd=place, check=True, capture_output=True)
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def command(place: Path, arguments: Sequence[str]) -> list[str]:
    """The command line of crystalperf in a checkout, by the present Python."""
    script = _SCRIPT.search((place / "pyproject.toml").read_text(encoding="utf-8"))
    assert script is not None
    # Not the entry module, which only handles an interrupt.
    module = script[1].replace(".entry", ".main")
    # -P: otherwise the working directory would precede the checkout.
    return [sys.executable, "-P", "-c", _PROGRAM.format(module), *arguments]


def measured(
    place: Path,
    arguments: Sequence[str],
    home: Path,
    *,
    stdin: Path | None = None,
    answered: Collection[int] = ANSWERED,
    more: Mapping[str, str] | None = None,
) -> Cost:
    """The cost of a command of crystalperf in a checkout, with its cache in `home`.  Raises LabError where it fails."""
    paths = {"PYTHONPATH": str(place), **(more or {})}
    return cost(command(place, arguments), home, stdin=stdin, answered=answered, more=paths)
