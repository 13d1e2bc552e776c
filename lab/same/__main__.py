"""Compare the answers of two versions of CrystalPerf, at every interface, over real runs.

    python -m lab.same check [--inputs quick|default|all] [--text]     compare this checkout with the stored reference
    python -m lab.same collect OUT [--checkout FOLDER]                 collect the answers of a checkout
    python -m lab.same compare BEFORE AFTER [--text]                   compare two collections
    python -m lab.same keep COLLECTION --commit COMMIT                 store a collection as the reference

Figures, kinds, and the number and order of entries must be equal; a field that only one side has must be listed in
lab/reference/renames.toml.  Sentences may differ; --text compares them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import zstandard

from lab.same.comparing import compare
from lab.same.inputs import PUBLIC, QUICK, ROOT, Input, given, inputs
from lab.same.renames import Renames
from lab.same.tables import kept_of, tables_of

REFERENCE = ROOT / "lab" / "reference"
ANSWERS, RENAMES = REFERENCE / "answers.json.zst", REFERENCE / "renames.toml"
LEVEL = 19


def collect(checkout: Path, asked: Sequence[Input], processes: int, nice: int) -> dict[str, Any]:
    """The answers of the version in a checkout, as tables, by input and request."""
    whole = {*QUICK} <= {each.name for each in asked}  # a fleet and a service need all of these inputs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        paths = [*_plugins(checkout, folder / "plugins"), str(checkout)]
        scripts = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
        job = {
            "command": scripts["crystalperf"],
            "processes": processes,
            "nice": nice,
            "roots": [str(each) for each in (ROOT, PUBLIC) if each is not None],
            "inputs": [
                {
                    "name": each.name,
                    "paths": list(map(str, each.paths)),
                    "thorough": each.thorough,
                    "shared": each.name in QUICK and whole,
                }
                for each in asked
            ],
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        typed = [sys.executable, "-P", str(Path(__file__).with_name("asking.py")), "job.json", "out.json"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run(typed, cwd=folder, env=environment, check=True)
        answers = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    public = {each.name for each in asked if each.public}
    return {name: {"public": name in public, "answers": tables_of(each)} for name, each in answers.items()}


def _plugins(checkout: Path, folder: Path) -> list[str]:
    """The example frameworks of a checkout, as installed packages."""
    for project in sorted((checkout / "examples").glob("*/pyproject.toml")):
        stated = tomllib.loads(project.read_text(encoding="utf-8"))
        about = folder / f"{stated['project']['name'].replace('-', '_')}-{stated['project']['version']}.dist-info"
        about.mkdir(parents=True)
        about.joinpath("METADATA").write_text(f"Name: {stated['project']['name']}\n", encoding="utf-8")
        points = stated["project"]["entry-points"]
        lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in points.items()]
        about.joinpath("entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        for package in stated["tool"]["setuptools"]["packages"]:
            (folder / package).symlink_to(project.parent / package)
    return [str(folder)]


def read(path: Path) -> dict[str, Any]:
    """A collection, or the reference."""
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def write(path: Path, found: dict[str, Any]) -> None:
    """Store a collection."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(zstandard.ZstdCompressor(level=LEVEL).compress(text.encode()))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 if anything differs."""
    options = _options().parse_args(arguments)
    if options.command == "keep":
        write(ANSWERS, {"commit": options.commit, "inputs": kept_of(read(options.collection)["inputs"])})
        return 0
    if options.command in ("collect", "check"):
        asked = given(options.only) if options.only else inputs(options.inputs)
        after: dict[str, Any] = {"inputs": collect(options.checkout.resolve(), asked, options.processes, options.nice)}
    if options.command == "collect":
        write(options.to, after)
        return 0
    if options.command == "check":
        before = read(ANSWERS)
    else:
        before, after = read(options.before), read(options.after)
    found = compare(before["inputs"], after["inputs"], Renames.read(RENAMES), text=options.text)
    print("\n".join(found.lines()))
    return 1 if found else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.same", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("collect", "check"):
        command = commands.add_parser(name)
        if name == "collect":
            command.add_argument("to", type=Path, metavar="OUT")
        command.add_argument("--only", nargs="+", metavar="INPUT", help="a path, or a part of an input's name")
        command.add_argument("--inputs", choices=("quick", "default", "all"), default="default")
        command.add_argument("--checkout", type=Path, default=ROOT)
        command.add_argument("--processes", type=int, default=2)
        command.add_argument("--nice", type=int, default=10)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    for name in ("check", "compare"):
        commands.choices[name].add_argument("--text", action="store_true", help="compare sentences, too")
    keeping = commands.add_parser("keep")
    keeping.add_argument("collection", type=Path)
    keeping.add_argument("--commit", required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
