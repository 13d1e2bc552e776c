"""The committed tables: labels by set, all readings, the final audit.  Tab-separated, with a heading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from crystalperf.indexes.errors import InputError

CLASSES = ("cpu", "disk", "net", "wait")
"""The labels.  `wait` is not a device: it is excluded from training and transparent when time is attributed."""

DRAWS = {"t": "1", "u": "2", "v": "3"}
"""The draw of a training label, by the first letter of its id; hard.py makes the third draw, sample.py the others."""

SETS = ("train", "dev-spark", "dev-flink", "dev-tensorflow")


@dataclass(frozen=True, slots=True)
class Label:
    """A labelled function: a row of train.tsv or of a development set."""

    id: str
    library: str
    version: str
    file: str  # relative to the library's folder
    first_line: int
    last_line: int
    qualified_name: str
    text_hash: str  # of those lines, see functions.text_hash
    label: str
    sure: int  # 1 a guess, 2 likely, 3 certain
    annotators: str  # one letter each, in alphabetical order; the third reading's comes after a slash
    weight: float = 1.0  # restores the framework's natural mix of a development set; mean 1 over all drawn functions
    stratum: str = ""  # of a development set: how it was drawn


@dataclass(frozen=True, slots=True)
class Reading:
    """One annotator's label of one function."""

    id: str
    annotator: str
    label: str
    sure: int
    kind: str  # independent; third: decides a disagreement; correction: from measurements
    set: str = "train"


@dataclass(frozen=True, slots=True)
class Audit:
    """A final check of a label by an annotator who had not labelled the function."""

    id: str
    label: str
    annotator: str
    reading: str


@dataclass(frozen=True, slots=True)
class Measured:
    """A function whose time was measured; none of them is in the training set.

    The shares are of the call's time without run-queue time, plus deferred writes; they sum to 1.
    """

    id: str
    library: str
    version: str
    file: str  # relative to the library's folder
    first_line: int
    last_line: int
    qualified_name: str
    text_hash: str
    label: str  # the largest share
    cpu: float
    disk: float
    net: float
    wait: float
    deferred: float  # the part of `disk` after the return: pages that the kernel wrote later
    wall_ms: float  # median of a run, which may call the function many times
    runs: int
    tool: str


Row = TypeVar("Row", Label, Reading, Audit, Measured)


def write_table(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Write a table; a training set omits the columns that only development sets have."""
    names = [each.name for each in fields(kind)]
    if kind is Label and path.stem == "train":
        names = names[:-2]
    lines = ["\t".join(names)]
    lines += ["\t".join(_text(getattr(row, name)) for name in names) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_table(path: Path, kind: type[Row]) -> list[Row]:
    """Read a table.  Raises InputError, which names the invalid line."""
    try:
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a table of labels: {error}") from error
    heading, types = lines[0].split("\t"), {each.name: str(each.type) for each in fields(kind)}
    if not heading or set(heading) - set(types) or heading[0] != "id":
        raise InputError(f"{path} is not a table of {kind.__name__.lower()}s: its first line is {lines[0][:60]!r}")
    return [_row(path, number, line, heading, types, kind) for number, line in enumerate(lines[1:], start=2)]


def committed(name: str) -> Path:
    """The path of a committed table, such as `committed("train")`."""
    return Path(str(files("crystalperf.indexer.labels").joinpath(f"{name}.tsv")))


def read_labels(set_name: str) -> list[Label]:
    """The committed labels of a set; empty if it has no labels yet."""
    path = committed(set_name)
    return read_table(path, Label) if path.is_file() else []


def _row(path: Path, number: int, line: str, heading: Sequence[str], types: dict[str, str], kind: type[Row]) -> Row:
    cells = line.split("\t")
    if len(cells) != len(heading):
        raise InputError(f"{path}, line {number}: {len(cells)} columns, but the heading has {len(heading)}")
    convert: dict[str, type[Any]] = {"int": int, "float": float, "str": str}
    try:
        return kind(**{name: convert[types[name]](cell) for name, cell in zip(heading, cells, strict=True)})
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}, line {number}: {error}") from error


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
