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

RUN = Parameter("run", "the run's name, as in the list of runs", where="path", longest=200)
SCOPE = Parameter(
    "scope",
    "all (the run without pauses between jobs), whole (with pauses), the id of a scope, or START..END in ms since the"
    " start",
    default="all",
)
OFFSET = Parameter("offset", "number of rows to skip", "integer", default=0, most=10_000_000)
ENDS = ("succeeded", "recovered", "failed", "unfinished")
"""The outcomes of a run (query.results.answers.Outcome)."""

ETAG = {"ETag": "changes when the answer does"}
UNCHANGED = Answer("not modified (If-None-Match)")

_Text = Annotated[str, msgspec.Meta(max_length=500)]
_Few = Annotated[list[_Text], msgspec.Meta(max_length=50)]


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """A scenario: `settings` like `--set`, such as cores=2x or network=10Gbps; a list of values (cores=2,4,8) returns
    one prediction for each.  `recorded` is what the run had, if its log does not record it."""

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
_PREDICTION = {"oneOf": [reference("prediction"), reference("sweep"), reference("predictions")]}
_QUERY = (
    Parameter(
        "set", "what to change, such as cores=2x; a list of values returns one prediction for each", several=True
    ),
    Parameter("recorded", "what the run had, if its log does not record it, such as network=1Gbps", several=True),
    SCOPE,
    Parameter(
        "replan", "repartition the work for the new number of slots, as the framework would", "boolean", default=True
    ),
    Parameter("predictor", "the name of another model, or all for all of them side by side", default=""),
)

ROUTES = (
    Route(
        "GET",
        "/api/runs",
        "listRuns",
        "list the runs, each with its bottleneck and first recommendation",
        listed,
        {200: Answer("a page of the list", table_answer("", _LIST).content, ETAG), 304: UNCHANGED},
        (
            Parameter("q", "a part of the run's name or of its application's", default=""),
            Parameter("framework", "the name of the framework", default=""),
            Parameter("bottleneck", "the name of the bottleneck", default=""),
            Parameter("status", "the outcome of the run", default="", choices=("", *ENDS)),
            Parameter(
                "sort",
                "the sort key; a leading - sorts the largest first",
                default="-kept_at_ms",
                choices=tuple(f"{sign}{each}" for each in SORTS for sign in ("", "-")),
            ),
            OFFSET,
            Parameter("limit", "maximum number of rows", "integer", default=50, least=1, most=500),
        ),
        problems=(406, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}",
        "getRun",
        "show the header of a run: application, framework, machines, settings",
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
        {204: Answer("the run is deleted")},
        (RUN,),
        problems=(404,),
    ),
    Route(
        "GET",
        "/api/runs/{run}/verdict",
        "getVerdict",
        "show the bottleneck, where the time went and what would help, like `crystalperf analyze --json`",
        verdict,
        {200: Answer("the verdict", {responses.JSON: reference("verdict")}, ETAG), 304: UNCHANGED},
        (RUN,),
        problems=(404, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}/debug",
        "debugRun",
        "show the critical path and its resources, like `crystalperf debug --json`",
        debug,
        {200: Answer("the answer", {responses.JSON: reference("debug")}, ETAG), 304: UNCHANGED},
        (RUN, SCOPE),
        problems=(404, 422),
    ),
    Route(
        "GET",
        "/api/runs/{run}/predict",
        "predictRun",
        "predict the runtime with other resources, like `crystalperf predict --json`",
        predict,
        {200: Answer("one prediction, or one per listed value", {responses.JSON: _PREDICTION}, ETAG), 304: UNCHANGED},
        (RUN, *_QUERY),
        problems=(404, 422),
    ),
    Route(
        "POST",
        "/api/runs/{run}/predict",
        "predictRunPosted",
        "predict the runtime with other resources, with the scenario in the body",
        predict_posted,
        {200: Answer("one prediction, or one per listed value", {responses.JSON: _PREDICTION}, ETAG), 304: UNCHANGED},
        (RUN,),
        body=Question,
        problems=(404, 408, 415, 422),
    ),
)
