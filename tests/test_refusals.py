"""Refusals and assumptions are values: every kind has a sentence, and the simulation writes none."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.results.answers import Prediction
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.kinds import Kind
from crystalperf.query.results.refusals import MemoryBelowMinimum, MemoryNeedUnknown, RecordedValueUnknown, Refusal
from crystalperf.query.results.words import Words
from crystalperf.query.text.answers import by_refusal
from crystalperf.query.text.as_json import as_json
from crystalperf.query.text.sentences import text_of

QUERY = Path(__file__).parent.parent / "query"
STREAMING = [QUERY / "streaming" / "backlog.py", QUERY / "streaming" / "predict.py"]


@dataclass(frozen=True)
class FromPlugin(Refusal):
    """A kind of a package without a sentence for it."""

    kind: ClassVar[str] = "from-plugin"
    jars: int


def kinds(base: type[Kind]) -> Iterator[type[Kind]]:
    """All kinds below a base that CrystalPerf has, those of its frameworks too."""
    assert frameworks()  # imports their packages
    for each in base.__subclasses__():
        if each.__module__.startswith("crystalperf."):
            yield each
            yield from kinds(each)


KINDS = (*kinds(Refusal), *kinds(Assumption))


def sample(kind: type[Kind]) -> Kind:
    """A value of a kind with something in every field."""
    values: dict[str, Any] = {
        "float": 2.5,
        "float | None": 2.5,
        "int": 3,
        "bool": True,
        "str": "name>other",
        "str | None": "Spark",
        "tuple[str, ...]": ("name",),
        "Refusal": MemoryNeedUnknown(),
        "tuple[Refusal, ...]": (MemoryNeedUnknown(),),
    }
    return kind(**{each.name: values[str(each.type)] for each in fields(kind)})


def words_of(kind: type[Kind]) -> Words:
    """Those of a framework that has the kind; the core's for any other."""
    below = kind.__module__.removeprefix("crystalperf.query.frameworks.")
    package = "" if below == kind.__module__ else below.removeprefix("ml.").partition(".")[0]
    own = "pytorch" if package == "training" else package
    return Words(own, frameworks()[own].vocabulary) if own else Words()


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_writes_a_sentence_for_every_kind(kind: type[Kind]) -> None:
    value = sample(kind)
    text = text_of(value, words_of(kind))
    assert text
    assert not text.startswith(f"{kind.kind}:"), "it is the generic sentence"
    assert not text.endswith(".")
    assert {value: 1}[sample(kind)] == 1, "equal values are one key"


def test_gives_each_kind_a_key_of_its_own() -> None:
    counted = Counter(each.kind for each in KINDS)
    assert [key for key, count in counted.items() if count > 1] == []


def test_names_every_field_of_a_kind_without_a_sentence() -> None:
    assert text_of(FromPlugin(3), Words()) == "from-plugin: jars 3"


def test_has_kind_text_and_numbers_in_json_and_no_words() -> None:
    unchanged = Prediction("all", "makespan", "unchanged", 10.0, 10.0, 10.0)
    refused = unchanged.refusing("memory=1MiB", MemoryBelowMinimum("Spark", 2.0**20, 450 * 2.0**20))
    found = as_json(refused)
    (refusal,) = found["refused"]
    assert refusal.pop("text")
    assert refusal == {
        "kind": "memory-below-minimum",
        "framework": "Spark",
        "memory_bytes": 2.0**20,
        "least_bytes": 450 * 2.0**20,
    }
    assert "words" not in found


def test_takes_the_remedy_from_the_refusal() -> None:
    refused = Prediction("all", "makespan", "", 10.0, 10.0, 10.0).refusing("", RecordedValueUnknown("disk=1", "disk"))
    assert refused.remedy.facts == {"setting": "disk"}


def test_stages_unanswered_questions_by_value() -> None:
    unchanged = Prediction("all", "makespan", "unchanged", 10.0, 10.0, 10.0)
    small, smaller = (MemoryBelowMinimum("Spark", size, 4.0) for size in (2.0, 1.0))
    points = [unchanged.refusing(str(number), each) for number, each in enumerate((small, smaller, small))]
    assert {each: [point.setting for point in those] for each, those in by_refusal(points).items()} == {
        small: ["0", "2"],
        smaller: ["1"],
    }


@pytest.mark.parametrize(
    "path",
    [*sorted(path for room in ("simulate", "predict") for path in (QUERY / room).rglob("*.py")), *STREAMING],
    ids=lambda each: f"{each.parent.name}/{each.name}",
)
def test_simulation_writes_no_sentences(path: Path) -> None:
    """Texts of four words and more are in docstrings and in errors about wrong input alone."""
    assert [text for text in prose(ast.parse(path.read_text(encoding="utf-8"))) if len(text.split()) >= 4] == []


def prose(node: ast.AST) -> Iterator[str]:
    """The texts of code that are neither docstrings nor errors."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return
    if isinstance(node, ast.JoinedStr):
        yield "".join(each.value if isinstance(each, ast.Constant) else "x" for each in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for each in ast.iter_child_nodes(node):
            yield from prose(each)
