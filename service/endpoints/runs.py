"""Routes of runs: the list, one run, its answers, and its deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from crystalperf.service import responses
from crystalperf.service.bodies import decoded
from crystalperf.service.catalog import SORTS, Row
from crystalperf.service.openapi import reference
from crystalperf.service.responses import FORMS, MEDIA_TYPES
from crystalperf.service.routes import Answer, Parameter, ParameterValues, Route
from crystalperf.service.state import Service

RUN = Parameter("run", "the run's name, as the list of runs has it", where="path", longest=200)
SCOPE = Parameter(
    "scope",
    "all (the run without pauses in which nothing was submitted), whole (with them), the id of a scope, or START..END"
    " in ms since the start",
    default="all",
)
OFFSET = Parameter("offset", "how many to leave out", "integer", default=0, most=10_000_000)
ENDS = ("succeeded", "recovered", "failed", "unfinished")
"""The outcomes of a run (query.results.answers.Outcome)."""

ETAG = {"ETag": "changes when the answer does"}
UNCHANGED = Answer("nothing has changed since (If-None-Match)")

_Text = Annotated[str, msgspec.Meta(max_length=500)]
_Few = Annotated[list[_Text], msgspec.Meta(max_length=50)]


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """What would be different: `settings` as `--set` takes them, such as cores=2x or network=10Gbps; a list of values
    (cores=2,4,8) makes a sweep.  `recorded` is what the run had, where its log does not tell."""

    settings: Annotated[list[_Text], msgspec.Meta(min_length=1, max_length=50)]
    recorded: _Few = []
    scope: _Text = "all"
    replan: bool = True
    predictor: _Text | None = None


def table_answer(description: str, schema: dict[str, Any]) -> Answer:
    """The description of a response with a table, in any of its formats."""
    content = {kind: schema if form == "json" else None for kind, form in FORMS.items()}
    return Answer(description, {**content, "text/csv": {"type": "string"}})


async def listed(service: Service, request: Request, values: ParameterValues) -> Response:
    """The list."""
    catalog = service.catalog
    form = responses.form_of(request)

    def page() -> tuple[int, Sequence[Row]]:
        rows = catalog.listed(values["q"], values["framework"], values["bottleneck"], values["status"], values["sort"])
        return len(rows), rows[values["offset"] : values["offset"] + values["limit"]]

    def encoded() -> bytes:
        total, shown = page()
        return msgspec.json.encode(
            {"runs": shown, "total": total, "offset": values["offset"], "limit": values["limit"]}
        )

    if form == "json":
        return responses.kept(
            request, service.answers.remembered([service.began, catalog.number, dict(values)], encoded)
        )
    _, shown = page()
    columns = list(Row.__struct_fields__)
    cells = responses.cells([msgspec.structs.asdict(each) for each in shown], columns)
    return await table(service, request, form, columns, cells)


async def table(
    service: Service, request: Request, form: responses.Form, columns: list[str], cells: list[list[Any]]
) -> Response:
    """Rows as CSV, Arrow or Parquet."""
    if form == "csv":
        content = responses.csv(columns, cells)
    else:
        content = await service.query_pool.query("table", columns=columns, rows=cells, form=form)
    return responses.plain(request, content, MEDIA_TYPES[form], tagged=True)


async def header(service: Service, request: Request, values: ParameterValues) -> Response:
    """The header of a run."""
    run = service.catalog.get(values["run"])
    answer = await service.answers.get(
        run, "header", None, lambda: service.query_pool.query("header", run=str(run.path)), keep=True
    )
    return responses.kept(request, answer)


async def verdict(service: Service, request: Request, values: ParameterValues) -> Response:
    """The answer of `analyze`."""
    run = service.catalog.get(values["run"])
    answer = await service.answers.get(
        run, "verdict", None, lambda: service.query_pool.query("verdict", run=str(run.path)), keep=True
    )
    return responses.kept(request, answer)


async def debug(service: Service, request: Request, values: ParameterValues) -> Response:
    """The answer of `debug` for a scope."""
    run, facts = service.catalog.get(values["run"]), {"scope": values["scope"]}
    answer = await service.answers.get(
        run,
        "debug",
        facts,
        lambda: service.query_pool.query("debug", run=str(run.path), **facts),
        keep=values["scope"] == "all",
    )
    return responses.kept(request, answer)


async def predict(service: Service, request: Request, values: ParameterValues) -> Response:
    """A prediction with the settings in the query string."""
    question = Question(
        values["set"], values["recorded"], values["scope"], values["replan"] is not False, values["predictor"] or None
    )
    return await _predicted(service, request, values["run"], question)


async def predict_posted(service: Service, request: Request, values: ParameterValues) -> Response:
    """A prediction with the settings in the body."""
    question = await decoded(request, Question, service.settings.limits)
    return await _predicted(service, request, values["run"], question)


async def _predicted(service: Service, request: Request, name: str, question: Question) -> Response:
    run, facts = service.catalog.get(name), msgspec.to_builtins(question)
    answer = await service.answers.get(
        run, "predict", facts, lambda: service.query_pool.query("predict", run=str(run.path), **facts)
    )
    return responses.kept(request, answer)


async def remove(service: Service, request: Request, values: ParameterValues) -> Response:
    """Delete a run."""
    await service.remove(service.catalog.get(values["run"]))
    return Response(None, 204)


_LIST = {
    "type": "object",
    "properties": {
        "runs": {"type": "array", "items": reference("Row")},
        **{name: {"type": "integer", "minimum": 0} for name in ("total", "offset", "limit")},
    },
    "required": ["runs", "total", "offset", "limit"],
}
_PREDICTION = {"oneOf": [reference("prediction"), reference("sweep")]}
_QUERY = (
    Parameter("set", "what would be different, such as cores=2x; a list of values makes a sweep", several=True),
    Parameter("recorded", "what the run had, where its log does not tell, such as network=1Gbps", several=True),
    SCOPE,
    Parameter("replan", "whether work is cut anew for other slots, as the framework would", "boolean", default=True),
    Parameter("predictor", "the model of another package, instead of the built-in one", default=""),
)

ROUTES = (
    Route(
        "GET",
        "/api/runs",
        "listRuns",
        "the runs that are there, with what holds each up and what would help",
        listed,
        {200: Answer("a page of the list", table_answer("", _LIST).content, ETAG), 304: UNCHANGED},
        (
            Parameter("q", "a part of the run's name or of its application's", default=""),
            Parameter("framework", "what ran it, by name", default=""),
            Parameter("bottleneck", "what holds it up, by name", default=""),
            Parameter("status", "how it ended", default="", choices=("", *ENDS)),
            Parameter(
                "sort",
                "what to sort by; with - before it the largest first",
                default="-kept_at_ms",
                choices=tuple(f"{sign}{each}" for each in SORTS for sign in ("", "-")),
            ),
            OFFSET,
            Parameter("limit", "how many at most", "integer", default=50, least=1, most=500),
        ),
        problems=(406, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}",
        "getRun",
        "what a run is",
        header,
        {200: Answer("the run", {responses.JSON: reference("header")}, ETAG), 304: UNCHANGED},
        (RUN,),
        problems=(404, 422),
    ),
    Route(
        "DELETE",
        "/api/runs/{run}",
        "deleteRun",
        "delete a run",
        remove,
        {204: Answer("it is gone")},
        (RUN,),
        problems=(404,),
    ),
    Route(
        "GET",
        "/api/runs/{run}/verdict",
        "getVerdict",
        "what holds the run up, where its time went, what would help: as `crystalperf analyze --json`",
        verdict,
        {200: Answer("the verdict", {responses.JSON: reference("verdict")}, ETAG), 304: UNCHANGED},
        (RUN,),
        problems=(404, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}/debug",
        "debugRun",
        "the critical path and the resources along it: as `crystalperf debug --json`",
        debug,
        {200: Answer("the answer", {responses.JSON: reference("debug")}, ETAG), 304: UNCHANGED},
        (RUN, SCOPE),
        problems=(404, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}/predict",
        "predictRun",
        "the runtime with other resources: as `crystalperf predict --json`",
        predict,
        {200: Answer("one prediction, or one per listed value", {responses.JSON: _PREDICTION}, ETAG), 304: UNCHANGED},
        (RUN, *_QUERY),
        problems=(404, 422),
    ),
    Route(
        "POST",
        "/api/runs/{run}/predict",
        "predictRunPosted",
        "the same, the question in the body",
        predict_posted,
        {200: Answer("one prediction, or one per listed value", {responses.JSON: _PREDICTION}, ETAG), 304: UNCHANGED},
        (RUN,),
        body=Question,
        problems=(404, 408, 415, 422),
    ),
)
