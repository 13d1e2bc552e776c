"""Targets of Python's calls: names, `self`, annotations, assignments, bases, and outside sources."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")

import duckdb

from crystalperf.indexer.build import build
from crystalperf.indexer.pyfacts import read_facts
from crystalperf.indexer.pytyped import Linked, meaning
from crystalperf.indexer.sources import open_source
from crystalperf.indexes.apis import device_api
from tests.hash_classifier import HashClassifier

STORE = b"""
import os.path
import socket as net
from urllib import request
from .peers import Peer, make
from . import peers
from ._native import *

LOG = open("log")

class Store:
    peer: "Peer"
    def __init__(self, path: str, other: "Store | None" = None, unknown=None):
        self.path = path
        self.file = open(path)
        self.link = net.socket()
        self.other = other
        self.unknown = unknown
    def read(self, helper: peers.Peer):
        os.path.getsize(self.path)
        self.file.read()
        self.link.recv(1)
        self.peer.ask()
        self.other.read(helper)
        helper.ask()
        self.unknown.ask()
        request.urlopen("x")
        fast()
        LOG.write("x")
        with Store("x") as inner:
            inner.close()
        for each in helper.all():
            each.ask()
        return [one.strip() for one in "a b".split()]
    def __enter__(self):
        return self
    def close(self):
        def within():
            return make()
        within().ask()
        peers.make()
        self.path.upper()

class Cached(Store):
    def close(self):
        super().close()
        Plain()

class Plain:
    pass
"""
PEERS = b"""
import threading

class Peer(threading.Thread):
    def ask(self):
        self.start()
        self.answer()
    @property
    def nearest(self) -> "Peer":
        return self
    def far(self):
        return self.nearest.ask()

def make():
    return Peer()
"""


@pytest.fixture(scope="module")
def reported() -> dict[tuple[str, str], set[tuple[str, str]]]:
    """By caller and name as written: status, and the function or the reason."""
    linked = Linked.of(
        read
        for file, text in (("a/store.py", STORE), ("a/peers.py", PEERS), ("a/__init__.py", b""))
        if (read := read_facts(text, file))
    )
    names = list(linked.functions)
    numbers = {name: (number,) for number, name in enumerate(names)}
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for facts in linked.modules.values():
        for call in facts.calls:
            each = meaning(linked, numbers, call)
            targets = ",".join(names[number] for number in each.targets)
            shown = each.owner if each.status == "unknown" else targets or f"{each.owner}.{each.name}"
            found.setdefault((call.caller, call.name), set()).add((each.status, shown))
    return found


@pytest.mark.parametrize(
    ("caller", "name", "expected"),
    [
        ("a.store.<module>", "open", {("outside", "builtins.open")}),
        ("a.store.Store.__init__", "socket", {("outside", "socket.socket")}),
        ("a.store.Store.read", "getsize", {("outside", "os.path.getsize")}),
        ("a.store.Store.read", "recv", {("outside", "socket.socket.recv")}),
        ("a.store.Store.read", "write", {("outside", "io.IOBase.write")}),
        ("a.store.Store.read", "urlopen", {("outside", "urllib.request.urlopen")}),
        ("a.store.Store.read", "fast", {("outside", "a._native.fast")}),
        ("a.store.Store.read", "Store", {("function", "a.store.Store.__init__")}),
        # `with` binds the result of __enter__; a subclass has a close of its own.
        ("a.store.Store.read", "close", {("functions", "a.store.Store.close,a.store.Cached.close")}),
        ("a.store.Store.read", "split", {("outside", "builtins.str.split")}),
        ("a.store.Store.close", "within", {("function", "a.store.Store.close.within")}),
        ("a.store.Store.close", "ask", {("function", "a.peers.Peer.ask")}),
        ("a.store.Store.close", "make", {("function", "a.peers.make")}),
        ("a.store.Store.close", "upper", {("outside", "builtins.str.upper")}),
        ("a.store.Cached.close", "close", {("function", "a.store.Store.close")}),
        ("a.store.Cached.close", "Plain", {("made", "a.store.Plain.__init__")}),
        ("a.peers.Peer.ask", "start", {("outside", "threading.Thread.start")}),
        ("a.peers.Peer.far", "ask", {("function", "a.peers.Peer.ask")}),
    ],
)  # fmt: skip
def test_targets_of_calls(
    reported: dict[tuple[str, str], set[tuple[str, str]]], caller: str, name: str, expected: set[tuple[str, str]]
) -> None:
    assert reported[caller, name] == expected


def test_undetermined_target_is_unknown_with_its_reason(reported: dict[tuple[str, str], set[tuple[str, str]]]) -> None:
    assert reported["a.store.Store.read", "ask"] == {
        ("function", "a.peers.Peer.ask"),
        ("unknown", "a parameter without a type"),
        ("unknown", "an element of a loop"),
    }
    assert reported["a.store.Store.read", "strip"] == {("unknown", "an element of a loop")}


@pytest.mark.parametrize(
    "text",
    [
        b"def f(:",
        b"\0",
        b"x = " + b"(" * 5000 + b")" * 5000,
        b"x = " + b"-" * 100_000 + b"1",
        b"x = a" + b".b()" * 3000,
        b"class A(A): pass\nA().f()\nx = y\ny = x\nx.f()",
        b"def f(): return f()\nf().g()",
        b"from . import *\nfrom .... import x\ng()",
    ],
)
def test_odd_files_cost_themselves_at_most(text: bytes) -> None:
    facts = read_facts(text, "odd.py")
    if facts is not None:
        linked = Linked.of([facts])
        assert all(meaning(linked, {}, call).status for call in facts.calls)


def test_python_index_resolves_call_targets(tmp_path: Path) -> None:
    (tmp_path / "source" / "a").mkdir(parents=True)
    for name, text in (("store.py", STORE), ("peers.py", PEERS), ("__init__.py", b"")):
        (tmp_path / "source" / "a" / name).write_bytes(text)
    path = tmp_path / "a-1.duckdb"
    build("a-1", open_source("a-1", [tmp_path / "source"]), output=path, classifier=HashClassifier())
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = set(connection.execute(
            "SELECT caller.qualified_name, callee_name, callee.qualified_name FROM calls"
            " JOIN functions AS caller ON caller.function_id = caller_id"
            " LEFT JOIN functions AS callee ON callee.function_id = callee_id"
        ).fetchall())  # fmt: skip
    assert ("a.store.Store.read", "socket.socket.recv", None) in rows
    assert ("a.store.Store.close", "ask", "a.peers.Peer.ask") in rows
    assert ("a.store.Store.read", "ask", None) in rows  # one of its calls is not known
    found = {device_api(*name.rpartition(".")[::2]) for _, name, _ in rows if "." in name}
    assert {each.resource for each in found if each} == {"disk", "net"}
