"""The parser on sources small enough to check by eye (tests/data/sources), and on hostile ones."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer.documentation import clean_comment, clean_docstring
from crystalperf.indexer.parse import MAX_FILE_BYTES, parse_file
from crystalperf.indexer.records import Function, Language, ParsedFile
from crystalperf.indexer.workers import parse_files

SOURCES = Path(__file__).parent / "data" / "sources"


def parsed(language: Language, file: str) -> ParsedFile:
    return parse_file(SOURCES / language / file, language, f"src/{file}" if language != "python" else file)


def table(file: ParsedFile) -> dict[str, tuple[str, int, int]]:
    """Kind and lines by name; names that occur several times get a number."""
    seen: Counter[str] = Counter()
    found = {}
    for each in file.functions:
        seen[each.qualified_name] += 1
        number = seen[each.qualified_name]
        found[each.qualified_name + (f" {number}" if number > 1 else "")] = (
            each.kind,
            each.first_line,
            each.last_line,
        )
    return found


def function(file: ParsedFile, qualified_name: str, kind: str | None = None) -> Function:
    return next(each for each in file.functions if each.qualified_name == qualified_name and kind in (None, each.kind))


def calls(file: ParsedFile, qualified_name: str, kind: str | None = None) -> set[str]:
    number = file.functions.index(function(file, qualified_name, kind))
    return {call.name for call in file.calls if call.caller == number}


def test_scala_functions() -> None:
    assert table(parsed("scala", "Shop.scala")) == {
        "org.example.shop.Shop.<init>": ("initialiser", 7, 41),
        "org.example.shop.Shop.<init> 2": ("constructor", 8, 8),
        "org.example.shop.Shop.report": ("method", 11, 13),
        "org.example.shop.Shop.+=": ("method", 19, 23),
        "org.example.shop.Shop.+=.checked": ("function", 21, 21),
        "org.example.shop.Shop.sell": ("method", 25, 29),
        "org.example.shop.Shop.sell.<lambda>": ("lambda", 26, 28),
        "org.example.shop.Shop.sell.<lambda> 2": ("lambda", 29, 29),
        "org.example.shop.Shop.later": ("method", 31, 34),
        "org.example.shop.Shop.later.<anonymous>.<init>": ("initialiser", 31, 34),
        "org.example.shop.Shop.later.<anonymous>.hasNext": ("method", 32, 32),
        "org.example.shop.Shop.later.<anonymous>.next": ("method", 33, 33),
        "org.example.shop.Shop.price": ("method", 36, 36),
        "org.example.shop.Shop.kind": ("method", 38, 40),
        "org.example.shop.Shop.<init> 3": ("initialiser", 44, 51),
        "org.example.shop.Shop.Rich.<init>": ("initialiser", 46, 48),
        "org.example.shop.Shop.Rich.twice": ("method", 47, 47),
        "org.example.shop.Shop.apply": ("method", 49, 49),
        "org.example.shop.Shop.odd name.<init>": ("initialiser", 50, 50),
        "org.example.shop.Closed.<init>": ("initialiser", 53, 56),
        "org.example.shop.Closed.close": ("method", 54, 54),
        "org.example.shop.Closed.open": ("method", 55, 55),
        "org.example.shop.tools.<init>": ("initialiser", 58, 60),
        "org.example.shop.tools.helper": ("method", 59, 59),
        "org.example.shop.::.<init>": ("initialiser", 62, 62),
        "org.example.shop.::.head": ("method", 62, 62),
    }


def test_scala_names_as_the_jvm_shows_them() -> None:
    file = parsed("scala", "Shop.scala")
    shown = {(each.runtime_class, *each.runtime_methods) for each in file.functions}
    assert ("org.example.shop.Shop", "+=") in shown
    assert ("org.example.shop.Shop$", "apply") in shown
    assert ("org.example.shop.Shop$", "<init>", "<clinit>") in shown
    assert ("org.example.shop.Shop$Rich", "twice") in shown
    assert ("org.example.shop.Shop$$anon", "hasNext") in shown
    assert ("org.example.shop.tools.package$", "helper") in shown
    assert ("org.example.shop.$colon$colon", "head") in shown
    assert function(file, "org.example.shop.Shop.price").runtime_methods == ()
    assert not function(file, "org.example.shop.Shop.price").has_body
    declared = {each.class_name: (each.first_line, each.last_line) for each in file.classes}
    assert declared["org.example.shop.Shop$Rich"] == (46, 48)
    assert declared["org.example.shop.tools.package$"] == (58, 60)
    assert not any("anon" in name for name in declared)


def test_scala_documentation_descriptor_and_nesting() -> None:
    file = parsed("scala", "Shop.scala")
    plus = function(file, "org.example.shop.Shop.+=")
    assert plus.doc == "Adds an item.\n@param item what"
    assert plus.signature == "+=(item: T): Unit"
    assert plus.descriptor == "org/example/shop/Shop#`+=`()."
    assert function(file, "org.example.shop.Shop.apply").descriptor == "org/example/shop/Shop.apply()."
    inner = function(file, "org.example.shop.Shop.+=.checked")
    assert inner.enclosing is not None
    assert file.functions[inner.enclosing] is plus
    body = function(file, "org.example.shop.Shop.<init>", "initialiser")
    assert body.doc == "Keeps the stock."
    assert "System.nanoTime()" in body.code
    assert "def " not in body.code
    assert "Adds an item" not in body.code
    remark = next(each for each in file.functions if each.first_line == 44)
    assert remark.doc == ""
    anonymous = function(file, "org.example.shop.Shop.later.<anonymous>.next")
    assert anonymous.enclosing is not None
    assert file.functions[anonymous.enclosing].name == "later"
    assert anonymous.class_name == "Shop.<anonymous>"


def test_a_lambdas_calls_count_for_its_function_too() -> None:
    file = parsed("scala", "Shop.scala")
    assert calls(file, "org.example.shop.Shop.sell.<lambda>") == {"log", "make"}
    assert calls(file, "org.example.shop.Shop.sell") == {"map", "filter", "log", "make"}
    assert calls(file, "org.example.shop.Shop.+=.checked") == set()
    receivers = {call.name: call.receiver for call in file.calls}
    assert receivers["nanoTime"] == "System"
    assert receivers["log"] == ""


def test_scala_3() -> None:
    file = parsed("scala", "Three.scala")
    assert {name: lines for name, (_, *lines) in table(file).items()} == {
        "org.example.double": [4, 4],
        "org.example.Indented.<init>": [6, 10],
        "org.example.Indented.f": [7, 9],
        "org.example.ordering.<init>": [12, 13],
        "org.example.ordering.compare": [13, 13],
        "org.example.Colour.<init>": [15, 17],
        "org.example.Colour.hex": [17, 17],
        "org.example.top": [19, 19],
    }
    assert function(file, "org.example.top").runtime_class == "org.example.Three$package$"
    assert "org.example.Three$package" in {each.class_name for each in file.classes}


def test_names_hold_no_source_text() -> None:
    file = parse_file(b"object A { lazy val (a, b) = f(); val (c, d) = g() }", "scala", "A.scala")
    assert [each.name for each in file.functions] == ["<init>", "<pattern>"]


def test_names_the_grammar_takes_for_keywords() -> None:
    text = b'class A { @J(using = classOf[B]) def f = inline"${g(1)}"\n  def h = 1 }'
    file = parse_file(text, "scala", "A.scala")
    assert [each.name for each in file.functions] == ["<init>", "f", "h"]
    assert file.errors == ()
    assert 'inline"${g(1)}"' in file.functions[1].code


def test_java_functions() -> None:
    file = parsed("java", "Depot.java")
    assert table(file) == {
        "org.example.Depot.<init>": ("initialiser", 6, 80),
        "org.example.Depot.<clinit>": ("initialiser", 11, 13),
        "org.example.Depot.<init> 2": ("constructor", 20, 22),
        "org.example.Depot.run": ("method", 27, 44),
        "org.example.Depot.run.<lambda>": ("lambda", 29, 31),
        "org.example.Depot.run.<anonymous>.<init>": ("initialiser", 32, 37),
        "org.example.Depot.run.<anonymous>.run": ("method", 33, 36),
        "org.example.Depot.run.Local.<init>": ("initialiser", 38, 42),
        "org.example.Depot.run.Local.help": ("method", 39, 41),
        "org.example.Depot.todo": ("method", 46, 46),
        "org.example.Depot.Size.<init>": ("initialiser", 48, 59),
        "org.example.Depot.Size.<anonymous>.<init>": ("initialiser", 49, 53),
        "org.example.Depot.Size.<anonymous>.area": ("method", 50, 52),
        "org.example.Depot.Size.area": ("method", 56, 58),
        "org.example.Depot.Plan.q": ("method", 62, 62),
        "org.example.Depot.Plan.d": ("method", 64, 66),
        "org.example.Depot.Pair.<init>": ("initialiser", 69, 73),
        "org.example.Depot.Pair.<init> 2": ("constructor", 70, 72),
        "org.example.Depot.Holder.<init>": ("constructor", 76, 76),
        "org.example.Depot.Holder.hold": ("method", 78, 78),
    }
    names = {(each.runtime_class, *each.runtime_methods) for each in file.functions}
    assert ("org.example.Depot", "<clinit>") in names
    assert ("org.example.Depot$1", "run") in names
    assert ("org.example.Depot$1Local", "help") in names
    assert ("org.example.Depot$Size$1", "area") in names
    assert function(file, "org.example.Depot.<init>", "initialiser").doc == "Stores things, see Shop."
    assert calls(file, "org.example.Depot.run") == {"forEach", "load", "call", "compute"}
    assert calls(file, "org.example.Depot.<init>", "initialiser") == {"compute", "prepare"}


def test_python_functions() -> None:
    file = parsed("python", "depot.py")
    assert table(file) == {
        "depot.<module>": ("initialiser", 1, 32),
        "depot.deco": ("function", 6, 7),
        "depot.Depot.<body>": ("initialiser", 10, 26),
        "depot.Depot.size": ("method", 16, 23),
        "depot.Depot.size.inner": ("function", 20, 21),
        "depot.Depot.size.<lambda>": ("lambda", 23, 23),
        "depot.Depot.fetch": ("method", 25, 26),
        "depot.top": ("function", 29, 32),
    }
    assert function(file, "depot.<module>").doc == "Depots."
    assert function(file, "depot.top").doc == "Raw\ntext."
    assert function(file, "depot.Depot.<body>").runtime_methods == ("Depot",)
    assert calls(file, "depot.Depot.size") == {"total", "weigh"}


def test_a_python_package_goes_by_its_folders() -> None:
    file = parse_file(b"def f(): pass\n", "python", "a/b/__init__.py")
    assert file.functions[1].qualified_name == "a.b.f"


def test_cpp_functions() -> None:
    file = parsed("cpp", "depot.cc")
    assert table(file) == {
        "example::store::Depot::Depot": ("constructor", 8, 8),
        "example::store::Depot::weigh": ("method", 10, 12),
        "example::store::Depot::weigh::<lambda>": ("lambda", 11, 11),
        "example::store::Depot::operator==": ("method", 13, 13),
        "example::store::Depot::~Depot": ("method", 20, 21),
        "example::store::helper": ("function", 23, 23),
        "example::store::Outer::Inner::run": ("method", 27, 27),
        "c_function": ("function", 30, 30),
    }
    assert function(file, "example::store::Depot::~Depot").doc == "Frees it."
    assert calls(file, "example::store::helper") == {"find"}


def test_documentation_is_text() -> None:
    assert clean_comment("/** Reads {@code a}.\n  * <p>Then <i>b</i> &lt; 3.\n  */") == "Reads a.\nThen b < 3."
    assert clean_comment("/// One.\n/// Two.") == "One.\nTwo."
    assert clean_docstring("'''Says\n   so.'''") == "Says\nso."


def test_every_range_is_inside_its_file_and_nests() -> None:
    for path in sorted(SOURCES.glob("*/*")):
        language: Language = path.parent.name  # type: ignore[assignment]
        file = parse_file(path, language, path.name)
        lines = path.read_text().count("\n") + 1
        for each in file.functions:
            assert 1 <= each.first_line <= each.last_line <= lines
            if each.enclosing is not None:
                outer = file.functions[each.enclosing]
                assert outer.first_line <= each.first_line
                assert each.last_line <= outer.last_line
        assert file.errors == ()


HOSTILE: list[tuple[str, Language, bytes]] = [
    ("brackets.scala", "scala", b"object A { def f = " + b"(" * 50_000 + b")" * 50_000 + b" }"),
    ("braces.java", "java", b"class A { void f() " + b"{" * 50_000 + b"}" * 50_000 + b" }"),
    ("lambdas.py", "python", b"x = " + b"lambda: " * 3_000 + b"1\n"),
    ("classes.java", "java", b"class A {" * 5_000 + b"}" * 5_000),
    ("calls.cc", "cpp", b"int f() { return " + b"g(" * 20_000 + b")" * 20_000 + b"; }"),
    ("bytes.scala", "scala", bytes(range(256)) * 40),
    ("latin.java", "java", 'class A { /** caf\xe9 */ void f() { g("\xe9"); } }'.encode("latin-1")),
    ("empty.py", "python", b""),
    ("nul.py", "python", b"def f():\0\0\n"),
    ("cut.scala", "scala", b'class A { def f(x: Int) = { val s = """never closed'),
    ("line.java", "java", b"class A { int[] a = {" + b"1," * 100_000 + b"}; }"),
]


def test_hostile_files_cost_themselves_at_most() -> None:
    """Each in a child process; a good file before and after each comes back whole."""
    good = ("good.scala", "scala", b"object Good { def f(x: Int) = g(x) }")
    sources = [each for hostile in HOSTILE for each in (good, hostile)] + [good]
    found = list(parse_files(sources, workers=2, seconds_per_file=20))
    assert [each.file for each in found] == [file for file, _, _ in sources]
    assert all(len(each.functions) == 2 for each in found if each.file == "good.scala")
    latin = next(each for each in found if each.file == "latin.java")
    assert [each.name for each in latin.functions] == ["<init>", "f"]


def test_a_file_over_the_limit_is_left_out() -> None:
    file = parse_file(b"x" * (MAX_FILE_BYTES + 1), "python", "big.py")
    assert file.functions == ()
    assert len(file.errors) == 1


def test_a_parser_that_takes_too_long_is_killed() -> None:
    slow = ("slow.scala", "scala", b"object A { val x = 1 }\n" * 100_000)
    good = ("good.scala", "scala", b"object Good { def f(x: Int) = g(x) }")
    killed, whole = parse_files([slow, good], workers=1, seconds_per_file=0.5)
    assert killed.functions == ()
    assert len(killed.errors) == 1
    assert len(whole.functions) in (0, 2)  # a new child may take longer than the half second to start


def test_unparsed_source_is_reported() -> None:
    file = parse_file(b"class A {\n  void f() { @@@ ??? }\n}\n", "java", "A.java")
    (error,) = file.errors
    assert "line 2" in error


def test_only_cursors_walk_trees() -> None:
    """These calls recurse in C, and crash the interpreter on nested sources."""
    code = (Path(__file__).parent.parent / "indexer" / "parse.py").read_text()
    for name in (".parent", "child_with_descendant", "descendant_for", ".sexp", "next_sibling", "prev_sibling"):
        assert name not in code.replace("path.parent", "")
