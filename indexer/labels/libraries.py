"""The libraries with labelled functions: libraries.toml as records."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from crystalperf.indexer.records import Language
from crystalperf.indexes.errors import InputError

SUFFIXES: dict[str, tuple[str, ...]] = {
    "scala": (".scala", ".java"),  # Scala projects keep their lowest layers in Java
    "java": (".java",),
    "python": (".py",),
    "cpp": (".c", ".cc", ".cpp", ".h"),  # C is read by the C++ grammar
}
"""The source files of a library, by its main language."""

LANGUAGES: dict[str, Language] = {
    ".scala": "scala",
    ".java": "java",
    ".py": "python",
    ".c": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".h": "cpp",
}
"""The language of one file."""


@dataclass(frozen=True)
class Library:
    """One source of functions; of `maven`, `pypi`, `debian_source` and `debian_binary` exactly one is set."""

    name: str
    version: str
    licence: str
    language: str
    set: str  # train, dev-spark, dev-flink or dev-tensorflow
    draw: int = 1  # of set train: the draw (sample.py) its functions were chosen in
    part: str = ""  # of the second draw: what it is drawn together with, if not with all of its language
    maven: tuple[str, ...] = ()  # group:artifact
    pypi: tuple[str, ...] = ()
    platform: str = ""  # of pypi: the wheel of this platform, whatever machine fetches it
    debian_source: tuple[str, ...] = ()
    debian_binary: tuple[str, ...] = ()
    archive: str = ""  # of debian_binary: the zip inside the package that holds the sources
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = field(default=())

    def is_source(self, file: str) -> bool:
        """Whether a path within the library is one of its source files."""
        return (
            PurePosixPath(file).suffix in SUFFIXES[self.language]
            and any(fnmatchcase(file, pattern) for pattern in self.include)
            and not any(fnmatchcase(file, pattern) for pattern in self.exclude)
        )


@cache
def libraries() -> tuple[Library, ...]:
    """All libraries, in the order of libraries.toml."""
    entries = tomllib.loads(files("crystalperf.indexer.labels").joinpath("libraries.toml").read_text(encoding="utf-8"))[
        "library"
    ]
    return tuple(_library(entry) for entry in entries)


def _library(entry: dict[str, Any]) -> Library:
    fields: dict[str, Any] = {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value for key, value in entry.items()
    }
    return Library(**fields)


def source_files(library: Library, folder: Path) -> list[Path]:
    """The library's source files in the folder that fetch.py filled, sorted by path."""
    root = folder / library.name
    if not root.is_dir():
        raise InputError(
            f"{root} is missing: fetch the libraries first with python -m crystalperf.indexer.labels.fetch {folder}"
        )
    return sorted(
        path for path in root.rglob("*") if path.is_file() and library.is_source(path.relative_to(root).as_posix())
    )
