"""Class files: the facts read of them, the targets of their calls, and errors of damaged ones."""

from __future__ import annotations

import random
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refusals import refused

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer.classfile import Call, ClassFile, ClassFileError, Method, read
from crystalperf.indexer.parse import parse_file
from crystalperf.indexer.typed import Graph, Known, Sources, meaning, read_jars, resolve_typed_calls, typed_calls
from crystalperf.indexes.errors import BuildError

CLASSES = Path(__file__).parent / "data" / "classes"
CALLS = "org.example.Calls"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    jar = tmp_path_factory.mktemp("jars") / "calls.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for each in sorted(CLASSES.glob("*.class")):
            archive.write(each, f"org/example/{each.name}")
            archive.write(each, f"META-INF/versions/21/org/example/{each.name}")
        archive.writestr("org/example/Broken.class", b"\xca\xfe\xba\xbe\0\0")
        archive.writestr("org/example/readme.txt", b"")
    return read_jars([jar])


@pytest.fixture(scope="module")
def sources() -> Sources:
    return sources_of(CLASSES / "Calls.java")


@pytest.fixture(scope="module")
def open_graph() -> Graph:
    files = [read(each.read_bytes()) for each in sorted((CLASSES / "open").glob("*.class"))]
    return Graph({each.name: each for each in files})


@pytest.fixture(scope="module")
def open_sources() -> Sources:
    return sources_of(CLASSES / "open" / "Open.java")


def sources_of(file: Path) -> Sources:
    parsed = parse_file(file, "java", file.name)
    functions = [
        Known(
            each.kind, each.name, f"{each.package}.{(each.class_name or '').replace('.', '$')}", each.enclosing,
            parsed.file, each.first_line, each.last_line,
        )
        for each in parsed.functions
    ]  # fmt: skip
    return Sources(functions, {each.class_name: parsed.file for each in parsed.classes})


def reported(graph: Graph, sources: Sources) -> dict[str, set[tuple[str, str, tuple[str, ...]]]]:
    """By caller: the method called, the status, and the functions it may mean, as Class.method:line."""

    def shown(number: int) -> str:
        function = sources.functions[number]
        return f"{function.class_name.removeprefix('org.example.')}.{function.name}:{function.first_line}"

    found: dict[str, set[tuple[str, str, tuple[str, ...]]]] = {}
    for caller, each in typed_calls(graph, sources):
        row = (each.name, each.status, tuple(map(shown, each.targets)))
        found.setdefault(shown(caller), set()).add(row)
    return found


def test_a_class_file_says_what_it_extends_and_calls() -> None:
    cached = read((CLASSES / "Calls$Cached.class").read_bytes())
    assert (cached.name, cached.super_name, cached.interfaces) == (f"{CALLS}$Cached", f"{CALLS}$Disk", ())
    really = next(each for each in cached.methods if each.name == "reallyRead")
    assert really.first_line == 30
    assert really.calls == ((30, Call("special", f"{CALLS}$Disk", "read", "(Ljava/lang/String;)I")),)


def test_calls_are_found_behind_switches() -> None:
    branches = next(each for each in read((CLASSES / "Calls.class").read_bytes()).methods if each.name == "branches")
    assert [(line, call.name) for line, call in branches.calls] == [
        (58, "over"), (60, "over"), (62, "names"), (62, "size")
    ]  # fmt: skip


def test_targets_of_calls(graph: Graph, sources: Sources) -> None:
    assert sorted(graph.classes) == [CALLS, f"{CALLS}$Cached", f"{CALLS}$Disk", f"{CALLS}$Store"]
    assert [file for file, _ in graph.problems] == ["org/example/Broken.class"]
    found = reported(graph, sources)
    # An interface's method is any implementation's, a class's its own and its subclasses'.
    assert found["Calls.virtual:42"] == {
        ("read", "functions", ("Calls$Store.read:9", "Calls$Disk.read:17", "Calls$Cached.read:24")),
        ("read", "functions", ("Calls$Disk.read:17", "Calls$Cached.read:24")),
        ("read", "function", ("Calls$Cached.read:24",)),
        ("twice", "function", ("Calls$Store.twice:11",)),
    }
    assert found["Calls$Cached.reallyRead:29"] == {("read", "function", ("Calls$Disk.read:17",))}


def test_overloads_are_distinguished_by_their_lines(graph: Graph, sources: Sources) -> None:
    assert reported(graph, sources)["Calls.overloads:46"] == {
        ("over", "function", ("Calls.over:34",)),
        ("over", "function", ("Calls.over:38",)),
    }


def test_lambdas_and_references_are_calls_and_the_jdk_is_outside(graph: Graph, sources: Sources) -> None:
    found = reported(graph, sources)
    assert ("forEach", "outside", ()) in found["Calls.lambdas:50"]
    implementations = ("Calls$Store.read:9", "Calls$Disk.read:17", "Calls$Cached.read:24")
    assert ("read", "functions", implementations) in found["Calls.lambdas:50"]
    assert found["Calls.<lambda>:51"] >= {("read", "functions", implementations)}
    assert ("nanoTime", "outside", ()) in found["Calls.names:66"]


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (Call("virtual", "[I", "clone", "()Ljava/lang/Object;"), "outside"),
        (Call("virtual", f"{CALLS}$Disk", "hashCode", "()I"), "outside"),
        (Call("virtual", f"{CALLS}$Disk", "gone", "()V"), "nowhere"),
        (Call("static", "com.acme.Far", "away", "()V"), "outside"),
        (Call("special", f"{CALLS}$Disk", "<init>", "()V"), "function"),
        (Call("virtual", CALLS, "nothing", "()V"), "function"),
    ],
)
def test_calls_without_a_function_have_their_status(graph: Graph, sources: Sources, call: Call, status: str) -> None:
    assert meaning(graph, sources, call).status == status


def test_calls_generated_by_scalac_for_a_case_class_are_its_constructor_or_field_reads() -> None:
    """`Point(1)` is Point$.apply, `copy()` Point.copy: both make a Point.  `x` reads a field."""
    init = Call("special", "a.Point", "<init>", "(I)V")
    point = ClassFile(
        "a.Point", "java.lang.Object", (),
        (
            Method("<init>", "(I)V", 1, 1, ()), Method("x", "()I", 1, 1, ()),
            Method("copy", "(I)La/Point;", 1, 1, ((1, init),)),
        ),
    )  # fmt: skip
    companion = ClassFile(
        "a.Point$", "java.lang.Object", (),
        (Method("apply", "(I)La/Point;", 1, 1, ((1, init),)), Method("apply$default$1", "()I", 1, 1, ())),
    )  # fmt: skip
    graph = Graph({each.name: each for each in (point, companion)})
    parsed = parse_file(b"package a\ncase class Point(x: Int = 1)", "scala", "Point.scala")
    known = [Known(each.kind, each.name, each.runtime_class, None, "Point.scala", 1, 2) for each in parsed.functions]
    sources = Sources(known, {"a.Point": "Point.scala"})
    asked = [
        ("a.Point$", "apply", "(I)La/Point;"), ("a.Point", "copy", "(I)La/Point;"), ("a.Point", "x", "()I"),
        ("a.Point$", "apply$default$1", "()I"),
    ]  # fmt: skip
    reported = [meaning(graph, sources, Call("virtual", *each)) for each in asked]
    assert [(each.status, each.targets) for each in reported] == [
        ("function", (0,)), ("function", (0,)), ("accessor", ()), ("made", ())
    ]  # fmt: skip


def class_of(code: bytes, handlers: bytes = b"\0\0") -> bytes:
    """A class A with a method m of this code and these handlers; constant 7 is its field, 8 its own method."""

    def text(value: bytes) -> bytes:
        return b"\1" + struct.pack(">H", len(value)) + value

    pair, field = struct.pack(">BHH", 12, 3, 4), struct.pack(">BHH", 9, 2, 6)
    constants = [text(b"A"), b"\7\0\1", text(b"m"), text(b"()I"), text(b"Code"), pair, field]
    constants.append(struct.pack(">BHH", 10, 2, 6))
    attribute = struct.pack(">HHI", 9, 9, len(code)) + code + handlers + bytes(2)
    method = struct.pack(">HHHHHI", 1, 3, 4, 1, 5, len(attribute)) + attribute
    begin = b"\xca\xfe\xba\xbe\0\0\0\x41" + struct.pack(">H", len(constants) + 1) + b"".join(constants)
    return begin + struct.pack(">HHHHHH", 0, 2, 0, 0, 0, 1) + method + bytes(2)


@pytest.mark.parametrize(
    ("code", "is_accessor"),
    [
        (b"\x2a\xb4\0\7\xac", True),  # return this.field
        (b"\x2a\xb4\0\7\xc0\0\2\xb0", True),  # the same, cast
        (b"\xb2\0\7\xb0", True),  # return A.field
        (b"\x2a\x1b\xb5\0\7\xb1", True),  # this.field = argument
        (b"\x10\x2a\xac", True),  # return 42
        (b"\x2a\xb4\0\7\x04\x60\xac", False),  # return this.field + 1
        (b"\x2a\xb6\0\x08\xac", False),  # return this.m()
        (b"\xb1", False),  # return
    ],
)
def test_accessor_is_recognized_by_its_code(code: bytes, is_accessor: bool) -> None:
    (method,) = read(class_of(code)).methods
    assert method.is_accessor == is_accessor
    assert len(method.calls) == (code[1:2] == b"\xb6")


@pytest.mark.parametrize(
    ("begin", "handling"),
    [
        (b"\x2a\xb6\0\x08\xa7\0\x08", {1}),  # try { m() } catch { m() }
        (b"\x2a\xb6\0\x08\xa7\0\x05", set()),  # the handler's call is gone on to as well
        (b"\x2a\xb6\0\x08\x57\x03\xb1", {1}),  # returns before it
        (b"\x1b\xab\0\0" + struct.pack(">4i", 28, 1, 5, 27), set()),  # a switch with a case that goes to it
        (b"\x1b\xaa\0\0" + struct.pack(">4i", 27, 0, 0, 27), set()),
        (b"\x1b\xaa\0\0" + struct.pack(">4i", 32, 0, 0, 32), {0}),
    ],
)
def test_calls_made_only_by_an_exception_handler(begin: bytes, handling: set[int]) -> None:
    """After `begin` a handler: astore_1, aload_0, invokevirtual m; then return."""
    code = begin + (b"\0" * 8 if len(begin) > 7 else b"") + b"\x4c\x2a\xb6\0\x08\xb1"
    handlers = struct.pack(">HHHHH", 1, 0, 1, len(code) - 6, 0)
    (method,) = read(class_of(code, handlers), handling=True).methods
    assert method.handling == handling
    assert read(class_of(code, handlers)).methods[0].handling == set()


def test_a_trait_s_val_is_a_field_of_each_class_or_what_one_has_instead() -> None:
    """`trait Named { val name; val size }`, `class One extends Named`, and a class whose `size` is computed."""
    name, size, made = ("name", "()I"), ("size", "()I"), 0x1000
    files = [
        ClassFile("Named", None, (), (Method(*name, 1 | 0x400, 0, ()), Method(*size, 1 | 0x400, 0, ()))),
        ClassFile("One", None, ("Named",), (Method(*name, 1, 1, (), True), Method(*size, 1, 1, (), True))),
        ClassFile(
            "Two", None, ("Named",),
            (Method(*name, made, 1, ((1, Call("static", "One", "name", "()I")),)), Method(*size, 1, 9, ())),
        ),
    ]  # fmt: skip
    graph = Graph({each.name: each for each in files})
    sources = Sources([Known("method", "size", "Two", None, "A.scala", 9, 9)], dict.fromkeys(graph.classes, "A.scala"))
    reported = [meaning(graph, sources, Call("interface", "Named", *each)) for each in (name, size)]
    assert [(each.status, each.targets) for each in reported] == [("field", ()), ("functions", (0,))]
    resolved, counts = resolve_typed_calls(
        [(0, "name"), (0, "size")], [(0, each) for each in reported], sources.functions
    )
    assert resolved == {(0, "name"): "Named.name", (0, "size"): None}
    assert (counts["field"], counts["functions"]) == (1, 1)


def test_class_without_its_source_is_reported(graph: Graph, sources: Sources) -> None:
    none = Sources(sources.functions, {})
    call = Call("static", CALLS, "over", "(I)I")
    assert meaning(graph, none, call).status == "no source"
    assert list(typed_calls(graph, none)) == []


def test_damaged_class_file_raises_one_kind_of_error() -> None:
    """Cut at every byte, and with bytes changed: a class or one kind of error, nothing else, and soon."""
    whole = (CLASSES / "Calls.class").read_bytes()
    for size in range(len(whole)):
        with pytest.raises(ClassFileError):
            read(whole[:size])
    rng = random.Random(1)
    read_anyway = 0
    for _ in range(4000):
        changed = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(whole))] = rng.choice((0, 1, 0x7F, 0xFF, rng.randrange(256)))
        try:
            read(bytes(changed))
            read_anyway += 1
        except ClassFileError:
            pass
    assert 0 < read_anyway < 4000


def test_file_that_is_not_a_class_file_is_refused() -> None:
    for data in (b"", b"PK\3\4", b"\xca\xfe\xba\xbe", bytes(100)):
        with pytest.raises(ClassFileError):
            read(data)


def test_types_resolve_calls_that_texts_leave_open(graph: Graph, sources: Sources) -> None:
    number = {f"{each.class_name}.{each.name}:{each.first_line}": at for at, each in enumerate(sources.functions)}
    virtual, lambdas, overloads = (number[f"{CALLS}.{each}"] for each in ("virtual:42", "lambdas:50", "overloads:46"))
    asked = [(virtual, "twice"), (virtual, "read"), (lambdas, "forEach"), (lambdas, "read"), (overloads, "over")]
    resolved, counts = resolve_typed_calls([*asked, (virtual, "gone")], typed_calls(graph, sources), sources.functions)
    assert resolved == {
        (virtual, "twice"): number[f"{CALLS}$Store.twice:11"],
        (virtual, "read"): None,
        (lambdas, "forEach"): "java.util.List.forEach",
        (lambdas, "read"): None,  # in the lambda, and so in what encloses it
        (overloads, "over"): None,
    }
    assert counts["outside"] > 3
    assert counts["nowhere"] == 0


def test_file_that_is_not_a_jar_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.jar").write_bytes(b"PK no")
    for path in (tmp_path / "a.jar", tmp_path / "b.jar"):
        with refused(BuildError, path):
            read_jars([path])


def test_call_that_may_run_a_lambda_stays_open(open_graph: Graph, open_sources: Sources) -> None:
    """An interface's one class is the target of a call, unless a lambda implements the interface somewhere."""
    assert ("org.example.Open$Step", "run", "(I)I") in open_graph.of_lambdas
    found = reported(open_graph, open_sources)
    assert found["Open.steps:37"] == {("run", "functions", ("Open$Step.run:10", "Open$Named.run:14"))}
    assert found["Open.only:49"] == {("once", "function", ("Open$Once.once:31",))}


def test_unimplemented_abstract_overloads_stay_ambiguous(open_graph: Graph, open_sources: Sources) -> None:
    assert reported(open_graph, open_sources)["Open.sinks:45"] == {
        ("put", "functions", ("Open$Sink.put:21", "Open$Sink.put:23"))
    }


def test_method_overridden_by_very_many_classes_stays_open(graph: Graph, sources: Sources) -> None:
    below = graph.classes[f"{CALLS}$Cached"]
    more = {name: replace(below, name=name) for name in (f"{CALLS}$Cached{number}" for number in range(65))}
    call = Call("virtual", f"{CALLS}$Disk", "read", "(Ljava/lang/String;)I")
    assert meaning(Graph({**graph.classes, **more}), sources, call).status == "functions"


def test_name_of_several_outside_classes_resolves_to_no_function(open_graph: Graph, open_sources: Sources) -> None:
    """Words would take `close` for the only function of that name."""
    number = {each.name: at for at, each in enumerate(open_sources.functions)}
    asked = [(number["twoOutside"], "close")]
    resolved, _ = resolve_typed_calls(asked, typed_calls(open_graph, open_sources), open_sources.functions)
    assert resolved == {asked[0]: None}


def test_shared_name_is_decoded_once() -> None:
    """20 000 calls of 200 members of one class with a name of 60 KB: the name is one text, and so are the calls."""
    long = b"a/" * 30_000

    def text(value: bytes) -> bytes:
        return b"\1" + struct.pack(">H", len(value)) + value

    constants = [text(long), b"\7\0\1", text(b"()V"), text(b"Code")]
    for number in range(200):
        constants += [text(b"m%d" % number), struct.pack(">BHH", 12, len(constants) + 1, 3)]
        constants.append(struct.pack(">BHH", 10, 2, len(constants)))
    calls = b"".join(struct.pack(">BH", 184, 7 + 3 * (number % 200)) for number in range(20_000))
    code = struct.pack(">HHI", 0, 0, len(calls)) + calls + bytes(4)
    data = b"\xca\xfe\xba\xbe\0\0\0\x41" + struct.pack(">H", len(constants) + 1) + b"".join(constants)
    data += (
        struct.pack(">HHHHHH", 0, 2, 0, 0, 0, 1) + struct.pack(">HHHHHI", 0, 5, 3, 1, 4, len(code)) + code + bytes(2)
    )
    (method,) = read(data).methods
    assert len(method.calls) == 20_000
    assert len({id(call) for _, call in method.calls}) == 200
    assert len({id(call.owner) for _, call in method.calls}) == 1
