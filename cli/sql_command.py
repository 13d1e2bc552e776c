"""`crystalperf sql`: run a SELECT over a run file and indexes (query.statements)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from crystalperf.cli.output import progress, write
from crystalperf.cli.rows import rows_text
from crystalperf.cli.text import printable
from crystalperf.indexes.errors import SettingError
from crystalperf.query.statements.asking import answering, check_text, index_files, request_for
from crystalperf.query.statements.rows import Batches, csv_parts, json_parts

HELD_BACK = 64 << 20
"""Maximum characters of an answer that are buffered until it is complete, so that stdout stays empty on failure."""


def run_statement(
    statement: str,
    run: str,
    indexes: Sequence[str],
    *,
    as_json: bool,
    as_csv: bool,
    escape_formulas: bool = False,
    limit: int,
    timeout_s: float,
) -> int:
    """Run one SELECT and print its rows on stdout; returns the exit code."""
    from crystalperf.cli.runs import find_run_file

    if as_json and as_csv:
        raise SettingError("--json and --csv: choose one of them")
    if escape_formulas and not as_csv:
        raise SettingError("--escape-formulas needs --csv; add --csv or leave it out")
    check_text(statement)
    if not run and not indexes:
        raise SettingError("nothing to query: add --run RUN, --index NAME or both")
    run_file = find_run_file(run) if run else None
    with progress() as step:
        files = index_files(statement, run_file, indexes, step)
    with answering(request_for(statement, run_file, files), timeout_s) as (columns, batches):
        if as_json:
            _write_all(json_parts(columns, batches))
        elif as_csv:  # a terminal gets no control characters, a file gets the data
            plain = printable if sys.stdout.isatty() else str
            _write_all(csv_parts(columns, batches, escape_formulas=escape_formulas, plain=plain))
        else:
            _write_table(columns, batches, limit)
    return 0


def _write_table(columns: Sequence[str], batches: Batches, limit: int) -> None:
    rows: list[list[Any]] = []
    for batch in batches:
        rows += batch
        if limit and len(rows) > limit:
            break
    shown = rows[:limit] if limit else rows
    plain = [[_table_value(each) for each in row] for row in shown]
    write(rows_text(columns, plain, more=len(rows) > len(shown)))


def _table_value(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False)


def _write_all(parts: Iterator[str]) -> None:
    """Write the parts once the answer is complete, or too large for the buffer."""
    held: list[str] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > HELD_BACK:
            write("".join(held))
            held = []
    write("".join(held))
