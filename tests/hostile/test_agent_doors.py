"""An agent reads what strangers wrote, which may instruct it: no query reaches beyond this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from crystalperf.cli import agent_tools
from crystalperf.cli.agent_server import _with_one_sentence_errors, without_lone_surrogates
from crystalperf.indexes.errors import SettingError
from crystalperf.query.run import Run


@pytest.fixture
def listening() -> Iterator[tuple[str, list[str]]]:
    """The address of somebody else, and what was asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def questions(name: str) -> list[Callable[[], Any]]:
    """All that an agent can ask of a run of that name."""
    return [
        lambda: agent_tools.analyze([name]),
        lambda: agent_tools.debug(name),
        lambda: agent_tools.predict(name, ["cores=2x"]),
        lambda: agent_tools.sql("SELECT 1", name),
    ]


def test_no_question_reaches_an_address(listening: tuple[str, list[str]]) -> None:
    address, asked = listening
    for place in ("", "/history/what-the-agent-knows", "/log.gz"):
        for question in questions(address + place):
            with pytest.raises(SettingError):
                question()
    assert not asked


def test_the_connection_of_the_agent_is_not_read_as_a_log() -> None:
    for question in questions("-"):
        with pytest.raises(SettingError):
            question()


def test_a_part_far_behind_takes_no_memory(log_run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    fitting = agent_tools.fitting
    monkeypatch.setattr(
        agent_tools, "fitting", lambda facts, rows, *part: kept.append(len(rows)) or fitting(facts, rows, *part)
    )
    found = agent_tools.sql("SELECT range AS n FROM range(100000)", str(log_run.path), limit=3, offset=99_990)
    assert [each["n"] for each in found.rows] == [99_990, 99_991, 99_992]
    assert (found.offset, found.next_offset) == (99_990, 99_993)
    assert kept == [4]
    with pytest.raises(SettingError, match="limit"):
        agent_tools.sql("SELECT 1", str(log_run.path), limit=10**9)


def test_lone_surrogates_of_a_request_are_replaced() -> None:
    clean = without_lone_surrogates
    assert clean(rb'{"a": "\ud800"}') == rb'{"a": "\ufffd"}'
    assert clean(rb'{"a": "\udc00\ud83d\ude00"}') == rb'{"a": "\ufffd\ud83d\ude00"}'
    assert clean(rb'{"a": "\\ud800"}') == rb'{"a": "\\ud800"}'


def test_an_unexpected_error_of_a_tool_has_its_reason() -> None:
    from mcp.server.mcpserver.exceptions import ToolError

    def broken() -> object:
        raise KeyError("\ud800")

    with pytest.raises(ToolError, match="KeyError"):
        _with_one_sentence_errors(broken)()  # type: ignore[arg-type]
