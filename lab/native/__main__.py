"""``python -m lab.native run|table --out DIR``: jobs of Spark 4.1 with and without Comet, and what stayed on the JVM.

``run`` makes the runs that are missing, in turn with and without Comet, two tasks at a time; ``--python`` names the
interpreter of an environment with PySpark 4.1.  ``table`` shows of the second pass of each job its time by both, and of
the run with Comet the shares of its tasks' time: in Comet, on the JVM, in conversions, and what stayed on the JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crystalperf.query import profile
from lab.errors import LabError
from lab.pages import head, row
from lab.runs.cluster import find_java
from lab.runs.maven import fetched

NAMES = ("native", "python-udf", "unsupported", "spill", "merge-join")
GROUP, ARTIFACT, VERSION = "org.apache.datafusion", "comet-spark-spark4.1_2.13", "1.2.0"
ENGINES = ("comet", "spark")
TIMEOUT_S = 300


@dataclass(frozen=True)
class Measured:
    """A job: its time with and without Comet, and of the run with it the parts of its tasks' time, all in ms."""

    job: str
    comet_ms: float
    spark_ms: float
    task_ms: float
    engine_ms: float
    jvm_ms: float
    conversion_ms: float
    spilled_bytes: float
    fallbacks: tuple[str, ...]


def run(job: str, engine: str, out: Path, python: str, jar: Path) -> None:
    """Run a job once, or make its data.  Raises LabError if it fails."""
    folder = out / job / engine
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [python, str(Path(__file__).with_name("jobs.py")), job, str(out / "input"), str(folder)]
    if engine == "comet":
        command.append(str(jar))
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    environment |= {
        "JAVA_HOME": str(find_java().resolve().parent.parent),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
    }
    try:
        with open(folder / "output.txt", "wb") as output:
            done = subprocess.run(
                command, stdout=output, stderr=output, env=environment, timeout=TIMEOUT_S, check=False
            )
    except OSError as error:
        raise LabError(f"{python}: cannot be started ({error.strerror}); --python names another.") from error
    except subprocess.TimeoutExpired:
        raise LabError(f"{job} took more than {TIMEOUT_S} s; see {folder / 'output.txt'}.") from None
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    if done.returncode != 0:
        raise LabError(f"{job} failed with code {done.returncode}; see {folder / 'output.txt'}.")


def log_of(folder: Path) -> Path:
    """The event log of a run."""
    return next(each for each in folder.iterdir() if each.name.startswith(("local-", "app-")))


_TIMES = """
    WITH second AS (SELECT max(scope_id) AS scope_id FROM scopes WHERE kind = 'sql' AND parent_id IS NULL)
    SELECT
        sum(task_ms),
        sum(task_ms) FILTER (ran_in = 'engine'),
        sum(task_ms) FILTER (ran_in = 'jvm'),
        sum(task_ms) FILTER (ran_in = 'conversion')
    FROM operator_resources LEFT JOIN spark_engine_operators USING (scope_id, node_id)
    WHERE scope_id IN (FROM second)
"""
_FALLBACKS = """
    SELECT array_to_string(list_distinct(operators), ', '), any_value(reason)
    FROM spark_fallbacks GROUP BY operators HAVING sum(jvm_ms + conversion_ms) > 0 ORDER BY sum(jvm_ms) DESC
"""
_SPILLED = """
    SELECT coalesce(sum(value), 0) FROM operator_metrics WHERE name ILIKE '%spilled bytes%'
"""


def measured(job: str, out: Path) -> Measured:
    """The figures of a job whose runs are made."""
    folders = [out / job / engine for engine in ENGINES]
    comet_ms, spark_ms = (json.loads((each / "run.json").read_text())["wall_ms"] for each in folders)
    found = profile([log_of(folders[0])], output=folders[0] / "run.duckdb", replace=True)
    parts = [float(each or 0.0) for each in found.sql(_TIMES).rows[0]]
    names = tuple(str(each[0]) for each in found.sql(_FALLBACKS).rows)
    spilled = float(found.sql(_SPILLED).rows[0][0])
    return Measured(job, comet_ms, spark_ms, *parts, spilled_bytes=spilled, fallbacks=names)


def table(found: Sequence[Measured]) -> Iterator[str]:
    """The lines of the Markdown table: times in s, shares of task time in percent."""
    yield from head(
        "job | >Spark [s] | >with Comet [s] | >in Comet | >on the JVM | >conversions | >spilled [MB] | on the JVM"
    )
    for each in found:
        shares = (100 * ms / each.task_ms for ms in (each.engine_ms, each.jvm_ms, each.conversion_ms))
        yield row(
            each.job, f"{each.spark_ms / 1000:.1f}", f"{each.comet_ms / 1000:.1f}", *(f"{it:.0f}" for it in shares),
            f"{each.spilled_bytes / 1e6:.0f}", "; ".join(each.fallbacks),
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.native", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    made = commands.add_parser("run", help="make the runs that are missing")
    shown = commands.add_parser("table", help="print the table")
    for each in (made, shown):
        each.add_argument("--out", type=Path, default=Path("lab-runs/native"), metavar="DIR", help="folder of the runs")
        each.add_argument("--only", action="append", choices=NAMES, metavar="JOB", help=f"jobs: {', '.join(NAMES)}")
    made.add_argument("--python", default=sys.executable, metavar="PYTHON", help="of an environment with PySpark 4.1")
    given = parser.parse_args(arguments)
    names = given.only or NAMES
    try:
        if given.command == "table":
            for line in table([measured(name, given.out) for name in names]):
                print(line)
            return 0
        jar = fetched(GROUP, ARTIFACT, VERSION, "copy the jar into the lab's cache yourself")
        if not (given.out / "input" / "items" / "_SUCCESS").exists():
            run("data", "spark", given.out, given.python, jar)
        for name in names:
            for engine in ENGINES:
                if not (given.out / name / engine / "run.json").exists():
                    run(name, engine, given.out, given.python, jar)
                    print(f"{name}: {engine}", flush=True)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
