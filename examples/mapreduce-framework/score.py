"""Compare predictions with public reruns: `python score.py FOLDER`, the folder of the unpacked archive.

manifest.toml has the address and the hash of the archive.  Its licence is academic, so the project has no copy of it.
"""

from __future__ import annotations

import glob
import sys
from collections import defaultdict
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from statistics import fmean, median, pstdev
from tempfile import mkdtemp

from crystalperf_mapreduce.starfish_job import MAP_SLOTS, PROFILE, REDUCE_SLOTS, profile_of, runtime_ms, settings_of

import crystalperf as cp

RERUNS = [
    ("link graph", "201102170213_0044", "201102170213_0288", 120),
    ("link graph", "201102170213_0288", "201102170213_0044", 27),
    ("co-occurrence", "201102151322_0202", "201102151322_0201", 27),
    ("co-occurrence", "201102151322_0201", "201102151322_0202", 1),
]
"""Two runs of one job, and the reducers of the second."""

COMPRESSION = [
    ("co-occurrence, map outputs", "201102151322_0077", "201102151322_0076"),
    ("co-occurrence, outputs", "201102151322_0076", "201102151322_0078"),
    ("word count, map outputs", "201102151322_0149", "201102151322_0148"),
    ("link graph, map outputs", "201102170213_0044", "201102170213_0043"),
    ("join, outputs", "201102151322_0328", "201102151322_0330"),
]
"""Runs of one job without and with compression; no setting predicts it."""

COMPRESSED = ("compressed", "not compressed")

PROFILED = [
    ("link graph", "27 → 120 reducers, other sort buffers", "201102170213_0044", "201102170213_0288"),
    ("co-occurrence", "27 → 1 reducers, other sort buffers", "201102151322_0077", "201102151322_0202"),
    ("co-occurrence", "map outputs compressed", "201102151322_0077", "201102151322_0201"),
    ("co-occurrence", "profiler off", "201102151322_0076", "201102151322_0201"),
    *((name, COMPRESSED[0], before, after) for name, before, after in COMPRESSION),
    *((name, COMPRESSED[1], after, before) for name, before, after in COMPRESSION),
]
"""A profiled run and a rerun: Starfish's engine gets the profile of the first and all settings of the second."""


def main(folder: Path) -> None:
    """Print predicted against measured seconds: of the run, and of each of its phases."""
    wanted = {job for _, *jobs in COMPRESSION for job in jobs} | {job for _, *jobs, _ in RERUNS for job in jobs}
    if missing := sorted(job for job in wanted if not any(folder.rglob(f"*_job_{job}_conf.xml"))):
        sys.exit(f"{folder}: has no history of job_{missing[0]}; give the unpacked archive (manifest.toml)")
    runs = {each.name[:-9]: profiled(each) for each in sorted(folder.rglob("*_conf.xml"))}
    runs = {name.partition("_job_")[2]: run for name, run in runs.items()}
    print("| job | id | measured [s] | unchanged run replayed [s] |")
    print("|---|---|---|---|")
    same = {job: run.predict(workers="2x") for job, run in runs.items()}
    for job, answer in same.items():
        replayed = f"{answer.replayed_ms / 1e3:.0f} ({off(answer.replayed_ms, answer.runtime_ms)})"
        print(f"| {runs[job].sql('SELECT name FROM runs').rows[0][0]} | {job[-4:]} | {seconds(answer)} | {replayed} |")
    print("\n| job | reducers | part | recorded [s] | predicted [s] | measured [s] | error |")
    print("|---|---|---|---|---|---|---|")
    for name, before, after, reducers in RERUNS:
        answer = runs[before].predict(tasks=str(reducers))
        change = f"{same_reducers(runs[before])} → {reducers}"
        row(name, change, "run", answer.runtime_ms, answer.predicted_ms, same[after].runtime_ms)
        for part in ("map", "reduce"):
            (was,), (became,) = ([one for one in each.stages if one.name == part] for each in (answer, same[after]))
            row(name, change, part, was.recorded_ms, was.predicted_ms, became.recorded_ms)
    starfish(runs, same)
    print("\n| job | without compression [s] | with [s] | change |")
    print("|---|---|---|---|")
    for name, before, after in COMPRESSION:
        change = off(same[after].runtime_ms, same[before].runtime_ms)
        print(f"| {name} | {seconds(same[before])} | {seconds(same[after])} | {change} |")


def profiled(conf: Path) -> cp.Run:
    """The run of the history next to a configuration, with Starfish's profile if the archive has one."""
    history = next(conf.parent.glob(f"{glob.escape(conf.name.removesuffix('_conf.xml'))}_[!c]*"))
    job = conf.name.removesuffix("_conf.xml").partition("_job_")[2]
    profiles = conf.parent.parent.rglob(f"adj_profile_job_{job}.xml")
    return cp.profile([history, conf, *profiles], output=Path(mkdtemp()) / "run.duckdb")


def starfish(runs: Mapping[str, cp.Run], same: Mapping[str, cp.Prediction]) -> None:
    """Print the estimates of Starfish's engine next to CrystalPerf's, for the reruns of profiled runs.

    CrystalPerf gets the number of reducers; it has no setting for the other changes.
    """
    print("\n| job | changed | recorded [s] | Starfish, unchanged [s] | Starfish [s] | CrystalPerf [s] ", end="")
    print("| measured [s] | Starfish's error | CrystalPerf's error |")
    print("|---|---" + "|---:" * 7 + "|")
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, change, before, after in PROFILED:
        unchanged, theirs = (engine(runs[before], conf) for conf in map(properties, (runs[before], runs[after])))
        reducers = same_reducers(runs[after])
        recorded = ours = same[before].runtime_ms
        if reducers != same_reducers(runs[before]):
            ours = runs[before].predict(tasks=str(reducers)).predicted_ms or ours
        measured = same[after].runtime_ms
        times = " | ".join(f"{each / 1e3:.0f}" for each in (recorded, unchanged, theirs, ours, measured))
        print(f"| {name} | {change} | {times} | {off(theirs, measured)} | {off(ours, measured)} |")
        kind = "compression" if change in COMPRESSED else "others"
        for who, predicted in (("Starfish", theirs), ("CrystalPerf", ours)):
            errors[who, kind].append(100 * abs(predicted / measured - 1))
    print("\n| predicted by | reruns | predictions | mean ± sd % | median % |")
    print("|---|---|---:|---:|---:|")
    for (who, kind), found in sorted(errors.items(), reverse=True):
        print(f"| {who} | {kind} | {len(found)} | {fmean(found):.1f} ± {pstdev(found):.1f} | {median(found):.1f} |")


def engine(profiled: cp.Run, conf: Mapping[str, str]) -> float:
    """Starfish's estimate, ms, for the nodes and the profile of a run, with the settings asked for."""
    nodes = int(profiled.sql("SELECT count(DISTINCT host) FROM workers").rows[0][0])
    slots = [nodes * int(conf[key]) for key in (MAP_SLOTS, REDUCE_SLOTS)]
    return runtime_ms(profile_of(properties(profiled)[PROFILE]), settings_of(conf), (slots[0], slots[1]))


def properties(run: cp.Run) -> dict[str, str]:
    """The settings and the profile of a run."""
    return dict(run.sql("SELECT unnest(map_keys(properties)), unnest(map_values(properties)) FROM runs").rows)


def same_reducers(run: cp.Run) -> int:
    """The reducers of a run that succeeded."""
    query = "SELECT count(*) FROM tasks WHERE stage_id = 'tasks:reduce' AND status = 'succeeded'"
    return int(run.sql(query).rows[0][0])


def seconds(answer: cp.Prediction) -> str:
    """The recorded runtime."""
    return f"{answer.runtime_ms / 1e3:.0f}"


def off(predicted_ms: float, measured_ms: float) -> str:
    """The difference in per cent of the measured time."""
    return f"{100 * (predicted_ms / measured_ms - 1):+.0f} %"


def row(name: str, change: str, part: str, was_ms: float, predicted_ms: float | None, measured_ms: float) -> None:
    """Print a prediction next to its rerun."""
    assert predicted_ms is not None
    times = " | ".join(f"{each / 1e3:.0f}" for each in (was_ms, predicted_ms, measured_ms))
    print(f"| {name} | {change} | {part} | {times} | {off(predicted_ms, measured_ms)} |")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("score.py: give the folder of the unpacked archive (manifest.toml has its address)")
    if "mapreduce" not in entry_points(group="crystalperf.frameworks").names:
        sys.exit("score.py: the package is missing; install it first: pip install examples/mapreduce-framework")
    main(Path(sys.argv[1]))
