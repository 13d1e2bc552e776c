"""A page shows all names of a log as text: no element, no attribute, no script comes of it.

python -m tests.test_report_hostile FILE.html     a page with all the names, for a browser to open
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from crystalperf import query, report
from crystalperf.query.text.as_json import as_json
from tests import spark_logs
from tests.spark_logs import Query, Stage, Task
from tests.test_report import Page

MEGABYTE = "<b>" + "x" * 1_000_000

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</ScRiPt ><img src=x onerror=alert(3)>",
    "<img src=x onerror=alert(4)>",
    "<img src=x onerror='alert(5)'//",
    "<IMG SRC=javascript:alert(6)>",
    '<IMG SRC="jav&#x09;ascript:alert(7);">',
    "<IMG SRC=&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(8)>",
    '"><svg onload=alert(9)>',
    "'><svg/onload=alert(10)>",
    "<svg><script>alert(11)</script></svg>",
    "<svg><animate onbegin=alert(12) attributeName=x dur=1s>",
    "<math><mtext></table><mglyph><style><img src=x onerror=alert(13)>",
    "<iframe src=javascript:alert(14)>",
    "<iframe srcdoc='<script>alert(15)</script>'>",
    "<object data=javascript:alert(16)>",
    "<embed src=javascript:alert(17)>",
    "<a href=javascript:alert(18)>here</a>",
    "<a href='data:text/html,<script>alert(19)</script>'>here</a>",
    "<body onload=alert(20)>",
    "<details open ontoggle=alert(21)>",
    "<video><source onerror=alert(22)>",
    "<audio src onerror=alert(23)>",
    "<input autofocus onfocus=alert(24)>",
    "<select onfocus=alert(25) autofocus>",
    "<textarea autofocus onfocus=alert(26)>",
    "<marquee onstart=alert(27)>",
    "<form action=javascript:alert(28)><button>",
    "<button formaction=javascript:alert(29)>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(30)'>",
    "<base href=//evil.example/>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>@import '//evil.example/x.css';</style>",
    "</style><script>alert(34)</script>",
    "<style>*{background:url(//evil.example/y)}</style>",
    "<x style=behavior:url(x)>",
    "<!--<script>",
    "--><script>alert(38)</script>",
    "<!--><script>alert(39)</script>-->",
    "<![CDATA[<script>alert(40)</script>]]>",
    "]]><script>alert(41)</script>",
    "<?xml-stylesheet href=javascript:alert(42)?>",
    "</title><script>alert(43)</script>",
    "</textarea><script>alert(44)</script>",
    "</noscript><script>alert(45)</script>",
    "</main><script>alert(46)</script>",
    "<template><script>alert(47)</script></template>",
    "<plaintext>",
    "<xmp><script>alert(49)</script></xmp>",
    "{{ 7*7 }}{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "${alert(51)}",
    "#{alert(52)}",
    "`-alert(53)-`",
    "';alert(54);//",
    '";alert(55);//',
    "\\';alert(56);//",
    "\\u003cscript\\u003ealert(57)\\u003c/script\\u003e",
    "&lt;script&gt;alert(58)&lt;/script&gt;",
    "%3Cscript%3Ealert(59)%3C/script%3E",
    "java\u0000script:alert(60)",
    "a\u2028b\u2029c",
    "\u202egnp.exe\u202c \u2066turned\u2069 \u200fround",
    "\ufeffbyte\u200border\u00admark",
    "\x1b[31mred\x1b[0m\x07\x08",
    "\ud800 half of a character",
    "__proto__",
    "constructor",
    "toString",
    "a\tb\nc\rd",
    "𝕳𝖔𝖘𝖙 🧨 Ω≈ç√",
    MEGABYTE,
)

TURNING = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029\x1b\x07\x00\x08\ufeff\u200b"
)


def hostile_log(path: Path) -> Path:
    """A log in which everything that somebody names has one of these names."""
    stages = [
        Stage(
            [Task(900 + 10 * number, executor=str(1 + number % 3), read_bytes=10**7), Task(300, executor="1")],
            name=name,
        )
        for number, name in enumerate(HOSTILE)
    ]
    nodes = [(name[:200], f"{name[:200]} [{name[:200]}]") for name in HOSTILE]
    spark_logs.write(path, stages, executors={"1": 2, "2": 1, "3": 1}, query=Query(nodes))
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")):
        if not line:
            continue
        event = json.loads(line)
        name = HOSTILE[number % (len(HOSTILE) - 1)]
        if event["Event"] == "SparkListenerApplicationStart":
            event |= {"App Name": HOSTILE[1], "App ID": HOSTILE[3], "User": HOSTILE[8]}
        if "Executor Info" in event:
            event["Executor Info"]["Host"] = name
        if "description" in event:
            event |= {"description": f"SELECT '{HOSTILE[0]}'", "details": MEGABYTE}
        if "Task Info" in event and event["Event"].endswith("TaskEnd") and number % 7 == 0:
            event["Task Info"]["Failed"] = True
            event["Task End Reason"] = {
                "Reason": "ExceptionFailure", "Class Name": name[:200], "Description": name[:200], "Stack Trace": [],
                "Full Stack Trace": name, "Accumulator Updates": [],
            }  # fmt: skip
        lines.append(json.dumps(event))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("hostile")
    return made(folder)


def made(folder: Path) -> str:
    """The page of that log."""
    run = query.profile(hostile_log(folder / "log"), output=folder / "run.duckdb")
    return report.render(run)


def test_hostile_names_are_at_least_60() -> None:
    assert len(set(HOSTILE)) >= 60


def test_no_name_becomes_markup(html: str) -> None:
    page = Page(html)  # every element that is opened is closed, in order
    plain = {
        *("html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "p", "section", "strong"),
        *("ol", "ul", "li", "br", "code", "table", "thead", "tbody", "tr", "th", "td", "script", "noscript"),
    }
    assert {tag for tag, _ in page.elements} <= plain
    assert [tag for tag, _ in page.elements].count("script") == 2
    assert [tag for tag, _ in page.elements].count("style") == 1
    known = {"lang", "charset", "http-equiv", "content", "name", "id", "type"}
    assert {name for _, attributes in page.elements for name in attributes} <= known


def test_the_embedded_data_has_no_character_of_markup(html: str) -> None:
    (_, _, rest) = html.partition('<script type="application/json" id="crystalperf-data">')
    embedded, end, _ = rest.partition("</script>")
    assert end
    assert not set("<>&'\u2028\u2029") & set(embedded)
    data = json.loads(embedded)
    names = {each["name"] for each in data["graph"]["nodes"]} | {each["name"] for each in data["graph"]["operators"]}
    for name in HOSTILE[:60]:
        if name.isprintable():
            assert any(name in each for each in names), name


def test_names_have_no_line_breaks_or_bidirectional_marks(html: str) -> None:
    assert not set(TURNING) & set(html)
    assert report.shown("\u202egnp.exe\x1b") == "\\u202egnp.exe\\x1b"  # shown by their numbers


def test_name_of_a_megabyte_is_shortened_on_the_page(html: str) -> None:
    script, styles = (len(part) for part in (report.page._asset("page.js"), report.page._asset("page.css")))
    assert len(html) - script - styles < 1_000_000
    assert "x" * 1_500 not in html


def test_data_that_somebody_else_wrote_is_made_harmless_too(demo_log_run: query.Run) -> None:
    data = json.loads(json.dumps(as_json(demo_log_run.page_data())))
    data["page_text"]["findings"] = [
        {**data["page_text"]["findings"][0], "text": name, "advice": name} for name in HOSTILE
    ]
    data["page_text"]["not_recorded"] = data["page_text"]["outcome"] = list(HOSTILE)
    data["timeline"]["stage_names"] = list(HOSTILE)
    for name in HOSTILE[:3]:
        data["page_text"]["title"] = data["page_text"]["facts"][0] = data["verdict"]["header"]["app_id"] = name
        page = Page(report.render(data))
        assert [tag for tag, _ in page.elements].count("script") == 2
        assert not {"img", "svg", "iframe"} & {tag for tag, _ in page.elements}
        assert page.attribute("meta", "content", "name", "crystalperf-run") == name


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        Path(sys.argv[1]).write_text(made(Path(place)), encoding="utf-8")
