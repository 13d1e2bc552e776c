"""Tests of a service: kill it again and again, and call it as its document allows and forbids."""

from __future__ import annotations

from pathlib import Path

import pytest

from crystalperf.query.run import Run
from lab.checks.calls import call
from lab.damage.kills import kill_again_and_again


@pytest.mark.later
def test_killed_service_loses_no_acknowledged_run(tmp_path: Path) -> None:
    seen, lost = kill_again_and_again(tmp_path / "home", 4, 7, 6.0)
    assert lost == []
    assert seen.jobs


@pytest.mark.later
def test_the_service_answers_as_its_document_says(log_run: Run) -> None:
    statuses, wrong = call(log_run.path, 200)
    assert wrong == []
    assert statuses[200] > 10
    assert set(statuses) > {400, 404}
