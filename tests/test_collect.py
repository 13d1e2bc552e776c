"""`crystalperf collect flink`: against a server that answers as the JobManager of a real job did."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.flink import collect, series
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import Problems
from tests.refusals import is_one_line, refused

JOIN = Path(__file__).parent / "data/flink/join-and-sort.json.gz"
JOB = "5671dc0f78ac6176e6d9383afcac1aca"

Answer = Callable[..., tuple[int, str, str]]


class Cluster:
    """Pages of a JobManager by path; the job runs for the first `rounds` times that it is asked for."""

    def __init__(self, rounds: int = 0) -> None:
        with gzip.open(JOIN, "rt", encoding="utf-8") as file:
            pages = json.load(file)["archive"]
        self.pages: dict[str, str] = {each["path"]: each["json"] for each in pages}
        self.pages["/overview"] = json.dumps({"flink-version": "1.20.3"})
        self.rounds, self.asked = rounds, 0
        self.address = ""
        self.attempts: list[str] = []
        """Pages of attempts that were asked for."""

    def answer(self, path: str) -> str | None:
        body = self.pages.get(path)
        if "/attempts/" in path:
            self.attempts.append(path)
        if path == f"/jobs/{JOB}" and body is not None:
            self.asked += 1
            if self.asked <= self.rounds:
                return json.dumps({**json.loads(body), "state": "RUNNING", "end-time": -1})
        return body


class Rescaled(Cluster):
    """Its job runs on two subtasks, and then on four, with one TaskManager more."""

    def answer(self, path: str) -> str | None:
        page, _, names = path.partition("?get=")
        count = 2 if self.asked < 9 else 4
        if page == "/taskmanagers":
            return json.dumps({"taskmanagers": [{"id": f"tm{number}"} for number in range(count // 2)]})
        if page.endswith("/metrics"):
            every = [each for each in names.split(",") if each]
            mine = [each for each in every if page.startswith("/taskm") or int(each.partition(".")[0]) < count]
            return json.dumps([{"id": each, "value": "7"} for each in mine])
        body = super().answer(path)
        if path == f"/jobs/{JOB}" and body is not None:
            found = json.loads(body)
            body = json.dumps({**found, "vertices": [{**each, "parallelism": count} for each in found["vertices"]]})
        return body


class Asking(Rescaled):
    """Of each vertex an operator holds seven records, another has dropped a fifth, and a sink gives nothing."""

    def answer(self, path: str) -> str | None:
        page, _, names = path.partition("?get=")
        if not page.endswith("/subtasks/metrics"):
            return super().answer(path)
        self.attempts.append(path)
        counted = {"Lookup": (1207, 1200), "Drop": (1000, 800), "Sink__Ages": (1000, 0)}
        sums = {
            f"{name}.{counter}": each
            for name, values in counted.items()
            for counter, each in zip(series.OPERATOR.values(), values, strict=True)
        }
        if not names:
            return json.dumps([{"id": each} for each in (*sums, "numRecordsIn", "Lookup.group.numRecordsIn")])
        wanted = names.removesuffix("&agg=sum").split(",")
        return json.dumps([{"id": each, "sum": sums[each]} for each in wanted])


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Cluster], str]]:
    """Serves a cluster on this machine, and returns its address."""
    monkeypatch.setattr(collect, "POLL_S", 0.01)
    servers: list[ThreadingHTTPServer] = []

    def start(cluster: Cluster) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = cluster.answer(self.path)
                self.send_response(404 if body is None else 302 if body.startswith("http") else 200)
                if body is not None and body.startswith("http"):
                    self.send_header("Location", body)
                self.end_headers()
                self.wfile.write((body or "").encode())

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster.address = f"http://127.0.0.1:{server.server_address[1]}"
        return cluster.address

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def test_collected_stream_answers_as_its_archive_and_knows_the_version(
    serve: Callable[[Cluster], str], tmp_path: Path
) -> None:
    cluster = Cluster(rounds=3)
    path = collect.collect(serve(cluster), None, tmp_path, lambda _: None)
    assert cluster.asked > 3  # until it had ended
    collected = cp.profile(path, output=tmp_path / "collected.duckdb")
    archived = cp.profile(JOIN, output=tmp_path / "archived.duckdb")
    assert collected.header().framework_version == "1.20.3"
    assert archived.header().framework_version is None
    assert collected.debug().critical_path == archived.debug().critical_path


def test_the_command_says_where_and_what_next(
    serve: Callable[[Cluster], str], crystalperf: Answer, tmp_path: Path
) -> None:
    code, out, err = crystalperf("collect", "flink", serve(Cluster()), "-o", tmp_path)
    assert (code, out) == (0, f"{tmp_path / JOB}\n")
    assert str(tmp_path / JOB) in err
    assert [each.name for each in tmp_path.iterdir()] == [JOB]


def test_ended_attempts_are_requested_once_if_they_are_kept(
    serve: Callable[[Cluster], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "KEEP_S", 0.0)
    cluster = Cluster(rounds=6)
    vertex = next(each for each in cluster.pages if each.endswith("/vertices/" + each.rpartition("/")[2]))
    page = json.loads(cluster.pages[vertex])
    page["subtasks"] = [{**page["subtasks"][0], "subtask": 0, "attempt": 300}]
    cluster.pages[vertex] = json.dumps(page)
    for attempt, status in ((297, "FAILED"), (298, "CANCELED"), (299, "RUNNING")):
        earlier = json.dumps({**page["subtasks"][0], "attempt": attempt, "status": status})
        cluster.pages[f"{vertex}/subtasks/0/attempts/{attempt}"] = earlier
    path = collect.collect(serve(cluster), None, tmp_path, lambda _: None)
    asked = Counter(int(each.rpartition("/")[2]) for each in cluster.attempts)
    assert min(asked) == 300 - collect.MAX_ATTEMPTS
    assert (asked[297], asked[298]) == (1, 1)
    assert asked[299] > 1  # it still ran, as did the last
    kept = {each["path"].rpartition("/")[2] for each in json.loads(path.read_text())["archive"]}
    assert {"297", "298", "299"} <= kept


def test_a_job_that_is_scaled_is_looked_at_with_all_its_subtasks(
    serve: Callable[[Cluster], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "KEEP_S", 0.0)
    collect.collect(serve(Rescaled(rounds=20)), None, tmp_path, lambda _: None)
    path = tmp_path / f"{JOB}.series.gz"
    found = series.read(LogFile(str(path), (Part(str(path)),)), Problems())
    counts = [{len(values["records_in"]) for values in each.vertices.values()} for each in found.samples]
    assert counts == sorted(counts, key=max)
    assert (counts[0], counts[-1]) == ({2}, {4})
    assert [set(each.workers) for each in (found.samples[0], found.samples[-1])] == [{"tm0"}, {"tm0", "tm1"}]
    assert set(found.workers) == {"tm0", "tm1"}
    assert found.samples[-1].vertices.popitem()[1]["records_in"] == [7, 7, 7, 7]


def test_operators_that_may_hold_records_are_polled_each_time(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    cluster = Asking(rounds=5)
    collect.collect(serve(cluster), None, tmp_path, lambda _: None)
    path = tmp_path / f"{JOB}.series.gz"
    found = series.read(LogFile(str(path), (Part(str(path)),)), Problems())
    first, *others = (each.operators for each in found.samples)
    assert first == {}
    assert len(others) > 1
    assert all(mine == {"Lookup": [1207, 1200]} for each in others for mine in each.values())
    assert all(len(each) == len(found.samples[0].vertices) for each in others)
    # All operators once, which takes two requests a vertex; then those that may hold records.
    assert len(cluster.attempts) == len(others[0]) * (2 + len(others))


def test_metrics_that_cannot_be_written_are_one_sentence(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    """At once, and neither at the end nor as a cluster that is gone."""
    (tmp_path / f"{JOB}.series.gz").mkdir()
    cluster = Rescaled(rounds=60)
    with refused(InputError, JOB):
        collect.collect(serve(cluster), None, tmp_path, lambda _: None)
    assert cluster.asked < 30


def test_interrupt_keeps_the_collected_data(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    path = collect.collect(serve(Cluster(rounds=10**9)), JOB, tmp_path, stop)
    assert cp.profile(path, output=tmp_path / "run.duckdb").header().complete is False


def test_cluster_that_goes_away_leaves_the_collected_data(
    serve: Callable[[Cluster], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(rounds=10**9)
    address = serve(cluster)

    def leave(_: str) -> None:
        cluster.pages.clear()

    assert collect.collect(address, JOB, tmp_path, leave).exists()


@pytest.mark.parametrize(
    "address",
    ["localhost:8081", "file:///etc/passwd", "http://", "http://a b", "ftp://h/x", "http://127.0.0.1:1"],
)
def test_refuses_an_address_without_a_job_manager(address: str, tmp_path: Path) -> None:
    with refused(InputError, address):
        collect.collect(address, None, tmp_path, lambda _: None)


def test_another_server_is_one_sentence(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.pages = {"/jobs/overview": "<html>"}
    address = serve(cluster)
    with refused(InputError, address):
        collect.collect(address, None, tmp_path, lambda _: None)


def test_several_running_jobs_are_named(serve: Callable[[Cluster], str], crystalperf: Answer, tmp_path: Path) -> None:
    cluster = Cluster()
    jobs = [{"jid": str(number) * 32, "name": f"job {number}", "state": "RUNNING"} for number in (1, 2)]
    cluster.pages["/jobs/overview"] = json.dumps({"jobs": jobs})
    code, _, err = crystalperf("collect", "flink", serve(cluster), "-o", tmp_path)
    assert code == 1
    is_one_line(err, "1" * 32, "job 1", "2" * 32, "job 2", "--job")


def test_a_redirect_to_another_server_is_not_followed(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    elsewhere = Cluster()
    cluster = Cluster()
    other = serve(elsewhere)
    cluster.pages["/jobs/overview"] = f"{other}/jobs/overview"
    with refused(InputError, other):
        collect.collect(serve(cluster), None, tmp_path, lambda _: None)


def test_a_job_that_is_not_there_is_one_sentence(serve: Callable[[Cluster], str], tmp_path: Path) -> None:
    with refused(InputError, 404):
        collect.collect(serve(Cluster()), "0" * 32, tmp_path, lambda _: None)
    with refused(InputError, "../../x"):
        collect.collect(serve(Cluster()), "../../x", tmp_path, lambda _: None)


def test_spark_writes_its_log_by_itself(crystalperf: Answer, tmp_path: Path) -> None:
    code, _, err = crystalperf("collect", "spark", "http://127.0.0.1:1", "-o", tmp_path)
    assert code == 1
    is_one_line(err, "Spark", "flink")
