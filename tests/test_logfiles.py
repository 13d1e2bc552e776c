"""Containers of event logs: whole, cut and damaged; lines of any length; paths that are not readable files."""

from __future__ import annotations

import gzip
import os
import random
import zipfile
from pathlib import Path

import pytest
import zstandard

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs import bounds
from crystalperf.query.inputs import containers as logfiles
from crystalperf.query.inputs.containers import LogFile, Part, batches, head, members
from crystalperf.query.trace.records import Problem, Problems
from tests.refusals import refused

DATA = Path(__file__).parent / "data" / "eventlog"
TEXT = zstandard.ZstdDecompressor().stream_reader((DATA / "q9.zstd").read_bytes(), read_across_frames=True).read()
FIRST = b"\n".join(TEXT.split(b"\n")[:60]) + b"\n"


def read(*parts: Path | Part) -> tuple[bytes, list[Problem]]:
    problems = Problems()
    log = LogFile("log", tuple(each if isinstance(each, Part) else Part(str(each)) for each in parts))
    lines = [line for batch in batches(log, problems) for line in batch.lines]
    return b"".join(line + b"\n" for line in lines), list(problems)


def names(problems: list[Problem]) -> set[str]:
    return {each.name for each in problems}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same log in every container; lz4, snappy, lzf and zstd were written by the libraries that Spark uses."""
    folder = tmp_path_factory.mktemp("packed")
    frames = zstandard.ZstdCompressor()
    made = {
        "plain": FIRST,
        "gzip": gzip.compress(FIRST),
        "two gzip members": gzip.compress(FIRST[:5000]) + gzip.compress(FIRST[5000:]),
        "three zstd frames": b"".join(
            frames.compress(piece) for piece in (FIRST[:100], FIRST[100:30_000], FIRST[30_000:])
        ),
        **{codec: (DATA / f"q9-first-lines.{codec}").read_bytes() for codec in ("lz4", "snappy", "lzf")},
    }
    for name, content in made.items():
        (folder / name.replace(" ", "-")).write_bytes(content)
    return {name: folder / name.replace(" ", "-") for name in made}


CONTAINERS = ("plain", "gzip", "two gzip members", "three zstd frames", "lz4", "snappy", "lzf")


@pytest.mark.parametrize("container", CONTAINERS)
def test_same_lines_from_every_container(packed: dict[str, Path], container: str) -> None:
    text, problems = read(packed[container])
    assert text == FIRST
    assert problems == []
    assert head(Part(str(packed[container])), 1000) == FIRST[:1000]


def test_zstd_as_spark_writes_it() -> None:
    text, problems = read(DATA / "q9.zstd")
    assert text == TEXT
    assert problems == []


@pytest.mark.parametrize("container", [each for each in CONTAINERS if each != "plain"])
def test_cut_stream_is_reported_and_the_rest_kept(packed: dict[str, Path], container: str, tmp_path: Path) -> None:
    whole = packed[container].read_bytes()
    rng = random.Random(7)
    for cut in (len(whole) - 1, *(rng.randrange(30, len(whole) - 1) for _ in range(25))):
        (tmp_path / "cut").write_bytes(whole[:cut])
        text, problems = read(tmp_path / "cut")
        assert FIRST.startswith(text)
        ends_between_blocks = container in ("snappy", "lzf", "three zstd frames", "two gzip members")
        assert names(problems) & {"damaged_stream", "truncated_line"} or (
            ends_between_blocks and len(text) < len(FIRST)
        )


@pytest.mark.parametrize("container", CONTAINERS)
def test_flipped_bytes_never_raise(packed: dict[str, Path], container: str, tmp_path: Path) -> None:
    whole = packed[container].read_bytes()
    rng = random.Random(11)
    for _ in range(40):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 20)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / "damaged").write_bytes(damaged)
        text, _ = read(tmp_path / "damaged")
        assert len(text) < 40 * len(FIRST)


def test_members_of_a_zip(tmp_path: Path, packed: dict[str, Path]) -> None:
    with zipfile.ZipFile(tmp_path / "logs", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../x", FIRST)
        archive.write(packed["lz4"], "folder/second")
    assert members(str(tmp_path / "logs")) == ["../x", "folder/second"]
    for member in ("../x", "folder/second"):
        assert read(Part(str(tmp_path / "logs"), member))[0] == FIRST
    whole = (tmp_path / "logs").read_bytes()
    (tmp_path / "broken").write_bytes(whole[:200] + bytes(100) + whole[300:])
    assert names(read(Part(str(tmp_path / "broken"), "../x"))[1]) == {"damaged_stream"}
    (tmp_path / "cut").write_bytes(whole[:200])
    with refused(InputError, tmp_path / "cut"):
        members(str(tmp_path / "cut"))


def test_line_that_ends_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"a":1}\n{"a":2}\n{"a":')
    text, problems = read(tmp_path / "log")
    assert text == b'{"a":1}\n{"a":2}\n'
    assert [(each.name, each.severity, each.first_where) for each in problems] == [
        ("truncated_line", "data loss", "line 3")
    ]
    (tmp_path / "log").write_bytes(b'{"a":1}\n{"a":2}')  # whole, only its newline is missing
    assert read(tmp_path / "log") == (b'{"a":1}\n{"a":2}\n', [])


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    line = '{"a":"\u2028\u2029\u0085"}'.encode()
    (tmp_path / "log").write_bytes(b"\xef\xbb\xbf" + line + b"\r\n" + line)
    assert read(tmp_path / "log")[0] == line + b"\r\n" + line + b"\n"


def test_lines_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfiles, "_PIECE", 7)
    (tmp_path / "log").write_bytes(FIRST[:20_000])
    text, problems = read(tmp_path / "log")
    assert text == FIRST[: FIRST.rfind(b"\n", 0, 20_000) + 1]
    assert names(problems) == {"truncated_line"}


def test_parts_follow_each_other_and_lines_are_numbered_in_each(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"a\nb\n")
    (tmp_path / "2").write_bytes(b"c\n{")
    text, problems = read(tmp_path / "1", tmp_path / "2")
    assert text == b"a\nb\nc\n"
    assert [(each.origin, each.first_where) for each in problems] == [(str(tmp_path / "2"), "line 2")]


def test_overlong_line_is_cut_to_its_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfiles, "LONGEST_LINE", 3 << 20)
    monkeypatch.setattr(logfiles, "_PIECE", 1 << 16)
    with open(tmp_path / "log", "wb") as file:
        file.write(b"first\nSTART" + b"x" * (20 << 20) + b"END\nlast\n")
    text, problems = read(tmp_path / "log")
    first, long, last, _ = text.split(b"\n")
    assert (first, last) == (b"first", b"last")
    assert long.startswith(b"STARTx")
    assert long.endswith(b"xEND")
    assert len(long) < 6 << 20
    assert [(each.name, each.count, each.first_where) for each in problems] == [("overlong_line", 1, "line 2")]


def test_bombs_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ALWAYS_BYTES", 4 << 20)
    monkeypatch.setattr(logfiles, "LONGEST_LINE", 2 << 20)
    (tmp_path / "zstd").write_bytes(zstandard.ZstdCompressor().compress(bytes(64 << 20)))
    text, problems = read(tmp_path / "zstd")
    assert text == b""
    assert "input_bound" in names(problems)


def test_blocks_with_absurd_sizes_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "lz4").write_bytes(b"LZ4Block\x26" + b"\xff\xff\xff\x7f" * 2 + bytes(4) + b"x" * 100)
    (tmp_path / "snappy").write_bytes(b"\x82SNAPPY\x00" + b"\0\0\0\1" * 2 + b"\0\0\0\6" + b"\xff\xff\xff\xff\x0fx")
    for name in ("lz4", "snappy"):
        text, problems = read(tmp_path / name)
        assert text == b""
        assert names(problems) == {"damaged_stream"}


def test_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path, tmp_path / "none"):
        with refused(InputError, path):
            read(path)


def test_urls(tmp_path: Path, packed: dict[str, Path]) -> None:
    pytest.importorskip("fsspec", reason="reading URLs needs fsspec")
    assert read(Part(f"file://{packed['snappy']}"))[0] == FIRST
    with refused(InputError, "nonsense://"):
        read(Part("nonsense://bucket/log"))
