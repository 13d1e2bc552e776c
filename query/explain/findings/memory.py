"""Memory that did not suffice: spills, collections of garbage, and what was read anew."""

from __future__ import annotations

from collections.abc import Sequence

from crystalperf.indexes.resources import DISK, OTHER
from crystalperf.query.answers.values import Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.parts import group_name
from crystalperf.query.explain.wording import Terms
from crystalperf.query.model.amounts import counted, volume
from crystalperf.query.model.execution import most_spilling_ms

GC = 0.1
"""… and garbage collection."""


def spilling(terms: Terms, details: Sequence[Detail], spilled_by: Sequence[str]) -> list[Finding]:
    """Memory that did not suffice, so that rows went to disk; `spilled_by` are names of operators, worst first.

    Evidence: bytes that were spilled.  It cost at most the time on disk and of unknown cause, and no more than writing
    and reading back those bytes takes (most_spilling_ms).
    """
    groups = [detail for detail in details if detail.facts.spill_bytes and detail.facts.unit_ms > 0]
    if not groups:
        return []
    spilled = sum(each.facts.spill_bytes for each in groups)
    cost = 0.0
    for each in groups:
        facts = each.facts
        moved_ms = float(most_spilling_ms(facts.spill_bytes, each.spill_memory_bytes))
        on_disk_ms = facts.resource_ms[DISK] + min(facts.resource_ms[OTHER], moved_ms)
        cost += facts.path_ms * min(on_disk_ms / facts.unit_ms, 1.0)
    worst = max((each.facts for each in groups), key=lambda each: each.spill_bytes)
    by = f", mostly by {spilled_by[0]}" if spilled_by else ""
    what = f"{volume(spilled)} were spilled to disk for want of memory, most in {worst.id} {worst.name}{by}"
    words = terms.words
    neutral = f"more memory per {words.worker}, fewer {words.lanes}, or smaller {words.units}"
    advice = terms.advice("spilling", neutral)
    if all(terms.rules.spills_apart(each.what, each.facts.scope) for each in groups):
        neutral = f"more memory for what computes for the {words.units}, or smaller {words.units}"
        advice = terms.advice("delegates spilling", neutral)
    return [Finding("spilling", cost, what, "modelled", advice)]


def collecting_garbage(terms: Terms, details: Sequence[Detail]) -> list[Finding]:
    """Heaps so full that collecting garbage takes a good part of the units' time."""
    found = [each.facts for each in details if each.facts.gc_ms > GC * each.facts.unit_ms > 0]
    if not found:
        return []
    words = terms.words
    cost = sum(each.path_ms * min(each.gc_ms / each.unit_ms, 1.0) for each in found)
    worst = max(found, key=lambda each: each.gc_ms)
    share = worst.gc_ms / worst.unit_ms
    what = f"garbage collection took {100 * share:.0f} % of {words.unit} time in {worst.id} {worst.name}"
    if len(found) > 1:
        what += f", and a tenth or more in {len(found) - 1} other" + ("s" if len(found) > 2 else "")
    advice = f"more memory per {words.worker}, or fewer {words.lanes}"
    return [Finding("garbage", cost, what, "measured", advice)]


def reading_anew(terms: Terms, details: Sequence[Detail]) -> list[Finding]:
    """Memory that had no room for what workers were to keep, so that units read and computed it again.

    Evidence: units that read files for what others of their group found in memory.  It cost at most what their groups
    took longer than if all units were as quick as the quickest that found it.
    """
    found = [each for each in details if each.anew and each.facts.unit_ms > 0]
    cost = sum(each.facts.path_ms * min(each.anew_ms / each.facts.unit_ms, 1.0) for each in found)
    if cost <= 0:
        return []
    words, worst = terms.words, max(found, key=lambda each: each.anew_ms)
    what = (
        f"{worst.anew} of {worst.facts.units} {words.units} of {group_name(worst)} read anew what {words.workers} were"
        " to keep in memory, for it was not there"
    )
    if len(found) > 1:
        what += f"; so did {counted(sum(each.anew for each in found) - worst.anew, words.unit)}"
        what += f" of {counted(len(found) - 1, 'other')}"
    neutral = f"more memory per {words.worker} or more {words.workers}, so that there is room for all of it"
    return [Finding("kept", cost, what, "modelled", terms.advice("kept", neutral))]
