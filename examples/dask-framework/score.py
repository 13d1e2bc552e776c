"""Compare predictions with reruns: `python score.py FOLDER`, the folder that sweep.sh recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean
from tempfile import mkdtemp

import crystalperf as cp

STEPS = {
    "tree": [("1x1", "2x1"), ("1x1", "1x2"), ("2x1", "1x1")],
    "fetching": [("2x1", "4x1"), ("2x1", "2x2"), ("4x1", "2x1")],
    "shuffled": [("1x1", "2x1"), ("1x1", "1x2"), ("2x1", "1x1"), ("2x1", "2x2")],
}
"""Pairs of workers x threads: the recorded configuration and the predicted one."""


def main(folder: Path) -> None:
    """Print a row for each pair: the mean error of two predictions, against the mean of two reruns."""
    print("| workload | change | measured [s] | report and dump | report alone |")
    print("|---|---|---|---|---|")
    for name, steps in STEPS.items():
        for before, after in steps:
            (workers, threads), (more, each_more) = (map(int, each.split("x")) for each in (before, after))
            change = {"workers": f"{more / workers:g}x"} if more != workers else {"cores": f"{each_more / threads:g}x"}
            was, became = (
                mean(json.loads((each / "truth.json").read_text())["seconds"] for each in runs(folder, name, size))
                for size in (before, after)
            )
            off = []
            for only in ("", "dask-report.html"):
                predicted = [ask(each / only, change) for each in runs(folder, name, before)]
                off.append(f"{100 * (mean(predicted) * was / became - 1):+.0f} %")
            print(f"| {name} | {before} → {after} | {was:.2f} → {became:.2f} | {' | '.join(off)} |")


def runs(folder: Path, name: str, size: str) -> list[Path]:
    """The folders of a configuration's runs."""
    return sorted(folder.glob(f"{name}-{size}-?"))


def ask(path: Path, change: dict[str, str]) -> float:
    """The ratio of predicted to recorded runtime; the client's clock has the absolute time."""
    predicted = cp.profile([path], output=Path(mkdtemp()) / "run.duckdb").predict(**change)
    assert predicted.predicted_ms is not None
    return predicted.predicted_ms / predicted.runtime_ms


if __name__ == "__main__":
    main(Path(sys.argv[1]))
