"""Stages that cannot use every slot, or need many at once; decommissioned executors; shuffled data that others keep."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

import crystalperf as cp
from crystalperf.query.execution.dag import SlotDemand
from crystalperf.query.frameworks.spark.assumptions import ProfilesScaled, ServiceKept
from crystalperf.query.frameworks.spark.findings import SlotsAwaited
from crystalperf.query.frameworks.spark.refusals import BarrierTooWide, ProfilesDiffer, ShuffleElsewhere, TaskTooWide
from crystalperf.query.frameworks.spark.remarks import (
    BarrierStages,
    Decommissioned,
    ProfileStages,
    PushedShuffle,
    RemoteShuffle,
)
from crystalperf.query.frameworks.spark.shuffle_services import remote_service
from crystalperf.query.results.findings import LostWorkers
from tests.reading import profiled
from tests.spark_events import START, Event, event, executor, run, write

RECORDINGS = Path(__file__).parents[1] / "lab" / "recordings" / "executors"


@cache
def recorded(kind: str) -> cp.Run:
    return profiled(RECORDINGS / f"{kind}.zstd")


def remarks(made: cp.Run, kind: type[Any], scope: str = "all") -> list[Any]:
    return [each for each in made.debug(scope=scope).measurements if isinstance(each, kind)]


def made(folder: Path, events: list[Event]) -> cp.Run:
    return cp.profile(write(folder / "log", events), output=folder / "run.duckdb")


# Resource profiles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "workers", "slots", "most"),
    [
        (SlotDemand(), 1.0, 2.0, None),
        (SlotDemand(usable=2, per_task=2.0), 1.0, 1.0, 2),
        (SlotDemand(usable=2, per_task=2.0), 1.0, 2.0, 4),
        (SlotDemand(usable=2, per_task=2.0), 1.0, 1.5, 2),  # three cores hold one task of two
        (SlotDemand(usable=2, per_task=2.0), 2.0, 1.0, 4),
        (SlotDemand(usable=2, per_task=2.0), 1.0, 0.5, 0),
    ],
)
def test_slots_of_a_stage_in_a_scenario_are_whole_tasks_of_each_worker(
    demand: SlotDemand, workers: float, slots: float, most: int | None
) -> None:
    """Two workers of two slots."""
    assert demand.most(2.0, workers, slots) == most


def test_tasks_of_a_profile_take_several_slots_of_the_executors_that_there_are() -> None:
    found = recorded("task-profile")
    rows = found.sql(
        "SELECT stage_id, resource_profile, usable_slots, slots_per_task, waited_for FROM spark_stages ORDER BY ALL"
    ).rows
    assert rows == (
        ("stage:0.0", 0, None, 1.0, None),
        ("stage:1.0", 1, 2, 2.0, None),
        ("stage:2.0", 0, None, 1.0, None),
    )
    requests = found.sql("SELECT requested_by, resource, amount FROM spark_resource_requests WHERE profile_id = 1").rows
    assert requests == (("task", "cpus", 2.0),)
    (remark,) = remarks(found, ProfileStages)
    assert (remark.stage, remark.others, remark.profile) == ("stage:1.0", 0, 1)
    assert (remark.usable_slots, remark.slots) == (2, 4)
    stages = {each.id: each for each in found.debug().stages}
    assert (stages["stage:1.0"].slots, stages["stage:2.0"].slots) == (2, 4)
    assert stages["stage:1.0"].idle_ms < 0.1 * 2 * stages["stage:1.0"].length_ms


def test_remark_about_profiles_is_of_the_scope() -> None:
    assert not remarks(recorded("task-profile"), ProfileStages, "job:2")


def test_stage_of_a_profile_is_predicted_on_its_share_of_slots() -> None:
    """With twice the slots it runs four tasks at a time, as `wide-task-profile` did."""
    found = recorded("task-profile")
    job = found.predict(["cores=2x"], scope="job:1")
    rerun = recorded("wide-task-profile").debug(scope="job:1").runtime_ms
    assert job.predicted_ms is not None
    assert job.predicted_ms < 0.65 * found.debug(scope="job:1").runtime_ms
    assert job.predicted_ms == pytest.approx(rerun, rel=0.25)
    unchanged = found.predict(["cores=3"], scope="job:1")  # three cores hold one task of two
    assert unchanged.predicted_ms == pytest.approx(found.debug(scope="job:1").runtime_ms, rel=0.1)


def test_executor_with_fewer_slots_than_a_task_takes_is_refused() -> None:
    refused = recorded("task-profile").predict(["cores=1"])
    assert refused.predicted_ms is None
    assert refused.refused == (TaskTooWide("stage:1.0", 2.0, 1.0),)


def test_stage_with_executors_of_its_own_uses_their_slots() -> None:
    found = recorded("profiles")
    stage, usable = found.sql("SELECT stage_id, usable_slots FROM spark_stages WHERE resource_profile = 1").rows[0]
    (remark,) = remarks(found, ProfileStages)
    assert (remark.stage, remark.usable_slots) == (stage, usable)
    assert ("executor", "memory", 460 * 2**20) in remark.requests
    refused = found.predict(["cores=4"])
    assert refused.refused == (ProfilesDiffer(stage),)
    wide = found.predict(["cores=2x"])
    assert ProfilesScaled(stage) in wide.assumptions
    assert wide.predicted_ms is not None


def test_stage_whose_profile_gets_no_executor_waits_for_them() -> None:
    """Executors of the first stages filled the cluster, and kept their shuffle files."""
    (finding,) = [each for each in recorded("starved").debug().findings if isinstance(each, SlotsAwaited)]
    assert (finding.why, finding.profile, finding.slots, finding.started) == ("profile", 1, 0, False)
    assert finding.cost_ms == pytest.approx(30_000, abs=12_000)


# Barrier stages -------------------------------------------------------------------------------------------------------


def test_barrier_stage_needs_slots_for_all_of_its_tasks() -> None:
    found = recorded("barrier")
    assert found.sql("SELECT list(stage_id) FROM spark_stages WHERE barrier").rows[0][0] == ["stage:1.0"]
    (remark,) = remarks(found, BarrierStages)
    assert (remark.stage, remark.others, remark.tasks) == ("stage:1.0", 0, 4)
    assert not remarks(found, BarrierStages, "job:0")


@pytest.mark.parametrize(("setting", "slots"), [("cores=1", 2), ("workers=1", 2), ("cores=0.5x", 2)])
def test_barrier_stage_on_fewer_slots_than_tasks_is_refused(setting: str, slots: int) -> None:
    refused = recorded("barrier").predict([setting])
    assert refused.refused == (BarrierTooWide("stage:1.0", 4, slots),)


def test_barrier_stage_keeps_its_tasks_on_more_slots() -> None:
    found = recorded("barrier")
    before = found.debug(scope="job:1").runtime_ms
    after = found.predict(["cores=2x"], scope="job:1")
    assert after.predicted_ms == pytest.approx(before, rel=0.1)
    assert recorded("wide-barrier").debug(scope="job:1").runtime_ms == pytest.approx(before, rel=0.4)


# Decommissioned executors ---------------------------------------------------------------------------------------------


def test_decommissioned_executor_that_moved_its_files_costs_no_task() -> None:
    found = recorded("decommission")
    (remark,) = remarks(found, Decommissioned)
    assert (remark.executors, remark.redone_tasks, remark.moved) == (("0",), 0, True)
    (removed_ms,) = found.sql("SELECT removed_ms FROM workers WHERE worker_id = '0'").rows[0]
    assert remark.first_ms == removed_ms
    assert not remarks(found, Decommissioned, "job:0")
    (lost,) = [each for each in found.debug().findings if isinstance(each, LostWorkers)] or [None]
    assert lost is None or lost.redone_tasks == 0


@pytest.mark.parametrize(
    ("reason", "count"),
    [
        ("Executor decommission: Executor 1 is decommissioned.", 1),
        ("Executor decommission: spark scale down", 0),  # dynamic allocation does it
        ("Executor killed by driver.", 0),
    ],
)
def test_only_executors_that_the_cluster_takes_are_decommissioned(tmp_path: Path, reason: str, count: int) -> None:
    *events, end = run(jobs=2)
    gone = event("ExecutorRemoved", Timestamp=START + 9_000, Executor_ID="1", Removed_Reason=reason)
    assert len(remarks(made(tmp_path, [*events, gone, end]), Decommissioned)) == count


# Shuffled data --------------------------------------------------------------------------------------------------------


def shuffling(properties: dict[str, str], push: dict[str, int] | None = None) -> list[Event]:
    """A run whose tasks write and read shuffled data, with these settings; fields are named as in JsonProtocol."""
    first, *events = run(jobs=2)
    for each in events:
        if metrics := each.get("Task Metrics"):
            read: dict[str, Any] = {"Remote Bytes Read": 3000, "Local Bytes Read": 1000, "Fetch Wait Time": 10}
            if push is not None:
                read["Push Based Shuffle"] = push
            metrics |= {
                "Shuffle Read Metrics": {**read, "Total Records Read": 10},
                "Shuffle Write Metrics": {"Shuffle Bytes Written": 4000, "Shuffle Write Time": 300_000_000},
            }
        if push is not None and (info := each.get("Stage Info")):
            info |= {"Shuffle Push Enabled": True, "Shuffle Push Mergers Count": 3}
    return [first, event("EnvironmentUpdate", Spark_Properties=properties), *events]


@pytest.mark.parametrize(
    ("manager", "service"),
    [
        ("org.apache.spark.shuffle.celeborn.SparkShuffleManager", "Celeborn"),
        ("org.apache.spark.shuffle.gluten.celeborn.CelebornShuffleManager", "Celeborn"),
        ("org.apache.spark.shuffle.RssShuffleManager", "Uniffle"),
        ("org.apache.spark.shuffle.DelegationRssShuffleManager", "Uniffle"),
        ("org.apache.spark.shuffle.gluten.uniffle.UniffleShuffleManager", "Uniffle"),
        ("org.apache.spark.shuffle.sort.SortShuffleManager", None),
        ("sort", None),
    ],
)
def test_remote_shuffle_service_is_known_by_its_manager(manager: str, service: str | None) -> None:
    assert remote_service({"spark.shuffle.manager": manager}) == service


def test_devices_of_a_remote_shuffle_service_are_not_predicted(tmp_path: Path) -> None:
    manager = "org.apache.spark.shuffle.celeborn.SparkShuffleManager"
    found = made(tmp_path, shuffling({"spark.shuffle.manager": manager}))
    (remark,) = remarks(found, RemoteShuffle)
    assert (remark.service, remark.written_bytes, remark.read_bytes) == ("Celeborn", 24 * 4000, 24 * 4000)
    for setting in ("disk", "network"):
        assert found.predict([f"{setting}=2x"]).refused == (ShuffleElsewhere("Celeborn", setting),)
    wider = found.predict(["cores=2x"])
    assert wider.predicted_ms is not None
    assert ServiceKept("Celeborn") in wider.assumptions


def test_writing_to_a_remote_shuffle_service_is_time_on_the_network(tmp_path: Path) -> None:
    times = {}
    for name, manager in (("remote", "org.apache.spark.shuffle.RssShuffleManager"), ("local", "sort")):
        (tmp_path / name).mkdir()
        found = made(tmp_path / name, shuffling({"spark.shuffle.manager": manager}))
        times[name] = found.debug().resource_ms
    assert times["remote"]["net"] > times["local"]["net"]
    assert times["remote"]["disk"] < times["local"]["disk"]


def test_merged_blocks_of_push_based_shuffle_are_counted(tmp_path: Path) -> None:
    """A fragment with the names of JsonProtocol: push-based shuffle needs YARN, so there is no run of it."""
    push = {
        "Corrupt Merged Block Chunks": 0,
        "Merged Fetch Fallback Count": 1,
        "Merged Remote Blocks Fetched": 8,
        "Merged Local Blocks Fetched": 4,
        "Merged Remote Chunks Fetched": 2,
        "Merged Local Chunks Fetched": 1,
        "Merged Remote Bytes Read": 2000,
        "Merged Local Bytes Read": 1000,
        "Merged Remote Requests Duration": 5,
    }
    found = made(tmp_path, shuffling({"spark.shuffle.push.enabled": "true"}, push))
    (remark,) = remarks(found, PushedShuffle)
    assert (remark.merged_bytes, remark.read_bytes, remark.fallbacks) == (24 * 3000, 24 * 4000, 24)
    rows = found.sql("SELECT DISTINCT push_mergers FROM spark_stages").rows
    assert rows == ((3,),)


def test_usual_run_has_none_of_these_remarks(tmp_path: Path) -> None:
    found = made(tmp_path, run())
    kinds = (ProfileStages, BarrierStages, Decommissioned, RemoteShuffle, PushedShuffle)
    assert not [each for each in found.debug().measurements if isinstance(each, kinds)]
    assert found.sql("SELECT count(*) FROM spark_stages WHERE barrier OR usable_slots IS NOT NULL").rows == ((0,),)


def test_executors_that_come_later_leave_stages_their_slots(tmp_path: Path) -> None:
    """Every executor may run every stage, so none has fewer slots than others."""
    *events, end = run()
    found = made(tmp_path, [*events, executor("9", 20_000, 4), end])
    assert found.sql("SELECT count(*) FROM spark_stages WHERE usable_slots IS NOT NULL").rows == ((0,),)
