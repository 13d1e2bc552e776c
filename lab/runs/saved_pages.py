"""``python -m lab.runs.saved_pages sql|rdd --out DIR``: the saved pages of a running application, and its event log.

A local application of two slots runs a query and jobs, and waits.  Then the lines of docs/how-to/get-a-log.md save its
pages, as a user would, and the application ends.  The pages are DIR/pages.tar.gz, the log is in DIR/logs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import LabError
from lab.runs import recorded
from lab.runs.cluster import spark_environment

LINES = Path(__file__).parents[2] / "docs" / "how-to" / "get-a-log.md"
_BLOCK = re.compile(r"<!-- save the pages -->\n<!-- not run: [^\n]+ -->\n```bash\n(.*?)```", re.DOTALL)
_PLACE = "http://DRIVER:4040"
KINDS = ("sql", "rdd")
TIMEOUT_S = 120

PROGRAM = """
import sys
from pyspark.sql import SparkSession

session = SparkSession.builder.appName("saved-pages").getOrCreate()
context = session.sparkContext
if sys.argv[1] == "sql":
    rows = session.range(200_000).selectExpr("id % 100 AS part", "sha2(CAST(id AS STRING), 256) AS text")
    rows.groupBy("part").agg({"text": "max"}).orderBy("part").collect()
pairs = context.parallelize(range(1_000), 3).map(lambda each: (each % 5, each))
pairs.reduceByKey(lambda one, other: one + other, 2).collect()
print(context.uiWebUrl, flush=True)
sys.stdin.readline()
session.stop()
"""


def save(address: str, folder: Path) -> Path:
    """The pages of an application, saved by the lines of the documentation.  Raises LabError."""
    found = _BLOCK.search(LINES.read_text(encoding="utf-8"))
    if found is None or _PLACE not in found[1]:
        raise LabError(f"{LINES} has no lines that save pages.")
    command = ["bash", "-eu", "-c", found[1].replace(_PLACE, address)]
    done = subprocess.run(command, cwd=folder, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise LabError(f"Saving the pages of {address} ended with exit status {done.returncode}.")
    return folder / "pages.tar.gz"


def record(kind: str, out: Path) -> Path:
    """The pages of a run of a kind.  Raises LabError if they cannot be made."""
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    (out / "program.py").write_text(PROGRAM, encoding="utf-8")
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (out / "logs").as_uri(),
        "spark.local.dir": str(out / "scratch"),
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.port": "0",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    words = " ".join(f"--conf {key}={value}" for key, value in settings.items())
    environment = spark_environment() | {"PYSPARK_SUBMIT_ARGS": f"--master local[2] {words} pyspark-shell"}
    command, pipe = [sys.executable, str(out / "program.py"), kind], subprocess.PIPE  # spark-submit passes no input on
    with (out / "spark.txt").open("wb") as log:
        spark = subprocess.Popen(command, env=environment, cwd=out, stdin=pipe, stdout=pipe, stderr=log)
        try:
            assert spark.stdout is not None
            address = spark.stdout.readline().decode().strip()
            if not address:
                raise LabError(f"The application ended before it printed its address; see {out / 'spark.txt'}.")
            pages = save(address, out)
            spark.communicate(b"\n", TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise LabError(f"The application did not end in {TIMEOUT_S} s; see {out / 'spark.txt'}.") from None
        finally:
            spark.kill()
            spark.communicate()
    return pages


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0, or 1 with one sentence on stderr."""
    return recorded.run("lab.runs.saved_pages", __doc__, KINDS, record, arguments)


if __name__ == "__main__":
    sys.exit(main())
