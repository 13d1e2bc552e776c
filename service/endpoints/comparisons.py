"""Routes of comparisons: runs before and after a change, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from crystalperf.service import responses
from crystalperf.service.answers import Answer as CachedAnswer
from crystalperf.service.catalog import Entry
from crystalperf.service.endpoints import pages
from crystalperf.service.endpoints.runs import ETAG, SCOPE, UNCHANGED
from crystalperf.service.openapi import reference
from crystalperf.service.problems import ProblemError
from crystalperf.service.routes import Answer, Parameter, ParameterValues, Route
from crystalperf.service.state import Service

MOST_RUNS = 10
"""Maximum runs of a side."""

RUNS_OFFERED = 500
"""Maximum runs that the page offers for a side."""

BEFORE = Parameter("before", "a run before the change, by its name; several are pooled", several=True)
AFTER = Parameter("after", "a run after the change, by its name; several are pooled", several=True)


async def compare(service: Service, request: Request, values: ParameterValues) -> Response:
    """The comparison of the runs."""
    return responses.kept(request, await _answered(service, "comparison", values))


async def compare_page(service: Service, request: Request, values: ParameterValues) -> Response:
    """The page of a comparison; a form to choose the runs if a side has none."""
    if not values["before"] or not values["after"]:
        return _form(service, values)
    answer = await _answered(service, "comparison_report", values)
    policy = pages.policy_of(answer.body("identity"))
    return responses.kept(request, answer, pages.HTML, {"Content-Security-Policy": policy})


async def _answered(service: Service, question: str, values: ParameterValues) -> CachedAnswer:
    before, after = (_entries(service, side, values[side]) for side in ("before", "after"))
    facts = {side: [each.name for each in found] for side, found in (("before", before), ("after", after))}
    versions = [each.version for each in (*before, *after)]
    paths = {side: [str(each.path) for each in found] for side, found in (("before", before), ("after", after))}
    asked = {"run": paths["before"][0], **paths, "scope": values["scope"]}
    return await service.answers.get(
        before[0],
        question,
        {**facts, "versions": versions, "scope": values["scope"]},
        lambda: service.query_pool.query(question, **asked),
    )


def _entries(service: Service, side: str, names: Sequence[str]) -> list[Entry]:
    """The runs of a side.  Raises ProblemError for none, too many, or an unknown one."""
    if not names:
        raise ProblemError(400, f"{side}: name a run of this side")
    if len(names) > MOST_RUNS:
        raise ProblemError(400, f"{side}: more than {MOST_RUNS} runs; name fewer")
    return [service.catalog.get(each) for each in names]


def _form(service: Service, values: ParameterValues) -> Response:
    rows = service.catalog.listed()
    chosen = {side: (values[side] or [""])[0] for side in ("before", "after")}
    shown = [each for each in rows if each.state != "unreadable"][:RUNS_OFFERED]
    return pages.page("compare.html.j2", here="runs", rows=shown, chosen=chosen, total=len(rows))


ROUTES = (
    Route(
        "GET",
        "/api/compare",
        "compareRuns",
        "compare runs before and after a change: whether the runtime changed beyond noise, and by which causes, like"
        " `crystalperf compare --json`",
        compare,
        {200: Answer("the comparison", {responses.JSON: reference("comparison")}, ETAG), 304: UNCHANGED},
        (BEFORE, AFTER, SCOPE),
        problems=(404, 422),
    ),
    Route(
        "GET",
        "/compare",
        "page_compare",
        "The page of a comparison.",
        compare_page,
        {200: Answer("")},
        (BEFORE, AFTER, SCOPE),
        page=True,
    ),
)
