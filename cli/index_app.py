"""Declarations of `crystalperf index …`; cli/index_commands.py implements them."""

from __future__ import annotations

from typing import Annotated

import typer

from crystalperf.cli.options import SETTINGS, AsJson, Indexes, IndexName, complete_index, complete_run, show_help

app = typer.Typer(rich_markup_mode=None, context_settings=SETTINGS)


@app.callback(invoke_without_command=True)
def index(context: typer.Context) -> None:
    """build, list, inspect and compare resource indexes

    \b
    Example:
      crystalperf index list
    """
    if context.invoked_subcommand is None:
        show_help(context)


@app.command("build")
def index_build(
    name: IndexName,
    source: Annotated[
        str,
        typer.Option(
            "--source", metavar="PATH", help="a directory or an archive of sources; by default those on Maven"
        ),
    ] = "",
    classes: Annotated[
        str,
        typer.Option("--classes", metavar="PATH", help="the library's jars, or a folder of them, to resolve calls"),
    ] = "",
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="MODEL", help="an embedding model (hub name or path) instead of the built-in one"
        ),
    ] = "",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="write the index there instead of to the cache")
    ] = "",
    as_json: AsJson = False,
) -> int:
    """index a library's source: every function and the resource it uses

    It needs the extra [indexer].

    \b
    Example:
      crystalperf index build jdk-17
    """
    from crystalperf.cli.index_commands import build

    return build(name, source, classes, model, output, as_json=as_json)


@app.command("list")
def index_list(as_json: AsJson = False) -> int:
    """list available indexes, shipped and built

    \b
    Example:
      crystalperf index list
    """
    from crystalperf.cli.index_commands import list_indexes

    return list_indexes(as_json=as_json)


@app.command("show")
def index_show(
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION", help="a function's name, or the end of it", show_default=False)
    ],
    index: Indexes = [],  # noqa: B006
    why: Annotated[bool, typer.Option("--why", help="also show the evidence for its resource vector")] = False,
    source: Annotated[
        str, typer.Option("--source", metavar="PATH", help="with --why: the indexed source, to look up words")
    ] = "",
    as_json: AsJson = False,
) -> int:
    """show the index entry of a function

    \b
    Example:
      crystalperf index show HashMap.putVal --index jdk-17 --why
    """
    from crystalperf.cli.index_commands import show

    return show(function, index, source, why=why, as_json=as_json)


@app.command("resolve")
def index_resolve(
    frames: Annotated[
        list[str] | None,
        typer.Argument(metavar="FRAME", help="stack frames; by default from stdin, one per line", show_default=False),
    ] = None,
    index: Indexes = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """resolve stack frames to functions

    \b
    Example:
      crystalperf index resolve --index jdk-17 "at java.util.HashMap.get(HashMap.java:564)"
    """
    from crystalperf.cli.frames import resolve_frames

    return resolve_frames(frames or [], index, as_json=as_json)


@app.command("verify")
def index_verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="indexes, all by default", show_default=False, autocompletion=complete_index
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """check an index against its content hash

    \b
    Example:
      crystalperf index verify jdk-17
    """
    from crystalperf.cli.index_commands import verify

    return verify(names or [], as_json=as_json)


@app.command("export")
def index_export(
    name: IndexName,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="the parent folder of the export", show_default=False)
    ],
) -> int:
    """export an index as compact files, to share or to commit

    \b
    Example:
      crystalperf index export acme-1.2 ./exports
    """
    from crystalperf.cli.index_commands import export

    return export(name, folder)


@app.command("import")
def index_import(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="an exported index", show_default=False)],
    trust: Annotated[
        bool, typer.Option("--trust", help="import it although CrystalPerf does not know its hash")
    ] = False,
) -> int:
    """import an exported index after checking its content

    \b
    Example:
      crystalperf index import ./exports/acme-1.2 --trust
    """
    from crystalperf.cli.index_commands import import_

    return import_(folder, trust=trust)


@app.command("diff")
def index_diff(
    before: IndexName,
    after: IndexName,
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="RUN",
            help="list only functions that this run sampled on its critical path",
            show_default=False,
            autocompletion=complete_run,
        ),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """list functions that are new, removed or use other resources, and why

    \b
    Example:
      crystalperf index diff acme-1.2 acme-1.3
    """
    from crystalperf.cli.index_diff import diff

    return diff(before, after, run, as_json=as_json)
