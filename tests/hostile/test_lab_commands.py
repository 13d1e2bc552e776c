"""`make fuzz` also runs commands on damaged logs and recordings, and uses the other interfaces."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crystalperf.query.inputs.containers import head
from crystalperf.query.inputs.discover import discover
from lab.damage import cases, interfaces, judging
from lab.damage.cases import Case
from lab.damage.sources import Sources

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def sources() -> Sources:
    (application,) = discover([DATA / "eventlog" / "q9.zstd"]).applications
    lines = [line for line in head(application.log.parts[0], 1 << 22).split(b"\n") if line]
    recording = gzip.decompress((DATA / "acme" / "driver.jfr.gz").read_bytes())
    archive = gzip.decompress((DATA / "flink" / "join-and-sort.json.gz").read_bytes())
    stacks = gzip.decompress((DATA / "collapsed" / "executor-0.collapsed.gz").read_bytes())
    return Sources({"q9": lines}, {"acme": recording}, {"join": archive}, {"stacks": stacks})


@pytest.mark.few(2)
@pytest.mark.parametrize("number", range(6))
def test_commands_on_damaged_inputs_end_in_an_answer_or_a_sentence(
    number: int, sources: Sources, tmp_path: Path
) -> None:
    outcome = cases.run_case(Case("command", number), 1, sources, tmp_path)
    assert outcome.what in ("read", "refused"), outcome.text


def test_fuzzing_notices_a_command_that_breaks_its_contract(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "type_command", lambda _: 3)
    assert "ended with 3" in cases.run_case(Case("command", 1), 1, sources, tmp_path).text


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", cases.INTERFACES)
def test_other_interfaces_end_in_an_answer_or_a_sentence(kind: str, sources: Sources, tmp_path: Path) -> None:
    for number in range(2):
        outcome = cases.run_case(Case(kind, number), 1, sources, tmp_path)
        assert outcome.what in ("read", "refused"), outcome.text


def test_fuzzing_notices_a_page_with_another_script(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interfaces, "_SCRIPTS", interfaces._SCRIPTS - 1)
    assert "a page with 2 scripts" in cases.run_case(Case("page", 0), 1, sources, tmp_path).text
