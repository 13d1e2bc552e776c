"""Pages of Flink's REST interface, as somebody saves them: streams that run, were canceled or failed; batch jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.cli.screen import verdict_text
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.frameworks.flink import planning
from crystalperf.query.frameworks.flink.refusals import EndlessStream
from crystalperf.query.frameworks.flink.remarks import FullVertex, IdleSources, KeptUp, UnknownLoad
from crystalperf.query.results.findings import IdleSlots
from crystalperf.query.results.refusals import TasksWithoutEnd

DATA = Path(__file__).parent / "data" / "flink"

BEGAN = 1_700_000_000_000
ENDED = {"FINISHED", "FAILED", "CANCELED"}


def vertex(number: int, name: str, state: str = "RUNNING", ran: int = 100_000, **more: Any) -> dict[str, Any]:
    """A vertex that began 1 s after its job; `busy`, `idle` and `pressed` are ms of all its subtasks."""
    metrics = {"read-bytes": more.pop("read", 0), "write-bytes": 20}
    for key, field in (("busy", "busy"), ("idle", "idle"), ("pressed", "backpressured")):
        if key in more:
            metrics[f"accumulated-{field}-time"] = more.pop(key)
    begin, over = BEGAN + 1000, state in ENDED
    return {
        "id": f"{number:032x}", "name": name, "parallelism": 1, "status": state, "start-time": begin,
        "end-time": begin + ran if over else -1, "duration": ran, "metrics": metrics, **more,
    }  # fmt: skip


def page(
    path: Path,
    vertices: list[dict[str, Any]],
    state: str = "RUNNING",
    *,
    kind: str = "STREAMING",
    exchange: str = "pipelined_bounded",
    optimized: dict[str, Any] | None = None,
) -> cp.Run:
    """The run of a page of a job of one chain of vertices, which ran for 101 s."""
    nodes = [
        {
            "id": each["id"],
            "optimizer_properties": optimized or {},
            "inputs": [{"id": before["id"], "ship_strategy": "HASH", "exchange": exchange}] if before else [],
        }
        for before, each in zip([None, *vertices], vertices, strict=False)
    ]
    end = BEGAN + 101_000
    job = {
        "jid": "0" * 32, "name": "a job", "state": state, "start-time": BEGAN,
        "end-time": end if state in ENDED else -1, "now": end, "timestamps": {"RUNNING": BEGAN + 500},
        "vertices": vertices, "plan": {"jid": "0" * 32, "type": kind, "nodes": nodes},
    }  # fmt: skip
    path.write_text(json.dumps(job))
    return cp.profile([str(path)])


def screen(run: cp.Run) -> str:
    return " ".join(verdict_text(run.verdict(), "next", "run", full=True).split())


# Streams that go on ------------------------------------------------------------


def test_a_stream_without_records_waits_for_them(tmp_path: Path) -> None:
    idle = {"busy": 0, "idle": 99_900, "pressed": 0}
    run = page(tmp_path / "job.json", [vertex(1, "Source", **idle), vertex(2, "Sink", **idle)])
    assert run.debug().unbounded == IdleSources(pytest.approx(0.999, abs=0.02))


def test_vertex_with_inputs_is_not_a_source_if_the_page_lacks_the_plan(tmp_path: Path) -> None:
    reader = vertex(1, "Sink", busy=1_000, idle=99_000, pressed=0, read=4_000)
    found = page(tmp_path / "job.json", [reader]).debug().unbounded
    assert found == KeptUp("Sink", pytest.approx(0.01, abs=0.001), measured=1, vertices=1)


def test_bottleneck_of_a_stream_is_the_vertex_that_is_always_busy(tmp_path: Path) -> None:
    source = vertex(1, "Source", busy=20_000, idle=0, pressed=80_000)
    run = page(tmp_path / "job.json", [source, vertex(2, "Join", busy=98_000, idle=2_000, pressed=0)])
    assert run.debug().unbounded == FullVertex("Join", pytest.approx(0.98), pytest.approx(0.8))


def test_a_stream_that_keeps_up_says_how_busy_it_was_at_most(tmp_path: Path) -> None:
    reported = {"busy": "NaN", "idle": 60_000, "pressed": 10_000}  # what is neither idle nor back-pressured is busy
    run = page(tmp_path / "job.json", [vertex(1, "Source", **reported), vertex(2, "Sink")])
    assert run.debug().unbounded == KeptUp("Source", pytest.approx(0.3), measured=1, vertices=2)


def test_a_stream_of_which_nothing_was_measured_is_not_known(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "Source"), vertex(2, "Sink")])
    assert run.debug().unbounded == UnknownLoad()


@pytest.mark.parametrize("state", ["RUNNING", "CANCELED"])
def test_stopped_stream_gets_no_predicted_runtime(tmp_path: Path, state: str) -> None:
    idle = {"busy": 0, "idle": 99_900, "pressed": 0}
    run = page(tmp_path / "job.json", [vertex(each, "v", state, **idle) for each in (1, 2)], state)
    for setting in ("parallelism=2x", "cpu_speed=2x", "taskmanagers=2x"):
        answer = run.predict([setting])
        assert answer.predicted_ms is None
        assert answer.refused == (EndlessStream(),)
    assert [each.price for each in run.verdict().recommendations] == ["record"]  # more subtasks would shorten nothing


def test_bottleneck_is_waiting_for_slots_if_it_outlasts_the_stream(tmp_path: Path) -> None:
    late = vertex(1, "Source", "CANCELED")
    late |= {"start-time": BEGAN + 90_000, "end-time": BEGAN + 101_000, "duration": 11_000}
    debug = page(tmp_path / "job.json", [late], "CANCELED").debug()
    assert (debug.unbounded, bottleneck_of(debug).name) == (None, "no worker")


def test_ended_stream_is_asked_about_its_runtime(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "Source", "FINISHED"), vertex(2, "Sink", "FINISHED")], "FINISHED")
    assert run.predict(["taskmanagers=2x"]).predicted_ms == pytest.approx(101_000)


def test_data_set_api_job_is_not_a_stream(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "v", "CANCELED")], "CANCELED", kind="", optimized={"estimates": [1]})
    assert EndlessStream() not in run.predict(["cpu_speed=2x"]).refused


# How jobs end ------------------------------------------------------------


def test_a_canceled_job_did_not_fail(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "Source", "CANCELED"), vertex(2, "Sink", "CANCELED")], "CANCELED")
    outcome = run.debug().outcome
    (job, *_) = outcome.tallies
    assert (outcome.status, job.total, job.failed, job.cancelled) == ("succeeded", 1, 0, 1)
    assert not any(each in screen(run) for each in ("failed", "killed"))


def test_a_failed_job_that_does_not_say_why_names_the_vertex(tmp_path: Path) -> None:
    vertices = [vertex(1, "Source", "FAILED", 50_000), vertex(2, "Sink", "CANCELED", 51_000)]
    run = page(tmp_path / "job.json", vertices, "FAILED")
    outcome = run.debug().outcome
    assert outcome.status == "failed"
    assert "Source" in screen(run).partition("What to do")[0]


# Slots ------------------------------------------------------------


def test_a_page_without_task_managers_counts_none(tmp_path: Path) -> None:
    header = page(tmp_path / "job.json", [vertex(1, "a"), vertex(2, "b")]).header()
    assert (header.workers, header.slots_per_worker) == (0, None)
    assert "TaskManager x" not in screen(page(tmp_path / "job.json", [vertex(1, "a"), vertex(2, "b")]))


def test_more_subtasks_of_a_pipeline_run_at_once_if_slots_are_unknown(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "a", "FINISHED"), vertex(2, "b", "FINISHED")], "FINISHED")
    assert run.predict(["parallelism=2x"]).predicted_ms == pytest.approx(51_000, rel=0.01)


def test_a_pipeline_leaves_no_slots_idle_that_its_vertices_share(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "a", "FINISHED", 60_000), vertex(2, "b", "FINISHED")], "FINISHED")
    assert "idle-slots" not in {each.kind for each in run.debug().findings}


def test_a_slot_takes_a_subtask_of_each_vertex_of_a_pipeline() -> None:
    assert planning.shown_slots(8, {"slot_sharing": "4"}) == 2
    assert planning.shown_slots(4, {}) == 4


def test_idle_slots_are_counted_as_their_user_does(tmp_path: Path) -> None:
    """Two TaskManagers of two slots, of which each takes a subtask of all three vertices: 4 slots, and no 12."""
    archive = tmp_path / "job.json.gz"
    archive.write_bytes((DATA / "ads-3000.json.gz").read_bytes())
    run = cp.profile(archive)
    header, answer = run.header(), run.debug()
    assert (header.workers, header.slots_per_worker) == (2, 2)
    assert {(each.tasks, each.slots, each.waves) for each in answer.stages} == {(2, 4, 0.5)}
    assert all(each.idle_ms == pytest.approx(2 * each.length_ms, rel=0.01) for each in answer.stages)
    (found,) = [each for each in answer.findings if isinstance(each, IdleSlots)]
    assert {(each.cause, each.tasks, each.slots) for each in found.stages} == {("few-tasks", 2, 4)}


def test_vertex_of_maximum_parallelism_one_keeps_its_parallelism(tmp_path: Path) -> None:
    vertices = [vertex(1, "Write", "FINISHED"), vertex(2, "Commit", "FINISHED", maxParallelism=1)]
    answer = page(tmp_path / "job.json", vertices, "FINISHED", kind="BATCH").predict(["parallelism=2x"])
    took = {each.name: (each.recorded_ms, each.predicted_ms) for each in answer.stages}
    assert took["Commit"][1] == took["Commit"][0]
    assert took["Write"][1] == pytest.approx((took["Write"][0] or 0) / 2)


def test_tasks_of_which_a_log_has_no_end_are_counted_once(tmp_path: Path) -> None:
    run = page(tmp_path / "job.json", [vertex(1, "a"), vertex(2, "b")], kind="BATCH", exchange="blocking")
    assert run.predict(["cpu_speed=2x"]).refused == (TasksWithoutEnd(2, 2),)
