"""The verdict of a run, its words in every interface, and the JSON of all answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from crystalperf.cli.render import debug_text
from crystalperf.cli.run_commands import next_command
from crystalperf.cli.screen import verdict_text
from crystalperf.cli.text import time_unit
from crystalperf.indexes.errors import Remedy, SettingError
from crystalperf.indexes.resources import Resource, known
from crystalperf.query import Run, profile
from crystalperf.query.advise import verdict
from crystalperf.query.advise.verdict import (
    best_help,
    bottleneck_of,
    completed,
    knee_of,
    next_step,
    not_recorded_notes,
    questions,
)
from crystalperf.query.compare.budgets import budget, slowdown
from crystalperf.query.compare.gate import gate
from crystalperf.query.diagnose.bottleneck import bottleneck_in
from crystalperf.query.frameworks import Framework, Reader
from crystalperf.query.frameworks.registry import frameworks, get
from crystalperf.query.results.advice import MoreMemory
from crystalperf.query.results.answers import (
    Bottleneck,
    Debug,
    Failure,
    PathItem,
    Prediction,
    Profiled,
    SampleCounts,
    StageFacts,
    StagePrediction,
    Sweep,
    WhatIf,
)
from crystalperf.query.results.findings import GarbageCollection, StageRef
from crystalperf.query.results.not_recorded import BlockedThreadsUnsampled
from crystalperf.query.results.refusals import InvalidQuestion, RecordedValueUnknown
from crystalperf.query.run import Other, compare, comparison_page, ledger, tune
from crystalperf.query.runfile.pipeline import gather, write_run
from crystalperf.query.text.answers import bottleneck_sentence, cause_words, knee_sentence
from crystalperf.query.text.as_json import KINDS, as_json, schema_page, schema_text, schemas
from crystalperf.query.trace import contract
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary, plural
from tests.hand_made import HEADER, figures

ROOT = Path(__file__).parent.parent
LOG = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"
SPARK = get("spark").vocabulary
GPU = Resource("gpu", "GPU", "gpu_speed", "speed", "worker")


def debug(
    cpu: float = 0.0,
    disk: float = 0.0,
    net: float = 0.0,
    other: float = 0.0,
    *,
    driver_ms: float = 0.0,
    **causes: float,
) -> Debug:
    """A run that spends these ms; of other time by cause, underscores for blanks."""
    parts = {"cpu": cpu, "disk": disk, "net": net, "other": other}
    return Debug(
        scope="all",
        measure="makespan",
        runtime_ms=sum(parts.values()),
        bottleneck="",
        resource_ms=parts,
        critical_path=(PathItem("stage:0.0", "work", 0.0, sum(parts.values()), parts),),
        samples=SampleCounts(10, 10, 10, {}),
        scopes=(),
        other_ms={cause.replace("_", " "): ms for cause, ms in causes.items()},  # type: ignore[misc]
        driver_ms=driver_ms,
        vocabulary=SPARK,
    )


def sentence(answer: Debug, resources: tuple[Resource, ...] = known()) -> str:
    return bottleneck_sentence(bottleneck_of(answer), answer, resources, time_unit(answer.runtime_ms))


# Questions ----------------------------------------------------------------------------------------------------------


def test_spark_run_gets_the_usual_whatifs() -> None:
    # The words for cores and memory are those that the run's framework shows.
    plain = replace(SPARK, settings={"executors": "workers"})
    asked = "cores=2x executors=2x cpu_speed=2x network=2x network=10x disk=2x memory=2x memory=0.5x"
    assert [each.setting for each in questions(known(), plain)] == asked.split()


def test_a_resource_of_a_framework_is_asked_for_as_well() -> None:
    words = Vocabulary(worker="process", slot="stream", settings={"processes": "workers", "gpus": "gpu_speed"})
    asked = [each.setting for each in questions((*known(), GPU), words)]
    assert {"processes=2x", "cores=2x"} <= set(asked)
    assert asked[-3:] == ["gpus=2x", "memory=2x", "memory=0.5x"]


@pytest.mark.parametrize(
    ("framework", "more"),
    [("pytorch", ("twice the ranks", "ranks=2x")), ("tensorflow", ("twice the processes", "processes=2x"))],
)
def test_a_training_is_asked_about_more_processes_and_not_about_slots_or_memory(
    framework: str, more: tuple[str, str]
) -> None:
    known = get(framework)
    excluded_settings = tuple(known.planner.excluded_settings({}))
    header = replace(HEADER, framework=framework, vocabulary=known.vocabulary, excluded_settings=excluded_settings)
    asked = [(each.text, each.setting) for each in verdict._what_ifs_of(header, debug(cpu=1))]
    assert asked[0] == more
    assert {each.partition("=")[0] for _, each in asked[1:]} == {"cpu_speed", "network", "disk"}


# The bottleneck -----------------------------------------------------------------------------------------------------


def test_bottleneck_names_a_resource_and_a_close_second() -> None:
    found = bottleneck_of(debug(cpu=9_000, net=10_000, other=7_000, unknown=7_000))
    assert found == Bottleneck("resource", "net", 10_000, pytest.approx(10 / 26), "cpu", 9_000)
    assert bottleneck_of(debug(cpu=7_000, net=10_000, other=7_000, unknown=7_000)).second is None
    assert figures(sentence(debug(cpu=9_000, net=10_000, other=7_000))) == [10.0, 26.0, 38, 9.0]


def test_cpu_that_only_collected_garbage_is_reported_as_garbage_collection() -> None:
    answer = debug(cpu=5_000, disk=1_000, other=12_000, unknown=12_000)
    stage = StageFacts(
        id="stage:0.0", name="work", scope=None, tasks=4, slots=4, length_ms=18_000.0, path_ms=18_000.0,
        median_ms=1000.0, longest_ms=1000.0, median_bytes=0.0, most_bytes=0.0, task_ms=72_000.0, idle_ms=0.0,
        starting_ms=0.0, scheduler_delay_ms=0.0, gc_ms=19_000.0, spill_bytes=0,
        resource_ms={"cpu": 20_000.0, "disk": 4_000.0},
    )  # fmt: skip
    collecting, computing = (
        sentence(replace(answer, stages=(each,))) for each in (stage, replace(stage, gc_ms=10_000.0))
    )
    assert figures(collecting)[-1] == figures(computing)[-1] == 5.0
    assert ["garbage collection" in each for each in (collecting, computing)] == [True, False]


def test_other_time_counts_by_its_largest_cause() -> None:
    """Of 12 s on no resource no cause has more than the CPU's 5 s, so the bottleneck is the CPU."""
    several = debug(cpu=5_000, other=12_000, no_worker=4_900, unknown=4_000, starting=3_100)
    assert bottleneck_of(several).name == "cpu"
    waiting = debug(cpu=5_000, other=12_000, no_worker=5_100, unknown=4_000, starting=2_900)
    assert bottleneck_of(waiting) == Bottleneck("cause", "no worker", 5_100, pytest.approx(5.1 / 17), "cpu", 5_000)
    assert figures(sentence(waiting)) == [5.1, 17.0, 30, 5.0]
    alone = replace(waiting, no_task_ms=6_000)
    assert figures(sentence(alone)) == [5.1, 17.0, 30, 6.0, 5.0]
    assert bottleneck_of(replace(waiting, no_task_ms=5_000)).no_task_ms is None


def test_cause_may_be_the_next_bottleneck() -> None:
    """CPU is not the second of a run whose tasks take 4 s to start, nor close to a driver's 8 s."""
    starting = debug(cpu=2_000, other=11_000, no_scope=6_000, starting=4_000, unknown=1_000)
    driver = debug(cpu=10_000, disk=1_000, other=8_000, driver=8_000)
    unknown = debug(cpu=10_000, other=8_000, unknown=8_000)
    for answer, second, reported in (
        (starting, "starting", [6.0, 13.0, 46, 4.0]),
        (driver, "driver", [10.0, 19.0, 53, 8.0]),
        (unknown, "unknown", [10.0, 18.0, 56, 8.0]),
    ):
        assert bottleneck_of(answer).second == second
        assert figures(sentence(answer)) == reported
    either = debug(cpu=3_000, net=10_000, disk=1_000, other=8_000, unknown=8_000)
    neither = debug(cpu=1_900, net=10_000, other=8_000, unknown=8_000)
    assert ["CPU" in sentence(each) for each in (either, neither)] == [True, False], "it may be the longest, too"


def test_time_without_tasks_is_one_figure_and_not_repeated_as_next_bottleneck() -> None:
    found = debug(cpu=2_000, other=11_000, no_scope=6_000, driver=5_000)
    assert figures(sentence(replace(found, no_task_ms=11_000))) == [6.0, 13.0, 46, 11.0, 2.0]


def test_unknown_time_does_not_hide_longer_time_without_tasks() -> None:
    """Half of the run passed without a task: each known cause has less than the time of unknown cause."""
    causes = {"driver": 22_000.0, "no_scope": 16_000.0, "no_worker": 14_000.0, "unknown": 27_000.0}
    found = debug(cpu=11_000, other=79_000, driver_ms=42_000, **causes)
    assert figures(sentence(replace(found, no_task_ms=52_000))) == [22.0, 90.0, 24, 52.0, 27.0]
    assert bottleneck_of(debug(cpu=11_000, other=60_000, driver=26_000, unknown=27_000)).kind == "unknown"
    assert bottleneck_in({"cpu": 11_000, "other": 79_000}, found) == "driver"


def test_the_largest_known_part_may_be_a_cause() -> None:
    found = debug(cpu=2_000, other=24_000, unknown=16_000, driver=5_000, starting=3_000)
    assert (bottleneck_of(found).second, figures(sentence(found))[-1]) == ("driver", 5.0)


def test_driver_is_the_bottleneck_if_it_works_alone_for_half_of_the_run() -> None:
    """Of its 8 s the log shows the cause of 1 s only; no cause is known of the others."""
    found = debug(cpu=3_000, other=9_000, driver=1_000, unknown=8_000, driver_ms=8_000)
    assert bottleneck_of(found) == Bottleneck("driver", "driver", 8_000, pytest.approx(2 / 3), "cpu", 3_000)
    assert figures(sentence(found)) == [8.0, 12.0, 67, 3.0]
    assert bottleneck_of(replace(found, driver_ms=6_000)).kind == "unknown"


def test_unknown_time_is_not_a_cause() -> None:
    found = debug(cpu=2_000, other=21_500, unknown=20_000, starting=1_500)
    assert bottleneck_of(found) == Bottleneck("unknown", "unknown", 20_000, pytest.approx(20 / 23.5), "cpu", 2_000)
    assert figures(sentence(found)) == [20.0, 23.5, 85, 2.0]
    assert len(figures(sentence(debug(cpu=10, other=25_990, unknown=25_990)))) == 3, "10 ms of CPU are not worth it"
    assert bottleneck_of(debug(other=5_000, unknown=5_000)).second is None


def test_run_of_zero_length_has_no_bottleneck() -> None:
    assert bottleneck_of(debug()).kind == "nothing"
    assert figures(sentence(debug())) == []


def test_a_resource_of_a_framework_has_its_own_name() -> None:
    run = debug(cpu=1_000)
    run = replace(run, runtime_ms=5_000, resource_ms={"cpu": 1_000, "disk": 0, "net": 0, "gpu": 4_000, "other": 0})
    assert figures(sentence(run, (*known(), GPU))) == [4.0, 5.0, 80]
    assert "GPU" in sentence(run, (*known(), GPU))


def test_json_names_what_the_sentence_names() -> None:
    """Of every kind of answer: the key in JSON is that of the bottleneck, and each has a sentence of its own."""
    causes = ("no worker", "no scope", "driver", "no task", "starting", "upstream", "unknown")
    answers = [debug(net=9_000), debug(other=9_000, unknown=5_000, starting=4_000, driver_ms=8_000)]
    answers += [debug(other=9_000, **{cause.replace(" ", "_"): 9_000}) for cause in causes]
    named = {}
    for each in answers:
        reported = completed(each, HEADER)
        assert as_json(reported)["bottleneck"] == bottleneck_of(each).name
        named[as_json(reported)["bottleneck"]] = sentence(each)
    assert set(named) == {"net", *causes}
    assert len(set(named.values())) == len(named)
    assert all(each.startswith("Bottleneck: ") for each in named.values())


# Words --------------------------------------------------------------------------------------------------------------


def test_causes_use_the_vocabulary_of_the_framework() -> None:
    words = {"no worker": "executors", "no scope": "query", "driver": "driver", "no task": "task"}
    assert all(word in cause_words(cause, SPARK) for cause, word in words.items())  # type: ignore[arg-type]
    plain = Vocabulary()
    assert {"tasks", "stages"} <= set(cause_words("upstream", plain).split())
    assert "workers" in cause_words("no worker", plain)
    assert [plural(each) for each in ("query", "process", "day", "box")] == ["queries", "processes", "days", "boxes"]


# Help, next step, what was not seen ---------------------------------------------------------------------------------


def test_best_whatif_is_a_doubling_with_a_noticeable_gain() -> None:
    tenfold, network = WhatIf("tenfold", "network=10x", 5_000.0), WhatIf("network", "network=2x", 9_000.0)
    disk, refused = (
        WhatIf("disk", "disk=2x", 9_500.0),
        WhatIf("memory", "memory=2x", None, refused=(InvalidQuestion("no"),)),
    )
    assert best_help([tenfold, disk, network, refused], 10_000.0) is network
    assert best_help([disk, refused], 9_700.0) is None  # 2.1 % less
    assert best_help([refused], 10_000.0) is None


def test_next_step_is_samples_then_an_index_then_the_scarce_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    words = replace(SPARK, settings={"executors": "workers", "bandwidth": "network"})
    header = replace(HEADER, vocabulary=words)
    on_net, waiting = bottleneck_of(debug(net=9)), bottleneck_of(debug(other=9, no_worker=9))
    blind = replace(header, has_samples=False, indexes=())
    assert next_step(blind, on_net).kind == "setup"
    assert next_step(blind, on_net).facts == {"framework": "spark"}
    unplaced = next_step(replace(header, indexes=()), on_net)
    assert (unplaced.kind, unplaced.facts) == ("build", {"index": "spark-4.0.1"})
    assert next_step(header, on_net).facts == {"setting": "bandwidth=2x,4x,8x"}
    assert next_step(header, waiting).facts == {"setting": "cores=2x,4x,8x"}
    assert next_step(header, bottleneck_of(debug(cpu=9))).facts == {"setting": "cores=2x,4x,8x"}
    refused = [WhatIf("twice the slots", "cores=2x", None, refused=(InvalidQuestion("it keeps its parallelism"),))]
    assert next_step(header, bottleneck_of(debug(cpu=9)), refused).facts == {"setting": "cpu_speed=2x,4x,8x"}
    bare = Framework(
        name="bare",
        title="Bare",
        reader=Reader(recognise=lambda _: None, read=lambda _: None),
    )  # type: ignore[arg-type, return-value]
    monkeypatch.setattr("crystalperf.query.advise.verdict.get", lambda _: bare)
    assert next_step(blind, on_net).kind == "predict"
    assert next_step(replace(header, indexes=()), on_net).kind == "predict"
    assert not_recorded_notes(debug(), blind) == ()
    assert not_recorded_notes(debug(), replace(header, indexes=()))[0].remedy is None


def test_missing_measurements_say_what_would_show_them() -> None:
    seen = replace(debug(cpu=1), not_recorded=(BlockedThreadsUnsampled(),))
    assert not_recorded_notes(seen, HEADER) == seen.not_recorded
    unplaced, kept = not_recorded_notes(seen, replace(HEADER, indexes=()))
    assert (unplaced.remedy, kept) == (Remedy("build the index", {"index": "spark-4.0.1"}), BlockedThreadsUnsampled())
    blind = replace(HEADER, has_samples=False)
    kept, unsampled = not_recorded_notes(seen, blind)
    assert unsampled.remedy == Remedy("set up the job", {"framework": "spark"})
    assert not_recorded_notes(replace(seen, not_recorded=(unsampled,)), blind) == (unsampled,)  # said once
    assert completed(debug(other=9, no_worker=9), HEADER).bottleneck == "no worker"


# The knee -----------------------------------------------------------------------------------------------------------


def predicted(setting: str, ms: float | None, **more: object) -> Prediction:
    refused = () if ms is not None else (InvalidQuestion("nothing tells"),)
    asked = Prediction("all", "makespan", setting, 110.0, 111.0, ms, refused=refused)
    return replace(asked, **more)  # type: ignore[arg-type]


def sweep(*points: tuple[float, float | None]) -> Sweep:
    """Predicted times at amounts of cores."""
    reported = tuple(predicted(f"cores={amount:g}", ms) for amount, ms in points)
    return Sweep(reported, tuple(amount for amount, _ in points))


@pytest.mark.parametrize(
    ("times", "knee"),
    [
        ([100.0, 60.0, 40.0, 39.0], 2),
        ([100.0, 95.0, 50.0], 0),  # a later gain does not make up for a step without one
        ([100.0, 80.0, 64.0], 2),
        ([100.0, None, 64.0], None),
    ],
)
def test_the_knee_is_the_last_worthwhile_doubling(times: list[float | None], knee: int | None) -> None:
    found = knee_of(sweep(*((2**n, ms) for n, ms in enumerate(times, 1))))
    assert (None if found is None else found.point) == knee


def test_the_knee_counts_per_doubling() -> None:
    # Four times the cores save 15 %: less than 10 % per doubling.
    few, more = knee_of(sweep((2, 100.0), (8, 85.0))), knee_of(sweep((2, 100.0), (8, 79.0)))
    assert (few.point, more.point) == (0, 1)
    assert (few.worth, more.worth) == (False, True)  # of 110 ms recorded, 100 save less than a tenth


def test_knee_of_a_sweep_with_more_work_uses_time_per_work() -> None:
    """Twice the ranks of a training take a fifth longer for a step of twice the work, four times the ranks 3 times."""
    reported = [predicted(f"ranks={2**n}", ms, work_ratio=2.0**n) for n, ms in enumerate([110.0, 132.0, 330.0])]
    ranks = Sweep(tuple(reported), (1, 2, 4))
    found = knee_of(ranks)
    assert (found.point, found.worth) == (1, True)
    assert "ranks=2 " in knee_sentence(found, ranks)
    plain = sweep((1, 110.0), (2, 132.0))
    none = knee_of(plain)
    assert not none.worth
    assert figures(knee_sentence(none, plain)) == [10]


def test_a_sweep_of_several_settings_or_downwards_has_no_knee() -> None:
    assert knee_of(Sweep((predicted("cores=2, network=2x", 100.0), predicted("cores=4, network=2x", 50.0)))) is None
    assert knee_of(sweep((4, 50.0), (2, 100.0))) is None
    assert knee_of(sweep((4, 50.0))) is None


# A real run ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A real log, without recordings."""
    return profile([LOG], output=tmp_path_factory.mktemp("run") / "q9.duckdb")


def test_a_sweep_knows_what_is_varied(run: Run) -> None:
    def amounts(*settings: str, **more: Any) -> tuple[float, ...]:
        return run.sweep(settings, **more).amounts

    assert amounts("cores=2,4") == (2, 4)
    assert amounts("network=1x,2x") == (1, 2)
    assert amounts("network=100Mbps,1Gbps", recorded=["network=1Gbps"]) == (12.5e6, 125e6)
    assert amounts("cores=2,4x") == ()
    assert amounts("cores=2,4", "network=2x") == ()


def test_a_refused_point_leaves_the_others_their_answers(run: Run) -> None:
    first, second = run.sweep(["disk=1x,500MB/s"]).points
    assert (first.predicted_ms, second.predicted_ms) == (first.runtime_ms, None)
    assert second.setting == "disk=500MB/s"
    assert second.remedy == Remedy("state what the run had", {"setting": "disk"})
    assert second.refused == (RecordedValueUnknown("disk=500MB/s", "disk"),)
    alone = run.predict(["disk=500MB/s"])
    assert (alone.refused, alone.remedy) == (second.refused, second.remedy)
    with pytest.raises(SettingError):
        run.predict()


def test_unchanged_scenario_is_the_replay(run: Run) -> None:
    unchanged = run.baseline()
    assert unchanged.setting == "unchanged"
    assert unchanged.predicted_ms == unchanged.runtime_ms
    assert unchanged.replayed_ms == pytest.approx(unchanged.runtime_ms, rel=0.05)


def test_verdict_reports_its_progress_step_by_step(run: Run) -> None:
    steps: list[str] = []
    found = run.verdict(steps.append)
    assert len(steps) == len(found.what_ifs) + 2, "the path, each what-if, what to do"
    assert all(each.question in step for each, step in zip(found.what_ifs, steps[1:-1], strict=True))
    assert found.bottleneck.kind == "cause"
    assert found.bottleneck.name == found.debug.bottleneck == "no worker"
    assert found.best.setting == "cpu_speed=2x"
    assert found.next.kind == "setup"
    assert found.replay_error_ratio == pytest.approx(run.baseline().replay_error_ratio)


# Another framework --------------------------------------------------------------------------------------------------


def test_run_with_a_fourth_resource_uses_its_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kernels of 4 s and 5 s, one after the other, 3.5 s and 3 s of them measured on the GPU."""
    words = Vocabulary(
        worker="process", slot="stream", stage="kernel group", task="kernel", driver="host", scope="step"
    )
    bare = Framework(
        name="bare",
        title="Bare",
        reader=Reader(recognise=lambda _: None, read=lambda _: None),
        vocabulary=words,
    )  # type: ignore[arg-type, return-value]
    monkeypatch.setitem(frameworks(), "bare", bare)
    facts = {"app_id": "j", "framework": "bare", "started_at_ms": 0, "duration_ms": 10_000.0, "name": "train"}
    run = contract.of_rows(
        facts,
        [contract.Worker("w", 1, "h")],
        [contract.Stage("kernel:0", 1, 0, 4_000.0), contract.Stage("kernel:1", 1, 4_000.0, 9_000.0)],
        [
            contract.Task(0, "kernel:0", "w", 0.0, 4_000.0, host="h", measured_ms={"gpu": 3_500.0}),
            contract.Task(1, "kernel:1", "w", 4_000.0, 9_000.0, host="h", measured_ms={"gpu": 3_000.0}),
        ],
        [contract.Edge("kernel:0", "kernel:1", "barrier", "data")],
        more_resources=[GPU],
    )
    file = tmp_path / "run.duckdb"
    write_run(gather(run, bare, Problems()), file)
    found = Run(file).verdict()
    assert found.bottleneck.name == found.debug.bottleneck == "gpu"
    assert (found.bottleneck.time_ms, found.debug.runtime_ms) == (6_500, 10_000)
    (asked,) = [each for each in found.what_ifs if each.setting == "gpu_speed=2x"]
    assert asked.predicted_ms == pytest.approx(6_750, rel=0.01)
    assert found.best == asked
    assert (found.next.kind, found.next.facts) == ("predict", {"setting": "gpu_speed=2x,4x,8x"})
    plain = json.loads(json.dumps(as_json(found), allow_nan=False))
    check(plain, schemas()["verdict"], schemas()["verdict"])
    text = verdict_text(found, next_command(found.next, file), "run", full=True) + debug_text(found.header, found.debug)
    assert figures(text.split("\n")[0]) == [1, 1, 10.0]
    assert [6.5, 10.0, 65] in [figures(line)[:3] for line in text.split("\n")]
    assert {"process", "stream", "kernels"} <= set(text.split())
    assert not re.search("executor|stage|task|driver|spark", text, re.IGNORECASE)


# JSON ---------------------------------------------------------------------------------------------------------------


def check(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> None:
    """As much of JSON Schema as ours use; also that no field is there that they do not have."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        fitting = [each for each in schema["anyOf"] if (each.get("type") == "null") == (value is None)]
        if len(fitting) > 1:  # a value of a setting: text, a number or a flag
            assert isinstance(value, str | int | float), value
            return None
        assert len(fitting) == 1, schema
        return check(value, fitting[0], whole)
    if "const" in schema:
        assert value == schema["const"]
    if "enum" in schema:
        assert value in schema["enum"]
    types = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool}
    if "type" in schema and schema["type"] != "null":
        assert isinstance(value, types[schema["type"]]), (value, schema)
    if "properties" in schema:
        assert list(schema["properties"]) == schema["required"]
        is_open = schema.get("additionalProperties") is True
        assert list(value)[: len(schema["required"]) if is_open else None] == schema["required"]
        for name, each in schema["properties"].items():
            check(value[name], each, whole)
    elif isinstance(value, dict) and schema.get("additionalProperties") is not True:
        for each in value.values():
            check(each, schema["additionalProperties"], whole)
    if isinstance(value, list):
        sides = schema.get("prefixItems")
        assert sides is None or len(sides) == len(value)
        for each, shape in zip(value, sides or [schema["items"]] * len(value), strict=True):
            check(each, shape, whole)
    return None


def test_the_schemas_are_those_in_docs() -> None:
    kept = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "schema").iterdir()}
    written = {kind: schema_text(schema) for kind, schema in schemas().items()} | {"README": schema_page()}
    assert kept == written, "write them again with `python -m crystalperf.query.text.as_json --write docs/schema`"


def test_real_answers_match_their_schemas(run: Run, tmp_path: Path) -> None:
    found = run.verdict()
    machines = tmp_path / "machines.csv"
    machines.write_text("name,price_per_hour,cores\nsmall,1,2\nbig,2,4\n", encoding="utf-8")
    text = zstandard.ZstdDecompressor().stream_reader(LOG.read_bytes(), read_across_frames=True).read()
    rerun = tmp_path / "rerun"
    rerun.write_bytes(text.replace(found.header.app_id.encode(), b"app-20261121113629-0001"))
    again = profile([rerun], output=tmp_path / "rerun.duckdb")
    answers = [
        found,
        found.debug,
        found.header,
        run.page_data(found),
        Profiled(str(run.path), found.header),
        run.predict(["cores=2x"]),
        run.predict(["network=10x"]),  # refused, with bounds
        run.sweep(["cores=2,4"]),
        run.predictions(["cores=2x"]),
        run.predict(["cores=2x"], reruns=[Other("again", again)]),
        run.advise(["cores=2x"]),
        compare(run, again),
        comparison_page(run, again),
        gate({"one": run}, {"again": again}, [slowdown("10%"), budget("runtime=1h", {})]),
        run.priced(machines, "small", counts=[2], deadline_ms=1e6),
        tune(run, limits="cores=8"),
        ledger([again], backtest=True),
        Failure("nothing tells", Remedy("state what the run had", {"setting": "disk"})),
    ]
    assert {type(each) for each in answers} == set(KINDS)
    for each in answers:
        plain = json.loads(json.dumps(as_json(each), allow_nan=False))
        schema = schemas()[KINDS[type(each)]]
        check(plain, schema, schema)
        assert plain.pop("schema") == f"crystalperf.{KINDS[type(each)]}/2"
        msgspec.convert(plain, type(each))  # and a program of ours can read it back


def test_json_keeps_all_former_fields() -> None:
    """Fields by their new names; waves, skew and the others that are computed among them."""
    facts = StageFacts(
        id="stage:1.0", name="work", scope="sql:1", tasks=6, slots=4, length_ms=1.0, path_ms=1.0, median_ms=3.0,
        longest_ms=10.0, median_bytes=3.0, most_bytes=9.0, task_ms=1.23456, idle_ms=0.0, starting_ms=0.0,
        scheduler_delay_ms=0.0, gc_ms=0.0, spill_bytes=0, resource_ms={"cpu": 1.23456},
    )  # fmt: skip
    stage = StageRef("stage:1.0", "work")
    finding = GarbageCollection(5.0004, "measured", MoreMemory(fewer_slots=True), stage, 0.123456, 2)
    reported = as_json(replace(debug(cpu=1.0), stages=(facts,), findings=(finding,)))
    (shown_stage,) = reported["stages"]
    assert (shown_stage["waves"], shown_stage["skew_time"], shown_stage["skew_bytes"]) == (1.5, 3.333, 3.0)
    assert (shown_stage["task_ms"], shown_stage["resource_ms"]) == (1.235, {"cpu": 1.235})
    (shown,) = reported["findings"]
    assert shown["text"]
    assert shown["advice"].pop("text")
    assert {**shown, "text": ""} == {
        "kind": "garbage-collection",
        "cost_ms": 5.0,
        "basis": "measured",
        "text": "",
        "advice": {"kind": "more-memory", "fewer_slots": True},
        "evidence": {"stage": {"id": "stage:1.0", "name": "work"}, "share": 0.1235, "other_stages": 2},
    }
    point = replace(
        predicted("cores=2x", np.float64(80.12345)),
        interval_ms=(np.float64(70.0), 90.0),
        interval_shares={"model": 0.123456},
        stages=(StagePrediction("stage:1.0", "work", 1.0, None),),
    )
    reported = as_json(point)
    assert reported["predicted_ms"] == 80.123
    assert reported["interval_shares"] == {"model": 0.1235}
    assert reported["replay_error_ratio"] == 0.009091
    assert reported["stages"] == [{"id": "stage:1.0", "name": "work", "recorded_ms": 1.0, "predicted_ms": None}]
    assert type(reported["predicted_ms"]) is type(reported["interval_ms"][0]) is float
    reported = as_json(Sweep((point, point), (2.0, 4.0)))
    assert [each["setting"] for each in reported["points"]] == ["cores=2x", "cores=2x"]
    assert reported["knee"] == {"point": 0, "worth": True, "least_share": 0.1}
    assert as_json(HEADER)["resources"][2]["overhead_ms"] == 0.0067  # of the model, not measured: not rounded
