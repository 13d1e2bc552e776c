"""Which functions' labels decide the attribution of sampled stacks, and how much of that time two readers confirm.

    python -m lab.score.deciding list [FOLDER…] -o functions.jsonl [--batch batch.md]
    python -m lab.score.deciding keep --functions functions.jsonl --a a.tsv --b b.tsv [--agreed c.tsv]
    python -m lab.score.deciding score

A label decides the time of a task's sample if its function is the attributed one, and neither the thread's state nor a
call nearer the leaf decides (query/sql/attributed_frames.sql, query.execution.evidence).  Functions of reserved files
count with their time only: nobody reads them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crystalperf.indexer.labels.agreement import cohen_kappa
from crystalperf.indexer.labels.tables import CLASSES
from crystalperf.indexes import exports, resources, store
from crystalperf.indexes.errors import InputError, report_errors
from lab.pages import head
from lab.pages import row as cells
from lab.score.deciders import Decider, collect, recorded_runs, totals, with_texts

RECORDINGS = Path("lab/recordings")

TABLE = Path("lab/score/deciding.tsv")
"""The committed readings; they have no source text."""

_LINES = 120
_FORMAT = "number of the function in the file, label, sureness (1 to 3), separated by tabs"
_SURE = (1, 2, 3)
_DRAWS, _SEED = 10_000, 20210714
_WORST = 10

Reading = tuple[str, int]
"""A reader's label of a function, and how sure: 1 a guess, 2 likely, 3 certain."""


@dataclass(frozen=True)
class Row:
    """A function whose label decides time, with its readings: a row of deciding.tsv.

    Attributes:
        text_hash: of its source lines (indexer.labels.functions.text_hash); empty if nobody may read it.
        ms: the task time that its label decides.
        sure_a: as in Reading; 0 if nobody read it, and then the readers' labels are empty.
        label: the label of both readers, or that of a third reading where they differ; else empty.
    """

    index: str
    file: str
    first_line: int
    qualified_name: str
    text_hash: str
    ms: float
    reader_a: str = ""
    sure_a: int = 0
    reader_b: str = ""
    sure_b: int = 0
    label: str = ""


@dataclass(frozen=True)
class Scored:
    """A row, and the label that the index has now; empty if it has no such function."""

    row: Row
    indexed: str

    @property
    def counts(self) -> bool:
        """Whether the accuracy counts it: an index never has the label `wait`."""
        return self.row.label not in ("", "wait") and self.indexed != ""

    @property
    def is_right(self) -> bool:
        """Whether the label is the readers'."""
        return self.row.label == self.indexed


def chosen(found: Sequence[Decider], cover: float, most: int) -> list[Decider]:
    """The first functions to read: the readable ones whose labels decide this share of the readable time together."""
    whole = totals(found)["readable_ms"]
    picked: list[Decider] = []
    for each in found:
        if not each.readable or each.ms <= 0 or len(picked) == most:
            break
        if sum(its.ms for its in picked) >= cover * whole:
            break
        picked.append(each)
    return picked


def batch(functions: Sequence[Decider]) -> str:
    """A reading file: number, name, documentation and code of each function, without labels and stacks."""
    parts = []
    for number, each in enumerate(functions):
        lines = each.code.split("\n")
        cut = [f"… {len(lines) - _LINES} more lines"] if len(lines) > _LINES else []
        code = "\n".join([*lines[:_LINES], *cut])
        parts.append(f"## {number} {each.qualified_name}\n\n{each.file}\n\n{each.doc}\n\n~~~~\n{code}\n~~~~\n")
    return "\n".join(parts)


def write_functions(path: Path, found: Sequence[Decider]) -> None:
    """Write one JSON object per function."""
    lines = (json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in found)
    path.write_text("".join(lines), encoding="utf-8")


def read_functions(path: Path) -> list[Decider]:
    """Read the file of write_functions.  Raises InputError."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]
        return [Decider(**{**row, "vector": tuple(row["vector"]), "example": tuple(row["example"])}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is not a file of `python -m lab.score.deciding list`: {error}") from error


def read_readings(path: Path) -> dict[int, Reading]:
    """A reader's labels by number: NUMBER, label and sureness of a function in each line.  Raises InputError."""
    found: dict[int, Reading] = {}
    for place, line in _lines(path):
        number, label, sure = (*line.split("\t"), "", "", "")[:3]
        if not number.isdecimal() or label not in CLASSES or sure not in map(str, _SURE) or line.count("\t") != 2:
            raise InputError(f"{path}, line {place}: not NUMBER, one of {', '.join(CLASSES)}, and 1, 2 or 3: {line!r}")
        if int(number) in found:
            raise InputError(f"{path}, line {place}: function {number} is labelled twice")
        found[int(number)] = label, int(sure)
    return found


def _lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a text file that are not empty, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def joined(
    functions: Sequence[Decider],
    first: Mapping[int, Reading],
    second: Mapping[int, Reading],
    agreed: Mapping[int, Reading],
) -> list[Row]:
    """The rows of the functions whose label decides time; readings are by position.  Raises InputError."""
    if first.keys() != second.keys():
        raise InputError(f"only one reader labelled the functions {_some(first.keys() ^ second.keys())}")
    differ = {number for number in first if first[number][0] != second[number][0]}
    if agreed.keys() - differ:
        raise InputError(f"the readers agree on, or did not read, the functions {_some(agreed.keys() - differ)}")
    hidden = {each for each in first if each >= len(functions) or not functions[each].readable}
    if hidden:
        raise InputError(f"there is no text to read of the functions {_some(hidden)}")
    found = []
    for number, each in enumerate(functions):
        place = (each.index, each.file, each.first_line, each.qualified_name, each.text_hash, each.ms)
        if number in first:
            label = agreed.get(number, ("", 0))[0] if number in differ else first[number][0]
            found.append(Row(*place, *first[number], *second[number], label))
        elif each.ms > 0:
            found.append(Row(*place))
    return found


def _some(numbers: Iterable[int]) -> str:
    listed = sorted(numbers)
    return ", ".join(map(str, listed[:5])) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a table of readings."""
    lines = [[each.name for each in fields(Row)], *([str(cell) for cell in astuple(row)] for row in rows)]
    path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Read a table of write_rows.  Raises InputError, which names the invalid line."""
    heading, *lines = _lines(path) or [(1, "")]
    if heading[1].split("\t") != [each.name for each in fields(Row)]:
        raise InputError(f"{path} is not a table of readings: its first line is {heading[1][:60]!r}")
    convert: Mapping[str, Callable[[str], object]] = {"int": int, "float": float, "str": str}
    found = []
    for number, line in lines:
        try:
            pairs = zip(fields(Row), line.split("\t"), strict=True)
            found.append(Row(*(convert[str(each.type)](cell) for each, cell in pairs)))  # type: ignore[arg-type]
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    return found


def looked_up(rows: Sequence[Row]) -> list[Scored]:
    """The rows with the labels of today's indexes; of functions with the same name, the one nearest in the file.

    Raises IndexFileError for an index that does not exist.
    """
    found = []
    for index_name in dict.fromkeys(row.index for row in rows):
        its = [row for row in rows if row.index == index_name]
        with store.open_read_only(exports.locate(index_name), "index") as connection:
            known = connection.execute(
                f"""
                SELECT file, qualified_name, first_line, [{", ".join(resources())}]
                FROM functions WHERE list_contains(?::VARCHAR[], file)
                """,
                [list({row.file for row in its})],
            ).fetchall()
        places: dict[tuple[str, str], list[tuple[int, list[float]]]] = {}
        for file, name, line, vector in known:
            places.setdefault((file, name), []).append((line, vector))
        for row in its:
            same = places.get((row.file, row.qualified_name), [])
            _, vector = min(same, key=lambda one: abs(one[0] - row.first_line), default=(0, []))
            found.append(Scored(row, resources()[vector.index(max(vector))] if vector else ""))
    return found


def group_of(index_name: str) -> str:
    """The row of the report that an index belongs to."""
    name = exports.split_name(index_name)[0]
    if name in ("pyspark", "python", "torch", "tensorflow"):
        return "Python and training"
    return {"spark": "Spark", "flink": "Flink"}.get(name, "libraries")


def report(scored: Sequence[Scored]) -> str:
    """Accuracy of labels and agreement of readers by group, and the costliest mistakes, as Markdown."""
    lines = head(
        "functions of | >decide | >read | >their share of time, % | >right by time, % | >right by function, %"
        " | >readers agree by time, % | >κ | >`wait` | >undecided | >not in the index"
    )
    for name in ("all", "Spark", "Flink", "Python and training", "libraries"):
        its = [each for each in scored if name in ("all", group_of(each.row.index))]
        lines.append(cells(name, *_figures(its)))
    wrong = sorted((each for each in scored if each.counts and not each.is_right), key=lambda each: -each.row.ms)
    lines += ["", *head("costliest mistakes | >s | index | readers")]
    for each in wrong[:_WORST]:
        lines.append(cells(f"`{each.row.qualified_name}`", f"{each.row.ms / 1e3:.1f}", each.indexed, each.row.label))
    return "\n".join(lines)


def _figures(its: Sequence[Scored]) -> list[str]:
    """The cells of one group; the last three are numbers of functions, with their % of the time that was read."""
    read = [each for each in its if each.row.reader_a]
    agree = [each for each in read if each.row.reader_a == each.row.reader_b]
    counted = [each for each in its if each.counts]
    kappa = cohen_kappa([(each.row.reader_a, each.row.reader_b) for each in read])
    ms = np.array([each.row.ms for each in counted])
    right = np.array([each.is_right for each in counted], dtype=np.float64)
    return [
        str(len(its)),
        str(len(read)),
        _percent(_ms(read), _ms(its)),
        _interval(right, ms),
        _interval(right, np.ones(len(right))),
        _percent(_ms(agree), _ms(read)),
        "" if np.isnan(kappa) else f"{kappa:.2f}",
        *(
            f"{len(some)} ({_percent(_ms(some), _ms(read))})" if some else "0"
            for some in (
                [each for each in read if each.row.label == "wait"],
                [each for each in read if each.row.label == ""],
                [each for each in read if each.indexed == ""],
            )
        ),
    ]


def _interval(right: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> str:
    """The weighted share in % with its 95 % interval: functions drawn again with replacement."""
    if not len(right):
        return ""
    drawn = np.random.default_rng(_SEED).integers(len(right), size=(_DRAWS, len(right)))
    low, high = np.quantile((right * weight)[drawn].sum(axis=1) / weight[drawn].sum(axis=1), [0.025, 0.975])
    return f"{100 * (right * weight).sum() / weight.sum():.1f} ({100 * low:.0f}–{100 * high:.0f})"


def _ms(its: Iterable[Scored]) -> float:
    return sum(each.row.ms for each in its)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}" if whole else ""


def _keep(given: argparse.Namespace) -> None:
    agreed = read_readings(given.agreed) if given.agreed else {}
    rows = joined(read_functions(given.functions), read_readings(given.a), read_readings(given.b), agreed)
    write_rows(given.table, rows)


def _score(given: argparse.Namespace) -> None:
    print(report(looked_up(read_rows(given.table))))


def _list(given: argparse.Namespace) -> None:
    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    found = with_texts(collect(recorded_runs(given.folders or [RECORDINGS]), say), say)
    write_functions(given.output, found)
    to_read = chosen(found, given.cover, given.most)
    if given.batch:
        given.batch.write_text(batch(to_read), encoding="utf-8")
    sums = totals(found)
    say(" ".join(f"{name} {ms:.0f}" for name, ms in sums.items()))
    share = sum(each.ms for each in to_read) / (sums["label_ms"] or 1.0)
    say(f"{len(found)} functions; the first {len(to_read)} are to be read, {100 * share:.1f} % of label_ms")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab.score.deciding", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    listed = commands.add_parser("list", help="list the functions that decide")
    listed.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help=f"default {RECORDINGS}")
    listed.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="functions, as JSON lines")
    listed.add_argument("--batch", type=Path, metavar="FILE", help="also write the texts to read, as Markdown")
    listed.add_argument("--cover", type=float, default=0.995, help="share of the readable time to read (default 0.995)")
    listed.add_argument("--most", type=int, default=400, help="maximum functions to read (default 400)")
    kept = commands.add_parser("keep", help="write the table of readings")
    kept.add_argument("--functions", type=Path, required=True, metavar="FILE", help="the file that `list` wrote")
    for name, what in (("--a", "first"), ("--b", "second")):
        kept.add_argument(name, type=Path, required=True, metavar="FILE", help=f"the {what} reader's lines: {_FORMAT}")
    kept.add_argument("--agreed", type=Path, metavar="FILE", help="labels where they differ, in the same format")
    scored = commands.add_parser("score", help="compare the indexes with the readings")
    for each in (kept, scored):
        each.add_argument("--table", type=Path, default=TABLE, metavar="FILE", help=f"default {TABLE}")
    return parser


@report_errors
def main() -> None:
    """The command line."""
    given = _parser().parse_args()
    {"list": _list, "keep": _keep, "score": _score}[given.command](given)


if __name__ == "__main__":
    sys.exit(main())
