"""Three PySpark jobs as users write them: the first sentence and the recommendations name what is theirs to change."""

from __future__ import annotations

from pathlib import Path

import pytest

import crystalperf as cp
from crystalperf.query.frameworks.spark.findings import SmallFiles
from crystalperf.query.frameworks.spark.recommendations import AskForPartitions, GiveSchema, SetPartitions, SpreadRows
from crystalperf.query.frameworks.spark.remarks import PythonFunctions
from crystalperf.query.frameworks.spark.udfs import functions
from crystalperf.query.results.answers import Verdict

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
def test_names_of_python_functions_stand_in_plans(detail: str, names: tuple[str, ...]) -> None:
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
    assert isinstance(first, SetPartitions)
    assert [(each.name, each.before) for each in first.settings] == [("spark.sql.shuffle.partitions", 800)]
