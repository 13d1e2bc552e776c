"""Fetch the sources of every labelled library.

    python -m crystalperf.indexer.labels.fetch DIR [--only NAME]… [--jars JARS]

Each library becomes DIR/NAME/ with source files only; existing folders are not changed.  The command needs mvn for the
JVM libraries, pip for the Python ones, and apt-get (a Debian bookworm machine, no root) for the rest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from xml.sax.saxutils import escape

from crystalperf.indexer.labels.libraries import Library, libraries
from crystalperf.indexes.children import installed_module
from crystalperf.indexes.errors import BuildError, SettingError, report_errors

_MARK = ".version"
# Security updates of source packages are not needed: their upstream tarball is the same.
_DEBIAN_SOURCES = """\
deb {mirror} bookworm main
deb-src {mirror} bookworm main
deb {mirror}-security bookworm-security main
"""


def fetch(folder: Path, names: frozenset[str] = frozenset()) -> None:
    """Fetch the sources of the named libraries, or of all.  Raises BuildError with the tool's last line."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {library.name for library in libraries()}
    if unknown := names - known:
        raise SettingError(
            f"unknown library: {', '.join(sorted(unknown))}; known libraries: {', '.join(sorted(known))}"
        )
    chosen = [
        library for library in libraries() if (not names or library.name in names) and not _is_there(library, folder)
    ]
    # In the parent of the target, so that the final rename stays on one file system.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        work = Path(scratch)
        _fetch_maven([library for library in chosen if library.maven], folder, work)
        for library in chosen:
            if library.pypi:
                _fetch_pypi(library, folder, work)
        debian = [library for library in chosen if library.debian_source or library.debian_binary]
        if debian:
            options = _apt_options(work)
            for library in debian:
                _fetch_debian(library, folder, work, options)


def _is_there(library: Library, folder: Path) -> bool:
    mark = folder / library.name / _MARK
    return mark.is_file() and mark.read_text(encoding="utf-8") == library.version


def fetch_archives(folder: Path, names: frozenset[str] = frozenset()) -> None:
    """Fetch the class files of the named JVM libraries, or of all, to `folder`/NAME; existing folders stay as they are.

    Raises BuildError with Maven's last line.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in libraries() if each.maven and (not names or each.name in names)]
    pending = [each for each in chosen if not (folder / each.name).is_dir()]
    if not pending:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
        work = Path(scratch)
        _copy_from_maven(pending, work, work / "jars", None)
        for library in pending:
            (work / "jars" / library.name).rename(folder / library.name)


def _fetch_maven(chosen: list[Library], folder: Path, work: Path) -> None:
    if not chosen:
        return
    jars = work / "jars"
    _copy_from_maven(chosen, work, jars, "sources")
    for library in chosen:
        target = work / library.name
        for coordinate in library.maven:
            artifact = coordinate.split(":")[1]
            _unzip(jars / library.name / f"{artifact}-{library.version}-sources.jar", target, f"{artifact}/", library)
        _finish(library, target, folder)


def _copy_from_maven(chosen: list[Library], work: Path, target: Path, classifier: str | None) -> None:
    """Copy the archives of libraries to `target`/NAME.

    One Maven project copies all of them, because starting Maven once per artifact takes minutes."""
    kind = f"<classifier>{classifier}</classifier>" if classifier else ""
    items = "".join(
        f"<artifactItem><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(library.version)}</version>{kind}"
        f"<outputDirectory>{escape(str(target / library.name))}</outputDirectory></artifactItem>"
        for library in chosen
        for group, artifact in (coordinate.split(":") for coordinate in library.maven)
    )
    project = work / "pom.xml"
    project.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>sources</groupId><artifactId>sources</artifactId>"
        "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
        "<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>"
        f"<version>3.6.1</version><configuration><artifactItems>{items}</artifactItems></configuration>"
        "</plugin></plugins></build></project>",
        encoding="utf-8",
    )
    _call(["mvn", "-B", "-q", "-f", str(project), "dependency:copy"], "Maven", work)


def _fetch_pypi(library: Library, folder: Path, work: Path) -> None:
    target, downloads = work / library.name, work / f"{library.name}-downloads"
    for package in library.pypi:
        pip = installed_module("pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")
        # The wheel of a fixed interpreter version, whichever runs this: wheels for other versions may lack files.
        pip += ["--python-version=3.11", f"--dest={downloads}", f"{package}=={library.version}"]
        if library.platform:
            pip.append(f"--platform={library.platform}")
        _call(pip, "pip", work)
        for wheel in sorted(downloads.glob("*.whl")):
            _unzip(wheel, target, "", library)
            wheel.unlink()
    _finish(library, target, folder)


def _apt_options(work: Path) -> list[str]:
    """apt-get's options for private package lists: enabling source packages system-wide would need root."""
    mirror = os.environ.get("DEBIAN_MIRROR") or _system_mirror()
    for name in ("lists/partial", "archives/partial"):
        (work / "apt" / name).mkdir(parents=True)
    sources = work / "apt" / "sources.list"
    sources.write_text(_DEBIAN_SOURCES.format(mirror=mirror), encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": work / "apt" / "lists",
        "Dir::Cache": work / "apt",
        "Dir::Cache::Archives": work / "apt" / "archives",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "true",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _call(["apt-get", *options, "-qq", "update"], "apt-get", work)
    return options


def _system_mirror() -> str:
    """The Debian archive in this machine's package lists."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        listed = []
    archives = [each for each in listed if each.rstrip("/").endswith("/debian")]
    if not archives:
        raise BuildError("apt-get has no Debian archive for sources; name one in DEBIAN_MIRROR")
    return archives[0].rstrip("/")


def _fetch_debian(library: Library, folder: Path, work: Path, options: list[str]) -> None:
    target, downloads = work / library.name, work / f"{library.name}-downloads"
    downloads.mkdir()
    for package in library.debian_source:
        _call(["apt-get", *options, "-qq", "--download-only", "source", package], "apt-get", downloads)
        tarball = next(downloads.glob(f"{package}_*.orig.tar.*"))
        if not tarball.name.startswith(f"{package}_{library.version}"):
            _warn_of_version(library, tarball.name)
        _untar(tarball, target, library)
    for package in library.debian_binary:
        pinned = f"{package}={library.version}"
        try:
            _call(["apt-get", *options, "-qq", "download", pinned], "apt-get", downloads)
        except BuildError:
            # Debian drops older versions; rebuild.py leaves out functions that changed since then, by their hash.
            _call(["apt-get", *options, "-qq", "download", package], "apt-get", downloads)
            _warn_of_version(library, next(downloads.glob("*.deb")).name)
        unpacked = downloads / "unpacked"
        _call(["dpkg-deb", "--extract", str(next(downloads.glob("*.deb"))), str(unpacked)], "dpkg-deb", downloads)
        _unzip(unpacked / library.archive, target, "", library)
    _finish(library, target, folder)
    shutil.rmtree(downloads)


def _warn_of_version(library: Library, found: str) -> None:
    print(
        f"{library.name}: Debian no longer offers {library.version}, took {found}; functions that changed are left out",
        file=sys.stderr,
    )


def _unzip(archive: Path, target: Path, prefix: str, library: Library) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if not name.endswith("/") and library.is_source(prefix + name):
                _write(target, prefix + name, opened.read(name))


def _untar(archive: Path, target: Path, library: Library) -> None:
    with tarfile.open(archive) as opened:
        for member in opened:
            name = "/".join(PurePosixPath(member.name).parts[1:])  # without the tarball's top folder
            if member.isfile() and library.is_source(name) and (source := opened.extractfile(member)):
                _write(target, name, source.read())


def _write(target: Path, name: str, content: bytes) -> None:
    path = target / name
    if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
        raise BuildError(f"an archive of {target.name} contains the unsafe path {name}; fetch it again")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _finish(library: Library, target: Path, folder: Path) -> None:
    if not target.is_dir():
        raise BuildError(
            f"{library.name} {library.version} contains no source file; correct its entry in libraries.toml"
        )
    (target / _MARK).write_text(library.version, encoding="utf-8")
    final = folder / library.name
    if final.exists():
        shutil.rmtree(final)
    target.rename(final)
    print(f"{library.name} {library.version}: {sum(1 for _ in _sources(final))} files", file=sys.stderr)


def _sources(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.name != _MARK)


def _call(command: list[str], tool: str, folder: Path) -> None:
    if not shutil.which(command[0]):
        raise BuildError(f"{command[0]} is missing: install it, it fetches the sources")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr + done.stdout).split("\n") if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or line.startswith("E:")]
        raise BuildError(f"{tool} failed: {(errors or lines or ['no output'])[0].strip()}")


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.labels.fetch", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="where the sources go; about 2 GB")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one library (may be repeated)")
    parser.add_argument(
        "--jars", type=Path, metavar="DIR", help="fetch the JVM libraries' class files to this folder, too"
    )
    arguments = parser.parse_args()
    fetch(arguments.folder, frozenset(arguments.only))
    if arguments.jars is not None:
        fetch_archives(arguments.jars, frozenset(arguments.only))


if __name__ == "__main__":
    sys.exit(main())
