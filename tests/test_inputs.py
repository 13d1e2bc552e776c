"""Files and folders recognised by content, and put together as applications."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import zstandard

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.containers import Part, local
from crystalperf.query.inputs.discover import choice, choose, discover
from crystalperf.query.inputs.files import Inputs
from tests.refusals import refused

DATA = Path(__file__).parent / "data" / "eventlog"
REAL = Path(__file__).parents[2] / "shared" / "real-inputs"


def log(app: str, *, attempt: str | None = None, started: int = 1_700_000_000_000, more: str = "") -> str:
    start = f'{{"Event":"SparkListenerApplicationStart","App Name":"job","App ID":"{app}","Timestamp":{started}'
    start += f',"App Attempt ID":"{attempt}"}}' if attempt else "}"
    return f'{{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}}\n{start}\n{more}'


def task(number: int) -> str:
    return f'{{"Event":"SparkListenerTaskEnd","Stage ID":0,"Task Info":{{"Task ID":{number}}}}}\n'


def names(inputs: Inputs) -> set[str]:
    problems = list(inputs.problems)
    for each in inputs.applications:
        problems += each.log.problems
    return {each.name for each in problems}


def listed(error: InputError) -> str:
    """The applications that a refusal offers to choose from."""
    assert error.remedy.kind == "choose an application"
    return error.remedy.facts["applications"]


def parts(inputs: Inputs) -> list[str]:
    return [os.path.basename(part.member or part.path) for part in choose(inputs).log.parts]


LOADED = """
import sys
from crystalperf.query.inputs.discover import discover
found = discover([sys.argv[1]])
print(*sorted(name for name in sys.modules if name.rpartition(".")[2] in ("framework", "files", "findings")))
"""


def test_recognising_files_loads_one_framework_in_full(tmp_path: Path) -> None:
    shutil.copy(DATA / "q9-first-lines.lz4", tmp_path / "log")
    (tmp_path / "run.json").write_text('{"seconds": 1}')
    done = subprocess.run([sys.executable, "-c", LOADED, str(tmp_path)], capture_output=True, text=True, check=True)
    loaded = [each.removeprefix("crystalperf.query.") for each in done.stdout.split()]
    assert [each for each in loaded if each.endswith(".framework")] == ["frameworks.spark.framework"]
    recognising = {f"frameworks.{each}.files" for each in ("flink", "spark", "ml.jax", "ml.mxnet", "ml.pytorch")}
    assert recognising <= set(loaded)
    assert [each for each in loaded if re.fullmatch(r"frameworks.*\.findings", each)] == ["frameworks.spark.findings"]


def test_content_decides_not_names(tmp_path: Path) -> None:
    shutil.copy(DATA / "q9-first-lines.lz4", tmp_path / "x.jpg")
    (tmp_path / "y.jfr").write_text("java.lang.Thread.run;a.b 12\nc;d 1.5\n")
    (tmp_path / "z.jsonl").write_bytes(gzip.compress(b"FLR\0" + bytes(100)))
    inputs = discover([tmp_path / "z.jsonl", tmp_path / "y.jfr", tmp_path / "x.jpg"])
    assert [(each.app_id, each.name) for each in inputs.applications] == [("app-20261121104214-0000", "tpch-q9")]
    assert [(each.path, each.kind) for each in inputs.samples] == [
        (str(tmp_path / "y.jfr"), "collapsed"),
        (str(tmp_path / "z.jsonl"), "jfr"),
    ]
    assert inputs.problems == ()
    assert discover([tmp_path]).applications == inputs.applications  # the same files, found in their folder


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
        (b'{"a": 1}\n', "JSON"),
        (b"Hello,\nthis is a text.\n", "text"),
        (b"\0\1\2\3" * 50, "binary"),
        (b"PK\x03\x04", "zip"),
        (b"\n \n", "blank"),
    ],
)
def test_refuses_a_useless_file_that_was_named_and_says_what_it_is(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "given").write_bytes(content)
    with refused(InputError, tmp_path / "given", said):
        discover([tmp_path / "given"])


def test_useless_files_in_a_folder_are_counted(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log("app-1"))
    (tmp_path / "picture").write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / "notes.txt").write_text("some notes\n")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "zero").symlink_to("/dev/zero")
    inputs = discover([tmp_path])
    assert choose(inputs).app_id == "app-1"
    assert {(each.name, each.count) for each in inputs.problems} == {("other_file", 2), ("unreadable_file", 2)}


def test_folder_without_usable_files(tmp_path: Path) -> None:
    for given in ([], [tmp_path], [tmp_path / "no"]):
        with refused(InputError, *given):
            discover(given)
    (tmp_path / "stacks").write_text("a;b 1\n")
    with refused(InputError):
        choose(discover([tmp_path]))


def test_several_applications_must_be_chosen_from(tmp_path: Path) -> None:
    for app in ("app-1", "app-2"):
        (tmp_path / app).write_text(log(app))
    inputs = discover([tmp_path])
    with refused(InputError, 2) as error:
        choose(inputs)
    assert listed(error.value) in ("app-1 (job), app-2 (job)", "app-2 (job), app-1 (job)")
    assert choose(inputs, "app-2").log.parts == (Part(str(tmp_path / "app-2")),)
    with refused(InputError, "app-3", "app-1", "app-2"):
        choose(inputs, "app-3")


def test_logs_without_identity_are_distinguished(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(task(1))
    with refused(InputError, 2) as error:
        choose(discover([tmp_path]))
    assert set(listed(error.value).split(", ")) == {"one", "two"}
    assert choose(discover([tmp_path]), "two").log.origin.endswith("two")


def test_newest_attempt_and_newest_log_are_taken(tmp_path: Path) -> None:
    for attempt in (1, 2, 10):
        content = log("application_1_1", attempt=str(attempt), started=1_700_000_000_000 + attempt)
        (tmp_path / f"attempt{attempt}").write_text(content)
    shutil.copy(tmp_path / "attempt2", tmp_path / "again")
    inputs = discover([tmp_path])
    assert [each.attempt for each in inputs.applications] == ["10", "2", "1"]
    assert choose(inputs).attempt == "10"
    assert choose(inputs, "application_1_1/2").attempt == "2"
    assert names(inputs) == {"repeated_log"}
    for chosen, said in (
        (choose(inputs), {"10", "application_1_1/2", "application_1_1/1", "newest"}),
        (choose(inputs, "application_1_1/2"), {"application_1_1/10", "application_1_1/1"}),
    ):
        note = choice(inputs, chosen)
        assert note is not None
        assert said <= set(re.split(r"[ ,;]+", note.meaning))
    alone = replace(inputs, applications=inputs.applications[:1])
    assert choice(alone, alone.applications[0]) is None


def test_of_several_applications_the_newest_is_a_default_that_is_named(tmp_path: Path) -> None:
    for number, app in enumerate(("app-1", "app-2")):
        (tmp_path / app).write_text(log(app, started=1_700_000_000_000 + number))
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        for app in ("app-1", "app-2"):
            archive.write(tmp_path / app, app)
    for given in (tmp_path / "both.zip", tmp_path):
        inputs = discover([given])
        assert choose(inputs, newest=True).app_id == "app-2"
        note = choice(inputs, choose(inputs, newest=True))
        assert note is not None
        assert {"app-2", "app-1"} <= set(re.split(r"[ ,;]+", note.meaning))


def test_rolled_log(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    (folder / "events_1_app-1").write_text(log("app-1"))
    for number in (2, 9, 10, 11):
        packed = zstandard.ZstdCompressor().compress(task(number).encode())
        (folder / f"events_{number}_app-1.zstd").write_bytes(packed)
    (folder / "appstatus_app-1.inprogress").touch()
    (folder / ".events_1_app-1.crc").write_bytes(b"crc")
    inputs = discover([folder])
    assert parts(inputs) == ["events_1_app-1", *(f"events_{number}_app-1.zstd" for number in (2, 9, 10, 11))]
    assert inputs.problems == ()
    (gap,) = choose(inputs).log.problems
    assert (gap.name, gap.severity, gap.count, gap.first_where) == ("missing_part", "data loss", 6, "part 3")
    assert gap.name in get("spark").reader.unread_work

    (folder / "events_10_app-1.compact").write_text(log("app-1"))
    inputs = discover([tmp_path])
    assert parts(inputs) == ["events_10_app-1.compact", "events_11_app-1.zstd"]
    assert names(inputs) == {"compacted_log"}

    (folder / "events_10_app-1.compact").unlink()
    (folder / "events_1_app-1").unlink()
    inputs = discover([folder])
    assert choose(inputs).app_id == "app-1"  # as the names say
    assert choose(inputs).log.problems[0].count == 7


def test_databricks_log(tmp_path: Path) -> None:
    def part(number: int) -> bytes:
        event = f'{{"Event":"DBCEventLoggingListenerMetadata","Rollover Number":{number},"SparkContext Id":77}}\n'
        return (event + (log("app-1") if number == 0 else task(number))).encode()

    (tmp_path / "eventlog").write_bytes(part(3))
    for number, hour in ((0, 9), (1, 10), (2, 11)):
        (tmp_path / f"eventlog-2022-01-18--{hour:02}-00.gz").write_bytes(gzip.compress(part(number)))
    inputs = discover([tmp_path])
    assert parts(inputs) == [*(f"eventlog-2022-01-18--{hour:02}-00.gz" for hour in (9, 10, 11)), "eventlog"]
    assert names(inputs) == set()
    assert choose(inputs).app_id == "app-1"
    (tmp_path / "eventlog-2022-01-18--10-00.gz").unlink()
    assert names(discover([tmp_path])) == {"missing_part"}


def test_same_names_of_different_applications_are_not_merged(tmp_path: Path) -> None:
    (tmp_path / "eventlog").write_text(log("app-1"))
    (tmp_path / "eventlog.gz").write_bytes(gzip.compress(log("app-2").encode()))
    assert {each.app_id for each in discover([tmp_path]).applications} == {"app-1", "app-2"}


def test_zip_of_the_history_server(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "eventLogs", "w") as archive:
        for attempt in "12":
            archive.writestr(f"application_1_1_{attempt}.lz4", log("application_1_1", attempt=attempt))
    inputs = discover([tmp_path / "eventLogs"])
    assert [each.attempt for each in inputs.applications] == ["2", "1"]
    with zipfile.ZipFile(tmp_path / "rolled", "w") as archive:
        for number in (10, 2, 1):
            archive.writestr(f"eventlog_v2_app-1/events_{number}_app-1", log("app-1") if number == 1 else task(number))
    inputs = discover([tmp_path / "rolled"])
    assert parts(inputs) == [f"events_{number}_app-1" for number in (1, 2, 10)]
    with zipfile.ZipFile(tmp_path / "other", "w") as archive:
        archive.writestr("readme", "hello")
    with refused(InputError, tmp_path / "other"):
        discover([tmp_path / "other"])


def test_start_far_into_the_log(tmp_path: Path) -> None:
    long = '{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{"a":"' + "x" * 500_000 + '"}}\n'
    (tmp_path / "log").write_text(long + log("app-far"))
    assert choose(discover([tmp_path])).app_id == "app-far"


def test_urls(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="reading URLs needs fsspec")
    (tmp_path / "eventlog_v2_app-1").mkdir()
    (tmp_path / "eventlog_v2_app-1" / "events_1_app-1").write_text(log("app-1"))
    for url in (f"file://{tmp_path}", f"file://{tmp_path}/eventlog_v2_app-1/events_1_app-1"):
        assert choose(discover([url])).app_id == "app-1"
    with refused(InputError, f"{tmp_path}/none"):
        discover([f"file://{tmp_path}/none"])


class Plain(BaseHTTPRequestHandler):
    """A server that gives no parts of a file and does not say how large it is; it fails where it is asked to."""

    content = b""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_gives_no_parts_of_a_file_and_one_that_fails(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="reading URLs needs fsspec")
    pytest.importorskip("aiohttp", reason="reading URLs needs aiohttp")
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        archive.writestr("app-1", log("app-1"))
    content = (tmp_path / "log.zip").read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Plain,), {"content": content}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        assert choose(discover([f"{address}/log.zip"])).app_id == "app-1"
        with refused(InputError, f"{address}/broken"):
            discover([f"{address}/broken"])
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the corpus of real inputs next to the repository")
def test_real_inputs_under_other_names(tmp_path: Path) -> None:
    checked = 0
    for path in sorted((REAL / "spark-eventlog").rglob("*")):
        if not path.is_file() or path.suffix == ".zip" or path.stat().st_size > 1 << 20:
            continue
        (tmp_path / "x").unlink(missing_ok=True)
        (tmp_path / "x").symlink_to(path)
        found = []
        for given in (path, tmp_path / "x"):
            try:
                first = discover([given]).applications[0]
                found.append((first.name, first.started_at_ms))
            except InputError as error:
                found.append((str(error).partition(": ")[2], None))
        assert found[0] == found[1]
        checked += 1
    assert checked > 50


# Kinds of paths -----------------------------------------------------------------


def test_empty_path_is_reported() -> None:
    with refused(InputError):
        discover([""])


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}"])
def test_an_address_of_this_machine_is_a_path(tmp_path: Path, form: str) -> None:
    """As spark.eventLog.dir and Hadoop write it; no package is needed for it."""
    place = tmp_path / "a log"
    place.write_text(log("app-1"))
    (found,) = discover([form.format(str(place).replace(" ", "%20"))]).applications
    assert found.log.parts[0].path == str(place)


@pytest.mark.parametrize("path", ["file://other/tmp/x", "file:x"])
def test_file_url_of_another_machine_is_not_a_path(path: str) -> None:
    assert local(path) == path


def test_unreadable_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(folder: str, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
        onerror(PermissionError(13, "Permission denied", folder))
        yield from ()

    monkeypatch.setattr("crystalperf.query.inputs.discover.os.walk", shut)
    with refused(InputError, tmp_path, "Permission denied"):
        discover([tmp_path])
