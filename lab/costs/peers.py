"""The cost of other tools: `python -m lab.costs.peers LOG --spark-jars DIR --sparklens JAR --profiler JAR`.

It measures whole processes, in rounds, so that the machine's load affects all tools alike.  Figures are medians of the
rounds after a warm-up round, with an empty cache.  A tool without its jar is left out.

DIR: the jars of Spark 3.5, `deps/jars` of PyPI's pyspark; both peers need them.
Sparklens (github.com/qubole/sparklens, Apache-2.0): from its sources, because no registry has it for this Scala.  Three
places change to compile with Spark 3.5: HDFSConfigHelper answers `new Configuration()`, `si.attemptId` is
`si.attemptNumber()`, and HttpRequestHandler goes, with its call.  Then `java -cp "DIR/*" scala.tools.nsc.Main
-usejavacp -nowarn -d OUT FILES`, and `jar cf sparklens.jar -C OUT .`
Profiler: rapids-4-spark-tools_2.12 of NVIDIA, within PyPI's spark-rapids-user-tools.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from crystalperf.query.inputs.containers import Part, pieces
from crystalperf.query.trace.records import Problems
from lab.costs.processes import Cost, cost
from lab.errors import LabError
from lab.pages import head

Line = Callable[[Path, Path], list[str]]
"""A command, of the log and of an empty folder to write to."""


def lines(spark_jars: Path | None, sparklens: Path | None, profiler: Path | None) -> dict[str, Line]:
    """The commands by name."""
    crystalperf = str(Path(sys.executable).with_name("crystalperf"))
    found: dict[str, Line] = {
        "crystalperf profile": lambda log, out: [crystalperf, "profile", str(log), "-o", str(out / "run.duckdb")],
        "crystalperf analyze": lambda log, _: [crystalperf, "analyze", str(log)],
    }
    if sparklens is not None:
        main = ["java", "-cp", f"{sparklens}:{spark_jars}/*", "com.qubole.sparklens.app.ReporterApp"]
        found["Sparklens"] = lambda log, _: [*main, log.absolute().as_uri(), "source=history"]
    if profiler is not None:
        tool = ["java", "-cp", f"{profiler}:{spark_jars}/*", "com.nvidia.spark.rapids.tool.profiling.ProfileMain"]
        found["spark-rapids-tools profiling"] = lambda log, out: [
            *tool, "--csv", "--auto-tuner", "-o", str(out), str(log)
        ]  # fmt: skip
    return found


def measured(log: Path, commands: dict[str, Line], rounds: int) -> dict[str, Cost]:
    """The medians of each command."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        plain = place / "eventlog"  # the tools do not read all containers, and some take a name with a suffix for one
        with plain.open("wb") as target:
            target.writelines(pieces(Part(str(log)), Problems()))
        for number in range(rounds + 1):
            for name, command in commands.items():
                out = place / "out"
                out.mkdir()
                shutil.rmtree(place / "home" / "runs", ignore_errors=True)  # otherwise the run would be in the cache
                one = cost(command(plain, out), place / "home", said=place / "said")
                if name.startswith("spark-rapids") and not list(out.rglob("*application_information.csv")):
                    raise LabError(f"{name} wrote no tables: {(place / 'said').read_text(errors='replace')[-500:]}")
                if number:
                    costs[name].append(one)
                shutil.rmtree(out)
    return {
        name: Cost(*(median(getattr(one, field) for one in each) for field in ("wall_s", "cpu_s", "peak_mib")))
        for name, each in costs.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--spark-jars", type=Path, metavar="DIR")
    parser.add_argument("--sparklens", type=Path, metavar="JAR")
    parser.add_argument("--profiler", type=Path, metavar="JAR")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.spark_jars is None and (given.sparklens or given.profiler):
        parser.error("--sparklens and --profiler need --spark-jars")
    costs = measured(given.log, lines(given.spark_jars, given.sparklens, given.profiler), given.rounds)
    us = costs["crystalperf analyze"]
    what = f"{given.log.name}, medians of {given.rounds}"
    print("\n".join(head(f"{what} | s | CPU s | MiB | s, times ours | CPU s, times ours")))
    for name, each in costs.items():
        print(
            f"| {name} | {each.wall_s:.1f} | {each.cpu_s:.1f} | {each.peak_mib:.0f}"
            f" | {each.wall_s / us.wall_s:.1f} | {each.cpu_s / us.cpu_s:.1f} |"
        )


if __name__ == "__main__":
    main()
