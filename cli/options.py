"""Options and arguments that several commands share, and the shell completion of their values.

This module imports only the standard library and typer, so that `--help` and shell completion are quick.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Settings of every command group."""


def show_help(context: typer.Context) -> None:
    """Print the help of a command group if no command was given."""
    from crystalperf.cli.output import write

    write(context.get_help() + "\n")


# Completion -----------------------------------------------------------------------------------------------------------


def complete_run(incomplete: str) -> list[str]:
    from crystalperf.cli.runs import kept_runs

    return [name for name in kept_runs() if name.startswith(incomplete)]


def complete_index(incomplete: str) -> list[str]:
    from crystalperf.query.lookup.functions import known_names

    return [name for name in known_names() if name.startswith(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    from crystalperf.indexes.resources import known
    from crystalperf.query.execution.scenario import settings_of
    from crystalperf.query.frameworks.registry import frameworks

    words = [word for each in frameworks().values() for word in each.vocabulary.settings]
    return [f"{key}=" for key in dict.fromkeys((*settings_of(known()), *words)) if key.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    from crystalperf.query.export.formats import FORMATS

    return [each.name for each in FORMATS if each.name.startswith(incomplete)]


def complete_framework(incomplete: str) -> list[str]:
    from crystalperf.query.frameworks.registry import frameworks

    return [name for name in frameworks() if name.startswith(incomplete)]


def complete_place(incomplete: str) -> list[str]:
    from crystalperf.query.frameworks.registry import frameworks

    words = [
        word for each in frameworks().values() if each.advisor.setup is not None for word in each.advisor.setup.places
    ]
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def setting(flag: str, help_text: str) -> Any:
    """An option that takes KEY=VALUE and may be repeated."""
    return typer.Option(
        flag,
        metavar="KEY=VALUE",
        help=f"{help_text}; may be repeated",
        show_default=False,
        autocompletion=complete_setting,
    )


# Options and arguments ------------------------------------------------------------------------------------------------

Full = Annotated[bool, typer.Option("--full", help="show all, beyond the 45 lines of the first screen")]
AsJson = Annotated[bool, typer.Option("--json", help="print only JSON on stdout")]
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="logs and recordings: files, folders or URLs (http://HOST:18080, s3://…), in any order; - for a log on"
        " stdin",
        show_default=False,
    ),
]
PathsOrRun = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="logs and recordings: files, folders or URLs (http://HOST:18080, s3://…), in any order; - for a log on"
        " stdin; or one run that was profiled before",
        show_default=False,
        autocompletion=complete_run,
    ),
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="a run file, the name of a run in the cache, or a log",
        show_default=False,
        autocompletion=complete_run,
    ),
]
OtherRuns = Annotated[
    list[str],
    typer.Option(
        "--with",
        metavar="RUN[,KEY=VALUE]",
        help="another run of the same job, with settings that its log does not record (network=1Gbps): it shows the"
        " error of predictions for this job, and corrects them; may be repeated",
        show_default=False,
    ),
]
Scope = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="all (the run, without pauses between jobs if they are most of it), whole (with pauses), the id of a scope"
        " such as job:3, a printed stage or driver interval (stage:4.0, driver:0), or START..END in ms since the start",
    ),
]
App = Annotated[
    str,
    typer.Option(
        "--app",
        metavar="ID",
        help="the application to read, or ID/N for its attempt N (default: the newest)",
    ),
]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="RUN", help="write the run file there instead of to the cache")
]
Force = Annotated[bool, typer.Option("--force", help="with -o: replace the run of another application")]
Html = Annotated[
    str, typer.Option("--html", metavar="FILE", help="also write an HTML page of the run, as `report` does")
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact", help="hide names of the application, hosts, users, paths and tables, and values in statements"
    ),
]
NoLedger = Annotated[
    bool,
    typer.Option("--no-ledger", help="do not keep predictions and facts of the run for `crystalperf ledger`"),
]
Indexes = Annotated[
    list[str],
    typer.Option(
        "--index",
        metavar="NAME",
        help="the resource index to use, as NAME-VERSION; may be repeated",
        show_default=False,
        autocompletion=complete_index,
    ),
]
IndexName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="index, as NAME-VERSION", show_default=False, autocompletion=complete_index),
]
# main.py removes it from the arguments before parsing, so that it may be anywhere; declared for the help only.
Traceback = Annotated[bool, typer.Option("--traceback", help="show the traceback of an error, for a bug report")]
