"""Routes of indexes: the list, functions, resolved stack frames, and the evidence for a resource vector."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from crystalperf.indexes import resources
from crystalperf.service import responses
from crystalperf.service.bodies import decoded
from crystalperf.service.endpoints.runs import OFFSET, table, table_answer
from crystalperf.service.problems import ProblemError
from crystalperf.service.routes import Answer, Parameter, ParameterValues, Route
from crystalperf.service.state import Service

_Names = Annotated[list[Annotated[str, msgspec.Meta(max_length=200)]], msgspec.Meta(max_length=100)]

_Frame = Annotated[str, msgspec.Meta(max_length=10_000)]


class Frames(msgspec.Struct, forbid_unknown_fields=True):
    """Stack frames, such as `at java.util.HashMap.get(HashMap.java:564)`; by default all indexes are searched."""

    frames: Annotated[list[_Frame], msgspec.Meta(min_length=1, max_length=10_000)]
    indexes: _Names = []


async def listed(service: Service, request: Request, values: ParameterValues) -> Response:
    """All indexes."""
    return await _rows(service, request, await service.query("indexes"))


async def functions(service: Service, request: Request, values: ParameterValues) -> Response:
    """Functions of one index."""
    form = responses.form_of(request)
    filters = {
        "name": values["name"],
        "class_name": values["class"],
        "text": values["text"],
        "resource": values["resource"],
    }
    found = await service.query(
        "functions", index=values["index"], filters=filters, limit=values["limit"], offset=values["offset"]
    )
    if form == "json":
        return responses.value(request, found, tagged=True)
    return await _rows(service, request, found["functions"])


async def function(service: Service, request: Request, values: ParameterValues) -> Response:
    """Functions of a name, in all indexes or in some."""
    if not values["name"]:
        raise ProblemError(400, "name: missing; give a function's name, or the end of it")
    found = await service.query("function", name=values["name"], indexes=values["index"], why=values["why"])
    return responses.value(request, found, tagged=True)


async def resolve(service: Service, request: Request, values: ParameterValues) -> Response:
    """The functions of stack frames."""
    form = responses.form_of(request)
    limits = service.settings.limits
    body = await decoded(request, Frames, limits, 4 * limits.body_bytes)
    found = await service.query("resolve", frames=body.frames, indexes=body.indexes)
    if form == "json":
        return responses.value(request, found)
    return await _rows(service, request, found)


async def _rows(service: Service, request: Request, found: list[dict[str, Any]]) -> Response:
    form = responses.form_of(request)
    if form == "json":
        return responses.value(request, found, tagged=True)
    columns = list(dict.fromkeys(name for row in found for name in row))
    return await table(service, request, form, columns, responses.cells(found, columns))


_FUNCTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "index_name": {"type": "string"},
        "qualified_name": {"type": "string"},
        "symbol": {"type": "string"},
        "file": {"type": "string"},
        "first_line": {"type": "integer"},
        "last_line": {"type": "integer"},
        "confidence": {"type": "number"},
        **{name: {"type": "number"} for name in resources()},
    },
    "required": ["index_name", "qualified_name", "symbol", "file", "first_line", "last_line", "confidence"],
}
_PAGE = {
    "type": "object",
    "properties": {
        "functions": {"type": "array", "items": _FUNCTION},
        **{name: {"type": "integer", "minimum": 0} for name in ("total", "offset", "limit")},
    },
    "required": ["functions", "total", "offset", "limit"],
}
_INDEX = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "origin": {"enum": ["built", "prebuilt"]},
        "functions": {"type": "integer"},
        "built_at": {"type": "string"},
        "content_hash": {"type": ["string", "null"]},
    },
    "required": ["name", "origin", "functions", "built_at", "content_hash"],
}
_RESOLVED = {
    "type": "object",
    "properties": {
        "frame": {"type": "string"},
        "function": {"type": ["string", "null"]},
        "index_name": {"type": ["string", "null"]},
        "symbol": {"type": ["string", "null"]},
        "file": {"type": ["string", "null"]},
        "first_line": {"type": ["integer", "null"]},
        "last_line": {"type": ["integer", "null"]},
        "how": {"type": "string"},
        "why_none": {"type": ["string", "null"]},
    },
    "required": ["frame", "function", "index_name", "how", "why_none"],
}
_ETAG = {"ETag": "changes when the answer does"}
_UNCHANGED = Answer("not modified (If-None-Match)")


def _listing(description: str, schema: dict[str, Any]) -> dict[int, Answer]:
    return {200: Answer(description, table_answer("", schema).content, _ETAG), 304: _UNCHANGED}


ROUTES = (
    Route(
        "GET",
        "/api/indexes",
        "listIndexes",
        "list the available indexes, like `crystalperf index list --json`",
        listed,
        _listing("the indexes", {"type": "array", "items": _INDEX}),
        problems=(406, 422),
    ),
    Route(
        "GET",
        "/api/indexes/{index}/functions",
        "findFunctions",
        "list the functions of an index, by name, file and line",
        functions,
        _listing("a page of functions", _PAGE),
        (
            Parameter("index", "the index, as NAME-VERSION", where="path", longest=200),
            Parameter("name", "the function's name, or the end of it", default=""),
            Parameter("class", "the enclosing type, or the end of it", default=""),
            Parameter("text", "a part of the name, in any case", default=""),
            Parameter(
                "resource",
                "the resource that takes most of the function's time",
                default="",
                choices=("", *resources()),
            ),
            OFFSET,
            Parameter("limit", "maximum number of rows", "integer", default=50, least=1, most=1_000),
        ),
        problems=(404, 406, 422),
    ),
    Route(
        "GET",
        "/api/functions",
        "showFunction",
        "show functions of a name with callers and callees, like `crystalperf index show --json`; `why` adds the"
        " evidence for their resource vectors, except for the words, which only the command line looks up",
        function,
        {200: Answer("the functions", {responses.JSON: {"type": "array", "items": _FUNCTION}}, _ETAG), 304: _UNCHANGED},
        (
            Parameter("name", "the function's name, or the end of it", default=""),
            Parameter("index", "an index to search, all by default", several=True),
            Parameter("why", "also show the evidence for its resource vector", "boolean", default=False),
        ),
        problems=(404, 422),
    ),
    Route(
        "POST",
        "/api/resolve",
        "resolveFrames",
        "resolve stack frames to functions, like `crystalperf index resolve --json`",
        resolve,
        {200: table_answer("a row per frame, in the order of the request", {"type": "array", "items": _RESOLVED})},
        body=Frames,
        problems=(404, 406, 408, 415, 422),
    ),
)
