"""A damaged recording is that recording's problem, never the run's."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr import source
from crystalperf.query.recordings.jfr.merge import ThreadTable
from crystalperf.query.recordings.jfr.model import ProblemLog

DATA = Path(__file__).parents[1] / "data" / "acme"


def test_thread_type_without_fields_is_accepted() -> None:
    pool = SimpleNamespace(layout=(), keys=[7], values=[[]], column=lambda _: -1)
    types = SimpleNamespace(ids=lambda _: [1])
    pools: Any = SimpleNamespace(types=types, by_type={1: pool}, string=lambda _: None, text=lambda *_: None)
    table = ThreadTable()
    assert table.add(pools, 0) == {7: 0}
    assert len(table.threads([1])) == 1


@pytest.mark.parametrize("largest", [1 << 30, 1000])
def test_a_recording_that_shrinks_while_it_is_read(
    largest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_READ_BYTES", largest)
    whole = gzip.decompress((DATA / "driver.jfr.gz").read_bytes())
    (tmp_path / "a.jfr").write_bytes(whole)
    view, _ = source.load(tmp_path / "a.jfr", ProblemLog())
    os.truncate(tmp_path / "a.jfr", 10)
    assert bytes(view) == whole


@pytest.mark.parametrize("times", [1, 2, 3])
def test_nested_compression_is_not_unpacked_to_the_end(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "FREE_BYTES", 1 << 20)
    data = b"FLR\0" + bytes(64 << 20)
    for _ in range(times):
        data = gzip.compress(data, 9)
    (tmp_path / "a.jfr").write_bytes(data)
    written = []
    spool = source.tempfile.SpooledTemporaryFile

    class Counting(spool):  # type: ignore[type-arg, misc, valid-type]
        def write(self, data: Any) -> int:
            written.append(len(data))
            return int(super().write(data))

    monkeypatch.setattr(source.tempfile, "SpooledTemporaryFile", Counting)
    with pytest.raises(jfr.JfrError, match="unpacks"):
        jfr.read(tmp_path / "a.jfr")
    assert sum(written) <= max(2 << 20, source.MAX_RATIO * len(data)) + times * source.BLOCK_BYTES


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "error", [IndexError("list index"), ValueError("x"), KeyError(7), MemoryError(), OverflowError()]
)
@pytest.mark.parametrize(
    "where", ["crystalperf.query.recordings.jfr.read", "crystalperf.query.attribution.samples.place.place"]
)
def test_any_error_in_a_recording_leaves_the_run_its_answer(
    where: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(where, broken)
    for each in DATA.iterdir():
        if each.is_file():
            shutil.copy(each, tmp_path)
    run = cp.profile([tmp_path], output=tmp_path / "run.duckdb")
    (problem,) = [each for each in run.header().problems if "cannot read a recording" in each.meaning]
    assert problem.severity == "data loss"
    assert run.debug().runtime_ms > 0
