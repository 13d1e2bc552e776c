"""All calls, in the order in which they are measured."""

from __future__ import annotations

from lab.measure.calls import (
    chats,
    computing,
    event_loops,
    fsspec_files,
    log_handlers,
    reading,
    servers,
    waits,
    web,
    web_libraries,
    writing,
)

CASES = [
    *computing.CASES,
    *reading.CASES,
    *writing.CASES,
    *fsspec_files.CASES,
    *web.CASES,
    *chats.CASES,
    *servers.CASES,
    *event_loops.CASES,
    *log_handlers.CASES,
    *web_libraries.CASES,
    *waits.CASES,
]
