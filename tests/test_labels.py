"""The dataset: the reserve, drawing, collecting and rebuilding, on made-up sources and on the committed tables."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="the dataset's tools need the indexer: pip install '.[indexer]'")

from crystalperf.indexer.labels import collect, fetch, rebuild, sample, statistics
from crystalperf.indexer.labels.agreement import class_agreement, cohen_kappa, confusion, pairs
from crystalperf.indexer.labels.functions import Located, functions_of, is_handwritten, text_hash
from crystalperf.indexer.labels.libraries import Library, libraries
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved, violations
from crystalperf.indexer.labels.tables import (
    CLASSES,
    SETS,
    Label,
    Reading,
    committed,
    read_labels,
    read_table,
    write_table,
)
from crystalperf.indexer.records import Function
from crystalperf.indexes.errors import BuildError, InputError, SettingError

ROOT = Path(__file__).parent.parent
API = '''\
"""Made up."""

import os


def remove(path):
    """Deletes a file."""
    os.remove(path)


class Session:
    def send(self, request):
        return self.socket.sendall(request.body)

    def double(self, value):
        return value * 2
'''


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Two fetched libraries, one of them a framework with a reserved file and one that is not."""
    folder = tmp_path / "libraries"
    (folder / "requests" / "requests").mkdir(parents=True)
    (folder / "requests" / "requests" / "api.py").write_text(API, encoding="utf-8")
    (folder / "tensorflow" / "tensorflow").mkdir(parents=True)
    for name in ("file_io.py", "saver.py"):
        (folder / "tensorflow" / "tensorflow" / name).write_text(API, encoding="utf-8")
    return folder


@pytest.fixture
def work(tmp_path: Path, sources: Path) -> Path:
    """The sample drawn from them, and two annotators' readings with one disagreement."""
    folder = tmp_path / "work"
    its = list(functions_of(library("requests"), sources))
    drawn = [
        sample.Candidate(f"t{number}", "train", "train-000", each, "other", 1.0) for number, each in enumerate(its)
    ]
    sample.write(drawn, folder)
    read(folder, "A", "train-000", "t0\tdisk\t3\nt1\tnet\t2\nt2\tcpu\t3\n")
    read(folder, "B", "train-000", "t0\tdisk\t2\nt1\tcpu\t1\nt2\tcpu\t3\n")
    return folder


def library(name: str) -> Library:
    return next(each for each in libraries() if each.name == name)


def read(work: Path, annotator: str, batch: str, text: str) -> None:
    path = work / "out" / annotator / f"{batch}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def located(name: str, code: str = "x = 1", file: str = "a/b.py", its_library: str = "requests") -> Located:
    function = Function(
        kind="function",
        name=name,
        qualified_name=f"a.b.{name}",
        package="a.b",
        class_name=None,
        enclosing=None,
        first_line=1,
        last_line=4,
        code=code,
        doc="",
        signature="",
        descriptor="",
        runtime_class="",
        runtime_methods=(),
        has_body=True,
    )
    return Located(its_library, "1", file, "python", function, (), text_hash([file, name, code]))


def label(**changes: object) -> Label:
    values: dict[str, object] = {
        "id": "s1",
        "library": "spark",
        "version": "4.0.1",
        "file": "core/Utils.scala",
        "first_line": 1,
        "last_line": 2,
        "qualified_name": "a.b",
        "text_hash": "0" * 16,
        "label": "cpu",
        "sure": 3,
        "annotators": "AB",
    }
    return Label(**{**values, **changes})  # type: ignore[arg-type]


SECOND_FIRST_OF_PYTHON = sample.SECOND_SIZES["torch"] + sample.SECOND_SIZES["python-training"]


class TestReserve:
    def test_is_decided_by_the_last_digit_of_the_names_hash(self) -> None:
        # printf %s RDD.scala | sha256sum ends in 8, that of SparkContext.scala in 3.
        assert not is_reserved("RDD.scala")
        assert is_reserved("SparkContext.scala")

    def test_ignores_folders(self) -> None:
        for name in ("RDD.scala", "SparkContext.scala"):
            assert is_reserved(f"core/org/apache/spark/{name}") is is_reserved(name)

    def test_finds_what_breaks_it(self) -> None:
        open_file = next(name for name in (f"A{n}.scala" for n in range(99)) if not is_reserved(name))
        reserved = next(name for name in (f"A{n}.scala" for n in range(99)) if is_reserved(name))
        assert violations("dev-spark", [label(file=f"core/{open_file}")]) == []
        assert len(violations("dev-spark", [label(file=f"core/{reserved}")])) == 1
        assert len(violations("train", [label(file=f"core/{open_file}")])) == 1
        assert len(violations("dev-flink", [label(file=f"core/{open_file}")])) == 1
        assert violations("train", [label(library="netty", file=reserved)]) == []

    @pytest.mark.parametrize("name", SETS)
    def test_holds_for_the_committed_labels(self, name: str) -> None:
        its = read_labels(name)
        if not its:
            pytest.skip(f"{name}.tsv is not in this checkout")
        assert violations(name, its) == []

    def test_no_training_library_is_a_framework(self) -> None:
        for each in libraries():
            about_frameworks = [
                part for part in (*each.maven, *each.pypi) if any(name in part.lower() for name in FRAMEWORKS)
            ]
            assert bool(about_frameworks) is (each.name in FRAMEWORKS), each.name
            assert (each.set == "train") is (each.name not in FRAMEWORKS)

    def test_reserved_files_are_never_drawn(self, sources: Path) -> None:
        files = {"file_io.py", "saver.py"}
        assert {is_reserved(name) for name in files} == {True, False}, "one of each, else this proves nothing"
        drawn = sample.development_pool(library("tensorflow"), sources)
        assert {Path(each.file).name for each in drawn} == {name for name in files if not is_reserved(name)}


class TestCommittedTables:
    @pytest.mark.parametrize("name", SETS)
    def test_rows_are_sound(self, name: str) -> None:
        its = read_labels(name)
        if not its:
            pytest.skip(f"{name}.tsv is not in this checkout")
        versions = {each.name: each.version for each in libraries()}
        assert len({each.id for each in its}) == len(its)
        assert len({(each.library, each.file, each.qualified_name, each.first_line) for each in its}) == len(its)
        for each in its:
            assert each.version == versions[each.library]
            assert each.label in CLASSES
            assert each.sure in (1, 2, 3)
            assert 1 <= each.first_line <= each.last_line
            assert len(each.text_hash) == 16

    def test_sizes_are_what_the_card_promises(self) -> None:
        its = read_labels("train")
        if not its:
            pytest.skip("train.tsv is not in this checkout")
        counts = Counter(each.label for each in its)
        assert sum(counts[name] for name in ("cpu", "disk", "net")) >= 5000
        assert min(counts[name] for name in ("cpu", "disk", "net")) >= 700
        for name in SETS[1:]:
            development = Counter(each.label for each in read_labels(name))
            assert sum(development.values()) >= 150
            assert min(development[device] for device in ("cpu", "disk", "net")) >= 30

    def test_a_library_is_of_one_draw(self) -> None:
        draws = {each.name: each.draw for each in libraries()}
        assert len(draws) == len(libraries())
        assert set(draws.values()) == {1, 2}
        prefixes = {(draws[each.library], each.id[0]) for each in read_labels("train")}
        assert prefixes <= {(1, "t"), (2, sample.SECOND_PREFIX), (1, "v"), (2, "v")}

    def test_the_card_shows_their_figures(self) -> None:
        if not read_labels("train"):
            pytest.skip("train.tsv is not in this checkout")
        card = (ROOT / "docs" / "dataset.md").read_text(encoding="utf-8")
        assert statistics.with_figures(card, statistics.report()) == card, "run make labels"

    def test_labels_follow_from_the_readings(self) -> None:
        if not read_labels("train"):
            pytest.skip("train.tsv is not in this checkout")
        readings: dict[str, list[Reading]] = {}
        for reading in read_table(committed("readings"), Reading):
            readings.setdefault(reading.id, []).append(reading)
        for name in SETS:
            for each in read_labels(name):
                assert collect.agreed_label(readings[each.id]) == (each.label, each.sure, each.annotators)


class TestFunctions:
    def test_have_their_place_and_callees(self, sources: Path) -> None:
        its = list(functions_of(library("requests"), sources))
        assert [each.function.name for each in its] == ["remove", "send", "double"]
        assert its[0].function.first_line == 6
        assert its[0].callees == ("remove",)
        assert its[1].callees == ("sendall",)

    @pytest.mark.parametrize(
        ("file", "head", "expected"),
        [
            ("io/netty/Channel.java", "package io.netty;", True),
            ("lib/tests/helpers.py", "", False),
            ("db/db_test.cc", "", False),
            ("org/apache/FooTest.java", "", False),
            ("org/apache/Latest.java", "", True),
            ("org/Protos.java", "// Generated by the protocol buffer compiler.  DO NOT EDIT!", False),
        ],
    )
    def test_of_tests_and_generated_files_are_left_out(self, file: str, head: str, expected: bool) -> None:
        assert is_handwritten(file, head) is expected

    def test_hash_ignores_only_white_space(self) -> None:
        assert text_hash(["a =  1", "\tb"]) == text_hash(["    a = 1", "", "b"])
        assert text_hash(["a = 1"]) != text_hash(["a = 2"])

    def test_of_a_library_that_is_not_fetched(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="requests"):
            list(functions_of(library("requests"), tmp_path))


class TestSample:
    def test_hints_choose_the_stratum(self) -> None:
        assert sample.stratum(located("double", "return value * 2")) == "other"
        removes = located("remove", "os.remove(path)\nshutil.rmtree(path)", file="a/files.py")
        assert sample.stratum(removes) == "disk2"
        sends = located("send", "sock.sendall(x)\nsock.recv(4)", file="net/socket.py")
        assert sample.stratum(sends) == "net2"

    def test_development_weights_carry_back_to_the_pool(self) -> None:
        pool = [located(f"double{n}", "return value * 2") for n in range(900)]
        pool += [located(f"remove{n}", "os.remove(path)\nshutil.rmtree(p)", file="a/files.py") for n in range(100)]
        drawn = sample.choose_development(pool, 100, random.Random(1))
        assert len({each.text_hash for each, _, _ in drawn}) == 100
        hinted = [weight for _, its, weight in drawn if its == "disk2"]
        assert len(hinted) > 20
        assert sum(hinted) / sum(weight for _, _, weight in drawn) == pytest.approx(0.1)
        assert sum(weight for _, _, weight in drawn) == pytest.approx(100)

    def test_training_is_spread_over_files(self) -> None:
        pool = [located(f"f{n}", f"return {n}", file="big.py") for n in range(500)]
        pool += [located("f", f"return {n}", file=f"small{n}.py") for n in range(60)]
        chosen = sample.choose(pool, 60, random.Random(1))
        files = Counter(each.file for each, _ in chosen)
        assert 1 <= files["big.py"] <= 24
        assert len(files) > 30

    def test_the_same_text_is_read_once(self) -> None:
        pool = [located("same", file="a.py") for _ in range(50)] + [located(f"f{n}", f"{n}") for n in range(9)]
        assert Counter(each.function.name for each, _ in sample.choose(pool, 50, random.Random(1)))["same"] == 1

    def test_second_draw_leaves_out_what_is_labelled_and_what_works_with_a_framework(
        self, sources: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (sources / "requests" / "requests" / "estimator.py").write_text(
            "import tensorflow as tf\n\n\ndef save(session):\n    return tf.train.Saver().save(session)\n",
            encoding="utf-8",
        )
        second = dataclasses.replace(library("requests"), draw=2)
        monkeypatch.setattr(sample, "libraries", lambda: (second,))
        drawn = sample.sample_second(sources, 1, ["python"])
        assert {each.located.function.name for each in drawn} == {"remove", "send", "double"}
        first = SECOND_FIRST_OF_PYTHON
        assert sorted(each.id for each in drawn) == [f"u{number:04d}" for number in range(first, first + 3)]
        assert {each.batch for each in drawn} == {f"train2-{first // sample.BATCH_SIZE:03d}"}
        taken = next(each.located.text_hash for each in drawn if each.located.function.name == "send")
        monkeypatch.setattr(sample, "read_labels", lambda name: [label(text_hash=taken)] if name == "dev-spark" else [])
        again = sample.sample_second(sources, 1, ["python"])
        assert {each.located.function.name for each in again} == {"remove", "double"}

    def test_long_texts_are_cut_with_a_mark(self) -> None:
        shown = sample.show("t1", located("f", "y" * 9000))
        assert shown.startswith("### t1 requests a/b.py:1-4 a.b.f\n")
        assert len(shown) < sample.SHOWN_CODE_CHARS + 200
        assert f" {9000 - sample.SHOWN_CODE_CHARS} " in shown[-100:]  # so many characters are cut


class TestCollect:
    def test_merges_decides_and_asks_for_a_third_reading(self, sources: Path, work: Path) -> None:
        collected = collect.collect(sources, work)
        assert [(each.id, each.label, each.sure, each.annotators) for each in collected.labels["train"]] == [
            ("t0", "disk", 3, "AB"),
            ("t2", "cpu", 3, "AB"),
        ]
        assert list(collected.unsettled) == ["t1"]
        read(work, "C", "disagreement-000", "t1\tnet\t3\n")
        its = collect.collect(sources, work)
        assert not its.unsettled
        assert [(each.label, each.sure, each.annotators) for each in its.labels["train"] if each.id == "t1"] == [
            ("net", 2, "AB/C")
        ]

    def test_a_third_reading_by_one_of_the_two_does_not_count(self, sources: Path, work: Path) -> None:
        read(work, "B", "disagreement-000", "t1\tcpu\t3\n")
        assert list(collect.collect(sources, work).unsettled) == ["t1"]

    def test_one_reading_is_a_label(self, sources: Path, work: Path) -> None:
        (work / "out" / "B" / "train-000.tsv").unlink()
        its = collect.collect(sources, work).labels["train"]
        assert [(each.label, each.annotators) for each in its] == [("disk", "A"), ("net", "A"), ("cpu", "A")]

    def test_an_audit_by_an_annotator_of_the_label_does_not_count(self, sources: Path, work: Path) -> None:
        read(work, "A", "audit-000", "t0\tcpu\t3\n")
        read(work, "D", "audit-000", "t0\tnet\t3\nt2\tcpu\t3\n")
        audits = collect.collect(sources, work).audits
        assert [(each.id, each.annotator, each.label, each.reading) for each in audits] == [
            ("t0", "D", "disk", "net"),
            ("t2", "D", "cpu", "cpu"),
        ]

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("t0\tgpu\t3", "not id, label"),
            ("t0\tcpu\t4", "sure"),
            ("t0 cpu 3", "not id, label"),
            ("t9\tcpu\t3", "unknown function t9"),
            ("t0\tcpu\t3\nt0\tcpu\t3", "read t0 twice"),
        ],
    )
    def test_a_bad_line_is_named(self, sources: Path, work: Path, line: str, message: str) -> None:
        read(work, "C", "train-000", line + "\n")
        with pytest.raises(InputError, match=message) as caught:
            collect.collect(sources, work)
        assert "train-000.tsv, line" in str(caught.value)

    def test_a_reserved_file_stops_it(self, sources: Path, tmp_path: Path) -> None:
        work = tmp_path / "other"
        its = [each for each in functions_of(library("tensorflow"), sources) if is_reserved(each.file)]
        sample.write([sample.Candidate("x0", "dev-tensorflow", "dev-tensorflow-000", its[0], "other", 1.0)], work)
        read(work, "A", "dev-tensorflow-000", "x0\tdisk\t3\n")
        with pytest.raises(InputError, match="reserve"):
            collect.collect(sources, work)

    def test_rows_of_other_draws_stay(self, sources: Path, work: Path, tmp_path: Path) -> None:
        path = tmp_path / "train.tsv"
        others = [
            label(id="u1", library="numpy", file="b.py"),
            label(id="t0", library="requests", file="requests/api.py"),
        ]
        write_table(path, Label, others)
        fresh = collect.collect(sources, work).labels["train"]
        places = collect.read_candidates(work)
        merged = collect.merge(path, Label, fresh, places, lambda each: (each.id,))
        assert [(each.id, each.library, each.label) for each in merged] == [
            ("t0", "requests", "disk"),
            ("t2", "requests", "cpu"),
            ("u1", "numpy", "cpu"),
        ]
        write_table(path, Label, [label(id="t0", library="numpy", file="c.py")])
        with pytest.raises(InputError, match=r"t0.*numpy.*c\.py"):
            collect.merge(path, Label, fresh, places, lambda each: (each.id,))

    def test_command_writes_tables_batches_and_figures(
        self,
        sources: Path,
        work: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        tables = tmp_path / "tables"
        tables.mkdir()
        monkeypatch.setattr(sys, "argv", ["collect", str(sources), str(work), "--into", str(tables)])
        assert collect.main() == 0
        assert len(read_table(tables / "train.tsv", Label)) == 2
        assert len(read_table(tables / "readings.tsv", Reading)) == 6
        waiting = (work / "disagreements" / "disagreement-000.txt").read_text(encoding="utf-8")
        assert waiting.startswith("### t1 requests requests/api.py:12-13 requests.api.Session.send\n")
        assert "\tnet" not in waiting, "the two labels stay hidden"
        assert "| all | 3 | 66.7 % | 0.500 |" in capsys.readouterr().out
        read(work, "C", "disagreement-000", "t1\tnet\t3\n")
        assert collect.main() == 0
        assert not list((work / "disagreements").iterdir())
        assert (work / "audit" / "audit-000.txt").read_text(encoding="utf-8").count("### ") == 3

    def test_without_candidates(self, sources: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"run python -m crystalperf.indexer\.labels\.sample first"):
            collect.collect(sources, tmp_path)


class TestRebuild:
    @pytest.fixture
    def tables(self, sources: Path, work: Path, tmp_path: Path) -> Path:
        folder = tmp_path / "tables"
        folder.mkdir()
        write_table(folder / "train.tsv", Label, collect.collect(sources, work).labels["train"])
        return folder

    def run(self, sources: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
        out = tables / "texts.jsonl"
        arguments = ["rebuild", str(sources), "-o", str(out), "--tables", str(tables)]
        monkeypatch.setattr(sys, "argv", arguments)
        assert rebuild.main() == 0
        return [json.loads(line) for line in out.read_text(encoding="utf-8").split("\n") if line]

    def test_puts_labels_and_texts_together(self, sources: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        records = self.run(sources, tables, monkeypatch)
        assert [(each["id"], each["label"]) for each in records] == [("t0", "disk"), ("t2", "cpu")]
        assert records[0]["doc"] == "Deletes a file."
        assert "os.remove(path)" in str(records[0]["code"])
        assert records[0]["callees"] == ["remove"]
        assert records[1]["class_name"] == "Session"

    def test_follows_functions_that_moved_and_drops_those_that_changed(
        self, sources: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = sources / "requests" / "requests" / "api.py"
        path.write_text("# one more line\n\n" + API.replace("value * 2", "value + value"), encoding="utf-8")
        records = self.run(sources, tables, monkeypatch)
        assert [(each["id"], each["first_line"]) for each in records] == [("t0", 8)]

    def test_without_labels(self, sources: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=re.escape(str(tmp_path))):
            list(rebuild.rebuild(sources, tmp_path))


class TestAgreement:
    def test_kappa_of_a_known_table(self) -> None:
        # The worked example of Cohen's kappa: 50 readings, observed 0.7, expected 0.5.
        both = [("cpu", "cpu")] * 20 + [("cpu", "net")] * 5 + [("net", "cpu")] * 10 + [("net", "net")] * 15
        assert cohen_kappa(both) == pytest.approx(0.4)
        assert cohen_kappa([("cpu", "cpu")]) != cohen_kappa([("cpu", "cpu")]), "undefined where all is one label"

    def test_confusion_ignores_the_order_of_annotators(self) -> None:
        counts = confusion([("net", "cpu"), ("cpu", "net"), ("disk", "disk")])
        assert counts["cpu", "net"] == 2
        assert counts["disk", "disk"] == 1
        assert ("net", "cpu") not in counts

    def test_agreement_of_a_class(self) -> None:
        assert class_agreement([("net", "net"), ("net", "cpu")], "net") == pytest.approx(2 / 3)

    def test_third_readings_do_not_form_a_pair(self) -> None:
        readings = [Reading("a", name, "cpu", 3, "independent") for name in "BA"]
        readings += [Reading("b", "A", "cpu", 3, "independent"), Reading("b", "C", "net", 3, "third")]
        assert pairs(readings) == {"a": ("cpu", "cpu")}


class TestFetch:
    def test_patterns_choose_source_files(self) -> None:
        stdlib = library("python-stdlib")
        assert stdlib.is_source("Lib/shutil.py")
        assert not stdlib.is_source("Lib/test/test_shutil.py")
        assert not stdlib.is_source("Modules/posixmodule.c")
        assert library("spark").is_source("spark-core_2.13/org/apache/spark/unsafe/Platform.java")
        assert not library("netty").is_source("netty-common/build.xml")

    def test_paths_out_of_the_folder_are_refused(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
            archive.writestr("../evil.py", "")
        with pytest.raises(BuildError, match="unsafe path"):
            fetch._unzip(tmp_path / "evil.zip", tmp_path / "target", "", library("requests"))
        assert not (tmp_path / "evil.py").exists()

    def test_a_missing_tool_is_one_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(BuildError, match="mvn"):
            fetch.fetch(tmp_path / "libraries", frozenset({"fs2"}))

    def test_an_unknown_library_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SettingError, match="junk"):
            fetch.fetch(tmp_path, frozenset({"junk"}))

    def test_existing_folder_is_left_alone(self, sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (sources / "requests" / ".version").write_text(library("requests").version, encoding="utf-8")
        monkeypatch.setenv("PATH", "")
        fetch.fetch(sources, frozenset({"requests"}))
        assert (sources / "requests" / "requests" / "api.py").read_text(encoding="utf-8") == API


class TestCard:
    def test_figures_go_between_the_marks(self) -> None:
        card = "before\n<!-- figures: how -->\nold\n<!-- end of figures -->\nafter\n"
        once = statistics.with_figures(card, "| a \\1 |")
        assert once.startswith("before\n<!-- figures: how -->\n")
        assert "old" not in once
        assert "| a \\1 |" in once
        assert statistics.with_figures(once, "| a \\1 |") == once
        with pytest.raises(InputError, match="marks"):
            statistics.with_figures("no marks", "")

    def test_a_damaged_table_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "train.tsv"
        write_table(path, Label, [label(library="netty")])
        path.write_text(path.read_text(encoding="utf-8") + "t2\tnetty\n", encoding="utf-8")
        with pytest.raises(InputError, match="line 3: 2 columns"):
            read_table(path, Label)
        path.write_text("garbage-collection", encoding="utf-8")
        with pytest.raises(InputError, match=r"train\.tsv"):
            read_table(path, Label)
