"""PyTorch: real traces of one rank and of two, public ones from accelerators, and what damage and gaps do.

tests/data/training holds what lab/runs/torch_job.py made with PyTorch 2.15: torch-2-ranks is three steps of a
CNN on two ranks with gloo, torch-loader three of a small transformer whose data take 4 ms each to read, with stacks.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

import crystalperf as cp
from crystalperf.cli.predictions import sweep_text
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.advise.usual_what_ifs import happens_once
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.ml.pytorch import (
    kineto,
    launches,
    names,
    steps,
    streams,
    trace,
)
from crystalperf.query.frameworks.ml.pytorch import (
    outermost as operators,
)
from crystalperf.query.frameworks.ml.pytorch.findings import (
    FreeingMemory,
    OneLink,
    SlowRank,
    Starting,
    UnexplainedWait,
    WaitingInPython,
    WarmUp,
)
from crystalperf.query.frameworks.ml.training import batches, chrome, collectives, devices, roofline
from crystalperf.query.frameworks.ml.training.assumptions import BatchGrows, MoreProcesses, WithoutProfiler
from crystalperf.query.frameworks.ml.training.collectives import Collective
from crystalperf.query.frameworks.ml.training.lanes import Lane
from crystalperf.query.frameworks.ml.training.program import Operation, Step
from crystalperf.query.frameworks.ml.training.recommendations import CollectTraces
from crystalperf.query.frameworks.ml.training.refusals import FewerProcesses, SingleProcess
from crystalperf.query.frameworks.ml.training.remarks import Communication, WaitForSlowest
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.results.assumptions import NoInterval, OperatorTime
from crystalperf.query.text.answers import bottleneck_sentence, examples_ratio, step_sentence
from crystalperf.query.text.figures import time_unit
from crystalperf.query.trace.records import Problems
from tests.hand_made import figures
from tests.reading import profiled, rows
from tests.refusals import refused

DATA = Path(__file__).parent / "data/training"
FILES = Path(__file__).parent.parent / "lab/recordings/files"
BATCHES = Path(__file__).parent.parent / "lab/recordings/batches"
REAL = Path(__file__).parents[2] / "shared/real-inputs"


def event(name: str, start: float, length: float, cat: str = "cpu_op", tid: Any = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args}


def written(path: Path, events: list[dict[str, Any]], **header: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": events}))
    return path


RunOf = Callable[..., cp.Run]


@pytest.fixture
def run_of(tmp_path: Path) -> RunOf:
    """The run of a trace that has these events, each in a file of its own."""

    def run(events: list[dict[str, Any]]) -> cp.Run:
        return cp.profile(written(tmp_path / f"{len(list(tmp_path.iterdir()))}.json", events))

    return run


def kernel(name: str, start: float, length: float, correlation: int, stream: int = 7, **args: Any) -> dict[str, Any]:
    made = event(name, start, length, "kernel", stream, correlation=correlation, stream=stream, **args)
    return {**made, "pid": 0}


def problems(run: cp.Run) -> dict[str, tuple[str, str | None, str]]:
    """Corrections that reading made, by name: severity, the first place and the meaning."""
    found = rows(run, "SELECT name, severity, first_where, meaning FROM import_stats")
    return {name: (severity, where, meaning) for name, severity, where, meaning in found}


# Real traces ------------------------------------------------------------------------------------------------------


def test_two_ranks_are_one_run_whose_replay_gives_it_back() -> None:
    run = profiled(DATA / "torch-2-ranks")
    header, debug = run.header(), run.debug()
    assert (header.framework, header.workers) == ("pytorch", 2)
    assert sum(each.end_ms - each.start_ms for each in debug.critical_path) == pytest.approx(debug.runtime_ms)
    assert abs(run.baseline().replay_error_ratio) <= 0.03
    assert len(rows(run, "SELECT scope_id FROM scopes")) == 3
    in_order = "bool_and(arrived_ms <= began_ms AND began_ms < ended_ms)"
    found = rows(run, f"SELECT name, count(DISTINCT worker_id), {in_order} FROM training_collectives GROUP BY name")
    assert ("gloo:all_reduce", 2, True) in found


def test_critical_path_by_operator_is_the_path_of_its_intervals(run_of: RunOf) -> None:
    debug = profiled(DATA / "torch-2-ranks").debug()
    for name, whole_ms in debug.resource_ms.items():
        assert sum(each.resource_ms[name] for each in debug.path_operators) == pytest.approx(whole_ms, abs=1e-6)
    times = [each.time_ms for each in debug.path_operators]
    assert times == sorted(times, reverse=True)
    assert all(1 <= each.stages <= len(debug.critical_path) for each in debug.path_operators)

    one = [event("aten::a", 0, 3000), event("aten::b", 3000, 1000), event("aten::a", 4000, 2000)]
    alone = run_of(one).debug()
    assert {each.name: round(each.time_ms, 3) for each in alone.path_operators} == {"aten::a": 5.0, "aten::b": 1.0}


def test_freeing_memory_waits_for_the_accelerator_and_no_faster_cpu_shortens_it(run_of: RunOf) -> None:
    events = []
    for number in range(3):
        begin = number * 4_000
        events += [
            event("aten::conv2d", begin, 4_000),
            event("hipExtModuleLaunchKernel", begin + 10, 5, "cuda_runtime", correlation=number),
            kernel("naive_conv", begin + 20, 1_000, number),
            event("hipFree", begin + 100, 3_800, "cuda_runtime"),
        ]
    debug = run_of(events).debug()
    (reported,) = [each for each in debug.findings if isinstance(each, FreeingMemory)]
    assert reported.cost_ms == pytest.approx(3 * 2.88, abs=0.01), "less what it waited for the kernel"
    assert reported.names == ("aten::conv2d: hipFree",)
    assert debug.resource_ms["cpu"] == pytest.approx(3 * 0.12, abs=0.1)
    assert debug.resource_ms["gpu"] == pytest.approx(3 * 1, abs=0.1)


def test_cuda_free_at_library_start_is_not_a_memory_shortage(run_of: RunOf) -> None:
    """cuDNN frees nothing and asks for what the device is; a first call creates the context.  No memory is short."""
    events = [
        event("aten::conv2d", 0, 100_000),
        event("cudaStreamCreateWithFlags", 0, 20_000, "cuda_runtime"),
        event("cudaFree", 21_000, 70_000, "cuda_runtime"),
        event("cudaDeviceGetAttribute", 91_000, 1, "cuda_runtime"),
        event("cudaLaunchKernel", 91_010, 5, "cuda_runtime", correlation=1),
        kernel("conv", 91_100, 1_000, 1),
    ]
    debug = run_of(events).debug()
    (reported,) = [each for each in debug.findings if isinstance(each, FreeingMemory | Starting)]
    assert (reported.kind, reported.cost_ms) == ("starting", pytest.approx(90.0, abs=0.1))
    assert reported.advice == WarmUp()
    assert debug.resource_ms["cpu"] == pytest.approx(10.0, abs=0.1)


@pytest.mark.few(2)
@pytest.mark.parametrize(("gap_us", "functions", "cpu_ms"), [(30_000, 0, 32.0), (80_000, 0, 2.0), (80_000, 1, 82.0)])
def test_a_long_gap_is_pythons_only_where_the_trace_has_its_functions(
    run_of: RunOf, gap_us: int, functions: int, cpu_ms: float
) -> None:
    events = [event("aten::a", 0, 1_000), event("aten::b", 1_000 + gap_us, 1_000)]
    events += [event("train.py(1): <module>", 0, 2_000 + gap_us, "python_function")] * functions
    debug = run_of(events).debug()
    assert debug.resource_ms["cpu"] == pytest.approx(cpu_ms, abs=0.1)
    reported = [each.cost_ms for each in debug.findings if each.kind == "unknown-host-time"]
    assert reported == ([] if functions else [pytest.approx(gap_us / 1e3)])


def test_a_trace_without_steps_does_not_say_that_none_was_under_way(run_of: RunOf) -> None:
    """Two kernels, and 9 of 10 ms between of which the trace has nothing."""
    events = [kernel("first", 0, 100, 1), kernel("second", 9500, 500, 2)]
    debug = run_of(events).debug()
    assert (bottleneck_of(debug).kind, debug.driver_ms) == ("unknown", 0)
    assert debug.other_ms["unknown"] == pytest.approx(9.3, abs=0.2)
    assert "no-scope" not in {each.kind for each in debug.findings}

    marked = [event("ProfilerStep#1", 0, 10_000, "user_annotation"), *events]
    known = run_of(marked).debug()
    assert "driver" in known.other_ms
    assert known.driver_ms > 9


def test_step_is_reported_next_to_the_whole_run() -> None:
    run = profiled(DATA / "torch-2-ranks")
    header, slower = run.header(), run.predict(["cpu_speed=0.5x"])
    assert header.steps == 3
    assert header.step_ms * header.steps == pytest.approx(header.duration_ms, rel=0.1)
    wider = run.predict(["ranks=2x"])
    assert wider.work_ratio == 2
    assert examples_ratio(wider) == pytest.approx(2 * wider.runtime_ms / wider.predicted_ms)
    slower_ms = header.step_ms * slower.predicted_ms / slower.runtime_ms
    assert figures(step_sentence(header, slower)) == pytest.approx([slower_ms, header.step_ms], rel=0.02)
    assert step_sentence(header, run.predict(["cpu_speed=0.5x"], scope="step:4")) == ""


def test_table_of_scenarios_shows_the_predicted_step_time() -> None:
    run = profiled(DATA / "torch-2-ranks")
    header, sweep = run.header(), run.sweep(["cpu_speed=0.5x,2x"])
    assert header.step_ms is not None
    lines = sweep_text(header, sweep).split("\n")
    assert "[ms]" in "".join(lines)
    for point in sweep.points:
        (row,) = [each for each in lines if each.startswith(point.setting)]
        step_ms = header.step_ms * point.predicted_ms / point.runtime_ms
        assert float(row.split()[1]) == pytest.approx(step_ms, abs=0.5)
    assert "examples/s" not in "".join(lines)
    assert "step [" not in sweep_text(header, run.sweep(["cpu_speed=0.5x,2x"], scope="step:4"))


def test_default_whatifs_have_more_ranks_and_a_faster_network() -> None:
    asked = {each.setting for each in profiled(DATA / "torch-2-ranks").verdict().what_ifs}
    assert {"ranks=2x", "network=2x"} <= asked


def test_a_table_of_more_ranks_says_what_becomes_of_examples_a_second() -> None:
    run = profiled(DATA / "torch-2-ranks")
    sweep = run.sweep(["ranks=2x,4x"])
    lines = sweep_text(run.header(), sweep).split("\n")
    assert "examples/s" in "".join(lines)
    for times, point in zip((2, 4), sweep.points, strict=True):
        (row,) = [each for each in lines if each.startswith(point.setting)]
        more = 100 * (times * point.runtime_ms / point.predicted_ms - 1)
        assert row.split()[2] == f"{more:+.0f}"
    assert "examples/s" not in sweep_text(run.header(), run.sweep(["ranks=2x,4x"], scope="step:4"))


def test_waiting_for_data_is_separate_and_lines_of_the_program_are_kept() -> None:
    run = profiled(DATA / "torch-loader")
    assert abs(run.baseline().replay_error_ratio) <= 0.03
    of_kinds = "FROM tasks JOIN training_operations USING (task_id) GROUP BY kind"
    kinds = dict(rows(run, f"SELECT kind, sum(finish_ms - launch_ms) {of_kinds}"))
    debug = run.debug()
    assert kinds["input"] > 0.02 * debug.runtime_ms
    assert debug.other_ms["upstream"] == pytest.approx(kinds["input"], rel=0.05)
    assert "starting" not in debug.other_ms
    assert any(each.kind == "input" for each in debug.findings)
    assert rows(run, "SELECT call_site FROM training_operations WHERE call_site LIKE '%torch_job.py(%'")
    modules = {each for (each,) in rows(run, "SELECT DISTINCT module FROM training_operations")}
    assert any(each and each.startswith("Linear") for each in modules)


def test_rank_count_changes_only_communication_and_is_stated() -> None:
    run = profiled(DATA / "torch-2-ranks")
    more = run.predict(["ranks=2x"])
    assert more.predicted_ms >= run.debug().runtime_ms * 0.999
    assert MoreProcesses(2, 4.0, 2.0, synchronous=True) in more.assumptions
    assert run.predict(["ranks=4"]).predicted_ms == more.predicted_ms
    assert run.predict(["ranks=2"]).predicted_ms == run.baseline().predicted_ms
    assert run.predict(["ranks=0.5x"]).refused == (FewerProcesses(2),)
    assert profiled(DATA / "torch-loader").predict(["ranks=2x"]).refused == (SingleProcess(),)


def test_larger_batch_scales_time_per_example_and_not_per_parameter() -> None:
    run = profiled(BATCHES / "cnn-r2-c0.6-n200.0/traces")
    twice, half = run.predict(["batch=2x"]), run.predict(["batch=0.5x"])
    assert half.predicted_ms < run.debug().runtime_ms < twice.predicted_ms < 1.5 * run.debug().runtime_ms
    sent = [each for each in twice.stages if each.name == "gloo:all_reduce"]
    assert sent
    assert all(each.predicted_ms == pytest.approx(each.recorded_ms, rel=0.1) for each in sent)
    assert run.predict(["input=2x"]).predicted_ms == twice.predicted_ms
    assert BatchGrows(launches=False) in twice.assumptions
    assert twice.interval_ms is not None


def test_larger_batch_keeps_launch_overhead(run_of: RunOf) -> None:
    events = [
        event("ProfilerStep#1", 0, 12_000, "user_annotation"),
        event("aten::mm", 0, 1_000),
        event("cudaLaunchKernel", 100, 10, "cuda_runtime", correlation=1),
        kernel("ampere_sgemm_128x64", 1_000, 10_000, 1),
        event("cudaDeviceSynchronize", 1_000, 10_000, "cuda_runtime"),
    ]
    run = run_of(events)
    twice = run.predict(["batch=2x"])
    assert twice.predicted_ms == pytest.approx(run.debug().runtime_ms + 10.0, rel=0.02)
    assert BatchGrows(launches=True) in twice.assumptions
    assert twice.interval_ms is not None
    assert twice.interval_ms[0] < twice.predicted_ms < twice.interval_ms[1]


@pytest.mark.parametrize(
    ("operator", "grows"),
    [
        ("aten::conv2d", True),
        ("AddmmBackward0", True),
        ("own batches", True),
        ("aten::add_", False),
        ("aten::_foreach_add_", False),
        ("aten::_fused_dropout", True),
        ("Optimizer.step#AdamW.step", False),
        ("torch::autograd::AccumulateGrad", False),
        ("Python", False),
        ("_MklNativeConv2D", True),
        ("ApplyGradientDescent", False),
        ("ResourceApplyAdam", False),
        ("ReadVariableOp", False),
        ("IdentityN", False),
        ("sgd_mom_update", False),
        ("Convolution", True),
    ],
)
def test_operators_on_parameters_do_not_scale_with_the_batch(operator: str, grows: bool) -> None:
    assert batches.grows(operator) is grows


def test_ranks_are_counted_and_not_their_accelerators(tmp_path: Path) -> None:
    for rank in (0, 1):
        events = [
            event("ProfilerStep#1", 0, 10_000, "user_annotation"),
            event("aten::mm", 0, 1_000),
            event("cudaLaunchKernel", 100, 10, "cuda_runtime", correlation=1),
            kernel("ncclDevKernel_AllReduce_Sum", 1_000, 8_000, 1),
        ]
        written(tmp_path / f"{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    run = cp.profile(tmp_path)
    assert run.header().workers == 2
    assert run.predict(["ranks=2"]).predicted_ms == pytest.approx(run.baseline().predicted_ms)
    more = run.predict(["ranks=4"])
    assert MoreProcesses(2, 4.0, 2.0, synchronous=True) in more.assumptions
    assert more.predicted_ms == run.predict(["ranks=2x"]).predicted_ms
    with refused(SettingError, 0.75):
        run.predict(["ranks=0.75x"])


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder of public real inputs is not next to this checkout")
@pytest.mark.later
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("hta/rank_unavailable-rank_not_found.json.gz", 0.03),
        ("hta/cpu_only-rank-34-full.pt.trace.json.gz", 0.03),
        ("hta/critical_path-alexnet-benchmark_result_2869224_1695835535_trace.json.gz", 0.03),
        ("kineto/gpu_metrics_input.json", 0.03),
        ("misc/dtu_mlops-trace.json", 0.03),
    ],
)
def test_public_traces_are_replayed(name: str, most: float) -> None:
    assert abs(profiled(REAL / "pytorch" / name).baseline().replay_error_ratio) <= most


@pytest.mark.later
def test_stacks_of_a_jvm_next_to_a_trace_are_not_an_error(tmp_path: Path) -> None:
    """Of a framework that gives no frame a role, among libraries of the JVM that do."""
    shutil.copytree(DATA / "torch-loader", tmp_path, dirs_exist_ok=True)
    stacks = tmp_path / "stacks.collapsed"
    stacks.write_text("java/lang/Thread.run;java/util/HashMap.get 7\norg/apache/hadoop/fs/FileSystem.open 3\n")
    assert cp.profile([tmp_path], output=tmp_path / "run.duckdb").debug().runtime_ms > 0


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [["cpu_op"], {"cpu_op": 1}, 7, None])
def test_an_event_of_no_kind_is_passed_over(tmp_path: Path, kind: object) -> None:
    path = written(tmp_path / "t.json", [event("aten::mm", 0, 12), {**event("aten::add", 20, 5), "cat": kind}])
    assert cp.profile(path).debug().runtime_ms == pytest.approx(0.012)


# Threads and streams ----------------------------------------------------------------------------------------------


def test_a_kernel_waits_for_its_launch_and_a_synchronising_thread_for_the_kernel(run_of: RunOf) -> None:
    """Launch from 0 to 10 µs, a kernel from 10 to 1010, and a thread that waits for it; twice as fast it takes half."""
    run = run_of(
        [
            event("aten::mm", 0, 12),
            event("cudaLaunchKernel", 2, 8, "cuda_runtime", correlation=5),
            kernel("sgemm_128", 10, 1000, 5),
            event("cudaDeviceSynchronize", 20, 995, "cuda_runtime", correlation=6),
            event("aten::add", 1020, 80),
        ]
    )
    names = {each.id: each.name for each in run.debug().critical_path}
    assert any("sgemm" in name for name in names.values())
    assert abs(run.baseline().replay_error_ratio) <= 0.03
    without = run.predict(["operator.aten::mm=1000x"])  # with the kernel that it launched
    assert without.predicted_ms == pytest.approx(run.debug().runtime_ms - 1.01, abs=0.02)
    faster = run.predict(["device.gpu=2x"])
    assert faster.predicted_ms == pytest.approx(run.debug().runtime_ms - 0.5, abs=0.02)
    assert faster.interval_ms is None
    assert NoInterval(("device.arithmetic", "device.gpumem", "device.latency")) in faster.assumptions
    with pytest.raises(SettingError, match=r"device\.gpu=-1x: .*device\.gpu="):
        run.predict(["device.gpu=-1x"])


def test_an_operator_of_the_cpu_that_is_scaled_changes_what_the_step_took_by_its_own_time() -> None:
    """In a training of one process whose input comes from loaders."""
    run = profiled(DATA / "torch-loader")
    statement = """
        SELECT sum(finish_ms - launch_ms) FROM tasks JOIN training_operations USING (task_id)
        WHERE operator = 'aten::linear'
    """
    ((took_ms,),) = rows(run, statement)
    assert took_ms > 1
    for setting, left in (("2x", 0.5), ("1000x", 0.001), ("0.5x", 2)):
        found = run.predict([f"operator.aten::linear={setting}"])
        assert found.predicted_ms == pytest.approx(found.runtime_ms + (left - 1) * took_ms, rel=1e-3)
        (took,) = (each for each in found.assumptions if isinstance(each, OperatorTime))
        assert took.time_ms == pytest.approx(took_ms, rel=1e-3)


def test_a_call_that_waits_for_its_copy_waits_for_what_the_copy_waited_for(run_of: RunOf) -> None:
    """A product on one stream; a copy to the host on another begins as that ends, and its call returns behind it."""
    copy = {**kernel("Memcpy DtoH (Device -> Pageable)", 905, 2, 6), "cat": "gpu_memcpy", "tid": 20}
    copy["args"] = {**copy["args"], "stream": 20}
    run = run_of(
        [
            event("ProfilerStep#1", 0, 1100, "user_annotation"),
            event("aten::mm", 0, 20),
            event("cudaLaunchKernel", 5, 5, "cuda_runtime", correlation=5),
            kernel("sgemm_128", 12, 888, 5),
            event("aten::to", 30, 930),
            event("cudaMemcpyAsync", 40, 910, "cuda_runtime", correlation=6),
            copy,
            event("aten::add", 960, 140),
        ]
    )
    debug = run.debug()
    assert debug.resource_ms["gpu"] == pytest.approx(0.888, abs=0.02)
    assert debug.resource_ms["cpu"] == pytest.approx(0.2, abs=0.02)
    assert run.predict(["device.gpu=2x"]).predicted_ms == pytest.approx(1.1 - 0.444, abs=0.02)


def test_a_device_between_two_kernels_waits_for_the_thread_that_launches_the_next() -> None:
    first, following = (Operation("GPU 0", start, start + 1.0, "k", kind="kernel") for start in (0.0, 5.0))
    found = list(launches._launch_gap({5.0: 4.0}, set(), 10.0, first, following))
    assert [(each.operator, each.resource, each.start_ms, each.end_ms) for each in found] == [
        ("waiting for launches", "cpu", 1.0, 4.0),
        ("between kernels", "", 4.0, 5.0),
    ]
    assert [each.operator for each in launches._launch_gap({5.0: 0.5}, set(), 10.0, first, following)] == [
        "between kernels"
    ]
    assert not list(launches._launch_gap({5.0: 4.0}, set(), 1.0, first, following)), "not within one interval"


def test_thread_does_not_wait_for_an_unrelated_end_just_before_its_start(tmp_path: Path) -> None:
    """Backward begins at 150 µs, just behind a kernel and a call of a thread that only asks how far the device is."""
    path = written(
        tmp_path / "t.json",
        [
            event("ProfilerStep#1", 0, 500, "user_annotation"),
            event("aten::mm", 0, 100),
            event("cudaLaunchKernel", 50, 10, "cuda_runtime", correlation=5),
            kernel("sgemm_128", 70, 78, 5),
            event("cudaEventQuery", 140, 9, "cuda_runtime", tid=3),
            event("autograd::engine::evaluate_function: MmBackward0", 150, 250, tid=2),
            event("cudaEventQuery", 395, 9, "cuda_runtime", tid=3),
            event("aten::add", 410, 90),
        ],
    )
    sources = """
        SELECT source.name FROM dependencies JOIN stages AS target ON target.stage_id = dependencies.target
        JOIN stages AS source ON source.stage_id = dependencies.source WHERE target.name = 'backward: MmBackward0'
    """
    assert rows(cp.profile(path), sources) == [("forward: aten::mm",)]


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder of public real inputs is not next to this checkout")
@pytest.mark.later
def test_the_path_of_a_public_step_is_that_of_its_threads_and_its_stream() -> None:
    """HTA 0.6.1 has the same: backward from 31.96 ms of the step, and from 64.26 the stream that it launched on."""
    run = profiled(REAL / "pytorch/hta/trace_diff-control-control.json.gz")
    debug = run.debug("step:1009")
    begin = debug.critical_path[0].start_ms
    assert not [each.name for each in debug.critical_path if each.name.startswith("cuda")]
    devices = dict(rows(run, "SELECT stage_id, any_value(worker_id) FROM tasks GROUP BY stage_id"))
    on_device = [
        (each.start_ms - begin, each.end_ms - begin)
        for each in debug.critical_path
        if devices.get(each.id) == "rank 3 GPU 3" and each.end_ms - each.start_ms > 1
    ]
    backward = [each for each in debug.critical_path if each.name.startswith("backward")]
    assert backward[0].start_ms - begin == pytest.approx(31.96, abs=0.05)
    assert backward[-1].end_ms - begin == pytest.approx(64.26, abs=0.05)
    assert max(end for _, end in on_device) == pytest.approx(73.77, abs=0.05)


def test_device_swap_scales_kernels_by_what_bounds_them(run_of: RunOf) -> None:
    run = run_of(
        [
            event("aten::mm", 0, 12),
            event("cudaLaunchKernel", 2, 8, "cuda_runtime", correlation=5),
            kernel("sgemm_128", 10, 1000, 5),
            event("cudaDeviceSynchronize", 20, 995, "cuda_runtime", correlation=6),
            event("aten::add", 1020, 80),
        ]
    )
    slower = run.predict(["device=H100:A100"])
    assert slower.predicted_ms == pytest.approx(
        run.debug().runtime_ms - 1 + 66.9 / 19.5, rel=0.05
    )  # products of float32
    with refused(SettingError, "H100"):
        run.predict(["device=H100"])
    assert devices.roofline_bound("void at::native::vectorized_elementwise_kernel<4, x>(int)") == "gpumem"
    assert devices.roofline_bound("ampere_sgemm_128x64_nn") == "gpu"


CUTLASS_3 = (
    "void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel::GemmUniversal<"
    "cute::tuple<int, int, int, int>, cutlass::gemm::collective::CollectiveMma<cute::SM90_TMA_LOAD>,"
    " cute::AutoVectorizingCopyWithAssumedAlignment<128>>>>(cutlass::gemm::kernel::GemmUniversal::Params)"
)


@pytest.mark.parametrize(
    ("kernel", "resource"),
    [
        ("triton_poi_fused_convolution_relu_3", "gpumem"),
        ("triton_red_fused_addmm_native_layer_norm_0", "gpumem"),
        ("triton_per_fused__scaled_dot_product_attention_5", "gpumem"),
        ("triton_tem_fused__to_copy_mm_2", "gpu"),
        (CUTLASS_3, "gpu"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_32x4_nn_align8>(Params)", "gpu"),
        ("void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128>>>()", "gpumem"),
        ("void splitKreduce_kernel<32, 16, int, float, cublasGemvParams>(float*)", "gpumem"),
        ("void scal_kernel<float, float, 1, false, 6>(cublasTransposeParams<float>, float const*)", "gpumem"),
        ("void at::native::(anonymous namespace)::im2col_kernel<float>(long)", "gpumem"),
        ("void at::native::elementwise_kernel<128, 4, at::native::conv_bias>(int)", "gpumem"),
        ("void cudnn::ops::nchwToNhwcKernel<float, cudnn_conv>(int)", "gpumem"),
        ("sm80_xmma_fprop_implicit_gemm_bf16bf16_nhwckrsc_nhwc_tilesize128x128x32", "gpu"),
        ("ampere_sgemm_128x64_tn", "gpu"),
    ],
)
def test_kernel_name_shows_what_bounds_it(kernel: str, resource: str) -> None:
    assert devices.roofline_bound(kernel) == resource


def test_an_operator_within_another_is_its_own_time_and_a_wrapper_counts_for_nothing() -> None:
    thread = kineto.Thread(
        operators=[
            kineto.Ran(0, 100, "CompiledFunction"),
            kineto.Ran(10, 40, "aten::linear"),
            kineto.Ran(15, 35, "aten::addmm"),
            kineto.Ran(50, 90, "autograd::engine::evaluate_function: AddmmBackward0"),
        ]
    )
    assert [(each.operator, each.phase) for each in operators.outermost(thread)] == [
        ("aten::linear", "forward"),
        ("AddmmBackward0", "backward"),
    ]


def test_transfer_of_a_collective_starts_with_the_last_arrival() -> None:
    parts = [
        Collective(0, "rank 0", "all_reduce", Operation("rank 0", 0, 100, "all_reduce", resource="net")),
        Collective(1, "rank 1", "all_reduce", Operation("rank 1", 60, 101, "all_reduce", resource="net")),
    ]
    assert [len(each) for each in collectives.rounds(parts)] == [2]
    assert collectives.shifts(parts) == {}
    apart = [
        Collective(0, "rank 0", "x", Operation("rank 0", 0, 10, "x")),
        Collective(1, "rank 1", "x", Operation("rank 1", 1000, 1012, "x")),
    ]
    assert collectives.shifts(apart) == {"rank 1": -1002}


def reduced(rank: int, stage: str, starts: list[float]) -> list[Collective]:
    label = f"rank {rank}"
    return [Collective(rank, label, f"ar {stage}", Operation(label, each, each + 10, "ar")) for each in starts]


def test_collectives_of_other_stages_are_not_waited_for() -> None:
    """Two stages of two ranks, as stages of a pipeline are: the second is 30 ms behind, or close to the first."""
    lanes = [Lane(f"rank {rank}", "s", f"rank {rank}") for rank in range(4)]
    for late in (30.0, 5.0):
        starts = [100.0 * step for step in range(10)]
        behind = [each + late for each in starts]
        parts = [each for rank in (0, 1) for each in reduced(rank, "0", starts)]
        parts += [each for rank in (2, 3) for each in reduced(rank, "1", behind)]
        assert {len(each) for each in collectives.rounds(parts)} == {2}
        assert collectives.shifts(parts) == {}
        signals, reported = collectives.joined(parts, lanes)
        assert not signals
        assert all(each.arrived_ms == each.began_ms for each in reported)


def test_clock_offsets_are_corrected_along_shared_stages() -> None:
    starts = [100.0 * step for step in range(10)]
    off = {0: 0.0, 1: 50.0, 2: -70.0, 3: 20.0}
    parts = []
    for stage, ranks in {"0": (0, 1), "1": (1, 3), "2": (3, 2)}.items():
        for rank in ranks:
            parts += reduced(rank, stage, [each + off[rank] + 15 * int(stage) for each in starts])
    assert collectives.shifts(parts) == {f"rank {rank}": off[2] - each for rank, each in off.items() if rank != 2}


def test_clock_offset_needs_equal_differences_at_each_collective() -> None:
    """Without names of stages: ranks whose collectives are now nearer and now farther wait for others."""
    mine = [0.0, 104, 205, 311, 409, 518, 616, 722, 820, 931]
    noise = [0.2, 0.0, 0.1, 0.4, 0.0, 0.3, 0.1, 0.0, 0.2, 0.1]
    same = [each + 500 + more for each, more in zip(mine, noise, strict=True)]
    found = collectives.shifts([*reduced(0, "", mine), *reduced(1, "", same)])
    assert found == {"rank 1": pytest.approx(-500.1, abs=0.2)}
    theirs = [500.0 + 118 * number for number in range(10)]
    other = [*reduced(0, "", mine), *reduced(1, "", theirs)]
    assert collectives.shifts(other) == {}
    launched = [replace(each, launcher=(each.lane, each.operation.start_ms)) for each in other]
    signals, _ = collectives.joined(launched, [Lane(f"rank {rank}", "s", f"rank {rank}") for rank in (0, 1)])
    assert {(each.source, each.target) for each in signals} == {(0, 0), (1, 1)}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("compared", "alone_ms"),
    [
        ([(8, 10, 40), (9, 10, 40)], 40),
        ([(8, 10, 40), (9, 30, 40)], 20),
        ([(8, 10, 70), (9, 20, 10), (10, 40, 10)], 10),
        ([(8, 0, 5), (9, 95, 1)], 80),
    ],
)
def test_exchange_hidden_by_two_streams_at_once_counts_once(
    run_of: RunOf, compared: list[tuple[int, int, int]], alone_ms: int
) -> None:
    """An all_reduce of 80 ms, from 10 ms on, concurrent with kernels (stream, start, length)."""
    events = [event("ProfilerStep#1", 0, 100_000, "user_annotation"), event("aten::mm", 0, 100)]
    ran = [("ncclDevKernel_AllReduce", 7, 10, 80), *(("gemm", *each) for each in compared)]
    for number, (name, stream, start, length) in enumerate(ran, 1):
        made = event(name, 1_000 * start, 1_000 * length, "kernel", stream, stream=stream, correlation=number)
        events += [event("cudaLaunchKernel", number, 1, "cuda_runtime", correlation=number), {**made, "pid": 0}]
    reported = run_of(events).debug().measurements
    assert [each.exposed_ms for each in reported if isinstance(each, Communication)] == [
        pytest.approx(alone_ms, abs=0.5)
    ]


def of_stage(folder: Path, rank: int, stage: str, late_us: float = 0, count: int = 3) -> None:
    """A rank's trace: one kernel of NCCL for each step, of 2 ms."""
    events = [event("ProfilerStep#1", 0, 100_000, "user_annotation"), event("aten::mm", 0, 100)]
    for step in range(count):
        args = {"Collective name": "allreduce", "Process Group Name": stage, "Process Group Ranks": "[0, 1]"}
        events.append(kernel("ncclDevKernel_AllReduce_Sum", 1_000 + 30_000 * step + late_us, 2_000, step, **args))
    folder.mkdir(exist_ok=True)
    written(folder / f"{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})


@pytest.mark.parametrize(("other", "waited_ms"), [("0", 1.0), ("1", 0.0)])
def test_stages_of_a_trace_are_distinguished(tmp_path: Path, other: str, waited_ms: float) -> None:
    of_stage(tmp_path, 0, "0")
    of_stage(tmp_path, 1, other, late_us=1_000)
    waited = "SELECT DISTINCT began_ms - arrived_ms FROM training_collectives WHERE worker_id = 'rank 0 GPU 0'"
    assert rows(cp.profile(tmp_path), waited) == [(pytest.approx(waited_ms),)]


def test_collectives_that_a_rank_has_fewer_of_are_said_not_to_be_joined(tmp_path: Path) -> None:
    of_stage(tmp_path, 0, "0")
    of_stage(tmp_path, 1, "0", count=2)
    severity, where, _ = problems(cp.profile(tmp_path))["uneven collectives"]
    assert (severity, where) == ("info", "ncclDevKernel_AllReduce_Sum")


def exchanging(folder: Path, ranks: int, scenario: int) -> cp.Run:
    """A run of so many ranks of a scenario, of which a collective takes 8 of 10 ms on each."""
    for rank in range(ranks):
        events = [
            event("aten::mm", 0, 1_000),
            event("cudaLaunchKernel", 10, 5, "cuda_runtime", correlation=1),
            kernel("ncclDevKernel_AllReduce", 1_000, 8_000, 1),
            event("cudaDeviceSynchronize", 1_000, 8_000, "cuda_runtime"),
            event("aten::add", 9_000, 1_000),
        ]
        written(folder / f"{rank}.json", events, distributedInfo={"rank": rank, "world_size": scenario})
    return cp.profile(folder)


def test_a_collective_may_have_waited_for_ranks_that_left_no_trace(tmp_path: Path) -> None:
    run = exchanging(tmp_path, 1, 4)
    debug = run.debug()
    first = bottleneck_sentence(bottleneck_of(debug), debug, run.header().resources, time_unit(debug.runtime_ms))
    assert figures(first)[-2:] == [3, 4], "ranks without a trace"
    answer = run.predict(["network=2x"])
    assert answer.predicted_ms is None
    assert answer.bound_ms == (pytest.approx(6.0, abs=0.1), pytest.approx(10.0, abs=0.1))
    first = run.verdict().recommendations[0]
    assert isinstance(first, CollectTraces)
    assert (first.ranks, first.missing) == (4, 3)


@pytest.mark.parametrize(
    ("traced_as", "named"),
    [("/tmp/traces/rank0.pt.trace.json", None), ("/tmp/tmp1x.json", None), ("/tmp/resnet_4.json", "resnet_4.json")],
)
def test_a_name_that_many_trainings_have_is_not_a_run_s(traced_as: str, named: str | None) -> None:
    process = kineto.Process("0")
    process.header["traceName"] = traced_as
    assert trace._name(process) == named


def test_run_with_the_traces_of_all_ranks_measures_its_network(tmp_path: Path) -> None:
    run = exchanging(tmp_path, 2, 2)
    assert run.predict(["network=2x"]).predicted_ms == pytest.approx(6.0, abs=0.1)
    assert not run.debug().other_causes


def test_suggested_next_command_of_a_training_has_an_answer(run_of: RunOf) -> None:
    run = run_of([event("aten::mm", 0, 1_000)])
    setting = run.verdict().next.facts["setting"]
    assert run.predict([f"{setting.partition('=')[0]}=2x"]).predicted_ms is not None


def test_exchange_between_two_ranks_is_not_a_collective_of_all() -> None:
    assert names.collective_key("ncclDevKernel_SendRecv", "send 1 [0, 1]") is None
    assert names.collective_key("ncclDevKernel_SendRecv", "all_to_allv 0 [0, 1]") is not None
    assert names.collective_key("gloo:recv") is None
    assert names.collective_key("gloo:all_reduce") is not None


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymkDevWorkArgs)",
        "void deep_ep::internode::notify_dispatch<false, 2>(int const*, int*)",
        "void dpsk::ep::internode::combine<false, 8>(int4*, float*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>(c10::BFloat16**)",
        "void c10d::symmetric_memory::multimem_all_reduce_kernel<c10::BFloat16>(c10::BFloat16*)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>(int)",
    ],
)
def test_exchanges_by_other_libraries_than_nccl_are_communication(name: str) -> None:
    found = streams._kernel(
        kineto.Process("0"),
        "GPU 0",
        kineto.Ran(0, 1000, name),
        None,
        roofline.Kernel(roofline.Work(), None, True, True),
    )
    assert (found.kind, found.resource) == ("collective", "net")


def test_layout_of_tokens_is_not_communication() -> None:
    assert not names.COLLECTIVE.search("void deep_ep::layout::get_dispatch_layout<256, 32>(long const*)")


def test_steps_and_loaders_are_found_if_their_marks_are_recorded_as_operators(run_of: RunOf) -> None:
    """As PyTorch 1.8 and 1.9 do."""
    events = [
        event("ProfilerStep#1", 0, 10_000, "Operator"),
        event("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 8_000, "Operator"),
        event("aten::mm", 8_000, 2_000, "Operator"),
    ]
    run = run_of(events)
    assert run.header().steps == 1
    assert run.debug().other_ms["upstream"] == pytest.approx(8, abs=0.01)


def ahead(steps: int, launch_us: int, kernel_us: int, backlog_us: int = 0) -> list[dict[str, Any]]:
    """Steps in which a thread launches a kernel, which takes longer than the step, behind what was there before."""
    found = [kernel("earlier", 0, backlog_us, 99)] if backlog_us else []
    for step in range(steps):
        begin = step * launch_us
        found += [
            event(f"ProfilerStep#{step}", begin, launch_us, "user_annotation"),
            event("aten::mm", begin, launch_us),
            event("cudaLaunchKernel", begin + 10, 10, "cuda_runtime", correlation=step + 1),
            kernel("sgemm_128", max(backlog_us, 20) + step * kernel_us, kernel_us, step + 1),
        ]
    return found


def test_accelerator_work_left_over_from_the_last_step_belongs_to_the_steps(run_of: RunOf) -> None:
    run = run_of(ahead(3, 10_000, 20_000))
    header, debug = run.header(), run.debug()
    assert header.step_ms == pytest.approx(20, abs=0.1)
    assert debug.runtime_ms == pytest.approx(60, abs=0.1)
    assert bottleneck_of(debug).name == "accelerator-limits"
    assert run.predict(["device.gpu=2x"]).predicted_ms == pytest.approx(30, abs=1)
    (modelled,) = debug.assumptions
    assert isinstance(modelled, WithoutProfiler)
    assert (modelled.traced_ms, modelled.step_ms) == pytest.approx((10, 20), abs=0.1)
    assert run.debug("step:2").runtime_ms == pytest.approx(20, abs=0.1)


def test_accelerator_work_before_the_first_step_does_not_belong_to_the_steps(run_of: RunOf) -> None:
    run = run_of(ahead(3, 10_000, 15_000, 12_000))
    assert run.header().step_ms == pytest.approx(15, abs=0.1)
    first = kernel("of the first step alongside them", 20, 100, 1, stream=8)
    steady = run_of([*ahead(3, 10_000, 10_000, 12_000), first])
    assert steady.header().step_ms == pytest.approx(10, abs=0.1)
    assert steady.header().duration_ms == pytest.approx(30, abs=0.1)


def test_thread_that_polls_until_a_kernel_ends_waits_for_that_kernel(run_of: RunOf) -> None:
    """It has launched nothing behind the kernel, and goes on a bit before the profiler says that it ended."""
    events = [
        event("aten::mm", 0, 100),
        event("cudaLaunchKernel", 50, 10, "cuda_runtime", correlation=1),
        kernel("void deep_ep::internode::notify_dispatch<false, 2>(int)", 70, 9_950, 1),
        event("aten::add", 10_000, 1_000),
    ]
    run = run_of(events)
    assert run.debug().resource_ms["cpu"] == pytest.approx(1.1, abs=0.1)
    assert run.debug().resource_ms["net"] == pytest.approx(9.9, abs=0.1)
    behind = [
        event("aten::mul", 100, 20),
        event("cudaLaunchKernel", 105, 5, "cuda_runtime", correlation=2),
        kernel("next", 10_020, 100, 2),
    ]
    busy = run_of([*events, *behind])
    assert busy.debug().resource_ms["cpu"] == pytest.approx(11, abs=0.1), "an unrelated kernel that ended then"


def test_a_launch_that_returns_as_its_kernel_ends_waited_for_it(run_of: RunOf) -> None:
    """As with CUDA_LAUNCH_BLOCKING=1, or where a runtime runs what it is given before it returns."""
    events = []
    for number in range(3):
        begin = number * 1_000
        events += [
            event("aten::mm", begin, 990),
            event("cudaLaunchKernel", begin + 10, 960, "cuda_runtime", correlation=number),
            kernel("gemm", begin + 20, 900, number),
        ]
    run = run_of(events)
    assert run.debug().resource_ms["gpu"] == pytest.approx(2.7, abs=0.01)
    assert run.debug().resource_ms["cpu"] == pytest.approx(0.29, abs=0.02)
    assert run.predict(["device.gpu=1000x"]).predicted_ms == pytest.approx(0.3, abs=0.02)


def test_launch_waits_while_the_launch_queue_is_full(run_of: RunOf) -> None:
    events, moment = [], 0.0
    for number in range(1_600):
        end = moment + 6
        if number > 1_000:  # it returns as the kernel ends that frees a place
            end = max(end, 12 + (number - 1_000) * 50.0)
        events += [
            event("aten::mm", moment, end - moment),
            event("cudaLaunchKernel", moment + 1, end - moment - 1, "cuda_runtime", correlation=number),
            kernel("gemm", 10 + number * 50, 50, number),
        ]
        moment = end
    events += [event("cudaDeviceSynchronize", moment, 80_010 - moment, "cuda_runtime")]
    run = run_of(events)
    assert run.predict(["device.gpu=2x"]).predicted_ms == pytest.approx(40.0, abs=1.5)
    reported = {each.name: each.time_ms for each in run.debug().path_operators}
    assert sum(reported.values()) == pytest.approx(80.0, abs=0.1)
    (busy_ms,) = rows(
        run,
        "SELECT sum(finish_ms - launch_ms) FROM tasks JOIN training_operations USING (task_id) WHERE kind = 'op'",
    )[0]
    assert busy_ms < 10, "the time of a launch while the queue had space"


@pytest.mark.later
def test_thread_that_launches_kernels_one_by_one_is_the_bottleneck_of_a_long_trace(run_of: RunOf) -> None:
    """Too many launches to distinguish: the accelerator waits for nearly each, and some kernels take longer."""
    events, free = [], 0.0
    for number in range(4_000):
        moment = number * 50.0
        begin = max(moment + 45, free)
        free = begin + (60 if number % 10 == 0 else 30)
        events += [
            event("aten::mm", moment, 48),
            event("cudaLaunchKernel", moment + 30, 10, "cuda_runtime", correlation=number),
            kernel("gemm", begin, free - begin, number),
        ]
    events += [event("cudaDeviceSynchronize", 200_000, max(free - 200_000, 1), "cuda_runtime")]
    debug = run_of(events).debug()
    assert debug.resource_ms["cpu"] > 0.8 * debug.runtime_ms


def test_wait_for_something_outside_the_trace_is_not_cpu_time(run_of: RunOf) -> None:
    """A call that waits for nothing that was traced, and one that goes on waiting behind a kernel."""
    events = [
        event("aten::mm", 0, 1_000),
        event("cudaLaunchKernel", 100, 10, "cuda_runtime", correlation=1),
        kernel("sgemm_128", 110, 3_000, 1),
        event("hipDeviceSynchronize", 1_000, 10_000, "cuda_runtime", correlation=2),
        event("aten::add", 11_000, 1_000),
        event("hipDeviceSynchronize", 12_000, 5_000, "cuda_runtime", correlation=3),
    ]
    run = run_of(events)
    debug = run.debug()
    assert debug.resource_ms["cpu"] == pytest.approx(1.1, abs=0.1)
    assert debug.other_ms["unknown"] == pytest.approx(7.89 + 5, abs=0.1)
    assert (bottleneck_of(debug).kind, bottleneck_of(debug).name) == ("part", "waiting-for-accelerator")
    (reported,) = [each for each in debug.findings if isinstance(each, UnexplainedWait)]
    assert (round(reported.cost_ms), reported.names) == (13, ("hipDeviceSynchronize",))


def test_an_idle_accelerator_that_a_thread_waits_for_is_not_the_runtime_alone(run_of: RunOf) -> None:
    copy = {**kernel("Memcpy DtoH (Device -> Pageable)", 9_000, 50, 2), "cat": "gpu_memcpy"}
    events = [
        event("ProfilerStep#1", 0, 10_000, "user_annotation"),
        event("aten::mm", 0, 100),
        event("cudaLaunchKernel", 50, 10, "cuda_runtime", correlation=1),
        kernel("sgemm_128", 70, 930, 1),
        event("cudaLaunchKernel", 65, 10, "cuda_runtime", correlation=3),
        kernel("of what nothing traced let go on", 8_900, 100, 3, stream=8),
        event("aten::to", 100, 8_960),
        event("cudaMemcpyAsync", 110, 8_945, "cuda_runtime", correlation=2),
        copy,
        event("aten::add", 9_060, 940),
    ]
    debug = run_of(events).debug()
    assert debug.driver_ms < 0.2
    assert debug.other_ms["unknown"] == pytest.approx(7.9, abs=0.1)
    (reported,) = [each for each in debug.findings if isinstance(each, UnexplainedWait)]
    assert "aten::to: cudaMemcpyAsync" in reported.names


def test_a_trace_without_operators_of_the_cpu_does_not_take_its_gaps_for_python(run_of: RunOf) -> None:
    events = [
        event("cudaLaunchKernel", 0, 100, "cuda_runtime", correlation=1),
        kernel("sgemm_128", 50, 100, 1),
        event("cudaLaunchKernel", 10_000, 100, "cuda_runtime", correlation=2),
    ]
    run = run_of(events)
    debug = run.debug()
    assert debug.other_ms["unknown"] == pytest.approx(9.9, abs=0.1)
    assert "no operators" in problems(run)


def test_launches_of_kernels_missing_from_the_trace_are_reported(run_of: RunOf) -> None:
    launch = event("cudaLaunchKernel", 10, 5, "cuda_runtime", correlation=1)
    without = run_of([event("aten::mm", 0, 1_000), launch])
    assert "no kernels" in problems(without)
    with_all = [event("aten::mm", 0, 1_000), launch, kernel("sgemm_128", 20, 100, 1)]
    assert not {"no kernels", "no operators"} & problems(run_of(with_all)).keys()


OWN = [
    event("ProfilerStep#1", 0, 10_000, "user_annotation"),
    event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 8_000, "user_annotation"),
    event("aten::mm", 8_000, 2_000),
]
"""A step whose loader has no processes."""


def test_a_loader_without_workers_may_do_anything_where_python_was_not_run_of(run_of: RunOf) -> None:
    """One that slept for 20 ms an example, traced without stacks, was reported as CPU time."""
    run = run_of(OWN)
    verdict = run.verdict()
    assert (verdict.bottleneck.name, verdict.bottleneck.time_ms) == ("making-batches", pytest.approx(8.00, abs=0.005))
    assert verdict.debug.runtime_ms == pytest.approx(10.00, abs=0.005)
    (reported,) = verdict.debug.findings
    assert reported.kind == "own-batches"
    faster = run.predict(["cpu_speed=2x"])
    assert faster.predicted_ms is None
    assert faster.bound_ms == (pytest.approx(5.0, abs=0.1), pytest.approx(9.0, abs=0.1))


def test_sleep_of_a_loader_without_workers_is_not_computing(run_of: RunOf) -> None:
    traced = [
        event("data.py(7): __getitem__", 0, 8_000, "python_function"),
        event("<built-in function sleep>", 1_000, 6_000, "python_function"),
    ]
    debug = run_of([*OWN, *traced]).debug()
    assert debug.resource_ms["cpu"] == pytest.approx(4.0, abs=0.01)
    assert debug.other_ms["upstream"] == pytest.approx(6.0, abs=0.01)
    assert [(each.kind, round(each.cost_ms)) for each in debug.findings] == [("own-batches", 8)]


def test_python_functions_that_wait_are_not_computing(run_of: RunOf) -> None:
    """As a straggler slept before its backward pass: the profiler names each function that Python has built in."""
    events = [
        event("aten::a", 0, 1_000),
        event("train.py(1): <module>", 0, 11_000, "python_function"),
        event("<built-in method acquire of _thread.lock object at 0x7f>", 2_000, 3_000, "python_function"),
        event("<built-in function sleep>", 6_000, 4_000, "python_function"),
        event("<built-in function len>", 10_100, 400, "python_function"),
        event("aten::b", 11_000, 1_000),
    ]
    debug = run_of(events).debug()
    assert debug.resource_ms["cpu"] == pytest.approx(5.0, abs=0.01)
    assert debug.other_ms["unknown"] == pytest.approx(7.0, abs=0.01)


@pytest.mark.parametrize(
    ("function", "waits"),
    [
        ("<built-in function sleep>", True),
        ("<built-in function waitpid>", True),
        ("<built-in function print>", True),  # for the reader, where it takes long enough to be shown
        ("<built-in function select>", True),
        ("<built-in method poll of select.epoll object at 0x7f>", True),
        ("<built-in method acquire of _thread.lock object at 0x7f>", True),
        ("<built-in method join of _thread._ThreadHandle object at 0x7f>", True),
        ("<built-in method get of _queue.SimpleQueue object at 0x7f>", True),
        ("<built-in method wait of torch._C._distributed_c10d.Work object at 0x7f>", True),
        ("<built-in method join of str object at 0x7f>", False),
        ("<built-in method join of bytes object at 0x7f>", False),
        ("<built-in method select of Tensor object at 0x7f>", False),
        ("<built-in method get of dict object at 0x7f>", False),
    ],
)
def test_a_function_of_c_waits_by_its_name_and_type(function: str, waits: bool) -> None:
    """Texts that are joined were waited for, and a queue in C was computing."""
    assert names.is_wait(function) == waits


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("mark", "waited_ms"),
    [("DataLoader, mine", 5.0), ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 8.0)],
)
def test_computing_in_a_mark_of_the_program_is_computing(run_of: RunOf, mark: str, waited_ms: float) -> None:
    """Its name is that of a loader: but a loader's own, whose workers make the batch, is waiting."""
    traced = [
        event("data.py(7): make", 0, 8_000, "python_function"),
        event("<built-in function sleep>", 1_000, 5_000, "python_function"),
    ]
    own = [{**each, "name": mark} if each["name"].startswith("enumerate(") else each for each in OWN]
    debug = run_of([*own, *traced]).debug()
    assert debug.other_ms["upstream"] == pytest.approx(waited_ms, abs=0.01)
    assert debug.resource_ms["cpu"] == pytest.approx(10 - waited_ms, abs=0.01)
    assert "own-batches" not in {each.kind for each in debug.findings}


def test_ranks_of_distributed_data_parallel_wait_for_the_slowest() -> None:
    """Its reducer asks for collectives by no operator of its own: rank 1 computes for most of each step, and rank 0
    waits.  A faster CPU shortens what both do."""
    run = profiled(DATA / "torch-ddp")
    assert not rows(run, "SELECT 1 FROM training_operations WHERE operator LIKE 'c10d::%'")
    across = """
        SELECT count(DISTINCT target) FROM dependencies
        JOIN tasks AS source ON source.stage_id = dependencies.source
        JOIN tasks AS target ON target.stage_id = dependencies.target
        WHERE why = 'collective' AND source.worker_id = 'rank 1' AND target.worker_id = 'rank 0'
    """
    assert rows(run, across) == [(4,)]
    debug = run.debug()
    (waited,) = (each for each in debug.measurements if isinstance(each, WaitForSlowest))
    assert waited.slowest == "rank 1"
    (slow,) = (each for each in debug.named_parts if isinstance(each.remark, SlowRank))
    assert slow.remark == SlowRank("rank 1")
    assert slow.time_ms == pytest.approx(waited.waited_ms, rel=0.02), "rank 1 waited for nobody"
    assert run.verdict().bottleneck.name == SlowRank.kind
    faster = run.predict(["cpu_speed=2x"])
    assert faster.predicted_ms is not None
    assert faster.predicted_ms == pytest.approx(0.52 * faster.runtime_ms, rel=0.05)


def test_first_use_of_a_kernel_is_reported_and_no_faster_cpu_shortens_it(run_of: RunOf) -> None:
    events = []
    for number, (begin, took) in enumerate([(0, 6_000), (6_100, 10), (6_200, 3_000)]):
        events += [
            event("aten::mm", begin, took + 50),
            event("cudaLaunchKernel", begin + 10, took, "cuda_runtime", correlation=number),
            kernel("sgemm_128", begin + took + 20, 20, number),
        ]
    run = run_of(events)
    (reported,) = [each for each in run.debug().findings if each.kind == "first-use"]
    assert reported.cost_ms == pytest.approx(6, abs=0.01), "the third launch is of a kernel that was there"
    assert reported.advice == WarmUp()
    assert run.debug().resource_ms["cpu"] == pytest.approx(3.2, abs=0.1)


def test_trace_without_steps_is_an_excerpt_of_a_training(run_of: RunOf) -> None:
    run = run_of([event("aten::mm", 0, 1_000)])
    assert not happens_once(run.debug(), run.header())


# Files ------------------------------------------------------------------------------------------------------------


def events_of(path: Path) -> tuple[list[chrome.Event], dict[str, Any], Problems]:
    header: dict[str, Any] = {}
    problems = Problems()
    part = Part(str(path))
    found = [each for batch in chrome.read(LogFile(str(path), (part,)), part, problems, header) for each in batch]
    return found, header, problems


def test_a_trace_larger_than_a_chunk_is_cut_between_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 1000)
    names = [f'op {number} with }}, {{ in its "name"' for number in range(500)]
    path = written(tmp_path / "t.json", [event(name, 1, 1, nested=[{"a": 1}, {"b": 2}]) for name in names])
    path.write_text(path.read_text()[:-1] + ', "baseTimeNanoseconds": 5}')
    found, header, problems = events_of(path)
    assert [each.name for each in found] == names
    assert header == {"schemaVersion": 1, "baseTimeNanoseconds": 5}
    assert not list(problems)


def damaged(path: Path, events: list[dict[str, Any]], before: bytes, after: bytes) -> Path:
    """A trace with other bytes for some, as its writer left them, and what stands behind the events."""
    text = written(path, events).read_bytes()[:-1] + b', "baseTimeNanoseconds": 5}'
    path.write_bytes(text.replace(before, after))
    return path


@pytest.mark.parametrize("chunk", [1_000, 4 << 20])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"odd"', b"inf"),
        (b'"odd"', b"-nan(ind)"),
        (b'"odd"', rb'"C:\Users\me\x.py"'),
        (b'"odd"', b'"two\nlines\x01"'),
    ],
)
def test_unescaped_text_of_a_writer_costs_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, before: bytes, after: bytes
) -> None:
    monkeypatch.setattr(chrome, "CHUNK_BYTES", chunk)
    events = [event(f"op {number}", 1, 1, value="odd" if number % 7 == 3 else 1) for number in range(500)]
    found, header, problems = events_of(damaged(tmp_path / "t.json", events, before, after))
    assert [each.name for each in found] == [each["name"] for each in events]
    assert header == {"schemaVersion": 1, "baseTimeNanoseconds": 5}
    assert not list(problems)


@pytest.mark.parametrize("chunk", [1_000, 4 << 20])
@pytest.mark.parametrize("bad", [[0], [7], [498, 499], [3, 100, 101, 102, 400]])
@pytest.mark.parametrize("after", [b'"a "quoted" word"', b'"no end', b"[{", b"}"])
def test_damaged_event_is_reported_and_all_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, bad: list[int], after: bytes
) -> None:
    monkeypatch.setattr(chrome, "CHUNK_BYTES", chunk)
    nested = [{"a": 1}, {"b": "}, {"}, {"c": 3}]
    events = [event(f"op {number}", 1, 1, value="odd" if number in bad else 1, nested=nested) for number in range(500)]
    found, header, problems = events_of(damaged(tmp_path / "t.json", events, b'"odd"', after))
    assert [each.name for each in found if each.ph] == [e["name"] for n, e in enumerate(events) if n not in bad]
    assert header["baseTimeNanoseconds"] == 5
    (problem,) = problems
    assert (problem.name, problem.severity) == ("damaged trace", "data loss")
    assert figures(problem.meaning) == [len(bad)]


def test_a_text_without_the_end_of_an_event_is_looked_through_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 1_000)
    looked: list[int] = []
    whole_events = chrome._whole_events

    def counted(text: bytes, name: str, until_us: float) -> Any:
        looked.append(len(text))
        return whole_events(text, name, until_us)

    monkeypatch.setattr(chrome, "_whole_events", counted)
    monkeypatch.setattr(chrome, "pieces", lambda _part, _problems: iter([b"[" + b'{"a": ', *[b"[1, " * 250] * 200]))
    events_of(tmp_path / "none")
    assert sum(looked) < 3 * 200_000


def test_truncated_trace_gives_its_events_and_a_warning(tmp_path: Path) -> None:
    whole = gzip.decompress((DATA / "torch-2-ranks/rank0.pt.trace.json.gz").read_bytes())
    path = tmp_path / "t.json"
    path.write_bytes(whole[: len(whole) // 2])
    found, _, problems = events_of(path)
    assert len(found) > 500
    assert [each.name for each in problems] == ["damaged trace"]
    assert cp.profile(path).debug().runtime_ms > 0


def test_a_trace_without_operators_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path / "t.json", [{"ph": "M", "name": "process_name", "pid": 1}], deviceProperties=[])
    with refused(InputError, path):
        cp.profile(path)


def test_a_trace_is_of_pytorch_by_its_events_and_one_of_ascend_is_refused_by_name(tmp_path: Path) -> None:
    lines = [{"name": "Line 21", "cat": "Line 21", "ph": "X", "ts": 1, "dur": 1, "pid": 0, "tid": 0}]
    with refused(InputError, tmp_path / "lines.json", "Chrome"):
        cp.profile(written(tmp_path / "lines.json", lines))
    npu = {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "args": {"name": "Ascend Hardware"}}
    (tmp_path / "trace_view.json").write_text(json.dumps([event("aten::empty", 0, 10), npu]))
    with refused(InputError, tmp_path / "trace_view.json", "torch_npu"):
        cp.profile(tmp_path / "trace_view.json")


def test_code_printed_by_setup_writes_files_that_are_read() -> None:
    setup = get("pytorch").advisor.setup
    compile(setup.text(Job("/tmp/traces")), "setup", "exec")


# Long traces ------------------------------------------------------------------------------------------------------


def many_steps(count: int, order: int = 1) -> list[dict[str, Any]]:
    """Steps of ten operators of 1 ms each, in order of time or from the last."""
    events = [event(f"ProfilerStep#{step}", 10_000 * step, 10_000, "user_annotation") for step in range(count)]
    events += [event(f"aten::op{number % 10}", 1_000 * number, 900) for number in range(10 * count)]
    return events[::order]


@pytest.mark.few(1)
@pytest.mark.parametrize("order", [1, -1])
def test_long_trace_keeps_its_first_steps_in_whatever_order_it_lists_them(
    run_of: RunOf, monkeypatch: pytest.MonkeyPatch, order: int
) -> None:
    monkeypatch.setattr(trace, "MAX_EVENTS", 200)
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 4096)
    run = run_of(many_steps(60, order))
    ((steps, last_ms),) = rows(run, "SELECT count(*), max(end_ms) FROM scopes")
    assert 5 <= steps <= 20
    assert last_ms == pytest.approx(10 * steps)
    assert rows(run, "SELECT count(*) FROM tasks JOIN training_operations USING (task_id) WHERE kind = 'op'") == [
        (10 * steps,)
    ]
    severity, _, meaning = problems(run)["long trace"]
    assert severity == "data loss"
    assert steps in figures(meaning)


def test_long_trace_that_lists_its_steps_last_keeps_nothing_of_a_cut_step() -> None:
    events = msgspec.convert(many_steps(60), list[chrome.Event])
    process = kineto.Process("rank 0", most=205)
    process.take(events[60:], {})
    process.take(events[:60], {})
    trace._shorten([process], "x", Problems())
    found = trace.of_processes([process], "x", Problems())
    operators = [each for segment in found.segments for each in segment.operations if each.kind == "op"]
    assert (len(found.steps), len(operators)) == (20, 200)


def test_a_step_of_all_ranks_is_one_that_each_of_them_has() -> None:
    twice = [Step("1", "rank 0", 0, 10), Step("1", "rank 0", 20, 30)]
    assert steps.common(twice, 2) == []
    assert [each.number for each in steps.common([*twice, Step("1", "rank 1", 0, 10)], 2)] == ["1"]


def test_a_trace_that_is_not_long_is_kept_whole(run_of: RunOf) -> None:
    run = run_of(many_steps(60))
    assert rows(run, "SELECT count(*) FROM scopes") == [(60,)]
    assert not [each for each in run.header().problems if each.severity == "data loss"]


def test_dropped_library_frames_do_not_make_a_trace_long(run_of: RunOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_EVENTS", 700)
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 4096)
    frames = [event("torch/nn/module.py(1): forward", each, 1, "python_function") for each in range(3_000)]
    run = run_of([*frames, *many_steps(60)])
    assert rows(run, "SELECT count(*) FROM scopes") == [(60,)]
    assert not [each for each in run.header().problems if each.severity == "data loss"]


def test_short_functions_of_the_program_do_not_make_a_trace_long(
    run_of: RunOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that was resumed 1.5 million times in three steps left 2 ms of them."""
    monkeypatch.setattr(trace, "MAX_EVENTS", 700)
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 4096)
    brief = [event("train.py(9): <genexpr>", 0.2 * each, 0.1, "python_function") for each in range(3_000)]
    whole = event("train.py(7): spread", 10_950, 1_000, "python_function")
    run = run_of([*brief, whole, *many_steps(60)])
    assert rows(run, "SELECT count(*) FROM scopes") == [(60,)]
    assert rows(
        run, "SELECT call_site FROM training_operations WHERE operator = 'aten::op1' AND call_site IS NOT NULL"
    ) == [("train.py(7): spread",)]
    assert not [each for each in run.header().problems if each.severity == "data loss"]


def test_steps_that_one_rank_left_out_are_left_out_of_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "MAX_EVENTS", 400)
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 4096)
    for rank, count in ((0, 60), (1, 10)):
        written(tmp_path / f"{rank}.json", many_steps(count), distributedInfo={"rank": rank, "world_size": 2})
    run = cp.profile(tmp_path)
    ends = rows(run, "SELECT worker_id, round(max(finish_ms)) FROM tasks GROUP BY worker_id ORDER BY worker_id")
    assert len(ends) == 2
    assert ends[0][1] == ends[1][1]


# Python between operators --------------------------------------------------------------------------------------------


def made_by_itself(*functions: dict[str, Any]) -> list[dict[str, Any]]:
    """A step of 12 ms, of which the thread makes its batch itself for 8, in functions of Python."""
    return [
        event("ProfilerStep#1", 0, 12_000, "user_annotation"),
        event("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 8_000, "user_annotation"),
        event("train.py(1): <module>", 0, 12_000, "python_function"),
        *functions,
        event("aten::mm", 8_000, 4_000),
    ]


def times(run: Any, operator: str) -> list[float]:
    """Of an operator: time in all, on a CPU and on a disk, ms."""
    reported = "round(sum(finish_ms - launch_ms), 3), round(sum(cpu_ms), 3), round(sum(disk_ms), 3)"
    found = rows(
        run, f"SELECT {reported} FROM tasks JOIN training_operations USING (task_id) WHERE operator = '{operator}'"
    )
    return list(found[0])


def test_c_function_that_reads_a_file_is_disk_time(run_of: RunOf) -> None:
    events = made_by_itself(
        event("data.py(7): __getitem__", 0, 8_000, "python_function"),
        event("<built-in method read of _io.BufferedReader object at 0x7f>", 1_000, 5_000, "python_function"),
        event("<built-in method replace of str object at 0x7f>", 6_500, 1_000, "python_function"),
    )
    run = run_of(events)
    assert times(run, "own batches: __getitem__ (data.py)") == [8.0, 3.0, 5.0]
    slower = run.predict(["disk=0.5x"])
    assert slower.predicted_ms == pytest.approx(run.debug().runtime_ms + 5.0, rel=0.02)


def test_label_shows_the_resource_of_a_library_function(tmp_path: Path) -> None:
    """torch.load() reads in C, which no name shows; the function that calls it is labelled by its code."""
    events = made_by_itself(
        event("torch/serialization.py(1316): load", 0, 6_000, "python_function"),
        event("torch/nn/modules/linear.py(130): forward", 6_000, 2_000, "python_function"),
    )
    run = cp.profile(written(tmp_path / "0.json", events), indexes=["torch-2.15.0"])
    assert times(run, "own batches: load (serialization.py)") == [6.0, 0.0, 6.0]
    assert times(run, "own batches: forward (linear.py)") == [2.0, 2.0, 0.0]
    assert rows(run, "SELECT value FROM metadata WHERE key = 'indexes'") == [('["torch-2.15.0"]',)]


def test_label_of_a_function_that_calls_any_operator_is_ignored(tmp_path: Path) -> None:
    """Its label says network, because some operators are collectives; 18 ms a step that the profiler took were the
    network's."""
    events = made_by_itself(event("torch/_ops.py(1338): __call__", 0, 6_000, "python_function"))
    run = cp.profile(written(tmp_path / "0.json", events), indexes=["torch-2.15.0"])
    assert times(run, "own batches: __call__ (_ops.py)") == [6.0, 6.0, 0.0]


def test_batch_work_of_a_thread_is_a_settable_operator(run_of: RunOf) -> None:
    """`operator.own batches` meant time of no known function, 1 of 8 ms, and none of the others."""
    events = made_by_itself(event("data.py(7): __getitem__", 0, 7_000, "python_function"))
    run = run_of(events)
    for asked, saved_ms in (("own batches", 4.0), ("own batches: __getitem__", 3.5)):
        assert run.predict([f"operator.{asked}=2x"]).predicted_ms == pytest.approx(12.0 - saved_ms, abs=0.1)


@pytest.mark.few(1)
@pytest.mark.parametrize(("job", "file_bytes"), [("files", 65_536), ("saved", 66_879)])
def test_bytes_that_a_training_reads_come_from_its_disk(job: str, file_bytes: int) -> None:
    """A batch is 16 files, none of them in the page cache, and the disk brings 2 MB/s.  The bytes of the one job are
    read by functions that are known by name, those of the other by torch.load(), known by its label."""
    run = profiled(FILES / f"{job}-r1-c0.6-d2.0/traces")
    debug, header = run.debug(), run.header()
    assert header.steps == 3
    assert debug.resource_ms["disk"] / 3 == pytest.approx(16 * file_bytes / 2e6 * 1e3, rel=0.1)
    assert bottleneck_of(debug).name == "disk"
    first = bottleneck_sentence(bottleneck_of(debug), debug, header.resources, time_unit(debug.runtime_ms))
    assert "page cache" in first


@pytest.mark.few(1)
@pytest.mark.parametrize("line", ["9" * 12, "9" * 5000])
def test_function_with_an_impossible_line_is_unnamed(run_of: RunOf, line: str) -> None:
    run = run_of(made_by_itself(event(f"a.py({line}): f", 0, 8_000, "python_function")))
    assert times(run, "own batches: <module> (train.py)") == [8.0, 8.0, 0.0]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("function", "read"),
    [
        ("subprocess.py(1165): communicate", "<built-in method read of _io.BufferedReader object at 0x7f>"),
        ("multiprocessing/connection.py(378): _recv", "<built-in function read>"),  # its label says network
    ],
)
def test_pipe_to_another_process_is_not_a_device(run_of: RunOf, function: str, read: str) -> None:
    """A function that reads a file reads a pipe too: by subprocess.communicate() the disk became the bottleneck."""
    events = made_by_itself(
        event("data.py(7): __getitem__", 0, 8_000, "python_function"),
        event(function, 1_000, 5_000, "python_function"),
        event(read, 1_000, 5_000, "python_function"),
    )
    debug = run_of(events).debug()
    assert debug.resource_ms["disk"] == debug.resource_ms["net"] == 0
    assert debug.other_ms["upstream"] == pytest.approx(5.0, abs=0.01)
    assert {each.name: round(each.time_ms, 2) for each in debug.path_operators} == {
        f"own batches: {function.rpartition(' ')[2]} ({function.partition('(')[0].rpartition('/')[2]})": 5.0,
        "own batches: __getitem__ (data.py)": 3.0,
        "aten::mm": 4.0,
    }


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("callers", "disk_ms"),
    [
        (["logging/__init__.py(1673): handle", "logging/__init__.py(1098): emit"], 0.0),
        (["logging/__init__.py(1236): emit", "logging/__init__.py(1098): emit"], 5.0),
        (["tqdm/std.py(457): print_status", "tqdm/std.py(451): fp_write"], 0.0),
        (["train.py(1): report"], 5.0),
    ],
)
def test_writing_to_the_screen_is_not_disk_time(run_of: RunOf, callers: list[str], disk_ms: float) -> None:
    """A log that another process was slow to read made the disk the bottleneck of the training."""
    events = made_by_itself(
        *(event(each, 1_000 - 100 * depth, 5_000 + 200 * depth, "python_function") for depth, each in
          zip(range(len(callers), 0, -1), callers, strict=True)),
        event("<built-in method write of _io.TextIOWrapper object at 0x7f>", 1_000, 5_000, "python_function"),
    )  # fmt: skip
    assert run_of(events).debug().resource_ms["disk"] == pytest.approx(disk_ms)


def test_waiting_is_attributed_to_the_function_that_asked_for_it(run_of: RunOf) -> None:
    """Not by a lock's own: who looks for it has a line to begin at."""
    events = [
        event("aten::a", 0, 1_000),
        event("train.py(1): <module>", 0, 11_000, "python_function"),
        event("queue.py(154): get", 1_500, 6_000, "python_function"),
        event("threading.py(295): wait", 2_000, 5_000, "python_function"),
        event("<built-in method acquire of _thread.lock object at 0x7f>", 2_000, 5_000, "python_function"),
        event("<built-in function sleep>", 8_000, 2_000, "python_function"),
        event("aten::b", 11_000, 1_000),
    ]
    run = run_of(events)
    debug = run.debug()
    first = bottleneck_sentence(bottleneck_of(debug), debug, run.header().resources, time_unit(debug.runtime_ms))
    assert figures(first)[2] == 58
    assert "get (queue.py)" in first
    reported = {each.name: round(each.time_ms, 2) for each in debug.path_operators}
    assert reported["waiting in Python: get (queue.py)"] == 5.0
    assert reported["waiting in Python: <module> (train.py)"] == 2.0
    assert sum(reported.values()) == pytest.approx(12.0)
    (finding,) = [each for each in debug.findings if isinstance(each, WaitingInPython)]
    assert finding.cost_ms == pytest.approx(7.0, abs=0.01)
    assert finding.names[0] == "get (queue.py)"


def test_functions_that_share_a_name_are_shown_with_their_lines(run_of: RunOf) -> None:
    events = made_by_itself(
        event("data.py(7): <listcomp>", 0, 3_000, "python_function"),
        event("data.py(9): <listcomp>", 3_000, 4_000, "python_function"),
        event("lib/json/__init__.py(274): load", 7_000, 1_000, "python_function"),
    )
    reported = {each.name: each.time_ms for each in run_of(events).debug().path_operators}
    assert reported["own batches: <listcomp>:7 (data.py)"] == pytest.approx(3.0, abs=0.01)
    assert reported["own batches: <listcomp>:9 (data.py)"] == pytest.approx(4.0, abs=0.01)
    assert reported["own batches: load (json/__init__.py)"] == pytest.approx(1.0, abs=0.01)


def test_time_of_an_unnamed_function_is_not_its_callers(run_of: RunOf) -> None:
    """PyTorch names no function of a file whose path is not in ASCII."""
    events = made_by_itself(
        event("data.py(7): __getitem__", 0, 8_000, "python_function"),
        event("unknown", 1_000, 5_000, "python_function"),
        event("<built-in method dot of numpy.ndarray object at 0x7f>", 2_000, 3_000, "python_function"),
    )
    run = run_of(events)
    assert times(run, "own batches: __getitem__ (data.py)") == [3.0, 3.0, 0.0]
    assert times(run, "own batches") == [5.0, 5.0, 0.0]


def test_short_functions_are_summed_as_python(run_of: RunOf) -> None:
    events = made_by_itself(
        *(event("torch/utils/data/_utils/fetch.py(54): fetch", each, 40, "python_function") for each in (100, 900)),
        event("torch/utils/data/_utils/collate.py(1): collate", 7_000, 60, "python_function"),
    )
    run = run_of(events)
    named = rows(
        run,
        "SELECT DISTINCT operator FROM training_operations WHERE kind = 'python' AND operator <> 'Python' ORDER BY ALL",
    )
    assert named == [("own batches",), ("own batches: <module> (train.py)",)]
    assert times(run, "own batches") == [0.06, 0.06, 0.0]


@pytest.mark.parametrize(
    ("function", "frame"),
    [
        ("/d/odd dir (v2), ünï/dä ta (1).py(7): __call__", ("/d/odd dir (v2), ünï/dä ta (1).py", "__call__", 7)),
        ("<string>(1): made", ("<string>", "made", 1)),
        (
            "<frozen importlib._bootstrap>(1022): _find_and_load",
            ("<frozen importlib._bootstrap>", "_find_and_load", 1022),
        ),
        ("train.py(3): <lambda>", ("train.py", "<lambda>", 3)),
        ("<built-in method run of Thing (1) object at 0x7f>", None),
    ],
)
def test_a_file_may_have_parentheses_in_its_path(function: str, frame: tuple[str, str, int] | None) -> None:
    """Functions of such files went unnoticed: all their time was their caller's."""
    assert names.frame_of(function) == frame
    assert names.is_informative(function) == (frame is not None and not function.startswith("<"))


@pytest.mark.parametrize(
    ("function", "device"),
    [
        ("<built-in function open>", "disk"),
        ("<built-in function scandir>", "disk"),
        ("<built-in method readall of _io.FileIO object at 0x7f>", "disk"),
        ("<built-in method sendall of socket object at 0x7f>", "net"),
        ("<built-in method recv_into of socket object at 0x7f>", "net"),
        ("<built-in function fromfile>", "disk"),
        ("<built-in function read>", None),  # of a pipe, perhaps
        ("<built-in method replace of str object at 0x7f>", None),
        ("<built-in function len>", None),
        ("data.py(7): open", None),
        ("nn.Module: Linear_0", None),
    ],
)
def test_device_of_c_functions_that_yield_their_thread(function: str, device: str | None) -> None:
    assert names.device_of_c(function) == device


@pytest.mark.few(2)
@pytest.mark.parametrize(("reducing_us", "reported"), [(0, True), (1_000, True), (6_000, False)])
def test_gradients_through_one_rank_are_reported_with_the_gain_of_a_ring(
    tmp_path: Path, reducing_us: int, reported: bool
) -> None:
    """A gather where reducing takes longer does not carry gradients."""
    for rank in (0, 1):
        events = [
            event("ProfilerStep#1", 0, 20_000, "user_annotation"),
            event("aten::mm", 0, 1_000),
            event("gloo:gather", 1_000, 4_000, "user_annotation", 2),
            event("gloo:broadcast", 5_000, 4_000, "user_annotation", 2),
            event("aten::mm", 9_000, 1_000),
            *([event("gloo:all_reduce", 10_000, reducing_us, "user_annotation", 2)] if reducing_us else []),
            event("aten::mm", 16_000, 4_000),
        ]
        written(tmp_path / f"{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    found = [each for each in cp.profile(tmp_path).debug().findings if isinstance(each, OneLink)]
    assert bool(found) == reported
    if reported:
        assert found[0].cost_ms == pytest.approx(4.0, rel=0.01)
        assert (found[0].processes, found[0].took_ms) == (2, pytest.approx(8, rel=0.01))
    for other in tmp_path.glob("*.json"):
        other.write_text(other.read_text().replace("gloo:gather", "gloo:all_reduce"))
    assert "single-link-exchange" not in {each.kind for each in cp.profile(tmp_path).debug().findings}
