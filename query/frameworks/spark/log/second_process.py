"""The second process that second.py starts: it writes the tasks of every other batch to its output."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import msgspec

from crystalperf.indexes.children import end_with_parent
from crystalperf.query.frameworks.spark.log.collect import Reader
from crystalperf.query.frameworks.spark.log.second import Asked, is_second
from crystalperf.query.inputs.containers import LogFile, Part, batches
from crystalperf.query.trace.records import Problems


def serve() -> None:
    """Run as the second process."""
    end_with_parent()
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Asked)
    log = LogFile("", tuple(Part(os.fsdecode(each)) for each in asked.paths))
    reader, encode = Reader(zeros=asked.zeros), msgspec.msgpack.encode
    for number, batch in enumerate(batches(log, Problems())):
        if is_second(number, asked.first):
            told = reader.tasks(batch)
            text = b"" if told is None else encode(told)
            sys.stdout.buffer.write(len(text).to_bytes(8, "little") + text)
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # the first process reads no more
        serve()
