"""What cost time and why: each rule on made stages, the causes of other time, and labels against measurements."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from indexes.store import create
from query.answers.values import StageFacts
from query.explain import findings
from query.explain.facts import Detail, HostTime, Longest, Neighbours, neighbours
from query.explain.waiting import DRIVER, EXECUTORS, PROGRAM, merged
from query.run import Run

MIB = 2**20


def parts(cpu: float = 0.0, disk: float = 0.0, net: float = 0.0, other: float = 0.0) -> dict[str, float]:
    return {"cpu": cpu, "disk": disk, "net": net, "other": other}


def detail(longest: dict[str, Any] | None = None, facts: dict[str, Any] | None = None, **more: Any) -> Detail:
    """A stage of 40 even tasks of a second, all CPU, on 4 slots, ten seconds on the path; then changed."""
    even = StageFacts(
        id="stage:3.0", name="work", sql_id=1, tasks=40, slots=4, length_ms=10_000.0, path_ms=10_000.0,
        median_ms=1000.0, longest_ms=1000.0, median_bytes=8 * MIB, most_bytes=8 * MIB, task_ms=40_000.0, idle_ms=0.0,
        starting_ms=400.0, scheduler_delay_ms=200.0, gc_ms=0.0, spill_bytes=0, resource_ms=parts(cpu=40_000.0),
    )  # fmt: skip
    usual = Longest(
        task_id=17, executor_id="1", host="w1", duration_ms=1000.0, read_bytes=8 * MIB, gc_ms=0.0, nth=5,
        resource_ms=parts(cpu=1000.0),
    )  # fmt: skip
    whole = Detail(
        facts=replace(even, **(facts or {})),
        longest=replace(usual, **(longest or {})),
        run_ms=39_000.0,
        on_cpu_ms=39_000.0,
        ready_ms=1000.0,
        fetch_wait_ms=0.0,
        read_bytes=320 * MIB,
        remote_bytes=0,
        input_bytes=320 * MIB,
        written_bytes=0,
        median_resource_ms=parts(cpu=1000.0),
        kind="scan",
        call_site="collect at job.py:1",
        operators=("Scan parquet",),
        details=("FileScan parquet [a#1]",),
    )
    return replace(whole, **more)


def late(**longest: Any) -> Detail:
    """The same with one task that takes seven seconds."""
    facts = {"longest_ms": 7000.0}
    return detail({"duration_ms": 7000.0, "resource_ms": parts(cpu=7000.0), **longest}, facts)


def host(name: str, ms: float, others_ms: float, resource: str = "net", **more: Any) -> HostTime:
    return replace(
        HostTime("stage:3.0", name, resource, 10, ms, others_ms, 8.0 * MIB, 8.0 * MIB, others_duration_ms=1000.0),
        **more,
    )


# Stragglers -----------------------------------------------------------------------------------------------------------


def test_even_tasks_are_no_finding() -> None:
    assert findings.straggler(detail(), []) == []
    assert findings.straggler(detail(facts={"longest_ms": 1900.0}), []) == []


def test_a_straggler_costs_what_it_takes_longer_and_no_more_than_its_stage_was_on_the_path() -> None:
    (found,) = findings.straggler(late(), [])
    assert found.cost_ms == 6000
    assert "7.0 times the median" in found.what
    assert "task 17" in found.what
    short = late()
    (found,) = findings.straggler(replace(short, facts=replace(short.facts, path_ms=50.0)), [])
    assert found.cost_ms == 50


def test_a_straggler_that_read_more_has_more_data() -> None:
    (found,) = findings.straggler(late(read_bytes=56 * MIB), [])
    assert "it read 56 MiB, 7.0 times the median" in found.what
    assert "file" in found.advice
    (found,) = findings.straggler(replace(late(read_bytes=56 * MIB), kind="shuffle read"), [])
    assert "keys" in found.advice


def test_twice_the_data_does_not_explain_seven_times_the_time() -> None:
    (found,) = findings.straggler(late(read_bytes=16 * MIB), [])
    assert "it read" not in found.what


def test_a_straggler_whose_executor_collected_garbage() -> None:
    (found,) = findings.straggler(late(gc_ms=5000.0), [])
    assert "collected garbage for 5.0 s" in found.what


def test_a_straggler_on_a_slow_node() -> None:
    (found,) = findings.straggler(late(), [host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)])
    assert "tasks on w1 spend 4.5 times as long on network" in found.what


def test_the_first_task_of_an_executor_warms_it_up() -> None:
    (found,) = findings.straggler(late(nth=1), [])
    assert "first on executor 1" in found.what


def test_else_the_resource_that_it_had_more_of_is_named() -> None:
    (found,) = findings.straggler(late(resource_ms=parts(cpu=1000.0, disk=6000.0)), [])
    assert "6.0 s of it more on disk" in found.what
    (found,) = findings.straggler(late(resource_ms=parts(other=7000.0)), [])
    assert "no reason that the log tells" in found.what


# Nodes ----------------------------------------------------------------------------------------------------------------


def test_a_node_slower_than_its_peers_is_a_malfunction() -> None:
    (found,) = findings.slow_hosts([host("w1", 900.0, 200.0), host("w2", 200.0, 900.0)], [detail()])
    assert "tasks on w1 spend 4.5 times as long on network as on its peers" in found.what
    assert found.cost_ms == pytest.approx(10_000 * 700 / 1700)


def test_a_node_that_reads_more_is_not_slow() -> None:
    assert findings.slow_hosts([host("w1", 900.0, 200.0, median_bytes=40.0 * MIB)], [detail()]) == []


def test_a_node_slow_in_one_short_stage_of_many_is_chance() -> None:
    usual = [host("w1", 300.0, 300.0, stage=f"stage:{number}.0", tasks=50) for number in range(4, 9)]
    assert findings.slow_hosts([host("w1", 900.0, 200.0), *usual], [detail()]) == []


# Slots ----------------------------------------------------------------------------------------------------------------


def test_full_slots_are_no_finding() -> None:
    assert findings.idle_slots(detail()) == []


def test_a_half_empty_last_wave() -> None:
    (found,) = findings.idle_slots(detail(facts={"tasks": 6, "idle_ms": 10_000.0}))
    assert found.cost_ms == pytest.approx(2500)
    assert "1.5 waves" in found.what
    assert "smaller partitions" in found.advice


def test_idle_slots_of_uneven_data_ask_for_even_data() -> None:
    (found,) = findings.idle_slots(detail(facts={"tasks": 4, "idle_ms": 10_000.0, "most_bytes": 20 * MIB}))
    assert "2.5 times the median" in found.what
    assert "keys" in found.advice


FEW: dict[str, Any] = {"tasks": 1}


def test_few_tasks_of_a_scan() -> None:
    (found,) = findings.idle_slots(detail(facts=FEW))
    assert found.cost_ms == pytest.approx(7500)
    assert "maxPartitionBytes" in found.advice


def test_more_partitions_are_not_advised_where_they_cannot_be() -> None:
    schema = detail(facts={**FEW, "sql_id": None}, call_site="parquet at Native.java:0", read_bytes=0, operators=())
    assert "schema" in str(findings.few_tasks_advice(schema))
    assert findings.few_tasks_advice(detail(facts=FEW, call_site="show at <console>:1")) is None
    assert findings.few_tasks_advice(detail(facts=FEW, operators=("CollectLimit",))) is None
    single = detail(facts=FEW, kind="shuffle read", details=("Exchange SinglePartition, ENSURE",))
    assert findings.few_tasks_advice(single) is None
    joined = detail(facts=FEW, kind="shuffle read", operators=("AQEShuffleRead",), read_bytes=1000)
    assert findings.few_tasks_advice(joined) is None
    assert "coalescePartitions" in str(findings.few_tasks_advice(replace(joined, read_bytes=200 * MIB)))
    assert findings.idle_slots(single) == []


# Overheads ------------------------------------------------------------------------------------------------------------


def test_tasks_too_short_to_hand_out() -> None:
    assert findings.starting_tasks(detail()) == []
    (found,) = findings.starting_tasks(detail(facts={"starting_ms": 20_000.0, "scheduler_delay_ms": 15_000.0}))
    assert found.cost_ms == pytest.approx(5000)
    assert "15.0 s of scheduler delay over 40 tasks" in found.what


def test_spills_name_the_operator_and_cost_the_disks_share() -> None:
    assert findings.spilling([detail()], []) == []
    spilled = detail(facts={"spill_bytes": 500 * MIB, "resource_ms": parts(cpu=30_000.0, disk=10_000.0)})
    (found,) = findings.spilling([detail(), spilled], ["Sort", "HashAggregate"])
    assert found.cost_ms == pytest.approx(2500)
    assert "500 MiB" in found.what
    assert "by Sort" in found.what


def test_garbage_collection_counts_from_a_tenth() -> None:
    assert findings.collecting_garbage([detail(facts={"gc_ms": 3900.0})]) == []
    (found,) = findings.collecting_garbage([detail(facts={"gc_ms": 20_000.0}), detail(facts={"gc_ms": 8000.0})])
    assert found.cost_ms == pytest.approx(5000 + 2000)
    assert "50%" in found.what
    assert "in 1 other" in found.what


def test_a_device_busy_without_data_is_odd_unless_it_is_the_bottleneck() -> None:
    busy = detail(
        facts={"resource_ms": parts(cpu=20_000.0, net=20_000.0)}, input_bytes=0, read_bytes=0, remote_bytes=3 * MIB
    )
    (found,) = findings.odd_use([busy], {"cpu"})
    assert "20.0 s of task time on network for 3.0 MiB" in found.what
    assert found.cost_ms == pytest.approx(5000)
    assert findings.odd_use([busy], {"net"}) == []
    assert findings.odd_use([replace(busy, remote_bytes=900 * MIB)], {"cpu"}) == []


def test_tasks_without_a_cpu_cost_what_they_waited_for_one() -> None:
    assert findings.short_of_cpus([detail()], [], np.inf) == []
    starved = detail(ready_ms=30_000.0)
    (found,) = findings.short_of_cpus([starved], [], np.inf)
    assert found.cost_ms == 7500
    assert "for 30.0 s of task time, 75% of their CPU time" in found.what
    assert "cores a slot" not in found.what
    assert "other programs" not in found.what
    (found,) = findings.short_of_cpus([starved], [], 0.2)
    assert "never got more than 0.20 cores a slot" in found.what
    assert "CPU limit" in found.advice


def test_a_task_whose_python_worker_computes_waits_for_no_cpu() -> None:
    assert findings.short_of_cpus([detail(ready_ms=30_000.0, kind="scan, python")], [], np.inf) == []


def test_who_else_had_the_cpu_is_named_where_the_machine_was_full_most_of_the_time() -> None:
    starved = detail(ready_ms=30_000.0)
    (found,) = findings.short_of_cpus([starved], [Neighbours("stage:3.0", 0.7, 5.5, 8.0)], np.inf)
    assert "other programs used 5.5 of 8 cores" in found.what
    assert "neighbours" in found.advice
    (found,) = findings.short_of_cpus([starved], [Neighbours("stage:3.0", 0.4, 5.5, 8.0)], np.inf)
    assert "other programs" not in found.what


def test_neighbours_are_what_a_full_machine_does_beside_all_of_an_applications_processes(tmp_path: Path) -> None:
    """Two executors on one machine of 4 cores, measured at different moments, and one on a machine of its own.

    From second 10 on, the shared one is full: the two use 1.5 cores together, so 2.5 are of others.
    """
    with create(tmp_path / "run.duckdb", "run", {}) as connection:
        connection.execute(
            "INSERT INTO executors (executor_id, host, added_ms) VALUES ('0', 'a', 0), ('1', 'a', 0), ('2', 'b', 0)"
        )
        for executor, cores, shift in (("0", 1.0, 0), ("1", 0.5, 300), ("2", 3.9, 0)):
            rows = [
                (executor, second * 1000.0 + shift, cores, 4.0 if second > 10 or executor == "2" else 2.0, 4)
                for second in range(21)
            ]
            connection.executemany("INSERT INTO loads VALUES (?, ?, ?, ?, ?)", rows)
        connection.executemany(
            "INSERT INTO tasks (task_id, stage_id, stage_attempt, executor_id, launch_ms, finish_ms, status)"
            " VALUES (?, ?, 0, ?, ?, ?, 'succeeded')",
            [(0, 0, "0", 0, 5000), (1, 1, "0", 5000, 15_000), (2, 1, "2", 5000, 15_000), (3, 2, "1", 12_000, 14_000)],
        )
        found = neighbours(connection, 0.0, 20_000.0)
        assert [each.stage for each in found] == ["stage:1.0", "stage:2.0"]
        assert [each.crowded for each in found] == pytest.approx([0.25, 1.0])
        assert [each.others_cores for each in found] == pytest.approx([2.5, 2.5])
        assert [each.processors for each in found] == [4.0, 4.0]
        (early,) = neighbours(connection, 0.0, 11_000.0)
        assert (early.stage, early.crowded) == ("stage:1.0", pytest.approx(1 / 12))


def test_work_thrown_away_names_its_reason() -> None:
    assert findings.wasted(0.0, 0, None, 4) == []
    (found,) = findings.wasted(8000.0, 3, "ExecutorLostFailure", 4)
    assert found.cost_ms == 2000
    assert "3 failed or killed tasks" in found.what
    assert "ExecutorLostFailure" in found.what


def test_time_without_a_task_is_told_apart() -> None:
    alone = {EXECUTORS: 4000.0, PROGRAM: 2000.0, DRIVER: 1000.0}
    found = findings.driver(alone, {DRIVER: 900.0}, 4000.0)
    assert [each.cost_ms for each in found] == [4000, 2000, 1000]
    assert "ready after 4.0 s" in found[0].what
    assert "0.9 s of it" in found[2].what


def test_intervals_are_merged() -> None:
    found = merged(np.array([5.0, 0.0, 2.0, 9.0]), np.array([6.0, 3.0, 4.0, np.inf]))
    assert found.tolist() == [[0, 4], [5, 6], [9, np.inf]]
    assert merged(np.empty(0), np.empty(0)).shape == (0, 2)


# The demo -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(demo_run: Run) -> Run:
    return demo_run


def test_other_time_has_causes_that_sum_to_it(run: Run) -> None:
    answer = run.debug()
    assert sum(answer.other_ms.values()) == pytest.approx(answer.resource_ms["other"])
    assert next(iter(answer.other_ms)) == EXECUTORS
    assert answer.other_ms[EXECUTORS] == pytest.approx(14_232, abs=1)  # when the first executor registered


def test_a_scope_within_a_query_waits_for_no_executor(run: Run) -> None:
    answer = run.debug("sql:6")
    assert EXECUTORS not in answer.other_ms
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
    assert exchange.skew_time is not None
    assert 1 < exchange.skew_time < 1.5
    assert stages["stage:0.0"].skew_time is None
    for each in stages.values():
        assert sum(each.resource_ms.values()) == pytest.approx(each.task_ms)
        assert 0 <= each.idle_ms <= each.slots * each.length_ms


def test_what_the_demo_waited_most_for_is_a_cpu(run: Run) -> None:
    """Its executors had a quota of 0.2 cores a slot, on a machine that was busy with other things."""
    first = run.debug().findings[0]
    assert "executors never got more than 0.20 cores a slot" in first.what
    assert "other programs used 1.7 of 2 cores" in first.what


def test_the_schema_stages_are_not_told_to_use_more_partitions(run: Run) -> None:
    found = [each for each in run.debug().findings if "1 task for 4 slots" in each.what and "parquet at" in each.what]
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
    found = {(each.stage, each.resource): each for each in Run(wrong).debug().disagreements}
    net, disk = found["stage:14.0", "net"], found["stage:14.0", "disk"]
    assert net.label_share < net.at_least_share - 0.1
    assert disk.label_share > disk.at_most_share + 0.1
