"""Sources to index: a directory, a git revision, an archive or an installed Python distribution, read in place.

    open_source("spark", [Path("spark-core-sources.jar")])     archives: .jar .zip .whl, .tar .tar.gz .tgz .tar.xz …
    open_source("mine", [Path("/src/mine")])                   a directory
    open_source("mine", ["/src/mine@v1.2"])                    a revision of a git repository, without a checkout
    open_source("numpy", ["numpy"])                            an installed Python distribution

Archives are read member by member and never unpacked, so that a member named `../x` or a link cannot write anywhere.
The inflated size of a member is bounded.  Links are not followed, also not in directories.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import stat
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Literal

from crystalperf.indexer.parse import MAX_FILE_BYTES
from crystalperf.indexer.records import SUFFIXES, Language
from crystalperf.indexes.errors import BuildError
from crystalperf.indexes.names import split_archive

MAX_SOURCE_BYTES = 4 << 30
"""Maximum total size of the files of a source; the JDK's, the largest known one, has 0.2 GB."""

MAX_MEMBERS = 1_000_000
"""Maximum entries of an archive."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file: its path relative to the source root with '/', language and text."""

    file: str
    language: Language
    text: bytes


@dataclass(frozen=True)
class Source:
    """Files to index.

    revision    the git commits or versions, if known
    artifacts   names, without version, of the archives with the compiled classes of these sources on a class path
    origin      catalogue for a known package, user for a source that the user named
    """

    name: str
    locations: tuple[str, ...]
    revision: str | None
    readers: tuple[Callable[[list[tuple[str, str]]], Iterator[SourceFile]], ...] = field(repr=False)
    artifacts: tuple[str, ...] = ()
    origin: Literal["catalogue", "user"] = "user"

    def files(self, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
        """The files in a known language, in order of path within each location, each path and text once.

        Unreadable files are appended to `problems` as (file, sentence).
        """
        seen: dict[str, int] = {}
        total = 0
        for location, read in zip(self.locations, self.readers, strict=True):
            for each in read(problems):
                if each.file in seen:
                    if seen[each.file] == hash(each.text):
                        continue
                    # If two archives have different files with the same path, the second gets its archive's name.
                    each = SourceFile(f"{PurePosixPath(location).stem}/{each.file}", each.language, each.text)
                seen[each.file] = hash(each.text)
                total += len(each.text)
                if total > MAX_SOURCE_BYTES:
                    raise BuildError(
                        f"{self.name}: more than {MAX_SOURCE_BYTES >> 30} GB of source; index a part of it"
                    )
                yield each


def open_source(name: str, locations: Sequence[str | Path], revision: str | None = None) -> Source:
    """The source at these locations together.  Raises BuildError if a location is unreadable.

    `revision` is used if the locations have none.
    """
    opened = [_open(str(each)) for each in locations]
    revisions = [each for _, each in opened if each]
    return Source(
        name,
        tuple(str(each) for each in locations),
        ", ".join(dict.fromkeys(revisions)) or revision,
        tuple(reader for reader, _ in opened),
        artifacts=tuple(dict.fromkeys(artifact for artifact, _ in filter(None, map(_archive, locations)))),
    )


def filtered(
    source: Source, keep: Sequence[str] = (), skip: Sequence[str] = (), languages: Sequence[str] = ()
) -> Source:
    """The source without files whose path starts with one of `skip`.

    If `keep` or `languages` are given, it has only files whose path starts with one of `keep`, in one of `languages`.
    """

    def restrict(read: _Reader) -> _Reader:
        return lambda problems: (
            each
            for each in read(problems)
            if (not keep or each.file.startswith(tuple(keep)))
            and not each.file.startswith(tuple(skip))
            and (not languages or each.language in languages)
        )

    return replace(source, readers=tuple(restrict(each) for each in source.readers))


def _archive(location: str | Path) -> tuple[str, str] | None:
    path = Path(location)
    return split_archive(path.name) if path.suffix in (".jar", ".zip", ".whl", ".gz", ".tgz") else None


def language_of(file: str) -> Language | None:
    """The language by a file's suffix; None for a file that is not indexed."""
    if file.endswith(("package-info.java", "module-info.java")):
        return None
    return SUFFIXES.get(PurePosixPath(file).suffix)


_Reader = Callable[[list[tuple[str, str]]], Iterator[SourceFile]]


def _open(location: str) -> tuple[_Reader, str | None]:
    path = Path(location).expanduser()
    if path.is_dir():
        return (lambda problems: _read_directory(path, problems)), _git_revision(path, "HEAD")
    if path.is_file():
        if zipfile.is_zipfile(path):
            return (lambda problems: _read_zip(path, problems)), None
        try:
            with tarfile.open(path):
                pass
        except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
            language = language_of(path.name)
            if language is not None:
                return (lambda problems: _read_one(path, language, problems)), None
            raise BuildError(
                f"{location}: not a source archive (jar, zip, wheel or tar) nor a source file in a known language"
            ) from error
        return (lambda problems: _read_tar(path, problems)), None
    folder, at, revision = location.rpartition("@")
    if at and Path(folder).expanduser().is_dir():
        repository = Path(folder).expanduser()
        commit = _git_revision(repository, revision)
        if commit is None:
            raise BuildError(f"{location}: {folder} has no git revision '{revision}'")
        return (lambda problems: _read_git(repository, commit, problems)), commit
    if "/" not in location:
        try:
            distribution = metadata.distribution(location)
        except (metadata.PackageNotFoundError, ValueError):
            pass
        else:
            return (lambda problems: _read_distribution(distribution, problems)), distribution.version
    raise BuildError(f"{location}: no such directory, archive, path@revision or installed Python distribution to index")


def _accept(file: str, size: int, problems: list[tuple[str, str]]) -> Language | None:
    """The language of a file to read, else None; oversized and oddly named files are appended to `problems`."""
    language = language_of(file)
    if language is None:
        return None
    parts = PurePosixPath(file).parts
    if file.startswith("/") or ".." in parts or "\\" in file or "\0" in file:
        problems.append((file, "a path outside of the source; left out"))
        return None
    if size > MAX_FILE_BYTES:
        problems.append(
            (file, f"{size / 1e6:.1f} MB, more than the {MAX_FILE_BYTES / 1e6:.0f} MB that are parsed; left out")
        )
        return None
    return language


def _read_directory(root: Path, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each != "__pycache__")
        for name in sorted(names):
            path = Path(folder) / name
            file = path.relative_to(root).as_posix()
            if language_of(file) is None:
                continue
            yield from _read_path(path, file, problems)


def _read_path(path: Path, file: str, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            problems.append((file, "a link or device, not a file; left out"))
            return
        language = _accept(file, status.st_size, problems)
        if language is not None:
            yield SourceFile(file, language, path.read_bytes())
    except OSError as error:
        problems.append((file, f"cannot be read ({error.strerror}); left out"))


def _read_one(path: Path, language: Language, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    yield from _read_path(path, path.name, problems)


def _read_zip(path: Path, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = sorted(archive.infolist()[:MAX_MEMBERS], key=lambda member: member.filename)
            for member in members:
                if member.is_dir() or language_of(member.filename) is None:
                    continue
                if stat.S_ISLNK(member.external_attr >> 16):
                    problems.append((member.filename, "a link, not a file; left out"))
                    continue
                language = _accept(member.filename, member.file_size, problems)
                if language is None:
                    continue
                try:
                    # The declared size may be wrong: never inflate more than the parser accepts.
                    with archive.open(member) as stream:
                        text = stream.read(MAX_FILE_BYTES + 1)
                except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError) as error:
                    problems.append((member.filename, f"cannot be read from the archive ({error}); left out"))
                    continue
                if _accept(member.filename, len(text), problems):
                    yield SourceFile(member.filename, language, text)
    except (zipfile.BadZipFile, OSError) as error:
        raise BuildError(f"{path}: a damaged archive ({error}); fetch it again") from error


def _read_tar(path: Path, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    """The files of a tar, read once, in its order; the top folder of an sdist is not part of the paths."""
    inflated = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for number, member in enumerate(archive):
                inflated += member.size
                if number >= MAX_MEMBERS or inflated > MAX_SOURCE_BYTES:
                    problems.append((path.name, f"too large after {member.name}; the rest is left out"))
                    return
                if language_of(member.name) is None or member.isdir():
                    continue
                if not member.isfile():
                    problems.append((member.name, "a link or device, not a file; left out"))
                    continue
                language = _accept(member.name, member.size, problems)
                stream = archive.extractfile(member) if language else None
                if language and stream is not None:
                    file = member.name.removeprefix("./")
                    yield SourceFile(file.partition("/")[2] or file, language, stream.read(MAX_FILE_BYTES + 1))
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        problems.append((path.name, f"the archive is damaged ({error}); the rest of it is left out"))


def _read_git(repository: Path, commit: str, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    """The files of a commit, read from the object store: nothing is checked out, no hook or filter runs."""
    listing = _git(repository, "ls-tree", "-r", "-l", "-z", commit)
    chosen: list[tuple[str, Language, str]] = []
    for entry in listing.split(b"\0"):
        head, _, name = entry.partition(b"\t")
        file = name.decode("utf-8", "replace")
        if not head or language_of(file) is None:
            continue
        mode, kind, identity, size = head.decode().split()
        if kind != "blob" or mode == "120000":
            problems.append((file, "a link, not a file; left out"))
            continue
        if not size.isdigit():
            problems.append((file, "git lacks its text; left out"))
            continue
        language = _accept(file, int(size), problems)
        if language is not None:
            chosen.append((file, language, identity))
    command = [*_GIT, "-C", str(repository), "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_without_fetching()) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for file, language, identity in chosen:
            process.stdin.write(identity.encode() + b"\n")
            process.stdin.flush()
            header = process.stdout.readline().split()
            if len(header) != 3:
                problems.append((file, "git lacks its text; left out"))
                continue
            text = process.stdout.read(int(header[2]))
            process.stdout.read(1)
            yield SourceFile(file, language, text)
        process.stdin.close()


def _read_distribution(distribution: metadata.Distribution, problems: list[tuple[str, str]]) -> Iterator[SourceFile]:
    for each in sorted(distribution.files or (), key=str):
        file = each.as_posix()
        if language_of(file) is not None and not file.startswith("../"):
            yield from _read_path(Path(str(each.locate())), file, problems)


def _git_revision(path: Path, revision: str) -> str | None:
    """The commit of a revision; None outside of a repository's root, without git, or for an unknown revision."""
    if not (path / ".git").exists() and not (path / "objects").is_dir():
        return None
    try:
        found = _git(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except BuildError:
        return None
    return found.decode().strip()


_GIT = ("git", "-c", "protocol.allow=never", "-c", "core.fsmonitor=false")
"""The settings of a repository may name programs, to fetch missing objects or to watch files; these disable them."""


def _without_fetching() -> dict[str, str]:
    return {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}


def _git(repository: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(
            [*_GIT, "-C", str(repository), *arguments],
            check=True,
            capture_output=True,
            timeout=300,
            env=_without_fetching(),
        ).stdout
    except FileNotFoundError as error:
        raise BuildError("git is not installed; a path@revision needs it") from error
    except subprocess.SubprocessError as error:
        raise BuildError(f"{repository}: git {arguments[0]} failed") from error


def hash_file(file: SourceFile) -> bytes:
    """SHA-256 of a file's path and text, for the hash of a whole source."""
    return hashlib.sha256(file.file.encode() + b"\0" + file.text).digest()
