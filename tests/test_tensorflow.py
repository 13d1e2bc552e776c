"""TensorFlow: real traces of a session, of two workers with a parameter server, and of the profiler.

tests/data/training holds what lab/runs/tf_job.py made with TensorFlow 2.21: steps of a CNN of 4 MB.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.ml.tensorflow import graph, messages, setup, xplane
from crystalperf.query.frameworks.ml.training import servers
from crystalperf.query.frameworks.ml.training.assumptions import MoreProcesses, StepsReachSteadyState
from crystalperf.query.frameworks.ml.training.servers import Demand
from crystalperf.query.text.answers import step_sentence
from crystalperf.query.trace import wire
from crystalperf.query.trace.records import Problems
from tests.reading import profiled, rows
from tests.refusals import refused

DATA = Path(__file__).parent / "data/training"
RECORDED = Path(__file__).parents[1] / "lab/recordings/sweeps/tensorflow/tf-w2-c0.45-n200.0"
REAL = Path(__file__).parents[2] / "shared/real-inputs/tensorflow"


def steps(folder: str) -> list[messages.RunMetadata]:
    return [messages.run_metadata(path.read_bytes()) for path in sorted((DATA / folder).glob("*.pb"))]


# Real traces ------------------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name",
    ["tensorflow-ps", "tensorflow-xplane", "worker0-step2.run_metadata.pb", "worker0-step2.timeline.json"],
)
def test_the_replay_of_a_real_trace_gives_it_back(name: str) -> None:
    run = profiled(DATA / name)
    assert run.header().framework == "tensorflow"
    debug = run.debug()
    assert sum(each.end_ms - each.start_ms for each in debug.critical_path) == pytest.approx(debug.runtime_ms)
    assert abs(run.baseline().replay_error_ratio) <= 0.03


def test_a_timeline_and_the_metadata_that_it_was_made_of_say_the_same() -> None:
    from_timeline = profiled(DATA / "worker0-step2.timeline.json")
    from_metadata = profiled(DATA / "worker0-step2.run_metadata.pb")
    assert from_timeline.debug().runtime_ms == pytest.approx(from_metadata.debug().runtime_ms, rel=0.01)
    longest = (
        "SELECT operator, count(*) FROM training_operations JOIN tasks USING (task_id) GROUP BY operator"
        " ORDER BY sum(finish_ms - launch_ms) DESC LIMIT 3"
    )
    assert rows(from_timeline, longest) == rows(from_metadata, longest)


def test_summaries_that_embed_steps_are_read() -> None:
    assert rows(profiled(DATA / "events.out.tfevents"), "SELECT count(*) FROM scopes") == [(1,)]


def test_workers_of_a_parameter_server_are_one_run_with_network_transfers() -> None:
    run = profiled(DATA / "tensorflow-ps")
    workers = {each for (each,) in rows(run, "SELECT worker_id FROM workers")}
    assert {"worker:0", "worker:1", "ps:0", "network into worker:0", "network into ps:0"} <= workers
    transfers = "FROM tasks JOIN training_operations USING (task_id) WHERE kind = 'transfer'"
    moved, share = rows(run, f"SELECT sum(bytes), sum(net_ms) / sum(finish_ms - launch_ms) {transfers}")[0]
    assert moved > 4 * 2 * 4_000_000  # of each of four steps the weights and their gradients
    assert share == pytest.approx(1.0)
    assert {scope for (scope,) in rows(run, "SELECT scope_id FROM scopes")} == {
        f"step:worker:{worker}/{step}" for worker in (0, 1) for step in (1, 2)
    }
    step_ms = float(rows(run, "SELECT properties['step_ms'] FROM runs")[0][0])
    of_each = "SELECT avg(end_ms - start_ms) AS mean FROM scopes GROUP BY split_part(scope_id, '/', 1)"
    assert step_ms == pytest.approx(rows(run, f"SELECT avg(mean) FROM ({of_each})")[0][0], rel=1e-3)


def test_more_workers_increase_contention_on_the_servers_link() -> None:
    run = profiled(DATA / "tensorflow-ps")
    more = run.predict(["processes=2x"])
    assert more.predicted_ms > 1.2 * more.runtime_ms
    assert MoreProcesses(2, 4.0, 2.0, synchronous=False) in more.assumptions
    assert run.header().workers == 6
    assert run.predict(["processes=4"]).predicted_ms == more.predicted_ms
    assert run.predict(["processes=2"]).predicted_ms == run.baseline().predicted_ms


LINK = Demand(4e6, 4e6, 1.0, 8.0, 2.0, 20_000.0, 20_000.0)
"""200 ms to fetch, 10 to compute, 200 to send."""


def test_one_worker_has_no_contention_on_the_servers_link() -> None:
    assert servers.steady_step(LINK, 1).mean_ms == pytest.approx(410.0)
    assert servers.steady_step(LINK, 1, speed=0.5).mean_ms == pytest.approx(418.0)
    assert servers.steady_step(LINK, 1, link=2.0).mean_ms == pytest.approx(210.0)


def test_a_share_of_a_core_sends_no_faster_than_it_computes() -> None:
    """8 MB take 10.8 ms of CPU: on a hundredth of a core 1.08 s, whatever the link."""
    assert servers.steady_step(LINK, 1, share=0.01).mean_ms == pytest.approx(1_090.0)
    assert (
        servers.steady_step(LINK, 1, share=0.5).mean_ms
        == servers.steady_step(LINK, 1, share=8.0).mean_ms
        == pytest.approx(410.0)
    )


def test_two_workers_come_apart_or_stay_in_step() -> None:
    found = servers.steady_step(LINK, 2)
    assert (found.apart_ms, found.together_ms) == (pytest.approx(410.0), pytest.approx(810.0))
    assert found.mean_ms == pytest.approx(410.0)


def test_three_workers_are_between_turns_and_two_groups() -> None:
    """In turn, a full link carries three fetches in 600 ms; in groups, two workers fetch while one sends."""
    assert servers.steady_step(LINK, 3).mean_ms == pytest.approx((600.0 + 810.0) / 2)
    assert servers.steady_step(LINK, 4).mean_ms == pytest.approx((800.0 + 810.0) / 2)


@pytest.mark.parametrize("workers", [3, 5, 40])
def test_a_servers_link_is_never_more_than_full_in_either_direction(workers: int) -> None:
    found = servers.steady_step(LINK, workers)
    assert 200.0 * workers * (1 - 1e-6) <= found.apart_ms <= found.mean_ms <= found.together_ms
    assert found.together_ms == pytest.approx(400.0 * workers + 10.0)


def test_two_servers_share_what_one_had_to_carry() -> None:
    assert servers.steady_step(replace(LINK, busiest_share=0.5), 4).mean_ms < 0.7 * servers.steady_step(LINK, 4).mean_ms


def test_steps_are_reported_as_those_of_workers_apart_whatever_was_traced() -> None:
    """The trace is of workers in step; most runs of the configuration came apart, others stayed in step."""
    run = profiled(RECORDED / "traces")
    reported = run.predict(["network=2x"], recorded=["network=200Mbps"])
    untraced = [
        statistics.mean(row["step_ms"])
        for row in map(json.loads, (RECORDED.parent / "rows.jsonl").read_text().splitlines())
        if row["name"].startswith("tf-w2-c0.45-n200.")
    ]
    header = run.header()
    assert reported.steady_step_ms is not None
    before_ms, after_ms = reported.steady_step_ms
    assert statistics.median(untraced) < before_ms < header.step_ms
    assert reported.predicted_ms / reported.runtime_ms == pytest.approx(after_ms / before_ms)
    assert {round(after_ms), round(before_ms)} <= {
        int(each) for each in re.findall(r"\d+", step_sentence(header, reported))
    }
    (steps,) = (each for each in reported.assumptions if isinstance(each, StepsReachSteadyState))
    in_step_ms, apart_ms = (reported.runtime_ms * each / before_ms for each in (steps.in_step_ms, steps.apart_ms))
    assert reported.interval_ms[0] < apart_ms <= reported.predicted_ms < in_step_ms < reported.interval_ms[1]


def test_kernel_waits_for_its_inputs_in_the_graph() -> None:
    found = steps("tensorflow-ps")[0]
    program = graph.program([("1", found)], "x", Problems())
    by_name = {each.operations[0].name: each for each in program.segments}
    relu = next(each for name, each in by_name.items() if name.startswith("Conv2D_1"))
    sources = {program.segments[each.segment].operations[0].name for each in relu.sources}
    assert {"MaxPool2d", "RecvTensor"} <= sources
    assert all(
        program.segments[each.segment].start_ms <= one.start_ms for one in program.segments for each in one.sources
    )


def test_loop_iteration_waits_for_the_previous_one_and_not_for_the_first() -> None:
    """Iterations of 100 ms after a constant: each product has what the one before it handed on."""
    nodes = [messages.NodeStats("init", 1_000, 1_010, 1_000, "init = Const()", 0)]
    for begin in range(1_010, 1_010 + 5 * 110, 110):
        end = begin + 100
        nodes += [
            messages.NodeStats("while/MatMul", begin, end, begin, "while/MatMul = MatMul(while/Next, init)", 0),
            messages.NodeStats("while/Next", end, end + 10, end, "while/Next = NextIteration(while/MatMul)", 0),
        ]
    device = messages.DeviceStats("/job:localhost/replica:0/task:0/device:CPU:0", nodes)
    found = graph.program([("1", messages.RunMetadata([device]))], "x", Problems())
    sources = [sorted(each.segment for each in one.sources) for one in found.segments]
    assert sources == [[], [0], [1], [0, 2], [3], [0, 4], [5], [0, 6], [7], [0, 8], [9]]


def timeline(folder: Path, kernels: list[tuple[str, str, str, int, int, list[str]]]) -> Path:
    """A timeline of (device, name, operator, its begin and its length in µs, its inputs)."""
    devices = list(dict.fromkeys(device for device, *_ in kernels))
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"{device} Compute"}}
        for number, device in enumerate(devices)
    ]
    for device, name, operator, begin, length, inputs in kernels:
        facts = {"name": name, "op": operator, **{f"input{place}": each for place, each in enumerate(inputs)}}
        what = {"ph": "X", "cat": "Op", "name": operator, "pid": devices.index(device), "tid": 0, "args": facts}
        events.append({**what, "ts": begin, "dur": length})
    path = folder / "timeline.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


CPU_0, GPU_0 = (f"/job:localhost/replica:0/task:0/device:{each}:0" for each in ("CPU", "GPU"))


@pytest.mark.parametrize("idle_us", [2, 8_000])
def test_a_kernel_that_goes_on_as_another_ends_waited_for_its_thread(tmp_path: Path, idle_us: int) -> None:
    """Five products of one input on one thread: all halve with the CPU.  The thread's idle time stays."""
    begins = [1_012 + number * (10_000 + idle_us) for number in range(5)]
    products = [(CPU_0, f"MatMul_{begin}", "MatMul", begin, 10_000, ["x"]) for begin in begins]
    found = cp.profile(timeline(tmp_path, [(CPU_0, "x", "Const", 1_000, 10, []), *products])).predict(cpu_speed="2x")
    assert found.predicted_ms == pytest.approx(found.runtime_ms - 25.0, abs=0.1)


def test_a_thread_that_was_idle_until_a_stream_was_done_waited_for_it(tmp_path: Path) -> None:
    """A result is there when the accelerator is done, which is long after its kernel was launched."""
    kernels = [
        (GPU_0, "MatMul", "MatMul", 1_000, 100, []),
        ("/device:GPU:0/stream:1", "MatMul", "sgemm", 1_080, 20_000, []),
        (CPU_0, "result", "_Retval", 21_090, 10, ["MatMul"]),
    ]
    found = cp.profile(timeline(tmp_path, kernels)).predict(["device.gpu=2x"])
    assert found.predicted_ms == pytest.approx(found.runtime_ms - 10.0, abs=0.1)


def test_a_copy_to_an_accelerator_waits_for_what_made_its_tensor(tmp_path: Path) -> None:
    kernels = [
        (CPU_0, "batch/x", "Concat", 1_000, 20_000, []),
        ("/device:GPU:0/memcpy", "edge_12_batch/x", "MEMCPYHtoD", 21_010, 100, []),
    ]
    found = cp.profile(timeline(tmp_path, kernels)).predict(cpu_speed="2x")
    assert found.predicted_ms == pytest.approx(found.runtime_ms - 10.0, abs=0.1)


@pytest.mark.skipif(not REAL.is_dir(), reason="the folder of public real inputs is not next to this checkout")
@pytest.mark.later
def test_public_traces_are_answered_or_refused_in_a_sentence() -> None:
    for path in sorted(each for each in REAL.rglob("*") if each.is_file()):
        try:
            run = cp.profile(path)
        except InputError as refused:
            said = str(refused)
        else:
            said = f"{path} {run.debug().runtime_ms:.3f}"
        assert str(path) in said, said


# Messages ---------------------------------------------------------------------------------------------------------


def test_labels_are_read() -> None:
    assert messages.kernel_label("[mklcpu 8.0MB 8.0MB] Relu = _MklNativeFusedConv2D(It, Conv2D/Read_S35)") == (
        "_MklNativeFusedConv2D",
        ["It", "Conv2D/Read_S35"],
    )
    found = messages.transfer_label(
        "[4.0MB] [500.0Mb/s] edge_25_w/read from /job:ps/replica:0/task:0/device:CPU:0 to /job:w"
    )
    assert (found.edge, found.bytes) == ("edge_25_w/read", 4 << 20)
    assert messages.kernel_label("edge") is None
    assert messages.transfer_label("x = y()") is None


def test_a_damaged_message_ends_its_file_and_not_the_run(tmp_path: Path) -> None:
    good, torn = sorted((DATA / "tensorflow-ps").glob("worker0*.pb"))
    (tmp_path / good.name).write_bytes(good.read_bytes())
    (tmp_path / torn.name).write_bytes(torn.read_bytes()[:-5000])
    run = cp.profile(tmp_path)
    assert rows(run, "SELECT name FROM import_stats WHERE severity = 'data loss'") == [("damaged trace",)]
    with pytest.raises(wire.DamagedMessageError):
        list(wire.fields(b"\x0a\x05ab"))


def test_an_xplane_that_was_copied_as_text_says_so(tmp_path: Path) -> None:
    whole = next((DATA / "tensorflow-xplane").glob("*.xplane.pb")).read_bytes()
    path = tmp_path / "worker.xplane.pb"
    path.write_bytes(whole.decode("utf-8", errors="replace").encode())
    with refused(InputError, path):
        cp.profile(path)


def test_wire_numbers_decode_as_protocol_buffers() -> None:
    assert list(wire.fields(b"\x08\x96\x01\x12\x02hi\x1d\x01\x00\x00\x00")) == [(1, 0, 150), (2, 2, b"hi"), (3, 5, 1)]
    assert wire.signed((1 << 64) - 3) == -3
    assert wire.double(0x3FF8000000000000) == 1.5


def test_an_xplane_has_its_threads_and_operators() -> None:
    found = list(xplane.planes((DATA / "tensorflow-xplane/vm.xplane.pb").read_bytes()))
    host = next(each for each in found if each.name == "/host:CPU")
    names = {each.name for line in host.lines for each in line.events}
    assert any(name.endswith(":Conv2DBackpropFilter") or "Conv2DBackpropFilter" in name for name in names)
    assert all(each.end_ms >= each.start_ms > 1e12 for line in host.lines for each in line.events)


def test_the_body_of_a_loop_on_a_device_is_what_ran() -> None:
    """A TPU's line of operators: a loop of 20 ms with two fusions, and one behind it."""
    traced = [("while.3", 0, 20), ("fusion.1", 1, 9), ("fusion.2", 10, 19), ("copy.4", 20, 25)]
    line = xplane.Line("XLA Ops", [xplane.Traced(name, start, end) for name, start, end in traced])
    read = [("process", [xplane.Plane("/device:TPU:0", [line], {})])]
    (segment,) = xplane.of_planes(read, "x", Problems(), "jax", xplane.of_line).segments
    assert [(each.operator, each.start_ms, each.end_ms) for each in segment.operations] == [
        ("while.3", 0, 1),
        ("fusion.1", 1, 9),
        ("while.3", 9, 10),
        ("fusion.2", 10, 19),
        ("while.3", 19, 20),
        ("copy.4", 20, 25),
    ]


def test_first_unsynchronized_clock_is_named_with_the_number_of_all() -> None:
    def kernel(task: str, end_ms: float, sources: list[int]) -> graph._Kernel:
        return graph._Kernel(task, task, "node", "MatMul", end_ms - 1, end_ms, None, [], "", sources=sources)

    servers = [kernel(f"ps:{number}", 13.0, []) for number in range(8)]
    kernels = [*servers, kernel("worker:0", 10.0, list(range(8)))]
    problems = Problems()
    graph._align(kernels, "trace", problems)
    assert [(each.first_where, each.count) for each in problems] == [("ps:0", 8)]
    assert [each.end_ms for each in kernels] == [10.0] * 9


# Steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "numbers"),
    [
        (("step100_worker0.pb", "step200_worker0.pb"), {"100", "200"}),
        (("epoch1-0.pb", "epoch2-0.pb"), {"0", "0.2"}),
    ],
)
def test_each_step_of_a_worker_has_an_id_of_its_own(tmp_path: Path, files: tuple[str, str], numbers: set[str]) -> None:
    for source, name in zip(sorted((DATA / "tensorflow-ps").glob("worker0*.pb")), files, strict=True):
        (tmp_path / name).write_bytes(source.read_bytes())
    run = cp.profile(tmp_path)
    scopes = "SELECT scope_id, end_ms - start_ms FROM scopes"
    found = dict(rows(run, scopes))
    assert found.keys() == {f"step:{number}" for number in numbers}
    for scope_id, lasted_ms in found.items():
        assert run.debug(scope=scope_id).runtime_ms == pytest.approx(lasted_ms)


def test_steps_numbered_again_in_each_epoch_are_distinguished_and_duplicates_dropped() -> None:
    def marked(start: float, number: str) -> xplane.Traced:
        return xplane.Traced("train", start, start + 10, {"step_num": number})

    ran = [xplane.Traced("w:MatMul", start, start + 5) for start in (0, 10, 20, 30)]
    python = xplane.Line("python", [*ran, *(marked(10 * place, number) for place, number in enumerate("0101"))])
    again = xplane.Line("other thread", [marked(1, "0")])
    read = [("process", [xplane.Plane("/host:CPU", [python, again], {})])]
    found = xplane.of_planes(read, "x", Problems(), "tensorflow", xplane.of_line)
    assert [(each.scope_id, each.start_ms) for each in found.steps] == [
        ("step:0", 0),
        ("step:1", 10),
        ("step:0.2", 20),
        ("step:1.2", 30),
    ]
    assert [each.step for each in found.segments] == ["step:0", "step:1", "step:0.2", "step:1.2"]


def test_a_kernel_waits_for_what_launched_it_until_then_and_not_for_its_end(tmp_path: Path) -> None:
    """The first product of a session sets up its library for long, launches, and returns a moment later."""
    host, stream = "/job:localhost/replica:0/task:0/device:GPU:0 Compute", "/device:GPU:0/stream:all Compute"

    def ran(pid: int, start: int, length: int) -> dict[str, Any]:
        args = {"name": "product", "op": "MatMul"}
        return {
            "ph": "X",
            "cat": "Op",
            "name": "MatMul",
            "pid": pid,
            "tid": 0,
            "ts": start,
            "dur": length,
            "args": args,
        }

    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": each}}
        for pid, each in enumerate((host, stream))
    ]
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps({"traceEvents": [*names, ran(0, 1_000_000, 90_040), ran(1, 1_090_000, 10_000)]}))
    run = cp.profile(path)
    assert run.debug().resource_ms["cpu"] == pytest.approx(90, abs=0.1)
    assert run.debug().resource_ms["gpu"] == pytest.approx(10, abs=0.1)
    assert run.predict(["cpu_speed=2x"]).predicted_ms == pytest.approx(55, abs=0.1)
    assert rows(run, "SELECT 1 FROM import_stats WHERE name = 'contradicted_dependency'") == []


# XPlanes of input pipelines ---------------------------------------------------------------------------------------


def test_sleeping_input_pipeline_is_input_wait_and_not_cpu_time() -> None:
    """20 steps of a function whose batches come from tf.data: a function of Python slept for 20 ms in each of two
    threads.  It was reported as CPU time, by what the pipeline's own threads showed."""
    run = profiled(DATA / "tensorflow-input")
    verdict = run.verdict()
    assert (verdict.bottleneck.name, verdict.bottleneck.time_ms) == ("upstream", pytest.approx(201, abs=0.5))
    assert verdict.debug.runtime_ms == pytest.approx(218, abs=0.5)
    faster = run.predict(["cpu_speed=2x"])
    assert faster.predicted_ms is None
    assert faster.bound_ms is not None
    low, high = faster.bound_ms
    assert low < 0.7 * faster.runtime_ms < 0.95 * faster.runtime_ms < high


def test_operators_that_python_runs_one_by_one_are_operators() -> None:
    traced = [
        ("EagerLocalExecute: MatMul", 0, 3),
        ("EagerLocalExecute: __inference_f_12", 3, 9),
        ("EagerExecute", 0, 9),
    ]
    line = xplane.Line("python", [xplane.Traced(name, start, end) for name, start, end in traced])
    (found,) = xplane.of_line("process", line)
    assert (found.operator, found.likely, found.start_ms, found.end_ms) == ("MatMul", "cpu", 0, 3)


# Waiting for input ------------------------------------------------------------------------------------------------

FED = "/job:localhost/replica:0/task:0/device:CPU:0 Compute"


def test_a_step_that_waits_for_its_queue_is_said_to(tmp_path: Path) -> None:
    def node(name: str, op: str, start: int, length: int, *inputs: str) -> dict[str, Any]:
        named = {f"input{number}": each for number, each in enumerate(inputs)}
        args = {"name": name, "op": op, **named}
        return {"ph": "X", "cat": "Op", "name": op, "pid": 0, "tid": 0, "ts": start, "dur": length, "args": args}

    events = [
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": FED}},
        node("fed", "QueueDequeueManyV2", 1_000_000, 70_000),
        node("product", "MatMul", 1_070_000, 30_000, "fed"),
    ]
    path = tmp_path / "timeline.json"
    path.write_text(json.dumps({"traceEvents": events}))
    run = cp.profile(path)
    verdict = run.verdict()
    assert (verdict.bottleneck.name, verdict.bottleneck.time_ms) == ("upstream", pytest.approx(70, abs=0.5))
    assert verdict.debug.runtime_ms == pytest.approx(100, abs=0.5)
    assert [(each.kind, round(each.cost_ms)) for each in verdict.debug.findings] == [("input", 70)]
    assert verdict.recommendations[0].because == "input"  # a second is not a threshold for a step
    assert abs(run.baseline().replay_error_ratio) <= 0.03


# Setup ------------------------------------------------------------------------------------------------------------


def test_lines_of_setup_profile_six_marked_steps_and_write_steps_of_a_session_into_a_missing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, session, folder = MagicMock(), MagicMock(), tmp_path / "new" / "traces"
    fake.compat.v1.RunMetadata.return_value.SerializeToString.return_value = b"step"
    for name, each in (
        ("tensorflow", fake),
        ("tensorflow.compat", fake.compat),
        ("tensorflow.compat.v1", fake.compat.v1),
    ):
        monkeypatch.setitem(sys.modules, name, each)
    exec(compile(setup.text(Job(str(folder))), "setup", "exec"), {"session": session, "train": "step"})
    profiler = fake.profiler.experimental
    profiler.start.assert_called_once_with(str(folder))
    assert [each.kwargs["step_num"] for each in profiler.Trace.call_args_list] == [*range(6)]
    traced = [each for each in session.run.call_args_list if "run_metadata" in each.kwargs]
    assert (len(session.run.call_args_list), len(traced)) == (24, 4)
    assert [each.name for each in sorted(folder.iterdir())] == [f"worker0-step{n}.run_metadata.pb" for n in (1, 2, 3)]
    assert {each.read_bytes() for each in folder.iterdir()} == {b"step"}
