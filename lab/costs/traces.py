"""What a large trace costs: `python -m lab.costs.traces TRACE… [--size 1e9]`.

Each trace of PyTorch's profiler is repeated, one copy behind the other with times, numbers of steps and correlations of
its own, until there are as many bytes.  Two whole processes are measured: one that only reads the events, and
`crystalperf profile`.  CPU seconds rather than seconds, for other programs on the machine change these least.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from lab.costs.growth import measured

_STEP = re.compile(r"ProfilerStep#(?P<number>\d+)")

_READ = """
import sys
from crystalperf.query.frameworks.ml.pytorch.kineto import Process
from crystalperf.query.frameworks.ml.training import chrome
from crystalperf.query.inputs.containers import LogFile, Part
from crystalperf.query.trace.records import Problems
part, process, names = Part(sys.argv[1]), Process("0"), {}
for events in chrome.read(LogFile(sys.argv[1], (part,)), part, Problems(), process.header):
    process.take(events, names)
"""


def repeated(trace: Path, to: Path, size: int) -> tuple[int, int]:
    """Write a trace again and again into one file of at least that many bytes; returns copies and events."""
    with gzip.open(trace) if trace.suffix == ".gz" else trace.open("rb") as stream:
        header: dict[str, Any] = json.load(stream)
    events: list[dict[str, Any]] = header.pop("traceEvents")
    timed = [float(each["ts"]) for each in events if each.get("ph") == "X"]
    lasting = [float(each["ts"]) + float(each.get("dur") or 0) for each in events if each.get("ph") == "X"]
    span = max(lasting) - min(timed) + 1000
    steps = [int(found["number"]) for each in events if (found := _STEP.fullmatch(str(each.get("name"))))]
    most = max((_correlation(each) for each in events), default=0) + 1
    copies = count = 0
    with to.open("wb", buffering=1 << 20) as stream:
        stream.write(json.dumps(header)[:-1].encode() + b', "traceEvents": [\n')
        while stream.tell() < size:
            if copies:
                _move(events, span, most, max(steps, default=0) - min(steps, default=0) + 1)
                stream.write(b",\n")
            stream.write(b",\n".join(map(msgspec.json.encode, events)))
            copies, count = copies + 1, count + len(events)
        stream.write(b"\n]}\n")
    return copies, count


def _correlation(event: dict[str, Any]) -> int:
    found = (event.get("args") or {}).get("correlation")
    return found if isinstance(found, int) else 0


def _move(events: Sequence[dict[str, Any]], span_us: float, correlations: int, steps: int) -> None:
    """One copy further."""
    for each in events:
        if "ts" in each:
            each["ts"] = float(each["ts"]) + span_us
        if _correlation(each):
            each["args"]["correlation"] += correlations
        if isinstance(each.get("id"), int) and each.get("ph") in ("s", "f"):
            each["id"] += correlations
        if (found := _STEP.fullmatch(str(each.get("name")))) is not None:
            each["name"] = f"ProfilerStep#{int(found['number']) + steps}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m lab.costs.traces", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    parser.add_argument("--size", type=float, default=1e9, metavar="BYTES", help="of the file (default 1e9)")
    given = parser.parse_args(arguments)
    print("trace                             MB  copies    events  reading [CPU s]    MiB  profile [CPU s]    MiB")
    with tempfile.TemporaryDirectory() as folder:
        made, run = Path(folder) / "trace.json", Path(folder) / "run.duckdb"
        for trace in given.traces:
            copies, count = repeated(trace, made, int(given.size))
            read = measured(["-c", _READ, str(made)], Path(folder))
            run.unlink(missing_ok=True)
            profiling = ["-m", "crystalperf.cli.main", "profile", str(made), "-o", str(run)]
            both = (read, measured(profiling, Path(folder)))
            cells = " ".join(f"{each.cpu_s:16.1f} {each.peak_mib:6.0f}" for each in both)
            size_mb = made.stat().st_size / 1e6
            print(f"{trace.name[:30]:30s} {size_mb:5.0f} {copies:7d} {count:9d} {cells}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
