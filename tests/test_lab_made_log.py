"""The made log reads as a whole run: nothing lost, everything in it that it says it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crystalperf.query.frameworks.spark.log.collect import collect
from crystalperf.query.frameworks.spark.log.tables import tables as spark_tables
from crystalperf.query.inputs.containers import LogFile, Part
from lab.costs.made_log import lines, write


def test_a_made_log_is_a_whole_run_with_retries_and_copies(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        write(stream, 8000, seed=4)
    tables = spark_tables(collect(LogFile("log", (Part(str(tmp_path / "log")),))))
    tasks, stages = tables["tasks"], tables["stages"]
    assert len(tasks["task_id"]) >= 8000
    assert [each for each in tables["import_stats"]["severity"].tolist() if each != "info"] == []
    assert set(tasks["status"].tolist()) == {"succeeded", "failed", "killed"}
    assert tasks["speculative"].any()
    assert set(stages["status"].tolist()) == {"succeeded", "failed"}
    assert stages["attempt"].max() == 1
    # No slot holds two tasks at a time.
    executor = np.array([int(each) for each in tasks["executor_id"]])
    moments = np.concatenate([tasks["launch_ms"], tasks["finish_ms"]])
    change = np.repeat([1, -1], len(executor))
    order = np.lexsort((change, moments))
    for each in range(0, 200, 40):
        mine = np.tile(executor, 2)[order] == each
        assert np.cumsum(change[order][mine]).max() <= 4


def test_the_seed_decides_the_bytes() -> None:
    assert list(lines(500, seed=3)) == list(lines(500, seed=3))
    assert list(lines(500, seed=3)) != list(lines(500, seed=4))
