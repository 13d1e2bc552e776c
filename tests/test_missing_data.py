"""Missing data of a log: whether it could change the first sentence, by hand and on public logs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import crystalperf as cp
from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.diagnose.diagnose import diagnosed
from crystalperf.query.execution.execution import Lost
from crystalperf.query.execution.load import load
from crystalperf.query.frameworks import Framework, Reader
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.results.answers import Bottleneck, Debug, MissingDataDoubt
from crystalperf.query.results.missing import UnannouncedWorkers, UnendedTasks, UnreadPart, UnreadParts
from crystalperf.query.results.refusals import TasksWithoutEnd
from crystalperf.query.run import Run
from crystalperf.query.runfile.pipeline import gather, write_run
from crystalperf.query.text.answers import bottleneck_sentence
from crystalperf.query.trace.contract import Scope, Stage, Task, Worker, of_rows
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary
from tests.hand_made import Seconds, figures
from tests.spark_logs import Stage as SparkStage
from tests.spark_logs import Task as SparkTask
from tests.spark_logs import write

TORN = Framework(
    name="torn",
    title="Torn",
    reader=Reader(
        recognise=lambda _head: None,
        read=lambda _log: of_rows({}, [], [], []),
        unread_work=frozenset({"hole"}),
        unread_start=frozenset({"no start"}),
    ),
    vocabulary=Vocabulary(scope="step", scopes=("step",)),
)

HOLES = UnreadParts((UnreadPart("hole", 3),))


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    frameworks()[TORN.name] = TORN
    yield
    del frameworks()[TORN.name]


def made(
    folder: Path,
    *,
    ends: int,
    expected: int = 10,
    cpu: float = 0.9,
    finished: bool = True,
    problems: tuple[str, ...] = (),
    slots: int | None = 2,
    first_ms: float = 2000.0,
) -> Run:
    """A run of 20 s: a step from 2 s on, whose only stage is submitted then and ends at 16 s.  Of its `expected` tasks
    of 2 s, two at a time, the first at `first_ms`, the log has the first `ends`; `cpu` of their time was on the CPU."""
    launches = [first_ms + number // 2 * 2000 for number in range(ends)]
    tasks = [
        Task(number, "g", "w", launch, launch + 2000, measured_ms={"cpu": cpu * 2000})
        for number, launch in enumerate(launches)
    ]
    if not finished:
        tasks.append(Task(ends, "g", "w", 10_000.0, 16_000.0, status="unfinished"))
    status = "succeeded" if finished else "unfinished"
    trace = of_rows(
        {"app_id": "made", "framework": "torn", "started_at_ms": 0, "duration_ms": 20_000.0},
        [Worker("w", slots, added_ms=first_ms)],
        [Stage("g", expected, 2000.0, 16_000.0, "g", "step:0", submit_ms=2000.0, status=status)],  # type: ignore[arg-type]
        tasks,
        [],
        [Scope("step:0", "step", 2000.0, 16_100.0)],
    )
    found = Problems()
    for each in problems:
        found.add(each, "data loss", "log", None, "something is missing", 3)
    path = folder / "run.duckdb"
    write_run(gather(trace, TORN, found), path)
    return Run(path)


def test_complete_log_has_no_missing_data(tmp_path: Path) -> None:
    answer = made(tmp_path, ends=14, expected=14).debug()
    assert answer.conclusive
    assert bottleneck_of(answer).name == "cpu"


def test_a_few_missing_ends_change_nothing(tmp_path: Path) -> None:
    """13 of 14: a fourteenth of 14 s, 1 s, is unknown, and 11.7 s are known to be the CPU's."""
    run = made(tmp_path, ends=13, expected=14)
    assert run.debug().conclusive
    with duckdb.connect(str(run.path), read_only=True) as connection:
        assert load(connection).lost == (Lost("g", 1, 14, 2000.0, 16_000.0, 16_000.0, pytest.approx(1 / 14)),)


def test_missing_ends_that_could_change_the_bottleneck(tmp_path: Path) -> None:
    """3 of 10, in 2..6 s: of 14 s of the stage, 10 have no task that is known, and of the 4 others 70 % are lost."""
    answer = made(tmp_path, ends=3, expected=10).debug()
    (missing,) = answer.missing_data
    assert missing.missing == UnendedTasks(lost=7, total=10, stage="g", stages=1)
    assert missing.time_ms == pytest.approx(10_000 + 0.7 * 4000)
    assert missing.rest == "end"
    assert missing.rest_ms == pytest.approx(3900)  # after the step; before it no worker was there
    assert missing.least == "driver"  # as it seems where the stage is taken to end with its last known task
    assert not answer.conclusive
    assert answer.bottleneck == "unknown"
    assert bottleneck_of(answer) == Bottleneck("unknown", "unknown", 12_800, 0.64, "end", 3900)


def test_missing_time_never_exceeds_the_runtime(tmp_path: Path) -> None:
    for ends in (1, 4, 7):
        answer = made(tmp_path, ends=ends, expected=14).debug()
        missing_ms = sum(each.time_ms for each in answer.missing_data)
        assert 0 <= missing_ms <= answer.runtime_ms
        assert answer.conclusive == (bottleneck_of(replace(answer, missing_data=())) == bottleneck_of(answer))


def test_tasks_that_ran_when_the_log_breaks_off(tmp_path: Path) -> None:
    answer = made(tmp_path, ends=3, expected=100, finished=False, cpu=0.1).debug()
    (missing,) = answer.missing_data
    assert missing.missing == UnendedTasks(lost=1, total=4, stage="g", stages=1)


def test_missing_parts_hide_all_time_without_a_task(tmp_path: Path) -> None:
    """Ten tasks fill 2..12 s of 20; the CPU has 9 s, and the others may have been anything."""
    run = made(tmp_path, ends=10, problems=("hole",))
    (missing,) = run.debug().missing_data
    assert missing.missing == HOLES
    assert missing.time_ms == pytest.approx(10_000)
    assert (missing.rest, missing.rest_ms) == ("cpu", pytest.approx(9000))


def test_missing_beginning_leaves_the_run_unbounded_but_scopes_known(tmp_path: Path) -> None:
    run = made(tmp_path, ends=14, expected=14, problems=("hole", "no start"))
    (missing,) = run.debug().missing_data
    assert (missing.missing, missing.time_ms, missing.rest) == (HOLES, 0, "cpu")
    assert run.debug("step:0").conclusive


def test_unannounced_workers_may_have_existed_earlier(tmp_path: Path) -> None:
    """The first task starts after 12 s, in which a worker may have waited or been waited for."""
    announced = made(tmp_path, ends=4, expected=4, first_ms=12_000.0).debug()
    assert announced.conclusive
    assert bottleneck_of(announced).name == "no worker"
    (missing,) = made(tmp_path, ends=4, expected=4, first_ms=12_000.0, slots=None).debug().missing_data
    assert missing.missing == UnannouncedWorkers(1)
    assert missing.time_ms == pytest.approx(12_000)


def test_no_whatif_is_answered_if_most_work_is_missing(tmp_path: Path) -> None:
    run = made(tmp_path, ends=3, expected=10)
    for setting in ("cores=2x", "cpu_speed=2x", "disk=2x"):
        answer = run.predict([setting])
        assert answer.predicted_ms is None
        assert answer.refused == (TasksWithoutEnd(7, 10),)
    assert made(tmp_path, ends=9, expected=10).predict(["cores=2x"]).predicted_ms is not None


@pytest.mark.few(1)
@pytest.mark.parametrize(("ends", "conclusive"), [(14, True), (3, False)])
def test_an_inconclusive_answer_says_so_and_exits_0(
    tmp_path: Path, crystalperf: Callable[..., tuple[int, str, str]], ends: int, conclusive: bool
) -> None:
    run = made(tmp_path, ends=ends, expected=14)
    for command in ("analyze", "debug"):
        code, out, _ = crystalperf(command, run.path)
        assert code == 0
        assert (re.search(r"\b11 of 14\b", out) is None) is conclusive
        code, out, _ = crystalperf(command, run.path, "--json")
        answer = json.loads(out)
        assert code == 0
        assert answer.get("debug", answer)["conclusive"] is conclusive


def test_sentence_names_the_missing_data_its_share_and_the_rest(tmp_path: Path) -> None:
    answer = made(tmp_path, ends=3, expected=10).debug()

    def reported(debug: Debug) -> str:
        return bottleneck_sentence(bottleneck_of(debug), debug, (), Seconds())

    assert figures(reported(answer)) == [7, 10, 13, 20, 64, 4]
    endless = replace(answer, missing_data=(*answer.missing_data, MissingDataDoubt(HOLES, 0.0)))
    assert figures(reported(endless))[2:6] == [3, 13, 20, 64]


def test_removing_the_missing_data_restores_the_bottleneck(tmp_path: Path) -> None:
    """With any answer, removing the missing data gives the former sentence."""
    with duckdb.connect(str(made(tmp_path, ends=3, expected=10).path), read_only=True) as connection:
        run = load(connection)
        with_missing, sure = (diagnosed(connection, each, Advisor()).debug for each in (run, replace(run, lost=())))
    assert bottleneck_of(replace(with_missing, missing_data=())) == bottleneck_of(sure)


# Public logs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "lost"),
    [
        ("kubeflow/eventlog_v2_00fvksaecf02j00b", (109_286, 109_973, "stage:7.0")),
        ("sparkscope/app-20231025121456-0004-eventLog-finished", (599, 600, "stage:0.0")),
        ("sparkscope/app-20231025121456-0004-eventLog-full", None),
        ("rapids-tools/truncated_eventlog", None),  # cut at its end; of 24 tasks 3 were running
        ("rapids-tools/malformed_json_eventlog.zstd", None),  # a line of it
        ("rapids-tools/tasks_executors_fail_compressed_eventlog.zstd", None),  # starts of five jobs, which stages show
    ],
)
def test_fragments_among_public_logs(
    real_inputs: Path, crystalperf: Callable[..., tuple[int, str, str]], log: str, lost: tuple[int, int, str] | None
) -> None:
    code, out, _ = crystalperf("analyze", real_inputs / "spark-eventlog" / log, "--json")
    reported = json.loads(out)
    missing_data = [each["missing"] for each in reported["debug"]["missing_data"]]
    if lost is None:
        assert (code, missing_data) == (0, [])
        return
    assert code == 0
    assert reported["debug"]["conclusive"] is False
    assert lost in [
        (each["lost"], each["total"], each["stage"]) for each in missing_data if each["kind"] == "unended-tasks"
    ]
    assert reported["bottleneck"]["kind"] == reported["debug"]["bottleneck"] == "unknown"
    assert all(each["predicted_ms"] is None for each in reported["what_ifs"])


@pytest.mark.parametrize(
    ("log", "measured"),
    [
        ("dr-elephant/event_log_1", False),  # Spark 1.5
        ("spark-log-processor/loggerParser", False),
        ("sparkscope/app-20231025121456-0004-eventLog-full", True),  # 46 % unknown, none of it computing
        ("rapids-tools/pandas_execs_eventlog.zstd", False),  # Python's own processes compute
    ],
)
def test_unmeasured_unknown_time_may_be_cpu_time(
    real_inputs: Path, crystalperf: Callable[..., tuple[int, str, str]], log: str, measured: bool
) -> None:
    _, out, _ = crystalperf("analyze", real_inputs / "spark-eventlog" / log, "--json")
    (answer,) = [each for each in json.loads(out)["what_ifs"] if each["setting"] == "cpu_speed=2x"]
    assert (answer["predicted_ms"] is not None) == measured
    if not measured:
        assert answer["refused"][0]["kind"] == "time-unknown"
        low, high = answer["bound_ms"]
        assert 0 < low < high


def test_log_of_two_applications_is_reported_as_neither(tmp_path: Path) -> None:
    """Their stages have the same numbers, so that one's tasks pass for the other's."""
    logs = []
    for number, after_ms in enumerate((100, 700)):
        one = write(tmp_path / str(number), [SparkStage([SparkTask(4000)] * 4, after_ms=after_ms)], executors={"1": 4})
        logs.append(one.read_text(encoding="utf-8").replace("app-made", f"app-{number}").splitlines())
    mixed = tmp_path / "mixed"
    mixed.write_text("\n".join(line for both in zip(*logs, strict=True) for line in both), encoding="utf-8")
    verdict = cp.profile([mixed], output=tmp_path / "mixed.duckdb").verdict()
    assert verdict.debug.missing_data
    assert verdict.bottleneck.kind == "unknown"
    assert not verdict.recommendations
    twice = tmp_path / "twice"
    twice.write_text("\n".join(line for line in logs[0] for _ in range(1 + ("ApplicationStart" in line))), "utf-8")
    assert not cp.profile([twice], output=tmp_path / "twice.duckdb").debug().missing_data
