"""Routes of jobs: the service profiles an upload, a path or a URL as a job, which reports its progress."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from crystalperf.service import origins, responses
from crystalperf.service.bodies import decoded
from crystalperf.service.jobs import Job
from crystalperf.service.openapi import reference
from crystalperf.service.problems import ProblemError, busy
from crystalperf.service.routes import Answer, Parameter, ParameterValues, Route
from crystalperf.service.state import Service, below
from crystalperf.service.uploads import FILES

JOB = Parameter("job", "the job's id", where="path", longest=100)

_Text = Annotated[str, msgspec.Meta(max_length=500)]


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """An input that the service may read: a file or folder on its machine, or the URL of a log on a log server.

    Like `profile PATH --app --index`.
    """

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    app: _Text | None = None
    indexes: Annotated[list[_Text], msgspec.Meta(max_length=20)] = []


_TWO_WAYS = (
    "send files as multipart/form-data in parts named 'files' (curl -F files=@LOG …), or a path or a URL as"
    " application/json"
)


async def create(service: Service, request: Request, values: ParameterValues) -> Response:
    """Create a job from files, a path or a URL."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        job = await uploaded(service, request)
    elif kind != "application/json":
        raise ProblemError(415, _TWO_WAYS)
    else:
        place = await decoded(request, Place, service.settings.limits)
        if "://" in place.path:
            address = origins.below(service.settings.histories, place.path)
            job = service.jobs.add([address], [address], place.app, place.indexes, addresses=True)
        else:
            path, folder = below(service.settings.folders, place.path)
            job = service.jobs.add([str(path)], [place.path], place.app, place.indexes, within=str(folder))
    found = responses.value(request, job, status=202)
    found.headers["Location"] = f"/api/jobs/{job.id}"
    return found


async def uploaded(service: Service, request: Request) -> Job:
    """The job of an upload.  Raises ProblemError."""
    service.jobs.check_queue()
    upload = await service.uploads.take(request)
    apps = [each for each in upload.fields.get("app", []) if each]
    indexes = [each for each in upload.fields.get("index", []) if each]
    try:
        given = sorted(upload.folder.iterdir())
        place = given[0] if len(given) == 1 else upload.folder  # a single file goes by its own path, not its folder
        return service.jobs.add([str(place)], upload.names, apps[0] if apps else None, indexes)
    finally:
        service.jobs.protected.discard(str(upload.folder))


async def listed(service: Service, request: Request, values: ParameterValues) -> Response:
    """All jobs."""
    found = service.jobs.listed()
    shown = found[values["offset"] : values["offset"] + values["limit"]]
    return responses.value(
        request, {"jobs": shown, "total": len(found), "offset": values["offset"], "limit": values["limit"]}
    )


async def one(service: Service, request: Request, values: ParameterValues) -> Response:
    """One job."""
    return responses.value(request, service.jobs.get(values["job"]))


async def cancel(service: Service, request: Request, values: ParameterValues) -> Response:
    """Cancel a job, or remove one that has ended."""
    service.jobs.cancel(values["job"])
    return Response(None, 204)


async def events(service: Service, request: Request, values: ParameterValues) -> Response:
    """The job after each change, as server-sent events, until it ends."""
    service.jobs.get(values["job"])
    if service.followers >= service.settings.limits.events:
        raise busy(f"{service.followers} clients follow jobs already; poll the job instead", retry_after_s=5)
    service.followers += 1  # here: requests that arrive together are all answered before the first stream begins
    headers = {"X-Accel-Buffering": "no"}
    return _Followed(service, _stream(service, values["job"]), headers)


class _Followed(StreamingResponse):
    """A stream of events, of a client that is counted until it ends."""

    def __init__(self, service: Service, content: AsyncIterator[bytes], headers: dict[str, str]) -> None:
        super().__init__(content, 200, headers, "text/event-stream")
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._service.followers -= 1


async def _stream(service: Service, job_id: str) -> AsyncIterator[bytes]:
    try:
        async for job in service.jobs.events(job_id):
            if job is None:
                yield b": nothing new\n\n"
            else:
                yield b"event: job\ndata: " + msgspec.json.encode(job) + b"\n\n"
    except ProblemError:
        return  # the job was removed


_LIST = {
    "type": "object",
    "properties": {
        "jobs": {"type": "array", "items": reference("Job")},
        **{name: {"type": "integer", "minimum": 0} for name in ("total", "offset", "limit")},
    },
    "required": ["jobs", "total", "offset", "limit"],
}
_FORM = {
    "type": "object",
    "properties": {
        FILES: {
            "type": "array",
            "items": {"type": "string", "contentMediaType": "application/octet-stream"},
            "description": "logs and recordings, in any order; send a log of several files as several parts or a zip",
        },
        "app": {"type": "string", "description": "the application to read, if the logs contain several"},
        "index": {"type": "array", "items": {"type": "string"}, "description": "resource indexes to use"},
    },
    "required": [FILES],
}

ROUTES = (
    Route(
        "POST",
        "/api/runs",
        "createRun",
        "profile logs and recordings: uploaded files, a path below a folder of the service, or a URL below a server"
        " that the service may contact",
        create,
        {202: Answer("the new job", {responses.JSON: reference("Job")}, {"Location": "the job"})},
        body=Place,
        form={"multipart/form-data": _FORM},
        problems=(404, 408, 415, 429),
    ),
    Route(
        "GET",
        "/api/jobs",
        "listJobs",
        "list all jobs, the newest first",
        listed,
        {200: Answer("a page of the list", {responses.JSON: _LIST})},
        (
            Parameter("offset", "number of rows to skip", "integer", default=0, most=10_000_000),
            Parameter("limit", "maximum number of rows", "integer", default=50, least=1, most=500),
        ),
    ),
    Route(
        "GET",
        "/api/jobs/{job}",
        "getJob",
        "show a job and its progress",
        one,
        {200: Answer("the job", {responses.JSON: reference("Job")})},
        (JOB,),
        problems=(404,),
    ),
    Route(
        "DELETE",
        "/api/jobs/{job}",
        "cancelJob",
        "cancel a job, or remove one that has ended",
        cancel,
        {204: Answer("done")},
        (JOB,),
        problems=(404,),
    ),
    Route(
        "GET",
        "/api/jobs/{job}/events",
        "followJob",
        "follow a job: its state after each change, as server-sent events, until it ends",
        events,
        {200: Answer("events named job, whose data are the job", {"text/event-stream": {"type": "string"}})},
        (JOB,),
        problems=(404,),
    ),
)
