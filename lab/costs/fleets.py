"""The speed of fleet builds: `python -m lab.costs.fleets ../shared/real-inputs/spark-eventlog --logs 200 500 1000`.

The logs are those of the folder, repeated under other names, so the distribution of sizes is the same.  Each is read
completely, and the tables have each content once.  A separate process builds each fleet.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles

from crystalperf.fleet.build import build
from crystalperf.fleet.engines import ENGINES, Engine
from crystalperf.fleet.logs import find_logs
from lab.pages import head

HEAD = (
    ">logs | >MB | >median kB | >95 % kB | >largest kB | >s | >logs/s | >CPU s each | >a reader, MiB"
    " | >the builder, MiB | >unread"
)


def measured(folder: Path, logs: int, engine: Engine) -> str:
    """A row of the table: a fleet of this number of logs."""
    items = find_logs([str(folder.absolute())])
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "logs"
        place.mkdir()
        for number in range(logs):
            item = items[number % len(items)]
            (place / f"{number:05d}-{Path(item.path).name}").symlink_to(item.path)
        sizes = [items[number % len(items)].size_bytes / 1e3 for number in range(logs)]
        cut = quantiles(sizes, n=20)
        built = build([str(place)], Path(scratch) / "fleet", engine)
    readers = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = readers.ru_utime + readers.ru_stime
    return (
        f"| {logs} | {sum(sizes) / 1e3:.1f} | {cut[9]:.0f} | {cut[18]:.0f} | {max(sizes):.0f} | {built.seconds:.1f}"
        f" | {built.read / built.seconds:.1f} | {cpu_s / max(built.read, 1):.2f} | {readers.ru_maxrss / 1024:.0f}"
        f" | {peak_mib():.0f} | {built.unread} |"
    )


def peak_mib() -> float:
    """Peak memory of this process; the system's figure for an ended child also contains its parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def main() -> None:
    """Print sizes, logs per second, CPU seconds of each and the largest processes, a row for each number of logs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, nargs="+", default=[1000])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    given = parser.parse_args()
    if len(given.logs) == 1:
        is_local = given.engine == ENGINES[0]
        engine = Engine(processes=given.processes) if is_local else Engine("spark", master=f"local[{given.processes}]")
        print(*head(HEAD), measured(given.folder, given.logs[0], engine), sep="\n")
        return
    print(*head(HEAD), sep="\n", flush=True)
    for logs in given.logs:
        command = [sys.executable, "-m", "lab.costs.fleets", str(given.folder), "--engine", given.engine]
        command += ["--processes", str(given.processes), "--logs", str(logs)]
        print(subprocess.check_output(command, text=True).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
