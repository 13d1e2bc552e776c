"""Scores of the shipped indexes: development functions are found by file, name and line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the indexer extra is not installed")

from crystalperf.indexer import shipped
from crystalperf.indexer.examples import Example, read_examples
from crystalperf.indexer.vectors import FunctionText
from tests.small_indexes import kept_path, small_index

pytestmark = pytest.mark.later


def indexed() -> list[dict[str, object]]:
    rows = (json.loads(line) for line in kept_path("small-1.0").read_text(encoding="utf-8").split("\n")[:-1])
    return [row for table, row in rows if table == "functions"]


def test_a_function_has_the_shares_of_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small_index("small-1.0", tmp_path / "small-1.0.duckdb")
    monkeypatch.setattr(shipped, "locate", lambda _name: path)
    rows = indexed()
    texts = [FunctionText("", "", str(row["language"]), str(row["qualified_name"]), None, "", ()) for row in rows]
    examples = [
        Example(text, 0, "dev-spark", "spark", str(row["file"]), 1.0, "", int(str(row["first_line"])))
        for text, row in zip(texts, rows, strict=True)
    ]
    unknown = Example(texts[0], 0, "dev-spark", "spark", "Other.scala", 1.0)
    found = shipped.shipped_labels("small-1.0", [*examples, unknown])
    assert found[:-1, 0].tolist() == pytest.approx([row["cpu"] for row in rows])
    assert np.isnan(found[-1]).all()


def test_lines_of_examples_are_read(tmp_path: Path) -> None:
    record = {"set": "dev-spark", "library": "spark", "file": "B.scala", "language": "scala", "qualified_name": "a.A.f",
              "label": "cpu", "weight": 1.0, "code": "", "doc": "", "package": "a", "class_name": "A", "callees": [],
              "id": "s1", "first_line": 7}  # fmt: skip
    (tmp_path / "texts.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert read_examples(tmp_path / "texts.jsonl", has_training=False)[0].first_line == 7
