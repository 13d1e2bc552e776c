"""Hostile requests to the service: other hosts, other pages, no token, bombs, cut files, statements."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from crystalperf.cli import serving
from crystalperf.indexes.errors import SettingError
from crystalperf.query.run import Run
from crystalperf.service.problems import ProblemError
from crystalperf.service.settings import Limits, Settings
from crystalperf.service.shield import Shield
from crystalperf.service.uploads import Uploads
from tests.served import Served
from tests.served import serving as served_from

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"
TOKEN = "correct-horse-battery-staple"

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, log_run: Run) -> Iterator[Served]:
    """A service with narrow limits."""
    home = tmp_path_factory.mktemp("service") / "home"
    limits = {
        "upload_bytes": 3_000_000, "upload_files": 3, "silent_s": 1, "slow_after_s": 2, "body_bytes": 200_000,
        "sql_s": 2, "sql": 1,
        "waiting_sql": 1, "sql_answer_bytes": 500_000, "waiting_jobs": 2, "job_s": 20, "sql_memory_bytes": 200_000_000,
        "job_memory_bytes": 700_000_000, "sql_runs": 1, "events": 1,
    }  # fmt: skip
    reported = [part for name, number in limits.items() for part in ("--limit", f"{name}={number}")]
    with served_from(home, [log_run.path], *reported) as found:
        yield found


def reported(found: httpx.Response, status: int) -> str:
    """The sentence of a problem with that status."""
    assert found.status_code == status, found.text[:500]
    assert found.headers["content-type"] == "application/problem+json"
    content = found.json()
    assert content["status"] == status
    assert content["error"]["schema"] == "crystalperf.error/2"
    assert "bug" not in content["detail"]
    detail: str = content["detail"]
    assert 10 < len(detail) < 600
    return detail


# Who may ask --------------------------------------------------------------------------------------------------------


def passed(settings: Settings, method: str = "GET", path: str = "/api/runs", **headers: str) -> int:
    """The status that a request gets from the shield; 200 where it is passed on."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> int:
        transport = httpx.ASGITransport(app=Shield(inner, settings))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8090") as client:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return (await client.request(method, path, headers=sent)).status_code

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8090", "127.0.0.1", "[::1]:8090", "10.1.2.3:80", "perf.corp:1"]
)
def test_service_accepts_its_own_host_names(tmp_path: Path, host: str) -> None:
    assert passed(Settings(tmp_path, hosts=("perf.corp",)), host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8090",
        "localhost@evil",
        "x y",
        "[::1",
        "",
    ],
)
def test_rebound_host_name_is_refused(tmp_path: Path, host: str) -> None:
    assert passed(Settings(tmp_path, hosts=("perf.corp",)), host=host) == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "http://127.0.0.1:8090.evil.example"},
        {"origin": "http://[127.0.0.1:8090"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site", "origin": "http://127.0.0.1:8090"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT"])
def test_requests_of_other_pages_change_nothing(tmp_path: Path, method: str, headers: dict[str, str]) -> None:
    assert passed(Settings(tmp_path), method, host="127.0.0.1:8090", **headers) == 403


def test_own_pages_and_programs_may_change_runs(tmp_path: Path) -> None:
    assert passed(Settings(tmp_path), "POST", host="127.0.0.1:8090", origin="http://127.0.0.1:8090") == 200
    assert passed(Settings(tmp_path), "DELETE", host="127.0.0.1:8090") == 200


def test_token_is_required_if_others_can_reach_the_service(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "10.0.0.5", "perf.corp"):
        with pytest.raises(SettingError, match="token"):
            Settings(tmp_path, host=host)
        Settings(tmp_path, host=host, token=TOKEN)
    with pytest.raises(SettingError, match="16"):
        Settings(tmp_path, token="short")


def test_only_the_token_gives_access(tmp_path: Path) -> None:
    settings = Settings(tmp_path, host="0.0.0.0", token=TOKEN)
    basic = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    assert passed(settings, authorization=f"Bearer {TOKEN}") == 200
    assert passed(settings, authorization=f"Basic {basic}") == 200
    assert passed(settings, path="/health") == 200
    wrong = [
        "",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        "Bearer",
        "Basic ???",
        "Basic bWU6eA==",
        f"Digest {TOKEN}",
    ]
    for each in wrong:
        assert passed(settings, authorization=each) == 401
    assert passed(settings, path=f"/api/runs?token={TOKEN}") == 401


def test_child_processes_of_the_service_do_not_get_the_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN[::-1])
    for file, token in (("", TOKEN), (str(tmp_path / "token"), TOKEN[::-1])):
        monkeypatch.setenv(serving.TOKEN, TOKEN)
        assert serving._token(file) == token
        assert serving.TOKEN not in os.environ


def test_serve_requires_a_token_on_public_addresses(crystalperf: Answer, tmp_path: Path) -> None:
    code, out, err = crystalperf("serve", "--home", tmp_path, "--host", "0.0.0.0", "--port", "0")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "--token-file" in err


def test_every_answer_has_a_content_security_policy(served: Served) -> None:
    for path in ("/", "/sql", "/indexes", "/nothing", "/api/runs", "/runs/q9"):
        found = served.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in found.headers
        if "html" in found.headers["content-type"]:
            assert "<script>" not in found.text
            assert " style=" not in found.text
            assert " onclick=" not in found.text


# What is sent -------------------------------------------------------------------------------------------------------


def test_upload_over_the_limit_is_refused(served: Served) -> None:
    found = served.client.post("/api/runs", files={"files": ("big", b"x" * 3_500_000)})
    assert "MiB" in reported(found, 413)

    def endless() -> Iterator[bytes]:  # in chunks, without a length
        yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
        for _ in range(400):
            yield b"x" * 10_000

    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert "MiB" in reported(served.client.post("/api/runs", content=endless(), headers=headers), 413)
    many = [("files", (f"{number}", b"x")) for number in range(5)]
    assert "3 files" in reported(served.client.post("/api/runs", files=many), 413)
    fields = b'--b\r\nContent-Disposition: form-data; name="index"\r\n\r\nx\r\n' * 5_000 + b"--b--\r\n"
    assert "parts" in reported(served.client.post("/api/runs", content=fields, headers=headers), 413)
    nothing_left(served)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b\r\n",
        b"no multipart at all",
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nhalf a file',
        b'--b\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n--b--\r\n',
        b'--b\r\nContent-Disposition: form-data; name="app"\r\n\r\nx\r\n--b--\r\n',
        b"--b\r\n" + b"a" * 100_000 + b": x\r\n\r\n",
        b'--b\r\nContent-Disposition: form-data; name="app"\r\n\r\n' + b"x" * 20_000 + b"\r\n--b--\r\n",
        b"--b--\r\n",
    ],
    ids=lambda each: ascii(each)[:40],
)
def test_a_damaged_upload_ends_in_one_sentence(served: Served, body: bytes) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    found = served.client.post("/api/runs", content=body, headers=headers)
    reported(found, found.status_code)
    assert found.status_code in (400, 413)
    nothing_left(served)


def nothing_left(served: Served) -> None:
    """No part of an upload that was refused stays."""
    assert not list((served.home / "service" / "uploads").iterdir())


BODIES = {
    "an upload": b"POST /api/runs HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\nHost: localhost\r\n"
    b"Content-Length: 1000\r\n\r\n--b\r\n"
    b'Content-Disposition: form-data; name="files"; filename="a"\r\n\r\n',
    "JSON": b"POST /api/sql HTTP/1.1\r\nContent-Type: application/json\r\nHost: localhost\r\n"
    b'Content-Length: 1000\r\n\r\n{"statement": "',
    "a form": b"POST /sql HTTP/1.1\r\nOrigin: http://localhost\r\nHost: localhost\r\n"
    b"Content-Length: 1000\r\n\r\nstatement=",
}
"""How a request begins whose body never ends."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("what", "drip"),
    [("an upload", b""), ("an upload", b"x"), ("JSON", b""), ("JSON", b"x"), ("a form", b"x")],
    ids=lambda each: {b"": "pauses", b"x": "drips"}.get(each, each),
)
def test_body_that_stalls_or_drips_is_dropped(served: Served, what: str, drip: bytes) -> None:
    """A client that sends a byte now and then never times out, and would keep one of a few connections for days."""
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.settimeout(0.2)
        client.sendall(BODIES[what])
        answer = b""
        for _ in range(500):
            with suppress(TimeoutError):
                answer = client.recv(100_000)
                break
            client.sendall(drip)
        client.settimeout(60)
        with suppress(ConnectionResetError):
            while client.recv(100_000):
                pass  # until the service ends it
    assert answer.startswith(b"HTTP/1.1 408 ")
    nothing_left(served)


def test_a_boundary_that_is_too_long_and_a_form_of_too_many_fields_end_in_one_sentence(served: Served) -> None:
    headers = {"Content-Type": f"multipart/form-data; boundary={'b' * 300}"}
    assert "boundary" in reported(served.client.post("/api/runs", content=b"--b--", headers=headers), 400).lower()
    fields = "&".join(f"f{number}=x" for number in range(20))
    own = {"Origin": f"http://127.0.0.1:{served.port}"}
    found = served.client.post("/sql", content=fields, headers=own)
    assert (found.status_code, "bug" in found.text) == (400, False)
    nothing_left(served)


def test_rejected_uploads_release_their_slots(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "inputs", tmp_path / "gone", set(), Limits(uploads=1))
    headers = [(b"content-type", b"multipart/form-data; boundary=b")]

    async def take() -> int:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"--b--", "more_body": False}

        with pytest.raises(ProblemError) as refused:
            await uploads.take(Request({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive))
        return refused.value.status

    assert [asyncio.run(take()) for _ in range(3)] == [503, 503, 503]


def test_truncated_upload_leaves_no_files(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(
            b"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
        )
    before = served.get("/api/jobs").json()["total"]
    for _ in range(100):
        if not list((served.home / "service" / "uploads").iterdir()):
            break
        served.get("/health")
    nothing_left(served)
    assert served.get("/api/jobs").json()["total"] == before


def bombs(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Small files that grow, and files that were cut."""
    yield "zeros.gz", gzip.compress(bytes(200_000_000), 9)
    line = b'{"Event":"SparkListenerApplicationStart","App Name":"a","App ID":"app-1","Timestamp":1700000000000}\n'
    yield "lines.gz", gzip.compress(line + b'{"Event":"' + b"x" * 150_000_000, 9)
    place = folder / "many.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3000):
            archive.writestr(f"events_{number}", bytes(10_000))
    yield "many.zip", place.read_bytes()
    whole = LOG.read_bytes()
    yield "cut.zstd", whole[: len(whole) // 2]
    yield "head.zstd", whole[:20]
    yield "empty", b""
    yield "nothing.jfr", b"FLR\0" + bytes(100)


@pytest.mark.later
def test_bombs_and_cut_files_end_in_a_sentence(served: Served, tmp_path: Path) -> None:
    for name, content in bombs(tmp_path):
        sent = served.client.post("/api/runs", files={"files": (name, content)})
        assert sent.status_code == 202, (name, sent.text)
        job = served.job_over(sent.json()["id"])
        if name in ("cut.zstd", "lines.gz") and job["state"] == "done":  # what a log has before its end is answered
            continue
        assert job["state"] == "failed", name
        assert 10 < len(job["problem"]) < 600
        assert "bug" not in job["problem"], name
    assert served.get("/health").status_code == 200


def test_jobs_beyond_the_queue_limit_are_refused(served: Served) -> None:
    sent = []
    for number in range(8):
        found = served.client.post("/api/runs", files={"files": (f"{number}", f"no log {number}".encode())})
        sent.append(found)
    refused = [each for each in sent if each.status_code != 202]
    for each in refused:
        assert "wait" in reported(each, 429)
        assert int(each.headers["retry-after"]) > 0
    assert refused
    for each in sent:
        if each.status_code == 202:
            assert served.job_over(each.json()["id"])["state"] == "failed"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"statement": 1}', 400),
        (b'{"statement": "SELECT 1", "more": 1}', 400),
        (b'{"statement": "\\ud800"}', 400),
        (b'{"statement": "' + b"x" * 150_000 + b'"}', 400),
        (b'{"statement": "' + b"x" * 250_000 + b'"}', 413),
        (b"[" * 100_000, 400),
        (b"\xff\xfe", 400),
    ],
    ids=lambda each: ascii(each)[:40],
)
def test_invalid_body_is_one_sentence(served: Served, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    reported(served.client.post("/api/runs/q9/sql", content=body, headers=headers), status)


def test_form_of_another_page_is_not_accepted_as_json(served: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        headers = {"Content-Type": kind}
        reported(served.client.post("/api/sql", content=b'{"statement": "SELECT 1"}', headers=headers), 415)
    statement = "statement=SELECT+1&run=q9"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert served.client.post("/sql", content=statement, headers=headers).status_code == 403
    assert served.client.post("/upload", files={"files": ("a", b"a")}).status_code == 403


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a%00b", "x" * 300, ".hidden", "a%0d%0ab", "é"]
)
def test_run_names_cannot_escape_the_folder(served: Served, name: str) -> None:
    for method, path in (("GET", ""), ("GET", "/debug"), ("DELETE", ""), ("GET", "/verdict")):
        found = served.client.request(method, f"/api/runs/{name}{path}")
        assert found.status_code in (400, 404, 405, 307), found.text
    assert served.get("/api/runs/q9").status_code == 200


# Statements ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def places(served: Served) -> list[str]:
    """Targets of statements: the run that is asked, a file next to it, a free name."""
    secret = served.home / "runs" / "secret.csv"
    secret.write_text("a\nswordfish\n")
    run = str(served.home / "runs" / "q9.duckdb")
    return [
        run,
        f"{run}.wal",
        str(secret),
        str(served.home / "runs" / "free"),
        f"file://{secret}",
        f"/proc/self/root{run}",
    ]


def hostile_statements(places: list[str]) -> list[str]:
    """All that the terminal refuses (tests/hostile/test_sql_statements.py)."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("sql_statements", Path(__file__).with_name("test_sql_statements.py"))
    module = module_from_spec(spec)
    import sys

    sys.modules["sql_statements"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return [each.format(path=path) for path in places for each in (*module.WRITERS, *module.READERS)]


def check_statements(served: Served, statements: list[str]) -> None:
    folder = served.home / "runs"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    interfaces: tuple[tuple[str, dict[str, Any]], ...] = (("/api/runs/q9/sql", {}), ("/api/sql", {"runs": ["q9"]}))
    for number, statement in enumerate(statements):
        path, body = interfaces[number % 3 == 2]  # the process behind both is the same
        found = served.post(path, {"statement": statement, **body})
        assert "swordfish" not in found.text, statement
        if found.status_code != 200:
            reported(found, found.status_code)
            assert found.status_code in (400, 413, 422), statement
        assert {path.name for path in folder.iterdir()} == set(before), statement
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_no_statement_changes_or_reads_a_file(served: Served, places: list[str]) -> None:
    check_statements(served, hostile_statements(places)[::97])


@pytest.mark.later
@pytest.mark.parametrize("part", range(4))  # each statement is half a second of CPU time
def test_hostile_statements_neither_change_nor_read_a_file(served: Served, places: list[str], part: int) -> None:
    statements = hostile_statements(places)
    assert len(statements) > 350
    check_statements(served, statements[part::4])


@pytest.mark.later
def test_statement_is_stopped_at_its_limits(served: Served) -> None:
    def ask(statement: str) -> httpx.Response:
        return served.post("/api/runs/q9/sql", {"statement": statement})

    assert "stopped after 2 s" in reported(ask("SELECT levenshtein(repeat('a', 10000000), repeat('b', 10000000))"), 422)
    sorting = reported(ask("SELECT * FROM range(100000000) ORDER BY hash(range)"), 422)
    assert "memory" in sorting or "stopped after" in sorting  # whichever a machine reaches first
    assert "MiB" in reported(ask("SELECT repeat('x', 10000) FROM range(200)"), 413)
    assert "MiB" in reported(
        ask("SELECT repeat('x', 5000000)"), 422
    )  # one value, which would come to the service whole
    assert "nested" in reported(ask("SELECT " + "(" * 90_000), 400)
    assert ask("SELECT 1 AS a").json() == [{"a": 1}]


def test_statements_beyond_the_limit_get_retry_later(served: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    slow = {"statement": "SELECT levenshtein(repeat('a', 10000000), repeat('b', 10000000))"}
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda _: served.post("/api/runs/q9/sql", slow), range(5)))
    statuses = sorted(each.status_code for each in found)
    assert statuses[:2] == [422, 422]
    refused = [each for each in found if each.status_code == 429]
    assert len(refused) == 3
    assert all(int(each.headers["retry-after"]) > 0 for each in refused)


def test_names_in_logs_are_text_on_pages(served: Served, tmp_path: Path) -> None:
    """A log whose application is named like a script."""
    name = "<script>alert(1)</script>\x1b[31m"
    lines = [
        {"Event": "SparkListenerLogStart", "Spark Version": "4.0.1"},
        {"Event": "SparkListenerApplicationStart", "App Name": name, "App ID": "app-x", "Timestamp": 1, "User": "u"},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": 10_000},
    ]
    content = "".join(json.dumps(each) + "\n" for each in lines).encode()
    job = served.job_over(served.client.post("/api/runs", files={"files": ("<b>x", content)}).json()["id"])
    assert job["state"] == "done", job
    failed = served.job_over(served.client.post("/api/runs", files={"files": ("<b>x", b"no log")}).json()["id"])
    assert failed["state"] == "failed", failed
    for path in ("/", f"/runs/{job['run']}", f"/jobs/{failed['id']}", "/sql"):
        page = served.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<b>x" not in page.text
        assert "\x1b" not in page.text
    assert served.client.delete(f"/api/runs/{job['run']}").status_code == 204


def test_files_of_the_service_are_private_to_its_user(served: Served) -> None:
    for each in (served.home / "service").rglob("*"):
        assert os.stat(each).st_mode & 0o077 == 0 or not each.is_dir(), each
