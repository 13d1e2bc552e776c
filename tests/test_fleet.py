"""A fleet: logs to tables, whatever kills them; and what the tables answer."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import duckdb
import numpy as np
import pytest

from crystalperf.fleet import changes, local, store
from crystalperf.fleet.build import build
from crystalperf.fleet.changes import change, noise
from crystalperf.fleet.engines import Engine, _dealt
from crystalperf.fleet.logs import AT_ONCE, Item, content_hash, find_logs, find_logs_and_unmatched, ordered
from crystalperf.fleet.reading import COMMON, Read, _gain, read
from crystalperf.fleet.store import Store
from crystalperf.fleet.summary import opened, summarize
from crystalperf.fleet.tables import tables
from crystalperf.indexes.errors import IndexFileError, InputError, SettingError
from crystalperf.query.results.answers import Prediction
from tests.spark_logs import Stage, Task, write

EXECUTORS = {"1": 2, "2": 2}

Answer = Callable[..., tuple[int, str, str]]


def log(folder: Path, name: str, ms: int = 1000) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tasks = [Task(ms + 10 * number, executor=str(1 + number % 2), cpu_ms=ms // 2) for number in range(8)]
    place = write(folder / name, [Stage(tasks), Stage(tasks, name="save at job.py:9")], executors=EXECUTORS)
    place.write_text(place.read_text().replace("app-made", f"app-{name}"))
    return place


class InProcess(Engine):
    """Reads here, for tests of what comes after."""

    def read_all(self, items, scratch):  # type: ignore[no-untyped-def]
        return (read(each, scratch) for each in items)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of two runs, a copy of one of them, and a file that is not a log."""
    folder = tmp_path_factory.mktemp("fleet")
    log(folder / "logs", "one")
    log(folder / "logs" / "deeper", "two", ms=3000)
    (folder / "logs" / "copy").write_bytes((folder / "logs" / "one").read_bytes())
    (folder / "logs" / "broken").write_text("")
    built = build([str(folder / "logs")], folder / "fleet", InProcess())
    assert (built.logs, built.known, built.read, built.unread) == (4, 0, 4, 1)
    return folder


def statement_in(screen: str) -> str:
    """The SQL that a screen shows."""
    return re.search(r"(SELECT|FROM) .*", screen)[0]  # type: ignore[index]


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with opened(folder) as connection:
        return connection.execute(query).fetchall()


def test_each_log_is_a_row_and_one_of_a_content_is_a_run(small: Path) -> None:
    logs = rows(small / "fleet", "SELECT path, runs FROM logs ORDER BY path")
    assert [(Path(str(path)).name, runs) for path, runs in logs] == [
        ("broken", 0), ("copy", 1), ("two", 1), ("one", 1)
    ]  # fmt: skip
    runs = rows(small / "fleet", "SELECT path, runtime_ms, core_hours, busy_core_hours FROM runs ORDER BY path")
    assert [Path(str(each[0])).name for each in runs] == ["copy", "two"]
    busy = 2 * sum(1000 + 10 * number for number in range(8)) / 3.6e6
    assert runs[0][3] == pytest.approx(busy)
    assert float(str(runs[0][2])) >= busy


def test_other_files_are_counted_and_no_logs(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    write(logs / "one", [Stage([Task(2000)])], executors={"1": 1})
    (logs / "notes.txt").write_text("nothing of a job\n")
    (logs / "table.csv").write_text("a,b\n1,2\n")
    built = build([str(logs)], tmp_path / "fleet")
    assert (built.read, built.unread, built.not_logs) == (1, 0, 2)
    fleet = summarize(tmp_path / "fleet")
    assert (fleet.logs, fleet.unread_logs) == (1, 0)


def test_unreadable_log_becomes_a_row_with_its_error(small: Path) -> None:
    ((path, what),) = rows(small / "fleet", "SELECT path, text FROM problems WHERE severity = 'unread'")
    assert Path(str(path)).name == "broken"
    assert "broken" in str(what)
    assert "\n" not in str(what)


def test_tables_are_readable_without_crystalperf(small: Path) -> None:
    pattern = small / "fleet" / "runs" / "*" / "*.parquet"
    found = duckdb.sql(f"SELECT day::VARCHAR, count(*), any_value(gains) FROM read_parquet('{pattern}') GROUP BY day")
    ((day, count, gains),) = found.fetchall()
    assert (day, count) == ("2026-11-21", 2)
    assert {"cores=2x", "cpu_speed=2x"} <= {each["setting"] for each in gains}


def test_known_logs_are_not_read_again(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcess, "read_all", lambda *_: pytest.fail("read"))
    built = build([str(small / "logs")], small / "fleet", InProcess())
    assert (built.known, built.read) == (4, 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("final", ["one", "one-renamed"])
def test_log_that_grew_is_read_again_and_counts_once(tmp_path: Path, final: str) -> None:
    place = log(tmp_path / "logs", "one")
    whole = place.read_text()
    place.write_text(whole.rpartition('{"Event": "SparkListenerApplicationEnd"')[0])
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    assert rows(tmp_path / "fleet", "SELECT complete FROM runs") == [(False,)]
    place.rename(place.parent / final).write_text(whole)
    assert build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess()).read == 1
    assert rows(tmp_path / "fleet", "SELECT complete FROM runs") == [(True,)]
    assert rows(tmp_path / "fleet", "SELECT complete FROM all_runs ORDER BY ALL") == [(False,), (True,)]
    for table in ("stages", "operators", "findings", "problems"):
        assert rows(tmp_path / "fleet", f"FROM {table} WHERE run_id NOT IN (SELECT run_id FROM runs)") == []
    assert summarize(tmp_path / "fleet").logs == (1 if final == "one" else 2)


@pytest.mark.later
def test_the_statement_of_the_docs_counts_once_too(tmp_path: Path) -> None:
    place = log(tmp_path / "logs", "one")
    whole = place.read_text()
    place.write_text(whole.rpartition('{"Event": "SparkListenerApplicationEnd"')[0])
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    place.write_text(whole)
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    page = (Path(__file__).parents[1] / "docs" / "fleet.md").read_text(encoding="utf-8")
    statement = page.partition('duckdb -c "')[2].partition('"')[0].replace("'fleet/", f"'{tmp_path}/fleet/")
    ((name, core_hours),) = duckdb.execute(statement).fetchall()
    assert (name, core_hours) == ("made", pytest.approx(summarize(tmp_path / "fleet").core_hours))


def test_a_log_that_was_touched_or_is_named_otherwise_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = log(tmp_path / "logs", "one")
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    monkeypatch.chdir(tmp_path)
    assert build(["logs"], tmp_path / "fleet", InProcess()).known == 1
    os.utime(place, (1, 1))
    assert build(["logs/one"], tmp_path / "fleet", InProcess()).read == 1
    fleet = summarize(tmp_path / "fleet")
    assert (fleet.logs, fleet.runs) == (1, 1)


def test_logs_without_a_time_of_day_are_distinguished_by_their_path(tmp_path: Path) -> None:
    made(tmp_path, [{"path": f"/{each}", "app_id": "profile", "started_at": "1970-01-01 00:00:00"} for each in "ab"])
    assert summarize(tmp_path / "fleet").runs == 2


def test_unreadable_logs_are_reported_each_time_and_retried_when_asked(
    crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(tmp_path / "logs", "one")
    (tmp_path / "logs" / "broken").write_text("")
    with monkeypatch.context() as patched:
        patched.setattr("crystalperf.fleet.reading.profile_application", lambda *_: 1 / 0)
        built = build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
        assert built.unread == 2
        assert [each for each in built.reasons if str(tmp_path / "logs" / "broken") in each]
        assert len([each for each in built.reasons if "(ZeroDivisionError" in each]) == 1
    built = build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    assert (built.known, built.known_unread, built.read) == (2, 2, 0)
    _, out, _ = crystalperf("fleet", "build", tmp_path / "logs", "-o", tmp_path / "fleet")
    assert re.search(r"\b2 logs\b.*\b2 of these\b.* --again ", " ".join(out.split()))
    built = build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess(), again=True)
    assert (built.known, built.known_unread, built.read, built.unread) == (0, 0, 2, 1)
    fleet = summarize(tmp_path / "fleet")
    assert (fleet.logs, fleet.unread_logs, fleet.runs) == (2, 1, 1)
    ((path, _),) = rows(tmp_path / "fleet", "SELECT path, text FROM problems WHERE severity = 'unread'")
    assert Path(str(path)).name == "broken"
    assert build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess()).known_unread == 1


def test_each_of_several_equal_logs_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in "ab":
        (tmp_path / "logs" / name).write_text("")
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    paths = rows(tmp_path / "fleet", "SELECT path FROM problems WHERE severity = 'unread' ORDER BY path")
    assert [Path(str(path)).name for (path,) in paths] == ["a", "b"]


def test_rows_are_durable_before_their_sources_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "logs", "one")
    own, durable_paths = tmp_path / "fleet" / "_fleet", []

    def durable(path: Path) -> None:
        if path in (own, own / "version.part"):
            return
        assert list((own / "read").glob("*.json"))
        durable_paths.append((path, bool(list((own / "batches").iterdir()))))

    monkeypatch.setattr(store, "make_durable", durable)
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    assert durable_paths[-1] == (own / "batches", True)
    assert not any(marked for _, marked in durable_paths[:-1])
    files = set((tmp_path / "fleet").glob("*/day=*/*.parquet"))
    assert files | {each.parent for each in files} <= {path for path, _ in durable_paths}


@pytest.mark.few(1)
@pytest.mark.parametrize("moment", ["keep", "_write_table", "write"])
def test_a_killed_build_goes_on_to_the_same_tables(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def killing(count: int):  # type: ignore[no-untyped-def]
        whole, calls = getattr(Store, moment), [0]

        def once(*arguments: object) -> object:
            calls[0] += 1
            if calls[0] == count:
                raise Killed
            return whole(*arguments)

        return once

    for count in (1, 2, 3):
        with monkeypatch.context() as patched:
            patched.setattr(Store, moment, killing(min(count, 1 if moment == "write" else 3)))
            with pytest.raises(Killed):
                build([str(small / "logs")], tmp_path / "fleet", InProcess())
    build([str(small / "logs")], tmp_path / "fleet", InProcess())
    for table in tables():
        columns = ", ".join(each.name for each in table.columns if each.name != "read_at")
        query = f"SELECT {columns} FROM {table.name} ORDER BY ALL"
        assert rows(tmp_path / "fleet", query) == rows(small / "fleet", query), table.name


def test_files_of_an_incomplete_batch_are_deleted(small: Path, tmp_path: Path) -> None:
    build([str(small / "logs" / "one")], tmp_path / "fleet", InProcess())
    left = next((tmp_path / "fleet" / "runs").glob("day=*")) / "0123456789abcdef-0.parquet"
    left.write_bytes(b"half")
    build([str(small / "logs" / "one")], tmp_path / "fleet", InProcess())
    assert not left.exists()


def test_foreign_files_are_kept(tmp_path: Path) -> None:
    mine = log(tmp_path / "logs" / "day=2026-11-22", "app-1")
    with pytest.raises(InputError, match="app-1"):
        build([str(tmp_path / "logs")], tmp_path, InProcess())
    assert mine.exists()
    build([str(mine)], tmp_path / "fleet", InProcess())
    theirs = next((tmp_path / "fleet" / "runs").glob("day=*")) / "notes.txt"
    theirs.write_text("mine")
    build([str(mine)], tmp_path / "fleet", InProcess())
    assert theirs.exists()


def test_concurrent_builds_of_one_fleet_are_refused(small: Path) -> None:
    with Store(small / "fleet").building(), pytest.raises(InputError, match=str(small / "fleet")):
        build([str(small / "logs")], small / "fleet", InProcess())


@pytest.mark.later
def test_batches_are_written_as_they_fill(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BATCH_BYTES", 1)
    build([str(small / "logs")], tmp_path / "fleet", InProcess())
    assert len(list((tmp_path / "fleet" / "_fleet" / "batches").iterdir())) > 1
    query = "SELECT run_id, runtime_ms FROM runs ORDER BY ALL"
    assert rows(tmp_path / "fleet", query) == rows(small / "fleet", query)


_STORE_MEMORY = """
import re, sys
from pathlib import Path
from crystalperf.fleet.reading import Read
from crystalperf.fleet.store import Store
folder, many = Path(sys.argv[1]), int(sys.argv[2])
row = (folder / "row.json").read_text()
kept = Store(folder / f"fleet{many}")
with kept.building():
    for number in range(many):
        kept.keep(Read(str(number), str(number), row.replace("LOG", str(number)).encode()))
    kept.write()
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.later
def test_a_batch_of_many_logs_takes_no_memory_for_each(tmp_path: Path) -> None:
    answer = read(find_logs([str(log(tmp_path / "logs", "one"))])[0])
    (tmp_path / "row.json").write_bytes(answer.rows.replace(answer.log.encode(), b"LOG"))
    peak_kib = {
        many: int(subprocess.check_output([sys.executable, "-c", _STORE_MEMORY, str(tmp_path), str(many)]))
        for many in (10, 410)
    }
    assert (peak_kib[410] - peak_kib[10]) / 400 < 256  # of a log's rows, which are 4 KiB of text here


def test_processes_read_and_one_that_dies_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "logs", "one")
    items = find_logs([str(tmp_path / "logs")])
    answers = list(local.read_all(items, tmp_path, 1, local.memory_of(1)))
    assert [json.loads(each.rows)["runs"][0]["app_id"] for each in answers] == ["app-one"]
    starved = list(local.read_all(items, tmp_path, 1, 64 << 20))  # too little for Python and its libraries
    (problem,) = json.loads(starved[0].rows)["problems"]
    assert problem["severity"] == "unread"
    assert "memory" in problem["text"]


def test_a_process_that_ends_in_the_middle_of_an_answer_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import os, struct\n"
        "from multiprocessing.connection import Connection\n"
        "pipe = Connection(0)\n"
        "pipe.recv_bytes(), pipe.recv_bytes()\n"
        "os.write(0, struct.pack('!i', 1000) + b'half')\n"
        "os._exit(7)\n"
    )
    monkeypatch.setattr(local, "own_module", lambda _name: [sys.executable, "-c", program])
    (answer,) = local.read_all([Item("/logs/one", 1, 0.0, "state")], tmp_path, 1, local.memory_of(1))
    (problem,) = json.loads(answer.rows)["problems"]
    assert re.search(r"/logs/one: .*\b7\b", problem["text"])


def test_a_store_whose_client_has_errors_of_its_own_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crystalperf.fleet.reading.content_hash", lambda _item: os.environ["NO_CREDENTIALS"])
    (problem,) = json.loads(read(Item("s3://logs/one", 1, 0.0, "state"), tmp_path).rows)["problems"]
    assert "KeyError" in problem["text"]


@pytest.mark.few(1)
@pytest.mark.parametrize("damaged", ["logs/day=*/*.parquet", "_fleet/read/*.json"])
def test_fleet_resumes_or_reports_damage_after_a_power_loss(tmp_path: Path, damaged: str) -> None:
    place = log(tmp_path / "logs", "one")
    build([str(place)], tmp_path / "fleet", InProcess())
    (tmp_path / "fleet" / "_fleet" / "read" / "half.json").write_bytes(b"")
    log(tmp_path / "logs", "two", ms=3000)
    for each in (tmp_path / "fleet").glob(damaged):
        each.write_bytes(b"")
    if "parquet" in damaged:
        with pytest.raises(InputError, match=str(tmp_path / "fleet")):
            build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    else:
        assert build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess()).read == 1


def test_a_fleet_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "fleet" / "_fleet" / "lock").mkdir(parents=True)
    with (
        pytest.raises(InputError, match=rf"fleet: .*\({os.strerror(errno.EISDIR)}\)"),
        Store(tmp_path / "fleet").building(),
    ):
        pass


def test_names_of_jobs_cannot_steer_the_terminal(crystalperf: Answer, tmp_path: Path) -> None:
    place = log(tmp_path / "logs", "one")
    place.write_text(place.read_text().replace('"made"', r'"\u001b[31m\u202edam"'))
    (tmp_path / "logs" / "broken").write_text("")
    folder = tmp_path / "it's a fleet"
    built = build([str(tmp_path / "logs")], folder, InProcess())
    assert built.read == 2
    code, out, err = crystalperf("fleet", "ask", folder)
    assert (code, err) == (0, "")
    assert not {"\x1b", "\u202e"} & set(out)
    assert "[31m" in out
    ((path, _),) = duckdb.execute(statement_in(out)).fetchall()
    assert Path(path).name == "broken"
    code, out, _ = crystalperf("fleet", "build", tmp_path / "logs", "-o", folder)
    assert code == 0
    assert f"crystalperf fleet ask {shlex.quote(str(folder))}" in out.splitlines()[-1]


def test_paths_are_folders_globs_and_lists(tmp_path: Path) -> None:
    places = [log(tmp_path / "logs", name) for name in ("a", "b")]
    (tmp_path / "list").write_text(f"# mine\n{places[0]}\n")
    names = [
        sorted(Path(each.path).name for each in find_logs([str(given)]))
        for given in (tmp_path / "logs", tmp_path / "logs" / "[ab]", f"@{tmp_path / 'list'}", places[1])
    ]
    assert names == [["a", "b"], ["a", "b"], ["a"], ["b"]]
    for nowhere in (tmp_path / "none", tmp_path / "none*", f"@{tmp_path / 'none'}"):
        with pytest.raises(InputError, match="none") as reported:
            find_logs([str(nowhere)])
        assert "Errno" not in str(reported.value)


@pytest.mark.later
def test_list_may_name_missing_logs(tmp_path: Path) -> None:
    place = log(tmp_path / "logs", "one")
    gone = [str(tmp_path / "gone"), str(tmp_path / "gone-*"), "nostore://gone"]
    (tmp_path / "list").write_text("\n".join([*gone, str(place)]))
    built = build([f"@{tmp_path / 'list'}"], tmp_path / "fleet", InProcess())
    assert (built.logs, built.unread) == (4, 3)
    reported = dict(rows(tmp_path / "fleet", "SELECT path, text FROM problems WHERE severity = 'unread'"))
    assert reported.keys() == set(gone)
    assert reported[gone[0]].startswith(f"{gone[0]}: ")
    assert build([f"@{tmp_path / 'list'}"], tmp_path / "fleet", InProcess()).known == 4
    log(tmp_path, "gone", ms=2000)
    assert build([f"@{tmp_path / 'list'}"], tmp_path / "fleet", InProcess()).unread == 0


def test_a_folder_that_cannot_be_read_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path / "logs", "one")
    log(tmp_path / "logs" / "closed", "two")
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    ((path, what),) = rows(tmp_path / "fleet", "SELECT path, text FROM problems WHERE severity = 'unread'")
    assert path == str(tmp_path / "logs" / "closed")
    assert what.startswith(f"{path}: ")
    assert os.strerror(errno.EACCES) in what


@pytest.mark.later
def test_fleet_in_the_folder_of_its_logs_is_not_read_as_a_log(tmp_path: Path) -> None:
    log(tmp_path, "one")
    for folder in (tmp_path / "fleet", tmp_path):
        for known in (0, 1):
            built = build([str(tmp_path)], folder, InProcess())
            assert (built.logs, built.known) == (1, known)


def test_fleet_folder_name_may_have_glob_characters(crystalperf: Answer, tmp_path: Path) -> None:
    log(tmp_path / "logs", "one")
    (tmp_path / "logs" / "broken").write_text("")
    folder = tmp_path / "fleet[prod]*"
    build([str(tmp_path / "logs")], folder, InProcess())
    assert build([str(tmp_path / "logs")], folder, InProcess()).known == 2
    _, out, _ = crystalperf("fleet", "ask", folder)
    assert re.search(r"\b1 run\b.*\b2 logs\b", out)
    assert len(duckdb.execute(statement_in(out)).fetchall()) == 1


def test_files_that_a_framework_keeps_next_to_a_log_belong_to_it(tmp_path: Path) -> None:
    data = Path(__file__).parent / "data" / "flink"
    archive, metrics = tmp_path / "job", tmp_path / "job.series.gz"
    archive.write_bytes(gzip.decompress((data / "ads-3000.json.gz").read_bytes()))
    metrics.write_bytes((data / "ads-3000.series.gz").read_bytes())
    (item,) = find_logs([str(tmp_path)])
    assert (item.path, item.companions) == (str(archive), (str(metrics),))
    assert find_logs([str(metrics)]) == find_logs([str(archive)]) == [item]
    (run,) = json.loads(read(item).rows)["runs"]
    assert run["measure"] == "latency"
    before = content_hash(item)
    metrics.write_bytes(b"")
    (other,) = find_logs([str(tmp_path)])
    assert other.state != item.state
    assert content_hash(other) != before
    metrics.unlink()
    assert find_logs([str(tmp_path)])[0].state not in (item.state, other.state)


def test_logs_of_some_days_are_read_together_and_of_these_the_largest_first() -> None:
    items = [Item(f"/logs/{each}", each * 7919 % 10_007, each * 7907.0 % 10_009, "state") for each in range(10_009)]
    there = ordered(items)
    assert sorted(each.path for each in there) == sorted(each.path for each in items)
    parts = [there[first : first + AT_ONCE] for first in range(0, len(there), AT_ONCE)]
    for part, after in pairwise(parts):
        assert max(each.changed_s for each in part) <= min(each.changed_s for each in after)
    for part in parts:
        assert [each.size_bytes for each in part] == sorted((each.size_bytes for each in part), reverse=True)
    tasks = _dealt(there, 16)
    assert sorted(each.path for task in tasks for each in task) == sorted(each.path for each in items)
    assert all(max(each.changed_s for each in task) - min(each.changed_s for each in task) <= AT_ONCE for task in tasks)


def test_logs_in_parts_are_one_and_recordings_find_theirs_by_application(tmp_path: Path) -> None:
    parted = tmp_path / "eventlog_v2_app-20261121113629-0000"
    log(parted, "events_1_app-20261121113629-0000")
    log(parted, "events_2_app-20261121113629-0000")
    recording = tmp_path / "recordings" / "app-20261121113629-0000" / "executor-0.jfr"
    recording.parent.mkdir(parents=True)
    recording.write_bytes(b"")
    (alone,) = find_logs([str(parted)])
    (item,) = find_logs([str(tmp_path)])
    assert (item.path, item.companions) == (str(parted), (str(recording),))
    assert item.state != alone.state  # a recording that comes later is read
    before = content_hash(item)
    (parted / "events_2_app-20261121113629-0000").write_text("")
    assert content_hash(item) != before


def test_error_of_a_reader_becomes_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = log(tmp_path, "one")
    monkeypatch.setattr("crystalperf.fleet.reading.profile_application", lambda *_: 1 / 0)
    answer = read(Item(str(place), 1, 0.0, "state"))
    (problem,) = json.loads(answer.rows)["problems"]
    assert "(ZeroDivisionError: " in problem["text"]


def test_engine_rejects_unknown_options() -> None:
    with pytest.raises(SettingError, match="dask"):
        Engine("dask")
    with pytest.raises(SettingError, match="KEY=VALUE"):
        Engine("spark", settings=("a",))
    for wrong in ({"master": "yarn"}, {"settings": ("a=b",)}):
        with pytest.raises(SettingError, match="local"):
            Engine("local", **wrong)  # type: ignore[arg-type]
    for wrong in ({"processes": 2}, {"memory_bytes": 1 << 30}):
        with pytest.raises(SettingError, match="local"):
            Engine("spark", **wrong)


@pytest.mark.parametrize("state", ["whole", "killed", "other"])
def test_fleet_of_another_version_is_refused_and_stays_as_it_was(tmp_path: Path, state: str) -> None:
    made = log(tmp_path, "log")
    build([str(made)], tmp_path / "fleet", InProcess())
    version = tmp_path / "fleet" / "_fleet" / "version"
    if state == "other":
        version.write_text("99\n")
    else:
        version.unlink()
    if state == "killed":  # before its first batch was complete
        for each in (tmp_path / "fleet" / "_fleet" / "batches").iterdir():
            each.rename(tmp_path / "fleet" / "_fleet" / "read" / "log.json")
    before = {each: each.read_bytes() for each in (tmp_path / "fleet").rglob("*") if each.is_file()}
    for action in (lambda: build([str(made)], tmp_path / "fleet", InProcess()), lambda: summarize(tmp_path / "fleet")):
        with pytest.raises(InputError, match=r"of version .* in an empty folder with `crystalperf fleet build LOGS"):
            action()
    assert {each: each.read_bytes() for each in (tmp_path / "fleet").rglob("*") if each.is_file()} == before


def test_folder_without_a_fleet_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=str(tmp_path)):
        summarize(tmp_path)


def test_ask_sums_the_rows_of_the_tables(small: Path) -> None:
    fleet = summarize(small / "fleet")
    assert (fleet.logs, fleet.unread_logs, fleet.runs) == (4, 1, 2)
    (job,) = fleet.by_core_hours
    assert (job.name, job.runs) == ("made", 2)
    assert fleet.core_hours == pytest.approx(job.core_hours)
    assert fleet.idle_core_hours + sum(sum(day.core_hours.values()) for day in fleet.mix) == pytest.approx(
        fleet.core_hours
    )
    saving = next(each for each in fleet.savings if each.setting == "cpu_speed=2x")
    assert saving.saved_hours_range[0] < saving.saved_hours < saving.saved_hours_range[1] <= saving.hours_now


def asked(folder: Path, runs: int, shares: dict[str, float]) -> float:
    """How wide the range of a saving is, of so many equal runs, relative to what is left."""
    prediction = Prediction("all", "makespan", "cores=2x", 2000.0, 2000.0, 1000.0, (800.0, 1250.0), shares)
    gain = _gain("twice", "cores=2x", prediction, None)
    kept = Store(folder)
    with kept.building():
        for number in range(runs):
            row = json.loads((folder.parent / "row.json").read_text())
            row["runs"][0] |= {"run_id": f"{number:016x}", "gains": [gain], "runtime_ms": 2000.0, "log": f"{number}"}
            row["runs"][0] |= {"app_id": f"{number}"}
            row["logs"][0] |= {"log": f"{number}", "path": f"{number}"}
            kept.keep(Read(f"{number}", f"{number}", json.dumps(row).encode()))
        kept.write()
    (saving,) = summarize(folder).savings
    low, high = saving.saved_hours_range
    return (high - low) / (saving.hours_now - saving.saved_hours)


def test_shared_model_error_does_not_average_out(tmp_path: Path) -> None:
    answer = read(find_logs([str(log(tmp_path / "logs", "one"))])[0])
    (tmp_path / "row.json").write_bytes(answer.rows)
    one = asked(tmp_path / "one", 1, {"model": 1.0})
    assert one == pytest.approx(np.log(1250 / 800), rel=1e-6)
    assert asked(tmp_path / "common", 16, {COMMON[0]: 1.0}) == pytest.approx(one)
    assert asked(tmp_path / "own", 16, {"repetition": 1.0}) == pytest.approx(one / 4)


def made(folder: Path, runs: list[dict[str, object]], findings: Sequence[dict[str, object]] = ()) -> None:
    """A fleet of these runs, each like one that was read but for what is given; and each with the findings."""
    answer = read(find_logs([str(log(folder / "logs", "one"))])[0])
    kept = Store(folder / "fleet")
    with kept.building():
        for number, given in enumerate(runs):
            row = json.loads(answer.rows)
            log_hash, run_id = f"{number:064x}", f"{number:016x}"
            begun = {"started_at": f"2026-11-{1 + number // 24:02d} {number % 24:02d}:00:00"}
            row["runs"][0] |= {"run_id": run_id, "log": log_hash, "app_id": f"app-{number}", **begun, **given}
            row["logs"][0] |= {"log": log_hash, "path": row["runs"][0]["path"] + log_hash}
            about = {"run_id": run_id, "basis": "measured", "text": "It.", "advice": "Do.", "day": "2026-11-01"}
            row["findings"] = [about | each for each in findings]
            kept.keep(Read(log_hash, f"{number}", json.dumps(row).encode()))
        kept.write()


def test_a_run_with_two_findings_of_a_kind_counts_once(tmp_path: Path) -> None:
    runs: list[dict[str, object]] = [{"runtime_ms": 1000.0}, {"runtime_ms": 3000.0}]
    stream: dict[str, object] = {"runtime_ms": 50.0, "measure": "latency"}
    made(tmp_path, [*runs, stream], [{"kind": "skew", "cost_ms": 100.0}, {"kind": "skew", "cost_ms": 300.0}])
    (recurring,) = summarize(tmp_path / "fleet").recurring
    assert (recurring.runs, recurring.cost_hours) == (2, pytest.approx(800 / 3.6e6))
    assert recurring.share == pytest.approx(800 / 4000)


def test_latency_is_not_counted_as_runtime(crystalperf: Answer, tmp_path: Path) -> None:
    runs: list[dict[str, object]] = [
        {"name": name, "measure": measure, "runtime_ms": ms * (1 + number % 3 / 100), "path": f"/{name}/{number}"}
        for name, measure in (("stream", "latency"), ("both", "latency"), ("both", "makespan"))
        for number, ms in enumerate([100.0] * 10 + [200.0] * 10)
    ]
    made(tmp_path, runs)
    fleet = summarize(tmp_path / "fleet")
    medians = {each.name: each.median_runtime_ms for each in fleet.by_core_hours}
    assert medians == {"stream": None, "both": pytest.approx(150, rel=0.5)}
    reported = [(each.name, each.measure, each.runs_before, each.runs_after) for each in fleet.regressions]
    assert reported == [("both", "makespan", 10, 10), ("both", "latency", 10, 10), ("stream", "latency", 10, 10)]
    _, out, _ = crystalperf("fleet", "ask", tmp_path / "fleet")
    assert re.search(r"stream: .*\b101\b.*\b202 ms.*100 %", out)
    assert re.search(r"\b10 .*\b10 .* /stream/10\b", out)  # runs before and after, and the first of the slower


def test_ask_names_bottlenecks_and_the_days_left_out(crystalperf: Answer, tmp_path: Path) -> None:
    names = ("cpu", "driver", "unknown", "nothing")
    days = [{"name": each, "bottleneck": each, "day": f"2026-11-{1 + n:02d}"} for n, each in enumerate(names)]
    made(tmp_path, [*days, *({"day": f"2026-12-{1 + each:02d}"} for each in range(10))])
    _, out, _ = crystalperf("fleet", "ask", tmp_path / "fleet")
    words = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.startswith(names)}
    assert words["cpu"] == "CPU"
    assert words["driver"] not in ("driver", "CPU")
    assert re.search(r"\b10 of 14\b", out)
    _, out, _ = crystalperf("fleet", "ask", tmp_path / "fleet", "--top", 0)
    assert len(re.findall("^2026-", out, re.MULTILINE)) == 14


def test_last_change_is_reported() -> None:
    random = np.random.default_rng(1)

    def levels(*parts: tuple[int, float]) -> list[float]:
        return [ms for runs, level in parts for ms in level * np.exp(0.1 * random.standard_normal(runs))]

    seen = change(levels((30, 300), (30, 100), (30, 150)))
    assert abs(seen.before - 30) <= 1
    assert abs(seen.first - 60) <= 2
    assert seen.ratio == pytest.approx(1.5, rel=0.1)
    seen = change(levels((30, 100), (40, 300), (10, 100)))
    assert seen.ratio == pytest.approx(1 / 3, rel=0.1)
    assert abs(seen.first - 70) <= 1


def test_change_is_distinguished_from_noise() -> None:
    random = np.random.default_rng(0)
    steady = np.exp(0.1 * random.standard_normal(40))
    assert change(steady.tolist()) is None
    assert noise(steady.tolist()) == pytest.approx(0.1, rel=0.5)
    slower = steady.copy()
    slower[25:] *= 1.5
    seen = change(slower.tolist())
    assert abs(seen.first - 25) <= 1
    assert seen.ratio == pytest.approx(1.5, rel=0.1)
    once = steady.copy()
    once[20] *= 20  # a single odd run is not a change
    assert change(once.tolist()) is None
    assert change([1.0] * 5) is None


@pytest.mark.later
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a socket of py4j
def test_both_engines_give_the_same_tables(small: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    if not any((Path(each) / "java").exists() for each in os.environ["PATH"].split(":")):
        pytest.skip("Java is not installed")
    engine = Engine("spark", master="local-cluster[2,1,1024]", settings=("spark.ui.enabled=false",))
    build([str(small / "logs")], tmp_path / "fleet", engine)
    assert "PYTHONSAFEPATH" not in os.environ  # or no `python -m` of a working directory would start any more
    with opened(small / "fleet") as in_process, opened(tmp_path / "fleet") as by_spark:
        for table in tables():
            columns = ", ".join(each.name for each in table.columns if each.name != "read_at")
            one, other = (
                sorted(each.execute(f"SELECT {columns} FROM {table.name}").fetchall(), key=repr)
                for each in (in_process, by_spark)
            )
            assert one == other, table.name


@pytest.mark.later
def test_full_disk_is_not_recorded_as_an_error_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that did not fit in memory is read by the next build; what could be read meanwhile is kept."""
    import crystalperf.fleet.reading

    first, second = log(tmp_path / "logs", "one"), log(tmp_path / "logs", "two")
    real = crystalperf.fleet.reading.profile_application

    def full(inputs, application, place):  # type: ignore[no-untyped-def]
        if application.app_id.endswith("two"):
            try:
                raise duckdb.IOException("Could not write all bytes: No space left on device")
            except duckdb.Error as error:
                raise IndexFileError(f"{place}: the disk is full") from error
        real(inputs, application, place)

    monkeypatch.setattr(crystalperf.fleet.reading, "profile_application", full)
    with pytest.raises(InputError, match=r"disk.*\b1 of 2\b"):
        build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    with opened(tmp_path / "fleet") as connection:
        assert connection.execute("SELECT path, runs FROM logs").fetchall() == [(str(first), 1)]
    monkeypatch.undo()
    built = build([str(tmp_path / "logs")], tmp_path / "fleet", InProcess())
    assert (built.known, built.read, built.unread) == (1, 1, 0)
    with opened(tmp_path / "fleet") as connection:
        assert {row[0] for row in connection.execute("SELECT path FROM logs").fetchall()} == {str(first), str(second)}


def test_recordings_find_their_log_by_application_and_time(tmp_path: Path) -> None:
    lab = Path(__file__).parents[1] / "lab" / "recordings"
    flink = lab / "sweeps" / "flink" / "011-ads-0"
    shutil.copytree(
        lab / "demo-q9" / "eventlog_v2_app-20261121113629-0000", tmp_path / "eventlog_v2_app-20261121113629-0000"
    )
    (page,) = (each for each in (flink / "collected").iterdir() if each.suffix != ".gz")
    shutil.copy(page, tmp_path / page.name)
    for name, path in {
        "a.jfr.gz": lab / "demo-q9" / "driver.jfr.gz",
        "b.jfr.gz": lab / "demo-q9" / "executor-1.jfr.gz",
        "c.jfr.gz": flink / "recordings" / "taskmanager-tm1.jfr.gz",
        "d.jfr.gz": lab / "again" / "kinds" / "base-2-00-jfr20" / "jfr" / "executor-1.jfr.gz",
    }.items():
        shutil.copy(path, tmp_path / name)
    logs, left = find_logs_and_unmatched([str(tmp_path)])
    found = {Path(each.path).name[:8]: [Path(one).name[0] for one in each.companions] for each in logs}
    assert found == {"eventlog": ["a", "b"], page.name[:8]: ["c"]}
    assert [Path(each).name for each in left] == ["d.jfr.gz"]


def test_recordings_without_a_log_are_reported(tmp_path: Path, crystalperf: Answer) -> None:
    log(tmp_path / "logs", "one")
    (tmp_path / "logs" / "executor-1.jfr").write_bytes(b"FLR\0")
    (tmp_path / "logs" / "driver.collapsed").write_text("a.B.run 1\n")
    code, out, _ = crystalperf("fleet", "build", tmp_path / "logs", "-o", tmp_path / "fleet", "--processes", 1)
    assert code == 0
    assert re.search(rf"\b2 recordings\b.*{tmp_path}/logs/driver\.collapsed and 1 ", " ".join(out.split()))


def test_a_build_says_why_the_first_logs_could_not_be_read(tmp_path: Path, crystalperf: Answer) -> None:
    """For a reader without DuckDB at hand."""
    (tmp_path / "logs").mkdir()
    for number in range(4):
        (tmp_path / "logs" / f"{number}").write_text("")
    _, out, _ = crystalperf("fleet", "build", tmp_path / "logs", "-o", tmp_path / "fleet", "--processes", 1)
    assert len(set(re.findall(rf"{tmp_path}/logs/\d", out))) == 3
    _, out, _ = crystalperf("fleet", "build", tmp_path / "logs", "-o", tmp_path / "fleet", "--processes", 1)
    assert "4 logs" in out
    assert f"{tmp_path}/logs/" not in out


def test_hours_that_round_to_zero_have_no_sign() -> None:
    from crystalperf.cli.fleet_commands import _hours

    assert [_hours(each) for each in (-0.001, 0.0, -0.016, 1.5)] == ["0.00", "0.00", "-0.02", "1.50"]


@pytest.mark.parametrize("runs", [5, 6, 7, 40, 301])
@pytest.mark.parametrize("kind", ["noise", "a step", "rounded", "constant"])
def test_the_clearest_change_is_that_of_all_change_points(runs: int, kind: str) -> None:
    for seed in range(5):
        logs = 0.1 * np.random.default_rng(seed).standard_normal(runs)
        if kind == "a step":
            logs += (np.arange(runs) >= runs // 3) * 0.4
        elif kind == "rounded":
            logs = np.round(logs, 1)
        elif kind == "constant":
            logs *= 0
        places = range(changes.MIN_EACH, runs - changes.MIN_EACH + 1)
        tried = [changes._step(logs, 0, first, runs) for first in places]
        assert changes._clearest(logs) == max(tried, key=lambda each: each.clearness, default=None)
