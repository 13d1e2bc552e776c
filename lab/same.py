"""Whether another version of CrystalPerf gives the same answers: every figure of debug and predict, over real runs.

    python -m lab.same collect before.json [INPUT…]      in a checkout of the one version
    python -m lab.same collect after.json [INPUT…]       in a checkout of the other
    python -m lab.same compare before.json after.json

`collect` asks each input what `analyze`, `debug` and `predict` say as JSON; by default the recordings in this
repository, and the public event logs where they lie beside the checkout.  `compare` lists what differs: figures, then
sentences, then fields that only one of the two has.  Where the layout of the JSON changed between the two versions,
RENAMED says what became of a field.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

from crystalperf.cli.answering import next_command
from crystalperf.cli.main import run
from crystalperf.cli.remedies import note_sentence, with_remedy
from crystalperf.indexes.errors import Remedy
from crystalperf.indexes.resources import resources
from crystalperf.query.answers.values import NextStep, Note

ROOT = Path(__file__).parent.parent
RECORDINGS = ROOT / "lab" / "recordings"
PUBLIC = ROOT.parent / "shared" / "real-inputs"

PREDICTIONS = (
    ("--set", "cores=2x", "--no-replan"),
    ("--set", "cores=0.5x"),
    ("--set", "executors=0.5x,3x"),
    ("--set", "cpu_speed=0.5x"),
    ("--set", "disk=0.25x", "--recorded", "disk=200MB/s"),
    ("--set", "network=0.25x,4x", "--recorded", "network=1Gbps"),
    ("--set", "memory=0.75x"),
    ("--set", "cores=2x", "--set", "network=2x", "--set", "cpu_speed=1.5x"),
)
"""What is asked of every run beside the questions of `analyze`."""

CLOSE = 1e-9
"""Relative difference of two numbers that counts as none."""

_ROUNDED = {"share": 1.5e-4, "shares": 1.5e-4, "ratio": 1.5e-6}
"""By the last word of a field: the difference that its rounding in JSON can make."""
_ROUNDED_TIME = 1.5e-3
_SHORT = 160

# What became of the fields of the version without frameworks (before) in the one with them (after) --------------------
#
# A path has [] for each place in a list.  The longest path that a field begins with decides; what is not there kept its
# name.

_DEBUG: Mapping[str, str] = {
    "samples/on_tasks": "samples/on_units",
    "samples/skipped/task": "samples/skipped/unit",
    "sql_executions": "scopes",
    "stages": "groups",
    "stages[]/sql_id": "groups[]/scope",
    "stages[]/tasks": "groups[]/units",
    "stages[]/task_ms": "groups[]/unit_ms",
    "stages[]/scheduler_delay_ms": "groups[]/queued_ms",
    "operators[]/sql_id": "operators[]/scope",
    "operators[]/stages": "operators[]/groups",
    "disagreements[]/stage": "disagreements[]/group",
    "other_ms/waiting for executors": "other_ms/no worker",
    "other_ms/no query running (the program itself)": "other_ms/no scope",
    "other_ms/driver (planning, submitting, collecting)": "other_ms/coordinator",
    "other_ms/no task running": "other_ms/no unit",
    "other_ms/starting and ending tasks": "other_ms/starting",
}
_KEPT = ("scope", "runtime_ms", "bottleneck", "resource_ms", "critical_path", "findings", "functions", "assumptions")
_IN_DEBUG = (*_KEPT, "samples", "operators", "disagreements", "other_ms", "unseen")
_IN_HEADER = ("app_id", "name", "framework", "framework_version", "duration_ms", "complete", "has_samples", "indexes")
_PREDICT: Mapping[str, str] = {"set": "setting", "stages": "groups"}

RENAMED: Mapping[str, Mapping[str, str]] = {
    "analyze": {
        **{name: f"debug/{name}" for name in _IN_DEBUG},
        **{old: f"debug/{new}" for old, new in _DEBUG.items()},
        **{name: f"header/{name}" for name in (*_IN_HEADER, "problems")},
        "executors": "header/workers",
        "slots_per_executor": "header/slots_per_worker",
        "what_if": "what_ifs",
        "what_if[]/set": "what_ifs[]/setting",
    },
    "debug": _DEBUG,
    "predict": _PREDICT,
    "sweep": {f"points[]/{old}": f"points[]/{new}" for old, new in _PREDICT.items()},
}
"""By kind of answer: path before → path after."""

_NEW_IN_DEBUG = (
    *("measure", "coordinator_ms", "vocabulary", "findings[]/rule", "functions[]/callee", "functions[]/callee_ms"),
    *("groups[]/median_bytes", "groups[]/most_bytes"),
)
_NEW_IN_HEADER = ("framework_title", "measure", "resources", "vocabulary")
_NEW_IN_PREDICTION = ("measure", "groups[]/name")

ADDED: Mapping[str, Sequence[str]] = {
    "analyze": (
        *("schema", "bottleneck", "replayed_ms", "replay_error_ratio", "best"),
        *(f"debug/{name}" for name in _NEW_IN_DEBUG),
        *(f"header/{name}" for name in _NEW_IN_HEADER),
    ),
    "debug": ("schema", *_NEW_IN_DEBUG),
    "predict": ("schema", *_NEW_IN_PREDICTION),
    "sweep": ("schema", "amounts", "knee", *(f"points[]/{name}" for name in _NEW_IN_PREDICTION)),
}
"""By kind of answer: paths that only after has, by intention."""

_TOLD_ONCE = (
    *("scope", "runtime_ms", "replayed_ms", "replay_error_ratio", "interval_shares", "groups", "assumptions"),
    "bound_ms",
)
"""Fields of a prediction that the version before told of a sweep's first point alone."""


def _scope_id(value: Any) -> Any:
    """The id of a query's scope."""
    return f"sql:{value}" if isinstance(value, int) else value


def _resource(value: Any) -> Any:
    """A resource, or `other`."""
    return value if value in resources() else "other"


def _stage_numbers(value: Any) -> Any:
    """Stages, without their attempts."""
    numbers = (each if isinstance(each, int) else int(re.split(r"[:.]", each)[1]) for each in value)
    return list(dict.fromkeys(numbers))


_BASES = {"SQL metrics": "plan metrics", "task metrics": "unit metrics"}

VALUES: Mapping[str, Callable[[Any], Any]] = {
    "scopes[]/id": _scope_id,
    "groups[]/scope": _scope_id,
    "operators[]/scope": _scope_id,
    "operators[]/basis": lambda value: _BASES.get(value, value),
    "operators[]/groups": _stage_numbers,  # attempts were not told
    "bottleneck": _resource,  # what it was besides a resource was not told
}
"""By path in a debug, as after has it: a value of either as both could tell it."""


# Collecting -------------------------------------------------------------------------------------------------------


def inputs() -> Iterator[Path]:
    """The recordings of this repository, then the public event logs."""
    yield RECORDINGS / "demo-q9"
    yield from sorted(path for path in (RECORDINGS / "gzip-text").iterdir() if path.is_dir())
    yield from sorted((RECORDINGS / "sweeps").glob("*/base-*"))
    for folder in sorted(each for each in (PUBLIC / "spark-eventlog").glob("*") if each.is_dir()):
        yield from sorted(folder.iterdir())


def collect(paths: Sequence[Path]) -> dict[str, Any]:
    """By input and question what was answered: JSON, or the sentence that says why not."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            kept = Path(folder) / "run.duckdb"
            kept.unlink(missing_ok=True)
            answers: dict[str, Any] = {}
            found[_name(path)] = answers
            answers["analyze"] = _asked("analyze", str(path), "-o", str(kept), "--json")
            if isinstance(answers["analyze"], str) and "--app" in answers["analyze"]:
                apps = [each.split()[0] for each in answers["analyze"].partition("--app: ")[2].split(", ")]
                for app in apps:
                    answers[f"analyze {app}"] = _asked(
                        "analyze", str(path), "-o", str(kept), "--json", "--app", str(app)
                    )
            if not kept.exists():
                continue
            for scope in ("0..10000", "sql:0", "sql:1", "job:0"):
                answers[f"debug {scope}"] = _asked("debug", str(kept), "--scope", scope, "--json")
            for question in PREDICTIONS:
                answers[" ".join(("predict", *question))] = _asked("predict", str(kept), *question, "--json")
            print(path, file=sys.stderr)
    return found


def _name(path: Path) -> str:
    return str(path.relative_to(PUBLIC if PUBLIC in path.parents else ROOT)) if path.is_absolute() else str(path)


def _asked(*arguments: str) -> Any:
    answer, refusal = StringIO(), StringIO()
    with redirect_stdout(answer), redirect_stderr(refusal):
        run(arguments)
    try:
        return json.loads(answer.getvalue())
    except ValueError:
        return refusal.getvalue().strip()


# Comparing --------------------------------------------------------------------------------------------------------

Place = tuple[str | int, ...]
"""Where in an answer a value stands: keys, and numbers in lists."""


@dataclass
class Differences:
    """Where two versions differ.  Sentences and fields that differ alike are counted, with the first place."""

    figures: list[str] = field(default_factory=list)
    sentences: Counter[tuple[str, str]] = field(default_factory=Counter)
    fields: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str], str] = field(default_factory=dict)

    def sentence(self, where: str, before: str, after: str) -> None:
        key = (_without_numbers(before), _without_numbers(after))
        self.sentences[key] += 1
        self.first.setdefault(key, f"{where}\n    before: {before or '(none)'}\n    after:  {after or '(none)'}")

    def field(self, where: str, path: str, which: str, value: Any) -> None:
        self.fields[path, which] += 1
        self.first.setdefault((path, which), f"{where}: {_short(value)}")

    def lines(self) -> list[str]:
        """The three lists."""
        return [
            f"figures: {len(self.figures)}",
            *(f"  {each}" for each in self.figures),
            f"sentences: {self.sentences.total()} of {len(self.sentences)} kinds",
            *(f"  {count} times, first {self.first[key]}" for key, count in self.sentences.most_common()),
            f"fields: {self.fields.total()} of {len(self.fields)} kinds",
            *(
                f"  {path} only {which}: {count} times, first {self.first[path, which]}"
                for (path, which), count in self.fields.most_common()
            ),
        ]

    def __bool__(self) -> bool:
        return bool(self.figures or self.sentences or self.fields)


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Differences:
    """What two versions answered differently; inputs that only one was asked are left out."""
    found = Differences()
    for name in (each for each in before if each in after):
        for question in dict.fromkeys((*before[name], *after[name])):
            where, kind = f"{name}: {question}", question.split()[0]
            if question not in before[name] or question not in after[name]:
                which, answers = ("before", before) if question in before[name] else ("after", after)
                found.field(where, kind, which, answers[name][question])
            else:
                _compare_answers(where, kind, before[name][question], after[name][question], found)
    return found


def _compare_answers(where: str, kind: str, before: Any, after: Any, found: Differences) -> None:
    if isinstance(before, str) or isinstance(after, str):
        said = [each if isinstance(each, str) else f"an answer: {_short(each)}" for each in (before, after)]
        if _masked(said[0]) != _masked(said[1]):
            found.sentence(where, *said)
        return
    names, added, values = RENAMED, ADDED, VALUES
    if "schema" in before:  # both of today's layout
        before, names, added, values = _in_words(before), {}, {}, {}
    elif "sweep" in before:
        kind, before = "sweep", _as_points(before)
    old = {_renamed(place, names.get(kind, {})): value for place, value in _flat(before)}
    new = dict(_flat(_in_words(after)))
    for place in dict.fromkeys((*old, *new)):
        path = _path(place)
        if place not in old and (_longest(path, added.get(kind, ())) or (kind == "sweep" and _told_once(place))):
            continue
        both = values.get(path.removeprefix("debug/"), lambda value: value)
        one, other = (None if each.get(place) is None else both(each[place]) for each in (old, new))
        at = f"{where}: {_text(place)}"
        if (place in old and place in new) or isinstance(one or other, list):
            _compare_values(at, place, one, other, found)
        elif one is not None:
            found.field(at, f"{kind} {path}", "before", one)
        elif other is not None:
            found.field(at, f"{kind} {path}", "after", other)


def _compare_values(at: str, place: Place, before: Any, after: Any, found: Differences) -> None:
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and not _texts(before):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            _compare_values(f"{at}[{number}]", place, one, other, found)
    elif _texts(before) and _texts(after) and before != after:
        one, other = ([_masked(each) for each in _listed(value)] for value in (before, after))
        gone, come = [each for each in one if each not in other], [each for each in other if each not in one]
        for pair in zip_longest(gone, come, fillvalue=""):
            found.sentence(at, *pair)
        if one != other and not gone and not come:
            found.sentence(at, " | ".join(one), " | ".join(other))
    elif not (_number(before) and _number(after)):
        if before != after:
            found.figures.append(f"{at}: {_short(before)} before, {_short(after)} after")
    elif abs(before - after) > max(_rounding(place), CLOSE * max(abs(before), abs(after))):
        found.figures.append(f"{at}: {before} before, {after} after")


def _flat(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value of an answer that is no object, by its place; a list of values is one of them."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, (*place, key))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for number, each in enumerate(value):
            yield from _flat(each, (*place, number))
    elif value != []:  # a list of nothing says as much as none
        yield place, value


def _renamed(place: Place, names: Mapping[str, str]) -> Place:
    """Where a value of before stands after."""
    known = _longest(_path(place), names)
    if known is None:
        return place
    numbers = iter([each for each in place if isinstance(each, int)])
    rest = place[len(_keys(known)) :]
    return (*(next(numbers) if each == "[]" else each for each in _keys(names[known])), *rest)


def _path(place: Place) -> str:
    """A place with [] for the numbers: stages[]/id."""
    return "/".join("[]" if isinstance(each, int) else each for each in place).replace("/[]", "[]")


def _keys(path: str) -> list[str]:
    return path.replace("[]", "/[]").split("/")


def _longest(path: str, paths: Iterable[str]) -> str | None:
    """The longest of these paths that a path begins with."""
    begun = [each for each in paths if _keys(path)[: len(_keys(each))] == _keys(each)]
    return max(begun, key=len, default=None)


def _text(place: Place) -> str:
    return "/".join(map(str, place))


def _as_points(sweep: Mapping[str, Any]) -> dict[str, Any]:
    """A sweep of before as a list of points: the first was told in full, of the others the runtimes alone."""
    first, *others = sweep["sweep"]
    return {"points": [{**{key: value for key, value in sweep.items() if key != "sweep"}, **first}, *others]}


def _told_once(place: Place) -> bool:
    """Whether a value is one that before told of a sweep's first point alone."""
    return len(place) > 2 and place[0] == "points" and place[1] != 0 and place[2] in _TOLD_ONCE


def _in_words(answer: Any) -> Any:
    """An answer with its remedies and its next step as the terminal says them, as they stood in the JSON of before."""
    if isinstance(answer, list):
        return [_in_words(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    told = {key: _in_words(value) for key, value in answer.items() if key != "remedy"}
    if answer.get("refused"):
        *reasons, last = (each["text"] if isinstance(each, Mapping) else each for each in answer["refused"])
        told["refused"] = [*reasons, with_remedy(last, _remedy(answer.get("remedy")))]
    if "unseen" in answer:
        told["unseen"] = [note_sentence(Note(each["what"], _remedy(each["remedy"]))) for each in answer["unseen"]]
    if "next" in answer:
        told["next"] = next_command(NextStep(**answer["next"]), Path(answer["run"]))
    return told


def _remedy(told: Mapping[str, Any] | None) -> Remedy | None:
    return None if told is None else Remedy(told["kind"], told["facts"])


def _masked(text: str) -> str:
    """A sentence without what differs from one collection to the next: where run files and inputs lay."""
    text = re.sub(r"(?<![\w.])/[^\s:`]*run\.duckdb", "RUN", text)
    return re.sub(r"(?<![\w.])/[^\s:`]*/(?=(?:spark-eventlog|lab/recordings)/)", "", text)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "0", _masked(text))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _texts(value: Any) -> bool:
    return all(isinstance(each, str) for each in _listed(value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounding(place: Place) -> float:
    """The difference that the rounding of a field can make."""
    words = (each.rpartition("_")[2] for each in place if isinstance(each, str))
    return next((_ROUNDED[word] for word in words if word in _ROUNDED), _ROUNDED_TIME)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; `compare` exits with 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m lab.same", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("to", type=Path)
    collecting.add_argument("inputs", type=Path, nargs="*")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "collect":
        given.to.write_text(json.dumps(collect(given.inputs or list(inputs())), indent=1), encoding="utf-8")
        return 0
    found = compare(*(json.loads(path.read_text(encoding="utf-8")) for path in (given.before, given.after)))
    print("\n".join(found.lines()) if found else "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
