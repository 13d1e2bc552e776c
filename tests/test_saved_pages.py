"""Saved pages of Spark's REST interface: those of a real application, and damaged ones."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.spark.saved import page_of
from crystalperf.query.inputs.discover import discover
from tests.refusals import refused
from tests.test_history_server import facts

RECORDINGS = Path(__file__).parents[1] / "lab" / "recordings" / "pages"
KINDS = ("sql", "rdd")

Answer = Callable[..., tuple[int, str, str]]


def unpacked(kind: str, folder: Path) -> Path:
    """The folder of the pages of an application."""
    with tarfile.open(RECORDINGS / f"{kind}-pages.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "pages"


@pytest.mark.parametrize("kind", KINDS)
def test_saved_pages_make_the_log_that_the_application_wrote(tmp_path: Path, kind: str) -> None:
    pages = cp.profile(RECORDINGS / f"{kind}-pages.tar.gz", output=tmp_path / "pages.duckdb")
    log = cp.profile(RECORDINGS / f"{kind}-log.zstd", output=tmp_path / "log.duckdb")
    assert facts(pages) == facts(log)
    headers = pages.header(), log.header()
    assert len({(each.app_id, each.name, each.framework_version) for each in headers}) == 1
    first, second = (each.debug(scope="job:0") for each in (pages, log))
    # Pages do not show which stages run Python functions.
    expected = ("unknown", "delegated") if kind == "rdd" else (second.bottleneck, second.bottleneck)
    assert (first.bottleneck, second.bottleneck) == expected
    assert first.resource_ms["cpu"] == pytest.approx(second.resource_ms["cpu"], rel=0.02)
    predicted = [each.predict(["cores=2x"], scope="job:0").predicted_ms for each in (pages, log)]
    assert predicted[0] == pytest.approx(predicted[1], rel=0.02)


def test_folder_of_saved_pages_is_one_application(tmp_path: Path) -> None:
    folder = unpacked("sql", tmp_path)
    found = discover([folder])
    assert [each.framework for each in found.applications] == ["spark"]
    listed = json.loads((folder / "applications.json").read_text())
    assert (found.applications[0].app_id, found.applications[0].name) == (listed[0]["id"], listed[0]["name"])


def test_two_folders_of_saved_pages_are_two_applications(tmp_path: Path) -> None:
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        unpacked(kind, tmp_path / kind)
    assert len(discover([tmp_path]).applications) == 2


@pytest.mark.parametrize("page", ["jobs", "environment", "stages", "allexecutors", "applications"])
def test_missing_page_is_named_with_its_address(tmp_path: Path, page: str) -> None:
    folder = unpacked("rdd", tmp_path)
    (folder / f"{page}.json").unlink()
    with refused(InputError, str(folder), f"/api/v1/applications{'' if page == 'applications' else f'/APP/{page}'}"):
        discover([folder])


def test_single_page_names_the_others(tmp_path: Path) -> None:
    with refused(InputError, "jobs.json", "/stages?details=true"):
        discover([unpacked("rdd", tmp_path) / "jobs.json"])


def test_incomplete_pages_next_to_a_log_are_a_problem(tmp_path: Path) -> None:
    folder = unpacked("rdd", tmp_path)
    (folder / "jobs.json").unlink()
    shutil.copy(RECORDINGS / "rdd-log.zstd", tmp_path / "log")
    found = discover([tmp_path])
    assert len(found.applications) == 1
    assert "incomplete_pages" in {each.name for each in found.problems}


def test_stages_without_tasks_ask_for_details(crystalperf: Answer, tmp_path: Path) -> None:
    folder = unpacked("rdd", tmp_path)
    stages = json.loads((folder / "stages.json").read_text())
    text = json.dumps([{name: value for name, value in each.items() if name != "tasks"} for each in stages])
    (folder / "stages.json").write_text(text)
    code, out, err = crystalperf("analyze", folder)
    assert (code, out) == (1, "")
    assert "stages?details=true" in err


@pytest.mark.parametrize("page", ["stages", "jobs", "environment", "allexecutors"])
@pytest.mark.parametrize("damage", ["cut", "numbers"])
def test_damaged_page_is_one_sentence_or_read(crystalperf: Answer, tmp_path: Path, page: str, damage: str) -> None:
    folder = unpacked("sql", tmp_path)
    path = folder / f"{page}.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2] if damage == "cut" else text.replace('"', '"7', 40))
    code, _, err = crystalperf("analyze", folder)
    assert code in (0, 1)
    assert code == 0 or err.rstrip("\n").count("\n") == 0
    if damage == "cut":
        assert code == 1
        assert f"{page}.json" in err


@pytest.mark.parametrize(
    ("text", "page"),
    [
        (b'{\n  "spark" : "4.0.1"\n}', "version"),
        (b'[ {\n  "jobId" : 1,', "jobs"),
        (b'[ {\n  "status" : "COMPLETE",\n  "stageId" : 3,', "stages"),
        (b'[ {\n  "id" : 0,\n  "status" : "COMPLETED",', "queries"),
        (b'[{"id":"driver","hostPort":"h:1",', "executors"),
        (b'[ {\n  "id" : "app-1",\n  "name" : "x",\n  "attempts" : [', "applications"),
        (b'{"id":"application_1","name":"x","attempts":[', "applications"),
        (b'{"Event":"SparkListenerLogStart"}', None),
        (b'{"jobs": [{"id": "x", "status": "RUNNING"}]}', None),
        (b"[ ]", None),
        (b"", None),
    ],
)
def test_page_is_known_by_its_start(text: bytes, page: str | None) -> None:
    assert page_of(text) == page


@pytest.mark.parametrize(
    "text",
    [
        'spark_info{version="4.0.1", revision="x"} 1.0\nmetrics_executor_rddBlocks{application_id="local-1"} 0\n',
        'metrics_local_1_driver_BlockManager_memory_maxMem_MB_Value{type="gauges"} 434\n',
        '{"version":"4.0.0","gauges":{"local-1.driver.BlockManager.memory.maxMem_MB":{"value":434}},"counters":{}}',
    ],
)
def test_metrics_of_executors_are_refused_with_the_pages_to_save(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics"
    path.write_text(text)
    with refused(InputError, str(path), "/api/v1"):
        discover([path])
