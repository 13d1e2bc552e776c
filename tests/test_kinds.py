"""Findings, advice and what else an answer holds of a kind: data alone, and a sentence for each kind."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import pytest

from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.results.advice import Advice
from crystalperf.query.results.findings import Finding, StageCost
from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.words import Words
from crystalperf.query.text import sentences
from crystalperf.query.text.sentences import Sentences, text_of

QUERY = Path(__file__).resolve().parent.parent / "query"
OF_KINDS = sorted((QUERY / "results").glob("*.py")) + sorted(QUERY.glob("frameworks/**/[fr]*s.py"))
"""Modules with kinds, among others."""
MAKERS = [
    each
    for each in (*OF_KINDS, *sorted((QUERY / "diagnose" / "findings").glob("*.py")), QUERY / "diagnose" / "losses.py")
    if each.name in ("findings.py", "remarks.py", "losses.py") or each.parent.name in ("results", "findings")
]
"""Modules of findings and of what makes them."""


def kinds(of: type[Kind] = Kind) -> Iterator[type[Kind]]:
    """All kinds in the package below a base."""
    for each in OF_KINDS:
        if each.name != "__init__.py":
            import_module(".".join(("crystalperf", *each.relative_to(QUERY.parent).with_suffix("").parts)))
    waiting = [of]
    while waiting:
        found = waiting.pop().__subclasses__()
        waiting += found
        yield from (each for each in found if hasattr(each, "kind") and each.__module__.startswith("crystalperf."))


def of_own(kind: type[Kind]) -> Sentences | None:
    """The sentences of the framework whose package has a kind."""
    package = kind.__module__.removeprefix("crystalperf.query.frameworks.").removeprefix("ml.").partition(".")[0]
    named = "pytorch" if package == "training" else package
    return frameworks()[named].advisor.sentences if named in frameworks() else None


def test_every_kind_has_a_sentence() -> None:
    found = list(kinds())
    assert len(found) > 60
    for each in found:
        own = of_own(each)
        assert (own and own.find(each)) or sentences._core().find(each), each


def test_keys_of_a_family_are_hyphenated_and_distinct() -> None:
    for family in (Finding, StageCost, Advice, Recommendation):
        keys: dict[str, type[Kind]] = {}
        for each in kinds(family):
            assert re.fullmatch(r"[a-z]+(-[a-z]+)*", each.kind), each
            if "kind" in vars(each):  # a variant of a kind has the key of that
                assert keys.setdefault(each.kind, each) is each


def test_kind_without_a_sentence_is_shown_by_its_fields() -> None:
    @dataclass(frozen=True)
    class Sleeping(Finding):
        kind: ClassVar[str] = "sleeping"

        naps: int

    assert text_of(Sleeping(12.5, "measured", None, 3), Words()).startswith("sleeping: cost_ms 12.5")
    assert "naps 3" in text_of(Sleeping(12.5, "measured", None, 3), Words("spark"))


def test_findings_have_no_prose() -> None:
    for each in (*kinds(Finding), *kinds(StageCost)):
        assert not {field.name for field in fields(each)} & {"what", "text", "sentence"}, each
        assert "str" not in str(next(field.type for field in fields(each) if field.name == "advice")), each


@pytest.mark.parametrize("path", MAKERS, ids=lambda each: f"{each.parent.name}/{each.name}")
def test_finding_rules_write_no_sentences(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = {
        id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
    }
    texts |= {  # the keys of remedies, which each interface words
        id(each.args[0])
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "Remedy"
    }
    for each in ast.walk(tree):
        assert not isinstance(each, ast.JoinedStr) or path.name in ("words.py", "answers.py"), (path, each.lineno)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in texts:
            assert len(each.value.split()) <= 2, (path, each.lineno, each.value)
