"""The hash of the code that made a cached result.  A version number is too coarse: checkouts of a release differ."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

_CODE = (".py", ".sql", ".toml", ".csv", ".j2", ".js", ".css")


@cache
def code_hash(*packages: str) -> str:
    """A hash of the contents of all code, queries and tables in these packages.

    Reading the packages that compute answers takes 13 ms of CPU.  Sizes and times would take 8 ms, and would miss an
    edit that changes neither.
    """
    digest = sha256()
    for package in packages:
        for name, file in sorted(_code(files(package)), key=lambda each: each[0]):
            content = file.read_bytes()
            digest.update(f"{package}/{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def _code(folder: Traversable, above: str = "") -> Iterator[tuple[str, Traversable]]:
    """Files of code below a folder, with their relative paths; the folder may be inside a ZIP."""
    for each in folder.iterdir():
        if each.name.endswith(_CODE):
            yield above + each.name, each
        elif each.is_dir():
            yield from _code(each, f"{above}{each.name}/")
