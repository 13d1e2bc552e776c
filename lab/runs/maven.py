"""Archives from Maven, downloaded once into the lab's cache: a single one, or one with all that it needs."""

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
    artifact = f"{group}:{name}:{version}"
    _maven(name, without, "dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}")
    if not jar.exists():
        raise LabError(f"Maven could not fetch {artifact}; {without}.")
    return jar


_PROJECT = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>crystalperf</groupId><artifactId>lab</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""


def fetched_all(group: str, name: str, version: str, without: str) -> Path:
    """The folder of the jars of an artifact and of those that it needs.

    Raises LabError; `without` is the alternative in its text.
    """
    folder = cache_dir() / "maven" / f"{name}-{version}"
    if folder.exists():
        return folder
    building = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    project = building / "pom.xml"
    project.write_text(_PROJECT.format(group=group, name=name, version=version), encoding="utf-8")
    options = ["-f", str(project), "-DincludeScope=runtime", f"-DoutputDirectory={building}"]
    _maven(name, without, "dependency:copy-dependencies", *options)
    building.rename(folder)
    return folder


def _maven(name: str, without: str, *arguments: str) -> None:
    """Run Maven.  Raises LabError."""
    if shutil.which("mvn") is None:
        raise LabError(f"Fetching {name} needs 'mvn'; install it with 'apt-get install maven', or {without}.")
    command = ["mvn", "-q", "-B", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise LabError(f"Maven did not fetch {name} within {TIMEOUT_S} s; try again later, or {without}.") from None
    if done.returncode != 0:
        raise LabError(f"Maven could not fetch {name}; {without}.")
