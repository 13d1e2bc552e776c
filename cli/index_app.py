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
        str, typer.Option("--source", metavar="PATH", help="a directory or an archive of sources, instead of Maven's")
    ] = "",
    classes: Annotated[
        str,
        typer.Option("--classes", metavar="PATH", help="its jars, or a folder of them: they say whom calls mean"),
    ] = "",
    model: Annotated[
        str,
        typer.Option("--model", metavar="MODEL", help="embedding model, a hub name or a path, not the built-in one"),
    ] = "",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="keep the index there instead of in the cache")
    ] = "",
    as_json: AsJson = False,
) -> int:
    """index a framework's source: every function and the resource it needs

    It needs the extra [indexer].

    \b
    Example:
      crystalperf index build jdk-17
    """
    from crystalperf.cli.index_commands import build

    return build(name, source, classes, model, output, as_json=as_json)


@app.command("list")
def index_list(as_json: AsJson = False) -> int:
    """list the indexes that are there, shipped and built

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
    why: Annotated[bool, typer.Option("--why", help="also show what its vector rests on")] = False,
    source: Annotated[
        str, typer.Option("--source", metavar="PATH", help="with --why: the indexed source, for the words in it")
    ] = "",
    as_json: AsJson = False,
) -> int:
    """show what an index knows of a function

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
        typer.Argument(metavar="FRAME", help="frames of a stack; from stdin, one a line, if none", show_default=False),
    ] = None,
    index: Indexes = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """say which function each frame of a stack falls in

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
    """check that an index holds what its content hash says

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
        str, typer.Argument(metavar="FOLDER", help="where the export's folder is put", show_default=False)
    ],
) -> int:
    """write an index as compact files, for others or for git

    \b
    Example:
      crystalperf index export acme-1.2 ./exports
    """
    from crystalperf.cli.index_commands import export

    return export(name, folder)


@app.command("import")
def index_import(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="an exported index", show_default=False)],
    trust: Annotated[bool, typer.Option("--trust", help="take it although CrystalPerf does not know it")] = False,
) -> int:
    """take over an exported index, after checking its content

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
            help="only what this run's samples on its critical path were in",
            show_default=False,
            autocompletion=complete_run,
        ),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """list the functions that are new, gone or need other resources, and why

    \b
    Example:
      crystalperf index diff acme-1.2 acme-1.3
    """
    from crystalperf.cli.index_diff import diff

    return diff(before, after, run, as_json=as_json)
