"""Archives from Maven, each downloaded once into the lab's cache."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.machine.host import cache_dir

TIMEOUT_S = 600


def fetched(group: str, name: str, version: str, without: str) -> Path:
    """The jar of an artifact.  Raises LabError; `without` is the alternative in its text."""
    folder = cache_dir() / "maven"
    jar = folder / f"{name}-{version}.jar"
    if jar.exists():
        return jar
    if shutil.which("mvn") is None:
        raise LabError(f"Fetching {name} needs 'mvn'; install it with 'apt-get install maven', or {without}.")
    artifact = f"{group}:{name}:{version}"
    command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"Maven did not fetch {artifact} within {TIMEOUT_S} s; try again later, or {without}.") from None
    if done.returncode != 0 or not jar.exists():
        raise LabError(f"Maven could not fetch {artifact}; {without}.")
    return jar
