"""The views and macros that ship with CrystalPerf for run files and indexes, a commented file each.

They are made on the connection, never read from a run file or index: a file with a view is refused (indexes.guard).
The file of a view begins as below, and its comments become COMMENT ON in the connection:

    -- The content of the view, in one line.
    --
    -- one row per function:
    --   label        the resource with the largest share
    SELECT …

The first word after the comments marks a view (SELECT, WITH) or a macro (MACRO name(parameters) AS TABLE …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from graphlib import TopologicalSorter
from importlib.resources import files
from importlib.resources.abc import Traversable

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex
from crystalperf.query.inputs.registry import package_of

_COLUMN = regex(r"^--   ([\w<>]+)\s{2,}(\S.*)$")
_WORD = regex(r"\w+")
_EACH = "<resource>"


@frozen
class View:
    """A view or a macro: the caller fills the {parts} of `query`; `columns` maps names to comments."""

    name: str
    comment: str
    columns: Mapping[str, str]
    query: str

    @property
    def is_macro(self) -> bool:
        return self.query.startswith("MACRO")

    @property
    def call(self) -> str:
        """The form to use in a statement: the name, for a macro with its parameters."""
        return self.query.removeprefix("MACRO ").partition(" AS TABLE")[0] if self.is_macro else self.name

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its query, which include the names of the tables and views that it reads."""
        return frozenset(_WORD.findall(self.query))

    def statements(self, parts: Mapping[str, str], resources: Sequence[str], *, commented: bool) -> list[str]:
        """The statements that make it on a connection, for these resources; with comments on columns if `commented`."""
        query = self.query.format_map(parts)
        if self.is_macro:
            return [f"CREATE OR REPLACE {query}", f"COMMENT ON MACRO TABLE {self.name} IS {quoted(self.comment)}"]
        made = [
            f"CREATE OR REPLACE VIEW {self.name} AS {query}",
            f"COMMENT ON VIEW {self.name} IS {quoted(self.comment)}",
        ]
        for name, comment in self.columns.items() if commented else ():
            for each in resources if _EACH in name else [""]:
                text = quoted(comment.replace(_EACH, each))
                made.append(f"COMMENT ON COLUMN {self.name}.{name.replace(_EACH, each)} IS {text}")
        return made


@cache
def views(kind: str) -> tuple[View, ...]:
    """The views of a kind of file, index or run, in order of their dependencies."""
    return _in(files("crystalperf.query.sql.views").joinpath(kind))


@cache
def views_of(framework: str) -> tuple[View, ...]:
    """The views of a run in a built-in framework's terms; this does not load the framework's package."""
    package = package_of(framework)
    return _in(files(package).joinpath("views")) if package else ()


def _in(folder: Traversable) -> tuple[View, ...]:
    if not folder.is_dir():
        return ()
    found = [
        view(each.name.removesuffix(".sql"), each.read_text(encoding="utf-8"))
        for each in folder.iterdir()
        if each.name.endswith(".sql")
    ]
    by_name = {each.name: each for each in sorted(found, key=lambda each: each.name)}
    reads = {name: sorted(each.words & by_name.keys() - {name}) for name, each in by_name.items()}
    return tuple(by_name[each] for each in TopologicalSorter(reads).static_order())


def view(name: str, text: str) -> View:
    """A view from its file.  Raises ValueError if the file lacks the description."""
    lines = text.split("\n")
    head = [line for line in lines if line.startswith("--")]
    if not head or not head[0].startswith("-- "):
        raise ValueError(f"{name}.sql: does not begin with its description")
    columns: dict[str, str] = {}
    last = ""
    for line in head:
        if match := _COLUMN.match(line):
            last = match[1]
            columns[last] = match[2]
        elif last and line.startswith("--     "):
            columns[last] += f" {line[2:].strip()}"
    query = "\n".join(line for line in lines if not line.startswith("--")).strip()
    return View(name, head[0][3:].rstrip("."), columns, query)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
