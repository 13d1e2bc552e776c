"""Published data of other systems: SnailTrail's critical participation, rates by parallelism, runtimes by cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.systems import clusters, participation, scaling
from lab.systems.activity import DRIVER, NS_PER_MS, UNKNOWN, Activity, Task, graph, read
from lab.systems.activity import participation as shares
from lab.systems.data import LIST, entries, file_of
from tests import spark_logs
from tests.refusals import refused


def task(stage: int, launch: int, finish: int, ran: int, fetched: int = 0) -> Task:
    return Task(stage, "0", launch, finish, fetched, ran)


def by_name(activities: Sequence[Activity], found: Sequence[float]) -> dict[str, float]:
    names = {each.of for each in activities}
    return {
        name: sum(share for each, share in zip(activities, found, strict=True) if each.of == name) for name in names
    }


def paths(activities: Sequence[Activity]) -> Iterator[tuple[Activity, ...]]:
    """All paths through a window, one by one."""
    begin, end = min(each.source[1] for each in activities), max(each.target[1] for each in activities)
    nodes = {each.source for each in activities} | {each.target for each in activities}

    def onward(node: tuple[str, int], so_far: tuple[Activity, ...]) -> Iterator[tuple[Activity, ...]]:
        if node[1] == end:
            yield so_far
        for each in activities:
            if each.source == node:
                yield from onward(each.target, (*so_far, each))

    for node in nodes:
        if node[1] == begin:
            yield from onward(node, ())


# Critical participation -----------------------------------------------------------------------------------------------


def test_participation_by_hand() -> None:
    """A and B start at 0 on two threads, and C at 10 when A ends: B is on no path, because the driver waits after it.

    Six paths, from the driver and from A's thread: two stay on A's thread, which is unknown after A, and four go on
    with C, with or without the last message.
    """
    activities = graph([task(0, 0, 10, 10), task(1, 0, 4, 4), task(2, 10, 20, 10)], {"0": 2})
    found, number = shares(activities)
    assert number == 6
    assert by_name(activities, found) == pytest.approx(
        {"stage 0": 1 / 2, "stage 1": 0, "stage 2": 1 / 3, UNKNOWN: 1 / 6}
    )


TASKS = [task(0, 0, 10, 6), task(0, 2, 12, 7, 11), task(1, 13, 30, 9), task(1, 13, 28, 12), task(2, 31, 40, 5)]


def test_participation_is_that_of_all_paths_one_by_one() -> None:
    activities = graph(TASKS, {"0": 2}, 0.5)
    found, number = shares(activities)
    every = list(paths(activities))
    assert number == len(every) > 2
    window = max(each.target[1] for each in activities)
    for activity, share in zip(activities, found, strict=True):
        times = sum(each is activity for path in every for each in path)
        assert share == pytest.approx(times * activity.weight / (number * window))
    assert sum(found) == pytest.approx(1)
    assert by_name(activities, found)[DRIVER] > 0


def test_threads_that_ran_no_task_have_no_activities() -> None:
    assert graph(TASKS, {"0": 2}, 0.5) == graph(TASKS, {"0": 2, "1": 4}, 0.5)


def test_refuses_tasks_that_overlap_on_the_only_thread() -> None:
    with refused(LabError, "--delay-split"):
        graph([task(0, 0, 10, 10), task(0, 5, 15, 10)], {"0": 1})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    stages = [
        spark_logs.Stage([spark_logs.Task(1000, cpu_ms=900), spark_logs.Task(600, cpu_ms=500)]),
        spark_logs.Stage([spark_logs.Task(400, cpu_ms=300)]),
    ]
    return spark_logs.write(tmp_path / "app", stages, executors={"1": 2})


def test_a_log_has_both_measures_by_stage(log: Path) -> None:
    found, path = participation.theirs(log), participation.ours(log)
    assert sum(found.tasks.values()) + sum(found.messages.values()) == pytest.approx(1)
    assert (found.tasks["stage 0"], found.tasks["stage 1"], found.tasks[DRIVER]) == pytest.approx(
        ((4 * 1000 + 2 * 600) / (6 * 1500), 4 * 400 / (6 * 1500), 4 * 100 / (6 * 1500))
    )  # four of six paths take the long task and the second stage; two take the short one and stay
    assert sum(path.values()) == pytest.approx(found.window_ms, rel=0.05)
    assert {each.split(" | ")[0] for each in participation.lines(found, path)[2:]} >= {
        "| stage 0",
        "| stage 1",
        "| all",
    }


def test_times_of_a_log_are_read_in_nanoseconds(log: Path) -> None:
    with log.open(encoding="utf-8") as lines:
        tasks, threads = read(lines)
    assert [(each.finish - each.launch) / NS_PER_MS for each in tasks] == [1000, 600, 400]
    assert threads == {"1": 2}


def test_refuses_a_log_without_tasks() -> None:
    with refused(LabError, "no tasks"):
        read([json.dumps({"Event": "SparkListenerLogStart"})])


# Rates by parallelism -------------------------------------------------------------------------------------------------


README = """\
| Parallelism | 1st PA | 2nd PA | mean-reversion PA |
| ----------- | ------ | ------ | ----------------- |
| 1           | 90     | 110    | (90 + 110) / 2    |
| 2           | 160    |        | (160) / 1         |
| 3           |        |        |                   |
| 4           | 200    | 200    | (200 + 200) / 2   |
"""


def test_rates_are_those_of_the_table_without_empty_rows() -> None:
    assert scaling.measured(README) == {1: [90, 110], 2: [160], 4: [200, 200]}
    with refused(LabError, "no table"):
        scaling.measured("# ContTune\n")


def test_ds2_is_linear_and_ernest_fits_a_curve() -> None:
    assert scaling.ds2(2, 160.0, 4) == pytest.approx(320)
    curve = {slots: 1e6 / (1000 + 9000 / slots) for slots in (1, 2, 4, 8, 16)}
    others = {slots: rate for slots, rate in curve.items() if slots != 4}
    assert scaling.ernest(others, 4) == pytest.approx(curve[4], rel=1e-6)


def test_errors_are_of_the_predictions_of_other_rows() -> None:
    found = scaling.lines(scaling.measured(README))
    assert found[2] == "| ds2 | parallelism 1 | 2 | 62.5 ± 37.5 | 62.5 | 100 | +62.5 |"
    assert found[3].startswith("| ds2 | each lower parallelism | 3 | 61.7 ± ")
    assert found[-1].startswith("| 4 | 2 | 200 | +100.0 | ")


# Runtimes by cluster size ---------------------------------------------------------------------------------------------


def reports(folder: Path, runtimes_s: dict[int, float | None]) -> None:
    for count, runtime_s in runtimes_s.items():
        place = folder / "dataset" / "osr_multiple_nodes" / f"{count}_m4.large_sort_spark_bigdata_1"
        place.mkdir(parents=True)
        report = {"completed": runtime_s is not None, "elapsed_time": str(runtime_s or 7200)}
        (place / "report.json").write_text(json.dumps(report), encoding="utf-8")


def test_runtimes_are_those_of_completed_runs(tmp_path: Path) -> None:
    reports(tmp_path, {4: None, 10: 110.0, 8: 130.0})
    assert clusters.measured(tmp_path) == {"sort_spark_bigdata, m4.large": {8: 130.0, 10: 110.0}}
    with refused(LabError, "no reports"):
        clusters.measured(tmp_path, "*_c4.large_*")


def test_ernest_learns_from_small_clusters_or_from_all_others() -> None:
    curve = {count: 100 + 4000 / count for count in (4, 8, 10, 12, 16, 32)}
    found = list(clusters.errors(curve))
    assert [(name, known, len(off)) for name, known, off in found] == [
        ("linear", "4 machines", 5), ("ernest", "4 to 12 machines", 2), ("ernest", "all other clusters", 6)
    ]  # fmt: skip
    assert found[0][2] == [pytest.approx(100 * (4400 / count / curve[count] - 1)) for count in (8, 10, 12, 16, 32)]
    assert max(map(abs, found[1][2] + found[2][2])) < 1e-3


# The list of data -----------------------------------------------------------------------------------------------------


def test_listed_files_are_those_of_a_commit() -> None:
    for name, entry in entries().items():
        if entry["fetched"] == "yes":
            assert (len(entry["commit"]), len(entry["sha256"])) == (40, 64), name
            assert all(entry.values()), name
    assert {"SnailTrail", "ContTune"} <= set(entries())


def test_a_file_must_be_the_listed_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "README.md").write_text(README, encoding="utf-8")
    listed = tmp_path / "list.tsv"
    entry = entries()["ContTune"] | {"path": "data/README.md", "sha256": "0" * 64}
    listed.write_text("\t".join(entry) + "\n" + "\t".join(entry.values()) + "\n", encoding="utf-8")
    with refused(LabError, "differs"):
        file_of("ContTune", tmp_path, listed)
    with refused(LabError, "git clone"):
        file_of("ContTune", tmp_path / "elsewhere", listed)


def test_commands_refuse_a_folder_without_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert LIST.is_file()
    assert scaling.main([str(tmp_path)]) == participation.main([str(tmp_path)]) == clusters.main([str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("python -m lab.systems.") == 3
