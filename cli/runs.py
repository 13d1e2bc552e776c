"""Which run a user means: a run file, the name of one that is kept in the cache, or a log."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.text import cut_right

if TYPE_CHECKING:
    from crystalperf.query.run import Run

STDIN = "-"
"""What stands for a log on standard input."""

_STDIN = 0  # its descriptor
_DUCKDB_MAGIC = (8, b"DUCK")
_NAMES_SHOWN = 8


def runs_folder() -> Path:
    """Where `analyze` and `profile` keep run files unless told otherwise."""
    from crystalperf.indexes.exports import cache_folder

    return cache_folder() / "runs"


def kept_runs() -> list[str]:
    """The names of the runs in the cache, the newest first."""
    try:
        files = [each for each in runs_folder().glob("*.duckdb") if not each.name.startswith(".")]
        return [each.stem for each in sorted(files, key=lambda each: -each.stat().st_mtime)]
    except OSError:
        return []


def find_run(text: str) -> Run:
    """The run that the user means.  Raises what find_run_file() and opening the file raise."""
    from crystalperf import query

    return query.open_run(find_run_file(text))


def find_run_file(text: str) -> Path:
    """The run file that the user means; a log is profiled on the spot, and kept in the cache.

    Raises InputError where there is none, and whatever profiling raises.
    """
    from crystalperf.cli.output import progress, say
    from crystalperf.indexes.errors import InputError

    if (made := _made_before(text)) is not None:
        return made
    if text != STDIN and "://" not in text and not text.startswith("file:/") and not _exists(Path(text)):
        names = kept_runs()
        have = f"the cache holds {', '.join(names[:_NAMES_SHOWN])}" if names else "the cache holds no run yet"
        more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
        raise InputError(
            f"{cut_right(text, 200)}: neither a file nor the name of a run ({have}{more});"
            " make one with `crystalperf analyze LOG`"
        )
    with progress() as step:
        run = profile_run([text], step=step)
    say(f"profiled {text}, without recordings that may lie elsewhere; kept as {run_word(run.path)}")
    return run.path


def profile_run(
    paths: Sequence[str],
    output: str = "",
    app: str = "",
    indexes: Sequence[str] = (),
    step: Callable[[str], None] = lambda _: None,
    *,
    replace: bool = False,
) -> Run:
    """Profile what was named on the command line; '' stands for what was not."""
    from crystalperf import query

    return query.profile(
        [_stdin_path() if each == STDIN else each for each in paths],
        output=Path(output) if output else None,
        app=app or None,
        indexes=indexes,
        progress=step,
        replace=replace,
    )


def analyzed_run(
    paths: Sequence[str], output: str, app: str, indexes: Sequence[str], step: Callable[[str], None], *, replace: bool
) -> Run:
    """The same, where a run that was made before is asked again instead.

    Raises SettingError where that is to be made in another way than it was.
    """
    from crystalperf import query
    from crystalperf.indexes.errors import SettingError

    made = _made_before(paths[0]) if len(paths) == 1 else None
    if made is None:
        return profile_run(paths, output, app, indexes, step, replace=replace)
    if output or app or indexes:
        raise SettingError(
            f"{paths[0]}: is a run that was profiled before; --output, --app and --index go with its log"
        )
    return query.open_run(made)


def _made_before(text: str) -> Path | None:
    """The run file that the user names, by its path or by its name in the cache; None where it is something else."""
    path = Path(text)
    if _exists(path):
        return path if path.is_file() and (_is_duckdb(path) or path.suffix == ".duckdb") else None
    kept = runs_folder() / f"{text.removesuffix('.duckdb')}.duckdb"
    return kept if "/" not in text and text != STDIN and _exists(kept) else None


def _stdin_path() -> str:
    """Standard input as a file that can be read more than once.

    What a pipe brings is put into a file without a name, which then is standard input.  Raises InputError.
    """
    import os
    import shutil
    import tempfile

    from crystalperf.indexes.errors import InputError

    if os.isatty(_STDIN):
        raise InputError(
            "-: standard input is a terminal; send a log to it, as in `zcat LOG.gz | crystalperf analyze -`"
        )
    try:
        if not stat.S_ISREG(os.fstat(_STDIN).st_mode):
            with open(_STDIN, "rb", closefd=False) as pipe, tempfile.TemporaryFile() as kept:
                shutil.copyfileobj(pipe, kept, 1 << 20)
                kept.flush()
                os.dup2(kept.fileno(), _STDIN)
    except OSError as error:
        raise InputError(f"-: standard input cannot be read or kept ({error.strerror or error})") from error
    return "/dev/stdin"


def run_word(path: Path) -> str:
    """How a user would name a run file in the next command: by its name where it lies in the cache."""
    return path.stem if path.parent == runs_folder() else str(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long for the file system, or with a NUL
        return False


def _is_duckdb(path: Path) -> bool:
    from crystalperf.indexes.errors import InputError

    offset, magic = _DUCKDB_MAGIC
    try:
        with path.open("rb") as stream:
            return stream.read(offset + len(magic))[offset:] == magic
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error
