"""Collapsed stacks: as their writers write them, and the share of tasks in stacks without times."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.query.attribution.samples.untimed import spread
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.collapsed import read
from crystalperf.query.recordings.stacktable import could_run
from crystalperf.query.recordings.stacktable import frame_of as frame
from crystalperf.query.results.not_recorded import RecordingLeftOut
from crystalperf.query.run import Run
from crystalperf.query.trace.records import Problems
from tests.reading import rows
from tests.refusals import refused

DATA = Path(__file__).parent / "data"
LOG = DATA / "eventlog" / "q9.zstd"
STACKS = DATA / "collapsed" / "executor-0.collapsed.gz"
"""Of a real executor: async-profiler's recording of the wall clock, through its converter; the commonest stacks."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("java/lang/Thread.run_[0]", ("java.lang.Thread", "run", 0)),
        ("java/lang/Thread.run:840_[0]", ("java.lang.Thread", "run", 840)),
        ("java.lang.Thread.run", ("java.lang.Thread", "run", 0)),
        ("java/io/ObjectOutputStream.<init>:248_[i]", ("java.io.ObjectOutputStream", "<init>", 248)),
        ("java/lang/Thread.run@11_[j]", ("java.lang.Thread", "run", 0)),
        ("java/lang/Thread.run(Ljava/lang/Object;)V", ("java.lang.Thread", "run", 0)),
        (
            "org/apache/spark/serializer/SerializerHelper$$$Lambda$892.0x00007fd09463e9b8.apply_[0]",
            ("org.apache.spark.serializer.SerializerHelper$$$Lambda$892.0x00007fd09463e9b8", "apply", 0),
        ),
        (
            "org/apache/spark/rdd/RDD.$anonfun$iterator$1$adapted_[1]",
            ("org.apache.spark.rdd.RDD", "$anonfun$iterator$1$adapted", 0),
        ),
        ("os::PlatformEvent::park", ("", "os::PlatformEvent::park", 0)),
        ("__futex_abstimed_wait_common", ("", "__futex_abstimed_wait_common", 0)),
        ("libc.so.6.read", ("", "libc.so.6.read", 0)),
        ("do_work.constprop.0", ("", "do_work.constprop.0", 0)),
    ],
)
def test_a_frame_is_a_class_a_method_and_a_line(text: str, expected: tuple[str, str, int]) -> None:
    assert frame(text) == expected


def test_threads_line_endings_and_damaged_lines(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    file.write_bytes(
        b"[Executor task launch worker for task 0.0 in stage 58.0 (TID 43) tid=21216];a/B.c;d/E.f 3\r\n"
        b"a/B.c;d/E.f 4\n\na/B.c without a count\nmain;a/B.c 1.5\n"
    )
    problems = Problems()
    got = read(str(file), problems)
    names = [[got.recording.frames.name(i) for i in got.recording.stacks.frames(n)] for n in range(2)]
    assert names == [["d.E.f", "a.B.c"], ["a.B.c", "main"]]
    assert got.weight.tolist() == [7.0, 1.0]
    assert [(each.name, each.count, each.first_where) for each in problems] == [("damaged_stack", 1, "line 4")]


def test_a_file_without_stacks_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("no stack here\n")
    with refused(InputError, tmp_path / "none"):
        read(str(tmp_path / "none"), Problems())


def test_a_very_deep_stack_keeps_its_leaf(tmp_path: Path) -> None:
    (tmp_path / "deep").write_text(";".join(f"a/B.m{n}" for n in range(100_000)) + " 1\n")
    got = read(str(tmp_path / "deep"), Problems())
    assert got.recording.frames.name(int(got.recording.stacks.frames(0)[0])) == "a.B.m99999"
    assert got.recording.stacks.truncated.tolist() == [True]


def test_every_task_gets_the_mixture_and_all_of_its_time() -> None:
    stack, weight = np.array([7, 8, 9]), np.array([60.0, 30.0, 10.0])
    for tasks in (1, 3, 1000, 300_000):
        task, chosen, part_ms = spread(stack, weight, np.full(tasks, 50.0))
        assert np.allclose(np.bincount(task, part_ms, minlength=tasks), 50.0)
        shares = np.bincount(chosen, part_ms, minlength=10)[7:] / (50.0 * tasks)
        assert np.allclose(shares, weight / 100, atol=0.17 if tasks == 1 else 0.06)


def test_threads_sleep_in_calls_that_wait() -> None:
    assert not could_run("", "__futex_abstimed_wait_common")
    assert not could_run("java.lang.Object", "wait0")
    assert not could_run("sun.nio.ch.SocketDispatcher", "read0")
    assert could_run("", "LZ4_compress_fast_extState")
    assert could_run("java.io.BufferedOutputStream", "flushBuffer")


@pytest.fixture(scope="module")
def run(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(shared_home))
        return cp.profile([LOG, STACKS], output=tmp_path_factory.mktemp("run") / "run.duckdb")


def test_tasks_without_a_recording_are_split_by_the_mixture(run: Run, log_run: Run) -> None:
    total = "sum(cpu_ms), sum(disk_ms), sum(net_ms), sum(other_ms), sum(finish_ms - launch_ms)"
    (before,), (after,) = (rows(each, f"SELECT {total} FROM tasks WHERE worker_id = '0'") for each in (log_run, run))
    assert sum(after[:4]) == pytest.approx(after[4])  # type: ignore[arg-type]
    assert after[3] < 0.8 * before[3]  # type: ignore[operator]
    assert rows(run, "SELECT DISTINCT worker_id, thread FROM samples WHERE task_id IS NOT NULL") == [("0", None)]
    ((severity, origin),) = rows(run, "SELECT severity, origin FROM import_stats WHERE name = 'untimed stacks'")
    assert severity == "info"
    assert "executor-0.collapsed.gz" in str(origin)
    left_out = [each.recording for each in run.debug().not_recorded if isinstance(each, RecordingLeftOut)]
    assert left_out == ["executor-0.collapsed.gz"]
    assert run.debug().functions


def test_file_that_names_no_executor_counts_for_all(tmp_path: Path) -> None:
    shutil.copy(STACKS, tmp_path / "flames")
    run = cp.profile([LOG, tmp_path / "flames"], output=tmp_path / "run.duckdb")
    assert rows(run, "SELECT count(DISTINCT worker_id) FROM samples WHERE task_id IS NOT NULL") == [(2,)]


def test_recording_with_times_takes_precedence_over_untimed_stacks(demo: Path, tmp_path: Path) -> None:
    run = cp.profile([demo, STACKS], output=tmp_path / "run.duckdb")
    assert rows(run, "SELECT count(*) FROM samples WHERE thread IS NULL") == [(0,)]
    assert rows(run, "SELECT count(*) FROM import_stats WHERE name = 'untimed stacks'") == [(1,)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("java/lang/Thread.run;org/apache/spark/executor/Executor$TaskRunner.run;a/B.c 5\n", "only threads on the CPU"),
        ("java/lang/Thread.run;a/B.c 5\n", "none is of a task"),
    ],
)
def test_stacks_that_cannot_be_attributed_to_tasks_are_skipped_and_named(
    line: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "some.collapsed").write_text(line)
    run = cp.profile([LOG, tmp_path / "some.collapsed"], output=tmp_path / "run.duckdb")
    (stats,) = rows(run, "SELECT meaning FROM import_stats WHERE name = 'untimed stacks'")
    assert expected in str(stats[0])
    assert rows(run, "SELECT count(*) FROM samples") == [(0,)]


def test_the_converters_output_has_the_recordings_stacks(demo: Path, tmp_path: Path) -> None:
    """The same recording, read by this project and, through async-profiler's converter, as collapsed stacks."""
    jar = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "crystalperf/test-jars/jfr-converter-4.5.jar"
    java = shutil.which("java")
    if java is None or not jar.exists():
        pytest.skip("needs Java, and the converter that tests/test_jfr.py fetches")
    recording = tmp_path / "executor-0.jfr"
    recording.write_bytes(gzip.decompress((demo / "executor-0.jfr.gz").read_bytes()))
    command = [java, "-jar", str(jar), "-o", "collapsed", "--lines", str(recording), str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    got = read(str(tmp_path / "out"), Problems())
    wanted = jfr.read(recording)
    kinds = [jfr.SAMPLE_KINDS.index(name) for name in ("EXECUTION", "NATIVE")]
    chosen = np.isin(wanted.samples.kind, kinds)
    expected: Counter[tuple[str, ...]] = Counter()
    for number, ticks in zip(wanted.samples.stack[chosen], wanted.samples.ticks[chosen], strict=True):
        expected[tuple(map(wanted.frames.name, wanted.stacks.frames(int(number)).tolist()))] += int(ticks)
    found: Counter[tuple[str, ...]] = Counter()
    for number, weight in enumerate(got.weight.tolist()):
        found[tuple(map(got.recording.frames.name, got.recording.stacks.frames(number).tolist()))] += int(weight)
    assert sum(found.values()) == sum(expected.values())
    # The converter writes hidden classes in its own way; the rest agrees stack by stack.
    assert sum((found & expected).values()) > 0.6 * sum(expected.values())


def test_a_mixture_names_no_operators_and_no_disagreements(run: Run) -> None:
    assert rows(run, "SELECT count(*) FROM operator_times WHERE basis = 'samples'") == [(0,)]
    assert run.debug().disagreements == ()
