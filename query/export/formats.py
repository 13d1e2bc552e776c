"""The formats of exports, and writing one atomically."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from crystalperf.indexes.errors import InputError, NoAnswerError, Remedy, SettingError
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.temporary import building_folder
from crystalperf.query.export.source import ExportableRun, Source
from crystalperf.query.trace.vocabulary import either

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crystalperf.query.results.answers import PathItem

PARQUET = "parquet"

WHOLE = "whole"
"""The scope of exports: pauses of a shell or notebook stay, so that all times are recorded ones."""


@frozen
class Format:
    """A format of exports: its name, the end of its files' names, the content in a few words."""

    name: str
    suffix: str
    content: str


FORMATS = (
    Format("speedscope", ".speedscope.json", "stacks"),
    Format("collapsed", ".collapsed", "stacks"),
    Format("pprof", ".pb.gz", "stacks"),
    Format("perfetto", ".pftrace", "tasks over time"),
    Format("otlp", ".otlp.jsonl", "spans"),
    Format(PARQUET, ".parquet", "tables, a folder"),
)


def format_of(name: str) -> Format:
    """The format of a name.  Raises SettingError for an unknown one."""
    found = next((each for each in FORMATS if each.name == name), None)
    if found is None:
        names = either([each.name for each in FORMATS])
        raise SettingError(f"no export format '{name[:60]}'; choose {names}")
    return found


def export(run: ExportableRun, format_name: str, output: Path, *, replace: bool = False) -> None:
    """Write a run to `output`, for parquet a new folder; it is complete or not there.

    It replaces an existing file, or a folder of Parquet files, only with `replace`.  Raises SettingError for an unknown
    format, InputError if the place cannot be written, NoAnswerError if the run has nothing to export.
    """
    wanted = format_of(format_name)
    _check_free(output, replace=replace, is_folder=wanted.name == PARQUET)
    output = output.absolute()
    try:
        with building_folder(output) as folder:
            made = folder / "made"
            if wanted.name == PARQUET:
                from crystalperf.query.export.parquet import write_tables

                made.mkdir(mode=0o700)
                write_tables(run.path, made)
            else:
                with made.open("xb") as out:
                    made.chmod(0o600)  # names of tables and hosts, texts of queries
                    _write(run, wanted, out)
            _put(made, output, folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{output}: cannot be written ({reason})", Remedy("choose another place")) from error


def export_to(run: ExportableRun, format_name: str, out: BinaryIO) -> None:
    """Write a run to a stream; nothing is written unless the export succeeds.

    Raises SettingError for parquet, which is several files.
    """
    wanted = format_of(format_name)
    if wanted.name == PARQUET:
        raise SettingError("parquet has a file for each table, so it needs a folder", Remedy("choose another place"))
    with tempfile.TemporaryFile() as made:
        _write(run, wanted, made)
        made.seek(0)
        shutil.copyfileobj(made, out)


def _write(run: ExportableRun, wanted: Format, out: BinaryIO) -> None:
    module = import_module(f"crystalperf.query.export.{wanted.name}")
    write: Callable[[Source, BinaryIO], None] = module.write
    header = run.header()

    def critical_path() -> Sequence[PathItem]:
        try:
            return run.debug(WHOLE).critical_path
        except NoAnswerError:
            return ()

    with run.reading() as connection:
        attempt, started_at_ms = connection.execute("SELECT attempt, started_at_ms FROM runs").fetchall()[0]
        source = Source(
            connection=connection,
            names=tuple(each.name for each in header.resources),
            app_id=header.app_id,
            attempt=attempt,
            name=header.name,
            framework=header.framework,
            framework_version=header.framework_version,
            started_at_ms=started_at_ms,
            duration_ms=header.duration_ms,
            vocabulary=header.vocabulary,
            critical_path=critical_path,
        )
        write(source, out)


def _check_free(output: Path, *, replace: bool, is_folder: bool) -> None:
    """Raise InputError unless the place is free, or may be replaced."""
    try:
        status = output.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{output}: cannot be written ({reason})", Remedy("choose another place")) from error
    if is_folder:
        if not stat.S_ISDIR(status.st_mode):
            raise InputError(f"{output}: exists and is not a folder", Remedy("choose another place"))
        if any(each.suffix != ".parquet" for each in output.iterdir()):
            raise InputError(f"{output}: has other files than Parquet's", Remedy("choose another place"))
        if not any(output.iterdir()):
            return
    elif not stat.S_ISREG(status.st_mode):
        raise InputError(f"{output}: exists and is not a regular file", Remedy("choose another place"))
    elif status.st_size == 0:
        return
    if not replace:
        raise InputError(f"{output}: exists, so it is not replaced", Remedy("replace it"))


def _put(made: Path, output: Path, folder: Path) -> None:
    """Rename what was made to its place; an old folder is moved away first."""
    if made.is_dir():
        with suppress(FileNotFoundError):
            output.rename(folder / "replaced")
    os.replace(made, output)
