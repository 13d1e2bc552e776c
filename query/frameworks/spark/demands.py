"""Slots that stages need: those of their resource profile, and those for all tasks of a barrier stage at once."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np

from crystalperf.query.execution.dag import SlotDemand
from crystalperf.query.execution.execution import Execution
from crystalperf.query.execution.scenario import Scenario
from crystalperf.query.frameworks.spark.refusals import BarrierTooWide, ProfilesDiffer, ShuffleElsewhere, TaskTooWide
from crystalperf.query.frameworks.spark.remarks import BarrierStages, ProfileStages
from crystalperf.query.frameworks.spark.settings import is_local
from crystalperf.query.frameworks.spark.shuffle_services import remote_service
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.remarks import Remark

_OF_SERVICE = ("disk", "network")
"""Devices that executors and a remote shuffle service both use for shuffled data."""

_OWN = """
    resource_profile IN (
        SELECT profile_id FROM spark_resource_requests WHERE requested_by = 'executor' AND profile_id > 0
    )
"""
"""SQL: whether only executors of its own run a stage's tasks."""


def demands(connection: duckdb.DuckDBPyConnection) -> dict[str, SlotDemand]:
    """The slots that stages need, for those that cannot use every slot, or need many at once."""
    rows = connection.execute(
        f"""
        SELECT stage_id, usable_slots, slots_per_task, barrier, coalesce({_OWN}, false) AS own
        FROM spark_stages
        WHERE usable_slots IS NOT NULL OR barrier OR own
        """
    ).fetchall()
    return {
        stage: SlotDemand(usable, per_task or 1.0, together, own) for stage, usable, per_task, together, own in rows
    }


def refused(execution: Execution, scenario: Scenario) -> Refusal | None:
    """Why Spark could not run the scope in a scenario, or why the log does not show what changes; None if neither."""
    changed = {key for key, ratio in scenario.ratios.items() if ratio != 1}
    service = remote_service(execution.properties)
    moved = float(execution.volumes.exchange_write.sum() + execution.volumes.remote_read.sum()) > 0
    if service is not None and moved and (devices := sorted(changed & set(_OF_SERVICE))):
        return ShuffleElsewhere(service, devices[0])
    if not changed & {"cores", "workers"}:
        return None
    stages = execution.dag.stages
    if scenario.amount("cores") is not None and len({each.demand.own_workers for each in stages}) > 1:
        return ProfilesDiffer(next(each.stage_id for each in stages if each.demand.own_workers))
    counts = np.bincount(execution.tasks.stage, minlength=len(stages))
    worker_slots, workers = execution.recorded.get("cores") or 0.0, execution.recorded.get("workers") or 0.0
    ratios = scenario.ratio("workers"), scenario.ratio("cores")
    for each, tasks in zip(stages, counts.tolist(), strict=True):
        most = each.demand.most(worker_slots, *ratios)
        if most == 0:
            return TaskTooWide(each.stage_id, each.demand.per_task, worker_slots * ratios[1])
        before = each.demand.usable or round(worker_slots * workers)
        after = round(worker_slots * workers * ratios[0] * ratios[1]) if most is None else most
        if each.demand.together and after < tasks <= before:
            return BarrierTooWide(each.stage_id, tasks, after)
    return None


def excluded_settings(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Settings that the usual what-ifs exclude: executors of a local run, and devices that a shuffle service has."""
    workers = ("workers",) if is_local(properties) else ()
    return (*workers, *_OF_SERVICE) if remote_service(properties) else workers


def remarks(connection: duckdb.DuckDBPyConnection, execution: Execution) -> list[Remark]:
    """The stages of a scope with a resource profile of their own, and its barrier stages; those with most task time."""
    rows = connection.execute(
        """
        SELECT stage_id, resource_profile, usable_slots, slots_per_task, barrier, count(*) AS tasks,
            sum(finish_ms - launch_ms) AS task_ms
        FROM spark_stages JOIN tasks USING (stage_id)
        WHERE (resource_profile > 0 OR barrier) AND finish_ms > $start AND launch_ms < $end
        GROUP BY ALL
        ORDER BY task_ms DESC, stage_id
        """,
        {"start": execution.scope.start_ms, "end": execution.scope.end_ms},
    ).fetchall()
    names, own = [each[0] for each in connection.description or ()], list[Remark]()
    found = [dict(zip(names, row, strict=True)) for row in rows]
    of_profiles = [each for each in found if each["resource_profile"]]
    if of_profiles:
        first, slots = (
            of_profiles[0],
            round((execution.recorded.get("cores") or 0) * (execution.recorded.get("workers") or 0)),
        )
        requests = connection.execute(
            """
            SELECT requested_by, resource, amount FROM spark_resource_requests
            WHERE profile_id = ? AND amount > 0 ORDER BY requested_by, resource
            """,
            [first["resource_profile"]],
        ).fetchall()
        usable = slots if first["usable_slots"] is None else first["usable_slots"]
        own.append(
            ProfileStages(
                first["stage_id"], len(of_profiles) - 1, first["resource_profile"], tuple(requests), usable, slots
            )
        )
    together = [each for each in found if each["barrier"]]
    if together:
        own.append(BarrierStages(together[0]["stage_id"], len(together) - 1, together[0]["tasks"]))
    return own
