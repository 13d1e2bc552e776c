"""Regular expressions that are compiled at first use are like those of `re`."""

from __future__ import annotations

import gc
import pickle
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from crystalperf.indexes.regex import _Regex, regex

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("match", ("a1b22",)),
        ("search", ("-A1b22", 2)),
        ("fullmatch", ("a1",)),
        ("findall", ("a1b22",)),
        ("finditer", ("a1b22",)),
        ("split", ("x a1 y", 1)),
        ("sub", (r"<\1>", "a1b22")),
        ("subn", (r"<\1>", "a1b22")),
    ],
)
def test_methods_are_those_of_re(method: str, arguments: tuple[Any, ...]) -> None:
    def shown(found: Any) -> Any:
        return [each.span() for each in found] if method == "finditer" else getattr(found, "groups", lambda: found)()

    late, usual = regex(r"([a-z]\d)", re.IGNORECASE), re.compile(r"([a-z]\d)", re.IGNORECASE)
    wanted = shown(getattr(usual, method)(*arguments))
    assert [shown(getattr(late, method)(*arguments)) for _ in range(2)] == [wanted, wanted]
    assert getattr(late, method) == getattr(usual, method)  # no detour


def test_a_wrong_expression_is_refused_at_each_use() -> None:
    late = regex("(")
    for _ in range(2):
        with pytest.raises(re.error, match="unterminated"):
            late.match("")


def test_another_process_gets_the_expression() -> None:
    late = regex(rb"\d+")
    assert late.match(b"12") is not None
    again = pickle.loads(pickle.dumps(late))
    assert again.pattern == rb"\d+"
    assert again.sub(b"n", b"1 2") == b"n n"


def test_every_expression_of_the_project_is_valid() -> None:
    for folder in ("indexes", "query"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            import_module(".".join(("crystalperf", *path.relative_to(ROOT).with_suffix("").parts)))
    found = [each for each in gc.get_objects() if type(each) is _Regex]
    for each in found:
        if each.pattern != "(":
            re.compile(each.pattern, each.flags)
    assert len(found) > 300
