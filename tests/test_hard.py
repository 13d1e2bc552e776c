"""The third draw: hard functions are those that the model calls a device's though no typed call leads to one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("torch", reason="the indexer extra is not installed")

from crystalperf.indexer.evidence import Called
from crystalperf.indexer.labels import hard
from crystalperf.indexer.labels.functions import Located
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.sample import Candidate
from crystalperf.indexer.vectors import Floats, FunctionText, Vectors
from tests.test_labels import label, located

pytestmark = pytest.mark.later

API = """
import os


def remove(path):
    os.remove(path)


def tidy(path):
    remove(path)


def send(session, request):
    return session.socket.sendall(request.body)


def remove_name(names, path):
    names.discard(path)


def double(value):
    return value * 2
"""
LIBRARY = next(each for each in libraries() if each.name == "requests")


class Words:
    """A model that goes by a function's name alone."""

    resources = ("cpu", "disk", "net")
    identity: ClassVar[dict[str, str]] = {}

    def judge(self, functions: Sequence[FunctionText]) -> Floats:
        said = [
            1 if "remove" in each.qualified_name else 2 if "send" in each.qualified_name else 0 for each in functions
        ]
        return np.eye(3, dtype=np.float32)[said]

    def vectors(self, judged: Floats, called: Callable[[], Called] | None = None) -> Vectors:
        return Vectors(judged, judged, judged, judged.max(axis=1))


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "libraries"
    (folder / "requests" / "requests").mkdir(parents=True)
    (folder / "requests" / "requests" / "api.py").write_text(API, encoding="utf-8")
    return folder


def names(drawn: Sequence[Candidate]) -> set[str]:
    return {each.located.function.name for each in drawn}


def test_functions_that_call_a_device_or_are_called_cpu_are_not_hard(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hard, "libraries", lambda: (LIBRARY, dataclasses.replace(LIBRARY, set="dev-spark", name="x")))
    monkeypatch.setattr(hard, "load", Words)
    drawn = hard.sample(sources, sources, 1)
    assert names(drawn) == {"send", "remove_name"}
    assert [each.id for each in drawn] == ["v0000", "v0001"]
    assert {each.batch for each in drawn} == {"train3-000"}


def test_labelled_and_measured_functions_are_not_drawn_again(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hard, "libraries", lambda: (LIBRARY,))
    monkeypatch.setattr(hard, "load", Words)
    send = next(each.located for each in hard.sample(sources, sources, 1) if each.located.function.name == "send")
    monkeypatch.setattr(
        hard, "read_labels", lambda name: [label(text_hash=send.text_hash)] if name == "dev-flink" else []
    )
    assert names(hard.sample(sources, sources, 1)) == {"remove_name"}
    place = SimpleNamespace(
        library="requests", file="requests/api.py", qualified_name="requests.api.remove_name", text_hash="other"
    )
    monkeypatch.setattr(hard, "read_table", lambda path, kind: [place])
    assert names(hard.sample(sources, sources, 1)) == set()


def test_devices_are_drawn_alike_and_libraries_by_the_root_of_their_size() -> None:
    def members(library: str, count: int, resource: str) -> list[tuple[Located, str]]:
        its = [located(f"f{n}", f"{resource} {n}", f"{library}/{n}.py", library) for n in range(count)]
        return [(each, resource) for each in its]

    found = [*members("large", 4000, "disk"), *members("small", 250, "disk"), *members("large", 30, "net")]
    chosen = hard.choose(found, 1)
    assert Counter(resource for _, resource in chosen) == {"disk": 600, "net": 30}
    drawn = Counter(each.library for each, resource in chosen if resource == "disk")
    assert 80 <= drawn["small"] <= 160  # a fifth of all, less what the small library runs out of
    assert hard.choose(found[::-1], 1) == chosen
