"""What the log of a run says of itself: who submitted its work, and what of it is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb

from crystalperf.query.inputs.reader import Reader


@dataclass(frozen=True)
class LogFacts:
    """What the log says of itself.

    attended      whether a person submitted the work, at a shell or in a notebook; None where it does not say
    unread_parts  how many parts are missing in which work may have been submitted, by the name of the reader's problem
    lacks_start   whether it lacks the start of the run, or mixes it with another's
    """

    attended: bool | None = None
    unread_parts: Mapping[str, int] = field(default_factory=dict)
    lacks_start: bool = False


def log_facts(connection: duckdb.DuckDBPyConnection, reader: Reader) -> LogFacts:
    """The facts of a run file's log, which this reader has read."""
    name, properties = connection.execute("SELECT name, properties FROM runs").fetchall()[0]
    problems: dict[str, int] = dict(
        connection.execute("SELECT name, sum(count)::BIGINT FROM import_stats GROUP BY name ORDER BY name").fetchall()
    )
    return LogFacts(
        attended=reader.attended(name, dict(properties or {})),
        unread_parts={each: count for each, count in problems.items() if each in reader.unread_work},
        lacks_start=not reader.unread_start.isdisjoint(problems),
    )
