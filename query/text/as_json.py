"""Answers as JSON: the same shape for every interface, described by JSON Schemas.

    {"schema": "crystalperf.debug/2", "scope": "all", …}

An answer is an object with the fields of its value, by name and in order, and properties computed from them.  A value
of a kind has its key, its sentence and its fields; a finding has its own fields under `evidence`, and a recommendation
has its lines to paste.
`schema` is the kind of the answer, and a version, which changes if a field changes its meaning or is removed.
Times have three decimals, shares four, ratios six.

    python -m crystalperf.query.text.as_json --write docs/schema     the schemas, one file per kind
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from crystalperf.indexes.resources import Resource
from crystalperf.query.advise.verdict import knee_of
from crystalperf.query.results.advice import Advice as FindingAdvice
from crystalperf.query.results.answers import (
    Advice,
    Choice,
    Debug,
    Failure,
    Header,
    OperatorTime,
    Prediction,
    Predictions,
    Profiled,
    StageFacts,
    Sweep,
    Verdict,
)
from crystalperf.query.results.assumptions import Assumption
from crystalperf.query.results.comparison import Comparison, NotCompared, Part, PredictedChange
from crystalperf.query.results.comparison_page import ComparisonPage
from crystalperf.query.results.findings import Finding
from crystalperf.query.results.flame_difference import FunctionChange
from crystalperf.query.results.gate import Gate
from crystalperf.query.results.kinds import Basis, Kind
from crystalperf.query.results.ledger import Followed, Ledger, Match
from crystalperf.query.results.missing import Missing
from crystalperf.query.results.not_recorded import NotRecorded
from crystalperf.query.results.page import PageData
from crystalperf.query.results.recommendations import Recommendation
from crystalperf.query.results.refusals import Refusal
from crystalperf.query.results.remarks import Remark
from crystalperf.query.results.tuning import NotTuned, TunedSetting, Tuning
from crystalperf.query.results.words import Words
from crystalperf.query.text.findings import advice_text
from crystalperf.query.text.sentences import lines_of, text_of
from crystalperf.query.text.tuning import fragment

Answer = (
    Debug
    | Prediction
    | Predictions
    | Sweep
    | Advice
    | Choice
    | Verdict
    | Header
    | Profiled
    | Failure
    | PageData
    | Comparison
    | ComparisonPage
    | Gate
    | Tuning
    | Ledger
)

KINDS: Mapping[type, str] = {
    Debug: "debug",
    Prediction: "prediction",
    Predictions: "predictions",
    Sweep: "sweep",
    Advice: "advice",
    Choice: "choice",
    Verdict: "verdict",
    Header: "header",
    Profiled: "profile",
    Failure: "error",
    PageData: "page",
    Gate: "gate",
    Tuning: "tuning",
    Comparison: "comparison",
    ComparisonPage: "comparison-page",
    Ledger: "ledger",
}
"""The kind of an answer in its JSON, by its type."""

VERSION = 2


def _properties(answer: type, *names: str) -> dict[str, Callable[[Any], Any]]:
    return {name: getattr(answer, name).fget for name in names}


_COMPUTED: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    StageFacts: _properties(StageFacts, "waves", "skew_time", "skew_bytes"),
    OperatorTime: _properties(OperatorTime, "time_ms"),
    Prediction: _properties(Prediction, "replay_error_ratio"),
    Debug: _properties(Debug, "conclusive"),
    Verdict: _properties(Verdict, "replay_error_ratio"),
    Sweep: {"knee": knee_of},
    Choice: _properties(Choice, "cheapest", "likely"),
    Comparison: _properties(Comparison, "decided", "change_ms", "explained_share"),
    PredictedChange: _properties(PredictedChange, "error_ratio"),
    Match: _properties(Match, "error_ratio", "inside"),
    Followed: _properties(Followed, "saved_ms"),
    FunctionChange: _properties(FunctionChange, "change_ms", "beyond_noise"),
    Tuning: {"configuration": fragment},
}
"""Properties that are computed from an answer's fields and included in its JSON, by type."""

_TEXT = {"type": "string"}
_KEY = {"type": "string", "description": "the same key in every version"}
_SENTENCE = {"type": "string", "description": "the sentence for a reader; programs read the kind and the numbers"}
_WORDS = "#/$defs/Words"

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as JSON values: dicts, lists, strings, numbers, booleans and None."""
    plain: dict[str, Any] = _plain(answer, "", _words_of(answer))
    return {"schema": schema_name(type(answer)), **plain}


def schema_name(answer: type) -> str:
    """The `schema` of an answer's JSON: crystalperf.debug/2."""
    return f"crystalperf.{KINDS[answer]}/{VERSION}"


def _words_of(answer: Answer) -> Words:
    verdict = answer.verdict if isinstance(answer, PageData) else answer
    debug = verdict.debug if isinstance(verdict, Verdict) else verdict
    own = getattr(debug, "words", None)
    return own if isinstance(own, Words) else Words()


def _plain(value: Any, name: str, words: Words) -> Any:
    """A value as JSON values; `name` is its field, which sets rounding, `words` those of the enclosing answer."""
    if isinstance(value, Resource):  # constants of a model, not measurements: not rounded
        return msgspec.to_builtins(value)
    if isinstance(value, Finding):
        return _finding(value, words)
    if isinstance(value, Recommendation):
        return _recommendation(value, words)
    if isinstance(value, Kind):
        return {"kind": value.kind, "text": text_of(value, words), **_fields(value, words)}
    if is_dataclass(value):
        own = getattr(value, "words", None)
        words = own if isinstance(own, Words) else words
        found = {each.name: getattr(value, each.name) for each in fields(value)}
        found |= {key: compute(value) for key, compute in _COMPUTED.get(type(value), {}).items()}
        return {key: _plain(each, key, words) for key, each in found.items() if not isinstance(each, Words)}
    if isinstance(value, Mapping):
        return {key: _plain(each, name, words) for key, each in value.items()}
    if isinstance(value, list | tuple):
        kinds = set(map(type, value))
        if kinds == {int}:  # fast path: columns of a page have up to a hundred thousand rows
            return list(value)
        if kinds == {float}:
            decimals = _decimals(name)
            return [round(each, decimals) for each in value]
        return [_plain(each, name, words) for each in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    return round(float(value), _decimals(name))  # a float of Python or of numpy


def _finding(value: Finding, words: Words) -> dict[str, Any]:
    base = {each.name for each in fields(Finding)}
    own = _fields(value, words)
    advice = own["advice"] and {**own["advice"], "text": advice_text(value, words)}
    return {
        "kind": value.kind,
        "cost_ms": own["cost_ms"],
        "basis": value.basis,
        "text": text_of(value, words),
        "advice": advice,
        "evidence": {key: each for key, each in own.items() if key not in base},
    }


def _recommendation(value: Recommendation, words: Words) -> dict[str, Any]:
    base = {each.name for each in fields(Recommendation)}
    own = _fields(value, words)
    return {
        "kind": value.kind,
        "price": value.price,
        "text": text_of(value, words),
        "lines": list(lines_of(value, words)),
        "saving": own["saving"],
        "because": value.because,
        "settings": own["settings"],
        "cost": own["cost"],
        "call_site": value.call_site,
        **{key: each for key, each in own.items() if key not in base},
    }


def _fields(value: Kind, words: Words) -> dict[str, Any]:
    return {each.name: _plain(getattr(value, each.name), each.name, words) for each in fields(value)}


def _decimals(name: str) -> int:
    if name.endswith("_ratio"):
        return 6
    return 4 if name.endswith(("share", "shares")) else 3


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each kind of answer, by its kind."""
    return {kind: _schema(answer) for answer, kind in KINDS.items()}


def _schema(answer: type) -> dict[str, Any]:
    _, known = msgspec.json.schema_components((answer,), ref_template="#/$defs/{name}")
    computed = {each.__name__: found for each, found in _COMPUTED.items()}
    for name in list(known):
        for key, compute in computed.get(name, {}).items():
            hint = get_type_hints(compute)["return"]
            (shape,), more = msgspec.json.schema_components((hint,), ref_template="#/$defs/{name}")
            known[name]["properties"][key] = shape
            known |= {each: other for each, other in more.items() if each not in known}
    for name in known.keys() & {each.__name__ for each in (Assumption, Refusal, NotRecorded, NotTuned)}:
        known[name]["properties"] = {"kind": _TEXT, "text": _TEXT, **known[name]["properties"]}
        known[name]["additionalProperties"] = True  # fields of the kind, which may come from a plugin
    if "Finding" in known:
        known |= _of_kinds()
    if "Part" in known:
        known |= {each.__name__: _of_kind(each) for each in (Part, NotCompared)}
    known = _reachable(answer.__name__, {name: _wordless(shape) for name, shape in known.items()})
    for name in known.keys() & {each.__name__ for each in (Recommendation, TunedSetting)}:
        _recommend(known[name])
    for shape in known.values():  # all fields are always present, so none has a default
        if "description" in shape:
            shape["description"] = cleandoc(shape["description"])
        if "properties" in shape:
            for each in shape["properties"].values():
                each.pop("default", None)
            shape["required"] = list(shape["properties"])
    top = known.pop(answer.__name__)
    properties = {"schema": {"const": schema_name(answer)}, **top["properties"]}
    return {
        "$schema": _DIALECT,
        **top,
        "properties": properties,
        "required": list(properties),
        **({"$defs": dict(sorted(known.items()))} if known else {}),
    }


def _wordless(shape: dict[str, Any]) -> dict[str, Any]:
    """A shape without its `words`, which the JSON omits."""
    properties = {key: each for key, each in shape.get("properties", {}).items() if each.get("$ref") != _WORDS}
    return {**shape, "properties": properties} if "properties" in shape else shape


def _reachable(name: str, known: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """A shape and all shapes that it refers to, directly or indirectly."""
    found, left = dict[str, dict[str, Any]](), [name]
    while left:
        each = left.pop()
        if each not in found:
            found[each] = known[each]
            left += re.findall(r'"#/\$defs/(\w+)"', json.dumps(known[each]))
    return found


def _of_kinds() -> dict[str, dict[str, Any]]:
    """The shapes of values with kinds: the properties that all kinds have in common."""
    finding = {
        "title": "Finding",
        "description": Finding.__doc__,
        "type": "object",
        "properties": {
            "kind": _KEY,
            "cost_ms": {"type": "number"},
            "basis": {"enum": sorted(get_args(Basis))},
            "text": _SENTENCE,
            "advice": {"anyOf": [{"$ref": "#/$defs/Advice"}, {"type": "null"}]},
            "evidence": {
                "type": "object",
                "description": "names and numbers by kind, the unit in the name",
                "additionalProperties": True,
            },
        },
    }
    return {"Finding": finding, **{each.__name__: _of_kind(each) for each in (FindingAdvice, Missing, Remark)}}


def _of_kind(kind: type[Kind]) -> dict[str, Any]:
    """The shape of values of several kinds: the fields that all of them have."""
    _, known = msgspec.json.schema_components((kind,), ref_template="#/$defs/{name}")
    own = known[kind.__name__]["properties"]
    return {
        **known[kind.__name__],
        "properties": {"kind": _KEY, "text": _SENTENCE, **own},
        "additionalProperties": True,
    }


def _recommend(shape: dict[str, Any]) -> None:
    """Replace the shape of recommendations by their JSON: the common properties; each kind has more of its own."""
    fields_of, text = shape["properties"], {"type": "string"}
    shape["properties"] = {
        "kind": text,
        "price": fields_of["price"],
        "text": text,
        "lines": {"type": "array", "items": text},
        **{key: fields_of[key] for key in ("saving", "because", "settings", "cost", "call_site")},
    }
    shape |= {"description": _RECOMMENDATION, "additionalProperties": True}


_RECOMMENDATION = """A recommendation; the most important one comes first.  Each kind has additional fields.

kind      the key of the kind, the same in every version
price     what the change requires: an edit of the program (code), a setting, more or other machines (machine), somebody
          who finds the cause first (inspect), one more recorded run (record)
text      the sentence: what to change, with old and new value, in the user's terms
lines     lines to paste
saving    how much shorter the run gets, with its range and basis
because   its evidence: the kind of a finding, or the setting of a what-if
settings  the settings that it changes
cost      what more or other machines cost per run; null if it needs none, or if nothing is known
call_site  where in the user's program the work of its first stage was requested; null if the log has none
"""


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as the text of its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def schema_page() -> str:
    """A page that lists the schemas."""
    rows = []
    for kind, schema in schemas().items():
        name, summary = schema["properties"]["schema"]["const"], schema["description"].partition("\n")[0]
        rows.append(f"| `{name}` | {summary} | [{kind}.json]({kind}.json) |\n")
    return _PAGE + "".join(rows)


_PAGE = """# JSON schemas

Every command prints its answer as JSON with `--json`. The field `schema` of an answer names its kind and version. Here
is the JSON Schema of each kind; `python -m crystalperf.query.text.as_json --write docs/schema` writes this folder.

| field `schema` | answer | file |
|---|---|---|
"""


def main() -> None:
    """Write the JSON Schemas of all answers, one file per kind, and the page that lists them."""
    parser = argparse.ArgumentParser(description="write the JSON Schemas of all answers")
    parser.add_argument("--write", type=Path, required=True, metavar="FOLDER")
    folder: Path = parser.parse_args().write
    folder.mkdir(parents=True, exist_ok=True)
    for kind, schema in schemas().items():
        (folder / f"{kind}.json").write_text(schema_text(schema), encoding="utf-8")
    (folder / "README.md").write_text(schema_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
