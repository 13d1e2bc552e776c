"""A sampler that came late shows how long the threads of its process waited for a CPU."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from crystalperf.query.attribution.samples.calls import NO_CALL, file_calls
from crystalperf.query.attribution.samples.sampling_delay import Ticks, ticks, waking
from crystalperf.query.attribution.samples.threadtime import KINDS, thread_time
from crystalperf.query.attribution.samples.weights import rotation_ticks
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.jfr.model import FILE_READ
from crystalperf.query.trace.sample_kinds import ON_CPU, RUNNING, WAKING

PERIOD_MS = 20.0


def by(*late_ms: float) -> Ticks:
    """Ticks of a sampler that came late by so much each, from 0 on."""
    late = np.array(late_ms)
    return Ticks(np.cumsum(PERIOD_MS + late), late, np.empty(0))


def test_wait_that_ends_during_a_sampling_delay_includes_cpu_wait() -> None:
    frozen = by(*[0.0] * 30, 80.0, *[0.0] * 70)
    at = frozen.time_ms[30]
    # Ends as the process may run again; ended long after; is shorter than the process was held back.
    ends, lengths = np.array([at + 2, at + 1500, at - 30]), np.array([200.0, 200.0, 25.0])
    assert waking(ends, lengths, frozen).tolist() == pytest.approx([80.0, 0.0, 25.0])


def test_mean_delay_of_a_wait_equals_that_of_adjacent_samples() -> None:
    starved = by(*[10.0, 0.0, 2.0, 0.0] * 50)
    between = (starved.time_ms[101] + starved.time_ms[102]) / 2
    assert waking(np.array([between]), np.array([500.0]), starved).tolist() == pytest.approx([3.0], abs=0.5)


def test_without_samples_no_delay_is_known() -> None:
    nothing = Ticks(np.empty(0), np.empty(0), np.empty(0))
    assert waking(np.array([5.0]), np.array([5.0]), nothing).tolist() == [0.0]


def test_a_thread_that_asked_to_sleep_was_not_ready_before_it_had(demo: Path) -> None:
    """Sleeps of 10 ms in a process that is short of CPUs: nothing but what they took too long was a wait for one."""
    recording = jfr.read(demo / "executor-0.jfr.gz")

    def ready_ms(asked_ms: float) -> float:
        start_ns = np.linspace(recording.samples.time_ns[0], recording.samples.time_ns[-1], 200).astype(np.int64)
        zeros = np.zeros(200, np.int32)
        kind = np.full(200, jfr.INTERVAL_KINDS.index("SLEEP"), np.uint8)
        asked_ns = np.full(200, asked_ms * 1e6).astype(np.int64)
        nothing = np.zeros(200, np.int64)
        none = replace(
            recording.intervals,
            **{each.name: getattr(recording.intervals, each.name)[:0] for each in fields(jfr.Intervals)},
        )
        sleeps = jfr.Intervals(start_ns, start_ns + 10_000_000, zeros, zeros, kind, nothing, asked_ns)
        time = thread_time(replace(recording, intervals=sleeps))
        alone = thread_time(replace(recording, intervals=none))
        return float(time.weight_ms[time.kind == KINDS.index(WAKING)].sum()) - float(
            alone.weight_ms[alone.kind == KINDS.index(WAKING)].sum()
        )

    unknown, most = ready_ms(0.0), ready_ms(8.0)
    assert unknown > 1000.0
    assert ready_ms(10.0) == pytest.approx(0.0, abs=0.05 * unknown)
    assert 0 < most <= 400.0


def test_rotation_is_the_interval_between_samples_of_a_constant_thread() -> None:
    """Three threads are always in native code, a fourth now and then: counting threads would make four of them."""
    always = np.tile([1, 2, 3], 60)
    thread = np.insert(always, [30, 90, 150], 9).astype(np.int32)
    time_ns = (np.arange(len(thread)) * 20e6).astype(np.int64)
    assert rotation_ticks(time_ns, thread) == pytest.approx(3.05, abs=0.03)


def test_hotspots_native_samples_are_its_ticks(demo: Path) -> None:
    recording = jfr.read(demo / "executor-0.jfr.gz")
    found = ticks(recording, PERIOD_MS)
    native = recording.samples.kind == jfr.SAMPLE_KINDS.index("NATIVE")
    assert len(found.time_ms) == native.sum()
    assert 0 < found.late_ms.mean() < PERIOD_MS  # two slots of 0.2 core each
    assert len(ticks(replace(recording, samples=none_of(recording)), PERIOD_MS).time_ms) == 0


def test_period_longer_than_the_setting_is_not_lateness(demo: Path) -> None:
    """A recording that lost its settings is read as one of 20 ms."""
    recording = jfr.read(demo / "executor-0.jfr.gz")
    late = ticks(recording, PERIOD_MS / 4).late_ms.mean()
    assert late == pytest.approx(ticks(recording, PERIOD_MS).late_ms.mean(), abs=0.5)


def none_of(recording: jfr.Recording) -> jfr.Samples:
    samples = recording.samples
    return replace(samples, kind=np.zeros_like(samples.kind))


def test_lateness_keeps_the_recorded_time_of_threads(demo: Path) -> None:
    """Cutting waits in two adds no time: intervals keep their sums, and no sample weighs less than nothing."""
    recording = jfr.read(demo / "executor-0.jfr.gz")
    time = thread_time(recording)
    kinds = np.array(KINDS)[time.kind]
    timed = ~np.isin(kinds, [name.lower() for name in jfr.SAMPLE_KINDS] + [RUNNING])
    named = [jfr.INTERVAL_KINDS.index(name) for name in ("PARK", "SLEEP", "MONITOR_WAIT", "MONITOR_ENTER")]
    named += [jfr.INTERVAL_KINDS.index(f"{device}_{way}") for device in ("SOCKET", "FILE") for way in ("READ", "WRITE")]
    intervals = recording.intervals
    mine = np.isin(intervals.kind, named) & (intervals.thread >= 0) & (intervals.stack >= 0)
    whole_ms = float((intervals.end_ns[mine] - intervals.start_ns[mine]).sum()) / 1e6
    # Ends of native calls are among those that woke, next to those of intervals.
    assert time.weight_ms[timed & (kinds != WAKING)].sum() < whole_ms < time.weight_ms[timed].sum()
    assert (time.weight_ms >= 0).all()
    assert WAKING in ON_CPU
    assert 0 < time.weight_ms[kinds == WAKING].sum() < 0.5 * whole_ms


def test_opening_a_file_is_work_for_the_cpu_and_polling_is_waiting(demo: Path) -> None:
    recording = jfr.read(demo / "executor-0.jfr.gz")
    time = thread_time(recording)
    names = recording.frames
    leaf = [names.name(int(recording.stacks.frames(stack)[0])) for stack in time.stack.tolist()]
    native = jfr.SAMPLE_KINDS.index("NATIVE")
    polls = {KINDS[kind] for kind, name in zip(time.kind.tolist(), leaf, strict=True) if "EPoll.wait" in name}
    opens = {KINDS[kind] for kind, name in zip(time.kind.tolist(), leaf, strict=True) if ".open0" in name}
    assert "native" in polls
    assert opens == {RUNNING}
    assert (recording.samples.kind == native).any()


def test_a_wall_clock_late_in_a_call_for_a_file_waited_for_the_disk(demo: Path) -> None:
    """A thread asleep on a disk takes no signal: its next sample, due at 60 ms and there at 560, shows the call.

    Another thread, late by as much in code that computes, had no CPU: nothing is known of its gap.
    """
    recording = jfr.read(demo / "executor-0.jfr.gz")
    calls = file_calls(recording)[:-1]
    reading = int(np.flatnonzero(calls == FILE_READ)[0])
    computing = int(np.flatnonzero(calls == NO_CALL)[0])
    steady = [(7, at, computing) for at in range(0, 3000, 20)]
    seen = [*steady, *((8, at, computing) for at in (0, 20, 40)), (8, 560, reading), (8, 580, computing)]
    seen = sorted([*seen, (9, 2000, computing), (9, 2500, computing)], key=lambda each: each[1])
    thread, at_ms, stack = (np.array(column) for column in zip(*seen, strict=True))
    made = jfr.Samples(
        time_ns=at_ms.astype(np.int64) * 1_000_000,
        thread=thread.astype(np.int32),
        stack=stack.astype(np.int32),
        ticks=np.ones(len(seen), dtype=np.int32),
        kind=np.full(len(seen), jfr.SAMPLE_KINDS.index("WALL"), dtype=np.uint8),
        state=np.zeros(len(seen), dtype=np.uint8),
        period_ns=np.zeros(len(seen), dtype=np.int64),
        state_names=("STATE_RUNNABLE",),
    )
    time = thread_time(replace(recording, samples=made))
    kinds = np.array(KINDS)[time.kind]
    assert set(kinds) == {RUNNING, "file read"}
    (waited,) = np.flatnonzero(kinds == "file read")
    assert (time.thread[waited], time.start_ms[waited], time.weight_ms[waited]) == (8, 60.0, 500.0)
    assert time.weight_ms[time.thread == 9].sum() == 2 * PERIOD_MS
