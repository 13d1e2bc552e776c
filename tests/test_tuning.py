"""A tuned configuration: the search, what it may ask for, and how it is written."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crystalperf as cp
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.advise.configurations import Grid, Limits
from crystalperf.query.advise.search import search
from crystalperf.query.advise.tuning import Tuner
from crystalperf.query.frameworks.spark.partitions import LARGEST_PART, OPEN_COST, Parallelism, split_tasks
from crystalperf.query.results.tuning import Goal, Tuning
from crystalperf.query.text.tuning import fragment

LAB = Path(__file__).parent.parent / "lab" / "recordings"
DEMO = LAB / "demo-q9"
BUILDER = LAB / "first-hour" / "builder-settings.zstd"
LOCAL = LAB / "first-hour" / "small-files.zstd"

Answer = Callable[..., tuple[int, str, str]]


@cache
def profiled(path: Path) -> cp.Run:
    """The run of a log, in a file of its own: the shared cache has the demo's under the same name."""
    folder = Path(os.environ["CRYSTALPERF_HOME"]).parent / "tuning"
    folder.mkdir(exist_ok=True)
    return cp.profile([path], output=folder / f"{path.stem}.duckdb")


@cache
def tuned(*paths: Path, **options: object) -> Tuning:
    return cp.tune([profiled(each) for each in paths], **options)  # type: ignore[arg-type]


def values(answer: Tuning) -> dict[str, float]:
    """The tuned values by setting of a what-if; memory in bytes."""
    pairs = (each.split("=") for each in answer.setting.split(", ") if each)
    return {key: float(value.rstrip("B")) for key, value in pairs}


# The search -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), min_size=1, max_size=4))
def test_search_finds_the_best_point_of_independent_dimensions(factors: list[list[float]]) -> None:
    def score(point: Sequence[int]) -> float:
        return math.prod(each[value] for each, value in zip(factors, point, strict=True))

    sizes = [len(each) for each in factors]
    found = search(sizes, (0,) * len(sizes), score, most=10_000)
    assert found.score == pytest.approx(min(map(score, itertools.product(*map(range, sizes)))))
    assert found.complete
    assert found.tried <= math.prod(sizes)


@given(st.floats(1, 1000), st.floats(0.001, 1), st.floats(0, 2))
def test_search_finds_the_number_of_tasks_that_fits_the_slots(work_s: float, start_s: float, spread: float) -> None:
    """Waves of tasks on slots: the best number of tasks is another one for other slots."""
    slots, counts = [1, 2, 3, 4, 6, 8, 12, 16], [1, 2, 4, 8, 12, 16, 24, 32, 64, 200, 400]

    def score(point: Sequence[int]) -> float:
        have, tasks = slots[point[0]], counts[point[1]]
        return math.ceil(tasks / have) * (work_s / tasks + start_s) + spread * have  # more slots cost, too

    found = search([len(slots), len(counts)], (1, 9), score, most=1000)
    best = min(map(score, itertools.product(range(len(slots)), range(len(counts)))))
    assert found.score == pytest.approx(best)


def test_search_stops_at_its_most_scores_and_says_so() -> None:
    tried: list[tuple[int, ...]] = []

    def score(point: tuple[int, ...]) -> float:
        tried.append(point)
        return -sum(point)

    found = search([50, 50], (0, 0), score, most=30)
    assert (len(tried), found.tried, found.complete) == (30, 30, False)
    assert len(set(tried)) == 30


def test_search_passes_over_impossible_points() -> None:
    found = search([5], (0,), lambda point: None if point[0] % 2 else -point[0], most=100)
    assert (found.point, found.tried) == ((4,), 3)


@pytest.mark.later
@pytest.mark.parametrize("goal", ["time", "cost"])
@pytest.mark.parametrize("limits", [Limits(), Limits(cores=8, memory=8 * 2**30)])
def test_search_finds_what_exhaustive_search_of_a_real_run_finds(goal: Goal, limits: Limits) -> None:
    job = profiled(DEMO)._tuned_job("demo")
    knobs = [replace(each, values=each.values[::3]) for each in job.tunable.knobs if each.key != "split"]
    grid = Grid([replace(job, tunable=replace(job.tunable, knobs=tuple(knobs)))], goal, limits)
    tuner = Tuner(grid)
    every = [tuner.at(point) for point in itertools.product(*map(range, grid.sizes))]
    best = min(each for each in every if each is not None)
    found = search(grid.sizes, grid.start, tuner.at, most=1000)
    assert found.score[:3] == best[:3]
    assert found.complete


# What it asks for -----------------------------------------------------------------------------------------------------


def test_without_limits_it_asks_for_no_more_than_the_run_had() -> None:
    run = profiled(DEMO)
    had = run.execution().recorded
    answer = tuned(DEMO, goal="cost")
    found = {"workers": had["workers"], "cores": had["cores"], "memory": had["memory"], **values(answer)}
    slots = (had["workers"] or 0) * (had["cores"] or 0)
    assert answer.limits["cores"] == slots
    assert (found["workers"] or 0) * (found["cores"] or 0) <= slots
    assert (found["cores"] or 0) <= (had["cores"] or 0)  # whether machines have more cores is unknown
    assert not answer.stated


def test_its_prediction_is_that_of_its_settings() -> None:
    answer = tuned(DEMO, limits="cores=16,memory=16g")
    asked = profiled(DEMO).predict(answer.setting.split(", "))
    assert answer.runs[0].predicted_ms == pytest.approx(asked.predicted_ms)
    assert answer.runs[0].predicted_ms is not None
    assert answer.runs[0].predicted_ms < 0.6 * answer.runs[0].runtime_ms


def test_memory_of_executors_includes_their_overhead() -> None:
    answer = tuned(DEMO, limits="cores=16,memory=8g")
    found = {"workers": 2.0, "memory": 2.0**30, **values(answer)}
    heap = found["memory"]
    assert found["workers"] * (heap + max(384 * 2**20, 0.1 * heap)) <= 8 * 2**30
    assert answer.stated == ("cores", "memory")


def test_less_memory_than_tasks_used_is_impossible() -> None:
    job = profiled(DEMO)._tuned_job("demo")
    need = job.tunable.least_bytes
    assert need is not None
    grid = Grid([job], "time", Limits(memory=2 * (need(2) + 384 * 2**20) - 2**20))
    assert not grid.allows({**grid.recorded, "memory": need(2) - 1})
    assert all(
        found[0]["memory"] >= min(need(found[0]["cores"]), 2.0**30)
        for point in itertools.product(*map(range, grid.sizes))
        if (found := grid.values(point)) is not None
    )


def test_cost_saves_slots_but_takes_no_longer_than_the_run_or_the_deadline() -> None:
    cheap = tuned(DEMO, goal="cost").runs[0]
    assert cheap.predicted_ms is not None
    assert cheap.cost is not None
    assert cheap.predicted_cost is not None
    assert cheap.predicted_ms <= 1.03 * cheap.runtime_ms
    assert cheap.predicted_cost < cheap.cost
    fast = tuned(DEMO, goal="cost", limits="cores=16,memory=16g", deadline_ms=70_000).runs[0]
    assert fast.predicted_ms is not None
    assert fast.predicted_ms <= 70_000


def test_local_run_has_its_master_changed_and_no_executors() -> None:
    answer = tuned(LOCAL, limits="cores=4")
    names = {change.name: change.after for each in answer.settings for change in each.settings}
    assert names["spark.master"] == "local[4]"
    assert not [name for name in names if "executor" in name]


@pytest.mark.later
def test_several_runs_get_what_is_best_for_the_one_that_gains_least() -> None:
    one, other = LAB / "changed" / "q9-base", LAB / "changed" / "q9-network"
    both = tuned(one, other)
    assert len(both.runs) == 2
    alone = {each.name: each.predicted_ms for each in (tuned(one).runs[0], tuned(other).runs[0])}
    for each in both.runs:
        assert each.predicted_ms is not None
        assert alone[each.name] is not None
        assert each.predicted_ms >= 0.98 * (alone[each.name] or 0.0)
    assert max((each.predicted_ms or 0.0) / each.runtime_ms for each in both.runs) <= 1.0


def test_prices_choose_the_machine(tmp_path: Path) -> None:
    table = tmp_path / "machines.csv"
    table.write_text("name,price_per_hour,cores,memory,network\nsmall,1,2,2GiB,1Gbps\nfast,1.05,2,2GiB,10Gbps\n")
    answer = tuned(DEMO, prices=table, ran_on="small")
    assert (answer.machine.split(" ")[-1], answer.cost_unit) == ("fast", "price")
    assert "network=10x" in answer.setting
    run = answer.runs[0]
    workers = values(Tuning(**{**vars(answer), "setting": answer.setting.replace("10x", "10")})).get("workers", 2.0)
    assert run.predicted_cost == pytest.approx(1.05 * workers * (run.predicted_ms or 0.0) / 3.6e6)


def test_two_runs_of_different_frameworks_are_refused() -> None:
    with pytest.raises(InputError, match="another framework"):
        tuned(DEMO, LAB / "sweeps" / "pytorch" / "cnn-r2-c0.6-n200.0")


@pytest.mark.parametrize("limit", ["cores=2x", "cores", "disk=4", "memory=lots"])
def test_invalid_limit_is_one_sentence(limit: str) -> None:
    with pytest.raises(SettingError):
        tuned(BUILDER, limits=limit)


# Other frameworks and settings ----------------------------------------------------------------------------------------


def test_parallelism_of_a_stream_needs_slots_and_raises_its_rate() -> None:
    ads = LAB / "sweeps" / "flink" / "011-ads-0"
    answer = tuned(ads, limits="workers=4")
    found = {"workers": 2.0, "cores": 2.0, **values(answer)}
    subtasks = [value for key, value in found.items() if key.startswith("tasks.")]
    assert subtasks
    assert max(subtasks) <= found["workers"] * found["cores"]
    assert answer.cost_unit == "worker-hours"
    rates = answer.runs[0].rate_per_s
    assert rates is not None
    assert rates[1] > 1.2 * rates[0]
    assert "setParallelism(" in fragment(answer)
    assert {"taskmanager.memory.managed.size", "execution.buffer-timeout.interval"} <= {
        each.setting for each in answer.not_tuned
    }


@pytest.mark.later
def test_stream_that_saves_workers_keeps_twice_its_rate() -> None:
    ads = LAB / "sweeps" / "flink" / "011-ads-0"
    answer = tuned(ads, goal="cost")
    rates = answer.runs[0].rate_per_s
    facts = profiled(ads).baseline().stream
    assert values(answer)["workers"] == 1
    assert rates is not None
    assert facts is not None
    assert rates[1] >= 2 * facts.recorded_per_s / 1.03


def test_batch_of_a_training_changes_only_within_a_stated_limit() -> None:
    cnn = LAB / "sweeps" / "pytorch" / "cnn-r2-c0.6-n200.0"
    assert not tuned(cnn).setting
    assert "changes-result" in {each.kind for each in tuned(cnn).not_tuned}
    answer = tuned(cnn, limits="batch=4x")
    assert answer.setting == "input=4x"
    assert answer.runs[0].work_ratio == 4
    assert answer.settings[0].saving.ms is not None
    assert answer.settings[0].saving.ms > 0


@pytest.mark.parametrize(
    ("count", "read_mib", "largest_mib", "cost_mib", "ratio", "then"),
    [
        (800, 100, 0.125, 0.001, 1024, 2),  # splits of 128 kB become half of the files each
        (800, 100, 0.125, 0.001, 8, 100),
        (1, 200, 2048, 2048, 0.05, 2),  # one split of up to 2 GiB, of which two slots get half each
        (1, 110, 128, 4, 0.4, None),  # Spark had planned two: it cannot split the file
        (2, 200, 128, 4, 0.25, None),  # a split for each slot: how large the files are is unknown
    ],
)
def test_file_partitions_follow_their_size_where_it_determined_them(
    count: int, read_mib: float, largest_mib: float, cost_mib: float, ratio: float, then: int | None
) -> None:
    settings = {LARGEST_PART: f"{largest_mib * 1024:.0f}k", OPEN_COST: f"{cost_mib * 1024:.0f}k"}
    assert split_tasks(Parallelism(2, 2, settings, split=ratio), count, read_mib * 2**20) == then


# How it is written ----------------------------------------------------------------------------------------------------


def test_setting_of_the_program_is_written_with_the_line_to_change_there() -> None:
    answer = tuned(BUILDER)
    text = fragment(answer)
    (line,) = [each for each in text.split("\n") if each and not each.startswith("#")]
    name, value = line.split(" ")
    assert name == "spark.sql.shuffle.partitions"
    assert int(value) < 100
    assert f'.config("{name}", "{value}")' in text
    assert answer.unverified == ("tasks",)
    saving = answer.settings[0].saving.ms
    run = answer.runs[0]
    assert saving == pytest.approx(run.runtime_ms - (run.predicted_ms or 0.0))
    assert run.interval_ms is not None
    assert run.interval_ms[1] >= run.runtime_ms  # it may have no effect


def test_unmodelled_settings_are_named_and_never_changed() -> None:
    answer = tuned(DEMO, limits="cores=16,memory=16g")
    named = {each.setting for each in answer.not_tuned}
    assert {"spark.sql.adaptive.enabled", "spark.sql.autoBroadcastJoinThreshold"} <= named
    assert not named & {change.name for each in answer.settings for change in each.settings}


@pytest.mark.later
@settings(max_examples=5, deadline=None)
@given(st.sampled_from([DEMO, BUILDER, LOCAL]))
def test_same_runs_have_the_same_answer(path: Path) -> None:
    assert fragment(tuned.__wrapped__(path)) == fragment(tuned(path))


def test_command_writes_the_file_once_and_json_has_it(crystalperf: Answer, tmp_path: Path) -> None:
    target = tmp_path / "tuned.conf"
    code, out, _ = crystalperf("tune", profiled(DEMO).path, "-o", target, "--limits", "cores=8,memory=8g")
    assert code == 0
    assert target.read_text(encoding="utf-8").startswith("# crystalperf tune")
    assert "spark.executor.cores" in out
    code, _, err = crystalperf("tune", profiled(DEMO).path, "-o", target)
    assert code == 1
    assert "--force" in err
    code, out, _ = crystalperf("tune", profiled(DEMO).path, "--json", "--limits", "cores=8,memory=8g")
    answer = json.loads(out)
    assert answer["schema"] == "crystalperf.tuning/2"
    assert [each for each in answer["configuration"].split("\n") if each and not each.startswith("#")]
    assert answer["advice"]["runs"]


@pytest.mark.parametrize(
    "wrong", [("--goal", "speed"), ("--prices", "x.csv"), ("--deadline", "10m"), ("-o", "no/such/folder/t.conf")]
)
def test_command_that_is_invalid_is_one_sentence(crystalperf: Answer, wrong: tuple[str, str]) -> None:
    code, out, err = crystalperf("tune", profiled(BUILDER).path, *wrong)
    assert (code, out) == (1, "")
    assert err.startswith("crystalperf: ")
    assert err.count("\n") == 1
