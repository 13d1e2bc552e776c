"""Files that CrystalPerf does not read are named, and their users learn what to do."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import struct
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs import unsupported
from crystalperf.query.inputs.discover import discover
from tests.refusals import is_one_line, refused

Answer = Callable[..., tuple[int, str, str]]

PUBLIC = {
    "flink/plan-1.18": "Flink",
    "flink/rest": "Flink's ",
    "flink/timeseries": "",
    "jfr/spark-jvm-profiler": "",
    "other/chrome-trace": "a trace in Chrome's format",
    "other/dask": "a page of Dask's dashboard",
    "other/gc-logs": "a log of the garbage collector",
    "other/mapreduce": "of Hadoop MapReduce",
    "other/ray": "a timeline of Ray",
    "tensorflow/horovod": "a timeline of Horovod",
}
"""The kind reported for every file of a folder of public files; '' if they are of several kinds."""

UNNAMED = {"khaos-iot-failures.txt"}


ADVISED = {
    "tensorflow/profiler-demo": ("a page of TensorFlow's profiler", "use the .xplane.pb or .trace.json.gz"),
    "tensorflow/horovod": ("a timeline of Horovod", "use the profiler's traces"),
    "flink/plan-1.18": ("plan", "use the archive"),
    "other/gpu": ("a recording of ROCm's profiler", "use the output of export_chrome_trace"),
}
"""The kind reported for every file of a folder, and what to give instead."""


@pytest.mark.parametrize("folder", ADVISED)
def test_public_files_are_recognized_with_what_to_give_instead(real_inputs: Path, folder: str) -> None:
    files = [each for each in sorted((real_inputs / folder).rglob("*")) if each.is_file()]
    assert files
    for path in files:
        with pytest.raises(InputError) as refused:
            discover([path])
        assert all(each in str(refused.value) for each in ADVISED[folder]), refused.value


def test_execution_traces_of_pytorch_are_recognized_in_either_form(tmp_path: Path) -> None:
    as_json = tmp_path / "et.json"
    as_json.write_text('{\n  "schema": "1.1.0-chakra.0.0.4", "pid": 1, "time": "x", "start_ts": 1,\n  "nodes": [\n{}]}')
    as_messages = tmp_path / "chakra.0.et"
    as_messages.write_bytes(
        b"\x1e\x12\x10\x0a\x06schema\xea\x01\x051.0.1\x12\x09\x0a\x03pidh\xa6\xff\x06" + b"\x08\x01" * 30
    )
    for path in (as_json, as_messages):
        with refused(InputError, path, "Chakra", "export_chrome_trace"):
            discover([path])


@pytest.mark.parametrize("folder", PUBLIC)
def test_public_files_are_named(real_inputs: Path, folder: str) -> None:
    files = [each for each in sorted((real_inputs / folder).rglob("*")) if each.is_file() and each.name not in UNNAMED]
    assert files
    for path in files:
        try:
            found = discover([path])
        except InputError as error:
            is_one_line(str(error), PUBLIC[folder])
        else:
            # Collapsed stacks among others' files, and saved pages of Flink's jobs.
            assert "folded" in path.name or "job" in path.name, path
            assert found.samples or found.applications[0].framework == "flink"


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("log"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"JAVA PROFILE 1.0.2\0" + bytes(20), "is a Java heap dump; "),
        (b"PERFILE2" + bytes(100), "is a recording of perf; "),
        (b'{"archive":[{"path":"/jobs/overview","json":"{}"}]}', "is a job archive of Flink; CrystalPerf reads"),
        (b'{"jobs": [{"jid": "54a5", "state": "RUNNING"}]}', "is Flink's list of jobs; "),
        (b'{"taskmanagers": [{"id": "14b7", "slotsNumber": 1}]}', "is Flink's list of TaskManagers; "),
        (
            b'{"exceptionHistory": {"entries": [{"exceptionName": "JobException", "timestamp": 1}]}}',
            "is Flink's page of a job's exceptions; ",
        ),
        (
            b'{"status": "ok", "backpressure-level": "high", "subtasks": []}',
            "is Flink's page of a vertex' back-pressure; ",
        ),
        (b'[{"ph": "X", "name": "alpha", "ts": 0}]', "is a trace in Chrome's format"),
        (
            b'[{"name": "aten::mm", "ph": "X", "ts": 1.5, "dur": 2, "tid": 1, "pid": "CPU functions", "args": {}}]',
            "is a trace of PyTorch's profiler before 1.8",
        ),
        (b"[[-1, 1, 65536, 0], [-1, 1, 1024, 0]]", "is a memory timeline of PyTorch's profiler; "),
        (b"[[1795654903143443, 1795654903144981], [[0, 1024]]]", "is a memory timeline of PyTorch's profiler; "),
        (
            b"-------  ------------  --------\n   Name    Self CPU %      Self CPU\n-------  ------------  --------\n",
            "is a table of PyTorch's profiler; ",
        ),
        (
            struct.pack("<Q", 24) + bytes(4) + b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2" + bytes(4),
            "is a file of TensorFlow's summaries without RunMetadata; ",
        ),
        (b'{"nodes": [{"callFrame": {}, "hitCount": 1}]}', "is a CPU profile of V8"),
        (struct.pack("<5Q", 0, 3, 0, 10_000, 0), "is a pprof profile of an old format; "),
        (b"<!DOCTYPE html>\n<html><title>History</title>", "is a web page; CrystalPerf reads"),
        (b"Full thread dump OpenJDK 64-Bit Server VM", "is a thread dump; "),
        (b'[INFO ] 2023-10-11 06:07:19.140 [main] K8s - {"flinkVersion": "v1_17"}\n' * 3, "is a text log"),
        (b"24/01/02 10:11:12 INFO Client: submitted\n24/01/02 10:11:13 WARN Client: slow\n", "is a text log"),
        (b"[0.015s][info][gc] Using G1\n", "is a log of the garbage collector"),
        (b"a,b,c\n1,2,3\n4,5,6\n", "is a table as text"),
        (tar(), "is a tar archive without "),
        (gzip.compress(tar(), mtime=0), "is a tar archive without "),
        ("a;b 1\n".encode("utf-16"), "is text in UTF-16; "),
    ],
)
def test_a_file_is_named_by_its_content(crystalperf: Answer, tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    code, out, err = crystalperf("analyze", path)
    assert (code, out) == (1, "")
    assert f"given: {what}" in err
    assert err.count("\n") == 1


def test_runs_and_indexes_among_other_files_are_recognized(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    log = next(demo.glob("eventlog*"))
    assert crystalperf("profile", log, "-o", tmp_path / "run.duckdb")[0] == 0
    code, out, err = crystalperf("analyze", log, tmp_path / "run.duckdb")
    assert code == 0
    assert re.search(r"run\.duckdb\b.*\brun\b", " ".join((out + err).split()))


def test_a_folder_says_what_is_in_it_instead(crystalperf: Answer, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"archive":[{"path":"/jobs/overview","json":"{}"}]}')
    code, _, err = crystalperf("analyze", tmp_path)
    assert code == 1
    assert re.search(r"\ba\.json\b.*\bFlink\b", err)


def test_a_log_of_a_framework_is_never_taken_for_something_else(crystalperf: Answer, tmp_path: Path) -> None:
    # A log may contain the marks of other kinds: here in the name of its first job.
    log = tmp_path / "log"
    log.write_bytes(
        b'{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}\n'
        b'{"Event":"SparkListenerApplicationStart","App Name":"\\"traceEvents\\": [","App ID":"app-1","Timestamp":'
        b'1700000000000,"User":"u"}\n'
    )
    assert discover([log]).applications[0].app_id == "app-1"


def test_recognizing_a_file_is_fast_for_any_content() -> None:
    size = 64 << 10
    noise = random.Random(1)
    contents = [
        *(
            each * (size // len(each))
            for each in (b" ", b"\n", b"(", b"[", b'{"', b"a:\n", b"0 a(\n", b"1/1 INF ", b"\n[")
        ),
        *(noise.randbytes(size) for _ in range(5)),
        *((noise.randbytes(1) + bytes([noise.randrange(128)])) * (size // 2) for _ in range(50)),
        b"0-0:0" * 8 + os.urandom(1) * size,
    ]
    begin = time.process_time()
    for content in contents:
        unsupported.described(content[:4096], content)
    assert time.process_time() - begin < 0.1 * len(contents)
