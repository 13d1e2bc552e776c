"""Small files that are expensive to read: a bound ends each, one sentence names it and how to raise it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from crystalperf.fleet import local
from crystalperf.fleet.logs import find_logs
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.inputs import bounds
from crystalperf.query.inputs.containers import LogFile, Part, batches, head
from crystalperf.query.inputs.discover import discover
from crystalperf.query.trace.records import Problems
from lab.damage import bombs

Answer = Callable[..., tuple[int, str, str]]

BOUND = {
    "lz4-empty-blocks": "members",
    "gzip-ratio": "ratio",
    "gzip-empty-members": "members",
    "zstd-empty-frames": "members",
    "zip-bomb": "ratio",
}
"""By bomb, the bound that ends it."""


@pytest.mark.few(2)
@pytest.mark.parametrize("name", BOUND)
def test_a_bound_ends_a_bomb_and_keeps_what_was_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bombs.BOMBS[name]())
    (application,) = discover([tmp_path / "log"]).applications
    problems, first = Problems(), b""
    for batch in batches(application.log, problems):
        first = first or batch.first
        assert len(batch.piece or b"") <= bounds.PIECE_BYTES
    assert bombs.START.startswith(first)
    (found,) = problems
    assert (found.name, found.severity) == ("input_bound", "error")
    assert f"{bounds.VARIABLE}={BOUND[name]}=" in found.meaning


@pytest.mark.parametrize("name", ["lz4-block", pytest.param("snappy-blocks", marks=pytest.mark.later)])
def test_log_of_lines_that_are_not_json_is_refused(name: str, crystalperf: Answer, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bombs.BOMBS[name]())
    code, out, err = crystalperf("analyze", tmp_path / "log")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert f"{bounds.VARIABLE}=lines=" in err


@pytest.mark.parametrize("name", ["zip-name", "zip-lzma"])
def test_damaged_zip_is_one_sentence_and_does_not_end_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_bytes(bombs.BOMBS[name]())
    with pytest.raises(InputError, match=r"bad\.zip"):
        discover([tmp_path / "bad.zip"])
    (tmp_path / "log").write_bytes(bombs.START)
    found = discover([tmp_path])
    assert [each.app_id for each in found.applications] == ["app-1"]
    assert "unreadable_file" in [each.name for each in found.problems]


def test_bounds_can_be_raised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(bombs.BOMBS["lz4-empty-blocks"]())
    monkeypatch.setenv(bounds.VARIABLE, "members=1e6, seconds=600")
    problems = Problems()
    for _ in batches(LogFile("log", (Part(str(tmp_path / "log")),)), problems):
        pass
    assert not list(problems)
    for wrong in ("members=0", "speed=2", "members", "members=nan"):
        monkeypatch.setenv(bounds.VARIABLE, wrong)
        with pytest.raises(SettingError, match=bounds.VARIABLE):
            head(Part(str(tmp_path / "log")), 10)


def test_links_that_do_not_end_are_not_followed(tmp_path: Path) -> None:
    places = bombs.folders(tmp_path)
    for place in places.values():
        assert len(discover([place]).applications) == 1
    assert len(find_logs([f"{places['links-to-itself']}/**"])) == 1
    assert len(find_logs([f"{tmp_path}/**/log"])) == 2


def test_a_log_that_takes_too_long_is_a_row_of_its_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow").write_bytes(bombs.START)
    items = find_logs([str(tmp_path / "slow")])
    monkeypatch.setattr(local, "longest_s", lambda _: -1.0)
    monkeypatch.setattr(local, "wait", lambda pipes, timeout: [])
    (row,) = local.read_all(items, tmp_path, 1, 1 << 30)
    assert bounds.VARIABLE.encode() in row.rows
