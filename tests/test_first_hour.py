"""Three PySpark jobs as users write them: the first sentence and the recommendations name what is theirs to change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import duckdb
import numpy as np
import pytest

import crystalperf as cp
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.frameworks.spark.advise.partitions import _fewer
from crystalperf.query.frameworks.spark.findings import SmallFiles
from crystalperf.query.frameworks.spark.frames import annotate
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.frameworks.spark.log.collect import _source
from crystalperf.query.frameworks.spark.recommendations import (
    AskForPartitions,
    GiveSchema,
    MoreLocalSlots,
    SpreadRows,
)
from crystalperf.query.frameworks.spark.remarks import PythonFunctions
from crystalperf.query.frameworks.spark.rewrites import EnableAdaptive
from crystalperf.query.frameworks.spark.udfs import functions
from crystalperf.query.recordings.jfr import Stacks
from crystalperf.query.results.answers import Verdict
from crystalperf.query.text.sentences import lines_of

if TYPE_CHECKING:
    from crystalperf.query.diagnose.stage_statistics import StageStats

LOGS = Path(__file__).parent.parent / "lab" / "recordings" / "first-hour"


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    folder = tmp_path_factory.mktemp("first-hour")
    return {each.stem: cp.profile([each], output=folder / f"{each.stem}.duckdb").verdict() for each in LOGS.iterdir()}


def test_python_functions_are_named_with_their_time(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["python-udfs"]
    assert (verdict.bottleneck.kind, verdict.bottleneck.name) == ("part", "python-functions")
    assert verdict.bottleneck.time_ms == pytest.approx(23_400, rel=0.01)
    (part,) = verdict.debug.named_parts
    assert isinstance(part.remark, PythonFunctions)
    assert [set(each.functions) for each in part.remark.groups] == [{"normalise", "score"}]
    assert verdict.recommendations[0].kind == "profile-python"


@pytest.mark.parametrize(
    ("detail", "names"),
    [
        ("BatchEvalPython [normalise(cast(id#0L as int))#1, score(x#2)#3], [pythonUDF0#4]", ("normalise", "score")),
        ("ArrowEvalPython [outer(inner(a#1)#2)#3], [pythonUDF0#4], 200", ("outer", "inner")),
        ("FlatMapGroupsInPandas [key#1], fit(key#1, v#2)#3, [key#4, v#5]", ("fit",)),
        ("BatchEvalPython [<lambda>(id#0L)#1], [pythonUDF0#2]", ("<lambda>",)),
        ("MapInPandas (", ()),
    ],
)
def test_names_of_python_functions_are_in_plans(detail: str, names: tuple[str, ...]) -> None:
    assert functions(detail) == names


def test_one_task_of_coalesce_is_the_programs(verdicts: dict[str, Verdict]) -> None:
    found = [each for each in verdicts["small-files"].recommendations if isinstance(each, AskForPartitions)]
    assert [(each.call, each.stages.stage, each.stages.tasks, each.partitions) for each in found] == [
        ("coalesce", "stage:3.0", 1, 2)
    ]
    assert not any(isinstance(each, SpreadRows) for each in verdicts["small-files"].recommendations)


def test_small_files_and_their_schema_lead(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["small-files"]
    (small,) = (each for each in verdict.debug.findings if isinstance(each, SmallFiles))
    assert small.files == 2000
    shown = verdict.recommendations[:3]
    assert "small-files" in [each.because for each in shown]
    assert any(isinstance(each, GiveSchema) and each.inferred for each in shown)


def test_the_start_is_one_thing_and_comes_last(verdicts: dict[str, Verdict]) -> None:
    for each in verdicts.values():
        reasons = [found.because for found in each.recommendations if found.because != "samples"]
        assert reasons[-1] == "at-start"
        assert reasons.count("at-start") == 1
        assert each.debug.other_ms["start"] > each.debug.other_ms.get("no scope", 0.0)


def test_too_many_partitions_lead(verdicts: dict[str, Verdict]) -> None:
    first = verdicts["builder-settings"].recommendations[0]
    assert isinstance(first, EnableAdaptive)
    assert (first.because, first.stages.tasks) == ("starting-tasks", 800)


def test_a_setting_of_the_builder_is_changed_there(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["builder-settings"]
    (change,) = verdict.recommendations[0].settings
    assert (change.after, change.set_by) == (True, "program")
    _, first, second = lines_of(verdict.recommendations[0], verdict.debug.words)
    assert first.startswith('.config("spark.sql.adaptive.enabled", "true")')
    assert second.startswith("--conf spark.sql.adaptive.enabled=true")


@pytest.mark.parametrize(
    ("command", "source"),
    [
        ("org.apache.spark.deploy.SparkSubmit --conf spark.a=1 pyspark-shell", "program"),
        ("org.apache.spark.deploy.SparkSubmit --conf spark.a=1 --name PySparkShell pyspark-shell", None),
        ("org.apache.spark.deploy.SparkSubmit --conf spark.a=1 job.py", None),
        ("org.apache.spark.deploy.SparkSubmit --conf spark.a=2 job.py", "program"),
        ("org.apache.spark.deploy.SparkSubmit job.py", "unclear"),
        ("com.example.Main", None),
    ],
)
def test_the_command_of_the_driver_shows_what_set_a_setting(command: str, source: str | None) -> None:
    assert _source(command, "spark.a", "1") == source


@pytest.mark.parametrize(("cpu_ms", "tasks"), [(5_000, 8), (6_600, 8), (9_000, 8), (11_000, 8), (20_000, 32)])
def test_a_number_of_tasks_does_not_follow_the_load(cpu_ms: float, tasks: int) -> None:
    slow = SimpleNamespace(
        facts=SimpleNamespace(task_ms=8 * cpu_ms, starting_ms=cpu_ms, slots=2), own_cpu_ms=cpu_ms, read_bytes=1000
    )
    assert _fewer(cast("StageStats", slow)) == tasks


@pytest.mark.parametrize(("processors", "quota", "has"), [(2, None, False), (8, 2.0, False), (4, None, True)])
def test_no_more_slots_than_cores(processors: int, quota: float | None, has: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    cp.profile([LOGS / "builder-settings.zstd"], output=path)
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "INSERT INTO loads (worker_id, time_ms, cpu_cores, machine_cores, processors, quota_cores)"
            " VALUES ('driver', 30000, 1.0, 1.0, ?, ?)",
            [processors, quota],
        )
    found = cp.Run(path).verdict().recommendations
    assert any(isinstance(each, MoreLocalSlots) for each in found) == has


@pytest.mark.parametrize(
    ("class_name", "method"),
    [
        ("org.apache.spark.util.logging.FileAppender", "appendStreamToFile"),
        ("org.apache.spark.deploy.worker.ExecutorRunner", "fetchAndRunExecutor"),
    ],
)
def test_threads_that_serve_executors_of_a_local_cluster_are_idle(class_name: str, method: str) -> None:
    assert annotate(class_name, method) == "idle"


@pytest.mark.parametrize(
    ("owner", "method"),
    [
        ("java.lang.ProcessImpl", "waitFor"),
        ("java.lang.UNIXProcess", "waitFor"),
        ("java.lang.ref.ReferenceQueue", "remove"),
    ],
)
def test_a_wait_for_a_child_process_or_for_garbage_uses_no_resource(owner: str, method: str) -> None:
    """The main thread of PySpark's driver, and Spark's cleaners: 145, 50 and 10 s of disk in a local-cluster run."""
    assert annotate(owner, method) == "rest"


def test_a_stack_without_frames_has_one() -> None:
    table = NumberedStacks(SPARK)
    nothing, no_index = SimpleNamespace(owners=list, methods=list, line=np.zeros(0, np.int32)), np.zeros(0, np.int32)
    stacks = Stacks(np.zeros(2, np.int64), no_index, np.zeros(1, bool))
    table.add(SimpleNamespace(frames=nothing, stacks=stacks))  # type: ignore[arg-type]
    assert table.lengths().tolist() == [1]
