"""The ASGI application: the routes, wrapped in the access checks of Shield."""

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

from crystalperf.service import problems, responses
from crystalperf.service.endpoints import comparisons, health, indexes, jobs, pages, runs, sql
from crystalperf.service.openapi import document
from crystalperf.service.problems import ProblemError, busy
from crystalperf.service.routes import Answer, ParameterValues, Route
from crystalperf.service.settings import Settings
from crystalperf.service.shield import Shield
from crystalperf.service.state import Service

log = logging.getLogger("crystalperf.service")

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Errors of a full or read-only disk."""


async def described(service: Service, request: Request, values: ParameterValues) -> Response:
    """The OpenAPI document."""
    return responses.plain(request, _document(), tagged=True)


ROUTES: tuple[Route, ...] = (
    *health.ROUTES,
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        "this document",
        described,
        {
            200: Answer("OpenAPI 3.1", {responses.JSON: {"type": "object"}}, {"ETag": "changes when it does"}),
            304: Answer("not modified (If-None-Match)"),
        },
    ),
    *runs.ROUTES,
    *comparisons.ROUTES,
    *jobs.ROUTES,
    *sql.ROUTES,
    *indexes.ROUTES,
    *pages.ROUTES,
)
"""All routes of the service."""


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
        failure = _unrouted(request, error, routed)
        read_by_people = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
        return pages.problem(service, request, failure) if read_by_people else problems.response(failure)

    app = Starlette(routes=routed, lifespan=lifespan, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False
    return Shield(app, settings)


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return await route.handler(service, request, route.parse_parameters(request))
        except ProblemError as problem:
            failure = problem
        except ClientDisconnect:
            failure = ProblemError(400, "the request ended before it was complete")
        except Exception as error:
            failure = _unforeseen(request, error)
        return pages.problem(service, request, failure) if route.page else problems.response(failure)

    return endpoint


def _unforeseen(request: Request, error: Exception) -> ProblemError:
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return busy(f"the service cannot write to its disk ({error.strerror})", retry_after_s=60)
    log.error("%s %s", request.method, request.url.path, exc_info=error)
    return ProblemError(500, f"a bug of CrystalPerf ({type(error).__name__}); please report it")


def _unrouted(request: Request, error: Exception, routed: Sequence[Routed]) -> ProblemError:
    """The problem of a request that matches no route."""
    assert isinstance(error, HTTPException)
    failure = ProblemError(error.status_code, HTTPStatus(error.status_code).description or error.detail)
    if error.status_code == 404:
        failure.what = "unknown path; /openapi.json lists the routes of this service"
    failure.headers = dict(error.headers or {})
    if error.status_code == 405:
        failure.what = f"this path does not support the method {request.method[:20]}"
        here = [each.methods or () for each in routed if each.matches(request.scope)[0] is not Match.NONE]
        failure.headers = {
            "Allow": ", ".join(sorted(set[str]().union(*here)))
        }  # of all routes, where Starlette has one's
    return failure
