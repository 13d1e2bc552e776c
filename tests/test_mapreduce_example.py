"""A framework with phases in a task: job histories of Hadoop MapReduce, read through a plugin.

Most histories are made here, as Hadoop writes them: those of public reruns may not be copied.  RECORDED is of a real
run of Hadoop 3.4.1 (examples/mapreduce-framework/record), with the names of its folders replaced.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import crystalperf as cp
from crystalperf.plugin import InputError, Problems, validate
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.discover import discover
from crystalperf.query.predict import registry
from crystalperf.query.text.as_json import as_json
from crystalperf.query.trace import plugins
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


# Starfish's model -----------------------------------------------------------------------------------------------------

MAP_PROFILE: dict[str, dict[str, float]] = {
    "counter": {"MAP_INPUT_BYTES": 1000, "HDFS_BYTES_READ": 1000, "MAP_OUTPUT_RECORDS": 100, "MAP_OUTPUT_BYTES": 2000},
    "statistic": {"INPUT_PAIR_WIDTH": 10, "MAP_SIZE_SEL": 2, "MAP_PAIRS_SEL": 1},
    "cost_factor": {
        "READ_HDFS_IO_COST": 1e6, "MAP_CPU_COST": 2e7, "PARTITION_CPU_COST": 1e7, "SERDE_CPU_COST": 2e7,
        "SORT_CPU_COST": 1e6, "WRITE_LOCAL_IO_COST": 1e6,
    },
    "timing": {"SETUP": 5},
}  # fmt: skip
"""A map of 1000 bytes in 100 records, which gives 2000 bytes; costs in ns a byte or a record."""

REDUCE_PROFILE: dict[str, dict[str, float]] = {
    "counter": {},
    "statistic": {"REDUCE_SIZE_SEL": 0.5},
    "cost_factor": {
        "NETWORK_COST": 1e6, "MERGE_CPU_COST": 1e6, "WRITE_LOCAL_IO_COST": 1e6, "READ_LOCAL_IO_COST": 5e5,
        "REDUCE_CPU_COST": 1e7, "WRITE_HDFS_IO_COST": 2e6,
    },
    "timing": {"CLEANUP": 7},
}  # fmt: skip


def profile_xml(job: str = JOB, maps: int = 4) -> str:
    """A profile as Starfish's profiler writes it."""
    found = [f'<?xml version="1.0"?>\n<job_profile id="{job}" num_mappers="{maps}" num_reducers="1">']
    for name, tasks, values in (("map", maps, MAP_PROFILE), ("reduce", 1, REDUCE_PROFILE)):
        found.append(f'<{name}_profile id="average" num_tasks="{tasks}">')
        found += [f'<{kind} key="{key}" value="{value}"/>' for kind, of in values.items() for key, value in of.items()]
        found.append(f"</{name}_profile>")
    return "\n".join([*found, "</job_profile>"])


@pytest.fixture
def job() -> Any:
    return import_module("crystalperf_mapreduce.starfish_job")


@pytest.fixture
def model() -> Any:
    return import_module("crystalperf_mapreduce.starfish")


def profile(job: Any, maps: int = 4) -> Any:
    return job.profile_of(job.profile_json(ElementTree.fromstring(profile_xml(maps=maps))))


def test_phases_are_the_costs_of_what_a_map_and_a_reducer_do(job: Any, model: Any) -> None:
    (of_map,), of_reducer = profile(job).maps, profile(job).reducers
    found = model.mapped(of_map, model.Settings(), 1000)
    assert found.phases == pytest.approx({
        "setup": 5, "read": 1000, "map": 2000, "collect": 3000, "spill": 100 * math.log(100) + 2000, "merge": 0,
        "cleanup": 0,
    })  # fmt: skip
    assert (found.left_bytes, found.left_records) == (2000, 100)
    found = model.reduced(of_reducer, model.Settings(), 1, 2000, 100)
    assert found == pytest.approx({
        "shuffle": 2000, "sort": 100 + 2000, "setup": 0, "reduce": 1000 + 1000, "write": 2000, "cleanup": 7,
    })  # fmt: skip


def test_a_smaller_sort_buffer_spills_more_and_merges(job: Any, model: Any) -> None:
    (of_map,) = profile(job).maps
    conf = model.Settings(sort_mb=1, record_share=0.001, spill_share=0.4, factor=3)  # 26 records of 16 bytes
    spills = model.spilled(of_map, conf, 2000, 100)
    assert (spills.count, spills.records, spills.size) == (4, 25, 500)
    merge = model.final_merge(of_map, conf, spills, 2000, 100)
    assert (merge.read, merge.written, merge.records) == (3000, 3000, 150)  # two files into one, then three


@pytest.mark.parametrize(("files", "first", "merged"), [(10, 10, 0), (11, 2, 2), (12, 3, 3), (19, 10, 10), (20, 2, 12)])
def test_the_first_merge_leaves_later_ones_full(files: int, first: int, merged: int, model: Any) -> None:
    assert model.first_merge(files, 10) == first
    merge = model.simulated([(10, 1)] * files, 10)
    assert (merge.read, merge.written, merge.spilled) == (10 * merged, 10 * merged, merged)


def test_compression_costs_time_and_saves_bytes(job: Any, model: Any) -> None:
    (of_map,) = profile(job).maps
    plain, packed = (model.mapped(of_map, model.Settings(compresses_maps=each), 1000) for each in (False, True))
    assert packed.left_bytes == 0.3 * plain.left_bytes
    assert plain.phases["spill"] - packed.phases["spill"] == pytest.approx(1400 - 2000 * 150 / 1e6)


def test_tasks_run_on_slots_in_waves(job: Any, model: Any) -> None:
    conf = model.Settings()
    of_map = sum(model.mapped(profile(job).maps[0], conf, 1000).phases.values())
    of_reducer = model.reduced(profile(job).reducers, conf, 4, 8000, 400)
    wave, setup = 1500 + int(of_map + 1500), 1500 + 3000
    after = int(of_reducer["sort"]) + int(sum(of_reducer.values()) - of_reducer["sort"] - of_reducer["shuffle"] + 1500)
    assert job.runtime_ms(profile(job), conf, (1, 1)) == (
        setup + 4 * wave + int(of_reducer["shuffle"] / 4) + after + setup + 3000
    )  # a reducer copies while maps run, except what the last one leaves
    assert job.runtime_ms(profile(job), conf, (4, 1)) == (
        setup + wave + 1500 + int(of_reducer["shuffle"]) + after + setup + 3000
    )


def test_settings_have_hadoops_names_and_defaults(job: Any, model: Any) -> None:
    assert job.settings_of({}) == model.Settings()
    found = job.settings_of({
        "mapred.reduce.tasks": "7", "io.sort.record.percent": "0.3", "mapred.compress.map.output": "true",
        "mapreduce.combine.class": "C", "mapred.child.java.opts": "-server -Xmx300m",
    })  # fmt: skip
    assert (found.reducers, found.record_share, found.compresses_maps, found.combines) == (7, 0.3, True, True)
    assert found.heap_bytes == 300 << 20


@pytest.fixture
def by_name(job: Any) -> Iterator[None]:
    """The predictor as if its package were installed."""
    found = dict(plugins.entries("predictors"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entries", lambda _group: found | {"starfish": job.STARFISH})
        yield


@pytest.mark.usefixtures("by_name")
def test_starfish_is_a_predictor_of_runs_with_a_profile(job: Any, model: Any, tmp_path: Path) -> None:
    written(tmp_path)
    for name, maps in (("profile", 99), ("adj_profile", 4)):  # Starfish's own adjusts costs for compression
        (tmp_path / f"{name}_{JOB}.xml").write_text(profile_xml(maps=maps), encoding="utf-8")
    run = cp.profile([tmp_path], output=tmp_path / "run.duckdb")
    conf = model.Settings(compresses_maps=True)
    for setting, expected in (
        ({"tasks": "4"}, job.runtime_ms(profile(job), replace(conf, reducers=2), (2, 2))),
        ({"cores": "2x"}, job.runtime_ms(profile(job), conf, (4, 4))),
        ({"input": "2x"}, job.runtime_ms(profile(job, maps=8), conf, (2, 2))),
    ):
        assert run.predict(**setting, predictor="starfish").predicted_ms == expected
    assert "no term" in str(as_json(run.predict(network="2x", predictor="starfish")))


@pytest.mark.usefixtures("by_name")
def test_starfish_without_a_profile_says_what_it_needs(tmp_path: Path) -> None:
    run = cp.profile([written(tmp_path)], output=tmp_path / "run.duckdb")
    answer = run.predict(tasks="4", predictor="starfish")
    assert answer.predicted_ms is None
    assert "needs the profile of the job" in str(as_json(answer))


def test_a_profile_of_another_job_is_left_out(tmp_path: Path) -> None:
    (written(tmp_path) / "profile_job_1_2.xml").write_text(profile_xml("job_1_2"), encoding="utf-8")
    assert [each.name for each in discover([tmp_path]).problems] == ["configuration alone"]


@pytest.mark.skipif(not os.environ.get("STARFISH"), reason="STARFISH names no clone of its repository")
def test_starfishs_own_tests_have_the_same_estimates() -> None:
    done = subprocess.run([sys.executable, PACKAGE / "check.py", os.environ["STARFISH"]], env=os.environ | {
        "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(PACKAGE.parent.parent)])
    }, check=False)  # fmt: skip
    assert done.returncode == 0
