"""Record the job on one core and on two: ``python examples/gzip-text/run.py OUT`` (needs Java 17 and pyspark, no root).

Leaves OUT/1-core and OUT/2-cores, each with an event log and a JFR recording, and prints how long each job took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path.insert(0, str(REPOSITORY))

from lab.cluster import find_spark  # noqa: E402
from lab.datasets import make_data  # noqa: E402
from lab.samplers import jfr_flag  # noqa: E402


def record(cores: int, data: Path, out: Path) -> float:
    """Run the job on some cores of this machine and return the seconds of its only Spark job."""
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
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command += [str(HERE / "job.py"), str(data / "text")]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
    times = {}
    for log in (out / "eventlog").glob("local-*"):
        for line in log.read_text().split("\n"):
            if '"Event":"SparkListenerJob' in line:
                event = json.loads(line)
                times[event["Event"]] = event.get("Submission Time") or event.get("Completion Time")
    return (times["SparkListenerJobEnd"] - times["SparkListenerJobStart"]) / 1000


def main(out: Path) -> None:
    """Make the text (once, in the lab's cache), and run the job twice."""
    if out.exists():
        sys.exit(f"error: {out} is there already; name another folder.")
    data = make_data("gzip-text", 1)
    for cores, name in ((1, "1-core"), (2, "2-cores")):
        print(f"{name}: {record(cores, data, out / name):.2f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("error: name a folder for the recordings: run.py OUT")
    main(Path(sys.argv[1]).resolve())
