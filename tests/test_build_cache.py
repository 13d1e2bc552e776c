"""The build cache: the next build gives the same index, whatever state the cache is in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer import cache
from crystalperf.indexer.build import build
from crystalperf.indexer.cache import Kept
from crystalperf.indexer.records import ParsedFile
from crystalperf.indexer.sources import open_source
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.workers import parse_files
from crystalperf.indexes.exports import verify
from tests.hash_classifier import HashClassifier

ROOT = Path(__file__).parent.parent
SOURCES = Path(__file__).parent / "data" / "sources"
FILES = sorted(path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*.*") if path.is_file())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that builds really parse."""
    met: list[str] = []

    def noting(sources: Iterable[tuple[str, Any, bytes]], workers: int) -> Iterator[ParsedFile]:
        for each in parse_files(sources, workers):
            met.append(each.file)
            yield each

    monkeypatch.setattr("crystalperf.indexer.build.parse_files", noting)
    return met


def sevens(functions: Sequence[FunctionText]) -> Floats:
    return np.full((len(functions), 6), 7, np.float32)


def zeros(functions: Sequence[FunctionText]) -> Floats:
    return np.zeros((len(functions), 6), np.float32)


def small(folder: Path, name: str = "small-1.0", source: Path = SOURCES, model: str = "0123") -> str:
    """Build and return the content hash."""
    classifier = HashClassifier()
    classifier.identity = {"name": "hash", "hash": model}
    path = folder / "out" / f"{name}.duckdb"
    return verify(build(name, open_source(name, [source]), output=path, classifier=classifier, workers=1))


def changed_copy(folder: Path) -> tuple[Path, str]:
    """The sources with one file changed and one more; and which was changed."""
    copy = folder / "copy"
    shutil.copytree(SOURCES, copy)
    (copy / "New.java").write_text("class New { void f() { g(); } }")
    java = next(each for each in FILES if each.endswith(".java"))
    (copy / java).write_text((copy / java).read_text().replace("{", "{ int added = 1;", 1))
    return copy, java


def test_a_second_build_parses_nothing_and_agrees(home: Path, tmp_path: Path, parsed: list[str]) -> None:
    first = small(tmp_path)
    assert sorted(parsed) == FILES
    parsed.clear()
    assert small(tmp_path) == first
    assert parsed == []
    assert [each.name for each in (home / "builds").iterdir()] == ["small-1.0.kept"]


def test_the_next_version_parses_changed_files_only(home: Path, tmp_path: Path, parsed: list[str]) -> None:
    copy, java = changed_copy(tmp_path)
    expected = small(tmp_path, "small-1.1", copy)
    shutil.rmtree(home)
    small(tmp_path)
    parsed.clear()
    assert small(tmp_path, "small-1.1", copy) == expected
    assert sorted(parsed) == sorted([java, "New.java"])


@pytest.mark.later
def test_real_model_gives_the_same_labels_from_the_cache(home: Path, tmp_path: Path) -> None:
    """Heads and embeddings too, of which some rows are recalled and others computed in smaller batches."""
    pytest.importorskip("torch", reason="the indexer extra is not installed")
    from crystalperf.indexer import classify, modelfile

    if not (ROOT / "indexer" / "weights" / "config.json").is_file():
        pytest.skip("no classifiers are shipped")
    classifier = modelfile.load()
    copy, _ = changed_copy(tmp_path)
    source = open_source("small-1.1", [copy, ROOT / "indexer"])

    def built() -> str:
        return verify(build("small-1.1", source, output=tmp_path / "i.duckdb", classifier=classifier, workers=1))

    expected = built()
    shutil.rmtree(home)
    build("small-1.0", open_source("small-1.0", [SOURCES, ROOT / "indexer" / "labels"]), output=tmp_path / "old.duckdb")
    judged: list[int] = []
    real = classify.PooledClassifier.judge

    def noting(self: classify.PooledClassifier, functions: Sequence[FunctionText]) -> Floats:
        judged.append(len(functions))
        return real(self, functions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classify.PooledClassifier, "judge", noting)
        assert built() == expected
        some = sum(judged)
        assert built() == expected
        assert sum(judged) == some > 0


@pytest.mark.few(2)
@pytest.mark.parametrize("damage", ["byte", "cut", "empty", "older", "other", "folder"])
def test_damaged_cache_is_ignored(home: Path, tmp_path: Path, parsed: list[str], damage: str) -> None:
    expected = small(tmp_path)
    path = home / "builds" / "small-1.0.kept"
    whole = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        broken = {
            "byte": whole[:500] + bytes([whole[500] ^ 1]) + whole[501:],
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "older": whole.replace(b"build 1", b"build 0"),
            "other": b"SQLite format 3\0" * 100,
        }
        path.write_bytes(broken[damage])
    parsed.clear()
    assert small(tmp_path) == expected
    assert sorted(parsed) == FILES
    parsed.clear()
    assert small(tmp_path) == expected
    assert parsed == (FILES if damage == "folder" else [])


def test_another_parser_or_model_invalidates_the_cache(
    home: Path, tmp_path: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    small(tmp_path)
    monkeypatch.setattr(cache, "parser_identity", lambda: "another")
    parsed.clear()
    small(tmp_path)
    assert sorted(parsed) == FILES
    text = FunctionText("f()", "", "java", "a.f", None, "a", ())
    kept = Kept("small-1.0", {"hash": "1"})
    assert kept.remember([text], sevens)[0, 0] == 7
    kept.write()
    assert Kept("small-1.0", {"hash": "1"}).remember([text], zeros)[0, 0] == 7
    assert Kept("small-1.0", {"hash": "2"}).remember([text], zeros)[0, 0] == 0


def test_every_input_of_the_classifier_is_part_of_the_cache_key(home: Path) -> None:
    del home
    base = FunctionText("c", "d", "java", "a.f", "A", "a", ("g", "h"))
    others = [
        FunctionText(**{**{name: getattr(base, name) for name in FunctionText.__slots__}, name: value})
        for name, value in {
            "code": "C",
            "doc": "D",
            "language": "scala",
            "qualified_name": "a.g",
            "class_name": None,
            "package": "b",
            "callees": ("gh",),
        }.items()
    ]
    kept = Kept("none-1", {})
    kept.remember([base], sevens)
    kept.write()
    found = Kept("none-1", {}).remember([base, *others], zeros)
    assert list(found[:, 0]) == [7] + [0] * len(others)


def test_a_file_that_took_too_long_is_tried_again(home: Path) -> None:
    del home
    kept = Kept("small-1.0", {})
    kept.keep_file(b"1" * 32, ParsedFile("a.java", "java", 1, errors=("not parsed within 10 s; left out",)))
    kept.keep_file(b"2" * 32, ParsedFile("b.java", "java", 1))
    kept.write()
    again = Kept("small-1.0", {})
    assert again.file(b"1" * 32) is None
    assert again.file(b"2" * 32) == ParsedFile("b.java", "java", 1)


def test_oldest_builds_are_evicted(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path)
    size = (home / "builds" / "small-1.0.kept").stat().st_size
    monkeypatch.setattr(cache, "MAX_BYTES", 5 * size // 2)
    for number, name in enumerate(("small-1.1", "small-1.2"), 1):
        os.utime(home / "builds" / f"small-1.{number - 1}.kept", (number, number))
        small(tmp_path, name)
    assert sorted(each.name for each in (home / "builds").iterdir()) == ["small-1.1.kept", "small-1.2.kept"]
    monkeypatch.setattr(cache, "MAX_BYTES", size)
    shutil.rmtree(home)
    small(tmp_path)
    assert not (home / "builds").exists()


def test_unwritable_build_cache_does_not_fail(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    (home / "builds").write_text("a file")
    small(tmp_path)


@pytest.mark.later
def test_concurrent_builds_agree(home: Path, tmp_path: Path, parsed: list[str]) -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from pathlib import Path\n"
        "from tests.test_build_cache import small\n"
        "for _ in range(3): print(small(Path(sys.argv[2])))\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(ROOT), str(tmp_path / str(number))], stdout=subprocess.PIPE, text=True
        )
        for number in range(2)
    ]
    found = {line for each in running for line in each.communicate()[0].split()}
    assert len(found) == 1
    assert all(each.returncode == 0 for each in running)
    assert {small(tmp_path)} == found
    assert parsed == []
    assert [each.name for each in (home / "builds").iterdir()] == ["small-1.0.kept"]
