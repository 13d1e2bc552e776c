"""The functions whose labels decide, of a real recorded run; made readings of functions of real indexes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

from crystalperf.indexer.labels.reserve import is_reserved
from crystalperf.indexes.errors import InputError
from crystalperf.query import Run
from lab.score.deciders import Decider, collect, is_held_out, recorded_runs, totals
from lab.score.deciding import (
    Row,
    Scored,
    batch,
    chosen,
    joined,
    looked_up,
    read_functions,
    read_readings,
    read_rows,
    report,
    write_functions,
    write_rows,
)
from tests.refusals import refused

FETCHER = "org.apache.spark.storage.ShuffleBlockFetcherIterator.next"


@pytest.fixture(scope="module")
def found(demo: Path, shared_home: Path) -> list[Decider]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        return collect(recorded_runs([demo]))


def readable(its: Decider, ms: float) -> Decider:
    return replace(its, ms=ms, readable=True, text_hash="0" * 16, doc="what it does", code="its code")


def test_time_is_split_by_what_decided_it(found: list[Decider], demo_run: Run) -> None:
    sums = totals(found)
    assert sums["label_ms"] == pytest.approx(157_451, abs=1)
    assert sums["called_ms"] == pytest.approx(1_205, abs=1)
    assert sums["state_ms"] == pytest.approx(57_507, abs=1)
    ((whole,),) = demo_run.sql(
        "SELECT sum(weight_ms) FROM samples JOIN stacks USING (stack_id) WHERE task_id > -1 AND symbol IS NOT NULL"
    ).rows
    assert sums["label_ms"] + sums["called_ms"] + sums["state_ms"] == pytest.approx(whole, abs=1)
    assert sum(each.share for each in found) == pytest.approx(1, abs=1e-5)


def test_run_waits_for_shuffle_blocks_most_of_its_time(found: list[Decider]) -> None:
    first = found[0]
    assert (first.index, first.qualified_name, first.recordings) == ("spark-4.0.1", FETCHER, 1)
    assert first.ms == pytest.approx(141_163, abs=1)
    assert any(frame.startswith(FETCHER) for frame in first.example)
    assert first.label == ("cpu", "disk", "net")[first.vector.index(max(first.vector))]


def test_reserve_is_of_frameworks_only() -> None:
    held = next(f"a/{name}.scala" for name in "ABCDEFGH" if is_reserved(f"a/{name}.scala"))
    assert is_held_out("spark-4.0.1", held)
    assert is_held_out("pyspark-4.0.1", held)
    assert not is_held_out("jdk-17", held)


def test_readers_see_texts_without_labels(found: list[Decider]) -> None:
    its = [readable(found[0], 90.0), readable(found[1], 9.0), readable(found[2], 1.0), replace(found[3], ms=500.0)]
    assert chosen(its, 0.95, 400) == its[:2]
    assert chosen(its, 1.0, 400) == its[:3]
    assert chosen(its, 1.0, 1) == its[:1]
    text = batch([replace(its[0], code="line\n" * 200)])
    assert its[0].qualified_name in text
    assert text.count("line\n") == 120
    assert its[0].example[0] not in text
    assert str(its[0].vector[0]) not in text


def test_readings_become_a_table(found: list[Decider], tmp_path: Path) -> None:
    functions = [*(readable(each, 10.0) for each in found[:3]), replace(found[3], ms=5.0), replace(found[4], ms=0.0)]
    for name, lines in (("a", "0\tnet\t3\n1\tdisk\t2\n2\tcpu\t1\n"), ("b", "0\tnet\t2\n1\tcpu\t1\n2\tdisk\t1\n")):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    write_functions(tmp_path / "functions", functions)
    functions = read_functions(tmp_path / "functions")
    first, second = read_readings(tmp_path / "a"), read_readings(tmp_path / "b")
    rows = joined(functions, first, second, {1: ("disk", 3)})
    assert [each.label for each in rows] == ["net", "disk", "", ""]
    assert (rows[0].sure_a, rows[0].sure_b, rows[3].reader_a, rows[3].ms) == (3, 2, "", 5.0)
    write_rows(tmp_path / "table", rows)
    assert read_rows(tmp_path / "table") == rows
    assert "its code" not in (tmp_path / "table").read_text(encoding="utf-8")
    with refused(InputError, 2):  # one reader left a function out
        joined(functions, first, {each: second[each] for each in (0, 1)}, {})
    with refused(InputError, 0):  # the readers agree on it
        joined(functions, first, second, {0: ("cpu", 3)})
    with refused(InputError, 3):  # nobody may read it
        joined(functions, first | {3: ("cpu", 1)}, second | {3: ("cpu", 1)}, {})


@pytest.mark.parametrize("line", ["0\tgpu\t3", "x\tcpu\t3", "0\tcpu\t4", "0\tcpu", "0\tcpu\t1\n0\tcpu\t1"])
def test_reading_with_a_mistake_names_its_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"7\tnet\t3\n{line}\n", encoding="utf-8")
    with refused(InputError, "line 3" if "\n" in line else "line 2"):
        read_readings(tmp_path / "a")


def cells_of(text: str, name: str) -> list[str]:
    (line,) = (each for each in text.split("\n") if each.startswith(f"| {name} |"))
    return [each.strip() for each in line.split("|")[2:-1]]


def scored(index: str, ms: float, readings: tuple[str, str, str], indexed: str) -> Scored:
    one, other, label = readings
    return Scored(Row(index, "F.java", 1, f"f{ms:.0f}", "", ms, one, 2, other, 2, label), indexed)


def test_accuracy_is_by_time_and_by_function() -> None:
    text = report(
        [
            scored("spark-4.0.1", 6000.0, ("net", "net", "net"), "net"),
            scored("spark-4.0.1", 2000.0, ("disk", "cpu", "disk"), "cpu"),
            scored("spark-4.0.1", 1000.0, ("wait", "wait", "wait"), "cpu"),
            scored("spark-4.0.1", 500.0, ("disk", "net", ""), "cpu"),
            scored("spark-4.0.1", 500.0, ("", "", ""), "cpu"),
            scored("jdk-17", 4000.0, ("cpu", "cpu", "cpu"), "cpu"),
        ]
    )
    decide, read, share, by_time, by_function, agree, _, wait, undecided, missing = cells_of(text, "Spark")
    assert (decide, read, share) == ("5", "4", "95.0")
    assert (by_time.split()[0], by_function.split()[0]) == ("75.0", "50.0")
    assert by_time.endswith("(0–100)")
    assert agree == "73.7"  # 7000 of 9500
    assert (wait.split()[0], undecided.split()[0], missing) == ("1", "1", "0")
    assert cells_of(text, "libraries")[3].split()[0] == "100.0"
    assert cells_of(text, "all")[3].split()[0] == "83.3"
    assert cells_of(text, "Flink") == ["0", "0", "", "", "", "", "", "0", "0", "0"]
    assert cells_of(text, "`f2000`") == ["2.0", "cpu", "disk"]
    assert "`f6000`" not in text


def test_label_is_that_of_the_index_today(found: list[Decider]) -> None:
    its = found[0]
    row = Row(its.index, its.file, its.first_line, its.qualified_name, "", its.ms)
    first, moved, gone = looked_up([row, replace(row, first_line=row.first_line + 3), replace(row, file="No.scala")])
    assert (first.indexed, moved.indexed, gone.indexed) == (its.label, its.label, "")
