"""PySpark jobs whose Python time is known: `python python_jobs.py NAME FOLDER` runs one and writes its log and truth.

The user's functions measure their own time, 100 calls at a time, in an accumulator each: that is the truth for the
user's code.  With `--profiler perf` or `memory` Spark's profilers run too, and their profiles are in FOLDER/profiles.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.accumulators import Accumulator
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.functions import pandas_udf, udf

_CALLS = 100
_COLUMNS = 12


@dataclass
class Rig:
    """A session for one job: `scale` is the share of its usual rows, `spent_s` the own time of its functions so far.

    The functions of `spent_s` are in the order of the stages that run them.
    """

    spark: SparkSession
    scale: float
    spent_s: dict[str, Accumulator[float]] = field(default_factory=dict)

    def range(self, count: int) -> DataFrame:
        return self.spark.range(0, self.rows(count), 1, 8)

    def rows(self, count: int) -> int:
        return max(round(self.scale * count), 8)

    def timed(self, function: Callable[..., Any], calls: int = _CALLS) -> Callable[..., Any]:
        """The function, with its time added to its accumulator, `calls` at a time."""
        spent_s = self.spent_s[function.__name__] = self.spark.sparkContext.accumulator(0.0)
        return timed(spent_s, function, calls)


def timed(spent_s: Accumulator[float], function: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """A function that adds the time of its calls to an accumulator, `calls` at a time."""
    state = [0.0, 0]

    @functools.wraps(function)
    def timed_call(*arguments: Any) -> Any:
        begin = time.perf_counter()
        found = function(*arguments)
        state[0] += time.perf_counter() - begin
        state[1] += 1
        if state[1] % calls == 0:
            spent_s.add(state[0])
            state[0] = 0.0
        return found

    return timed_call


def light(*texts: str) -> int:
    return len(texts[0]) + len(texts[-1])


def heavy(number: int) -> str:
    text = str(number).encode()
    for _ in range(25):
        text = hashlib.sha256(text).digest()
    return text.hex()


def stored(number: int) -> int:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 4096)
        file.flush()
        os.fsync(file.fileno())
    return number


def arrowed(number: int) -> int:
    found = number
    for step in range(12):
        found = (found * 31 + step) % 1_000_003
    return found


def upper(texts: pd.Series) -> pd.Series:
    return texts.str.upper().str.replace("1", "one", regex=False)


def score(number: int) -> int:
    return sum(number * step % 7 for step in range(10))


def centred(frame: pd.DataFrame) -> pd.DataFrame:
    for _ in range(3):
        frame = frame.sort_values("value")
        frame["value"] = frame["value"] - frame["value"].rolling(5, min_periods=1).mean()
    return frame


def _wide(rig: Rig, count: int) -> DataFrame:
    text = sf.lpad(sf.col("id").cast("string"), 40, "x")
    return rig.range(count).select("id", *[text.alias(f"text{number}") for number in range(_COLUMNS)])


def _use(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _grouped(rig: Rig) -> DataFrame:
    return rig.range(3_000_000).select(
        "id", (sf.col("id") % 200).alias("key"), sf.rand(7).alias("value"), sf.lpad(sf.col("id"), 20, "x").alias("text")
    )


def light_udf(rig: Rig, count: int = 800_000) -> None:
    function = udf(rig.timed(light), "int")
    _use(_wide(rig, count).select(function(*[f"text{number}" for number in range(_COLUMNS)])))


def heavy_udf(rig: Rig, count: int = 800_000) -> None:
    _use(rig.range(count).select(udf(rig.timed(heavy), "string")("id")))


def vectorized_udf(rig: Rig, count: int = 4_000_000) -> None:
    timed_upper = rig.timed(upper, 1)

    def by_batch(texts: pd.Series) -> pd.Series:
        return timed_upper(texts)

    function = pandas_udf(by_batch, "string")
    _use(_wide(rig, count).select(function("text0")))


def rdd_map(rig: Rig) -> None:
    function = rig.timed(score)
    rows = rig.spark.sparkContext.range(0, rig.rows(4_000_000), 1, 8)
    rows.map(lambda number: function(number)).filter(bool).count()


def grouped_map(rig: Rig) -> None:
    timed_centred = rig.timed(centred, 1)

    def by_group(frame: pd.DataFrame) -> pd.DataFrame:
        return timed_centred(frame)

    schema = "id long, key long, value double, text string"
    _use(_grouped(rig).groupBy("key").applyInPandas(by_group, schema))


def arrow_udf(rig: Rig) -> None:
    _use(rig.range(4_000_000).select(udf(rig.timed(arrowed), "long", useArrow=True)("id")))


def mapped(rig: Rig) -> None:
    """Rows by Arrow to an iterator of frames."""
    timed_upper = rig.timed(upper, 1)

    def by_frames(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield pd.DataFrame({"text": timed_upper(frame["text0"])})

    _use(_wide(rig, 2_000_000).mapInPandas(by_frames, "text string"))


def resources(rig: Rig) -> None:
    """A function of one row that computes, and waits for the disk."""
    timed_heavy, timed_stored = rig.timed(heavy), rig.timed(stored)

    def both(number: int) -> str:
        return timed_heavy(number) if number % 50 else str(timed_stored(number))

    _use(rig.range(200_000).select(udf(both, "string")("id")))


def two_stages(rig: Rig) -> None:
    """Two functions of one row in two queries: both stages use pickle."""
    light_udf(rig)
    heavy_udf(rig, 400_000)


def two_ways(rig: Rig) -> None:
    """A function of one row by pickle, and in the next query mapInPandas by Arrow."""
    heavy_udf(rig, 400_000)
    mapped(rig)


def one_query(rig: Rig) -> None:
    """A function of one row by pickle before a shuffle, and grouped rows by Arrow after it."""
    function = udf(rig.timed(heavy), "string")
    timed_centred = rig.timed(centred, 1)

    def by_group(frame: pd.DataFrame) -> pd.DataFrame:
        return timed_centred(frame)

    rows = rig.range(400_000).select(
        (sf.col("id") % 50).alias("key"), sf.rand(7).alias("value"), function("id").alias("text")
    )
    rows = rows.select("key", "value", "text", sf.explode(sf.sequence(sf.lit(1), sf.lit(6))).alias("copy"))
    _use(rows.groupBy("key").applyInPandas(by_group, "key long, value double, text string, copy int"))


def at_once(rig: Rig) -> None:
    """Two queries at the same time, which share the slots: one by pickle, one by Arrow."""

    def query(pool: str, job: Callable[[], None]) -> None:
        rig.spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        job()

    jobs = {"pickle": lambda: heavy_udf(rig, 400_000), "arrow": lambda: mapped(rig)}
    for function in (heavy, upper):
        rig.timed(function)  # now, for the order of `spent_s`
    queries = [threading.Thread(target=query, args=each) for each in jobs.items()]
    for each in queries:
        each.start()
        time.sleep(2.0)  # the order of stages
    for each in queries:
        each.join()


def grown(texts: pd.Series) -> pd.Series:
    repeated = texts.str.repeat(500)
    return repeated.str.len()


def memory(rig: Rig) -> None:
    """A pandas UDF, one line of which makes long texts of short ones."""
    _use(_wide(rig, 400_000).select(pandas_udf(grown, "long")("text0")))


def memory_limit(rig: Rig) -> None:
    """The same with longer texts in the last partition: its worker needs more than the limit, and the query fails."""
    count = rig.rows(400_000)
    text = sf.when(sf.col("id") >= count * 7 // 8, sf.repeat("text0", 20)).otherwise(sf.col("text0"))
    with contextlib.suppress(PythonException):
        _use(_wide(rig, 400_000).select(pandas_udf(grown, "long")(text)))


JOBS: dict[str, Callable[[Rig], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        light_udf, heavy_udf, vectorized_udf, rdd_map, grouped_map, arrow_udf, two_stages, two_ways, one_query, at_once,
        resources, memory, memory_limit,
    )
}  # fmt: skip


def _settings(folder: Path, job: str, profiler: str | None) -> Iterator[tuple[str, str]]:
    yield "spark.ui.enabled", "false"
    yield "spark.eventLog.enabled", "true"
    yield "spark.eventLog.rolling.enabled", "false"
    yield "spark.eventLog.dir", folder.as_uri()
    yield "spark.local.dir", str(folder / "scratch")
    yield "spark.sql.shuffle.partitions", "8"
    if job == "memory-limit":
        yield "spark.executor.pyspark.memory", "2500m"
    if job == "at-once":
        yield "spark.scheduler.mode", "FAIR"
    if profiler and job == "rdd-map":
        yield "spark.python.profile", "true"
        yield "spark.python.profile.dump", str(folder / "profiles")
    elif profiler:
        yield "spark.sql.pyspark.udf.profiler", profiler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profiler", choices=("perf", "memory"), help="a profiler of Spark's own")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the job's rows (default: all)")
    given = parser.parse_args()
    folder = given.folder.resolve()
    builder = SparkSession.builder.master("local[2]").appName(given.job)
    for key, value in _settings(folder, given.job, given.profiler):
        builder = builder.config(key, value)
    with builder.getOrCreate() as spark:
        rig = Rig(spark, given.scale)
        begin = time.monotonic()
        JOBS[given.job](rig)
        wall_s = time.monotonic() - begin
        if given.profiler and given.job != "rdd-map":
            spark.profile.dump(str(folder / "profiles"), type=given.profiler)
    functions_s = {name: spent_s.value for name, spent_s in rig.spent_s.items()}
    truth = {"user_s": sum(functions_s.values()), "functions_s": functions_s, "wall_s": wall_s}
    (folder / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main()
