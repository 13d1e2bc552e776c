"""No child process runs code from the user's current folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest

from crystalperf.fleet import local
from crystalperf.fleet.logs import find_logs
from crystalperf.indexes import children
from crystalperf.indexes.errors import BuildError

Answer = Callable[..., tuple[int, str, str]]

LONG = "SELECT 1 WHERE 7 IN (" + ", ".join(map(str, range(400))) + ")"


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory whose modules leave a mark when they are run; returns the mark."""
    mark = tmp_path / "ran"
    for name in ("duckdb", "pip", "csv", "json", "sitecustomize", "crystalperf", "runpy", "multiprocessing"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return mark


def test_checking_a_long_statement_runs_nothing_of_the_working_directory(
    crystalperf: Answer, trapped: Path, run_copy: Path
) -> None:
    code, _, err = crystalperf("sql", "--run", run_copy, LONG)
    assert (code, err) == (0, "")
    assert not trapped.exists()


def test_a_child_imports_what_it_is_given_and_nothing_nearby(trapped: Path) -> None:
    program = "import duckdb, json; print(duckdb.__file__)"
    done = subprocess.run(children.python(program, [duckdb]), capture_output=True, text=True, check=True)
    assert done.stdout.strip() == duckdb.__file__
    assert not trapped.exists()


def test_pip_is_started_isolated(trapped: Path) -> None:
    subprocess.run(children.installed_module("pip", "--version"), capture_output=True, check=False)
    assert not trapped.exists()


def test_a_parser_is_started_isolated(trapped: Path) -> None:
    pytest.importorskip("msgspec")
    done = subprocess.run(
        children.own_module("crystalperf.indexer.workers"),
        input=b"",
        capture_output=True,
        text=False,
        timeout=60,
        check=False,
    )
    assert not trapped.exists()
    assert done.returncode == 0 or b"tree_sitter" in done.stderr


def test_logs_of_a_fleet_are_read_isolated(trapped: Path, tmp_path: Path) -> None:
    log = Path(__file__).parents[1] / "data" / "eventlog" / "q9.zstd"
    (answer,) = local.read_all(find_logs([str(log)]), tmp_path, 1, local.memory_of(1))
    assert len(json.loads(answer.rows)["runs"]) == 1
    assert not trapped.exists()


def test_every_python_is_started_from_one_place() -> None:
    root = Path(__file__).parents[2]
    texts = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for package in ("indexes", "indexer", "query", "crystalperf", "report", "service", "fleet", "cli")
        for path in sorted((root / package).rglob("*.py"))
    }
    # Spark starts its own Pythons; which one, the engine says.
    assert sorted(each for each, text in texts.items() if "sys.executable" in text) == [
        "fleet/engines.py",
        "indexes/children.py",
    ]
    # `multiprocessing` and pools of processes start a Python with the working directory first on its path.
    starts = re.compile(r"multiprocessing\.(?!connection)|ProcessPoolExecutor|import multiprocessing")
    assert not [each for each, text in texts.items() if starts.search(text)]
    assert all("-I" in command for command in (children.python(""), children.installed_module("pip")))
    assert children.python("")[0] == sys.executable


def test_a_repository_cannot_name_a_program_to_run(tmp_path: Path) -> None:
    pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")
    from crystalperf.indexer.sources import open_source

    mark, repository = tmp_path / "ran", tmp_path / "repository"

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(repository), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    repository.mkdir()
    git("init", "--quiet")
    (repository / "A.java").write_text("class A { int a() { return 1; } }\n")
    git("add", "A.java")
    git("commit", "--quiet", "-m", "a")
    blob = git("rev-parse", "HEAD:A.java").strip()
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.url", f"ext::sh -c touch% {mark}")
    git("config", "remote.origin.promisor", "true")
    git("config", "protocol.ext.allow", "always")
    git("config", "core.fsmonitor", f"touch {mark}")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    problems: list[tuple[str, str]] = []
    with suppress(BuildError):
        assert list(open_source("a", [f"{repository}@HEAD"]).files(problems)) == []
    assert not mark.exists()
