"""Labels of typed callees as evidence: whom a function calls, what a row of features says, and the rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the indexer extra is not installed")

from crystalperf.indexer.baselines.called import ruled
from crystalperf.indexer.callees import fit_callees, read_evidence
from crystalperf.indexer.evidence import FEATURES, NO_DEVICE, OF_LABELS, OTHERS, Called, Callees, callees_of
from crystalperf.indexer.examples import Example
from crystalperf.indexer.labels.called import collect
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.typed import Meaning
from crystalperf.indexer.vectors import FunctionText
from crystalperf.indexes.resources import resources

pytestmark = pytest.mark.later

API = """
import os


class Pool:
    def reset(self):
        self.producer().close()

    def producer(self):
        return Producer()


class Producer:
    def close(self):
        os.remove("a")
"""


def test_a_call_is_a_device_a_function_outside_or_not_known() -> None:
    found = [
        Meaning("outside", (), "os", "remove"),
        Meaning("function", (4,), "a.B", "f"),
        Meaning("functions", (4, 5), "a.B", "g"),
        Meaning("functions", tuple(range(10, 40)), "a.B", "h"),
        Meaning("outside", (), "os.path", "join"),
        Meaning("outside", (), "os.path", "join"),
        Meaning("unknown", (), "a parameter", "x"),
        Meaning("field", (), "a.B", "size"),
    ]
    assert callees_of(found) == Callees(("disk",), (4, 5, 10), 1, 1)


def test_an_api_counts_by_the_fewest_calls_to_it() -> None:
    calls = {
        0: Callees((), (1, 2), 3, 0),
        1: Callees((), (2,)),
        2: Callees(("net",), (0,)),
        3: Callees((), (4, 3)),
        5: Callees((), (0,)),
        6: Callees((), (5,)),
    }
    found = Called.of(calls, ["read", "read", "write", "a", "b", "c", "d"])
    assert found.nearest[:, 1].tolist() == [2, 2, 1, 0, 0, 3, 0]
    assert not found.nearest[:, 0].any()
    assert found.typed.tolist() == [True, True, True, True, False, True, True]
    rows = found.features(np.full((7, 3), 1 / 3, np.float32))
    of = {name: rows[:, at].tolist() for at, name in enumerate(FEATURES)}
    assert of["no API near"] == [0, 0, 0, 1, 0, 0, 1]
    assert of["no typed call"] == [0, 0, 0, 0, 1, 0, 0]
    assert of["outside"][0] > of["outside"][1] == 0
    # A function does not count among its own callees.
    assert of["callees"][3] == of["callees"][1]


def test_a_namesake_counts_or_else_the_only_callee() -> None:
    labels = np.array([[1, 0, 0], [0.3, 0.7, 0], [0.1, 0, 0.9]], np.float32)
    names = ["read", "read", "write"]
    both = Called.of({0: Callees((), (1, 2))}, names).features(labels)[0]
    only = Called.of({0: Callees((), (2,))}, names).features(labels)[0]
    of_both, of_only = (dict(zip(OF_LABELS, row.tolist(), strict=False)) for row in (both, only))
    assert (of_both["namesake disk"], of_both["namesake net"]) == (pytest.approx(0.7), 0)
    assert (of_only["namesake disk"], of_only["namesake net"]) == (0, pytest.approx(0.9))
    assert (of_both["largest net"], of_both["mean net"]) == (pytest.approx(0.9), pytest.approx(0.45))


def test_an_api_a_callee_or_the_lack_of_devices_decides_a_label() -> None:
    calls = {0: Callees((), (3, 4)), 1: Callees(("net",), (3,)), 2: Callees((), (), 2)}
    found = Called.of(calls, ["a", "b", "c", "d", "e"])
    labels = np.array([[1, 0, 0]] * 3 + [[0.5, 0.4, 0.1], [0.2, 0.8, 0]], np.float32)
    decided = {0: "disk", 1: "net", 2: "net"}
    assert found.deciders(labels, decided) == {0: 4, 1: "net API", 2: OTHERS}
    assert found.deciders(labels, {0: "cpu", 1: "disk"}) == {0: NO_DEVICE, 1: 3}
    assert not found.without().typed.any()


def test_a_model_says_which_callee_changed_the_label_of_a_function() -> None:
    model = load()
    texts = [
        FunctionText("def send(self): return self.helper(1)", "", "python", "a.B.send", "B", "a", ("helper",)),
        FunctionText("def helper(self, n): return n + 1", "", "python", "a.B.helper", "B", "a", ()),
    ]
    judged = model.judge(texts)
    weights = np.zeros((len(FEATURES), 3), np.float32)
    weights[FEATURES.index("calls a net API")] = [-50, -50, 50]
    fixed = replace(model, callees=weights)
    calls = Called.of({1: Callees(("net",))}, ["send", "helper"])
    found = fixed.vectors(judged, lambda: calls)
    assert found.deciders == {1: "net API"}
    assert found.combined[1].argmax() == resources().index("net")
    assert fixed.vectors(judged).deciders == {}


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """The output of `collect` for two functions of a library and one of a framework's reserve."""
    for library, name in (("requests", "pool"), ("tensorflow", "file_io"), ("tensorflow", "saver")):
        folder = tmp_path / "libraries" / library / library
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(API, encoding="utf-8")
    records = [
        {"id": identifier, "library": library, "file": f"{library}/{module}.py", "first_line": line,
         "qualified_name": f"{library}.{module}.{name}"}
        for identifier, library, module, name, line in (
            ("a", "requests", "pool", "Pool.reset", 6), ("b", "requests", "pool", "Producer.close", 14),
            ("c", "tensorflow", "file_io", "Pool.reset", 6), ("d", "tensorflow", "saver", "Pool.reset", 6),
        )
    ]  # fmt: skip
    texts, out = tmp_path / "texts.jsonl", tmp_path / "called.jsonl"
    texts.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    collect([texts], tmp_path / "libraries", tmp_path / "jars", out)
    return out


def test_functions_are_written_with_whom_they_call_and_the_reserve_is_not_read(called: Path) -> None:
    lines = [json.loads(line) for line in called.read_text(encoding="utf-8").splitlines()]
    names = {each["key"]: each["qualified_name"] for each in lines if "key" in each}
    its = {each["id"]: each for each in lines if "id" in each}
    assert {names[key] for key in its["a"]["callees"]} == {
        "requests.pool.Pool.producer",
        "requests.pool.Producer.close",
    }
    assert (its["a"]["devices"], its["a"]["hops"]) == ([], {"disk": 2})
    assert (its["b"]["devices"], its["b"]["callees"]) == (["disk"], [])
    of_framework = {each["file"] for each in lines if each.get("library") == "tensorflow"}
    assert len({"c", "d"} & set(its)) == len(of_framework) == 1


def test_features_and_rule_follow_the_callees(called: Path) -> None:
    evidence = read_evidence(called, ["a", "b", "not there"])
    names = [each.qualified_name for each in evidence.functions]
    labels = np.tile(np.array([[0.96, 0.02, 0.02]], np.float32), (len(names), 1))
    labels[names.index("requests.pool.Producer.close")] = [0.05, 0.92, 0.03]
    text = FunctionText("", "", "python", "requests.pool.Pool.close", "Pool", "requests.pool", ())
    examples = [Example(text, 0, "train", "requests", "requests/pool.py", 1.0)] * 3
    rows = evidence.features(examples, labels)
    first = dict(zip(FEATURES, rows[0].tolist(), strict=True))
    assert first["largest disk"] == pytest.approx(0.92)
    assert first["mean disk"] == pytest.approx(0.47)
    assert first["namesake disk"] == pytest.approx(0.92)  # Producer.close, called by a close
    assert (first["calls a disk API"], first["nothing is known"]) == (0, 0)
    assert (first["disk API 2 away"], first["disk API 1 away"], first["no API near"]) == (1, 0, 0)
    assert rows[1][FEATURES.index("calls a disk API")] == 1
    assert rows[1][FEATURES.index("disk API 1 away")] == 1
    known = {name for name, value in zip(FEATURES, rows[2].tolist(), strict=True) if value}
    assert known == {"nothing is known", "no typed call"}
    even = np.full((3, 3), 1 / 3, np.float32)
    assert ruled(even, evidence, labels, np.arange(3)).argmax(axis=1).tolist() == [1, 1, 0]
    assert (ruled(even, evidence, labels, np.arange(3))[2] == even[2]).all()
    labels[:] = [0.96, 0.02, 0.02]
    assert ruled(even[:1], evidence, labels, np.arange(1)).tolist() == [[1, 0, 0]]


def test_correction_follows_the_evidence_on_the_scale_of_the_logits() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 6000)
    features = np.eye(3, dtype=np.float32)[np.where(rng.random(6000) < 0.8, labels, rng.integers(0, 3, 6000))]
    logits = (2 * np.eye(3)[np.where(rng.random(6000) < 0.7, labels, rng.integers(0, 3, 6000))]).astype(np.float32)
    rows = np.arange(3000)
    found = fit_callees(logits, features, labels, rows)
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
    rest = np.arange(3000, 6000)
    with_evidence = (logits + features @ found)[rest].argmax(axis=1) == labels[rest]
    assert with_evidence.mean() > (logits[rest].argmax(axis=1) == labels[rest]).mean() + 0.03
    # Logits of twice the size ask for twice the evidence.
    assert fit_callees(2 * logits, features, labels, rows) == pytest.approx(2 * found, rel=0.1)
