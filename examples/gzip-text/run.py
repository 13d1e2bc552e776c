"""Record the job on one core and on two: ``python examples/gzip-text/run.py OUT`` (needs Java 17 and pyspark, no root).

Writes OUT/1-core and OUT/2-cores, each with an event log and a JFR recording, and prints the time of each job and a
table of medians. With ``--repetitions`` it alternates between the two: OUT/1-core-2, OUT/2-cores-2 and so on.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from crystalperf.indexes.errors import CrystalPerfError  # noqa: E402
from crystalperf.query.recordings.flags import jfr_flag  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.pages import head, row  # noqa: E402
from lab.runs.cluster import find_java, find_spark  # noqa: E402
from lab.runs.datasets import make_data  # noqa: E402

TIMEOUT_S = 600
CORES = {"1-core": 1, "2-cores": 2}


def record(cores: int, text: Path, out: Path) -> float:
    """Run the job on some cores of this machine and return the seconds of its only Spark job.

    Raises LabError if Spark fails; its output is in OUT/spark.log.
    """
    (out / "eventlog").mkdir(parents=True)
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (out / "eventlog").as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": jfr_flag(str(out / "driver.jfr")),
    }
    command = [str(find_spark() / "bin" / "spark-submit"), "--master", f"local[{cores}]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += [str(HERE / "job.py"), str(text)]
    java_home = find_java().resolve().parent.parent
    own = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (out / "spark.log").open("wb") as log:
        try:
            subprocess.run(
                command, env=os.environ | own, check=True, stdout=log, stderr=subprocess.STDOUT, timeout=TIMEOUT_S
            )
        except subprocess.CalledProcessError as error:
            raise LabError(f"Spark ended with exit status {error.returncode}; see {out / 'spark.log'}.") from None
        except subprocess.TimeoutExpired:
            raise LabError(f"Spark did not end within {TIMEOUT_S} s; see {out / 'spark.log'}.") from None
    return job_seconds(next((out / "eventlog").glob("local-*")))


def job_seconds(log: Path) -> float:
    """The duration of the only Spark job in an uncompressed event log."""
    at_ms = {}
    for line in log.read_text(encoding="utf-8").split("\n"):
        if '"Event":"SparkListenerJob' in line:
            event = json.loads(line)
            at_ms[event["Event"]] = event.get("Submission Time") or event.get("Completion Time")
    return float(at_ms["SparkListenerJobEnd"] - at_ms["SparkListenerJobStart"]) / 1000


def table(seconds: Mapping[str, Sequence[float]]) -> list[str]:
    """The table of runs and medians, from the seconds by name of CORES."""
    rows = (
        row(CORES[name], ", ".join(f"{each:.2f}" for each in found), f"{statistics.median(found):.2f}")
        for name, found in seconds.items()
    )
    return ["", *head("cores | runs [s] | >median [s]"), *rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Generate the text (once, in the lab's cache), and run the job on one core and on two; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder for the recordings; must not exist")
    parser.add_argument("--repetitions", type=int, default=1, metavar="N", help="runs of each (default 1)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="SF", help="size of the text (default 1: 1 GB)")
    given = parser.parse_args(arguments)
    out = given.out.resolve()
    seconds: dict[str, list[float]] = {name: [] for name in CORES}
    try:
        if out.exists():
            raise LabError(f"{given.out} exists already; name another folder.")
        text = make_data("gzip-text", given.scale) / "text"
        for repetition in range(1, given.repetitions + 1):
            for name, cores in CORES.items():
                folder = name if repetition == 1 else f"{name}-{repetition}"
                seconds[name].append(record(cores, text, out / folder))
                print(f"{folder}: {seconds[name][-1]:.2f} s", flush=True)
    except CrystalPerfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join(table(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
