"""Logs in tar archives, and archives that were made to cost much."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
import zstandard

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.containers import Part, members, pieces
from crystalperf.query.inputs.discover import choose, discover
from crystalperf.query.trace.records import Problems
from tests.refusals import refused
from tests.spark_events import run, write

MIB = 2**20


def archived(files: dict[str, bytes], *more: tarfile.TarInfo) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as made:
        for name, content in files.items():
            each = tarfile.TarInfo(name)
            each.size = len(content)
            made.addfile(each, io.BytesIO(content))
        for each in more:
            made.addfile(each)
    return stream.getvalue()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("log") / "app", run(1, 1)).read_bytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["tar", "gzip", "zstd"])
def test_a_log_in_a_tar_is_read(tmp_path: Path, log: bytes, pack: type[bytes]) -> None:
    path = tmp_path / "logs"
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path.write_bytes(pack(archived({"logs/app": zstandard.compress(log), "logs/notes.txt": b"x"}, link)))
    assert members(str(path)) == ["logs/app", "logs/notes.txt"]
    found = choose(discover([path]))
    assert [each.member for each in found.log.parts] == ["logs/app"]
    assert b"".join(pieces(found.log.parts[0], Problems())) == log


def test_a_tar_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(archived({"notes.txt": b"x"}))
    with refused(InputError, "tar archive"):
        discover([tmp_path / "x.tar"])


def test_a_tar_that_was_cut_gives_its_intact_files(tmp_path: Path, log: bytes) -> None:
    path = tmp_path / "cut.tar"
    path.write_bytes(archived({"app": log, "other": bytes(100_000)})[: len(log) + 2048])
    assert members(str(path))[0] == "app"
    assert choose(discover([path])).log.parts == (Part(str(path), "app"),)


def test_a_tar_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(archived({"app": bytes(100 * MIB)})))
    with refused(InputError, "ratio="):
        members(str(path))


def test_a_header_that_states_a_large_name_is_not_read_whole(tmp_path: Path) -> None:
    long = tarfile.TarInfo("././@LongLink")
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 40 * MIB
    path = tmp_path / "name.tar"
    path.write_bytes(long.tobuf(tarfile.GNU_FORMAT) + bytes(41 * MIB))
    with refused(InputError, "a header is too large"):
        members(str(path))
