"""JSON that is almost only brackets and commas: 64 MiB may be 20 million values, each of 100 bytes in memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from crystalperf.indexes.errors import InputError
from crystalperf.query.frameworks.flink import archive
from crystalperf.query.frameworks.ml.training import chrome
from crystalperf.query.frameworks.registry import get
from crystalperf.query.frameworks.spark.log import arrays
from crystalperf.query.inputs import bounds
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import Problems

START = (
    b'{"Event":"SparkListenerLogStart","Spark Version":"4.0.1"}\n'
    b'{"Event":"SparkListenerApplicationStart","App Name":"x","App ID":"app-1","Timestamp":1,"User":"r"}\n'
)
TRACE = b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a file of some kB reaches."""
    monkeypatch.setattr(bounds, "_ALWAYS_DECODED_BYTES", 1000)
    monkeypatch.setattr(bounds.is_dense, "__defaults__", (2000,))
    monkeypatch.setenv(bounds.VARIABLE, "lines=500")


def log_of(path: Path, text: bytes) -> LogFile:
    path.write_bytes(text)
    return LogFile(str(path), (Part(str(path)),))


def events(log: LogFile) -> list[chrome.Event]:
    return [event for some in chrome.read(log, log.parts[0], Problems(), {}) for event in some]


@pytest.mark.parametrize("line", [b"[%s]", b'{"Event":"SparkListenerJobStart","Job ID":[%s]}'])
def test_a_line_of_millions_of_values_is_left_out(line: bytes, tmp_path: Path) -> None:
    log = log_of(tmp_path / "log", START + line % (b"[]," * 5000 + b"[]") + b"\n")
    trace = get("spark").reader.read(log)
    assert "damaged_line" in {each.name for each in trace.problems}


def test_an_array_of_events_is_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_CHUNK_BYTES", 100)
    reported = [b'{"Event":"x%d","of":[{"Event":"y"},{"c":1}]}' % number for number in range(500)]
    whole = b"[ " + b",\n ".join(reported) + b" ]\n"
    assert list(arrays.elements(whole)) == reported
    cut = list(arrays.elements(whole[: len(whole) // 2]))
    assert cut == reported[: len(cut)]
    assert len(cut) >= 249
    assert list(arrays.elements(b"[{},{}]")) == [b"{}", b"{}"]


@pytest.mark.parametrize("event", [b'{"ph":X},', b'{"a":[{},'])
def test_a_trace_of_damaged_events_is_refused(event: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"{bounds.VARIABLE}=lines="):
        events(log_of(tmp_path / "trace.json", TRACE + event * 5000 + b"{}]}"))


def test_valid_escapes_are_not_copied_one_by_one() -> None:
    text = b"\\u0061" * 100_000
    tracemalloc.start()
    try:
        assert chrome._repaired(text) == text
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "repaired"),
    [(rb"C:\data", rb"C:\\data"), (rb"a\\b\n\u00e9", rb"a\\b\n\u00e9"), (rb"\\\q", rb"\\\\q"), (rb"\u00", rb"\u00")],
)
def test_backslashes_that_begin_no_escape_are_escaped(text: bytes, repaired: bytes) -> None:
    assert chrome._repaired(text) == repaired


def test_an_archive_of_empty_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="path"):
        archive.read(log_of(tmp_path / "job", b'{"archive":[' + b"{}," * 5000 + b"{}]}"), Problems())
