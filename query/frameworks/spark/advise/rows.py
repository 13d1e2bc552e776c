"""Rows that lie unevenly on tasks, that one task computes alone, or that Python workers compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crystalperf.query.answers.values import Debug
from crystalperf.query.explain.candidates import GUESSED, MODELLED, Candidate
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.lanes import idle_slots
from crystalperf.query.explain.findings.parts import LITTLE_BYTES
from crystalperf.query.explain.findings.stragglers import straggler
from crystalperf.query.explain.wording import terms_of
from crystalperf.query.frameworks.spark.advise.changes import changed, changed_size
from crystalperf.query.frameworks.spark.advise.partitions import ADVISED, reads_shuffle
from crystalperf.query.frameworks.spark.partitions import size_set
from crystalperf.query.frameworks.spark.recommendations import (
    PartitionWindow,
    ProfilePython,
    SplitKeys,
    SplitSkewedJoin,
)
from crystalperf.query.frameworks.spark.rules import RULES, one_window
from crystalperf.query.frameworks.spark.settings import flag
from crystalperf.query.model.execution import Execution
from crystalperf.query.results.recommendations import SettingChange

ADAPTIVE = "spark.sql.adaptive.enabled"
_THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"


def skew(execution: Execution, details: Sequence[Detail]) -> Iterator[Candidate]:
    """Stages that read a shuffle and wait for the task of a large key, or leave most tasks nothing to read."""
    terms = terms_of(execution)
    found = [
        (detail, part)
        for detail in details
        if reads_shuffle(detail)
        for part in (*straggler(terms, detail, ()), *idle_slots(terms, detail))
        if part.kind == "data" or (part.kind == "empty" and detail.read_bytes > LITTLE_BYTES)
    ]
    if not found:
        return
    most_ms = sum(part.cost_ms for _, part in found)
    detail, part = max(found, key=lambda each: each[1].cost_ms)
    joins = any("Join" in each and "Broadcast" not in each for each in detail.operators)
    splitting = _split_skewed(execution.properties, detail, part.group) if joins else None
    if splitting is not None:
        yield Candidate(splitting, at_most_ms=most_ms)
        return
    value = SplitKeys(price="code", because="straggler", saving=MODELLED, stage=part.group, evidence=part.what)
    yield Candidate(value, at_most_ms=most_ms)


def _split_skewed(properties: Mapping[str, str], detail: Detail, stage: str) -> SplitSkewedJoin | None:
    """Adaptive execution's own splitting of large keys, where it is off, or where the largest is too small for it; None
    where it had the chance to split, or where nothing says that this Spark has it."""
    enabled = flag(properties.get(ADAPTIVE))
    if enabled is None and {"AQEShuffleRead", "CustomShuffleReader"} & set(detail.operators):
        enabled = True
    most_bytes, threshold = detail.facts.most_bytes, size_set(properties, _THRESHOLD)
    if enabled is None or most_bytes <= 0 or (enabled and most_bytes > threshold):
        return None
    settings: list[SettingChange] = [] if enabled else [changed(properties, ADAPTIVE, True)]
    if most_bytes <= threshold:  # it splits what is larger than that, into parts of the advised size
        part_bytes = most_bytes / max(detail.facts.slots, 2)
        settings += [changed_size(properties, key, part_bytes) for key in (_THRESHOLD, ADVISED)]
    return SplitSkewedJoin(
        price="setting", because="straggler", saving=MODELLED, settings=tuple(settings),
        stage=stage, largest_bytes=most_bytes, threshold_bytes=threshold if most_bytes <= threshold else None,
    )  # fmt: skip


def windows(execution: Execution, details: Sequence[Detail]) -> Iterator[Candidate]:
    """Windows over all rows at once, which one task computes."""
    terms = terms_of(execution)
    parts = [part for each in details if one_window(each) for part in idle_slots(terms, each)]
    if parts:
        first = max(parts, key=lambda each: each.cost_ms)
        value = PartitionWindow(price="code", because="idle slots", saving=MODELLED, stage=first.group)
        yield Candidate(value, at_most_ms=sum(each.cost_ms for each in parts))


def python(details: Sequence[Detail], debug: Debug) -> Iterator[Candidate]:
    """A look at the code of Python workers that tasks wait for; what it does is in no log."""
    cost_ms = debug.other_ms.get("delegated", 0.0)
    mine = [each for each in details if RULES.delegates(each.what)]
    if not mine or cost_ms <= 0:
        return
    longest = max(mine, key=lambda each: each.facts.path_ms)
    value = ProfilePython(
        price="code", because="delegated", saving=GUESSED,
        settings=(SettingChange("spark.python.profile", None, True),),
        stage=longest.facts.id, name=longest.facts.name, scalar_udf="BatchEvalPython" in longest.operators,
    )  # fmt: skip
    yield Candidate(value, at_most_ms=cost_ms)
