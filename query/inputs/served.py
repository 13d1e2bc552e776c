"""Fetches logs from servers by their addresses; each framework recognises its own servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from crystalperf.indexes.errors import InputError
from crystalperf.indexes.exports import cache_folder
from crystalperf.query.inputs.registry import readable
from crystalperf.query.trace.vocabulary import either


def fetched(paths: Sequence[str | Path], app: str | None, progress: Callable[[str], None]) -> list[str | Path]:
    """The paths, with addresses replaced by cached files; `app` chooses among the applications of a server.

    An address that no framework recognises stays, to be read as a file.  Raises InputError, one sentence.
    """
    found: list[str | Path] = []
    for path in paths:
        is_address = str(path).startswith(("http://", "https://"))
        file = _file(str(path), app, cache_folder() / "fetched", progress) if is_address else None
        found.append(path if file is None else file)
    return found


def fetch_log(address: str, app: str | None, folder: Path, progress: Callable[[str], None]) -> Path:
    """The log that a server offers at an address, as a file below `folder`.

    Raises InputError, one sentence.
    """
    file = _file(address, app, folder, progress)
    if file is None:
        raise InputError(f"{address}: not the address of a log of {_able()}")
    return file


def _file(address: str, app: str | None, folder: Path, progress: Callable[[str], None]) -> Path | None:
    for framework in readable().values():
        if framework.reader.served is not None:
            file = framework.reader.served(address, app, folder / framework.name, progress)
            if file is not None:
                return file
    if not urlsplit(address).path.strip("/"):
        raise InputError(f"{address}: responds, but does not serve logs of {_able()}; name the log itself")
    return None


def _able() -> str:
    return either([each.title for each in readable().values() if each.reader.served is not None])
