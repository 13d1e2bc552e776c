"""Building an index from the small sources, its warnings, and builds that are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from tests.refusals import refused

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer import measured
from crystalperf.indexer.build import build
from crystalperf.indexer.callgraph import resolve_calls
from crystalperf.indexer.labels.functions import text_hash
from crystalperf.indexer.labels.tables import Measured, write_table
from crystalperf.indexer.parse import parse_file
from crystalperf.indexer.sources import open_source
from crystalperf.indexes import open_read_only, temporary
from crystalperf.indexes.errors import BuildError, IndexFileError
from crystalperf.indexes.exports import verify
from tests.hash_classifier import HashClassifier
from tests.small_indexes import INDEXES, build_again, kept_path, lines
from tests.small_indexes import small_index as committed_index

SOURCES = Path(__file__).parent / "data" / "sources"


def small_index(path: Path, name: str = "small-1.0") -> Path:
    return build(name, open_source(name, [SOURCES]), output=path, classifier=HashClassifier())


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    return open_read_only(small_index(tmp_path_factory.mktemp("built") / "small-1.0.duckdb"), "index")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", INDEXES)
def test_the_indexer_reproduces_the_committed_small_indexes(name: str, tmp_path: Path) -> None:
    again, kept = build_again(name, tmp_path / "again.duckdb"), kept_path(name).read_text(encoding="utf-8")
    assert "".join(lines(again)) == kept, "`python -m tests.small_indexes` writes them again; then read the difference"
    assert verify(committed_index(name, tmp_path / "kept.duckdb")) == verify(again)


def test_every_function_has_a_row(index: duckdb.DuckDBPyConnection) -> None:
    counts = dict(index.execute("SELECT language, count(*) FROM functions GROUP BY language").fetchall())
    assert counts == {"scala": 34, "java": 20, "python": 8, "cpp": 8}


def test_keys_are_unique_and_resolve(index: duckdb.DuckDBPyConnection) -> None:
    assert index.execute("""
        SELECT count(*) = count(DISTINCT symbol), count(*) = count(DISTINCT function_id), min(function_id),
               max(function_id) + 1 = count(*)
        FROM functions
    """).fetchone() == (True, True, 0, True)
    for table, column in (("runtime_names", "function_id"), ("calls", "caller_id"), ("calls", "callee_id")):
        assert index.execute(
            f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT function_id FROM functions)"
        ).fetchone() == (0,)


def test_functions_are_in_order_of_file_and_line(index: duckdb.DuckDBPyConnection) -> None:
    rows = index.execute("SELECT file, first_line, last_line FROM functions ORDER BY function_id").fetchall()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert all(first <= last for _, first, last in rows)


def test_vectors_sum_to_one(index: duckdb.DuckDBPyConnection) -> None:
    for prefix in ("", "code_", "doc_"):
        (worst,) = index.execute(
            f"SELECT max(abs({prefix}cpu::DOUBLE + {prefix}disk::DOUBLE + {prefix}net::DOUBLE - 1)) FROM functions"
        ).fetchone() or (1.0,)
        assert worst < 1e-6
    undocumented = index.execute("SELECT count(*) FROM functions WHERE (doc_chars = 0) <> (doc_cpu IS NULL)").fetchone()
    assert undocumented == (0,)


def test_symbols(index: duckdb.DuckDBPyConnection) -> None:
    symbols = {row[0] for row in index.execute("SELECT symbol FROM functions").fetchall()}
    assert "small 1.0 org/example/shop/Shop#`+=`()." in symbols
    assert "small 1.0 org/example/shop/Shop#`<init>`(+1)." in symbols
    assert "small 1.0 org/example/shop/Shop#sell().`<lambda>`(+1)." in symbols


def test_calls(index: duckdb.DuckDBPyConnection) -> None:
    resolved = index.execute("""
        SELECT callee_name, callee.qualified_name
        FROM calls JOIN functions AS caller ON caller_id = caller.function_id
        LEFT JOIN functions AS callee ON callee_id = callee.function_id
        WHERE caller.qualified_name = 'org.example.shop.Shop.+=' ORDER BY 1
    """).fetchall()
    assert resolved == [("checked", "org.example.shop.Shop.+=.checked"), ("store", None)]


def test_metadata(index: duckdb.DuckDBPyConnection) -> None:
    facts = dict(index.execute("SELECT key, value FROM metadata").fetchall())
    assert facts["name"] == "small"
    assert facts["version"] == "1.0"
    assert facts["model_name"] == "hash"
    assert json.loads(facts["resources"]) == ["cpu", "disk", "net"]
    assert json.loads(facts["source_files"]) == {"cpp": 1, "java": 1, "python": 1, "scala": 2}
    assert len(facts["source_hash"]) == len(facts["content_hash"]) == 64


def test_no_text_is_stored(index: duckdb.DuckDBPyConnection) -> None:
    """A word of a comment and one of a body are in no column of any table."""
    tables = [row[0] for row in index.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    for table in tables:
        for row in index.execute(f"SELECT * FROM {table}").fetchall():
            assert not any("Keeps the stock" in str(value) or "nanoTime()" in str(value) for value in row)


def test_two_builds_agree(tmp_path: Path) -> None:
    one, two = (verify(small_index(tmp_path / f"{each}.duckdb")) for each in "ab")
    assert one == two


def test_another_model_is_another_content(tmp_path: Path) -> None:
    classifier = HashClassifier()
    classifier.identity = {"name": "hash", "hash": "4567"}
    source = open_source("small-1.0", [SOURCES])
    other = build("small-1.0", source, output=tmp_path / "b.duckdb", classifier=classifier)
    assert verify(small_index(tmp_path / "a.duckdb")) != verify(other)


def test_broken_files_are_warnings(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "Good.java").write_text("class Good { void f() { g(); } }")
    (root / "Bad.java").write_text("class Bad { void f() { @@@ ??? }")
    (root / "huge.py").write_bytes(b"x = 1\n" * 1_000_000)
    path = build("mine-1", open_source("mine-1", [root]), output=tmp_path / "i.duckdb", classifier=HashClassifier())
    warnings = dict(open_read_only(path, "index").execute("SELECT file, problem FROM build_warnings").fetchall())
    assert set(warnings) == {"Bad.java", "huge.py"}


def test_nothing_to_index_is_one_sentence(tmp_path: Path) -> None:
    with refused(BuildError):
        build("mine-1", open_source("mine-1", [tmp_path]), output=tmp_path / "i", classifier=HashClassifier())
    with refused(IndexFileError, "mine"):
        build("mine", open_source("mine", [SOURCES]), output=tmp_path / "i", classifier=HashClassifier())
    with refused(IndexFileError, "/proc/x"):
        build("a-1", open_source("a-1", [SOURCES]), output=Path("/proc/x/i"), classifier=HashClassifier())


def test_a_model_of_other_resources_is_refused(tmp_path: Path) -> None:
    classifier = HashClassifier()
    classifier.resources = ("cpu", "disk", "gpu")
    with refused(BuildError, "gpu"):
        build("a-1", open_source("a-1", [SOURCES]), output=tmp_path / "i", classifier=classifier)


def test_measured_functions_have_the_measured_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "source"
    root.mkdir()
    text = "def keep(path):\n    with open(path, 'w') as file:\n        file.write('x')"
    waits = "def wait(event):\n    event.wait()"
    (root / "store.py").write_text(f"{text}\n\n\n{waits}\n\n\ndef other(x):\n    return x\n")
    row = {
        "version": "1",
        "first_line": 1,
        "last_line": 3,
        "deferred": 0.0,
        "wall_ms": 1.0,
        "runs": 3,
        "tool": "strace",
    }
    kept = Measured(
        "m0",
        "store",
        file="store.py",
        qualified_name="store.keep",
        text_hash=text_hash([text]),
        label="disk",
        cpu=0.1,
        disk=0.7,
        net=0.0,
        wait=0.2,
        **row,
    )  # type: ignore[arg-type]
    waiting = replace(kept, id="m1", qualified_name="store.wait", text_hash=text_hash([waits]), label="wait")
    write_table(tmp_path / "measured.tsv", Measured, [kept, waiting])
    monkeypatch.setattr(measured, "committed", lambda _name: tmp_path / "measured.tsv")
    measured.measured_table.cache_clear()
    try:
        path = build(
            "store-1", open_source("store-1", [root]), output=tmp_path / "i.duckdb", classifier=HashClassifier()
        )
    finally:
        measured.measured_table.cache_clear()
    with open_read_only(path, "index") as connection:
        found = connection.execute(
            "SELECT qualified_name, source, disk, confidence, decided_by FROM functions WHERE kind <> 'initialiser'"
            " ORDER BY function_id"
        ).fetchall()
    assert found[0] == ("store.keep", "measured", pytest.approx(0.875), pytest.approx(0.875), None)
    assert [each[:2] for each in found[1:]] == [("store.wait", "model"), ("store.other", "model")]


def test_only_unambiguous_calls_are_resolved() -> None:
    file = parse_file(
        b"""
        class Manager { def put(x: Int) = 1; def get(x: Int) = put(x) }
        class BlockManager { def put(x: Int) = 2; def only(x: Int) = 3 }
        object Tool { def put(x: Int) = 4 }
        class User(blockManager: BlockManager, m: Any) {
          def a() = blockManager.put(1)
          def b() = Tool.put(1)
          def c() = m.put(1)
          def d() = only(1)
          def e() = new BlockManager()
          def f() = blockManager.toString(1)
        }
        """,
        "scala",
        "a.scala",
    )
    calls = [(call.caller, call.name, call.receiver) for call in file.calls]
    callees = resolve_calls(file.functions, calls)
    found = {
        (file.functions[caller].name, name): file.functions[callee].qualified_name if callee is not None else None
        for (caller, name, _), callee in zip(calls, callees, strict=True)
    }
    assert found["get", "put"] == "Manager.put"
    assert found["a", "put"] == "BlockManager.put"
    assert found["b", "put"] == "Tool.put"
    assert found["c", "put"] is None
    assert found["d", "only"] == "BlockManager.only"
    assert found["e", "BlockManager"] == "BlockManager.<init>"
    assert found["f", "toString"] is None


KILLS = int(os.environ.get("CRYSTALPERF_TEST_KILLS", "12"))

_BUILDER = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from tests.hash_classifier import HashClassifier
from crystalperf.indexer import measured
from crystalperf.indexer.build import build
from crystalperf.indexer.sources import open_source
print("ready", flush=True)
while True:
    build("small-1.0", open_source("small-1.0", [{source!r}]), output=Path({output!r}), workers=1,
          classifier=HashClassifier())
"""


@pytest.mark.later
def test_killed_build_leaves_a_complete_index_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL at random moments of build after build (CRYSTALPERF_TEST_KILLS of them; CI does 200)."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "Small.java").write_bytes((SOURCES / "java" / "Depot.java").read_bytes())
    output = tmp_path / "out" / "small-1.0.duckdb"
    expected = verify(
        build("small-1.0", open_source("small-1.0", [source]), output=output, classifier=HashClassifier())
    )
    paths = [str(Path(__file__).parent.parent)]
    program = _BUILDER.format(paths=paths, source=str(source), output=str(output))
    moments = random.Random(7)
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(moments.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert verify(output) == expected
    monkeypatch.setattr(temporary, "LOCKED_WITHIN_S", 0.0)  # who was killed before the lock was held
    build("small-1.0", open_source("small-1.0", [source]), output=output, classifier=HashClassifier())
    assert [each.name for each in output.parent.iterdir()] == ["small-1.0.duckdb"]


def test_class_files_resolve_call_targets(tmp_path: Path) -> None:
    """With --classes a call of the text has its function, or the class outside that has it; without, words alone."""
    classes = Path(__file__).parent / "data" / "classes"
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "Calls.java").write_bytes((classes / "Calls.java").read_bytes())
    jar, other = tmp_path / "calls.jar", tmp_path / "other.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each in classes.glob("*.class"):
            archive.write(each, f"org/example/{each.name}")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("org/example/Broken.class", b"no")

    def calls(*jars: Path) -> set[tuple[str, str, str | None]]:
        path = tmp_path / "calls-1.duckdb"
        source = open_source("calls-1", [tmp_path / "source"])
        build("calls-1", source, output=path, classifier=HashClassifier(), classes=jars)
        verify(path)
        with open_read_only(path, "index") as connection:
            facts = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
            assert ("source_calls" in facts) == bool(jars)
            warned.update(connection.execute("SELECT file FROM build_warnings").fetchall())
            return set(connection.execute(
                "SELECT caller.qualified_name, callee_name, callee.qualified_name FROM calls"
                " JOIN functions AS caller ON caller.function_id = caller_id"
                " LEFT JOIN functions AS callee ON callee.function_id = callee_id"
            ).fetchall())  # fmt: skip

    start = "org.example.Calls"
    warned: set[tuple[str]] = set()
    words, types = calls(), calls(jar)
    assert not warned
    assert calls(other) == words, "archives of other libraries resolve no calls"
    assert warned == {("org/example/Broken.class",), ("other.jar",)}
    assert (f"{start}.lambdas", "forEach", None) in words
    assert (f"{start}.lambdas", "java.util.List.forEach", None) in types
    assert (f"{start}.names", "java.lang.System.nanoTime", None) in types
    assert (f"{start}.virtual", "read", None) in types, "three classes have it"
    assert (f"{start}.virtual", "twice", f"{start}.Store.twice") in types
    assert len(types) == len(words)
