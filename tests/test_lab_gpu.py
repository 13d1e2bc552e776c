"""Kernel times on another GPU, from recordings on an H100 and an H200."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crystalperf.query.frameworks.ml.training import devices
from crystalperf.query.frameworks.ml.training.roofline import summary
from lab.score import gpu

RECORDED = Path(__file__).parents[1] / "lab/recordings/gpu"


def test_parameters_do_not_grow_with_the_batch() -> None:
    traced = gpu.read(RECORDED / "h100/tables-8192/rank0.pt.trace.json.gz")
    facts = summary((kernel, ms) for _, ms, kernel in traced.kernels)
    assert 0.03 < float(facts[f"{devices.GROWING}gpumem"]) < 0.3  # whole tables are updated
    assert float(facts[f"{devices.GROWING}gpu"]) > 0.9


def test_kernels_on_the_other_gpu_are_within_a_few_per_cent() -> None:
    traces = gpu.load(RECORDED)
    found = list(gpu.swaps(traces))
    assert len(found) == 4
    for each in found:
        assert each.matched > 0.98
        assert abs(each.off) < 0.05
        assert abs(each.off) < 0.3 * abs(each.unchanged)


def test_a_trace_without_shapes_is_answered_by_grids_and_names() -> None:
    for each in gpu.swaps(gpu.load(RECORDED, shapes=False)):
        assert abs(each.off) < 0.5 * abs(each.unchanged)


def test_larger_batches_of_steps_that_the_gpu_limits() -> None:
    rows = [json.loads(each) for each in (RECORDED / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    found = list(gpu.batches(rows, gpu.load(RECORDED)))
    assert {(each.kind, each.device) for each in found} == {
        (kind, device) for kind in ("chain", "tables") for device in ("h100", "h200")
    }
    for each in found:
        assert each.predicted_ms == pytest.approx(each.measured_ms, rel=0.05)


def test_the_command_prints_tables_and_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main([str(RECORDED)]) == 0
    assert capsys.readouterr().out.count("| chain |") == 4
    assert gpu.main([str(tmp_path)]) == 1
    assert "no traces" in capsys.readouterr().err
