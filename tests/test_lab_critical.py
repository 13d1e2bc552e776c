"""Critical paths compared with HTA's, moment by moment."""

from __future__ import annotations

from pathlib import Path

import pytest

import crystalperf as cp
from lab.checks.critical import DEVICE, HOST, UNKNOWN, Part, ours, together

DATA = Path(__file__).parent / "data/training"


def test_two_paths_are_compared_moment_by_moment() -> None:
    mine = [Part(0, 4, HOST), Part(4, 10, DEVICE)]
    its = [Part(1, 3, HOST), Part(3, 5, UNKNOWN), Part(5, 6, HOST), Part(6, 20, DEVICE)]
    assert together(mine, its) == {
        (HOST, HOST): 2,
        (HOST, UNKNOWN): 1,
        (DEVICE, UNKNOWN): 1,
        (DEVICE, HOST): 1,
        (DEVICE, DEVICE): 4,
    }


def test_critical_path_tiles_the_step_and_is_on_the_host_without_an_accelerator() -> None:
    run = cp.profile(DATA / "torch-2-ranks")
    debug = run.debug()
    found = ours(run, debug.scopes[0].id)
    assert found[0].start_ms == 0
    assert {each.where for each in found} == {HOST}
    lengths = sum(each.end_ms - each.start_ms for each in found)
    assert lengths == pytest.approx(run.debug(debug.scopes[0].id).runtime_ms)
