"""What cost time and why: each rule on made groups, the causes of other time, and labels against measurements.

Made groups are stages of Spark: what a user of it reads is what is asked for here.
"""

from __future__ import annotations

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
from crystalperf.query.answers.values import Cause, GroupFacts
from crystalperf.query.explain import findings
from crystalperf.query.explain.diagnose import diagnose
from crystalperf.query.explain.facts import Detail, Longest, Neighbours, Siblings, group_details, neighbours
from crystalperf.query.explain.findings import Part
from crystalperf.query.explain.hosts import HostTime
from crystalperf.query.explain.waiting import waiting, with_workers
from crystalperf.query.explain.wording import Terms
from crystalperf.query.frameworks import Advisor, Frames, Framework, Reader, Setup, Vocabulary
from crystalperf.query.frameworks.known import frameworks
from crystalperf.query.frameworks.spark import SPARK
from crystalperf.query.frameworks.spark.rules import RULES, compiling, few_tasks_advice, uneven_advice
from crystalperf.query.model.amounts import counted, lasting, part_of
from crystalperf.query.model.critical import Piece, critical_path
from crystalperf.query.model.load import load
from crystalperf.query.model.records import Problems
from crystalperf.query.model.timeline import merged
from crystalperf.query.model.trace import Edge, Group, Scope, Unit, Worker, of_rows
from crystalperf.query.profiling import assemble
from crystalperf.query.run import Run

MIB = 2**20

TERMS = Terms(SPARK.vocabulary, known(), RULES)


def parts(cpu: float = 0.0, disk: float = 0.0, net: float = 0.0, other: float = 0.0) -> dict[str, float]:
    return {"cpu": cpu, "disk": disk, "net": net, "other": other}


def detail(longest: dict[str, Any] | None = None, facts: dict[str, Any] | None = None, **more: Any) -> Detail:
    """A stage of 40 even tasks of a second, all CPU, on 4 slots, ten seconds on the path; then changed."""
    even = GroupFacts(
        id="stage:3.0", name="work", scope="sql:1", units=40, slots=4, length_ms=10_000.0, path_ms=10_000.0,
        median_ms=1000.0, longest_ms=1000.0, median_bytes=8 * MIB, most_bytes=8 * MIB, unit_ms=40_000.0, idle_ms=0.0,
        starting_ms=0.0, queued_ms=0.0, gc_ms=0.0, spill_bytes=0, resource_ms=parts(cpu=40_000.0),
    )  # fmt: skip
    usual = Longest(
        unit_id=17, worker_id="1", host="w1", duration_ms=1000.0, read_bytes=8 * MIB, gc_ms=0.0,
        resource_ms=parts(cpu=1000.0),
    )  # fmt: skip
    whole = Detail(
        facts=replace(even, **(facts or {})),
        longest=replace(usual, **(longest or {})),
        own_ms=39_000.0,
        own_cpu_ms=39_000.0,
        ready_ms=1000.0,
        peers_ms=0.0,
        read_bytes=320 * MIB,
        moved_bytes={"disk": 640 * MIB, "net": 320 * MIB},
        median_resource_ms=parts(cpu=1000.0),
        what="scan",
        place="collect at job.py:1",
        operators=("Scan parquet",),
        details=("FileScan parquet [a#1]",),
        siblings=Siblings(loaded=38, loaded_ms=1000.0),
        median_cpu_ms=1000.0,
    )
    return replace(whole, **more)


def late(more: dict[str, Any] | None = None, **longest: Any) -> Detail:
    """The same with one task that takes seven seconds, on the CPU."""
    facts = {"longest_ms": 7000.0}
    usual = {"duration_ms": 7000.0, "resource_ms": parts(cpu=7000.0), "cpu_ms": 7000.0}
    return detail({**usual, **longest}, facts, **(more or {}))


def host(name: str, ms: float, others_ms: float, resource: str = "net", **more: Any) -> HostTime:
    return replace(
        HostTime("stage:3.0", name, resource, 10, ms, others_ms, 8.0 * MIB, 8.0 * MIB, others_duration_ms=1000.0),
        **more,
    )


# Stragglers -----------------------------------------------------------------------------------------------------------


def test_even_tasks_are_no_finding() -> None:
    assert findings.straggler(TERMS, detail(), []) == []
    assert findings.straggler(TERMS, detail(facts={"longest_ms": 1900.0}), []) == []


def test_a_straggler_costs_what_it_takes_longer_and_no_more_than_its_stage_was_on_the_path() -> None:
    (found,) = findings.straggler(TERMS, late(), [])
    assert found.cost_ms == 6000
    assert "7.0 times the median" in found.what
    assert "task 17" in found.what
    short = late()
    (found,) = findings.straggler(TERMS, replace(short, facts=replace(short.facts, path_ms=50.0)), [])
    assert found.cost_ms == 50


def test_a_straggler_that_read_more_has_more_data() -> None:
    (found,) = findings.straggler(TERMS, late(read_bytes=56 * MIB), [])
    assert "it read 56 MiB, 7.0 times the median" in found.what
    assert found.basis == "measured"
    assert "file" in found.advice
    (found,) = findings.straggler(TERMS, replace(late(read_bytes=56 * MIB), what="shuffle read"), [])
    assert "keys" in found.advice


def test_more_data_is_no_reason_where_others_read_as_much_in_half_the_time() -> None:
    alike = {"siblings": Siblings(alike=3, alike_ms=1100.0)}
    (found,) = findings.straggler(TERMS, late(alike, read_bytes=56 * MIB), [])
    assert "it read" not in found.what
    slow = {"siblings": Siblings(alike=3, alike_ms=6000.0)}
    (found,) = findings.straggler(TERMS, late(slow, read_bytes=56 * MIB), [])
    assert "it read" in found.what


def test_twice_the_data_does_not_explain_seven_times_the_time() -> None:
    (found,) = findings.straggler(TERMS, late(read_bytes=16 * MIB), [])
    assert "it read" not in found.what


def test_a_straggler_whose_executor_collected_garbage() -> None:
    (found,) = findings.straggler(TERMS, late(gc_ms=5000.0), [])
    assert "collected garbage for 5.0 s" in found.what
    (found,) = findings.straggler(TERMS, late({"median_gc_ms": 4500.0}, gc_ms=5000.0), [])
    assert "garbage" not in found.what


def test_a_straggler_on_a_slow_node() -> None:
    hosts = [host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)]
    (found,) = findings.straggler(TERMS, late(resource_ms=parts(cpu=1000.0, net=6000.0), cpu_ms=1000.0), hosts)
    assert "tasks on w1 spend 4.5 times as long on network" in found.what
    assert found.basis == "modelled"
    (found,) = findings.straggler(TERMS, late(), hosts)
    assert "w1" not in found.what, "it had its time on the CPU, which is as fast there"


def test_the_first_task_of_an_executor_warms_it_up_where_cpu_time_and_other_firsts_bear_it_out() -> None:
    others = {"siblings": Siblings(firsts=3, firsts_ms=6500.0)}
    (found,) = findings.straggler(TERMS, late(others, first=True), [])
    assert "first on executor 1, which had yet to load" in found.what
    assert found.basis == "modelled"
    (found,) = findings.straggler(TERMS, late(first=True), [])
    assert "may have had to load" in found.what
    assert found.basis == "guessed"
    (found,) = findings.straggler(TERMS, late({**others, "median_cpu_ms": None}, first=True, cpu_ms=None), [])
    assert found.basis == "guessed"


def test_a_first_task_that_waited_or_whose_siblings_were_firsts_as_well_did_not_warm_up() -> None:
    waited = late(first=True, cpu_ms=67.0, resource_ms=parts(cpu=67.0, other=6933.0))
    (found,) = findings.straggler(TERMS, waited, [])
    assert "it computed for 0.1 of its 7.0 s and waited" in found.what
    assert found.basis == "measured"
    (found,) = findings.straggler(TERMS, late({"siblings": Siblings(firsts=3, firsts_ms=1000.0)}, first=True), [])
    assert "first on" not in found.what


def test_else_the_resource_that_it_had_more_of_is_named() -> None:
    (found,) = findings.straggler(TERMS, late(resource_ms=parts(cpu=1000.0, disk=6000.0), cpu_ms=1000.0), [])
    assert "6.0 s more on disk than usual" in found.what
    assert found.basis == "modelled"
    (found,) = findings.straggler(TERMS, late(), [])
    assert "6.0 s more on the CPU" in found.what
    assert found.basis == "measured"
    (found,) = findings.straggler(TERMS, late(resource_ms=parts(other=7000.0), cpu_ms=None), [])
    assert "no reason that the log tells" in found.what


# Nodes ----------------------------------------------------------------------------------------------------------------


def test_a_node_slower_than_its_peers_is_a_malfunction() -> None:
    (found,) = findings.slow_hosts(TERMS, [host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)], [detail()])
    assert "tasks on w1 spend 4.5 times as long on network as on its peers" in found.what
    assert found.cost_ms == pytest.approx(10_000 * 700 / 1700)


def test_beside_peers_that_spend_nothing_there_is_no_ratio_to_tell() -> None:
    (found,) = findings.slow_hosts(TERMS, [host("w1", 900.0, 0.0), host("w2", 0.0, 900.0)], [detail()])
    assert found.what == "tasks on w1 spend 0.9 s each on network, and next to none on its peers, in 1 stage"


def test_a_node_that_reads_more_is_not_slow() -> None:
    assert findings.slow_hosts(TERMS, [host("w1", 900.0, 200.0, median_bytes=40.0 * MIB)], [detail()]) == []


def test_a_node_slow_in_one_short_stage_of_many_is_chance() -> None:
    usual = [host("w1", 300.0, 300.0, group=f"stage:{number}.0", units=50) for number in range(4, 9)]
    assert findings.slow_hosts(TERMS, [host("w1", 900.0, 200.0), *usual], [detail()]) == []


def test_most_nodes_are_not_slower_than_their_peers() -> None:
    """Where they have one warm node with next to nothing to do for a peer, it is that one which is odd."""
    two = [host("w1", 900.0, 200.0), host("w2", 900.0, 200.0)]
    assert findings.slow_hosts(TERMS, [*two, host("w3", 200.0, 900.0)], [detail()]) == []
    assert len(findings.slow_hosts(TERMS, [*two, host("w3", 200.0, 900.0), host("w4", 200.0, 900.0)], [detail()])) == 2


# Slots ----------------------------------------------------------------------------------------------------------------


def test_full_slots_are_no_finding() -> None:
    assert findings.idle_slots(TERMS, detail()) == []


def test_a_half_empty_last_wave() -> None:
    (found,) = findings.idle_slots(TERMS, detail(facts={"units": 6, "idle_ms": 10_000.0, "longest_ms": 5000.0}))
    assert found.cost_ms == pytest.approx(2500)
    assert "1.5 waves" in found.what
    assert "smaller partitions" in found.advice


def test_idle_slots_of_uneven_data_ask_for_even_data() -> None:
    facts = {"units": 4, "idle_ms": 10_000.0, "longest_ms": 5000.0, "most_bytes": 20 * MIB}
    uneven = detail(facts=facts, what="shuffle read")
    (found,) = findings.idle_slots(TERMS, uneven)
    assert "2.5 times the median" in found.what
    assert "keys" in found.advice


FEW: dict[str, Any] = {"units": 1, "idle_ms": 30_000.0}


def test_few_tasks_of_a_scan() -> None:
    (found,) = findings.idle_slots(TERMS, detail(facts=FEW))
    assert found.cost_ms == pytest.approx(7500)
    assert "maxPartitionBytes" in found.advice


def test_slots_that_other_stages_use_are_not_idle() -> None:
    assert findings.idle_slots(TERMS, detail(facts={**FEW, "idle_ms": 0.0})) == []
    (found,) = findings.idle_slots(TERMS, detail(facts={**FEW, "idle_ms": 4000.0}))
    assert found.cost_ms == pytest.approx(1000)


def test_starting_tasks_is_no_work_to_share_out() -> None:
    (found,) = findings.idle_slots(TERMS, detail(facts={**FEW, "starting_ms": 36_000.0}))
    assert found.cost_ms == pytest.approx(750)


def test_slots_that_were_free_while_tasks_waited_are_no_last_wave() -> None:
    one_by_one = detail(facts={"units": 10, "idle_ms": 30_000.0, "unit_ms": 10_000.0, "starting_ms": 0.0})
    (found,) = findings.idle_slots(TERMS, one_by_one)
    assert found.kind == "free"
    assert "slots were free while tasks waited" in found.what
    assert "last wave" not in found.advice
    assert "spark.locality.wait" in found.advice


def test_slots_that_were_free_while_tasks_waited_for_their_place() -> None:
    one_by_one = {"units": 10, "idle_ms": 30_000.0, "unit_ms": 10_000.0, "starting_ms": 6000.0}
    (found,) = findings.idle_slots(TERMS, detail(facts=one_by_one, at_home=10, on_busiest=9))
    assert found.kind == "bound"
    assert found.cost_ms == pytest.approx(7500)
    assert "tasks waited for the executors that have their data, and 9 of 10 tasks ran on one executor" in found.what
    assert "spark.locality.wait to 0s" in found.advice
    assert findings.idle_slots(TERMS, detail(facts=one_by_one, at_home=4, on_busiest=9))[0].kind == "free"


def test_a_task_that_only_waited_is_none_to_cut() -> None:
    slow = {"duration_ms": 10_000.0, "cpu_ms": 500.0}
    (found,) = findings.idle_slots(TERMS, detail(slow, FEW))
    assert found.cost_ms == pytest.approx(0.75 * (10_000 - (10_000 - 1000 - 500)))
    assert findings.idle_slots(TERMS, detail({**slow, "cpu_ms": 9500.0}, FEW))[0].cost_ms == pytest.approx(7500)
    assert findings.idle_slots(TERMS, detail({**slow, "read_bytes": 80 * MIB}, FEW))[0].cost_ms == pytest.approx(7500)


def empty(**more: Any) -> Detail:
    """Thirty tasks for 30 slots, of which six read what there is and the others ended at once."""
    facts = {"units": 30, "slots": 30, "median_ms": 100.0, "median_bytes": 1000.0, "most_bytes": 50 * MIB}
    idle = {"length_ms": 10_000.0, "idle_ms": 240_000.0, "longest_ms": 1100.0}
    return detail(
        {"read_bytes": 50 * MIB}, {**facts, **idle}, **{"siblings": Siblings(loaded=6, loaded_ms=1000.0), **more}
    )


def test_tasks_that_read_nothing_share_no_work() -> None:
    (found,) = findings.idle_slots(TERMS, empty())
    assert "6 of 30 tasks had something to read, for 30 slots" in found.what
    assert found.cost_ms == pytest.approx(8000)
    assert "row groups" in found.advice
    assert findings.straggler(TERMS, empty(), []) == [], "it takes as long as the others that have data"


def test_tasks_that_read_nothing_and_take_as_long_share_the_work() -> None:
    made = empty(siblings=Siblings(loaded=6, loaded_ms=150.0))
    assert made.with_data == 30
    assert "had something to read" not in str(findings.idle_slots(TERMS, made))


def test_a_file_cannot_be_split_where_a_task_read_more_than_spark_cuts() -> None:
    large = detail(facts={"units": 4, "most_bytes": 300 * MIB})
    assert "cannot be split" in uneven_advice(large)
    assert "cannot be split" not in uneven_advice(replace(large, facts=replace(large.facts, most_bytes=100 * MIB)))
    assert "cannot be split" not in uneven_advice(replace(large, settings={"spark.sql.files.maxPartitionBytes": "1g"}))


# Sums -----------------------------------------------------------------------------------------------------------------


def test_findings_of_one_kind_are_one_that_costs_their_sum_and_names_the_largest() -> None:
    made = [
        Part(
            "idle slots", "few", 1000.0 * ms, f"stage:{ms}.0 work", "1 task for 64 slots", "modelled", "cut", "have few"
        )
        for ms in range(1, 11)
    ]
    (found,) = findings.added_up(TERMS, made)
    assert found.cost_ms == 55_000
    assert found.what == (
        "10 stages have few: stage:10.0 work: 1 task for 64 slots (10.0 s); "
        "stage:9.0 work: 1 task for 64 slots (9.0 s); and 8 others"
    )
    assert found.advice == "cut"


def test_findings_of_two_kinds_stay_two_and_a_second_advice_names_its_group() -> None:
    few = Part("idle slots", "few", 3000.0, "stage:1.0 work", "1 task", "modelled", "cut", "have few")
    wave = replace(few, kind="last wave", what="half empty")
    assert len(findings.added_up(TERMS, [few, wave])) == 2
    assert findings.added_up(TERMS, [few])[0].what == "stage:1.0 work: 1 task"
    (found,) = findings.added_up(TERMS, [few, replace(few, group="stage:2.0 x", cost_ms=2000.0, advice="split")])
    assert found.advice == "cut; for stage:2.0: split"


def test_more_partitions_are_not_advised_where_they_cannot_be() -> None:
    schema = detail(facts={**FEW, "scope": None}, place="parquet at Native.java:0", read_bytes=0, operators=())
    assert "schema" in str(few_tasks_advice(schema))
    assert few_tasks_advice(detail(facts=FEW, place="show at <console>:1")) is None
    assert few_tasks_advice(detail(facts=FEW, operators=("CollectLimit",))) is None
    single = detail(facts=FEW, what="shuffle read", details=("Exchange SinglePartition, ENSURE",))
    assert few_tasks_advice(single) is None
    joined = detail(facts=FEW, what="shuffle read", operators=("AQEShuffleRead",), read_bytes=1000)
    assert few_tasks_advice(joined) is None
    assert "coalescePartitions" in str(few_tasks_advice(replace(joined, read_bytes=200 * MIB)))
    assert findings.idle_slots(TERMS, single) == []


# Overheads ------------------------------------------------------------------------------------------------------------


def test_tasks_too_short_to_hand_out() -> None:
    assert findings.starting_units(TERMS, detail()) == []
    (found,) = findings.starting_units(TERMS, detail(facts={"starting_ms": 20_000.0, "queued_ms": 15_000.0}))
    assert found.cost_ms == pytest.approx(5000)
    assert "of its 40 tasks went to scheduling and unpacking them (15.0 s of it to scheduling)" in found.what
    few = detail(facts={"starting_ms": 20_000.0, "queued_ms": 15_000.0}, median_starting=0.01)
    assert findings.starting_units(TERMS, few) == [], "only the first ones of their executors took long to start"


def test_spills_name_the_operator_and_cost_the_disks_share() -> None:
    assert findings.spilling(TERMS, [detail()], []) == []
    spilled = detail(facts={"spill_bytes": 500 * MIB, "resource_ms": parts(cpu=30_000.0, disk=10_000.0)})
    (found,) = findings.spilling(TERMS, [detail(), spilled], ["Sort", "HashAggregate"])
    assert found.cost_ms == pytest.approx(2500)
    unseen = detail(facts={"spill_bytes": 50 * 10**6, "resource_ms": parts(cpu=30_000.0, other=10_000.0)})
    (small,) = findings.spilling(TERMS, [unseen], [])
    assert small.cost_ms == pytest.approx(10_000 * 2000 / 40_000), "no more than moving its bytes takes"
    assert "500 MiB" in found.what
    assert "by Sort" in found.what


def test_rows_that_python_workers_of_rdds_spilled_ask_for_memory_of_theirs() -> None:
    spilled = {"spill_bytes": 500 * MIB, "resource_ms": parts(disk=40_000.0)}
    of_rdd = detail(facts={**spilled, "scope": None}, what="shuffle read, python")
    (found,) = findings.spilling(TERMS, [of_rdd], [])
    assert "spark.python.worker.memory" in found.advice
    of_query = detail(facts=spilled, what="shuffle read, python")
    (found,) = findings.spilling(TERMS, [of_rdd, of_query], [])
    assert "more memory per executor" in found.advice, "the executor spilled some of it"


def test_garbage_collection_counts_from_a_tenth() -> None:
    assert findings.collecting_garbage(TERMS, [detail(facts={"gc_ms": 3900.0})]) == []
    (found,) = findings.collecting_garbage(TERMS, [detail(facts={"gc_ms": 20_000.0}), detail(facts={"gc_ms": 8000.0})])
    assert found.cost_ms == pytest.approx(5000 + 2000)
    assert "50 %" in found.what
    assert "in 1 other" in found.what


def test_a_device_busy_without_data_is_odd_unless_it_is_the_bottleneck() -> None:
    busy = detail(facts={"resource_ms": parts(cpu=20_000.0, net=20_000.0)}, moved_bytes={"disk": 0, "net": 3 * MIB})
    (found,) = findings.odd_use(TERMS, [busy], {"cpu"})
    assert "20.0 s of task time on network for 3.0 MiB" in found.what
    assert found.cost_ms == pytest.approx(5000)
    assert findings.odd_use(TERMS, [busy], {"net"}) == []
    assert findings.odd_use(TERMS, [replace(busy, moved_bytes={"disk": 0, "net": 900 * MIB})], {"cpu"}) == []


def test_no_time_is_told_as_nothing() -> None:
    assert part_of(5.0, 700.0, "its") == "5 of its 700 ms"
    assert [lasting(each) for each in (2130.0, 99.6, 99.0, 0.0)] == ["2.1 s", "0.1 s", "99 ms", "0.0 s"]


def test_tasks_without_a_cpu_cost_what_they_waited_for_one() -> None:
    assert findings.short_of_cpus(TERMS, [detail()], [], np.inf) == []
    starved = detail(ready_ms=30_000.0)
    (found,) = findings.short_of_cpus(TERMS, [starved], [], np.inf)
    assert found.cost_ms == 7500
    assert "had no CPU for 30.0 of the 40.0 s in which they could have computed" in found.what
    assert "cores a slot" not in found.what
    assert "other programs" not in found.what
    short = detail(ready_ms=30.0, facts={"unit_ms": 100.0, "resource_ms": parts(cpu=40.0)})
    (found,) = findings.short_of_cpus(TERMS, [short], [], np.inf)
    assert "had no CPU for 30 of the 40 ms in which they could have computed" in found.what
    (found,) = findings.short_of_cpus(TERMS, [starved], [], 0.2)
    assert "executors got at most 0.20 cores a slot" in found.what
    assert "CPU limit" in found.advice


@pytest.mark.parametrize(
    ("crowded", "cores_per_slot", "advice"),
    [
        (0.0, np.inf, "fewer slots than cores"),
        (0.0, 0.2, "a larger CPU limit for each executor or fewer slots"),
        (0.9, np.inf, "machines that nothing else runs on or fewer slots"),
        (0.9, 0.2, "a larger CPU limit for each executor, machines that nothing else runs on or fewer slots"),
    ],
)
def test_what_helps_tasks_without_a_cpu_is_what_was_seen_to_have_it(
    crowded: float, cores_per_slot: float, advice: str
) -> None:
    crowd = [Neighbours("stage:3.0", crowded, 5.5, 8.0)]
    (found,) = findings.short_of_cpus(TERMS, [detail(ready_ms=30_000.0)], crowd, cores_per_slot)
    assert found.advice == advice


def test_a_quota_that_was_used_up_is_what_held_tasks_back_whoever_else_was_there() -> None:
    starved, crowd = detail(ready_ms=30_000.0), [Neighbours("stage:3.0", 0.9, 5.5, 8.0)]
    (found,) = findings.short_of_cpus(TERMS, [starved], crowd, 0.2, throttled={"stage:3.0": 0.82})
    assert found.what.endswith("; meanwhile containers of executors used up their CPU quota in 82 % of its periods")
    assert found.advice == "a larger CPU limit for each executor"
    (found,) = findings.short_of_cpus(TERMS, [starved], crowd, 0.2, throttled={"stage:3.0": 0.3})
    assert "nothing else runs on" in found.advice


def test_a_task_whose_python_worker_computes_waits_for_no_cpu() -> None:
    assert findings.short_of_cpus(TERMS, [detail(ready_ms=30_000.0, what="scan, python")], [], np.inf) == []


def test_who_else_had_the_cpu_is_named_where_the_machine_was_full_most_of_the_time() -> None:
    starved = detail(ready_ms=30_000.0)
    (found,) = findings.short_of_cpus(TERMS, [starved], [Neighbours("stage:3.0", 0.7, 5.5, 8.0)], np.inf)
    assert "other programs or containers used 5.5 of their machines' 8 cores" in found.what
    assert "nothing else runs on" in found.advice
    (found,) = findings.short_of_cpus(TERMS, [starved], [Neighbours("stage:3.0", 0.4, 5.5, 8.0)], np.inf)
    assert "other programs" not in found.what


def test_neighbours_are_what_a_full_machine_does_beside_all_of_an_applications_processes(tmp_path: Path) -> None:
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
            "INSERT INTO units (unit_id, group_id, worker_id, launch_ms, finish_ms, status)"
            " VALUES (?, ?, ?, ?, ?, 'succeeded')",
            [
                (0, "stage:0.0", "0", 0, 5000),
                (1, "stage:1.0", "0", 5000, 15_000),
                (2, "stage:1.0", "2", 5000, 15_000),
                (3, "stage:2.0", "1", 12_000, 14_000),
            ],
        )
        found = neighbours(connection, 0.0, 20_000.0)
        assert [each.group for each in found] == ["stage:1.0", "stage:2.0"]
        assert [each.crowded for each in found] == pytest.approx([0.25, 1.0])
        assert [each.others_cores for each in found] == pytest.approx([2.5, 2.5])
        assert [each.processors for each in found] == [4.0, 4.0]
        (early,) = neighbours(connection, 0.0, 11_000.0)
        assert (early.group, early.crowded) == ("stage:1.0", pytest.approx(1 / 12))


def test_time_without_a_task_is_told_apart() -> None:
    alone: dict[Cause, float] = {"no worker": 4000.0, "no scope": 2000.0, "coordinator": 1000.0}
    found = findings.coordinator(TERMS, alone, {"coordinator": 700.0})
    assert [each.cost_ms for each in found] == [2000, 1000]
    assert found[1].what.endswith("while no task ran; 0.7 s of it waiting or unknown")
    (_, whole) = findings.coordinator(TERMS, alone, {"coordinator": 1000.0})
    assert whole.what.endswith("while no task ran"), "nor is all of it told twice"


def test_compiling_is_a_finding_of_sparks_own() -> None:
    assert compiling([detail()], {}) == []
    (found,) = compiling([detail()], {"stage:3.0": 4000.0, "stage:4.0": 9000.0})
    assert (found.rule, found.cost_ms) == ("compiling", pytest.approx(1000))


# Other frameworks -----------------------------------------------------------------------------------------------------


def test_the_same_rules_speak_any_frameworks_words_and_advise_what_holds_of_any() -> None:
    gpu = Resource("gpu", "GPU", "gpu_speed", "speed", "worker")
    link = Resource("link", "PCIe", "link", "bytes per second", "worker", 1 << 20, 0.01, 16e9, ("input_bytes",))
    words = Vocabulary(worker="process", lane="stream", group="layer", unit="kernel", coordinator="host", scope="step")
    terms = Terms(words, (*known(), gpu, link))
    slow = detail(
        {"duration_ms": 7000.0, "resource_ms": {**parts(cpu=1000.0), "gpu": 6000.0}},
        {"longest_ms": 7000.0},
        median_resource_ms={**parts(cpu=1000.0), "gpu": 0.0},
    )
    (found,) = findings.straggler(terms, slow, [])
    assert "longest kernel (kernel 17)" in found.what
    assert "6.0 s more on the GPU than usual" in found.what
    (found,) = findings.idle_slots(terms, detail(facts=FEW))
    assert "1 kernel for 4 streams" in found.what
    assert found.advice == "more, smaller kernels would use the idle streams"
    (found,) = findings.straggler(terms, late(read_bytes=56 * MIB), [])
    assert found.advice == "spread what is read more evenly over the kernels"
    busy = detail(
        facts={"resource_ms": {**parts(cpu=20_000.0), "link": 20_000.0}}, moved_bytes={"disk": 0, "net": 0, "link": MIB}
    )
    (found,) = findings.odd_use(terms, [busy], {"cpu"})
    assert "20.0 s of kernel time on PCIe for 1.0 MiB" in found.what
    alone: dict[Cause, float] = {"no worker": 4000.0, "no scope": 2000.0, "coordinator": 1000.0}
    told = [each.what for each in findings.coordinator(terms, alone, {})]
    assert told[0].startswith("no step was under way")


def test_words_are_counted() -> None:
    assert [counted(1, "query"), counted(2, "query"), counted(0, "batch")] == ["1 query", "2 queries", "0 batches"]


# Waiting --------------------------------------------------------------------------------------------------------------


def test_intervals_are_merged() -> None:
    found = merged(np.array([5.0, 0.0, 2.0, 9.0]), np.array([6.0, 3.0, 4.0, np.inf]))
    assert found.tolist() == [[0, 4], [5, 6], [9, np.inf]]
    assert merged(np.empty(0), np.empty(0)).shape == (0, 2)


# A made run -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flowing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two groups in a pipeline from second 1 to 11, of which the second waits 8 s for the first; no coordinator's
    process, no samples, and a resource of its own."""
    link = Resource("link", "PCIe", "link", "bytes per second", "worker", 1 << 20, 0.01, 16e9, ("handed_bytes",))
    made = of_rows(
        {"app_id": "made", "framework": "flowing", "started_at_ms": 0, "duration_ms": 12_000.0},
        [Worker("w", 2)],
        [Group(name, 1, 1000.0, 11_000.0, name) for name in ("reads", "writes")],
        [
            Unit(1, "reads", "w", 1000.0, 11_000.0, input_bytes=5, remote_bytes=7, measured_ms={"cpu": 10_000.0}),
            Unit(
                2, "writes", "w", 1000.0, 11_000.0, upstream_ms=8000.0, handed_bytes=3, output_bytes=11,
                measured_ms={"link": 1500.0},
            ),
        ],
        [Edge("reads", "writes", "pipelined", "flows")],
        [Scope("loop:9", "loop", 0.0, 12_000.0), Scope("step:2", "step", 0.0, None, "second")],
        more_resources=[link],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("run") / "flowing.duckdb"
    frameworks()[FLOWING.name] = FLOWING
    assemble(made, [], FLOWING, [], Problems(), path, {}, lambda _: None)
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


def test_waiting_for_a_pipelined_group_is_a_cause_of_its_own(flowing: Path) -> None:
    with duckdb.connect(str(flowing), read_only=True) as connection:
        execution = load(connection)
        pieces = critical_path(execution.dag, execution.units, execution.coordinator.between, execution.names)
        last = next(each for each in execution.dag.nodes.values() if each.node_id == "writes")
        piece = Piece(last, 1000.0, 11_000.0, np.array([0.0, 0.0, 0.0, 1500.0, 8500.0]))
        alive = with_workers(connection, execution)
        other_ms, alone_ms = waiting(connection, execution, [piece], alive)
        assert other_ms == pytest.approx({"upstream": 8000, "unknown": 500})
        assert alone_ms == {"no worker": 0, "no scope": 0, "coordinator": 0}
        other_ms, _ = waiting(connection, execution, pieces, alive)
        assert sum(other_ms.values()) == pytest.approx(sum(float(each.parts_ms[-1]) for each in pieces))


def test_what_may_have_crossed_each_device_is_summed(flowing: Path) -> None:
    """Input may lie elsewhere, so it may have crossed the network; a disk also had what units of others wrote."""
    with duckdb.connect(str(flowing), read_only=True) as connection:
        details = {each.facts.id: each for each in group_details(connection, load(connection), ())}
    assert details["reads"].moved_bytes == {"disk": 5 + 12, "net": 7 + 5, "link": None}
    assert details["writes"].moved_bytes == {"disk": 3 + 11, "net": None, "link": 3}


def test_what_could_not_be_seen_names_no_command_but_what_to_do(flowing: Path) -> None:
    with duckdb.connect(str(flowing), read_only=True) as connection:
        answer = diagnose(connection, load(connection))
    (note,) = answer.unseen
    assert note.what.startswith("what code ran, for the run left no stack samples; what Flowing does not time itself")
    assert note.remedy == Remedy("set up the job", {"framework": "flowing"})
    assert [(each.id, each.name, each.end_ms) for each in answer.scopes] == [("step:2", "second", None)]
    assert answer.coordinator_ms == pytest.approx(2000)  # before the first unit and after the last
    assert (answer.measure, set(answer.resource_ms)) == ("makespan", {"cpu", "disk", "net", "link", "other"})


def test_where_no_recording_can_be_used_none_is_asked_for(flowing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frameworks(), "flowing", replace(FLOWING, process=None))
    with duckdb.connect(str(flowing), read_only=True) as connection:
        (note,) = diagnose(connection, load(connection)).unseen
    assert note.what.startswith("what Flowing does not time itself")
    assert note.remedy is None


def test_code_that_no_index_knows_is_named_by_its_package(flowing: Path, tmp_path: Path) -> None:
    noted = tmp_path / "noted.duckdb"
    shutil.copyfile(flowing, noted)
    with duckdb.connect(str(noted)) as connection:
        rows = [("other index", "made-1", "another version"), ("unindexed code", "com.acme", "9% is in com.acme.*")]
        connection.executemany("INSERT INTO import_stats VALUES (?, 'info', ?, 1, NULL, ?)", rows)
        (note,) = diagnose(connection, load(connection)).unseen  # without samples no code was looked up
        assert "stack samples" in note.what
        connection.execute("INSERT INTO samples (time_ms, kind, weight_ms) VALUES (1.0, 'wall', 1.0)")
        first, second, *_ = diagnose(connection, load(connection)).unseen
    assert (first.what, first.remedy) == ("code: 9% is in com.acme.*", Remedy("index the code", {"prefix": "com.acme"}))
    assert (second.what, second.remedy) == ("code: another version", None)


# The demo -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(demo_run: Run) -> Run:
    return demo_run


def test_other_time_has_causes_that_sum_to_it(run: Run) -> None:
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
    stages = {each.id: each for each in answer.groups}
    on_path = [item for item in answer.critical_path if item.id.startswith("stage:")]
    assert {item.id for item in on_path} <= set(stages)
    assert sum(each.path_ms for each in stages.values()) == pytest.approx(
        sum(item.end_ms - item.start_ms for item in on_path)
    )
    exchange = stages["stage:14.0"]
    assert (exchange.units, exchange.slots) == (5, 4)
    assert exchange.skew_time is not None
    assert 1 < exchange.skew_time < 1.5
    assert stages["stage:0.0"].skew_time is None
    for each in stages.values():
        assert sum(each.resource_ms.values()) == pytest.approx(each.unit_ms)
        assert 0 <= each.idle_ms <= each.slots * each.length_ms


def test_what_the_demo_waited_most_for_is_a_cpu(run: Run) -> None:
    """Its executors had a quota of 0.2 cores a slot, on a machine that was busy with other things."""
    first = run.debug().findings[0]
    assert "executors got at most 0.20 cores a slot" in first.what
    assert "other programs or containers used 1.7 of their machines' 2 cores" in first.what


def test_the_schema_stages_are_not_told_to_use_more_partitions(run: Run) -> None:
    found = [each for each in run.debug().findings if "parquet: 1 task for 4 slots" in each.what]
    assert found
    assert all("schema" in each.advice and "partitions" not in each.advice for each in found)


def test_labels_that_the_log_contradicts_are_shown(run: Run, tmp_path: Path) -> None:
    """Were fetching shuffle blocks labelled disk, Spark's own fetch wait time would contradict it."""
    wrong = tmp_path / "wrong.duckdb"
    shutil.copyfile(run.path, wrong)
    with duckdb.connect(str(wrong)) as connection:
        connection.execute(
            "UPDATE stacks SET cpu = 0, disk = 1, net = 0"
            " WHERE contains(frames::VARCHAR, 'ShuffleBlockFetcherIterator')"
        )
    found = {(each.group, each.resource): each for each in Run(wrong).debug().disagreements}
    net, disk = found["stage:14.0", "net"], found["stage:14.0", "disk"]
    assert net.label_share < net.at_least_share - 0.1
    assert disk.label_share > disk.at_most_share + 0.1


def test_a_group_that_cost_next_to_nothing_is_counted_and_not_named() -> None:
    def part(group: str, cost_ms: float) -> Part:
        return Part("straggler", "waited", cost_ms, group, "it waited", "measured", "look", "have one that waited")

    (found,) = findings.added_up(TERMS, [part("stage:1.0", 9000.0), part("stage:2.0", 300.0), part("stage:3.0", 100.0)])
    assert found.what == "3 stages have one that waited: stage:1.0: it waited (9.0 s); and 2 others"
    (found,) = findings.added_up(TERMS, [part("stage:1.0", 9000.0), part("stage:2.0", 3000.0)])
    assert found.what == "2 stages have one that waited: stage:1.0: it waited (9.0 s); stage:2.0: it waited (3.0 s)"
