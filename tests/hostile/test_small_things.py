"""What is rare: odd places to write to, full disks, ids that are commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from crystalperf import indexes
from crystalperf.cli.remedies import with_remedy
from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.exports import built_path, import_index, prebuilt_folder
from crystalperf.query.run import Run

Answer = Callable[..., tuple[int, str, str]]
LOG = Path(__file__).parents[1] / "data" / "eventlog" / "q9.zstd"


@pytest.mark.parametrize("place", ["/", "/.", "..", ".", "/dev/null", "/dev/null/x", "/proc/x/y", "x" * 300, "a\0b"])
def test_invalid_output_path_is_one_sentence(
    place: str, crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    code, out, err = crystalperf("profile", LOG, "-o", place)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "bug" not in err
    assert not list((tmp_path / "inner").iterdir())


@pytest.mark.parametrize("name", ["." * 300, "-1", "a" * 300 + "-1", "٣-٣", "../x-1", "x-1\n", ".-1"])
def test_invalid_index_name_is_one_sentence(name: str, crystalperf: Answer) -> None:
    for arguments in (
        ("index", "verify", name),
        ("sql", "--index", name, "SELECT 1"),
        ("index", "export", name, "/tmp"),
    ):
        code, out, err = crystalperf(
            *(arguments if not name.startswith("-") else (*arguments[:1], "--", *arguments[1:]))
        )
        assert code in (1, 2)
        assert out == ""
        assert "bug" not in err


def test_full_disk_while_unpacking_an_index_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crystalperf.indexes import exports

    unpacking = exports.unpacking

    def full(*arguments: Any, **settings: Any) -> str:
        rows = unpacking(*arguments, **settings)
        return f"SELECT * FROM ({rows}) WHERE error('Could not write file: No space left on device') IS NULL"

    monkeypatch.setattr(exports, "unpacking", full)
    with pytest.raises(IndexFileError, match="disk"):
        import_index(prebuilt_folder() / "parquet-1.15.2", tmp_path / "a.duckdb")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["$(touch x)", "`touch x`", "a; touch x", "a\nb", "--app", "'", '"'])
def test_untrusted_text_is_quoted_in_commands_to_paste(word: str) -> None:
    sentence = with_remedy("no index", Remedy("build the index", {"index": word}))
    assert shlex.quote(word) in sentence


def test_failed_export_keeps_the_previous_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crystalperf.indexes import exports

    with indexes.create(built_path("mine-1"), "index", {"name": "mine", "version": "1"}):
        pass
    try:
        exports.export_index(built_path("mine-1"), tmp_path / "mine-1")
        before = {each.name: each.read_bytes() for each in (tmp_path / "mine-1").iterdir()}
        monkeypatch.setitem(exports.PACKED, "calls", "SELECT error('No space left on device')")
        with pytest.raises((IndexFileError, duckdb.Error)):
            exports.export_index(built_path("mine-1"), tmp_path / "mine-1")
        assert {each.name: each.read_bytes() for each in (tmp_path / "mine-1").iterdir()} == before
        assert [each.name for each in tmp_path.iterdir()] == ["mine-1"]
    finally:
        built_path("mine-1").unlink()


def test_a_run_of_an_odd_id_is_kept_and_found(
    crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    assert crystalperf("analyze", Path(__file__).parent / "corpus" / "id-of-dots.log")[0] == 0
    (kept,) = (tmp_path / "runs").iterdir()
    assert not kept.name.startswith(".")
    assert crystalperf("debug", kept.stem)[0] == 0
    assert Run(kept).header().app_id.startswith("...")
