"""Experiment: do the labels of typed callees, as a rule or as features of the heads, improve a function's label?

    called="python -m crystalperf.indexer.baselines.called"
    $called collect --texts texts.jsonl measured.jsonl --sources DIR --jars JARS -o called.jsonl
    $called table --texts texts.jsonl --measured measured.jsonl --called called.jsonl

`collect` resolves the calls of each labelled or measured function as an index does (indexer.typed, indexer.pytyped),
and writes the callees' texts and the device APIs that they reach.  `table` classifies these callees with linear heads
trained on other libraries, and passes the results to the heads of the function.  JARS is as in
indexer.baselines.callees.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crystalperf.indexer.baselines.callees import MAX_WAYS, Calls, Hops, reached
from crystalperf.indexer.baselines.callees import features as hop_features
from crystalperf.indexer.classify import Head, PooledClassifier, softmax
from crystalperf.indexer.distil import heads_logits
from crystalperf.indexer.embed import Ids
from crystalperf.indexer.evaluate import judged_by, pooled_by_others, score, spread, without_some_files
from crystalperf.indexer.examples import TRAIN, Example, Labels, Prepared, folds, prepare, read_examples, with_sequence
from crystalperf.indexer.heads import CODE, DOC, Judged, judge, summed, train_heads
from crystalperf.indexer.labels.libraries import LANGUAGES, Library, libraries, source_files
from crystalperf.indexer.labels.reserve import FRAMEWORKS, is_reserved
from crystalperf.indexer.modelfile import load
from crystalperf.indexer.pytyped import Linked, python_calls
from crystalperf.indexer.records import Function, ParsedFile, starts
from crystalperf.indexer.typed import Known, Meaning, Sources, read_jars, typed_calls
from crystalperf.indexer.vectors import Floats, FunctionText
from crystalperf.indexer.workers import parse_files
from crystalperf.indexes.apis import device_api
from crystalperf.indexes.errors import report_errors
from crystalperf.indexes.resources import resources

MAX_CALLEES = 40
"""Maximum callees of a function that are classified: the first ones."""


# 1. Callees of the labelled functions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Callees:
    """The typed callees of a function, each once, in order of appearance."""

    devices: tuple[str, ...] = ()
    """Resources of the device APIs that the function calls directly."""
    functions: tuple[int, ...] = ()
    """Functions of the same source, by number."""
    outside: int = 0
    """Number of methods of other packages that are not device APIs."""
    unknown: int = 0


def callees_of(meanings: Sequence[Meaning]) -> Callees:
    """The meanings of one function's calls together."""
    devices: list[str] = []
    functions: dict[int, None] = {}
    outside: set[tuple[str, str]] = set()
    unknown: set[tuple[str, str]] = set()
    for each in meanings:
        api = device_api(each.owner, each.name) if each.status in ("function", "functions", "outside") else None
        if api is not None:
            devices.append(api.resource)
        elif each.targets:
            functions |= dict.fromkeys(each.targets[:1] if len(each.targets) > MAX_WAYS else each.targets)
        elif each.status == "outside":
            outside.add((each.owner, each.name))
        elif each.status in ("unknown", "nowhere", "no source"):
            unknown.add((each.owner, each.name))
    return Callees(tuple(devices), tuple(functions)[:MAX_CALLEES], len(outside), len(unknown))


@dataclass(frozen=True)
class Source:
    """A parsed library: its functions and their calls."""

    files: Sequence[ParsedFile]
    functions: Sequence[Function]
    known: Sequence[Known]
    """The same functions, by the same numbers."""
    calls: Mapping[int, Callees]


def read_source(library: Library, folder: Path, jars: Path) -> Source:
    """Parse a whole library and resolve its calls."""
    root = folder / library.name
    names = [path.relative_to(root).as_posix() for path in source_files(library, folder)]
    # Unlike an index, this reads no reserved files of a framework: callees there count as unknown.
    names = [name for name in names if library.name not in FRAMEWORKS or not is_reserved(name)]
    texts = ((name, LANGUAGES[name[name.rindex(".") :]], (root / name).read_bytes()) for name in names)
    files = list(parse_files(texts))
    functions = [each for file in files for each in file.functions]
    within = Sources.of(files)
    meanings: dict[int, list[Meaning]] = defaultdict(list)
    archives = sorted((jars / library.name).glob("*.jar"))
    found: Iterator[tuple[int, Meaning]] = iter(())
    if archives:
        found = typed_calls(read_jars(archives), within)
    elif library.language == "python":
        found = python_calls(Linked.of(each.facts for each in files if each.facts), functions)
    for caller, meaning in found:
        at: int | None = caller
        while at is not None:  # a lambda's calls also count for the enclosing function, as in its text
            meanings[at].append(meaning)
            function = within.functions[at]
            at = function.enclosing if function.kind == "lambda" else None
    return Source(files, functions, within.functions, {caller: callees_of(its) for caller, its in meanings.items()})


def collect(texts: Sequence[Path], sources: Path, jars: Path, out: Path) -> None:
    """Write called.jsonl: `{"id": …}` lines of labelled functions, `{"key": …}` lines of their callees."""
    by_library: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for path in texts:
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            record = json.loads(line)
            by_library[record["library"]].append(record)
    with out.open("w", encoding="utf-8") as opened:
        for library in libraries():
            records = by_library.get(library.name, [])
            has_types = library.language == "python" or any((jars / library.name).glob("*.jar"))
            if not records or not has_types:
                continue
            source = read_source(library, sources, jars)
            lines = list(_lines(library.name, source, records))
            opened.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in lines)
            known = [each for each in lines if "id" in each]
            print(
                library.name,
                len(records),
                "with calls",
                len(known),
                "call functions",
                sum(bool(each["callees"]) for each in known),
                "of them",
                len(lines) - len(known),
                file=sys.stderr,
                flush=True,
            )


def _lines(library: str, source: Source, records: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (each, at) in enumerate(zip(source.functions, source.known, strict=True)):
        places[at.file, each.qualified_name].append(number)
    names: dict[int, tuple[str, ...]] = defaultdict(tuple)
    for start, file in zip(starts(source.files), source.files, strict=True):
        for call in file.calls:
            names[start + call.caller] += (call.name,)

    def calls(number: Any) -> Calls:
        its = source.calls.get(number, Callees())
        return its.devices, its.functions

    def hops(number: int) -> Hops:
        return reached([calls(number)], calls)

    needed: dict[int, None] = {}
    for record in records:
        same = places.get((record["file"], record["qualified_name"]), ())
        if not same:
            continue
        number = min(same, key=lambda at: abs(source.functions[at].first_line - record["first_line"]))
        if number not in source.calls:
            continue
        its = source.calls[number]
        functions = [each for each in its.functions if each != number]
        needed |= dict.fromkeys(functions)
        yield {
            "id": record["id"],
            "hops": hops(number),
            "devices": its.devices,
            "callees": [f"{library} {each}" for each in functions],
            "outside": its.outside,
            "unknown": its.unknown,
        }
    languages = {each.file: each.language for each in source.files}
    for number in needed:
        each, place = source.functions[number], source.known[number].file
        yield {
            "key": f"{library} {number}",
            "library": library,
            "file": place,
            "language": languages[place],
            "qualified_name": each.qualified_name,
            "code": each.code,
            "doc": each.doc,
            "package": each.package,
            "class_name": each.class_name,
            "callees": names[number],
            "has_body": each.has_body,
            "hops": hops(number),
        }


# 2. Their labels as evidence ------------------------------------------------------------------------------------------

FEATURES = (
    *("largest disk", "largest net", "mean disk", "mean net", "namesake disk", "namesake net"),
    *("calls a disk API", "calls a net API", "callees", "outside", "unknown", "nothing is known"),
)
"""Features of a function, from its callees' probabilities; a namesake is a callee of the same name, or the only one."""

_MANY = np.float32(np.log(20))
_SURE = 0.9
_CLEAR = 0.1


@dataclass(frozen=True)
class Evidence:
    """The line of called.jsonl of each example (None without typed calls), and the called functions."""

    lines: Sequence[Mapping[str, Any] | None]
    keys: Mapping[str, int]
    functions: Sequence[FunctionText]
    libraries: Sequence[str]


def read_evidence(called: Path, ids: Sequence[str]) -> Evidence:
    """Read called.jsonl for the examples with these ids."""
    by_id: dict[str, Mapping[str, Any]] = {}
    keys: dict[str, int] = {}
    functions: list[FunctionText] = []
    of: list[str] = []
    for line in called.read_text(encoding="utf-8").split("\n")[:-1]:
        each = json.loads(line)
        if "id" in each:
            by_id[each["id"]] = each
        elif each["key"] not in keys:
            keys[each["key"]] = len(functions)
            names = ("code", "doc", "language", "qualified_name", "class_name", "package")
            text = {name: each[name] for name in names}
            functions.append(FunctionText(**text, callees=tuple(each["callees"])))
            of.append(each["library"])
    return Evidence([by_id.get(each) for each in ids], keys, functions, of)


def callee_features(evidence: Evidence, labels: Floats, examples: Sequence[Example]) -> Floats:
    """(n, FEATURES) features of the examples, from the (functions, k) probabilities of all callees."""
    disk, net = resources().index("disk"), resources().index("net")
    found = np.zeros((len(examples), len(FEATURES)), np.float32)
    for row, line, example in zip(found, evidence.lines, examples, strict=True):
        if line is None:
            row[-1] = 1
            continue
        numbers = [evidence.keys[each] for each in line["callees"]]
        theirs = labels[numbers][:, [disk, net]]
        name = simple_name(example.function.qualified_name)
        is_namesake = [simple_name(evidence.functions[each].qualified_name) == name for each in numbers]
        if numbers:
            row[0:2], row[2:4] = theirs.max(axis=0), theirs.mean(axis=0)
        if any(is_namesake) or len(numbers) == 1:
            row[4:6] = (theirs[np.array(is_namesake)] if any(is_namesake) else theirs).max(axis=0)
        row[6:8] = "disk" in line["devices"], "net" in line["devices"]
        row[8:11] = np.log1p([len(numbers), line["outside"], line["unknown"]]) / _MANY
        row[11] = not (numbers or line["devices"] or line["outside"])
    return found


def simple_name(qualified: str) -> str:
    """The last part of a qualified name."""
    return qualified.rpartition(".")[2]


def ruled(probabilities: Floats, evidence: Evidence, labels: Floats, rows: Ids) -> Floats:
    """The probabilities, replaced by certainty where the callees are clear.

    If one callee clearly uses a device and no callee clearly uses the other, the function gets that label.  A function
    whose callees are all known and use no device is labelled cpu.
    """
    order = resources()
    cpu, devices = order.index("cpu"), [order.index(each) for each in ("disk", "net")]
    changed = probabilities.copy()
    for row, at in zip(changed, rows, strict=True):
        line = evidence.lines[at]
        if line is None:
            continue
        theirs = labels[[evidence.keys[each] for each in line["callees"]]][:, devices]
        sure = {order[each] for column, each in enumerate(devices) if (theirs[:, column] > _SURE).any()}
        sure |= set(line["devices"])
        if len(sure) == 1:
            row[:] = np.eye(len(order))[order.index(sure.pop())]
        elif not sure and len(theirs) and not line["unknown"] and not line["outside"] and theirs.max() < _CLEAR:
            row[:] = np.eye(len(order))[cpu]
    return changed


@dataclass(frozen=True)
class Bench:
    """All examples of a table with the evidence of their callees."""

    data: Prepared
    model: PooledClassifier
    evidence: Evidence
    hops: Floats
    """(n, …) distances to device APIs, in calls (indexer.baselines.callees)."""

    def callee_labels(self, parts: Sequence[tuple[Ids, Heads]]) -> Floats:
        """(functions, k) probabilities of all callees, by linear heads that were not trained on their library.

        The last of `parts` has no rows; its heads classify the callees of libraries in no part, such as frameworks.
        """
        found = np.zeros((len(self.evidence.functions), len(resources())), np.float32)
        library = np.array(self.evidence.libraries)
        missing = np.ones(len(library), bool)
        for part, heads in parts:
            names = {self.data.examples[row].library for row in part}
            its = np.flatnonzero(np.isin(library, sorted(names)) if len(part) else missing)
            missing[its] = False
            callees = [self.evidence.functions[int(at)] for at in its]
            if callees:
                found[its] = softmax(heads_logits(heads, self.data.words, self.model.embedding, callees))
        return found

    def with_features(self, *features: Floats) -> Prepared:
        """The examples with these features appended to the embedding of the code head."""
        dense = np.concatenate([self.data.dense[CODE.texts], *features], axis=1).astype(np.float32)
        return replace(self.data, dense={**self.data.dense, CODE.texts: dense})


def table(texts: Sequence[Path], called: Path, hard: str, seeds: int, model: PooledClassifier) -> None:
    """Print the scores of every arm, trained without and with the functions whose ids begin with `hard`.

    Changes are against today's heads without these functions: 95 % of a paired bootstrap over the tested functions,
    in points of accuracy, for the first training.
    """
    order = resources()
    records = [json.loads(line) for path in texts for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    ids = [each["id"] for each in records if each["label"] in order]
    examples = [each for path in texts for each in read_examples(path, has_training=False)]
    data = with_sequence(prepare(examples, model.words, model.embedding, (CODE, DOC)), model.sequence, model.embedding)
    evidence = read_evidence(called, ids)
    hops = hop_features([None if line is None else line["hops"] for line in evidence.lines])
    bench = Bench(data, model, evidence, hops)
    is_hard = np.array([each.startswith(hard) for each in ids])
    runs = [{learned: _answers(bench, is_hard, learned, seed) for learned in (False, True)} for seed in range(seeds)]
    print("| tested on | arm |" + " accuracy % | change | macro-F1 % | Brier |" * 2)
    print("|---" * 10 + "|")
    for tested, (rows, weights) in _tests(data, is_hard).items():
        labels = data.labels[rows]
        rng = np.random.default_rng(0)
        draws = [rng.integers(0, len(rows), len(rows)) for _ in range(DRAWS)]
        before = runs[0][False][TODAY][rows].argmax(axis=1) == labels
        for arm in runs[0][False]:
            cells = [tested, arm]
            for learned in (False, True):
                found = [run[learned][arm][rows] for run in runs]
                scores = [score(each, labels, weights) for each in found]
                gained = (found[0].argmax(axis=1) == labels).astype(np.float32) - before
                share = np.ones(len(rows), np.float32) if weights is None else weights
                changes = [100 * np.average(gained[draw], weights=share[draw]) for draw in draws]
                low, high = np.percentile(changes, (2.5, 97.5))
                accuracy, macro_f1, _, brier = spread(scores).split(" | ")
                is_base = arm == TODAY and not learned
                cells += [accuracy, "" if is_base else f"{low:+.1f} to {high:+.1f}", macro_f1, brier]
            print(f"| {' | '.join(cells)} |", flush=True)


Heads = tuple[Head, Head]

TODAY = "today's heads"
DRAWS = 2000
"""Of the bootstrap."""


def _tests(data: Prepared, is_hard: NDArray[np.bool_]) -> dict[str, tuple[Ids, Floats | None]]:
    """The test sets, and the weights of their functions if these are not equal."""
    train, development = data.rows(TRAIN), data.rows(*data.development)
    found: dict[str, tuple[Ids, Floats | None]] = {
        "libraries left out": (train[~is_hard[train]], None),
        "libraries left out, hard functions": (train[is_hard[train]], None),
        "development sets": (development, None),
        "development sets, natural": (development, data.weights[development]),
    }
    for name in data.development:
        rows = data.rows(name)
        found |= {name: (rows, None), f"{name}, natural": (rows, data.weights[rows])}
    return {**found, "measured": (data.rows("measured"), None)}


def _answers(bench: Bench, is_hard: NDArray[np.bool_], learned: bool, seed: int) -> dict[str, Floats]:
    """(n, k) probabilities of all examples by every arm: of training functions by heads without their library.

    The sequence head answers for the others alone, which it has not seen.  `learned` says whether hard functions are
    trained on.  Each seed has other folds; from the second on the functions of a tenth of the files are left out.
    """
    data, labels = bench.data, bench.data.labels
    everything, development = data.rows(TRAIN), data.rows(*data.development)
    train = everything if learned else everything[~is_hard[everything]]
    parts = folds(data, everything, 5, seed, by_library=True)
    apart = [(part, train_heads(data, np.setdiff1d(train, part), labels)) for part in parts]
    whole = (np.zeros(0, np.int64), train_heads(data, train, labels))
    callees = bench.callee_labels([*apart, whole])
    seen = callee_features(bench.evidence, callees, data.examples)
    both = np.concatenate([seen, bench.hops], axis=1)
    some = _some_files(data, train, seed)
    others = (development, data.rows("measured"))

    def answers_of(its: Prepared, heads: Sequence[tuple[Ids, Heads]], more: Callable[[Judged, Ids], Judged]) -> Floats:
        """The answers of the heads of each part; the last heads classify all but training functions."""
        found = np.zeros((len(data.examples), len(resources())), np.float32)
        for part, its_heads in heads[:-1]:
            rows = np.setdiff1d(train, part)
            judged, tuning = (more(each, rows) for each in judged_by(its_heads, its, part))
            found[part] = pooled_by_others(its, judged, tuning, labels)
        for test in others:
            judged, tuning = (more(each, some) for each in judged_by(heads[-1][1], its, test, has_sequence=True))
            found[test] = pooled_by_others(its, judged, tuning, labels)
        return found

    def learn(its: Prepared) -> list[tuple[Ids, Heads]]:
        """Train heads for each part, and for the rest."""
        apart = [(part, train_heads(its, np.setdiff1d(train, part), labels)) for part in parts]
        return [*apart, (whole[0], train_heads(its, some, labels))]

    today = [*apart, (whole[0], train_heads(data, some, labels) if seed else whole[1])]
    answers = {TODAY: answers_of(data, today, lambda judged, _: judged)}
    answers["rule"] = ruled(answers[TODAY], bench.evidence, callees, np.arange(len(data.examples)))
    for arm, features in (("callees' devices", bench.hops), ("callees' labels", seen), ("both", both)):
        its = bench.with_features(features)
        answers[arm] = answers_of(its, learn(its), lambda judged, _: judged)
    logits = np.zeros((len(data.examples), len(resources())), np.float32)
    for part, heads in apart:
        logits[part] = summed(judge(heads, data, part))

    def with_both(judged: Judged, rows: Ids) -> Judged:
        more = both[judged.rows] @ added(logits, both, labels, rows)
        return replace(judged, sequence=np.asarray(judged.sequence + more, dtype=np.float32))

    answers["both, added to the logits"] = answers_of(data, today, with_both)
    return answers


def added(logits: Floats, features: Floats, labels: Labels, rows: Ids) -> Floats:
    """(features, k) contribution of each feature to the logits, fitted on `rows`, which the heads have not seen."""
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

    fitted = LogisticRegression(C=1.0, max_iter=1000).fit(np.hstack([logits, features])[rows], labels[rows])
    count = logits.shape[1]
    of_logits, of_features = fitted.coef_[:, :count], fitted.coef_[:, count:]
    # The pooling scales logits and contributions alike, so the contributions are brought to the scale of the logits.
    scale = float(np.mean(np.diag(of_logits)) - (of_logits.sum() - np.trace(of_logits)) / count / (count - 1))
    return np.asarray(of_features.T / scale, dtype=np.float32)


def _some_files(data: Prepared, train: Ids, seed: int) -> Ids:
    """All training functions the first time, then without those of a tenth of the files."""
    return without_some_files(data, train, seed) if seed else train


@report_errors
def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m crystalperf.indexer.baselines.called", description=(__doc__ or "").split("\n")[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("collect", help="whom each labelled function calls")
    one.add_argument("--texts", type=Path, nargs="+", required=True)
    one.add_argument(
        "--sources", type=Path, required=True, help="libraries that crystalperf.indexer.labels.fetch fetched"
    )
    one.add_argument("--jars", type=Path, required=True, help="a folder of archives for each library")
    one.add_argument("-o", "--output", type=Path, required=True)
    other = commands.add_parser("table", help="what evidence and hard functions are worth")
    other.add_argument("--texts", type=Path, nargs="+", required=True, help="labelled functions, then measured ones")
    other.add_argument("--called", type=Path, required=True, help="what `collect` wrote of them")
    other.add_argument("--hard", default="v", metavar="PREFIX", help="of the ids of hard functions")
    other.add_argument("--seeds", type=int, default=2)
    other.add_argument("--model", help="take the words and the sequence head of another model")
    arguments = parser.parse_args()
    if arguments.command == "table":
        torch.set_num_threads(1)  # on tasks this small, threads only wait for each other
        table(arguments.texts, arguments.called, arguments.hard, arguments.seeds, load(arguments.model))
        return
    collect(arguments.texts, arguments.sources, arguments.jars, arguments.output)


if __name__ == "__main__":
    sys.exit(main())
