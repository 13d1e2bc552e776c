"""What could be changed about a run so that it is shorter, before anybody knows by how much.

The framework brings what its users can set or write (Advisor.chances) and says how a what-if's setting is changed in
its terms (Advisor.resized); what can be bought is the same for all.  query.answers.actions asks what each brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb

from crystalperf.indexes.resources import CPU, OTHER
from crystalperf.query.answers.values import Debug
from crystalperf.query.explain.facts import Detail
from crystalperf.query.frameworks import Advisor
from crystalperf.query.model.execution import Execution
from crystalperf.query.results.advice import AvoidExhaustion, RecordSamples, StartWorkersSooner
from crystalperf.query.results.findings import (
    Coordinator,
    Finding,
    Garbage,
    IdleSlots,
    NoScope,
    NoWorker,
    SlowHosts,
    Spilling,
    StageFinding,
    StartingUnits,
    Straggler,
)
from crystalperf.query.results.kinds import Basis
from crystalperf.query.results.words import Words
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import text_of

FASTER_CPU = 1.25
"""How much faster a CPU is asked to be: about what a newer generation or a faster clock brings."""

LEAST_SHARE = 0.05
"""A device is worth asking about from this share of the runtime on the path."""

MOST_IDLE = 0.5
"""More lanes bring nothing to units that leave this share of the lanes idle."""

_OF_TASKS = (IdleSlots, Straggler, StartingUnits, Spilling, Garbage)
"""Findings about tasks and slots; a framework that brings chances of its own knows what can be done about them."""


@dataclass(frozen=True)
class Chance:
    """Something to change.

    kind        as in query.answers.values.Action
    what        what to change, from what to what, as a sentence without its full stop
    why         what it rests on: the kind of a finding, or a setting
    basis       how it is known that this would help
    asks        the what-if that tells what it brings, KEY=VALUE; None where only the bound is known
    at_most_ms  what it can bring at most: a finding's cost; None where only the what-if tells
    lines       what to paste
    comes_first whether nothing else counts before this is done
    """

    kind: Literal["setting", "code", "machine", "record"]
    what: str
    why: str
    basis: Basis
    asks: str | None = None
    at_most_ms: float | None = None
    lines: tuple[str, ...] = ()
    comes_first: bool = False


def chances(
    connection: duckdb.DuckDBPyConnection, execution: Execution, details: Sequence[Detail], debug: Debug
) -> list[Chance]:
    """Everything that could be changed, in no order."""
    advisor, words = execution.framework.advisor, debug.words
    own = [] if advisor.chances is None else list(advisor.chances(connection, execution, details, debug))
    alone = _alone(words, debug, {each.why for each in own})
    known = {each.why for each in (*own, *alone)}
    memory = None if debug.outcome is None else debug.outcome.memory
    # What ran out of memory has a chance of the framework's own: a finding that advises the same is no second one.
    twice = AvoidExhaustion(memory) if memory is not None and any(each.why == "outcome" for each in own) else None
    findings = [each for each in debug.findings if twice is None or each.advice != twice]
    return [
        *([] if any(each.why == STOPPED for each in own) else _failure(debug)),
        *_unmeasured(connection, advisor),
        *own,
        *alone,
        *_other_findings(words, findings, known, has_own=advisor.chances is not None),
        *_resized(advisor, execution, debug),
    ]


STOPPED = "stopped"
"""Why a framework's own chance stands for what failed: the program ended its work, which is no error of that work."""


def _failure(debug: Debug) -> list[Chance]:
    """That what failed comes first."""
    outcome = debug.outcome
    if outcome is None or outcome.status != "failed" or not outcome.failures:
        return []
    first = outcome.failures[0]
    what = f"Fix what failed first: {first.id}: {first.error}"
    return [Chance("code", what, "outcome", "measured", comes_first=True)]


def _unmeasured(connection: duckdb.DuckDBPyConnection, advisor: Advisor) -> list[Chance]:
    """That what the user asks for was not recorded."""
    what = advisor.unmeasured(connection)
    return [] if what is None else [Chance("record", what, "measure", "measured", comes_first=True)]


def _alone(words: Words, debug: Debug, known: set[str]) -> list[Chance]:
    """What holds for time in which no unit ran, in any framework; a finding knows more of workers that were lost."""
    return [
        Chance(
            "setting" if isinstance(each, NoWorker) else "code",
            _capitalised(text_of(each.advice, words)),
            each.kind,
            each.basis,
            at_most_ms=each.cost_ms,
        )
        for each in debug.findings
        if each.advice is not None
        and each.kind not in known
        and (
            isinstance(each, NoScope | Coordinator)
            or (isinstance(each, NoWorker) and isinstance(each.advice, StartWorkersSooner))
        )
    ]


def _other_findings(words: Words, findings: Sequence[Finding], known: set[str], *, has_own: bool) -> list[Chance]:
    """The advice of findings that nothing more exact is known of, each with the first clause of what was seen."""
    found = []
    for each in findings:
        if each.kind in known or each.advice is None:
            continue
        if isinstance(each.advice, RecordSamples) and not (isinstance(each, StageFinding) and each.other_advice):
            continue
        if has_own and isinstance(each, _OF_TASKS):
            continue
        kind: Literal["machine", "code"] = "machine" if isinstance(each, SlowHosts) else "code"
        seen = text_of(each, words).partition("; ")[0]
        what = f"{_capitalised(advice_text(each, words))} ({seen})"
        found.append(Chance(kind, what, each.kind, each.basis, at_most_ms=each.cost_ms))
    return found


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _resized(advisor: Advisor, execution: Execution, debug: Debug) -> list[Chance]:
    """More lanes, more memory and faster devices, as far as something waits for them.

    More lanes are none where the run failed, where a device computed that is not modelled, where the run is held up by
    what happens while no unit runs, or where half of the lanes it has stand idle while units run.
    """
    words, whole_ms = debug.vocabulary, debug.runtime_ms
    found = []
    failed = debug.outcome is not None and debug.outcome.status == "failed"
    on_units_ms = whole_ms - debug.coordinator_ms
    if not failed and debug.unmodelled is None and on_units_ms > whole_ms / 2 and _busy_share(debug) > 1 - MOST_IDLE:
        found.append(_one(advisor, execution, "workers", 2.0, f"Run on twice the {words.counted}"))
    if not failed:
        found.append(_one(advisor, execution, "memory", 2.0, f"Give each {words.worker} twice the memory"))
    changed: set[str] = set()
    for each in execution.resources:
        if each.setting in changed:  # one setting may stand for several
            continue
        if each.name == OTHER or debug.resource_ms.get(each.name, 0.0) < LEAST_SHARE * whole_ms:
            continue
        changed.add(each.setting)
        if each.name == CPU and debug.unmodelled is None:
            what = "Use a CPU with a faster clock or of a newer generation (a quarter faster)"
            found.append(Chance("machine", what, each.setting, "modelled", asks=f"{each.setting}={FASTER_CPU:g}x"))
        elif each.name != CPU:
            what = f"Use machines with twice the {each.device} bandwidth"
            if each.unit == "speed":
                what = f"Use a faster {each.device}"
            found.append(Chance("machine", what, each.setting, "modelled", asks=f"{each.setting}=2x"))
    return [each for each in found if each is not None]


def _busy_share(debug: Debug) -> float:
    """Of the lanes' time while groups are on the path, the share in which they had a unit."""
    on_path = [each for each in debug.groups if each.path_ms > 0 and each.slots and each.length_ms > 0]
    whole_ms = sum(each.path_ms for each in on_path)
    idle_ms = sum(each.path_ms * min(each.idle_ms / (each.slots * each.length_ms), 1.0) for each in on_path)
    return 1 - idle_ms / whole_ms if whole_ms else 0.0


def _one(advisor: Advisor, execution: Execution, key: str, ratio: float, neutral: str) -> Chance | None:
    """More of a countable thing, in the framework's terms; None where it has no such thing to change."""
    if advisor.resized is not None:
        return advisor.resized(execution, key, ratio)
    return Chance("machine", neutral, key, "modelled", asks=f"{key}={ratio:g}x")
