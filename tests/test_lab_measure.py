"""Measured labels: reading strace and flight recordings, dividing time, finding functions, a tiny real run."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tree_sitter", reason="the dataset's tools need the indexer: pip install '.[indexer]'")

from crystalperf.indexer.labels import collect, rebuild
from crystalperf.indexer.labels.functions import text_hash
from crystalperf.indexer.labels.libraries import libraries
from crystalperf.indexer.labels.tables import CLASSES, Label, Measured, Reading, committed, read_table, write_table
from crystalperf.indexes.errors import InputError
from crystalperf.query.recordings.jfr import INTERVAL_KINDS, Recording
from crystalperf.query.recordings.jfr.model import Intervals, Thread
from lab.measure.host import Host
from lab.measure.jvm import Window, choose, recorded_times
from lab.measure.places import find, parameter_types, python_lines, same_text
from lab.measure.python import serve
from lab.measure.readings import differences, read_answers, report, write_batches
from lab.measure.strace import MARK, STRACE, Blocked, Call, blocked_times, kind, parse_strace
from lab.measure.table import store
from lab.measure.times import Run, Shares, middle, shares

TRACE = f"""\
100 10.000000 access("{MARK}/7/1/begin", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
100 10.001000 openat(AT_FDCWD, "/data/a", O_RDONLY|O_CLOEXEC) = 3</data/a> <0.000110>
100 10.002000 read(3</data/a>, "x"..., 4096) = 4096 <0.002010>
100 10.005000 read(4<socket:[77]>,  <unfinished ...>
101 10.005500 write(5</data/b>, "y"..., 10) = 10 <0.000510>
100 10.015000 <... read resumed>"z"..., 4096) = 1 <0.010010>
101 10.016000 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
100 10.020000 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL) = 0 <0.004010>
101 10.021000 --- SIGCHLD {{si_signo=SIGCHLD}} ---
100 10.025000 read(6</dev/urandom>, "\\1"..., 16) = 16 <0.000510>
100 10.030000 access("{MARK}/7/1/end", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
100 10.031000 read(3</data/a>, "x"..., 4096) = 4096 <1.000000>
100 10.032000 +++ exited with 0 +++
"""


def call(text: str) -> Call:
    return parse_strace([f"1 1.0 {text} = 0 <0.001000>"])[0]


class TestStrace:
    def test_calls(self) -> None:
        calls = parse_strace(TRACE.split("\n"))
        assert [each.name for each in calls].count("read") == 4
        resumed = next(each for each in calls if "socket" in each.arguments)
        assert (resumed.thread, resumed.start_s, resumed.duration_s) == (100, 10.005, 0.01001)
        assert [each.start_s for each in calls] == sorted(each.start_s for each in calls)

    def test_a_resumed_call_without_a_beginning_is_left_out(self) -> None:
        assert (
            parse_strace(["1 1.0 <... read resumed>) = 0 <0.5>", "1 1.1 ???", "", "1 2.0 close(3 <unfinished ...>"])
            == []
        )

    @pytest.mark.parametrize(
        ("text", "its"),
        [
            ('read(3</data/a>, "x"..., 10)', "file"),
            ('newfstatat(AT_FDCWD</home>, "/data/a", {...}, 0)', "file"),
            ("fsync(3</data/a>)", "file"),
            ("sync()", "file"),
            ('read(3<socket:[5]>, "x"..., 10)', "socket"),
            ("sendfile(3<socket:[5]>, 4</data/a>, NULL, 100)", "socket"),
            ("connect(3<socket:[5]>, {...}, 16)", "socket"),
            ("poll([{fd=3<socket:[5]>, events=POLLIN}], 1, 100)", "socket"),
            ("epoll_wait(3<anon_inode:[eventpoll]>, [], 5, -1)", "socket"),
            ("poll(NULL, 0, 100)", "wait"),
            ('read(3<pipe:[5]>, "x"..., 10)', "wait"),
            ("clock_nanosleep(CLOCK_REALTIME, 0, {...}, NULL)", "wait"),
            ('read(3</dev/urandom>, "x"..., 10)', "other"),
            ('openat(AT_FDCWD, "/proc/self/stat", O_RDONLY)', "other"),
            ("mmap(NULL, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0)", "other"),
            ("mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</data/a>, 0)", "file"),
            ('read(3<anon_inode:[eventfd]>, "x"..., 8)', "other"),
        ],
    )
    def test_kinds(self, text: str, its: str) -> None:
        assert kind(call(text)) == its

    def test_times_between_the_marks(self) -> None:
        times = blocked_times(parse_strace(TRACE.split("\n")))
        assert set(times) == {(7, 1)}
        its = times[7, 1]
        assert its.file_ms == pytest.approx(0.1 + 2.0)  # each call less the tracer's 10 µs
        assert its.socket_ms == pytest.approx(10.0)
        assert its.wait_ms == pytest.approx(4.0)

    def test_waiting_for_a_thread_that_reads(self) -> None:
        lines = [
            f'1 1.000000 access("{MARK}/0/0/begin", F_OK) = -1 <0.000000>',
            "1 1.010000 futex(0x1, FUTEX_WAIT) = 0 <0.100000>",
            '2 1.020000 recvfrom(3<socket:[5]>, "x"..., 10) = 10 <0.080000>',
            f'1 1.200000 access("{MARK}/0/0/end", F_OK) = -1 <0.000000>',
        ]
        its = blocked_times(parse_strace(lines))[0, 0]
        assert (its.socket_ms, its.wait_ms) == (pytest.approx(80.0), pytest.approx(20.0))

    def test_an_event_loop_that_waits_already(self) -> None:
        lines = [
            "2 1.000000 epoll_wait(5<anon_inode:[eventpoll]>, [], 5, -1) = 1 <0.150000>",
            "3 1.000000 epoll_wait(6<anon_inode:[eventpoll]>, [], 5, -1) = 1 <9.000000>",
            f'1 1.100000 access("{MARK}/0/0/begin", F_OK) = -1 <0.000000>',
            "1 1.100000 futex(0x1, FUTEX_WAIT) = 0 <0.060000>",
            f'1 1.200000 access("{MARK}/0/0/end", F_OK) = -1 <0.000000>',
        ]
        its = blocked_times(parse_strace(lines))[0, 0]  # the loop that outlasts the call is idle
        assert (its.socket_ms, its.wait_ms) == (pytest.approx(50.0), pytest.approx(10.0))

    def test_a_run_that_did_not_end_is_left_out(self) -> None:
        assert blocked_times(parse_strace([f'1 1.0 access("{MARK}/0/0/begin", F_OK) = -1 <0.000010>'])) == {}


class TestShares:
    def test_blocked_time_is_divided_as_traced(self) -> None:
        its = shares(Run(100, 20, 30, 0), Blocked(1, 4, 0))
        assert (its.cpu, its.disk, its.net, its.wait) == pytest.approx((20 / 70, 10 / 70, 40 / 70, 0))
        assert its.label() == "net"

    def test_a_cached_read_is_cpu_and_late_writing_is_disk(self) -> None:
        assert shares(Run(10, 10, 0, 0), Blocked(9, 0, 0)).label() == "cpu"
        late = shares(Run(10, 10, 0, 90), Blocked(9, 0, 0))
        assert (late.label(), late.disk, late.deferred) == ("disk", pytest.approx(0.9), pytest.approx(0.9))

    def test_blocked_time_without_a_trace_is_a_wait(self) -> None:
        assert shares(Run(10, 1, 0, 0), Blocked()).label() == "wait"

    def test_no_time_at_all(self) -> None:
        with pytest.raises(InputError):
            shares(Run(0, 0, 0, 0), Blocked())

    def test_middle(self) -> None:
        assert middle([Run(1, 5, 0, 0), Run(900, 4, 0, 0), Run(2, 6, 0, 1)]) == Run(2, 5, 0, 0)


def recording(events: list[tuple[int, int, str, int]]) -> Recording:
    """A recording of threads main and helper, with events (start ms, end ms, kind, thread)."""
    thread = [Thread(name, name, number, 1) for number, name in enumerate(("main", "helper"))]
    count = len(events)
    intervals = Intervals(
        start_ns=np.array([each[0] for each in events], dtype=np.int64) * 1_000_000,
        end_ns=np.array([each[1] for each in events], dtype=np.int64) * 1_000_000,
        thread=np.array([each[3] for each in events], dtype=np.int32),
        stack=np.full(count, -1, dtype=np.int32),
        kind=np.array([INTERVAL_KINDS.index(each[2]) for each in events], dtype=np.uint8),
        bytes=np.zeros(count, dtype=np.int64),
        asked_ns=np.zeros(count, dtype=np.int64),
    )
    made = object.__new__(Recording)
    object.__setattr__(made, "threads", tuple(thread))
    object.__setattr__(made, "intervals", intervals)
    return made


class TestRecorder:
    def test_events_in_the_window_of_the_thread(self) -> None:
        its = recording(
            [
                (0, 5, "FILE_READ", 0),
                (8, 14, "FILE_READ", 0),
                (15, 16, "FILE_FORCE", 0),
                (16, 30, "SOCKET_READ", 0),
                (10, 20, "SOCKET_READ", 1),
            ]
        )
        (found,) = recorded_times(its, [Window(10_000_000, 20_000_000)])
        assert found == Blocked(5.0, 4.0, 0.0)

    def test_parked_while_a_helper_reads(self) -> None:
        its = recording([(0, 10, "PARK", 0), (2, 8, "SOCKET_READ", 1)])
        assert recorded_times(its, [Window(0, 10_000_000)]) == [Blocked(0.0, 6.0, 4.0)]
        assert recorded_times(its, [Window(0, 10_000_000, "helper")]) == [Blocked(0.0, 6.0, 0.0)]

    def test_the_trace_speaks_where_the_recorder_is_silent(self) -> None:
        run, traced = Run(10, 1, 0, 0), Blocked(9, 0, 0)
        assert choose(run, Blocked(8, 0, 0), traced) == (Blocked(8, 0, 0), "jfr")
        assert choose(run, Blocked(0, 0, 9), traced) == (traced, "strace")
        assert choose(run, Blocked(), None) is None
        assert choose(run, Blocked(0, 0, 9), None) == (Blocked(0, 0, 9), "jfr")


SOURCE = """\
class A:
    def f(self):
        return 1

    class B:
        @staticmethod
        async def f(x):
            return x


def f():
    def inner():
        pass
    return inner
"""
JAVA = """\
package a.b;
class C {
  /** One. */
  int f(int x) { return x; }
  int f(java.util.Map<String, int[]> x, final String... y) { return 1; }
}
"""


class TestPlaces:
    def test_python_lines(self) -> None:
        assert python_lines(SOURCE, "A.f") == (2, 3)
        assert python_lines(SOURCE, "A.B.f") == (7, 8)
        assert python_lines(SOURCE, "f") == (11, 14)
        assert python_lines(SOURCE, "A.g") is None

    def test_same_text(self, tmp_path: Path) -> None:
        one, other = tmp_path / "a.py", tmp_path / "b.py"
        one.write_text(SOURCE)
        other.write_text("# moved\n" + SOURCE.replace("return x", "return x + 1"))
        assert same_text(one, other, "A.f")
        assert not same_text(one, other, "A.B.f")

    def test_parameter_types(self) -> None:
        assert parameter_types("void f(@A(x) final Map<K, List<V>> a, byte[] b, int... c)") == (
            "Map",
            "byte[]",
            "int...",
        )
        assert parameter_types("int f(byte b[], int off)") == ("byte[]", "int")
        assert parameter_types("int f()") == ()

    def test_java_overloads(self, tmp_path: Path) -> None:
        path = tmp_path / "kryo" / "C.java"
        path.parent.mkdir()
        path.write_text(JAVA)
        found = find("kryo", [("C.java", "C.f(int)"), ("C.java", "C.f(Map,String...)")], tmp_path)
        assert [each.function.first_line for each in found.values()] == [4, 5]
        with pytest.raises(InputError, match="2 functions"):
            find("kryo", [("C.java", "C.f")], tmp_path)

    def test_store_keeps_ids(self, tmp_path: Path) -> None:
        path = tmp_path / "kryo" / "C.java"
        path.parent.mkdir()
        path.write_text(JAVA)
        both = list(find("kryo", [("C.java", "C.f(int)"), ("C.java", "C.f(Map,String...)")], tmp_path).values())
        table, its = tmp_path / "measured.tsv", Shares(0.9, 0.1, 0, 0, 0)
        assert store([(both[0], its, Run(1, 1, 0, 0), 3, "jfr")], frozenset(), table) == 1
        assert store([(both[1], its, Run(1, 1, 0, 0), 3, "jfr")], frozenset(), table) == 2
        assert store([(both[1], its, Run(2, 1, 0, 0), 3, "jfr")], frozenset(["kryo"]), table) == 1
        (row,) = read_table(table, Measured)
        assert (row.id, row.label, row.wall_ms) == ("m0001", "cpu", 2.0)

    def test_no_id_is_given_twice(self, tmp_path: Path) -> None:
        path = tmp_path / "kryo" / "C.java"
        path.parent.mkdir()
        path.write_text(JAVA)
        its = find("kryo", [("C.java", "C.f(int)")], tmp_path)["C.java", "C.f(int)"]
        table = tmp_path / "measured.tsv"
        write_table(tmp_path / "measured_readings.tsv", Reading, [Reading("m0006", "J", "cpu", 3, "independent")])
        store([(its, Shares(0.9, 0.1, 0, 0, 0), Run(1, 1, 0, 0), 3, "jfr")], frozenset(), table)
        assert [each.id for each in read_table(table, Measured)] == ["m0007"]

    def test_rounding_leaves_no_negative_share(self) -> None:
        assert all(shares(Run(x, 0, 0, 0), Blocked(x / 3, x / 7, 0)).wait >= 0 for x in range(1, 200))


class TestChild:
    def test_ends_with_its_parent_and_takes_its_own_along(self, tmp_path: Path) -> None:
        code = """import subprocess
p = subprocess.Popen(["sleep", "60"])
print('{"pid": %d}' % p.pid, flush=True)
p.wait()"""
        child = serve([sys.executable, "-c", code], Host(tmp_path, "127.0.0.1", None), dict(os.environ))
        pid = next(child)["pid"]
        child.close()  # what SIGTERM, through SystemExit, and every other exception do
        deadline = time.monotonic() + 10
        with suppress(OSError):  # when it is gone; until it is reaped it is a zombie
            while "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
                assert time.monotonic() < deadline, "the child's child goes on"
                time.sleep(0.01)


def measured(**changes: object) -> Measured:
    values: dict[str, object] = {
        "id": "m0000",
        "library": "kryo",
        "version": "1",
        "file": "C.java",
        "first_line": 4,
        "last_line": 4,
        "qualified_name": "a.b.C.f",
        "text_hash": text_hash(JAVA.split("\n")[3:4]),
        "label": "disk",
        "cpu": 0.3,
        "disk": 0.7,
        "net": 0.0,
        "wait": 0.0,
        "deferred": 0.5,
        "wall_ms": 1.0,
        "runs": 3,
        "tool": "jfr",
    }
    return Measured(**{**values, **changes})  # type: ignore[arg-type]


class TestHeldOut:
    def test_measured_functions_are_not_in_the_training(self, tmp_path: Path) -> None:
        sources = tmp_path / "sources"
        (sources / "kryo").mkdir(parents=True)
        (sources / "kryo" / "C.java").write_text(JAVA)
        its = measured()
        other = text_hash(JAVA.split("\n")[4:5])
        rows = [
            Label("t0", "kryo", "1", "C.java", 4, 4, "a.b.C.f", its.text_hash, "cpu", 3, "A"),
            Label("t1", "kryo", "1", "C.java", 5, 5, "a.b.C.f", other, "cpu", 3, "A"),
        ]
        write_table(tmp_path / "train.tsv", Label, rows)
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t0", "t1"]
        later = [dataclasses.replace(each, id=each.id.replace("t", "v")) for each in rows[1:]]
        write_table(tmp_path / "train.tsv", Label, [rows[0], *later])
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path, frozenset("12"))] == ["t0"]
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t0", "v1"]
        write_table(tmp_path / "train.tsv", Label, rows)
        write_table(tmp_path / "measured.tsv", Measured, [its])
        assert [label.id for _, label, _ in rebuild.rebuild(sources, tmp_path)] == ["t1"]
        ((name, label, found),) = rebuild.rebuild_measured(sources, tmp_path)
        assert (name, label.label, label.sure) == ("measured", "disk", 2)
        assert found is not None
        assert found.function.first_line == 4

    def test_collect_leaves_readings_of_measured_functions_alone(self, tmp_path: Path) -> None:
        (tmp_path / "out" / "J").mkdir(parents=True)
        (tmp_path / "out" / "J" / "measured-000.tsv").write_text("m0000\tdisk\t3\n")
        assert collect.read_outputs(tmp_path, {}) == ([], [])


class TestScore:
    def test_answers(self, tmp_path: Path) -> None:
        path = tmp_path / "out" / "J" / "measured-000.tsv"
        path.parent.mkdir(parents=True)
        path.write_text("m0000\tcpu\t3\n")
        (reading,) = read_answers(tmp_path, [measured()])
        assert (reading.id, reading.annotator, reading.label) == ("m0000", "J", "cpu")
        path.write_text("m0000\tcpu\t3\nm0001\tcpu\t3\n")
        with pytest.raises(InputError, match="line 2"):
            read_answers(tmp_path, [measured()])

    def test_report_compares(self) -> None:
        rows = [measured(), measured(id="m0001", label="net", cpu=0.1, disk=0.0, net=0.9, deferred=0.0)]
        readings = [Reading("m0000", "J", "cpu", 3, "independent"), Reading("m0001", "J", "net", 3, "independent")]
        text = report(rows, readings)
        assert "| all | 2 | 50.0 %" in text
        # By the caller's clock the first one, of which most was written later, is cpu.
        assert "| by the caller's clock alone | 2 | 100.0 %" in text
        assert differences(rows, readings)[0].startswith("m0000 read cpu (3), measured disk")

    def test_batches_do_not_tell(self, tmp_path: Path) -> None:
        (tmp_path / "kryo").mkdir()
        (tmp_path / "kryo" / "C.java").write_text(JAVA)
        assert write_batches([measured()], tmp_path, tmp_path) == 1
        text = (tmp_path / "batches" / "measured-000.txt").read_text()
        assert text.startswith("### m0000 kryo C.java:4-4 a.b.C.f\n")
        assert not any(word in text for word in ("disk", "jfr", "0.7"))


class TestCommitted:
    rows = read_table(committed("measured"), Measured)

    def test_the_table(self) -> None:
        versions = {library.name: library.version for library in libraries() if library.set == "train"}
        assert len({each.id for each in self.rows}) == len(self.rows) >= 300
        for each in self.rows:
            assert versions[each.library] == each.version
            assert each.label in CLASSES
            parts = {name: getattr(each, name) for name in CLASSES}
            assert parts[each.label] >= max(parts.values()) - 1e-4
            assert sum(parts.values()) == pytest.approx(1, abs=1e-3)
            assert -1e-9 <= each.deferred <= each.disk + 1e-3
            assert each.runs >= 3

    def test_every_device_is_there(self) -> None:
        for name in ("cpu", "disk", "net"):
            assert sum(each.label == name for each in self.rows) >= 30


SCRIPT = f"""
import os, socket, time
one, other = socket.socketpair()
path = os.path.abspath("a")
os.access("{MARK}/0/0/begin", os.F_OK)
with open(path, "wb") as opened:
    opened.write(b"x" * 1000000)
    os.fsync(opened)
if os.fork() == 0:
    time.sleep(0.6)
    other.send(b"x")
    os._exit(0)
one.recv(1)
os.access("{MARK}/0/0/end", os.F_OK)
"""


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
class TestRealTrace:
    def test_a_file_and_a_socket(self, tmp_path: Path) -> None:
        trace = tmp_path / "trace.txt"
        done = subprocess.run([*STRACE, "-o", str(trace), sys.executable, "-c", SCRIPT], cwd=tmp_path, check=False)
        if done.returncode or not trace.stat().st_size:
            pytest.skip("strace is not allowed to trace here")
        its = blocked_times(parse_strace(trace.read_text().split("\n")))[0, 0]
        assert its.socket_ms > 100
        assert its.file_ms > 0

    def test_the_child_runs_a_case(self, tmp_path: Path) -> None:
        pytest.importorskip("fsspec")
        pytest.importorskip("aiohttp")
        pytest.importorskip("requests")
        command = [sys.executable, "-m", "lab.measure.python", "--child", str(tmp_path), "127.0.0.1", "{}", "1"]
        answers = "ok\n" * 8
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path]),
            "PYTHONWARNINGS": "ignore",
        }
        done = subprocess.run(
            [*command, "^Path.read_bytes$"],
            input=answers.replace("ok\n", "0\nok\n0\n"),
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        told = [json.loads(line) for line in done.stdout.split("\n") if line]
        assert any(message.get("qualified") == "Path.read_bytes" for message in told)
        assert all(message["wall_ms"] > 0 for message in told if "result" in message)
        assert "done" in told[-1]


@pytest.mark.skipif(not (shutil.which("java") and shutil.which("javac")), reason="no JDK is installed")
class TestRealRecording:
    def test_a_file_is_read(self, tmp_path: Path) -> None:
        import crystalperf.query.recordings.jfr

        (tmp_path / "big").write_bytes(b"x" * 5_000_000)
        (tmp_path / "Read.java").write_text(
            "public class Read { public static void main(String[] a) throws Exception {"
            ' for (int i = 0; i < 20; i++) try (var in = new java.io.FileInputStream("big")) { in.readAllBytes(); } } }'
        )
        settings = "settings=default,jdk.FileRead#enabled=true,jdk.FileRead#threshold=0ms"
        flight = f"-XX:StartFlightRecording:filename=r.jfr,{settings}"
        started = time.time_ns()
        done = subprocess.run(["java", flight, "Read.java"], cwd=tmp_path, capture_output=True, text=True, check=False)
        if "FileRead#threshold" in done.stdout + done.stderr:
            pytest.skip("this JDK is older than 17")
        assert done.returncode == 0, done.stderr
        (its,) = recorded_times(
            crystalperf.query.recordings.jfr.read(tmp_path / "r.jfr"), [Window(started, time.time_ns())]
        )
        assert its.file_ms > 0
        assert its.socket_ms == 0
