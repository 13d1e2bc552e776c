"""The OpenAPI 3.1 document, generated from the routes and the schemas of answers (docs/schema)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

import crystalperf
from crystalperf.query.text.as_json import schemas
from crystalperf.service import problems
from crystalperf.service.routes import ALWAYS, Answer, Parameter, Route


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The document."""
    known = list(routes)
    paths: dict[str, dict[str, Any]] = {}
    for each in known:
        if not each.page:
            paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    bodies = [each.body for each in known if each.body is not None]
    _, structs = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CrystalPerf",
            "version": crystalperf.__version__,
            "description": "Analyze where a dataflow job's time went, and predict its runtime with other resources."
            "  The answers are those of the command line with --json.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {"problem": problems.SCHEMA, **_answers(), **structs, **_rows()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def reference(name: str) -> dict[str, Any]:
    """A reference to one of the document's schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.description,
        "responses": {str(status): _response(answer) for status, answer in sorted(route.answers.items())}
        | {str(status): _problem(status) for status in sorted({*ALWAYS, *route.problems})},
    }
    if route.parameters:
        found["parameters"] = [_parameter(each) for each in route.parameters]
    content: dict[str, Any] = {kind: {"schema": schema} for kind, schema in route.form.items()}
    if route.body is not None:
        content["application/json"] = {"schema": reference(route.body.__name__)}
    if content:
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameter(parameter: Parameter) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": parameter.name,
        "in": parameter.where,
        "description": parameter.description,
        "required": parameter.where == "path",
        "schema": parameter.schema(),
    }
    if parameter.several:
        found |= {"style": "form", "explode": True}
    return found


def _response(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = {"description": answer.description}
    if answer.content:
        found["content"] = {
            kind: {} if schema is None else {"schema": schema} for kind, schema in answer.content.items()
        }
    if answer.headers:
        found["headers"] = {
            name: {"description": description, "schema": {"type": "string"}}
            for name, description in answer.headers.items()
        }
    return found


def _problem(status: int) -> dict[str, Any]:
    headers = {"Retry-After": "seconds to wait"} if status in (429, 503) else {}
    answer = Answer(HTTPStatus(status).phrase, {problems.MEDIA_TYPE: reference("problem")}, headers)
    return _response(answer)


def _answers() -> dict[str, Any]:
    """The schemas of docs/schema as components; definitions inside a schema become components too.

    If two schemas define a name differently, the component of the second one is named after its schema, too.
    """
    found: dict[str, Any] = {}
    first: dict[str, Any] = {}
    for kind, schema in schemas().items():
        parts = schema.get("$defs", {})
        names = {
            name: name if first.setdefault(name, part) == part else f"{kind}-{name}" for name, part in parts.items()
        }
        plain = {key: value for key, value in schema.items() if key not in ("$schema", "$defs")}
        found[kind] = _moved(plain, names)
        found |= {names[name]: _moved(part, names) for name, part in parts.items()}
    return found


def _moved(schema: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references are to components, by the names that its definitions have there."""
    if isinstance(schema, dict):
        return {
            key: f"#/components/schemas/{names[value.removeprefix('#/$defs/')]}"
            if key == "$ref" and value.startswith("#/$defs/")
            else _moved(value, names)
            for key, value in schema.items()
        }
    return [_moved(each, names) for each in schema] if isinstance(schema, list) else schema


def _rows() -> dict[str, Any]:
    from crystalperf.service.catalog import Row
    from crystalperf.service.jobs import Job

    found: dict[str, Any] = {}
    _, components = msgspec.json.schema_components([Row, Job], ref_template="#/components/schemas/{name}")
    for name, schema in components.items():
        for each in schema.get("properties", {}).values():
            each.pop("default", None)
        if "properties" in schema:  # all fields are always present
            schema["required"] = list(schema["properties"])
        found[name] = schema
    return found
