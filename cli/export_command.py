"""`crystalperf export`: write a run for another tool (query.export)."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.output import cannot_write, progress, silence, write
from crystalperf.cli.runs import find_run
from crystalperf.cli.text import printable
from crystalperf.indexes.errors import SettingError
from crystalperf.query.export.formats import export_to, format_of

if TYPE_CHECKING:
    from crystalperf.query.run import Run

STDOUT = "-"


def export(run_text: str, to: str, output: str, *, force: bool, redact: bool) -> int:
    """Write the export and print its path; with `-` only the export goes to stdout."""
    wanted = format_of(to)
    if output not in ("", STDOUT) and Path(output).resolve() == Path(run_text).resolve():
        raise SettingError(f"{output}: is the run to export; choose another place")
    run = find_run(run_text)
    place = output or f"{run.path.name.removesuffix('.duckdb')}{'-redacted' if redact else ''}{wanted.suffix}"
    with progress() as step, run.redacted() if redact else nullcontext(run) as shown:
        step(f"writing {wanted.content} as {wanted.name}")
        if output != STDOUT:
            shown.export(to, Path(place), replace=force)
        else:
            _to_stdout(shown, to)
    if output != STDOUT:
        write(f"Saved as {printable(place)}\n")
    return 0


def _to_stdout(run: Run, to: str) -> None:
    try:
        export_to(run, to, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        silence(sys.stdout)
        cannot_write(error)
