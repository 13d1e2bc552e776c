"""What `crystalperf index …` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from cli.output import progress, say, write, write_json
from cli.remedies import error_sentence
from cli.text import grouped
from indexes import attach, guard, open_read_only, resources
from indexes.errors import BuildError, CrystalPerfError, IndexFileError, InputError, SettingError
from indexes.exports import (
    Available,
    available,
    built_path,
    export_index,
    import_index,
    locate,
    may_have,
    name_of_export,
    split_name,
)
from indexes.exports import verify as verify_file

if TYPE_CHECKING:
    from indexer.sources import Source

MOST_SHOWN = 20


def known_names() -> list[str]:
    """Names of the indexes at hand."""
    return [each.name for each in available()]


def build(name: str, source: str, model: str, output: str, *, as_json: bool) -> int:
    """Build one index and say where it is."""
    try:
        from indexer.build import build as build_index
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
    )
    facts = _facts(path)
    warnings = _count(path, "build_warnings")
    if as_json:
        write_json({"name": name, "path": str(path), "warnings": warnings, "metadata": facts})
    else:
        write(f"{name}: {grouped(_count(path, 'functions'))} functions in {facts.get('build_seconds', '?')} s\n"
              f"Kept as {path}\n")  # fmt: skip
    if warnings:
        say(f"{warnings} files could not be indexed in full (table build_warnings)")
    return 0


def list_indexes(*, as_json: bool) -> int:
    """All indexes at hand; one that cannot be read is named on stderr and does not hide the others."""
    rows = []
    for each in available():
        try:
            rows.append(_listed(each))
        except CrystalPerfError as error:
            say(f"crystalperf: {error_sentence(error)}")
    if as_json:
        write_json(rows)
        return 0
    from cli.render import listing_text

    cells = [[each["name"], each["origin"], grouped(each["functions"]), each["built_at"][:10]] for each in rows]
    empty = "no index yet: `crystalperf index build jdk-17` makes one"
    write(listing_text(["name", "origin", "functions", "built"], cells, empty))
    return 0


def show(function: str, names: Sequence[str], source: str = "", *, why: bool = False, as_json: bool) -> int:
    """What the indexes know of the functions of that name; with `why`, what their vectors rest on."""
    chosen = list(names) or known_names()
    if not chosen:
        raise IndexFileError("no index yet; make one with `crystalperf index build jdk-17`")
    found: list[dict[str, Any]] = []
    more = 0
    simple_name = function.removesuffix("().").rpartition(".")[2]
    at_hand = {each.name: each for each in available()}
    for name in chosen:
        try:
            if not names and not may_have(at_hand[name], simple_name):
                continue
            with progress() as step:
                step(f"opening index {name}")
                connection = open_read_only(locate(name), "index")
        except IndexFileError as error:
            if names:
                raise
            say(f"crystalperf: {error_sentence(error)}; passed over")
            continue
        try:
            rows, left = _matching(connection, name, function, MOST_SHOWN - len(found))
            if why:
                _explain(connection, name, rows, source)
        finally:
            connection.close()
        found += rows
        more += left
    if not found:
        raise InputError(f"{function}: no function of that name in {', '.join(chosen)}")
    if as_json:
        write_json(found)
    else:
        from cli.why import why_text

        write("\n".join(_function_text(each) + (why_text(each) if why else "") for each in found))
    if more:
        say(f"{more} more functions have that name; give more of it")
    return 0


def verify(names: Sequence[str], *, as_json: bool) -> int:
    """Check indexes against their content hashes; 1 where one of them fails."""
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
        say("crystalperf: " + "; ".join(str(each["problem"]) for each in failed))
    if as_json:
        write_json(results)
    elif not failed:
        write("".join(f"{each['name']}: content {each['content_hash']}\n" for each in results) or "no index yet\n")
    return 1 if failed else 0


def export(name: str, folder: str) -> int:
    """Write FOLDER/NAME-VERSION, replacing an earlier export of that name and nothing else."""
    split_name(name)  # refuses what no index is called, before a folder is looked for under it
    target = Path(folder) / name
    if target.exists() and not (target / "metadata.json").is_file():
        raise IndexFileError(f"{target}: is there already and is no export, so it stays; choose another folder")
    write(f"Kept as {export_index(locate(name), target)}\n")
    return 0


def import_(folder: str, *, trust: bool) -> int:
    """Put an export among the indexes that were built; one of an unknown content hash only if the user vouches."""
    name = name_of_export(Path(folder))
    write(f"{name}: kept as {import_index(Path(folder), built_path(name), trust=trust)}\n")
    return 0


def _source(name: str, location: str) -> Source:
    from indexer.sources import open_source

    return open_source(name, [location])


def _listed(index: Available) -> dict[str, Any]:
    """One index, without unpacking a prebuilt one."""
    import json

    if index.origin == "prebuilt":
        facts = json.loads((index.path / "metadata.json").read_text(encoding="utf-8"))
    else:
        facts = _facts(index.path)
    return {
        "name": index.name,
        "origin": index.origin,
        "functions": int(facts.get("functions", 0)),
        "built_at": facts.get("built_at", ""),
        "content_hash": facts.get("content_hash"),
        "path": str(index.path),
    }


def _facts(path: Path) -> dict[str, str]:
    connection = guard.fresh()
    try:
        return attach(connection, path, "index", "listed")
    finally:
        connection.close()


def _count(path: Path, table: str) -> int:
    connection = open_read_only(path, "index")
    try:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
    finally:
        connection.close()


def _matching(
    connection: duckdb.DuckDBPyConnection, index_name: str, function: str, most: int
) -> tuple[list[dict[str, Any]], int]:
    """Functions whose qualified name is, or ends in, the name asked for; and how many more there are."""
    if not function.strip():
        raise SettingError("FUNCTION: give a function's name, or the end of it")
    rows = connection.execute(
        "SELECT * FROM functions WHERE qualified_name = $1 OR ends_with(qualified_name, '.' || $1) OR symbol = $1"
        " ORDER BY qualified_name, file, first_line",
        [function],
    ).fetchall()
    names = [each[0] for each in connection.description or ()]
    found = []
    for row in rows[: max(most, 0)]:
        facts = dict(zip(names, row, strict=True))
        number = facts.pop("function_id")
        facts.pop("enclosing_id")
        callers = connection.execute(
            "SELECT DISTINCT qualified_name FROM calls JOIN functions ON function_id = caller_id WHERE callee_id = ?"
            " ORDER BY qualified_name",
            [number],
        ).fetchall()
        callees = connection.execute(
            "SELECT DISTINCT coalesce(qualified_name, callee_name) AS name FROM calls"
            " LEFT JOIN functions ON function_id = callee_id WHERE caller_id = ? ORDER BY name",
            [number],
        ).fetchall()
        found.append(
            {
                "index_name": index_name,
                **{key: round(value, 4) if isinstance(value, float) else value for key, value in facts.items()},
                "callers": [each[0] for each in callers],
                "callees": [each[0] for each in callees],
            }
        )
    return found, len(rows) - len(found)


MOST_EXPLAINED = 3
"""Functions whose words are looked up; each reads the source once."""


def _explain(
    connection: duckdb.DuckDBPyConnection, index_name: str, found: Sequence[dict[str, Any]], source: str
) -> None:
    """Add to each function what its vector rests on: callees with their resource, words, where the index is from."""
    from cli.why import provenance, words

    metadata = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
    largest = f"greatest({', '.join(resources())})"
    resource = "CASE " + " ".join(f"WHEN {each} = {largest} THEN '{each}'" for each in resources()) + " END"
    for position, facts in enumerate(found):
        rows = connection.execute(
            f"SELECT DISTINCT qualified_name, concat({resource}, ' ', round(100 * {largest}), ' %')"
            " FROM calls JOIN functions ON function_id = callee_id"
            " WHERE caller_id = (SELECT function_id FROM functions WHERE symbol = ?) ORDER BY ALL",
            [facts["symbol"]],
        ).fetchall()
        facts["evidence"] = {"callees": dict(rows)}
        facts["provenance"] = provenance(metadata)
        if position < MOST_EXPLAINED:
            with progress() as step:
                step("reading the source")
                facts["words"], facts["words_from"] = words(index_name, facts, metadata, source)
        else:
            facts["words"], facts["words_from"] = None, "only looked up for the first functions; give more of the name"


def _function_text(facts: dict[str, Any]) -> str:
    def vector(prefix: str) -> str:
        if facts.get(f"{prefix}{resources()[0]}") is None:
            return "none"
        return "  ".join(f"{name} {facts[prefix + name]:.0%}" for name in resources())

    def names(key: str) -> str:
        listed = facts[key]
        return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") or "none known"

    from cli.text import printable

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
