"""Made Spark logs with a known answer: clocks that were set, waits for slots, unequal executors, lost events."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.cli.runs import profile_run
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.frameworks.spark.findings import SlotsAwaited, Speculation
from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.remarks import FallsBehind
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.inputs.discover import discover
from crystalperf.query.results.answers import Debug, SampleCounts, WorkerSize
from crystalperf.query.results.findings import GarbageCollection, IdleSlots, MoreData, Straggler
from crystalperf.query.results.missing import UnendedTasks
from crystalperf.query.run import Run
from crystalperf.query.text.answers import (
    bottleneck_sentence,
    header_facts,
    recordings_sentence,
    samples_sentence,
    stream_sentences,
)
from tests.hand_made import Seconds, figures
from tests.reading import profiled
from tests.spark_events import Event, changed, event, executor, run, stepped, with_late_tasks, without, write

MADE = Path(__file__).parent / "data" / "made"
Make = Callable[[Sequence[Event]], Run]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda events: cp.profile([write(tmp_path / "log", events)], output=tmp_path / "run.duckdb")


def first_sentence(made: Run) -> str:
    debug = made.debug()
    return bottleneck_sentence(bottleneck_of(debug), debug, made.header().resources, Seconds())


def kept(name: str) -> Run:
    return profiled(MADE / f"{name}.zstd")


def problems(made: Run) -> set[str]:
    return {each.name.partition(" ")[0] for each in made.header().problems if each.severity != "info"}


def path_s(debug: Debug) -> list[tuple[str, float]]:
    found = ((each.id, round((each.end_ms - each.start_ms) / 1000, 1)) for each in debug.critical_path)
    return [each for each in found if each[1] > 0]


# Times ----------------------------------------------------------------------------------------------------------------

PATH = [
    *(("driver:0", 2.0), ("stage:0.0", 6.0), ("driver:1", 0.5), ("stage:1.0", 6.0)),
    *(("driver:2", 0.5), ("stage:2.0", 6.0), ("driver:3", 0.5)),
]
"""The critical path of the run without a change."""


def test_a_clock_set_forward_by_an_hour_adds_no_hour() -> None:
    made = kept("clock-forward")
    assert made.header().duration_ms == pytest.approx(6100, abs=20)
    assert problems(made) == {"clock_step"}
    assert bottleneck_of(made.debug()).name == "cpu"


@pytest.mark.few(4)
@pytest.mark.parametrize("by_s", [3600, -3600, 90, -90, 30 * 86_400, -30 * 86_400])
@pytest.mark.parametrize("at_ms", [2500, 10_500, 19_500])
def test_a_step_of_the_clock_while_tasks_run_changes_nothing(make: Make, at_ms: int, by_s: int) -> None:
    made = make(stepped(run(), at_ms, by_s * 1000))
    assert path_s(made.debug()) == PATH
    assert problems(made) == {"clock_step"}
    (said,) = [each.meaning for each in made.header().problems if each.name.startswith("clock_step")]
    assert figures(said) == [abs(by_s)]


def test_several_steps_are_each_undone(make: Make) -> None:
    made = make(stepped(stepped(run(), 10_500, 600_000), 5000, -300_000))
    assert path_s(made.debug()) == PATH
    assert len([each for each in made.header().problems if each.name.startswith("clock_step")]) == 2


@pytest.mark.few(6)
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(
    ("kind", "key", "change"),
    [
        *(
            ("TaskEnd", "Finish Time", change)
            for change in (lambda _: 0, lambda _: -1, lambda _: math.nan, lambda _: 3.4e12)
        ),
        ("TaskEnd", "Finish Time", lambda was: was + 600_000),
        ("TaskEnd", "Finish Time", lambda was: was - 600_000),
        ("TaskEnd", "Launch Time", lambda _: 0),
        ("TaskEnd", "Launch Time", lambda was: was - 600_000),
        ("StageCompleted", "Completion Time", lambda _: 3.4e12),
        ("StageCompleted", "Completion Time", lambda was: was + 3_600_000),
        ("StageCompleted", "Completion Time", lambda was: was - 3_600_000),
        ("StageCompleted", "Completion Time", lambda _: 0),
        ("JobEnd", "Completion Time", lambda _: 3.4e12),
        ("JobEnd", "Completion Time", lambda was: was + 3_600_000),
        ("JobStart", "Submission Time", lambda _: 9.5e11),
        ("ExecutorAdded", "Timestamp", lambda _: 3.4e12),
    ],
)
def test_one_impossible_time_changes_nothing_and_is_said(
    make: Make, kind: str, key: str, change: Callable[[Any], Any], ends: bool
) -> None:
    """A time of 0, in the year 2077, or beyond what the tasks' own measurements and their stage allow."""
    events = run() if ends else without(run(), "ApplicationEnd")
    made = make(changed(events, kind, 1, key, change))
    assert path_s(made.debug()) == (PATH if ends else PATH[:-1])
    assert problems(made)


@pytest.mark.parametrize("end", [0, 3.4e12])
def test_an_impossible_end_of_the_application_is_that_of_its_last_event(make: Make, end: float) -> None:
    made = make(changed(run(), "ApplicationEnd", 0, "Timestamp", lambda _: end))
    assert path_s(made.debug()) == PATH[:-1]
    assert "application_end" in problems(made)


def test_a_start_of_the_application_after_its_jobs_is_that_of_its_first_event(make: Make) -> None:
    made = make(changed(run(), "ApplicationStart", 0, "Timestamp", lambda was: was + 3_600_000))
    assert path_s(made.debug()) == PATH[1:]
    assert "application_start" in problems(made)


# Lost events ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [(), ("TaskStart",), ("TaskStart", "StageCompleted"), ("StageCompleted",)])
def test_tasks_without_an_end_make_the_answer_doubtful(make: Make, missing: tuple[str, ...]) -> None:
    """97 of 100 ends are missing; whether the stage's own end or the starts are there makes no difference."""
    events = without(run(jobs=1, waves=25), *missing)
    ends = [each for each in events if each["Event"] == "SparkListenerTaskEnd"]
    made = make([each for each in events if each not in ends[3:]])
    assert [each.missing for each in made.debug().missing_data] == [UnendedTasks(97, 100, "stage:0.0", 1)]
    assert figures(first_sentence(made))[:2] == [97, 100]


# Slots ----------------------------------------------------------------------------------------------------------------


def awaited(made: Run) -> SlotsAwaited:
    debug = made.debug()
    found = bottleneck_of(debug)
    assert (found.kind, found.name) == ("cause", "no slot")
    assert "driver" not in {str(cause) for cause, ms in debug.other_ms.items() if ms > 100}
    (finding,) = [each for each in debug.findings if isinstance(each, SlotsAwaited)]
    assert finding.cost_ms == pytest.approx(found.time_ms, abs=20)
    return finding


def test_a_barrier_stage_waits_for_slots_not_for_the_driver() -> None:
    made = kept("barrier-waits")
    finding = awaited(made)
    assert (finding.why, finding.tasks, finding.free, finding.executor) == ("barrier", 4, 2, "2")
    assert finding.cost_ms == pytest.approx(28_000, abs=20)
    assert "barrier" in first_sentence(made)


def waiting(events: list[Event], executor_id: str | None, *more: Event, **of_stage: Any) -> list[Event]:
    """The events of a run whose stage 1 waits for 30 s; `executor_id` ran its tasks, and `more` came meanwhile."""
    found = with_late_tasks(events, 1, 30_000)
    for each in found:
        info = each.get("Stage Info", {})
        if info.get("Stage ID") == 1:
            info.update(of_stage)
        if executor_id is not None and each.get("Stage ID") == 1:
            each["Task Info"].update({"Executor ID": executor_id, "Host": f"host{executor_id}"})
    place = [number for number, each in enumerate(found) if each["Event"] == "SparkListenerStageSubmitted"][1]
    return [*found[: place + 1], *more, *found[place + 1 :]]


def test_a_stage_whose_resource_profile_has_no_executor_waits_for_slots(make: Make) -> None:
    asked = {
        "Executor_Resource_Requests": {"cores": {"Amount": 4}},
        "Task_Resource_Requests": {"cpus": {"Amount": 1.0}},
    }
    profile = event("ResourceProfileAdded", Resource_Profile_Id=1, **asked)
    came = executor("9", 34_000, 4, profile=1)
    made = make(waiting(run(jobs=2, waves=1), "9", profile, came, **{"Resource Profile Id": 1}))
    finding = awaited(made)
    assert (finding.why, finding.profile, finding.slots, finding.executor) == ("profile", 1, 0, "9")
    assert finding.cost_ms == pytest.approx(30_000, abs=20)


def test_a_stage_that_only_later_executors_run_waits_for_them(make: Make) -> None:
    finding = awaited(make(waiting(run(jobs=2, waves=1), "9", executor("9", 34_000, 4))))
    assert (finding.why, finding.slots, finding.free, finding.executor) == ("executors", 4, 4, "9")


def test_a_barrier_stage_that_never_starts_waits_to_the_end(make: Make) -> None:
    rdds = [{"RDD ID": 1, "Name": "MapPartitionsRDD", "Number of Partitions": 8, "Barrier": True}]
    events = waiting(run(jobs=2, waves=1), None, **{"Number of Tasks": 8, "RDD Info": rdds})
    gone = [
        each
        for each in events
        if 1 in (each.get("Stage ID"), each.get("Job ID"), each.get("Stage Info", {}).get("Stage ID"))
        and each["Event"].endswith(("TaskStart", "TaskEnd", "StageCompleted", "JobEnd"))
    ]
    finding = awaited(make([each for each in events if each not in gone]))
    assert (finding.why, finding.tasks, finding.free, finding.started) == ("barrier", 8, 4, False)


def test_executors_that_are_not_there_are_waited_for(make: Make) -> None:
    events = [
        stepped(each, 0, 30_000 if each["Event"] == "SparkListenerExecutorAdded" else 0)
        for each in with_late_tasks(run(jobs=1, waves=1), 0, 30_000)
    ]
    debug = make(events).debug()
    assert bottleneck_of(debug).name == "no worker"
    assert not [each for each in debug.findings if isinstance(each, SlotsAwaited)]


def test_executors_of_different_sizes_are_a_set_of_sizes() -> None:
    """24 tasks of 5 s ran on executors of 4 and of 8 slots, in two waves."""
    made = kept("unequal-executors")
    header = made.header()
    assert header.worker_sizes == (WorkerSize(4, 1), WorkerSize(8, 1))
    assert figures(" ".join(header_facts(header)))[-5:] == [1, 4, 1, 8, 12.1]
    for setting, seconds in (("4", 17.1), ("8", 12.1), ("12", 7.1), ("0.5x", 22.1), ("2x", 7.1)):
        prediction = made.predict([f"cores={setting}"])
        assert prediction.predicted_ms == pytest.approx(1000 * seconds, abs=300), setting
    asked = {each.setting for each in made.verdict().what_ifs}
    assert {"cores=4", "cores=8", "cores=2x"} <= asked


# Copies, stragglers, garbage, streams --------------------------------------------------------------------------------


def test_a_losing_copy_that_outlives_its_stage_is_not_on_the_path() -> None:
    made = kept("losing-copy")
    debug = made.debug()
    assert path_s(debug) == [("driver:0", 2.0), ("stage:0.0", 2.5), ("driver:1", 25.5)]
    assert bottleneck_of(debug).name == "end"
    (found,) = [each for each in debug.findings if isinstance(each, Speculation)]
    assert (found.copies, found.won, found.lost_ms, found.saved_ms) == (1, 1, 26_990, 24_500)


def test_one_straggler_is_the_first_sentence() -> None:
    """39 tasks took half a second; one read 16 GiB in 120 s.  All of them read rows."""
    made = kept("one-straggler")
    debug = made.debug()
    found = bottleneck_of(debug)
    assert (found.kind, found.name, found.time_ms) == ("finding", "straggler", pytest.approx(119_500, abs=10))
    (stage,) = next(each for each in debug.findings if isinstance(each, Straggler)).stages
    assert (stage.task_id, stage.cause) == (39, MoreData(16 * 2**30, 2**20))
    idle = [stage for each in debug.findings if isinstance(each, IdleSlots) for stage in each.stages]
    assert all(stage.with_data == stage.tasks for stage in idle)
    assert first_sentence(made).startswith("Bottleneck: one straggler")


def test_garbage_collection_is_the_first_sentence() -> None:
    made = kept("garbage-bound")
    debug = made.debug()
    found = bottleneck_of(debug)
    assert (found.kind, found.name, found.time_ms) == ("finding", "garbage-collection", pytest.approx(17_000, abs=50))
    assert [each.share for each in debug.findings if isinstance(each, GarbageCollection)] == [pytest.approx(0.85)]
    assert first_sentence(made).startswith("Bottleneck: garbage collection")


def test_a_stream_that_falls_behind_says_so_first() -> None:
    made = kept("stream-behind")
    debug = made.debug()
    assert isinstance(debug.leading, FallsBehind)
    assert (debug.leading.query.input_per_s, round(debug.leading.query.processed_per_s or 0)) == (200, 111)
    assert figures(stream_sentences(debug, made.header().resources)[0]) == [200, 111]
    advised = {each.kind for each in made.verdict().recommendations}
    assert "cut-files-smaller" not in advised, "its source is not made of files"


def test_a_stream_that_keeps_up_needs_no_sentence_before_the_bottleneck() -> None:
    assert kept("stream-idle").debug().leading is None


def test_a_warmup_that_first_tasks_do_not_show_is_not_predicted() -> None:
    made = kept("stream-idle")
    prediction = made.predict(["executors=2x"])
    assert prediction.predicted_ms == pytest.approx(prediction.runtime_ms, rel=0.01)


# Files ----------------------------------------------------------------------------------------------------------------


def answers(path: Path) -> tuple[int, dict[str, int]]:
    read = collect(LogFile(str(path), (Part(str(path)),)))
    return sum(each.shape[1] for each in read.tasks), {each.name: each.count for each in read.problems}


def test_a_log_with_blanks_or_another_order_of_fields_is_read_as_any_other(tmp_path: Path) -> None:
    """No line goes to the slow reader of odd lines, which would note each of them."""
    expected = (36, {})
    assert answers(write(tmp_path / "compact", run())) == expected
    assert answers(write(tmp_path / "blanks", run(), compact=False)) == expected
    ordered = "".join(f"{json.dumps(each, sort_keys=True)}\n" for each in run())
    (tmp_path / "ordered").write_text(ordered)
    assert answers(tmp_path / "ordered") == expected
    reversed_ = "".join(f"{json.dumps(dict(reversed(each.items())))}\n" for each in run())
    (tmp_path / "reversed").write_text(reversed_)
    assert answers(tmp_path / "reversed") == expected


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_of_events_is_read(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps(run(), indent=indent))
    assert answers(path) == (36, {})
    (application,) = discover([path]).applications
    assert (application.app_id, application.started_at_ms) == ("application_1_1", 1_700_000_000_000)
    path.write_text("[\n" + ",\n".join(json.dumps(each) for each in run()) + "\n]\n")
    assert answers(path) == (36, {})


def test_the_start_of_an_array_that_is_cut_off_is_read(tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    text = json.dumps(run())
    path.write_text(text[: len(text) // 2])
    tasks, noted = answers(path)
    assert 0 < tasks < 36
    assert noted == {"truncated_line": 1}


def test_the_kept_array_has_the_answers_of_its_events() -> None:
    assert kept("array").debug().runtime_ms == 5130


def test_a_comment_before_collapsed_stacks_does_not_hide_them(tmp_path: Path) -> None:
    """Austin writes its settings before the stacks."""
    (tmp_path / "austin").write_text("# mode: wall\n# interval: 100\nP1;T1;work 12\nP1;T1;rest 3\n")
    inputs = discover([write(tmp_path / "log", run()), tmp_path / "austin"])
    assert [each.kind for each in inputs.samples] == ["collapsed"]


def test_a_pipe_is_read_once_and_kept(tmp_path: Path) -> None:
    """The shell's `<(zcat LOG.gz)` is a pipe; a log is read twice."""
    read_end, write_end = os.pipe()
    text = write(tmp_path / "log", run(jobs=1, waves=1)).read_bytes()
    writer = threading.Thread(target=lambda: (os.write(write_end, text), os.close(write_end)))
    writer.start()
    path = profile_run([f"/dev/fd/{read_end}"], output=str(tmp_path / "run.duckdb")).path
    writer.join()
    os.close(read_end)
    assert path_s(Run(path).debug()) == [("driver:0", 2.0), ("stage:0.0", 2.0), ("driver:1", 0.5)]


def test_samples_without_a_task_have_no_share() -> None:
    made = kept("array")
    header = replace(made.header(), has_samples=True)
    debug = replace(made.debug(), samples=SampleCounts(12, 0, 0, {}))
    assert not samples_sentence(header, debug)
    sentence = recordings_sentence(header, debug)
    assert figures(sentence) == [12]
    assert "%" not in sentence


def test_a_file_that_is_nothing_does_not_keep_others_from_being_used(tmp_path: Path) -> None:
    (tmp_path / "nothing.txt").write_text("some notes\n")
    made = cp.profile([write(tmp_path / "log", run()), tmp_path / "nothing.txt"], output=tmp_path / "run.duckdb")
    (said,) = [each for each in made.header().problems if each.name == "unusable_file"]
    assert (said.severity, "nothing.txt" in said.meaning) == ("data loss", True)
    assert path_s(made.debug()) == PATH


def test_of_two_attempts_the_newest_is_named_and_the_other_can_be_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("attempt-1", "attempt-2"):
        os.symlink(MADE / f"{name}.zstd", folder / name)
    for app, duration_ms in ((None, 7300), ("application_1700000000000_0001/1", 5000)):
        made = cp.profile([folder], output=tmp_path / f"run{duration_ms}.duckdb", app=app)
        assert made.header().duration_ms == pytest.approx(duration_ms, abs=50)
        (note,) = [each for each in made.header().problems if each.name == "several_applications"]
        other = 2 if app else 1
        assert f"application_1700000000000_0001/{other}" in note.meaning
