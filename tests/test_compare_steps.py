"""Comparisons of runs of repeated steps: causes that were made, and parts that sum to the change of a step."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import crystalperf as cp
from crystalperf.cli.comparing import comparison_text
from crystalperf.query.compare.steps import StepSides, pooled_step, step_parts
from crystalperf.query.diagnose.comparer import OperatorAccount, OperatorPlace, StepAccount
from crystalperf.query.results.comparison import Comparison
from crystalperf.query.results.step_parts import ChangedOperators
from tests.reading import profiled

ROOT = Path(__file__).resolve().parent.parent
GPU = ROOT / "lab" / "recordings" / "gpu"
TRAINING = ROOT / "tests" / "data" / "training"


def operator(name: str, place: OperatorPlace = "device", ms: float = 10.0, **values: object) -> OperatorAccount:
    base = OperatorAccount(name, place, ms, ms, 4.0, 1e9 if place == "device" else None, "", 0.0, True)
    return replace(base, **values)  # type: ignore[arg-type]


def step(*operators: OperatorAccount, **values: object) -> StepAccount:
    base = StepAccount(operators, 3, 16.0, "H100", "tf32", 1.0)
    return replace(base, **values)  # type: ignore[arg-type]


def causes(before: StepAccount, after: StepAccount) -> dict[str, float]:
    parts = {each.kind: each.ms for each in step_parts(StepSides(before, after), 0.0)}
    change = sum(each.path_ms for each in after.operators) - sum(each.path_ms for each in before.operators)
    assert math.isclose(sum(parts.values()), change, abs_tol=1e-6)
    return {kind: ms for kind, ms in parts.items() if abs(ms) > 1e-6}


KERNEL, HOST = operator("conv"), operator("launch", "host", 5.0, grows=False)


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (step(KERNEL), step(operator("conv", ms=20.0)), "kernel-time"),
        (step(KERNEL), step(operator("conv", ms=20.0), accelerator="A100"), "accelerator"),
        (step(KERNEL), step(operator("conv", ms=20.0, work=2e9), batch=32.0), "batch"),
        (step(KERNEL), step(operator("conv", ms=20.0, work=2e9)), "shapes"),
        (step(KERNEL), step(operator("conv", ms=20.0, work=2e9, count=8.0)), "operators"),
        (
            step(operator("conv", unit="tf32")),
            step(operator("conv", ms=4.0, unit="16-bit"), precision="16-bit"),
            "precision",
        ),
        (step(KERNEL, HOST), step(KERNEL, operator("launch", "host", 8.0)), "host-time"),
        (step(KERNEL), step(KERNEL, operator("gelu", ms=3.0)), "operators"),
        (step(KERNEL), step(KERNEL, operator("DataLoader", "input", 30.0)), "input-wait"),
        (step(KERNEL), step(KERNEL, operator("allreduce", "collective", 9.0)), "communication"),
        (step(KERNEL), step(KERNEL, operator("Memcpy", "copy", 9.0)), "copies"),
        (step(KERNEL, HOST), step(KERNEL, replace(HOST, path_ms=1.0)), "overlap"),
    ],
)
def test_one_changed_factor_is_the_only_cause(before: StepAccount, after: StepAccount, cause: str) -> None:
    assert causes(before, after).keys() == {cause}


def test_the_opposite_comparison_has_the_opposite_parts() -> None:
    one = step(KERNEL, HOST, operator("gone", ms=2.0))
    other = step(operator("conv", ms=30.0, work=2e9), replace(HOST, path_ms=1.0), batch=24.0)
    there, back = causes(one, other), causes(other, one)
    assert {kind: pytest.approx(-ms) for kind, ms in there.items()} == back


def test_kernels_that_hid_behind_the_host_are_the_cause_once_they_are_longer() -> None:
    """A step of 50 ms of the host hides kernels of 20 ms; with three times the batch they take 60 ms, on the path."""
    before = step(operator("launch", "host", 48.0, grows=False), operator("conv", ms=20.0, path_ms=2.0))
    after = step(
        operator("launch", "host", 48.0, path_ms=0.0, grows=False),
        operator("conv", ms=60.0, work=3e9),
        batch=48.0,
    )
    assert causes(before, after) == {"batch": pytest.approx(10.0)}


def test_several_runs_are_pooled_to_the_length_of_a_side() -> None:
    found = pooled_step([step(KERNEL), step(operator("conv", ms=14.0)), step(HOST)], 20.0)
    assert sum(each.path_ms for each in found.operators) == pytest.approx(20.0)
    assert {each.name: each.time_ms for each in found.operators} == {"conv": 8.0, "launch": pytest.approx(5 / 3)}
    assert found.steps == 9


# Recorded trainings ---------------------------------------------------------------------------------------------------


@cache
def pair(name: str) -> Comparison:
    return cp.compare(profiled(GPU / "h100" / name), profiled(GPU / "h200" / name))


@pytest.mark.parametrize("name", ["chain-16384", pytest.param("tables-8192", marks=pytest.mark.later)])
def test_another_accelerator_is_the_first_cause(name: str) -> None:
    found = pair(name)
    assert found.difference.verdict == "shorter"
    assert found.parts[0].kind == "accelerator"
    assert found.parts[0].ms == pytest.approx(found.change_ms, rel=0.1)
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms, abs=1e-6)
    assert found.step is not None
    assert found.step.before.accelerator == "H100"
    assert not found.not_compared


def test_kernels_of_a_step_are_counted_and_timed() -> None:
    found = pair("chain-16384")
    assert found.step is not None
    (norm,) = (each for each in found.step.operators if (each.place, each.name) == ("device", "aten::layer_norm"))
    assert norm.before_count == norm.after_count == 12
    assert norm.after_ms < norm.before_ms
    assert found.before.runtime_ms == pytest.approx(sum(each.before_path_ms for each in found.step.operators), rel=0.01)
    assert found.step.before.batch == 16384


def test_the_number_of_steps_is_not_slower(tmp_path: Path) -> None:
    from tests.test_compare import shorter_trace

    found = cp.compare(TRAINING / "torch-loader", cp.profile(shorter_trace(tmp_path, 2)))
    assert found.step is not None
    assert (found.step.before.steps, found.step.after.steps) == (3, 2)
    assert found.difference.verdict == "no change"
    assert found.after.runtime_ms == pytest.approx(found.before.runtime_ms, rel=0.1)
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms, abs=1e-6)


def test_the_screen_fits_and_the_json_has_its_schema() -> None:
    found = pair("chain-16384")
    text = comparison_text(found)
    assert text.count("\n") <= 45
    assert max(map(len, text.splitlines())) <= 80
    schema = json.loads((ROOT / "docs" / "schema" / "comparison.json").read_text(encoding="utf-8"))
    jsonschema.validate(cp.as_json(found), schema)


def test_a_changed_training_of_two_ranks_names_communication() -> None:
    found = cp.compare(TRAINING / "torch-loader", TRAINING / "torch-2-ranks")
    assert {each.key for each in found.settings} >= {"backend", "processes", "world_size"}
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms, abs=1e-6)


def test_added_operators_are_those_that_trace_diff_of_hta_expects(real_inputs: Path) -> None:
    """HTA's own test: added AddmmBackward0, All2All_Pooled_Req and CatBackward0; gone is an annotation, which runs
    nothing.  Durations are those of the trace, us: 207, 311, 11."""
    folder = real_inputs / "pytorch" / "hta"
    found = cp.compare(
        profiled(folder / "trace_compare-base-base.json.gz"), profiled(folder / "trace_compare-test-test.json.gz"),
        scope="step:1010",
    )  # fmt: skip
    assert found.step is not None
    hosts = {each.name: each for each in found.step.operators if each.place == "host"}
    added = {name: each.after_ms for name, each in hosts.items() if each.before_ms == 0 < each.after_ms}
    assert added == {
        "AddmmBackward0": pytest.approx(0.207, abs=0.001), "All2All_Pooled_Req": pytest.approx(0.311, abs=0.001),
        "CatBackward0": pytest.approx(0.011, abs=0.001),
    }  # fmt: skip
    gone = [each for each in hosts.values() if each.after_ms == 0 < each.before_ms]
    assert all(each.before_ms < 0.005 for each in gone)  # operators of 0 us, by the resolution of times


@pytest.mark.later
def test_two_public_trainings_differ_by_their_accelerators_and_processes(real_inputs: Path) -> None:
    folder = real_inputs / "pytorch" / "hta"
    found = cp.compare(
        profiled(folder / "trace_diff-control-control.json.gz"), profiled(folder / "trace_diff-test-test.json.gz")
    )
    assert [each.kind for each in found.parts[:2]] == ["accelerator", "communication"]
    operators = next(each for each in found.parts if isinstance(each, ChangedOperators))
    assert "CompiledFunctionBackward" in {each.name for each in operators.operators if not each.before}
