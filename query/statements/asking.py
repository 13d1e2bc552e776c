"""What asks one SQL statement: chooses the files, starts the process that answers, ends it when its time is up.

The files are attached read-only, then DuckDB is locked: no files, no network, no extensions, no settings.  A
statement may come from anywhere; what it can cost is memory and time up to a limit, in a process of its own, and the
attempt ends in a sentence.
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
"""Characters of a statement."""

PARSE_S = 10.0
"""Longest parse.  DuckDB's parser hears no interrupt; its time grows with the square of open brackets (20 000 take
minutes), and some MB of them end the process."""

OPEN_S = 60.0
"""Longest start of the process that answers."""

MEMORY_LIMIT = 4 << 30
"""Bytes DuckDB may use, or half of the machine's memory where that is less."""

OTHER_ADDRESSES = 6 << 30
"""Beside them: programs, stacks of threads, what allocators reserve and never touch."""

MOST_MESSAGE_BYTES = 1 << 30

WANTS_MEMORY = "the statement needs more memory than it may take; ask for less, or for LIMIT"

Form = Literal["rows", "values", "arrow", "parquet"]
"""How an answer comes: values as JSON has them, DuckDB's own (query.statements.values), or the bytes of an Arrow stream
or of a Parquet file."""

Message = tuple[str, Any]


class Request(msgspec.Struct):
    """What the process is asked: paths of files, those of indexes and of several runs with their names.

    `most_bytes` is the largest answer, 0 where who asks takes it in parts.
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
    """A statement over these files with the usual limits, `memory_bytes` in place of the usual one where it is given.

    Raises SettingError where the text is one that DuckDB's parser would not survive.
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
    """Refuse what DuckDB's parser would not survive."""
    if len(statement) > LONGEST_STATEMENT:
        raise SettingError(f"the statement has {len(statement)} characters, at most {LONGEST_STATEMENT} are taken")
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise SettingError("the statement is not valid UTF-8") from error


def index_files(
    statement: str, run: Path | None, names: Sequence[str], progress: Callable[[str], None] = lambda _: None
) -> list[tuple[str, Path]]:
    """The files of the named indexes; where a statement needs one and none is named, those that the run was made with.

    Raises IndexFileError where there is none of such a name.
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
    """A process that waits for its one request; whoever starts it ends it."""
    return subprocess.Popen(
        own_module("crystalperf.query.statements.child"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is heard here, at once, and ends the other
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started()."""
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
    """The columns and the rows of the answer, from a process that is gone after the block, however it ends.

    A form other than rows has no batches of rows but of bytes.  `timeout_s` is 0 for no limit.  `process` is one that
    was started() before.  Raises NoAnswerError and SettingError.
    """
    with answering_typed(request, timeout_s, process) as (columns, _, batches):
        yield columns, batches


@contextmanager
def answering_typed(
    request: Request, timeout_s: float, process: subprocess.Popen[bytes] | None = None
) -> Iterator[tuple[list[str], list[str], Batches]]:
    """As answering(), with the columns' types in DuckDB's words after their names."""
    process = started() if process is None else process
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        late = NoAnswerError(f"the statement was stopped after {timeout_s:g} s", Remedy("give it more time"))
        nested = SettingError("the statement is too deeply nested to be parsed; write it flatter")
        ended = NoAnswerError(f"{WANTS_MEMORY} (the process that answered it ended)")
        with suppress(BrokenPipeError):  # it has ended, which is told in a moment
            process.stdin.write(msgspec.json.encode(request))
            process.stdin.close()
        unopened = NoAnswerError("its files could not be opened in time")
        _expected(process.stdout, time.monotonic() + OPEN_S, unopened, ended)
        try:
            _expected(process.stdout, time.monotonic() + PARSE_S, nested, nested)
        except NoAnswerError as error:  # a machine may run out of memory for it before it runs out of time
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
    """The next message.  Raises what the other process says, or these errors where it is late or has ended."""
    assert stream is not None
    try:
        head = _read(stream, 9, deadline)
        size = int.from_bytes(head[1:], "little")
        if size > MOST_MESSAGE_BYTES:
            raise NoAnswerError("SQL: a value is too large to be shown; ask for a part of it")
        content = _read(stream, size, deadline)
    except TimeoutError:
        raise late from None
    except EOFError:
        raise ended from None
    kind = head[:1].decode()
    if kind == "B":
        return kind, content
    if kind == "E":
        raise told(json.loads(content))
    return kind, json.loads(content)


def told(content: Mapping[str, Any]) -> NoAnswerError | SettingError:
    """The error that the process says it met."""
    error = SettingError if content["kind"] == "SettingError" else NoAnswerError
    return error(content["what"], reported_remedy(content))


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
    """The indexes that a run was profiled with; none where its file does not say so in its own format."""
    try:
        found = json.loads(facts.get("indexes", "[]"))
    except ValueError:
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
