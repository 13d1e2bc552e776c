"""The CPU time of the steps of a profile: `python -m lab.costs.steps INPUT…` prints each step when it ends.

    | step | CPU s | peak MiB |
    |---|---:|---:|
    | inspecting the inputs | 0.02 | 61 |

Seconds are of the whole process, including DuckDB's threads.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from crystalperf.query.runfile.pipeline import profile_inputs
from lab.pages import head


class Steps:
    """Prints the cost of a step when the next one begins."""

    def __init__(self) -> None:
        self.said, self.begun_s, self.total_s = "", time.process_time(), 0.0

    def __call__(self, said: str) -> None:
        now = time.process_time()
        if self.said:
            peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"| {self.said} | {now - self.begun_s:.2f} | {peak_mib:.0f} |", flush=True)
            self.total_s += now - self.begun_s
        self.said, self.begun_s = said, now


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", type=Path)
    given = parser.parse_args()
    steps = Steps()
    print(*head("step | >CPU s | >peak MiB"), sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        profile_inputs(given.inputs, Path(scratch) / "run.duckdb", None, (), steps)
        steps("")
    print(f"| total | {steps.total_s:.2f} | |")


if __name__ == "__main__":
    main()
