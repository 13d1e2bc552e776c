"""A real framework of another package: Dask's reports, task streams and dumps, read through its plugin."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.plugin import InputError, Part, Problems
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.discover import discover
from tests.refusals import refused

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "examples" / "dask-framework"
DATA = Path(__file__).parent / "data" / "dask"
REPORT, DUMP = "dask-report.html.gz", "state.msgpack.gz"
"""24 answers of a server that takes 0.4 s each, each parsed in 0.1 s, added up; 2 workers with a thread each, 6.4 s."""


@pytest.fixture(scope="module", autouse=True)
def dask() -> Iterator[Any]:
    """The package as if it were installed."""
    sys.path.insert(0, str(PACKAGE))
    found = import_module("crystalperf_dask")
    frameworks()["dask"] = found.DASK
    yield found
    del frameworks()["dask"]
    sys.path.remove(str(PACKAGE))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder with these files of the recording."""

    def made(*names: str) -> Path:
        for each in names:
            shutil.copy(DATA / each, tmp_path / each)
        return tmp_path

    return made


def read_log(log: Any) -> Any:
    """The trace of a log."""
    return import_module("crystalperf_dask.trace").of_log(log)


def reading() -> Any:
    """What reads files."""
    return import_module("crystalperf_dask.reading")


def stream(*rows: tuple[str, str, float, float, list[tuple[str, float, float]]]) -> list[dict[str, Any]]:
    """Messages as get_task_stream returns them, of (key, worker, start, stop, other actions), s."""
    return [
        {
            "key": key, "worker": worker, "thread": 1, "status": "OK",
            "startstops": [*({"action": a, "start": s, "stop": e} for a, s, e in others),
                           {"action": "compute", "start": start, "stop": stop}],
        }
        for key, worker, start, stop, others in rows
    ]  # fmt: skip


def test_imports_only_the_plugin_interface() -> None:
    texts = [each.read_text(encoding="utf-8") for each in sorted((PACKAGE / "crystalperf_dask").glob("*.py"))]
    imported = {line.split()[1] for text in texts for line in text.split("\n") if line.startswith(("from ", "import "))}
    ours = {
        each for each in imported if each.partition(".")[0] in ("query", "indexes", "indexer", "cli", "crystalperf")
    }
    assert ours == {"crystalperf.plugin"}


def test_a_report_and_a_dump_are_one_run(folder: Callable[..., Path]) -> None:
    found = discover([folder(REPORT, DUMP)])
    assert len(found.applications) == 1
    assert len(found.applications[0].log.parts) == 2
    read = read_log(found.applications[0].log)
    assert len(read.tasks["task_id"]) == 49  # 24 fetched, 24 parsed, 1 sum
    assert len(read.stages["stage_id"]) == 49
    assert len(read.dependencies["source"]) == 48
    assert [each.name for each in read.resources][-2:] == ["python", "service"]
    assert read.workers["slots"].tolist() == [1, 1]


def test_waiting_for_a_server_is_distinguished_from_computing(folder: Callable[..., Path]) -> None:
    read = read_log(discover([folder(REPORT, DUMP)]).applications[0].log)
    names = [*read.names, "other"]
    fetched = [name == "fetch" for name in read.stages["name"].tolist()]
    parsed = [name == "parse" for name in read.stages["name"].tolist()]
    likely = read.bounds.likely_ms
    assert likely[fetched][:, names.index("service")].sum() > 9_000  # 24 times 0.4 s
    assert likely[parsed][:, names.index("service")].sum() == 0
    assert likely[parsed][:, names.index("python")].sum() > 2_000


@pytest.mark.later
def test_threads_that_share_an_interpreter_gain_nothing(folder: Callable[..., Path], tmp_path: Path) -> None:
    run = cp.profile([folder(REPORT, DUMP)], output=tmp_path / "run.duckdb")
    before_ms, after_ms = (run.sql(
        f"SELECT sum(tasks.python_ms) AS ms FROM tasks JOIN stages USING (stage_id) WHERE stages.name = '{name}'"
    ).rows[0][0] for name in ("fetch", "parse"))  # fmt: skip
    assert before_ms == 0 < after_ms
    assert run.predict(cores="2x").predicted_ms >= run.predict(workers="2x").predicted_ms


def test_a_report_alone_says_that_it_lacks_dependencies(folder: Callable[..., Path]) -> None:
    read = read_log(discover([folder(REPORT)]).applications[0].log)
    assert read.stages["name"].tolist() == ["fetch and 1 more", "sum"]
    assert [each.name for each in read.problems] == ["no dependencies"]


@pytest.mark.few(1)
@pytest.mark.parametrize("files", [(REPORT, DUMP), (REPORT,), (DUMP,)])
def test_the_unchanged_run_is_replayed(folder: Callable[..., Path], files: tuple[str, ...], tmp_path: Path) -> None:
    run = cp.profile([folder(*files)], output=tmp_path / "run.duckdb")
    predicted = run.predict(workers="2x")
    assert predicted.replayed_ms == pytest.approx(predicted.runtime_ms, rel=0.05)
    assert predicted.predicted_ms < 0.7 * predicted.runtime_ms


def test_a_transfer_counts_while_its_thread_is_idle(tmp_path: Path) -> None:
    path = tmp_path / "stream.json"
    path.write_text(json.dumps(stream(
        ("load-1", "tcp://a:1", 100.0, 101.0, []),
        ("add-1", "tcp://a:1", 103.0, 104.0, [("transfer", 100.5, 102.0), ("transfer", 101.5, 103.0)]),
    )))  # fmt: skip
    read = read_log(discover([path]).applications[0].log)
    net = read.names.index("net")
    assert read.tasks["launch_ms"].tolist() == [0.0, 1000.0]  # before 101 s the thread had something to do
    assert read.bounds.floor_ms[:, net].tolist() == [0.0, 2000.0]  # two at a time count once


def test_keys_are_the_same_in_all_files() -> None:
    assert reading().name_of(["x-1", 2]) == reading().name_of(("x-1", 2)) == "('x-1', 2)"
    assert reading()._key("<TaskState ('x-1', 2) released>") == "('x-1', 2)"
    assert reading()._key("<TaskState 'x-1' memory>") == "x-1"
    assert reading().layer_of("('read-parquet-0f0f', 3)") == "read-parquet-0f0f"
    assert reading().prefix_of("('read-parquet-0f0f3a', 3)") == "read-parquet"


def test_stacks_end_in_a_frame_of_an_icicle() -> None:
    icicle = {
        "left": [0, 0, 0, 0.75], "right": [1, 1, 0.75, 1], "bottom": [0, 1, 2, 2],
        "filename": ["", "a.py", "/lib/socket.py", "b.py"], "name": ["", "f", "readinto", "&lt;genexpr&gt;"],
        "line_number": [0, 1, 2, 3], "line": ["", "", "", ""],
    }  # fmt: skip
    assert import_module("crystalperf_dask.page").stacks(icicle) == [
        ((("a.py", "f", 1), ("/lib/socket.py", "readinto", 2)), 0.75),
        ((("a.py", "f", 1), ("b.py", "<genexpr>", 3)), 0.25),
    ]


@pytest.mark.parametrize("cut", [lambda text: text[:40_000], lambda text: text.replace(b"worker_thread", b"w")])
def test_a_damaged_report_is_one_sentence(cut: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(cut(gzip.decompress((DATA / REPORT).read_bytes())))
    with refused(InputError, path):
        read_log(discover([path]).applications[0].log)


def test_a_damaged_dump_leaves_the_report(folder: Callable[..., Path]) -> None:
    place = folder(REPORT)
    (place / DUMP).write_bytes((DATA / DUMP).read_bytes()[:20_000])
    read = read_log(discover([place]).applications[0].log)
    assert len(read.tasks["task_id"]) == 49
    assert "damaged dump" in {each.name for each in read.problems}


def test_foreign_bytes_are_not_a_log() -> None:
    problems = Problems()
    known = reading().Known()
    reading()._dump(b"\x83\xa9scheduler\xc1", Part("x"), known, problems)
    assert [each.name for each in problems] == ["damaged dump"]
