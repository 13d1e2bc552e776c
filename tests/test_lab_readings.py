"""Measured labels: none of them in the training, compared with readings, and the committed table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="the dataset's tools need the indexer: pip install '.[indexer]'")

from crystalperf.indexer.labels import collect, rebuild
from crystalperf.indexer.labels.functions import text_hash
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.tables import CLASSES, Label, Measured, Reading, committed, read_table, write_table
from lab.score.readings import differences, report

JAVA = """\
package a.b;
class C {
  /** One. */
  int f(int x) { return x; }
  int f(java.util.Map<String, int[]> x, final String... y) { return 1; }
}
"""


def measured(**changes: object) -> Measured:
    values: dict[str, object] = {
        "id": "m0000",
        "library": "kryo",
        "version": "1",
        "file": "C.java",
        "first_line": 4,
        "last_line": 4,
        "qualified_name": "a.b.C.f",
        "text_hash": text_hash(JAVA.split("\n")[3:4]),
        "label": "disk",
        "cpu": 0.3,
        "disk": 0.7,
        "net": 0.0,
        "wait": 0.0,
        "deferred": 0.5,
        "wall_ms": 1.0,
        "runs": 3,
        "tool": "jfr",
    }
    return Measured(**{**values, **changes})  # type: ignore[arg-type]


class TestHeldOut:
    def test_measured_functions_are_not_in_the_training(self, tmp_path: Path) -> None:
        sources = tmp_path / "sources"
        (sources / "kryo").mkdir(parents=True)
        (sources / "kryo" / "C.java").write_text(JAVA)
        its = measured()
        other = text_hash(JAVA.split("\n")[4:5])
        rows = [
            Label("t0", "kryo", "1", "C.java", 4, 4, "a.b.C.f", its.text_hash, "cpu", 3, "A"),
            Label("t1", "kryo", "1", "C.java", 5, 5, "a.b.C.f", other, "cpu", 3, "A"),
        ]
        write_table(tmp_path / "train.tsv", Label, rows)
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t0", "t1"]
        later = [dataclasses.replace(each, id=each.id.replace("t", "v")) for each in rows[1:]]
        write_table(tmp_path / "train.tsv", Label, [rows[0], *later])
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path, frozenset("12"))] == ["t0"]
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t0", "v1"]
        write_table(tmp_path / "train.tsv", Label, rows)
        write_table(tmp_path / "measured.tsv", Measured, [its])
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t1"]
        ((name, label, found),) = rebuild.rebuild_measured(sources, tmp_path)
        assert (name, label.label, label.sure) == ("measured", "disk", 2)
        assert found is not None
        assert found.function.first_line == 4

    def test_collect_leaves_readings_of_measured_functions_alone(self, tmp_path: Path) -> None:
        (tmp_path / "out" / "J").mkdir(parents=True)
        (tmp_path / "out" / "J" / "measured-000.tsv").write_text("m0000\tdisk\t3\n")
        assert collect.read_outputs(tmp_path, {}) == ([], [])


class TestScore:
    def test_report_compares(self) -> None:
        rows = [measured(), measured(id="m0001", label="net", cpu=0.1, disk=0.0, net=0.9, deferred=0.0)]
        readings = [Reading("m0000", "J", "cpu", 3, "independent"), Reading("m0001", "J", "net", 3, "independent")]
        text = report(rows, readings)
        assert "| all | 2 | 50.0 %" in text
        # By the caller's clock the first one, of which most was written later, is cpu.
        assert "| by the caller's clock alone | 2 | 100.0 %" in text
        assert differences(rows, readings)[0].startswith("m0000 read cpu (3), measured disk")


class TestCommitted:
    rows = read_table(committed("measured"), Measured)

    def test_the_table(self) -> None:
        versions = {library.name: library.version for library in libraries() if library.set == "train"}
        assert len({each.id for each in self.rows}) == len(self.rows) >= 300
        for each in self.rows:
            assert versions[each.library] == each.version
            assert each.label in CLASSES
            parts = {name: getattr(each, name) for name in CLASSES}
            assert parts[each.label] >= max(parts.values()) - 1e-4
            assert sum(parts.values()) == pytest.approx(1, abs=1e-3)
            assert -1e-9 <= each.deferred <= each.disk + 1e-3
            assert each.runs >= 3

    def test_every_device_is_there(self) -> None:
        for name in ("cpu", "disk", "net"):
            assert sum(each.label == name for each in self.rows) >= 30
