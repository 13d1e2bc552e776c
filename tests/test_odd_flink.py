"""Flink inputs that were answered wrongly, streams at their limit, and recordings that name no TaskManager.

tests/data/odd/flink has small pages, each made after a public report; variants are made of them and of recorded jobs.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.cli.setup import setup
from crystalperf.indexes.errors import InputError
from crystalperf.query.attribution.code.libraries import IndexMatch, stand_ins
from crystalperf.query.attribution.samples.which_worker import UNNAMED, worker_of
from crystalperf.query.execution.stream import Hop
from crystalperf.query.frameworks.flink.remarks import KeptUp, UnknownLoad
from crystalperf.query.frameworks.flink.timeout import TIMEOUT_MS, due
from crystalperf.query.frameworks.registry import get
from crystalperf.query.recordings import collapsed, flame_graph
from crystalperf.query.results.recommendations import RaiseParallelism
from crystalperf.query.text.answers import recordings_sentence, samples_sentence, stream_sentences
from crystalperf.query.trace.records import Problems
from tests.hand_made import figures
from tests.reading import rows
from tests.refusals import refused

Answer = Callable[..., tuple[int, str, str]]

DATA = Path(__file__).parent / "data/flink"
ODD = Path(__file__).parent / "data/odd/flink"
ADS = Path(__file__).parents[1] / "lab/recordings/sweeps/flink/011-ads-0"


def page(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ODD / "f02_metrics_incomplete.json").read_text())
    return {**found, **changes}


def written(path: Path, found: dict[str, Any]) -> Path:
    path.write_text(json.dumps(found))
    return path


# Pages ------------------------------------------------------------------------------------------------------------


def test_figures_that_flink_calls_incomplete_are_unknown() -> None:
    run = cp.profile(ODD / "f02_metrics_incomplete.json")
    assert run.debug().unbounded == UnknownLoad()
    columns = "busy_ms, idle_ms, backpressured_ms, read_bytes, written_records"
    assert rows(run, f"SELECT DISTINCT {columns} FROM flink_subtasks") == [(None,) * 5]


def test_complete_figures_count_even_if_records_are_incomplete(tmp_path: Path) -> None:
    found = page()
    for each in found["vertices"]:
        each["metrics"] |= {"accumulated-busy-time": 60_000, "accumulated-idle-time": 60_000, "read-records": 7}
    run = cp.profile(written(tmp_path / "page.json", found))
    assert isinstance(run.debug().unbounded, KeptUp)
    assert rows(run, "SELECT DISTINCT read_records FROM flink_subtasks") == [(None,)]


def test_zeros_without_any_time_are_unknown_even_if_called_complete(tmp_path: Path) -> None:
    found = page()
    for each in found["vertices"]:
        each["metrics"] = {key: True if key.endswith("complete") else 0 for key in each["metrics"]}
    assert cp.profile(written(tmp_path / "page.json", found)).debug().unbounded == UnknownLoad()


@pytest.mark.parametrize("state", ["RUNNING", "CREATED", "INITIALIZING", "RESTARTING"])
def test_a_page_without_vertices_says_nothing(tmp_path: Path, state: str) -> None:
    found = json.loads((ODD / "f07_no_vertices.json").read_text())
    with refused(InputError, "no vertices"):
        cp.profile(written(tmp_path / "page.json", {**found, "state": state}))


def test_a_job_that_failed_before_it_had_vertices_says_that_it_failed(tmp_path: Path) -> None:
    found = {**json.loads((ODD / "f07_no_vertices.json").read_text()), "state": "FAILED"}
    outcome = cp.profile(written(tmp_path / "page.json", found)).debug().outcome
    assert outcome is not None
    assert outcome.status == "failed"


# Flame graphs -----------------------------------------------------------------------------------------------------


def test_a_flame_graph_is_read_next_to_its_job() -> None:
    run = cp.profile([ODD / "f02_metrics_incomplete.json", ODD / "f12_flamegraph.json"])
    assert run.header().has_samples
    assert rows(run, "SELECT count(DISTINCT task_id) FROM samples") == [(4,)]


def test_stacks_of_a_flame_graph_have_the_samples_that_their_children_have_not(tmp_path: Path) -> None:
    def node(name: str, value: int, *children: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "value": value, "children": list(children)}

    root = node("root", 10, node("a.B.run:1", 10, node("c.D.read:2", 6), node("c.D.write:3", 3)))
    path = written(tmp_path / "graph.json", {"endTimestamp": 1, "data": root})
    found = flame_graph.read(str(path), Problems())
    assert found is not None
    assert dict(found) == {("a.B.run:1",): 1, ("a.B.run:1", "c.D.read:2"): 6, ("a.B.run:1", "c.D.write:3"): 3}
    assert collapsed.read(str(path), Problems()).weight.sum() == 10
    path.write_text('{"endTimestamp": 1, "data": {"name": "root", "value"')
    with refused(InputError, "flame graph"):
        flame_graph.read(str(path), Problems())


# Recordings -------------------------------------------------------------------------------------------------------


def of_ads(folder: Path, worker: str) -> list[Path]:
    """The recorded job with another name of its TaskManager tm1, and its recordings."""
    made = []
    for path in (ADS / "collected").iterdir():
        read, write = (gzip.open, gzip.open) if path.suffix == ".gz" else (open, open)
        with read(path, "rt", encoding="utf-8") as stored:
            text = stored.read().replace("tm1", worker)
        with write(folder / path.name, "wt", encoding="utf-8") as target:
            target.write(text)
        made.append(folder / path.name)
    return [*made, *(ADS / "recordings").iterdir()]


@pytest.mark.later
def test_a_recording_without_its_taskmanagers_name_is_matched_by_the_threads_of_its_subtasks(tmp_path: Path) -> None:
    run = cp.profile(of_ads(tmp_path, "10.0.0.5:33111-ab12cd"))
    question = "SELECT count(DISTINCT worker_id) FROM samples WHERE task_id IS NOT NULL"
    assert rows(run, question) == [(2,)]
    assert recordings_sentence(run.header(), run.debug()) == ""


def recorded(*names: str, arguments: str | None = "", frame: str = "org.apache.flink.runtime.taskmanager.Task") -> Any:
    """A recording with threads of these names, and one frame."""
    threads = [SimpleNamespace(java_name=each, os_name="") for each in names]
    number = np.zeros(1, np.int32)
    frames = SimpleNamespace(class_id=number, method_id=number, class_names=(frame,), method_names=("run",))
    jvm = None if arguments is None else SimpleNamespace(java_arguments=arguments, pid=1)
    return SimpleNamespace(threads=threads, jvm=jvm, frames=frames)


def trace_of(ids: dict[str, str], added_ms: list[float], ran: list[str], threads: tuple[str, ...] = ()) -> Any:
    """A run of workers by host, added at these times; `ran` are the workers of its tasks."""
    workers = {"worker_id": list(ids), "host": list(ids.values()), "kind": ["worker"] * len(ids), "added_ms": added_ms}
    return SimpleNamespace(workers=workers, tasks={"worker_id": np.array(ran, dtype=object)}, task_threads=threads)


def test_a_worker_is_found_by_the_threads_of_its_tasks() -> None:
    subtasks = ("Map (1/3)#0", "Map (2/3)#0", "Map (3/3)#0")
    trace = trace_of({"a": "h", "b": "h"}, [0, 0], ["a", "b", "b"], subtasks)
    flink: Any = get("flink")

    def of(named: str, *names: str) -> str | None:
        return worker_of(named, "x.jfr", recorded(*names), trace, flink, 0.0)

    assert of("b") == "b"
    assert of(UNNAMED, "main", "Map (3/3)#0") == "b"
    assert of("other", "Source Data Fetcher for Map (1/3)#0") == "a"
    assert of(UNNAMED, *subtasks[:2]) is None, "one subtask of each"
    assert of(UNNAMED, "main") is None
    assert of("other", "main") is None, "the archive names no such TaskManager"
    assert of("jobmanager", "main") == "jobmanager"


@pytest.mark.parametrize("framework", ["flink", "spark"])
def test_a_worker_is_found_by_its_name_host_port_or_start(framework: str) -> None:
    ids = {"10.0.0.5:33111-ab12": "10.0.0.5", "10.0.0.5:33222-cd34": "10.0.0.5", "node-3:1-ef": "node-3.example"}
    trace = trace_of(ids, [0.0, 90_000.0, 0.0], list(ids))
    first, second, third = ids

    def of(arguments: str, start_ms: float = 0.0, name: str = "x.jfr", taken: tuple[str, ...] = ()) -> str | None:
        return worker_of(UNNAMED, name, recorded(arguments=arguments), trace, get(framework), start_ms, taken)  # type: ignore[arg-type]

    runner = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
    assert of(f"{runner} -D taskmanager.host=10.0.0.5 -D taskmanager.rpc.port=33222") == second
    assert of(f"{runner} -D taskmanager.host=10.0.0.5", 88_000.0) == second
    assert of(f"{runner} -D taskmanager.host=10.0.0.5", -500.0) == first
    assert of(f"{runner} -D taskmanager.host=10.0.0.5", float("nan")) is None
    assert of(f"{runner} -D jobmanager.rpc.address=node-3", float("nan")) is None
    assert of(runner, float("nan"), "taskmanager-node-3.jfr") == third
    assert of(runner, float("nan"), f"taskmanager-{first}.jfr") == first
    assert of(runner, float("nan"), taken=(first, second)) == third


def test_a_damaged_recording_is_of_a_worker_only_if_it_shows_a_task() -> None:
    trace, spark = trace_of({"0": "h"}, [0.0], ["0"]), get("spark")
    task = "org.apache.spark.executor.Executor$TaskRunner"
    lost = recorded(arguments=None, frame=task)
    assert worker_of(UNNAMED, "x.jfr", lost, trace, spark, 0.0) == "0"  # type: ignore[arg-type]
    assert worker_of(UNNAMED, "x.jfr", recorded(arguments=None), trace, spark, 0.0) is None  # type: ignore[arg-type]
    assert worker_of("7", "x.jfr", lost, trace, spark, 0.0) is None  # type: ignore[arg-type]


def test_recordings_of_another_job_are_said_first(tmp_path: Path) -> None:
    shutil.copy(DATA / "join-and-sort.json.gz", tmp_path)
    recording = next((ADS / "recordings").glob("*tm1*"))
    run = cp.profile([tmp_path / "join-and-sort.json.gz", recording])
    header, debug = run.header(), run.debug()
    assert "recording" in recordings_sentence(header, debug).lower()
    assert samples_sentence(header, debug) == ""


# Streams ----------------------------------------------------------------------------------------------------------


def stream_of(name: str) -> cp.Run:
    return cp.profile([DATA / f"{name}.json.gz", DATA / f"{name}.series.gz"])


def test_a_stream_at_its_limit_is_recommended_more_subtasks_first() -> None:
    verdict = stream_of("slow-sink").verdict()
    first = verdict.recommendations[0]
    assert isinstance(first, RaiseParallelism)
    assert (first.stage, first.before, first.after) == ("vertex:3", 2, 4)
    assert first.rate_per_s == pytest.approx((1_410, 2_820), rel=0.01)
    assert verdict.next.facts != {"setting": "rate=1.5x,2x,4x"}


def test_skew_names_the_subtask_and_its_share() -> None:
    run = stream_of("skew-8000")
    (sentence,) = stream_sentences(run.debug(), run.header().resources)
    assert figures(sentence)[-4:] == [2, 2, 2, 83]  # subtask 2 of 2 of vertex:2
    stations = run.debug().stream.stations  # type: ignore[union-attr]
    assert max(each.heaviest_share for each in stations) == pytest.approx(0.83, abs=0.02)


def test_a_channel_without_traffic_does_not_lengthen_the_timeout() -> None:
    hop = Hop("a", "b", 4, 400.0, 4_000.0, 20.0, 0.5, 0.0)
    assert hop.counted_due_ms == pytest.approx(200, rel=0.02)
    silent = Hop("a", "b", 4, 400.0, 4_000.0, 20.0, 0.5, 0.0, silent=2)
    assert due(silent, None, at_limit=False).due_ms == TIMEOUT_MS
    assert due(hop, 100.0, at_limit=False).due_ms <= 100.0


# Settings ---------------------------------------------------------------------------------------------------------


def test_operators_and_vertices_have_the_same_names() -> None:
    run = cp.profile(DATA / "join-and-sort.json.gz")
    whole = run.predict(["parallelism.vertex:2=8"]).predicted_ms
    assert run.predict(["parallelism.HashJoin=8"]).predicted_ms == whole
    assert run.predict(["parallelism.Calc[7]=8"]).predicted_ms == whole


def test_an_index_of_a_version_is_not_another_version() -> None:
    fits = [
        IndexMatch("flink-1.20", "flink-1.20.3", "framework", False),
        IndexMatch("flink-1.2", "flink-1.20.3", "framework", False),
        IndexMatch("jdk-8", "jdk-17", "jdk", False),
    ]
    assert stand_ins(fits) == ["flink-1.20.3 for flink-1.2", "jdk-17 for jdk-8"]


def test_setup_makes_the_folder_of_recordings(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    assert setup("flink", str(folder), "", "", as_json=False) == 0
    assert folder.is_dir()
    assert setup("pytorch", str(tmp_path / "other"), "", "", as_json=False) == 0
    assert not (tmp_path / "other").exists()


def test_settings_after_set_are_all_taken(crystalperf: Answer, tmp_path: Path) -> None:
    run = tmp_path / "run.duckdb"
    shutil.copy(stream_of("slow-sink").path, run)
    _, out, _ = crystalperf("predict", run, "--set", "rate=0.5x", "parallelism=4", "--json")
    assert json.loads(out)["setting"] == "rate=0.5x, parallelism=4"


def test_a_question_without_effect_says_why(crystalperf: Answer, tmp_path: Path) -> None:
    run = tmp_path / "run.duckdb"
    shutil.copy(cp.profile(DATA / "join-and-sort.json.gz").path, run)
    _, out, _ = crystalperf("predict", run, "--set", "parallelism.Sort=2")
    assert "vertex:4" in out.partition("Check")[0]
