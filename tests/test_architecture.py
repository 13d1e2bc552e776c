"""The architecture: who may import whom, who owns which name, and what is forbidden."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import networkx
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("indexes", "indexer", "query", "crystalperf", "report", "service", "fleet", "cli")
HEAVY = {"torch", "sentence_transformers", "transformers", "tree_sitter", "sklearn"}


@cache
def modules(path: Path) -> set[str]:
    """Modules that a file imports anywhere, also inside functions; of `from a import b` both a and a.b."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


def imports(path: Path) -> set[str]:
    """Packages and top-level names that a file imports: `query` of crystalperf.query.run, `numpy` of numpy.linalg."""
    found: set[str] = set()
    for module in modules(path):
        top, _, rest = module.partition(".")
        package = rest.partition(".")[0]
        if top != "crystalperf":
            found.add(top)
        elif package in PACKAGES:
            found.add(package)
        elif package:  # of `from crystalperf import query` the first half says nothing
            found.add("crystalperf")
    return found


def files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_imports_go_down_the_layers() -> None:
    """The contracts of pyproject.toml; `make lint` says the same in a second."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert "6 kept, 0 broken" in done.stdout


def test_no_modules_of_query_import_each_other_in_circles() -> None:
    """Imports for types and inside functions count."""
    graph = grimp.build_graph("crystalperf", cache_dir=None)
    imports: networkx.DiGraph[str] = networkx.DiGraph()
    imports.add_edges_from(
        (module, imported)
        for module in graph.find_descendants("crystalperf.query")
        for imported in graph.find_modules_directly_imported_by(module)
    )
    assert not [sorted(each) for each in networkx.strongly_connected_components(imports) if len(each) > 1]


@pytest.mark.parametrize("package", [each for each in PACKAGES if each != "indexer"])
def test_only_the_indexer_imports_packages_of_the_indexer_extra(package: str) -> None:
    assert not {f"{path.relative_to(ROOT)}: {name}" for path in files(package) for name in imports(path) & HEAVY}


def test_crystalperf_is_the_only_name_that_is_installed() -> None:
    ours = {name for name, owners in packages_distributions().items() if "crystalperf" in owners}
    assert {each for each in ours if not each.startswith("__editable__")} == {"crystalperf"}


def test_every_package_has_its_link_and_is_installed() -> None:
    packages = [each for each in PACKAGES if each != "crystalperf"]
    assert all((ROOT / "crystalperf" / each).readlink() == Path("..", each) for each in packages)
    reported = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert reported["package-dir"] == {f"crystalperf.{each}": each for each in packages}
    folders = {path.parent.relative_to(ROOT) for package in packages for path in files(package)}
    assert set(reported["packages"]) == {"crystalperf", *(".".join(("crystalperf", *each.parts)) for each in folders)}


def test_no_module_is_imported_under_two_names() -> None:
    """In a checkout `import query` works too, and makes a second copy, whose types are others."""
    second = set(PACKAGES) - {"crystalperf"}
    wrong = {
        f"{path.relative_to(ROOT)} imports {module}"
        for folder in (*PACKAGES, "lab", "tests", "examples")
        for path in files(folder)
        for module in modules(path)
        if module.partition(".")[0] in second and "tests/data" not in str(path)
    }
    assert not wrong
    assert not {each for each in sys.modules if each.partition(".")[0] in second}


def test_nothing_can_run_code_on_loading() -> None:
    pattern = re.compile(
        r"\b(import|from) (pickle|joblib|dill)\b|\b(pickle|joblib|torch|yaml)\.loads?\(|\beval\(|\bexec\("
    )
    allowed = {"tests/test_architecture.py", "indexes/frozen.py"}  # the second: for names in the source
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in (*PACKAGES, "lab")
        for path in files(folder)
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if pattern.search(line)
        and not line.lstrip().startswith("#")
        and ".eval(" not in line
        and "never pickle" not in line
        and str(path.relative_to(ROOT)) not in allowed
    ]
    assert not found


def test_functions_have_at_most_60_lines() -> None:
    """All but the terminal's commands, which have a parameter for each option."""
    long = {
        f"{path.relative_to(ROOT)}:{each.lineno} {each.name}"
        for package in (*PACKAGES, "lab")
        for path in files(package)
        if package != "cli"
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and (each.end_lineno or 0) - each.lineno >= 60
    }
    assert not long


def test_lines_of_logs_are_never_split_by_splitlines() -> None:
    assert not [path for path in files("query") if ".splitlines(" in path.read_text(encoding="utf-8")]


def test_only_tests_of_the_lab_import_it() -> None:
    """Tests of the product hold in an installation that has no lab; recordings of the lab are only data."""
    ours = [path for path in files("tests") if not path.name.startswith("test_lab")]
    assert len(ours) > 80
    assert not [str(path) for path in ours if any(each.partition(".")[0] == "lab" for each in modules(path))]


def test_the_query_side_starts_without_heavy_imports() -> None:
    code = "import sys, crystalperf; print([m for m in ('duckdb', 'numpy', 'torch', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_every_sql_file_describes_its_rows() -> None:
    for path in sorted((ROOT / "query" / "sql").glob("*.sql")):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("-- "), path.name
        assert re.search(r"^-- (one row per|Out: ) ?", text, re.MULTILINE), f"{path.name}: what is a row?"


FRAMEWORKS_WORDS = re.compile(
    r"spark(?!lens)|shuffle|\brdds?\b|\baqe\b|sql_id|(?<![a-z])(executor|subtask)s?(?![a-z])", re.IGNORECASE
)
"""Words of one framework; the core says task, stage, slot, worker and driver.  Sparklens is a predictor's name."""


@pytest.mark.parametrize("package", ["query", "cli", "crystalperf", "report", "service", "fleet"])
def test_only_a_frameworks_package_uses_its_words(package: str) -> None:
    places = [path for kind in ("*.py", "*.sql") for path in (ROOT / package).rglob(kind)]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in places
        if not path.is_relative_to(ROOT / "query/recordings")
        # The engines of a fleet are named after what they are; Java has executors and tasks of its own.
        and path.name not in ("registry.py", "engines.py", "jvm.py")
        and (path.parent.name == "frameworks" or "frameworks" not in path.parts)
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if FRAMEWORKS_WORDS.search(line) and "query.frameworks.spark import" not in line and "SPARK.name" not in line
    ]
    assert not found


def test_the_picture_has_every_package() -> None:
    picture = (ROOT / "docs" / "pictures" / "architecture.svg").read_text(encoding="utf-8")
    names = set(re.findall(r"\w+", " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))))
    assert set(PACKAGES) <= names
    assert {each.parent.name for each in (ROOT / "query").glob("*/__init__.py")} <= names


def test_files_that_the_page_of_the_architecture_names_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:fleet|indexer|indexes|query|service|tests)/[\w./]*)`", page)
    assert len(named) > 15
    assert not [each for each in named if not (ROOT / each).exists()]
