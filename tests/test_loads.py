"""Measurements of a recording on its process and its container, as rows of `loads`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crystalperf.query.attribution.samples.loads import heaps, process_loads
from crystalperf.query.recordings import jfr

SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def recording() -> jfr.Recording:
    """Three looks, one a second, at a process on a machine of 4 processors."""
    read = jfr.read(Path(__file__).parents[1] / "lab" / "recordings" / "demo-q9" / "executor-0.jfr.gz")
    time_ns = np.array([1, 2, 3], dtype=np.int64) * SECOND_NS
    share = np.array([0.1, 0.2, 0.1], dtype=np.float32)
    return replace(read, process_load=jfr.ProcessLoad(time_ns, share, share, 4 * share), processors=4)


def test_recordings_without_a_container_know_no_quota(recording: jfr.Recording) -> None:
    rows = process_loads(recording, "1", 0.0)
    assert rows["time_ms"].tolist() == [1000.0, 2000.0, 3000.0]
    assert rows["cpu_cores"] == pytest.approx([0.8, 1.6, 0.8])
    assert rows["quota_cores"].tolist() == [None, None, None]
    for name in ("throttled", "received_bytes_per_s", "sent_bytes_per_s"):
        assert np.ma.getmaskarray(rows[name]).all()


def test_throttling_counts_periods_since_the_previous_sample(recording: jfr.Recording) -> None:
    """The samples come some milliseconds off those of the CPU time; the first has none before it."""
    near_ns = np.array([1, 2, 3], dtype=np.int64) * SECOND_NS + 4_000_000
    looks = jfr.Throttling(near_ns, np.array([100, 110, 120]), np.array([40, 45, 55]))
    rows = process_loads(replace(recording, throttling=looks, quota_cores=0.7), "1", 0.0)
    assert rows["quota_cores"].tolist() == [0.7, 0.7, 0.7]
    assert rows["throttled"].tolist() == [None, pytest.approx(0.5), pytest.approx(1.0, abs=0.01)]


def test_sparse_samples_cover_the_time_since_the_previous_one(recording: jfr.Recording) -> None:
    """By the JDK's settings the quota is looked at once in 30 s and the network once in 5 s."""
    load = recording.process_load
    seconds = np.arange(1, 61, dtype=np.int64) * SECOND_NS
    share = np.full(60, 0.1, dtype=np.float32)
    every = np.arange(0, 61, 5, dtype=np.int64) * SECOND_NS
    many = replace(
        recording,
        process_load=replace(load, time_ns=seconds, user=share, system=share, machine=share),
        throttling=jfr.Throttling(every[::6], np.array([0, 300, 600]), np.array([0, 240, 300])),
        network_load=jfr.NetworkLoad(every, np.zeros(13, np.int32), np.full(13, 8_000_000), np.full(13, 8000)),
        devices=("eth0",),
        settings={},
    )
    rows = process_loads(many, "1", 0.0)
    assert rows["throttled"][1:30].tolist() == pytest.approx([0.8] * 29)
    assert rows["throttled"][31:].tolist() == pytest.approx([0.2] * 29)
    assert rows["received_bytes_per_s"].tolist() == [None, *[pytest.approx(1e6)] * 59]
    assert rows["sent_bytes_per_s"].tolist()[1:] == pytest.approx([1000.0] * 59)


def test_sample_without_a_new_period_shows_no_throttling(recording: jfr.Recording) -> None:
    """No period ended, or the container's counters restarted."""
    time_ns = recording.process_load.time_ns
    looks = jfr.Throttling(time_ns, np.array([100, 100, 5]), np.array([40, 40, 1]))
    assert process_loads(replace(recording, throttling=looks), "1", 0.0)["throttled"].tolist() == [None, None, None]


def test_non_network_devices_and_duplicate_traffic_are_left_out(recording: jfr.Recording) -> None:
    """Devices add up; one that carried nothing in a second has no event then, and rates below 0 are damage."""
    time_ns = np.array([1, 1, 2, 2, 3, 3, 3], dtype=np.int64) * SECOND_NS
    device = np.array([0, 1, 0, 1, 1, 2, 3], dtype=np.int32)
    received = np.array([8000, 800, 8000, 1600, 80, 8, 80_000])
    load = jfr.NetworkLoad(time_ns, device, received, np.array([16, 8, 16, 8, 8, 8, 8]))
    settings = {("jdk.NetworkUtilization", "period"): "1 s"}
    changed = replace(recording, network_load=load, devices=("lo", "eth0", "eth1", "veth3a"), settings=settings)
    rows = process_loads(changed, "1", 0.0)
    assert rows["received_bytes_per_s"].tolist() == [None, pytest.approx(200.0), pytest.approx(11.0)]
    assert rows["sent_bytes_per_s"].tolist() == [None, pytest.approx(1.0), pytest.approx(2.0)]
    damaged = replace(changed, network_load=replace(load, received_bps=-received))
    assert process_loads(damaged, "1", 0.0)["received_bytes_per_s"].tolist()[1:] == [0.0, 0.0]


def test_a_recording_that_saw_nothing_has_no_rows(recording: jfr.Recording) -> None:
    nothing = replace(recording, processors=0)
    assert all(len(column) == 0 for column in process_loads(nothing, "1", 0.0).values())


def test_heap_after_a_collection_is_the_smaller_of_its_two_measurements(recording: jfr.Recording) -> None:
    """The last collection has one measurement: the recording ended before the other."""
    time_ns = np.array([1, 2, 3, 4, 5], dtype=np.int64) * SECOND_NS
    use = jfr.HeapUse(time_ns, np.array([7, 7, 8, 8, 9]), np.array([500, 200, 600, 300, 900]))
    rows = heaps(replace(recording, heap_use=use), "1", 10.0)
    assert rows["time_ms"].tolist() == [2010.0, 4010.0]
    assert rows["used_bytes"].tolist() == [200, 300]
    assert rows["worker_id"].tolist() == ["1", "1"]


def test_demo_recording_has_the_heap_after_each_collection(recording: jfr.Recording) -> None:
    used = heaps(recording, "0", 0.0)["used_bytes"]
    assert len(used) > 50
    assert 2**20 < min(used) < max(used) < 2**30
