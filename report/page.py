"""A report page as HTML: the template with a run's data, and its content security policy.

The policy permits the page's own script and styles, by their hashes, and nothing else: no other script, no network
request.  A page that a service shows may send requests to that service only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crystalperf.query.results.page import PageData
from crystalperf.query.text.answers import measure_word
from crystalperf.query.text.as_json import as_json
from crystalperf.report.embedding import harmless, script_data, shown

if TYPE_CHECKING:
    from crystalperf.query.results.comparison_page import ComparisonPage
    from crystalperf.query.run import Run

Data = Mapping[str, Any]
"""The JSON of a PageData (docs/schema/page.json) or of a ComparisonPage (docs/schema/comparison-page.json)."""


def render(source: Run | PageData | Data, live: Mapping[str, str] | None = None) -> str:
    """The page of a run, of its data, or of the JSON of these data.

    `live` is the URL for exact predictions, `{"predict": URL}`: it answers POST {"settings": [KEY=VALUE, …]} with
    docs/schema/prediction.json.  Without it the page sends no requests.
    """
    data = {**harmless(data_of(source)), "live": None if live is None else dict(live)}
    connect = "'none'" if live is None else " ".join(sorted({_origin(each) for each in live.values()}))
    measure = measure_word(data["verdict"]["debug"]["measure"])
    return _html("page.html.j2", "page.js", data, connect, measure=measure)


def render_comparison(source: ComparisonPage | Data) -> str:
    """The page of a comparison, of its data or of the JSON of these data; it sends no requests."""
    data = harmless(source if isinstance(source, Mapping) else as_json(source))
    sides = (data["comparison"][side]["runs"] for side in ("before", "after"))
    name = comparison_name(*([run["app_id"] for run in runs] for runs in sides))
    return _html("comparison.html.j2", "comparison.js", data, "'none'", name=name)


def comparison_name(before: Sequence[str], after: Sequence[str]) -> str:
    """The name by which a page of a comparison is known: the ids of the applications of both sides."""
    return shown(" : ".join(" ".join(side) for side in (before, after)))


def _html(template: str, code: str, data: Data, connect: str, **facts: str) -> str:
    """A page from its template, its script and its data; `connect` are the addresses that it may request."""
    script, styles = _asset(code), _asset("page.css")
    policy = {
        "default-src": "'none'",
        "script-src": _hashed(script),
        "style-src": _hashed(styles),
        "img-src": "data:",
        "connect-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return (
        _environment()
        .get_template(template)
        .render(
            data=data,
            page_text=data["page_text"],
            embedded=Markup(script_data(data)),
            script=Markup(script),
            styles=Markup(styles),
            policy="; ".join(f"{name} {value}" for name, value in policy.items()),
            **facts,
        )
    )


def data_of(source: Run | PageData | Data) -> Data:
    """The data of a page."""
    if isinstance(source, Mapping):
        return source
    return as_json(source if isinstance(source, PageData) else source.page_data())


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("crystalperf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@cache
def _asset(name: str) -> str:
    """A file built from web/, as the page contains it; '' if it is missing: then the page has text only."""
    place = files("crystalperf.report").joinpath("assets", name)
    text = place.read_text(encoding="utf-8") if place.is_file() else ""
    assert "</script" not in text.lower(), "the asset contains the end tag of a script"
    assert "</style" not in text.lower(), "the asset contains the end tag of a style"
    return text


def _hashed(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _origin(address: str) -> str:
    """The CSP source expression of a URL: its scheme and host, or 'self'."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else "'self'"
