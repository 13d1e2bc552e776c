"""pprof's profile.proto, compressed with gzip: time and count of each stack; labels resource, stage and worker.

https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

import gzip
from typing import BinaryIO

import crystalperf
from crystalperf.query.export.source import Source, prepare_stacks, split_line, stacks
from crystalperf.query.trace.wire import bytes_field, number_field, packed_field, text_field

NS_PER_MS = 1_000_000

# Fields of Profile.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRINGS = 1, 2, 4, 5, 6
_TIME_NANOS, _DURATION_NANOS, _COMMENT, _DEFAULT_TYPE = 9, 10, 13, 14


def write(source: Source, out: BinaryIO) -> None:
    """Write the stacks of a run; tables of texts and functions come last, because they are complete only then."""
    sampled = prepare_stacks(source)
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed:
        _Profile(packed).write(source, sampled=sampled)


class _Profile:
    """Writes one profile; texts, functions and locations get numbers in order of appearance."""

    def __init__(self, out: gzip.GzipFile) -> None:
        self._out = out
        self._texts = {"": 0}
        self._functions: dict[str, int] = {}
        self._locations: dict[str, int] = {}

    def write(self, source: Source, *, sampled: bool) -> None:
        counted = "samples" if sampled else "tasks"
        for kind, unit in ((counted, "count"), ("time", "nanoseconds")):
            self._out.write(
                bytes_field(_SAMPLE_TYPE, number_field(1, self._text(kind)) + number_field(2, self._text(unit)))
            )
        for each in stacks(source, sampled=sampled, by="worker"):
            where = packed_field(1, map(self._location, reversed(each.frames)))
            labels = self._label("stage", each.stage)
            if each.worker_id is not None:
                labels += self._label("worker", each.worker_id)
            total_ms, left = sum(each.time_ms), each.count
            for name, time_ms in zip(source.resources, each.time_ms, strict=True):
                if time_ms <= 0:
                    continue
                # A stack's samples are divided among its resources as its time is; whole numbers keep their sum.
                count = left if time_ms >= total_ms else min(left, round(left * time_ms / total_ms))
                total_ms, left = total_ms - time_ms, left - count
                values = packed_field(2, (count, round(time_ms * NS_PER_MS)))
                self._out.write(bytes_field(_SAMPLE, where + values + labels + self._label("resource", name)))
        self._out.write(number_field(_TIME_NANOS, source.started_at_ms * NS_PER_MS))
        self._out.write(number_field(_DURATION_NANOS, round(source.duration_ms * NS_PER_MS)))
        self._out.write(number_field(_DEFAULT_TYPE, self._text("time")))
        self._out.write(packed_field(_COMMENT, [self._text(f"crystalperf {crystalperf.__version__}: {source.name}")]))
        self._write_tables()

    def _write_tables(self) -> None:
        for frame, number in self._locations.items():
            name, line = split_line(frame)
            function = self._functions.setdefault(name, len(self._functions) + 1)
            body = number_field(1, function) + number_field(2, line)
            self._out.write(bytes_field(_LOCATION, number_field(1, number) + bytes_field(4, body)))
        for name, number in self._functions.items():
            body = number_field(1, number) + number_field(2, self._text(name)) + number_field(3, self._text(name))
            self._out.write(bytes_field(_FUNCTION, body))
        for text in self._texts:
            self._out.write(text_field(_STRINGS, text))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _location(self, frame: str) -> int:
        return self._locations.setdefault(frame, len(self._locations) + 1)

    def _label(self, key: str, value: str) -> bytes:
        return bytes_field(3, number_field(1, self._text(key)) + number_field(2, self._text(value)))
