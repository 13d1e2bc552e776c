"""`crystalperf sql`: any SELECT over a run file and indexes, and nothing else.

The files are attached read-only, then DuckDB is locked: no files, no network, no extensions, no settings.  A
statement may come from anywhere; what it can cost is memory and time up to a limit, in a process of its own, and the
attempt ends in a sentence.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from cli.output import progress, write
from cli.rows import rows_text
from cli.sqlworker import WANTS_MEMORY, Request, json_value
from cli.text import printable
from indexes import Table, store, tables
from indexes.children import own_module
from indexes.errors import NoAnswerError, SettingError

LONGEST_STATEMENT = 100_000
"""Characters of a statement."""

PARSE_S = 10.0
"""Longest parse.  DuckDB's parser hears no interrupt; its time grows with the square of open brackets (20 000 take
minutes), and some MB of them end the process."""

OPEN_S = 60.0
"""Longest start of the process that answers."""

HELD_BACK = 64 << 20
"""Characters of an answer that are held back until it is complete, so that stdout stays empty on failure."""

MEMORY_LIMIT = 4 << 30
"""Bytes DuckDB may use, or half of the machine's memory where that is less."""

OTHER_ADDRESSES = 6 << 30
"""Beside them: programs, stacks of threads, what allocators reserve and never touch."""

MOST_MESSAGE_BYTES = 1 << 30

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What a text begins with that a spreadsheet takes for a formula, or makes one of."""

_QUOTED = re.compile(r'[",\r\n]')
"""What makes a cell of CSV one that is quoted; Python's own writer leaves a lone carriage return as it is."""

Batches = Iterator[list[list[Any]]]


def ask(
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
    """Answer one SELECT on stdout."""
    if as_json and as_csv:
        raise SettingError("--json and --csv: choose one of them")
    if escape_formulas and not as_csv:
        raise SettingError("--escape-formulas goes with --csv")
    _check_text(statement)
    if not run and not indexes:
        raise SettingError("nothing to ask: add --run RUN, --index NAME or both")
    run_file, files = _files(statement, run, indexes)
    memory = min(MEMORY_LIMIT, _memory_bytes() // 2)
    request = Request(
        statement=statement,
        run=None if run_file is None else str(run_file.absolute()),
        indexes=[(name, str(path)) for name, path in files],
        memory_bytes=memory,
        address_bytes=memory + OTHER_ADDRESSES,
    )
    with _answering(request, timeout_s) as (columns, batches):
        if as_json:
            _write_all(_json_parts(columns, batches))
        elif as_csv:
            _write_all(_csv_parts(columns, batches, escape_formulas=escape_formulas))
        else:
            _write_table(columns, batches, limit)
    return 0


@contextmanager
def _answering(request: Request, timeout_s: float) -> Iterator[tuple[list[str], Batches]]:
    """The columns and the rows of the answer, from a process that is gone after the block, however it ends."""
    with tempfile.TemporaryFile() as asked:
        asked.write(msgspec.json.encode(request))
        asked.seek(0)
        process = subprocess.Popen(
            own_module("cli.sqlworker"),
            stdin=asked,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is heard here, at once, and ends the other
        )
    try:
        assert process.stdout is not None
        late = f"the statement was stopped after {timeout_s:g} s (--timeout)"
        nested = "the statement is too deeply nested to be parsed; write it flatter"
        ended = f"{WANTS_MEMORY} (the process that answered it ended)"
        _expected(process.stdout, time.monotonic() + OPEN_S, "its files could not be opened in time", ended)
        _expected(process.stdout, time.monotonic() + PARSE_S, nested, nested)
        deadline = time.monotonic() + timeout_s if timeout_s > 0 else None
        _, columns = _expected(process.stdout, deadline, late, ended)

        def batches() -> Batches:
            while (message := _expected(process.stdout, deadline, late, ended))[0] != "D":
                yield message[1]

        yield columns, batches()
    finally:
        process.kill()
        process.communicate()


def _expected(stream: IO[bytes] | None, deadline: float | None, late: str, ended: str) -> tuple[str, Any]:
    """The next message.  Raises what the other process says, or these sentences where it is late or has ended."""
    assert stream is not None
    try:
        head = _read(stream, 9, deadline)
        size = int.from_bytes(head[1:], "little")
        if size > MOST_MESSAGE_BYTES:
            raise NoAnswerError("SQL: a value is too large to be shown; ask for a part of it")
        content = json.loads(_read(stream, size, deadline))
    except TimeoutError:
        raise (SettingError if "nested" in late else NoAnswerError)(late) from None
    except EOFError:
        raise (SettingError if "nested" in ended else NoAnswerError)(ended) from None
    kind = head[:1].decode()
    if kind == "E":
        raise {"SettingError": SettingError}.get(content[0], NoAnswerError)(content[1])
    return kind, content


def _read(stream: IO[bytes], count: int, deadline: float | None) -> bytes:
    parts = []
    while count > 0:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not select.select([stream], [], [], left)[0]:
            raise TimeoutError
        part = os.read(stream.fileno(), min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _files(statement: str, run: str, indexes: Sequence[str]) -> tuple[Path | None, list[tuple[str, Path]]]:
    """The files of the run and of the indexes, which are those of the run where a statement needs one and none is
    named."""
    from cli.runs import find_run_file
    from indexes.exports import locate

    names = list(dict.fromkeys(indexes))
    run_file = find_run_file(run) if run else None
    if run_file is not None and not names and _mentions(statement, sorted(_names(tables("index")))):
        names = _used_indexes(store.checked(run_file, "run"))
    found = []
    for name in names:
        with progress() as step:
            step(f"opening index {name}")
            found.append((name, locate(name)))
    return run_file, found


def _used_indexes(facts: Mapping[str, str]) -> list[str]:
    """The indexes that a run was profiled with; none where its file does not say so in its own format."""
    try:
        found = json.loads(facts.get("indexes", "[]"))
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _check_text(statement: str) -> None:
    """Refuse what DuckDB's parser would not survive."""
    if len(statement) > LONGEST_STATEMENT:
        raise SettingError(f"the statement has {len(statement)} characters, at most {LONGEST_STATEMENT} are taken")
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise SettingError("the statement is not valid UTF-8") from error


def _names(found: Iterable[Table]) -> set[str]:
    return {each.name for each in found}


def _json_parts(columns: Sequence[str], batches: Batches) -> Iterator[str]:
    """A list of objects, one a line; a column name that occurs twice is numbered."""
    names = _distinct(columns)
    separator = "[\n"
    for batch in batches:
        lines = [json.dumps(dict(zip(names, map(json_value, row), strict=True)), allow_nan=False) for row in batch]
        yield separator + ",\n".join(lines)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _csv_parts(columns: Sequence[str], batches: Batches, *, escape_formulas: bool) -> Iterator[str]:
    """CSV with a header; a NULL is an empty cell.  A terminal gets no control characters, a file gets the data.

    With `escape_formulas` a text that a spreadsheet would run has an apostrophe before it.
    """
    plain = printable if sys.stdout.isatty() else str

    def shown(text: str) -> str:
        return plain(f"'{text}" if escape_formulas and text.startswith(_FORMULAS) else text)

    def line(cells: Iterable[str]) -> str:
        texts = [f'"{each.replace(chr(34), chr(34) * 2)}"' if _QUOTED.search(each) else each for each in cells]
        return f"{','.join(texts) if texts != [''] else chr(34) * 2}\n"  # an empty line would be no row

    yield line(shown(each) for each in columns)
    for batch in batches:
        yield "".join(line(_csv_cell(each, shown) for each in row) for row in batch)


def _csv_cell(value: Any, shown: Callable[[str], str]) -> str:
    plain = json_value(value)
    if plain is None:
        return ""
    if isinstance(plain, str):
        return shown(plain)
    return json.dumps(plain)


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
    plain = json_value(value)
    return plain if plain is None or isinstance(plain, str | int | float) else json.dumps(plain, ensure_ascii=False)


def _write_all(parts: Iterator[str]) -> None:
    """Write the parts, from the moment the answer is complete or too large to be held back."""
    held: list[str] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size > HELD_BACK:
            write("".join(held))
            held = []
    write("".join(held))


def _distinct(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found.append(candidate)
    return found


def _mentions(statement: str, names: Sequence[str]) -> bool:
    return re.search(rf"\b({'|'.join(names)})\b", statement, re.IGNORECASE) is not None


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
