"""Fixtures that tests of hostile inputs share."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crystalperf.query.run import Run


@pytest.fixture
def run_copy(log_run: Run, tmp_path: Path) -> Path:
    """A run file of its own for a test that may spoil it."""
    folder = tmp_path / "run"
    folder.mkdir()
    return Path(shutil.copy(log_run.path, folder / "run.duckdb"))
