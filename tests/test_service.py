"""The query service: it says what the terminal says, in every form, and takes runs in."""

from __future__ import annotations

import asyncio
import csv
import errno
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow.ipc
import pyarrow.parquet
import pytest
from httpx import Client

from crystalperf.indexes.code_hash import code_hash
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.run import Run
from crystalperf.query.runfile import keeping
from crystalperf.service import answers, state
from crystalperf.service.answers import Answer as CachedAnswer
from crystalperf.service.answers import Answers, packed
from crystalperf.service.app import ROUTES
from crystalperf.service.catalog import Catalog, Entry
from crystalperf.service.jobs import Jobs
from crystalperf.service.openapi import document
from crystalperf.service.problems import ProblemError
from crystalperf.service.settings import Limits, Settings
from crystalperf.service.state import Service
from tests.served import Served, serving

ROOT = Path(__file__).parent.parent
LOG = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"

Answer = Callable[..., tuple[int, str, str]]

ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, demo_log_run: Run, log_run: Run, shared_home: Path
) -> Iterator[Served]:
    """A service over two runs, with the indexes that the session has unpacked already."""
    home = tmp_path_factory.mktemp("service") / "home"
    home.mkdir()
    (shared_home / "indexes").mkdir(parents=True, exist_ok=True)
    (home / "indexes").symlink_to(shared_home / "indexes")
    folder = home.parent / "logs"
    folder.mkdir()
    (folder / "q9.zstd").write_bytes(LOG.read_bytes())
    (folder / "out").symlink_to("/etc")
    limits = ("--limit", "upload_bytes=3000000", "--limit", "sql_s=5", "--limit", "sql_answer_bytes=1000000")
    with serving(home, [demo_log_run.path, log_run.path], "--folder", str(folder), *limits) as found:
        yield found


@pytest.fixture
def as_typed(crystalperf: Answer) -> Callable[..., Any]:
    """The output of the terminal with --json."""

    def call(*arguments: object) -> Any:
        return json.loads(crystalperf(*arguments, "--json")[1])

    return call


@pytest.fixture
def file(served: Served) -> Path:
    """The run file that the service has as demo-log."""
    return served.home / "runs" / "demo-log.duckdb"


# Answers are those of the terminal ----------------------------------------------------------------------------------


def test_the_verdict_is_that_of_analyze(served: Served, file: Path, as_typed: Callable[..., Any]) -> None:
    typed = as_typed("analyze", file)
    assert typed["run"] == str(file)
    assert served.get("/api/runs/demo-log/verdict").json() == {**typed, "run": "demo-log"}


@pytest.mark.few(1)
@pytest.mark.parametrize("scope", ["all", "whole", "sql:6", "0..30000"])
def test_debug_is_that_of_debug(served: Served, file: Path, as_typed: Callable[..., Any], scope: str) -> None:
    found = served.get("/api/runs/demo-log/debug", params={"scope": scope})
    assert found.status_code == 200
    assert found.json() == as_typed("debug", file, "--scope", scope)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("settings", "more"),
    [
        (["cores=2x"], {}),
        (["cores=2,4"], {}),
        (["cores=2x", "memory=2x"], {}),
        (["network=10Gbps"], {"recorded": ["network=1Gbps"]}),
        (["network=10Gbps"], {}),
        (["cores=4"], {"replan": False}),
        (["operator.Scan=2x"], {"scope": "sql:6"}),
    ],
    ids=str,
)
def test_predictions_are_those_of_predict(
    served: Served, file: Path, as_typed: Callable[..., Any], settings: list[str], more: dict[str, Any]
) -> None:
    typed: list[str] = [part for each in settings for part in ("--set", each)]
    typed += [part for each in more.get("recorded", []) for part in ("--recorded", each)]
    typed += ["--scope", more["scope"]] if "scope" in more else []
    typed += [] if more.get("replan", True) else ["--no-replan"]
    wanted = as_typed("predict", file, *typed)
    posted = served.post("/api/runs/demo-log/predict", {"settings": settings, **more})
    assert posted.status_code == 200
    assert posted.json() == wanted
    asked = {"set": settings, **{key: str(value).lower() if key == "replan" else value for key, value in more.items()}}
    assert served.get("/api/runs/demo-log/predict", params=asked).json() == wanted


def test_comparisons_are_those_of_compare(served: Served, file: Path, as_typed: Callable[..., Any]) -> None:
    other = next(each for each in sorted((served.home / "runs").glob("*.duckdb")) if each != file)
    found = served.get("/api/compare", params={"before": other.stem, "after": file.stem})
    assert found.status_code == 200
    typed = as_typed("compare", other, file)
    for side in ("before", "after"):
        for each in typed[side]["runs"]:
            each["run"] = each["given"] = Path(each["given"]).stem
    assert found.json() == typed
    assert str(served.home) not in found.text
    page = served.get("/compare", params={"before": other.stem, "after": file.stem})
    assert page.status_code == 200
    assert "connect-src 'none'" in page.headers["content-security-policy"]
    assert 'id="crystalperf-data"' in page.text
    assert str(served.home) not in page.text


@pytest.mark.parametrize(
    ("parameters", "status", "says"),
    [
        ({"before": "demo-log", "after": "no-such-run"}, 404, "no-such-run"),
        ({"before": "demo-log"}, 400, "after"),
        ({"before": "demo-log", "after": "demo-log"}, 422, "same run"),
        ({"before": ["demo-log"] * 11, "after": "demo-log"}, 400, "10 runs"),
        ({"before": "../demo-log", "after": "demo-log"}, 404, "no run"),
    ],
    ids=str,
)
def test_runs_that_cannot_be_compared_get_a_sentence(
    served: Served, parameters: dict[str, Any], status: int, says: str
) -> None:
    found = served.get("/api/compare", params=parameters)
    assert found.status_code == status
    assert says in found.json()["detail"]


def test_two_runs_are_chosen_in_the_list_or_by_name(served: Served) -> None:
    page = served.get("/").text
    for run in ("demo-log",):
        for side in ("before", "after"):
            assert f'<input type="radio" name="{side}" value="{run}"' in page
    form = served.get("/compare", params={"after": "demo-log"}).text
    assert '<option value="demo-log" selected>' in form.partition('name="after"')[2]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT stage_id, name, cpu_ms, net_ms FROM stages ORDER BY ALL",
        "SELECT 'nan'::DOUBLE AS a, DATE '2026-11-21' AS b, [1, NULL] AS c, NULL AS d, 1 AS m, 2 AS m",
        "SHOW TABLES",
        "SELECT * FROM tasks WHERE false",
    ],
    ids=lambda each: each[:30],
)
def test_sql_is_that_of_sql(served: Served, file: Path, as_typed: Callable[..., Any], statement: str) -> None:
    assert served.post("/api/runs/demo-log/sql", {"statement": statement}).json() == as_typed(
        "sql", "--run", file, statement
    )


def test_sql_as_csv_is_that_of_sql(served: Served, file: Path, crystalperf: Answer) -> None:
    statement = "SELECT stage_id, name, cpu_ms, [1, 2] AS list, NULL AS nothing FROM stages ORDER BY ALL"
    found = served.post("/api/runs/demo-log/sql", {"statement": statement}, headers={"Accept": "text/csv"})
    assert found.text == crystalperf("sql", "--run", file, "--csv", statement)[1]
    assert found.headers["content-type"].startswith("text/csv")


def test_indexes_are_those_of_index_list(served: Served, as_typed: Callable[..., Any]) -> None:
    wanted = as_typed("index", "list")
    found = served.get("/api/indexes").json()
    assert found == [{key: value for key, value in each.items() if key != "path"} for each in wanted]
    assert len(found) > 5


def test_functions_are_those_of_index_show(served: Served, as_typed: Callable[..., Any]) -> None:
    asked = {"name": "RDD.map", "index": "spark-4.0.1"}
    assert served.get("/api/functions", params=asked).json() == as_typed(
        "index", "show", "RDD.map", "--index", "spark-4.0.1"
    )
    reported = served.get("/api/functions", params={**asked, "why": "true"}).json()
    typed = as_typed("index", "show", "RDD.map", "--index", "spark-4.0.1", "--why")
    assert reported == [
        {key: value for key, value in each.items() if key not in ("words", "words_from")} for each in typed
    ]
    assert reported[0]["evidence"]["callees"]


def test_frames_are_those_of_index_resolve(served: Served, as_typed: Callable[..., Any]) -> None:
    frames = ["at java.util.HashMap.get(HashMap.java:564)", "org.apache.spark.rdd.RDD.iterator", "nothing", "é"]
    found = served.post("/api/resolve", {"frames": frames, "indexes": ["jdk-17", "spark-4.0.1"]})
    assert found.json() == as_typed("index", "resolve", *frames, "--index", "jdk-17", "--index", "spark-4.0.1")
    assert found.json()[0]["function"] == "java.util.HashMap.get"


def test_functions_are_found_by_class_resource_and_text_in_pages(served: Served) -> None:
    address = "/api/indexes/jdk-17/functions"
    whole = served.get(address, params={"class": "HashMap", "limit": 1000}).json()
    assert whole["total"] == len(whole["functions"]) > 30
    assert all(each["class_name"].endswith("HashMap") for each in whole["functions"])
    first = served.get(address, params={"class": "HashMap", "limit": 7, "offset": 3}).json()
    assert first["functions"] == whole["functions"][3:10]
    net = served.get(address, params={"text": "SOCKET", "resource": "net", "limit": 50}).json()["functions"]
    assert net
    assert all("socket" in each["qualified_name"].lower() and each["net"] >= each["cpu"] for each in net)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("typed", "method", "path", "body", "status"),
    [
        (["debug", "FILE", "--scope", "job:999"], "GET", "debug?scope=job:999", None, 400),
        (["predict", "FILE", "--set", "cores=many"], "POST", "predict", {"settings": ["cores=many"]}, 400),
        (["predict", "FILE", "--set", "foo=2x"], "POST", "predict", {"settings": ["foo=2x"]}, 400),
        (
            ["sql", "--run", "FILE", "SELECT x FROM nothing"],
            "POST",
            "sql",
            {"statement": "SELECT x FROM nothing"},
            400,
        ),
        (["sql", "--run", "FILE", "SELECT 1; SELECT 2"], "POST", "sql", {"statement": "SELECT 1; SELECT 2"}, 400),
        (
            ["sql", "--run", "FILE", "--index", "no-1", "SELECT 1"],
            *("POST", "sql", {"statement": "SELECT 1", "indexes": ["no-1"]}, 404),
        ),
    ],
    ids=str,
)
def test_errors_are_those_of_the_terminal(
    served: Served,
    file: Path,
    as_typed: Callable[..., Any],
    typed: list[str],
    method: str,
    path: str,
    body: Any,
    status: int,
) -> None:
    found = served.client.request(method, f"/api/runs/demo-log/{path}", json=body)
    assert found.headers["content-type"] == "application/problem+json"
    assert (found.status_code, found.json()["status"]) == (status, status)
    assert found.json()["error"] == as_typed(*(str(file) if each == "FILE" else each for each in typed))
    assert found.json()["detail"].startswith(found.json()["error"]["message"])


def test_sentences_have_no_path_of_the_machine(served: Served, file: Path) -> None:
    old = served.home / "runs" / "old.duckdb"
    shutil.copy(file, served.home / "copy")
    with duckdb.connect(served.home / "copy") as connection:
        connection.execute("UPDATE metadata SET value = '5' WHERE key = 'schema_version'")
    (served.home / "copy").replace(old)
    try:
        asked = served.get("/api/runs/old/verdict"), served.post("/api/runs/old/sql", {"statement": "SELECT 1"})
        assert [each.json()["detail"].partition(":")[0] for each in asked] == ["old.duckdb"] * 2

        def row() -> Any:
            return next((each for each in served.get("/api/runs?q=old").json()["runs"]), {"state": None})

        wait_for(lambda: row()["state"] == "unreadable")
        assert row()["problem"].startswith("old.duckdb: schema version 5")
        assert "upload its log again" in row()["problem"]
        assert str(served.home) not in "".join(each.text for each in (*asked, served.get("/")))
    finally:
        served.client.delete("/api/runs/old")


# Forms --------------------------------------------------------------------------------------------------------------


def test_an_answer_that_never_changes_is_sent_once(served: Served) -> None:
    for path in (
        "/api/runs/demo-log/debug",
        "/api/runs/demo-log",
        "/api/runs",
        "/api/runs/demo-log/predict?set=cores=2x",
    ):
        for encoding in ("identity", "gzip", "zstd"):
            first = served.get(path, headers={"Accept-Encoding": encoding})
            assert first.headers.get("content-encoding", "identity") == encoding or len(first.content) < 1000
            again = served.get(path, headers={"If-None-Match": first.headers["etag"], "Accept-Encoding": encoding})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == first.headers["etag"]
        assert served.get(path, headers={"If-None-Match": '"another"'}).status_code == 200


def test_compressed_answers_are_the_same(served: Served) -> None:
    plain, zipped = (
        served.get("/api/runs/demo-log/debug", headers={"Accept-Encoding": each}) for each in ("identity", "gzip")
    )
    assert plain.json() == zipped.json()
    assert int(zipped.headers["content-length"]) < len(plain.content) / 3


def test_tables_come_in_four_forms(served: Served) -> None:
    asked = {"statement": "SELECT task_id, stage_id, cpu_ms, host FROM tasks ORDER BY 1"}
    rows = served.post("/api/runs/demo-log/sql", asked).json()
    assert len(rows) > 10

    def of(form: str) -> bytes:
        return served.post("/api/runs/demo-log/sql", asked, headers={"Accept": form}).content

    assert pyarrow.ipc.open_stream(of(ARROW)).read_all().to_pylist() == rows
    assert pyarrow.parquet.read_table(io.BytesIO(of(PARQUET))).to_pylist() == rows
    assert [each["task_id"] for each in csv.DictReader(io.StringIO(of("text/csv").decode()))] == [
        str(each["task_id"]) for each in rows
    ]
    listed = served.get("/api/runs", headers={"Accept": PARQUET}).content
    assert sorted(pyarrow.parquet.read_table(io.BytesIO(listed)).column("run").to_pylist()) == ["demo-log", "q9"]
    assert served.get("/api/runs", headers={"Accept": "image/png"}).status_code == 406


def test_many_runs_are_asked_at_once(served: Served) -> None:
    asked = {"statement": "SELECT run, count(*) AS tasks FROM runs.tasks GROUP BY run ORDER BY run", "runs": None}
    found = served.post("/api/sql", asked).json()
    assert [each["run"] for each in found] == ["demo-log", "q9"]
    for each in found:
        own = served.post(f"/api/runs/{each['run']}/sql", {"statement": "SELECT count(*) AS tasks FROM tasks"}).json()
        assert own[0]["tasks"] == each["tasks"]


def test_the_list_is_filtered_sorted_and_paged(served: Served) -> None:
    def names(**asked: Any) -> list[str]:
        found = served.get("/api/runs", params=asked).json()
        assert found["total"] >= len(found["runs"])
        return [each["run"] for each in found["runs"]]

    for run in ("demo-log", "q9"):  # so that each has been worked out
        served.get(f"/api/runs/{run}/verdict")
    wait_for(lambda: all(each["state"] == "ready" for each in served.get("/api/runs").json()["runs"]))
    assert names(sort="run") == ["demo-log", "q9"]
    assert names(sort="-duration_ms") == ["demo-log", "q9"]
    assert names(sort="duration_ms", limit=1, offset=1) == ["demo-log"]
    assert names(q="DEMO") == ["demo-log"]
    assert names(framework="none") == []
    row = served.get("/api/runs?q=demo-log").json()["runs"][0]
    verdict = served.get("/api/runs/demo-log/verdict").json()
    assert row["bottleneck"] == verdict["bottleneck"]["name"]
    assert row["resource_ms"] == verdict["debug"]["resource_ms"]
    assert row["advice"] == verdict["recommendations"][0]["text"]


def test_added_changed_and_deleted_runs_are_found_by_the_next_scan(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "runs")
    assert catalog.scan() == []
    catalog.folder.mkdir()
    for number in range(5):  # at once: more than one change may have the same time
        (tmp_path / "made").write_text("x" * number)
        (tmp_path / "made").replace(catalog.folder / "a.duckdb")
        assert [each.bytes for each in catalog.scan()] == [number]
        assert catalog.scan() == []
    os.utime(catalog.folder, ns=(1, 1))  # long stable
    assert catalog.scan() == []
    (catalog.folder / "b.duckdb").write_text("")
    assert [each.name for each in catalog.scan()] == ["b"]
    (catalog.folder / "c.duckdb").mkdir()  # no run, to whomever
    assert catalog.scan() == []
    with pytest.raises(ProblemError, match="there is no run 'c'"):
        catalog.get("c")
    (catalog.folder / "a.duckdb").unlink()
    assert catalog.scan() == []
    assert list(catalog.rows) == ["b"]
    shutil.rmtree(catalog.folder)
    assert catalog.scan() == []
    assert not catalog.rows


def test_unreadable_file_or_folder_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / f"{name}.duckdb").write_text("")
    catalog, really = Catalog(tmp_path), os.scandir

    def failing(**_: Any) -> bool:
        raise OSError(errno.ESTALE, "Stale file handle")

    @contextmanager
    def listed(folder: Path) -> Iterator[Iterator[Any]]:
        with really(folder) as found:
            yield (SimpleNamespace(name=each.name, is_file=failing) if each.name[0] == "a" else each for each in found)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", listed)
        catalog.scan()
    assert sorted(catalog.rows) == ["b", "c"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", lambda _: failing())
        assert catalog.scan() == []
    assert sorted(catalog.rows) == ["b", "c"]
    assert [each.name for each in catalog.scan()] == ["a"]


def test_cached_answers_are_invalid_after_a_code_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry("a", tmp_path / "a.duckdb", (1, 1, 1))
    Answers(tmp_path, 1000).put(entry, "header", None, b'"an answer"')
    before = keeping.layout(SPARK)
    for module in (answers, keeping):
        monkeypatch.setattr(module, "code_hash", lambda *_: "of another edition")
    assert Answers(tmp_path, 1000).find(entry, "header", None) is None
    assert keeping.layout(SPARK) != before


def test_code_hash_depends_on_the_contents_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_room" / "sql").mkdir(parents=True)
    (tmp_path / "a_room" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for text in ("SELECT 1", "SELECT 2", "SELECT 1"):
        (tmp_path / "a_room" / "sql" / "a.sql").write_text(text)
        found.append(code_hash.__wrapped__("a_room"))
    assert found[0] == found[2] != found[1]


def test_answers_of_a_manually_deleted_run_are_deleted(tmp_path: Path) -> None:
    service = Service(Settings(tmp_path))
    service.catalog.folder.mkdir()
    for name in ("a", "b"):
        (service.catalog.folder / f"{name}.duckdb").write_text("")

    async def deleted() -> list[str]:
        await service.scan()
        for entry in service.catalog.entries.values():
            service.answers.put(entry, "header", None, b'"an answer"')
        (service.catalog.folder / "a.duckdb").unlink()
        await service.scan()
        return [each.name for each in (tmp_path / "service/answers").iterdir()]

    assert asyncio.run(deleted()) == ["b"]
    service.answers.forget_others(())  # as a service does that begins
    assert not list((tmp_path / "service/answers").iterdir())


def test_error_in_one_row_or_scan_does_not_break_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(state, "_SCANNED_EVERY_S", 0.01)
    service = Service(Settings(tmp_path))
    service.catalog.folder.mkdir()
    for name in ("bug", "full", "good"):
        (service.catalog.folder / f"{name}.duckdb").write_text("")
    asked, looks = list[str](), list[int]()
    monkeypatch.setattr(service.answers, "put", lambda *_: None)

    async def ask(_: str, run: str) -> dict[str, Any]:
        asked.append(Path(run).stem)
        if asked[-1] == "bug":
            raise KeyError("lost")
        if asked.count("full") == 1 and asked[-1] == "full":
            raise BlockingIOError(errno.EAGAIN, "no process can be started")
        return {each: {} for each in ("row", "verdict", "overview", "debug", "header")}

    async def scan() -> None:
        looks.append(1)
        raise KeyError("lost")

    async def looked() -> None:
        await service.scan()
        monkeypatch.setattr(service, "query", ask)
        monkeypatch.setattr(service, "scan", scan)
        running = [asyncio.ensure_future(each) for each in (service._fill_rows(), service._scan_again())]
        while any(each.state == "pending" for each in service.catalog.rows.values()) or len(looks) < 2:
            assert not any(each.done() for each in running)
            await asyncio.sleep(0.01)
        for each in running:
            each.cancel()

    asyncio.run(looked())
    rows = service.catalog.rows
    assert {name: row.state for name, row in rows.items()} == {"bug": "unreadable", "full": "ready", "good": "ready"}
    assert "(KeyError)" in (rows["bug"].problem or "")
    assert len({each.message for each in caplog.records}) == 2  # of the row, and of looking for runs


def test_the_same_answer_for_two_clients_takes_its_memory_once(tmp_path: Path) -> None:
    entry, worked = Entry("a", tmp_path / "a.duckdb", (1, 1, 1)), list[int]()
    size = CachedAnswer("", packed(b'"an answer"')).size
    answers = Answers(tmp_path, 4 * size)

    async def ask(number: int) -> None:
        async def work_out() -> bytes:
            worked.append(number)
            await asyncio.sleep(0)
            return b'"an answer"'

        await answers.get(entry, str(number), None, work_out)

    async def all_of_them() -> None:
        for number in range(4):
            await asyncio.gather(ask(number), ask(number))
        for number in range(4):
            await ask(number)

    asyncio.run(all_of_them())
    assert sorted(worked) == [0, 0, 1, 1, 2, 2, 3, 3]  # and none again


def test_damaged_cached_answer_is_computed_again(tmp_path: Path) -> None:
    entry = Entry("a", tmp_path / "a.duckdb", (1, 1, 1))
    Answers(tmp_path, 1000).put(entry, "header", None, b'"an answer"')
    (place,) = (tmp_path / "a").iterdir()
    assert Answers(tmp_path, 1000).find(entry, "header", None) == b'"an answer"'
    for content in (b"", place.read_bytes()[:-3], b"no answer"):
        place.write_bytes(content)
        assert Answers(tmp_path, 1000).find(entry, "header", None) is None


def test_end_of_a_job_is_sent_even_if_it_comes_while_something_is_sent(tmp_path: Path) -> None:
    async def follow() -> list[str]:
        jobs, reported = Jobs(tmp_path, Limits(jobs=0), lambda _: None), list[str]()
        jobs.start()
        async for job in jobs.events(jobs.add(["/x"], ["x"], None, []).id):
            reported.append(job.state)
            if job.state == "waiting":
                jobs.cancel(job.id)
        return reported

    assert asyncio.run(follow()) == ["waiting", "cancelled"]


def test_unfinished_job_of_an_earlier_version_keeps_its_inputs(tmp_path: Path) -> None:
    job = {
        "id": "1",
        "state": "running",
        "made_at_ms": 1,
        "inputs": ["log"],
        "steps": [{"at_ms": 1, "said": "reading"}],
    }
    upload = tmp_path / "inputs" / "hash" / "log"
    for each in (upload, tmp_path / "jobs" / "1.json"):
        each.parent.mkdir(parents=True)
    upload.write_text("a log")
    (tmp_path / "jobs" / "1.json").write_text(json.dumps({"job": job, "paths": [str(upload)], "within": None}))

    async def read() -> list[tuple[str, list[str]]]:
        jobs = Jobs(tmp_path, Limits(jobs=0), lambda _: None)
        jobs.start()
        return [(each.state, [step.message for step in each.steps]) for each in jobs.listed()]

    assert asyncio.run(read()) == [("waiting", ["reading"])]
    assert upload.read_text() == "a log"


def test_job_ended_by_a_bug_reports_it_and_the_next_one_runs(tmp_path: Path) -> None:
    class Broken(Jobs):
        async def _do(self, kept: Any) -> None:
            if kept.job.inputs == ["bad"]:
                raise KeyError("lost")
            self._over(kept, "done", run="q9")

    async def ends() -> dict[str, tuple[str, str | None]]:
        jobs = Broken(tmp_path, Limits(jobs=1), lambda _: None)
        jobs.start()
        added = [jobs.add(["/x"], [name], None, []) for name in ("bad", "good")]
        for each in added:
            async for _ in jobs.events(each.id):
                pass
        jobs.stop()
        return {each.inputs[0]: (each.state, each.problem) for each in added}

    found = asyncio.run(ends())
    assert found["good"] == ("done", None)
    assert found["bad"][0] == "failed"
    assert "(KeyError)" in (found["bad"][1] or "")


def wait_for(what: Callable[[], bool]) -> None:
    import time

    for _ in range(1200):
        if what():
            return
        time.sleep(0.1)
    raise AssertionError("it does not come about")


# New runs -----------------------------------------------------------------------------------------------------------


def test_an_upload_becomes_a_run_and_can_be_deleted(served: Served, log_run: Run) -> None:
    sent = served.client.post("/api/runs", files=[("files", ("a/../../q9.zstd", LOG.read_bytes()))])
    assert sent.status_code == 202
    assert sent.headers["location"] == f"/api/jobs/{sent.json()['id']}"
    events = []
    with served.client.stream("GET", f"/api/jobs/{sent.json()['id']}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events += [json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: ")]
    assert events[-1]["state"] == "done"
    assert len(events[-1]["steps"]) >= 5
    run = events[-1]["run"]
    page = served.get(f"/jobs/{sent.json()['id']}")
    assert (page.status_code, page.headers["location"]) == (303, f"/runs/{run}")
    mine = served.get(f"/api/runs/{run}/debug").json()
    assert mine == served.get("/api/runs/q9/debug").json()
    again = served.client.post("/api/runs", files={"files": ("q9.zstd", LOG.read_bytes())}).json()
    assert served.job_over(again["id"])["run"] == run  # the same input is the same run
    assert not list((served.home / "service" / "inputs").iterdir())
    assert served.client.delete(f"/api/runs/{run}").status_code == 204
    assert served.get(f"/api/runs/{run}/debug").status_code == 404
    assert not (served.home / "service" / "answers" / run).exists()


def test_a_path_below_the_folder_becomes_a_run(served: Served) -> None:
    job = served.post("/api/runs", {"path": "q9.zstd"}).json()
    over = served.job_over(job["id"])
    assert over["state"] == "done"
    assert served.client.delete(f"/api/runs/{over['run']}").status_code == 204


@pytest.mark.parametrize(
    "path", ["..", "/etc/passwd", "out/passwd", "nothing", "http://127.0.0.1/x", "a\0b", "x" * 300]
)
def test_no_other_path_is_read(served: Served, path: str) -> None:
    found = served.post("/api/runs", {"path": path})
    assert found.status_code in (400, 403, 404)
    assert "root:" not in found.text


def test_link_below_the_folder_cannot_escape_it(served: Served) -> None:
    job = served.post("/api/runs", {"path": "."}).json()
    over = served.job_over(job["id"])
    assert (over["state"], over["run"], over["problem"].startswith("out: ")) == ("failed", None, True)


def test_file_that_is_not_a_log_gets_the_error_of_the_terminal(
    served: Served, crystalperf: Answer, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("shopping list\n")
    job = served.client.post("/api/runs", files={"files": ("notes.txt", b"shopping list\n")}).json()
    problem = served.job_over(job["id"])["problem"]
    typed = crystalperf("profile", tmp_path / "notes.txt")[2]
    assert f"crystalperf: {tmp_path}/{problem}" == typed.strip()


def test_log_sent_without_a_form_gets_the_right_command(served: Served) -> None:
    for kind in ("application/x-www-form-urlencoded", "application/octet-stream", ""):
        found = served.client.post("/api/runs", content=LOG.read_bytes(), headers={"Content-Type": kind})
        assert found.status_code == 415
        assert "curl -F files=@LOG" in found.json()["detail"]


def test_a_service_that_cannot_begin_says_why(served: Served, crystalperf: Answer, tmp_path: Path) -> None:
    def sentence(home: Path, port: int = 0) -> str:
        code, out, err = crystalperf("serve", "--home", home, "--port", port)
        assert (code, out, err.count("\n")) == (1, "", 1)
        return err

    (tmp_path / "file").write_text("")
    text = sentence(tmp_path / "file")
    assert f"{tmp_path}/file: " in text
    assert os.strerror(errno.ENOTDIR) in text
    assert str(served.home) in sentence(served.home)
    assert os.strerror(errno.EADDRINUSE) in sentence(tmp_path / "home", served.port)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_TOKEN", "correct-horse-battery-staple")
        code, out, err = crystalperf("serve", "--home", tmp_path / "home", "--host", "192.0.2.1", "--port", 0)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "192.0.2.1" in err
    for limit in ("query_processes=0.5", "query_processes=0", "sql_s=nan", "sql_s=", "none=1"):
        code, out, err = crystalperf("serve", "--home", tmp_path / "home", "--limit", limit)
        assert (code, out, err.count("\n")) == (1, "", 1)


def test_a_service_that_fails_as_it_begins_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "home/service/jobs/a folder").mkdir(parents=True)  # where files of jobs are
    command = [sys.executable, "-m", "crystalperf.cli.main", "serve", "--home", str(tmp_path / "home"), "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith("crystalperf: ")
    assert "http://" not in done.stderr


# The document -------------------------------------------------------------------------------------------------------


def test_the_document_has_every_route_and_resolves(served: Served) -> None:
    found = served.get("/openapi.json").json()
    assert found == json.loads(json.dumps(document(ROUTES)))
    assert found["openapi"] == "3.1.0"
    reported = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert reported == {(each.method, each.path) for each in ROUTES if not each.page}
    names = [each["operationId"] for methods in found["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names))
    schemas = set(found["components"]["schemas"])

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            for each in value.values():
                yield from references(each)
        elif isinstance(value, list):
            for each in value:
                yield from references(each)

    assert {each.removeprefix("#/components/schemas/") for each in references(found)} <= schemas
    assert {"debug", "prediction", "sweep", "verdict", "header", "problem", "Row", "Job", "Question"} <= schemas


def test_unknown_path_or_method_is_reported_in_the_requested_format(served: Served) -> None:
    refused = served.client.put("/api/runs")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST")
    assert served.client.put("/api/runs/q9").headers["allow"] == "DELETE, GET, HEAD"
    for path, kind in (("/nope", "text/html"), ("/api/nope", "application/problem+json")):
        found = served.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (found.status_code, found.headers["content-type"].partition(";")[0]) == (404, kind)
    assert served.get("/nope").headers["content-type"] == "application/problem+json"


# Together -----------------------------------------------------------------------------------------------------------


def test_questions_to_one_run_at_once_do_not_disturb_each_other(served: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    asked = [
        f"/api/runs/demo-log/{each}" for each in ("debug?scope=sql:6", "debug?scope=0..40000", "predict?set=cores=3x")
    ]
    asked += ["/api/runs/q9/debug?scope=0..9000", "/api/runs/q9/predict?set=cores=3x"]
    with ThreadPoolExecutor(10) as pool:
        together = list(pool.map(served.get, asked * 4))
    assert {each.status_code for each in together} == {200}
    with Client(base_url=served.client.base_url, timeout=120) as another:
        alone = {path: another.get(path).json() for path in asked}
    assert [each.json() for each in together] == [alone[path] for path in asked * 4]


def test_the_cached_list_of_runs_follows_every_change(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for name in ("b", "a"):
        (tmp_path / f"{name}.duckdb").write_bytes(b"x")
    catalog.scan()
    assert [each.run for each in catalog.listed(sort="run")] == ["a", "b"]
    catalog.fill(catalog.entries["b"], {"app_name": "joins"})
    assert [each.app_name for each in catalog.listed(sort="app_name")] == ["joins", None]
    catalog.fill(catalog.entries["a"], {"app_name": "counts"})
    assert [each.app_name for each in catalog.listed(sort="app_name")] == ["counts", "joins"]
    (tmp_path / "a.duckdb").unlink()
    catalog.scan()
    assert [each.app_name for each in catalog.listed(sort="app_name")] == ["joins"]
    for number in range(20):
        assert not catalog.listed(text=f"no run {number}")
    assert [each.run for each in catalog.listed(sort="app_name")] == ["b"]
