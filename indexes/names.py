"""Names as Scala writes them into class files: `+=` is `$plus$eq`.

The indexer encodes the names of classes, the query side decodes the names of frames; both use this one table
(scala.reflect.NameTransformer).
"""

from __future__ import annotations

import re

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
