"""A cache that is damaged, cannot be written or has no place: the answer comes all the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import crystalperf as cp
from crystalperf.indexes import exports, store
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.exports import locate, may_have
from crystalperf.query.run import Run

Answer = Callable[..., tuple[int, str, str]]
LOG = Path(__file__).parents[1] / "data" / "runs" / "speculation"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No spare folder of an earlier test."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    exports.spare_folder.cache_clear()
    yield
    exports.spare_folder.cache_clear()


def test_inaccessible_home_is_treated_as_missing(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may look into every folder, so what others meet is made here."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "shut" / "home"))
    seen = Path.stat

    def stat(path: Path, **more: bool) -> os.stat_result:
        if str(path).startswith(str(tmp_path / "shut")):
            raise PermissionError(13, "Permission denied", str(path))
        return seen(path, **more)

    monkeypatch.setattr(Path, "stat", stat)
    assert exports.cache_folder() == exports.spare_folder()
    assert cp.profile([LOG]).header().complete


def test_profile_works_without_home_and_user_name(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for each in ("HOME", "CRYSTALPERF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(Path, "home", none)
    run = cp.profile([LOG])
    assert run.header().complete
    assert run.path.is_relative_to(tmp_path / f"crystalperf-{os.getuid()}")
    assert (tmp_path / f"crystalperf-{os.getuid()}").stat().st_mode & 0o777 == 0o700


def test_home_of_an_unknown_user(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", "~nobody-of-that-name/cache")
    assert cp.profile([LOG]).header().complete


def test_unwritable_cache_does_not_fail(
    tmp_path: Path, fresh: None, crystalperf: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "file" / "cache"))
    code, out, err = crystalperf("analyze", LOG)
    assert (code, err) == (0, "")
    assert str(tmp_path / f"crystalperf-{os.getuid()}") in out
    first = [path.stat().st_mtime_ns for path in (tmp_path / f"crystalperf-{os.getuid()}" / "runs").iterdir()]
    assert crystalperf("analyze", LOG)[0] == 0
    again = [path.stat().st_mtime_ns for path in (tmp_path / f"crystalperf-{os.getuid()}" / "runs").iterdir()]
    assert first == again  # it is used again


@pytest.mark.parametrize("kind", ["link", "open", "file"])
def test_ignores_foreign_files_in_place_of_the_spare_folder(kind: str, tmp_path: Path, fresh: None) -> None:
    place = tmp_path / f"crystalperf-{os.getuid()}"
    (tmp_path / "theirs").mkdir()
    if kind == "link":
        place.symlink_to(tmp_path / "theirs")
    elif kind == "open":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.write_text("theirs")
    found = exports.spare_folder()
    assert found != place
    assert found.stat().st_mode & 0o777 == 0o700


def damaged(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(20):
        start = random.randrange(4096 * 3, len(content))
        content[start : start + 64] = bytes(64) if random.random() < 0.5 else random.randbytes(64)
    path.write_bytes(content)


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(6))
def test_a_damaged_run_in_the_cache_is_made_again(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crystalperf: Answer
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    run = cp.profile([LOG])
    reported = run.debug().runtime_ms
    if number:
        damaged(run.path, Random(number))
    else:
        os.truncate(run.path, run.path.stat().st_size // 2)
    code, _, err = crystalperf("debug", run.path)
    assert "bug" not in err
    assert err.count("\n") == (1 if code else 0)
    assert cp.profile([LOG]).debug().runtime_ms == reported


def test_a_damaged_unpacked_index_is_unpacked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crystalperf: Answer
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    path = locate("parquet-1.15.2")
    whole = path.stat().st_size
    os.truncate(path, whole // 2)
    assert locate("parquet-1.15.2").stat().st_size > whole // 2
    assert store.checked(locate("parquet-1.15.2"), "index")["name"] == "parquet"
    index = next(each for each in exports.available() if each.name == "parquet-1.15.2")
    assert may_have(index, "parquet")


@pytest.mark.few(4)
@pytest.mark.parametrize("number", range(40))
def test_a_damaged_file_is_never_a_bug(number: int, run_copy: Path, crystalperf: Answer) -> None:
    random = Random(number)
    content = bytearray(run_copy.read_bytes())
    for _ in range(random.choice((1, 5, 50))):
        start = random.randrange(len(content))
        content[start : start + random.choice((1, 8, 4096))] = random.randbytes(random.choice((1, 8, 4096)))
    if random.random() < 0.3:
        content = content[: random.randrange(len(content))]
    run_copy.write_bytes(content)
    for arguments in (("debug", run_copy), ("sql", "--run", run_copy, "SELECT count(*) FROM tasks WHERE net_ms > 0")):
        code, out, err = crystalperf(*arguments)
        assert code in (0, 1)
        assert "bug" not in err, err
        assert code == 0 or (out, err.count("\n")) == ("", 1)


def test_run_with_invalid_facts_is_refused(run_copy: Path) -> None:
    import duckdb

    for statement in (
        "UPDATE metadata SET value = '{' WHERE key = 'indexes'",
        "UPDATE metadata SET value = '[1]' WHERE key = 'indexes'",
        "DELETE FROM runs",
    ):
        with duckdb.connect(str(run_copy)) as connection:
            connection.execute(statement)
        with pytest.raises(CrystalPerfError, match="damaged"):
            Run(run_copy)


def test_home_that_is_not_utf8_is_one_sentence(
    tmp_path: Path, fresh: None, crystalperf: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "h\udcffme"))
    (tmp_path / "l\udcffg").write_bytes((LOG.parents[1] / "eventlog" / "q9.zstd").read_bytes())
    code, out, err = crystalperf("analyze", tmp_path / "l\udcffg")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "bug" not in err
    assert "UTF-8" in err
