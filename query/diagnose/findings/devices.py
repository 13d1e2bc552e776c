"""Findings about devices with much time and little data moved."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crystalperf.query.diagnose.advisor import Advisor
from crystalperf.query.diagnose.stage_statistics import StageStats
from crystalperf.query.results.advice import InspectDevice
from crystalperf.query.results.findings import OddUseStage

SLOW_BPS = 1e6
"""A device with less throughput than this while in use does something other than moving data."""


def odd_use(advisor: Advisor, details: Sequence[StageStats], limits: Collection[str]) -> list[OddUseStage]:
    """Time on a device that hardly moved data, usually a misconfiguration (paper §4.2, §7.5).

    `limits` are the limiting resources, which are excluded: a device that is slow because it is saturated does not
    show a misconfiguration.
    """
    found = []
    for detail in details:
        facts = detail.facts
        if facts.path_ms <= 0 or advisor.has_device_finding(detail):
            continue
        for resource, moved in detail.moved_bytes.items():
            time_ms = facts.resource_ms[resource]
            if moved is None or resource in limits or time_ms <= 0.1 * facts.task_ms:
                continue
            if moved / (time_ms / 1000) >= SLOW_BPS:
                continue
            cost = facts.path_ms * time_ms / facts.task_ms
            found.append(
                OddUseStage(
                    facts.id, facts.name, cost, "modelled", InspectDevice(resource),
                    resource=resource, resource_ms=time_ms, moved_bytes=moved,
                )
            )  # fmt: skip
    return found
