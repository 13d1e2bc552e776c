"""Flink: the archive of a real job, and pages as other versions and other jobs have them.

tests/data/flink/join-and-sort.json.gz is the archive of a batch job of Flink 1.20.3 on two TaskManagers, the job of
`python -m lab.flink`: two scans of CSV, a hash join on four subtasks, an aggregate and a sort, all behind blocking
exchanges.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.frameworks import Framework, Job
from crystalperf.query.frameworks.flink import chained_operators, frames
from crystalperf.query.frameworks.flink.assumptions import RecordsRespread, SingleSubtasksKept
from crystalperf.query.frameworks.flink.framework import FLINK
from crystalperf.query.frameworks.flink.trace import read_archive
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.results.assumptions import NoInterval
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.vocabulary import plural
from tests.reading import profiled
from tests.refusals import refused

JOIN = Path(__file__).parent / "data/flink/join-and-sort.json.gz"
KEPT = Path(__file__).parents[1] / "lab/recordings/sweeps/flink"
JOB = "0123456789abcdef0123456789abcdef"
START = 1_700_000_000_000.0


def log_of(path: Path) -> LogFile:
    return LogFile(str(path), (Part(str(path)),))


def attempt(
    number: int,
    start: float,
    end: float,
    *,
    state: str = "FINISHED",
    attempt: int = 0,
    worker: str = "tm1",
    **more: Any,
) -> dict[str, Any]:
    """One attempt of a subtask; start and end in ms since the job's start."""
    return {
        "subtask": number,
        "attempt": attempt,
        "status": state,
        "host": "h1:4711",
        "taskmanager-id": worker,
        "start-time": START + start,
        "end-time": START + end,
        "status-duration": {"DEPLOYING": more.pop("deploying", 0), "INITIALIZING": 0, "RUNNING": end - start},
        "metrics": {"read-bytes": 10, "write-bytes": 20, **more},
    }


def archive_of(
    path: Path,
    vertices: dict[str, list[dict[str, Any]]],
    inputs: dict[str, list[tuple[str, str]]] | None = None,
    *,
    state: str = "FINISHED",
    end: float = 100.0,
    error: str | None = None,
    earlier: dict[str, list[dict[str, Any]]] | None = None,
) -> Path:
    """An archive of vertices with their subtasks; `inputs` are (vertex, exchange) by reader."""
    job = {"jid": JOB, "name": "a job", "state": state, "start-time": START, "end-time": START + end, "vertices": []}
    nodes = [
        {"id": each, "inputs": [{"id": source, "ship_strategy": "HASH[k]", "exchange": exchange} for source, exchange in
                                (inputs or {}).get(each, [])]}
        for each in vertices
    ]  # fmt: skip
    pages: dict[str, Any] = {
        "/jobs/overview": {"jobs": [{"jid": JOB, "name": "a job", "start-time": START}]},
        f"/jobs/{JOB}": job,
        f"/jobs/{JOB}/plan": {"plan": {"jid": JOB, "type": "BATCH", "nodes": nodes}},
        f"/jobs/{JOB}/exceptions": {"root-exception": error},
    }
    for each, subtasks in vertices.items():
        pages[f"/jobs/{JOB}/vertices/{each}"] = {
            "id": each, "name": f"vertex {each}", "parallelism": len(subtasks), "subtasks": subtasks
        }  # fmt: skip
        for one in (earlier or {}).get(each, []):
            pages[f"/jobs/{JOB}/vertices/{each}/subtasks/{one['subtask']}/attempts/{one['attempt']}"] = one
    path.write_text(json.dumps({"archive": [{"path": key, "json": json.dumps(page)} for key, page in pages.items()]}))
    return path


def read(path: Path) -> Trace:
    return read_archive(log_of(path))


def of(trace: Trace, table: str, column: str) -> list[Any]:
    found: list[Any] = getattr(trace, table)[column].tolist()
    return found


# A real job -------------------------------------------------------------------------------------------------------


def test_an_archive_is_recognised_packed_and_all_and_answered() -> None:
    run = profiled(JOIN)
    header, debug = run.header(), run.debug()
    assert (header.framework, header.name, header.workers, header.slots_per_worker) == ("flink", "join and sort", 2, 2)
    assert debug.runtime_ms == 81_255
    assert sum(each.end_ms - each.start_ms for each in debug.critical_path) == pytest.approx(81_255)
    long = [each for each in debug.critical_path if each.end_ms - each.start_ms > 1000]
    path = [each.name.partition("[")[0] for each in long if each.id.startswith("vertex")]
    assert path == ["Source: lineitem", "HashJoin", "HashAggregate", "Sort"]


def test_replay_of_a_real_flink_job_reproduces_it() -> None:
    assert abs(profiled(JOIN).baseline().replay_error_ratio) <= 0.02


def test_states_and_bytes_of_a_real_job_are_kept_in_flinks_words() -> None:
    trace = read(JOIN)
    vertices, subtasks = trace.raw["flink_vertices"], trace.raw["flink_subtasks"]
    assert vertices["parallelism"].tolist() == [1, 1, 4, 1, 1]
    assert set(subtasks["state"].tolist()) == {"FINISHED"}
    assert all(each > 0 for each in subtasks["deploying_ms"].tolist())
    source = of(trace, "tasks", "stage_id").index("vertex:1")
    assert subtasks["written_records"].tolist()[source] == 600_000
    assert set(of(trace, "dependencies", "kind")) == {"barrier"}
    assert len(trace.task_threads) == 8
    assert "Source: lineitem[4] (1/1)#0" in trace.task_threads


def test_a_vertex_on_more_subtasks_takes_less_where_there_are_slots_for_them() -> None:
    """HashJoin ran on all four slots: eight subtasks need eight."""
    run = profiled(JOIN)
    join = next(each for each in run.predict(["slots=2x"]).stages if each.name.startswith("HashJoin"))
    assert join.predicted_ms == pytest.approx(join.recorded_ms, rel=0.02)  # slots alone change nothing
    both = run.predict(["slots=2x", "parallelism.HashJoin=8"])
    wider = next(each for each in both.stages if each.id == join.id)
    assert join.recorded_ms > 1.3 * wider.predicted_ms
    assert RecordsRespread(1) in both.assumptions
    assert both.interval_ms is None  # nobody checked it by a rerun
    alone = run.predict(["parallelism.HashJoin=8"])
    again = next(each for each in alone.stages if each.id == join.id)
    assert again.predicted_ms >= join.recorded_ms  # two waves of half of the work, and each starts again


def test_names_a_setting_of_one_vertex_as_the_user_did() -> None:
    prediction = profiled(JOIN).predict(["parallelism.HashJoin=2x"])
    assert prediction.setting == "parallelism.HashJoin=2x"
    assert NoInterval(("parallelism.HashJoin",)) in prediction.assumptions


def test_parallelism_of_all_vertices_leaves_those_of_one_subtask() -> None:
    reported = profiled(JOIN).predict(["parallelism=2x", "slots=2x"])
    (kept,) = (each for each in reported.assumptions if isinstance(each, SingleSubtasksKept))
    assert kept.vertices[0].startswith("Source: ")
    assert reported.interval_ms is not None  # reruns have checked it
    assert not any(isinstance(each, NoInterval) for each in reported.assumptions)


def test_a_vertex_that_is_not_there_is_named_with_those_that_are() -> None:
    with refused(SettingError, "Nothing", "vertex:0"):
        profiled(JOIN).predict(["parallelism.Nothing=8"])


# Pages ------------------------------------------------------------------------------------------------------------


def test_a_blocking_exchange_is_a_barrier_and_any_other_a_pipeline(tmp_path: Path) -> None:
    vertices = {name: [attempt(0, 0, 50)] for name in ("aa", "bb", "cc")}
    inputs = {"bb": [("aa", "blocking")], "cc": [("bb", "pipelined_bounded")]}
    trace = read(archive_of(tmp_path / "a", vertices, inputs))
    assert of(trace, "dependencies", "kind") == ["barrier", "pipelined"]
    assert of(trace, "stages", "submit_ms") == [0.0, 0.0, None]


def test_waiting_for_a_pipeline_is_upstream_time(tmp_path: Path) -> None:
    """A source that nobody took rows from for 30 of 50 ms, and a reader that had none for 40 ms."""
    pressed = {"accumulated-backpressured-time": 30, "accumulated-idle-time": 5, "accumulated-busy-time": "NaN"}
    idle = {"accumulated-idle-time": 40, "accumulated-backpressured-time": 0}
    vertices = {"aa": [attempt(0, 0, 50, **pressed)], "bb": [attempt(0, 0, 60, **idle)]}
    trace = read(archive_of(tmp_path / "a", vertices, {"bb": [("aa", "pipelined")]}))
    assert of(trace, "tasks", "pipeline_wait_ms") == [30, 40]
    assert trace.raw["flink_subtasks"]["busy_ms"].mask.tolist() == [True, True]


def test_idling_behind_a_blocking_exchange_is_own_time(tmp_path: Path) -> None:
    vertices = {"aa": [attempt(0, 0, 50)], "bb": [attempt(0, 50, 100, **{"accumulated-idle-time": 40})]}
    trace = read(archive_of(tmp_path / "a", vertices, {"bb": [("aa", "blocking")]}))
    assert of(trace, "tasks", "pipeline_wait_ms") == [0, 0]


def test_samples_show_the_startup_work_of_a_subtask() -> None:
    """Seven tenths of the aggregate's 570 ms are opening it, with its classes loaded and its code compiled."""
    run = profiled(KEPT / "084-join-0/collected", KEPT / "084-join-0/recordings")
    with run.reading() as connection:
        (row,) = connection.execute("SELECT starting_ms, other_ms FROM tasks WHERE stage_id = 'vertex:3'").fetchall()
        not_recorded = profiled(KEPT / "084-join-0/collected")
    assert row[0] == 398
    assert row[1] < 0.2 * row[0]
    with not_recorded.reading() as connection:
        (row,) = connection.execute("SELECT starting_ms, other_ms FROM tasks WHERE stage_id = 'vertex:3'").fetchall()
    assert row[1] >= row[0], "not known without a recording"


def test_other_subtasks_share_the_cpu_that_a_task_manager_has() -> None:
    """Its TaskManagers were at their CPU limit: half of the subtasks have twice the CPU each, and none is idle."""
    run = profiled(KEPT / "084-join-0/collected", KEPT / "084-join-0/recordings")
    for count, least, most in ((2, 0.9, 1.1), (8, 1.0, 1.3)):
        join = next(each for each in run.predict([f"parallelism.HashJoin={count}"]).stages if "HashJoin" in each.name)
        assert least * join.recorded_ms < join.predicted_ms < most * join.recorded_ms


def test_operators_of_a_chain_are_distinguished_by_how_often_one_called_the_next() -> None:
    run = profiled(KEPT / "084-join-0/collected", KEPT / "084-join-0/recordings")
    with run.reading() as connection:
        rows = connection.execute(
            "SELECT name, cpu_ms FROM operator_times WHERE stage_id = 'vertex:2' AND node_id >= 0 ORDER BY node_id"
        ).fetchall()
        (apart,) = connection.execute(
            "SELECT max(abs(parts - whole)) FROM (SELECT stage_id, sum(cpu_ms + disk_ms + net_ms + other_ms) AS parts"
            " FROM operator_times GROUP BY stage_id) JOIN (SELECT stage_id, sum(finish_ms - launch_ms) AS whole"
            " FROM tasks GROUP BY stage_id) USING (stage_id)"
        ).fetchall()
    assert [name for name, _ in rows] == ["HashJoin[6]", "Calc[7]", "HashAggregate[8]"]
    join, calc, aggregate = (ms for _, ms in rows)
    assert join > aggregate > calc > 0
    assert apart[0] < 1.0
    assert chained_operators.chained("Source: A -> (Map, Filter -> Sink: B)") == (
        "Source: A -> (Map, Filter -> Sink: B)",
    )


def test_bytes_written_on_another_machine_crossed_the_network(tmp_path: Path) -> None:
    """Of 60 bytes that both readers got from a vertex, 20 were written on the other's machine."""
    sources = [attempt(0, 0, 50, **{"write-bytes": 40}), attempt(1, 0, 50, **{"write-bytes": 20}, worker="tm2")]
    readers = [attempt(0, 50, 100, **{"read-bytes": 30}), attempt(1, 50, 100, **{"read-bytes": 30}, worker="tm2")]
    for each in (sources[1], readers[1]):
        each["host"] = "h2:4711"
    trace = read(archive_of(tmp_path / "a", {"aa": sources, "bb": readers}, {"bb": [("aa", "blocking")]}))
    assert of(trace, "tasks", "remote_read_bytes") == [0, 0, 10, 20]
    assert of(trace, "tasks", "local_read_bytes") == [10, 10, 20, 10]


def test_deploying_is_reported_as_starting(tmp_path: Path) -> None:
    """All of a subtask's 50 ms are on no resource that is known; 20 of them deployed it."""
    path = archive_of(tmp_path / "a", {"aa": [attempt(0, 0, 50, deploying=20)]}, end=50)
    other_ms = cp.profile(path, output=tmp_path / "run.duckdb").debug().other_ms
    assert other_ms["starting"] == pytest.approx(20)
    assert other_ms["unknown"] == pytest.approx(30)


@pytest.mark.parametrize(("properties", "starting_ms"), [({"stream": "true"}, 30.0), ({}, 12.0)])
def test_starting_a_stream_is_on_no_resource_whether_it_has_exchanges_or_not(
    properties: dict[str, str], starting_ms: float
) -> None:
    """A vertex alone, of whose 100 ms 60 are on the CPU; a batch job's starting is on it as the rest of it is."""
    connection = duckdb.connect()
    connection.execute(
        """
        CREATE TABLE runs (properties MAP(VARCHAR, VARCHAR));
        CREATE TABLE stages AS SELECT 'vertex:0' AS stage_id, 'A' AS name, 'job:1' AS scope_id, 0 AS priority;
        CREATE TABLE tasks (task_id BIGINT, stage_id VARCHAR, launch_ms DOUBLE, finish_ms DOUBLE, overhead_ms DOUBLE,
            pipeline_wait_ms DOUBLE, cpu_ms DOUBLE, other_ms DOUBLE);
        INSERT INTO tasks VALUES (0, 'vertex:0', 0, 100, 30, 0, 60, 40);
        CREATE TABLE dependencies (source VARCHAR, target VARCHAR, kind VARCHAR);
        CREATE TABLE samples (task_id BIGINT, stack_id BIGINT, weight_ms DOUBLE, kind VARCHAR);
        CREATE TABLE stacks (stack_id BIGINT, frames VARCHAR[], cpu DOUBLE);
        """
    )
    connection.execute("INSERT INTO runs VALUES (?)", [properties])
    times = chained_operators.times(connection, ("cpu",), True)
    reported = dict(zip(times["name"].tolist(), times["other_ms"].tolist(), strict=True))
    assert reported["starting"] == pytest.approx(starting_ms)


def test_every_attempt_is_a_task_and_the_last_says_how_it_ended(tmp_path: Path) -> None:
    vertices = {"aa": [attempt(0, 40, 90, attempt=1, worker="tm2")]}
    failed = {"aa": [attempt(0, 0, 30, state="FAILED")]}
    trace = read(archive_of(tmp_path / "a", vertices, earlier=failed))
    assert of(trace, "tasks", "status") == ["failed", "succeeded"]
    assert of(trace, "tasks", "attempt") == [0, 1]
    assert of(trace, "stages", "status") == ["succeeded"]
    assert sorted(of(trace, "workers", "worker_id")) == ["tm1", "tm2"]


@pytest.mark.parametrize("compared", [False, True])
def test_finished_one_of_concurrent_attempts_gives_the_status(tmp_path: Path, compared: bool) -> None:
    """Speculative execution; a page of the vertex has the others within the one that it counts as current."""
    copy = attempt(0, 40, 60, state="CANCELED", attempt=1, worker="tm2")
    won = attempt(0, 0, 60)
    if compared:
        path = archive_of(tmp_path / "a", {"aa": [{**won, "other-concurrent-attempts": [copy]}]})
    else:
        path = archive_of(tmp_path / "a", {"aa": [won]}, earlier={"aa": [copy]})
    trace = read(path)
    assert of(trace, "tasks", "status") == ["succeeded", "killed"]
    assert of(trace, "stages", "status") == ["succeeded"]


def test_earlier_finished_attempt_does_not_give_the_status(tmp_path: Path) -> None:
    """Its output was lost, and made again in vain."""
    vertices = {"aa": [attempt(0, 40, 90, attempt=1, state="FAILED")]}
    trace = read(archive_of(tmp_path / "a", vertices, state="FAILED", earlier={"aa": [attempt(0, 0, 30)]}))
    assert of(trace, "stages", "status") == ["failed"]


def test_failed_job_reports_its_last_cause(tmp_path: Path) -> None:
    error = (
        "org.apache.flink.runtime.JobException: Recovery is suppressed\n\tat a.B.c(B.java:1)\n"
        "Caused by: java.net.ConnectException: Connection refused\n\tat d.E.f(E.java:2)\n"
    )
    vertices = {"aa": [attempt(0, 0, 50, state="FAILED")]}
    trace = read(archive_of(tmp_path / "a", vertices, state="FAILED", error=error))
    assert of(trace, "scopes", "status") == ["failed"]
    assert of(trace, "scopes", "error") == ["ConnectException: Connection refused"]


def test_slots_are_the_most_subtasks_at_a_time(tmp_path: Path) -> None:
    vertices = {"aa": [attempt(0, 0, 50), attempt(1, 0, 50)], "bb": [attempt(0, 40, 90)]}
    trace = read(archive_of(tmp_path / "a", vertices, {"bb": [("aa", "pipelined")]}))
    assert of(trace, "workers", "slots") == [3]


def test_a_job_that_never_got_a_slot_is_a_run_without_tasks(tmp_path: Path) -> None:
    never = {"subtask": 0, "attempt": 0, "status": "CANCELED", "start-time": -1, "end-time": START + 10}
    path = archive_of(tmp_path / "a", {"aa": [never]}, state="CANCELED")
    debug = cp.profile(path, output=tmp_path / "run.duckdb").debug()
    assert debug.runtime_ms == 100


PAGE = json.dumps({"path": "/jobs/overview", "json": json.dumps({"jobs": [{"jid": JOB}]})}, separators=(",", ":"))


@pytest.mark.parametrize("content", [f'{{"archive":[{PAGE}', f'{{"archive":[{PAGE}]}}'], ids=["cut", "no page"])
def test_a_damaged_archive_is_one_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "archive"
    path.write_text(content)
    with refused(InputError, path):
        cp.profile(path)


def test_a_damaged_page_costs_that_page(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "a", {"aa": [attempt(0, 0, 50)], "bb": [attempt(0, 0, 50)]})
    document = json.loads(path.read_text())
    for page in document["archive"]:
        if page["path"].endswith("/vertices/bb"):
            page["json"] = page["json"][:40]
    path.write_text(json.dumps(document))
    trace = read(path)
    assert of(trace, "stages", "name") == ["vertex aa"]
    assert any(each.name == "damaged page" for each in trace.problems)


def test_names_are_as_the_user_wrote_them(tmp_path: Path) -> None:
    """Flink escapes names for its web page."""
    path = archive_of(tmp_path / "a", {"aa": [attempt(0, 0, 50)]})
    path.write_text(path.read_text().replace("vertex aa", "Source -&gt; Map"))
    assert of(read(path), "stages", "name") == ["Source -> Map"]


# Frames and processes -----------------------------------------------------------------------------------------------


def test_a_helper_thread_works_for_its_subtask() -> None:
    subtask = "Source: lineitem[4] (1/1)#0"
    assert frames.task_thread(f"Source Data Fetcher for {subtask}") == subtask
    assert frames.task_thread(f"Legacy Source Thread - {subtask}") == subtask
    compared = f"OutputFlusher for {subtask}"  # it sleeps while the subtask works, and works while that waits
    assert frames.task_thread(compared) == compared
    assert frames.task_thread(subtask) == subtask


def test_task_managers_are_identified_by_their_resource_id() -> None:
    main = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner --configDir conf"
    assert frames.process(f"{main} -D taskmanager.resource-id=tm1 -D a=b", "x.jfr") == (None, "tm1")
    pod = "org.apache.flink.kubernetes.taskmanager.KubernetesTaskExecutorRunner --configDir conf"
    assert frames.process(f"{pod} -D taskmanager.resource-id=a-taskmanager-1-1", "x.jfr") == (None, "a-taskmanager-1-1")
    entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint --configDir conf"
    assert frames.process(entry, "x.jfr") == (None, "jobmanager")
    assert frames.process("org.example.Main", "x.jfr") is None
    assert frames.process(None, "taskmanager-tm2.jfr") == (None, "tm2")


def test_roles_of_frames() -> None:
    assert FLINK.reader.frames.annotate("org.apache.flink.runtime.taskmanager.Task", "run") == "task"
    assert (
        FLINK.reader.frames.annotate("org.apache.flink.streaming.runtime.tasks.mailbox.TaskMailboxImpl", "take")
        == "wait"
    )
    assert FLINK.reader.frames.annotate("org.apache.flink.formats.csv.CsvReaderFormat$Reader", "read") is None


def test_flink_plurals_are_correct() -> None:
    framework: Framework = FLINK
    assert (framework.vocabulary.stages, framework.vocabulary.tasks) == ("vertices", "subtasks")
    assert plural("index") == "indices"


def test_a_public_archive_of_an_older_version(real_inputs: Path, tmp_path: Path) -> None:
    folder = real_inputs / "flink/history-archive"
    (path,) = folder.iterdir()
    run = cp.profile(path, output=tmp_path / "run.duckdb")
    debug = run.debug()
    assert debug.runtime_ms == 18_608
    assert debug.scopes[0].name == "test555"
    assert debug.other_ms["no worker"] == 14_916  # its subtask was SCHEDULED for 13.8 s of it


def test_a_page_of_a_job_that_was_restarted_begins_there(tmp_path: Path) -> None:
    vertex = {"id": "ab", "name": "Source", "parallelism": 1, "status": "RUNNING", "start-time": 61_500, "end-time": -1}
    page = {
        "jid": JOB, "name": "a job", "state": "RUNNING", "start-time": 1000, "end-time": -1, "now": 91_000,
        "timestamps": {"RESTARTING": 61_000, "RUNNING": 61_400, "FAILED": 0}, "vertices": [vertex],
        "plan": {"jid": JOB, "type": "STREAMING", "nodes": []},
    }  # fmt: skip
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page))
    trace = read(path)
    assert trace.run["duration_ms"] == 30_000
    assert of(trace, "tasks", "launch_ms") == [500]
    assert of(trace, "workers", "added_ms") == [0]
    assert "restarted" in {each.name for each in trace.problems}


@pytest.mark.parametrize(("asked_ms", "added_ms"), [(500, 5_000), (4_500, 0)])
def test_a_job_that_waits_for_slots_waits_for_task_managers(tmp_path: Path, asked_ms: int, added_ms: int) -> None:
    path = archive_of(tmp_path / "a", {"5": [attempt(0, 5_000, 9_000)]}, end=9_000)
    pages = json.loads(path.read_text())
    times = {"id": "5", "subtasks": [{"subtask": 0, "timestamps": {"SCHEDULED": START + asked_ms}}]}
    pages["archive"].append({"path": f"/jobs/{JOB}/vertices/5/subtasktimes", "json": json.dumps(times)})
    path.write_text(json.dumps(pages))
    assert of(read(path), "workers", "added_ms") == [added_ms]


def test_a_saved_page_whose_last_line_does_not_end_is_whole(tmp_path: Path) -> None:
    page = {
        "jid": "54a5c6e527e00e1bb861272a39fe13e4", "name": "State machine job", "state": "FINISHED",
        "start-time": 1000, "end-time": 3000, "duration": 2000,
        "vertices": [
            {
                "id": "bc764cd8ddf7a0cff126f51c16239658", "name": "Source", "parallelism": 1, "status": "FINISHED",
                "start-time": 1000, "end-time": 3000, "duration": 2000, "tasks": {"FINISHED": 1}, "metrics": {},
            }
        ],
        "plan": {"jid": "54a5c6e527e00e1bb861272a39fe13e4", "nodes": []},
    }  # fmt: skip
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page, indent=4))
    assert cp.profile(path).header().duration_ms == 2000


def test_setup_refreshes_figures_at_the_collection_interval() -> None:
    assert "\nmetrics.fetcher.update-interval: 1000 " in FLINK.advisor.setup.text(Job("/var/flink"))
