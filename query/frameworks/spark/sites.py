"""Call sites: where in the user's program the work of a stage was requested.

Spark records the call and its line if the program runs on the JVM, and for some calls of Python (`collect at
job.py:17`).  Other calls from Python or R have no line.  Threads of Spark itself compute broadcasts and subqueries;
their query has the call site.  A query of SQL text or of a notebook has that text as its description.
"""

from __future__ import annotations

import re

import duckdb

from crystalperf.indexes.regex import regex

_SITE = regex(r"^\S+ at \S.*:\d+$", re.DOTALL)
_NOWHERE = regex(
    r" at (<unknown>:0|NativeMethodAccessorImpl\.java:\d+|RBackendHandler\.scala:\d+|CompletableFuture\.java:\d+"
    r"|FutureTask\.java:\d+|ThreadPoolExecutor\.java:\d+)$"
)
"""Places in Java's reflection and threads, not in a program."""

_METHOD = regex(r"^\w+$")
"""The description of a query whose call has no line: the method alone."""

_LONGEST = 80


def call_sites(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """By stage, the call and its line in the program, or the start of the query's text; stages without are left
    out."""
    rows = connection.execute(
        """
        SELECT stage_id, stages.call_site, scopes.name
        FROM stages LEFT JOIN scopes USING (scope_id)
        """
    ).fetchall()
    found = {stage: _site(own, query) for stage, own, query in rows}
    return {stage: site for stage, site in found.items() if site is not None}


def _site(own: str | None, query: str | None) -> str | None:
    for text in (own, query):
        if text and _SITE.match(text) and not _NOWHERE.search(text):
            return text
    if not query or _METHOD.match(query) or _SITE.match(query) or re.fullmatch(r"query \d+", query):
        return None
    line = " ".join(query.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
