"""Whether the service is there, and what it answers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

import crystalperf
from crystalperf.service import answering
from crystalperf.service.state import Service
from crystalperf.service.table import Answer, Asked, Route


async def health(service: Service, request: Request, asked: Asked) -> Response:
    """That it is there."""
    return answering.value(request, {"status": "ok", "version": crystalperf.__version__})


ROUTES = (
    Route(
        "GET",
        "/health",
        "health",
        "whether the service is there; asked without a token",
        health,
        {
            200: Answer(
                "it is",
                {
                    answering.JSON: {
                        "type": "object",
                        "properties": {"status": {"const": "ok"}, "version": {"type": "string"}},
                        "required": ["status", "version"],
                    }
                },
            )
        },
    ),
)
