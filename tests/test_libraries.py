"""Which indexes a run takes by itself, what a library may decide, and whose code no index knows.

tests/data/acme is a Spark job of two Java classes (src/), recorded in local mode: most of its time is in its own code.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import duckdb
import pytest

from crystalperf import query
from crystalperf.cli import main
from crystalperf.cli.remedies import not_recorded_sentence
from crystalperf.indexes.errors import CrystalPerfError, Remedy
from crystalperf.indexes.exports import (
    available,
    built_path,
    export_index,
    locate,
    pinned_hashes,
    prebuilt_folder,
    split_name,
    unreadable,
)
from crystalperf.indexes.names import split_archive
from crystalperf.indexes.packing import NAME, read_parquet, unpacking
from crystalperf.indexes.places import QUALIFIED_NAME, load_part, load_places
from crystalperf.query.attribution.code.libraries import (
    LIBRARIES,
    IndexMatch,
    ProgramVersions,
    fitting,
    library_of,
    package_prefix,
    stand_ins,
    unknown_code,
)
from crystalperf.query.diagnose.not_recorded import index_of
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.lookup.frames import resolve_frames
from crystalperf.query.results.not_recorded import CodeUnlabelled
from crystalperf.query.results.words import Words
from tests.small_indexes import small_index

DATA = Path(__file__).parent / "data"
ACME = DATA / "acme"
RAN = ProgramVersions(
    "17.0.15 (Debian)", ["netty-all-4.1.118.Final", "netty-common-4.1.118.Final", "guava-33.4.0-jre"], "4.0.1"
)


@pytest.fixture
def spark_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and of the indexes that ship Spark's alone."""
    shipped = prebuilt_folder()
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    (tmp_path / "shipped").mkdir()
    for name in ("spark-4.0.1", "prebuilt.json"):
        (tmp_path / "shipped" / name).symlink_to(shipped / name)
    monkeypatch.setattr("crystalperf.indexes.exports.prebuilt_folder", lambda: tmp_path / "shipped")
    return tmp_path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and no index that ships."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("crystalperf.indexes.exports.prebuilt_folder", lambda: tmp_path / "shipped")
    return tmp_path


def make(
    name: str,
    origin: Literal["catalogue", "user"] = "catalogue",
    artifacts: Sequence[str] = (),
    revision: str | None = None,
    of: str = "java-1",
) -> Path:
    """An index in the cache, with the functions of a small one."""
    package, version = split_name(name)
    facts = {"name": package, "version": version, "source_origin": origin, "source_artifacts": json.dumps(artifacts)}
    facts |= {} if revision is None else {"source_revision": revision}
    return small_index(of, built_path(name), **facts)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "netty-transport-native-epoll-4.1.118.Final-linux-x86_64.jar",
            ("netty-transport-native-epoll", "4.1.118.Final"),
        ),
        ("spark-core_2.13-4.0.1.jar", ("spark-core_2.13", "4.0.1")),
        ("zstd-jni-1.5.6-9", ("zstd-jni", "1.5.6-9")),
        ("orc-core-2.1.3-shaded-protobuf.jar", ("orc-core", "2.1.3")),
        ("tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl", ("tensorflow", "2.21.0")),
        ("conf", None),
        ("*", None),
    ],
)
def test_names_of_archives(name: str, expected: tuple[str, str] | None) -> None:
    assert split_archive(name) == expected


def test_indexes_of_the_class_path_and_the_jdk(home: Path) -> None:
    make("spark-4.0.0")
    make("jdk-17", revision="17.0.15")
    make("netty-4.1.96.Final", artifacts=["netty-common", "netty-all"])
    make("kryo-5.0", artifacts=["kryo"])
    make("mine-1", origin="user")
    fits = fitting(SPARK, RAN, ["java.lang.Thread"])
    assert fits == [
        IndexMatch("spark-4.0.1", "spark-4.0.0", "framework", False),
        IndexMatch("mine-1", "mine-1", "user", True),
        IndexMatch("jdk-17", "jdk-17", "library", True),
        IndexMatch("netty-4.1.118.Final", "netty-4.1.96.Final", "library", False),
    ]
    assert [each.split()[::2] for each in stand_ins(fits)] == [
        ["spark-4.0.0", "spark-4.0.1"],
        ["netty-4.1.96.Final", "netty-4.1.118.Final"],
    ]
    other_java = fitting(SPARK, replace(RAN, java_version="1.8.0_292"), [])
    assert IndexMatch("jdk-8", "jdk-17", "library", False) in other_java
    same_major = fitting(SPARK, replace(RAN, java_version="17.0.2"), [])
    assert IndexMatch("jdk-17", "jdk-17", "library", False) in same_major  # its lines may differ
    asked = fitting(SPARK, RAN, [], ["mine-1", "jdk-17"])
    assert asked == [IndexMatch("mine-1", "mine-1", "user", True), IndexMatch("jdk-17", "jdk-17", "library", True)]


def test_anindex_of_several_libraries_fits_where_one_of_them_ran(home: Path) -> None:
    make("jvm-libraries-1", artifacts=["guava:33.4.0-jre", "log4j-core:2.24.3"])
    assert fitting(SPARK, RAN, [])[1:] == [IndexMatch("jvm-libraries-1", "jvm-libraries-1", "library", True)]
    older = replace(RAN, archives=["guava-14.0.1", "log4j-core-2.24.3"])
    found = fitting(SPARK, older, [])[1:]
    assert found == [IndexMatch("guava-14.0.1", "jvm-libraries-1", "library", False)]
    assert stand_ins(found) == ["jvm-libraries-1 for guava-14.0.1"]
    assert fitting(SPARK, replace(RAN, archives=["acme-1.2"]), [])[1:] == []


@pytest.mark.later
def test_without_a_class_path_any_library_may_have_run(home: Path) -> None:
    make("jvm-libraries-1", artifacts=["guava:33.4.0-jre"])
    for name in ("netty-4.1.96.Final", "jdk-17", "flink-1.20.3"):
        make(name)
    make("python-3.11", of="python-1")
    bare = replace(RAN, archives=[], java_version=None)
    found = [each for each in fitting(SPARK, bare, []) if each.kind == "library"]
    names = ["jdk-17", "jvm-libraries-1", "netty-4.1.96.Final"]
    assert found == [IndexMatch(name, name, "library", False) for name in names]


def test_the_advice_names_a_library_that_the_indexer_can_fetch() -> None:
    pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")
    from crystalperf.indexer.catalogue import catalogue

    assert set(LIBRARIES.values()) <= set(catalogue())
    for start, name in LIBRARIES.items():
        assert library_of(package_prefix(f"{start}.inner.deep.Thing") or "") == name
    assert index_of("it.unimi") == Remedy("index the library", {"library": "fastutil"})
    assert "fastutil-VERSION`" in not_recorded_sentence(CodeUnlabelled("much", remedy=index_of("it.unimi")), Words())


def test_python_index_is_used_if_its_frames_occur(home: Path) -> None:
    make("python-3.11", of="python-1")
    make("pyspark-4.0.1", of="python-1")
    paths = ["/usr/lib/python3.11/json/decoder.py", "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py"]
    found = [
        each.found
        for each in fitting(
            replace(SPARK, reader=replace(SPARK.reader, frames=replace(SPARK.reader.frames, sources=lambda _: ()))),
            RAN,
            paths,
        )
    ]
    assert found == ["python-3.11", "pyspark-4.0.1"]
    assert (
        fitting(
            replace(SPARK, reader=replace(SPARK.reader, frames=replace(SPARK.reader.frames, sources=lambda _: ()))),
            RAN,
            ["java.lang.Thread"],
        )
        == []
    )


def test_python_library_is_used_if_a_frame_is_in_its_folder(home: Path) -> None:
    """Its version is not known, so its lines may be others; what is in another folder is somebody else's."""
    make("torch-2.15.0", of="python-1")
    bare = replace(SPARK, reader=replace(SPARK.reader, frames=replace(SPARK.reader.frames, sources=lambda _: ())))
    frames = ["/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py"]
    assert fitting(bare, RAN, frames) == [IndexMatch("torch-2.15.0", "torch-2.15.0", "library", False)]
    assert fitting(bare, RAN, ["/opt/venv/lib/python3.12/site-packages/torchvision/ops/misc.py"]) == []
    assert fitting(bare, RAN, ["/home/me/torch/model.py"]) == []


def test_partial_export_equals_the_index(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = make("shop-1", of="scala-1")
    classes = ["org.example.shop.Shop", "org.example.Nowhere"]
    tables = ("functions", "classes", "runtime_names")

    def part() -> list[list[tuple[object, ...]]]:
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE names AS SELECT unnest(?) AS name", [classes])
            schema = load_part(connection, "shop-1", "index_0", "names")
            return [connection.execute(f"SELECT * FROM {schema}.{each} ORDER BY ALL").fetchall() for each in tables]

    whole = part()
    assert all(whole)
    folder = export_index(built, home / "shipped" / "shop-1")
    built.unlink()
    (home / "shipped" / "prebuilt.json").write_text("{}")
    with pytest.raises(CrystalPerfError, match="shop-1") as refused:
        part()
    assert refused.value.remedy == Remedy("vouch for the index")
    monkeypatch.setattr("crystalperf.indexes.exports.pinned_hashes", lambda: {"shop-1": hash_of(folder)})
    assert pinned_hashes() == {}
    assert part() == whole
    assert not (home / "home" / "prebuilt").exists(), "nothing was unpacked"
    (folder / "functions.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(CrystalPerfError, match="damaged") as refused:
        part()
    assert refused.value.remedy == Remedy("verify the index", {"index": "shop-1"})


def test_functions_asked_for_by_line_or_name_come_alike_from_an_export_and_an_index(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = {"shop-1": make("shop-1", of="scala-1"), "depot-1": make("depot-1", of="java-1")}
    names = tuple(built)

    def places() -> dict[str, list[tuple[object, ...]]]:
        with duckdb.connect() as connection:
            connection.execute(
                "CREATE TABLE asked AS FROM (VALUES ('org.example.shop.Shop', 26, 'no such name'),"
                " ('org.example.shop.Shop', 0, 'checked'), ('org.example.Depot', 12, 'run')) AS a(name, line, method)"
            )
            schema = load_places(connection, names, "found", "asked")
            columns = (
                f"turn, name, {QUALIFIED_NAME} AS qualified_name, class_name, first_line, last_line, cpu, disk, net"
            )
            return {
                "functions": connection.execute(f"SELECT {columns} FROM {schema}.functions ORDER BY ALL").fetchall(),
                "classes": connection.execute(f"FROM {schema}.classes ORDER BY ALL").fetchall(),
                "runtime_names": connection.execute(f"FROM {schema}.runtime_names ORDER BY ALL").fetchall(),
            }

    of_index = places()
    assert all(of_index.values())
    for turn, name, qualified_name, _, first, last, *shares in of_index["functions"]:
        assert str(qualified_name).endswith(f".{name}")
        assert turn == 1 or first <= 26 <= last or name == "checked"  # type: ignore[operator]
        assert sum(shares) == pytest.approx(1, abs=0.002)  # type: ignore[arg-type]
    found = {name for turn, name, *_ in of_index["functions"] if turn == 0}
    assert {"sell", "<lambda>", "checked"} <= found
    assert "report" not in found
    folders = {name: export_index(path, home / "shipped" / name) for name, path in built.items()}
    monkeypatch.setattr(
        "crystalperf.indexes.exports.pinned_hashes", lambda: {name: hash_of(path) for name, path in folders.items()}
    )
    built["shop-1"].unlink()
    assert places() == of_index, "one of each kind"
    built["depot-1"].unlink()
    assert places() == of_index
    assert not (home / "home" / "prebuilt").exists(), "nothing was unpacked"
    unpacked = locate("depot-1")
    assert places() == of_index
    (folders["depot-1"] / "functions.parquet").write_bytes(b"PAR1 damaged")
    assert places() == of_index, "the copy that is unpacked is whole"
    unpacked.unlink()
    with pytest.raises(CrystalPerfError, match="depot-1: damaged") as refused:
        places()
    assert refused.value.remedy == Remedy("verify the index", {"index": "depot-1"})


def test_frames_of_python_are_found_in_an_index_without_jvm_classes(home: Path) -> None:
    make("depot-1", of="python-1")
    (found,) = resolve_frames(["/usr/lib/python3.11/depot.py:21 (inner)"], ["depot-1", "depot-1"])
    assert (found["function"], found["index_name"], found["how"]) == ("depot.Depot.size.inner", "depot-1", "line")


@pytest.mark.later
def test_packed_function_is_recognized_by_its_name() -> None:
    with duckdb.connect() as connection:
        for each in sorted(prebuilt_folder().glob("*/functions.parquet")):
            reported = f"SELECT function_id, {NAME} AS name FROM {read_parquet(each.parent, 'functions')}"
            wrong = (
                f"FROM ({reported}) JOIN ({unpacking('functions', each.parent, '')}) USING (function_id)"
                " WHERE name IS DISTINCT FROM split_part(qualified_name, '.', -1) LIMIT 5"
            )
            assert connection.execute(f"SELECT symbol, name {wrong}").fetchall() == [], each.parent.name


def hash_of(folder: Path) -> str:
    return str(json.loads((folder / "metadata.json").read_text())["content_hash"])


@pytest.mark.parametrize(
    ("class_name", "prefix"),
    [
        ("com.acme.etl.Parser$Inner", "com.acme"),
        ("org.apache.hive.Thing", "org.apache.hive"),
        ("acme.Job", "acme"),
        ("Job", None),
        ("java.util.HashMap", None),
        ("scala.collection.Iterator", None),
        ("libc.so.6", None),
        ("$line14.$read", None),
        ("shaded.parquet.it.unimi.dsi.fastutil.ints.IntArrayList", "it.unimi"),
        ("org.apache.hive.com.google.common.collect.ImmutableMap", "com.google.common"),
        ("org.sparkproject.jetty.util.thread.QueuedThreadPool", "org.eclipse.jetty"),
        ("org.apache.parquet.column.ColumnReader", "org.apache.parquet"),
        ("com.acme.org.chart.Tree", "com.acme"),
        ("org.codehaus.janino.Java", "org.codehaus.janino"),
        ("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", "torch"),
        ("C:\\env\\Lib\\site-packages\\pandas\\core\\frame.py", "pandas"),
        ("/usr/lib/python3.11/json/decoder.py", None),
    ],
)
def test_package_prefix_of_a_class(class_name: str, prefix: str | None) -> None:
    assert package_prefix(class_name) == prefix


def test_unknown_code_counts_once_a_stack_and_above_a_threshold() -> None:
    stacks = [(["java.lang.Math", "com.acme.A", "com.other.B"], 30.0), (["com.acme.C"], 10.0), ([], 60.0)]
    assert unknown_code(stacks) == ("com.acme", 0.4)
    assert unknown_code([*stacks, ([], 900.0)]) is None
    assert unknown_code([]) is None


def test_a_run_says_that_its_own_code_is_not_indexed_until_it_is(spark_alone: Path) -> None:
    before = query.profile([ACME])
    (code,) = (each for each in before.debug().not_recorded if isinstance(each, CodeUnlabelled))
    assert 60 <= int(code.problem.partition("%")[0]) <= 95
    assert code.remedy == Remedy("index the code", {"prefix": "com.acme"})
    assert not any("com.acme" in each.qualified_name for each in before.debug().functions)

    make("acme-1", origin="user", of="acme-1")
    after = query.profile([ACME])  # the kept run is not reused: another index fits now
    assert after.header().indexes[:2] == ("spark-4.0.1", "acme-1")
    assert not any(isinstance(each, CodeUnlabelled) for each in after.debug().not_recorded)
    assert after.debug().functions[0].qualified_name == "com.acme.etl.Parser.digit"


def test_library_decides_only_if_no_other_frame_does(spark_alone: Path, tmp_path: Path) -> None:
    """The same job, with its own code indexed as if it were a library of the class path."""
    alone = query.profile([ACME], output=tmp_path / "alone.duckdb")
    make("acme-1.2", artifacts=["acme-etl"], of="acme-1")
    compared = query.profile([ACME], output=tmp_path / "compared.duckdb")
    assert compared.header().indexes[:2] == ("spark-4.0.1", "acme-1.2")
    decided = [deciders(each.path) for each in (alone, compared)]
    assert decided[0] == {stack: name for stack, name in decided[1].items() if "com/acme" not in name}
    only = set(decided[1]) - set(decided[0])
    assert all("com/acme" in decided[1][stack] for stack in only)


def deciders(path: Path) -> dict[int, str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        query_text = "SELECT stack_id, symbol FROM stacks WHERE attributed_depth IS NOT NULL"
        return dict(connection.execute(query_text).fetchall())


def test_an_unreadable_index_of_the_user_gives_way_to_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    folder = tmp_path / "indexes"
    folder.mkdir()
    for name in ("spark-4.0.1", "spark-9.9"):
        with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
            connection.execute("CREATE TABLE metadata AS SELECT 'kind' AS key, 'index' AS value")
            connection.execute("INSERT INTO metadata VALUES ('schema_version', '1')")
    assert unreadable().keys() == {"spark-4.0.1", "spark-9.9"}
    assert {each.name: each.origin for each in available()}["spark-4.0.1"] == "prebuilt"
    assert main.run(["analyze", str(DATA.parents[1] / "lab" / "recordings" / "demo-q9"), "--json"]) == 0
    header = json.loads(capsys.readouterr().out)["header"]
    assert "spark-4.0.1" in header["indexes"]
    assert [each["name"] for each in header["problems"] if "schema version 1" in each["meaning"]]
