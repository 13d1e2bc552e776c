"""Move the modules of query/ to their packages and rewrite every mention.

    python move.py CHECKOUT          in a clean checkout of main; commits nothing

1 refuses, before it changes anything, where a module has no rule (mapping.py) or two would get one name
2 git mv
3 Python: imports by AST positions; names of modules and classes that changed, by their bindings; dotted names and
  paths in strings, comments and docstrings
4 Markdown, TOML, C, SQL, Makefile, TypeScript: dotted names and paths
5 pyproject's packages and data, the registry, tests/test_house.py, CONTRIBUTING.md
6 ruff: order of imports, format
Then build the C extension again: query/simulate/list_schedule.c is crystalperf.query.simulate._list_schedule.
"""

from __future__ import annotations

import ast
import io
import os
import re
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from mapping import CLASSES, DISSOLVED, FILES, NEW_PACKAGES, PACKAGES, PASSED_ON, RULES

ROOT = Path(sys.argv[1]).resolve()
BIN = Path(sys.executable).parent
Q = "crystalperf.query"
LEFT_OUT = (
    "tests/data/",
    "lab/recordings/",
    "indexer/labels/",
    "report/assets/",
    "CHANGELOG.md",
    "research/",
    "docs/schema/",
)
SUFFIXES = {".py", ".md", ".toml", ".c", ".sql", ".ts", ".yml", ".yaml", ".sh", ".in", ".cfg"}
NAMES = {"Makefile", "Dockerfile", "run", ".dockerignore"}


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout


def target(module: str) -> str | None:
    for old, new in RULES:
        if old == module:
            return new
        if old.endswith(".*") and module.startswith(old[:-1]) and "." not in module[len(old) - 1 :]:
            return new[:-1] + module[len(old) - 1 :]
    return None


def plan() -> tuple[dict[str, str], dict[str, str]]:
    """Modules old → new, and files old → new below query/."""
    modules: dict[str, str] = {}
    files: dict[str, str] = {}
    missing = []
    for path in git("ls-files", "query").split():
        inside = path.removeprefix("query/")
        folder = inside.rpartition("/")[0].replace("/", ".")
        if inside in FILES:
            files[inside] = FILES[inside]
        elif inside.endswith("__init__.py"):
            if folder in PACKAGES:
                new = PACKAGES[folder]
                files[inside] = f"{new.replace('.', '/')}/__init__.py".lstrip("/")
                if folder:
                    modules[folder] = new
            elif folder not in DISSOLVED:
                missing.append(path)
        elif inside.endswith(".py"):
            new_module = target(inside.removesuffix(".py").replace("/", "."))
            if new_module is None:
                missing.append(path)
            else:
                modules[inside.removesuffix(".py").replace("/", ".")] = new_module
                files[inside] = new_module.replace(".", "/") + ".py"
        else:  # data beside modules: goes with its package, or with the folder's parent package
            package, rest = folder, inside.rpartition("/")[2]
            while package not in PACKAGES and package:
                package, _, last = package.rpartition(".")
                rest = f"{last}/{rest}"
            if not package:
                missing.append(path)
            else:
                files[inside] = f"{PACKAGES[package].replace('.', '/')}/{rest}"
    if missing:
        sys.exit("no rule for:\n  " + "\n  ".join(missing))
    double = [new for new in set(files.values()) if list(files.values()).count(new) > 1]
    if double:
        sys.exit("two files for one: " + ", ".join(double))
    modules["whatif._listing"] = "simulate._list_schedule"
    return modules, files


MODULES, FILES_MOVED = plan()
PROSE = MODULES | {old: new for old, new in DISSOLVED.items() if old not in MODULES}
RENAMED = {(module, old): new for module, old, new in CLASSES}
unknown = [each for each in CLASSES if each[0] not in MODULES]
if unknown:
    sys.exit(f"no such modules: {unknown}")
report: list[str] = []


# Text ---------------------------------------------------------------------------------------------------------------

FULL = re.compile(r"\bcrystalperf\.query((?:\.\w+)+)")
SHORT = re.compile(r"(?<![\w./])query((?:\.\w+)+)")
PATH = re.compile(r"(?<![\w.-])((?:\.\./|crystalperf/)*query/)((?:[\w-]+/)*)([\w-]+\.(?:py|sql|c|csv)\b)?")


def dotted(rest: str, known: dict[str, str]) -> str:
    parts = rest.split(".")[1:]
    for end in range(len(parts), 0, -1):
        old = ".".join(parts[:end])
        if old in known:
            more = parts[end:]
            if more and (old, more[0]) in RENAMED:
                more[0] = RENAMED[old, more[0]]
            return "." + ".".join([known[old], *more])
    return rest


def paths(found: re.Match[str]) -> str:
    start, folder, file = found[1], found[2], found[3] or ""
    inside = folder + file
    if inside in FILES_MOVED:
        return start + FILES_MOVED[inside]
    package = folder.rstrip("/").replace("/", ".")
    new = PROSE.get(package)
    return start + (f"{new.replace('.', '/')}/{file}" if new and package else inside)


FROM_IN_TEXT = re.compile(r"\bfrom crystalperf\.query((?:\.\w+)*) import (\w+)(?! *[,\w])")


def from_in_text(found: re.Match[str]) -> str:
    """A module that a program in a text imports from a package."""
    old = f"{found[1]}.{found[2]}".lstrip(".")
    if old not in MODULES:
        return found[0]
    package, _, leaf = MODULES[old].rpartition(".")
    return f"from {Q}.{package} import {leaf}".replace(". ", " ") + (f" as {found[2]}" if leaf != found[2] else "")


def prose(text: str) -> str:
    text = FROM_IN_TEXT.sub(from_in_text, text)
    text = FULL.sub(lambda found: Q + dotted(found[1], PROSE), text)
    text = SHORT.sub(lambda found: "query" + dotted(found[1], PROSE), text)
    return PATH.sub(paths, text)


def literal(text: str) -> str:
    text = FROM_IN_TEXT.sub(from_in_text, text)
    return PATH.sub(paths, FULL.sub(lambda found: Q + dotted(found[1], PROSE), text))


# Python -------------------------------------------------------------------------------------------------------------


class Python:
    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.tree = ast.parse(text)
        self.starts = [0]
        self.lines = text.splitlines(keepends=True)
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.edits: list[tuple[int, int, str]] = []
        self.identifiers = self._identifiers()

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def _identifiers(self) -> dict[str, int]:
        """How often each name is bound otherwise than by an import, or used at all."""
        found: dict[str, int] = {}
        for node in ast.walk(self.tree):
            names = []
            if isinstance(node, ast.Name):
                names = [node.id]
            elif isinstance(node, ast.arg):
                names = [node.arg]
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.alias):
                names = [(node.asname or node.name).partition(".")[0]]
            elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
                names = [node.name]
            for each in names:
                found[each] = found.get(each, 0) + 1
        return found

    def bound_otherwise(self, name: str) -> bool:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
                return True
            if isinstance(node, ast.arg) and node.arg == name:
                return True
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
                return True
        return False

    def rename(self, old: str, new: str) -> bool:
        """Every use of a name that an import binds; False where that is not safe."""
        if self.identifiers.get(new) or self.bound_otherwise(old):
            return False
        spans = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id == old:
                start, end = self.span(node)
                if self.text[start:end] != old:  # within an f-string of Python 3.11
                    return False
                spans.append((start, end, new))
        self.edits += spans
        return True

    def imports(self) -> None:
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.ImportFrom)
                and node.level == 0
                and node.module
                and (node.module == Q or node.module.startswith(f"{Q}."))
            ):
                self._from(node)

    def _from(self, node: ast.ImportFrom) -> None:
        old = node.module.removeprefix(Q).lstrip(".")
        by_module: dict[str, list[str]] = {}
        changed = False
        for each in node.names:
            inner = f"{old}.{each.name}".lstrip(".")
            asname = each.asname
            if inner in MODULES:
                package, _, leaf = MODULES[inner].rpartition(".")
                name = leaf
            elif old == "frameworks" and each.name in PASSED_ON and self.path != ROOT / "query/frameworks/__init__.py":
                package, name = PASSED_ON[each.name], each.name
            else:
                package = MODULES.get(old, old) if old else ""
                name = RENAMED.get((old, each.name), each.name)
                if old in DISSOLVED and old not in MODULES:
                    sys.exit(f"{self.path}:{node.lineno}: {each.name} of a package that is dissolved")
            if name != each.name and asname is None and not self.rename(each.name, name):
                asname = each.name
                report.append(f"{self.path.relative_to(ROOT)}:{node.lineno}: {name} as {asname}")
            elif name != each.name and asname == each.name and (inner not in MODULES or self.rename(each.name, name)):
                asname = name  # exported again
            module = f"{Q}.{package}" if package else Q
            changed |= module != node.module or name != each.name
            by_module.setdefault(module, []).append(f"{name} as {asname}" if asname else name)
        if not changed:
            return
        start, end = self.span(node)
        if "#" in self.text[start:end]:
            report.append(f"{self.path.relative_to(ROOT)}:{node.lineno}: a comment within an import is lost")
        indent = " " * node.col_offset
        lines = []
        for module, names in by_module.items():
            line = f"from {module} import {', '.join(names)}"
            if len(line) + node.col_offset > 120:
                inner_lines = "".join(f"{indent}    {each},\n" for each in names)
                line = f"from {module} import (\n{inner_lines}{indent})"
            lines.append(line)
        self.edits.append((start, end, f"\n{indent}".join(lines)))

    def classes(self, module: str) -> None:
        """Definitions of this module that get another name."""
        for (of, old), new in RENAMED.items():
            if of != module:
                continue
            if self.identifiers.get(new):
                sys.exit(f"{self.path}: has a {new}")
            for node in ast.walk(self.tree):
                if isinstance(node, ast.Name) and node.id == old:
                    start, end = self.span(node)
                    assert self.text[start:end] == old, (self.path, node.lineno)
                    self.edits.append((start, end, new))
                elif isinstance(node, ast.ClassDef) and node.name == old:
                    start = self.text.index(f"class {old}", self.at(node.lineno, 0)) + len("class ")
                    self.edits.append((start, start + len(old), new))

    def attributes(self) -> None:
        """`dag.Group` where dag is a module."""
        modules = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(Q):
                for each in node.names:
                    inner = f"{node.module.removeprefix(Q).lstrip('.')}.{each.name}".lstrip(".")
                    if inner in MODULES:
                        modules[each.asname or each.name] = inner
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                new = RENAMED.get((modules[node.value.id], node.attr))
                if new:
                    _, end = self.span(node)
                    self.edits.append((end - len(node.attr), end, new))

    def texts(self) -> None:
        docstrings = {
            self.at(node.lineno, node.col_offset)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        }
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in (tokenize.STRING, tokenize.COMMENT):
                continue
            start = self.starts[token.start[0] - 1] + token.start[1]
            end = self.starts[token.end[0] - 1] + token.end[1]
            old = self.text[start:end]
            new = prose(old) if token.type == tokenize.COMMENT or start in docstrings else literal(old)
            if new != old:
                self.edits.append((start, end, new))
        # `import crystalperf.query.x` and what it is used by
        covered = [(start, end) for start, end, _ in self.edits]
        for found in FULL.finditer(self.text):
            if not any(start <= found.start() < end for start, end in covered):
                line = self.text[self.text.rfind("\n", 0, found.start()) + 1 : found.start()]
                if not line.lstrip().startswith(("from ", "#")):
                    new = Q + dotted(found[1], MODULES)
                    if new != found[0]:
                        self.edits.append((found.start(), found.end(), new))

    def done(self) -> str:
        text = self.text
        last = len(text) + 1
        for start, end, new in sorted(set(self.edits), reverse=True):
            assert end <= last, (self.path, text[start:end])
            text, last = text[:start] + new + text[end:], start
        return text


# Steps --------------------------------------------------------------------------------------------------------------


def replace_once(path: str, *pairs: tuple[str, str]) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for old, new in pairs:
        if text.count(old) != 1:
            report.append(f"{path}: {text.count(old)} times, by hand: {old.strip().splitlines()[0]}")
            continue
        text = text.replace(old, new)
    (ROOT / path).write_text(text, encoding="utf-8")


def move_files(contents: dict[Path, str]) -> None:
    """The new files written, the old ones gone; git sees renames."""
    for old in FILES_MOVED:
        if FILES_MOVED[old] != old:
            place = ROOT / "query" / FILES_MOVED[old]
            place.parent.mkdir(parents=True, exist_ok=True)
    temporary = []
    for old, new in FILES_MOVED.items():  # two steps, for one's new place may be another's old one
        if old != new:
            git("mv", f"query/{old}", f"query/{new}.moving")
            temporary.append(new)
    for new in temporary:
        git("mv", f"query/{new}.moving", f"query/{new}")
    for old in DISSOLVED:
        if old not in PACKAGES:
            git("rm", "-q", f"query/{old}/__init__.py")
    for package, docstring in NEW_PACKAGES.items():
        place = ROOT / "query" / package.replace(".", "/") / "__init__.py"
        if not place.exists():
            place.write_text(f'"""{docstring}"""\n', encoding="utf-8")
    for path, text in contents.items():
        path.write_text(text, encoding="utf-8")
    for folder in sorted((ROOT / "query").rglob("*"), reverse=True):  # what is left of packages that went
        if folder.is_dir() and not git("ls-files", str(folder)) and not any(folder.glob("**/*.py")):
            shutil.rmtree(folder)


def main() -> None:
    if git("status", "--porcelain"):
        sys.exit("the checkout is not clean")
    contents: dict[Path, str] = {}
    for name in git("ls-files").splitlines():
        path = ROOT / name
        if path.is_symlink() or name.startswith(LEFT_OUT) or not path.is_file():
            continue
        if path.suffix not in SUFFIXES and path.name not in NAMES:
            continue
        text = path.read_text(encoding="utf-8")
        new_path = path
        if name.startswith("query/") and name.removeprefix("query/") in FILES_MOVED:
            new_path = ROOT / "query" / FILES_MOVED[name.removeprefix("query/")]
        elif name.startswith("query/"):
            continue  # the docstring of a package that goes
        if path.suffix == ".py":
            file = Python(path, text)
            file.imports()
            file.attributes()
            if name.startswith("query/"):
                inside = name.removeprefix("query/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                file.classes(inside)
            file.texts()
            new = file.done()
        else:
            new = prose(text)
        if new != text or new_path != path:
            contents[new_path] = new
    move_files(contents)
    special()
    git("add", "-A", "query")
    subprocess.run([BIN / "ruff", "check", "--quiet", "--fix", "--select", "I", "."], cwd=ROOT, check=False)
    subprocess.run([BIN / "ruff", "format", "--quiet", "."], cwd=ROOT, check=True)
    wrap_prose()
    done = subprocess.run(
        [sys.executable, "-m", "crystalperf.query.text.as_json", "--write", "docs/schema"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        report.append(f"docs/schema: by hand: {done.stderr.strip()[-300:]}")
    print("\n".join(report))
    print(
        f"{len(FILES_MOVED)} files, {sum(old != new for old, new in FILES_MOVED.items())} moved, {len(contents)} written"
    )


def wrap_prose() -> None:
    """Lines of docstrings and comments that new names made too long: what is too much goes to the next line."""
    for _ in range(40):
        found = subprocess.run(
            [BIN / "ruff", "check", "--select", "E501", "--output-format", "concise", "."],
            cwd=ROOT,
            capture_output=True,
            text=True,
        ).stdout
        places = re.findall(r"^(\S+\.py):(\d+):\d+: E501", found, flags=re.MULTILINE)
        if not places:
            return
        done = set()
        for name, number in places:
            if name in done:
                continue
            done.add(name)
            path = ROOT / name
            lines = path.read_text(encoding="utf-8").split("\n")
            at = int(number) - 1
            line = lines[at]
            mark = re.match(r"\s*(?:# )?", line)[0]
            trailing = re.search(r"  # (?=\w)", line)
            if "#" not in mark and trailing:  # behind code
                lines[at : at + 1] = [f"{mark}# {line[trailing.end() :]}", line[: trailing.start()]]
                path.write_text("\n".join(lines), encoding="utf-8")
                continue
            cut = line.rfind(" ", len(mark) + 1, 121)
            after = lines[at + 1] if at + 1 < len(lines) else ""
            rest = line[cut + 1 :]
            follows = re.match(r"\s*(?:# )?", after)[0]
            more = after[len(follows) :]
            if "#" in mark:
                joins = "#" in follows and more
            else:
                ends = line.rstrip().endswith('"""')
                joins = more and not ends and not more.startswith('"""') and len(follows) >= len(mark)
            if line.endswith('"""') and not rest.strip('"').strip():
                lines[at : at + 1] = [line[:-3], mark + '"""']
            elif joins and not re.match(r"\S+  +\S", more):
                lines[at : at + 2] = [line[:cut].rstrip(), f"{follows}{rest} {more}"]
            else:
                table = re.match(r"\s*\S+(?: \S+)*  +(?=\S)", line)
                indent = " " * len(table[0]) if table and "#" not in mark else mark
                lines[at : at + 1] = [line[:cut].rstrip(), indent + rest]
            path.write_text("\n".join(lines), encoding="utf-8")
    report.append("lines of prose are too long: by hand")


def special() -> None:
    """What no rule finds."""
    packages = sorted(
        ".".join(("crystalperf", *path.parent.relative_to(ROOT).parts))
        for path in (ROOT / "query").rglob("__init__.py")
    )
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    text, mark, rest = text.partition("[tool.setuptools.package-dir]")
    lines = [line for line in text.split("\n") if not re.fullmatch(r'    "crystalperf\.query(\.[\w.]+)?",', line)]
    place = max(i for i, line in enumerate(lines) if re.fullmatch(r'    "crystalperf\.indexes",', line)) + 1
    lines[place:place] = [f'    "{each}",' for each in packages]
    path.write_text("\n".join(lines) + mark + rest, encoding="utf-8")
    replace_once(
        "pyproject.toml",
        ('    "frameworks/*/*.sql",\n', '    "frameworks/*/*.sql",\n    "frameworks/*/*/*.sql",\n'),
        ('    "whatif/*.csv",\n', '    "predict/*.csv",\n'),
    )
    source = ROOT / "query/simulate/list_schedule.c"
    source.write_text(
        source.read_text(encoding="utf-8").replace("PyInit__listing", "PyInit__list_schedule"), encoding="utf-8"
    )
    replace_once(
        "query/frameworks/registry.py",
        (
            '''_BUILT_IN = ("spark", "flink", "jax", "tensorflow", "pytorch", "mxnet")
"""In the order in which they are asked whether a file is theirs: JAX's are TensorFlow's too, by their form."""
''',
            '''_ML = ("jax", "tensorflow", "pytorch", "mxnet")
_BUILT_IN = ("spark", "flink", *_ML)
"""In the order in which they are asked whether a file is theirs: JAX's are TensorFlow's too, by their form."""


def package_of(name: str) -> str:
    """The package of a built-in framework; '' for one that another package brings."""
    return f"crystalperf.query.frameworks.{'ml.' if name in _ML else ''}{name}" if name in _BUILT_IN else ""
''',
        ),
        ('import_module(f"crystalperf.query.frameworks.{name}")', "import_module(package_of(name))"),
    )
    replace_once(
        "query/statements/views.py",
        (
            """    known = {each.name: each for each in files("crystalperf.query.frameworks").iterdir()}
    return _in(known[framework].joinpath("views")) if framework in known else ()
""",
            """    package = package_of(framework)
    return _in(files(package).joinpath("views")) if package else ()
""",
        ),
        (
            "from importlib.resources.abc import Traversable\n",
            "from importlib.resources.abc import Traversable\n\n"
            "from crystalperf.query.frameworks.registry import package_of\n",
        ),
    )
    replace_once(
        "query/frameworks/ml/training/framework.py",
        ('f"crystalperf.query.frameworks.{name}.trace"', 'f"crystalperf.query.frameworks.ml.{name}.trace"'),
    )
    replace_once(
        "tests/test_kinds.py",
        (
            'removeprefix("crystalperf.query.frameworks.").partition(".")[0]',
            'removeprefix("crystalperf.query.frameworks.").removeprefix("ml.").partition(".")[0]',
        ),
        ('QUERY.glob("frameworks/*/[fr]*s.py")', 'QUERY.glob("frameworks/**/[fr]*s.py")'),
        ('(QUERY / "explain" / "findings")', '(QUERY / "diagnose" / "findings")'),
        ('QUERY / "explain" / "losses.py"', 'QUERY / "diagnose" / "losses.py"'),
    )
    replace_once("tests/test_lab_score.py", ('/ "whatif" / "priors.csv"', '/ "predict" / "priors.csv"'))
    replace_once(
        "tests/test_packaging.py",
        ("crystalperf/query/simulate/_listing.abi3.so", "crystalperf/query/simulate/_list_schedule.abi3.so"),
        ('file.name == "_listing.abi3.so"', 'file.name == "_list_schedule.abi3.so"'),
    )
    replace_once(
        "tests/test_schema.py",
        (
            """        connection = duckdb.connect()
        connection.execute((ROOT / "query" / "frameworks" / folder / "schema.sql").read_text())
""",
            """        place = ROOT / "query" / "frameworks" / ("ml/training" if folder == "training" else folder)
        connection = duckdb.connect()
        connection.execute((place / "schema.sql").read_text())
""",
        ),
    )
    contracts()
    house()


CONTRACTS = """
# The contract of a framework and its registry are imported by whoever asks a framework; what they import for types alone
# would otherwise count for everybody.
[[tool.importlinter.contracts]]
name = "Packages of query import those below them"
type = "layers"
containers = ["crystalperf.query"]
layers = [
    "lookup",
    "run : statements",
    "page",
    "text",
    "streaming",
    "advise",
    "diagnose | predict",
    "runfile",
    "simulate",
    "execution",
    "attribution",
    "recordings : inputs",
    "results",
    "sql | trace",
]
ignore_imports = [
    "crystalperf.query.** -> crystalperf.query.frameworks",
    "crystalperf.query.** -> crystalperf.query.frameworks.registry",
    "crystalperf -> crystalperf.**",  # its names are imported when they are asked for; all ask its version
    # whether what workers keep finds memory is asked by both
    "crystalperf.query.simulate.effects.memory -> crystalperf.query.predict.limits",
]

[[tool.importlinter.contracts]]
name = "Frameworks are independent, and only the registry loads them"
type = "independence"
modules = ["crystalperf.query.frameworks.flink", "crystalperf.query.frameworks.ml", "crystalperf.query.frameworks.spark"]

[[tool.importlinter.contracts]]
name = "Nothing in query imports a framework"
type = "forbidden"
source_modules = [
    PACKAGES
]
forbidden_modules = [
    "crystalperf.query.frameworks.flink",
    "crystalperf.query.frameworks.ml",
    "crystalperf.query.frameworks.spark",
]
ignore_imports = ["crystalperf -> crystalperf.**"]
"""


def contracts() -> None:
    """The layers of query/ in place of the list of rooms that tests/test_house.py has."""
    path = ROOT / "pyproject.toml"
    tops = sorted(
        {each.relative_to(ROOT / "query").parts[0].removesuffix(".py") for each in (ROOT / "query").rglob("*.py")}
    )
    names = [f'"crystalperf.query.{each}",' for each in tops if each not in ("__init__", "frameworks")]
    text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
    path.write_text(text + CONTRACTS.replace("PACKAGES", "\n    ".join(names)), encoding="utf-8")
    path = ROOT / "tests/test_house.py"
    text = path.read_text(encoding="utf-8")
    start = text.find("ROOMS_OF_QUERY = (")
    if start < 0 or "def test_data_pass_through" not in text[start:]:
        report.append("tests/test_house.py: ROOMS_OF_QUERY by hand")
    else:
        end = text.find("\n\n\n", text.find("def test_data_pass_through"))
        text = text[:start].rstrip() + "\n" + (text[end:] if end > 0 else "")
    text = text.replace("3 kept, 0 broken", "6 kept, 0 broken").replace('("known.py",', '("registry.py",')
    path.write_text(text, encoding="utf-8")


HOUSE = """query/         a run's log and recordings to a run file; the answers; knows no framework
  trace/         the trace that a framework's reader returns, its validation, and plain values that all use
  inputs/        what files are (`discover.py`), how their containers are opened, servers that hand out logs
  recordings/    JFR and collapsed stacks
  attribution/   frames to functions (`code/`), samples to time on units (`samples/`), unit time by resource
  runfile/       from logs and recordings to a run file (`pipeline.py`: STEPS), where it is kept, names replaced
  execution/     a scope of a run file as arrays: units, slots, execution DAG, critical path, clock, scenario
  simulate/      the replay (its loop in C, too), effects of a scenario, contention, transfers, warm-up, caching
  predict/       estimate, limits, interval, priors, reruns
  streaming/     streams: where a record's time goes, what a scenario changes
  diagnose/      where the time went, and what cost it (`findings/`)
  advise/        verdict, recommendations, their ranking, machines by price
  results/       the values of answers, as data
  text/          the sentences of values; notebooks; JSON
  page/          what the page of a run shows
  frameworks/    the contract of a framework, the registry, and a package for each: spark/ is all that is known of Spark
  lookup/        what an index knows: functions, frames, why
  sql/           questions to data, a commented file each
  statements/    a user's own SELECT over runs and indexes, in a process of its own
  run.py         a run file, and the questions to it
"""


DIRECTION = """Inside `query/` the layers are contracts too: `lookup` → `run`,
`statements` → `page` → `text` → `streaming` → `advise` → `diagnose`, `predict` → `runfile` → `simulate` → `execution` →
`attribution` → `recordings`, `inputs` → `results` → `trace`, `sql`; each may import those to its right. A framework's
package imports what it needs, and only the registry loads it. `tests/test_house.py` guards how many modules of `query/`
import each other in circles, and that the core has no word of Spark's.
"""


def house() -> None:
    path = ROOT / "CONTRIBUTING.md"
    text = path.read_text(encoding="utf-8")
    start, end = text.find("Inside `query/` a room imports"), text.find("\n## Where a change goes")
    if 0 < start < end:
        path.write_text(text[:start] + DIRECTION + text[end:], encoding="utf-8")
    else:
        report.append("CONTRIBUTING.md: the order of packages by hand")
    text = path.read_text(encoding="utf-8")
    start, end = text.find("query/         a run's log"), text.find("crystalperf/   the doors")
    if 0 < start < end:
        path.write_text(text[:start] + HOUSE + text[end:], encoding="utf-8")
    else:
        report.append("CONTRIBUTING.md: the block of query/ by hand")


main()
