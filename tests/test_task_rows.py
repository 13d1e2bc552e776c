"""Compiled rows of a log's tasks: the tables are the same without them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from crystalperf.query.frameworks.spark.log import collect, task_rows
from crystalperf.query.frameworks.spark.log.tables import tables
from crystalperf.query.inputs import line_rows
from crystalperf.query.inputs.containers import LogFile, Part

pytestmark = pytest.mark.skipif(not line_rows.is_compiled(), reason="CrystalPerf was installed without a C compiler")

ROLLED = Path(__file__).parent / "data" / "runs" / "rolled"
TASKS = 14_411


def plain() -> list[str]:
    """The lines of a log of some ten batches."""
    parts = [zstandard.open(each, "rt", encoding="utf-8").read() for each in sorted(ROLLED.glob("*/events_*"))]
    return "".join(parts).split("\n")[:-1]


def odd() -> list[str]:
    """The same with what Spark, its vendors and damage make of lines; half of the batches have some that Python reads
    whole."""
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


def polled() -> list[str]:
    """Peaks of executors' memory, some of them impossible."""
    rng, found = random.Random(7), []
    for line in plain():
        if '"JVMHeapMemory":0' in line:
            heap = rng.choice((0, -1, rng.randrange(1 << 30), 1 << 62))
            line = line.replace('"JVMHeapMemory":0', f'"JVMHeapMemory":{heap}')
        found.append(line)
    return found


ODD_VALUES = [
    "null",
    "1.5",
    "-1",
    "-0",
    "007",
    "1e3",
    "12345678901234567",
    "true",
    '"5"',
    "[]",
    "{}",
    "[1,]",
    "NaN",
    "",
]
ODD_VALUES += [
    "99999999999999999999999999",
    '"\\u0041"',
    '"\\ud800"',
    '"é"',
    '"a\tb"',
    "{}}",
    '{"a":[1,{"b":null}]}',
    "[[[]]]",
]


def damaged(rng: random.Random, line: str) -> str:
    """A line with one value, name or character changed."""
    kind = rng.randrange(6)
    if kind == 0:  # a value
        colons = [each for each in range(len(line)) if line.startswith('":', each)]
        at = rng.choice(colons) + 2
        end = min(each for each in (line.find(",", at), line.find("}", at), len(line)) if each > 0)
        return line[:at] + rng.choice(ODD_VALUES) + line[end:]
    at = rng.randrange(len(line))
    if kind == 1:
        return line[:at]
    if kind == 2:
        return line[:at] + chr(rng.randrange(1, 300)) + line[at + 1 :]
    if kind == 3:
        return line[:at] + line[at + rng.randrange(1, 9) :]
    parts = line.split(",")
    at = rng.randrange(len(parts))
    if kind == 4:
        return ",".join((*parts[:at], parts[at], *parts[at:]))  # twice
    return ",".join((*parts[:at], *parts[at + 1 :]))


def read(path: Path) -> dict[str, list[Any]]:
    """Every column of every table."""
    found = tables(collect.collect(LogFile("log", (Part(str(path)),))))
    return {f"{table}.{name}": values.tolist() for table, columns in found.items() for name, values in columns.items()}


def assert_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The tables of a log, which are the same without compiled rows."""
    found = read(path)
    with monkeypatch.context() as patch:
        patch.setattr(task_rows, "is_compiled", lambda: False)
        other = read(path)
    assert found.keys() == other.keys()
    assert not [name for name, values in found.items() if repr(values) != repr(other[name])]  # NaN differs from NaN
    return found


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each batch from now on, whether its tasks became rows at once."""
    found: list[bool] = []
    take = collect._BatchTasks.take

    def noted(self: collect._BatchTasks, *arguments: Any) -> Any:
        others = take(self, *arguments)
        found.append(others is not None)
        return others

    monkeypatch.setattr(collect._BatchTasks, "take", noted)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("lines", [plain, odd, old, polled])
def test_tables_are_the_same_without_compiled_rows(
    lines: Callable[[], list[str]], tmp_path: Path, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(lines()) + "\n")
    found = assert_same(path, monkeypatch)
    compiled = taken[: len(taken) // 2]
    assert sum(compiled) > 1
    assert (lines is odd) == (not all(compiled))  # of some batches all lines are decoded
    assert len(found["tasks.task_id"]) > 0.9 * TASKS
    assert (lines is polled) == bool(found["peaks.stage_id"])


@pytest.mark.parametrize("seed", range(20))
def test_damaged_ends_of_tasks_are_read_as_without_compiled_rows(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, lines = random.Random(seed), plain()[:400]
    damage = {rng.randrange(len(lines)) for _ in range(rng.choice((1, 3)))}
    path = tmp_path / "log"
    text = [damaged(rng, line) if place in damage else line for place, line in enumerate(lines)]
    path.write_text("\n".join(text) + "\n", encoding="utf-8", errors="surrogatepass")
    assert_same(path, monkeypatch)
