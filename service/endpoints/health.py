"""The health check."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

import crystalperf
from crystalperf.service import responses
from crystalperf.service.routes import Answer, ParameterValues, Route
from crystalperf.service.state import Service


async def health(service: Service, request: Request, values: ParameterValues) -> Response:
    """Report that the service runs."""
    return responses.value(request, {"status": "ok", "version": crystalperf.__version__})


ROUTES = (
    Route(
        "GET",
        "/health",
        "health",
        "check that the service runs; needs no token",
        health,
        {
            200: Answer(
                "it is",
                {
                    responses.JSON: {
                        "type": "object",
                        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
                        "required": ["status", "version"],
                    }
                },
            )
        },
    ),
)
