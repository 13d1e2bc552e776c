"""The description of routes: method, path, parameters, body, answers and problems.

The routing, the validation of requests and the OpenAPI document are generated from it, so they cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from crystalperf.service.problems import ProblemError

if TYPE_CHECKING:
    from crystalperf.service.state import Service

ParameterValues = Mapping[str, Any]
"""The parsed parameters of a request, by name."""

Handler = Callable[["Service", Request, ParameterValues], Awaitable[Response]]

ALWAYS = (400, 401, 403, 413, 421, 500, 503)
"""Statuses of problems that any route may return."""

_LONGEST = 500
"""Default maximum characters of a parameter."""


@dataclass(frozen=True)
class Parameter:
    """A parameter in the path or the query string; `several` allows repetition."""

    name: str
    description: str
    kind: Literal["string", "integer", "boolean"] = "string"
    where: Literal["query", "path"] = "query"
    default: Any = None
    several: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 1 << 31
    longest: int = _LONGEST

    def schema(self) -> dict[str, Any]:
        """The parameter as JSON Schema."""
        found: dict[str, Any] = {"type": self.kind}
        if self.choices:
            found["enum"] = list(self.choices)
        elif self.kind == "string":
            found["maxLength"] = self.longest
            if self.where == "path":
                found["minLength"] = 1
        elif self.kind == "integer":
            found |= {"minimum": self.least, "maximum": self.most}
        if self.several:
            return {"type": "array", "items": found, "maxItems": 100}
        return found if self.default is None else {**found, "default": self.default}

    def value(self, texts: Sequence[str]) -> Any:
        """The value parsed from the texts in a request.  Raises ProblemError."""
        if not texts:
            return [] if self.several else self.default
        if self.several:
            if len(texts) > 100:
                raise ProblemError(400, f"{self.name}: given more than 100 times")
            return [self._one(each) for each in texts]
        if len(texts) > 1:
            raise ProblemError(400, f"{self.name}: given more than once")
        return self._one(texts[0])

    def _one(self, text: str) -> Any:
        if self.choices and text not in self.choices:
            raise ProblemError(400, f"{self.name}: '{text[:60]}' is not one of {', '.join(self.choices)}")
        if self.kind == "integer":
            if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not self.least <= int(text) <= self.most:
                raise ProblemError(400, f"{self.name}: '{text[:60]}' is not a number from {self.least} to {self.most}")
            return int(text)
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise ProblemError(400, f"{self.name}: '{text[:60]}' is not true or false")
            return text == "true"
        if len(text) > self.longest:
            raise ProblemError(400, f"{self.name}: longer than {self.longest} characters")
        return text


@dataclass(frozen=True)
class Answer:
    """The response of a status: its media types, each with a schema (None where JSON Schema cannot describe it)."""

    description: str
    content: Mapping[str, dict[str, Any] | None] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """One operation.  `body` is the type of its JSON body; `form` is the schema of a form that it accepts.

    `problems` are the statuses in addition to ALWAYS.  A `page` is HTML and not in the OpenAPI document.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    description: str
    handler: Handler
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: type[msgspec.Struct] | None = None
    form: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    page: bool = False

    def parse_parameters(self, request: Request) -> dict[str, Any]:
        """The parsed parameters of a request.  Raises ProblemError for an unknown or invalid one."""
        known = {each.name for each in self.parameters if each.where == "query"}
        if unknown := sorted(set(request.query_params) - known):
            there = f"; known parameters: {', '.join(sorted(known))}" if known else ""
            raise ProblemError(400, f"unknown parameter '{unknown[0][:60]}'{there}")
        return {
            each.name: each.value(
                [request.path_params[each.name]] if each.where == "path" else request.query_params.getlist(each.name)
            )
            for each in self.parameters
        }
