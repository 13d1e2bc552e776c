"""lab.checks.frames: which frames of recordings have an index."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.checks.frames import Row, Stack, counted, is_java, is_run, package, rows, split_frame, table

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("class_name", "expected"),
    [
        ("java.lang.Thread", True),
        ("App$1", True),
        ("org.apache.spark.rdd.RDD$", True),
        ("", False),
        ("java", False),
        ("libc.so.6", False),
        ("libjvm.dylib", False),
        ("[kernel]", False),
        ("/usr/lib/python3.11/json/decoder.py", False),
    ],
)
def test_which_frames_are_java(class_name: str, expected: bool) -> None:
    assert is_java(class_name) == expected


def test_frames_as_run_files_have_them() -> None:
    assert split_frame("java.lang.Thread.run:840") == ("java.lang.Thread", "run", 840)
    assert split_frame("java.lang.Object.wait") == ("java.lang.Object", "wait", 0)
    assert split_frame(".__futex_wait") == ("", "__futex_wait", 0)
    assert package("it.unimi.dsi.fastutil.ints.IntArrayList") == "it.unimi.dsi"
    assert package("Job") == "no package"


def test_frames_count_by_the_time_of_their_stacks() -> None:
    known, unknown, shell = ("a.B", "f", 1), ("com.acme.etl.C", "g", 2), ("a.D$$Lambda", "h", 0)
    how = {known: "known", unknown: "unknown"}  # the shell of a lambda is in no source
    stacks = [Stack((known, shell), 30.0), Stack((unknown, known), 10.0)]
    found = counted([(each, each.weight) for each in stacks], how)
    assert found.total == 50.0
    assert found.share("known") == 0.8
    assert found.packages == {"com.acme.etl": 10.0}
    lines = table([Row("one", found), Row("none", counted([], how))])
    assert lines[2] == "| one | 80.0 | 0.0 |  |  | com.acme.etl 20.0 |"
    assert "1 more have no Java frame" in lines[-1]


def test_a_run_is_a_folder_with_its_log() -> None:
    assert is_run(DATA / "runs" / "clock-off")
    assert not is_run(DATA / "collapsed")
    assert not is_run(DATA / "runs" / "speculation"), "a log without recordings"


@pytest.mark.later
def test_a_recorded_run_has_its_frames_known() -> None:
    """A run of two executors: nearly all its frames, and what its tasks' time went to."""
    (row,) = rows([DATA / "runs" / "clock-off"])
    assert row.tasks is not None
    assert row.decided is not None
    assert row.everything.share("known") > 0.97
    assert row.decided > 0.99
