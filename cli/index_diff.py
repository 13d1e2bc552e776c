"""`crystalperf index diff A B`: functions that appeared, vanished, or need other resources than before."""

from __future__ import annotations

from typing import Any

from cli.output import progress, write, write_json
from cli.text import counted, cut_left, grouped
from indexes import attach, guard, resources
from indexes.exports import locate

NOTICEABLE = 0.05
"""A share of a resource that changed by less is what retraining alone does."""

SHOWN = 20
"""Rows of each kind in the text; --json has all."""

# A function is the same in both where the symbol behind package and version is.  One row per function that is in one
# of them only, or whose vector moved noticeably:
#   what            appeared, vanished, class (its largest resource is another one) or vector
#   qualified_name  as the language writes it
#   before, after   the vectors, in the order of the resources; NULL where it is not there
#   moved           largest change of a share; NULL where it is in one of them only
_DIFF = r"""
WITH
a AS (SELECT regexp_replace(symbol, '^\S+ \S+ ', '') AS own, qualified_name, [{vector}] AS vector FROM a.functions),
b AS (SELECT regexp_replace(symbol, '^\S+ \S+ ', '') AS own, qualified_name, [{vector}] AS vector FROM b.functions),
both_sides AS (
    SELECT
        own,
        coalesce(b.qualified_name, a.qualified_name) AS qualified_name,
        a.vector AS before,
        b.vector AS after,
        list_max([abs(x[1] - x[2]) for x in list_zip(a.vector, b.vector)]) AS moved
    FROM a FULL JOIN b USING (own)
)
SELECT
    CASE
        WHEN before IS NULL THEN 'appeared'
        WHEN after IS NULL THEN 'vanished'
        WHEN list_position(before, list_max(before)) <> list_position(after, list_max(after)) THEN 'class'
        ELSE 'vector'
    END AS what,
    qualified_name, before, after, moved
FROM both_sides
WHERE moved IS NULL OR moved >= {noticeable}
ORDER BY list_position(['class', 'vector', 'appeared', 'vanished'], what), moved DESC, qualified_name, own
"""

_TITLES = {
    "class": "Mostly another resource than before",
    "vector": "Another share of resources",
    "appeared": "Appeared",
    "vanished": "Vanished",
}


def diff(before: str, after: str, *, as_json: bool) -> int:
    """Print what differs between two indexes, what changed most first."""
    connection = guard.fresh()
    try:
        for alias, name in (("a", before), ("b", after)):
            with progress() as step:
                step(f"opening index {name}")
                attach(connection, locate(name), "index", alias)
        vector = ", ".join(f"{name}::DOUBLE" for name in resources())
        rows = connection.execute(_DIFF.format(vector=vector, noticeable=NOTICEABLE)).fetchall()
    finally:
        connection.close()
    found: dict[str, list[dict[str, Any]]] = {what: [] for what in _TITLES}
    for what, name, old, new, moved in rows:
        found[what].append(
            {"qualified_name": name, "before": _named(old), "after": _named(new), "moved": _rounded(moved)}
        )
    if as_json:
        write_json({"before": before, "after": after, **found})
    else:
        write(_text(before, after, found))
    return 0


def _named(vector: list[float] | None) -> dict[str, float] | None:
    return None if vector is None else {name: round(each, 4) for name, each in zip(resources(), vector, strict=True)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _text(before: str, after: str, found: dict[str, list[dict[str, Any]]]) -> str:
    from cli.render import listing_text

    parts = []
    for what, functions in found.items():
        parts.append(f"{_TITLES[what]}: {counted(len(functions), 'function')}\n")
        if what in ("class", "vector") and functions:
            rows = [[_shares(each["before"]), _shares(each["after"]), _name(each)] for each in functions[:SHOWN]]
            parts.append(listing_text([before, after, "function"], rows, ""))
        else:
            parts += [f"  {_name(each)}\n" for each in functions[:SHOWN]]
        if len(functions) > SHOWN:
            parts.append(f"  {grouped(len(functions) - SHOWN)} more; --json has all\n")
    return "".join(parts)


def _name(function: dict[str, Any]) -> str:
    return cut_left(function["qualified_name"], 50)


def _shares(vector: dict[str, float]) -> str:
    """`net 80 % cpu 20 %`: what makes up a tenth or more, largest first."""
    ranked = sorted(vector.items(), key=lambda each: -each[1])
    return " ".join(f"{name} {100 * share:.0f} %" for name, share in ranked if share >= 0.1)
