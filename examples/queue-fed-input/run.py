"""A training whose input queue is too slow: find the cause in a trace, fix it, run again.

    python examples/queue-fed-input/run.py --python PYTHON [-o DIR] [--repetitions N]

PYTHON has TensorFlow (`pip install tensorflow-cpu` into a separate environment); CrystalPerf runs in the Python of this
script.  One thread fills the queue at first, four after the fix; reading an example takes 20 ms.  Repetitions alternate
between the two; the answers are about the first of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from lab.pages import head, row  # noqa: E402

ASKED = {"queue": True, "read_ms": 20.0, "inter": 8}
"""Threads of the pool that operators run on; readers also wait on these, so there are enough for both."""


FEEDERS = {"before": 1, "after": 4}
"""Threads that fill the queue."""


def trained(python: str, folder: Path, feeders: int) -> float:
    """Train with this many threads that fill the queue, with traces in `folder`; the median of untraced steps, ms."""
    asked = {**ASKED, "feeders": feeders, "out": str(folder)}
    command = [python, str(ROOT / "lab/runs/tf_job.py"), json.dumps(asked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # TensorFlow writes a lot to stderr
    if done.returncode:
        raise SystemExit(f"the training ended with code {done.returncode}: {done.stderr.strip()[-300:]}")
    lines = (each for each in done.stdout.splitlines() if each.startswith("{"))
    reported: dict[str, list[float]] = json.loads(next(lines))
    return 1e3 * statistics.median(reported["step_s"])


def answer(folder: Path) -> str:
    """The output of CrystalPerf for the traces, up to the critical path."""
    command = [sys.executable, "-m", "crystalperf.cli.main", "analyze", str(folder)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.partition("\nCritical")[0].rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", required=True, metavar="PYTHON", help="a Python with TensorFlow")
    parser.add_argument("-o", "--out", type=Path, default=Path("lab-runs/queue-fed-input"), metavar="DIR")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="runs of each (default 1)")
    given = parser.parse_args()
    out = given.out.absolute()
    steps: dict[int, list[float]] = {each: [] for each in FEEDERS.values()}
    for repetition in range(given.repetitions):
        for name, feeders in FEEDERS.items():
            folder = f"{name}-{repetition + 1}" if repetition else name
            steps[feeders].append(trained(given.python, out / folder, feeders))
    before_ms, after_ms = map(statistics.median, steps.values())
    print(f"One thread fills the queue: a step takes {before_ms:.0f} ms.\n\n{answer(out / 'before')}\n")
    print(f"Four threads fill it: a step takes {after_ms:.0f} ms ({100 * (after_ms / before_ms - 1):+.0f} %).\n")
    print(f"{answer(out / 'after')}\n")
    print("\n".join(table(steps)))


def table(steps: Mapping[int, Sequence[float]]) -> list[str]:
    """The table of steps, ms, by the threads that fill the queue."""
    rows = (
        row(feeders, ", ".join(f"{each:.0f}" for each in found), f"{statistics.median(found):.0f}")
        for feeders, found in steps.items()
    )
    return [*head("threads | steps [ms] | >median [ms]"), *rows]


if __name__ == "__main__":
    main()
