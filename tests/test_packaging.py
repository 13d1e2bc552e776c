"""Distributions: metadata, wheel and sdist, installations, a ZIP on the path, the Docker context.

Tests that build a distribution are marked `later`.  Builds use the environment's setuptools and no network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.fleet.build import build as build_fleet
from crystalperf.fleet.engines import Engine
from crystalperf.fleet.logs import find_logs
from crystalperf.fleet.reading import read
from crystalperf.fleet.summary import opened
from crystalperf.fleet.tables import tables
from crystalperf.indexes.code_hash import code_hash
from tests.spark_logs import Stage, Task, write

ROOT = Path(__file__).parent.parent
ROOMS = ("cli", "fleet", "indexer", "indexes", "query", "report", "service")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SITE = Path(pytest.__file__).parent.parent
"""Where the packages are that CrystalPerf depends on."""

has_compiler = shutil.which("cc") is not None or shutil.which("gcc") is not None
no_compiler = pytest.mark.skipif(not has_compiler, reason="needs a C compiler")

Call = Callable[..., str]


def run(command: list[object], **environment: str) -> str:
    """The output of a command that succeeds, outside the checkout and without its PYTHONPATH."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd="/", env=kept | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def pip(*arguments: object, **environment: str) -> str:
    offline = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")
    return run([sys.executable, "-m", "pip", *arguments, *offline], **environment)


def environment(folder: Path) -> Path:
    """A virtual environment with all that CrystalPerf depends on, without CrystalPerf; returns its Python."""
    run([sys.executable, "-m", "venv", "--without-pip", folder])
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{SITE}\n")  # of a second folder no .pth is read, so no editable install
    return folder / "bin" / "python"


RULES = [each for each in (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n") if each]


def allowed(path: str) -> bool:
    """Whether Docker sends a file or a link of the context, by the lines of .dockerignore; the last match wins."""
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    sent = True
    for rule in RULES:
        pattern = rule.removeprefix("!")
        names = parts if pattern.startswith("**/") else above
        if any(fnmatch(each, pattern.removeprefix("**/")) for each in names):
            sent = rule.startswith("!")
    return sent


def docker_context() -> Iterator[str]:
    """The files that `COPY . .` delivers, as paths; links are not followed."""
    assert RULES[0] == "*"  # so all the rest is below what a rule lets through
    for rule in (ROOT / each.removeprefix("!") for each in RULES if each.startswith("!")):
        for each in [rule, *rule.rglob("*")]:
            path = each.relative_to(ROOT).as_posix()
            if (each.is_file() or each.is_symlink()) and allowed(path):
                yield path


# What is declared -----------------------------------------------------------------------------------------------------


def test_metadata_is_complete() -> None:
    project = PROJECT["project"]
    assert {"description", "readme", "license", "requires-python", "keywords", "urls", "classifiers"} <= project.keys()
    assert not [each for each in project["classifiers"] if each.startswith("Private ::")]
    for minor in range(11, 15):
        assert f"Programming Language :: Python :: 3.{minor}" in project["classifiers"]
    assert "Typing :: Typed" in project["classifiers"]
    assert (ROOT / "crystalperf" / "py.typed").is_file()


def test_version_is_read_without_the_metadata_of_an_installation() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", cp.__version__)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import crystalperf as cp; print(cp.__version__)"
    loaded = "print([each for each in ('importlib.metadata', 'duckdb', 'numpy') if each in sys.modules])"
    assert run([sys.executable, "-I", "-S", "-c", f"{code}; {loaded}"]).split("\n")[:2] == [cp.__version__, "[]"]


def test_changelog_has_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(\S+)\](?: - (\d{4}-\d\d-\d\d|unreleased))?$", text, re.MULTILINE)
    assert len(sections) == text.count("\n## ")
    versions = [version for version, _ in sections if version != "Unreleased"]
    assert versions[0] == cp.__version__


def test_changelog_has_the_kinds_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= set(kinds)


# Docker ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("pyproject.toml", True),
        ("setup.py", True),
        ("crystalperf/query", True),  # the link
        ("query/simulate/list_schedule.c", True),
        ("query/inputs/line_rows.c", True),
        ("query/__pycache__/run.cpython-311.pyc", False),
        ("lab/recordings/demo-q9/run.json", True),
        ("lab/recordings/README.md", False),
        ("tests/test_packaging.py", False),
        (".git/HEAD", False),
        ("build/lib/query/run.py", False),
    ],
)
def test_docker_context_has_only_what_a_build_needs(path: str, sent: bool) -> None:
    assert allowed(path) is sent


def test_docker_context_has_every_package_and_no_dangling_link() -> None:
    sent = set(docker_context())
    folders = {parent.as_posix() for each in sent for parent in Path(each).parents}
    for package in PROJECT["tool"]["setuptools"]["packages"]:
        place = package.removeprefix("crystalperf.").replace(".", "/")
        assert f"{place}/__init__.py" in sent
    links = {each: (ROOT / each).readlink() for each in sent if (ROOT / each).is_symlink()}
    assert {f"crystalperf/{each}" for each in (*ROOMS, "demo")} == links.keys()
    for each, target in links.items():
        assert os.path.normpath(Path(each).parent / target) in folders


# A ZIP on the path, as Spark's --py-files puts it ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a ZIP: the files that a wheel has, and of the shipped indexes two."""
    place = tmp_path_factory.mktemp("archive") / "crystalperf.zip"
    with zipfile.ZipFile(place, "w") as made:
        for each in docker_context():
            path = Path(each)
            above = Path() if path.parts[0] == "crystalperf" else Path("crystalperf")
            if path.parts[0] not in ("crystalperf", *ROOMS) or (ROOT / each).is_symlink():
                continue
            if path.suffix == ".parquet" and path.parent.name not in ("scala-library-2.13.16", "pyspark-4.0.1"):
                continue
            made.write(ROOT / each, str(above / path))
    return place


@pytest.fixture
def from_zip(archive: Path, tmp_path: Path) -> Call:
    """Run a program whose crystalperf comes from the ZIP; returns what it prints."""

    def call(program: str, *arguments: object) -> str:
        code = f"import sys; sys.path[:0] = [{str(archive)!r}, {str(SITE)!r}]\n{program}"
        return run([sys.executable, "-I", "-c", code, *arguments], CRYSTALPERF_HOME=str(tmp_path / "home"))

    return call


@pytest.mark.later
def test_a_zip_reads_logs_as_an_installation_does(from_zip: Call, log: Path, tmp_path: Path) -> None:
    program = """
from pathlib import Path
import crystalperf
from crystalperf.fleet.logs import find_logs
from crystalperf.fleet.reading import read
assert ".zip/" in crystalperf.__file__, crystalperf.__file__
print(read(find_logs([sys.argv[1]])[0], Path(sys.argv[2])).rows.decode())
"""
    here = json.loads(read(find_logs([str(log)])[0], tmp_path).rows)
    there = json.loads(from_zip(program, log, tmp_path))
    for rows in (here, there):
        for row in (row for table in rows.values() for row in table):
            row.pop("read_at", None)
    assert len(there["runs"]) == 1
    assert there == here


@pytest.mark.later
def test_shipped_indexes_are_extracted_from_a_zip_once(from_zip: Call, tmp_path: Path) -> None:
    program = """
import crystalperf
print(crystalperf.index("scala-library-2.13.16").functions(limit=1).total)
"""
    total = cp.index("scala-library-2.13.16").functions(limit=1).total
    assert int(from_zip(program)) == total
    (extracted,) = (tmp_path / "home" / "shipped").iterdir()
    before = extracted.stat().st_mtime_ns
    assert int(from_zip(program)) == total
    assert [each.stat().st_mtime_ns for each in (tmp_path / "home" / "shipped").iterdir()] == [before]


def test_edition_of_code_is_the_same_in_a_zip(from_zip: Call) -> None:
    program = 'from crystalperf.indexes.code_hash import code_hash; print(code_hash("crystalperf.query"))'
    assert from_zip(program).strip() == code_hash("crystalperf.query")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tasks = [Task(1000 + 10 * number, executor=str(1 + number % 2), cpu_ms=500) for number in range(8)]
    place = tmp_path_factory.mktemp("logs") / "app"
    return write(place, [Stage(tasks), Stage(tasks, name="save at job.py:9")], executors={"1": 2, "2": 2})


# Distributions --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the Docker context, with what a build of an earlier version left in it."""
    place = tmp_path_factory.mktemp("source") / "crystalperf"
    for each in docker_context():
        (place / each).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / each, place / each, follow_symlinks=False)
    for stale in ("lib", "lib.linux-x86_64-cpython-311"):
        (place / "build" / stale / "query").mkdir(parents=True)
        (place / "build" / stale / "query" / "__init__.py").write_text("")
    return place


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--wheel-dir", place, source)
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which the wheel is installed."""
    python = environment(tmp_path_factory.mktemp("installed") / "venv")
    pip("--python", python, "install", wheel)
    return python


def files_of(wheel: Path) -> dict[str, bytes]:
    """The package's files in a wheel, apart from compiled ones, which differ from build to build."""
    with zipfile.ZipFile(wheel) as opened:
        return {
            each: opened.read(each)
            for each in opened.namelist()
            if each.startswith("crystalperf/") and not each.endswith(".so")
        }


@pytest.mark.later
def test_wheel_has_one_top_level_package_and_nothing_of_an_earlier_build(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (metadata,) = (opened.read(each).decode() for each in names if each.endswith(".dist-info/METADATA"))
    version = cp.__version__
    assert {each.split("/")[0] for each in names} == {"crystalperf", f"crystalperf-{version}.dist-info"}
    assert f"\nVersion: {version}\n" in metadata
    packages = {str(Path(each).parent).replace("/", ".") for each in names if each.endswith("/__init__.py")}
    assert packages == set(PROJECT["tool"]["setuptools"]["packages"])
    assert "crystalperf/py.typed" in names


@pytest.mark.later
@no_compiler
def test_one_wheel_with_compiled_code_serves_all_versions_of_python(wheel: Path) -> None:
    assert re.fullmatch(r"crystalperf-[^-]+-cp311-abi3-linux_\w+\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as opened:
        compiled = [each for each in opened.namelist() if each.endswith(".so")]
    assert sorted(compiled) == [
        "crystalperf/query/inputs/_line_rows.abi3.so",
        "crystalperf/query/simulate/_list_schedule.abi3.so",
    ]


@pytest.mark.later
def test_a_pure_wheel_has_no_compiled_code_and_is_else_the_same(source: Path, wheel: Path, tmp_path: Path) -> None:
    pip("wheel", "--no-build-isolation", "--wheel-dir", tmp_path, source, CRYSTALPERF_PURE="1")
    (pure,) = tmp_path.glob("*.whl")
    assert pure.name == f"crystalperf-{cp.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(pure) as opened:
        assert not [each for each in opened.namelist() if each.endswith(".so")]
    assert files_of(pure) == files_of(wheel)


@pytest.mark.later
def test_a_wheel_built_from_the_sdist_is_the_same(source: Path, wheel: Path, tmp_path: Path) -> None:
    pytest.importorskip("build")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source])
    (sdist,), (again,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    assert files_of(again) == files_of(wheel)
    with tarfile.open(sdist) as opened:
        tops = {each.split("/")[1] for each in opened.getnames() if "/" in each}
    assert {"crystalperf", *ROOMS, "LICENSE", "README.md", "pyproject.toml", "setup.py"} <= tops
    assert "tests" not in tops


@pytest.mark.later
def test_twine_accepts_the_metadata(wheel: Path) -> None:
    pytest.importorskip("twine")
    run([sys.executable, "-m", "twine", "check", "--strict", wheel])


# Installations --------------------------------------------------------------------------------------------------------


def tops(python: Path) -> dict[str, str | None]:
    """Where an environment's Python finds `crystalperf` and each folder's own name."""
    program = (
        "import importlib.util as util, json, sys; found = {each: util.find_spec(each) for each in sys.argv[1:]};"
        "print(json.dumps({name: each and each.origin for name, each in found.items()}))"
    )
    origins: dict[str, str | None] = json.loads(run([python, "-c", program, "crystalperf", *ROOMS]))
    return origins


@pytest.mark.later
def test_crystalperf_is_the_only_name_that_an_installation_adds(installed: Path) -> None:
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    assert tops(installed) == {"crystalperf": str(site / "crystalperf" / "__init__.py")} | dict.fromkeys(ROOMS)


@pytest.mark.later
def test_an_editable_installation_leads_to_the_checkout(source: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    pip("--python", python, "install", "--no-build-isolation", "--editable", source)
    assert tops(python) == {"crystalperf": str(source / "crystalperf" / "__init__.py")} | dict.fromkeys(ROOMS)
    program = "import crystalperf.query.run, crystalperf.cli.main; print(crystalperf.query.run.__file__)"
    assert Path(run([python, "-c", program]).strip()).resolve() == source / "query" / "run.py"


@pytest.mark.later
@no_compiler
def test_compiled_code_is_loaded_from_the_wheel(installed: Path) -> None:
    program = """
from crystalperf.query.inputs import line_rows
from crystalperf.query.simulate import list_schedule
print(list_schedule._listing.__file__)
print(line_rows._compiled.__file__)
"""
    files = [Path(each) for each in run([installed, "-c", program]).split()]
    assert all(each.is_relative_to(installed.parent.parent) for each in files)
    assert [each.name for each in files] == ["_list_schedule.abi3.so", "_line_rows.abi3.so"]


@pytest.mark.later
def test_child_processes_import_the_installed_package(installed: Path, log: Path, tmp_path: Path) -> None:
    """Reading a fleet and a SQL statement start a Python each."""
    home = {"CRYSTALPERF_HOME": str(tmp_path / "home")}
    command = installed.parent / "crystalperf"
    run([command, "fleet", "build", log.parent, "-o", tmp_path / "fleet", "--processes", 1], **home)
    run([command, "profile", log, "-o", tmp_path / "run.duckdb"], **home)
    answer = run(
        [command, "sql", "--run", tmp_path / "run.duckdb", "--json", "SELECT count(*) AS n FROM tasks"], **home
    )
    assert json.loads(answer) == [{"n": 16}]
    texts = [path.read_text(encoding="utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    children = {match for each in texts for match in re.findall(r'own_module\(\s*"([\w.]+)"', each)}
    assert len(children) >= 4
    program = "import importlib.util as util, sys; print([each for each in sys.argv[1:] if not util.find_spec(each)])"
    assert run([installed, "-c", program, *sorted(children)]) == "[]\n"


@pytest.mark.later
def test_the_demo_is_part_of_the_wheel(installed: Path, demo: Path, tmp_path: Path) -> None:
    (site,) = installed.parent.parent.glob("lib/python*/site-packages")
    shipped = [each for each in (site / "crystalperf" / "demo").rglob("*") if each.is_file()]
    assert {each.name for each in shipped} == {each.name for each in demo.rglob("*") if each.is_file()}
    assert sum(each.stat().st_size for each in shipped) <= 1_200_000
    assert not any(each.is_symlink() for each in shipped)
    answer = json.loads(
        run([installed.parent / "crystalperf", "demo", "--json"], CRYSTALPERF_HOME=str(tmp_path / "home"))
    )
    assert answer["debug"]["runtime_ms"] == pytest.approx(116238, abs=1)


def rows_of(fleet: Path) -> dict[str, list[str]]:
    """All rows of a fleet's tables, without when they were read."""
    found = {}
    with opened(fleet) as connection:
        for table in tables():
            columns = ", ".join(each.name for each in table.columns if each.name != "read_at")
            rows = connection.execute(f"SELECT {columns} FROM {table.name}").fetchall()
            found[table.name] = sorted(map(repr, rows))
    return found


@pytest.mark.later
def test_sparks_executors_read_a_fleet_with_crystalperf_as_a_py_file(wheel: Path, log: Path, tmp_path: Path) -> None:
    """The executors' Python has what CrystalPerf depends on, and CrystalPerf itself only from the ZIP.

    The command runs in a process of its own: Spark ships `spark.submit.pyFiles` only when it starts the JVM.
    """
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    python = environment(tmp_path / "venv")
    assert tops(python) == dict.fromkeys(("crystalperf", *ROOMS))
    archive = tmp_path / "crystalperf.zip"  # Spark puts no file of another ending on the path
    shutil.copy(wheel, archive)
    settings = (f"spark.submit.pyFiles={archive}", f"spark.pyspark.python={python}", "spark.ui.enabled=false")
    build_fleet([str(log)], tmp_path / "local", Engine("local", processes=1))
    build = [sys.executable, "-m", "crystalperf", "fleet", "build", log, "-o", tmp_path / "spark"]
    engine = ["--engine", "spark", "--master", "local-cluster[1,1,1024]"]
    run([*build, *engine, *(word for each in settings for word in ("--conf", each))])
    here, there = rows_of(tmp_path / "local"), rows_of(tmp_path / "spark")
    assert len(here["runs"]) == 1
    assert there == here
