"""How quickly a fleet is built: `python -m lab.costs.fleets ../shared/real-inputs/spark-eventlog --logs 1000`.

The logs are those of the folder, over and over under other names, so that sizes are distributed as they are there; each
is read whole, and their tables hold each content once.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path
from statistics import quantiles

from fleet.build import build
from fleet.engines import ENGINES, Engine
from fleet.logs import found


def main() -> None:
    """Print the sizes, logs per second, CPU seconds of each and the largest process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    given = parser.parse_args()
    items = found([str(given.folder.absolute())])
    with tempfile.TemporaryDirectory() as scratch:
        logs = Path(scratch) / "logs"
        logs.mkdir()
        for number in range(given.logs):
            item = items[number % len(items)]
            (logs / f"{number:05d}-{Path(item.path).name}").symlink_to(item.path)
        sizes = [items[number % len(items)].size_bytes / 1e3 for number in range(given.logs)]
        cut = quantiles(sizes, n=20)
        print(
            f"{given.logs} logs, {sum(sizes) / 1e3:.1f} MB as they lie there: median {cut[9]:.0f} kB,"
            f" 95 % up to {cut[18]:.0f} kB, largest {max(sizes):.0f} kB"
        )
        engine = Engine(given.engine, processes=given.processes, master=f"local[{given.processes}]")
        built = build([str(logs)], Path(scratch) / "fleet", engine)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = resource.getrusage(resource.RUSAGE_SELF)
        print(
            f"{given.engine}, {given.processes} processes: {built.seconds:.1f} s,"
            f" {built.read / built.seconds:.2f} logs/s,"
            f" {(used.ru_utime + used.ru_stime) / max(built.read, 1):.2f} CPU s each, largest process"
            f" {used.ru_maxrss / 1024:.0f} MiB, this one {own.ru_maxrss / 1024:.0f} MiB; {built.unread} unread"
        )


if __name__ == "__main__":
    main()
