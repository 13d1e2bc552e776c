"""Logs from a History Server: the real one of pyspark, the page of a real application, and servers that mean harm."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.spark import history
from crystalperf.query.frameworks.spark.history import Address, address_of
from crystalperf.query.inputs import rest
from tests.refusals import is_one_line, refused
from tests.served import Served, serving

ROOT = Path(__file__).resolve().parent.parent
APP = "app-20261121113629-0000"

Answer = Callable[..., tuple[int, str, str]]


# Addresses ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("http://h:18080", Address("http://h:18080")),
        ("http://h:18080/", Address("http://h:18080")),
        ("http://h:18080/?showIncomplete=true", Address("http://h:18080")),
        ("https://gate/x/sparkhistory/history/app-1/2/jobs/", Address("https://gate/x/sparkhistory", "app-1", "2")),
        ("http://h:18080/history/app-1/stages/stage/?id=3", Address("http://h:18080", "app-1")),
        ("http://h:18080/api/v1", Address("http://h:18080")),
        ("http://h:18080/api/v1/applications/app-1/1/logs", Address("http://h:18080", "app-1", "1")),
        ("http://h:4040/jobs/", Address("http://h:4040")),
        ("http://h/proxy/application_1/SQL/", Address("http://h/proxy/application_1")),
        ("http://h/logs/app-1.zstd", None),
        ("http://user@h:18080", None),
        ("file:///tmp/x", None),
        ("http://h:18080/a b", None),
    ],
)
def test_addresses_are_parsed(text: str, named: Address | None) -> None:
    assert address_of(text) == named


# The real ones ------------------------------------------------------------------------------------------------------


def java_of_spark() -> list[str]:
    """The command of a Java with Spark on its class path; skips where one of them is missing."""
    pyspark = pytest.importorskip("pyspark")
    java = shutil.which("java")
    if java is None:
        pytest.skip("the History Server needs Java")
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.nio", "sun.nio.ch", "java.lang")]
    return [java, "-Xmx512m", *opened, "-cp", str(jars)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, holds: Callable[[str], bool]) -> None:
    begin = time.monotonic()
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if holds(answer.read().decode()):
                    return
        except OSError:
            pass
        assert time.monotonic() - begin < 240, f"{url} did not answer"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def server(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A History Server with the demo's log, another one, and one whose application has not ended."""
    logs = tmp_path_factory.mktemp("logs")
    shutil.copytree(next(demo.glob("eventlog_v2_*")), logs / f"eventlog_v2_{APP}")
    odd = ROOT / "lab" / "recordings" / "odd"
    shutil.copy(odd / "tiny-tasks.zstd", logs)
    import zstandard

    with (odd / "skewed-key.zstd").open("rb") as stored:
        text = zstandard.ZstdDecompressor().stream_reader(stored).read()
    lines = text.split(b"\n")
    (logs / "app-running.inprogress").write_bytes(b"\n".join(lines[: len(lines) * 2 // 3]) + b"\n")
    port = free_port()
    settings = {"fs.logDirectory": logs.as_uri(), "ui.port": str(port), "fs.update.interval": "1s"}
    command = [
        *java_of_spark(),
        *(f"-Dspark.history.{key}={value}" for key, value in settings.items()),
        "org.apache.spark.deploy.history.HistoryServer",
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/api/v1/applications", lambda text: text.count('"id"') >= 3)
        yield address
    finally:
        process.kill()
        process.wait()


@pytest.mark.later
def test_logs_of_a_history_server_are_read_as_the_files_are(
    crystalperf: Answer, server: str, demo: Path, tmp_path: Path
) -> None:
    code, out, err = crystalperf("analyze", server)
    assert (code, out) == (1, "")
    is_one_line(err, 3, "--app", APP)
    _, of_file, _ = crystalperf("analyze", next(demo.glob("eventlog_v2_*")), "-o", tmp_path / "file.duckdb", "--json")
    expected = json.loads(of_file)
    for number, (address, more) in enumerate(
        [
            (server, ["--app", APP]),
            (f"{server}/history/{APP}/jobs/", []),
            (f"{server}/api/v1/applications/{APP}", []),
        ]
    ):
        code, out, err = crystalperf("analyze", address, *more, "--json", "-o", tmp_path / f"{number}.duckdb")
        assert code == 0, err
        assert {**json.loads(out), "run": ""} == {**expected, "run": ""}
    recordings = sorted(demo.glob("*.jfr.gz"))
    code, out, _ = crystalperf(
        "profile", f"{server}/history/{APP}", *recordings, "-o", tmp_path / "all.duckdb", "--json"
    )
    assert (code, json.loads(out)["header"]["has_samples"]) == (0, True)


@pytest.mark.later
def test_cached_logs_are_not_fetched_again(server: str, tmp_path: Path) -> None:
    steps: list[str] = []
    first = history.served(f"{server}/history/{APP}", None, tmp_path, steps.append)
    assert first.stat().st_mode & 0o777 == 0o600
    before = first.stat().st_mtime_ns
    assert [each for each in steps if "fetching" in each]
    steps.clear()
    assert history.served(f"{server}/history/{APP}", None, tmp_path, steps.append) == first
    assert first.stat().st_mtime_ns == before
    assert not [each for each in steps if "fetching" in each]


@pytest.mark.later
def test_running_application_gives_the_log_written_so_far(crystalperf: Answer, server: str) -> None:
    with urllib.request.urlopen(f"{server}/api/v1/applications") as answer:
        listed = json.load(answer)
    running = next(each["id"] for each in listed if not each["attempts"][0]["completed"])
    code, out, err = crystalperf("analyze", f"{server}/history/{running}", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["header"]["complete"] is False
    assert found["debug"]["outcome"]["status"] == "unfinished"


@pytest.fixture
def service(server: str, tmp_path: Path, shared_home: Path) -> Iterator[Served]:
    """A service that may ask the History Server."""
    home = tmp_path / "home"
    (shared_home / "indexes").mkdir(parents=True, exist_ok=True)
    home.mkdir()
    (home / "indexes").symlink_to(shared_home / "indexes")
    with serving(home, (), "--history", f"{server}/") as found:
        yield found


@pytest.mark.later
def test_the_service_profiles_logs_of_a_history_server(
    crystalperf: Answer, service: Served, server: str, demo: Path, tmp_path: Path
) -> None:
    def job(**asked: str) -> dict[str, Any]:
        taken = service.post("/api/runs", asked)
        assert taken.status_code == 202, taken.text
        return service.job_over(taken.json()["id"])

    several = job(path=server)
    assert several["state"] == "failed"
    is_one_line(several["problem"], 3, "`app`", APP)
    made = job(path=server, app=APP)
    assert (made["state"], made["run"]) == ("done", APP)
    assert not list((service.home / "service" / "inputs").iterdir())
    code, _, err = crystalperf("profile", next(demo.glob("eventlog_v2_*")), "-o", tmp_path / "file.duckdb")
    assert code == 0, err
    _, of_file, _ = crystalperf("analyze", tmp_path / "file.duckdb", "--json")
    found = service.get(f"/api/runs/{APP}/verdict").json()
    assert {**found, "run": ""} == {**json.loads(of_file), "run": ""}
    again = job(path=f"{server}/history/{APP}/jobs/?page=2")  # as the browser shows it
    assert (again["state"], again["run"]) == ("done", APP)
    with urllib.request.urlopen(f"{server}/api/v1/applications") as answer:
        running = next(each["id"] for each in json.load(answer) if not each["attempts"][0]["completed"])
    unfinished = job(path=f"{server}/history/{running}")
    assert unfinished["state"] == "done", unfinished
    assert service.get(f"/api/runs/{unfinished['run']}").json()["complete"] is False
    is_one_line(job(path=f"{server}/static/spark-logo.png")["problem"], "spark-logo.png")


PROGRAM = """
import sys
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
rows = session.range(200_000).selectExpr("id % 100 AS part", "sha2(CAST(id AS STRING), 256) AS text")
rows.groupBy("part").agg({"text": "max"}).orderBy("part").collect()
session.sparkContext.parallelize(range(100), 3).map(lambda each: (each % 5, each)).reduceByKey(int.__add__, 2).collect()
print(session.sparkContext.uiWebUrl, flush=True)
sys.stdin.readline()
session.stop()
"""


@pytest.mark.later
@pytest.mark.parametrize("writes", [True, False])
def test_pages_of_a_running_application_make_the_log_that_it_writes(
    crystalperf: Answer, tmp_path: Path, writes: bool
) -> None:
    """Its event log, if it writes one, has the same jobs, stages, tasks and executors."""
    java_of_spark()
    logs = tmp_path / "logs"
    logs.mkdir()
    settings = {
        "spark.master": "local[2]",
        "spark.ui.port": "0",  # which it reports: from a port that was taken meanwhile Spark would move on
        "spark.eventLog.enabled": str(writes).lower(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
    }
    given = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": f"{given} pyspark-shell"},
    )
    try:
        address = process.stdout.readline().decode().strip()
        wait_for(f"{address}/api/v1/applications", lambda text: '"id"' in text)
        code, _, err = crystalperf("profile", address, "-o", tmp_path / "pages.duckdb")
        assert code == 0, err
        process.communicate(b"\n", timeout=60)
    finally:
        process.kill()
        process.communicate()
    run = cp.open_run(tmp_path / "pages.duckdb")
    assert run.header().framework_version == "4.0.1"
    found = facts(run)
    assert run.debug().resource_ms["cpu"] > 0
    assert found["jobs"][0][0] >= 2
    if writes:
        run = cp.profile(next(logs.iterdir()), output=tmp_path / "log.duckdb")
        assert facts(run) == found


def facts(run: cp.Run) -> dict[str, list[tuple[object, ...]]]:
    """Contents that a log and the pages have both: these have no kinds of RDDs."""
    questions = {
        "jobs": "SELECT count(*) FILTER (status = 'succeeded'), count(sql_id), list(stage_ids ORDER BY job_id)"
        " FROM spark_jobs",
        "stages": "SELECT stage_id, status, task_count, replace(io_kinds, ', python', ''), round(submit_ms) FROM stages"
        " ORDER BY stage_id",
        "tasks": "SELECT task_id, stage_id, partition_index, status, worker_id, round(launch_ms), gc_ms, input_rows,"
        " local_read_bytes, exchange_write_bytes, round(own_ms) FROM tasks ORDER BY task_id",
        "workers": "SELECT worker_id, slots, memory_bytes FROM workers ORDER BY worker_id",
        "dependencies": "SELECT source, target FROM dependencies ORDER BY ALL",
        "operators": "SELECT count(*) > 0 FROM operators",
    }
    return {name: [tuple(row) for row in run.sql(question).rows] for name, question in questions.items()}


# Servers that mean harm ---------------------------------------------------------------------------------------------


class Hostile:
    """A server whose pages are what a test puts there: (status, headers, pieces)."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], Iterator[bytes] | list[bytes]]] = {
            "/api/v1/version": (200, {}, [b'{"spark": "4.0.1"}'])
        }
        self.asked: list[str] = []
        self.address = ""

    def has(self, *ids: str, last_updated: int = 7) -> None:
        reported = [{"id": each, "name": each, "attempts": [{"lastUpdatedEpoch": last_updated}]} for each in ids]
        self.pages["/api/v1/applications"] = (200, {}, [json.dumps(reported).encode()])


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    held = Hostile()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append(self.path)
            status, headers, pieces = held.pages.get(self.path, (404, {}, [b"no such page"]))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(piece)
            except OSError:
                pass

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    held.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield held
    server.shutdown()
    server.server_close()
    thread.join()


def zipped(**files: bytes) -> bytes:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stored.getvalue()


def is_refused(crystalperf: Answer, hostile: Hostile, *named: object) -> None:
    """Expect one sentence that names these values."""
    code, out, err = crystalperf("analyze", hostile.address)
    assert (code, out) == (1, "")
    is_one_line(err, *named)


def test_another_server_is_not_asked(crystalperf: Answer, hostile: Hostile) -> None:
    hostile.pages["/api/v1/version"] = (302, {"Location": "http://127.0.0.1:9/secret"}, [])
    is_refused(crystalperf, hostile, "http://127.0.0.1:9")
    hostile.pages["/api/v1/version"] = (302, {"Location": "file:///etc/passwd"}, [])
    is_refused(crystalperf, hostile)


def test_redirect_loops_end(crystalperf: Answer, hostile: Hostile) -> None:
    hostile.pages["/api/v1/version"] = (302, {"Location": "/api/v1/version"}, [])
    is_refused(crystalperf, hostile)
    assert len(hostile.asked) < 20


def test_a_log_without_end_is_given_up(
    crystalperf: Answer, hostile: Hostile, monkeypatch: pytest.MonkeyPatch, shared_home: Path
) -> None:
    monkeypatch.setattr(history, "MAX_LOG_BYTES", 1 << 20)
    hostile.has("app-1")
    hostile.pages["/api/v1/applications/app-1/logs"] = (200, {}, (b"x" * 65536 for _ in range(10_000)))
    is_refused(crystalperf, hostile, "1 MiB")
    assert not list((shared_home / "fetched").rglob("*app-1.zip"))


def test_a_list_without_end_is_given_up(crystalperf: Answer, hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "MAX_PAGE_BYTES", 1 << 20)
    hostile.pages["/api/v1/applications"] = (200, {}, (b" " * 65536 for _ in range(10_000)))
    is_refused(crystalperf, hostile, "1 MiB")


def test_a_server_that_drips_is_given_up(
    crystalperf: Answer, hostile: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "SLOW_AFTER_S", 0.2)

    def drips() -> Iterator[bytes]:
        for _ in range(1000):
            time.sleep(0.05)
            yield b" "

    hostile.pages["/api/v1/applications"] = (200, {}, drips())
    is_refused(crystalperf, hostile)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "x" * 300, ".\u0000"])
def test_invalid_application_ids_are_skipped(crystalperf: Answer, hostile: Hostile, name: str) -> None:
    hostile.has(name)
    is_refused(crystalperf, hostile)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "reported", [b"[]", b"{}", b"null", b"[[[[", b'[{"id": 1}]', b'[{"id": "a", "attempts": [null]}]', b"\xff" * 9]
)
def test_lists_of_another_shape_hold_no_application(crystalperf: Answer, hostile: Hostile, reported: bytes) -> None:
    hostile.pages["/api/v1/applications"] = (200, {}, [reported])
    is_refused(crystalperf, hostile)


@pytest.mark.parametrize("status", [401, 403])
def test_a_login_is_named(crystalperf: Answer, hostile: Hostile, status: int) -> None:
    hostile.pages["/api/v1/version"] = (status, {}, [])
    is_refused(crystalperf, hostile, "login")


def test_server_of_another_kind_is_recognized(crystalperf: Answer, hostile: Hostile) -> None:
    del hostile.pages["/api/v1/version"]
    is_refused(crystalperf, hostile)


def test_a_driver_that_is_starting_up_is_asked_again_later(crystalperf: Answer, hostile: Hostile) -> None:
    hostile.pages["/api/v1/version"] = (200, {}, [b"Spark is starting up. Please wait a while until it's ready."])
    is_refused(crystalperf, hostile, "starting up")


@pytest.mark.few(1)
@pytest.mark.parametrize("content", [b"", b"no zip", zipped(other=b"nothing"), zipped(bomb=b"\n" * (80 << 20))])
def test_a_zip_that_holds_no_log_is_refused(crystalperf: Answer, hostile: Hostile, content: bytes) -> None:
    hostile.has("app-2", last_updated=len(content) + 1)
    hostile.pages["/api/v1/applications/app-2/logs"] = (200, {}, [content])
    is_refused(crystalperf, hostile)


STAGE = {
    "stageId": 0,
    "attemptId": 0,
    "status": "COMPLETE",
    "numTasks": 1,
    "submissionTime": "2026-11-29T05:00:01.000GMT",
}
TASK = {"taskId": 0, "index": 0, "status": "SUCCESS", "launchTime": "2026-11-29T05:00:02.000GMT", "duration": 1500}


def running(hostile: Hostile, **pages: Any) -> None:
    """An application that serves no log; `pages` replace those of its REST interface."""
    hostile.has("app-1")
    usual = {
        "environment": {"sparkProperties": [["spark.master", "local[1]"]]},
        "allexecutors": [{"id": "driver", "hostPort": "h:1", "totalCores": 1, "addTime": "2026-11-29T05:00:00.000GMT"}],
        "jobs": [],
        "stages": [STAGE],
    }
    for name, value in (usual | pages).items():
        hostile.pages[f"/api/v1/applications/app-1/{name}"] = (200, {}, [json.dumps(value).encode()])
    entry = {"id": "app-1", "name": "made", "attempts": [{"startTimeEpoch": 1_795_928_400_000}]}
    hostile.pages["/api/v1/applications/app-1"] = (200, {}, [json.dumps(entry).encode()])
    hostile.pages["/api/v1/applications/app-1/logs"] = (200, {}, [b""])
    tasks = "/api/v1/applications/app-1/stages/0/0/taskList?sortBy=ID&offset=0&length=10000"
    hostile.pages[tasks] = (200, {}, [json.dumps([TASK]).encode()])


def test_pages_without_a_log_are_read(crystalperf: Answer, hostile: Hostile, tmp_path: Path) -> None:
    running(hostile)
    code, _, err = crystalperf("profile", hostile.address, "-o", tmp_path / "run.duckdb")
    assert code == 0, err
    rows = cp.open_run(tmp_path / "run.duckdb").sql("SELECT stage_id, status, finish_ms - launch_ms FROM tasks").rows
    assert [tuple(row) for row in rows] == [("stage:0.0", "succeeded", 1500.0)]


@pytest.mark.parametrize(
    "pages",
    [
        {"stages": [{"status": "COMPLETE"}]},
        {"stages": {"a": 1}},
        {"jobs": [{"name": "no id"}]},
        {"allexecutors": [["driver"]]},
        {"allexecutors": [{"hostPort": 5}]},
    ],
)
def test_pages_of_another_shape_are_refused(crystalperf: Answer, hostile: Hostile, pages: dict[str, Any]) -> None:
    running(hostile, **pages)
    is_refused(crystalperf, hostile, hostile.address)


# What is kept -------------------------------------------------------------------------------------------------------


def test_updated_application_is_fetched_again(hostile: Hostile, tmp_path: Path) -> None:
    """Under the name it had: what it becomes is one run, not one for each moment."""
    pages = hostile.pages
    for moment in (7, 9, 9):
        hostile.has("app-1", last_updated=moment)
        pages["/api/v1/applications/app-1/logs"] = (200, {}, [zipped(**{f"log-{moment}": b"x"})])
        place = history.served(f"{hostile.address}/", None, tmp_path, lambda _: None)
        assert place is not None
        assert zipfile.ZipFile(place).namelist() == [f"log-{moment}"]
    assert hostile.asked.count("/api/v1/applications/app-1/logs") == 2
    assert len([each for each in tmp_path.rglob("*") if each.is_file()]) == 1


def has_moment(hostile: Hostile, moment: str) -> None:
    listed = f'[{{"id": "app-1", "attempts": [{{"lastUpdatedEpoch": {moment}, "startTimeEpoch": {moment}}}]}}]'
    hostile.pages["/api/v1/applications"] = (200, {}, [listed.encode()])
    hostile.pages["/api/v1/applications/app-1/logs"] = (200, {}, [zipped(log=b"x")])


@pytest.mark.few(1)
@pytest.mark.parametrize("moment", ["-5", "1e300", "123456789012345678901234567890", "null"])
def test_impossible_timestamps_are_ignored(hostile: Hostile, tmp_path: Path, moment: str) -> None:
    has_moment(hostile, moment)
    assert history.served(f"{hostile.address}/", None, tmp_path, lambda _: None) is not None


@pytest.mark.few(1)
@pytest.mark.parametrize("moment", ["1e400", "-1e400", "NaN", "true", "{}"])
def test_timestamps_of_another_type_are_refused(hostile: Hostile, tmp_path: Path, moment: str) -> None:
    has_moment(hostile, moment)
    with refused(InputError, "/api/v1/applications"):
        history.served(f"{hostile.address}/", None, tmp_path, lambda _: None)


def test_full_disk_is_reported(hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile.has("app-1")
    hostile.pages["/api/v1/applications/app-1/logs"] = (200, {}, [os.urandom(1 << 16)] * 80)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))  # Python gets an error
    try:
        with refused(InputError, tmp_path):
            history.served(f"{hostile.address}/", None, tmp_path, lambda _: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
