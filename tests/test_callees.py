"""Device APIs among callees as evidence: how far they are followed, and what the rule makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the indexer extra is not installed")

from crystalperf.indexer.baselines.callees import (
    FAR,
    Hops,
    features,
    main_way,
    of_class_files,
    of_python,
    reached,
    ruled,
    without_asides,
)
from crystalperf.indexer.classfile import Call, Method, read
from crystalperf.indexer.pyfacts import read_facts
from crystalperf.indexer.pytyped import Linked
from crystalperf.indexer.typed import Graph

pytestmark = pytest.mark.later

CLASSES = Path(__file__).parent / "data" / "classes"


def test_nearest_device_counts_and_call_cycles_terminate() -> None:
    calls: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        "a": ([], ["b", "a"]), "b": (["disk"], ["c"]), "c": (["net", "disk"], ["d"]), "d": (["net"], []),
        "far": ([], ["a"]),
    }  # fmt: skip
    assert reached([calls["a"]], calls.__getitem__) == {"disk": 2, "net": 3}
    assert reached([calls["far"]], calls.__getitem__) == {"disk": 3}
    assert FAR == 3


def test_python_is_followed_through_methods() -> None:
    text = b"""
import os

class Store:
    def keep(self):
        self.write()
    def write(self):
        os.rename("a", "b")
    def join(self):
        return os.path.join("a", "b")
"""
    facts = read_facts(text, "store.py")
    assert facts is not None
    records = [
        {"id": name, "file": "store.py", "qualified_name": f"store.Store.{name}"} for name in ("keep", "write", "join")
    ]
    assert of_python(Linked.of([facts]), records) == {"keep": {"disk": 2}, "write": {"disk": 1}, "join": {}}


def test_main_path_excludes_handlers_and_log_lines() -> None:
    def call(owner: str, name: str) -> Call:
        return Call("virtual", owner, name, "()V")

    calls = (
        (3, call("java.io.File", "exists")),
        (4, call("java.io.File", "length")),
        (4, call("org.slf4j.Logger", "info")),
        (5, call("org.apache.spark.internal.Logging", "logWarning")),
        (6, call("java.io.File", "delete")),
        (7, call("org.acme.Catalog", "info")),
    )
    method = Method("f", "()V", 1, 3, calls, handling=frozenset([4]))
    assert [call.name for _, call in main_way(method)] == ["exists", "info"]


def test_python_paths_exclude_handlers_and_log_lines() -> None:
    text = b"""
def f(path):
    try:
        work(path)
    except OSError:
        os.remove(path)
        shutil.rmtree(
            path)
    _LOGGER.info("%s", os.stat(path))
    dialog.info(path)
    return path
"""
    assert (
        without_asides(text)
        == b"""
def f(path):
    try:
        work(path)
    except OSError:
        pass
        pass

    pass
    dialog.info(path)
    return path
"""
    )
    assert without_asides(b"def broken(:") == b"def broken(:"


def test_class_files_are_found_by_class_and_lines() -> None:
    files = [read(each.read_bytes()) for each in sorted(CLASSES.glob("*.class"))]
    record = {
        "id": "x", "package": "org.example", "class_name": "Calls", "qualified_name": "org.example.Calls.virtual",
        "first_line": 42, "last_line": 44,
    }  # fmt: skip
    elsewhere = {**record, "id": "y", "class_name": "Gone"}
    assert of_class_files(Graph({each.name: each for each in files}), [record, elsewhere]) == {"x": {}}


def test_the_rule_decides_only_where_one_device_is_nearest() -> None:
    words = np.full((5, 3), 1 / 3, np.float32)
    found: list[Hops | None] = [{"disk": 1}, {"disk": 2, "net": 1}, {"disk": 2, "net": 2}, {}, None]
    assert ruled(words, found, 2).argmax(axis=1).tolist() == [1, 2, 0, 0, 0]
    assert ruled(words, found, 1)[0].tolist() == [0, 1, 0]
    assert (ruled(words[:1], [{"disk": 3}], 2) == words[:1]).all()
    rows = features(found)
    assert rows.sum(axis=1).tolist() == [1, 2, 2, 1, 1]
    assert len({tuple(each) for each in rows.tolist()}) == 5
