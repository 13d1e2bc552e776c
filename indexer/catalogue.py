"""Known packages by NAME-VERSION (`catalogue.toml`), and fetching them with the clients of their package managers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from crystalperf.indexer.sources import Source, filtered, open_source
from crystalperf.indexes.children import installed_module
from crystalperf.indexes.errors import BuildError
from crystalperf.indexes.exports import cache_folder, split_name

SECONDS_FOR_A_FETCH = 1800
_MAVEN_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_FETCHED = "fetched.json"
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


@dataclass(frozen=True)
class Package:
    """An entry of catalogue.toml, which documents the fields."""

    name: str
    origin: Literal["maven", "jdk", "python", "pypi"]
    languages: tuple[str, ...]
    licence: str
    artifacts: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    version: str | None = None


@cache
def catalogue() -> Mapping[str, Package]:
    """All known packages by name."""
    entries = tomllib.loads(files("crystalperf.indexer").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {
        name: Package(
            name,
            entry["from"],
            tuple(entry["languages"]),
            entry["licence"],
            **{key: tuple(entry.get(key, ())) for key in ("artifacts", "jars", "keep", "skip", "packages")},
            version=entry.get("version"),
        )
        for name, entry in entries.items()
    }


def known_source(index_name: str, problems: list[tuple[str, str]]) -> Source:
    """Fetch the sources of a known package named NAME-VERSION; missing parts are appended to `problems`.

    Raises BuildError for an unknown name, for a missing client, and if nothing could be fetched.
    """
    name, version = split_name(index_name)
    package = catalogue().get(name)
    if package is None:
        known = ", ".join(catalogue())
        raise BuildError(f"{index_name}: '{name}' is not a known package ({known}); give its source with --source")
    if not _VERSION.fullmatch(version):
        raise BuildError(f"{index_name}: '{version}' is not a version")
    if package.packages:
        return together(index_name, package, problems)
    locations: Sequence[str | Path]
    if package.origin == "maven":
        locations = _maven(package, version, problems)
    elif package.origin == "jdk":
        locations = [_jdk(index_name, version)]
    elif package.origin == "python":
        locations = [_python(index_name, version)]
    else:
        locations = [_pypi(each, version) for each in package.artifacts]
    source = open_source(index_name, locations, revision=_java_version(locations[0]) or version)
    names = [each.rpartition(":")[2] for each in package.artifacts]
    return replace(
        filtered(source, package.keep, package.skip, package.languages),
        artifacts=(*names, *package.jars),
        origin="catalogue",
    )


def together(index_name: str, package: Package, problems: list[tuple[str, str]]) -> Source:
    """The sources of all packages in a composite package; an unavailable one is left out with a warning.

    Raises BuildError for a version that is not listed, and if no package is available.
    """
    _, version = split_name(index_name)
    if version != package.version:
        raise BuildError(
            f"{index_name}: unknown version; {package.name} is a list of packages, and its only version is"
            f" {package.version}"
        )
    parts = {}
    for each in package.packages:
        try:
            parts[each] = known_source(each, problems)
        except BuildError as error:
            problems.append((each, f"left out: {error}"))
    if not parts:
        raise BuildError(f"{index_name}: the sources of its packages could not be fetched; {problems[-1][1]}")
    return _joined(index_name, parts)


def _joined(index_name: str, parts: Mapping[str, Source]) -> Source:
    """Sources of packages by NAME-VERSION as one, whose artifacts are ARTIFACT:VERSION."""
    return Source(
        index_name,
        tuple(location for part in parts.values() for location in part.locations),
        None,
        tuple(reader for part in parts.values() for reader in part.readers),
        artifacts=tuple(f"{each}:{split_name(name)[1]}" for name, part in parts.items() for each in part.artifacts),
        origin="catalogue",
    )


def source_at_hand(index_name: str) -> Source | None:
    """The sources of a known package if they were fetched before or are installed, else None."""
    name, version = split_name(index_name)
    package = catalogue().get(name)
    if package is None:
        return None
    if package.packages:
        parts = {each: source for each in package.packages if (source := source_at_hand(each))}
        return _joined(index_name, parts) if parts else None
    if package.origin in ("maven", "pypi"):
        folder = cache_folder() / "sources" / index_name
        fetched = sorted(each for each in folder.glob("*") if each.name != _FETCHED)
        if fetched:
            return filtered(open_source(index_name, fetched, version), package.keep, package.skip, package.languages)
        if package.origin == "maven":
            return None
        try:
            if any(metadata.version(each) != version for each in package.artifacts):
                return None
        except metadata.PackageNotFoundError:
            return None
    try:
        return known_source(index_name, [])
    except BuildError:
        return None


def class_archives(index_name: str, problems: list[tuple[str, str]]) -> list[Path]:
    """Fetch the archives with the class files of those sources of a known package that were fetched before.

    Empty for a package without class archives (Python packages, the JDK).  Raises BuildError as `known_source` does.
    """
    name, version = split_name(index_name)
    package = catalogue()[name]
    if package.packages:
        return [archive for each in package.packages for archive in class_archives(each, problems)]
    if package.origin != "maven":
        return []
    folder = cache_folder() / "classes" / index_name
    found = [each for each in package.artifacts if _sources_jar(index_name, each).is_file()]
    pending = [each for each in found if not (folder / f"{each.partition(':')[2]}-{version}.jar").is_file()]
    missing = _copy_all(pending, version, folder, None) if pending else []
    problems += [(each, f"no class files of version {version} in Maven's repositories; left out") for each in missing]
    return [folder / f"{each.partition(':')[2]}-{version}.jar" for each in found if each not in missing]


def _sources_jar(index_name: str, artifact: str) -> Path:
    """The path of the cached sources of an artifact (group:artifact)."""
    file = f"{artifact.partition(':')[2]}-{split_name(index_name)[1]}-sources.jar"
    return cache_folder() / "sources" / index_name / file


def _maven(package: Package, version: str, problems: list[tuple[str, str]]) -> list[Path]:
    """The -sources.jar of each artifact, from Maven's own cache or repository."""
    index_name = f"{package.name}-{version}"
    target = cache_folder() / "sources" / index_name
    kept = _kept(target, package)
    if kept is not None:
        problems += [(each, _lacking(version)) for each in package.artifacts if each not in kept]
        return [_sources_jar(index_name, each) for each in kept]
    missing = _copy_all(package.artifacts, version, target, "sources")
    problems += [(each, _lacking(version)) for each in missing]
    pending = [each for each in package.artifacts if each not in missing]
    found = [_sources_jar(index_name, each) for each in pending]
    if not found:
        raise BuildError(f"{package.name}-{version}: Maven has no sources of this version; check the version")
    (target / _FETCHED).write_text(json.dumps({"asked": package.artifacts, "found": pending}), encoding="utf-8")
    return found


def _kept(target: Path, package: Package) -> list[str] | None:
    """The artifacts found by an earlier fetch, if all still exist; None if they must be fetched again."""
    try:
        earlier = json.loads((target / _FETCHED).read_text(encoding="utf-8"))
        jars = {each.name for each in target.glob("*-sources.jar")}
        found = list(map(str, earlier["found"]))
        whole = len(jars) == len(found) and earlier["asked"] == list(package.artifacts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if whole else None


def _lacking(version: str) -> str:
    return f"no sources of version {version} in Maven's repositories; left out"


def _maven_client(index_name: str) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise BuildError(
            f"{index_name}: Maven (mvn) fetches these sources and is not installed; install it,"
            f" or download the -sources.jar files and name them with --source"
        )
    return maven


def _copy_all(artifacts: Sequence[str], version: str, target: Path, classifier: str | None) -> list[str]:
    """Copy the archives of these artifacts, with or without a classifier; returns those that do not exist."""
    maven = _maven_client(target.name)
    target.mkdir(parents=True, exist_ok=True)
    pending, missing = list(artifacts), list[str]()
    while pending:
        output = _run_maven(maven, pending, version, target, classifier)
        if output is None:
            break
        lacking = next(
            (each for each in pending if f"{each}:jar:{classifier + ':' if classifier else ''}" in output), None
        )
        if lacking is None:
            reason = next((line for line in output.split("\n") if line.startswith("[ERROR]")), "no reason given")
            raise BuildError(f"{target.name}: Maven failed: {reason.removeprefix('[ERROR] ')[:300]}")
        missing.append(lacking)
        pending.remove(lacking)
    return missing


def _run_maven(maven: str, artifacts: Sequence[str], version: str, target: Path, classifier: str | None) -> str | None:
    """Copy the archives; None on success, else Maven's output.  One call for all, because each start takes seconds."""
    classified = f"<classifier>{classifier}</classifier>" if classifier else ""
    items = "".join(
        f"<artifactItem><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version>{classified}</artifactItem>"
        for group, _, artifact in (each.partition(":") for each in artifacts)
    )
    group, artifact, plugin_version = _MAVEN_PLUGIN.split(":")
    project = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>crystalperf</groupId><artifactId>sources</artifactId><version>1</version><build><plugins><plugin>"
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{plugin_version}</version>"
        f"<configuration><outputDirectory>{escape(str(target))}</outputDirectory>"
        f"<artifactItems>{items}</artifactItems></configuration></plugin></plugins></build></project>"
    )
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(project, encoding="utf-8")
        done = _run([maven, "-B", "-f", str(pom), "dependency:copy"], folder)
    return None if done.returncode == 0 else done.stdout


def _jdk(index_name: str, version: str) -> Path:
    """src.zip of an installed JDK of the requested major version."""
    major = version.partition(".")[0]
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    homes += sorted(each for each in Path("/usr/lib/jvm").glob("*") if re.search(rf"(?<!\d){major}(?!\d)", each.name))
    for home in homes:
        for archive in (home / "lib/src.zip", home / "src.zip"):
            release = home / "release"
            text = release.read_text(encoding="utf-8") if release.is_file() else ""
            stated = re.search(r'JAVA_VERSION="(\d+)', text)
            if archive.is_file() and (stated is None or stated[1] == major):
                return archive
    raise BuildError(
        f"{index_name}: no src.zip of Java {major} under JAVA_HOME or /usr/lib/jvm; install it"
        f" (Debian: openjdk-{major}-source) or name it with --source"
    )


def _java_version(archive: str | Path) -> str | None:
    """The version of the JDK that contains a src.zip, None for any other archive."""
    if Path(archive).name != "src.zip":
        return None
    for release in (Path(archive).with_name("release"), Path(archive).parent.with_name("release")):
        if release.is_file() and (stated := re.search(r'JAVA_VERSION="([^"]+)"', release.read_text(encoding="utf-8"))):
            return stated[1]
    return None


def _python(index_name: str, version: str) -> Path:
    """The standard library of the running Python, or of another installed one of that version."""
    minor = ".".join(version.split(".")[:2])
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == minor:
        return Path(sysconfig.get_path("stdlib"))
    other = shutil.which(f"python{minor}")
    if other is None:
        raise BuildError(f"{index_name}: no Python {minor} is installed; name its library folder with --source")
    done = _run([other, "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"])
    return Path(done.stdout.strip())


def _pypi(name: str, version: str) -> str | Path:
    """The installed distribution of that version, else its wheel or sdist through pip."""
    try:
        if metadata.version(name) == version:
            return name
    except metadata.PackageNotFoundError:
        pass
    target = cache_folder() / "sources" / f"{name}-{version}"
    target.mkdir(parents=True, exist_ok=True)
    pattern = f"{name.replace('-', '_')}-{version}*"
    if not list(target.glob(pattern)):
        done = _run(
            installed_module(
                *("pip", "download", "--quiet", "--no-deps"),
                *("--only-binary", ":all:", "--dest", str(target), f"{name}=={version}"),
            )
        )
        if done.returncode != 0:
            lines = [line for line in done.stdout.split("\n") if line.startswith("ERROR")] or ["no reason given"]
            raise BuildError(f"{name}-{version}: pip could not fetch it: {lines[0][:300]}")
    return next(iter(sorted(target.glob(pattern))))


def _run(command: list[str], folder: str | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            text=True,
            errors="replace",
            timeout=SECONDS_FOR_A_FETCH,
        )
    except subprocess.TimeoutExpired as error:
        minutes = SECONDS_FOR_A_FETCH // 60
        raise BuildError(f"{Path(command[0]).name} did not finish within {minutes} minutes; try again") from error
