"""Devices that were used for something else than moving data."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from crystalperf.indexes.resources import DISK, NET
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.parts import Part, group_name
from crystalperf.query.explain.wording import Terms
from crystalperf.query.model.amounts import lasting, volume

SLOW_BPS = 1e6
"""A device that moves less than this while it is used is used for something else than moving data."""


def odd_use(terms: Terms, details: Sequence[Detail], limits: Collection[str]) -> list[Part]:
    """Time on a device that hardly moved data: a misconfiguration as a rule (§4.2, §7.5).

    `limits` are the resources that hold the run up: a device that is slow because it is full is no sign of a
    misconfiguration.
    """
    found = []
    for detail in details:
        facts = detail.facts
        if facts.path_ms <= 0 or terms.rules.own_device(detail):
            continue
        for resource, moved in detail.moved_bytes.items():
            time_ms = facts.resource_ms[resource]
            if moved is None or resource in limits or time_ms <= 0.1 * facts.unit_ms:
                continue
            if moved / (time_ms / 1000) >= SLOW_BPS:
                continue
            what = f"{lasting(time_ms)} of {terms.words.unit} time on {terms.device(resource)} for {volume(moved)}"
            waits = _ODD.get(resource, "many small transfers, or waiting in them")
            advice = f"find out what it waits for, as it is not data: {waits}"
            cost, many = facts.path_ms * time_ms / facts.unit_ms, f"use {terms.device(resource)} and hardly move data"
            found.append(Part("odd use", resource, cost, group_name(detail), what, "modelled", advice, many))
    return found


_ODD = {
    DISK: "many small files, metadata, a disk that is slow to answer or shared",
    NET: "connections, retries, name look-ups, a service or a worker that is slow to answer",
}
