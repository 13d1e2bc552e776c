"""Where run files are kept, and when one that is there will do."""

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
from crystalperf.query.attribution.code.libraries import Fit, Ran, fitting
from crystalperf.query.inputs.files import Application, Inputs
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.trace.records import shortened

Signature = list[list[object]]
"""What tells whether inputs changed: path, size and time of change of every file."""

_LONGEST_NAME = 120

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


def layout(framework: ReadableFramework) -> str:
    """A hash of what a run file of a framework holds: one of fewer tables, or by other code, is made again."""
    tables = (*contract.tables("run"), *framework.reader.raw())
    columns = [(table.name, [column.name for column in table.columns]) for table in tables]
    code = [code_hash("crystalperf.indexes", "crystalperf.query"), _code(framework)]
    return sha256(json.dumps([columns, code]).encode()).hexdigest()[:16]


def _code(framework: ReadableFramework) -> list[tuple[str, int, int]]:
    """Files of another package's framework, with sizes and times; the built-in ones are among CrystalPerf's own."""
    top = framework.reader.read.__module__.partition(".")[0]
    if top == __name__.partition(".")[0] or (found := getattr(sys.modules.get(top), "__file__", None)) is None:
        return []
    file = Path(found)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    stats = [(each.name, each.stat()) for each in files]
    return [(name, status.st_size, status.st_mtime_ns) for name, status in stats]


def check_replaceable(output: Path, application: Application, *, replace: bool = False) -> None:
    """Refuse to put a run file where something else lies: the log itself, an index, a device.

    Another application's run stays too, unless the user says `replace`.
    """
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
    if not stat.S_ISREG(status.st_mode) or store.kind_of(output) != "run":
        raise InputError(f"{output}: is there already and is no run file, so it stays", Remedy("choose another place"))
    there = store.application_of(output)
    if not replace and there != (application.framework, application.app_id):
        whose = "another application" if there is None else shortened(there[1])
        raise InputError(
            f"{output}: is there already and holds the run of {whose}, not of {shortened(application.app_id)}, so it"
            " stays",
            Remedy("replace it"),
        )


def kept_place(application: Application, of_inputs: Signature) -> Path:
    """Where a run is kept without being told: under the application's id.

    What other files of the same application already made keeps that name (the log alone, asked later, must not
    replace the profile with samples); then a hash of the paths tells the two apart.
    """
    name = application.app_id if application.attempt is None else f"{application.app_id}_{application.attempt}"
    place = cache_folder() / "runs" / f"{_file_name(name)}.duckdb"
    paths = sorted(str(path) for path, *_ in of_inputs)
    kept = _kept_inputs(place)
    if kept is None or sorted(path for path, *_ in kept) == paths:
        return place
    return place.with_stem(f"{place.stem}-{sha256(json.dumps(paths).encode()).hexdigest()[:6]}")


def kept_places(application: Application, of_inputs: Signature) -> Iterator[Path]:
    """Where a run is looked for; the last is where it can be written, which the cache's own place may not be."""
    place = kept_place(application, of_inputs)
    yield place
    if (other := writable(place)) != place:
        yield other


def _file_name(name: str) -> str:
    """A name as a file may have it: not hidden, and no longer than file systems take."""
    plain = re.sub(r"[^A-Za-z0-9_.-]|^\.", "_", name)
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}-{sha256(name.encode()).hexdigest()[:6]}"


def _kept_inputs(place: Path) -> list[list[Any]] | None:
    """The signature a run file was made from; None where there is none that this version can read."""
    try:
        found = json.loads(store.checked(place, "run").get("inputs", "[]"))
    except (CrystalPerfError, ValueError):
        return None
    return found if isinstance(found, list) and all(isinstance(each, list) and each for each in found) else None


def still_good(place: Path, facts: dict[str, str], wanted: Sequence[str], framework: ReadableFramework) -> bool:
    """Whether a run file has these facts (inputs, layout), with the indexes that fit it today, and is whole."""
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
                # Every block has a checksum, which is looked at when it is read: what is damaged is made again.
                connection.execute(f"SELECT bit_xor(hash(each)) FROM {table.name} AS each").fetchall()
    except CrystalPerfError:
        return False  # damaged
    finally:
        connection.close()
    if len(known) != 1:
        return False
    version_, java, libraries = known[0]
    fits = fitting(framework, Ran(java, libraries or [], version_), [path for (path,) in paths], wanted)
    return all(kept.get(key) == value for key, value in facts.items()) and kept.get("index_hashes") == json.dumps(
        content_hashes(fits)
    )


def content_hashes(fits: Sequence[Fit]) -> list[list[str | None]]:
    """The indexes that fit a run with what they hold today, None where they are gone."""
    return [[each.found, facts_by_name(each.found).get("content_hash")] for each in fits if each.found is not None]
