"""Resolving RUN arguments: a run file, the name of a run in the cache, or a log."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crystalperf.cli.text import cut_right

if TYPE_CHECKING:
    from crystalperf.query.run import Run

STDIN = "-"
"""The argument for a log on standard input."""

_STDIN = 0  # its descriptor
_DUCKDB_MAGIC = (8, b"DUCK")
_NAMES_SHOWN = 8


def runs_folder() -> Path:
    """The default folder of run files."""
    from crystalperf.indexes.cache import cache_folder

    return cache_folder() / "runs"


def kept_runs() -> list[str]:
    """The names of the runs in the cache, the newest first."""
    try:
        files = [each for each in runs_folder().glob("*.duckdb") if not each.name.startswith(".")]
        return [each.stem for each in sorted(files, key=lambda each: -each.stat().st_mtime)]
    except OSError:
        return []


LAST = "last"
"""The name of the newest run in the cache, unless a run has this name."""


def find_kept(name: str) -> Path:
    """The file of a run in the cache; raises InputError, with similar names, if there is none."""
    from crystalperf.indexes.errors import InputError

    made = _made_before(name) if not _exists(Path(name)) else None
    if made is None:
        raise InputError(f"{cut_right(name, 200)}: not a run in the cache ({_have(name)})")
    return made


def _have(text: str) -> str:
    """The runs in the cache, those with similar names first."""
    from difflib import get_close_matches

    names = kept_runs()
    if not names:
        return "the cache is empty"
    near = get_close_matches(text, names, _NAMES_SHOWN, 0.6) or [each for each in names if text in each]
    if near:
        return f"did you mean {' or '.join(near[:2])}?"
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"the cache has {', '.join(names[:_NAMES_SHOWN])}{more}; `crystalperf runs` lists them"


def find_run(text: str) -> Run:
    """The run that the argument names.  Raises what find_run_file() and opening the file raise."""
    from crystalperf import query

    return query.open_run(find_run_file(text))


def find_run_file(text: str) -> Path:
    """The run file that the argument names; a log is profiled, and the run file stored in the cache.

    Raises InputError if there is none, and what profiling raises.
    """
    from crystalperf.cli.output import print_message, progress
    from crystalperf.indexes.errors import InputError

    if (made := _made_before(text)) is not None:
        return made
    if text != STDIN and "://" not in text and not text.startswith("file:/") and not _exists(Path(text)):
        raise InputError(
            f"{cut_right(text, 200)}: not a file, and not a run in the cache ({_have(text)});"
            " create a run with `crystalperf analyze LOG`"
        )
    with progress() as step:
        run = profile_run([text], step=step)
    print_message(f"profiled {text} without recordings from other folders; saved as {run_word(run.path)}")
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
    """Profile the inputs; '' means an option was not given."""
    from crystalperf import query

    return query.profile(
        [_stdin_path() if each == STDIN else _rereadable(each) for each in paths],
        output=Path(output) if output else None,
        app=app or None,
        indexes=indexes,
        progress=step,
        replace=replace,
    )


def analyzed_run(
    paths: Sequence[str], output: str, app: str, indexes: Sequence[str], step: Callable[[str], None], *, replace: bool
) -> Run:
    """Like profile_run(), but an existing run is opened instead.

    Raises SettingError if options would require profiling it again.
    """
    from crystalperf import query
    from crystalperf.indexes.errors import SettingError

    made = _made_before(paths[0]) if len(paths) == 1 else None
    if made is None:
        return profile_run(paths, output, app, indexes, step, replace=replace)
    if output or app or indexes:
        raise SettingError(
            f"{paths[0]}: this run was profiled before; leave out --output, --app and --index, or give its log"
        )
    return query.open_run(made)


def named_files(paths: Sequence[str]) -> list[Path]:
    """The files and folders that arguments name: logs, recordings, run files, names of runs in the cache."""
    made = _made_before(paths[0]) if len(paths) == 1 else None
    return [Path(each).absolute() for each in paths] if made is None else [made.absolute()]


def _made_before(text: str) -> Path | None:
    """The existing run file with this path or this name in the cache; None if there is none."""
    path = Path(text)
    if _exists(path):
        return path if path.is_file() and (_is_duckdb(path) or path.suffix == ".duckdb") else None
    if "/" in text or text == STDIN:
        return None
    kept = runs_folder() / f"{text.removesuffix('.duckdb')}.duckdb"
    if _exists(kept):
        return kept
    newest = kept_runs()[:1] if text == LAST else []
    return runs_folder() / f"{newest[0]}.duckdb" if newest else None


def _stdin_path() -> str:
    """Standard input as a file that can be read more than once.

    The content of a pipe is copied to an anonymous file, which replaces standard input.  Raises InputError.
    """
    import os

    from crystalperf.indexes.errors import InputError

    if os.isatty(_STDIN):
        raise InputError(
            "-: standard input is a terminal; send a log to it, as in `zcat LOG.gz | crystalperf analyze -`"
        )
    try:
        if not stat.S_ISREG(os.fstat(_STDIN).st_mode):
            _replace_by_copy(_STDIN)
    except OSError as error:
        raise InputError(f"-: standard input cannot be read or kept ({error.strerror or error})") from error
    return "/dev/stdin"


def _rereadable(path: str) -> str:
    """The path, or if it is a pipe, such as the shell's `<(zcat LOG.gz)`, that of a copy of its content.

    A pipe can be read only once, and a log is read twice: to recognise it, and to read it.  Raises InputError.
    """
    import os

    from crystalperf.indexes.errors import InputError

    try:
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return path
        number = re.fullmatch(r"/dev/fd/(\d+)|/proc/self/fd/(\d+)", path)
        if number is not None:
            _replace_by_copy(int(number[1] or number[2]))
            return path
        pipe = os.open(path, os.O_RDONLY)
        _replace_by_copy(pipe)
        return f"/dev/fd/{pipe}"
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | ValueError):
            return path  # not a path, or of nothing: inspecting the inputs says so
        raise InputError(f"{path}: cannot be read or kept ({getattr(error, 'strerror', None) or error})") from error


def _replace_by_copy(descriptor: int) -> None:
    """Replace a pipe's descriptor by that of an anonymous file with its content."""
    import os
    import shutil
    import tempfile

    with open(descriptor, "rb", closefd=False) as pipe, tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(pipe, kept, 1 << 20)
        kept.flush()
        os.dup2(kept.fileno(), descriptor)


def run_word(path: Path) -> str:
    """The argument that names a run file in the next command: its name if it is in the cache, else its path."""
    return path.stem if path.parent == runs_folder() else str(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the name is too long for the file system, or has a NUL
        return False


def _is_duckdb(path: Path) -> bool:
    from crystalperf.indexes.errors import InputError

    offset, magic = _DUCKDB_MAGIC
    try:
        with path.open("rb") as stream:
            return stream.read(offset + len(magic))[offset:] == magic
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); check its permissions") from error
