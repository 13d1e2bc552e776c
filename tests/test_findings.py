"""Costs and causes: each rule on made stages, the causes of other time, and labels against measurements.

Made stages are stages of Spark: what a user of it reads is what is asked for here.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.resources import Resource, known
from crystalperf.indexes.store import create
from crystalperf.query.diagnose import findings
from crystalperf.query.diagnose.diagnose import diagnosed
from crystalperf.query.diagnose.hosts import HostTime, HostTimes
from crystalperf.query.diagnose.stage_statistics import (
    CpuContention,
    Longest,
    StagePeers,
    StageStats,
    neighbours,
    stage_stats,
)
from crystalperf.query.diagnose.waiting import waiting, with_workers
from crystalperf.query.execution.critical_path import Piece, critical_path
from crystalperf.query.execution.intervals import merged
from crystalperf.query.execution.load import load
from crystalperf.query.frameworks import Advisor, Frames, Framework, Reader, Setup
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.frameworks.spark.findings import (
    EvenFiles,
    GiveSchema,
    MergeFewerPartitions,
    SmallerFileParts,
    SmallerRowGroups,
    SplitKeys,
    SplittableFiles,
)
from crystalperf.query.frameworks.spark.framework import SPARK
from crystalperf.query.frameworks.spark.rules import RULES, compiling, few_tasks_advice, uneven_advice
from crystalperf.query.results.advice import (
    AvoidSpilling,
    InspectDriver,
    InspectProgram,
    InspectTaskWaits,
    MoreCpu,
    MoreTasks,
    RelaxPlacement,
    SmallerTasks,
    SpreadInput,
)
from crystalperf.query.results.answers import Cause, StageFacts
from crystalperf.query.results.findings import (
    CollectedGarbage,
    Driver,
    FirstOnWorker,
    IdleSlots,
    IdleStage,
    MoreData,
    MoreOfResource,
    NoScope,
    ShortOfCpus,
    SlowHost,
    SlowHosts,
    Unexplained,
    Waited,
)
from crystalperf.query.results.not_recorded import CodeUnlabelled, CodeUnsampled, TimeUnmeasured
from crystalperf.query.results.words import Words
from crystalperf.query.run import Run
from crystalperf.query.runfile.pipeline import gather, write_run
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import text_of
from crystalperf.query.trace.amounts import counted, lasting, part_of
from crystalperf.query.trace.contract import Edge, Scope, Stage, Task, Worker, of_rows
from crystalperf.query.trace.records import Problems
from crystalperf.query.trace.vocabulary import Vocabulary
from tests.hand_made import figures

MIB = 2**20

WORDS = Words("spark", SPARK.vocabulary, known())


def parts(cpu: float = 0.0, disk: float = 0.0, net: float = 0.0, other: float = 0.0) -> dict[str, float]:
    return {"cpu": cpu, "disk": disk, "net": net, "other": other}


def detail(longest: dict[str, Any] | None = None, facts: dict[str, Any] | None = None, **more: Any) -> StageStats:
    """A stage of 40 even tasks of a second, all CPU, on 4 slots, ten seconds on the path; then changed."""
    even = StageFacts(
        id="stage:3.0", name="work", scope="sql:1", tasks=40, slots=4, length_ms=10_000.0, path_ms=10_000.0,
        median_ms=1000.0, longest_ms=1000.0, median_bytes=8 * MIB, most_bytes=8 * MIB, task_ms=40_000.0, idle_ms=0.0,
        starting_ms=0.0, scheduler_delay_ms=0.0, gc_ms=0.0, spill_bytes=0, resource_ms=parts(cpu=40_000.0),
    )  # fmt: skip
    usual = Longest(
        task_id=17, worker_id="1", host="w1", duration_ms=1000.0, read_bytes=8 * MIB, gc_ms=0.0,
        resource_ms=parts(cpu=1000.0),
    )  # fmt: skip
    whole = StageStats(
        facts=replace(even, **(facts or {})),
        longest=replace(usual, **(longest or {})),
        own_ms=39_000.0,
        own_cpu_ms=39_000.0,
        cpu_wait_ms=1000.0,
        fetch_wait_ms=0.0,
        read_bytes=320 * MIB,
        moved_bytes={"disk": 640 * MIB, "net": 320 * MIB},
        median_resource_ms=parts(cpu=1000.0),
        uses=frozenset({"scan"}),
        place="collect at job.py:1",
        operators=("Scan parquet",),
        details=("FileScan parquet [a#1]",),
        siblings=StagePeers(loaded=38, loaded_ms=1000.0),
        median_cpu_ms=1000.0,
    )
    return replace(whole, **more)


def late(more: dict[str, Any] | None = None, **longest: Any) -> StageStats:
    """The same with one task that takes seven seconds, on the CPU."""
    facts = {"longest_ms": 7000.0}
    usual = {"duration_ms": 7000.0, "resource_ms": parts(cpu=7000.0), "cpu_ms": 7000.0}
    return detail({**usual, **longest}, facts, **(more or {}))


def host(name: str, ms: float, others_ms: float, resource: str = "net", **more: Any) -> HostTime:
    return replace(
        HostTime("stage:3.0", name, resource, 10, ms, others_ms, 8.0 * MIB, 8.0 * MIB, others_duration_ms=1000.0),
        **more,
    )


def compared(*hosts: HostTime) -> HostTimes:
    """The hosts of stages as host_times() has them; all have times on the same resource."""
    median_ms, others_ms, *medians = np.array(
        [
            (each.median_ms, each.others_ms, each.median_bytes, each.others_bytes, each.others_duration_ms)
            for each in hosts
        ]
    ).T
    rows = [(each.stage, each.host, each.tasks) for each in hosts]
    return HostTimes((hosts[0].resource,), rows, median_ms[None], others_ms[None], *medians)


def slow_hosts(times: HostTimes, details: list[StageStats]) -> list[SlowHosts]:
    return findings.slow_hosts(times, findings.slow_ones(times), details)


# Stragglers -----------------------------------------------------------------------------------------------------------


def test_even_tasks_give_no_finding() -> None:
    assert findings.straggler(RULES, detail(), []) == []
    assert findings.straggler(RULES, detail(facts={"longest_ms": 1900.0}), []) == []


def test_straggler_cost_is_its_excess_time_limited_by_the_critical_path() -> None:
    (found,) = findings.straggler(RULES, late(), [])
    assert found.cost_ms == 1500, "four slots have 34 of 40 s of work left, so they end after 8.5 of 10 s"
    assert (found.task_id, found.duration_ms, found.usual_ms) == (17, 7000, 1000)
    alone = replace(late(), facts=replace(late().facts, length_ms=16_000.0, path_ms=16_000.0))
    assert [each.cost_ms for each in findings.straggler(RULES, alone, [])] == [6000], "it ran alone"
    short = late()
    (found,) = findings.straggler(RULES, replace(short, facts=replace(short.facts, path_ms=50.0)), [])
    assert found.cost_ms == 50


def test_a_straggler_that_read_more_has_more_data() -> None:
    (found,) = findings.straggler(RULES, late(read_bytes=56 * MIB), [])
    assert found.cause == MoreData(56 * MIB, 8 * MIB)
    assert found.basis == "measured"
    assert found.advice == EvenFiles()
    (found,) = findings.straggler(RULES, replace(late(read_bytes=56 * MIB), uses=frozenset({"shuffle read"})), [])
    assert found.advice == SplitKeys()


def test_more_data_does_not_explain_a_straggler_if_others_read_as_much_in_half_the_time() -> None:
    alike = {"siblings": StagePeers(alike=3, alike_ms=1100.0)}
    (found,) = findings.straggler(RULES, late(alike, read_bytes=56 * MIB), [])
    assert not isinstance(found.cause, MoreData)
    slow = {"siblings": StagePeers(alike=3, alike_ms=6000.0)}
    (found,) = findings.straggler(RULES, late(slow, read_bytes=56 * MIB), [])
    assert isinstance(found.cause, MoreData)


def test_twice_the_data_does_not_explain_seven_times_the_time() -> None:
    (found,) = findings.straggler(RULES, late(read_bytes=16 * MIB), [])
    assert not isinstance(found.cause, MoreData)


def test_a_straggler_whose_executor_collected_garbage() -> None:
    (found,) = findings.straggler(RULES, late(gc_ms=5000.0), [])
    assert found.cause == CollectedGarbage(5000)
    (found,) = findings.straggler(RULES, late({"median_gc_ms": 4500.0}, gc_ms=5000.0), [])
    assert not isinstance(found.cause, CollectedGarbage)


def test_a_straggler_on_a_slow_node() -> None:
    hosts = findings.slow_ones(compared(host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)))
    (found,) = findings.straggler(RULES, late(resource_ms=parts(cpu=1000.0, net=6000.0), cpu_ms=1000.0), hosts)
    assert found.cause == SlowHost("w1", "net", 900, 200)
    assert found.basis == "modelled"
    (found,) = findings.straggler(RULES, late(), hosts)
    assert not isinstance(found.cause, SlowHost), "it had its time on the CPU, which is as fast there"


def test_first_task_is_warmup_if_cpu_time_and_other_first_tasks_confirm_it() -> None:
    others = {"siblings": StagePeers(firsts=3, firsts_ms=6500.0)}
    (found,) = findings.straggler(RULES, late(others, first=True), [])
    assert found.cause == FirstOnWorker("1", confirmed=True)
    assert found.basis == "modelled"
    (found,) = findings.straggler(RULES, late(first=True), [])
    assert found.cause == FirstOnWorker("1", confirmed=False)
    assert found.basis == "guessed"
    (found,) = findings.straggler(RULES, late({**others, "median_cpu_ms": None}, first=True, cpu_ms=None), [])
    assert found.basis == "guessed"


def test_first_task_that_waited_or_has_only_first_siblings_is_not_warmup() -> None:
    waited = late(first=True, cpu_ms=67.0, resource_ms=parts(cpu=67.0, other=6933.0))
    (found,) = findings.straggler(RULES, waited, [])
    assert found.cause == Waited(67, 7000)
    assert found.basis == "measured"
    (found,) = findings.straggler(RULES, late({"siblings": StagePeers(firsts=3, firsts_ms=1000.0)}, first=True), [])
    assert not isinstance(found.cause, FirstOnWorker)


def test_straggler_without_other_cause_names_its_excess_resource() -> None:
    (found,) = findings.straggler(RULES, late(resource_ms=parts(cpu=1000.0, disk=6000.0), cpu_ms=1000.0), [])
    assert found.cause == MoreOfResource("disk", 6000)
    assert found.basis == "modelled"
    (found,) = findings.straggler(RULES, late(), [])
    assert found.cause == MoreOfResource("cpu", 6000)
    assert found.basis == "measured"
    (found,) = findings.straggler(RULES, late(resource_ms=parts(other=7000.0), cpu_ms=None), [])
    assert found.cause == Unexplained()


# Nodes ----------------------------------------------------------------------------------------------------------------


def test_a_node_slower_than_its_peers_is_a_malfunction() -> None:
    (found,) = slow_hosts(compared(host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)), [detail()])
    assert (found.host, found.resource, found.median_ms, found.others_ms, found.stages) == ("w1", "net", 900, 200, 1)
    assert found.cost_ms == pytest.approx(10_000 * 700 / 1700)


def test_node_whose_peers_spend_no_time_shows_its_time() -> None:
    (found,) = slow_hosts(compared(host("w1", 900.0, 0.0), host("w2", 0.0, 900.0)), [detail()])
    assert "0.9 s each" in text_of(found, WORDS)


def test_a_node_that_reads_more_is_not_slow() -> None:
    assert slow_hosts(compared(host("w1", 900.0, 200.0, median_bytes=40.0 * MIB)), [detail()]) == []


def test_node_slow_in_one_short_stage_of_many_is_random_variation() -> None:
    usual = [host("w1", 300.0, 300.0, stage=f"stage:{number}.0", tasks=50) for number in range(4, 9)]
    assert slow_hosts(compared(host("w1", 900.0, 200.0), *usual), [detail()]) == []


def test_most_nodes_are_not_slower_than_their_peers() -> None:
    """Where they have one warm node with almost no work for a peer, that one is the odd one."""
    two = [host("w1", 900.0, 200.0), host("w2", 900.0, 200.0)]
    assert slow_hosts(compared(*two, host("w3", 200.0, 900.0)), [detail()]) == []
    assert len(slow_hosts(compared(*two, host("w3", 200.0, 900.0), host("w4", 200.0, 900.0)), [detail()])) == 2


# Slots ----------------------------------------------------------------------------------------------------------------


def test_full_slots_give_no_finding() -> None:
    assert findings.idle_slots(RULES, detail()) == []


def test_a_half_empty_last_wave() -> None:
    (found,) = findings.idle_slots(RULES, detail(facts={"tasks": 6, "idle_ms": 10_000.0, "longest_ms": 5000.0}))
    assert found.cost_ms == pytest.approx(2500)
    assert (found.cause, found.waves, found.advice) == ("last-wave", 1.5, SmallerTasks())


def test_idle_slots_of_uneven_data_ask_for_even_data() -> None:
    facts = {"tasks": 4, "idle_ms": 10_000.0, "longest_ms": 5000.0, "most_bytes": 20 * MIB}
    uneven = detail(facts=facts, uses=frozenset({"shuffle read"}))
    (found,) = findings.idle_slots(RULES, uneven)
    assert (found.skew_bytes, found.advice) == (2.5, SplitKeys())


FEW: dict[str, Any] = {"tasks": 1, "idle_ms": 30_000.0}


def test_few_tasks_of_a_scan() -> None:
    (found,) = findings.idle_slots(RULES, detail(facts=FEW))
    assert found.cost_ms == pytest.approx(7500)
    assert (found.cause, found.advice) == ("few-tasks", SmallerFileParts())


def test_slots_that_other_stages_use_are_not_idle() -> None:
    assert findings.idle_slots(RULES, detail(facts={**FEW, "idle_ms": 0.0})) == []
    (found,) = findings.idle_slots(RULES, detail(facts={**FEW, "idle_ms": 4000.0}))
    assert found.cost_ms == pytest.approx(1000)


def test_starting_tasks_is_not_work_to_spread() -> None:
    (found,) = findings.idle_slots(RULES, detail(facts={**FEW, "starting_ms": 36_000.0}))
    assert found.cost_ms == pytest.approx(750)


def test_free_slots_while_tasks_wait_are_not_a_last_wave() -> None:
    one_by_one = detail(facts={"tasks": 10, "idle_ms": 30_000.0, "task_ms": 10_000.0, "starting_ms": 0.0})
    (found,) = findings.idle_slots(RULES, one_by_one)
    assert (found.cause, found.advice) == ("free-slots", InspectTaskWaits())


def test_slots_free_while_tasks_waited_for_locality() -> None:
    one_by_one = {"tasks": 10, "idle_ms": 30_000.0, "task_ms": 10_000.0, "starting_ms": 6000.0}
    (found,) = findings.idle_slots(RULES, detail(facts=one_by_one, data_local=10, on_busiest=9))
    assert (found.cause, found.on_busiest, found.advice) == ("bound-to-data", 9, RelaxPlacement())
    assert found.cost_ms == pytest.approx(7500)
    assert findings.idle_slots(RULES, detail(facts=one_by_one, data_local=4, on_busiest=9))[0].cause == "free-slots"


def test_task_that_only_waited_is_not_split() -> None:
    slow = {"duration_ms": 10_000.0, "cpu_ms": 500.0}
    (found,) = findings.idle_slots(RULES, detail(slow, FEW))
    assert found.cost_ms == pytest.approx(0.75 * (10_000 - (10_000 - 1000 - 500)))
    assert findings.idle_slots(RULES, detail({**slow, "cpu_ms": 9500.0}, FEW))[0].cost_ms == pytest.approx(7500)
    assert findings.idle_slots(RULES, detail({**slow, "read_bytes": 80 * MIB}, FEW))[0].cost_ms == pytest.approx(7500)


def empty(**more: Any) -> StageStats:
    """Thirty tasks for 30 slots, of which six read what there is and the others ended at once."""
    facts = {"tasks": 30, "slots": 30, "median_ms": 100.0, "median_bytes": 1000.0, "most_bytes": 50 * MIB}
    idle = {"length_ms": 10_000.0, "idle_ms": 240_000.0, "longest_ms": 1100.0}
    return detail(
        {"read_bytes": 50 * MIB}, {**facts, **idle}, **{"siblings": StagePeers(loaded=6, loaded_ms=1000.0), **more}
    )


def test_tasks_without_input_do_not_share_work() -> None:
    (found,) = findings.idle_slots(RULES, empty())
    assert (found.cause, found.with_data, found.tasks, found.slots) == ("empty-tasks", 6, 30, 30)
    assert found.cost_ms == pytest.approx(8000)
    assert found.advice == SmallerRowGroups()
    assert findings.straggler(RULES, empty(), []) == [], "it takes as long as the others that have data"


def test_tasks_that_read_nothing_and_take_as_long_share_the_work() -> None:
    made = empty(siblings=StagePeers(loaded=6, loaded_ms=150.0))
    assert made.with_data == 30
    assert [each.cause for each in findings.idle_slots(RULES, made)] == ["free-slots"]


def test_a_file_cannot_be_split_where_a_task_read_more_than_spark_cuts() -> None:
    large = detail(facts={"tasks": 4, "most_bytes": 300 * MIB})
    assert uneven_advice(large) == SplittableFiles()
    assert uneven_advice(replace(large, facts=replace(large.facts, most_bytes=100 * MIB))) == EvenFiles()
    assert uneven_advice(replace(large, settings={"spark.sql.files.maxPartitionBytes": "1g"})) == EvenFiles()


# Sums -----------------------------------------------------------------------------------------------------------------


def few(stage: str, cost_ms: float) -> IdleStage:
    """A stage of one task for 64 slots."""
    return IdleStage(
        stage, "work", cost_ms, "modelled", MoreTasks(), cause="few-tasks", tasks=1, with_data=1, slots=64,
        waves=1 / 64, idle_share=63 / 64, skew_bytes=None, on_busiest=1,
    )  # fmt: skip


def test_findings_of_one_kind_merge_with_summed_cost_and_largest_name() -> None:
    (found,) = findings.sum_of_stages([few(f"stage:{seconds}.0", 1000.0 * seconds) for seconds in range(1, 11)])
    assert isinstance(found, IdleSlots)
    assert (found.kind, found.cost_ms, found.advice) == ("idle-slots", 55_000, MoreTasks())
    assert [each.id for each in found.stages[:2]] == ["stage:10.0", "stage:9.0"]
    assert len(found.stages) == 10
    assert {"stage:10.0", "stage:9.0"} <= set(re.findall(r"stage:[\d.]*\d", text_of(found, WORDS)))


def test_findings_of_two_kinds_stay_two_and_a_second_advice_names_its_stage() -> None:
    first = few("stage:1.0", 3000.0)
    assert len(findings.sum_of_stages([first, replace(first, cause="last-wave")])) == 2
    other = replace(few("stage:2.0", 2000.0), advice=SplitKeys())
    (found,) = findings.sum_of_stages([first, other])
    assert (found.advice, found.other_advice) == (MoreTasks(), other)
    assert "; for stage:2.0: " in advice_text(found, WORDS)
    (found,) = findings.sum_of_stages([first, replace(other, cost_ms=500.0)])
    assert found.other_advice is None


def test_more_partitions_are_not_advised_where_they_cannot_be() -> None:
    schema = detail(facts={**FEW, "scope": None}, place="parquet at Native.java:0", read_bytes=0, operators=())
    assert few_tasks_advice(schema) == GiveSchema(inferred=False)
    assert few_tasks_advice(detail(facts=FEW, place="show at <console>:1")) is None
    assert few_tasks_advice(detail(facts=FEW, operators=("CollectLimit",))) is None
    single = detail(facts=FEW, uses=frozenset({"shuffle read"}), details=("Exchange SinglePartition, ENSURE",))
    assert few_tasks_advice(single) is None
    joined = detail(facts=FEW, uses=frozenset({"shuffle read"}), operators=("AQEShuffleRead",), read_bytes=1000)
    assert few_tasks_advice(joined) is None
    assert few_tasks_advice(replace(joined, read_bytes=200 * MIB)) == MergeFewerPartitions()
    assert findings.idle_slots(RULES, single) == []


# Overheads ------------------------------------------------------------------------------------------------------------


def test_tasks_dominated_by_their_start_are_a_finding() -> None:
    assert findings.starting_tasks(detail()) == []
    (found,) = findings.starting_tasks(detail(facts={"starting_ms": 20_000.0, "scheduler_delay_ms": 15_000.0}))
    assert found.cost_ms == pytest.approx(5000)
    assert (found.tasks, found.share, found.scheduler_delay_ms) == (40, 0.5, 15_000)
    few = detail(facts={"starting_ms": 20_000.0, "scheduler_delay_ms": 15_000.0}, median_starting=0.01)
    assert findings.starting_tasks(few) == [], "only the first ones of their executors took long to start"


def test_spills_name_the_operator_and_cost_the_disks_share() -> None:
    assert findings.spilling([detail()], []) == []
    spilled = detail(facts={"spill_bytes": 500 * MIB, "resource_ms": parts(cpu=30_000.0, disk=10_000.0)})
    (found,) = findings.spilling([detail(), spilled], ["Sort", "HashAggregate"])
    assert found.cost_ms == pytest.approx(2500)
    not_recorded = detail(facts={"spill_bytes": 50 * 10**6, "resource_ms": parts(cpu=30_000.0, other=10_000.0)})
    (small,) = findings.spilling([not_recorded], [])
    assert small.cost_ms == pytest.approx(10_000 * 2000 / 40_000), "no more than moving its bytes takes"
    assert (found.spilled_bytes, found.operator) == (500 * MIB, "Sort")


def test_rows_that_python_workers_of_rdds_spilled_ask_for_memory_of_theirs() -> None:
    spilled = {"spill_bytes": 500 * MIB, "resource_ms": parts(disk=40_000.0)}
    of_rdd = detail(facts={**spilled, "scope": None}, delegates=True, spills_apart=True)
    (found,) = findings.spilling([of_rdd], [])
    assert found.advice == AvoidSpilling(delegated=True)
    of_query = detail(facts=spilled, delegates=True)
    (found,) = findings.spilling([of_rdd, of_query], [])
    assert found.advice == AvoidSpilling(delegated=False), "the executor spilled some of it"


def test_garbage_collection_counts_from_a_tenth() -> None:
    assert findings.garbage_collection([detail(facts={"gc_ms": 3900.0})]) == []
    (found,) = findings.garbage_collection([detail(facts={"gc_ms": 20_000.0}), detail(facts={"gc_ms": 8000.0})])
    assert found.cost_ms == pytest.approx(5000 + 2000)
    assert (found.share, found.other_stages) == (0.5, 1)


def test_a_device_busy_without_data_is_odd_unless_it_is_the_bottleneck() -> None:
    busy = detail(facts={"resource_ms": parts(cpu=20_000.0, net=20_000.0)}, moved_bytes={"disk": 0, "net": 3 * MIB})
    (found,) = findings.odd_use(RULES, [busy], {"cpu"})
    assert (found.resource, found.resource_ms, found.moved_bytes) == ("net", 20_000, 3 * MIB)
    assert found.cost_ms == pytest.approx(5000)
    assert findings.odd_use(RULES, [busy], {"net"}) == []
    assert findings.odd_use(RULES, [replace(busy, moved_bytes={"disk": 0, "net": 900 * MIB})], {"cpu"}) == []


def test_no_time_gives_no_finding() -> None:
    assert figures(part_of(5.0, 700.0, "its")) == [5, 700]
    assert [lasting(each) for each in (2130.0, 99.6, 99.0, 0.0)] == ["2.1 s", "0.1 s", "99 ms", "0.0 s"]


def test_tasks_without_a_cpu_cost_their_cpu_wait() -> None:
    assert findings.short_of_cpus([detail()], [], np.inf) == []
    starved = detail(cpu_wait_ms=30_000.0)
    (found,) = findings.short_of_cpus([starved], [], np.inf)
    assert found.cost_ms == 7500
    assert (found.waited_ms, found.cpu_ms) == (30_000, 40_000)
    assert (found.throttled_share, found.cores_per_slot, found.others_cores) == (None, None, None)
    (found,) = findings.short_of_cpus([starved], [], 0.2)
    assert found.cores_per_slot == 0.2


@pytest.mark.parametrize(
    ("contended_share", "cores_per_slot", "advice"),
    [
        (0.0, np.inf, MoreCpu(larger_limit=False, own_machines=False, slots="fewer-than-cores")),
        (0.0, 0.2, MoreCpu(larger_limit=True, own_machines=False, slots="fewer")),
        (0.9, np.inf, MoreCpu(larger_limit=False, own_machines=True, slots="fewer")),
        (0.9, 0.2, MoreCpu(larger_limit=True, own_machines=True, slots="fewer")),
    ],
)
def test_advice_on_cpu_wait_depends_on_who_uses_the_cpu(
    contended_share: float, cores_per_slot: float, advice: MoreCpu
) -> None:
    contention = [CpuContention("stage:3.0", contended_share, 5.5, 8.0)]
    (found,) = findings.short_of_cpus([detail(cpu_wait_ms=30_000.0)], contention, cores_per_slot)
    assert found.advice == advice


def test_exhausted_quota_explains_cpu_waits_despite_neighbours() -> None:
    starved, contention = detail(cpu_wait_ms=30_000.0), [CpuContention("stage:3.0", 0.9, 5.5, 8.0)]
    (found,) = findings.short_of_cpus([starved], contention, 0.2, throttled={"stage:3.0": 0.82})
    assert found.throttled_share == pytest.approx(0.82)
    assert (found.cores_per_slot, found.others_cores) == (None, None)
    assert found.advice == MoreCpu(larger_limit=True, own_machines=False, slots="same")
    (found,) = findings.short_of_cpus([starved], contention, 0.2, throttled={"stage:3.0": 0.3})
    assert (found.throttled_share, found.others_cores) == (None, 5.5)


def test_task_whose_python_worker_computes_has_no_cpu_wait() -> None:
    assert SPARK.reader.delegates(frozenset({"scan", "python"}))
    assert findings.short_of_cpus([detail(cpu_wait_ms=30_000.0, delegates=True)], [], np.inf) == []


def test_other_processes_are_named_if_the_machine_was_full_most_of_the_time() -> None:
    starved = detail(cpu_wait_ms=30_000.0)
    (found,) = findings.short_of_cpus([starved], [CpuContention("stage:3.0", 0.7, 5.5, 8.0)], np.inf)
    assert (found.others_cores, found.host_cores) == (pytest.approx(5.5), 8)
    (found,) = findings.short_of_cpus([starved], [CpuContention("stage:3.0", 0.4, 5.5, 8.0)], np.inf)
    assert found.others_cores is None


def test_neighbours_are_the_use_of_a_full_machine_by_other_applications(tmp_path: Path) -> None:
    """Two workers on one machine of 4 cores, measured at different moments, and one on a machine of its own.

    From second 10 on, the shared one is full: the two use 1.5 cores together, so 2.5 are of others.
    """
    with create(tmp_path / "run.duckdb", "run", {}) as connection:
        connection.execute(
            "INSERT INTO workers (worker_id, kind, host, added_ms)"
            " VALUES ('0', 'worker', 'a', 0), ('1', 'worker', 'a', 0), ('2', 'worker', 'b', 0)"
        )
        for worker, cores, shift in (("0", 1.0, 0), ("1", 0.5, 300), ("2", 3.9, 0)):
            rows = [
                (worker, second * 1000.0 + shift, cores, 4.0 if second > 10 or worker == "2" else 2.0, 4)
                for second in range(21)
            ]
            connection.executemany(
                "INSERT INTO loads (worker_id, time_ms, cpu_cores, machine_cores, processors) VALUES (?, ?, ?, ?, ?)",
                rows,
            )
        connection.executemany(
            "INSERT INTO tasks (task_id, stage_id, worker_id, launch_ms, finish_ms, status)"
            " VALUES (?, ?, ?, ?, ?, 'succeeded')",
            [
                (0, "stage:0.0", "0", 0, 5000),
                (1, "stage:1.0", "0", 5000, 15_000),
                (2, "stage:1.0", "2", 5000, 15_000),
                (3, "stage:2.0", "1", 12_000, 14_000),
            ],
        )
        found = neighbours(connection, 0.0, 20_000.0)
        assert [each.stage for each in found] == ["stage:1.0", "stage:2.0"]
        assert [each.contended_share for each in found] == pytest.approx([0.25, 1.0])
        assert [each.others_cores for each in found] == pytest.approx([2.5, 2.5])
        assert [each.processors for each in found] == [4.0, 4.0]
        (early,) = neighbours(connection, 0.0, 11_000.0)
        assert (early.stage, early.contended_share) == ("stage:1.0", pytest.approx(1 / 12))


def test_time_without_a_task_is_separate() -> None:
    alone: dict[Cause, float] = {"no worker": 4000.0, "no scope": 2000.0, "driver": 1000.0}
    assert findings.driver(alone, {"driver": 700.0}, 3) == [
        NoScope(2000, "measured", InspectProgram()),
        Driver(1000, "measured", InspectDriver(3), unknown_ms=700),
    ]
    (_, whole) = findings.driver(alone, {"driver": 1000.0}, 3)
    assert whole == Driver(1000, "measured", InspectDriver(3), unknown_ms=None), "all of it is said already"


def test_code_generation_is_a_finding_of_spark() -> None:
    assert compiling([detail()], {}) == []
    (found,) = compiling([detail()], {"stage:3.0": 4000.0, "stage:4.0": 9000.0})
    assert (found.kind, found.cost_ms) == ("compiling", pytest.approx(1000))


# Other frameworks -----------------------------------------------------------------------------------------------------


def test_rules_use_any_frameworks_vocabulary_and_generic_advice() -> None:
    gpu = Resource("gpu", "GPU", "gpu_speed", "speed", "worker")
    link = Resource("link", "PCIe", "link", "bytes per second", "worker", 1 << 20, 0.01, 16e9, ("input_bytes",))
    words = Vocabulary(worker="process", slot="stream", stage="layer", task="kernel", driver="host", scope="step")
    rules, own = Advisor(), Words("", words, (*known(), gpu, link))
    slow = detail(
        {"duration_ms": 7000.0, "resource_ms": {**parts(cpu=1000.0), "gpu": 6000.0}},
        {"longest_ms": 7000.0},
        median_resource_ms={**parts(cpu=1000.0), "gpu": 0.0},
    )
    (found,) = findings.straggler(rules, slow, [])
    assert found.cause == MoreOfResource("gpu", 6000)
    assert {"kernel", "GPU"} <= set(re.findall(r"\w+", text_of(found, own)))
    (few_tasks,) = findings.idle_slots(rules, detail(facts=FEW))
    assert {"kernel", "streams"} <= set(re.findall(r"\w+", text_of(few_tasks, own)))
    assert few_tasks.advice == MoreTasks()
    assert "kernels" in text_of(MoreTasks(), own)
    (found,) = findings.straggler(rules, late(read_bytes=56 * MIB), [])
    assert found.advice == SpreadInput()
    busy = detail(
        facts={"resource_ms": {**parts(cpu=20_000.0), "link": 20_000.0}}, moved_bytes={"disk": 0, "net": 0, "link": MIB}
    )
    (odd,) = findings.odd_use(rules, [busy], {"cpu"})
    assert {"kernel", "PCIe"} <= set(re.findall(r"\w+", text_of(odd, own)))
    assert "step" in text_of(NoScope(2000.0, "measured", InspectProgram()), own)


def test_plural_follows_the_count() -> None:
    assert [counted(1, "query"), counted(2, "query"), counted(0, "batch")] == ["1 query", "2 queries", "0 batches"]


# Waiting --------------------------------------------------------------------------------------------------------------


def test_intervals_are_merged() -> None:
    found = merged(np.array([5.0, 0.0, 2.0, 9.0]), np.array([6.0, 3.0, 4.0, np.inf]))
    assert found.tolist() == [[0, 4], [5, 6], [9, np.inf]]
    assert merged(np.empty(0), np.empty(0)).shape == (0, 2)


# A made run -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two stages in a pipeline from second 1 to 11, of which the second waits 8 s for the first; no driver's
    process, no samples, and a resource of its own."""
    link = Resource(
        "link", "PCIe", "link", "bytes per second", "worker", 1 << 20, 0.01, 16e9, ("exchange_write_bytes",)
    )
    made = of_rows(
        {"app_id": "made", "framework": "flowing", "started_at_ms": 0, "duration_ms": 12_000.0},
        [Worker("w", 2)],
        [Stage(name, 1, 1000.0, 11_000.0, name) for name in ("reads", "writes")],
        [
            Task(1, "reads", "w", 1000.0, 11_000.0, input_bytes=5, remote_read_bytes=7, measured_ms={"cpu": 10_000.0}),
            Task(
                2, "writes", "w", 1000.0, 11_000.0, pipeline_wait_ms=8000.0, exchange_write_bytes=3, output_bytes=11,
                measured_ms={"link": 1500.0},
            ),
        ],
        [Edge("reads", "writes", "pipelined", "flows")],
        [Scope("loop:9", "loop", 0.0, 12_000.0), Scope("step:2", "step", 0.0, None, "second")],
        more_resources=[link],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("run") / "flowing.duckdb"
    frameworks()[FLOWING.name] = FLOWING
    write_run(gather(made, FLOWING, Problems()), path)
    yield path
    del frameworks()[FLOWING.name]


def _no_log(_: Any) -> Any:
    raise AssertionError("nothing is read here")


FLOWING = Framework(
    name="flowing",
    title="Flowing",
    reader=Reader(
        recognise=lambda _head: None, read=_no_log, frames=Frames(process=lambda _arguments, name: (None, name))
    ),
    vocabulary=Vocabulary(scope="step", scopes=("step", "loop")),
    advisor=Advisor(setup=Setup(lambda _folder: "", lambda _folder: {})),
)


def test_waiting_for_a_pipelined_stage_is_a_cause_of_its_own(flowing: Path) -> None:
    with duckdb.connect(str(flowing), read_only=True) as connection:
        execution = load(connection)
        pieces = critical_path(execution.dag, execution.tasks, execution.driver.between, execution.names)
        last = next(each for each in execution.dag.nodes.values() if each.node_id == "writes")
        piece = Piece(last, 1000.0, 11_000.0, np.array([0.0, 0.0, 0.0, 1500.0, 8500.0]))
        alive = with_workers(connection, execution)
        other_ms, alone_ms = waiting(connection, execution, FLOWING.advisor, [piece], alive)
        assert other_ms == pytest.approx({"upstream": 8000, "unknown": 500})
        assert set(alone_ms.values()) == {0}
        other_ms, _ = waiting(connection, execution, FLOWING.advisor, pieces, alive)
        assert sum(other_ms.values()) == pytest.approx(sum(float(each.parts_ms[-1]) for each in pieces))


def test_stages_that_other_processes_compute_for_are_known(flowing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such processes spill apart from workers, but for a stage of a scope, as a query is one."""
    delegating = replace(FLOWING, reader=replace(FLOWING.reader, delegates=lambda uses: "python" in uses))
    monkeypatch.setitem(frameworks(), "flowing", delegating)
    with duckdb.connect(str(flowing)) as connection:
        connection.execute("BEGIN")
        connection.execute("UPDATE stages SET io_kinds = 'scan, python'")
        connection.execute("UPDATE stages SET scope_id = 'step:2' WHERE stage_id = 'writes'")
        execution = load(connection)
        details = {each.facts.id: each for each in stage_stats(connection, execution, ())}
        alive = with_workers(connection, execution)
        piece = Piece(execution.dag.nodes["writes"], 1000.0, 11_000.0, np.array([0.0, 0.0, 0.0, 1500.0, 8500.0]))
        other_ms, _ = waiting(connection, execution, Advisor(), [piece], alive)
        connection.execute("ROLLBACK")
    assert {key: (each.delegates, each.spills_apart) for key, each in details.items()} == {
        "reads": (True, True),
        "writes": (True, False),
    }
    assert other_ms == pytest.approx({"upstream": 8000, "delegated": 500})


def test_bytes_that_may_have_crossed_each_device_are_summed(flowing: Path) -> None:
    """Input may lie elsewhere, so it may have crossed the network; a disk also had what tasks of others wrote."""
    with duckdb.connect(str(flowing), read_only=True) as connection:
        details = {each.facts.id: each for each in stage_stats(connection, load(connection), ())}
    assert details["reads"].moved_bytes == {"disk": 5 + 12, "net": 7 + 5, "link": None}
    assert details["writes"].moved_bytes == {"disk": 3 + 11, "net": None, "link": 3}


def test_unrecorded_time_names_an_action_and_no_command(flowing: Path) -> None:
    with duckdb.connect(str(flowing), read_only=True) as connection:
        answer = diagnosed(connection, load(connection), FLOWING.advisor).debug
    (note,) = answer.not_recorded
    remedy = Remedy("set up the job", {"framework": "flowing"})
    assert note == CodeUnsampled("Flowing", storage=True, unusable=False, remedy=remedy)
    assert [(each.id, each.name, each.end_ms) for each in answer.scopes] == [("step:2", "second", None)]
    assert answer.driver_ms == pytest.approx(2000)  # before the first task and after the last
    assert (answer.measure, set(answer.resource_ms)) == ("makespan", {"cpu", "disk", "net", "link", "other"})


def test_unusable_recordings_are_not_requested(flowing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frameworks(), "flowing", replace(FLOWING, reader=replace(FLOWING.reader, frames=Frames())))
    with duckdb.connect(str(flowing), read_only=True) as connection:
        (note,) = diagnosed(connection, load(connection), FLOWING.advisor).debug.not_recorded
    assert (type(note), note.remedy) == (TimeUnmeasured, None)


def test_code_that_no_index_knows_is_named_by_its_package(flowing: Path, tmp_path: Path) -> None:
    noted = tmp_path / "noted.duckdb"
    shutil.copyfile(flowing, noted)
    with duckdb.connect(str(noted)) as connection:
        rows = [("other index", "made-1", "another version"), ("unindexed code", "com.acme", "9% is in com.acme.*")]
        connection.executemany("INSERT INTO import_stats VALUES (?, 'info', ?, 1, NULL, ?)", rows)
        (note,) = diagnosed(
            connection, load(connection), FLOWING.advisor
        ).debug.not_recorded  # without samples no code was looked up
        assert isinstance(note, CodeUnsampled)
        connection.execute("INSERT INTO samples (time_ms, kind, weight_ms) VALUES (1.0, 'wall', 1.0)")
        first, second, *_ = diagnosed(connection, load(connection), FLOWING.advisor).debug.not_recorded
    remedy = Remedy("index the code", {"prefix": "com.acme"})
    assert first == CodeUnlabelled("9% is in com.acme.*", remedy=remedy)
    assert second == CodeUnlabelled("another version")


# The demo -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(demo_run: Run) -> Run:
    return demo_run


def test_causes_of_other_time_sum_to_it(run: Run) -> None:
    answer = run.debug()
    assert sum(answer.other_ms.values()) == pytest.approx(answer.resource_ms["other"])
    assert next(iter(answer.other_ms)) == "no worker"
    assert answer.other_ms["no worker"] == pytest.approx(14_232, abs=1)  # when the first executor registered


def test_a_scope_within_a_query_waits_for_no_executor(run: Run) -> None:
    answer = run.debug("sql:6")
    assert "no worker" not in answer.other_ms
    assert sum(answer.other_ms.values()) == pytest.approx(answer.resource_ms["other"])


def test_every_stage_of_the_scope_has_its_facts(run: Run) -> None:
    answer = run.debug()
    stages = {each.id: each for each in answer.stages}
    on_path = [item for item in answer.critical_path if item.id.startswith("stage:")]
    assert {item.id for item in on_path} <= set(stages)
    assert sum(each.path_ms for each in stages.values()) == pytest.approx(
        sum(item.end_ms - item.start_ms for item in on_path)
    )
    exchange = stages["stage:14.0"]
    assert (exchange.tasks, exchange.slots) == (5, 4)
    assert 1 < exchange.skew_time < 1.5
    assert stages["stage:0.0"].skew_time is None
    for each in stages.values():
        assert sum(each.resource_ms.values()) == pytest.approx(each.task_ms)
        assert 0 <= each.idle_ms <= each.slots * each.length_ms


def test_demo_waited_most_for_a_cpu(run: Run) -> None:
    """Its executors had a quota of 0.2 cores a slot, on a machine that was busy with other things."""
    first = run.debug().findings[0]
    assert isinstance(first, ShortOfCpus)
    assert first.cores_per_slot == pytest.approx(0.2, abs=0.01)
    assert (first.others_cores, first.host_cores) == (pytest.approx(1.66, abs=0.01), 2)


def test_schema_stages_get_no_advice_on_partitions(run: Run) -> None:
    idle = [each for each in run.debug().findings if isinstance(each, IdleSlots)]
    found = [each for finding in idle for each in finding.stages if each.tasks == 1 and each.name.startswith("parquet")]
    assert found
    assert {each.advice for each in found} == {GiveSchema(inferred=False)}


def test_labels_that_the_log_contradicts_are_shown(run: Run, tmp_path: Path) -> None:
    """Were fetching shuffle blocks labelled disk, Spark's own fetch wait time would contradict it."""
    wrong = tmp_path / "wrong.duckdb"
    shutil.copyfile(run.path, wrong)
    with duckdb.connect(str(wrong)) as connection:
        connection.execute(
            "UPDATE stacks SET cpu = 0, disk = 1, net = 0"
            " WHERE contains(frames::VARCHAR, 'ShuffleBlockFetcherIterator')"
        )
    found = {(each.stage, each.resource): each for each in Run(wrong).debug().disagreements}
    net, disk = found["stage:14.0", "net"], found["stage:14.0", "disk"]
    assert net.label_share < net.at_least_share - 0.1
    assert disk.label_share > disk.at_most_share + 0.1


def test_stage_of_negligible_cost_is_counted_and_not_named() -> None:
    (found,) = findings.sum_of_stages([few("stage:1.0", 9000.0), few("stage:2.0", 300.0), few("stage:3.0", 100.0)])
    text = text_of(found, WORDS)
    assert "stage:1.0" in text
    assert "stage:2.0" not in text
    (found,) = findings.sum_of_stages([few("stage:1.0", 9000.0), few("stage:2.0", 3000.0)])
    assert "stage:2.0" in text_of(found, WORDS)
