"""The parent process of one SQL statement: chooses the files, starts the child process, kills it at its timeout.

The files are attached read-only, then DuckDB is locked: no files, no network, no extensions, no settings.  A
statement is untrusted: its memory and time are limited, in its own process, and an attack ends in an error of one
sentence.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from crystalperf.indexes import store
from crystalperf.indexes.children import own_module, reported_remedy
from crystalperf.indexes.errors import NoAnswerError, Remedy, SettingError
from crystalperf.indexes.exports import locate
from crystalperf.query.statements.rows import Batches
from crystalperf.query.statements.shipping import index_names, mentions

LONGEST_STATEMENT = 100_000
"""Maximum characters of a statement."""

PARSE_S = 10.0
"""Timeout of parsing.  DuckDB's parser ignores interrupts; its time grows with the square of open brackets (20 000
take minutes), and some MB of them crash the process."""

OPEN_S = 60.0
"""Timeout of the child process' start."""

MEMORY_LIMIT = 4 << 30
"""Maximum bytes that DuckDB uses, or half of the machine's memory if that is less."""

OTHER_ADDRESSES = 6 << 30
"""Further address space, bytes: programs, stacks of threads, memory that allocators reserve and never use."""

MAX_MESSAGE_BYTES = 1 << 30

WANTS_MEMORY = "the statement exceeded its memory limit; select less, or add LIMIT"

Form = Literal["rows", "values", "arrow", "parquet"]
"""The format of an answer: JSON values, DuckDB's own values (query.statements.values), or the bytes of an Arrow stream
or of a Parquet file."""

Message = tuple[str, Any]


class Request(msgspec.Struct):
    """The request to the child process: a statement, and paths of files, with names for indexes and several runs.

    `most_bytes` is the maximum size of the answer, 0 if the caller reads it in parts.
    """

    statement: str
    run: str | None
    indexes: list[tuple[str, str]]
    memory_bytes: int
    address_bytes: int
    runs: list[tuple[str, str]] = []
    form: Form = "rows"
    most_bytes: int = 0


def request_for(
    statement: str,
    run: Path | None,
    indexes: Sequence[tuple[str, Path]],
    *,
    runs: Sequence[tuple[str, Path]] = (),
    form: Form = "rows",
    memory_bytes: int = 0,
    most_bytes: int = 0,
) -> Request:
    """A request for a statement over these files, with the default limits; `memory_bytes` replaces that of memory.

    Raises SettingError for a text that would crash DuckDB's parser.
    """
    check_text(statement)
    memory = min(memory_bytes or MEMORY_LIMIT, _memory_bytes() // 2)
    return Request(
        statement=statement,
        run=None if run is None else str(run.absolute()),
        indexes=[(name, str(path)) for name, path in indexes],
        memory_bytes=memory,
        address_bytes=memory + OTHER_ADDRESSES,
        runs=[(name, str(path.absolute())) for name, path in runs],
        form=form,
        most_bytes=most_bytes,
    )


def check_text(statement: str) -> None:
    """Raise SettingError for a text that would crash DuckDB's parser."""
    if len(statement) > LONGEST_STATEMENT:
        raise SettingError(f"the statement has {len(statement)} characters; the limit is {LONGEST_STATEMENT}")
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise SettingError("the statement is not valid UTF-8") from error


def index_files(
    statement: str, run: Path | None, names: Sequence[str], progress: Callable[[str], None] = lambda _: None
) -> list[tuple[str, Path]]:
    """The files of the named indexes; if a statement needs one and none is named, those that the run was made with.

    Raises IndexFileError if there is no index of a name.
    """
    wanted = list(dict.fromkeys(names))
    if run is not None and not wanted and mentions(statement, index_names()):
        wanted = _used_indexes(store.checked(run, "run"))
    found = []
    for name in wanted:
        progress(f"opening index {name}")
        found.append((name, locate(name)))
    return found


def started() -> subprocess.Popen[bytes]:
    """A child process that waits for its one request; the caller must end() it."""
    return subprocess.Popen(
        own_module("crystalperf.query.statements.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the parent handles Ctrl-C at once, and ends the child
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of started()."""
    process.kill()
    for each in (process.stdin, process.stdout):
        if each is not None:
            with suppress(BrokenPipeError):
                each.close()
    process.wait()


@contextmanager
def answering(
    request: Request, timeout_s: float, process: subprocess.Popen[bytes] | None = None
) -> Iterator[tuple[list[str], Batches]]:
    """The columns and the rows of the answer, from a process that always ends with the block.

    The forms arrow and parquet have batches of bytes.  `timeout_s` is 0 for no limit.  `process` is one that was
    started() before.  Raises NoAnswerError and SettingError.
    """
    with answering_typed(request, timeout_s, process) as (columns, _, batches):
        yield columns, batches


@contextmanager
def answering_typed(
    request: Request, timeout_s: float, process: subprocess.Popen[bytes] | None = None
) -> Iterator[tuple[list[str], list[str], Batches]]:
    """Like answering(), with DuckDB's names of the columns' types after their names."""
    try:
        encoded = msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        if process is not None:
            process.kill()
            process.wait()
        raise SettingError("the statement or the path of a file is not valid UTF-8") from error
    process = started() if process is None else process
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        late = NoAnswerError(f"the statement was stopped after {timeout_s:g} s", Remedy("give it more time"))
        nested = SettingError("the statement is too deeply nested to parse; use fewer levels of nesting")
        ended = NoAnswerError(f"{WANTS_MEMORY} (its process ended)")
        with suppress(BrokenPipeError):  # it has ended: _expected() raises the error
            process.stdin.write(encoded)
            process.stdin.close()
        unopened = NoAnswerError("its files could not be opened in time")
        _expected(process.stdout, time.monotonic() + OPEN_S, unopened, ended)
        try:
            _expected(process.stdout, time.monotonic() + PARSE_S, nested, nested)
        except NoAnswerError as error:  # parsing may run out of memory before its timeout
            raise nested if str(error).startswith(WANTS_MEMORY) else error from None
        deadline = time.monotonic() + timeout_s if timeout_s > 0 else None
        _, described = _expected(process.stdout, deadline, late, ended)

        def batches() -> Batches:
            while (message := _expected(process.stdout, deadline, late, ended))[0] != "D":
                yield message[1]

        yield described["names"], described["types"], batches()
    finally:
        end(process)


def _expected(stream: IO[bytes] | None, deadline: float | None, late: Exception, ended: Exception) -> Message:
    """The next message.  Raises the child's error, `late` at the deadline, or `ended` if the process has ended."""
    assert stream is not None
    try:
        head = _read(stream, 9, deadline)
        size = int.from_bytes(head[1:], "little")
        if size > MAX_MESSAGE_BYTES:
            raise NoAnswerError("SQL: a value is too large; select a part of it")
        content = _read(stream, size, deadline)
    except TimeoutError:
        raise late from None
    except EOFError:
        raise ended from None
    kind = head[:1].decode()
    if kind == "B":
        return kind, content
    if kind == "E":
        raise _error_in(json.loads(content))
    return kind, json.loads(content)


def _error_in(content: Mapping[str, Any]) -> NoAnswerError | SettingError:
    """The error in a message of the child process."""
    error = SettingError if content["kind"] == "SettingError" else NoAnswerError
    return error(content["message"], reported_remedy(content))


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


def _used_indexes(facts: Mapping[str, str]) -> list[str]:
    """The indexes that a run was profiled with; empty if its file does not name them in the expected format."""
    try:
        found = json.loads(facts.get("indexes", "[]"))
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
