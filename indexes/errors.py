"""The errors a user can cause, in one tree.

    CrystalPerfError          one sentence: what, where, what to do; the terminal prints it and exits with 1
    ├── InputError            a file or folder that cannot be read as what it should be
    ├── SettingError          a KEY=VALUE or an option whose content makes no sense
    ├── IndexFileError        an index that is missing, foreign, damaged or of another schema version
    ├── BuildError            sources that cannot be fetched or indexed
    └── NoAnswerError         a question the run cannot answer, with the reason

Anything else that escapes is a bug of ours.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, ParamSpec

_P = ParamSpec("_P")


@dataclass(frozen=True)
class Remedy:
    """What a user can do about an error, for a door to word in its own terms; `facts` are what it needs for that."""

    kind: Literal[
        "state what the run had",  # setting: its name
        "choose an application",  # applications: as a list in words
        "choose a job",
        "give it as standard input",
        "choose another place",
        "choose another folder",
        "replace it",
        "profile again",
        "build the index",  # index: its name
        "build the index again",
        "verify the index",  # index: its name
        "vouch for the index",
        "change the scope",
        "set up the job",  # framework: its name
        "state a setting",  # setting: its name; unlike the first, a ratio to what the run had helps no more
        "give it more time",
        "set a token",
        "ask a run",
        "ask an index",
        "index the code",  # prefix: of the names of its packages
        "index the library",  # library: the name that the indexer knows it by
    ]
    facts: Mapping[str, str] = field(default_factory=dict)


class CrystalPerfError(Exception):
    """A mistake or a limit the user can act on: what happened, and where.

    The text names no door's flags; what to do about it is in the text where it is the same everywhere, else in
    `remedy`.
    """

    def __init__(self, what: str, remedy: Remedy | None = None) -> None:
        super().__init__(what)
        self.remedy = remedy


class InputError(CrystalPerfError):
    """A file or folder cannot be read as what it should be."""


class SettingError(CrystalPerfError):
    """A setting's name or value makes no sense."""


class IndexFileError(CrystalPerfError):
    """An index or run file is missing, foreign, damaged or of another schema version."""


class BuildError(CrystalPerfError):
    """Sources cannot be fetched or indexed."""


class NoAnswerError(CrystalPerfError):
    """The run cannot answer the question; the text says why."""


def told(main: Callable[_P, None]) -> Callable[_P, int]:
    """The `main` of a `python -m` command with an exit code: 1 where it ends in one sentence for the user, else 0."""

    @functools.wraps(main)
    def run(*arguments: _P.args, **settings: _P.kwargs) -> int:
        try:
            main(*arguments, **settings)
        except CrystalPerfError as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    return run
