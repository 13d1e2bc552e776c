"""Routes of SQL: over a run, over indexes, over many runs at once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from crystalperf.query.statements.asking import LONGEST_STATEMENT
from crystalperf.service import responses
from crystalperf.service.bodies import decoded
from crystalperf.service.endpoints.runs import RUN, table_answer
from crystalperf.service.problems import ProblemError
from crystalperf.service.routes import ParameterValues, Route
from crystalperf.service.state import Service

_Statement = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_STATEMENT)]
_Names = Annotated[list[Annotated[str, msgspec.Meta(max_length=200)]], msgspec.Meta(max_length=100)]


class Statement(msgspec.Struct, forbid_unknown_fields=True):
    """One SELECT over a run, and over indexes if it names their tables."""

    statement: _Statement
    indexes: _Names = []


class WideStatement(msgspec.Struct, forbid_unknown_fields=True):
    """One SELECT over runs, whose tables are `runs.tasks` and so on with a column `run`, and over indexes.

    `runs` are their names; null means all runs, up to the limit `sql_runs`."""

    statement: _Statement
    runs: _Names | None = []
    indexes: _Names = []


async def of_run(service: Service, request: Request, values: ParameterValues) -> Response:
    """Over one run."""
    form = responses.form_of(request)
    body = await decoded(request, Statement, service.settings.limits)
    run = service.catalog.get(values["run"])
    content = await service.statements.execute(body.statement, form, run=run.path, indexes=body.indexes)
    return await _sent(request, content, form)


async def wide(service: Service, request: Request, values: ParameterValues) -> Response:
    """Over many runs."""
    form = responses.form_of(request)
    body = await decoded(request, WideStatement, service.settings.limits)
    runs = chosen(service, body.runs)
    if not runs and not body.indexes:
        raise ProblemError(400, "nothing to query: name runs (null for all), or indexes")
    content = await service.statements.execute(body.statement, form, runs=runs, indexes=body.indexes)
    return await _sent(request, content, form)


async def _sent(request: Request, content: bytes, form: responses.Form) -> Response:
    """The response, compressed in a thread: compressing 30 MB would block the event loop."""
    return await asyncio.to_thread(responses.plain, request, content, responses.MEDIA_TYPES[form])


def chosen(service: Service, names: list[str] | None) -> list[tuple[str, Path]]:
    """The files of the named runs; None means all readable runs.  Raises ProblemError."""
    catalog, most = service.catalog, service.settings.limits.sql_runs
    if names is None:
        names = sorted(name for name, row in catalog.rows.items() if row.state != "unreadable")
    if len(names) > most:
        raise ProblemError(413, f"{len(names)} runs at once; the limit is {most}: name the runs to query in `runs`")
    return [(each, catalog.get(each).path) for each in dict.fromkeys(names)]


_ROWS = {"type": "array", "items": {"type": "object"}}

ROUTES = (
    Route(
        "POST",
        "/api/runs/{run}/sql",
        "askRun",
        "query a run with one SELECT, read-only, like `crystalperf sql --run RUN --json`",
        of_run,
        {200: table_answer("the rows", _ROWS)},
        (RUN,),
        body=Statement,
        problems=(404, 406, 408, 415, 422, 429),
    ),
    Route(
        "POST",
        "/api/sql",
        "askAll",
        "query many runs and indexes with one SELECT",
        wide,
        {200: table_answer("the rows", _ROWS)},
        body=WideStatement,
        problems=(404, 406, 408, 415, 422, 429),
    ),
)
