"""`crystalperf mcp`: the commands as tools of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import crystalperf
from crystalperf.cli import agent_tools
from crystalperf.cli.agent_prime import prime_text
from crystalperf.cli.remedies import error_sentence
from crystalperf.indexes.errors import CrystalPerfError, SettingError
from crystalperf.query.trace.records import shortened

if TYPE_CHECKING:
    from mcp.server import MCPServer


def serve() -> int:
    """Serve an agent until it closes the connection."""
    server = make_server()
    _clean_input()
    server.run("stdio")
    return 0


_ESCAPED = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\[^u]"
)
"""An escaped pair of surrogates in JSON, a lone one, or any other escaped character."""


def without_lone_surrogates(line: bytes) -> bytes:
    """A line of JSON with U+FFFD for lone surrogates: the package mcp would not reply to such a request."""
    return _ESCAPED.sub(lambda found: found[0] if found["lone"] is None else rb"\ufffd", line)


def _clean_input() -> None:
    """Put a pipe in the place of standard input, to which a thread writes its lines without lone surrogates."""
    original = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)

    def copy() -> None:
        with open(original, "rb") as source, open(writing, "wb", buffering=0) as sink, suppress(BrokenPipeError):
            for line in source:
                sink.write(without_lone_surrogates(line))

    threading.Thread(target=copy, daemon=True).start()


def make_server() -> MCPServer:
    """The server with its tools and resources.  Raises SettingError if the package mcp is missing."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise SettingError(
            f"serving agents needs the extra `mcp` ({error.name} is missing): `pip install '.[mcp]'` in a checkout of"
            " CrystalPerf"
        ) from error
    server = _checking(MCPServer)(
        "crystalperf", instructions=prime_text(), version=crystalperf.__version__, log_level="ERROR"
    )
    for tool in agent_tools.TOOLS:
        server.add_tool(
            _with_one_sentence_errors(tool),
            name=tool.__name__,
            description=(tool.__doc__ or "").strip(),
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        )
    server.resource(
        "crystalperf://usage", mime_type="text/plain", description="the usage of CrystalPerf, on one screen"
    )(prime_text)
    server.resource(
        "crystalperf://schema",
        mime_type="text/plain",
        description="tables of run files and indexes, with comments",
    )(schema_text)
    server.resource(
        "crystalperf://views",
        mime_type="text/plain",
        description="the SQL views over these tables, with comments on their columns",
    )(views_text)
    return server


def _checking(kind: type[MCPServer]) -> type[MCPServer]:
    """A server of this kind, with a sentence of ours for arguments that a tool does not take."""
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import ValidationError

    class Checking(kind):  # type: ignore[valid-type, misc]
        async def call_tool(self, name: str, arguments: dict[str, Any], *more: Any, **named: Any) -> Any:
            tools = {each.name: each.input_schema for each in await self.list_tools()}
            known = tools.get(name, {}).get("properties", {})
            for each in arguments if name in tools else ():
                if each not in known:
                    raise ToolError(f"{name}: no argument `{shortened(each)}`; it takes {', '.join(known)}")
            try:
                return await super().call_tool(name, arguments, *more, **named)
            except ToolError as error:
                if not isinstance(error.__cause__, ValidationError):
                    text = str(error).removeprefix(f"Error executing tool {name}: ")  # the package's words
                    raise ToolError(text) from error.__cause__
                wrong = error.__cause__.errors()[0]
                raise ToolError(argument_sentence(name, wrong["loc"], wrong["type"] == "missing", known)) from None

    return Checking


def argument_sentence(tool: str, place: Sequence[object], is_missing: bool, known: Mapping[str, Any]) -> str:
    """The error for a missing or wrong argument: `place` is its name and positions within it, `known` their schemas."""
    name = str(place[0]) if place else ""
    stated = f"it takes {_allowed(known[name])}" if name in known else f"it takes {', '.join(known)}"
    return f"{tool}: argument `{shortened(name)}` is {'missing' if is_missing else 'of another type'}; {stated}"


_TYPES = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}


def _allowed(schema: Mapping[str, Any]) -> str:
    if values := schema.get("enum"):
        return f"one of {', '.join(map(str, values))}"
    if schema.get("type") == "array":
        return f"a list, each {_allowed(schema.get('items', {}))}"
    return _TYPES.get(str(schema.get("type")), "another value")


def schema_text() -> str:
    """The schema of indexes and run files."""
    return files("crystalperf.indexes").joinpath("schema.sql").read_text(encoding="utf-8")


def views_text() -> str:
    """The shipped views, each with its columns."""
    from crystalperf.query.statements.views import views

    lines: list[str] = []
    for kind in ("run", "index"):
        for view in views(kind):
            lines.append(f"{view.name} (of {'a run' if kind == 'run' else 'indexes'}): {view.comment}")
            lines += [f"  {name}: {comment}" for name, comment in view.columns.items()]
    return "\n".join(lines) + "\n"


def _with_one_sentence_errors(tool: Callable[..., agent_tools.Answer]) -> Callable[..., agent_tools.Answer]:
    """Wrap a tool so that its errors are one sentence, as in the terminal."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def checked(*arguments: Any, **named: Any) -> agent_tools.Answer:
        try:
            return tool(*arguments, **named)
        except CrystalPerfError as error:
            raise ToolError(error_sentence(error)) from None
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:200]}".encode("utf-8", "replace").decode()
            raise ToolError(f"a bug of CrystalPerf ({what}); please report it") from error

    return checked
