"""Names that the indexer writes and the query side reads: Scala's in class files, versions in names of archives."""

from __future__ import annotations

import re

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
_ENCODED = re.compile(
    "|".join(re.escape(each) for each in sorted(_DECODED, key=len, reverse=True)) + r"|\$u([0-9A-F]{4})"
)

_ARCHIVE = re.compile(r"(?P<artifact>[A-Za-z].*?)-(?P<version>\d+(?:\.\w+)*(?:-\d+)?)(?:[-.]\D.*)?", re.ASCII)


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
    """Artifact and version of an archive; None where its name tells none.

    >>> split_archive("netty-transport-native-epoll-4.1.118.Final-linux-x86_64.jar")
    ('netty-transport-native-epoll', '4.1.118.Final')
    """
    name = re.sub(r"\.(?:jar|zip|whl|tgz|tar\.gz)$", "", name)
    match = _ARCHIVE.fullmatch(name)
    return (match["artifact"], match["version"]) if match else None
