"""From answers about a run to an entry of the ledger."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from crystalperf.indexes.errors import SettingError
from crystalperf.query.compare.plans import plan_hash
from crystalperf.query.diagnose.outcome import outcome
from crystalperf.query.execution.load import ALL, WHOLE
from crystalperf.query.frameworks.registry import get
from crystalperf.query.ledger.entries import By, Change, Entry, Predicted, Recommended, RunFacts
from crystalperf.query.ledger.store import append, place
from crystalperf.query.results.answers import Prediction, WhatIf
from crystalperf.query.results.recommendations import Recommendation, Value
from crystalperf.query.results.refusals import RefusedError
from crystalperf.query.results.words import Words
from crystalperf.query.text.sentences import lines_of, text_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import duckdb

    from crystalperf.query.execution.execution import Execution
    from crystalperf.query.execution.scenario import Scenario
    from crystalperf.query.results.answers import Header

RECORDED = ("workers", "cores", "memory", "tasks")
"""Settings of a scenario that logs record, next to `input`; of a run's log, those that are known."""

SCOPES = 100
"""Maximum scopes of a run whose durations are kept, the first by their start."""

SETTINGS = 100
LONGEST = 300
"""Maximum settings that are kept, and characters of a value."""


class RecordedRun(Protocol):
    """A run that has facts for the ledger, as crystalperf.query.run.Run."""

    def header(self) -> Header:
        """Name, framework, duration and size of the run."""

    def execution(self, scope: str = "all") -> Execution:
        """A scope as arrays."""

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """The locked, read-only connection."""


class KeptRun(RecordedRun, Protocol):
    """A run of which the ledger keeps answers."""

    def scenario(self, setting: str, scope: str = "all", recorded: Sequence[str] = ()) -> Scenario:
        """The scenario of settings, as a prediction names them."""


def facts_of(run: RecordedRun) -> RunFacts | None:
    """The facts of a run; None for a stream, which has no end, and for a run in which no time passes."""
    header, execution = run.header(), run.execution(ALL)
    is_stream = execution.stream is not None or execution.micro_batches is not None
    if is_stream or not execution.runtime_ms > 0:
        return None
    framework = get(header.framework)
    with run.reading() as connection:
        started, attempt = connection.execute("SELECT started_at_ms, attempt FROM runs").fetchall()[0]
        plan = plan_hash(connection, framework.comparer.adapters)
        status = outcome(connection, execution, framework.advisor).status
        scopes = connection.execute(
            "SELECT scope_id, end_ms - start_ms FROM scopes WHERE end_ms > start_ms"
            " ORDER BY start_ms, scope_id LIMIT ?",
            [SCOPES],
        ).fetchall()
    resources = {key: float(value) for key in RECORDED if (value := execution.recorded.get(key))}
    settings = [
        (key, value)
        for key, value in sorted(execution.properties.items())
        if framework.comparer.is_setting(key) and len(value) <= LONGEST
    ]
    return RunFacts(
        framework=header.framework,
        name=header.name,
        app_id=header.app_id,
        attempt=attempt,
        started_at_ms=int(started),
        plan=plan,
        runtime_ms=float(execution.runtime_ms),
        step_ms=header.step_ms,
        ended_well=header.complete and status in ("succeeded", "recovered"),
        resources={**resources, "input": float(execution.volumes.input.sum())},
        settings=dict(settings[:SETTINGS]),
        scopes={scope: float(ms) for scope, ms in scopes},
    )


def entry_of(
    run: KeptRun,
    by: By,
    version: str,
    answers: Sequence[Prediction | WhatIf] = (),
    recommendations: Sequence[Recommendation] = (),
    recorded: Sequence[str] = (),
    model: str = "",
) -> Entry | None:
    """The entry about a run, with the predictions that have a time.

    `recorded` are the resources that the user stated for the run, `model` is the predictor of another package.  None if
    facts_of() has none.
    """
    facts = facts_of(run)
    if facts is None:
        return None
    words = run.execution(ALL).words
    predictions = (predicted(run, facts, each, recorded, model) for each in answers)
    return Entry(
        at_ms=round(1e3 * time.time()),
        version=version,
        by=by,
        run=facts,
        predictions=tuple(each for each in predictions if each is not None),
        recommendations=tuple(recommended(each, words) for each in recommendations),
    )


def keep(
    run: KeptRun,
    by: By,
    version: str,
    answers: Sequence[Prediction | WhatIf] = (),
    recommendations: Sequence[Recommendation] = (),
    recorded: Sequence[str] = (),
    model: str = "",
) -> str:
    """Add the entry about a run to the user's ledger, unless that is off.

    Returns the entry as JSON, '' if there is none.  Raises what append() raises.
    """
    path = place()
    if path is None:
        return ""
    entry = entry_of(run, by, version, answers, recommendations, recorded, model)
    return "" if entry is None else append(path, entry).decode()


def predicted(
    run: KeptRun, facts: RunFacts, answer: Prediction | WhatIf, recorded: Sequence[str] = (), model: str = ""
) -> Predicted | None:
    """A prediction as the ledger keeps it; None if it has no time, or is about an interval that no other run has."""
    scope = answer.scope if isinstance(answer, Prediction) else ALL
    if answer.predicted_ms is None or not answer.predicted_ms > 0 or answer.stream is not None or scope == WHOLE:
        return None
    before_ms = facts.value_ms(scope)
    if before_ms is None:
        return None
    try:
        scenario = run.scenario(answer.setting, scope, recorded)
    except (RefusedError, SettingError):  # of a prediction that was not refused: the setting's text is ambiguous
        return None
    expected = dict(facts.resources)
    unstated: dict[str, str] = {}
    for key, value in scenario.changes.items():
        if key in expected and value.choice is None:
            expected[key] *= scenario.ratio(key)
        else:
            unstated[key] = value.text
    # A training predicts its recorded steps, but is held against the time of one.
    runtime_ms = answer.runtime_ms if isinstance(answer, Prediction) else facts.runtime_ms
    part = before_ms / runtime_ms if facts.step_ms and scope == ALL and runtime_ms else 1.0
    ends = answer.interval_ms
    return Predicted(
        setting=answer.setting,
        scope=scope,
        expected=expected,
        unstated=unstated,
        predicted_ms=float(answer.predicted_ms * part),
        range_ms=None if ends is None else (float(ends[0] * part), float(ends[1] * part)),
        model=model,
        reruns=_reruns(answer),
    )


def _reruns(answer: Prediction | WhatIf) -> int:
    correction = answer.rerun_correction if isinstance(answer, Prediction) else None
    return 0 if correction is None else len(correction.reruns)


def recommended(found: Recommendation, words: Words) -> Recommended:
    """A recommendation as the ledger keeps it."""
    saving = found.saving
    return Recommended(
        kind=found.kind,
        text=text_of(found, words),
        lines=tuple(lines_of(found, words)),
        changes=tuple(
            Change(each.name, _text(each.before), _text(each.after) or "", each.after_bytes) for each in found.settings
        ),
        saving_ms=None if saving.ms is None else float(saving.ms),
        range_ms=None if saving.range_ms is None else (float(saving.range_ms[0]), float(saving.range_ms[1])),
        basis=saving.basis,
    )


def _text(value: Value) -> str | None:
    """A value as configuration files have it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and not math.isinf(value) else str(value)
