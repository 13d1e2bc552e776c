"""Small inputs with numbers and wire formats that no writer writes, and traces with a thousand planes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.ml.training import assembly
from crystalperf.query.frameworks.ml.training.assembly import Assembly
from crystalperf.query.frameworks.ml.training.lanes import Lane
from crystalperf.query.frameworks.spark.history import Attempt, Listed, _applications
from lab.damage.bombs import xplane
from tests.hostile.test_small_inputs import counted

Answer = Callable[..., tuple[int, str, str]]


def test_number_stored_as_text_is_damage(crystalperf: Answer, tmp_path: Path) -> None:
    (tmp_path / "a.xplane.pb").write_bytes(bytes.fromhex("0a1012092f686f73743a435055") + b"\x1a\x03\x1a\x01x")
    code, out, err = crystalperf("analyze", tmp_path / "a.xplane.pb")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "bug" not in err


@pytest.mark.parametrize("length", ["1e308", "1e300", "-1e308", "NaN", '"1e400"'])
def test_times_that_no_trace_has_are_left_out(length: str, crystalperf: Answer, tmp_path: Path) -> None:
    event = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %s, "dur": %s}'
    events = ", ".join([event % (1, length), event % (5, 9), event % (20, 9)])
    text = f'{{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{events}]}}'
    (tmp_path / "a.json").write_text(text)
    code, out, err = crystalperf("analyze", tmp_path / "a.json", "--json")
    assert code == 0, err
    assert json.loads(out)["debug"]["runtime_ms"] < 1.0


@pytest.mark.parametrize("attempt", ["1" * 5000, "\u00b2", "-1", ""])
def test_attempt_ids_that_spark_never_writes_are_ignored(attempt: str) -> None:
    (found,) = _applications([Listed("app-1", [Attempt(attempt)])], "here")
    assert found.attempt is None


def test_work_of_a_replay_does_not_grow_with_the_square_of_its_planes(tmp_path: Path) -> None:
    """A launch looks at one stage, not at all that are ready."""
    runs = []
    for planes in (100, 200):
        (tmp_path / "a.xplane.pb").write_bytes(xplane(planes))
        runs.append(cp.profile(tmp_path / "a.xplane.pb", output=tmp_path / f"{planes}.duckdb"))
        runs[-1].debug()
    few, many = (counted(partial(each.predict, cpu_speed="2x")) for each in runs)
    assert many < 2.5 * few


def test_lanes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "MAX_LANES", 3)
    lanes = [Lane("d", str(number), "p", []) for number in range(4)]
    with pytest.raises(InputError, match="more than 3 threads and streams"):
        Assembly(lanes=lanes).program()
