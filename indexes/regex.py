"""Regular expressions that are compiled at first use.

Compiling one takes 0.1 to 6 ms of CPU time.  An answer needs few of those in the modules that it imports.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, AnyStr, cast


def _method(name: str) -> Callable[..., Any]:
    def first(self: _Regex, *arguments: Any, **named: Any) -> Any:
        compiled = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, compiled)  # later calls make no detour
        return compiled(*arguments, **named)

    return first


class _Regex:
    """The part of a re.Pattern that modules use."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    match, search, fullmatch = map(_method, ("match", "search", "fullmatch"))
    findall, finditer, split, sub, subn = map(_method, ("findall", "finditer", "split", "sub", "subn"))


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile(pattern, flags)` that compiles at the first call of a method; so an error is raised only then."""
    return cast("re.Pattern[AnyStr]", _Regex(pattern, flags))
