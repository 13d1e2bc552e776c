"""Figures of the documentation: one data file a table in docs/figures, which pages include.

A file has the columns and rows of a table, and the command, date and commit that made it:

    python -m lab.figures docs/figures/flink.json --table 'measure | predicted by' -- \
        python -m lab.flink score -o lab/recordings/sweeps/flink --only odd

runs the command after `--`, takes the Markdown table whose heading begins so, and writes the file.  Pages refer to it
in two ways, which `python -m tests.test_lab_figures` fills:

    <!-- table flink -->                                           the table, up to <!-- end of flink -->
    <!-- table flink rows=CrystalPerf -->                          its rows that match a pattern
    <!-- = flink; latency_ms, CrystalPerf; worst % -->13<!-- -->   a cell: file, first cells of its row, column
    <!-- = flink; command -->`python -m …`<!-- -->                 its command; also `measured` and `commit`

A cell of a table may refer to other files: `{flink; latency_ms, CrystalPerf; worst %}`.  After `; mean` or `; sd` a
reference is that part of `4.0 ± 3.1`.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from lab.errors import LabError
from lab.pages import head, row

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
TABLE = re.compile(r"(<!-- table ([\w-]+)(?: rows=(\S+))? -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
FIGURE = re.compile(r"(<!-- = ([^>]+?) -->)(.*?)(<!-- -->)", re.DOTALL)
_REFERENCE = re.compile(r"\{([^{}]+)\}")
_CELL_END = re.compile(r"(?<!\\)\|")
_PARTS = {"mean": 0, "sd": 1}


@dataclass(frozen=True)
class Table:
    """A table and its origin.

    `measured` is a date, `commit` that of the product, and `command` prints the table.  `about` are patterns.  A
    sentence that all of them match states figures of this table's rows that match `stated`, in the form `number` (a
    pattern with a group; by default percentages).
    """

    measured: str
    commit: str
    command: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    about: tuple[str, ...] = ()
    stated: str = ""
    number: str = ""

    def numbers(self) -> set[float]:
        """All numbers of the rows that sentences may state."""
        rows = [", ".join(cells) for cells in self.rows]
        return {float(it) for each in rows if re.search(self.stated, each) for it in re.findall(r"\d+(?:\.\d+)?", each)}


def load(name: str, folder: Path = FOLDER) -> Table:
    """A table by name.  Raises LabError if there is no such file."""
    file = folder / f"{name}.json"
    if not file.is_file():
        raise LabError(f"{file}: no such file; a page includes it")
    found = json.loads(file.read_text(encoding="utf-8"))
    for key in ("columns", "about"):
        found[key] = tuple(found.get(key, ()))
    return Table(**(found | {"rows": tuple(map(tuple, found["rows"]))}))


def save(file: Path, table: Table) -> None:
    """Write a table, a row a line."""
    first = {
        "measured": table.measured,
        "commit": table.commit,
        "command": table.command,
        **{name: it for name in ("about", "stated", "number") if (it := getattr(table, name))},
        "columns": table.columns,
    }
    lines = [f" {json.dumps(name)}: {json.dumps(it, ensure_ascii=False)}," for name, it in first.items()]
    rows = ",\n".join(f"  {json.dumps(cells, ensure_ascii=False)}" for cells in table.rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["{", *lines, ' "rows": [', rows, " ]", "}", ""]), encoding="utf-8")


def look_up(reference: str, folder: Path = FOLDER) -> str:
    """The text of a reference.  Raises LabError unless there is exactly one such cell."""
    name, key, *rest = (each.strip() for each in reference.split(";"))
    table = load(name, folder)
    if not rest:
        origin = {"measured": table.measured, "commit": table.commit, "command": f"`{table.command}`"}
        if key not in origin:
            raise LabError(f"{reference!r} names no cell and none of {', '.join(origin)}")
        return origin[key]
    column, *part = rest
    titles = [each.removeprefix(">") for each in table.columns]
    found = [cells for cells in table.rows if key in {", ".join(cells[:n]) for n in range(1, len(cells))}]
    if len(found) != 1 or titles.count(column) != 1:
        raise LabError(f"{name}.json has {len(found)} rows {key!r} and {titles.count(column)} columns {column!r}")
    cell = resolved(found[0][titles.index(column)], folder)
    return cell.split(" ± ")[_PARTS[part[0]]] if part else cell


def resolved(cell: str, folder: Path = FOLDER) -> str:
    """A cell with its references replaced."""
    return _REFERENCE.sub(lambda match: look_up(match[1], folder), cell)


def rendered(table: Table, rows: str | None = None, folder: Path = FOLDER) -> list[str]:
    """A table as Markdown; `rows` is a pattern of those to include."""
    wanted = [cells for cells in table.rows if rows is None or re.search(rows, ", ".join(cells))]
    if not wanted:
        raise LabError(f"no row of {table.command!r} matches {rows!r}")
    return [*head(" | ".join(table.columns)), *(row(*(resolved(cell, folder) for cell in cells)) for cells in wanted)]


def filled(page: str, folder: Path = FOLDER) -> str:
    """A page's text with its tables and figures written again."""

    def table(match: re.Match[str]) -> str:
        lines = rendered(load(match[2], folder), match[3], folder)
        return "\n".join([match[1], *lines, "", match[4]])

    page = TABLE.sub(table, page)
    return FIGURE.sub(lambda match: match[1] + look_up(match[2], folder) + match[4], page)


def markdown_tables(text: str) -> Iterator[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    """The columns and rows of each Markdown table in a text."""
    for block in re.findall(r"(?:^ *\|.*\n?)+", text, re.MULTILINE):
        lines = [_cells(each) for each in block.splitlines()]
        if len(lines) > 1 and all(re.fullmatch(r":?-+:?", each) for each in lines[1]):
            titles = (f">{name}" if rule.endswith(":") else name for name, rule in zip(*lines[:2], strict=True))
            yield tuple(titles), tuple(lines[2:])


def _cells(line: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in _CELL_END.split(line.strip().removeprefix("|").removesuffix("|")))


def taken(output: str, heading: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The first table of an output whose heading begins so, without alignment.  Raises LabError if there is none."""
    for columns, rows in markdown_tables(output):
        if " | ".join(each.removeprefix(">") for each in columns).startswith(heading):
            return columns, rows
    raise LabError(f"the command prints no Markdown table whose heading begins with {heading!r}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and write its table; 0, or 1 with one sentence on stderr."""
    parser = argparse.ArgumentParser(prog="python -m lab.figures", description="write a table of a command's output")
    parser.add_argument("file", type=Path, metavar="FILE", help="docs/figures/NAME.json")
    parser.add_argument("--table", default="", metavar="HEADING", help="the start of the table's heading")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --: the command that measures")
    given = parser.parse_args(arguments)
    try:
        done = subprocess.run(given.command, stdout=subprocess.PIPE, text=True, check=True)
        columns, rows = taken(done.stdout, given.table)
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
        today = datetime.now(UTC).date().isoformat()
        table = Table(today, commit, shlex.join(given.command), columns, rows)
        if given.file.is_file():
            earlier = load(given.file.stem, given.file.parent)
            table = replace(table, about=earlier.about, stated=earlier.stated, number=earlier.number)
        save(given.file, table)
    except (LabError, OSError, subprocess.CalledProcessError) as error:
        print(f"python -m lab.figures: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
