"""A training that gains little from more ranks: find the cause in a trace, fix it, run again.

    python examples/poor-scaling/run.py [--python PYTHON] [-o DIR]

PYTHON has PyTorch; CrystalPerf runs in the Python of this script.  Each rank is a node of the lab: a network namespace
with a link of 1 Gbit/s and 0.4 of a core (root, Linux).  At first all ranks send their gradients to one rank, which
sends back the mean; then they exchange them in a ring, as DistributedDataParallel does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXCHANGES = {"server": "through one rank", "ring": "in a ring"}
RANKS = (1, 2, 3, 4)
BATCH = 64
"""Examples in a batch of each rank."""


def trained(python: str, out: Path) -> None:
    """Train with each number of ranks both ways; `out` has a folder for each."""
    names = [f"scaling-{exchange}-r{ranks}" for exchange in EXCHANGES for ranks in RANKS]
    command = [sys.executable, "-m", "lab.runs.training", "pytorch", "-o", str(out), "--python", python, "--only"]
    if subprocess.run([*command, *names], cwd=ROOT, check=False).returncode:
        raise SystemExit("a training failed; the output above says why")


def step_ms(out: Path, exchange: str, ranks: int) -> float:
    """The mean over ranks of their median steps, untraced."""
    reported = json.loads((out / f"scaling-{exchange}-r{ranks}/steps.json").read_text(encoding="utf-8"))
    return 1e3 * statistics.mean(statistics.median(each["step_s"]) for each in reported["found"])


def table(out: Path) -> str:
    """Steps and examples a second by ranks and exchange, Markdown."""
    lines = ["| ranks | " + " | ".join(f"{how}: step [ms] | examples a second" for how in EXCHANGES.values()) + " |"]
    lines.append("|---" * (1 + 2 * len(EXCHANGES)) + "|")
    for ranks in RANKS:
        steps = [step_ms(out, exchange, ranks) for exchange in EXCHANGES]
        cells = (f"{each:.0f} | {1e3 * BATCH * ranks / each:.0f}" for each in steps)
        lines.append(f"| {ranks} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def answer(folder: Path) -> str:
    """The output of CrystalPerf for the traces, up to the critical path."""
    command = [sys.executable, "-m", "crystalperf.cli.main", "analyze", str(folder)]
    said = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return said.partition("\nCritical")[0].rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", default=sys.executable, metavar="PYTHON", help="a Python with PyTorch")
    parser.add_argument("-o", "--out", type=Path, default=Path("lab-runs/poor-scaling"), metavar="DIR")
    given = parser.parse_args()
    out = given.out.absolute()
    trained(given.python, out)
    print(f"{table(out)}\n")
    for exchange, how in EXCHANGES.items():
        print(f"Three ranks that exchange {how}:\n\n{answer(out / f'scaling-{exchange}-r3/traces')}\n")


if __name__ == "__main__":
    main()
