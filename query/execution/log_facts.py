"""Facts about the log of a run: who submitted the work, and which parts are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import duckdb

from crystalperf.indexes.frozen import frozen
from crystalperf.query.inputs.reader import Reader


@frozen
class LogFacts:
    """Facts about a log.

    interactive   whether a person submitted the work, at a shell or in a notebook; None if not recorded
    unread_parts  number of missing parts that may contain submitted work, by the name of the reader's problem
    lacks_start   whether the start of the run is missing, or mixed with another run's
    """

    interactive: bool | None = None
    unread_parts: Mapping[str, int] = field(default_factory=dict)
    lacks_start: bool = False


def log_facts(connection: duckdb.DuckDBPyConnection, reader: Reader) -> LogFacts:
    """The facts about the log of a run file that this reader made."""
    name, properties = connection.execute("SELECT name, properties FROM runs").fetchall()[0]
    problems: dict[str, int] = dict(
        connection.execute("SELECT name, sum(count)::BIGINT FROM import_stats GROUP BY name ORDER BY name").fetchall()
    )
    return LogFacts(
        interactive=reader.interactive(name, dict(properties or {})),
        unread_parts={each: count for each, count in problems.items() if each in reader.unread_work},
        lacks_start=not reader.unread_start.isdisjoint(problems),
    )
