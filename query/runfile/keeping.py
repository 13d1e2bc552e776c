"""The cache of run files: their paths, and whether a cached file is still valid."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from crystalperf import indexes as contract
from crystalperf.indexes import guard, store
from crystalperf.indexes.code_hash import code_hash
from crystalperf.indexes.errors import CrystalPerfError, InputError, Remedy
from crystalperf.indexes.exports import cache_folder, facts_by_name, writable
from crystalperf.query.attribution.code.libraries import IndexMatch, ProgramVersions, fitting
from crystalperf.query.inputs.files import Application, Inputs
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.trace.records import shortened

Signature = list[list[object]]
"""Detects changed inputs: path, size and modification time of every file."""

_LONGEST_NAME = 120

# Paths of Python files among the frames of a run file.
_PYTHON_PATHS = r"""
    SELECT DISTINCT regexp_extract(frame, '^(.*\.pyx?)\.', 1)
    FROM (SELECT unnest(frames) AS frame FROM stacks) WHERE contains(frame, '.py')
"""


def signature(inputs: Inputs, application: Application) -> Signature:
    """The signature of all files of a run; empty if one is a URL."""
    paths = [part.path for part in application.log.parts] + [each.path for each in inputs.samples]
    facts: Signature = []
    for path in dict.fromkeys(paths):
        try:
            status = Path(path).stat()
        except OSError:
            return []
        facts.append([str(Path(path).absolute()), status.st_size, status.st_mtime_ns])
    return facts


def layout(framework: ReadableFramework) -> str:
    """A hash of the tables and the code of a framework's run files; a run file with another one is rebuilt."""
    tables = (*contract.tables("run"), *framework.reader.raw())
    columns = [(table.name, [column.name for column in table.columns]) for table in tables]
    code = [code_hash("crystalperf.indexes", "crystalperf.query"), _code(framework)]
    return sha256(json.dumps([columns, code]).encode()).hexdigest()[:16]


def _code(framework: ReadableFramework) -> list[tuple[str, int, int]]:
    """Files of another package's framework, with sizes and times; code_hash() covers the built-in ones."""
    top = framework.reader.read.__module__.partition(".")[0]
    if top == __name__.partition(".")[0] or (found := getattr(sys.modules.get(top), "__file__", None)) is None:
        return []
    file = Path(found)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    stats = [(each.name, each.stat()) for each in files]
    return [(name, status.st_size, status.st_mtime_ns) for name, status in stats]


def check_replaceable(output: Path, application: Application, *, replace: bool = False) -> None:
    """Raise InputError if a run file would replace something else: the log itself, an index, a device.

    It does not replace another application's run either, unless the user says `replace`.
    """
    try:
        status = output.lstat()  # of the link itself, because a link would be replaced, not its target
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        where = shortened(str(output))
        raise InputError(f"{where}: cannot be written ({reason})", Remedy("choose another place")) from error
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
        return  # contract.create() refuses a folder; an empty file is a temporary one for this content
    if not stat.S_ISREG(status.st_mode) or store.kind_of(output) != "run":
        raise InputError(
            f"{output}: exists and is not a run file, so CrystalPerf does not replace it",
            Remedy("choose another place"),
        )
    existing = store.application_of(output)
    if not replace and existing != (application.framework, application.app_id):
        whose = "another application" if existing is None else shortened(existing[1])
        raise InputError(
            f"{output}: exists and has the run of {whose}, not of {shortened(application.app_id)}, so CrystalPerf does"
            " not replace it",
            Remedy("replace it"),
        )


def kept_place(application: Application, of_inputs: Signature) -> Path:
    """The default path of a run file in the cache, named after the application's id.

    A run file from other inputs of the same application keeps that name, so that a later analysis of the log alone
    does not replace a profile with samples; the new name then gets a hash of the paths.
    """
    name = application.app_id if application.attempt is None else f"{application.app_id}_{application.attempt}"
    place = cache_folder() / "runs" / f"{_file_name(name)}.duckdb"
    paths = sorted(str(path) for path, *_ in of_inputs)
    kept = _kept_inputs(place)
    if kept is None or sorted(path for path, *_ in kept) == paths:
        return place
    return place.with_stem(f"{place.stem}-{sha256(json.dumps(paths).encode()).hexdigest()[:6]}")


def kept_places(application: Application, of_inputs: Signature) -> Iterator[Path]:
    """The paths at which to look for a run file; the last is writable, which the cache itself may not be."""
    place = kept_place(application, of_inputs)
    yield place
    if (other := writable(place)) != place:
        yield other


def _file_name(name: str) -> str:
    """A valid file name: not hidden, and within the limit of file systems."""
    plain = re.sub(r"[^A-Za-z0-9_.-]|^\.", "_", name)
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:6]}"


def _kept_inputs(place: Path) -> list[list[Any]] | None:
    """The signature of a run file's inputs; None if this version cannot read such a file there."""
    try:
        found = json.loads(store.checked(place, "run").get("inputs", "[]"))
    except (CrystalPerfError, ValueError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, list) and each for each in found) else None


def is_current(place: Path, facts: dict[str, str], wanted: Sequence[str], framework: ReadableFramework) -> bool:
    """Whether a run file has these facts (inputs, layout), was made with the indexes that fit today, and is intact."""
    try:
        kept = store.checked(place, "run")
        connection = contract.open_read_only(place, "run")
    except CrystalPerfError:
        return False
    try:
        with guard.damage_as_error(place, "run"):
            known = connection.execute("SELECT framework_version, java_version, libraries FROM runs").fetchall()
            paths = connection.execute(_PYTHON_PATHS).fetchall()
            for table in contract.tables("run", ()):
                # DuckDB verifies each block's checksum when it reads the block; a damaged run file is rebuilt.
                connection.execute(f"SELECT bit_xor(hash(each)) FROM {table.name} AS each").fetchall()
    except CrystalPerfError:
        return False  # damaged
    finally:
        connection.close()
    if len(known) != 1:
        return False
    version_, java, libraries = known[0]
    fits = fitting(framework, ProgramVersions(java, libraries or [], version_), [path for (path,) in paths], wanted)
    return all(kept.get(key) == value for key, value in facts.items()) and kept.get("index_hashes") == json.dumps(
        content_hashes(fits)
    )


def content_hashes(fits: Sequence[IndexMatch]) -> list[list[str | None]]:
    """The indexes that fit a run, with the current hashes of their content, None if an index is gone."""
    return [[each.found, facts_by_name(each.found).get("content_hash")] for each in fits if each.found is not None]
