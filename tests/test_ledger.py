"""The ledger: entries survive other processes, kills and damage; later runs match by job, plan, resources and time."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import crystalperf as cp
from crystalperf.cli.ledger_command import ledger_text
from crystalperf.cli.main import run as command
from crystalperf.fleet.build import build
from crystalperf.fleet.summary import summarize
from crystalperf.indexes.errors import InputError, SettingError
from crystalperf.query.compare.plans import plan_hash
from crystalperf.query.ledger import store
from crystalperf.query.ledger.entries import Change, Entry, Predicted, Recommended, RunFacts
from crystalperf.query.ledger.facts import facts_of
from crystalperf.query.ledger.matching import SKEW_MS, KnownRun
from crystalperf.query.ledger.scoring import scored, wilson
from crystalperf.query.ledger.store import HEADER, Kept, append, place, read, read_about, remove
from crystalperf.query.results.ledger import Followed, Ledger, Match
from tests import spark_events
from tests.reading import profiled

ROOT = Path(__file__).resolve().parent.parent
CHANGED = ROOT / "lab" / "recordings" / "changed"
DAY_MS = 86_400_000
NOW_MS = 1_795_900_000_000
RESOURCES = {"workers": 2.0, "cores": 2.0, "memory": 1e9, "tasks": 200.0, "input": 1e8}


def facts(app: str = "app-1", began_ms: float = NOW_MS - DAY_MS, **values: Any) -> RunFacts:
    """A run of 60 s on 2 workers of 2 slots."""
    base = RunFacts(
        framework="spark", name="report", app_id=app, attempt=None, started_at_ms=int(began_ms), plan="a",
        runtime_ms=60_000.0, step_ms=None, ended_well=True, resources=RESOURCES,
        settings={"spark.sql.shuffle.partitions": "200"},
    )  # fmt: skip
    return replace(base, **values)


def predicted(**values: object) -> Predicted:
    """The prediction of 35 s for twice the slots."""
    base = Predicted("cores=2x", "all", {**RESOURCES, "cores": 4.0}, {}, 35_000.0, (30_000.0, 40_000.0))
    return replace(base, **values)  # type: ignore[arg-type]


def made(*predictions: Predicted, at_ms: float = NOW_MS, run: RunFacts | None = None) -> Entry:
    return Entry(int(at_ms), "0", "predict", run or facts(), predictions)


def later(app: str = "app-2", after_ms: float = DAY_MS, seen_after_ms: float = 60_000.0, **values: Any) -> KnownRun:
    """A run of 40 s with twice the slots, a day after the prediction."""
    own = {"resources": {**RESOURCES, "cores": 4.0}, "runtime_ms": 40_000.0, **values}
    return KnownRun(facts(app, NOW_MS + after_ms, **own), NOW_MS + after_ms + seen_after_ms)


def ledger(entries: list[Entry], *runs: KnownRun, backtest: bool = False, job: str = "") -> Ledger:
    return scored(Path("ledger.jsonl"), Kept(tuple(entries)), runs, job=job, backtest=backtest, writable=True)


def matches(*given: object, **more: object) -> list[Match]:
    return [each for job in ledger(*given, **more).jobs for each in job.matches]  # type: ignore[arg-type]


# Matching -------------------------------------------------------------------------------------------------------------


def test_a_later_run_with_the_predicted_resources_shows_the_error() -> None:
    (found,) = matches([made(predicted())], later())
    assert (found.recorded, found.run, found.setting) == ("app-1", "app-2", "cores=2x")
    assert found.error_ratio == pytest.approx(35 / 40 - 1)
    assert found.inside is True
    assert matches([made(predicted())], later(runtime_ms=40_001.0))[0].inside is False


@pytest.mark.parametrize(
    "other",
    [
        {"resources": RESOURCES},
        {"resources": {**RESOURCES, "cores": 4.0, "workers": 4.0}},
        {"resources": {**RESOURCES, "cores": 4.0, "memory": 2e9}},
        {"resources": {**RESOURCES, "cores": 4.0, "tasks": 400.0}},
        {"resources": {**RESOURCES, "cores": 4.0, "input": 1.06e8}},
        {"resources": {"cores": 4.0, "input": 1e8}},
        {"plan": "b"},
        {"name": "another report"},
        {"framework": "flink"},
        {"ended_well": False},
    ],
)
def test_a_run_of_other_resources_or_another_job_does_not_match(other: dict[str, Any]) -> None:
    assert not matches([made(predicted())], later(**other))
    assert not matches([made(predicted())], later(**other), backtest=True)


def test_input_may_vary_by_five_percent() -> None:
    near = {**RESOURCES, "cores": 4.0, "input": 1.04e8}
    assert len(matches([made(predicted())], later(resources=near))) == 1


def test_input_that_the_scenario_changes_is_compared_too() -> None:
    scenario = predicted(setting="input=2x", expected={**RESOURCES, "input": 2e8})
    assert not matches([made(scenario)], later(resources=RESOURCES))
    assert len(matches([made(scenario)], later(resources={**RESOURCES, "input": 2e8}))) == 1


def test_a_run_before_the_prediction_counts_only_in_a_backtest() -> None:
    early = later(after_ms=-2 * DAY_MS)
    assert not matches([made(predicted())], early)
    assert len(matches([made(predicted())], early, backtest=True)) == 1


def test_clocks_may_differ_by_minutes() -> None:
    slow = later(after_ms=60_000.0 - SKEW_MS, seen_after_ms=SKEW_MS)
    assert len(matches([made(predicted())], slow)) == 1
    assert not matches([made(predicted())], later(after_ms=-60_000.0 - SKEW_MS, seen_after_ms=2 * SKEW_MS))


def test_a_run_that_was_seen_before_the_prediction_is_not_later_whatever_its_clock_says() -> None:
    fast = later(after_ms=DAY_MS, seen_after_ms=-2 * DAY_MS)
    assert not matches([made(predicted())], fast)
    seen = Entry(NOW_MS - 1, "0", "analyze", fast.facts)
    assert not matches([seen, made(predicted())], replace(fast, seen_ms=NOW_MS + DAY_MS))


def test_the_run_that_was_predicted_from_is_not_a_later_run() -> None:
    own = facts(began_ms=NOW_MS)
    same = predicted(expected=RESOURCES)
    assert not matches([made(same, run=own)], KnownRun(own, NOW_MS + DAY_MS), backtest=True)


def test_a_repeated_prediction_counts_once_by_its_last_figure() -> None:
    entries = [made(predicted(predicted_ms=ms), at_ms=NOW_MS + number) for number, ms in enumerate((50e3, 45e3, 44e3))]
    entries.append(made(predicted(predicted_ms=1.0), at_ms=NOW_MS + 2 * DAY_MS))  # after the run began
    found = ledger(entries, later())
    assert found.accuracy is not None
    assert found.accuracy.predictions == 1
    assert [each.predicted_ms for each in found.jobs[0].matches] == [44e3]
    assert found.jobs[0].kept == 4


def test_a_prediction_with_many_runs_weighs_as_much_as_one_with_one() -> None:
    other = predicted(setting="cores=0.5x", expected={**RESOURCES, "cores": 1.0}, predicted_ms=120e3, range_ms=(1, 2))
    half = later("half", resources={**RESOURCES, "cores": 1.0}, runtime_ms=100e3)
    runs = [later(f"run-{each}", after_ms=DAY_MS + each, runtime_ms=35e3) for each in range(8)]
    seen = ledger([made(predicted(), other)], half, *runs).accuracy
    assert seen is not None
    assert (seen.predictions, seen.runs) == (2, 9)
    assert seen.median_error_ratio == pytest.approx(0.1)
    assert seen.inside_share == pytest.approx(0.5)
    assert seen.inside_range_share == wilson(0.5, 2)


def test_a_run_is_counted_once_however_often_it_was_read() -> None:
    run = later().facts
    again = [Entry(NOW_MS + DAY_MS + each, "0", "analyze", run) for each in range(1, 4)]
    found = ledger([made(predicted()), *again], later())
    assert len(found.jobs[0].matches) == 1
    assert found.jobs[0].runs == 2


def test_settings_that_logs_do_not_record_match_only_if_stated() -> None:
    network = predicted(setting="network=10Gbps", expected=RESOURCES, unstated={"network": "10Gbps"})
    run = later(resources=RESOURCES)
    assert not matches([made(network)], run)
    assert ledger([made(network)], run).unstated == 1
    assert len(matches([made(network)], replace(run, stated={"network": "10Gbps"}))) == 1
    assert not matches([made(network)], replace(run, stated={"network": "1Gbps"}))


def test_predictions_of_a_scope_are_held_against_the_same_scope() -> None:
    scope = predicted(scope="sql:4", predicted_ms=9e3)
    (found,) = matches([made(scope)], later(scopes={"sql:4": 10e3}))
    assert found.actual_ms == 10e3
    assert not matches([made(scope)], later())


def test_trainings_are_held_against_the_time_of_a_step() -> None:
    (found,) = matches([made(predicted(predicted_ms=200.0))], later(step_ms=160.0))
    assert found.error_ratio == pytest.approx(0.25)


def test_predictions_from_a_run_that_did_not_end_are_about_a_part_of_the_job() -> None:
    assert not matches([made(predicted(), run=facts(ended_well=False))], later())


def test_failed_runs_are_counted_but_not_compared() -> None:
    found = ledger([made(predicted())], later(ended_well=False))
    assert found.accuracy is None
    assert found.unfinished_runs == 1


def test_accuracy_over_time_is_by_month() -> None:
    runs = [later(f"run-{each}", after_ms=each * 31 * DAY_MS, runtime_ms=35e3 + 5e3 * each) for each in (1, 2)]
    months = ledger([made(predicted())], *runs).jobs[0].months
    assert [each.month for each in months] == ["2026-12", "2027-01"]
    assert [each.accuracy.inside_share for each in months] == [1.0, 0.0]


def test_a_job_is_chosen_by_a_part_of_its_name() -> None:
    entries = [made(predicted()), made(predicted(), run=facts(name="import"))]
    assert [each.name for each in ledger(entries, job="REP").jobs] == ["report"]


@pytest.mark.parametrize(("share", "count"), [(0.0, 1), (0.5, 4), (1.0, 20)])
def test_interval_of_a_share_contains_it_and_narrows(share: float, count: int) -> None:
    low, high = wilson(share, count)
    assert 0 <= low <= share <= high <= 1
    assert wilson(share, 4 * count)[1] - wilson(share, 4 * count)[0] < high - low


# Recommendations ------------------------------------------------------------------------------------------------------

PARTITIONS = Recommended(
    "set-partitions", "Use 8 partitions", (), (Change("spark.sql.shuffle.partitions", "200", "8"),), 20e3,
    (10e3, 30e3), "modelled",
)  # fmt: skip
MEMORY = Recommended(
    "more-memory", "Twice the memory", (), (Change("spark.executor.memory", "1g", "2g", 2.0 * 2**30),), 5e3, None,
    "modelled",
)  # fmt: skip


def advised(*found: Recommended) -> Entry:
    return Entry(NOW_MS, "0", "analyze", facts(), (), found)


def follow(entries: list[Entry], *runs: KnownRun) -> list[Followed]:
    return [each for job in ledger(entries, *runs).jobs for each in job.recommendations]


def with_partitions(value: str, app: str = "app-2", **more: Any) -> KnownRun:
    resources = {**RESOURCES, "tasks": float(value)}
    settings = {"spark.sql.shuffle.partitions": value}
    values: dict[str, Any] = {"resources": resources, "settings": settings, "runtime_ms": 45e3, **more}
    return later(app, **values)


def test_an_applied_recommendation_shows_what_it_saved() -> None:
    (found,) = follow([advised(PARTITIONS)], *(with_partitions("8", f"app-{each}") for each in range(2, 6)))
    assert (found.status, found.claimed_ms, found.saved_ms) == ("applied", 20e3, 15e3)
    assert found.difference is not None
    assert (found.difference.runs_before, found.difference.runs_after) == (1, 4)
    assert found.difference.ratio == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (None, "no-later-run"),
        (with_partitions("200"), "not-applied"),
        (with_partitions("64"), "changed-otherwise"),
        (with_partitions("8", settings={"spark.sql.shuffle.partitions": "8", "spark.executor.cores": "4"}),
         "applied-among-others"),
        (with_partitions("8", resources={**RESOURCES, "tasks": 8.0, "workers": 4.0}), "applied-among-others"),
        (with_partitions("8", after_ms=-2 * DAY_MS), "no-later-run"),
        (with_partitions("8", name="import"), "no-later-run"),
        (with_partitions("8", resources={**RESOURCES, "tasks": 8.0, "input": 2e8}), "no-later-run"),
    ],
)  # fmt: skip
def test_other_runs_did_not_apply_it(run: KnownRun | None, status: str) -> None:
    (found,) = follow([advised(PARTITIONS)], *([run] if run else []))
    assert found.status == status
    assert found.difference is None


def test_recommendations_of_one_answer_may_be_applied_together() -> None:
    both = with_partitions(
        "8",
        settings={"spark.sql.shuffle.partitions": "8", "spark.executor.memory": "2048m"},
        resources={**RESOURCES, "tasks": 8.0, "memory": 2e9},
    )
    found = follow([advised(PARTITIONS, MEMORY)], both)
    assert [(each.status, each.together) for each in found] == [("applied", 1), ("applied", 1)]


def test_a_change_of_the_program_is_not_recorded() -> None:
    code = replace(PARTITIONS, kind="split-keys", changes=())
    assert [each.status for each in follow([advised(code)], later())] == ["unknown"]


# The file -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "ledger.jsonl"
    monkeypatch.setenv("CRYSTALPERF_LEDGER", str(path))
    return path


def test_entries_are_read_as_written(file: Path) -> None:
    entries = [made(predicted()), advised(PARTITIONS, MEMORY), made(predicted(range_ms=None))]
    for each in entries:
        append(file, each)
    assert read(file) == Kept(tuple(entries))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert read_about(file, "app-1") == entries
    assert not read_about(file, "app")


def test_there_is_no_ledger_at_first(file: Path) -> None:
    assert read(file) == Kept(())
    assert remove(file, None) == 0


def _write(path: str, number: int) -> None:
    for each in range(25):
        append(Path(path), made(predicted(), run=facts(f"app-{number}-{each}")))


def test_processes_that_write_at_once_lose_nothing(file: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(str(file), number)) for number in range(6)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    found = read(file)
    assert not found.damaged
    assert len({each.run.app_id for each in found.entries}) == 150


def test_a_writer_that_was_killed_loses_only_its_line(file: Path) -> None:
    append(file, made(predicted()))
    whole = file.read_bytes()
    file.write_bytes(whole + whole[len(HEADER) : -40])
    append(file, made(predicted(), at_ms=NOW_MS + 1))
    found = read(file)
    assert [each.at_ms for each in found.entries] == [NOW_MS, NOW_MS + 1]
    assert found.damaged == (3,)


def test_a_first_line_that_was_cut_is_written_again(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(HEADER[:9])
    assert read(file) == Kept(())
    append(file, made(predicted()))
    assert len(read(file).entries) == 1


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_damaged_line_costs_no_other(file: Path, line: int) -> None:
    for each in range(3):
        append(file, made(predicted(), at_ms=NOW_MS + each))
    lines = file.read_bytes().split(b"\n")
    lines[line] = b"\xff\x00" + lines[line][2:]
    file.write_bytes(b"\n".join(lines))
    found = read(file)
    assert len(found.entries) == (3 if line == 0 else 2)
    assert found.damaged == (line + 1,)
    append(file, made(predicted()))
    assert len(read(file).entries) == len(found.entries) + 1


@pytest.mark.parametrize("content", [b"my notes\n", b"{}\n", b"\x00" * 50, b'{"crystalperf.ledger": 9}\n'])
def test_a_file_that_is_not_a_ledger_is_not_written(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(InputError, match="ledger"):
        append(file, made(predicted()))
    with pytest.raises(InputError, match="ledger"):
        read(file)
    assert file.read_bytes() == content


def test_a_full_disk_leaves_no_part_of_a_line(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(file, made(predicted()))
    before, write = file.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda place, line: write(place, line[:10]))
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        append(file, made(predicted()))
    assert file.read_bytes() == before


def test_a_lock_that_another_process_holds_ends_the_wait(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LOCKED_S", 0.05)
    append(file, made(predicted()))
    with store._locked(file), pytest.raises(TimeoutError):
        append(file, made(predicted()))
    assert len(read(file).entries) == 1


def test_a_large_ledger_loses_its_older_half(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 4_000)
    for each in range(30):
        append(file, made(predicted(), at_ms=each))
    times = [each.at_ms for each in read(file).entries]
    assert times == list(range(times[0], 30))
    assert file.stat().st_size <= 4_000


def test_entries_of_a_job_are_removed(file: Path) -> None:
    append(file, made(predicted()))
    append(file, made(predicted(), run=facts(name="import")))
    assert command(["ledger", "--rm", "--job", "repo"]) == 0
    assert [each.run.name for each in read(file).entries] == ["import"]
    assert command(["ledger", "--rm"]) == 0
    assert not file.exists()


def test_the_place_is_that_of_state_not_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRYSTALPERF_LEDGER", raising=False)
    assert place() == Path(os.environ["CRYSTALPERF_HOME"]) / "ledger.jsonl"
    monkeypatch.delenv("CRYSTALPERF_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert place() == tmp_path / "crystalperf" / "ledger.jsonl"
    monkeypatch.setenv("CRYSTALPERF_LEDGER", "off")
    assert place() is None
    with pytest.raises(SettingError, match="CRYSTALPERF_LEDGER"):
        cp.ledger()


# Recorded runs --------------------------------------------------------------------------------------------------------


def text_of(run: str) -> str:
    return str(profiled(CHANGED / run).path)


def test_a_prediction_meets_the_real_run_with_half_the_slots(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1_795_806_250.0)
        assert command(["predict", text_of("q12-base"), "--scope", "sql:4", "--set", "cores=1,2x", "--json"]) == 0
    capsys.readouterr()
    assert command(["ledger", text_of("q12-slots"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    jsonschema.validate(answer, json.loads((ROOT / "docs" / "schema" / "ledger.json").read_text(encoding="utf-8")))
    (job,) = answer["jobs"]
    (found,) = job["matches"]
    assert (found["setting"], found["scope"]) == ("cores=1", "sql:4")
    assert abs(found["error_ratio"]) < 0.15
    assert found["inside"] is True
    assert len(read(file).entries) == 2  # the run given is known from now on
    screen = ledger_text(cp.ledger(backtest=True))
    assert max(map(len, screen.split("\n"))) <= 80


def test_compare_uses_the_prediction_that_was_made_before(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [text_of("q12-base"), text_of("q12-slots")]
    assert cp.compare(*runs, scope="sql:4").predicted.made_at is None  # type: ignore[union-attr]
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 1_795_806_250.0)
        assert command(["predict", runs[0], "--scope", "sql:4", "--set", "cores=0.5x"]) == 0
    lines = file.read_bytes().split(b"\n")
    entry = json.loads(lines[1])
    entry["predictions"][0]["predicted_ms"] = 12_345.0
    file.write_bytes(b"\n".join([lines[0], json.dumps(entry).encode(), b""]))
    found = cp.compare(*runs, scope="sql:4").predicted
    assert found is not None
    assert (found.made_at, found.predicted_ms, found.settings) == ("2026-11-27T19:04:10Z", 12_345.0, ("cores=0.5x",))
    assert cp.compare(runs[1], runs[0], scope="sql:4").predicted.made_at is None  # type: ignore[union-attr]


def test_plans_are_the_same_on_other_resources_and_differ_by_the_plan() -> None:
    def hashed(name: str) -> str:
        found = facts_of(profiled(CHANGED / name))
        assert found is not None
        return found.plan

    assert hashed("q12-base") == hashed("q12-slots")
    assert hashed("q12-base") != hashed("q12-broadcast")
    with profiled(CHANGED / "q12-base").reading() as connection:
        assert plan_hash(connection) != plan_hash(connection, {"Sort"})


def test_analyze_keeps_what_it_predicts_and_recommends(file: Path) -> None:
    assert command(["analyze", text_of("q12-slots")]) == 0
    (entry,) = read(file).entries
    assert "cores=2x" in {each.setting for each in entry.predictions}
    assert {"spark.cores.max"} <= {one.name for each in entry.recommendations for one in each.changes}
    assert entry.run.settings["spark.executor.cores"] == "1"
    assert entry.run.ended_well


@pytest.mark.parametrize("options", [["--no-ledger"], []])
def test_nothing_is_kept_if_the_user_says_so(file: Path, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not options:
        monkeypatch.setenv("CRYSTALPERF_LEDGER", "off")
    assert command(["predict", text_of("q12-slots"), "--set", "cores=2x", *options]) == 0
    assert not file.exists()


def test_a_ledger_that_cannot_be_written_costs_the_entry_only(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a-file").write_text("", encoding="utf-8")
    arguments = ["predict", text_of("q12-slots"), "--set", "cores=2x"]
    assert command(arguments) == 0
    before = capsys.readouterr()
    for each in ("/dev/full", "/proc/nowhere/ledger", str(tmp_path / "a-file" / "ledger"), str(tmp_path)):
        monkeypatch.setenv("CRYSTALPERF_LEDGER", each)
        assert command(arguments) == 0
        assert capsys.readouterr() == before


# Fleets ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A fleet of a run, and of the same job a day later with twice the slots."""
    logs = tmp_path / "logs"
    logs.mkdir()
    first = spark_events.write(logs / "first", spark_events.run()).read_text(encoding="utf-8")
    second = re.sub(r"17000\d{8}", lambda each: str(int(each[0]) + DAY_MS), first)
    second = second.replace("application_1_1", "application_1_2").replace('"Total Cores":2', '"Total Cores":4')
    (logs / "second").write_text(second, encoding="utf-8")
    build([str(logs)], tmp_path / "fleet")
    return tmp_path / "fleet"


def test_a_fleet_holds_what_ifs_against_later_runs(fleet: Path) -> None:
    (found,) = summarize(fleet).held
    assert (found.name, found.framework, found.predictions) == ("made", "spark", 1)
    assert -1 < found.median_error_ratio < 0  # predicted faster with more slots, but the made run took as long
    assert abs(found.median_error_ratio) == found.median_absolute_error_ratio


def test_runs_of_a_fleet_are_later_runs(file: Path, fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = fleet.parent / "logs" / "first"
    assert command(["predict", str(log), "--set", "cores=2x"]) == 0
    capsys.readouterr()
    assert command(["ledger", "--fleet", str(fleet), "--backtest", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["run"] for job in answer["jobs"] for each in job["matches"]] == ["application_1_2"]
    assert len(read(file).entries) == 1
