"""A second process that reads every other batch of a log: nothing of what is said of the run changes by it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from crystalperf.indexes import guard
from crystalperf.query.frameworks.spark.log import second
from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.log.tables import tables
from crystalperf.query.inputs.containers import LogFile, Part

ROLLED = Path(__file__).parent / "data" / "runs" / "rolled"
TASKS = 14_411


def plain() -> list[str]:
    """The lines of a log of some ten batches."""
    parts = [zstandard.open(each, "rt", encoding="utf-8").read() for each in sorted(ROLLED.glob("*/events_*"))]
    return "".join(parts).split("\n")[:-1]


def odd() -> list[str]:
    """The same with what Spark, its vendors and damage make of lines; in half of the batches, what only the first
    process takes."""
    rng, found = random.Random(5), []
    for line in plain():
        is_end = line.startswith('{"Event":"SparkListenerTaskEnd"')
        event: dict[str, Any] = json.loads(line) if is_end else {}
        kind, rare = rng.randrange(60), rng.randrange(9_000)
        if event and kind == 0:
            event["Task End Reason"] = {"Reason": "ExceptionFailure", "Class Name": "java.io.IOException"}
        elif event and kind == 1:
            event["Task End Reason"] = {"Reason": "TaskKilled", "Kill Reason": f"attempt {rng.random()}"}
        elif event and kind == 2:
            event["Task Info"]["Host"] = f"host-{rng.randrange(50)}"
        elif kind == 3:
            continue  # lost
        elif kind == 4:
            found += ["", "   ", line]  # said twice, after blank lines
        elif kind == 5:
            found += ['{"Event":"SparkListenerOfOurOwn","x":1}', '{"Event":"SparkListenerBlockUpdated"}']
        elif event and rare == 1:
            del event["Task Info"]["Executor ID"]  # its start has it
        elif event and rare == 2:
            del event["Task Info"]["Launch Time"]
        elif event and rare == 3:
            event["Task Info"]["Task ID"] = str(event["Task Info"]["Task ID"])  # no number
        elif event and rare == 4:
            event = {"Task Info": event.pop("Task Info"), **event}  # in another order
        elif rare == 5:
            line = line[: len(line) // 2]  # cut
            event = {}
        elif rare == 6:
            line = line.replace('{"Event":"', '{"Event": "', 1)
            event = {}
        found.append(json.dumps(event, separators=(",", ":")) if event else line)
    return found


def old() -> list[str]:
    """A log of Spark 1.x, which leaves out metrics that are zero."""
    return [line.replace('"Spark Version":"', '"Spark Version":"1.', 1) for line in plain()]


def read(path: Path) -> dict[str, list[Any]]:
    """Every column of every table."""
    found = tables(collect(LogFile("log", (Part(str(path)),))))
    return {f"{table}.{name}": values.tolist() for table, columns in found.items() for name, values in columns.items()}


def assert_same(one: dict[str, list[Any]], other: dict[str, list[Any]]) -> None:
    assert one.keys() == other.keys()
    assert not [name for name, values in one.items() if repr(values) != repr(other[name])]  # NaN differs from NaN


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each batch from now on, whether the second process reported its contents."""
    found: list[bool] = []
    tasks = second.Second.tasks

    def noted(self: second.Second, *arguments: Any, **named: Any) -> second.BatchResult | None:
        reported = tasks(self, *arguments, **named)
        found.append(reported is not None)
        return reported

    monkeypatch.setattr(second.Second, "tasks", noted)
    monkeypatch.setattr(second, "MIN_BYTES", 0)
    monkeypatch.setattr(second, "FIRST", 1)
    monkeypatch.setattr(second.os, "sched_getaffinity", lambda _pid: {0, 1})
    return found


def alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The tables as one process reads them."""
    with monkeypatch.context() as patch:
        patch.setattr(second, "MIN_BYTES", 1 << 60)
        return read(path)


@pytest.mark.few(1)
@pytest.mark.parametrize("lines", [plain, odd, old])
def test_tables_are_the_same_by_one_process_and_by_two(
    lines: Any, tmp_path: Path, turns: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(lines()) + "\n")
    expected = alone(path, monkeypatch)
    assert not any(turns)
    turns.clear()
    found = read(path)
    assert sum(turns) > 1
    assert (sum(turns) < len(turns) // 2 - 1) == (lines is odd)  # of its batches it left some to the first one
    assert_same(expected, found)
    assert len(found["tasks.task_id"]) > 0.9 * TASKS


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "program",
    [
        "",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import sys; sys.stdout.buffer.write((1000).to_bytes(8, 'little') + b'half of it')",
        "import sys; sys.stdout.buffer.write((1000).to_bytes(8, 'little') + bytes(1000))",
        "import sys; sys.stdout.buffer.write(bytes(16))",
        "import sys; sys.stdout.buffer.write(b'\\xff' * 16)",
        "print('hello world, I am a site customisation')",
        "import sys; sys.stdout.buffer.write(bytes(3))",
    ],
)
def test_second_process_that_ends_or_sends_garbage_loses_no_data(
    program: str, tmp_path: Path, turns: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(odd()) + "\n")
    expected = alone(path, monkeypatch)
    monkeypatch.setattr(second, "own_module", lambda _name: [sys.executable, "-c", program])
    found = read(path)
    assert not any(turns)
    assert_same(expected, found)


def test_a_second_process_killed_midway_leaves_the_rest_to_the_first(
    tmp_path: Path, turns: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(plain()) + "\n")
    expected = alone(path, monkeypatch)
    turns.clear()
    tasks = second.Second.tasks

    def killing(self: second.Second, *arguments: Any, **named: Any) -> second.BatchResult | None:
        reported = tasks(self, *arguments, **named)
        if reported is not None and self._process is not None:
            self._process.kill()
            self._process.wait()
        return reported

    monkeypatch.setattr(second.Second, "tasks", killing)
    found = read(path)
    assert any(turns)
    assert not turns[-1]
    assert_same(expected, found)


def test_no_second_process_without_a_spare_cpu(
    tmp_path: Path, turns: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(plain()) + "\n")
    monkeypatch.setattr(guard, "THREADS", 1)
    read(path)
    monkeypatch.setattr(guard, "THREADS", None)
    monkeypatch.setattr(second.os, "sched_getaffinity", lambda _pid: {0})
    read(path)
    assert not any(turns)
