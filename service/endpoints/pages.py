"""HTML pages, rendered on the server: runs, one run, jobs, indexes, functions, SQL.

Templates escape all text that comes from a log, and no page may run inline scripts (service.shield.POLICY).
"""

from __future__ import annotations

import asyncio
import json
import time
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from crystalperf.indexes import resources, tables
from crystalperf.indexes.resources import OTHER, known
from crystalperf.indexes.schema import EACH, Table
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.statements import computed
from crystalperf.query.statements.asking import LONGEST_STATEMENT
from crystalperf.query.statements.views import View, views, views_of
from crystalperf.query.text.figures import TimeUnit, counted, grouped, percent, printable, tied, time_unit
from crystalperf.service import bodies, responses
from crystalperf.service.catalog import Row
from crystalperf.service.endpoints import jobs as job_endpoints
from crystalperf.service.endpoints.runs import ENDS, OFFSET, RUN
from crystalperf.service.endpoints.sql import chosen
from crystalperf.service.problems import ProblemError, headers_of, sentence
from crystalperf.service.routes import Answer, Parameter, ParameterValues, Route
from crystalperf.service.shield import POLICY
from crystalperf.service.state import Service

HTML = "text/html; charset=utf-8"
ROWS_SHOWN = 500
"""Maximum rows of a SQL answer on a page."""

RUNS_SHOWN = 50
FUNCTIONS_SHOWN = 50

SORTS_SHOWN = {
    "-kept_at_ms": "newest first",
    "-runtime_ms": "longest first",
    "-advice_gain_ms": "largest saving first",
    "run": "by name",
}

_STATIC = {"style.css": "text/css; charset=utf-8", "job.js": "text/javascript; charset=utf-8"}


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("crystalperf.service"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "printable": lambda text: printable(str(text)),
        "text": lambda text: tied(printable(text)),
        "grouped": grouped,
        "counted": counted,
        "marked": _marked,
        "when": lambda ms: time.strftime("%Y-%m-%d %H:%M", time.gmtime(ms / 1000)),
        "size": _size,
        "path": lambda text: quote(str(text), safe=""),
        "share": lambda share: percent(share, 1.0),
    }
    found.globals |= {"devices": {each.name: each.device for each in known()}}
    found.globals |= {"time_unit": time_unit, "percent": percent, "query": lambda **facts: urlencode(facts)}
    return found


def _marked(text: str) -> Markup:
    """A sentence as HTML; text between backticks becomes code."""
    parts = tied(printable(text)).split("`")
    if len(parts) % 2 == 0:
        return escape(tied(printable(text)))
    shown = [
        Markup("<code>{}</code>").format(each) if number % 2 else escape(each) for number, each in enumerate(parts)
    ]
    return Markup("").join(shown)


def _size(count: int) -> str:
    for unit, bytes_ in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count} B"


def page(template: str, /, *, status: int = 200, policy: str = POLICY, **facts: Any) -> Response:
    """A page from its template."""
    content = _templates().get_template(template).render(**facts)
    return Response(content, status, {"Content-Security-Policy": policy}, HTML)


def problem(service: Service, request: Request, failure: ProblemError) -> Response:
    """A problem as an HTML page."""
    found = page("problem.html.j2", status=failure.status, here="", sentence=sentence(failure.what, failure.remedy))
    found.headers.update(headers_of(failure))
    return found


# Runs ---------------------------------------------------------------------------------------------------------------


async def runs(service: Service, request: Request, values: ParameterValues) -> Response:
    """The list."""
    rows = service.catalog.listed(
        values["q"], values["framework"], values["bottleneck"], values["status"], values["sort"]
    )
    shown = rows[values["offset"] : values["offset"] + RUNS_SHOWN]
    pending = sum(each.state == "pending" for each in service.catalog.rows.values())
    under_way = [each for each in service.jobs.listed() if each.state in ("waiting", "running")]
    return page(
        "runs.html.j2",
        here="runs",
        rows=[(each, bars(each.resource_ms)) for each in shown],
        total=len(rows),
        all=len(service.catalog.rows),
        pending=pending,
        jobs=under_way,
        values=values,
        ends=ENDS,
        sorts=SORTS_SHOWN,
        frameworks=sorted({each.framework for each in service.catalog.rows.values() if each.framework}),
        bottlenecks=sorted({each.bottleneck for each in service.catalog.rows.values() if each.bottleneck}),
        shown=RUNS_SHOWN,
        address=lambda **changed: (
            "/?" + urlencode({k: v for k, v in {**values, **changed}.items() if v not in ("", 0)})
        ),
    )


def bars(parts: dict[str, float] | None) -> list[tuple[str, str, float, float, float]]:
    """Stacked bars: (name, title, ms, start, width); start and width in thousandths of the whole."""
    whole = sum((parts or {}).values())
    if not parts or whole <= 0:
        return []
    titles = {each.name: each.device for each in known()}
    found, begin = [], 0.0
    for name, ms in parts.items():
        width = 1000 * ms / whole
        kind = name if name in titles or name == OTHER else "more"
        found.append((kind, titles.get(name, name), ms, round(begin, 2), round(width, 2)))
        begin += width
    return found


async def run(service: Service, request: Request, values: ParameterValues) -> Response:
    """The overview of one run."""
    entry = service.catalog.get(values["run"])
    answer = await service.answers.get(
        entry, "overview", None, lambda: service.query_pool.query("overview", run=str(entry.path)), keep=True
    )
    overview = json.loads(answer.body("identity"))
    question = values["set"].strip()
    return page(
        "run.html.j2",
        here="runs",
        run=entry.name,
        entry=entry,
        overview=overview,
        page_text=overview["page_text"],
        bars=bars(overview["resource_ms"]),
        path=[(each, bars(each["resource_ms"])) for each in overview["path"]],
        unit=time_unit(overview["runtime_ms"]),
        question=question,
        answers=await _what_if(service, str(entry.path), question) if question else None,
        others=_comparable(service, entry.name),
    )


def _comparable(service: Service, name: str) -> list[Row]:
    """Other runs to compare a run with: of its framework, those of its application first, then the newest."""
    own = service.catalog.rows.get(name)
    if own is None or own.framework is None:
        return []
    others = [each for each in service.catalog.listed() if each.framework == own.framework and each.run != name]
    return sorted(others, key=lambda each: (each.app_name != own.app_name, -each.kept_at_ms))[:RUNS_SHOWN]


async def _what_if(service: Service, path: str, question: str) -> dict[str, Any]:
    """The predictions for the settings that a user typed, or the problem with them."""
    facts = {"settings": question.split()[:20], "recorded": [], "scope": "all", "replan": True, "predictor": None}
    try:
        found = await service.query("predict", run=path, **facts)
    except ProblemError as error:
        if error.status == 503:
            raise
        return {"points": [], "problem": sentence(error.what, error.remedy)}
    return {"points": found.get("points", [found]), "problem": None}


async def report(service: Service, request: Request, values: ParameterValues) -> Response:
    """The report of a run, with live sliders."""
    entry = service.catalog.get(values["run"])
    live = {"predict": f"/api/runs/{quote(entry.name, safe='')}/predict"}
    facts = {"live": live}
    answer = await service.answers.get(
        entry, "report", facts, lambda: service.query_pool.query("report", run=str(entry.path), **facts), keep=True
    )
    return responses.kept(request, answer, HTML, {"Content-Security-Policy": policy_of(answer.body("identity"))})


def policy_of(content: bytes) -> str:
    """The content security policy in a report, which has the hashes of its parts."""
    _, _, rest = content[:4000].partition(b'http-equiv="Content-Security-Policy" content="')
    policy = unescape(rest.partition(b'"')[0].decode("ascii", "ignore")).strip("; ")
    return f"{policy}; frame-ancestors 'none'" if policy.startswith("default-src 'none'") else POLICY


async def remove(service: Service, request: Request, values: ParameterValues) -> Response:
    """Delete a run, from a form on a page."""
    check_sent_by_own_page(request)
    await service.remove(service.catalog.get(values["run"]))
    return RedirectResponse("/", 303)


def check_sent_by_own_page(request: Request) -> None:
    """Raise ProblemError for a form without an Origin header: browsers send one, and Shield has checked it."""
    if request.headers.get("origin") is None:
        raise ProblemError(403, "forms are only for pages of this service; programs use /api")


# Jobs ---------------------------------------------------------------------------------------------------------------


async def upload(service: Service, request: Request, values: ParameterValues) -> Response:
    """Files uploaded from a page."""
    check_sent_by_own_page(request)
    job = await job_endpoints.uploaded(service, request)
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def job(service: Service, request: Request, values: ParameterValues) -> Response:
    """The page of a job; redirects to its run if the job is done."""
    found = service.jobs.get(values["job"])
    if found.state == "done" and found.run is not None:
        return RedirectResponse("/runs/" + quote(found.run, safe=""), 303)
    return page("job.html.j2", here="runs", job=found)


# Indexes ------------------------------------------------------------------------------------------------------------


async def indexes(service: Service, request: Request, values: ParameterValues) -> Response:
    """The list of indexes."""
    return page("indexes.html.j2", here="indexes", indexes=await service.query("indexes"))


async def index(service: Service, request: Request, values: ParameterValues) -> Response:
    """The functions of one index."""
    filters = {"name": "", "class_name": values["class"], "text": values["text"], "resource": values["resource"]}
    found = await service.query(
        "functions", index=values["index"], filters=filters, limit=FUNCTIONS_SHOWN, offset=values["offset"]
    )
    rows = [(each, bars({name: each[name] for name in resources()})) for each in found["functions"]]

    def address(**changed: Any) -> str:
        facts = {key: value for key, value in {**values, **changed}.items() if key != "index" and value not in ("", 0)}
        return f"/indexes/{quote(values['index'], safe='')}?{urlencode(facts)}"

    return page(
        "index.html.j2",
        here="indexes",
        name=values["index"],
        rows=rows,
        total=found["total"],
        values=values,
        shown=FUNCTIONS_SHOWN,
        resources=resources(),
        address=address,
    )


async def function(service: Service, request: Request, values: ParameterValues) -> Response:
    """The entries of a function in the indexes, with their evidence."""
    chosen_ones = [values["index"]] if values["index"] else []
    found = await service.query("function", name=values["name"], indexes=chosen_ones, why=True)
    shown = [(each, bars({name: each[name] for name in resources()})) for each in found]
    return page("function.html.j2", here="indexes", name=values["name"], found=shown, resources=resources())


# SQL ----------------------------------------------------------------------------------------------------------------


async def console(service: Service, request: Request, values: ParameterValues) -> Response:
    """The SQL console."""
    return await _console(
        service, {"run": values["run"], "indexes": values["indexes"], "statement": values["statement"]}
    )


async def submitted_statement(service: Service, request: Request, values: ParameterValues) -> Response:
    """A statement submitted from the SQL console."""
    check_sent_by_own_page(request)
    limits = service.settings.limits
    content = await bodies.whole(request, limits, limits.body_bytes)
    try:
        form = dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10))
    except ValueError as error:
        raise ProblemError(400, f"invalid form ({error})") from error
    facts = {name: form.get(name, "") for name in ("run", "indexes", "statement")}
    names = facts["indexes"].replace(",", " ").split()
    begin = time.monotonic()
    try:
        files = _files(service, facts["run"])
        if not files and not names:
            raise ProblemError(400, "nothing to query: choose a run, all runs, or name indexes")
        if form.get("form") == "csv":
            content = await service.statements.execute(facts["statement"], "csv", indexes=names, **files)
            headers = {"Content-Disposition": 'attachment; filename="rows.csv"'}
            return await asyncio.to_thread(responses.plain, request, content, responses.CSV, headers=headers)
        found = await service.statements.rows(facts["statement"], most=ROWS_SHOWN, indexes=names, **files)
    except ProblemError as error:
        if error.status in (429, 503):
            raise
        return await _console(service, facts, problem=sentence(error.what, error.remedy))
    return await _console(service, facts, found=found, took_ms=1000 * (time.monotonic() - begin))


ALL_RUNS = "*"
"""The entry for all runs in the console's list."""


def _files(service: Service, run: str) -> dict[str, Any]:
    if run == ALL_RUNS:
        return {"runs": chosen(service, None)}
    return {"run": service.catalog.get(run).path} if run else {}


async def _console(
    service: Service,
    facts: dict[str, str],
    *,
    found: tuple[list[str], list[list[Any]]] | None = None,
    problem: str = "",
    took_ms: float = 0.0,
) -> Response:
    columns, rows = found or ([], [])
    row = service.catalog.rows.get(facts["run"])
    framework = (row.framework or "") if row else ""
    shown = [[_cell(each) for each in line] for line in rows[:ROWS_SHOWN]]
    return page(
        "sql.html.j2",
        here="sql",
        facts=facts,
        runs=[each.run for each in service.catalog.listed()][:1000],
        all_runs=ALL_RUNS,
        most_runs=service.settings.limits.sql_runs,
        schema=_schema(framework),
        columns=columns,
        rows=shown,
        numeric=[
            all(isinstance(line[position], int | float | None) for line in rows) for position in range(len(columns))
        ],
        more=len(rows) > ROWS_SHOWN,
        answered=found is not None,
        problem=problem,
        took=TimeUnit("ms", 1.0, 0).text(took_ms),
    )


def _schema(framework: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The tables, views and macros that a statement can use, with their columns; of all frameworks by default."""
    known = frameworks()
    mine = {framework: known[framework]} if framework in known else known
    of_runs = [*tables("run"), *(table for each in mine.values() for table in each.reader.raw())]
    shipped_views = [*views("run"), *(view for name in mine for view in views_of(name))]
    return [
        ("Views of a run", [*map(_table, computed.tables(resources())), *map(_view, shipped_views)]),
        ("Tables of a run", [_table(each) for each in of_runs]),
        ("Views of indexes", [_view(each) for each in views("index")]),
        ("Tables of indexes", [_table(each) for each in tables("index")]),
    ]


def _table(table: Table) -> dict[str, Any]:
    columns = [(each.name, each.type.lower(), each.comment) for each in table.columns]
    return {"name": table.name, "comment": table.comment, "columns": columns}


def _view(view: View) -> dict[str, Any]:
    columns = [
        (name.replace(EACH, each), "", comment.replace(EACH, each))
        for name, comment in view.columns.items()
        for each in (resources() if EACH in name else [""])
    ]
    return {"name": view.call, "comment": view.comment, "columns": columns}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 0.1 or value == 0 else f"{value:.4g}"
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


# Files --------------------------------------------------------------------------------------------------------------


async def static(service: Service, request: Request, values: ParameterValues) -> Response:
    """A static file of the pages."""
    if values["file"] not in _STATIC:
        raise ProblemError(404, "unknown file")
    content = files("crystalperf.service").joinpath("static", values["file"]).read_bytes()
    return responses.plain(request, content, _STATIC[values["file"]], tagged=True)


def _page(method: Any, path: str, handler: Any, *parameters: Parameter) -> Route:
    summary = (handler.__doc__ or "").split("\n")[0]
    return Route(method, path, f"page_{handler.__name__}", summary, handler, {200: Answer("")}, parameters, page=True)


ROUTES = (
    _page(
        "GET",
        "/",
        runs,
        Parameter("q", "", default=""),
        Parameter("framework", "", default=""),
        Parameter("bottleneck", "", default=""),
        Parameter("status", "", default="", choices=("", *ENDS)),
        Parameter("sort", "", default="-kept_at_ms", choices=tuple(SORTS_SHOWN)),
        OFFSET,
    ),
    _page("GET", "/runs/{run}", run, RUN, Parameter("set", "", default="")),
    _page("GET", "/runs/{run}/report", report, RUN),
    _page("POST", "/runs/{run}/delete", remove, RUN),
    _page("POST", "/upload", upload),
    _page("GET", "/jobs/{job}", job, job_endpoints.JOB),
    _page("GET", "/indexes", indexes),
    _page(
        "GET",
        "/indexes/{index}",
        index,
        Parameter("index", "", where="path", longest=200),
        Parameter("text", "", default=""),
        Parameter("class", "", default=""),
        Parameter("resource", "", default="", choices=("", *resources())),
        OFFSET,
    ),
    _page("GET", "/functions", function, Parameter("name", "", default=""), Parameter("index", "", default="")),
    _page(
        "GET",
        "/sql",
        console,
        Parameter("run", "", default=""),
        Parameter("indexes", "", default="", longest=2_000),
        Parameter("statement", "", default="", longest=LONGEST_STATEMENT),
    ),
    _page("POST", "/sql", submitted_statement),
    _page("GET", "/static/{file}", static, Parameter("file", "", where="path", longest=60)),
)
