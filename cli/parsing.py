"""The parser of the command line: what typer makes of the declarations in cli/commands.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any

import typer

from crystalperf.cli.commands import app

_RUN_NOTHING = {"-h", "--help", "--version"}
"""Options that run no command."""


def _named(arguments: Sequence[str]) -> str | None:
    """The command to run: '' for none, None if a shell completes words or if there is no such command."""
    if "_CRYSTALPERF_COMPLETE" in os.environ:
        return None
    if set(arguments) <= _RUN_NOTHING:
        return ""
    return arguments[0] if arguments[0] in map(_name, (*app.registered_commands, *app.registered_groups)) else None


def command(arguments: Sequence[str]) -> Any:
    """The click command that typer makes of the declarations, for these arguments."""
    return _command(_named(arguments))


@cache
def _command(named: str | None) -> Any:
    """Cached for callers that run several.

    Typer takes 1.5 ms of CPU time for each command's options: so it gets those of the command `named` alone, and for
    '' only the names and texts of the commands.
    """
    part = copy(app)
    if named is not None:
        chosen = _without_options if named == "" else lambda each: each
        part.registered_commands, part.registered_groups = (
            [chosen(each) for each in listed if named in ("", _name(each))]
            for listed in (app.registered_commands, app.registered_groups)
        )
    made = typer.main.get_command(part)
    _take_texts(made)
    return made


def _name(declared: Any) -> str:
    """The name of a declared command or group."""
    return str(declared.name or declared.callback.__name__)


def _without_options(declared: Any) -> Any:
    """A command or group with its name and texts, but without options and subcommands."""

    def run() -> None:
        pass

    bare = copy(declared)
    if hasattr(declared, "typer_instance"):
        bare.typer_instance = typer.Typer()
    else:
        bare.name, run.__doc__, bare.callback = _name(declared), declared.callback.__doc__, run
    return bare


def _take_texts(command: Any) -> None:
    """Make typer pass texts and flags to the functions of a command and its subcommands without conversion.

    Typer would validate texts with pydantic, whose import takes 5 % of an analysis.  A version of typer without these
    names validates as usual.
    """
    parameters = command.get_params

    def taking_texts(context: Any) -> Any:
        found = parameters(context)
        for each in found:
            if getattr(getattr(each, "type_descriptor", None), "annotation", None) in (str, list[str], bool):
                each.get_runtime_param = _AsTyped
        return found

    command.get_params = taking_texts
    for each in getattr(command, "commands", {}).values():
        _take_texts(each)


class _AsTyped:
    """A parameter type that converts nothing: the values are the texts as typed."""

    def coerce(self, value: Any, **_: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value
