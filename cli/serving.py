"""`crystalperf serve`: read the settings from flags and environment, then run the service until it is stopped."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from crystalperf.service.settings import Limits

TOKEN = "CRYSTALPERF_TOKEN"
"""The environment variable with the token, if no file has it."""


def serve(
    home: Annotated[
        str, typer.Option("--home", metavar="DIR", help="the folder of runs, instead of the cache", show_default=False)
    ] = "",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="the port")] = 8090,
    host: Annotated[
        str, typer.Option("--host", help="the address to bind; one that other machines can reach needs a token")
    ] = "127.0.0.1",
    folder: Annotated[
        list[str],
        typer.Option(
            "--folder",
            metavar="DIR",
            help="a folder whose logs the service may profile; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    history: Annotated[
        list[str],
        typer.Option(
            "--history",
            metavar="URL",
            help="a log server, http://HOST:18080, whose logs the service may profile; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    allow_host: Annotated[
        list[str],
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="a host name to accept in requests, besides localhost and IP addresses; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    token_file: Annotated[
        str,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="the file with the token that every request must have; by default $CRYSTALPERF_TOKEN",
            show_default=False,
        ),
    ] = "",
    limit: Annotated[
        list[str],
        typer.Option(
            "--limit",
            metavar="NAME=NUMBER",
            help="change a limit, such as upload_bytes=1000000000 or sql_s=10; may be repeated",
            show_default=False,
        ),
    ] = [],  # noqa: B006
) -> int:
    """serve all runs and indexes over HTTP, with web pages

    \b
    Example:
      crystalperf serve --port 8090 --folder logs
    """
    from crystalperf.cli.output import print_message
    from crystalperf.indexes.errors import InputError
    from crystalperf.indexes.exports import cache_folder

    try:
        from crystalperf.service.origins import origin
        from crystalperf.service.serving import serve as run
        from crystalperf.service.settings import Settings
    except ImportError as error:
        raise InputError(
            f"the service needs the extra `service` ({error.name} is missing): `pip install '.[service]'` in a checkout"
            " of CrystalPerf"
        ) from error

    place = Path(home).expanduser().absolute() if home else cache_folder().absolute()
    os.environ["CRYSTALPERF_HOME"] = str(place)  # for the processes that it starts
    for each in folder:
        if not Path(each).is_dir():
            raise InputError(f"{each}: not a folder; name an existing folder with --folder")
    settings = Settings(
        home=place,
        host=host,
        port=port,
        token=_token(token_file),
        folders=tuple(Path(each).absolute() for each in folder),
        histories=tuple(origin(each) for each in history),
        hosts=tuple(each.lower() for each in allow_host),
        limits=_limits(limit),
    )
    name = f"[{host.strip('[]')}]" if ":" in host else host

    def ready(at: int) -> None:
        print_message(f"CrystalPerf serves the runs of {place} at http://{name}:{at}/; press Ctrl-C to stop")

    run(settings, ready)
    return 0


def _token(file: str) -> str:
    """The token from a file or the environment, '' for none; never from the command line, which others can read."""
    from crystalperf.indexes.errors import InputError

    token = os.environ.pop(TOKEN, "")  # hide it from child processes, which read untrusted input
    if not file:
        return token.strip()
    try:
        found = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: the token cannot be read ({getattr(error, 'strerror', None) or error})") from error
    if not found:
        raise InputError(f"{file}: is empty; write the token into it")
    return found


def _limits(texts: list[str]) -> Limits:
    from crystalperf.indexes.errors import SettingError
    from crystalperf.service.settings import Limits

    known = {each.name: each.type for each in fields(Limits)}
    found: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            raise SettingError(f"unknown limit '{name}'; known limits: {', '.join(known)}")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 < number < 1 << 50 or (known[name] == "int" and number % 1):
            kind = "whole number" if known[name] == "int" else "number"
            raise SettingError(f"{text}: expected a {kind} above 0")
        found[name] = number if known[name] == "float" else int(number)
    return Limits(**found)
