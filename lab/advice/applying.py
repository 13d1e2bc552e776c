"""A recommendation applied to a case, as a user would: its lines pasted, or the program edited."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any

from lab.advice.cases import NOT_TRIED, Case


@dataclass(frozen=True)
class Applied:
    """How a case is submitted after a recommendation.

    Attributes:
        text: the program's text.
        arguments: arguments of spark-submit that come after the case's own.
        how: ``pasted``, ``edited``, or why it was not tried.
        tried: whether there is anything to rerun.
    """

    text: str
    arguments: tuple[str, ...]
    how: str
    tried: bool


def apply(case: Case, text: str, recommendation: dict[str, Any], cores: int) -> Applied:
    """``recommendation`` (an entry of ``analyze --json``) applied to ``case``, whose program is ``text``."""
    kind = recommendation["kind"]
    if kind == "more-local-slots" and _slots(recommendation) > cores:
        return Applied(text, (), f"not tried: the machine has {cores} cores", False)
    lines = recommendation["lines"]
    for name in (*(f"{kind}@{line}" for line in lines), f"{kind}:{recommendation['because']}", kind):
        if name in case.edits:
            return Applied(_edited(text, case.edits[name]), (), "edited", True)
    changed, arguments = _pasted(text, lines)
    if kind != "profile-python" and (changed != text or arguments):
        return Applied(changed, arguments, "pasted", True)
    return Applied(text, (), f"not tried: {NOT_TRIED.get(kind, 'it gives no line and the case has no edit')}", False)


def _slots(recommendation: dict[str, Any]) -> int:
    found = re.search(r"local\[(\d+)", str(recommendation["settings"][0]["after"]))
    return int(found[1]) if found else 0


def _edited(text: str, edit: tuple[tuple[str, str], ...]) -> str:
    for before, after in edit:
        if before not in text:
            raise ValueError(f"the program has no '{before}' to replace")
        text = text.replace(before, after)
    return text


def _pasted(text: str, lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """The program with the lines that belong into it, and the lines that belong on the command line."""
    arguments: list[str] = []
    for line in lines:
        setting = re.match(r'\.config\("([^"]+)", "([^"]*)"\)', line)
        if setting:
            text = re.sub(rf'\.config\("{re.escape(setting[1])}", "[^"]*"\)', setting[0], text)
        elif line.startswith("--"):
            arguments += shlex.split(line, comments=True)
    return text, tuple(arguments)
