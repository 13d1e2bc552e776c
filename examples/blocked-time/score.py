"""Compare answers with measured blocked times and reruns: `python score.py FOLDER`, a copy of the public repository.

manifest.toml has its address and the hashes of its logs.  It has no licence, so the project has no copy of them.
"""

from __future__ import annotations

import hashlib
import heapq
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import crystalperf as cp

HIDE = "CRYSTALPERF_BLOCKED_TIME"
STAGES = """
    SELECT coalesce(stage_id, 'job') AS stage, count(*), sum(finish_ms - launch_ms), sum(disk_ms), sum(other_ms),
        sum(net_ms)
    FROM tasks GROUP BY GROUPING SETS ((stage_id), ()) ORDER BY stage
"""
TASKS = "SELECT finish_ms - launch_ms, disk_ms FROM tasks ORDER BY launch_ms, task_id"
NEIGHBOURS = """
    SELECT sum(least(one.finish_ms, other.finish_ms) - greatest(one.launch_ms, other.launch_ms))
            / (one.finish_ms - one.launch_ms) - 1 AS neighbours, one.disk_ms / 1000
    FROM tasks one JOIN tasks other ON one.worker_id = other.worker_id
        AND one.launch_ms < other.finish_ms AND other.launch_ms < one.finish_ms
    GROUP BY one.task_id, one.launch_ms, one.finish_ms, one.disk_ms ORDER BY neighbours
"""
"""Each task's mean number of other tasks on its executor, and its time on a disk, s."""

SLOTS = "SELECT sum(slots) FROM workers"


def main(folder: Path) -> None:
    """Print the disk's share of task time, and the what-ifs of an infinitely fast disk."""
    with TemporaryDirectory() as scratch:
        logs = list(_logs(folder))
        runs = {path: (_profiled(path, scratch, hide=True), _profiled(path, scratch, hide=False)) for path in logs}
        print("| log | stage | tasks | task time [s] | disk by a usual log | disk, measured | network, measured |")
        print("|---|---|---|---|---|---|---|")
        for path, (usual, measured) in runs.items():
            _shares(path, usual, measured)
        print("\n| log | few neighbours | on disk [s] | more neighbours | on disk [s] | recorded [s] | slots=2x [s] |")
        print("|---" * 7 + "|")
        for path, (_, measured) in runs.items():
            if "_disk_" in path.name:
                _neighbours(path, measured)
        print("\n| job | answered from | what-if | recorded [s] | predicted [s] | range [s] | measured [s] | error |")
        print("|---|---|---|---|---|---|---|---|")
        for path, (usual, measured) in runs.items():
            other = path.with_name(path.name.replace("_disk_", "_mem_"))
            if other != path and other in runs:
                _pair(path.name.partition("_")[0], usual, measured, runs[other][1])


def _neighbours(path: Path, run: cp.Run) -> None:
    """Print the blocked time of the tasks with the fewest neighbours next to that of the others, and `slots=2x`."""
    tasks = run.sql(NEIGHBOURS).rows
    few = tasks[: len(tasks) // 5]
    answer = run.predict(cores="2x")
    cells = [f"{fmean(each[n] for each in group):.1f}" for group in (few, tasks[len(few) :]) for n in (0, 1)]
    assert answer.predicted_ms is not None
    times = f"{answer.runtime_ms / 1e3:.1f} | {answer.predicted_ms / 1e3:.1f}"
    print(f"| {path.name.removesuffix('_job_log')} | {' | '.join(cells)} | {times} |")


def _logs(folder: Path) -> Iterator[Path]:
    """The logs of a folder, each content once.  Exits if one differs from the manifest's."""
    manifest = tomllib.loads((Path(__file__).parent / "manifest.toml").read_text(encoding="utf-8"))
    hashes = {each["path"]: each["sha256"] for each in manifest["file"]}
    seen: set[str] = set()
    for path in sorted(folder.rglob("*_job_log"), key=lambda each: (each.parent.name != "04_15_14_full", each)):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if hashes.get(f"{path.parent.name}/{path.name}", found) != found:
            sys.exit(f"{path}: differs from the log of manifest.toml; get the commit that it names")
        if found not in seen and path.parent.name != "test_files":
            seen.add(found)
            yield path
    if not seen:
        sys.exit(f"{folder}: has no *_job_log; give a copy of {manifest['source']['repository']}")


def _profiled(path: Path, scratch: str, *, hide: bool) -> cp.Run:
    os.environ[HIDE] = "hide" if hide else ""
    return cp.profile([path], output=Path(scratch) / f"{path.parent.name}-{path.name}-{hide}.duckdb")


def _shares(path: Path, usual: cp.Run, measured: cp.Run) -> None:
    """Print the disk's share of each stage's task time, without and with the blocked times."""
    has = any(name in path.read_text(encoding="utf-8") for name in ("READ_BLOCKED_TIME", "READ_TIME_NANOS"))
    rows = list(zip(usual.sql(STAGES).rows, measured.sql(STAGES).rows, strict=True))
    for row, truth in rows if len(rows) > 2 else rows[1:]:  # a job of one stage needs no row of its own
        stage, count, lasting, disk, other, _ = row
        bounds = f"{disk / lasting:.0%} to {(disk + other) / lasting:.0%}".replace("%", " %")
        blocked = f"{100 * truth[3] / lasting:.1f} %" if has else "not in the log"
        print(
            f"| {path.name.removesuffix('_job_log')} | {stage} | {count} | {lasting / 1e3:.1f} | {bounds} | {blocked} "
            f"| {100 * truth[5] / lasting:.1f} % |"
        )


def _pair(job: str, usual: cp.Run, measured: cp.Run, memory: cp.Run) -> None:
    """Print the predictions of the run in memory from the run on disks, and the refusal of the reverse."""
    rerun = memory.predict(disk="1000x").runtime_ms
    for source, run in (("a usual log", usual), ("blocked times", measured)):
        answer = run.predict(disk="1000x")
        _row(job, source, "disk=1000x", answer, answer.predicted_ms, answer.interval_ms or answer.bound_ms, rerun)
    listed = answer.runtime_ms * _unblocked(measured)
    _row(job, "blocked times", "blocked-time analysis", answer, listed, None, rerun)
    reverse = memory.predict(memory="0.5x")
    _row(job, "the run in memory", "memory=0.5x", reverse, reverse.predicted_ms, None, answer.runtime_ms)


def _unblocked(run: cp.Run) -> float:
    """The paper's estimate, as a share of the job's time: tasks without their blocked time, on the same slots."""
    tasks, slots = run.sql(TASKS).rows, int(run.sql(SLOTS).rows[0][0])
    return _listed([lasting - disk for lasting, disk in tasks], slots) / _listed([each[0] for each in tasks], slots)


def _listed(durations: list[float], slots: int) -> float:
    """The end of tasks that start in order, each on the slot that is free first."""
    ends = [0.0] * slots
    for each in durations:
        heapq.heapreplace(ends, ends[0] + each)
    return max(ends)


def _row(
    job: str,
    source: str,
    what: str,
    answer: cp.Prediction,
    point: float | None,
    bounds: tuple[float | None, float | None] | None,
    rerun: float,
) -> None:
    """Print a prediction next to the measured time of the other run, all in ms."""
    predicted = ", ".join(each.kind for each in answer.refused) if point is None else f"{point / 1e3:.1f}"
    low, high = bounds or (None, None)
    between = "" if low is None or high is None else f"{low / 1e3:.1f} to {high / 1e3:.1f}"
    error = "" if point is None else f"{100 * (point / rerun - 1):+.0f} %"
    recorded, measured = f"{answer.runtime_ms / 1e3:.1f}", f"{rerun / 1e3:.1f}"
    print(f"| {job} | {source} | {what} | {recorded} | {predicted} | {between} | {measured} | {error} |")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python score.py FOLDER, a folder with a copy of the repository of manifest.toml")
    try:
        main(Path(sys.argv[1]))
    except cp.CrystalPerfError as error:
        sys.exit(f"{error} (pip install examples/blocked-time adds these logs)")
