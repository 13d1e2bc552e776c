"""The tools for agents: typed answers of bounded length, with the same figures as at all other interfaces.

An answer has a list that can be long, `rows`.  `limit` and `offset` select a page of it, which is shortened so that the
answer has at most MAX_CHARACTERS; `next_offset` is the offset of the next page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from crystalperf.cli.runs import STDIN
from crystalperf.indexes.errors import SettingError
from crystalperf.indexes.frozen import frozen

if TYPE_CHECKING:
    import duckdb

    from crystalperf.query.lookup.functions import Function

MAX_CHARACTERS = 14_000
"""Maximum characters of an answer's JSON: some 4 000 tokens of 3.5 characters each."""

LONGEST_CELL = 400
"""Maximum characters of a text in a row."""

TIMEOUT_S = 60.0
"""Time limit of a statement, s."""

MAX_ROWS = 1000
"""Maximum `limit` of a request; far fewer rows fit into an answer."""

Part = Literal["path", "stages", "functions", "findings", "operators"]


@frozen
class Answer:
    """Facts of an answer, and a part of what it lists: `rows` from `offset` on, of `total` (None: not counted)."""

    facts: dict[str, Any]
    rows: list[dict[str, Any]]
    offset: int = 0
    total: int | None = None
    next_offset: int | None = None


def analyze(paths: Sequence[str], limit: int = 10, offset: int = 0) -> Answer:
    """Analyze a run: bottleneck, where the time went, predictions; the rows are recommendations, the best first."""
    from crystalperf.cli.runs import analyzed_run, run_word
    from crystalperf.query.text.as_json import as_json
    from crystalperf.query.text.notebook import sentence_of
    from crystalperf.query.text.sentences import texts_of

    if not paths:
        raise SettingError("paths: name logs and recordings (files or folders), or one run that was profiled before")
    run = analyzed_run([_local(each) for each in paths], "", "", (), lambda _: None, replace=False)
    found = run.verdict()
    facts = {
        "run": run_word(run.path),
        "says": sentence_of(found),
        "conclusive": found.debug.conclusive,
        "runtime_ms": round(found.debug.runtime_ms),
        "resource_ms": {name: round(ms) for name, ms in found.debug.resource_ms.items()},
        "framework": f"{found.header.framework_title} {found.header.framework_version or ''}".strip(),
        "workers": found.header.workers,
        "has_samples": found.header.has_samples,
        "what_ifs": [
            {"set": each.setting, "predicted_ms": None if each.predicted_ms is None else round(each.predicted_ms)}
            for each in found.what_ifs
        ],
        "not_recorded": texts_of(found.debug.not_recorded, found.debug.words)[:5],
    }
    rows = [_recommended(each) for each in as_json(found)["recommendations"]]
    return fitting(facts, rows, limit, offset)


def _recommended(value: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a recommendation, with times in whole ms."""
    gain_ms = value["saving"]["ms"]
    return {
        "do": value["text"],
        "kind": value["kind"],
        "gain_ms": gain_ms and round(gain_ms),
        "basis": value["saving"]["basis"],
        "price": value["price"],
        "cost": value["cost"],
        "call_site": value["call_site"],
        "lines": value["lines"],
    }


def debug(run: str, scope: str = "all", part: Part = "path", limit: int = 40, offset: int = 0) -> Answer:
    """Show where the time of a scope went; the rows are one part of the answer, in ms."""
    from crystalperf.cli.runs import find_run
    from crystalperf.query.text.as_json import as_json
    from crystalperf.query.text.notebook import sentence_of

    answer = find_run(_local(run)).debug(scope)
    plain = as_json(answer)
    key = {"path": "critical_path"}.get(part, part)
    if key not in plain or not isinstance(plain[key], list):
        raise SettingError(f"part: unknown value '{part}'; use path, stages, functions, findings or operators")
    facts = {
        "says": sentence_of(answer),
        "scope": answer.scope,
        "conclusive": answer.conclusive,
        "runtime_ms": round(answer.runtime_ms),
        "bottleneck": answer.bottleneck,
        "resource_ms": plain["resource_ms"],
        "other_ms": plain["other_ms"],
        "lists": {each: len(plain[each]) for each in ("critical_path", "stages", "functions", "findings", "operators")},
    }
    return fitting(facts, plain[key], limit, offset)


def predict(run: str, settings: Sequence[str], scope: str = "all", limit: int = 20, offset: int = 0) -> Answer:
    """Predict the runtime with other resources; the rows are one prediction for each combination of listed values."""
    from crystalperf.cli.runs import find_run
    from crystalperf.query.text.notebook import sentence_of
    from crystalperf.query.text.sentences import texts_of

    sweep = find_run(_local(run)).sweep(list(settings), scope=scope)
    rows = [
        {
            "setting": each.setting,
            "predicted_ms": each.predicted_ms and round(each.predicted_ms),
            "range_90_ms": each.interval_ms and [round(ms) for ms in each.interval_ms],
            "refused": "; ".join(texts_of(each.refused, each.words)) or None,
            "says": sentence_of(each),
        }
        for each in sweep.points
    ]
    first = sweep.points[0]
    facts = {
        "runtime_ms": round(first.runtime_ms),
        "assumptions": list(texts_of(first.assumptions[:6], first.words)),
    }
    return fitting(facts, rows, limit, offset)


def compare(before: Sequence[str], after: Sequence[str], limit: int = 20, offset: int = 0) -> Answer:
    """Compare runs of a job before and after a change; the rows are the parts of the difference, in ms.

    Several runs of a side are pooled, and show how much of the difference is noise.
    """
    from crystalperf.cli.runs import find_run
    from crystalperf.query.run import Other
    from crystalperf.query.run import compare as compared
    from crystalperf.query.text.as_json import as_json
    from crystalperf.query.text.notebook import sentence_of

    sides = []
    for name, texts in (("before", before), ("after", after)):
        if not texts:
            raise SettingError(f"{name}: name a run of this side, or several")
        sides.append([Other(each, find_run(_local(each))) for each in texts])
    found = compared(*sides)
    plain = as_json(found)
    facts = {
        "says": sentence_of(found),
        **{key: plain["difference"][key] for key in ("verdict", "ratio", "ratio_low", "ratio_high", "source")},
        "decided": plain["decided"],
        "before_ms": round(found.before.runtime_ms),
        "after_ms": round(found.after.runtime_ms),
        "explained_share": plain["explained_share"],
        "settings": [each for each in plain["settings"] if each["matters"]],
        "predicted": plain["predicted"],
        "not_compared": [each["text"] for each in plain["not_compared"]],
    }
    return fitting(facts, plain["parts"], limit, offset)


def sql(statement: str, run: str = "", indexes: Sequence[str] = (), limit: int = 50, offset: int = 0) -> Answer:
    """Run one SELECT over a run, indexes or both, in a separate process."""
    from crystalperf.cli.runs import find_run_file
    from crystalperf.query.statements.asking import answering, check_text, index_files, request_for
    from crystalperf.query.statements.rows import distinct

    check_text(statement)
    if not run and not indexes:
        raise SettingError("nothing to query: name a run, indexes or both")
    file = find_run_file(_local(run)) if run else None
    _check_part(limit, offset)
    request = request_for(statement, file, index_files(statement, file, indexes))
    with answering(request, TIMEOUT_S) as (columns, batches):
        names = distinct(columns)
        rows: list[list[Any]] = []
        before = offset
        for batch in batches:  # rows before the page are dropped: they may not fit into memory
            rows += batch[before:]
            before = max(before - len(batch), 0)
            if len(rows) > limit:
                break
    listed = [dict(zip(names, row, strict=True)) for row in rows[: limit + 1]]
    answer = fitting({"columns": names}, listed, limit, 0)
    end = None if answer.next_offset is None else offset + answer.next_offset
    return replace(answer, offset=offset, total=None, next_offset=end)


def functions(
    index: str,
    name: str = "",
    class_name: str = "",
    text: str = "",
    resource: str = "",
    limit: int = 30,
    offset: int = 0,
) -> Answer:
    """List functions of an index by name, class, text or resource, each with its label and source location."""
    from crystalperf import Index

    _check_part(limit, offset)
    found = Index(index).functions(
        name, class_name=class_name, text=text, resource=resource, limit=limit, offset=offset
    )
    rows = [
        {"function": each.qualified_name, "label": each.label, "share": each.share, "confidence": each.confidence}
        | {"where": each.where}
        for each in found
    ]
    answer = fitting({"index": index}, rows, limit, 0)
    shown = offset + len(answer.rows)
    return replace(answer, offset=offset, total=found.total, next_offset=shown if shown < found.total else None)


def why(function: str, index: str = "", limit: int = 5, offset: int = 0) -> Answer:
    """Show the evidence for a function's label: its resource vectors, callees and callers."""
    from crystalperf.query.lookup.functions import explain, of_name

    def explained(connection: duckdb.DuckDBPyConnection, _name: str, found: list[Function]) -> None:
        explain(connection, found)

    rows, more = of_name(function, [index] if index else [], why=explained)
    plain = [
        {key: each[key] for key in _WHY if key in each}
        | {"calls": each["evidence"]["callees"], "called_by": each["callers"][:10]}
        for each in rows
    ]
    answer = fitting({"function": function}, plain, limit, offset)
    return replace(answer, total=len(rows) + more)


_WHY = (
    *("index_name", "qualified_name", "file", "first_line", "cpu", "disk", "net", "confidence"),
    *("code_cpu", "code_disk", "code_net", "doc_cpu", "doc_disk", "doc_net", "code_chars", "doc_chars"),
)


# Bounds -------------------------------------------------------------------------------------------------------------


def fitting(facts: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], limit: int, offset: int) -> Answer:
    """The answer with rows from `offset` on: at most `limit`, and at most MAX_CHARACTERS in all.

    Raises SettingError for an invalid limit or offset.
    """
    _check_part(limit, offset)
    chosen = [_cut(dict(each)) for each in rows[offset : offset + limit]]
    left = MAX_CHARACTERS - _size(dict(facts)) - 100
    kept: list[dict[str, Any]] = []
    for each in chosen:
        left -= _size(each) + 2
        if left < 0 and kept:
            break
        kept.append(each if left >= 0 else _short(each, left + _size(each)))
    end = offset + len(kept)
    return Answer(dict(facts), kept, offset, len(rows), end if end < len(rows) else None)


def _check_part(limit: int, offset: int) -> None:
    if not 1 <= limit <= MAX_ROWS or offset < 0:
        raise SettingError(f"limit must be 1 to {MAX_ROWS}, and offset at least 0")


def _local(text: str) -> str:
    """A name of a run or a path.  Raises SettingError for a URL, and for standard input.

    A log may contain instructions for the agent that reads it (prompt injection): a URL could leak data that the agent
    knows to the author of the log.  Standard input is the agent's own connection.
    """
    if text == STDIN or "://" in text:
        raise SettingError(
            f"{text[:200]}: an agent may name only runs and files of this machine; to read a log from a URL, profile it"
            " in a terminal with `crystalperf profile`, then name the run"
        )
    return text


def _cut(value: Any) -> Any:
    """A value with texts cut to LONGEST_CELL characters and lists cut to 10 items."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_CELL else f"{value[: LONGEST_CELL - 1]}…"
    if isinstance(value, Mapping):
        return {str(key)[:LONGEST_CELL]: _cut(each) for key, each in list(value.items())[:60]}
    if isinstance(value, list | tuple):
        return [_cut(each) for each in value[:10]]
    return value


def _short(row: Mapping[str, Any], most_characters: int) -> dict[str, Any]:
    """The first columns of a row that is too long, as many as fit into `most_characters`."""
    kept: dict[str, Any] = {}
    for key, value in row.items():
        if _size({**kept, key: value}) > most_characters:
            break
        kept[key] = value
    return kept


def _size(value: Any) -> int:
    return len(json.dumps(value, default=str))


TOOLS: tuple[Callable[..., Answer], ...] = (analyze, debug, predict, compare, sql, functions, why)
"""All tools; an agent sees their docstrings as descriptions."""
