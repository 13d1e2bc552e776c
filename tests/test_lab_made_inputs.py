"""Made recordings and traces read as whole runs, and large ones as if nothing of them was skipped."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from crystalperf.query.frameworks.ml.pytorch import kineto
from crystalperf.query.frameworks.ml.pytorch.names import STEP
from crystalperf.query.frameworks.ml.training import chrome
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.recordings import jfr
from crystalperf.query.trace.records import Problems
from lab.costs import made_recording, made_trace

TRACE = Path(__file__).parent / "data" / "training" / "torch-loader" / "rank0.pt.trace.json.gz"


def test_a_made_recording_has_a_sample_of_each_task_every_tick(tmp_path: Path) -> None:
    arguments = ["--tasks", "150", "--executors", "2", "--stacks", "30", "-o", str(tmp_path)]
    assert made_recording.main(arguments) == 0
    app_id, tasks = made_recording.slots_of(tmp_path / "made.log", 4)
    found = jfr.read(tmp_path / "executor-1.jfr")
    assert found.problems == ()
    assert found.jvm is not None
    assert f"--executor-id 1 --hostname node --cores 4 --app-id {app_id}" in (found.jvm.java_arguments)
    running = found.samples.kind == jfr.SAMPLE_KINDS.index("EXECUTION")
    busy_ms = sum(finish - launch for slot in tasks[1] for launch, finish in slot)
    assert int(running.sum()) == pytest.approx(busy_ms / made_recording.TICK_MS, rel=0.1)
    assert (found.samples.stack >= 0).all()
    assert (found.samples.thread >= 0).all()
    assert len(np.unique(found.samples.stack[running])) > 20


def _made(folder: Path, size: int) -> Path:
    path = folder / "made.pt.trace.json"
    with path.open("wb") as stream:
        made_trace.write(stream, json.loads(gzip.decompress(TRACE.read_bytes())), size)
    return path


def test_a_made_trace_has_steps_and_calls_of_other_numbers_in_each_copy(tmp_path: Path) -> None:
    one, more = (json.loads(_made(tmp_path, size).read_bytes())["traceEvents"] for size in (1, 5_000_000))
    steps = [str(each["name"]) for each in more if STEP.fullmatch(str(each["name"]))]
    of_one = [str(each["name"]) for each in one if STEP.fullmatch(str(each["name"]))]
    copies = len([each for each in more if "ts" in each]) / len([each for each in one if "ts" in each])
    assert copies == int(copies) > 1
    assert len(steps) == copies * len(of_one)
    assert len(set(steps)) == copies * len(set(of_one))


def _taken(path: Path) -> tuple[kineto.Process, Problems, int]:
    process, problems, part = kineto.Process("0", most=2_000), Problems(), Part(str(path))
    pairs, read = chrome.Pairs(process.doubts), 0
    for events in chrome.read(LogFile("log", (part,)), part, problems, process.header, process.left_out_from):
        process.take(pairs.joined(events), {})
        read += len(events)
    return process, problems, read


def test_events_behind_the_end_of_a_long_trace_are_skipped_without_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _made(tmp_path, 6_000_000)
    monkeypatch.setattr(chrome, "CHUNK_BYTES", 1 << 16)
    skipping, problems, few = _taken(path)
    monkeypatch.setattr(chrome, "_are_later", lambda _text, _until: False)
    whole, all_problems, every = _taken(path)
    assert few < every / 2
    assert skipping == whole
    assert list(problems) == list(all_problems)


@pytest.mark.parametrize(
    ("event", "later"),
    [
        ('{"ph": "X", "ts": 50, "dur": 1, "args": {"a": [1, 2]}}', True),
        ('{"ph": "X", "ts": 49, "dur": 1}', False),
        ('{"ph": "X", "ts": 60, "dur": -1}', False),
        ('{"ph": "X", "ts": 60}', False),
        ('{"ph": "X", "ts": "60", "dur": 1}', False),
        ('{"ph": "s", "ts": 2}', True),
        ('{"ph": "B", "ts": 60}', False),
        ('{"ph": "i", "name": "[memory]", "ts": 60}', False),
        ('{"ph": "s", "cat": "async_npu", "ts": 60}', False),
        ('{"ph": "X", "ts": 60, "dur": 1, "name": "é"}', False),
        ('{"ph": "X", "ts": 60, "dur": 1, "args": inf}', False),
    ],
)
def test_only_whole_events_after_a_time_are_later(event: str, later: bool) -> None:
    text = f'{{"ph": "X", "ts": 70, "dur": 0}}, {event}'.encode()
    assert chrome._are_later(text, 50.0) is later
    assert not chrome._are_later(text, float("inf"))
