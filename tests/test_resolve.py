"""Frames to functions: by class and line, by name, and frames without a function."""

from __future__ import annotations

import duckdb
import pytest

from crystalperf.indexes import attach
from crystalperf.indexes.names import Method, demangle
from crystalperf.query.attribution.code.names import Frame, declaring_names, nature, original, parse_frame
from crystalperf.query.attribution.code.resolve import attached, resolve
from tests.small_indexes import small_index

SHOP = "org.example.shop.Shop"
DEPOT = "org.example.Depot"


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    folder = tmp_path_factory.mktemp("built")
    opened = duckdb.connect()
    for name in ("scala", "java", "python"):
        attach(opened, small_index(f"{name}-1", folder / f"{name}.duckdb"), "index", f"{name}_index")
    return opened


Answer = tuple[str | None, str]


def ask(
    connection: duckdb.DuckDBPyConnection, frames: list[tuple[str, str, int | None]], other: bool = False
) -> list[Answer]:
    """Qualified name (with its kind for those without one of their own) and how, for each frame."""
    connection.execute("CREATE OR REPLACE TEMP TABLE frames (frame_id INT, class_name TEXT, method TEXT, line INT)")
    connection.executemany(
        "INSERT INTO frames VALUES (?, ?, ?, ?)", [(number, *frame) for number, frame in enumerate(frames)]
    )
    names = [(f"{name}_index", f"{name}-1") for name in ("scala", "java", "python")]
    table = resolve(connection, "frames", attached(names), other_version=[name for _, name in names] if other else ())
    union = " UNION ALL ".join(f"SELECT '{name}' AS index_name, * FROM {alias}.functions" for alias, name in names)
    return connection.execute(
        f"SELECT qualified_name, how FROM {table} LEFT JOIN ({union}) USING (index_name, symbol) ORDER BY frame_id"
    ).fetchall()


BY_LINE = [
    ((SHOP, "+=", 20), f"{SHOP}.+="),
    ((SHOP, "$plus$eq", 22), f"{SHOP}.+="),
    ((SHOP, "checked$1", 21), f"{SHOP}.+=.checked"),
    ((SHOP, "$anonfun$sell$1", 27), f"{SHOP}.sell.<lambda>"),
    ((SHOP, "$anonfun$sell$1$adapted", 26), f"{SHOP}.sell.<lambda>"),
    ((SHOP, "sell", 26), f"{SHOP}.sell"),
    ((SHOP, "sell$default$2", 25), f"{SHOP}.sell"),
    ((SHOP, "report$lzycompute", 12), f"{SHOP}.report"),
    ((SHOP, "<init>", 10), f"{SHOP}.<init>"),
    ((SHOP, "<init>", 8), f"{SHOP}.<init>"),
    ((SHOP, "name", 7), f"{SHOP}.<init>"),
    ((SHOP, "later", 31), f"{SHOP}.later"),
    ((f"{SHOP}$$anon$1", "<init>", 31), f"{SHOP}.later.<anonymous>.<init>"),
    ((f"{SHOP}$$anon$1", "next", 33), f"{SHOP}.later.<anonymous>.next"),
    ((f"{SHOP}$", "<clinit>", 45), f"{SHOP}.<init>"),
    ((f"{SHOP}$", "apply", 49), f"{SHOP}.apply"),
    ((SHOP, "apply", 49), f"{SHOP}.apply"),
    ((f"{SHOP}$Rich", "twice", 47), f"{SHOP}.Rich.twice"),
    ((f"{SHOP}$Rich$", "twice$extension", 47), f"{SHOP}.Rich.twice"),
    (("org.example.shop.Closed", "close$", 54), "org.example.shop.Closed.close"),
    (("org.example.shop.tools.package$", "helper", 59), "org.example.shop.tools.helper"),
    (("org.example.shop.$colon$colon", "head", 62), "org.example.shop.::.head"),
    (("org/example/shop/Shop", "kind", 38), f"{SHOP}.kind"),
    ((f"org.sparkproject.{SHOP}", "kind", 39), f"{SHOP}.kind"),
    ((f"org.apache.hadoop.shaded.{SHOP}", "kind", 39), f"{SHOP}.kind"),
    (("org.example.Three$package$", "top", 19), "org.example.top"),
    ((DEPOT, "run", 28), f"{DEPOT}.run"),
    ((DEPOT, "lambda$run$0", 30), f"{DEPOT}.run.<lambda>"),
    ((f"{DEPOT}$1", "run", 35), f"{DEPOT}.run.<anonymous>.run"),
    ((f"{DEPOT}$1Local", "help", 40), f"{DEPOT}.run.Local.help"),
    ((DEPOT, "<clinit>", 12), f"{DEPOT}.<clinit>"),
    ((DEPOT, "<init>", 9), f"{DEPOT}.<init>"),
    ((f"{DEPOT}$Size$1", "area", 51), f"{DEPOT}.Size.<anonymous>.area"),
    (("/opt/app/lib/depot.py", "fetch", 26), None),
    (("depot.py", "fetch", 26), "depot.Depot.fetch"),
    (("/usr/lib/python3.11/depot.py", "inner", 21), "depot.Depot.size.inner"),
    (("depot.py", "<lambda>", 23), "depot.Depot.size.<lambda>"),
    (("depot.py", "size", 23), "depot.Depot.size"),
    (("depot.py", "<module>", 3), "depot.<module>"),
    (("depot.py", "Depot", 14), "depot.Depot.<body>"),
]


def test_by_line(connection: duckdb.DuckDBPyConnection) -> None:
    answers = ask(connection, [frame for frame, _ in BY_LINE])
    expected = [(name, "line" if name else "unknown") for _, name in BY_LINE]
    assert dict(zip([frame for frame, _ in BY_LINE], answers, strict=True)) == dict(
        zip([frame for frame, _ in BY_LINE], expected, strict=True)
    )


def test_by_name_where_the_line_is_unknown(connection: duckdb.DuckDBPyConnection) -> None:
    frames = [
        (SHOP, "$plus$eq", None),
        (SHOP, "$anonfun$sell$1", 0),
        (f"{SHOP}$$anon$7", "next", -1),
        (f"{SHOP}$", "apply", None),
        (DEPOT, "lambda$run$0", None),
        (DEPOT, "nonesuch", None),
    ]
    assert ask(connection, frames) == [
        (f"{SHOP}.+=", "name"),
        (f"{SHOP}.sell", "name"),
        (f"{SHOP}.later.<anonymous>.next", "name"),
        (f"{SHOP}.apply", "name"),
        (f"{DEPOT}.run", "name"),
        (None, "class"),
    ]


def test_another_version_goes_by_name_first(connection: duckdb.DuckDBPyConnection) -> None:
    frames = [(SHOP, "kind", 12), (SHOP, "vanished", 12), (SHOP, "vanished", 9_000)]
    assert ask(connection, frames, other=True) == [
        (f"{SHOP}.kind", "name"),
        (f"{SHOP}.report", "line"),
        (None, "class"),
    ]


def test_frames_without_a_source(connection: duckdb.DuckDBPyConnection) -> None:
    frames: list[tuple[str, str, int | None]] = [
        (f"{SHOP}$$Lambda/0x00007f0c2c3d5a40", "apply", None),
        ("org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1", "next", 57),
        ("jdk.internal.reflect.GeneratedMethodAccessor7", "invoke", None),
        ("com.acme.Job", "main", 3),
    ]
    assert [how for _, how in ask(connection, frames)] == ["hidden", "generated", "generated", "unknown"]


def test_no_frames_and_no_indexes(connection: duckdb.DuckDBPyConnection) -> None:
    one = "SELECT 7 AS frame_id, 'A' AS class_name, 'b' AS method, 1 AS line"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE one AS {one} LIMIT 0")
    table = resolve(connection, "one", attached([("scala_index", "scala-1")]))
    assert connection.execute(f"SELECT * FROM {table}").fetchall() == []
    connection.execute(f"CREATE OR REPLACE TEMP TABLE one AS {one}")
    table = resolve(connection, "one", attached([]))
    assert connection.execute(f"SELECT frame_id, how FROM {table}").fetchall() == [(7, "unknown")]


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("org.apache.spark.rdd.RDD.iterator:334", Frame("org.apache.spark.rdd.RDD", "iterator", 334)),
        ("org/apache/spark/rdd/RDD.iterator:334", Frame("org.apache.spark.rdd.RDD", "iterator", 334)),
        ("\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:334)", Frame("org.apache.spark.rdd.RDD", "iterator", 334)),
        ("at java.base/java.lang.Thread.run(Thread.java:840)", Frame("java.lang.Thread", "run", 840)),
        ("at app//a.B.<init>(B.java:3)", Frame("a.B", "<init>", 3)),
        ("java.lang.Object.wait(Native Method)", Frame("java.lang.Object", "wait", None)),
        ("a.B$$anon$1.$anonfun$f$2(Unknown Source)", Frame("a.B$$anon$1", "$anonfun$f$2", None)),
        ("a.B.m", Frame("a.B", "m", None)),
        ("a.B.m:-1", Frame("a.B", "m", None)),
        ("/srv/app/job.py:12 (main)", Frame("/srv/app/job.py", "main", 12)),
        ("main (job.py:12)", Frame("job.py", "main", 12)),
        ('File "/srv/job.py", line 12, in main', Frame("/srv/job.py", "main", 12)),
        ("<frozen importlib._bootstrap>:241 (_call)", Frame("<frozen importlib._bootstrap>", "_call", 241)),
        ("", None),
        ("not a frame at all", None),
        ("word", None),
    ],
)
def test_frames_as_people_paste_them(text: str, frame: Frame | None) -> None:
    assert parse_frame(text) == frame


@pytest.mark.parametrize(
    ("method", "name", "is_lambda"),
    [
        ("map", "map", False),
        ("$plus$eq", "+=", False),
        ("apply$mcI$sp", "apply", False),
        ("sell$default$2", "sell", False),
        ("$lessinit$greater$default$3", "<init>", False),
        ("report$lzycompute", "report", False),
        ("report$lzycompute$1", "report", False),
        ("inner$1", "inner", False),
        ("close$", "close", False),
        ("org$apache$spark$rdd$RDD$$computeOrReadCheckpoint", "computeOrReadCheckpoint", False),
        ("org$apache$spark$sql$X$$super$doExecute", "doExecute", False),
        ("name_$eq", "name_=", False),
        ("$anonfun$map$1", "map", True),
        ("$anonfun$map$1$adapted", "map", True),
        ("$anonfun$map$2$1", "map", True),
        ("$anonfun$new$4", "<init>", True),
        ("$anonfun$$plus$eq$1", "+=", True),
        ("$anonfun$org$apache$spark$rdd$RDD$$go$1", "go", True),
        ("lambda$run$0", "run", True),
        ("lambda$new$1", "<init>", True),
        ("lambda$static$1", "<clinit>", True),
        ("<init>", "<init>", False),
        ("$init$", "$init$", False),
    ],
)
def test_demangling(method: str, name: str, is_lambda: bool) -> None:
    assert demangle(method) == Method(name, is_lambda)


def test_relocated_classes() -> None:
    assert original("org.sparkproject.guava.collect.Maps") == "com.google.common.collect.Maps"
    assert original("org.apache.hadoop.shaded.com.google.common.collect.Maps") == "com.google.common.collect.Maps"
    assert original("org.apache.flink.shaded.netty4.io.netty.buffer.ByteBuf") == "io.netty.buffer.ByteBuf"
    assert original("org.apache.spark.rdd.RDD") is None


def test_class_name_kinds() -> None:
    assert nature("org.apache.spark.rdd.RDD$$Lambda$1234/0x0000000800c9d040") == "hidden"
    assert nature("java.lang.invoke.LambdaForm$DMH/0x00007f1234567800") == "hidden"
    assert nature("jdk.proxy2.$Proxy27") == "hidden"
    assert nature("org.apache.spark.sql.catalyst.expressions.GeneratedClass$SpecificUnsafeProjection") == "generated"
    assert nature("StreamExecCalc$42") == "generated"
    for plain in (
        "org.apache.spark.sql.connector.expressions.SortDirection$1",
        "org.apache.spark.rdd.RDD$$anon$1",
        "a.B$1",
        "a.B$Inner$",
        "a.$colon$colon",
    ):
        assert nature(plain) == "source"


def test_declaring_names() -> None:
    assert declaring_names("a/b/C$D$1") == ("a.b.C$D$1", "a.b.C")
    assert declaring_names("/x/site-packages/pkg/mod.py") == (
        "x/site-packages/pkg/mod.py",
        "site-packages/pkg/mod.py",
        "pkg/mod.py",
    )


def test_a_name_of_the_class_goes_before_a_clashing_line(connection: duckdb.DuckDBPyConnection) -> None:
    frames = [(SHOP, "kind", 26), (DEPOT, "run", 12), (SHOP, "name", 25), (SHOP, "$anonfun$kind$1", 26)]
    assert ask(connection, frames) == [
        (f"{SHOP}.kind", "name"),
        (f"{DEPOT}.run", "name"),
        (f"{SHOP}.sell", "line"),  # no function has that name
        (f"{SHOP}.sell.<lambda>", "line"),
    ]


def test_a_native_method_is_known_by_its_name(connection: duckdb.DuckDBPyConnection) -> None:
    """The source has no body of it, and a frame of it no line; an abstract method takes its place here."""
    assert ask(connection, [(DEPOT, "todo", None), (DEPOT, "todo", -1)]) == [(f"{DEPOT}.todo", "native")] * 2
    # Of a class that does not declare it, it is not: there it has code, which the compiler made.
    assert ask(connection, [(f"{DEPOT}$1", "todo", None), (f"{DEPOT}$Size", "todo", None)]) == [(None, "class")] * 2
