"""Compare the model of Starfish with the estimates in its own tests: `python check.py CLONE`.

CLONE is a copy of Starfish's repository (manifest.toml).  Its licence is academic, so the project has no copy of the
profiles in its tests; they are read from there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from crystalperf_mapreduce.starfish import Profile, TaskProfile
from crystalperf_mapreduce.starfish_job import runtime_ms, settings_of

TESTS = Path("starfish/src/whatif/edu/duke/starfish/whatif/junit")
JOBS = ("TeraSort", "WordCount")
SLOTS = (30, 30)
"""15 nodes with 2 slots each for maps and for reducers."""


def main(clone: Path) -> int:
    """Print both estimates for each job of the tests; 1 if one differs."""
    profiles, engine = (
        (clone / TESTS / f"{name}.java").read_text(encoding="utf-8") for name in ("SampleProfiles", "TestWhatIfEngine")
    )
    print("| job | estimate in Starfish's tests [ms] | by this model [ms] |")
    print("|---|---:|---:|")
    same = True
    for name, published in zip(JOBS, re.findall(r"assertEquals\((\d+)\.0+, \w+ExecTime", engine), strict=True):
        conf = settings_of(
            dict(re.findall(r'conf\s*\.set\("([^"]+)",\s*"([^"]*)"', _body(profiles, name, "Configuration")))
        )
        maps, reducers = (_tasks(_body(profiles, name, f"{kind}Profile")) for kind in ("Map", "Reduce"))
        ours = runtime_ms(Profile((maps,), reducers), conf, SLOTS)
        same = same and ours == float(published)
        print(f"| {name} | {published} | {ours:.0f} |")
    return 0 if same else 1


def _body(text: str, job: str, what: str) -> str:
    """The body of a function of the tests."""
    return text.partition(f" get{job}{what}() {{")[2].partition("\n\t}")[0]


def _tasks(body: str) -> TaskProfile:
    """The profile that a function of the tests builds."""
    values = [
        {name: float(value) for name, value in re.findall(rf"{kind}\.(\w+),\s*([\d.]+)[ld]\)", body)}
        for kind in ("MRCounter", "MRStatistics", "MRCostFactors", "MRTaskPhase")
    ]
    count = re.search(r"setNumTasks\((\d+)\)", body)
    return TaskProfile(int(count[1]) if count else 1, *values)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / TESTS).is_dir():
        sys.exit("check.py: give a clone of Starfish (manifest.toml has its address)")
    sys.exit(main(Path(sys.argv[1])))
