"""Where run files are kept, and when one that is there will do."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

import indexes as contract
from indexes.errors import CrystalPerfError, InputError, Remedy
from indexes.exports import cache_folder, facts_by_name
from query.code.libraries import Fit, Ran, fitting
from query.frameworks import Framework
from query.inputs.files import Application, Inputs
from query.model.records import shortened

Signature = list[list[object]]
"""What tells whether inputs changed: path, size and time of change of every file."""

# Paths of Python files among the frames of a run file.
_PYTHON_PATHS = r"""
    SELECT DISTINCT regexp_extract(frame, '^(.*\.pyx?)\.', 1)
    FROM (SELECT unnest(frames) AS frame FROM stacks) WHERE contains(frame, '.py')
"""


def signature(inputs: Inputs, application: Application) -> Signature:
    """The signature of all files of a run; empty where one is a URL."""
    paths = [part.path for part in application.log.parts] + [each.path for each in inputs.samples]
    facts: Signature = []
    for path in dict.fromkeys(paths):
        try:
            status = Path(path).stat()
        except OSError:
            return []
        facts.append([str(Path(path).absolute()), status.st_size, status.st_mtime_ns])
    return facts


def layout(framework: Framework) -> str:
    """A hash of what a run file of a framework holds: one of fewer tables is made again."""
    tables = (*contract.tables("run"), *framework.raw())
    columns = [(table.name, [column.name for column in table.columns]) for table in tables]
    return sha256(json.dumps(columns).encode()).hexdigest()[:16]


def check_replaceable(output: Path) -> None:
    """Refuse to put a run file where something else lies: the log itself, an index, a device."""
    try:
        status = output.lstat()  # a link would be replaced too, not what it leads to
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        where = shortened(str(output))
        raise InputError(f"{where}: cannot be written ({reason})", Remedy("choose another place")) from error
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
        return  # a folder is refused where the file is made, an empty file is a temporary one waiting for its content
    kind = None
    if stat.S_ISREG(status.st_mode):
        with suppress(duckdb.Error), duckdb.connect() as connection:
            quoted = str(output).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS there (READ_ONLY)")
            kind = connection.execute("SELECT value FROM there.metadata WHERE key = 'kind'").fetchone()
    if kind != ("run",):
        raise InputError(f"{output}: is there already and is no run file, so it stays", Remedy("choose another place"))


def kept_place(application: Application, of_inputs: Signature) -> Path:
    """Where a run is kept without being told: under the application's id.

    What other files of the same application already made keeps that name (the log alone, asked later, must not
    replace the profile with samples); then a hash of the paths tells the two apart.
    """
    name = application.app_id if application.attempt is None else f"{application.app_id}_{application.attempt}"
    place = cache_folder() / "runs" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.duckdb"
    paths = sorted(str(path) for path, *_ in of_inputs)
    kept = _kept_inputs(place)
    if kept is None or sorted(path for path, *_ in kept) == paths:
        return place
    return place.with_stem(f"{place.stem}-{sha256(json.dumps(paths).encode()).hexdigest()[:6]}")


def _kept_inputs(place: Path) -> list[list[Any]] | None:
    """The signature a run file was made from; None where there is none that this version can read."""
    try:
        connection = contract.open_read_only(place, "run")
    except CrystalPerfError:
        return None
    row = connection.execute("SELECT value FROM metadata WHERE key = 'inputs'").fetchone()
    connection.close()
    return json.loads(row[0]) if row else []


def still_good(place: Path, facts: dict[str, str], wanted: Sequence[str], framework: Framework) -> bool:
    """Whether a run file of this version was made from the same inputs, with the indexes that fit it today."""
    try:
        connection = contract.open_read_only(place, "run")
    except CrystalPerfError:
        return False
    kept = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
    try:
        known = connection.execute("SELECT framework_version, java_version, libraries FROM runs").fetchall()[0]
        paths = connection.execute(_PYTHON_PATHS).fetchall()
    except duckdb.Error:
        return False  # of an earlier CrystalPerf
    finally:
        connection.close()
    ran = Ran(known[1], known[2] or [], known[0])
    fits = fitting(framework, ran, [path for (path,) in paths], wanted)
    return (
        kept["tool_version"] == version("crystalperf")
        and all(kept.get(key) == value for key, value in facts.items())
        and kept.get("index_hashes") == json.dumps(content_hashes(fits))
    )


def content_hashes(fits: Sequence[Fit]) -> list[list[str | None]]:
    """The indexes that fit a run with what they hold today, None where they are gone."""
    return [[each.found, facts_by_name(each.found).get("content_hash")] for each in fits if each.found is not None]
