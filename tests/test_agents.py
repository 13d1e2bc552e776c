"""The agent interface: tools over the protocol's own client, bounded answers, the priming screen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystalperf.cli import agent_tools
from crystalperf.cli.agent_prime import prime_text
from crystalperf.query.run import Run


@pytest.fixture(autouse=True)
def needs_mcp() -> None:
    pytest.importorskip("mcp")  # here, and not where the module is collected: it takes a second to import


Answer = Callable[..., tuple[int, str, str]]


def asked(tool: str, **arguments: Any) -> tuple[bool, Any]:
    """Whether the tool failed, and its structured answer, or its words where it has none."""
    import anyio
    import mcp

    from crystalperf.cli.agent_server import make_server

    async def ask() -> Any:
        async with mcp.Client(make_server()) as client:
            return await client.call_tool(tool, arguments)

    result = anyio.run(ask)
    text = "".join(each.text for each in result.content)
    return bool(result.is_error), text if result.is_error else result.structured_content


def listed(what: str) -> Any:
    import anyio
    import mcp

    from crystalperf.cli.agent_server import make_server

    async def ask() -> Any:
        async with mcp.Client(make_server()) as client:
            if what == "tools":
                return (await client.list_tools()).tools
            if what == "resources":
                return (await client.list_resources()).resources
            return (await client.read_resource(what)).contents[0].text

    return anyio.run(ask)


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("debug", {}, ["`run`", "missing", "text"]),
        ("debug", {"run": "x", "limit": "many"}, ["`limit`", "whole number"]),
        ("debug", {"run": "x", "part": "moon"}, ["`part`", "path", "operators"]),
        ("predict", {"run": "x", "settings": [1]}, ["`settings`", "a list", "text"]),
        ("debug", {"run": "x", "limt": 5}, ["`limt`", "limit"]),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_allowed(tool: str, arguments: dict[str, Any], named: list[str]) -> None:
    failed, text = asked(tool, **arguments)
    assert failed
    assert not [each for each in ("\n", "pydantic") if each in text], text
    assert not [each for each in named if each not in text], text


def test_tools_cover_all_questions_and_are_typed() -> None:
    tools = {each.name: each for each in listed("tools")}
    assert set(tools) == {"analyze", "debug", "predict", "compare", "sql", "functions", "why"}
    for each in tools.values():
        assert each.description
        assert each.annotations.read_only_hint
        assert {"limit", "offset"} <= each.input_schema["properties"].keys()
        assert each.output_schema["properties"].keys() == {"facts", "rows", "offset", "total", "next_offset"}


def test_resources_are_the_schema_the_views_and_the_usage() -> None:
    found = {str(each.uri): each for each in listed("resources")}
    assert found.keys() == {"crystalperf://usage", "crystalperf://schema", "crystalperf://views"}
    assert "CREATE TABLE functions" in listed("crystalperf://schema")
    assert "has_body" in listed("crystalperf://views")
    assert listed("crystalperf://usage") == prime_text()


def test_tools_answer_as_the_commands_do(crystalperf: Answer, demo_run: Run) -> None:
    run = str(demo_run.path)
    failed, found = asked("analyze", paths=[run])
    assert not failed
    reported = json.loads(crystalperf("analyze", run, "--json")[1])
    assert found["facts"]["resource_ms"] == {key: round(ms) for key, ms in reported["debug"]["resource_ms"].items()}
    first = reported["recommendations"][: len(found["rows"])]
    assert len(first) == min(10, len(reported["recommendations"]))
    assert [each["do"] for each in found["rows"]] == [each["text"] for each in first]
    assert [each["kind"] for each in found["rows"]] == [each["kind"] for each in first]
    assert found["facts"]["says"] in " ".join(crystalperf("analyze", run)[1].split())
    _, path = asked("debug", run=run, part="path", limit=100)
    assert path["rows"] == json.loads(crystalperf("debug", run, "--json")[1])["critical_path"]
    _, asked_for = asked("predict", run=run, settings=["network=10x"])
    predicted = json.loads(crystalperf("predict", run, "--set", "network=10x", "--json")[1])
    assert asked_for["rows"][0]["predicted_ms"] == round(predicted["predicted_ms"])
    _, rows = asked("sql", run=run, statement="SELECT most FROM scope_resources")
    assert rows["rows"] == json.loads(crystalperf("sql", "--run", run, "--json", "SELECT most FROM scope_resources")[1])


def test_comparison_of_the_tool_is_that_of_the_command(crystalperf: Answer, log_run: Run, demo_log_run: Run) -> None:
    before, after = str(log_run.path), str(demo_log_run.path)
    failed, found = asked("compare", before=[before], after=[after])
    assert not failed
    plain = json.loads(crystalperf("compare", before, after, "--json")[1])
    assert [each["kind"] for each in found["rows"]] == [each["kind"] for each in plain["parts"]]
    assert sum(each["ms"] for each in found["rows"]) == pytest.approx(plain["change_ms"], abs=0.1)
    assert found["facts"]["verdict"] == plain["difference"]["verdict"]
    assert found["facts"]["before_ms"] == round(plain["before"]["runtime_ms"])
    failed, words = asked("compare", before=[before], after=[before])
    assert failed
    assert "same run" in words


@pytest.mark.later
def test_pages_of_an_answer_join_to_the_whole(demo_run: Run) -> None:
    run = str(demo_run.path)
    pages, offset = [], 0
    while True:
        _, page = asked("debug", run=run, part="path", limit=10, offset=offset)
        pages += page["rows"]
        assert page["total"] == len(demo_run.debug().critical_path)
        if page["next_offset"] is None:
            break
        offset = page["next_offset"]
    assert [each["id"] for each in pages] == [each.id for each in demo_run.debug().critical_path]
    _, first = asked("sql", run=run, statement="SELECT range AS n FROM range(120)", limit=50, offset=50)
    assert [each["n"] for each in first["rows"]] == list(range(50, 100))
    assert first["next_offset"] == 100
    _, last = asked("sql", run=run, statement="SELECT range AS n FROM range(120)", limit=50, offset=100)
    assert (len(last["rows"]), last["next_offset"]) == (20, None)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT repeat('x', 100000) AS long FROM range(1000)",
        "SELECT list_transform(range(1000), lambda x : repeat('y', 300)) AS lists FROM range(50)",
        "SELECT * FROM tasks, tasks AS u",
    ],
)
def test_no_answer_is_longer_than_the_bound(demo_run: Run, statement: str) -> None:
    failed, found = asked("sql", run=str(demo_run.path), statement=statement, limit=1000)
    assert not failed
    assert found["rows"]
    assert len(json.dumps(found)) <= agent_tools.MAX_CHARACTERS + 200
    assert found["next_offset"] == len(found["rows"])


def test_functions_and_their_explanations(own_cache: None) -> None:
    _, found = asked("functions", index="python-3.11", resource="net", limit=5)
    assert len(found["rows"]) == 5 < found["total"]
    assert found["next_offset"] == 5
    assert {each["label"] for each in found["rows"]} == {"net"}
    _, reported = asked("why", function="socket.create_connection", index="python-3.11")
    assert reported["rows"][0]["qualified_name"] == "socket.create_connection"
    assert reported["rows"][0]["calls"]


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("analyze", {"paths": ["no-such-file"]}, "no-such-file"),
        ("analyze", {"paths": []}, "logs"),
        ("sql", {"statement": "DROP TABLE x", "indexes": ["python-3.11"]}, "read-only"),
        ("sql", {"statement": "SELECT lable FROM labelled", "indexes": ["python-3.11"]}, '"label"'),
        ("sql", {"statement": "SELECT 1"}, "nothing to query"),
        ("functions", {"index": "python-3.11", "resource": "gpu"}, "'gpu'"),
        ("functions", {"index": "python-3.11", "limit": 0}, "limit"),
        ("functions", {"index": "python-3.11", "offset": -1}, "offset"),
        ("compare", {"before": ["no-such-run"], "after": ["no-such-run"]}, "no-such-run"),
        ("compare", {"before": [], "after": ["no-such-run"]}, "before"),
        ("compare", {"before": ["http://example.org/log"], "after": ["x"]}, "example.org"),
        ("why", {"function": "no.such.function", "index": "python-3.11"}, "no.such.function"),
    ],
)
def test_error_is_one_sentence(tool: str, arguments: dict[str, Any], says: str) -> None:
    failed, words = asked(tool, **arguments)
    assert failed
    assert says in words
    assert "Traceback" not in words


@pytest.mark.later
def test_an_agent_is_served_over_standard_input(demo_run: Run, tmp_path: Path) -> None:
    import sys

    import anyio
    import mcp

    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "crystalperf.cli.main", "mcp"], cwd=str(ROOT)
    )

    async def ask() -> Any:
        async with mcp.Client(mcp.stdio_client(parameters)) as client:
            return await client.call_tool("debug", {"run": str(demo_run.path), "limit": 1})

    assert len(anyio.run(ask).structured_content["rows"]) == 1


ROOT = Path(__file__).resolve().parent.parent


def test_priming_text_fits_one_screen(crystalperf: Answer) -> None:
    code, out, _ = crystalperf("prime")
    assert (code, out) == (0, prime_text())
    assert len(out.split("\n")) <= 45
    assert max(map(len, out.split("\n"))) <= 90
    from crystalperf.query.statements.shipping import index_names, run_names

    for view in ("critical_path", "hot_functions", "waits", "labelled", "callees"):
        assert view in out
        assert view in run_names() | index_names()
