"""How runs ended: made logs of one failure each through the reader of real ones, and public logs in place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.cli.text import time_unit
from crystalperf.query.diagnose.bottleneck import bottleneck_of
from crystalperf.query.frameworks.spark import failures
from crystalperf.query.frameworks.spark.findings import Speculation
from crystalperf.query.frameworks.spark.recommendations import CheckCapacity, FewerTasksPerGpu, ListFoldersInFewerTasks
from crystalperf.query.results.advice import AvoidExhaustion, FreeClusterCapacity
from crystalperf.query.results.answers import Debug, Outcome
from crystalperf.query.results.findings import EndReason, Finding, LostWorkers, NoWorker, Wasted
from crystalperf.query.results.recommendations import FixFailure, FollowAdvice, SettingChange
from crystalperf.query.run import Run
from crystalperf.query.text.answers import outcome_sentences, workers_words
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import text_of
from crystalperf.query.trace.vocabulary import Exhausted
from tests.hand_made import figures

START = 1_795_257_733_277
Event = dict[str, Any]
Make = Callable[..., Run]


def listener(kind: str, **fields: Any) -> Event:
    return {"Event": f"SparkListener{kind}", **fields}


def added(executor: str, at: int, cores: int = 2) -> Event:
    info = {"Host": f"host-{executor}", "Total Cores": cores}
    return listener("ExecutorAdded", Timestamp=START + at, **{"Executor ID": executor, "Executor Info": info})


def removed(executor: str, at: int, why: str) -> Event:
    return listener("ExecutorRemoved", Timestamp=START + at, **{"Executor ID": executor, "Removed Reason": why})


def job(number: int, at: int, *stages: int, sql: int | None = None) -> Event:
    properties = {} if sql is None else {"spark.sql.execution.id": str(sql)}
    fields = {"Job ID": number, "Submission Time": START + at, "Stage IDs": list(stages), "Properties": properties}
    return listener("JobStart", **fields)


def job_end(number: int, at: int, error: str | None = None) -> Event:
    result = {"Result": "JobSucceeded"} if error is None else {"Result": "JobFailed", "Exception": {"Message": error}}
    return listener("JobEnd", **{"Job ID": number, "Completion Time": START + at, "Job Result": result})


def stage(number: int, start: int, end: int, tasks: int, attempt: int = 0, failure: str | None = None) -> list[Event]:
    info = {
        "Stage ID": number,
        "Stage Attempt ID": attempt,
        "Stage Name": f"count at job.py:{number}",
        "Number of Tasks": tasks,
        "Parent IDs": [],
        "Submission Time": START + start,
    }
    done = {**info, "Completion Time": START + end, **({} if failure is None else {"Failure Reason": failure})}
    return [listener("StageSubmitted", **{"Stage Info": info}), listener("StageCompleted", **{"Stage Info": done})]


def task(
    number: int, start: int, end: int, index: int, on: str, reason: Event | None = None, of: int = 0, attempt: int = 0
) -> Event:
    info = {
        "Task ID": number,
        "Index": index,
        "Attempt": 0,
        "Partition ID": index,
        "Launch Time": START + start,
        "Finish Time": START + end,
        "Executor ID": on,
        "Host": f"host-{on}",
    }
    metrics = {"Executor Run Time": end - start, "Executor CPU Time": (end - start) * 1_000_000}
    ended = reason or {"Reason": "Success"}
    fields = {"Stage ID": of, "Stage Attempt ID": attempt, "Task End Reason": ended, "Task Info": info}
    return listener("TaskEnd", **fields, **{"Task Metrics": metrics})


def thrown(name: str, message: str, stack: str = "") -> Event:
    full = f"{name}: {message}\n\tat job.run(job.scala:1)\n{stack}"
    return {"Reason": "ExceptionFailure", "Class Name": name, "Description": message, "Full Stack Trace": full}


def lost_with(executor: str, why: str) -> Event:
    return {"Reason": "ExecutorLostFailure", "Executor ID": executor, "Loss Reason": why}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """The run of a log of these events, of 20 s; without its end for `end` None."""

    def made(*events: Event | list[Event], end: int | None = 20_000, exit_code: int | None = None) -> Run:
        flat = [each for one in events for each in (one if isinstance(one, list) else [one])]
        last = [] if end is None else [listener("ApplicationEnd", Timestamp=START + end)]
        if exit_code is not None:
            last[0]["ExitCode"] = exit_code
        start = {"App Name": "made", "App ID": "app-made", "Timestamp": START}
        lines = [listener("LogStart", **{"Spark Version": "4.0.1"}), listener("ApplicationStart", **start)]
        path = tmp_path / "log"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in (*lines, *flat, *last)), encoding="utf-8")
        return cp.profile([path], output=tmp_path / "run.duckdb")

    return made


def reported(debug: Debug) -> tuple[str, ...]:
    return outcome_sentences(debug, time_unit(debug.runtime_ms))


def asked(run: Run, scope: str = "all") -> tuple[Outcome, tuple[str, ...], dict[str, Finding]]:
    debug = run.debug(scope)
    assert debug.outcome is not None
    return debug.outcome, reported(debug), {each.kind: each for each in debug.findings}


WORK = [job(0, 1000, 0), *stage(0, 1000, 9000, 2), task(0, 1100, 8000, 0, "1"), task(1, 1100, 9000, 1, "1")]


def test_successful_run_has_no_outcome_sentences(make: Make) -> None:
    outcome, sentences, found = asked(make(added("1", 500), *WORK, job_end(0, 9000)))
    assert (outcome.status, sentences) == ("succeeded", ())
    assert "wasted" not in found


LEGACY = json.dumps(
    {
        "errorClass": "LEGACY",
        "messageParameters": {
            "message": "Job aborted due to stage failure: Task 2 in stage 0.0 failed 4 times, most recent failure: Lost"
            " task 2.3 in stage 0.0 (TID 14) (10.139.64.126 executor 0): ExecutorLostFailure (executor 0 exited caused"
            " by one of the running tasks) Reason: Command exited with code 137\nDriver stacktrace:"
        },
    },
    indent=1,
)


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (LEGACY, "ExecutorLostFailure: Command exited with code 137"),
        ('{"errorClass":"NO_ROOM","messageTemplate":"<what> is full","messageParameters":{"what":"/tmp"}}',
         "[NO_ROOM] /tmp is full"),
        ('{"errorClass":"NO_ROOM","messageParameters":{"what":"/tmp"}}', "[NO_ROOM] what: /tmp"),
        ('{"errorClass":"NO_ROOM"', '{"errorClass":"NO_ROOM"'),
        ('{"errorClass":3,"messageParameters":[1]}', '{"errorClass":3,"messageParameters":[1]}'),
    ],
)  # fmt: skip
def test_an_error_that_spark_wrote_as_json_is_its_message(error: str, reported: str) -> None:
    assert failures.cause(error) == reported


def test_failed_job_is_reported_first_with_the_cause_and_not_the_wrapper(make: Make) -> None:
    stack = "Caused by: com.acme.BadRow: row 7 has no id\n\tat com.acme.Rows.read(Rows.java:3)\n\t... 12 more"
    bad = thrown("org.apache.spark.SparkException", "Task failed while writing rows", stack)
    error = (
        "Job aborted due to stage failure: Task 0 in stage 0.0 failed 2 times, most recent failure: Lost task 0.1 in"
        " stage 0.0 (TID 2) (host-1 executor 1): org.apache.spark.SparkException: Task failed while writing rows\n"
        f"\tat x.y(z.scala:1)\n{stack}\n\nDriver stacktrace:"
    )
    tasks = [task(0, 1000, 3000, 0, "1", bad), task(1, 1000, 8000, 1, "1"), task(2, 3000, 6000, 0, "1", bad)]
    run = make(added("1", 500), job(0, 900, 0), *stage(0, 900, 8000, 2, failure=error), *tasks, job_end(0, 8000, error))
    outcome, sentences, found = asked(run)
    assert outcome.status == "failed"
    assert [(each.kind, each.failed, each.total) for each in outcome.tallies] == [
        ("job", 1, 1),
        ("stage", 1, 1),
        ("task", 2, 3),
    ]
    assert [(each.id, each.error, each.tasks, each.task_ms) for each in outcome.failures] == [
        ("job:0", "BadRow: row 7 has no id", 2, 5000),
        ("stage:0.0", "BadRow: row 7 has no id", 2, 5000),
    ]
    assert (outcome.retried_tasks, outcome.retried_ms) == (1, 2000)
    assert [figures(each) for each in sentences] == [[1, 1, 7], [2, 3, 5.0, 1]]
    assert outcome.failures[0].error in sentences[0]
    wasted = found["wasted"]
    assert isinstance(wasted, Wasted)
    assert (wasted.status, wasted.tasks, wasted.task_ms) == ("failed", 2, 5000)
    assert wasted.reasons == (EndReason("BadRow: row 7 has no id", 2),)


def test_a_task_that_was_tried_again_is_recovered_from(make: Make) -> None:
    bad = thrown("java.io.IOException", "Connection reset by peer")
    tasks = [task(0, 1000, 3000, 0, "1", bad), task(1, 1000, 8000, 1, "1"), task(2, 3000, 6000, 0, "1")]
    outcome, sentences, _ = asked(
        make(added("1", 500), job(0, 900, 0), *stage(0, 900, 8000, 2), *tasks, job_end(0, 8000))
    )
    assert outcome.status == "recovered"
    (sentence,) = sentences
    assert figures(sentence) == [1, 3, 2.0]
    assert "IOException: Connection reset by peer" in sentence


def test_a_copy_that_was_slower_did_not_fail(make: Make) -> None:
    slower = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
    tasks = [task(0, 1000, 9000, 0, "1", slower), task(1, 1000, 3000, 1, "1"), task(2, 4000, 8990, 0, "1")]
    outcome, sentences, found = asked(
        make(added("1", 500), job(0, 900, 0), *stage(0, 900, 9000, 2), *tasks, job_end(0, 9000))
    )
    assert (outcome.status, sentences) == ("succeeded", ())
    assert "wasted" not in found, "its time has a finding of its own"
    raced = found["speculation"]
    assert isinstance(raced, Speculation)
    assert (raced.stage, raced.copies, raced.won, raced.lost_ms, raced.saved_ms) == ("stage:0.0", 1, 1, 8000, 10)


def test_a_stage_ends_when_its_last_part_succeeded_not_when_a_losing_copy_ends(make: Make) -> None:
    slower = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
    tasks = [task(0, 1000, 30_000, 0, "1", slower), task(1, 1000, 3000, 1, "1"), task(2, 4000, 8990, 0, "1")]
    later = [job(1, 20_000, 1), *stage(1, 20_000, 25_000, 1), task(3, 20_000, 25_000, 0, "1", of=1), job_end(1, 25_000)]
    run = make(
        *(added("1", 500), job(0, 900, 0), *stage(0, 900, 9000, 2), *tasks[1:], job_end(0, 9000), *later, tasks[0]),
        end=31_000,
    )
    debug = run.debug()
    path_ms = {each.id: each.path_ms for each in debug.stages}
    assert path_ms == {"stage:0.0": pytest.approx(8000, abs=100), "stage:1.0": pytest.approx(5000, abs=100)}
    (raced,) = [each for each in debug.findings if isinstance(each, Speculation)]
    assert (raced.copies, raced.won, raced.saved_ms, raced.cost_ms) == (1, 1, 21_010, 0)


def test_a_copy_that_lost_costs_at_most_its_slot_while_all_slots_are_full(make: Make) -> None:
    slower = {"Reason": "TaskKilled", "Kill Reason": "another attempt succeeded"}
    tasks = [task(0, 1000, 9000, 0, "1"), task(1, 1000, 3000, 1, "1"), task(2, 4000, 9000, 0, "1", slower)]
    run = make(added("1", 500), job(0, 900, 0), *stage(0, 900, 9000, 2), *tasks, job_end(0, 9000))
    (raced,) = [each for each in run.debug().findings if isinstance(each, Speculation)]
    assert (raced.copies, raced.won, raced.lost_ms, raced.saved_ms) == (1, 0, 5000, 0)
    assert raced.cost_ms == pytest.approx(2500)


def test_a_job_that_somebody_cancelled_did_not_fail(make: Make) -> None:
    error = "Job 0 cancelled part of cancelled job group nightly"
    run = make(added("1", 500), *WORK, job_end(0, 9000, error), job(1, 10_000, 1), job_end(1, 11_000))
    outcome, sentences, _ = asked(run)
    assert (outcome.status, outcome.tally("job").failed, outcome.tally("job").cancelled) == ("succeeded", 0, 1)
    assert [figures(each) for each in sentences] == [[1, 2]]


def test_failure_before_the_end_is_recovered_and_scopes_have_their_own_outcome(make: Make) -> None:
    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    starts = [
        {"Event": f"{sql}Start", "executionId": each, "description": f"q{each}", "time": START + 900 + each * 5000}
        for each in (0, 1)
    ]
    ends = [
        {"Event": f"{sql}End", "executionId": 0, "time": START + 5000, "errorMessage": "java.lang.Error: no luck"},
        {"Event": f"{sql}End", "executionId": 1, "time": START + 12_000, "errorMessage": ""},
    ]
    bad = thrown("java.lang.Error", "no luck")
    jobs = [
        *(job(0, 1000, 0, sql=0), *stage(0, 1000, 5000, 1, failure="java.lang.Error: no luck")),
        *(task(0, 1000, 5000, 0, "1", bad), job_end(0, 5000, "java.lang.Error: no luck")),
        *(job(1, 6000, 1, sql=1), *stage(1, 6000, 12_000, 1), task(1, 6000, 12_000, 0, "1", of=1), job_end(1, 12_000)),
    ]
    run = make(added("1", 500), *starts, *jobs, *ends)
    outcome, sentences, _ = asked(run)
    assert outcome.status == "recovered"
    assert figures(sentences[0]) == [1, 2]
    part, reported, _ = asked(run, "sql:0")
    assert (part.status, [figures(each) for each in reported]) == ("failed", [[0], [1, 1, 4.0]])
    assert all(part.failures[0].error in each for each in (sentences[0], reported[0]))
    assert (asked(run, "sql:1")[0].status, asked(run, "sql:1")[1]) == ("succeeded", ())
    assert asked(run, "6000..20000")[0].status == "succeeded"


def test_job_errors_replace_query_errors_in_logs_of_old_spark(make: Make) -> None:
    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    run = make(
        added("1", 500),
        {"Event": f"{sql}Start", "executionId": 0, "description": "q", "time": START + 900},
        job(0, 1000, 0, sql=0),
        job(1, 1000, 1, sql=0),
        job_end(1, 9000, "Job 1 cancelled because SparkContext was shut down"),
        job_end(0, 8000, "java.lang.Error: no luck"),
        {"Event": f"{sql}End", "executionId": 0, "time": START + 9000},
    )
    (query,) = [each for each in asked(run)[0].failures if each.kind == "query"]
    assert query.error == "Error: no luck"


def test_an_exit_code_is_a_failure(make: Make) -> None:
    outcome, sentences, _ = asked(make(added("1", 500), *WORK, job_end(0, 9000), exit_code=1))
    assert (outcome.status, outcome.exit_code, [figures(each) for each in sentences]) == ("failed", 1, [[1]])
    assert asked(make(added("1", 500), *WORK, job_end(0, 9000), exit_code=0))[0].status == "succeeded"


def test_a_log_that_ends_early_is_unfinished(make: Make) -> None:
    outcome, sentences, _ = asked(make(added("1", 500), *WORK, end=None))
    assert (outcome.status, outcome.cut, outcome.tally("job").unfinished) == ("unfinished", True, 1)
    assert [figures(each) for each in sentences] == [[1]]
    outcome, sentences, _ = asked(make(added("1", 500), *WORK, job_end(0, 9000), end=None))
    assert (outcome.status, sentences) == ("unfinished", ())  # that the log is incomplete the heading says


def test_a_run_without_work_waits_for_nothing_not_even_for_its_executors(make: Make) -> None:
    run = make(added("1", 6000))
    debug = run.debug()
    assert (debug.unsubmitted.left_out_ms, debug.runtime_ms) == (20_000, 0)
    assert (bottleneck_of(debug).kind, run.debug("whole").runtime_ms) == ("nothing", 20_000)


def test_a_run_that_ends_with_work_under_way_is_unfinished_by_a_whole_log(make: Make) -> None:
    outcome, sentences, _ = asked(make(added("1", 500), *WORK))
    assert (outcome.status, outcome.cut) == ("unfinished", False)
    assert [figures(each) for each in sentences] == [[1]]


# Workers that were lost -----------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "why",
    [
        "Container container_e87_16_01_000002 exited from explicit termination request.",
        "Executor killed by driver.",
        "Executor decommission: spark scale down",
    ],
)
def test_released_executor_was_not_lost(why: str, make: Make) -> None:
    run = make(added("1", 500), added("2", 500), removed("2", 5000, why), *WORK, job_end(0, 9000))
    outcome, sentences, found = asked(run)
    assert (outcome.status, outcome.lost, sentences) == ("succeeded", (), ())
    assert "lost workers" not in found


def test_an_executor_that_ended_with_the_application_was_not_lost(make: Make) -> None:
    run = make(added("1", 500), *WORK, job_end(0, 9000), removed("1", 9500, "Executor Process Lost"))
    assert asked(run)[0].lost == ()


MEMORY = [
    (
        "Container killed by YARN for exceeding memory limits. 5.6 GB of 5.5 GB physical memory used. Consider boosting"
        " spark.yarn.executor.memoryOverhead.",
        "container",
        "spark.executor.memoryOverhead",
    ),
    (
        "\nThe executor with id 1 exited with exit code 137(SIGKILL, possible container OOM).\n\n\nThe API gave the"
        " following container statuses:\n\n\n\t container name: spark\n\t termination reason: OOMKilled",
        "container",
        "spark.executor.memoryOverhead",
    ),
    ("Command exited with code 137", "killed", "killed"),
    (
        "Container marked as failed: container_1 on host: host-1. Exit status: 52. Diagnostics: [x]",
        "heap",
        "spark.executor.memory,",
    ),
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("why", "memory", "advice"), MEMORY)
def test_exhausted_memory_is_reported_and_advised_on(why: str, memory: Exhausted, advice: str, make: Make) -> None:
    tasks = [
        task(0, 1000, 3000, 0, "1", lost_with("1", why)),
        task(1, 1000, 2000, 1, "1"),
        task(2, 3100, 8000, 0, "2"),
    ]
    run = make(
        *(added("1", 500), added("2", 500), job(0, 900, 0), *stage(0, 900, 8000, 2), *tasks),
        *(removed("1", 3001, why), job_end(0, 8000)),
    )
    outcome, sentences, found = asked(run)
    assert (outcome.status, outcome.memory, outcome.reason_names_lost_worker) == ("recovered", memory, True)
    (lost,) = outcome.lost
    assert (lost.worker, lost.added_ms, lost.lost_ms, lost.recomputed_tasks, lost.recomputed_ms) == (
        "1",
        500,
        3001,
        1,
        2000,
    )
    assert figures(sentences[0])[:3] == [1, 2, 3.0]
    assert "Consider" not in sentences[0]
    assert len(sentences) > 1, "what ran out of memory"
    assert found["wasted"].advice == found["lost-workers"].advice == AvoidExhaustion(memory)
    assert advice in advice_text(found["wasted"], run.debug().words)


def test_full_heap_is_recognized_by_the_exception_of_a_task(make: Make) -> None:
    bad = thrown("java.lang.OutOfMemoryError", "Java heap space")
    tasks = [task(0, 1000, 3000, 0, "1", bad), task(1, 3000, 8000, 0, "1")]
    outcome, sentences, found = asked(
        make(added("1", 500), job(0, 900, 0), *stage(0, 900, 8000, 1), *tasks, job_end(0, 8000))
    )
    assert (outcome.memory, outcome.reason_names_lost_worker) == ("heap", False)
    assert "OutOfMemoryError: Java heap space" in sentences[0]
    assert found["wasted"].advice == AvoidExhaustion("heap")


def test_says_so_where_log_gives_no_reason(make: Make) -> None:
    run = make(
        *(added("1", 500), added("2", 500), job(0, 900, 0), *stage(0, 900, 8000, 1), task(0, 1000, 8000, 0, "2")),
        *(removed("1", 3000, ""), job_end(0, 8000, "")),
    )
    outcome, sentences, _ = asked(run)
    (lost,), (failed,) = outcome.lost, outcome.failures
    assert (lost.why, failed.error, outcome.reason_names_lost_worker) == (None, None, False)
    assert sentences == (
        "The run failed: 1 of 1 job failed: the log gives no reason.",
        "1 of 2 executors was lost, 3.0 s after the start: the log gives no reason.",
    )
    fix = next(each for each in run.verdict().recommendations if isinstance(each, FixFailure))
    assert text_of(fix, run.debug().words) == "Fix the first failure: job:0: the log gives no reason"


def test_counts_problem_once(make: Make) -> None:
    """Where its sentence has the number it is not repeated."""
    run = make(added("1", 500), job(0, 900, 0), *stage(0, 900, 8000, 3), task(0, 1000, 8000, 0, "1"), job_end(0, 8000))
    (missing,) = [each for each in run.header().problems if each.name == "missing_task_ends"]
    assert (missing.count, missing.meaning[:12], "times" in missing.meaning) == (2, "2 of 3 tasks", False)
    with duckdb.connect(str(run.path)) as connection:
        connection.execute("UPDATE import_stats SET name = 'another', meaning = 'lost'")
    assert "lost (2 times)" in [each.meaning for each in Run(run.path).header().problems]


def test_output_lost_with_an_executor_is_repeated_work(make: Make) -> None:
    why = "Executor heartbeat timed out after 123456 ms"
    gone = {"Reason": "FetchFailed", "Message": "org.apache.spark.shuffle.FetchFailedException: Connection reset"}
    run = make(
        *(added("1", 500), added("2", 500), job(0, 900, 0, 1)),
        *(*stage(0, 900, 4000, 2), task(0, 1000, 4000, 0, "1"), task(1, 1000, 4000, 1, "2")),
        *(task(2, 4000, 5000, 0, "2", gone, of=1), *stage(1, 4000, 5000, 1, failure="FetchFailedException: x")),
        *(removed("1", 4500, why), *stage(0, 5000, 9000, 1, attempt=1), task(3, 5000, 9000, 0, "2", attempt=1)),
        *(*stage(1, 9000, 9500, 1, attempt=1), task(4, 9000, 9500, 0, "2", of=1, attempt=1), job_end(0, 9500)),
    )
    outcome, sentences, found = asked(run)
    assert outcome.status == "recovered"
    (lost,) = outcome.lost
    assert (lost.recomputed_tasks, lost.recomputed_ms) == (1, 3000)
    assert any(figures(each)[-1:] == [1] for each in sentences)
    workers = found["lost-workers"]
    assert isinstance(workers, LostWorkers)
    assert (workers.redone_tasks, workers.recomputed_ms) == (1, 3000)


def test_death_of_most_executors_explains_the_slow_rest(make: Make) -> None:
    why = "Container from a bad node: container_7 on host: host-7. Exit status: 1. Diagnostics: whatever"
    young = [added(str(each), 500) for each in range(9)]
    died = [removed(str(each), 7500, why) for each in range(1, 9)]
    tasks = [task(each, 8000 + 1000 * (each // 2), 9000 + 1000 * (each // 2), each, "0") for each in range(20)]
    run = make(*young, *died, job(0, 7900, 0), *stage(0, 7900, 18_000, 20), *tasks, job_end(0, 18_000))
    outcome, sentences, found = asked(run)
    assert (outcome.status, len(outcome.lost), outcome.workers) == ("recovered", 8, 9)
    (sentence,) = sentences
    assert figures(sentence)[:3] == [8, 9, 7.5]
    assert "whatever" not in sentence
    # Twenty tasks of a second take ten seconds on two slots; on eighteen it would have been two waves.
    assert 7000 < found["lost-workers"].cost_ms <= 9000
    workers = found["lost-workers"]
    assert isinstance(workers, LostWorkers)
    assert (len(workers.lost.workers), workers.lost.lived_ms) == (8, 7000)


def test_wait_since_all_executors_died_is_reported_with_its_cost(make: Make) -> None:
    why = "Remote RPC client disassociated. Likely due to containers exceeding thresholds, or network issues."
    run = make(
        *(added("1", 500), added("2", 500), job(0, 900, 0)),
        *(task(0, 1000, 2000, 0, "1", lost_with("1", why)), removed("1", 2000, why), removed("2", 2000, why)),
        *(added("3", 14_000), *stage(0, 900, 18_000, 1), task(1, 14_000, 18_000, 0, "3"), job_end(0, 18_000)),
    )
    _, _, found = asked(run)
    waited = found["no-worker"]
    assert isinstance(waited, NoWorker)
    assert (waited.since_lost_ms, waited.lost.workers) == (pytest.approx(12_000), ("1", "2"))
    assert waited.cost_ms >= 12_000
    header = run.header()
    assert (header.workers, header.workers_in_all, header.slots_per_worker) == (2, 3, 2)
    assert figures(workers_words(header)) == [2, 3]


def test_stage_without_any_executor_waited_for_one(make: Make) -> None:
    """The cluster had no capacity for one: the driver waited, and fewer queries would not have helped."""
    asks = listener("EnvironmentUpdate", **{"Spark Properties": {"spark.executor.memory": "500m"}})
    shut = "Job 0 cancelled because SparkContext was shut down"
    run = make(asks, job(0, 2500, 0), *stage(0, 2600, 18_000, 4, failure=shut), job_end(0, 18_000, shut))
    debug = run.debug()
    assert (bottleneck_of(debug).name, debug.other_ms["no worker"]) == ("no worker", 15_400)
    found = {each.kind: each for each in debug.findings}
    assert found["no-worker"] == NoWorker(15_400, "measured", FreeClusterCapacity(), ever_came=False)
    assert "driver" not in found
    (check,) = [each for each in run.verdict().recommendations if isinstance(each, CheckCapacity)]
    assert (check.executor_cores, check.executor_memory, check.is_default_memory) == (None, "500m", False)


def test_a_stage_has_the_slots_that_were_there_at_a_time(make: Make) -> None:
    why = "Executor Process Lost"
    tasks = [task(0, 1000, 3000, 0, "1", lost_with("1", why)), task(1, 5000, 9000, 0, "2")]
    run = make(
        *(added("1", 500), job(0, 900, 0), *stage(0, 900, 9000, 1), *tasks, removed("1", 3000, why)),
        *(added("2", 4000), job_end(0, 9000)),
    )
    assert [each.slots for each in run.debug().stages] == [2]


# Texts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (None, None),
        ("", None),
        ("java.lang.RuntimeException: bad exec\n\tat a.b(c:1)", "RuntimeException: bad exec"),
        ("a.B: wrapped\n\tat x\nCaused by: c.D: because\n\tat y\nCaused by: e.F: the root\n\tat z", "F: the root"),
        ("a.B: it says more\n\tat x\nCaused by: java.lang.NullPointerException", None),
        (
            'p.PythonException: Traceback (most recent call last):\n  File "a.py", line 3\n    f()\nKeyError: 3\n',
            "KeyError: 3",
        ),
        ("org.apache.spark.SparkException: [NO_FILE] The file is gone. Try again. SQLSTATE: 42K03", None),
        ("x.Oom: GPU OutOfMemory: could not split inputs and retry. The current attempt: {Buf{address=0x7}}", None),
        ("x.ParseError: \n near line 3", "ParseError: near line 3"),
        ("Stage cancelled because SparkContext was shut down", "Stage cancelled because SparkContext was shut down"),
        ("x.E: password=hunter2 is wrong", "E: password=*** is wrong"),
    ],
)
def test_most_informative_line_of_an_error_is_shown(text: str | None, line: str | None) -> None:
    reported = {
        "a.B: it": "B: it says more (caused by NullPointerException)",
        "org.apa": "SparkException: [NO_FILE] The file is gone",
        "x.Oom: ": "Oom: GPU OutOfMemory: could not split inputs and retry",
    }
    assert failures.cause(text) == (line or reported.get((text or "")[:7]))


# Public logs ----------------------------------------------------------------------------------------------------------


def public(real_inputs: Path, name: str, tmp_path: Path) -> Run:
    return cp.profile([real_inputs / "spark-eventlog" / name], output=tmp_path / "run.duckdb")


def test_public_log_whose_gpu_ran_out_of_memory(real_inputs: Path, tmp_path: Path) -> None:
    outcome, sentences, found = asked(public(real_inputs, "rapids-tools/gpu_oom_eventlog.zstd", tmp_path))
    assert (outcome.status, outcome.memory) == ("failed", "device")
    assert (outcome.tally("job").failed, outcome.tally("job").total) == (5, 37)
    assert figures(sentences[0]) == [1, 25]
    assert "GpuSplitAndRetryOOM: GPU OutOfMemory: could not split inputs and retry" in sentences[0]
    assert figures(sentences[1]) == [112, 12, 447, 809.3, 104]
    assert found["wasted"].advice == AvoidExhaustion("device")


def test_exhausted_memory_is_advised_on_once(real_inputs: Path, tmp_path: Path) -> None:
    """The run's end and the tasks that it cost have one cause, and one thing to do."""
    found = public(real_inputs, "rapids-tools/gpu_oom_eventlog.zstd", tmp_path).verdict().recommendations
    assert [type(each) for each in found].count(FewerTasksPerGpu) == 1
    advised = [each.finding.advice for each in found if isinstance(each, FollowAdvice)]
    assert AvoidExhaustion("device") not in advised


def test_tasks_that_list_folders_are_cut_by_their_setting(real_inputs: Path, tmp_path: Path) -> None:
    """Job 29 of that log is 'Listing leaf files and directories for 1824 paths': no program hands out its rows."""
    verdict = public(real_inputs, "rapids-tools/gpu_oom_eventlog.zstd", tmp_path).verdict()
    (found,) = (each for each in verdict.recommendations if isinstance(each, ListFoldersInFewerTasks))
    name = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    assert found.settings == (SettingChange(name, 10_000, 32, is_default=True),)
    assert found.stages.stage == "stage:29.0"


def test_public_log_that_lost_two_executors(real_inputs: Path, tmp_path: Path) -> None:
    name = "rapids-tools/tasks_executors_fail_compressed_eventlog.zstd"
    outcome, sentences, _ = asked(public(real_inputs, name, tmp_path))
    assert (outcome.status, outcome.tally("job").failed) == ("failed", 1)
    assert [each.worker for each in outcome.lost] == ["2", "1"]
    assert figures(sentences[0]) == [1, 28, 79]
    assert any(figures(each)[:3] == [2, 8, 97.2] for each in sentences)


def test_public_log_whose_tasks_failed_and_ran_again(real_inputs: Path, tmp_path: Path) -> None:
    outcome, sentences, _ = asked(public(real_inputs, "apache-spark/app-20161115172038-0000", tmp_path))
    assert (outcome.status, outcome.tally("task").failed) == ("recovered", 10)
    assert "RuntimeException: bad exec" in sentences[0]


def test_public_log_that_released_an_executor(real_inputs: Path, tmp_path: Path) -> None:
    run = public(real_inputs, "rapids-tools/rp_sql_eventlog.zstd", tmp_path)
    assert asked(run)[:2] == (asked(run)[0], ())
    assert asked(run)[0].status == "succeeded"
    assert figures(workers_words(run.header())) == [8, 9]
