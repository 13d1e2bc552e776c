"""Servers that lie: each request ends by its deadline in one sentence, and what was collected before is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.flink import collect
from crystalperf.query.inputs import rest
from lab.damage import lying

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines that a test can wait for."""
    for name in ("TIMEOUT_S", "PAGE_S", "LOG_S"):
        monkeypatch.setattr(rest, name, 0.5)
    monkeypatch.setattr(rest.Server.opened.__wrapped__, "__defaults__", (0.5,))
    monkeypatch.setattr(rest, "MAX_PAGE_BYTES", 1 << 20)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", lying.LIES)
def test_a_lie_ends_in_one_sentence(name: str, crystalperf: Answer, tmp_path: Path) -> None:
    lie = lying.LIES[name]
    with lying.serving({"/jobs/overview": lie, "/api/v1/version": lie}) as address:
        for arguments in (("collect", "flink", address, "-o", tmp_path), ("analyze", address)):
            code, out, err = crystalperf(*arguments)
            assert (code, out) == (1, "")
            last = err.strip().rpartition("\n")[2]
            assert address in last
            assert "bug" not in last


@pytest.mark.few(2)
@pytest.mark.parametrize("name", lying.LIES)
def test_a_log_that_is_a_lie_ends_in_one_sentence(name: str, crystalperf: Answer) -> None:
    with lying.serving({"/api/v1/applications/app-1/1/logs": lying.LIES[name]}) as address:
        code, out, err = crystalperf("analyze", address)
    assert (code, out) == (1, "")
    assert "bug" not in err


@pytest.mark.few(3)
@pytest.mark.parametrize("name", lying.SHAPES)
def test_pages_of_another_shape_are_refused(name: str, tmp_path: Path) -> None:
    page, content = lying.SHAPES[name]
    with lying.serving({page: content}) as address, pytest.raises(InputError) as found:
        collect.collect(address, None, tmp_path, lambda _: None)
    assert "\n" not in str(found.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lie", ["dripped body", "two lengths"])
def test_other_pages_are_kept_if_one_is_a_lie(lie: str, tmp_path: Path) -> None:
    vertex = f"/jobs/{lying.JOB}/vertices/{lying.VERTEX}"
    with lying.serving({f"/jobs/{lying.JOB}/plan": lying.LIES[lie]}) as address:
        path = collect.collect(address, None, tmp_path, lambda _: None)
    kept = {each["path"] for each in json.loads(path.read_text())["archive"]}
    assert {"/jobs/overview", f"/jobs/{lying.JOB}", vertex, "/overview"} <= kept


def test_all_pages_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "PAGES_S", 1.0)
    slow = lying.LIES["dripped body"]
    vertices = [{"id": f"{number:032x}"} for number in range(1000)]
    with lying.serving({f"/jobs/{lying.JOB}": lying.job(vertices=vertices), "*": slow}) as address:
        path = collect.collect(address, None, tmp_path, lambda _: None)
    assert f"/jobs/{lying.JOB}" in path.read_text()
