"""The application: the table of routes, behind the shield."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.routing import Route as Routed

from crystalperf.service import answering, problems
from crystalperf.service.endpoints import health, indexes, jobs, pages, runs, sql
from crystalperf.service.openapi import document
from crystalperf.service.problems import ProblemError, busy
from crystalperf.service.settings import Settings
from crystalperf.service.shield import Shield
from crystalperf.service.state import Service
from crystalperf.service.table import Answer, Asked, Route

log = logging.getLogger("crystalperf.service")

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""What a disk says that takes nothing more."""


async def described(service: Service, request: Request, asked: Asked) -> Response:
    """The OpenAPI document."""
    return answering.plain(request, _document(), tagged=True)


ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        "this document",
        described,
        {
            200: Answer("OpenAPI 3.1", {answering.JSON: {"type": "object"}}, {"ETag": "changes when it does"}),
            304: Answer("nothing has changed since (If-None-Match)"),
        },
    ),
    *runs.ROUTES,
    *jobs.ROUTES,
    *sql.ROUTES,
    *indexes.ROUTES,
    *pages.ROUTES,
)
"""All that the service answers."""


@cache
def _document() -> bytes:
    return json.dumps(document(ROUTES)).encode()


def application(settings: Settings) -> Shield:
    """The application, as ASGI servers run it."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    routed = [Routed(each.path, _endpoint(service, each), methods=[each.method]) for each in ROUTES]

    async def refused(request: Request, error: Exception) -> Response:
        told = _refused(request, error, routed)
        read_by_people = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
        return pages.problem(service, request, told) if read_by_people else problems.response(told)

    app = Starlette(routes=routed, lifespan=lifespan, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False
    return Shield(app, settings)


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await route.handler(service, request, route.asked(request))
        except ProblemError as problem:
            told = problem
        except ClientDisconnect:
            told = ProblemError(400, "the request ended before it was complete")
        except Exception as error:
            told = _unforeseen(request, error)
        return pages.problem(service, request, told) if route.page else problems.response(told)

    return endpoint


def _unforeseen(request: Request, error: Exception) -> ProblemError:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return busy(f"nothing can be kept on the service's disk ({error.strerror})", retry_after_s=60)
    log.error("%s %s", request.method, request.url.path, exc_info=error)
    return ProblemError(500, f"a bug of CrystalPerf ({type(error).__name__}); please report it")


def _refused(request: Request, error: Exception, routed: Sequence[Routed]) -> ProblemError:
    """The problem of what no route takes."""
    assert isinstance(error, HTTPException)
    told = ProblemError(error.status_code, HTTPStatus(error.status_code).description or error.detail)
    if error.status_code == 404:
        told.what = "there is nothing here; /openapi.json lists what there is"
    told.headers = dict(error.headers or {})
    if error.status_code == 405:
        told.what = f"{request.method[:20]} is not possible here"
        here = [each.methods or () for each in routed if each.matches(request.scope)[0] is not Match.NONE]
        told.headers = {"Allow": ", ".join(sorted(set[str]().union(*here)))}  # of all routes, where Starlette has one's
    return told
