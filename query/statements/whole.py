"""Runs a statement for the Python interface: the whole answer, with DuckDB's own values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crystalperf.query.sql.rows import Rows
from crystalperf.query.statements.asking import answering_typed, index_files, request_for
from crystalperf.query.statements.values import received

MAX_BYTES = 64 << 20
"""Maximum encoded size of an answer; the decoded values take up to ten times as much memory."""


def answer(statement: str, run: Path | None, indexes: Sequence[str], timeout_s: float) -> Rows:
    """The rows of one SELECT.  Raises SettingError, NoAnswerError, IndexFileError."""
    files = index_files(statement, run, indexes)
    request = request_for(statement, run, files, form="values", most_bytes=MAX_BYTES)
    with answering_typed(request, timeout_s) as (names, types, batches):
        rows = tuple(tuple(received(each) for each in row) for batch in batches for row in batch)
        return Rows(tuple(names), tuple(types), rows)
