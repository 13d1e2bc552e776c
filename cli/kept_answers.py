"""Answers of `analyze` that the cache keeps, so that the same question needs no analysis.

    <cache>/answers/<hash>.json     {"run": ["/…/q9.duckdb", 66307, …], "text": "…", "entry": "…"}

The hash is of everything that decides an answer: options, the files that the question names, the code, the installed
packages, the available indexes, and the terminal.  `run` is the run file that was analysed; if it is another file now,
there is no kept answer.  No answer is kept if a plugin is installed, because code of other packages
may read anything.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from crystalperf.indexes.cache import cache_folder, is_own
from crystalperf.indexes.code_hash import code_hash
from crystalperf.indexes.temporary import make_private

Identity = list[str | int]
"""A file's path, device, inode, size, and times of modification and of change in ns."""

_MOST_FILES = 5_000
"""Maximum files of a question; naming the files of a larger folder takes as long as an analysis of a small one."""

_MOST_ANSWERS = 500

_VARIABLES = ("COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TZ")
_OWN_VARIABLES = "CRYSTALPERF_"


class Answer(NamedTuple):
    """The standard output of a command, and the line that it added to the ledger; '' for none."""

    text: str
    entry: str


def question(paths: Sequence[Path], options: Sequence[object]) -> str | None:
    """The hash of a question about files; None if one of them cannot be looked at again, such as a pipe or a URL."""
    named: list[Identity] = []
    try:
        for path in paths:
            for each in _files(path):
                named.append(_identity(each))
                if len(named) > _MOST_FILES or not stat.S_ISREG(each.stat().st_mode):
                    return None
        parts = [named, list(options), os.getcwd(), _program(), _indexes(), _terminal()]
    except (OSError, ValueError):
        return None
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def find(asked: str) -> Answer | None:
    """The answer that is kept for a question; None if there is none, or if its run file is another one now."""
    try:
        with _place(asked).open("rb") as file:
            if not is_own(os.fstat(file.fileno())):
                return None
            found = json.load(file)
        run = found["run"]
        return Answer(str(found["text"]), str(found["entry"])) if _identity(Path(run[0])) == run else None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def keep(asked: str, run: Path, answer: Answer) -> None:
    """Keep an answer about a run file, unless a plugin is installed.  Does nothing if the cache is not writable."""
    from crystalperf.query.trace.plugins import is_any_installed

    if is_any_installed():
        return
    with suppress(OSError):
        place = _place(asked)
        make_private(place.parent)
        temporary = place.with_suffix(f".{os.getpid()}")
        temporary.touch(mode=0o600)
        temporary.write_text(
            json.dumps({"run": _identity(run.absolute()), "text": answer.text, "entry": answer.entry}), encoding="utf-8"
        )
        temporary.replace(place)
        if len(kept := list(place.parent.iterdir())) > _MOST_ANSWERS:
            for each in sorted(kept, key=lambda path: path.stat().st_mtime)[: _MOST_ANSWERS // 2]:
                each.unlink()


def forget(run: Path) -> None:
    """Remove the answers about a run file."""
    with suppress(OSError):
        for each in _folder().iterdir():
            with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
                if json.loads(each.read_bytes())["run"][0] == str(run.absolute()):
                    each.unlink()


def _folder() -> Path:
    return cache_folder() / "answers"


def _place(asked: str) -> Path:
    return _folder() / f"{asked}.json"


def _identity(path: Path) -> Identity:
    """Raises OSError if there is no such file."""
    status = path.stat()
    return [
        str(path),
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    ]


def _files(path: Path) -> Iterator[Path]:
    """The file, or the files below the folder, in order."""
    if not path.is_dir():
        yield path
        return
    for folder, below, names in os.walk(path, followlinks=True):
        below.sort()
        yield from (Path(folder, name) for name in sorted(names))


def _program() -> list[object]:
    """The code that answers: CrystalPerf's own by its content, other packages by the folders that have them."""
    installed = [[each, os.stat(each).st_mtime_ns] for each in sys.path if os.path.exists(each)]
    code = [
        code_hash("crystalperf.indexes", "crystalperf.query"),
        code_hash("crystalperf.cli"),
    ]  # a run needs the first
    return [sys.version, code, installed]


def _indexes() -> list[object]:
    """The user's indexes, and the shipped ones by their pinned hashes."""
    shipped = files("crystalperf.indexes")
    names = sorted(each.name for each in shipped.iterdir() if each.joinpath("metadata.json").is_file())
    pinned = sha256(shipped.joinpath("prebuilt.json").read_bytes()).hexdigest()
    built = sorted((cache_folder() / "indexes").glob("*"))
    return [names, pinned, [_identity(each) for each in built]]


def _terminal() -> list[object]:
    """The terminal's width, the variables that decide colour, and those that CrystalPerf reads."""
    size = list(shutil.get_terminal_size()) if sys.stdout.isatty() else []
    deciding = [pair for pair in os.environ.items() if pair[0] in _VARIABLES or pair[0].startswith(_OWN_VARIABLES)]
    return [size, sorted(deciding)]
