"""Names in class files and archives, shared by the indexer and the query side: Scala encodings, lambdas, versions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crystalperf.indexes.regex import regex

# How Scala writes operators into class files: `+=` is `$plus$eq` (scala.reflect.NameTransformer).
OPERATORS = {
    "~": "$tilde",
    "=": "$eq",
    "<": "$less",
    ">": "$greater",
    "!": "$bang",
    "#": "$hash",
    "%": "$percent",
    "^": "$up",
    "&": "$amp",
    "|": "$bar",
    "*": "$times",
    "/": "$div",
    "+": "$plus",
    "-": "$minus",
    ":": "$colon",
    "\\": "$bslash",
    "?": "$qmark",
    "@": "$at",
}

_DECODED = {encoded: plain for plain, encoded in OPERATORS.items()}
_ENCODED = regex("|".join(re.escape(each) for each in sorted(_DECODED, key=len, reverse=True)) + r"|\$u([0-9A-F]{4})")

_ARCHIVE = regex(r"(?P<artifact>[A-Za-z].*?)-(?P<version>\d+(?:\.\w+)*(?:-\d+)?)(?:[-.]\D.*)?", re.ASCII)

_JAVA_LAMBDA = regex(r"lambda\$(?P<of>.*)\$\d+")
_SCALA_LAMBDA = regex(r"\$anonfun\$(?P<of>.+?)(?:\$\d+)+(?:\$adapted)?|\$anonfun\$(?P<bare>\d+)?")
_COMPILED_SUFFIX = regex(
    r"(?:\$mc[A-Z]+\$sp|\$default\$\d+|\$lzycompute(?:\$\d+)?|\$lzyINIT\d+|\$extension\d*|\$adapted|\$impl)$"
)
_EXPANDED = regex(r"^(?:\w+\$)+\w+\$\$(?=.)")
_LOCAL_NUMBER = regex(r"(?<=[^$])\$\d+$")

LONGEST_NAME = 1_000
"""Maximum characters of a class or method name.  No compiler writes as many, but a forged recording may have a name of
80 000 parts, and the time of matching grows faster than the length."""


def encode(name: str) -> str:
    """A Scala name as the JVM sees it: `+=` → `$plus$eq`; other names stay."""
    if name.isidentifier():
        return name
    return "".join(OPERATORS.get(each, each) for each in name)


def decode(name: str) -> str:
    """A JVM name as Scala writes it: `$plus$eq` → `+=`; other names stay."""
    if "$" not in name:
        return name
    return _ENCODED.sub(lambda match: chr(int(match[1], 16)) if match[1] else _DECODED[match[0]], name)


def split_archive(name: str) -> tuple[str, str] | None:
    """Artifact and version of an archive; None if its name has no version.

    >>> split_archive("netty-transport-native-epoll-4.1.118.Final-linux-x86_64.jar")
    ('netty-transport-native-epoll', '4.1.118.Final')
    """
    name = re.sub(r"\.(?:jar|zip|whl|tgz|tar\.gz)$", "", name)
    match = _ARCHIVE.fullmatch(name)
    return (match["artifact"], match["version"]) if match else None


@dataclass(frozen=True, slots=True)
class Method:
    """The source function that a method name in a frame refers to."""

    name: str
    """Name in the source; `<init>` for constructors, '' if only the line number identifies the function."""
    is_lambda: bool
    """Whether the frame is a lambda within `name`."""


def demangle(method: str) -> Method:
    """The source function of a method name in a frame.

    >>> demangle("$anonfun$map$1"), demangle("com$acme$Flow$$x$lzycompute"), demangle("$plus$eq")
    (Method(name='map', is_lambda=True), Method(name='x', is_lambda=False), Method(name='+=', is_lambda=False))
    """
    if method == "<lambda>":
        return Method("", True)
    if "$" not in method or len(method) > LONGEST_NAME:
        return Method(method, False)
    if match := _JAVA_LAMBDA.fullmatch(method):
        return Method(_special(match["of"]), True)
    if match := _SCALA_LAMBDA.fullmatch(method):
        inner = demangle(match["of"]).name if match["of"] else ""
        return Method(_special(inner), True)
    if method == "$init$":
        return Method(method, False)
    name = method
    while (shorter := _COMPILED_SUFFIX.sub("", name)) != name:
        name = shorter
    name = _EXPANDED.sub("", name).removeprefix("super$")
    name = _LOCAL_NUMBER.sub("", name)
    if name.endswith("$") and len(name) > 1:
        name = name[:-1]
    return Method(decode(name), False)


def _special(name: str) -> str:
    """The JVM name for a part of a lambda's name, in which compilers write `new` for a constructor, for example."""
    return {"new": "<init>", "static": "<clinit>", "null": "", "$init": "$init$"}.get(name, name)
