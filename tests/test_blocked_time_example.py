"""Job logs of Spark before 1.0, read through a plugin.

The log is made here, as JobLogger writes it: the public ones have no licence, so they may not be copied.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.plugin import InputError, validate
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.discover import discover
from tests.refusals import refused

PACKAGE = Path(__file__).parent.parent / "examples" / "blocked-time"
START_MS = 1_400_000_000_000
READ_BYTES, RAW_BYTES = 60_000_000, 40_000_000

HEAD = """SELECT town, count(*) FROM letters GROUP BY town
STAGE_ID=8 RDD_DEP=(5,4) STAGE_DEP=(9,0)
STAGE_ID=9 RDD_DEP=(3,2) STAGE_DEP=
STAGE_ID=8 RESULT_STAGE
RDD_ID=5 MapPartitionsRDD NONE mapPartitions at Counting.scala:20 example.Counting
 RDD_ID=4 ShuffledRDD NONE ShuffledRDD at Counting.scala:10 example.Counting
  SHUFFLE_ID=0
  STAGE_ID=9 MAP_STAGE SHUFFLE_ID=0
  RDD_ID=3 MappedRDD NONE map at Reading.scala:30 example.Reading
   RDD_ID=2 HadoopRDD NONE HadoopRDD at Reading.scala:40 example.Reading
2014/05/13 16:53:20: JOB_ID=6 STATUS=STARTED
2014/05/13 16:53:20: STAGE_ID=9 STATUS=SUBMITTED TASK_SIZE=4
"""
MIDDLE = """2014/05/13 16:53:28: STAGE_ID=9 STATUS=COMPLETED
2014/05/13 16:53:28: STAGE_ID=8 STATUS=SUBMITTED TASK_SIZE=2
"""
TAIL = """2014/05/13 16:53:30: STAGE_ID=8 STATUS=COMPLETED
2014/05/13 16:53:30: JOB_ID=6 STATUS=SUCCES
"""


@pytest.fixture(scope="module", autouse=True)
def blocked_time() -> Iterator[Any]:
    """The package as if it were installed."""
    sys.path.insert(0, str(PACKAGE))
    found = import_module("crystalperf_blocked_time")
    frameworks()["joblogger"] = found.JOBLOGGER
    yield found
    del frameworks()["joblogger"]
    sys.path.remove(str(PACKAGE))


def event(kind: str, number: int, stage: int, start_s: float, end_s: float, more: str) -> str:
    """The line of a task, on one of two executors, which ran all but 100 ms of it."""
    first, last = round(START_MS + start_s * 1000), round(START_MS + end_s * 1000)
    return (
        f"2014/05/13 16:53:28: TASK_TYPE={kind} STATUS=SUCCESS TID={number} STAGE_ID={stage} START_TIME={first} "
        f"FINISH_TIME={last} EXECUTOR_ID={number % 2} HOST=node-{number % 2} GC_TIME=100 EXECUTOR_DESERIALIZE_TIME=50 "
        f"EXECUTOR_RUN_TIME={last - first - 100} {more}\n"
    )


def text(method: str = "HDFS") -> str:
    """A log: four maps of 4 s, 3 s of them blocked on the disk, on two slots, and two reducers of 2 s."""
    read = f"READ_METHOD={method} READ_SETUP_TIME=7 READ_BLOCKED_TIME=3000000000 INPUT_BYTES={READ_BYTES} "
    read += f"INPUT_BYTES_RAW={RAW_BYTES if method == 'HDFS' else 0} SHUFFLE_BYTES_WRITTEN=1000 "
    read += "SHUFFLE_WRITE_TIME=200000000"
    fetch = "BLOCK_FETCHED_TOTAL=4 REMOTE_FETCH_WAIT_TIME=500 REMOTE_FETCH_TIME=900 REMOTE_BYTES_READ=2000"
    maps = [event("SHUFFLE_MAP_TASK", n, 9, 4 * (n // 2), 4 * (n // 2) + 4, read) for n in range(4)]
    reduces = [event("RESULT_TASK", n, 8, 8, 10, fetch) for n in (4, 5)]
    return HEAD + "".join(maps) + MIDDLE + "".join(reduces) + TAIL


def read(folder: Path, content: str) -> Any:
    """The trace of a log."""
    (folder / "made").write_text(content, encoding="utf-8")
    (application,) = discover([folder / "made"]).applications
    return import_module("crystalperf_blocked_time").read(application.log)


def test_imports_only_the_plugin_interface() -> None:
    source = (PACKAGE / "crystalperf_blocked_time" / "__init__.py").read_text(encoding="utf-8")
    imported = {line.split()[1] for line in source.split("\n") if line.startswith(("from ", "import "))}
    ours = ("query", "indexes", "indexer", "cli", "crystalperf")
    assert {each for each in imported if each.partition(".")[0] in ours} == {"crystalperf.plugin"}
    assert source.count("\n") <= 250


def test_stages_tasks_and_dependencies_of_a_log(tmp_path: Path) -> None:
    trace = read(tmp_path, text())
    assert validate(trace) == []
    assert trace.run["name"] == "SELECT town, count(*) FROM letters GROUP BY town"
    assert trace.run["duration_ms"] == 10_000
    assert trace.run["complete"] is True
    assert trace.workers["slots"].tolist() == [1, 1]
    assert trace.stages["stage_id"].tolist() == ["stage:9", "stage:8"]
    assert trace.stages["name"].tolist() == ["map at Reading.scala:30", "mapPartitions at Counting.scala:20"]
    assert trace.stages["task_count"].tolist() == [4, 2]
    assert (trace.dependencies["source"].tolist(), trace.dependencies["target"].tolist()) == (["stage:9"], ["stage:8"])
    assert trace.scopes["scope_id"].tolist() == ["job:6"]


def test_blocked_times_are_measured_and_shuffle_writes_likely(tmp_path: Path) -> None:
    trace = read(tmp_path, text())
    disk, net, cpu = (trace.names.index(each) for each in ("disk", "net", "cpu"))
    assert trace.bounds.floor_ms[:, disk].tolist() == [3000] * 4 + [0] * 2
    assert trace.bounds.likely_ms[:, disk].tolist() == [200] * 4 + [0] * 2
    assert trace.bounds.floor_ms[:, net].tolist() == [0] * 4 + [500] * 2
    assert trace.bounds.floor_ms[:, cpu].tolist() == [100] * 6
    assert trace.tasks["input_bytes"].tolist() == [RAW_BYTES] * 4 + [None] * 2
    assert trace.tasks["remote_read_bytes"].tolist() == [None] * 4 + [2000] * 2


def test_hidden_blocked_times_leave_what_usual_logs_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRYSTALPERF_BLOCKED_TIME", "hide")
    trace = read(tmp_path, text())
    assert trace.bounds.floor_ms[:, trace.names.index("disk")].tolist() == [0] * 6
    assert trace.bounds.likely_ms[:, trace.names.index("disk")].tolist() == [200] * 4 + [0] * 2
    assert trace.bounds.floor_ms[:, trace.names.index("net")].tolist() == [0] * 4 + [500] * 2


def test_input_from_memory_crosses_no_disk(tmp_path: Path) -> None:
    assert read(tmp_path, text("Memory")).tasks["input_bytes"].tolist()[:4] == [0] * 4


def test_measured_times_never_exceed_the_run_time(tmp_path: Path) -> None:
    trace = read(tmp_path, text().replace("READ_BLOCKED_TIME=3000000000", "READ_BLOCKED_TIME=9000000000"))
    assert validate(trace) == []
    assert trace.bounds.floor_ms[:4, trace.names.index("disk")].tolist() == [3800] * 4
    assert trace.bounds.likely_ms[:4, trace.names.index("disk")].tolist() == [0] * 4


def test_a_task_that_overlaps_its_successor_adds_no_slot(tmp_path: Path) -> None:
    late = text().replace(f"FINISH_TIME={START_MS + 4000}", f"FINISH_TIME={START_MS + 4020}")
    assert read(tmp_path, late).workers["slots"].tolist() == [1, 1]
    later = text().replace(f"FINISH_TIME={START_MS + 4000}", f"FINISH_TIME={START_MS + 5000}")
    assert read(tmp_path, later).workers["slots"].tolist() == [2, 2]


def test_tasks_without_times_are_a_problem(tmp_path: Path) -> None:
    failed = "2014/05/13 16:53:21: TASK_TYPE=RESULT_TASK STATUS=FETCHFAILED TID=9 STAGE_ID=8 SHUFFLE_ID=0\n"
    trace = read(tmp_path, text() + failed)
    found = [(each.name, each.severity, each.count) for each in trace.problems]
    assert found == [("task without times", "data loss", 1), ("slots unknown", "info", 1)]
    assert trace.stages["task_count"].tolist() == [4, 2]


def test_a_log_cut_short_has_an_unfinished_job(tmp_path: Path) -> None:
    trace = read(tmp_path, text().partition("2014/05/13 16:53:30: STAGE_ID")[0])
    assert trace.run["complete"] is False
    assert trace.stages["status"].tolist() == ["succeeded", "unfinished"]
    assert trace.scopes["status"].tolist() == ["unfinished"]


def test_a_log_without_tasks_is_one_sentence(tmp_path: Path) -> None:
    with refused(InputError, tmp_path / "made", "no task"):
        read(tmp_path, HEAD)


@pytest.mark.few(2)
def test_a_faster_disk_shortens_what_was_blocked(tmp_path: Path) -> None:
    (tmp_path / "made").write_text(text(), encoding="utf-8")
    run = cp.profile([tmp_path / "made"], output=tmp_path / "run.duckdb")
    answer = run.predict(disk="1000x")
    assert answer.replayed_ms == pytest.approx(10_000, abs=1)
    assert answer.interval_ms is not None
    # Without its blocked times the first stage takes 2 s instead of 8.
    assert answer.interval_ms[0] < answer.predicted_ms < 10_000
    assert answer.interval_ms[0] < 5000
    assert run.predict(slots="2x").replayed_ms == answer.replayed_ms
    assert run.predict(memory="0.5x").predicted_ms is None


@pytest.mark.few(2)
def test_blocked_time_analysis_lists_tasks_on_the_slots(tmp_path: Path) -> None:
    (tmp_path / "made").write_text(text(), encoding="utf-8")
    run = cp.profile([tmp_path / "made"], output=tmp_path / "run.duckdb")
    spec = spec_from_file_location("blocked_time_score", PACKAGE / "score.py")
    assert spec is not None
    assert spec.loader is not None
    score = module_from_spec(spec)
    spec.loader.exec_module(score)
    # 4 s - 3.2 s blocked, twice, and 2 s
    assert score._unblocked(run) == pytest.approx(0.36)
