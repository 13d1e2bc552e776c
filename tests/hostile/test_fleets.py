"""Folders of many logs that strangers may write to: names that are not text, pipes, devices, links, lists, clocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from crystalperf.fleet.build import build
from crystalperf.fleet.engines import Engine
from crystalperf.fleet.logs import Item, find_logs
from crystalperf.fleet.reading import Read, read
from crystalperf.fleet.summary import opened
from tests.spark_logs import Stage, Task, write

Answer = Callable[..., tuple[int, str, str]]


class InProcess(Engine):
    """Reads logs in this process, so that a test sees the effects of a log on its reader."""

    def read_all(self, items: list[Item], scratch: Path) -> Iterator[Read]:  # type: ignore[override]
        return (read(each, scratch) for each in items)


def log(place: Path) -> Path:
    return write(place, [Stage([Task(1000, cpu_ms=500), Task(1200)])], executors={"1": 2})


def unread(folder: Path) -> dict[str, str]:
    """Why logs of a fleet could not be read, by their names."""
    with opened(folder) as connection:
        rows = connection.execute("SELECT path, text FROM problems WHERE severity = 'unread'").fetchall()
    return {Path(path).name: what for path, what in rows}


def test_file_name_that_is_not_text_does_not_stop_the_build(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    good = log(tmp_path / "good").read_bytes()
    for name, content in ((b"l\xffg", good), (b"n\xfft", b"")):
        with open(os.fsencode(logs) + b"/" + name, "wb") as file:
            file.write(content)
    built = build([str(logs)], tmp_path / "fleet", InProcess())
    assert (built.logs, built.unread) == (2, 1)
    assert list(unread(tmp_path / "fleet")) == ["n\\udcfft"]
    assert build([str(logs)], tmp_path / "fleet", InProcess()).known == 2


def test_log_whose_name_is_not_text_is_analyzed(crystalperf: Answer, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    os.rename(log(tmp_path / "good"), os.fsencode(logs) + b"/l\xffg")
    for given in (logs, os.fsdecode(os.fsencode(logs) + b"/l\xffg")):
        code, out, err = crystalperf("analyze", given, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["schema"] == "crystalperf.verdict/2"


def test_pipes_devices_and_dangling_links_are_reported(tmp_path: Path) -> None:
    """A pipe that nobody writes to, a device that never ends: whoever may write a log may put one there."""
    logs = tmp_path / "logs"
    logs.mkdir()
    log(logs / "good")
    os.mkfifo(logs / "pipe")
    for name, target in (("zero", "/dev/zero"), ("nowhere", "/nowhere"), ("circle", "circle")):
        (logs / name).symlink_to(target)
    built = build([str(logs)], tmp_path / "fleet", InProcess())
    assert (built.logs, built.unread) == (5, 4)
    reported = unread(tmp_path / "fleet")
    assert reported.keys() == {"pipe", "zero", "nowhere", "circle"}
    assert not [each for each in reported.values() if "bug" in each]


def test_a_list_that_names_itself_is_refused(crystalperf: Answer, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(f"@{tmp_path / 'list'}\n")
    code, out, err = crystalperf("fleet", "build", f"@{tmp_path / 'list'}", "-o", tmp_path / "fleet")
    assert (code, out) == (1, "")
    assert str(tmp_path / "list") in err


@pytest.mark.later
def test_memory_of_a_batch_depends_on_the_size_of_its_logs(tmp_path: Path) -> None:
    """Two rows of 1 GiB were reserved for each file, however small: a container of 2 GB could write no fleet."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(3):
        place = log(logs / f"log-{number}")
        place.write_text(place.read_text().replace("made", f"made-{number}"))
    program = """
import resource, sys
from pathlib import Path
import duckdb
from crystalperf.fleet.build import build
from tests.hostile.test_fleets import InProcess
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
print(build([sys.argv[1]], Path(sys.argv[2]), InProcess()).unread)
"""
    command = [sys.executable, "-c", program, str(logs), str(tmp_path / "fleet")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize("spoilt", ["other type", "other column", "no parquet", "other day"])
def test_foreign_fleet_is_read_as_data(crystalperf: Answer, tmp_path: Path, spoilt: str) -> None:
    log(tmp_path / "logs")
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    (place,) = (tmp_path / "fleet" / "runs").glob("day=*/*.parquet")
    if spoilt == "other day":
        place.parent.rename(place.parent.parent / "day=x'); COPY runs TO '1")
    elif spoilt == "no parquet":
        place.write_bytes(b"PAR1" * 100)
    else:
        chosen = "'x' AS core_hours" if spoilt == "other type" else "core_hours AS hours"
        rows = f"SELECT * EXCLUDE (core_hours), {chosen} FROM read_parquet('{place}', hive_partitioning = false)"
        duckdb.execute(f"COPY ({rows}) TO '{tmp_path / 'other.parquet'}' (FORMAT parquet)")
        os.replace(tmp_path / "other.parquet", place)
    code, out, err = crystalperf("fleet", "ask", tmp_path / "fleet")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert str(tmp_path / "fleet") in err


@pytest.mark.few(1)
@pytest.mark.parametrize("changed_s", [1e12, -1e12, 1e30])
def test_file_time_outside_the_calendar_is_accepted(tmp_path: Path, changed_s: float) -> None:
    (item,) = find_logs([str(log(tmp_path / "good"))])
    for path, runs in ((item.path, 1), (str(tmp_path / "none"), 0)):
        answer = read(Item(path, item.size_bytes, changed_s, item.state), tmp_path)
        assert len(json.loads(answer.rows)["runs"]) == runs


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [2**62, 2**63, 10**30])
def test_absurd_file_sizes_are_ignored(crystalperf: Answer, tmp_path: Path, size: int) -> None:
    """Sums of two of them were too long for an integer, and the run file was called damaged, for ever."""
    lines = []
    for line in log(tmp_path / "good").read_text().splitlines():
        event = json.loads(line)
        metrics = event.get("Task Metrics") or {}
        for each in (metrics, *(part for part in metrics.values() if isinstance(part, dict))):
            each.update({key: size for key, value in each.items() if type(value) is int and "Time" not in key})
        lines.append(json.dumps(event))
    (tmp_path / "log").write_text("\n".join(lines))
    for command in (("analyze", tmp_path / "log"), ("predict", tmp_path / "log", "--set", "network=2x")):
        code, _, err = crystalperf(*command)
        assert code in (0, 1)
        assert "damaged" not in err
        assert "Warning" not in err
