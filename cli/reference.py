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

`python -m crystalperf.cli.reference > docs/cli.md` generates this page from each command's `--help`; a test compares
the two.

The answer goes to stdout; progress and messages go to stderr.

| exit code | meaning |
|---|---|
| 0 | stdout has an answer |
| 1 | an argument is invalid, or no answer is possible: stderr has one sentence; with `--json`, stdout has the error |
| 2 | the command line cannot be parsed |
| 3 | only `gate`: a budget is exceeded; stdout has the answer |
| 4 | only `gate`: undecided (a range is on both sides of a budget, or a value is unknown); stdout has the answer |
| 130 | interrupted; 143 after SIGTERM |

If missing data could change the first sentence of an answer, that sentence says so, and `conclusive` in its JSON
(`debug.conclusive` of `analyze`) is false. `crystalperf --traceback COMMAND` shows the traceback of an error.

CrystalPerf stores run files and indexes in `$CRYSTALPERF_HOME`, else in `$XDG_CACHE_HOME/crystalperf`, else in
`~/.cache/crystalperf`. It respects `NO_COLOR` and `TERM=dumb`.
"""

_WIDTH = 80


def page() -> str:
    """The page as Markdown."""
    parts = [_HEAD]
    for path, text in helps(_WIDTH).items():
        lines = "\n".join(line.rstrip() for line in text.split("\n"))
        parts.append(f"## {f'crystalperf {path}'.rstrip()}\n\n```\n{lines.rstrip()}\n```\n")
    return "\n".join(parts)


def helps(width: int) -> dict[str, str]:
    """The help text of each command and subcommand, in this width; '' for that of all."""
    found = _helps(typer.main.get_command(app), "crystalperf", width)
    return {path.removeprefix("crystalperf").strip(): text for path, text in found}


def _helps(command: Any, path: str, width: int, parent: Any = None) -> Iterator[tuple[str, str]]:
    """(path, help text) of a command and its subcommands."""
    context = command.make_context(
        path.split(" ")[-1], [], parent=parent, resilient_parsing=True, terminal_width=width, max_content_width=width
    )
    yield path, command.get_help(context)
    for name, below in getattr(command, "commands", {}).items():
        yield from _helps(below, f"{path} {name}", width, context)


if __name__ == "__main__":
    print(page(), end="")
