"""Whether another version of CrystalPerf gives the same answers: every figure of debug and predict, over real runs.

    python -m lab.same collect before.json [INPUT…]      in a checkout of the one version
    python -m lab.same collect after.json [INPUT…]       in a checkout of the other
    python -m lab.same compare before.json after.json

`collect` asks each input what `analyze`, `debug` and `predict` say as JSON; by default the recordings in this
repository, and the public event logs where they lie beside the checkout.  `compare` lists what differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from cli.main import run

ROOT = Path(__file__).parent.parent
RECORDINGS = ROOT / "lab" / "recordings"
PUBLIC = ROOT.parent / "shared" / "real-inputs"

PREDICTIONS = (
    ("--set", "cores=2x", "--no-replan"),
    ("--set", "cores=0.5x"),
    ("--set", "executors=0.5x,3x"),
    ("--set", "cpu_speed=0.5x"),
    ("--set", "disk=0.25x", "--recorded", "disk=200MB/s"),
    ("--set", "network=0.25x,4x", "--recorded", "network=1Gbps"),
    ("--set", "memory=0.75x"),
    ("--set", "cores=2x", "--set", "network=2x", "--set", "cpu_speed=1.5x"),
)
"""What is asked of every run beside the questions of `analyze`."""

CLOSE = 1e-9
"""Relative difference of two numbers that counts as none."""


def inputs() -> Iterator[Path]:
    """The recordings of this repository, then the public event logs."""
    yield RECORDINGS / "demo-q9"
    yield from sorted(path for path in (RECORDINGS / "gzip-text").iterdir() if path.is_dir())
    yield from sorted((RECORDINGS / "sweeps").glob("*/base-*"))
    for folder in sorted(each for each in (PUBLIC / "spark-eventlog").glob("*") if each.is_dir()):
        yield from sorted(folder.iterdir())


def collect(paths: Sequence[Path]) -> dict[str, Any]:
    """By input and question what was answered: JSON, or the sentence that says why not."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            kept = Path(folder) / "run.duckdb"
            kept.unlink(missing_ok=True)
            answers: dict[str, Any] = {}
            found[_name(path)] = answers
            answers["analyze"] = _asked("analyze", str(path), "-o", str(kept), "--json")
            if isinstance(answers["analyze"], str) and "--app" in answers["analyze"]:
                apps = [each.split()[0] for each in answers["analyze"].partition("--app: ")[2].split(", ")]
                for app in apps:
                    answers[f"analyze {app}"] = _asked(
                        "analyze", str(path), "-o", str(kept), "--json", "--app", str(app)
                    )
            if not kept.exists():
                continue
            for scope in ("0..10000", "sql:0", "sql:1", "job:0"):
                answers[f"debug {scope}"] = _asked("debug", str(kept), "--scope", scope, "--json")
            for question in PREDICTIONS:
                answers[" ".join(("predict", *question))] = _asked("predict", str(kept), *question, "--json")
            print(path, file=sys.stderr)
    return found


def _name(path: Path) -> str:
    return str(path.relative_to(PUBLIC if PUBLIC in path.parents else ROOT)) if path.is_absolute() else str(path)


def _asked(*arguments: str) -> Any:
    answer, refusal = StringIO(), StringIO()
    with redirect_stdout(answer), redirect_stderr(refusal):
        run(arguments)
    try:
        return json.loads(answer.getvalue())
    except ValueError:
        return refusal.getvalue().strip()


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Every place where two answers differ, and how."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            if key not in before:
                yield f"{place}/{key}: only after"
            elif key not in after:
                yield f"{place}/{key}: only before"
            else:
                yield from differences(before[key], after[key], f"{place}/{key}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{place}: {len(before)} entries before, {len(after)} after"
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif _number(before) and _number(after):
        if abs(before - after) > CLOSE * max(abs(before), abs(after), 1.0):
            yield f"{place}: {before} before, {after} after"
    elif before != after:
        yield f"{place}: {before!r} before, {after!r} after"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; `compare` exits with 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m lab.same", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("to", type=Path)
    collecting.add_argument("inputs", type=Path, nargs="*")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "collect":
        given.to.write_text(json.dumps(collect(given.inputs or list(inputs())), indent=1), encoding="utf-8")
        return 0
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (given.before, given.after))
    lines = list(differences(before, after))
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
