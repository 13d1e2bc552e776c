"""Experiment: do device APIs among the callees, as a rule or as features of the heads, improve a function's label?

    python -m crystalperf.indexer.baselines.callees hops --texts texts.jsonl --sources DIR --jars JARS [--main-way] \\
        -o hops.json
    python -m crystalperf.indexer.baselines.callees table --texts texts.jsonl --hops hops.json

JARS/LIBRARY holds the archives of that library, of the version that indexer/labels/libraries.toml has.  `hops` follows
typed calls (indexer.typed, indexer.pytyped) from each labelled function, at most three, to methods of
indexes/device_apis.toml.  With --main-way it skips calls that only an exception handler makes, and calls on the line of
a logger call.  `table` trains the linear heads on libraries, and the weight of the evidence on folds by library;
frameworks are only scored.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crystalperf.indexer.classfile import Call, Method
from crystalperf.indexer.evaluate import pooled_by_others, score
from crystalperf.indexer.evidence import FAR, MAX_WAYS
from crystalperf.indexer.examples import TRAIN, folds, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, Judged, judge, summed, train_heads
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.pyfacts import read_facts
from crystalperf.indexer.pytyped import Linked
from crystalperf.indexer.typed import Graph, read_jars
from crystalperf.indexer.vectors import Floats
from crystalperf.indexes.apis import device_api
from crystalperf.indexes.errors import report_errors
from crystalperf.indexes.resources import resources

_LOGGER = re.compile(r"(^|\.)(slf4j|log4j|logging)\.|\.(\w*Log(ger|ging)?\w*)\$?$|^java\.lang\.System\$Logger")
_LOGS = re.compile(r"(log\w*|trace|debug|info|warn|warning|error|exception|critical|fatal|severe|fine|finer|finest)")
"""Classes of loggers, and their methods."""

Hops = dict[str, int]
"""By resource the fewest calls to a device API; 1 if the function calls one directly."""

Calls = tuple[Sequence[str], Sequence[Hashable]]
"""Resources of the device APIs that a function calls, and the functions it calls."""

Ways = Callable[[Method], Iterable[tuple[int, Call]]]
"""The calls of a method that count, with their lines."""


def reached(start: Iterable[Calls], calls: Callable[[Any], Calls]) -> Hops:
    """The distances to device APIs, by breadth-first search."""
    found: Hops = {}
    seen: set[Hashable] = set()
    level = list(start)
    for hops in range(1, FAR + 1):
        below: list[Calls] = []
        for devices, functions in level:
            for each in devices:
                found.setdefault(each, hops)
            for function in functions:
                if function not in seen and hops < FAR:
                    seen.add(function)
                    below.append(calls(function))
        level = below
    return found


def main_way(method: Method) -> list[tuple[int, Call]]:
    """The calls of a method, with their lines, outside of exception handlers and logging statements."""
    logged = {line for line, call in method.calls if _LOGGER.search(call.owner) and _LOGS.fullmatch(call.name)}
    calls = enumerate(method.calls)
    return [(line, call) for at, (line, call) in calls if at not in method.handling and line not in logged]


def without_asides(text: bytes) -> bytes:
    """A Python file whose exception handlers and logging statements are replaced by `pass`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    asides = [each for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) for each in node.body]
    asides += [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and _is_logging(node.value)]
    lines = text.split(b"\n")
    for each in asides:
        first, last = each.lineno - 1, (each.end_lineno or each.lineno) - 1
        if lines[first][: each.col_offset].strip():
            continue  # after a colon or a semicolon
        lines[first : last + 1] = [b" " * each.col_offset + b"pass", *[b""] * (last - first)]
    changed = b"\n".join(lines)
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError):
        return text
    return changed


def _is_logging(value: ast.expr) -> bool:
    """Whether a call logs: log.info(…), self._logger.warning(…), logging.error(…)."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    receiver = ast.unparse(value.func.value).rpartition(".")[2].lower()
    return _LOGS.fullmatch(value.func.attr) is not None and receiver.strip("_").startswith("log")


def all_ways(method: Method) -> Iterable[tuple[int, Call]]:
    """All calls of a method, with their lines."""
    return method.calls


def of_class_files(graph: Graph, records: Iterable[Mapping[str, Any]], ways: Ways = all_ways) -> dict[str, Hops]:
    """Distances of labelled Java and Scala functions with class files; `ways` are the calls of a method to follow."""
    aside = {
        (call.owner, call.name, call.descriptor)
        for file in graph.classes.values()
        for method in file.methods
        for call in {call for _, call in method.calls} - {call for _, call in ways(method)}
        if call.kind == "lambda"
    }
    by_outermost = defaultdict(list)
    for name in graph.classes:
        by_outermost[name.split("$")[0]].append(name)
    known: dict[Hashable, Calls] = {}

    def means(call: Any) -> Calls:
        declared = graph.declaring(call)
        owner = declared if isinstance(declared, str) else declared[0] if declared else call.owner
        api = device_api(call.owner, call.name) or device_api(owner, call.name)
        if api is not None:
            return (api.resource,), ()
        if not isinstance(declared, tuple):
            return (), ()
        others = graph.overriding(call.owner, call.name, call.descriptor) if call.kind in _OPEN else []
        followed = [declared, *others] if len(others) <= MAX_WAYS else [declared]
        return (), [(name, method.name, method.descriptor) for name, method in followed]

    def joined(found: Iterable[Calls]) -> Calls:
        parts = list(found)
        return [each for part in parts for each in part[0]], [each for part in parts for each in part[1]]

    def calls(method: tuple[str, str, str]) -> Calls:
        if method not in known:
            each = graph.method(*method)
            known[method] = joined(means(call) for _, call in ways(each)) if each else ((), ())
        return known[method]

    found: dict[str, Hops] = {}
    for record in records:
        owner = ".".join(part for part in (record["package"], record["class_name"] or "") if part)
        outermost = owner if not record["class_name"] else f"{record['package']}.{record['class_name'].split('.')[0]}"
        body = record["qualified_name"].endswith(("<init>", "<clinit>"))
        meanings = [
            call
            for name in by_outermost.get(outermost.removeprefix("."), ())
            for method in graph.classes[name].methods
            if (not body or method.name in ("<init>", "<clinit>"))
            and (name, method.name, method.descriptor) not in aside
            for line, call in ways(method)
            if record["first_line"] <= line <= record["last_line"]
        ]
        if meanings:
            found[record["id"]] = reached([joined(map(means, meanings))], calls)
    return found


_OPEN = ("virtual", "interface", "lambda")


def of_python(linked: Linked, records: Iterable[Mapping[str, Any]]) -> dict[str, Hops]:
    """Distances of labelled Python functions."""
    written = defaultdict(list)
    for facts in linked.modules.values():
        for call in facts.calls:
            written[call.caller].append(call)

    def calls(function: str) -> Calls:
        devices, functions = [], []
        for call in written.get(function, ()):
            value = linked.value(call.steps)
            if value.kind == "class":
                value = linked.member(value._replace(kind="instance"), "__init__")
            if value.kind == "function":
                others = linked.overriding(value.name, value.of) if value.of else []
                functions += [value.name, *(others if len(others) <= MAX_WAYS else [])]
            owner, _, name = value.name.rpartition(".")
            api = device_api(owner, name) if value.kind in ("function", "outside") else None
            devices += [api.resource] if api is not None else []
        return devices, functions

    return {
        each["id"]: reached([calls(each["qualified_name"])], calls)
        for each in records
        if each["file"].removesuffix(".py").removesuffix("/__init__").replace("/", ".") in linked.modules
    }


def hops(texts: Path, sources: Path, jars: Path, only_main: bool) -> dict[str, Hops]:
    """Distances of all labelled functions with typed calls, by id; `only_main` skips handlers and logging."""
    by_library: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in texts.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        by_library[record["library"]].append(record)
    found: dict[str, Hops] = {}
    for library, records in sorted(by_library.items()):
        archives = sorted((jars / library).glob("*.jar"))
        if archives:
            graph = read_jars(archives, handling=only_main)
            found |= of_class_files(graph, records, main_way if only_main else all_ways)
        elif records[0]["language"] == "python":
            root = sources / library
            texts_of = ((each.relative_to(root).as_posix(), each.read_bytes()) for each in root.rglob("*.py"))
            read = (read_facts(without_asides(text) if only_main else text, file) for file, text in texts_of)
            found |= of_python(Linked.of(each for each in read if each), records)
        known = [found[each["id"]] for each in records if each["id"] in found]
        print(library, len(records), "known", len(known), "reach", sum(map(bool, known)), file=sys.stderr, flush=True)
    return found


# The table ----------------------------------------------------------------------------------------------------------


def features(found: Sequence[Hops | None]) -> Floats:
    """(n, 2 FAR + 2) indicators: the distance of disk and of net, that neither is near, that no calls are known."""
    rows = np.zeros((len(found), 2 * FAR + 2), np.float32)
    for row, each in zip(rows, found, strict=True):
        if not each:
            row[-1 if each is None else -2] = 1
        for resource, far in (each or {}).items():
            row[resources().index(resource) % 2 * FAR + far - 1] = 1
    return rows


def ruled(probabilities: Floats, found: Sequence[Hops | None], far: int) -> Floats:
    """The probabilities, replaced by certainty if exactly one device is nearest, within `far` calls."""
    changed = probabilities.copy()
    for row, each in zip(changed, found, strict=True):
        near = {resource: at for resource, at in (each or {}).items() if at <= far}
        nearest = [resource for resource, at in near.items() if at == min(near.values())]
        if len(nearest) == 1:
            row[:] = np.eye(len(resources()))[resources().index(nearest[0])]
    return changed


def table(texts: Path, found: Mapping[str, Hops]) -> None:
    """Accuracy and macro-F1 on the development sets, and the changes with a 95 % interval of a paired bootstrap."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    order = resources()
    ids = [each["id"] for each in map(json.loads, texts.open(encoding="utf-8")) if each["label"] in order]
    model = load(None)
    examples = read_examples(texts)
    data = with_sequence(prepare(examples, model.words, model.embedding, (CODE, DOC)), model.sequence, model.embedding)
    train, development = data.rows(TRAIN), data.rows(*data.development)
    apart = np.zeros((len(examples), len(order)), np.float32)
    for part in folds(data, train, 5, seed=0, by_library=True):
        apart[part] = summed(judge(train_heads(data, np.setdiff1d(train, part), data.labels), data, part))
    judged = judge(train_heads(data, train, data.labels), data, development, has_sequence=True)
    plain = pooled_by_others(data, judged, judged, data.labels)
    evidence = [found.get(each) for each in ids]
    seen = features(evidence)
    fitted = LogisticRegression(C=1.0, max_iter=1000).fit(np.hstack([apart, seen])[train], data.labels[train])
    of_logits, of_evidence = fitted.coef_[:, : len(order)], fitted.coef_[:, len(order) :]
    scale = float(np.mean(np.diag(of_logits)) - (of_logits.sum() - np.trace(of_logits)) / len(order) / 2)
    print("what evidence adds to the logits of", *order)
    names = [f"{resource} {far} away" for resource in ("net", "disk") for far in range(1, FAR + 1)]
    for at, name in enumerate([*names, "neither", "not known"]):
        count = seen[train, at].sum()
        print(f"  {name}: {count:.0f} functions,", *(f"{each:+.2f}" for each in of_evidence[:, at] / scale))
    added = (seen @ of_evidence.T / scale)[development].astype(np.float32)
    more = Judged(judged.rows, judged.code, judged.doc, judged.sequence + added)
    near = [evidence[row] for row in development]
    arms = {"shipped heads": plain, "with evidence": pooled_by_others(data, more, more, data.labels)}
    arms |= {f"rule: nearest within {far}": ruled(plain, near, far) for far in range(1, FAR + 1)}
    labels, weights = data.labels[development], data.weights[development]
    sets = np.array([examples[row].set for row in development])
    rng = np.random.default_rng(0)
    print("| development set | arm | accuracy % | change | macro-F1 % | change | natural: accuracy % | macro-F1 % |")
    print("|---" * 8 + "|")
    for name in ("all", *data.development):
        rows = np.flatnonzero((sets == name) | (name == "all"))
        draws = [rng.choice(rows, len(rows)) for _ in range(2000)]
        for arm, given in arms.items():
            as_drawn, natural = score(given[rows], labels[rows]), score(given[rows], labels[rows], weights[rows])
            changes = [
                [getattr(score(each[draw], labels[draw]), what) for what in ("accuracy", "macro_f1")]
                for draw in draws
                for each in (given, plain)
            ]
            change = 100 * (np.array(changes[::2]) - np.array(changes[1::2]))
            low, high = np.percentile(change, (2.5, 97.5), axis=0)
            print(
                f"| {name} | {arm} | {100 * as_drawn.accuracy:.1f} | {low[0]:+.1f} to {high[0]:+.1f}"
                f" | {100 * as_drawn.macro_f1:.1f} | {low[1]:+.1f} to {high[1]:+.1f}"
                f" | {100 * natural.accuracy:.1f} | {100 * natural.macro_f1:.1f} |"
            )


@report_errors
def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["hops", "table"])
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--sources", type=Path, help="of hops: what crystalperf.indexer.labels.fetch filled")
    parser.add_argument("--jars", type=Path, help="of hops: a folder of archives for each library")
    parser.add_argument("--main-way", action="store_true", help="of hops: without handlers of exceptions and log lines")
    parser.add_argument("--hops", type=Path, help="of table: what hops wrote")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    if given.what == "hops":
        given.output.write_text(
            json.dumps(hops(given.texts, given.sources, given.jars, given.main_way)), encoding="utf-8"
        )
    else:
        table(given.texts, json.loads(given.hops.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
