"""PySpark jobs whose Python time is known: `python python_jobs.py NAME FOLDER` runs one and writes its log and truth.

The user's functions measure their own time, 500 calls at a time, in an accumulator: that is the truth for the user's
code.  With a third argument, `perf`, Spark's profiler of sessions runs too, and its profiles are in FOLDER/profiles.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.functions import pandas_udf, udf

_CALLS = 500
_COLUMNS = 12


def timed(spent_s: Accumulator[float], function: Callable[..., Any], calls: int = _CALLS) -> Callable[..., Any]:
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


def _wide(spark: SparkSession, count: int) -> Any:
    text = sf.lpad(sf.col("id").cast("string"), 40, "x")
    return spark.range(0, count, 1, 8).select("id", *[text.alias(f"text{number}") for number in range(_COLUMNS)])


def _use(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def light_udf(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    function = udf(timed(spent_s, light), "int")
    _use(_wide(spark, 800_000).select(function(*[f"text{number}" for number in range(_COLUMNS)])))


def heavy_udf(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    _use(spark.range(0, 800_000, 1, 8).select(udf(timed(spent_s, heavy), "string")("id")))


def vectorized_udf(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    timed_upper = timed(spent_s, upper, 1)

    def by_batch(texts: pd.Series) -> pd.Series:
        return timed_upper(texts)

    function = pandas_udf(by_batch, "string")
    _use(_wide(spark, 4_000_000).select(function("text0")))


def rdd_map(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    function = timed(spent_s, score)
    spark.sparkContext.range(0, 4_000_000, 1, 8).map(lambda number: function(number)).filter(bool).count()


def grouped_map(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    timed_centred = timed(spent_s, centred, 1)

    def by_group(frame: pd.DataFrame) -> pd.DataFrame:
        return timed_centred(frame)

    rows = spark.range(0, 3_000_000, 1, 8).select(
        "id", (sf.col("id") % 200).alias("key"), sf.rand(7).alias("value"), sf.lpad(sf.col("id"), 20, "x").alias("text")
    )
    _use(rows.groupBy("key").applyInPandas(by_group, "id long, key long, value double, text string"))


def arrow_udf(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    _use(spark.range(0, 4_000_000, 1, 8).select(udf(timed(spent_s, arrowed), "long", useArrow=True)("id")))


def two_stages(spark: SparkSession, spent_s: Accumulator[float]) -> None:
    light_udf(spark, spent_s)
    _use(spark.range(0, 400_000, 1, 8).select(udf(timed(spent_s, heavy), "string")("id")))


JOBS: dict[str, Callable[[SparkSession, Accumulator[float]], None]] = {
    each.__name__.replace("_", "-"): each
    for each in (light_udf, heavy_udf, vectorized_udf, rdd_map, grouped_map, arrow_udf, two_stages)
}


def _settings(folder: Path, profiler: str) -> Iterator[tuple[str, str]]:
    yield "spark.ui.enabled", "false"
    yield "spark.eventLog.enabled", "true"
    yield "spark.eventLog.rolling.enabled", "false"
    yield "spark.eventLog.dir", folder.as_uri()
    yield "spark.local.dir", str(folder / "scratch")
    yield "spark.sql.shuffle.partitions", "8"
    if profiler:
        yield "spark.sql.pyspark.udf.profiler", profiler


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    profiler = sys.argv[3] if len(sys.argv) > 3 else ""
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in _settings(folder, profiler):
        builder = builder.config(key, value)
    with builder.getOrCreate() as spark:
        spent_s = spark.sparkContext.accumulator(0.0)
        begin = time.monotonic()
        JOBS[name](spark, spent_s)
        wall_s = time.monotonic() - begin
        if profiler:
            spark.profile.dump(str(folder / "profiles"), type=profiler)
    (folder / "truth.json").write_text(json.dumps({"user_s": spent_s.value, "wall_s": wall_s}))


if __name__ == "__main__":
    main()
