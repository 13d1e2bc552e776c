"""What a fleet of many logs takes besides reading them: `python -m lab.costs.batches FOLDER --logs 20000 --days 365`.

Each log of the folder is read once. Its rows are kept over and over under other names and days, in the order of days,
as a fleet that is built keeps them; then the fleet is asked.  Prints a row for each batch, with the most memory that
was taken since the one before.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

from crystalperf.fleet.ask import ask
from crystalperf.fleet.engines import Engine
from crystalperf.fleet.logs import found
from crystalperf.fleet.reading import Read
from crystalperf.fleet.store import Store
from lab.costs.fleets import peak_mib

_FIRST = date(2025, 1, 1)


def copy(read: Read, number: int, day: date) -> Read:
    """The same rows as of another log, of another day."""
    path = f"{read.path}.{number}"
    log = sha256(path.encode()).hexdigest()
    rows = read.rows.replace(read.path.encode(), path.encode()).replace(read.log.encode(), log.encode())
    rows = rows.replace(read.log[:16].encode(), log[:16].encode())
    rows = re.sub(rb'"app_id":"[^"]*"', f'"app_id":"{log}"'.encode(), rows)  # or they were one application's
    return Read(log, path, re.sub(rb'"day":"[^"]*"', f'"day":"{day}"'.encode(), rows))


def main() -> None:
    """Print the table, and what asking takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=365)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch) / "fleet"
        reads = list(Engine(processes=2).read_all(found([str(given.folder.absolute())]), Path(scratch)))
        store = Store(place)
        print("logs     peak [MiB]  to write [CPU s]  files", flush=True)
        with store.building():
            for number in range(given.logs):
                day = _FIRST + timedelta(days=number * given.days // given.logs)
                store.keep(copy(reads[number % len(reads)], number, day))
                if store.is_full or number == given.logs - 1:
                    began = time.process_time()
                    store.write()
                    files = sum(1 for _ in place.glob("*/day=*/*.parquet"))
                    print(
                        f"{number + 1:8d} {peak_mib():10.0f} {time.process_time() - began:17.1f} {files:6d}", flush=True
                    )
                    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        began = time.process_time()
        ask(place)
        print(f"asking: {time.process_time() - began:.1f} CPU s, peak {peak_mib():.0f} MiB")


if __name__ == "__main__":
    main()
