"""The command line: what can be typed, and what a script may rely on.

    0    an answer, on stdout
    1    the content of an argument is wrong, or no answer is possible: one sentence on stderr, stdout empty
         (with `--json` it has the error, or what `predict` can say all the same)
    2    the command line cannot be parsed; nothing else ever exits with 2
    4    analyze and debug: an answer, on stdout, but what the log lacks could change its first sentence
    130  interrupted

Only the standard library and typer are imported here, so that `--help` and shell completion are quick.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

_SETTINGS = {"help_option_names": ["-h", "--help"]}

FEWER_COLLECTIONS = 20_000
"""New objects between two collections of garbage.  Importing what a command needs makes 100 000 and no garbage."""

app = typer.Typer(name="crystalperf", rich_markup_mode=None, context_settings=_SETTINGS, pretty_exceptions_enable=False)
index_app = typer.Typer(rich_markup_mode=None, context_settings=_SETTINGS)
app.add_typer(index_app, name="index", short_help="build, list, inspect and compare resource indexes")


# Shell completion ---------------------------------------------------------------------------------------------------


def _complete_run(incomplete: str) -> list[str]:
    from cli.runs import kept_runs

    return [name for name in kept_runs() if name.startswith(incomplete)]


def _complete_index(incomplete: str) -> list[str]:
    from cli.index_commands import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


def _complete_setting(incomplete: str) -> list[str]:
    from indexes.resources import known
    from query.frameworks.known import frameworks
    from query.model.world import settings_of

    words = [word for each in frameworks().values() for word in each.vocabulary.settings]
    return [f"{key}=" for key in dict.fromkeys((*settings_of(known()), *words)) if key.startswith(incomplete)]


def _complete_framework(incomplete: str) -> list[str]:
    from query.frameworks.known import frameworks

    return [name for name in frameworks() if name.startswith(incomplete)]


def _complete_place(incomplete: str) -> list[str]:
    from query.frameworks.known import frameworks

    words = [word for each in frameworks().values() if each.setup is not None for word in each.setup.places]
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


# Options that several commands have ---------------------------------------------------------------------------------

Full = Annotated[bool, typer.Option("--full", help="show all, beyond the 45 lines of the first screen")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON alone on stdout")]
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="logs and recordings, files or folders, in any order; - for a log on stdin",
        show_default=False,
    ),
]
PathsOrRun = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="logs and recordings, files or folders, in any order; - for a log on stdin; or one run profiled before",
        show_default=False,
        autocompletion=_complete_run,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="a run file, the name of a run kept in the cache, or a log",
        show_default=False,
        autocompletion=_complete_run,
    ),
]
Scope = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="all (the run without the pauses in which nothing was submitted, where they are most of it), whole (with"
        " them), the id of a scope such as job:3, or START..END in ms since the start",
    ),
]
App = Annotated[str, typer.Option("--app", metavar="ID", help="the application to take, where the logs hold several")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="RUN", help="keep the run file there instead of in the cache")
]
Force = Annotated[bool, typer.Option("--force", help="with -o: replace the run of another application")]
Indexes = Annotated[
    list[str],
    typer.Option(
        "--index",
        metavar="NAME",
        help="resource index to use, as NAME-VERSION; may be repeated",
        show_default=False,
        autocompletion=_complete_index,
    ),
]
IndexName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="index, as NAME-VERSION", show_default=False, autocompletion=_complete_index),
]
# Taken out of the arguments before they are parsed, so that it may stand anywhere; declared to be in the help.
Traceback = Annotated[bool, typer.Option("--traceback", help="show the traceback of an error, for a bug report")]


# Commands -----------------------------------------------------------------------------------------------------------


@app.callback(invoke_without_command=True)
def crystalperf(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="print the versions of the tool and its schema")] = False,
    traceback: Traceback = False,
) -> None:
    """say where the time of a dataflow job went, and what if its resources were different

    \b
    Example:
      crystalperf analyze app-1.log recordings/*.jfr
    """
    if version:
        from cli.output import write
        from cli.version import version_line

        write(version_line() + "\n")
        raise typer.Exit(0)
    if context.invoked_subcommand is None:
        _show_help(context)


@app.command()
def analyze(
    paths: PathsOrRun,
    output: Output = "",
    force: Force = False,
    app_id: App = "",
    index: Indexes = [],  # noqa: B006 - typer reads the default and makes a new list of it
    full: Full = False,
    as_json: AsJson = False,
) -> int:
    """say what holds a job up, where its time went and what would help

    \b
    Example:
      crystalperf analyze app-1.log recordings/*.jfr
    """
    from cli.answering import analyze as answer

    return answer(paths, output, app_id, index, force=force, full=full, as_json=as_json)


@app.command()
def demo(as_json: AsJson = False) -> int:
    """analyze the recorded run that comes with CrystalPerf

    \b
    Example:
      crystalperf demo
    """
    from cli.demo import demo as answer

    return answer(as_json=as_json)


@app.command()
def profile(
    paths: Paths,
    output: Output = "",
    force: Force = False,
    app_id: App = "",
    index: Indexes = [],  # noqa: B006
    as_json: AsJson = False,
) -> int:
    """read logs and recordings and keep them as one run file

    \b
    Example:
      crystalperf profile app-1.log recordings/*.jfr -o q9.duckdb
    """
    from cli.answering import profile as answer

    return answer(paths, output, app_id, index, force=force, as_json=as_json)


@app.command()
def debug(run: RunName, scope: Scope = "all", as_json: AsJson = False) -> int:
    """show the critical path, the resources along it, the bottleneck

    \b
    Example:
      crystalperf debug q9.duckdb --scope job:3
    """
    from cli.answering import debug as answer

    return answer(run, scope, as_json=as_json)


@app.command()
def predict(
    run: RunName,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="what would be different: workers, cores, cpu_speed, memory, disk or network, or the framework's own"
            " word for it; absolute (8, 8GiB, 500MB/s, 10Gbps) or relative to the run (2x); or the work itself:"
            " input=2x, operator.NAME=2x (twice as fast), skew=none, scheduler=fifo, fair or longest; may be repeated;"
            " a list (cores=2,4,8) makes a table",
            show_default=False,
            autocompletion=_complete_setting,
        ),
    ],
    recorded: Annotated[
        list[str],
        typer.Option(
            "--recorded",
            metavar="KEY=VALUE",
            help="what the run had, where its log does not tell; may be repeated",
            show_default=False,
            autocompletion=_complete_setting,
        ),
    ] = [],  # noqa: B006
    scope: Scope = "all",
    replan: Annotated[
        bool,
        typer.Option(
            "--replan/--no-replan",
            help="whether work is cut anew as the framework would for other slots, or stays as recorded (the paper)",
        ),
    ] = True,
    predictor: Annotated[
        str,
        typer.Option("--predictor", metavar="NAME", help="the model of another package, instead of the built-in one"),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """predict the runtime with other resources

    \b
    Example:
      crystalperf predict q9.duckdb --set cores=2,4,8 --set network=10Gbps --recorded network=1Gbps
    """
    from cli.answering import predict as answer

    return answer(run, settings, recorded, scope, replan=replan, predictor=predictor, as_json=as_json)


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="one SELECT", show_default=False)],
    run: Annotated[
        str,
        typer.Option("--run", metavar="RUN", help="run to ask", show_default=False, autocompletion=_complete_run),
    ] = "",
    index: Indexes = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="print a JSON list of objects, all rows")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="print CSV with a header, all rows")] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas",
            help="with --csv, for spreadsheets: put ' before texts that begin with = + - @ tab or carriage return",
        ),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="ROWS", help="rows of the table, 0 for all")] = 40,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0, metavar="SECONDS", help="give up after that time, 0 for never")
    ] = 600.0,
) -> int:
    """ask a run file and indexes in SQL, read-only

    \b
    Tables of a run: SHOW TABLES. Tables of indexes, with index_name: functions
    classes runtime_names calls build_warnings. DESCRIBE tells more.

    \b
    Example:
      crystalperf sql --index jdk-17 "SELECT qualified_name, net FROM functions ORDER BY net DESC LIMIT 20"
    """
    from cli.sqldoor import ask

    return ask(
        statement,
        run,
        index,
        as_json=as_json,
        as_csv=as_csv,
        escape_formulas=escape_formulas,
        limit=limit,
        timeout_s=timeout,
    )


@app.command()
def setup(
    framework: Annotated[
        str,
        typer.Argument(
            metavar="[FRAMEWORK]",
            help="what runs the job; without it the first that is known",
            show_default=False,
            autocompletion=_complete_framework,
        ),
    ] = "",
    place: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="PLACE",
            help="where it runs, such as yarn, kubernetes or a vendor's service; the answer lists all",
            show_default=False,
            autocompletion=_complete_place,
        ),
    ] = "",
    version: Annotated[
        str,
        typer.Option(
            "--version", metavar="VERSION", help="the framework's; all of them by default", show_default=False
        ),
    ] = "",
    folder: Annotated[
        str, typer.Option("--folder", metavar="DIR", help="where recordings are written; must exist on every node")
    ] = "/tmp",
    as_json: AsJson = False,
) -> int:
    """print what a job needs to leave a log and samples, ready to paste

    \b
    Example:
      crystalperf setup --on yarn --folder /mnt/recordings >> job.conf
    """
    from cli.setup import setup as answer

    return answer(framework, folder, place, version, as_json=as_json)


@app.command()
def collect(
    framework: Annotated[
        str,
        typer.Argument(
            metavar="FRAMEWORK", help="what runs the job", show_default=False, autocompletion=_complete_framework
        ),
    ],
    address: Annotated[
        str, typer.Argument(metavar="URL", help="where its cluster answers, http://HOST:8081", show_default=False)
    ],
    job: Annotated[str, typer.Option("--job", metavar="ID", help="the job, if several run")] = "",
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="where the log is put")] = ".",
) -> int:
    """wait for a job to end and keep what its cluster tells of it, as a log

    \b
    An interrupt (Ctrl-C) keeps what there is by then. This is the only command
    that reaches over a network, and it asks this address alone.

    \b
    Example:
      crystalperf collect flink http://localhost:8081 -o ./job
    """
    from cli.collect import collect as answer

    return answer(framework, address, job, output)


@index_app.callback(invoke_without_command=True)
def index(context: typer.Context) -> None:
    """build, list, inspect and compare resource indexes

    \b
    Example:
      crystalperf index list
    """
    if context.invoked_subcommand is None:
        _show_help(context)


@index_app.command("build")
def index_build(
    name: IndexName,
    source: Annotated[
        str, typer.Option("--source", metavar="PATH", help="a directory or an archive of sources, instead of Maven's")
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

    \b
    Example:
      crystalperf index build jdk-17
    """
    from cli.index_commands import build

    return build(name, source, model, output, as_json=as_json)


@index_app.command("list")
def index_list(as_json: AsJson = False) -> int:
    """list the indexes that are there, shipped and built

    \b
    Example:
      crystalperf index list
    """
    from cli.index_commands import list_indexes

    return list_indexes(as_json=as_json)


@index_app.command("show")
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
    from cli.index_commands import show

    return show(function, index, source, why=why, as_json=as_json)


@index_app.command("resolve")
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
    from cli.frames import resolve_frames

    return resolve_frames(frames or [], index, as_json=as_json)


@index_app.command("verify")
def index_verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="indexes, all by default", show_default=False, autocompletion=_complete_index
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """check that an index holds what its content hash says

    \b
    Example:
      crystalperf index verify jdk-17
    """
    from cli.index_commands import verify

    return verify(names or [], as_json=as_json)


@index_app.command("export")
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
    from cli.index_commands import export

    return export(name, folder)


@index_app.command("import")
def index_import(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="an exported index", show_default=False)],
    trust: Annotated[bool, typer.Option("--trust", help="take it although CrystalPerf does not know it")] = False,
) -> int:
    """take over an exported index, after checking its content

    \b
    Example:
      crystalperf index import ./exports/acme-1.2 --trust
    """
    from cli.index_commands import import_

    return import_(folder, trust=trust)


@index_app.command("diff")
def index_diff(before: IndexName, after: IndexName, as_json: AsJson = False) -> int:
    """list the functions that appeared, vanished or need other resources

    \b
    Example:
      crystalperf index diff acme-1.2 acme-1.3
    """
    from cli.index_diff import diff

    return diff(before, after, as_json=as_json)


# The contract -------------------------------------------------------------------------------------------------------


def main() -> None:
    """The console script."""
    gc.set_threshold(FEWER_COLLECTIONS)
    if sys.stderr is None:  # closed by the caller; messages would end up on stdout
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end of the process
    if sys.stdout is None:
        _say("standard output is closed, so there is no place for an answer; send it to a file, or to /dev/null")
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal that cannot show a character shows its code
            reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error has been said on stderr by then."""
    arguments, traceback = _without_traceback(arguments)
    try:
        code = _command().main(args=arguments, prog_name="crystalperf", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except Exception as error:
        if str(error) == "Query interrupted":  # what DuckDB makes of an interrupt
            return 130
        if traceback:
            import traceback as printer

            printer.print_exception(error)
        return _explain(error, arguments)


@cache
def _command() -> Any:
    """The commands as typer makes them of the functions above, once for who runs several."""
    return typer.main.get_command(app)


def _without_traceback(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments without `--traceback`, and whether it was among them; after `--` it is an ordinary word."""
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [each for each in arguments[:end] if each != "--traceback"]
    return [*options, *arguments[end:]], len(options) < end


def _explain(error: Exception, arguments: Sequence[str]) -> int:
    """Say an error in one sentence and return its exit code."""
    usage = getattr(error, "format_message", None)
    if usage is not None:  # typer's own: the command line cannot be parsed
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "crystalperf"
        _say(f"{usage().rstrip('.')}; see '{path} --help'")
        return 2
    sentence = _sentence(error, arguments)
    _say(sentence)
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    if "--json" in arguments[:end]:
        _write_failure(error, sentence)
    return 1


def _sentence(error: Exception, arguments: Sequence[str]) -> str:
    """What happened, where, and what to do."""
    from indexes.errors import CrystalPerfError

    if isinstance(error, CrystalPerfError):
        from cli.remedies import error_sentence

        return error_sentence(error)
    if isinstance(error, MemoryError):
        return "memory ran out; take a smaller part of the input, or a machine with more of it"
    if os.strerror(errno.ENOSPC) in str(error):  # DuckDB has no error of its own for it
        return "the disk is full; make room where run files and indexes are kept, or choose another place with -o"
    import shlex

    what = " ".join(str(error).split()) or "no message"
    return (
        f"a bug of CrystalPerf ({type(error).__name__}: {what}); please report it with what"
        f" `crystalperf --traceback {shlex.join(arguments)}` prints"
    )


def _write_failure(error: Exception, sentence: str) -> None:
    """The error as JSON on stdout, where a script looks for an answer."""
    from contextlib import suppress

    from cli.output import write_json
    from indexes.errors import CrystalPerfError
    from query.answers.serial import as_json
    from query.answers.values import Failure

    failure = Failure(str(error), error.remedy) if isinstance(error, CrystalPerfError) else Failure(sentence)
    with suppress(CrystalPerfError):  # of a stdout that cannot be written, as the error may be just that
        write_json(as_json(failure))


def _say(message: str) -> None:
    from cli.output import say

    say(f"crystalperf: {message}")


def _show_help(context: typer.Context) -> None:
    from cli.output import write

    write(context.get_help() + "\n")


if __name__ == "__main__":
    main()
