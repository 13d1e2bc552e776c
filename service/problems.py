"""Errors as problem+json (RFC 9457): a status, and the sentence that every door says."""

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
    """A request that has no answer: its status, the sentence, and what the terminal's JSON would say of it."""

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
"""What an error of a question is over HTTP: a word that makes no sense, a thing that is not there, no answer."""


def of_error(error: CrystalPerfError) -> ProblemError:
    """The problem that an error of the core is."""
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 422)
    return ProblemError(status, str(error), remedy=error.remedy)


def busy(what: str, *, status: int = 503, retry_after_s: int = 1) -> ProblemError:
    """The service has enough to do."""
    return ProblemError(status, what, retry_after_s=retry_after_s)


def content(problem: ProblemError) -> dict[str, Any]:
    """The body of a problem; `error` is what `--json` prints of it (docs/schema/error.json)."""
    return {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": sentence(problem.what, problem.remedy),
        "error": as_json(Failure(problem.what, problem.remedy)),
    }


def response(problem: ProblemError) -> Response:
    """The answer to a request that has this problem."""
    return Response(msgspec.json.encode(content(problem)), problem.status, headers_of(problem), MEDIA_TYPE)


def headers_of(problem: ProblemError) -> dict[str, str]:
    """The headers of an answer that says a problem, in whatever form."""
    found = dict(problem.headers)
    if problem.retry_after_s is not None:
        found["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 408:
        found["Connection"] = "close"  # the rest of its body may come, or not
    return found


SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A problem (RFC 9457); `error` is what the terminal's --json prints of it.",
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
    """What happened, and what to do about it in the words of this door."""
    if remedy is None:
        return what
    told = _TOLD.get(remedy.kind, "")
    return what + told.format_map(_Known(remedy.facts))


_TOLD: Mapping[str, str] = {
    "state what the run had": "; add recorded={setting}=…, or ask for a ratio such as {setting}=2x",
    "state a setting": "; add recorded={setting}=…",
    "choose an application": ", choose one by `app`: {applications}",
    "profile again": "; upload its log again",
    "build the index": "; `crystalperf index build {index}` makes one",
    "build the index again": "; make it again with `crystalperf index build`",
    "verify the index": "; `crystalperf index verify {index}` tells more",
    "change the scope": "; choose another scope",
    "set up the job": "; `crystalperf setup {framework}` shows what to add to the job",
    "index the code": "; `crystalperf index build` makes an index of your own code",
    "index the library": "; `crystalperf index build {library}-VERSION` makes an index of it",
    "give it more time": "; ask for less",
    "ask a run": "; it comes with a run",
    "ask an index": "; it comes with an index: name one in `indexes`",
    "set a token": "; set one",
}


class _Known(dict[str, str]):
    """Facts of a remedy; what is missing stays a word in capitals."""

    def __missing__(self, name: str) -> str:
        return name.upper()
