"""A change of code held against a run: what of it is new, which device calls it brings, and how hot it is there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.lookup.hot import Heat, hot_path, plain_name
from crystalperf.query.lookup.introduced_calls import Known, Labelled, NewCall, introduced_calls, made_on
from crystalperf.query.lookup.patch import changed_files
from crystalperf.query.run import Run
from tests.refusals import is_one_line, refused

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "review"
ACME = ROOT / "tests" / "data" / "acme"

Answer = Callable[..., tuple[int, str, str]]


# Changes ------------------------------------------------------------------------------------------------------------

DIFF = """diff --git a/x/A.java b/x/A.java
--- a/x/A.java
+++ b/x/A.java
@@ -1,3 +1,4 @@ class A {
 one
-two
+++ counter;
+three
 four
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x = 1
--- a/y.py\t2026-01-01
+++ b/y.py\t2026-01-01
@@ -0,0 +1 @@
+open("x")
\\ No newline at end of file
"""


def test_new_lines_have_their_numbers_after_the_change() -> None:
    first, second = changed_files(DIFF)
    assert (first.path, dict(first.added), first.removed) == ("x/A.java", {2: "++ counter;", 3: "three"}, ("two",))
    assert (second.path, dict(second.added), second.removed) == ("y.py", {1: 'open("x")'}, ())


def test_text_that_is_not_a_diff_is_refused() -> None:
    for text in ("", "hello\nworld", "--- a/x\n+++ b/x\n"):
        with refused(InputError):
            changed_files(text)


# Types --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("receiver", "name", "text", "type_name"),
    [
        ("", "FileInputStream", "", "FileInputStream"),
        ("Files", "readString", "", "Files"),
        ("java.nio.file.Files", "readString", "", "Files"),
        ("this.client", "fetch", "private final ShuffleClient client;", "ShuffleClient"),
        ("client", "fetch", "class A(val client: Map[String, ShuffleClient])", "Map"),
        ("stream", "read", "InputStream stream = open(x);", "InputStream"),
        ("stream", "read", "stream = Socket(host)", "Socket"),
        ("stream", "read", "stream = somewhere(host)", ""),
        ("", "read", "", ""),
    ],
)
def test_text_shows_the_class_of_a_receiver(receiver: str, name: str, text: str, type_name: str) -> None:
    assert made_on(receiver, name, text) == type_name


def labelled(name: str, type_name: str, cpu: float, disk: float, net: float) -> Labelled:
    return Labelled(f"p.{type_name}.{name}", name, type_name, (cpu, disk, net), 0.9)


KNOWN = Known(
    [
        labelled("read", "FileChannel", 0.0, 1.0, 0.0),
        labelled("read", "SocketChannel", 0.0, 0.0, 1.0),
        labelled("read", "Parser", 1.0, 0.0, 0.0),
        labelled("force", "FileChannel", 0.1, 0.9, 0.0),
        labelled("force", "Log", 0.2, 0.8, 0.0),
        labelled("<init>", "FileInputStream", 0.1, 0.9, 0.0),
        Labelled("p.Log.guess", "guess", "Log", (0.4, 0.6, 0.0), 0.5),
    ]
)


@pytest.mark.parametrize(
    ("name", "type_name", "reported"),
    [
        ("read", "FileChannel", ("disk", "typed", 1)),
        ("read", "SocketChannel", ("net", "typed", 1)),
        ("read", "Parser", None),
        ("read", "", None),  # two devices and none: not known which
        ("read", "Unknown", None),  # of a class that no index has
        ("force", "", ("disk", "by name", 2)),
        ("FileInputStream", "FileInputStream", ("disk", "typed", 1)),
        ("nothing", "", None),
        ("guess", "Log", None),  # its label is not sure enough
    ],
)
def test_device_is_known_by_type_or_if_most_functions_of_a_name_agree(
    name: str, type_name: str, reported: tuple[str, str, int] | None
) -> None:
    call = NewCall("x", 1, "", "a.B.c", name, type_name)
    found = KNOWN.device(call)
    assert (None if found is None else (found[0], found[1], len(found[2]))) == reported


def test_calls_added_to_the_hottest_function_come_first() -> None:
    calls = [NewCall("x", line, "", f"a.B.f{line}", "force", "") for line in (1, 2, 3)]
    heat = {"a.B.f2": (Heat(5.0, 0.5, ()), None), "a.B.f3": (Heat(9.0, 0.9, ()), "a.B.g")}
    assert [each.call.line for each in introduced_calls(calls, KNOWN, heat)] == [3, 2, 1]


# Hot paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("org.a.B$.$anonfun$run$1", "org.a.B.run"),
        ("org.a.B$C.run", "org.a.B.C.run"),
        ("org.a.B.run.<lambda>", "org.a.B.run"),
        ("org.a.B$$anon$2.next", "org.a.B.next"),
        ("org.a.B.run", "org.a.B.run"),
    ],
)
def test_sources_and_stacks_name_a_function_alike(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_the_hot_path_is_of_samples_on_the_critical_path(demo_run: Run) -> None:
    path = hot_path(demo_run)
    heat = path.heat("org.apache.spark.storage.ShuffleBlockFetcherIterator.next")
    assert 0.5 < heat.share <= 1
    assert heat.stages[0] == "stage:14.0"
    assert heat.time_ms <= path.sampled_ms
    assert path.heat("org.apache.spark.NoSuch.function") is None


def test_hot_path_is_not_subject_to_the_limits_of_sql(demo_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row limit of sql() is for statements of users."""
    monkeypatch.setattr("crystalperf.query.statements.whole.MAX_BYTES", 1)
    assert len(hot_path(demo_run).functions) > 1_000


def test_a_run_without_samples_is_refused(demo_log_run: Run) -> None:
    with refused(cp.CrystalPerfError, demo_log_run.path.stem):
        hot_path(demo_log_run)


# The command --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def acme_run(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        return cp.profile([ACME], output=tmp_path_factory.mktemp("acme") / "acme.duckdb")


@pytest.mark.later
def test_the_example_names_both_device_calls(crystalperf: Answer, acme_run: Run) -> None:
    pytest.importorskip("tree_sitter")
    asked = ("review", EXAMPLE / "change.diff", "--run", acme_run.path, "--source", EXAMPLE)
    code, out, err = crystalperf(*asked)
    assert (code, err) == (0, "")
    assert out in (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"(\S+:\d+) +(\w+)$", out, re.MULTILINE) == [
        ("com/acme/etl/Parser.java:25", "net"),
        ("com/acme/etl/Parser.java:26", "disk"),
    ]
    found = json.loads(crystalperf(*asked, "--json")[1])["entering"]
    assert [(each["resource"], each["how"], each["name"]) for each in found] == [
        ("net", "typed", "getLocalHost"),
        ("disk", "typed", "readString"),
    ]
    assert {each["through"] for each in found} == {"com.acme.etl.Parser.digits"}
    assert all(each["hot_share"] > 0.5 for each in found)


@pytest.mark.parametrize("change", ["no such file", "hello", "+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n"])
def test_unreadable_change_is_reported_in_a_sentence(
    crystalperf: Answer, acme_run: Run, tmp_path: Path, change: str
) -> None:
    pytest.importorskip("tree_sitter")
    file = tmp_path / "change.diff"
    if change != "no such file":
        file.write_text(change)
    code, out, err = crystalperf("review", file, "--run", acme_run.path, "--source", tmp_path)
    if "passwd" in change:  # no file of a known language: nothing is read
        assert (code, out.split(" to ")[0]) == (0, "The change adds 0 device calls")
        file.write_text(change.replace("passwd", "x.py"))
        code, out, err = crystalperf("review", file, "--run", acme_run.path, "--source", tmp_path)
    assert (code, out) == (1, "")
    is_one_line(err)


@pytest.mark.parametrize("path", ["there/A.java", "a\0b.py"])
def test_change_of_missing_files_is_reported_in_a_sentence(
    crystalperf: Answer, acme_run: Run, tmp_path: Path, path: str
) -> None:
    pytest.importorskip("tree_sitter")
    (tmp_path / "change.diff").write_text(f"+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")
    code, out, err = crystalperf("review", tmp_path / "change.diff", "--run", acme_run.path, "--source", tmp_path)
    assert (code, out) == (1, "")
    is_one_line(err)


def test_without_the_parser_one_sentence_says_so(
    crystalperf: Answer, acme_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in sys.modules if each.startswith(("crystalperf.indexer.parse", "tree_sitter"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    code, out, err = crystalperf("review", EXAMPLE / "change.diff", "--run", acme_run.path, "--source", EXAMPLE)
    assert (code, out) == (1, "")
    is_one_line(err, "indexer")
