"""Generate a PyTorch trace of any size: `python -m lab.costs.made_trace TRACE --megabytes 1000 -o big.pt.trace.json`.

It repeats the events of a real trace of PyTorch's profiler, one copy after the other, with later times, other numbers
of calls and of steps.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from crystalperf.query.frameworks.ml.pytorch.names import STEP

_IDS = ("correlation", "External id", "Ev Idx", "Python id", "Python parent id")
_GAP_US = 100.0


def _loaded(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    found: dict[str, Any] = msgspec.json.decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    return found


def write(stream: BinaryIO, trace: dict[str, Any], most_bytes: int) -> int:
    """Write copies of the trace's events until the file has this size; returns the number of events."""
    events = [each for each in trace["traceEvents"] if each.get("ph") == "X" or "ts" not in each]
    timed = [each for each in events if "ts" in each]
    span_us = max(float(each["ts"]) + float(each.get("dur", 0)) for each in timed)
    span_us += _GAP_US - min(float(each["ts"]) for each in timed)
    steps = [int(found["number"]) for each in timed if (found := STEP.fullmatch(str(each.get("name"))))]
    ids = 1 + max((each.get("args", {}).get(name) or 0 for each in timed for name in _IDS), default=0)
    header = {name: value for name, value in trace.items() if name != "traceEvents"}
    size = stream.write(msgspec.json.encode(header)[:-1] + b',\n"traceEvents": [\n')
    count = number = 0
    parts = [msgspec.json.encode(each) for each in events if "ts" not in each]
    while not number or size < most_bytes:
        parts += [
            msgspec.json.encode(_moved(each, number * span_us, number * ids, number * (len(set(steps)) or 1)))
            for each in timed
        ]
        size += stream.write((b",\n" if count else b"") + b",\n".join(parts))
        count += len(parts)
        number, parts = number + 1, []
    stream.write(b"\n]}\n")
    return count


def _moved(event: dict[str, Any], later_us: float, ids: int, steps: int) -> dict[str, Any]:
    """A copy of an event: that much later, with numbers of calls and steps that much larger."""
    found = {**event, "ts": round(float(event["ts"]) + later_us, 3)}
    name = str(event.get("name"))
    if (step := STEP.fullmatch(name)) is not None:
        found["name"] = re.sub(r"\d+$", str(int(step["number"]) + steps), name)
    if args := event.get("args"):
        changed = {each: args[each] + ids for each in _IDS if isinstance(args.get(each), int) and args[each]}
        found["args"] = {**args, **changed}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lab.costs.made_trace", description=__doc__.split("\n")[0])
    parser.add_argument("trace", type=Path, metavar="TRACE", help="a trace of PyTorch's profiler, JSON or in gzip")
    parser.add_argument("--megabytes", type=int, default=1000, metavar="N", help="size of the file (default 1000)")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    given = parser.parse_args(arguments)
    with given.output.open("wb") as stream:
        count = write(stream, _loaded(given.trace), given.megabytes * 1_000_000)
    print(f"{given.output}: {count} events, {given.output.stat().st_size / 1e9:.2f} GB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
