"""Examples in documents and in the help are executed as they stand, in a folder with a run's log and recordings."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
import zstandard

from crystalperf.cli.parsing import _command
from crystalperf.cli.reference import page
from tests.small_indexes import DATA, small_index

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "docs/reference")
DOCUMENTS = [
    "README.md",
    *(f"{folder}/{each.name}" for folder in FOLDERS for each in sorted((ROOT / folder).glob("*.md"))),
]
PROSE = [*DOCUMENTS, "SECURITY.md", *sorted(str(each.relative_to(ROOT)) for each in ROOT.glob("docs/*/*.md"))]
LOG = "eventlog_v2_app-20261121113629-0000"

ELSEWHERE = (
    "crystalperf index build jdk-17",
    "crystalperf collect ",
    "crystalperf fleet build s3://",
    "crystalperf analyze FOLDER/",
)
"""Examples that need others: the source of the JDK, a running cluster, a store, a clone of public data."""

SERVICE = "crystalperf serve"
SERVED_S = 20
"""A service runs until it is ended: it has begun if it is still there after that time."""

RERUNS = (
    "small.log", "monday.log", "tuesday.log", "monday-1", "monday-2", "tuesday-1", "tuesday-2",
    "yesterday/a", "today/a", "new/1.log", "old/1.log",
)  # fmt: skip
"""Other runs of the job, each by an id of its own."""

ERNEST, REFUSED = "--predictor ernest", "all runs have the same number of slots"
"""These runs are copies of one, from which Ernest's model learns nothing."""

GATE = "crystalperf gate"
GATE_CODES = (0, 3, 4)

MACHINES = """\
name,price_per_hour,cores,memory,network,cpu_speed
small,0.10,2,4GiB,10Mbit/s,1
large,0.40,8,16GiB,10Gbit/s,1
"""


@dataclass(frozen=True)
class User:
    """A folder with a user's files, and a shell in it whose `crystalperf` is this one."""

    folder: Path
    home: Path
    python_path: str

    def types(self, command: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"CRYSTALPERF_HOME": str(self.home), "PATH": path, "PYTHONPATH": self.python_path}
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )


def examples(text: str) -> list[str]:
    """The commands of a document's blocks, without comments behind them; one that has a quote open goes on."""
    found: list[str] = []
    is_open = False
    for line in text.split("\n"):
        if is_open:
            found[-1] += f"\n{line}"
        elif match := re.match(r"(?:    |\$ |)(crystalperf (?!COMMAND).*)", line):
            if line.startswith("crystalperf"):
                continue  # prose that begins a line with the name
            found.append(match[1])
        else:
            continue
        is_open = found[-1].count('"') % 2 == 1 or found[-1].endswith("\\")
    return [re.sub(r"\s{2,}# .*$", "", each) for each in found]


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> User:
    folder, home = (tmp_path_factory.mktemp(each) for each in ("user", "home"))
    (folder / "app-1.log").write_bytes(next((demo / LOG).glob("events_1_*")).read_bytes())
    for place in (folder, folder / "eventlog"):
        shutil.copytree(demo / LOG, place / LOG)
    (folder / "logs").mkdir()
    shutil.copy(folder / "app-1.log", folder / "logs")
    (folder / "list.txt").write_text("app-1.log\n")
    (folder / "machines.csv").write_text(MACHINES)
    shutil.copytree(DATA / "training" / "torch-2-ranks", folder / "traces")
    (folder / "recordings").mkdir()
    for each in demo.glob("*.jfr.gz"):
        for place in (folder, folder / "recordings"):
            (place / each.stem).write_bytes(gzip.decompress(each.read_bytes()))
    for each in ("examples", "lab"):
        (folder / each).symlink_to(ROOT / each)
    shutil.copytree(DATA / "acme" / "src", folder / "path" / "to" / "acme")
    (folder / "path" / "to" / "acme" / "jars").mkdir()
    (home / "bin").mkdir()
    script = home / "bin" / "crystalperf"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from crystalperf.cli.main import main; main()" "$@"\n')
    script.chmod(0o755)
    (home / "indexes").mkdir()
    for version in ("acme-1.2", "acme-1.3"):
        small_index("acme-1", home / "indexes" / f"{version}.duckdb", name=version)
    toy = tmp_path_factory.mktemp("toy")
    source = tmp_path_factory.mktemp("source") / "toy"
    shutil.copytree(ROOT / "examples" / "toy-framework", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(toy), str(source)], check=True, capture_output=True)
    found = User(folder, home, os.pathsep.join([str(toy), str(ROOT)]))
    with zipfile.ZipFile(folder / "path" / "to" / "acme" / "jars" / "acme.jar", "w") as jar:
        for each in (DATA / "classes").glob("*.class"):
            jar.write(each, each.name)
    # Another run of the job, by another id.
    text = zstandard.ZstdDecompressor().stream_reader((folder / "app-1.log").read_bytes(), read_across_frames=True)
    log = text.read()
    for number, name in enumerate(RERUNS, 1):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(log.replace(b"20261121113629-0000", b"20261121113629-%04d" % number))
    for command in (
        "crystalperf demo",
        "crystalperf profile small.log -o q9-small.duckdb",
        "crystalperf profile monday.log -o before.duckdb",
        "crystalperf profile tuesday.log -o after.duckdb",
    ):
        done = found.types(command)
        assert done.returncode == 0, done.stderr
    return found


@pytest.mark.later
@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_of_a_document_run_unchanged(user: User, document: str) -> None:
    failed = []
    for command in examples((ROOT / document).read_text(encoding="utf-8")):
        if command.startswith(ELSEWHERE):
            continue
        if command.startswith(SERVICE):
            done = user.types(f"timeout --signal INT {SERVED_S} {command}; (($? == 124))")
        else:
            done = user.types(command.replace("/tmp/traces", str(user.folder / "traces")))
        if command.startswith(GATE) and done.returncode in GATE_CODES:
            continue
        if ERNEST in command and done.returncode == 1 and REFUSED in done.stderr:
            continue
        if done.returncode and "needs the extra `indexer`" not in done.stderr:
            failed.append(f"{command}: {done.returncode} {done.stderr or done.stdout}")
    assert not failed


def test_examples_are_found() -> None:
    by_document = {each: examples((ROOT / each).read_text(encoding="utf-8")) for each in DOCUMENTS}
    assert len(by_document["docs/cli.md"]) >= 18
    assert len(by_document["README.md"]) >= 6
    assert len(by_document["docs/resource-index.md"]) >= 6
    (several,) = (each for each in by_document["docs/how-it-works.md"] if "\n" in each)
    assert several.endswith('GROUP BY locality"')
    # The page is made from the help, so that what works there works in the help.
    assert by_document["docs/cli.md"] == examples(page())


def parsed(command: str) -> dict[str, Any]:
    """The parameters of a command line, which is not run.  Raises typer's errors, as the command line does."""
    click, arguments = _command(None), shlex.split(command)[1:]
    context = click.make_context("crystalperf", arguments)
    while hasattr(click, "resolve_command"):
        name, click, rest = click.resolve_command(context, [*getattr(context, "_protected_args", []), *context.args])
        context = click.make_context(name, rest, parent=context)
    found: dict[str, Any] = context.params
    return found


def refused(command: str) -> str:
    """Why the command line cannot be parsed; '' for a valid one, and for a command that is only named."""
    try:
        parsed(command)
    except typer.Exit:  # --version, --help
        return ""
    except Exception as error:
        message: str = getattr(error, "format_message", lambda: "")()
        if not message:
            raise
        return "" if message.startswith("Missing ") else message
    return ""


def test_commands_named_in_prose_have_these_options() -> None:
    named: set[str] = set()
    for document in PROSE:
        text = (ROOT / document).read_text(encoding="utf-8").replace("\n", " ")
        named |= {re.split(r" [|<>]", each)[0] for each in re.findall(r"(?<!`)`(crystalperf [a-z][^`]*)`", text)}
    assert {"crystalperf advise RUN", "crystalperf index build --model FOLDER"} & named
    groups = {"crystalperf index", "crystalperf fleet"}
    wrong = {each: why for each in sorted(named - groups) if (why := refused(each))}
    assert not wrong


@pytest.mark.parametrize(
    "command", ["crystalperf analyse LOG", "crystalperf predict RUN --sets cores=2x", "crystalperf demo LOG"]
)
def test_wrong_command_in_prose_is_found(command: str) -> None:
    assert refused(command)


def test_documented_packages_can_be_installed() -> None:
    """CrystalPerf is in no package index, so that only a checkout can be named."""
    folders = [
        each for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith(".") and each.name != "web"
    ]
    for path in (*ROOT.glob("*.md"), *(each for folder in folders for each in folder.rglob("*"))):
        if path.suffix in (".py", ".md"):
            assert not re.search(r"pipx? install '?crystalperf", path.read_text(encoding="utf-8")), path
