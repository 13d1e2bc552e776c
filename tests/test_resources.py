"""A run that brings a resource of its own: from its reader's rows to what a faster one would gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pytest

from crystalperf import indexes
from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.resources import Resource, known, resources, with_other
from crystalperf.indexes.schema import EACH, table, tables
from crystalperf.query.attribution.code.decide import NumberedStacks, _vector, add_frames, decide
from crystalperf.query.attribution.code.resolve import attached
from crystalperf.query.execution.evidence import Evidence
from crystalperf.query.execution.execution import DriverTime, Execution
from crystalperf.query.execution.load import run_resources
from crystalperf.query.execution.scenario import (
    Scenario,
    Setting,
    combinations,
    parse_settings,
    scenario_of,
    settings_of,
)
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.predict.estimate import predict
from crystalperf.query.results.answers import Prediction
from crystalperf.query.run import Run
from crystalperf.query.runfile.pipeline import gather, write_run
from crystalperf.query.simulate.effects import baseline_state, device_speed
from crystalperf.query.trace.contract import Stage, Task, Trace, Worker, of_rows
from crystalperf.query.trace.records import Problems
from tests.refusals import refused
from tests.small_indexes import small_index
from tests.test_pipelines import TOY
from tests.test_predict import execution

GPU = Resource("gpu", "GPU", "gpu_speed", "speed", "nobody")
NAMES = (*resources(), "gpu")


def trace(**run: object) -> Trace:
    """Two workers of one slot; each runs a task of 8 ms: 2 on the CPU, 5 on the GPU, 1 nobody knows on what."""
    tasks = [
        Task(number, "op:0", f"w{number}", 1, 9, host=f"h{number}", measured_ms={"cpu": 2, "gpu": 5})
        for number in range(2)
    ]
    return of_rows(
        {"app_id": "run-1", "framework": "toy", "started_at_ms": 0, "duration_ms": 10.0, **run},
        [Worker(f"w{number}", 1, host=f"h{number}") for number in range(2)],
        [Stage("op:0", 2, 1, 9, name="train")],
        tasks,
        more_resources=[GPU],
    )


# Tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stages", "tasks", "operator_times", "nodes"])
def test_column_of_an_added_resource_comes_after_the_built_in_ones(name: str) -> None:
    columns = table("run", name, NAMES).columns
    found = [each for each in columns if each.name in [f"{one}_ms" for one in with_other(NAMES)]]
    assert [each.name for each in found] == ["cpu_ms", "disk_ms", "net_ms", "gpu_ms", "other_ms"]
    assert "gpu" in found[3].comment
    assert found[3].comment == found[0].comment.replace("cpu", "gpu")
    assert found[3].type == found[0].type


def test_no_column_is_left_unnamed_and_none_is_there_twice() -> None:
    for kind in ("index", "run"):
        for each in tables(kind, NAMES):  # type: ignore[arg-type]
            names = [column.name for column in each.columns]
            assert len(set(names)) == len(names)
            assert not [column for column in each.columns if EACH in column.name]
    assert {"gpu", "code_gpu", "doc_gpu"} <= {column.name for column in table("index", "functions", NAMES).columns}
    assert not {"gpu"} & {column.name for column in table("index", "functions").columns}


def test_rows_of_a_resource_come_back_as_they_went_in(tmp_path: Path) -> None:
    own = Resource("hbm", "memory bus", "hbm", "bytes per second", "worker", 64, 0.5, 1e9, ("input_bytes",))
    given = of_rows(
        {"app_id": "a", "framework": "toy", "started_at_ms": 0, "duration_ms": 1.0},
        [],
        [],
        [],
        more_resources=[GPU, own],
    )
    assert given.names == ("cpu", "disk", "net", "gpu", "hbm")
    with indexes.create(tmp_path / "run.duckdb", "run", {}, given.names) as connection:
        found = given.tables()["resources"]
        for row in zip(*(values.tolist() for values in found.values()), strict=True):
            connection.execute(f"INSERT INTO resources ({', '.join(found)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        assert run_resources(connection) == (*known(), GPU, own)


# Settings -------------------------------------------------------------------------------------------------------------


def test_its_speed_can_be_asked_for() -> None:
    settings = settings_of((*known(), GPU))
    assert list(settings)[:7] == ["workers", "cores", "cpu_speed", "disk", "network", "gpu_speed", "memory"]
    assert settings["gpu_speed"] == Setting("speed", "GPU speed")
    assert parse_settings(["gpu_speed=1.5x"], settings, {}, lists=False)["gpu_speed"][0].ratio == 1.5
    with refused(SettingError, "gpu_speed=1.5x"):
        parse_settings(["gpu_speed=3"], settings, {}, lists=False)
    with refused(SettingError, "gpu_speed"):
        parse_settings(["gpu_speed=2x"], settings_of(known()), {}, lists=False)


def on_gpu(rows: list[tuple[float, float]], parts: list[list[float]], resource: Resource = GPU) -> Execution:
    """A run on one slot, of tasks whose parts are on CPU, disk, network, GPU and nothing known."""
    run = execution(rows, (1, 0, 0, 0))
    unsure = Evidence(np.zeros(4), np.zeros(4), 0.0)
    tasks = replace(run.tasks, parts_ms=np.array(parts, dtype=np.float64))
    driver = DriverTime(np.zeros(0), np.zeros(0), np.zeros((0, 5)))
    return replace(
        run,
        words=replace(run.words, resources=(*known(), resource)),
        tasks=tasks,
        evidence=unsure,
        driver=driver,
    )


def scenario(run: Execution, setting: str) -> Scenario:
    (changes,) = combinations(parse_settings([setting], settings_of(run.resources), {}, lists=False))
    return scenario_of(changes, run.recorded)


def test_faster_resource_shortens_only_its_own_time() -> None:
    run = on_gpu([(0, 8), (8, 16)], [[2, 0, 0, 4, 2], [1, 1, 0, 6, 0]])
    state = device_speed.apply(baseline_state(run), scenario(run, "gpu_speed=2x"))
    assert state.parts_ms.tolist() == [[2, 0, 0, 2, 2], [1, 1, 0, 3, 0]]
    assert run.tasks.parts_ms.tolist() == [[2, 0, 0, 4, 2], [1, 1, 0, 6, 0]]
    assert state.dag == run.dag


@pytest.mark.parametrize(("shared_by", "predicted_ms"), [("nobody", 8), ("worker", 16), ("host", 16)])
def test_tasks_that_share_a_resource_gain_nothing_from_concurrency(
    shared_by: Literal["nobody", "worker", "host"], predicted_ms: float
) -> None:
    run = on_gpu([(0, 8), (8, 16)], [[0, 0, 0, 8, 0]] * 2, replace(GPU, shared_by=shared_by))
    answer = predict(run, scenario(run, "cores=2x"))
    assert answer.predicted_ms == pytest.approx(predicted_ms, rel=0.03)


# Indexes --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A run with the resource, and an index that knows nothing of it."""
    small_index("scala-1", tmp_path / "scala-1.duckdb")
    with indexes.create(tmp_path / "run.duckdb", "run", {}, NAMES) as connection:
        indexes.attach(connection, tmp_path / "scala-1.duckdb", "index", "scala_index")
        yield connection
        connection.execute("DETACH scala_index")


def test_functions_have_no_share_of_a_resource_unknown_to_their_index(connection: duckdb.DuckDBPyConnection) -> None:
    shares = connection.execute(f"SELECT {_vector(NAMES)} FROM scala_index.functions").fetchnumpy()
    assert list(shares) == list(NAMES)
    assert set(shares["gpu"].tolist()) == {0.0}
    assert sum(shares[name] for name in resources()).tolist() == pytest.approx([1.0] * len(shares["gpu"]))


def test_an_index_decides_though_it_does_not_know_all_resources(connection: duckdb.DuckDBPyConnection) -> None:
    stacks = NumberedStacks(
        TOY,
        frames={("org.example.shop.Shop", "sell", 26): 0},
        roles=[None],
        operators=[None],
        stacks={np.array([0], dtype=np.int32).tobytes(): 0},
        truncated=[False],
    )
    add_frames(connection, stacks)
    decide(connection, stacks, attached([("scala_index", "scala-1")]), [], [], NAMES)
    ((index_name, depth, shares, gpu),) = connection.execute(
        "SELECT index_name, attributed_depth, cpu + disk + net, gpu FROM stacks"
    ).fetchall()
    assert (index_name, depth, gpu) == ("scala-1", 0, 0.0)
    assert shares == pytest.approx(1.0)


# A whole run ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setitem(frameworks(), "toy", TOY)
    path = tmp_path / "run.duckdb"
    write_run(gather(trace(), TOY, Problems()), path)
    return Run(path)


def test_bottleneck_may_be_an_added_resource(run: Run) -> None:
    answer = run.debug()
    assert answer.bottleneck == "gpu"
    assert answer.resource_ms == {"cpu": 2, "disk": 0, "net": 0, "gpu": 5, "other": 3}
    assert run.header().resources == (*known(), GPU)
    assert [each.resource_ms["gpu"] for each in answer.stages] == [10]


def test_gain_of_a_faster_resource(run: Run) -> None:
    assert predicted(run, "gpu_speed=2x") == pytest.approx(7.5)
    assert predicted(run, "gpu_speed=0.5x") == pytest.approx(15)
    assert predicted(run, "cpu_speed=2x") == pytest.approx(9)
    assert predicted(run, "gpu_speed=1x") == pytest.approx(10)


def predicted(run: Run, setting: str) -> float:
    answer = run.predict([setting])
    assert isinstance(answer, Prediction)
    assert answer.predicted_ms is not None, answer.refused
    return answer.predicted_ms
