"""The thread states that a recorder can see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crystalperf.query.attribution.samples.threadtime import sees_all
from crystalperf.query.recordings import jfr


def test_a_recorder_sees_all_states_only_where_it_keeps_short_waits(demo: Path) -> None:
    recording = jfr.read(demo / "executor-0.jfr.gz")
    assert sees_all(recording)  # the lab keeps waits from 1 ms on
    usual = recording.settings | {("jdk.SocketRead", "threshold"): "20 ms"}
    assert not sees_all(replace(recording, settings=usual))
    assert not sees_all(replace(recording, settings={}))
