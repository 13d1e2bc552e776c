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
from crystalperf.query.answers.values import Basis, Debug, Finding
from crystalperf.query.explain.facts import Detail
from crystalperf.query.explain.findings.parts import SEE
from crystalperf.query.explain.losses import SOONER, memory_advice
from crystalperf.query.explain.wording import Terms, terms_of
from crystalperf.query.frameworks import plural
from crystalperf.query.model.execution import Execution

FASTER_CPU = 1.25
"""How much faster a CPU is asked to be: about what a newer generation or a faster clock brings."""

LEAST_SHARE = 0.05
"""A device is worth asking about from this share of the runtime on the path."""

MOST_IDLE = 0.5
"""More lanes bring nothing to units that leave this share of the lanes idle."""

_TOLD_APART = ("idle slots", "straggler", "starting units", "spilling", "garbage")
"""Advisor of units and lanes; a framework that brings chances of its own knows what can be done about them."""


@dataclass(frozen=True)
class Chance:
    """Something to change.

    kind        as in query.answers.values.Action
    what        what to change, from what to what, as a sentence without its full stop
    why         the rule or the setting that it rests on
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
    terms = terms_of(execution)
    own = [] if terms.rules.chances is None else list(terms.rules.chances(connection, execution, details, debug))
    alone = _alone(terms, debug, {each.why for each in own})
    known = {each.why for each in (*own, *alone)}
    memory = None if debug.outcome is None else debug.outcome.memory
    # What ran out of memory has a chance of the framework's own: a finding that advises the same is no second one.
    twice = memory_advice(terms, memory) if memory is not None and any(each.why == "outcome" for each in own) else None
    findings = [each for each in debug.findings if each.advice != twice]
    return [
        *([] if any(each.why == STOPPED for each in own) else _failure(debug)),
        *_unmeasured(connection, terms),
        *own,
        *alone,
        *_other_findings(findings, known, has_own=terms.rules.chances is not None),
        *_resized(terms, execution, debug),
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


def _unmeasured(connection: duckdb.DuckDBPyConnection, terms: Terms) -> list[Chance]:
    """That what the user asks for was not recorded."""
    what = terms.rules.unmeasured(connection)
    return [] if what is None else [Chance("record", what, "measure", "measured", comes_first=True)]


def _alone(terms: Terms, debug: Debug, known: set[str]) -> list[Chance]:
    """What holds for time in which no unit ran, in any framework; a finding knows more of workers that were lost."""
    words = terms.words
    scopes = plural(words.scope)
    told = {
        "no scope": ("code", f"Look at what the program does between its {scopes}, at its start and at its end"),
        "coordinator": ("code", f"Look at what the {words.coordinator} does while no {words.unit} runs"),
        "no worker": ("setting", f"Have {words.workers} there when the program starts, or keep them between runs"),
    }
    return [
        Chance(
            told[each.rule][0],  # type: ignore[arg-type]
            terms.rules.advice.get(each.rule, told[each.rule][1]),
            each.rule,
            each.basis,
            at_most_ms=each.cost_ms,
        )
        for each in debug.findings
        if each.rule in told
        and each.rule not in known
        and (each.rule != "no worker" or each.advice == terms.advice("no worker", SOONER))
    ]


def _other_findings(findings: Sequence[Finding], known: set[str], *, has_own: bool) -> list[Chance]:
    """The advice of findings that nothing more exact is known of, each with the first clause of what was seen."""
    found = []
    for each in findings:
        if each.rule in known or each.advice == SEE:
            continue
        if has_own and each.rule in _TOLD_APART:
            continue
        kind: Literal["machine", "code"] = "machine" if each.rule == "slow hosts" else "code"
        what = f"{each.advice[:1].upper()}{each.advice[1:]} ({each.what.partition('; ')[0]})"
        found.append(Chance(kind, what, each.rule, each.basis, at_most_ms=each.cost_ms))
    return found


def _resized(terms: Terms, execution: Execution, debug: Debug) -> list[Chance]:
    """More lanes, more memory and faster devices, as far as something waits for them.

    More lanes are none where the run failed, where a device computed that is not modelled, where the run is held up by
    what happens while no unit runs, or where half of the lanes it has stand idle while units run.
    """
    words, whole_ms = terms.words, debug.runtime_ms
    found = []
    failed = debug.outcome is not None and debug.outcome.status == "failed"
    on_units_ms = whole_ms - debug.coordinator_ms
    if not failed and debug.unmodelled is None and on_units_ms > whole_ms / 2 and _busy_share(debug) > 1 - MOST_IDLE:
        found.append(_one(terms, execution, "workers", 2.0, f"Run on twice the {words.counted}"))
    if not failed:
        found.append(_one(terms, execution, "memory", 2.0, f"Give each {words.worker} twice the memory"))
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


def _one(terms: Terms, execution: Execution, key: str, ratio: float, neutral: str) -> Chance | None:
    """More of a countable thing, in the framework's terms; None where it has no such thing to change."""
    if terms.rules.resized is not None:
        return terms.rules.resized(execution, key, ratio)
    return Chance("machine", neutral, key, "modelled", asks=f"{key}={ratio:g}x")
