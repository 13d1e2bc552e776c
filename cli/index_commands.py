"""The commands `crystalperf index …`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from crystalperf.cli.output import print_message, progress, write, write_json
from crystalperf.cli.remedies import error_sentence
from crystalperf.cli.text import counted, grouped
from crystalperf.indexes import open_read_only, resources
from crystalperf.indexes.errors import BuildError, CrystalPerfError, SettingError
from crystalperf.indexes.exports import (
    built_path,
    check_replaceable,
    export_index,
    import_index,
    locate,
    name_of_export,
    split_name,
)
from crystalperf.indexes.exports import verify as verify_file
from crystalperf.indexes.store import checked
from crystalperf.query.lookup.functions import Function, explain, indexes_at_hand, known_names, of_name

if TYPE_CHECKING:
    from crystalperf.indexer.sources import Source


def build(name: str, source: str, classes: str, model: str, output: str, *, as_json: bool) -> int:
    """Build one index and print its path."""
    try:
        from crystalperf.indexer.build import build as build_index
    except ImportError as error:
        raise BuildError(
            f"building an index needs the extra `indexer` ({error.name} is missing): `pip install '.[indexer]'` in a"
            " checkout of CrystalPerf"
        ) from error
    path = build_index(
        name,
        _source(name, source) if source else None,
        output=Path(output) if output else None,
        model=model or None,
        progress=sys.stderr.isatty(),
        classes=_jars(classes) if classes else (),
    )
    facts = dict(checked(path, "index"))
    warnings = _count(path, "build_warnings")
    if as_json:
        write_json({"name": name, "path": str(path), "warnings": warnings, "metadata": facts})
    else:
        write(f"{name}: {grouped(_count(path, 'functions'))} functions in {facts.get('build_seconds', '?')} s\n"
              f"Saved as {path}\n")  # fmt: skip
    if warnings:
        print_message(f"{counted(warnings, 'file')} could not be indexed in full (table build_warnings)")
    return 0


def _jars(place: str) -> list[Path]:
    """The archive that --classes names, or the archives in that folder."""
    path = Path(place).expanduser()
    found = sorted(path.rglob("*.jar")) if path.is_dir() else [path]
    if not found:
        raise BuildError(f"{place}: contains no jar; name a jar or a folder of jars with --classes")
    return found


def list_indexes(*, as_json: bool) -> int:
    """List all available indexes; an unreadable one is named on stderr."""
    rows, broken = indexes_at_hand()
    for error in broken:
        print_message(f"crystalperf: {error_sentence(error)}")
    if as_json:
        write_json(rows)
        return 0
    from crystalperf.cli.render import listing_text

    cells = [[each["name"], each["origin"], grouped(each["functions"]), each["built_at"][:10]] for each in rows]
    empty = "there is no index; build one with `crystalperf index build jdk-17`"
    write(listing_text(["name", "origin", "functions", "built"], cells, empty))
    return 0


def show(function: str, names: Sequence[str], source: str = "", *, why: bool = False, as_json: bool) -> int:
    """Show the entries of functions of that name; with `why`, the evidence of their resource vectors."""

    if source and not why:
        raise SettingError("--source needs --why, which looks up words in the source; add --why or leave out --source")

    def explained(connection: duckdb.DuckDBPyConnection, name: str, found: list[Function]) -> None:
        if why:
            _explain(connection, name, found, source)

    def passed_over(error: CrystalPerfError) -> None:
        print_message(f"crystalperf: {error_sentence(error)}; skipped")

    with progress() as step:
        found, more = of_name(function, names, why=explained, progress=step, passed_over=passed_over)
    if as_json:
        write_json(found)
    else:
        from crystalperf.cli.why import why_text

        write("\n".join(_function_text(each) + (why_text(each) if why else "") for each in found))
    if more:
        print_message(f"Not shown: {counted(more, 'more function')} with that name; give a longer name")
    return 0


def verify(names: Sequence[str], *, as_json: bool) -> int:
    """Check indexes against their content hashes; returns 1 if one fails."""
    results = []
    for name in names or known_names():
        path = str(name)
        try:
            with progress() as step:
                step(f"checking {name}")
                path = str(locate(name))
                results.append({"name": name, "path": path, "content_hash": verify_file(Path(path)), "problem": None})
        except CrystalPerfError as error:
            if len(names) == 1 and not as_json:
                raise
            results.append({"name": name, "path": path, "content_hash": None, "problem": error_sentence(error)})
    failed = [each for each in results if each["problem"]]
    if failed:
        print_message("crystalperf: " + "; ".join(str(each["problem"]) for each in failed))
    if as_json:
        write_json(results)
    elif not failed:
        write("".join(f"{each['name']}: content {each['content_hash']}\n" for each in results) or "there is no index\n")
    return 1 if failed else 0


def export(name: str, folder: str) -> int:
    """Write FOLDER/NAME-VERSION; it may replace an earlier export of that name only."""
    split_name(name)  # refuse an invalid name before using it as a folder
    target = Path(folder) / name
    check_replaceable(target, name)
    write(f"Saved as {export_index(locate(name), target)}\n")
    return 0


def import_(folder: str, *, trust: bool) -> int:
    """Import an export as a built index; `trust` accepts an unknown content hash."""
    name = name_of_export(Path(folder))
    write(f"{name}: saved as {import_index(Path(folder), built_path(name), trust=trust)}\n")
    return 0


def _source(name: str, location: str) -> Source:
    from crystalperf.indexer.sources import open_source

    return open_source(name, [location])


def _count(path: Path, table: str) -> int:
    connection = open_read_only(path, "index")
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
    finally:
        connection.close()


MAX_EXPLAINED = 3
"""Maximum functions whose words are explained; each reads the source once."""


def _explain(
    connection: duckdb.DuckDBPyConnection, index_name: str, found: Sequence[dict[str, Any]], source: str
) -> None:
    """Add the evidence to each function: callees with their resource, words, and the origin of the index."""
    from crystalperf.cli.why import words

    metadata = explain(connection, found)
    for position, facts in enumerate(found):
        if position < MAX_EXPLAINED:
            with progress() as step:
                step("reading the source")
                facts["words"], facts["words_from"] = words(index_name, facts, metadata, source)
        else:
            facts["words"], facts["words_from"] = None, "only looked up for the first functions; give a longer name"


def _function_text(facts: dict[str, Any]) -> str:
    def vector(prefix: str) -> str:
        if facts.get(f"{prefix}{resources()[0]}") is None:
            return "none"
        return "  ".join(f"{name} {facts[prefix + name]:.0%}" for name in resources())

    def names(key: str) -> str:
        listed = facts[key]
        return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "none known"

    from crystalperf.cli.text import printable

    lines = [
        f"{facts['qualified_name']}",
        f"  where       {facts['index_name']}  {facts['file']}:{facts['first_line']}-{facts['last_line']}",
        f"  resources   {vector('')}   (confidence {facts['confidence']:.0%})",
        f"  by code     {vector('code_')}",
        f"  by its doc  {vector('doc_')}",
        f"  called by   {names('callers')}",
        f"  calls       {names('callees')}",
        f"  symbol      {facts['symbol']}",
    ]
    return "\n".join(printable(each) for each in lines) + "\n"
