"""Reading one log into rows of the fleet's tables; every engine runs this."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from crystalperf.fleet.logs import Item, content_hash
from crystalperf.fleet.tables import question, tables
from crystalperf.indexes import guard
from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.advise.verdict import bottleneck_of, usual_what_ifs
from crystalperf.query.compare.plans import plan_hash
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import NotALogError, discover
from crystalperf.query.inputs.files import Application, Inputs
from crystalperf.query.ledger.entries import RunFacts
from crystalperf.query.ledger.facts import facts_of, predicted
from crystalperf.query.predict.interval import CALIBRATED
from crystalperf.query.results.answers import Debug, Header, Prediction
from crystalperf.query.run import Run
from crystalperf.query.runfile.pipeline import scratch_run
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import text_of, texts_of
from crystalperf.query.trace.records import as_text

COMMON = ("model", "labels")
"""Sources of uncertainty with the same error in every run, so that more runs do not average it out: the model, and the
labels of shared functions."""

MAX_FUNCTIONS = 50
"""Maximum functions of each run, by sampled time."""

HALF_WIDTH = CALIBRATED.coverage_width
"""Half width of a prediction's 90 % range, in standard deviations."""

_HOUR_MS = 3_600_000.0
_LAST_S = 253_402_300_799.0  # the year 9999
_MOMENT = "%Y-%m-%d %H:%M:%S.%f"

Row = dict[str, Any]
Rows = dict[str, list[Row]]


UNREAD, NOT_A_LOG = "unread", "not-log"
"""Severities in `problems` of a file without runs: a log that cannot be read, and any other file."""


@frozen
class Read:
    """A log that was read: its hash, its place, and its rows of all tables as JSON.

    It has no rows if the disk was full, so that the next build reads the log again.
    """

    log: str
    path: str
    rows: bytes


def read(item: Item, scratch: Path | None = None) -> Read:
    """The rows of a log; an unreadable one has a row with the reason.  Raises MemoryError only.

    `scratch` is the folder for temporary run files, by default the system's.
    """
    rows: Rows = {each.name: [] for each in tables()}
    day = _day(item.changed_s * 1000)
    if item.refused:
        return failed(item, item.refused)
    try:
        log = content_hash(item)
        inputs = discover([item.path, *item.companions])
        if not inputs.applications:
            raise CrystalPerfError(f"{item.name}: contains recordings of stacks, but no log")
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            for number, application in enumerate(inputs.applications):
                run_id = log[:16] if len(inputs.applications) == 1 else f"{log[:16]}-{number}"
                for name, more in _run_rows(item, log, run_id, inputs, application, Path(folder)).items():
                    rows[name] += more
        day = rows["runs"][0]["day"]
    except MemoryError:
        raise
    except Exception as error:
        if _is_full(error):
            return Read("", item.name, b"")
        rows = {each.name: [] for each in tables()}
        try:
            log = content_hash(item)
        except Exception:  # each store's client has its own error classes
            log = _hash_of_place(item)
        severity = NOT_A_LOG if isinstance(error, NotALogError) else UNREAD
        rows["problems"] = [_unread(item, log, day, sentence(error), severity)]
    return _answer(item, log, rows, day)


def failed(item: Item, why: str) -> Read:
    """The rows of a log that crashed its process."""
    log, day = _hash_of_place(item), _day(item.changed_s * 1000)
    rows: Rows = {each.name: [] for each in tables()}
    rows["problems"] = [_unread(item, log, day, why)]
    return _answer(item, log, rows, day)


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk caused an error."""
    while error is not None:
        if isinstance(error, OSError | duckdb.Error) and guard.is_full(error):
            return True
        error = error.__cause__
    return False


def _hash_of_place(item: Item) -> str:
    """A substitute for the content hash of an unreadable log."""
    return sha256(f"{item.name} {item.state}".encode()).hexdigest()


def sentence(error: Exception) -> str:
    """An error as one sentence."""
    what = as_text(" ".join(str(error).split()))
    return what if isinstance(error, CrystalPerfError) else f"a bug of CrystalPerf ({type(error).__name__}: {what})"


def _answer(item: Item, log: str, rows: Rows, day: str) -> Read:
    """The rows with the row of the log itself, and with the time of reading."""
    rows["logs"] = [
        {
            "log": log,
            "path": item.name,
            "state": item.state,
            "size_bytes": item.size_bytes,
            "runs": len(rows["runs"]),
            "day": day,
        }
    ]
    read_at = datetime.now(UTC).strftime(_MOMENT)
    for each in (*rows["logs"], *rows["runs"], *rows["problems"]):
        each["read_at"] = read_at
    return Read(log, item.name, _encoded(rows))


def _unread(item: Item, log: str, day: str, what: str, severity: str = UNREAD) -> Row:
    return {"log": log, "path": item.name, "run_id": None, "severity": severity, "text": what, "day": day}


def _moment(unix_ms: float) -> datetime:
    """A time clamped to valid dates: clocks and stores may report invalid ones."""
    return datetime.fromtimestamp(min(max(unix_ms / 1000, 0.0), _LAST_S), UTC)


def _day(unix_ms: float) -> str:
    return _moment(unix_ms).strftime("%Y-%m-%d")


def _run_rows(item: Item, log: str, run_id: str, inputs: Inputs, application: Application, folder: Path) -> Rows:
    """The rows of one application; its temporary tables are in `folder`."""
    with scratch_run(inputs, application, folder) as written:
        run = Run(folder, reading=written)
        with run.reading() as connection:
            return _rows_of(item, log, run_id, run, connection)


def _rows_of(item: Item, log: str, run_id: str, run: Run, connection: duckdb.DuckDBPyConnection) -> Rows:
    """The rows of an open run."""
    header, debug = run.header(), run.debug()
    names = tuple(each.name for each in header.resources)
    kept = facts_of(run)
    gains, replayed_ms = _gains(run, header, debug, kept)
    facts = _facts(connection, header.framework)
    started, attempt = connection.execute("SELECT started_at_ms, attempt FROM runs").fetchall()[0]
    day = _day(started)
    stages = list(_stages(connection, run_id, day, with_other(names)))
    operators = list(_operators(connection, run_id, day, names))
    columns = {
        "run_id": run_id,
        "log": log,
        "path": item.name,
        "attempt": attempt,
        "started_at": _moment(started).strftime(_MOMENT),
        **facts,
        "resources": {} if kept is None else _without_input(kept.resources),
        "settings": {} if kept is None else dict(kept.settings),
        "task_ms": _summed(each["task_ms"] for each in stages),
        "replayed_ms": replayed_ms,
        "gains": gains,
        "day": day,
    }
    problem = {"log": log, "path": item.name, "run_id": run_id, "day": day}
    return {
        "runs": [columns | _answers(header, debug)],
        "stages": stages,
        "operators": operators,
        "functions": _functions(debug, run_id, day),
        "findings": _findings(debug, run_id, day),
        "problems": [problem | {"severity": each.severity, "text": each.meaning} for each in header.problems],
    }


def _without_input(resources: Mapping[str, float]) -> dict[str, float]:
    """Resources without the input, which a column of its own has, in an order by which they compare."""
    return {key: resources[key] for key in sorted(resources) if key != "input"}


def _gains(run: Run, header: Header, debug: Debug, kept: RunFacts | None) -> tuple[list[Row], float | None]:
    """The saving of each usual setting, and the replayed runtime of the baseline, ms.

    A run whose measure is not the makespan has no savings, because savings are in hours of runtime.
    """
    gains, replayed_ms = [], None
    for each in usual_what_ifs(header) if debug.measure == "makespan" and debug.runtime_ms > 0 else ():
        try:
            prediction = run.predict([each.setting], path=False)
        except CrystalPerfError as error:
            gains.append(_refused(each.text, each.setting, sentence(error)))
            continue
        replayed_ms = prediction.replayed_ms
        found = None if kept is None else predicted(run, kept, prediction)
        expected = None if found is None or found.unstated else _without_input(found.expected)
        gains.append(_gain(each.text, each.setting, prediction, expected))
    return gains, replayed_ms


def _answers(header: Header, debug: Debug) -> Row:
    """The columns of the table of runs that come from a run's header and diagnosis."""
    bottleneck, outcome = bottleneck_of(debug), debug.outcome
    return {
        "app_id": header.app_id,
        "name": header.name,
        "framework": header.framework,
        "framework_version": header.framework_version,
        "measure": debug.measure,
        "runtime_ms": debug.runtime_ms,
        "duration_ms": header.duration_ms,
        "complete": header.complete,
        "outcome": "unfinished" if outcome is None else outcome.status,
        "reason": None if outcome is None else outcome.reason,
        "workers": header.workers,
        "bottleneck": bottleneck.name,
        "bottleneck_ms": bottleneck.time_ms,
        "path_ms": dict(debug.resource_ms),
        "has_samples": header.has_samples,
        "indexes": list(header.indexes),
    }


def _functions(debug: Debug, run_id: str, day: str) -> list[Row]:
    return [
        {
            "run_id": run_id,
            "name": each.qualified_name,
            "index_name": each.index_name,
            "resource": each.resource,
            "time_ms": each.time_ms,
            "day": day,
        }
        for each in debug.functions[:MAX_FUNCTIONS]
    ]


def _findings(debug: Debug, run_id: str, day: str) -> list[Row]:
    return [
        {
            "run_id": run_id,
            "kind": each.kind,
            "cost_ms": each.cost_ms,
            "basis": each.basis,
            "text": text_of(each, debug.words),
            "advice": advice_text(each, debug.words),
            "day": day,
        }
        for each in debug.findings
    ]


def _facts(connection: duckdb.DuckDBPyConnection, framework: str) -> Row:
    """Totals over a run's tasks and slots, and the hash of its plans."""
    cursor = connection.execute(question("facts"))
    facts = dict(zip([each[0] for each in cursor.description], cursor.fetchall()[0], strict=True))
    duration = connection.execute("SELECT duration_ms FROM runs").fetchall()[0][0]
    there_ms = 0.0
    for _, _, slots, added, removed, _ in connection.execute(sql.text("worker_slots")).fetchall():
        there_ms += (slots or 0) * max(min(duration if removed is None else removed, duration) - added, 0.0)
    busy_ms, lost_ms = facts.pop("busy_ms"), facts.pop("lost_ms")
    return {
        **facts,
        "core_hours": max(there_ms, busy_ms) / _HOUR_MS,
        "busy_core_hours": busy_ms / _HOUR_MS,
        "lost_core_hours": lost_ms / _HOUR_MS,
        "plan_hash": plan_hash(connection, get(framework).comparer.adapters),
    }


def _stages(connection: duckdb.DuckDBPyConnection, run_id: str, day: str, names: tuple[str, ...]) -> Iterator[Row]:
    parts = ", ".join(f"coalesce({name}_ms, 0)" for name in names)
    rows = connection.execute(
        f"SELECT stage_id, coalesce(name, stage_id), scope_id, status, task_count, submit_ms, end_ms, {parts}"
        " FROM stages ORDER BY rowid"
    ).fetchall()
    for stage_id, name, scope_id, status, tasks, submit_ms, end_ms, *spent in rows:
        yield {
            "run_id": run_id,
            "stage_id": stage_id,
            "name": name,
            "scope_id": scope_id,
            "status": status,
            "tasks": tasks,
            "submit_ms": submit_ms,
            "end_ms": end_ms,
            "task_ms": dict(zip(names, spent, strict=True)),
            "day": day,
        }


def _operators(connection: duckdb.DuckDBPyConnection, run_id: str, day: str, names: tuple[str, ...]) -> Iterator[Row]:
    parts = ", ".join(f"sum({name}_ms)" for name in with_other(names))
    rows = connection.execute(
        f"SELECT name, basis, {parts} FROM operator_times WHERE node_id IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for name, basis, *spent in rows:
        task_ms = dict(zip(with_other(names), spent, strict=True))
        yield {"run_id": run_id, "name": name, "basis": basis, "task_ms": task_ms, "day": day}


def _summed(parts: Iterator[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, list[float]] = {}
    for each in parts:
        for name, ms in each.items():
            total.setdefault(name, []).append(ms)
    return {name: math.fsum(values) for name, values in total.items()}


def _refused(text: str, setting: str, why: str) -> Row:
    unknown = dict.fromkeys(("predicted_ms", "low_ms", "high_ms", "expected", "common_variance", "own_variance"))
    return {"question": text, "setting": setting, **unknown, "refused": why}


def _gain(text: str, setting: str, prediction: Prediction, expected: Mapping[str, float] | None) -> Row:
    """A prediction with its 90 % range and expected resources, and the variance of its logarithm by source."""
    if prediction.predicted_ms is None or prediction.interval_ms is None or prediction.predicted_ms <= 0:
        return _refused(
            text, setting, " ".join(texts_of(prediction.refused, prediction.words)) or "the prediction has no range"
        )
    low, high = prediction.interval_ms
    variance = (math.log(max(high, 1e-9) / max(low, 1e-9)) / 2 / HALF_WIDTH) ** 2
    shares = prediction.interval_shares
    common = sum(shares.get(each, 0.0) for each in COMMON)
    return {
        "question": text,
        "setting": setting,
        "predicted_ms": prediction.predicted_ms,
        "low_ms": low,
        "high_ms": high,
        "expected": expected,
        "common_variance": variance * common,
        "own_variance": variance * max(1 - common, 0.0),
        "refused": None,
    }


def _encoded(rows: Rows) -> bytes:
    return msgspec.json.encode(rows, enc_hook=lambda number: number.item())  # numpy's
