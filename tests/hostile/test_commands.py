"""`make fuzz` types commands too: analyze, debug and predict on damaged logs and recordings."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from lab.damage import fuzz
from lab.damage.fuzz import Case, Sources
from query.discover import discover
from query.inputs.containers import head

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def sources() -> Sources:
    (application,) = discover([DATA / "eventlog" / "q9.zstd"]).applications
    lines = [line for line in head(application.log.parts[0], 1 << 22).split(b"\n") if line]
    recording = gzip.decompress((DATA / "acme" / "driver.jfr.gz").read_bytes())
    return Sources({"q9": lines}, {"acme": recording})


def test_commands_on_damaged_inputs_end_in_an_answer_or_a_sentence(sources: Sources, tmp_path: Path) -> None:
    for number in range(6):
        outcome = fuzz.run_case(Case("command", number), 1, sources, tmp_path)
        assert outcome.what in ("read", "refused"), outcome.text


def test_a_command_that_breaks_its_contract_is_noticed(
    sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "type_command", lambda _: 3)
    assert "ended with 3" in fuzz.run_case(Case("command", 1), 1, sources, tmp_path).text
