"""Sources of every kind, and hostile archives: nothing is ever written, and what is left out is named."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refusals import refused

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer import catalogue, sources
from crystalperf.indexer.sources import filtered, open_source
from crystalperf.indexes.errors import BuildError
from crystalperf.indexes.exports import split_name

SCALA = b"object A { def f = 1 }\n"


def files(location: Path | str, problems: list[tuple[str, str]] | None = None) -> dict[str, bytes]:
    source = open_source("mine-1", [location])
    return {each.file: each.text for each in source.files(problems if problems is not None else [])}


def test_a_directory_without_following_links(tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_bytes(b"password = 1\n")
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "a/B.scala").write_bytes(SCALA)
    (root / "a/notes.txt").write_text("no source")
    (root / "a/link.py").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.py")
    problems: list[tuple[str, str]] = []
    assert files(root, problems) == {"a/B.scala": SCALA}
    assert [file for file, _ in sorted(problems)] == ["a/link.py", "pipe.py"]


def test_a_zip_is_read_in_place_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "mine-sources.jar"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/A.scala", SCALA)
        archive.writestr("../escape.py", b"x = 1")
        archive.writestr("/absolute.py", b"x = 1")
        archive.writestr("a/../../b.py", b"x = 1")
        archive.writestr("bomb.java", b" " * 200_000_000)
        link = zipfile.ZipInfo("link.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("package-info.java", b"package a;")
    assert path.stat().st_size < 1_000_000
    problems: list[tuple[str, str]] = []
    assert files(path, problems) == {"a/A.scala": SCALA}
    assert set(dict(problems)) == {"../escape.py", "/absolute.py", "a/../../b.py", "bomb.java", "link.py"}
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine-sources.jar"]


def test_a_zip_whose_sizes_lie_is_still_bounded(tmp_path: Path) -> None:
    path = tmp_path / "lie.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.py", b" " * 50_000_000)
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (100).to_bytes(4, "little")  # uncompressed size in the directory
    path.write_bytes(data)
    problems: list[tuple[str, str]] = []
    found = files(path, problems)
    assert sum(map(len, found.values())) <= sources.MAX_FILE_BYTES


def test_damaged_archives_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cut.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A.scala", SCALA * 100)
        archive.writestr("B.scala", SCALA)
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[60:70] = b"\xff" * 10
    path.write_bytes(damaged)
    problems: list[tuple[str, str]] = []
    assert files(path, problems) == {"B.scala": SCALA}
    assert len(problems) == 1
    path.write_bytes(whole[:200])
    with refused(BuildError, path):
        files(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_member_is_left_out(tmp_path: Path, method: int) -> None:
    path = tmp_path / "thing-1.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a/Bad.scala", random.Random(1).randbytes(20_000))
        archive.writestr("a/Good.scala", SCALA)
    content = bytearray(path.read_bytes())
    content[1_000:1_020] = bytes(20)
    path.write_bytes(content)
    problems: list[tuple[str, str]] = []
    assert [each.file for each in open_source("thing-1", [path]).files(problems)] == ["a/Good.scala"]
    assert [file for file, _ in problems] == ["a/Bad.scala"]


def test_an_sdist_and_its_hostile_members(tmp_path: Path) -> None:
    path = tmp_path / "mine-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (("mine-1.0/mine/a.py", b"x = 1\n"), ("../../escape.py", b"x = 1\n")):
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        link = tarfile.TarInfo("mine-1.0/passwd.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    problems: list[tuple[str, str]] = []
    assert files(path, problems) == {"mine/a.py": b"x = 1\n"}
    assert set(dict(problems)) == {"../../escape.py", "mine-1.0/passwd.py"}


def test_a_tar_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "cut-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("cut-1.0/a.py", "cut-1.0/b.py"):
            member = tarfile.TarInfo(name)
            member.size = 50_000
            archive.addfile(member, io.BytesIO(random.Random(name).randbytes(50_000)))
    path.write_bytes(path.read_bytes()[:70_000])
    problems: list[tuple[str, str]] = []
    assert list(files(path, problems)) == ["a.py"]
    assert "damaged" in problems[-1][1]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_git_revision_without_a_checkout(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init")
    (tmp_path / "A.scala").write_bytes(SCALA)
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    git("add", ".")
    git("commit", "-m", "one")
    git("tag", "v1")
    (tmp_path / "A.scala").write_bytes(b"object Other\n")
    git("commit", "-am", "two")
    problems: list[tuple[str, str]] = []
    source = open_source("mine-1", [f"{tmp_path}@v1"])
    assert [(each.file, each.text) for each in source.files(problems)] == [("A.scala", SCALA)]
    assert source.revision is not None
    assert len(source.revision) == 40
    assert [file for file, _ in problems] == ["link.py"]
    for revision in ("v9", "--output=x"):
        with refused(BuildError, revision):
            open_source("mine-1", [f"{tmp_path}@{revision}"])


def test_an_installed_distribution() -> None:
    found = files("pytest")
    assert "_pytest/python.py" in found
    assert not any(name.startswith("..") for name in found)


def test_two_archives_with_files_of_one_path(tmp_path: Path) -> None:
    for name, text in (("one.jar", SCALA), ("two.jar", b"object B\n"), ("three.jar", SCALA)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("a/A.scala", text)
    source = open_source("mine-1", [tmp_path / each for each in ("one.jar", "two.jar", "three.jar")])
    assert {each.file: each.text for each in source.files([])} == {"a/A.scala": SCALA, "two/a/A.scala": b"object B\n"}
    assert [each.file for each in filtered(source, skip=["a/"]).files([])] == []
    assert len(list(filtered(source, keep=["a/"]).files([]))) == 2


@pytest.mark.parametrize("location", ["/no/such/place", "no-such-distribution-xyz"])
def test_nothing_there(location: str) -> None:
    with refused(BuildError, location):
        open_source("mine-1", [location])


def test_file_that_is_not_a_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    with refused(BuildError, path):
        open_source("mine-1", [path])


def test_the_catalogue_is_complete() -> None:
    packages = catalogue.catalogue()
    wanted = (
        "spark flink jdk scala-library netty hadoop-client parquet avro orc kryo commons-compress snappy-java"
        " lz4-java zstd-jni kafka-clients python pyspark tensorflow torch"
    )
    assert set(wanted.split()) <= set(packages)
    for package in packages.values():
        assert package.licence
        assert package.languages
        assert package.origin in ("jdk", "python") or package.artifacts or package.packages
        assert {split_name(each)[0] for each in package.packages} <= set(packages)


def test_without_maven_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with refused(BuildError, "Maven"):
        catalogue.known_source("kryo-4.0.2", [])


def test_unknown_packages_and_versions() -> None:
    with refused(BuildError, "nonesuch"):
        catalogue.known_source("nonesuch-1.0", [])
    with refused(BuildError, "src.zip", 999):
        catalogue.known_source("jdk-999", [])


def test_maven_names_what_a_version_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Maven that has one artifact of two, as Maven Central has of some versions."""
    maven = tmp_path / "mvn"
    maven.write_text(
        "#!/bin/sh\n"
        'pom="$3"\n'
        'if grep -q "<artifactId>kryo<" "$pom"; then\n'
        '  echo "[ERROR] Could not find artifact com.esotericsoftware:kryo:jar:sources:9.9 in central"; exit 1\n'
        "fi\n"
        'folder=$(sed -n "s/.*<outputDirectory>\\(.*\\)<.outputDirectory>.*/\\1/p" "$pom")\n'
        'if grep -q "<classifier>sources<" "$pom"; then kind=-sources; fi\n'
        f'cp {tmp_path}/good.jar "$folder/kryo-shaded-9.9$kind.jar"\n'
    )
    maven.chmod(0o755)
    with zipfile.ZipFile(tmp_path / "good.jar", "w") as archive:
        archive.writestr("a/A.java", b"class A { void f() {} }")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    problems: list[tuple[str, str]] = []
    source = catalogue.known_source("kryo-9.9", problems)
    assert [each.file for each in source.files(problems)] == ["a/A.java"]
    assert [file for file, _ in problems] == ["com.esotericsoftware:kryo"]

    classes = catalogue.class_archives("kryo-9.9", problems)
    assert [each.name for each in classes] == ["kryo-shaded-9.9.jar"], "those whose sources are there"
    assert classes[0].is_file()
    assert len(problems) == 1

    maven.write_text("#!/bin/sh\nexit 1\n")
    again: list[tuple[str, str]] = []
    assert [each.file for each in catalogue.known_source("kryo-9.9", again).files(again)] == ["a/A.java"]
    assert again == problems, "what was fetched is not asked for again"


def test_a_list_of_packages_is_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in the version that the list states; a package that cannot be had is left out with a warning."""

    def fetched(name: str, problems: list[tuple[str, str]]) -> sources.Source:
        if name.startswith("kryo"):
            raise BuildError("there is none")
        folder = tmp_path / name
        folder.mkdir()
        (folder / "Thing.java").write_text(f"class Thing {{ int {name.partition('-')[0]}() {{ return 1; }} }}")
        return replace(open_source(name, [folder]), artifacts=(name.partition("-")[0],))

    listed = catalogue.Package(
        "both", "maven", ("java",), "MIT", packages=("slf4j-2.0", "kryo-4", "guava-33.4.0-jre"), version="1"
    )
    monkeypatch.setattr("crystalperf.indexer.catalogue.known_source", fetched)
    problems: list[tuple[str, str]] = []
    source = catalogue.together("both-1", listed, problems)
    assert source.artifacts == ("slf4j:2.0", "guava:33.4.0-jre")
    assert [file for file, _ in problems] == ["kryo-4"]
    assert len(list(source.files([]))) == 2
    with refused(BuildError, "both", 1):
        catalogue.together("both-2", listed, [])
