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

from lab.damage import fuzz, mutations
from lab.damage.fuzz import Case, Sources
from query.discover import discover
from query.frameworks.known import get
from query.inputs.containers import head

DATA = Path(__file__).parent / "data"
LOG = DATA / "eventlog" / "q9.zstd"


@pytest.fixture(scope="module")
def sources(demo: Path) -> Sources:
    (application,) = discover([LOG]).applications
    lines = [line for line in head(application.log.parts[0], 1 << 22).split(b"\n") if line]
    return Sources({"q9": lines}, {"demo": gzip.decompress((demo / "executor-0.jfr.gz").read_bytes())})


def test_a_seed_repeats_the_damage(sources: Sources) -> None:
    lines, recording = sources.logs["q9"], sources.recordings["demo"]
    for number in range(50):
        assert mutations.damaged_log(Random(number), lines) == mutations.damaged_log(Random(number), lines)
        one, two = (mutations.damaged_recording(Random(number), recording, recording) for _ in range(2))
        assert one == two
    assert len({mutations.damaged_log(Random(number), lines)[1] for number in range(200)}) > 50


def test_damaged_inputs_end_as_tables_or_one_sentence(sources: Sources, tmp_path: Path) -> None:
    for kind in ("log", "jfr"):
        for number in range(1, 13):
            outcome = fuzz.run_case(Case(kind, number), 1, sources, tmp_path)
            assert outcome.what in ("read", "refused"), outcome.text
            assert not list(tmp_path.iterdir())


def test_all_kinds_of_damage_occur(sources: Sources) -> None:
    found = " ".join(mutations.damaged_log(Random(number), sources.logs["q9"])[1] for number in range(500))
    for kind in (*mutations.EVENTS, *mutations.BYTES):
        assert kind.__name__ in found


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


@pytest.mark.parametrize(
    ("reader", "expected"),
    [(crash, "KeyError"), (hang, "no answer after"), (swell, "MiB of memory"), (die, "the process died (9)")],
)
def test_a_reader_that_fails_is_noticed(
    reader: Broken, expected: str, sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "_read_log", reader)
    monkeypatch.setattr(fuzz, "LONGEST_S", 2.0)
    monkeypatch.setattr(fuzz, "MOST_MEMORY_BYTES", 1 << 20 if reader is swell else 1 << 40)
    (outcome,) = fuzz.fuzz([Case("log", 1)], 0, 1, sources)
    assert outcome.what == "failed"
    assert expected in outcome.text


def test_contradicting_tables_are_a_failure() -> None:
    trace = get("spark").read(discover([LOG]).applications[0].log)
    fuzz.check_trace(trace)
    trace.units["finish_ms"][3] = -1.0
    with pytest.raises(fuzz.ContradictionError, match="before it starts"):
        fuzz.check_trace(trace)
