"""A framework with phases in a task: job histories of Hadoop MapReduce, read through a plugin.

Most histories are made here, as Hadoop writes them: those of public reruns may not be copied.  RECORDED is of a real
run of Hadoop 3.4.1 (examples/mapreduce-framework/record), with the names of its folders replaced.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.plugin import InputError, Problems, validate
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.discover import discover
from tests.refusals import refused

PACKAGE = Path(__file__).parent.parent / "examples" / "mapreduce-framework"
RECORDED = Path(__file__).parent / "data" / "mapreduce" / "word-count.jhist.gz"
"""6 maps, one of them also run speculatively, and a reducer, on one node, in Avro's binary format."""

START_MS = 1_300_000_000_000
JOB = "job_201103130706_0001"
HOSTS = ("ip-1.internal", "ip-2.internal")

MAPS = [(0, 1, 11), (1, 1, 11), (0, 11, 21), (1, 11, 25)]
"""Maps: the node, the start and the end, s."""

REDUCES = [(0, 5, 27, 28, 35), (1, 5, 28, 30, 35)]
"""Reducers: the node, the start, the ends of shuffle, sort and reduce, s; the last map ends at 25 s."""

MAP_COUNTERS = {"HDFS_BYTES_READ": 1_000_000, "FILE_BYTES_WRITTEN": 400_000, "SPILLED_RECORDS": 10}
REDUCE_COUNTERS = {"REDUCE_SHUFFLE_BYTES": 800_000, "HDFS_BYTES_WRITTEN": 300_000}
CONF = {
    "mapred.tasktracker.map.tasks.maximum": "1",
    "mapred.tasktracker.reduce.tasks.maximum": "1",
    "mapred.compress.map.output": "true",
}


@pytest.fixture(scope="module", autouse=True)
def mapreduce() -> Iterator[Any]:
    """The package as if it were installed."""
    sys.path.insert(0, str(PACKAGE))
    found = import_module("crystalperf_mapreduce")
    frameworks()["mapreduce"] = found.MAPREDUCE
    yield found
    del frameworks()["mapreduce"]
    sys.path.remove(str(PACKAGE))


def ms(seconds: float) -> int:
    """Unix time."""
    return round(START_MS + seconds * 1000)


def text_line(kind: str, **facts: object) -> str:
    """A line of a text history, with Hadoop's escapes."""
    pairs = " ".join(
        f'{key}="{str(value).replace(chr(92), chr(92) * 2).replace(".", chr(92) + ".")}"'
        for key, value in facts.items()
    )
    return f"{kind} {pairs} ."


def text_counters(counters: dict[str, int]) -> str:
    """Counters of a text history."""
    return (
        "{(FileSystemCounters)(FileSystemCounters)" + "".join(f"[({n})({n})({v})]" for n, v in counters.items()) + "}"
    )


def text_history() -> str:
    """The job as Hadoop 0.20 writes it."""
    found = [
        'Meta VERSION="1" .',
        text_line("Job", JOBID=JOB, JOBNAME="word count", USER="u", SUBMIT_TIME=ms(0), JOBCONF="hdfs://a/job.xml"),
        text_line("Job", JOBID=JOB, LAUNCH_TIME=ms(0.5), TOTAL_MAPS=4, TOTAL_REDUCES=2, JOB_STATUS="PREP"),
    ]
    for kind, letter, rows, counters in (("Map", "m", MAPS, MAP_COUNTERS), ("Reduce", "r", REDUCES, REDUCE_COUNTERS)):
        for number, (node, start, *ends) in enumerate(rows):
            task = f"task_{JOB[4:]}_{letter}_{number:06}"
            own = {
                "TASK_TYPE": kind.upper(), "TASKID": task, "TASK_ATTEMPT_ID": f"{task.replace('task', 'attempt')}_0",
            }  # fmt: skip
            tracker = f"tracker_{HOSTS[node]}:localhost/127.0.0.1:4{node}"
            found.append(text_line(f"{kind}Attempt", **own, START_TIME=ms(start), TRACKER_NAME=tracker, HTTP_PORT=1))
            times = dict(
                zip(("SHUFFLE_FINISHED", "SORT_FINISHED", "FINISH_TIME")[-len(ends) :], map(ms, ends), strict=True)
            )
            found.append(text_line(
                f"{kind}Attempt", **own, TASK_STATUS="SUCCESS", **times, HOSTNAME=f"/default-rack/{HOSTS[node]}",
                COUNTERS=text_counters(counters),
            ))  # fmt: skip
    found.append(text_line("Job", JOBID=JOB, FINISH_TIME=ms(36), JOB_STATUS="SUCCESS"))
    return "\n".join(found) + "\n"


def avro_history() -> str:
    """The job as Hadoop 2 and 3 write it, with the CPU time of tasks."""
    space = "org.apache.hadoop.mapreduce.jobhistory"

    def line(kind: str, record: str, **facts: object) -> str:
        return json.dumps({"type": kind, "event": {f"{space}.{record}": facts}}) + "\n"

    def counted(counters: dict[str, int]) -> dict[str, Any]:
        counts = [{"name": name, "displayName": name, "value": value} for name, value in counters.items()]
        return {"name": "COUNTERS", "groups": [{"name": "g", "displayName": "g", "counts": counts}]}

    found = [
        "Avro-Json",
        json.dumps({"type": "record", "name": "Event", "namespace": space, "fields": []}),
        line("JOB_SUBMITTED", "JobSubmitted", jobid=JOB, jobName="word count", submitTime=ms(0)),
        line("JOB_INITED", "JobInited", jobid=JOB, launchTime=ms(0.5), totalMaps=4, totalReduces=2),
    ]
    for number, (node, start, end) in enumerate(MAPS):
        own = {"taskid": f"m{number}", "attemptId": f"attempt_m{number}", "taskType": "MAP"}
        found.append(
            line("MAP_ATTEMPT_STARTED", "TaskAttemptStarted", **own, startTime=ms(start), trackerName=HOSTS[node])
        )
        found.append(line(
            "MAP_ATTEMPT_FINISHED", "MapAttemptFinished", **own, taskStatus="SUCCEEDED", mapFinishTime=ms(end - 2),
            finishTime=ms(end), hostname=HOSTS[node], counters=counted({**MAP_COUNTERS, "CPU_MILLISECONDS": 6000}),
        ))  # fmt: skip
    for number, (node, start, shuffled, in_order, end) in enumerate(REDUCES):
        own = {"taskid": f"r{number}", "attemptId": f"attempt_r{number}", "taskType": "REDUCE"}
        found.append(
            line("REDUCE_ATTEMPT_STARTED", "TaskAttemptStarted", **own, startTime=ms(start), trackerName=HOSTS[node])
        )
        found.append(line(
            "REDUCE_ATTEMPT_FINISHED", "ReduceAttemptFinished", **own, taskStatus="SUCCEEDED", finishTime=ms(end),
            shuffleFinishTime=ms(shuffled), sortFinishTime=ms(in_order), hostname=HOSTS[node],
            counters=counted({**REDUCE_COUNTERS, "CPU_MILLISECONDS": 3000}),
        ))  # fmt: skip
    own = {"taskid": "m0", "attemptId": "attempt_m0_1", "taskType": "MAP"}
    found.append(line("MAP_ATTEMPT_STARTED", "TaskAttemptStarted", **own, startTime=ms(21), trackerName=HOSTS[0]))
    found.append(line(
        "MAP_ATTEMPT_KILLED", "TaskAttemptUnsuccessfulCompletion", **own, finishTime=ms(22), status="KILLED",
        hostname=HOSTS[0], error="speculative", counters=None,
    ))  # fmt: skip
    found.append(line("JOB_FINISHED", "JobFinished", jobid=JOB, finishTime=ms(36)))
    return "\n".join(found)


def written(folder: Path, history: str = "", conf: bool = True) -> Path:
    """A folder with a history and the configuration of its job."""
    (folder / f"ip-1_{JOB}_u_word+count").write_text(history or text_history(), encoding="utf-8")
    if conf:
        body = "".join(f"<property><name>{k}</name><value>{v}</value></property>\n" for k, v in CONF.items())
        xml = f'<?xml version="1.0"?><configuration>\n{body}</configuration>\n'
        (folder / f"ip-1_{JOB}_conf.xml").write_text(xml, encoding="utf-8")
    return folder


def read(folder: Path) -> Any:
    """The trace of the only job in a folder."""
    (application,) = discover([folder]).applications
    return import_module("crystalperf_mapreduce.trace").of_log(application.log)


def test_imports_only_the_plugin_interface() -> None:
    texts = [each.read_text(encoding="utf-8") for each in sorted((PACKAGE / "crystalperf_mapreduce").glob("*.py"))]
    imported = {line.split()[1] for text in texts for line in text.split("\n") if line.startswith(("from ", "import "))}
    ours = ("query", "indexes", "indexer", "cli", "crystalperf")
    assert {each for each in imported if each.partition(".")[0] in ours} == {"crystalperf.plugin"}


def test_a_history_and_its_configuration_are_one_run(tmp_path: Path) -> None:
    trace = read(written(tmp_path))
    assert validate(trace) == []
    assert trace.run["app_id"] == JOB
    assert trace.run["duration_ms"] == 36_000
    assert trace.run["properties"]["mapred.compress.map.output"] == "true"
    assert trace.workers["slots"].tolist() == [1, 1]
    assert trace.stages["name"].tolist() == ["map", "reduce"]
    assert trace.stages["task_count"].tolist() == [4, 2]
    assert list(trace.problems) == []


def test_reducers_count_from_the_end_of_the_last_map(tmp_path: Path) -> None:
    trace = read(written(tmp_path))
    assert trace.tasks["launch_ms"].tolist()[4:] == [25_000, 25_000]
    names = [*trace.names, "other"]
    likely = trace.bounds.likely_ms[4:]
    assert likely[:, names.index("net")].tolist() == [2000, 3000]
    assert likely[:, names.index("disk")].tolist() == [1000, 2000]
    phases = trace.raw["mapreduce_phases"]
    assert phases["phase"].tolist()[4:8] == ["wait", "shuffle", "sort", "reduce"]
    assert phases["end_ms"].tolist()[4:8] == [25_000, 27_000, 28_000, 35_000]


def test_bytes_of_a_shuffle_that_stay_on_a_node_use_no_network(tmp_path: Path) -> None:
    trace = read(written(tmp_path))
    assert trace.tasks["remote_read_bytes"].tolist()[4:] == [400_000, 400_000]
    assert trace.tasks["local_read_bytes"].tolist()[4:] == [400_000, 400_000]
    assert trace.tasks["input_bytes"].tolist()[:4] == [1_000_000] * 4
    assert trace.tasks["exchange_write_bytes"].tolist()[:4] == [400_000] * 4


def test_the_other_format_has_the_same_job_and_its_cpu_time(tmp_path: Path) -> None:
    trace = read(written(tmp_path, avro_history(), conf=False))
    assert validate(trace) == []
    assert trace.stages["task_count"].tolist() == [5, 2]
    assert trace.tasks["status"].tolist().count("killed") == 1
    assert trace.bounds.floor_ms[0, trace.names.index("cpu")] == 6000
    assert trace.bounds.likely_ms[0, trace.names.index("disk")] == 2000  # from the end of the map function
    assert [each.name for each in trace.problems] == ["slots unknown"]
    assert trace.workers["slots"].tolist() == [1, 1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("setting", "runtime_s"),
    [
        ({"tasks": "1"}, 46),  # one reducer does the work of both, 20 s instead of 10
        ({"tasks": "4"}, 36),  # four on two slots
        ({"cores": "2x"}, 26),  # maps end after 15 s, with a second each on the way
        ({"tasks.map": "8"}, 34),  # maps of 5 and 7 s fill both slots for 22 s
    ],
)
def test_reducers_and_slots_change_the_phases(setting: dict[str, str], runtime_s: float, tmp_path: Path) -> None:
    predicted = cp.profile([written(tmp_path)], output=tmp_path / "run.duckdb").predict(**setting)
    assert predicted.replayed_ms == pytest.approx(36_000, abs=1)
    assert predicted.predicted_ms == pytest.approx(runtime_s * 1000, abs=1)


@pytest.mark.few(2)
def test_phases_are_a_table_for_sql(tmp_path: Path) -> None:
    run = cp.profile([written(tmp_path)], output=tmp_path / "run.duckdb")
    rows = run.sql("SELECT phase, sum(end_ms - start_ms) FROM mapreduce_phases GROUP BY phase ORDER BY phase").rows
    assert [tuple(each) for each in rows] == [
        ("map", 44_000), ("reduce", 12_000), ("shuffle", 5000), ("sort", 3000), ("wait", 40_000),
    ]  # fmt: skip


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    history = text_history().replace(f'FINISH_TIME="{ms(21)}"', 'FINISH_TIME="x"')
    trace = read(written(tmp_path, history))
    assert {each.name for each in trace.problems} == {"damaged line", "attempt without end"}
    assert trace.stages["task_count"].tolist() == [3, 2]


def test_a_configuration_alone_is_left_out(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "ip-1_job_201103130706_0002_conf.xml").write_bytes((tmp_path / f"ip-1_{JOB}_conf.xml").read_bytes())
    found = discover([tmp_path])
    assert len(found.applications) == 1
    assert [each.name for each in found.problems] == ["configuration alone"]


def test_damaged_configuration_is_a_problem(tmp_path: Path) -> None:
    conf = written(tmp_path) / f"ip-1_{JOB}_conf.xml"
    conf.write_bytes(conf.read_bytes()[:-20])
    assert {each.name for each in read(tmp_path).problems} == {"damaged configuration", "slots unknown"}


def test_a_history_without_attempts_is_one_sentence(tmp_path: Path) -> None:
    history = "\n".join(text_history().split("\n")[:3])
    with refused(InputError, tmp_path, "attempt"):
        read(written(tmp_path, history))


def test_lines_of_another_kind_leave_a_job_unchanged() -> None:
    history = import_module("crystalperf_mapreduce.history")
    job = history.Job()
    history._text(job, 'Task TASKID="t" TASK_TYPE="SETUP" .')
    history._avro(job, "AM_STARTED", {"startTime": 1})
    assert job == history.Job()
    assert list(Problems()) == []


def test_a_real_history_of_hadoop_3(tmp_path: Path) -> None:
    trace = import_module("crystalperf_mapreduce.trace").of_log(discover([RECORDED]).applications[0].log)
    assert validate(trace) == []
    assert trace.run["name"] == "word count"
    assert trace.stages["task_count"].tolist() == [7, 1]
    assert trace.tasks["status"].tolist().count("killed") == 1
    assert trace.bounds.floor_ms[:, trace.names.index("cpu")].tolist() == [2050, 1900, 2060, 2160, 2060, 2240, 0, 6350]
    assert trace.bounds.likely_ms[:, trace.names.index("net")].sum() == 0  # one node has all map outputs
    assert trace.workers["slots"].tolist() == [6]


def test_a_binary_history_cut_short_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "cut.jhist"
    path.write_bytes(gzip.decompress(RECORDED.read_bytes())[:20_000])
    trace = import_module("crystalperf_mapreduce.trace").of_log(discover([path]).applications[0].log)
    assert 0 < len(trace.tasks["task_id"]) < 8
    assert "damaged history" in {each.name for each in trace.problems}
