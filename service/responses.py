"""HTTP responses: content negotiation, compression and ETags."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
import zstandard
from starlette.requests import Request
from starlette.responses import Response

from crystalperf.query.statements.rows import csv_parts, json_value
from crystalperf.service.answers import Answer
from crystalperf.service.problems import ProblemError

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"

Form = Literal["json", "csv", "arrow", "parquet"]
FORMS: Mapping[str, Form] = {JSON: "json", CSV: "csv", ARROW: "arrow", PARQUET: "parquet"}
MEDIA_TYPES: Mapping[Form, str] = {form: kind for kind, form in FORMS.items()}

_WORTH_BYTES = 1_000
"""Bodies smaller than this are not compressed."""


def form_of(request: Request) -> Form:
    """The table format that a request accepts; JSON by default.  Raises ProblemError if it accepts none."""
    accepted = _weighed(request.headers.get("accept", "*/*"))
    for kind in accepted:
        if kind in FORMS:
            return FORMS[kind]
        if kind in ("*/*", "application/*", ""):
            return "json"
        if kind == "text/*":
            return "csv"
    raise ProblemError(406, f"a table is available as {', '.join(FORMS)}; change the Accept header")


def encoding_of(request: Request) -> str:
    """The compression that a request accepts: zstd, gzip or identity."""
    accepted = _weighed(request.headers.get("accept-encoding", ""))
    return next((each for each in ("zstd", "gzip") if each in accepted), "identity")


def _weighed(header: str) -> list[str]:
    """The values that an Accept header lists, highest weight first, without those of weight 0."""
    found = []
    for position, each in enumerate(header.split(",")):
        name, *parameters = (part.strip().lower() for part in each.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
        if weight > 0:
            found.append((-weight, position, name))
    return [name for _, _, name in sorted(found)]


def kept(
    request: Request, answer: Answer, media_type: str = JSON, headers: Mapping[str, str] | None = None
) -> Response:
    """The response with an immutable answer, or 304 if the client has it."""
    encoding = encoding_of(request)
    sent = {
        "ETag": f'"{answer.etag}-{encoding}"',
        "Cache-Control": "private, no-cache",
        "Vary": "Accept-Encoding",
        **(headers or {}),
    }
    if _matches(request, answer.etag):
        return Response(None, 304, sent)
    if encoding != "identity":
        sent["Content-Encoding"] = encoding
    return Response(answer.body(encoding), 200, sent, media_type)


def _matches(request: Request, etag: str) -> bool:
    known_tags = [
        each.strip().removeprefix("W/").strip('"') for each in request.headers.get("if-none-match", "").split(",")
    ]
    return any(each.rpartition("-")[0] == etag or each == "*" for each in known_tags)


def plain(
    request: Request,
    content: bytes,
    media_type: str = JSON,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    tagged: bool = False,
) -> Response:
    """A response with bytes, compressed if large enough; `tagged` adds an ETag of the content."""
    sent = {"Vary": "Accept, Accept-Encoding", **(headers or {})}
    encoding = encoding_of(request) if len(content) >= _WORTH_BYTES and media_type != PARQUET else "identity"
    if tagged:
        etag = sha256(content).hexdigest()[:32]
        sent |= {"ETag": f'"{etag}-{encoding}"', "Cache-Control": "private, no-cache"}
        if _matches(request, etag):
            return Response(None, 304, sent)
    if encoding == "zstd":
        content = zstandard.ZstdCompressor(level=3).compress(content)
    elif encoding == "gzip":
        content = gzip.compress(content, 4, mtime=0)
    if encoding != "identity":
        sent["Content-Encoding"] = encoding
    return Response(content, status, sent, media_type)


def value(request: Request, found: Any, *, status: int = 200, tagged: bool = False) -> Response:
    """A response with a value as JSON."""
    return plain(request, msgspec.json.encode(found), status=status, tagged=tagged)


def csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Rows as CSV with a header."""
    batches = iter([[[json_value(each) for each in row] for row in rows]])
    return "".join(csv_parts(columns, batches)).encode()


def cells(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> list[list[Any]]:
    """The cells of a table; lists and mappings become JSON text."""
    return [
        [json.dumps(cell) if isinstance(cell := row.get(name), dict | list | tuple) else cell for name in columns]
        for row in rows
    ]
