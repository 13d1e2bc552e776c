"""What the service answers, as one table: each route's parameters, body, answers and problems.

The routes, the checks of what comes in, and the OpenAPI document are all made of it, so they cannot differ.
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

Asked = Mapping[str, Any]
"""The parameters of a request, by name, as their types say."""

Handler = Callable[["Service", Request, Asked], Awaitable[Response]]

ALWAYS = (400, 401, 403, 413, 421, 500, 503)
"""Problems that any route may answer with."""

_LONGEST = 500
"""Characters of a parameter, unless its row says otherwise."""


@dataclass(frozen=True)
class Parameter:
    """One in the path or the query; `several` may occur again."""

    name: str
    told: str
    kind: Literal["string", "integer", "boolean"] = "string"
    where: Literal["query", "path"] = "query"
    default: Any = None
    several: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 1 << 31
    longest: int = _LONGEST

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
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
        """What the texts of a request say.  Raises ProblemError."""
        if not texts:
            return [] if self.several else self.default
        if self.several:
            if len(texts) > 100:
                raise ProblemError(400, f"{self.name}: at most 100 times")
            return [self._one(each) for each in texts]
        if len(texts) > 1:
            raise ProblemError(400, f"{self.name}: once is enough")
        return self._one(texts[0])

    def _one(self, text: str) -> Any:
        if self.choices and text not in self.choices:
            raise ProblemError(400, f"{self.name}: '{text[:60]}' is none of {', '.join(self.choices)}")
        if self.kind == "integer":
            if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not self.least <= int(text) <= self.most:
                raise ProblemError(400, f"{self.name}: '{text[:60]}' is no number from {self.least} to {self.most}")
            return int(text)
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise ProblemError(400, f"{self.name}: '{text[:60]}' is neither true nor false")
            return text == "true"
        if len(text) > self.longest:
            raise ProblemError(400, f"{self.name}: at most {self.longest} characters")
        return text


@dataclass(frozen=True)
class Answer:
    """What a status comes with: media types, each with its schema (None for what JSON Schema cannot say)."""

    told: str
    content: Mapping[str, dict[str, Any] | None] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """One operation.  `body` is what JSON it takes; `form` a form in its place or beside it, as a schema.

    `problems` are the statuses beside those that any route has.  A page is for people and in no document.
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    name: str
    told: str
    handler: Handler
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: type[msgspec.Struct] | None = None
    form: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    page: bool = False

    def asked(self, request: Request) -> dict[str, Any]:
        """The parameters of a request.  Raises ProblemError where one is not as the table has it."""
        known = {each.name for each in self.parameters if each.where == "query"}
        if unknown := sorted(set(request.query_params) - known):
            there = f"; there are {', '.join(sorted(known))}" if known else ""
            raise ProblemError(400, f"no parameter '{unknown[0][:60]}' here{there}")
        return {
            each.name: each.value(
                [request.path_params[each.name]] if each.where == "path" else request.query_params.getlist(each.name)
            )
            for each in self.parameters
        }
