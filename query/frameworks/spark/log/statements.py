"""Statements that clients sent to a Spark Connect server, or to a Thrift server (JDBC, ODBC).

A server marks the jobs and queries of a statement with a tag (Connect) or a job group (Thrift).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from msgspec import Struct, field

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.log import events as spark
from crystalperf.query.trace.records import Columns, shortened, table

Server = Literal["connect", "thrift"]
Status = Literal["succeeded", "failed", "canceled", "unfinished"]

_QUERY = regex(r'\bquery: "((?:[^"\\]|\\.){1,2000})')
"""The SQL text in a request to Connect, whose protocol buffer Spark logs as text."""

_NODE = regex(r"\s*(common|root|\w*command\w*|\w+_operation\w*) \{")
_OPERATION = regex(
    r"^ *(read|project|filter|join|set_op|sort|limit|aggregate|local_relation|sample|offset|deduplicate|range"
    r"|repartition|with_columns|show_string|drop|tail|map_partitions|group_map|write_operation\w*|create_\w+) \{",
    re.MULTILINE,
)
_OPERATIONS = 6
_READ = 20_000  # characters of a request

_LARGEST = 1 << 53


class Statement(Struct):
    """A statement as its events have it, times in Unix ms.  It ended when its rows were computed, and was closed when
    the client had them."""

    server: Server
    statement_id: str
    tag: str
    session_id: str | None
    user: str | None
    text: str | None
    start: float | None
    end: float | None = None
    closed: float | None = None
    status: Status = "unfinished"
    error: str | None = None
    row_count: int | None = None


class Statements(Struct):
    """The statements of a log by Spark's ids, in the order of their starts."""

    by_id: dict[str, Statement] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.by_id.values())

    def add(self, event: spark.Event) -> bool:
        """Add what an event says; False if it lacks the id of a statement."""
        return _HANDLERS[type(event)](self, event)

    def start(self, event: spark.ConnectStarted | spark.ThriftStarted) -> bool:
        """Add a statement; its first start counts."""
        name = shortened(event.statement_id)
        if name is None:
            return False
        server: Server = "connect" if isinstance(event, spark.ConnectStarted) else "thrift"
        texts = (shortened(event.tag) or name, shortened(event.session_id), shortened(event.user), _text(event.text))
        self.by_id.setdefault(name, Statement(server, name, *texts, event.time))
        return True

    def end(self, event: spark.ConnectEnded | spark.ThriftEnded) -> bool:
        """Add its end; one after a failure does not undo it, and a statement without a start is left out."""
        name = shortened(event.statement_id)
        if name is None:
            return False
        statement = self.by_id.get(name)
        if statement is None or statement.status in ("failed", "canceled"):
            return True
        statement.end = event.time
        statement.status = _STATUS[type(event)]
        if isinstance(event, spark.ConnectFailed | spark.ThriftFailed):
            statement.error = shortened(event.error)
        if isinstance(event, spark.ConnectFinished):
            statement.row_count = spark.whole_number(event.row_count, _LARGEST)
        return True

    def close(self, event: spark.ConnectClosed | spark.ThriftClosed) -> bool:
        """Add when the client had its rows."""
        name = shortened(event.statement_id)
        if name in self.by_id:
            self.by_id[name].closed = event.time
        return name is not None

    def numbers(self) -> dict[str, int]:
        """Numbers of statements by the tag of their jobs and queries."""
        return {each.tag: number for number, each in enumerate(self)}

    def columns(
        self,
        relative: Callable[[float | None], float | None],
        after: Callable[[float, float | None], float | None],
    ) -> Columns:
        """The table of statements; `relative` converts Unix ms to the run's clock, `after` those that follow a start.

        One without a valid start is left out."""
        rows = []
        for number, each in enumerate(self):
            start = relative(each.start)
            if start is not None:
                end, closed = after(start, each.end), after(start, each.closed)
                source = (each.server, each.statement_id, each.session_id, each.user, each.text)
                rows.append((number, *source, start, end, closed, each.status, each.error, each.row_count))
        names = "number server statement_id session_id user_name text start_ms end_ms closed_ms status error row_count"
        return table(names, rows, whole="number row_count", real="start_ms end_ms closed_ms")


def number_of(tags: Iterable[str], numbers: dict[str, int]) -> int | None:
    """The statement of a job or query by its tags; None without one."""
    return next((numbers[tag] for tag in tags if tag in numbers), None)


def _text(text: str | None) -> str | None:
    """The SQL text of a statement; of another request to Connect, its operations, the last one first."""
    start = (text or "")[:_READ]
    if found := _QUERY.search(start):
        return shortened(_unescaped(found[1]))
    operations = [each[1] for each in _OPERATION.finditer(start)]
    if operations and _NODE.match(start):
        return " of ".join(operations[:_OPERATIONS])
    return shortened(text)


def _unescaped(text: str) -> str:
    """A string of a protocol buffer's text: bytes of UTF-8, those outside of ASCII as octal numbers."""
    known = {b"n": b" ", b"t": b" ", b"r": b" "}

    def byte(found: re.Match[bytes]) -> bytes:
        code = found[1]
        return bytes([int(code, 8) & 255]) if code.isdigit() else known.get(code, code)

    return re.sub(rb"\\([0-7]{3}|.)", byte, text.encode(), flags=re.DOTALL).decode(errors="replace")


_STATUS: dict[type, Status] = {
    spark.ConnectFinished: "succeeded",
    spark.ConnectFailed: "failed",
    spark.ConnectCanceled: "canceled",
    spark.ThriftFinished: "succeeded",
    spark.ThriftFailed: "failed",
    spark.ThriftCanceled: "canceled",
}

_HANDLERS: dict[type, Callable[..., bool]] = {
    spark.ConnectStarted: Statements.start,
    spark.ThriftStarted: Statements.start,
    spark.ConnectClosed: Statements.close,
    spark.ThriftClosed: Statements.close,
    **dict.fromkeys(_STATUS, Statements.end),
}

STATEMENT_EVENTS = tuple(_HANDLERS)
"""Types of events that `add` takes."""
