"""Small inputs that would take long or much memory: work grows about as the input does, by counting."""

from __future__ import annotations

import io
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.names import demangle
from crystalperf.query.attribution.code import names
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.frameworks.registry import get
from crystalperf.query.frameworks.spark import files
from crystalperf.query.inputs import bounds, containers
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.inputs.discover import discover
from crystalperf.query.inputs.files import Head
from crystalperf.query.recordings import collapsed, jfr
from crystalperf.query.recordings.stacktable import StackTable, frame_of
from crystalperf.query.trace.records import Problems

START = b'{"Event":"SparkListenerApplicationStart","App Name":"a","App ID":"app-1","Timestamp":1700000000000}\n'


def counted(work: Callable[[], object]) -> int:
    """How many calls and lines of Python the work takes: the same on every machine."""
    steps = 0

    def seen(*_: object) -> object:
        nonlocal steps
        steps += 1
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def grows(work: Callable[[int], object], size: int) -> float:
    """How much more work twice the size is."""
    work(1)  # what is done once
    return counted(lambda: work(2 * size)) / counted(lambda: work(size))


def zipped(path: Path, count: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(count):
            archive.writestr(f"other/{number}", b"some text\n")
        archive.writestr("log", START)
    return path


def test_a_zip_is_opened_once_for_all_its_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    whole = zipfile.ZipFile.__init__

    def counting(self: zipfile.ZipFile, *arguments: object, **settings: object) -> None:
        if type(self) is zipfile.ZipFile:
            opened.append(self)
        whole(self, *arguments, **settings)  # type: ignore[arg-type]

    path = zipped(tmp_path / "logs", 300)
    monkeypatch.setattr(zipfile.ZipFile, "__init__", counting)
    (application,) = discover([path]).applications
    assert len(opened) <= 2
    opened.clear()
    log = LogFile("a", (*application.log.parts * 50,))
    assert len(list(batches(log, Problems()))) == 50
    assert len(opened) == 1


def test_work_grows_linearly_with_zip_members(tmp_path: Path) -> None:
    def look(count: int) -> None:
        discover([zipped(tmp_path / "logs", count)])

    assert grows(look, 100) < 2.5


def test_oversized_zip_members_are_not_all_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_MAX_UNPACKED_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "logs", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(f"other/{number}", b"some text\n" * 10_000)
    with pytest.raises(InputError, match="logs"):
        discover([tmp_path / "logs"])


@pytest.mark.parametrize("filling", [b"\n", b" \n", b"\r\n\t", b"{\n", b'{"Event"\n', b'{ "Event" :\n', b" "])
def test_sniffer_reads_a_text_once(filling: bytes) -> None:
    """The engine of regular expressions cannot be counted in; it may only go so far from where it starts."""
    text = filling * 200_000
    head = Head(Part("none"), "", "none", 0, text[: 64 << 10] + b'"Event' + files._START)
    assert files.recognise(head) is None
    assert files._EVENT.search(text) is None
    assert "{0,100}" in files._EVENT.pattern.decode()
    assert rb"\s*" not in files._EVENT.pattern


@pytest.mark.few(2)
@pytest.mark.parametrize("filling", [b"\n", b" \n", b"x\n", b"{}\n", b'{"Event":"a"}\n', b"\0", b"x" * 1000 + b"\n"])
def test_a_bomb_is_stopped_by_its_bytes_however_many_lines_it_has(
    filling: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "ALWAYS_BYTES", 8 << 20)
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    block = filling * ((1 << 20) // len(filling))
    packed = b"".join([packer.compress(START), *(packer.compress(block) for _ in range(40)), packer.flush()])
    assert len(packed) < 60_000
    (tmp_path / "log").write_bytes(packed)
    problems = Problems()
    given = most = 0
    first = b""
    tracemalloc.start()
    try:
        for batch in batches(LogFile("log", (Part(str(tmp_path / "log")),)), problems):
            first = first or batch.lines[0]
            given += sum(map(len, batch.lines)) + len(batch.lines)
            most = max(most, len(batch.lines))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert first + b"\n" == START  # the good lines before it are not lost
    assert [each.name for each in problems] == ["input_bound"]
    assert given <= bounds.ALWAYS_BYTES + (1 << 20)
    assert most <= 1 << 20
    assert peak < 160 << 20


def test_a_file_of_newlines_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(zstandard.ZstdCompressor().compress(b"\n" * (12 << 20)))
    assert (tmp_path / "log").stat().st_size < 2000
    with pytest.raises(InputError, match="is blank"):
        discover([tmp_path / "log"])


LONG_NAMES = {
    "many parts": lambda size: ".".join(["a"] * size) + ".m",
    "many slashes": lambda size: "/".join(["a"] * size) + ".m",
    "many dollars": lambda size: "a.B" + "$c" * size + ".m",
    "nested functions": lambda size: "a.B." + "$anonfun$" * size + "x$1",
    "nested lambdas": lambda size: "a.B." + "lambda$" * size + "x$1",
    "many suffixes": lambda size: "a.B.m" + "$adapted" * size,
    "many operators": lambda size: "a.B.m" + "$plus" * size,
    "shaded again": lambda size: "shaded." * size + "a.B.m",
}


@pytest.mark.parametrize("kind", LONG_NAMES)
def test_work_grows_linearly_with_the_length_of_a_name(kind: str) -> None:
    make = LONG_NAMES[kind]

    def look(size: int) -> None:
        owner, _, method = make(size).rpartition(".")
        table = NumberedStacks(get("spark"))
        table.add(_one_frame(f"{owner}.{method}"))
        ((class_name, method, _),) = table.frames
        names.declaring_names(class_name)
        demangle(method)
        names.nature(class_name)
        names.parse_frame(make(size))

    for size in (200, 5_000):
        assert grows(look, size) < 2.5
    assert counted(lambda: look(80_000)) < 20_000
    ((class_name, method, _),) = _frames(make(80_000))
    assert max(len(class_name), len(method)) <= names.LONGEST_NAME + 1


def _frames(text: str) -> list[tuple[str, str, int]]:
    table = NumberedStacks(get("spark"))
    table.add(_one_frame(text))
    return list(table.frames)


def _one_frame(text: str) -> jfr.Recording:
    table = StackTable("stacks")
    table.add([table.frame(frame_of(text))], 1.0)
    return table.collapsed().recording


def test_work_grows_linearly_with_the_frames_of_a_line(tmp_path: Path) -> None:
    def look(size: int) -> None:
        (tmp_path / "stacks").write_bytes(b";".join(b"a.B.m%d" % each for each in range(size)) + b" 1\n")
        collapsed.read(str(tmp_path / "stacks"), Problems())

    assert grows(look, 500) < 2.5


def test_work_grows_linearly_with_the_length_of_a_log(tmp_path: Path) -> None:
    def look(size: int) -> None:
        text = io.BytesIO()
        text.write(START)
        for number in range(size):
            text.write(b'{"Event":"SparkListenerBlockManagerRemoved","Timestamp":%d}\n' % number)
        (tmp_path / "log").write_bytes(text.getvalue())
        for _ in batches(discover([tmp_path / "log"]).applications[0].log, Problems()):
            pass

    assert grows(look, 500) < 2.5


def test_a_selector_with_line_breaks_is_refused_in_one_line() -> None:
    log = Path(__file__).parents[2] / "lab/recordings/first-hour/small-files.zstd"
    with pytest.raises(InputError) as refused:
        cp.profile([log], app="a\nb\x1b[31m")
    assert str(refused.value).isprintable()
