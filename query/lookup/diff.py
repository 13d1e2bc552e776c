"""Differences between two indexes, by kind, and reasons for changed labels.

Reasons come from the indexes alone: whether the text changed, which of the two classifiers changed its label, and which
calls were added or removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from crystalperf.indexes import attach, guard, resources
from crystalperf.indexes.exports import locate
from crystalperf.indexes.frozen import frozen
from crystalperf.query.sql import text

NOTICEABLE = 0.05
"""Minimum change of a share of a resource; retraining alone causes smaller ones."""

MAX_CALLS = 4
"""Maximum calls that a reason names."""

KINDS = ("label", "share", "moved", "new", "gone")

_CALLS = """
    SELECT calls.callee_name, any_value({label})
    FROM {alias}.calls AS calls LEFT JOIN {alias}.functions ON function_id = callee_id
    WHERE caller_id = ? GROUP BY calls.callee_name
"""


@frozen
class Changed:
    """A function that differs; shares by resource, None for an index that lacks it.

    kind      label, share, moved (its text is the same under another name), new or gone
    change    largest change of a share; None if it is in one index only
    old_name  name in the first index of a function that moved
    why       reasons, each a few words, for a function whose label changed
    """

    kind: str
    qualified_name: str
    before: Mapping[str, float] | None
    after: Mapping[str, float] | None
    change: float | None
    old_name: str | None = None
    why: tuple[str, ...] = ()


def changes(
    before: str,
    after: str,
    only: Callable[[str], bool] = lambda _name: True,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Changed]:
    """The functions that differ, by kind and then by size of the change; `only` selects qualified names.

    Raises IndexFileError if one of the indexes does not exist.
    """
    connection = guard.fresh()
    try:
        for alias, name in (("a", before), ("b", after)):
            progress(f"opening index {name}")
            attach(connection, locate(name), "index", alias)
        progress("comparing functions")
        question = text("index_diff").format(
            vector=_listed(""), code=_listed("code_"), doc=_listed("doc_"), noticeable=NOTICEABLE
        )
        answer = connection.execute(question)
        names = [each[0] for each in answer.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
        models = [
            connection.execute(f"SELECT value FROM {alias}.metadata WHERE key = 'model_hash'").fetchall()
            for alias in ("a", "b")
        ]
        return [
            Changed(
                kind=row["what"],
                qualified_name=row["qualified_name"],
                before=_named(row["before"]),
                after=_named(row["after"]),
                change=None if row["change"] is None else round(row["change"], 4),
                old_name=row["old_name"],
                why=_why(connection, row, same_model=models[0] == models[1]) if row["what"] == "label" else (),
            )
            for row in rows
            if only(row["qualified_name"]) or (row["old_name"] is not None and only(row["old_name"]))
        ]
    finally:
        connection.close()


def _why(connection: duckdb.DuckDBPyConnection, row: Mapping[str, Any], *, same_model: bool) -> tuple[str, ...]:
    """The reasons for a function's changed label, the text first."""
    found = ["its text is the same" if row["same_text"] else "its text changed"]
    if not same_model:
        found.append("the second index was built with another model")
    for what, one, other in (
        ("code", "code_before", "code_after"),
        ("documentation", "doc_shares_before", "doc_shares_after"),
    ):
        if (row[one] or [None])[0] is None or (row[other] or [None])[0] is None:
            continue
        first, then = _largest(row[one]), _largest(row[other])
        if first != then:
            found.append(f"by its {what} alone, the label changed from {first} to {then}")
    for when, decided, other in (
        ("before", row["decided_before"], row["decided_after"]),
        ("now", row["decided_after"], row["decided_before"]),
    ):
        if decided and decided != other:
            found.append(f"{when} decided by {decided}")
    if row["doc_before"] and not row["doc_after"]:
        found.append("its documentation was removed")
    elif row["doc_after"] and not row["doc_before"]:
        found.append("documentation was added")
    calls = [dict(connection.execute(_calls(alias), [row[f"{alias}_id"]]).fetchall()) for alias in ("a", "b")]
    for words, these, those in (("now calls", calls[1], calls[0]), ("no longer calls", calls[0], calls[1])):
        names = sorted(these.keys() - those.keys(), key=lambda name: (these[name] in (None, "cpu"), name))
        if names:
            shown = [name if these[name] in (None, "cpu") else f"{name} ({these[name]})" for name in names[:MAX_CALLS]]
            more = f" and {len(names) - MAX_CALLS} more" if len(names) > MAX_CALLS else ""
            found.append(f"{words} {', '.join(shown)}{more}")
    if row["same_text"] and same_model and len(found) == 1:
        found.append("its context changed: its class, its callees' labels or its file's imports")
    return tuple(found)


def _calls(alias: str) -> str:
    most = f"greatest({', '.join(resources())})"
    label = "CASE " + " ".join(f"WHEN {each} = {most} THEN '{each}'" for each in resources()) + " END"
    return _CALLS.format(alias=alias, label=label)


def _listed(prefix: str) -> str:
    return f"[{', '.join(f'{prefix}{each}::DOUBLE' for each in resources())}]"


def _largest(shares: Sequence[float]) -> str:
    return max(zip(shares, resources(), strict=True))[1]


def _named(shares: Sequence[float] | None) -> dict[str, float] | None:
    return None if shares is None else dict(zip(resources(), (round(each, 4) for each in shares), strict=True))
