"""`make fuzz` repeats itself by its seed, and notices every kind of failure it is there to notice."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.containers import head
from crystalperf.query.inputs.discover import discover
from crystalperf.query.trace.wire import FIXED64
from lab.damage import cases, fuzz, messages, mutations
from lab.damage.cases import Case
from lab.damage.sources import Sources, load_sources

DATA = Path(__file__).parent / "data"
LOG = DATA / "eventlog" / "q9.zstd"


@pytest.fixture(scope="module")
def sources(demo: Path) -> Sources:
    (application,) = discover([LOG]).applications
    lines = [line for line in head(application.log.parts[0], 1 << 22).split(b"\n") if line]
    return Sources(
        {"q9": lines},
        {"demo": gzip.decompress((demo / "executor-0.jfr.gz").read_bytes())},
        {"join": gzip.decompress((DATA / "flink" / "join-and-sort.json.gz").read_bytes())},
        {"stacks": gzip.decompress((DATA / "collapsed" / "executor-0.collapsed.gz").read_bytes())},
    )


def test_a_seed_repeats_the_damage(sources: Sources) -> None:
    lines, recording = sources.logs["q9"], sources.recordings["demo"]
    document, stacks = sources.documents["join"], sources.stacks["stacks"]
    for number in range(50):
        assert mutations.damaged_log(Random(number), lines) == mutations.damaged_log(Random(number), lines)
        one, two = (mutations.damaged_recording(Random(number), recording, recording) for _ in range(2))
        assert one == two
        for damaged, data in ((mutations.damaged_document, document), (mutations.damaged_stacks, stacks)):
            assert damaged(Random(number), data) == damaged(Random(number), data)
    assert len({mutations.damaged_log(Random(number), lines)[1] for number in range(200)}) > 50


def test_damaged_inputs_end_as_tables_or_one_sentence(sources: Sources, tmp_path: Path) -> None:
    for kind in ("log", "document", "jfr", "collapsed"):
        for number in range(1, 13):
            outcome = cases.run_case(Case(kind, number), 1, sources, tmp_path)
            assert outcome.what in ("read", "refused"), outcome.text
            assert not list(tmp_path.iterdir())


def test_all_kinds_of_damage_occur(sources: Sources) -> None:
    found = " ".join(mutations.damaged_log(Random(number), sources.logs["q9"])[1] for number in range(500))
    for kind in (*mutations.EVENTS, *mutations.BYTES):
        assert kind.__name__ in found


def test_most_damaged_archives_can_still_be_read(sources: Sources, tmp_path: Path) -> None:
    """Inputs that only end in `not an archive` test nothing behind the first line."""
    outcomes = [cases.run_case(Case("document", number), 1, sources, tmp_path).what for number in range(1, 19)]
    assert outcomes.count("read") > 6


@pytest.mark.later  # unpacks all recordings: 29 s of CPU time
def test_every_reader_has_sources() -> None:
    found = load_sources()
    assert found.logs
    assert found.documents
    assert found.recordings
    assert found.stacks
    for framework in cases.FRAMEWORKS:
        assert found.of_framework(framework)


def test_damaged_message_is_still_a_message() -> None:
    for path in (DATA / "training").rglob("*.pb"):
        data = path.read_bytes()
        assert messages.encoded(messages.parsed(data) or []) == data
        changed = [messages.damaged_message(Random(number), data)[0] for number in range(40)]
        assert all(messages.parsed(each) is not None for each in changed)
        assert len(set(changed)) > 20
    # A double whose bytes happen to be a message keeps its eight bytes.
    data = messages.encoded([(1, FIXED64, int.from_bytes(b"\x08\x01" * 4, "little"))])
    assert all(messages.parsed(messages.damaged_message(Random(number), data)[0]) is not None for number in range(200))


Broken = Callable[[Path, bool], Any]


def crash(folder: Path, whole: bool) -> tuple[str, str]:
    raise KeyError("Task Metrics")


def hang(folder: Path, whole: bool) -> tuple[str, str]:
    time.sleep(60)
    return "read", ""


def swell(folder: Path, whole: bool) -> tuple[str, str]:
    return "read", str(len(np.ones(40 << 20, dtype=np.uint8)))


def die(folder: Path, whole: bool) -> tuple[str, str]:
    os._exit(9)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("reader", "expected"),
    [(crash, "KeyError"), (hang, "no answer after"), (swell, "MiB of memory"), (die, "the process died (9)")],
)
def test_a_reader_that_fails_is_noticed(
    reader: Broken, expected: str, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "_read_log", reader)
    monkeypatch.setattr(fuzz, "LONGEST_S", 2.0 if reader is hang else 300.0)
    monkeypatch.setattr(fuzz, "MAX_MEMORY_BYTES", 1 << 20 if reader is swell else 1 << 40)
    (outcome,) = fuzz.fuzz([Case("log", 1)], 0, 1, sources)
    assert outcome.what == "failed"
    assert expected in outcome.text


def test_contradicting_tables_are_a_failure() -> None:
    trace = get("spark").reader.read(discover([LOG]).applications[0].log)
    cases.check_trace(trace)
    trace.tasks["finish_ms"][3] = -1.0
    with pytest.raises(cases.ContradictionError, match="before it starts"):
        cases.check_trace(trace)
