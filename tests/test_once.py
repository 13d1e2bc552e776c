"""The basis of .ci/run: its second run of the tests has those that the first did not pass, and no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = """
import os, pytest

more = pytest.mark.skipif("MORE" not in os.environ, reason="needs more")

@pytest.mark.parametrize("text", ["a", "ü\\n"])
def test_passes(text): pass

@more
def test_of_more(): pass

def test_finds_out_late():
    if "MORE" not in os.environ: pytest.skip("needs more")

@pytest.fixture
def spoiled():
    yield
    assert "MORE" in os.environ

def test_fails_afterwards(spoiled): pass
"""


def outcomes(folder: Path, *options: str, **environment: str) -> list[str]:
    """The tests that ran to their end, without the file's name."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "MORE"))}
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.once", "-p", "no:cacheprovider", "--rootdir", "."]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    passed = [line for line in done.stdout.split("\n") if " PASSED" in line]
    return sorted(line.split(" PASSED")[0].partition("::")[2] for line in passed)


def test_the_second_run_has_what_the_first_did_not_pass(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_made.py").write_text(MADE, encoding="utf-8")
    late = (
        "import pytest, os\nif 'MORE' not in os.environ: pytest.skip('no', allow_module_level=True)\ndef test_x(): 0\n"
    )
    (tmp_path / "test_late.py").write_text(late)
    first = outcomes(tmp_path, "--passed-to", "passed")
    again = ["test_fails_afterwards", "test_finds_out_late", "test_of_more", "test_x"]
    both = [each for each in first if each.startswith("test_passes")]
    assert len(both) == 2
    (tmp_path / "test_new.py").write_text("def test_new(): 0\n")
    assert outcomes(tmp_path, "--not-again", "passed", MORE="1") == sorted([*again, "test_new"])
