"""Reader of the text of `perf script`: a line for each sample, then a line for each frame, the leaf first.

    java 12688/12701 [002] 1795806924.936929:   10101010 cpu-clock:
            7f1507a5b480 Ljava/util/HashMap;::get+0x1a (/tmp/perf-12688.map)

perf samples threads on the CPU.  With `perf record -k CLOCK_REALTIME` its times are Unix times, and the text becomes a
recording; otherwise they count from the start of the machine, and the stacks become collapsed ones.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.recordings import jfr
from crystalperf.query.recordings.stacktable import MAX_FRAMES, Collapsed, Frame, StackTable, TimedSample, frame_of
from crystalperf.query.trace.arrays import median
from crystalperf.query.trace.records import Problems

_SAMPLE = regex(
    rb"(?P<comm>\S.{0,60}?)\s{1,40}(?P<pid>\d{1,10})(?:/(?P<tid>\d{1,10}))?\s{1,40}(?:\[\d{1,5}\]\s{1,40})?"
    rb"(?:(?P<seconds>\d{1,12})\.(?P<fraction>\d{1,9}):\s{1,40})?(?:(?P<period>\d{1,18})\s{1,40})?"
    rb"(?P<event>[^\s:]\S{0,200}):\s*"
)
_FRAME = regex(rb"\s*[0-9a-f]{1,16} (?P<symbol>\S.{0,4000}?) \((?P<file>[^()]{0,1000})\)\s*")
_OFFSET = regex(r"\+0x[0-9a-f]{1,16}$")
_MAPPED = regex(r"L([\w/$.]+);::([^\s(]+).*")
"""A method as perf-map-agent writes it: `Ljava/util/HashMap;::get`."""
_EXTERNAL = regex(r"(?:[\w.$\[\]]+ )?([\w.$/]+)\.([\w$<>]+)\([^()]*\)")
"""A method as the JVM's own map writes it: `java.lang.Object java.util.HashMap.get(java.lang.Object)`."""
_UNIX_S = 1_000_000_000
_MAX_PERIOD_NS = 10_000_000_000


def is_perf_script(beginning: bytes) -> bool:
    """Whether a file with this beginning is text of `perf script`."""
    lines = [each for each in beginning.split(b"\n", 400)[:400] if each.strip() and not each.startswith(b"#")][:40]
    return any(_SAMPLE.fullmatch(first) and _FRAME.fullmatch(second) for first, second in pairwise(lines))


def read(path: str, problems: Problems) -> Collapsed | jfr.Recording:
    """The stacks of a file: a recording if all times are Unix times, else collapsed stacks with counts.

    Raises InputError if it has no stack; other lines are counted in `problems`.
    """
    reader = _Reader(path, problems)
    for batch in batches(LogFile(path, (Part(path),)), problems):
        for position, line in enumerate(batch.lines):
            reader.line(line, batch.first_line + position)
    return reader.result()


class _Reader:
    """Collects the samples of one file."""

    def __init__(self, path: str, problems: Problems) -> None:
        self._path, self._problems = path, problems
        self._table = StackTable(path)
        self._known: dict[bytes, int] = {}
        self._threads: dict[tuple[str, int, int], int] = {}
        self._header: re.Match[bytes] | None = None
        self._stack: list[int] = []
        self._samples: list[TimedSample] = []
        self._unix = True

    def line(self, line: bytes, number: int) -> None:
        if line.isspace() or not line:
            self._end()
        elif line.startswith(b"#"):
            return
        elif self._header is not None and (frame := _FRAME.fullmatch(line)) is not None:
            if len(self._stack) < MAX_FRAMES:
                self._stack.append(self._frame(frame))
        elif (header := _SAMPLE.fullmatch(line.rstrip())) is not None:
            self._end()
            self._header = header
        else:
            meaning = "lines that are neither a sample nor a frame were left out"
            self._problems.add("damaged_stack", "data loss", self._path, f"line {number}", meaning)

    def result(self) -> Collapsed | jfr.Recording:
        self._end()
        if not self._table:
            raise InputError(f"{self._path}: has no stack; record with `perf record -g`")
        if not self._unix:
            return self._table.collapsed()
        threads = [jfr.Thread(name, name, tid, pid) for name, pid, tid in self._threads]
        return self._table.timed(self._weighted(), threads, on_cpu=True)

    def _frame(self, match: re.Match[bytes]) -> int:
        key = match["symbol"] + b"\0" + match["file"]
        if key not in self._known:
            symbol = _OFFSET.sub("", match["symbol"].decode("utf-8", "replace"))
            file = match["file"].decode("utf-8", "replace").rpartition("/")[2]
            self._known[key] = self._table.frame(_named(symbol, file))
        return self._known[key]

    def _end(self) -> None:
        """The end of a sample; the kernel's idle process (pid 0) is left out."""
        header, stack = self._header, self._stack
        self._header, self._stack = None, []
        if header is None or not stack:
            return
        pid = int(header["pid"])
        tid = int(header["tid"] or pid)
        if tid == 0:
            return
        number = self._table.add(stack, 1.0)
        seconds = int(header["seconds"] or 0)
        self._unix = self._unix and seconds > _UNIX_S
        if not self._unix:
            self._samples.clear()
            return
        thread = self._threads.setdefault((header["comm"].decode("utf-8", "replace"), pid, tid), len(self._threads))
        time_ns = seconds * 1_000_000_000 + int(header["fraction"].ljust(9, b"0"))
        period = int(header["period"] or 0) if b"clock" in header["event"] else 0
        self._samples.append(TimedSample(time_ns, thread, number, min(period, _MAX_PERIOD_NS)))

    def _weighted(self) -> list[TimedSample]:
        """The samples with their time: the period of clock events, else the usual interval of a thread's samples."""
        unknown = [each for each in self._samples if each.weight_ns <= 0]
        if not unknown:
            return self._samples
        by_thread: dict[int, list[int]] = {}
        for each in self._samples:
            by_thread.setdefault(each.thread, []).append(each.time_ns)
        gaps = np.concatenate([np.empty(0), *(np.diff(np.sort(times)) for times in by_thread.values())])
        gaps = gaps[gaps > 0]
        usual = int(median(gaps)) if len(gaps) else 10_000_000
        usual = min(usual, _MAX_PERIOD_NS)
        return [
            each if each.weight_ns > 0 else TimedSample(each.time_ns, each.thread, each.stack, usual)
            for each in self._samples
        ]


def _named(symbol: str, file: str) -> Frame:
    """The frame of a symbol; without a symbol, its library."""
    if symbol == "[unknown]":
        return "", f"[{file.strip('[]') or 'unknown'}]", 0
    if (mapped := _MAPPED.fullmatch(symbol)) is not None:
        return mapped[1].replace("/", "."), mapped[2], 0
    if (external := _EXTERNAL.fullmatch(symbol)) is not None:
        return external[1].replace("/", "."), external[2], 0
    return frame_of(symbol)
