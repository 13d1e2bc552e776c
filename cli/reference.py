"""The reference page of the command line, generated from the help of the commands.

python -m crystalperf.cli.reference > docs/cli.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from crystalperf.cli.commands import app

_HEAD = """\
# The command line

Written by `python -m crystalperf.cli.reference > docs/cli.md` from the commands' own `--help`; a test compares the two.

JSON or an answer alone goes to stdout, progress and messages go to stderr. The exit code is 0 with an answer; 1 where
the content of an argument is wrong or no answer is possible (one sentence on stderr; stdout is empty, or has the
error as JSON where `--json` was given); 2 where the command line cannot be parsed; 130 when interrupted. If data are
missing that could change the first sentence of an answer, that sentence says so, and `conclusive` in its JSON
(`debug.conclusive` of `analyze`) is false. `crystalperf --traceback COMMAND` shows the traceback of an error.

Run files and indexes are kept in `$CRYSTALPERF_HOME`, else in `$XDG_CACHE_HOME/crystalperf`, else in
`~/.cache/crystalperf`. `NO_COLOR` and `TERM=dumb` are respected.
"""

_WIDTH = 80


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for path, text in _helps(typer.main.get_command(app), "crystalperf"):
        parts.append(f"## {path}\n\n```\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


def _helps(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """(path, help text) of a command and its subcommands."""
    context = command.make_context(
        path.split(" ")[-1], [], parent=parent, resilient_parsing=True, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    lines = [line.rstrip() for line in command.get_help(context).split("\n")]
    yield path, "\n".join(lines)
    for name, below in getattr(command, "commands", {}).items():
        yield from _helps(below, f"{path} {name}", context)


if __name__ == "__main__":
    print(page(), end="")
