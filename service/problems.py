"""Errors as problem+json (RFC 9457): a status, and the sentence that all interfaces share."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from crystalperf.indexes.errors import CrystalPerfError, IndexFileError, InputError, NoAnswerError, Remedy, SettingError
from crystalperf.query.results.answers import Failure
from crystalperf.query.text.as_json import as_json

MEDIA_TYPE = "application/problem+json"


class ProblemError(Exception):
    """A failed request: its status, the sentence, and the remedy."""

    def __init__(
        self, status: int, what: str, *, remedy: Remedy | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.remedy = remedy
        self.retry_after_s = retry_after_s
        self.headers: Mapping[str, str] = {}


STATUSES: Mapping[type[CrystalPerfError], int] = {
    SettingError: 400,
    InputError: 404,
    IndexFileError: 404,
    NoAnswerError: 422,
}
"""HTTP statuses of errors: an invalid setting, a missing file or index, no answer."""


def of_error(error: CrystalPerfError) -> ProblemError:
    """The problem for an error of the core."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 422)
    return ProblemError(status, str(error), remedy=error.remedy)


def busy(what: str, *, status: int = 503, retry_after_s: int = 1) -> ProblemError:
    """The problem of a service under too much load."""
    return ProblemError(status, what, retry_after_s=retry_after_s)


def content(problem: ProblemError) -> dict[str, Any]:
    """The body of a problem; `error` is the JSON that `--json` prints (docs/schema/error.json)."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": sentence(problem.what, problem.remedy),
        "error": as_json(Failure(problem.what, problem.remedy)),
    }


def response(problem: ProblemError) -> Response:
    """The response for a problem."""
    return Response(msgspec.json.encode(content(problem)), problem.status, headers_of(problem), MEDIA_TYPE)


def headers_of(problem: ProblemError) -> dict[str, str]:
    """The headers of a response with a problem, in any format."""
    found = dict(problem.headers)
    if problem.retry_after_s is not None:
        found["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 408:
        found["Connection"] = "close"  # the rest of the body may still arrive
    return found


SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A problem (RFC 9457); `error` is what the command line prints with --json.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "error": {"$ref": "#/components/schemas/error"},
    },
    "required": ["type", "title", "status", "detail", "error"],
    "additionalProperties": False,
}


def sentence(what: str, remedy: Remedy | None) -> str:
    """The error as a sentence: the problem, and its fix over HTTP."""
    if remedy is None:
        return what
    template = _REMEDY_TEXTS.get(remedy.kind, "")
    return what + template.format_map(_Known(remedy.facts))


_REMEDY_TEXTS: Mapping[str, str] = {
    "state what the run had": "; add recorded={setting}=…, or use a ratio such as {setting}=2x",
    "state a setting": "; add recorded={setting}=…",
    "choose an application": ", choose one with `app`: {applications}",
    "profile again": "; upload its log again, or profile it again with `crystalperf profile LOGS`",
    "build the index": "; build it with `crystalperf index build {index}`",
    "build the index again": "; rebuild it with `crystalperf index build`",
    "verify the index": "; `crystalperf index verify {index}` shows details",
    "change the scope": "; choose another scope",
    "name other runs": "; the terminal takes other runs of the job with --with",
    "set up the job": "; `crystalperf setup {framework}` prints the settings to add to the job",
    "index the code": "; index your own code with `crystalperf index build`",
    "index the library": "; index it with `crystalperf index build {library}-VERSION`",
    "give it more time": "; request less",
    "ask a run": "; it needs a run: name one",
    "ask an index": "; it needs an index: name one in `indexes`",
    "set a token": "; set one",
}


class _Known(dict[str, str]):
    """Facts of a remedy; a missing one becomes a placeholder in capitals."""

    def __missing__(self, name: str) -> str:
        return name.upper()
