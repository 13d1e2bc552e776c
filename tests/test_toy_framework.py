"""A framework of another package: installed next to CrystalPerf, read through profile, debug and predict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystalperf.indexes.errors import InputError
from tests.refusals import is_one_line, refused

ROOT = Path(__file__).parent.parent
TOY = ROOT / "examples" / "toy-framework"
PLUM = TOY / "plum.jam"

THE_PAPERS_FLINK = 172
"""Lines that the paper's authors needed for Flink (§6)."""

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def crystalperf(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line where the toy is installed: a distribution of its own, found by its entry point."""
    place = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "toy"
    source.mkdir()
    for path in TOY.rglob("*"):  # a build leaves folders next to the sources
        if path.is_file():
            target = source / path.relative_to(TOY)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(place), str(source)], check=True, capture_output=True)
    path = os.pathsep.join([str(place), str(ROOT)])

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = "import sys; from crystalperf.cli.main import run; sys.exit(run(sys.argv[1:]))"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, cwd=place, check=False,
        )  # fmt: skip

    return call


@pytest.fixture(scope="module")
def asked(crystalperf: Ask, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """An answer about the plum order, as JSON."""
    run = tmp_path_factory.mktemp("run") / "plum.duckdb"
    assert crystalperf("profile", PLUM, "-o", run).returncode == 0

    def ask(command: str, *arguments: object) -> Any:
        done = crystalperf(command, run, *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_it_needs_no_more_lines_than_the_papers_flink() -> None:
    lines = [line for path in TOY.rglob("*.py") for line in path.read_text(encoding="utf-8").split("\n")]
    assert len(lines) <= THE_PAPERS_FLINK


def test_imports_only_the_plugin_interface() -> None:
    text = (TOY / "toyflow" / "__init__.py").read_text(encoding="utf-8")
    imported = [line for line in text.split("\n") if line.startswith(("from ", "import "))]
    ours = [
        line for line in imported if any(room in line for room in ("query", "indexes", "indexer", "cli", "crystalperf"))
    ]
    assert ours == ["from crystalperf.plugin import ("]


def test_time_is_attributed_to_the_fourth_resource(asked: Ask) -> None:
    answer = asked("debug")
    # 1 s to the first station, 2 s washing, 9 s cooking (8 of heat), 1 s until the last jar is full, 1 s to the end
    assert [each["id"] for each in answer["critical_path"]] == [
        "foreman:0", "station:wash", "station:cook", "station:fill", "foreman:2",
    ]  # fmt: skip
    assert answer["resource_ms"]["heat"] == 8000
    assert answer["bottleneck"] == "heat"
    assert sum(answer["resource_ms"].values()) == pytest.approx(14_000, abs=0.01)


def test_its_own_scope_is_asked_for_by_its_own_word(asked: Ask) -> None:
    assert asked("debug", "--scope", "order:plum")["runtime_ms"] == 12_000


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("setting", "runtime_s"),
    [
        ("heat=2x", 10),  # cooking takes 5 s, from 3 to 8; filling ends 1 s later, and so does the order
        ("heat=8x", 8),  # cooking takes 2 s, but filling has 3 s of work from 4 on
        ("heat=0.5x", 22),  # cooking takes 17 s
        ("cpu_speed=2x", 12),  # washing 1 s, cooking 8.5 s, and half a second to the last jar
        ("kettles=2x", 14),  # two jars cannot use four kettles
    ],
)
def test_changed_scenario_changes_the_pipeline(asked: Ask, setting: str, runtime_s: float) -> None:
    assert asked("predict", "--set", setting)["predicted_ms"] == pytest.approx(runtime_s * 1000)


def test_reader_uses_its_own_vocabulary(crystalperf: Ask, tmp_path: Path) -> None:
    done = crystalperf("analyze", PLUM, "-o", tmp_path / "plum.duckdb")
    assert done.returncode == 0, done.stderr
    assert "2 kettles x 2 burners" in done.stdout
    assert "Station" in done.stdout or "station:cook" in done.stdout
    for word in ("executor", "stage", "Spark", "task ", "driver"):
        assert word not in done.stdout, word


def test_sql_has_its_resource_as_a_column(asked: Ask, crystalperf: Ask, tmp_path: Path) -> None:
    run = tmp_path / "plum.duckdb"
    assert crystalperf("profile", PLUM, "-o", run).returncode == 0
    done = crystalperf("sql", "--run", run, "SELECT sum(heat_ms) AS heat FROM tasks", "--json")
    assert json.loads(done.stdout) == [{"heat": 16_000.0}]


def test_unsupported_questions_are_refused_in_a_sentence(crystalperf: Ask) -> None:
    done = crystalperf("setup", "jam")
    assert (done.returncode, done.stdout) == (1, "")
    is_one_line(done.stderr, "Jam")


@pytest.mark.later
def test_a_damaged_log_is_one_sentence(crystalperf: Ask, tmp_path: Path) -> None:
    log = tmp_path / "plum.jam"
    log.write_text(PLUM.read_text(encoding="utf-8").replace('"from": 3', '"from" 3', 1), encoding="utf-8")
    done = crystalperf("analyze", log)
    assert done.returncode == 1
    is_one_line(done.stderr, log, "line 9")


def test_without_the_package_its_log_is_not_recognized() -> None:
    from crystalperf.query.inputs.discover import discover

    with refused(InputError, PLUM, "JSON"):
        discover([PLUM])


@pytest.mark.later
def test_dependency_that_the_times_contradict_is_reported(crystalperf: Ask, tmp_path: Path) -> None:
    """Filling began before all was cooked: as a barrier, which it is not, that cannot be."""
    log = tmp_path / "plum.jam"
    log.write_text(PLUM.read_text(encoding="utf-8").replace(', "flows": true', ""), encoding="utf-8")
    run = tmp_path / "plum.duckdb"
    done = crystalperf("profile", log, "-o", run)
    assert done.returncode == 0, done.stderr
    done = crystalperf("sql", "--run", run, "SELECT name, count FROM import_stats", "--json")
    assert {"name": "contradicted_dependency", "count": 1} in json.loads(done.stdout)
