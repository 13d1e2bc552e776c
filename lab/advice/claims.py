"""Recommendations and tuned configurations of the present code for the kept logs, and the changes they are.

``claims.jsonl`` keeps them as data, so that tables need no logs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab.advice.applying import Applied, apply
from lab.advice.cases import Case
from lab.advice.reruns import JOBS, REPOSITORY, TIMEOUT_S, change_id
from lab.errors import LabError

CLAIMS = "claims.jsonl"

RANKS = 3
"""So many recommendations of a case are kept."""


def recommended(case: Case, log: Path, cores: int) -> list[tuple[dict[str, Any], Applied]]:
    """The first recommendations for a log, each with the case as it changes it.

    A claim has ``kind``, ``because``, ``saving``, ``how`` it was applied, and its ``change``, or None if it can't be
    tried."""
    text = (JOBS / case.file).read_text()
    found = []
    for each in ask("analyze", log)["recommendations"][:RANKS]:
        changed = apply(case, text, each, cores)
        claim = {key: each[key] for key in ("kind", "because", "saving")}
        found.append((claim | {"how": changed.how, "change": change_id(changed) if changed.tried else None}, changed))
    return found


def tuned(case: Case, log: Path, cores: int) -> tuple[dict[str, Any], Applied | None]:
    """The configuration of ``crystalperf tune`` for a log, and the case with it.

    Limits are the machine's cores and the memory of the case."""
    memory = case.conf.get("spark.driver.memory", "2g")
    answer = ask("tune", log, "--limits", f"cores={cores},memory={memory}")
    run = answer["runs"][0]
    claim = {
        "settings": [change for setting in answer["settings"] for change in setting["settings"]],
        **{key: run[key] for key in ("runtime_ms", "predicted_ms", "interval_ms")},
    }
    changed = configured((JOBS / case.file).read_text(), claim["settings"]) if claim["settings"] else None
    return claim | {"change": change_id(changed) if changed else None}, changed


def configured(text: str, settings: Sequence[Mapping[str, Any]]) -> Applied:
    """A program and its arguments with a tuned configuration: its lines on the command line, and those that the program
    sets also there."""
    arguments: list[str] = []
    for change in settings:
        name, value = change["name"], str(change["after"])
        if change["set_by"] in ("program", "unclear"):
            text = re.sub(rf'\.config\("{re.escape(name)}", "[^"]*"\)', f'.config("{name}", "{value}")', text)
        arguments += ["--master", value] if name == "spark.master" else ["--conf", f"{name}={value}"]
    return Applied(text, tuple(arguments), "tuned", True)


def ask(command: str, log: Path, *options: str) -> dict[str, Any]:
    """The answer of ``crystalperf COMMAND LOG OPTIONS --json``."""
    words = [sys.executable, "-m", "crystalperf", command, str(log), *options, "--json"]
    with TemporaryDirectory() as home:
        environment = os.environ | {"CRYSTALPERF_HOME": home, "PYTHONPATH": str(REPOSITORY)}
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise LabError(f"crystalperf {command} failed: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def read_claims(folder: Path) -> dict[str, dict[str, Any]]:
    """The kept claims of a folder by case: ``recommendations`` and ``tuned``."""
    file = folder / CLAIMS
    lines = file.read_text().splitlines() if file.exists() else []
    return {each["case"]: each for each in map(json.loads, lines)}


def write_claims(folder: Path, claims: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep claims by case."""
    partial = folder / f"{CLAIMS}.partial"
    partial.write_text("".join(json.dumps(claims[case]) + "\n" for case in sorted(claims)))
    partial.rename(folder / CLAIMS)
