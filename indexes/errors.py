"""The errors that a user can cause, as one class hierarchy.

    CrystalPerfError          one sentence: problem, place, fix; the terminal prints it and exits with 1
    ├── InputError            a file or folder that cannot be read as what it should be
    ├── SettingError          a KEY=VALUE or an option whose content makes no sense
    ├── IndexFileError        an index that is missing, foreign, damaged or of another schema version
    ├── BuildError            sources that cannot be fetched or indexed
    └── NoAnswerError         a request that the run cannot answer, with the reason

Any other exception that reaches the user is a bug in CrystalPerf.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Literal, ParamSpec

from crystalperf.indexes.frozen import frozen

_P = ParamSpec("_P")


@frozen
class Remedy:
    """A fix for an error; each interface words it in its own terms, with the values in `facts`."""

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
        "name other runs",
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
    """A mistake or a limit that the user can act on: what happened, and where.

    The text names no flags of an interface.  If the fix is the same at all interfaces, the text has it, else `remedy`.
    """

    def __init__(self, what: str, remedy: Remedy | None = None) -> None:
        super().__init__(what)
        self.remedy = remedy


class InputError(CrystalPerfError):
    """A file or folder is missing, unreadable or of the wrong format."""


class SettingError(CrystalPerfError):
    """A setting's name or value makes no sense."""


class IndexFileError(CrystalPerfError):
    """An index or run file is missing, foreign, damaged or of another schema version."""


class BuildError(CrystalPerfError):
    """Sources cannot be fetched or indexed."""


class NoAnswerError(CrystalPerfError):
    """The run cannot answer the request; the text says why."""


def report_errors(main: Callable[_P, None]) -> Callable[_P, int]:
    """Wrap the `main` of a `python -m` command: it prints a CrystalPerfError on stderr and returns 1, else 0."""

    @functools.wraps(main)
    def run(*arguments: _P.args, **settings: _P.kwargs) -> int:
        try:
            main(*arguments, **settings)
        except CrystalPerfError as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    return run
