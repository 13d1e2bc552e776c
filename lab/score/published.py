"""Predictions against published reruns: ``python -m lab.score.published FOLDER``, Markdown tables.

FOLDER holds event logs of Spark of jobs that were run on several numbers of executors, each number several times; a
clone of github.com/cemsbr/phd_notebook has 1 430 (k-means and sort of HiBench, an analysis of Wikipedia), commit
1bba8fc of github.com/eubr-bigsea/lundstrom 608 (two queries of TPC-DS; ``--flat``).  Logs of one job are in one folder
and have the same name, YARN cluster, tasks of all stages and records of the largest stage: if tasks differ, more than
the number of executors was changed.

Logs are split by hash: those whose sha256(file name) ends in an odd hex digit are the test set (`odd`), which is only
scored; the others are the tuning set.  Within a set, the first log by name of each number of executors predicts each
other number, like a user with this one log; the ground truth is the median of the set's runs with that number.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crystalperf import query
from lab.pages import head
from lab.runs.suites import ROLES, Configuration
from lab.score.predictors import Base, Predictor, amdahl, answer, linear, no_change, slots_alone
from lab.scored import OURS, Scored, from_median

Job = tuple[str, str, str, tuple[int, ...], int]
"""Folder, cluster, name of the application, tasks of its stages in order of size, and records of the largest."""

_CLUSTER = re.compile(r"application_(\d+)_\d+")
"""An application's id in YARN: the start time of its resource manager, and a number."""

OTHERS: Mapping[str, Predictor] = {
    "no change": no_change,
    "linear in executors": linear,
    "Amdahl": amdahl,
    "Sparklens: recorded tasks on other slots": slots_alone,
}


@dataclass(frozen=True)
class Rerun:
    """One log: its job, number of executors, and the duration of the application, ms."""

    log: Path
    job: Job
    executors: int
    wall_ms: float

    @property
    def role(self) -> str:
        """``even`` (tuning set) or ``odd`` (test set)."""
        return role_of(self.log.name)


@dataclass(frozen=True)
class Asked:
    """One prediction task: the log, the number of executors, the ground truth, and each predictor's prediction."""

    base: Rerun
    executors: int
    actual_ms: float
    runs: int
    predicted_ms: Mapping[str, float | None]
    interval_ms: tuple[float, float] | None
    bound_ms: tuple[float | None, float | None] | None

    @property
    def off(self) -> float | None:
        """(predicted − actual) / actual of our prediction."""
        given = self.predicted_ms[OURS]
        return None if given is None else given / self.actual_ms - 1


def digit_of(name: str) -> str:
    """The hex digit that splits logs, by a log's file name."""
    return hashlib.sha256(name.encode()).hexdigest()[-1]


def role_of(name: str) -> str:
    """The set of a log, by its file name."""
    return ROLES[int(digit_of(name), 16) % 2]


def reruns(folder: Path, role: str, *, flat: bool = False) -> list[Rerun]:
    """The finished runs of a set below a folder, sorted by path, without other files; logs of the other set are not
    opened.  `flat` is whether logs of one job are in several folders."""
    files = sorted(each for each in folder.rglob("*") if each.is_file() and ".git" not in each.parts)
    found = (_read(each, folder, flat) for each in files if role_of(each.name) == role)
    return [each for each in found if each is not None]


def _read(log: Path, folder: Path, flat: bool) -> Rerun | None:
    """A log, read from its plain lines: the ground truth does not use CrystalPerf."""
    name, cluster, began, ended = "", "", 0, 0
    executors: set[str] = set()
    tasks: dict[int, int] = defaultdict(int)
    records: dict[int, int] = defaultdict(int)
    try:
        for event in _events(log):
            match event["Event"]:
                case "SparkListenerApplicationStart":
                    name, began = event["App Name"], event["Timestamp"]
                    cluster = match[1] if (match := _CLUSTER.fullmatch(event.get("App ID") or "")) else ""
                case "SparkListenerApplicationEnd":
                    ended = event["Timestamp"]
                case "SparkListenerBlockManagerAdded":
                    executors.add(event["Block Manager ID"]["Executor ID"])
                case "SparkListenerTaskEnd":
                    tasks[event["Stage ID"]] += 1
                    metrics = (event.get("Task Metrics") or {}).get("Input Metrics") or {}
                    records[event["Stage ID"]] += metrics.get("Records Read", 0)
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
        return None
    workers = len(executors - {"driver", "<driver>"})
    if not began or not ended or not workers or not tasks:
        return None
    where = "" if flat else str(log.parent.relative_to(folder))
    largest = min(tasks, key=lambda each: (-tasks[each], each))
    job = (where, cluster, name, tuple(sorted(tasks.values())), records[largest])
    return Rerun(log, job, workers, float(ended - began))


_WANTED = ("ApplicationStart", "ApplicationEnd", "BlockManagerAdded", "TaskEnd")


def _events(log: Path) -> Iterator[dict[str, Any]]:
    with log.open(encoding="utf-8") as lines:
        first = next(lines, "")
        if '"Event"' not in first:
            raise KeyError("Event")
        for line in lines:
            head = line[:60]
            if any(f"SparkListener{each}" in head for each in _WANTED):
                yield json.loads(line)


def ask(runs: Sequence[Rerun], profiles: Path, say: Callable[[str], None]) -> list[Asked]:
    """Every prediction task that the runs of one set allow."""
    of: dict[Job, dict[int, list[Rerun]]] = defaultdict(lambda: defaultdict(list))
    for each in runs:
        of[each.job][each.executors].append(each)
    found = []
    for job, numbers in sorted(of.items()):
        for executors, same in sorted(numbers.items()):
            if others := sorted(set(numbers) - {executors}):
                say(f"{_called(same[0])}, {job[4]} records, {executors} executors")
                found += _ask(same[0], {each: numbers[each] for each in others}, profiles)
    return found


def _ask(rerun: Rerun, others: Mapping[int, Sequence[Rerun]], profiles: Path) -> list[Asked]:
    profiles.mkdir(parents=True, exist_ok=True)
    kept = profiles / f"{rerun.log.name}.duckdb"
    run = query.profile([rerun.log], output=kept).path
    knobs = {"workers": rerun.executors}
    base = Base(run, "all", rerun.wall_ms, Configuration(0, 0, _called(rerun), 1, knobs, {}, True, {}))
    found = []
    for executors, same in others.items():
        changed = {"workers": executors}
        one = Configuration(1, 0, _called(rerun), 1, changed, {}, False, changed)
        given = answer(base, one)
        predicted = {OURS: given.predicted_ms, **{who: other(base, one) for who, other in OTHERS.items()}}
        actual = statistics.median(each.wall_ms for each in same)
        found.append(Asked(rerun, executors, actual, len(same), predicted, given.interval_ms, given.bound_ms))
    return found


def _called(run: Rerun) -> str:
    """The name of the job in the table: its folder, or its own name."""
    return run.job[0] or run.job[2]


def floor(runs: Iterable[Rerun]) -> list[float]:
    """|run / median − 1| of all runs of a job on one number of executors, as lab.scored has it."""
    of: dict[tuple[Job, int], list[float]] = defaultdict(list)
    for each in runs:
        of[each.job, each.executors].append(each.wall_ms)
    return from_median(of.values())


RERUN = "one run against the median of its reruns"


def table(asked: Sequence[Asked], runs: Sequence[Rerun]) -> list[str]:
    """Errors, coverage of ranges and refusals by folder and predictor, and the noise floor of runs."""
    lines = head("job | predictor | answered | mean ± sd % | median % | worst % | covered % | half-width % | refused")
    called = sorted({_called(each.base) for each in asked})
    for folder in [*called, "all"] if len(called) > 1 else called:
        these = [each for each in asked if folder in (_called(each.base), "all")]
        scored = _scored(these)
        scored.off[RERUN] = floor(each for each in runs if folder in (_called(each), "all"))
        for who, off in scored.off.items():
            refused = "" if who == RERUN or len(off) == len(these) else str(len(these) - len(off))
            lines.append(f"| {folder} | {who} | {scored.cells(who)} | {refused} |")
    return lines


def _scored(asked: Sequence[Asked]) -> Scored:
    scored = Scored()
    for each in asked:
        for who, given in each.predicted_ms.items():
            scored.take(who, given, each.actual_ms)
        if (ours := each.predicted_ms[OURS]) is not None and each.interval_ms is not None:
            scored.take_range(ours, each.interval_ms, each.actual_ms)
    return scored


def main() -> None:
    """Score one set; `--each` prints every prediction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--role", choices=ROLES, default="odd")
    parser.add_argument("--profiles", type=Path, required=True, help="folder that run files are kept in")
    parser.add_argument("--flat", action="store_true", help="logs of one job are in several folders")
    parser.add_argument("--each", action="store_true", help="also print every prediction")
    given = parser.parse_args()
    runs = reruns(given.folder, given.role, flat=given.flat)
    asked = ask(runs, given.profiles, lambda text: print(text, flush=True))
    if given.each:
        for each in asked:
            print(_line(each))
    print("\n".join(table(asked, runs)))


def _line(each: Asked) -> str:
    ours, interval = each.predicted_ms[OURS], each.interval_ms
    said = "refused" if ours is None or each.off is None else f"{ours / 1000:.1f} ({100 * each.off:+.0f} %)"
    around = "" if interval is None else f" {interval[0] / 1000:.1f} to {interval[1] / 1000:.1f}"
    if each.bound_ms is not None:
        around += f" bounds {each.bound_ms}"
    return (
        f"{each.base.log.name} {_called(each.base)} {each.base.job[4]} {each.base.executors} -> {each.executors}: "
        f"{each.base.wall_ms / 1000:.1f} -> {each.actual_ms / 1000:.1f} s ({each.runs}); {said}{around}"
    )


if __name__ == "__main__":
    main()
