"""Comparisons of runs: parts that sum to the difference, causes that were made, stages matched by plan."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import crystalperf as cp
from crystalperf.cli.comparing import comparison_text
from crystalperf.cli.main import run as command
from crystalperf.indexes.errors import InputError
from crystalperf.query.compare.accounts import Account, StageAccount
from crystalperf.query.compare.causes import Sides, effects, totals
from crystalperf.query.compare.compare import Given, compared
from crystalperf.query.compare.matching import matched
from crystalperf.query.compare.pooling import pooled, typical
from crystalperf.query.compare.settings import differs
from crystalperf.query.diagnose.comparer import Comparer
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.comparison import (
    Collected,
    Comparison,
    ComputeWait,
    DeviceRate,
    NotCompared,
    Part,
    PausesLeftOut,
    Unexplained,
)
from crystalperf.query.results.words import Words
from crystalperf.query.text.comparison import verdict_sentence
from crystalperf.query.text.sentences import CORE, text_of
from tests.hand_made import figures
from tests.reading import profiled

ROOT = Path(__file__).resolve().parent.parent
CHANGED = ROOT / "lab" / "recordings" / "changed"
ODD = ROOT / "lab" / "recordings" / "odd"


def stage(name: str = "1", **values: object) -> StageAccount:
    """A stage of four tasks on two slots: 8 s of work in 4 s."""
    base = StageAccount(
        ids=(f"stage:{name}.0",), name="join", call_site="job.py:1", scope="sql:0", operators=("Scan", "Sort"),
        details=("Scan a", "Sort a"), start_ms=0.0, end_ms=4_000.0, wall_ms=4_000.0, resource_ms={"cpu": 4_000.0},
        task_ms={"compute": 6_000.0, "net": 2_000.0, "starting": 0.0, "other": 0.0, "repeated": 0.0}, tasks=4.0,
        slots=2.0, input_bytes=1e6, exchange_bytes=0.0, spill_bytes=0.0, longest_ms=2_000.0, mean_ms=2_000.0,
        longest_bytes=2.5e5, mean_bytes=2.5e5, delegates=False,
    )  # fmt: skip
    return replace(base, **values)  # type: ignore[arg-type]


def run(*stages: StageAccount, **values: object) -> Account:
    """A run of these stages, which waits for its driver for 1 s."""
    base = Account(
        runtime_ms=sum(each.wall_ms for each in stages) + 1_000.0, stages=stages, wait_ms={"driver": 1_000.0},
        scopes={"sql:0": "report"}, plans={"sql:0": ["Scan", "Sort"]}, workers=1.0, slots=2.0, memory_bytes=1e9,
        version="4.0.1", properties={},
    )  # fmt: skip
    return replace(base, **values)  # type: ignore[arg-type]


def causes(before: Account, after: Account) -> dict[tuple[str, str], float]:
    """ms by cause and subject, without those of 0."""
    found = totals(effects(Sides(before, after, Comparer(), ()), matched(before, after)))
    sums = {key: sum(each.ms for each in of_key) for key, of_key in found.items()}
    assert math.isclose(sum(sums.values()), after.runtime_ms - before.runtime_ms, abs_tol=1e-6)
    return {key: ms for key, ms in sums.items() if abs(ms) > 1e-6}


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        (run(stage(wall_ms=8_000.0, slots=1.0), slots=1.0), ("slots", "")),
        (
            run(
                stage(
                    wall_ms=8_000.0, input_bytes=2e6, longest_bytes=5e5, mean_bytes=5e5,
                    task_ms={"compute": 12_000.0, "net": 4_000.0, "starting": 0.0, "other": 0.0, "repeated": 0.0},
                )
            ),
            ("input", ""),
        ),
        (
            run(
                stage(
                    wall_ms=8_000.0,
                    task_ms={"compute": 6_000.0, "net": 10_000.0, "starting": 0.0, "other": 0.0, "repeated": 0.0},
                )
            ),
            ("device-rate", "net"),
        ),
        (run(stage(wall_ms=7_000.0, longest_ms=6_000.0, longest_bytes=8e5)), ("skew", "")),
        (run(stage(wall_ms=7_000.0, operators=("Scan", "Shuffle"), details=("Scan a", "Shuffle"))), ("plan", "")),
        (run(stage(), wait_ms={"driver": 5_000.0}, runtime_ms=9_000.0), ("waiting", "driver")),
        (run(stage(), stage("2", operators=("Write",), scope=None, details=("Write",))), ("work", "")),
    ],
)  # fmt: skip
def test_one_changed_factor_is_the_only_cause(after: Account, cause: tuple[str, str]) -> None:
    found = causes(run(stage()), after)
    assert max(found, key=lambda each: abs(found[each])) == cause
    assert found[cause] == pytest.approx(after.runtime_ms - 5_000.0, rel=0.02)


def test_the_opposite_comparison_has_the_opposite_parts() -> None:
    one, other = run(stage()), run(stage(wall_ms=9_000.0, slots=1.0), slots=1.0)
    there, back = causes(one, other), causes(other, one)
    assert there.keys() == back.keys()
    assert all(back[key] == pytest.approx(-ms) for key, ms in there.items())


def test_stages_match_by_plan_and_not_by_number() -> None:
    scan = stage("1", operators=("Scan",), details=("Scan a",))
    other_scan = stage("2", operators=("Scan",), details=("Scan b",))
    sort = stage("3", operators=("Sort",), details=("Sort",))
    renumbered = run(
        replace(other_scan, ids=("stage:7.0",)), replace(sort, ids=("stage:8.0",)), replace(scan, ids=("stage:9.0",))
    )
    pairs = {(one.id, other.id) for one, other in matched(run(scan, other_scan, sort), renumbered) if one and other}
    assert pairs == {("stage:1.0", "stage:9.0"), ("stage:2.0", "stage:7.0"), ("stage:3.0", "stage:8.0")}


def test_several_runs_are_pooled_to_their_median_runtime() -> None:
    runs = [run(stage(wall_ms=each)) for each in (4_000.0, 5_000.0, 12_000.0)]
    found = pooled(runs)
    assert found.runtime_ms == 6_000.0
    assert sum(each.wall_ms for each in found.stages) + sum(found.wait_ms.values()) == pytest.approx(6_000.0)
    assert typical([3.0, 1.0, 2.0, 4.0]) == 2


# Recorded runs --------------------------------------------------------------------------------------------------------


@cache
def rows() -> dict[str, dict[str, Any]]:
    """The pairs of lab/recordings/changed, by the name of the run after."""
    lines = (CHANGED / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["after"]: row for row in map(json.loads, lines)}


@cache
def given(name: str) -> Given:
    """A recorded run, and the interval of its query."""
    opened, row = profiled(CHANGED / name), json.loads((CHANGED / name / "run.json").read_text(encoding="utf-8"))
    with opened.reading() as connection:
        (started_ms,) = connection.execute("SELECT started_at_ms FROM runs").fetchall()[0]
    return Given(opened, name, f"{row['start_ms'] - started_ms}..{row['end_ms'] - started_ms}")


@cache
def pair(name: str) -> Comparison:
    return compared([given(rows()[name]["before"])], [given(name)])


def first_key(part: Part) -> str:
    return f"{part.kind}:{part.resource}" if isinstance(part, DeviceRate) else part.kind


def first_cause(found: Comparison) -> str:
    return first_key(found.parts[0])


@pytest.mark.parametrize("name", ["q12-slots", "q12-lost"])
def test_the_first_cause_is_the_one_that_was_made(name: str) -> None:
    found, right = pair(name), rows()[name]["causes"]
    assert first_cause(found) in right
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms)
    assert found.explained_share is not None
    assert found.explained_share > 0.8


@pytest.mark.later
@pytest.mark.parametrize("name", ["q12-network", "q12-input", "q12-cpu", "q12-broadcast", "even-skew"])
def test_other_made_causes_are_first(name: str) -> None:
    assert first_cause(pair(name)) in rows()[name]["causes"]


def test_a_prediction_for_the_resources_after_is_compared_with_what_came() -> None:
    found = pair("q12-slots")
    assert found.predicted is not None
    assert found.predicted.settings == ("cores=1",)
    assert found.predicted.actual_ms == found.after.runtime_ms
    assert found.predicted.error_ratio == pytest.approx(found.predicted.predicted_ms / found.after.runtime_ms - 1)
    assert pair("q12-lost").predicted is None


def test_settings_that_matter_come_first() -> None:
    settings = pair("q12-slots").settings
    assert {each.key: (each.before, each.after) for each in settings if each.matters} == {
        "spark.cores.max": ("4", "2"),
        "spark.executor.cores": ("2", "1"),
    }
    assert [each.matters for each in settings] == sorted((each.matters for each in settings), reverse=True)


@pytest.mark.parametrize(
    ("before", "after", "differ"),
    [
        ("spark://10.0.0.1:41311", "spark://10.0.0.1:36123", False),
        ("spark://alice@node-a.example:7077", "spark://node-b.example:7077", False),
        ("hdfs://node-a:8020/data", "hdfs://node-b:8020/other", True),
        ("app-20261127193315-0000", "app-20261128101500-0003", False),
        ("application_1700000000000_0001", "application_1700000099999_0002", False),
        ("/tmp/spark-1/jars", "/tmp/spark-2/jars", False),
        ("local[4]", "local[8]", True),
        ("0.25", "0.6", True),
        ("4", None, True),
        ("128MB", "256MB", True),
        (None, None, False),
    ],
)
def test_values_that_name_one_run_are_not_settings_that_differ(
    before: str | None, after: str | None, *, differ: bool
) -> None:
    assert differs(before, after) is differ


def test_another_port_of_the_master_is_not_a_setting_that_differs() -> None:
    assert "spark.master" not in {each.key for each in pair("q12-slots").settings}


@pytest.mark.parametrize(
    "name",
    [pytest.param("q12-slots"), *(pytest.param(each, marks=pytest.mark.later) for each in ("q12-lost", "q18-slots"))],
)
def test_swapped_sides_have_the_opposite_parts(name: str) -> None:
    def parts(found: Comparison) -> dict[tuple[str, str], float]:
        return {(first_key(each), getattr(each, "cause", "")): each.ms for each in found.parts}

    there, back = parts(pair(name)), parts(compared([given(name)], [given(rows()[name]["before"])]))
    assert {key: pytest.approx(-ms, abs=0.5) for key, ms in back.items()} == there


def test_pauses_are_left_out_and_said() -> None:
    shell = profiled(ODD / "idle-shell.zstd")
    found = cp.compare(shell, ODD / "busy-driver.zstd")
    (pauses,) = (each for each in found.not_compared if isinstance(each, PausesLeftOut))
    assert pauses.before_ms == pytest.approx(shell.header().duration_ms - found.before.runtime_ms)
    assert pauses.after_ms > 0.0
    whole = cp.compare(shell, ODD / "busy-driver.zstd", scope="whole")
    assert whole.before.runtime_ms == pytest.approx(shell.header().duration_ms)
    assert not [each for each in whole.not_compared if isinstance(each, PausesLeftOut)]


def test_the_screen_fits_and_shows_the_difference() -> None:
    for name in ("q12-slots", "q12-lost"):
        found = pair(name)
        text = comparison_text(found)
        assert text.count("\n") <= 45
        assert max(map(len, text.splitlines())) <= 80
        total = next(line for line in text.splitlines() if line.endswith("in total"))
        assert figures(total)[0] == pytest.approx(abs(found.change_ms) / 1000, abs=0.051)


def test_the_json_has_its_schema() -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "comparison.json").read_text(encoding="utf-8"))
    answer = cp.as_json(pair("q12-lost"))
    jsonschema.validate(answer, schema)
    assert [each["kind"] for each in answer["parts"]] == [each.kind for each in pair("q12-lost").parts]


def test_every_kind_has_a_sentence() -> None:
    text_of(Unexplained(0.0, "measured", ()), Words())  # imports all sentences
    for base in (Part, NotCompared):
        assert all(CORE.find(each) for each in base.__subclasses__())


def test_runs_that_cannot_be_compared_are_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    tiny = ODD / "tiny-tasks.zstd"
    with pytest.raises(InputError, match="the same run"):
        cp.compare(tiny, tiny)
    assert command(["compare", str(tiny), str(tmp_path / "nothing.log")]) == 1
    errors = [each for each in capsys.readouterr().err.splitlines() if not each.startswith("profiled ")]
    assert len(errors) == 1
    assert "nothing.log" in errors[0]
    assert command(["compare", str(tiny)]) == 2
    flink = next((ROOT / "lab" / "recordings" / "sweeps" / "flink").glob("037-*/"))
    with pytest.raises(InputError, match="one framework"):
        cp.compare(tiny, flink)


def test_runs_of_different_jobs_have_a_caution() -> None:
    found = cp.compare(ODD / "tiny-tasks.zstd", ODD / "busy-driver.zstd")
    assert [each.kind for each in found.not_compared] == ["different-jobs", "pauses-left-out"]
    assert sum(each.ms for each in found.parts) == pytest.approx(found.change_ms)


def test_every_setting_with_an_effect_is_kept_of_a_log() -> None:
    from crystalperf.query.frameworks.spark.log.collect import _KEPT_PROPERTIES

    keys = [each for each in get("spark").comparer.settings if not each.endswith(".")]
    assert all(_KEPT_PROPERTIES.fullmatch(each) for each in keys)


def shorter_trace(folder: Path, steps: int) -> Path:
    """The trace of a training, with the first `steps` of its three steps."""
    (source,) = (ROOT / "tests" / "data" / "training" / "torch-loader").iterdir()
    trace = json.loads(gzip.decompress(source.read_bytes()))
    starts = sorted(each["ts"] for each in trace["traceEvents"] if each.get("name", "").startswith("ProfilerStep#"))
    end = starts[steps]
    trace["traceEvents"] = [each for each in trace["traceEvents"] if each.get("ts", 0) < end]
    path = folder / source.name
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    return path


def test_a_range_that_is_printed_with_no_change_is_not_probably_longer() -> None:
    found = pair("q18-lost")
    for low, sure in ((1.003, False), (1.02, True)):
        seen = replace(found.difference, verdict="no change", ratio=1.3, ratio_low=low, ratio_high=1.6)
        assert ("Probably" in verdict_sentence(replace(found, difference=seen))) is sure


def test_one_side_with_samples_is_a_caution_and_faster_starts_do_not_take_longer() -> None:
    found = cp.compare(profiled(ROOT / "tests/data/eventlog/q9.zstd"), ROOT / "lab" / "recordings" / "demo-q9")
    assert [each.kind for each in found.not_compared] == ["one-side-sampled"]
    (wait,) = (each for each in found.parts if isinstance(each, ComputeWait))
    assert wait.ms > 0
    assert wait.start_ratio is None or wait.start_ratio > 1


def test_a_log_without_end_is_not_another_job() -> None:
    logs = ROOT / "tests" / "data" / "eventlog"
    found = cp.compare(profiled(logs / "q9-first-lines.lz4"), profiled(logs / "q9.zstd"))
    assert [each.kind for each in found.not_compared] == ["not-succeeded"]
    assert not found.decided
    assert comparison_text(found).split("\n\n")[1].startswith("Not decided")
    back = cp.compare(profiled(logs / "q9.zstd"), profiled(logs / "q9-first-lines.lz4"))
    assert not back.decided


def test_many_stages_without_counterpart_match_by_similar_operators_once() -> None:
    before = run(*(stage(str(each), operators=("Scan", "Sort", "Old"), details=()) for each in range(3)))
    after = run(*(stage(str(each), operators=("Scan", "Sort", "New"), details=()) for each in range(5)))
    pairs = matched(before, after)
    assert [(one.id, other.id) for one, other in pairs if one and other] == [
        (f"stage:{each}.0", f"stage:{each}.0") for each in range(3)
    ]
    assert sorted(other.id for one, other in pairs if one is None and other) == ["stage:3.0", "stage:4.0"]


@pytest.mark.parametrize(("before_ms", "after_ms", "times"), [(152.0, 189.0, "189 ms instead of 152 ms")])
def test_times_of_causes_have_a_unit_that_shows_their_difference(before_ms: float, after_ms: float, times: str) -> None:
    assert times in text_of(Collected(37.0, "modelled", (), before_ms, after_ms), Words())


def test_leaves_out_times_that_contradict_a_slower_cpu() -> None:
    same_way = ComputeWait(3_000.0, "guessed", (), 46_000.0, 54_000.0, 1.4)
    assert "54.0 s" in text_of(same_way, Words())
    assert "46.0 s" not in text_of(replace(same_way, before_ms=54_000.0, after_ms=46_000.0), Words())
