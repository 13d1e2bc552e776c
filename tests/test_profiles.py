"""Profiles of other profilers: recordings where they have Unix times and threads, else collapsed stacks."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from crystalperf.indexes.errors import InputError
from crystalperf.query.inputs.discover import discover
from crystalperf.query.recordings import jfr, profiles, stacktable
from crystalperf.query.recordings.collapsed import read as read_collapsed
from crystalperf.query.recordings.stacktable import Collapsed
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.wire import bytes_field, number_field, packed_field, text_field
from tests.refusals import is_one_line, refused

PERF_CLOCK = """java 100/101 [002] 1795806924.936929:   10101010 cpu-clock:
\t    7f1507a5b480 Ljava/util/HashMap;::get+0x1a (/tmp/perf-100.map)
\t    7f1507a5b481 java.lang.Object org.acme.Job.run(java.lang.String, int) (/tmp/perf-100.map)
\t    7f1507a5b482 [unknown] (/usr/lib/libc.so.6)

java 100/102 [001] 1795806924.946929:   10101010 cpu-clock:
\t    7f1507a5b481 java.lang.Object org.acme.Job.run(java.lang.String, int) (/tmp/perf-100.map)

swapper     0 [001] 1795806924.950000:    1001001 cpu-clock:
\tffffffffad135f6f [unknown] ([kernel.kallsyms])

"""


def read(path: Path, problems: Problems | None = None) -> Collapsed | jfr.Recording:
    (sample,) = discover([path]).samples
    return profiles.read(str(path), sample.kind, Problems() if problems is None else problems)


def put(folder: Path, content: bytes | str, name: str = "given") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def stacks_of(recording: jfr.Recording) -> list[list[str]]:
    """The stacks of a recording, the root first."""
    return [
        [recording.frames.name(frame) for frame in recording.stacks.frames(number).tolist()][::-1]
        for number in range(len(recording.stacks))
    ]


# perf -------------------------------------------------------------------------------------------------------------


def test_text_of_perf_with_unix_times_is_a_recording(tmp_path: Path) -> None:
    found = read(put(tmp_path, PERF_CLOCK))
    assert isinstance(found, jfr.Recording)
    assert [(each.java_name, each.pid, each.java_tid) for each in found.threads] == [
        ("java", 100, 101),
        ("java", 100, 102),
    ]
    assert found.samples.time_ns.tolist() == [1795806924936929000, 1795806924946929000]
    assert found.samples.period_ns.tolist() == [10101010, 10101010]
    assert stacks_of(found)[0] == ["[libc.so.6]", "org.acme.Job.run", "java.util.HashMap.get"]
    assert set(found.samples.kind.tolist()) == {jfr.SAMPLE_KINDS.index("CPU")}


def test_text_of_perf_with_the_machine_s_times_is_collapsed_stacks(tmp_path: Path) -> None:
    found = read(put(tmp_path, PERF_CLOCK.replace("1795806924.", "198791.")))
    assert isinstance(found, Collapsed)
    assert found.weight.tolist() == [1.0, 1.0]


def test_events_without_a_time_unit_get_the_usual_interval(tmp_path: Path) -> None:
    sample = "java 1/1 [0] 17958069{at}.000000: {period} cycles:\n\t 7f00 main (/bin/a)\n\n"
    text = "".join(sample.format(at=20 + at, period=1_000_000) for at in (0, 1, 2, 5))
    found = read(put(tmp_path, text))
    assert isinstance(found, jfr.Recording)
    assert found.samples.period_ns.tolist() == [10**9] * 4


def test_public_texts_of_perf_have_the_counts_of_flamegraph_s_script(real_inputs: Path) -> None:
    folder = real_inputs / "jfr"
    for name in ("java-stacks-01", "java-stacks-02", "funcab-cmd-01", "mirageos-stacks-01"):
        found = read(folder / "perf-script" / f"perf-{name}.txt")
        expected = read_collapsed(str(folder / "collapsed" / f"perf-{name}-collapsed-all.txt"), Problems())
        assert isinstance(found, Collapsed)
        lines = (folder / "collapsed" / f"perf-{name}-collapsed-all.txt").read_text().splitlines()
        idle = sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith("swapper"))
        # The script drops the last sample unless a blank line follows it.
        dropped = not (folder / "perf-script" / f"perf-{name}.txt").read_text().endswith("\n\n")
        assert found.weight.sum() == expected.weight.sum() - idle + dropped


# speedscope -------------------------------------------------------------------------------------------------------


def speedscope(*found: dict[str, Any], names: str = "abcd") -> str:
    schema = "https://www.speedscope.app/file-format-schema.json"
    return json.dumps({"$schema": schema, "profiles": found, "shared": {"frames": [{"name": each} for each in names]}})


EVENTED = {
    "type": "evented",
    "name": "main",
    "unit": "milliseconds",
    "startValue": 0,
    "endValue": 14,
    "events": [
        {"type": kind, "at": at, "frame": frame}
        for kind, at, frame in [("O", 0, 0), ("O", 2, 1), ("C", 5, 1), ("O", 6, 2), ("C", 9, 2), ("C", 14, 0)]
    ],
}
SAMPLED = {"type": "sampled", "name": "t1", "unit": "seconds", "startValue": 0, "endValue": 3}
SAMPLED |= {"samples": [[0, 1], [0, 2], [0, 1]], "weights": [1, 0.5, 1.5]}


def test_evented_profiles_become_stacks_with_their_own_time(tmp_path: Path) -> None:
    found = read(put(tmp_path, speedscope(EVENTED)))
    assert isinstance(found, Collapsed)
    assert dict(zip(map(tuple, stacks_of(found.recording)), found.weight.tolist(), strict=True)) == {
        ("a",): 8.0,
        ("a", "b"): 3.0,
        ("a", "c"): 3.0,
    }


def test_sampled_profiles_have_ms_of_any_unit(tmp_path: Path) -> None:
    found = read(put(tmp_path, speedscope(SAMPLED, {**SAMPLED, "unit": "bytes"})))
    assert isinstance(found, Collapsed)
    assert found.weight.tolist() == [2500.0, 500.0]


def test_unix_times_make_a_recording_with_a_thread_for_each_profile(tmp_path: Path) -> None:
    found = read(
        put(tmp_path, speedscope({**SAMPLED, "startValue": 1795806924.5}, {**SAMPLED, "startValue": 1795806925.0}))
    )
    assert isinstance(found, jfr.Recording)
    assert [each.java_name for each in found.threads] == ["t1", "t1"]
    assert len(found.samples) == 6
    assert bool((np.diff(found.samples.time_ns) >= 0).all())
    assert int(found.samples.period_ns.sum()) == 6 * 10**9


@pytest.mark.parametrize(
    "content",
    [
        speedscope({**SAMPLED, "samples": [[0, 9]], "weights": [1]}),
        speedscope({**SAMPLED, "samples": [[-1]], "weights": [1]}),
        speedscope({**SAMPLED, "weights": [1]}),
        speedscope({**SAMPLED, "unit": "bytes"}),
        speedscope({**EVENTED, "events": [{"type": "C", "at": 1, "frame": 0}]}),
        speedscope(),
        speedscope(SAMPLED)[:-30],
    ],
)
def test_invalid_speedscope_files_are_one_sentence(tmp_path: Path, content: str) -> None:
    path = put(tmp_path, content)
    with refused(InputError, path):
        read(path)


# pprof ------------------------------------------------------------------------------------------------------------


def pprof(samples: list[bytes], *, types: tuple[tuple[int, int], ...] = ((1, 2), (3, 4)), more: bytes = b"") -> bytes:
    """A profile of two functions, main and read of io.py, at the locations 1 and 2."""
    texts = [
        "",
        "samples",
        "count",
        "cpu",
        "nanoseconds",
        "main",
        "read",
        "/x/io.py",
        "thread name",
        "t1",
        "end_timestamp_ns",
    ]
    data = b"".join(bytes_field(1, number_field(1, kind) + number_field(2, unit)) for kind, unit in types)
    data += b"".join(bytes_field(2, each) for each in samples) + more
    for number, (name, file) in enumerate(((5, 0), (6, 7)), 1):
        line = bytes_field(4, number_field(1, number) + number_field(2, 12))
        data += bytes_field(4, number_field(1, number) + line)
        data += bytes_field(5, number_field(1, number) + number_field(2, name) + number_field(4, file))
    return data + b"".join(text_field(6, each) for each in texts)


def sample(places: list[int], count: int, time_ns: int, end_ns: int = 0) -> bytes:
    labels = b""
    if end_ns:
        labels = bytes_field(3, number_field(1, 8) + number_field(2, 9))
        labels += bytes_field(3, number_field(1, 10) + number_field(3, end_ns))
    return packed_field(1, places) + packed_field(2, (count, time_ns)) + labels


@pytest.mark.parametrize("packed", [False, True])
def test_pprof_profiles_have_their_time_in_ms(tmp_path: Path, packed: bool) -> None:
    data = pprof([sample([2, 1], 3, 30_000_000), sample([1], 1, 10_000_000), sample([2, 1], 1, 5_000_000)])
    found = read(put(tmp_path, gzip.compress(data) if packed else data))
    assert isinstance(found, Collapsed)
    assert found.weight.tolist() == [35.0, 10.0]
    assert stacks_of(found.recording) == [["main", "/x/io.py.read"], ["main"]]
    assert not found.of_tasks


def test_pprof_profiles_with_threads_and_times_are_recordings(tmp_path: Path) -> None:
    end_ns = 1795806924 * 10**9
    found = read(put(tmp_path, pprof([sample([2, 1], 1, 10_000_000, end_ns), sample([1], 1, 10_000_000, end_ns - 5)])))
    assert isinstance(found, jfr.Recording)
    assert [each.java_name for each in found.threads] == ["t1"]
    assert found.samples.time_ns.tolist() == [end_ns - 5 - 10_000_000, end_ns - 10_000_000]


@pytest.mark.parametrize(
    "data",
    [
        pprof([sample([7], 1, 1)]),
        pprof([]),
        pprof([sample([1], 1, 1)], types=((5, 4 + 1), (6, 6))),
        pprof([sample([1], 1, 1)])[:-3],
        pprof([b"\x0a\x7f"]),
    ],
)
def test_invalid_pprof_profiles_are_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = put(tmp_path, data)
    with refused(InputError, path):
        read(path)


def test_pprof_s_old_formats_are_named(tmp_path: Path) -> None:
    for number, content in enumerate((struct.pack("<5Q", 0, 3, 0, 10_000, 0), b"--- threadz 1 ---\n")):
        with refused(InputError, "go tool pprof -proto"):
            discover([put(tmp_path, content, f"old-{number}")])


# py-spy -----------------------------------------------------------------------------------------------------------


def test_raw_stacks_of_py_spy_name_files_and_lines(tmp_path: Path) -> None:
    text = (
        'process 7:"python job.py";thread (0x7F);<module> (job.py:3);read (pyspark/io.py:12) 4\n<module> (job.py) 1\n'
    )
    found = read(put(tmp_path, text))
    assert isinstance(found, Collapsed)
    assert stacks_of(found.recording) == [["job.py.<module>", "pyspark/io.py.read"], ["job.py.<module>"]]
    assert found.recording.frames.line.tolist() == [3, 12, 0]


# Public files -----------------------------------------------------------------------------------------------------

PUBLIC = {"pprof": (10, 4), "speedscope": (2, 3), "perf-script": (9, 0)}
"""Files of a folder of public files that are read, and files that are refused in one sentence: of memory, of pprof's
old formats, or invalid."""


@pytest.mark.parametrize("folder", PUBLIC)
def test_public_profiles_are_read_or_refused_in_one_sentence(real_inputs: Path, folder: str) -> None:
    done = refusals = 0
    for path in sorted((real_inputs / "jfr" / folder).iterdir()):
        try:
            found = read(path)
        except InputError as error:
            is_one_line(str(error), path)
            refusals += 1
        else:
            assert isinstance(found, Collapsed)
            assert found.weight.sum() > 0
            done += 1
    assert (done, refusals) == PUBLIC[folder]


# Hostile files ----------------------------------------------------------------------------------------------------


def test_stacks_of_too_many_frames_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacktable, "MAX_FRAMES_IN_ALL", 100)
    deep = {**SAMPLED, "samples": [[0] * 60] * 3, "weights": [1] * 3}
    for content in (speedscope(deep).encode(), pprof([sample([1] * 60, 1, 1)] * 3), ("a;" * 60 + "b 1\n").encode() * 3):
        path = put(tmp_path, content)
        with refused(InputError, path):
            read(path)


def test_damaged_profiles_are_read_in_part_or_refused_in_one_sentence(tmp_path: Path) -> None:
    random = Random(54)
    whole = {
        "perf script": PERF_CLOCK.encode(),
        "speedscope": speedscope(SAMPLED, EVENTED).encode(),
        "pprof": pprof([sample([2, 1], 3, 30_000_000, 1795806924 * 10**9), sample([1], 1, 1)]),
    }
    for kind, data in whole.items():
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(random.choice((1, 2, 8))):
                changed[random.randrange(len(changed))] = random.choice(
                    (0, 9, 10, 32, 48, 127, 128, 255, random.randrange(256))
                )
            if random.random() < 0.3:
                del changed[random.randrange(len(changed)) :]
            path = put(tmp_path, bytes(changed))
            try:
                found = profiles.read(str(path), kind, Problems())  # type: ignore[arg-type]
            except InputError as error:
                is_one_line(str(error), path)
            else:
                assert isinstance(found, Collapsed | jfr.Recording)
