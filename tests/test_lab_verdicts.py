"""First sentences hold against what a log's own events say; and the check of that can fail."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from crystalperf.query.run import Run
from crystalperf.query.text.as_json import as_json
from lab.checks import plainlog
from lab.checks.plainlog import Figures, both, length, minus, union
from lab.checks.verdicts import contradictions, main, rows, table

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def demo_figures(demo: Path) -> Figures:
    return plainlog.figures(next(demo.glob("eventlog*")))


@pytest.fixture(scope="module")
def demo_answer(demo_log_run: Run) -> dict[str, Any]:
    answer = json.loads(json.dumps(as_json(demo_log_run.verdict())))
    assert isinstance(answer, dict)
    return answer


def test_the_independent_reader_counts_a_recording(demo_figures: Figures) -> None:
    assert demo_figures.logs_cpu
    assert demo_figures.ended is not None
    assert demo_figures.failed_jobs == demo_figures.unfinished_jobs == 0
    assert demo_figures.missing() == {}
    assert demo_figures.most_alive() == 2
    assert 0 < length(demo_figures.running()) <= length(demo_figures.submitted()) <= demo_figures.whole_ms


def test_a_killed_executor_is_lost_and_released_ones_are_not() -> None:
    (killed,) = (DATA / "runs" / "killed-executor").iterdir()
    assert plainlog.figures(killed).lost() == {"0": "Command exited with code 137"}
    (released,) = (DATA / "runs" / "dynamic-allocation").iterdir()
    found = plainlog.figures(released)
    assert found.lost() == {}
    assert found.sent_home() == {"0", "1", "2", "3", "5"}
    assert found.most_alive() == 4


def test_intervals() -> None:
    spans = union([(5, 7), (1, 3), (2, 4), (9, 20), (-5, 0)], (0, 10))
    assert spans == [(1, 4), (5, 7), (9, 10)]
    assert both(spans, [(3, 6)]) == [(3, 4), (5, 6)]
    assert minus(spans, [(0, 2), (6, 9.5)]) == [(2, 4), (5, 6), (9.5, 10)]
    assert minus(spans, []) == spans
    assert length(spans) == 6


def test_a_true_answer_is_not_contradicted(demo_answer: dict[str, Any], demo_figures: Figures) -> None:
    assert contradictions(demo_answer, demo_figures) == ()


def falsified(answer: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(answer)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return found


OUTCOME = {"status": "failed", "tallies": [{"kind": "job", "total": 1, "failed": 1, "unfinished": 0}], "lost": []}
LOST = {"status": "succeeded", "tallies": [], "lost": [{"worker": "7"}]}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("debug", "driver_ms"), 100_000.0, "while no task runs"),
        (("bottleneck", "no_task_ms"), 100_000.0, "while no task runs"),
        (("debug", "resource_ms", "net"), 1e6, "resources and other"),
        (("debug", "resource_ms", "cpu"), 1e6, "cpu takes 1000.0 s"),
        (("debug", "other_ms", "no worker"), 60_000.0, "waits for executors"),
        (("debug", "other_ms", "no scope"), 60_000.0, "has no query for"),
        (("header", "workers"), 3, "the answer has 3 executors, the log at most 2"),
        (("header", "duration_ms"), 5.0, "duration of the run is 0.0 s"),
        (("debug", "outcome"), OUTCOME, "jobs, failed: 1 in the answer, 0 in the log"),
        (("debug", "outcome"), OUTCOME, "nothing failed"),
        (("debug", "outcome"), LOST, "executor 7 is lost in the answer"),
        (("debug", "unsubmitted"), {"left_out_ms": 99_000.0, "total_ms": 1.0, "intervals": 1}, "are excluded"),
    ],
)
def test_a_false_answer_is_contradicted(
    path: tuple[str, ...], value: object, expected: str, demo_answer: dict[str, Any], demo_figures: Figures
) -> None:
    found = contradictions(falsified(demo_answer, *path, value=value), demo_figures)
    assert any(expected in each for each in found), found


def test_driver_interval_that_overlaps_tasks_is_contradicted(
    demo_answer: dict[str, Any], demo_figures: Figures
) -> None:
    answer = copy.deepcopy(demo_answer)
    interval = max(answer["debug"]["critical_path"], key=lambda each: each["end_ms"] - each["start_ms"])
    assert interval["id"].startswith("stage:")
    interval["id"] = "driver:99"
    assert any("driver:99" in each for each in contradictions(answer, demo_figures))


def test_cpu_time_that_no_task_spent_is_contradicted(demo_answer: dict[str, Any], demo_figures: Figures) -> None:
    answer = copy.deepcopy(demo_answer)
    stage = answer["debug"]["stages"][0]
    stage["resource_ms"]["cpu"] = stage["task_ms"] + 1e5
    assert any(f"{stage['id']}: " in each for each in contradictions(answer, demo_figures))


def test_missing_ends_of_tasks_are_not_certain(demo_answer: dict[str, Any], demo: Path) -> None:
    figures = plainlog.figures(next(demo.glob("eventlog*")))
    figures.tasks = figures.tasks[:3]
    assert any("task ends are missing" in each for each in contradictions(demo_answer, figures))
    answer = falsified(demo_answer, "debug", "missing_data", value=[{"missing": {"kind": "unread-parts"}}])
    assert not any("task ends are missing" in each for each in contradictions(answer, figures))


def test_missing_mention_of_a_gpu_is_a_contradiction(demo_answer: dict[str, Any], demo: Path) -> None:
    figures = plainlog.figures(next(demo.glob("eventlog*")))
    figures.gpu = True
    assert "queries run on a GPU, and the answer does not say so" in contradictions(demo_answer, figures)


def test_command_prints_counts_and_a_row_for_each_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(DATA / "eventlog" / "q9.zstd")]) == 0
    printed = capsys.readouterr().out
    assert "| 1 | 1 | 0 | 0 | 1 | 0 | 0 |" in printed
    assert "| q9.zstd | " in printed


def test_file_that_is_not_a_log_is_reported_as_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a log\n")
    (found,) = rows([tmp_path])
    assert found.answer is None
    assert found.figures is None
    assert found.contradictions == ()
    assert "refused" in table([found])[-1]


# Answers of today, against the logs ----------------------------------------------------------------------------------

RECORDINGS = Path(__file__).parent.parent / "lab" / "recordings"


@pytest.mark.parametrize("log", sorted((RECORDINGS / "odd").iterdir()), ids=lambda log: log.stem)
def test_no_contradiction_on_an_odd_log(log: Path) -> None:
    (found,) = rows([log])
    assert found.figures is not None
    assert found.answer is not None
    assert found.contradictions == ()


@pytest.mark.later
def test_no_contradiction_on_recordings() -> None:
    of_spark = [each.parent for each in sorted((RECORDINGS / "sweeps").glob("*/rows.parquet"))]
    found = rows([RECORDINGS / "demo-q9", RECORDINGS / "gzip-text", *of_spark, DATA / "runs"])
    assert len(found) >= 20
    assert {each.name: each.contradictions for each in found if each.contradictions} == {}


KNOWN = {"sparkscope/app-20231025121456-0004-eventLog-finished-exec-removed"}
"""599 of 600 tasks have no end: the answer says so first, and then counts time without a known task as the driver's."""


def test_no_contradiction_on_public_logs(real_inputs: Path) -> None:
    found = rows([real_inputs / "spark-eventlog"])
    assert len(found) >= 70
    assert {each.name for each in found if each.contradictions} == KNOWN
