"""Selects the indexes for the frames of a run, by the versions and archives that its log names.

    framework   NAME-4.0.1                   the index that the framework's own rule names
    user        acme-1.2                     an index of the user's own code, where it declares a class that was sampled
    library     jdk-17                       the Java version of the log
                netty-4.1.118.Final          an archive on the class path that has the index's sources
                jvm-libraries-1              several archives on it; without a class path, any library of the JVM
                python-3.11                  paths of Python frames; those of the framework's own Python too
                torch-2.15.0                 paths below site-packages; they do not say which version ran

Only local indexes are used, and of libraries only those that know a sampled frame; nothing is built or fetched.
The time of a stack is attributed to a library's function only if it has no function of the framework or the user.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Literal

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.exports import Available, available, closest, facts_of, is_name, split_name, unreadable
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.names import split_archive
from crystalperf.indexes.regex import regex
from crystalperf.query.attribution.code.names import is_python, original
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.inputs.registry import readable

Kind = Literal["framework", "user", "library"]

_PYTHON_FOLDER = regex(r"[/\\]python(\d{1,9}\.\d{1,9})[/\\]", re.ASCII)
_PYTHON_PACKAGE = regex(r"[/\\](?:site|dist)-packages[/\\](\w{1,100})[/\\]", re.ASCII)
_VERSION = regex(r"\s*v?([0-9][A-Za-z0-9_.+-]{0,100})")


MUCH = 0.05
"""Minimum share of the time sampled in tasks for unindexed code to be reported."""

_RUNTIME = regex(r"(java|javax|jdk|sun|com\.sun|scala)\.|\$|lib[\w+-]+\.so|\[|.*/")
_SHARED_ROOTS = frozenset(
    ["org.apache", "org.codehaus", "org.eclipse", "com.google", "com.amazonaws", "io.github", "com.github"]
)
"""Package prefixes that many owners share."""

LIBRARIES = {
    "com.esotericsoftware": "kryo",
    "com.fasterxml": "jackson",
    "com.github.luben": "zstd-jni",
    "com.google.common": "guava",
    "com.google.protobuf": "protobuf",
    "com.univocity": "univocity-parsers",
    "io.netty": "netty",
    "it.unimi": "fastutil",
    "net.jpountz": "lz4-java",
    "org.apache.arrow": "arrow",
    "org.apache.avro": "avro",
    "org.apache.hadoop": "hadoop-client",
    "org.apache.kafka": "kafka-clients",
    "org.apache.logging": "log4j",
    "org.apache.orc": "orc",
    "org.apache.parquet": "parquet",
    "org.apache.pekko": "pekko",
    "org.apache.thrift": "thrift",
    "org.codehaus.commons": "janino",
    "org.codehaus.janino": "janino",
    "org.eclipse.jetty": "jetty",
    "org.roaringbitmap": "roaringbitmap",
    "org.rocksdb": "rocksdbjni",
    "org.slf4j": "slf4j",
    "org.xerial": "snappy-java",
    "py4j": "py4j",
    "tensorflow": "tensorflow",
    "torch": "torch",
}
"""Packages of libraries whose sources the indexer can fetch, with the indexer's names."""


@frozen
class IndexMatch:
    """The local index that is used for the wanted one; `found` is None if there is no index of that package."""

    wanted: str
    found: str | None
    kind: Kind
    is_exact: bool
    """Whether its line numbers are those of the code that ran."""


@frozen
class ProgramVersions:
    """Versions and archives of the program that ran, from its log."""

    java_version: str | None
    """17.0.15 (Debian)"""
    archives: Sequence[str]
    """Archives of the class path, without .jar: netty-common-4.1.118.Final"""
    framework_version: str | None


def fitting(
    framework: ReadableFramework, ran: ProgramVersions, classes: Collection[str], chosen: Sequence[str] = ()
) -> list[IndexMatch]:
    """The indexes for a run whose frames have these classes (or Python paths), the framework's first, then the user's.

    Libraries without an index are left out without notice: a class path has hundreds.  If the user names the
    `chosen` indexes, only those are returned.
    """
    if chosen:
        return [IndexMatch(each, each, _kind(each, framework.name), True) for each in chosen]
    broken = unreadable()
    names = {each.name for each in available() if each.origin == "prebuilt" or each.name not in broken}
    framework_names = [each for each in framework.reader.frames.sources(ran.framework_version) if is_name(each)]
    stated = _VERSION.match(ran.framework_version or "")
    fits = [_fit(name, names, "framework") for name in framework_names]
    taken = {split_name(name)[0] for name in framework_names}
    own, libraries = [], []
    named = {*readable(), *(["jdk"] if ran.java_version else [])}
    in_python = {match[1] for each in classes if (match := _PYTHON_PACKAGE.search(each))}
    in_python -= {package for _, package in framework.reader.frames.names.python}
    versions = dict(reversed([found for each in ran.archives if (found := split_archive(each))]))
    for index in _newest([each for each in available() if each.name in names]):
        package, _ = split_name(index.name)
        if package in taken:
            continue
        facts = _facts(index)
        artifacts = _listed(facts.get("source_artifacts", "[]"))
        version = next((versions[each] for each in artifacts if each in versions), None)
        if facts.get("source_origin") == "user":
            own.append(_fit(f"{package}-{version}" if version else index.name, names, "user"))
        elif version is not None:
            libraries.append(_fit(f"{package}-{version}", names, "library"))
        elif pinned := dict(each.split(":", 1) for each in artifacts if ":" in each):
            libraries += _of_several(index.name, pinned, versions)
        elif (package in in_python and _has(facts, "python")) or (
            not ran.archives and package not in named and _has(facts, "java", "scala")
        ):
            libraries.append(IndexMatch(index.name, index.name, "library", False))
    languages = [
        *_java(ran.java_version),
        *_python(classes, stated[1] if stated else None, framework.reader.frames.names.python),
    ]
    spoken = [_fit(name, names, "library", version) for name, version in languages]
    return [*fits, *own, *(each for each in [*spoken, *libraries] if each.found is not None)]


def _of_several(index_name: str, pinned: Mapping[str, str], versions: Mapping[str, str]) -> list[IndexMatch]:
    """The index of several libraries, if one of them is on the class path or the class path is unknown.

    It is exact if the class path has none of the libraries in another version.
    """
    pinned = dict(found for each in pinned.items() if (found := split_archive("-".join(each))))
    on_path = {artifact: versions[artifact] for artifact in pinned if artifact in versions}
    if versions and not on_path:
        return []
    others = [f"{artifact}-{version}" for artifact, version in on_path.items() if pinned[artifact] != version]
    return [IndexMatch(others[0] if others else index_name, index_name, "library", bool(on_path) and not others)]


def _has(facts: Mapping[str, str], *languages: str) -> bool:
    """Whether an index has sources in one of these languages."""
    return any(f'"{each}"' in facts.get("source_files", "") for each in languages)


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _kind(name: str, framework: str) -> Kind:
    if split_name(name)[0] == framework:
        return "framework"
    index = next((each for each in available() if each.name == name), None)
    return "library" if index is not None and _facts(index).get("source_origin") == "catalogue" else "user"


def stand_ins(fits: Sequence[IndexMatch]) -> list[str]:
    """`jdk-17 for jdk-8` for each index of another version than the one that ran; flink-1.20.3 is one of flink-1.20."""
    return [
        f"{each.found} for {each.wanted}"
        for each in fits
        if each.found not in (None, each.wanted) and not str(each.found).startswith(f"{each.wanted}.")
    ]


def _fit(name: str, at_hand: set[str], kind: Kind, exact: str | None = None) -> IndexMatch:
    """The fit of a name; `exact` is the version that ran, if the name has only a part of it (jdk-17 for 17.0.15)."""
    found = name if name in at_hand else closest(name, sorted(at_hand))
    is_exact = found == name
    if is_exact and exact is not None:
        index = next(each for each in available() if each.name == name)
        is_exact = _facts(index).get("source_revision") == exact
    return IndexMatch(name, found, kind, is_exact)


def _java(version: str | None) -> list[tuple[str, str]]:
    match = re.match(r"(?:1\.)?(\d{1,9})[\w.+-]*", version or "", re.ASCII)
    return [(f"jdk-{match[1]}", match[0])] if match else []


def _python(
    classes: Iterable[str], version: str | None, packages: Sequence[tuple[str, str]]
) -> list[tuple[str, str | None]]:
    """The standard library and the framework's own packages, if frames of Python were sampled."""
    paths = [each for each in classes if is_python(each)]
    if not paths:
        return []
    python = next((match[1] for each in paths if (match := _PYTHON_FOLDER.search(each))), "3")
    found: list[tuple[str, str | None]] = [(f"python-{python}", None)]
    for folder, package in packages:
        if version and any(folder in each for each in paths):
            found.append((f"{package}-{version}", None))
    return found


def _newest(indexes: Sequence[Available]) -> list[Available]:
    """One index of each package: the user's latest build, else the highest version."""
    best: dict[str, tuple[Any, Available]] = {}
    for each in indexes:
        package, version = split_name(each.name)
        numbers = [int(number) for number in re.findall(r"\d+", version)]
        rank = (each.origin == "built", _facts(each).get("built_at", "") if each.origin == "built" else "", numbers)
        if package not in best or rank > best[package][0]:
            best[package] = (rank, each)
    return [index for _, index in best.values()]


def _facts(index: Available) -> dict[str, str]:
    """The metadata of an index; empty for an unreadable one, which then fits no run."""
    try:
        return _read_facts(index, index.path.stat().st_mtime_ns)
    except (CrystalPerfError, OSError):
        return {}


@cache
def _read_facts(index: Available, changed_ns: int) -> dict[str, str]:
    return facts_of(index)


def package_prefix(class_name: str) -> str | None:
    """The prefix of a package that identifies its owner: com.acme; None for the JVM's own classes, or no package.

    A relocated ('shaded') class has the prefix of its original package: it.unimi for
    shaded.parquet.it.unimi.dsi.fastutil.  A path of Python has that of its folder in site-packages: torch.
    """
    if match := _PYTHON_PACKAGE.search(class_name):
        return match[1]
    class_name = original(class_name) or class_name
    if _RUNTIME.match(class_name) or "." not in class_name:
        return None
    parts = class_name.split(".")[:-1]
    packages = list(takewhile(lambda part: not part[:1].isupper(), parts))
    return ".".join(packages[: 3 if ".".join(packages[:2]) in _SHARED_ROOTS else 2]) or None


def library_of(prefix: str) -> str | None:
    """The library of packages with this prefix, by the indexer's name; None for others."""
    return next((name for start, name in LIBRARIES.items() if f"{prefix}.".startswith(f"{start}.")), None)


def unknown_code(stacks: Iterable[tuple[Sequence[str], float]]) -> tuple[str, float] | None:
    """The package prefix with the most time, and its share; None if the share is below MUCH.

    `stacks` has, for each stack, the classes of the frames above the attributed one that no index knows, leaf first,
    and the time sampled in it.
    """
    times: dict[str, float] = defaultdict(float)
    total = 0.0
    for classes, time_ms in stacks:
        total += time_ms
        prefix = next((found for each in classes if (found := package_prefix(each))), None)
        if prefix is not None:
            times[prefix] += time_ms
    if not times or not total:
        return None
    prefix, time_ms = max(times.items(), key=lambda item: (item[1], item[0]))
    return (prefix, time_ms / total) if time_ms >= MUCH * total else None
