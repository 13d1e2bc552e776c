"""Indexes by name: where they are stored, and how they are exported and imported.

    built      <cache>/indexes/NAME-VERSION.duckdb           written by `crystalperf index build`
    prebuilt   indexes/NAME-VERSION/*.parquet, metadata.json shipped with CrystalPerf, as compact exports
    imported   <cache>/prebuilt/NAME-VERSION-HASH.duckdb     a prebuilt index, unpacked on first use

<cache> is $CRYSTALPERF_HOME, else $XDG_CACHE_HOME/crystalperf, else ~/.cache/crystalperf.

CrystalPerf imports exports only, never a DuckDB file from elsewhere: attaching one is like loading a library.  The
content hash of an export must be pinned in prebuilt.json, unless the user trusts it explicitly.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

import duckdb

from crystalperf.indexes import guard
from crystalperf.indexes.cache import cache_folder as cache_folder
from crystalperf.indexes.cache import spare_folder as spare_folder
from crystalperf.indexes.errors import IndexFileError, Remedy
from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.guard import is_full
from crystalperf.indexes.packing import PACKED, unpacking
from crystalperf.indexes.regex import regex
from crystalperf.indexes.schema import SCHEMA_VERSIONS, tables
from crystalperf.indexes.store import attach, checked, create
from crystalperf.indexes.temporary import building_folder

_NAME = regex(r"(?P<name>[A-Za-z0-9_.+-]+?)-(?P<version>[0-9][A-Za-z0-9_.+-]*)")
_LONGEST_NAME = 200  # a file is named after it
_MAX_TEXT_BYTES = 1 << 30
"""Of all tables of an export, written out; the JDK's have 0.1 GB."""

_MAX_ROWS = 20_000_000
"""Of one table of an export; Spark's largest has 0.3 million."""


@frozen
class Available:
    """An index that can be used: `path` is a DuckDB file (built) or an export's folder (prebuilt)."""

    name: str
    origin: Literal["built", "prebuilt"]
    path: Path


def writable(place: Path) -> Path:
    """A path in the cache, or the same path in spare_folder() if the cache is not writable."""
    try:
        with building_folder(place):
            return place
    except OSError:
        return spare_folder() / place.relative_to(cache_folder())


def prebuilt_folder() -> Path:
    """The folder of the exports that ship with CrystalPerf."""
    shipped = files("crystalperf.indexes")
    return shipped if isinstance(shipped, Path) else _extracted()


@cache
def _extracted() -> Path:
    """The exports of a package imported from a ZIP, extracted to the cache because DuckDB reads files only."""
    shipped = files("crystalperf.indexes")
    pins = shipped.joinpath("prebuilt.json").read_bytes()
    folder = cache_folder() / "shipped" / sha256(pins).hexdigest()[:16]
    if not folder.is_dir():
        folder = writable(folder)
    if not folder.is_dir():
        with building_folder(folder) as temporary:
            made = temporary / folder.name
            made.mkdir()
            (made / "prebuilt.json").write_bytes(pins)
            for export in (each for each in shipped.iterdir() if each.joinpath("metadata.json").is_file()):
                (made / export.name).mkdir()
                for each in export.iterdir():
                    (made / export.name / each.name).write_bytes(each.read_bytes())
            with suppress(OSError):  # another process was quicker
                made.rename(folder)
    return folder


def is_name(text: str) -> bool:
    """Whether the text is a valid index name."""
    return len(text) <= _LONGEST_NAME and not text.startswith(".") and _NAME.fullmatch(text) is not None


def split_name(index_name: str) -> tuple[str, str]:
    """`scala-library-2.13.16` → ('scala-library', '2.13.16').  Raises IndexFileError for an invalid name."""
    match = _NAME.fullmatch(index_name)
    if match is None or not is_name(index_name):
        raise IndexFileError(
            f"'{index_name[:_LONGEST_NAME]}' is not the name of an index; names are NAME-VERSION, like spark-4.0.1"
        )
    return match["name"], match["version"]


def built_path(index_name: str) -> Path:
    """The path at which `index build` writes an index of this name."""
    split_name(index_name)
    return cache_folder() / "indexes" / f"{index_name}.duckdb"


def available() -> list[Available]:
    """All available indexes, by name.

    An index that the user built takes precedence over a prebuilt one, unless this version cannot read it.
    """
    shipped = prebuilt_folder()
    found = {each.name: Available(each.name, "prebuilt", each) for each in _shipped(shipped, _changed_ns(shipped))}
    for each in sorted((cache_folder() / "indexes").glob("*.duckdb")):
        if _NAME.fullmatch(each.stem) and (each.stem not in found or _unreadable(each) is None):
            found[each.stem] = Available(each.stem, "built", each)
    return [found[name] for name in sorted(found)]


def unreadable() -> dict[str, IndexFileError]:
    """The indexes that the user built and that this version cannot read, by name, with the reasons."""
    built = sorted((cache_folder() / "indexes").glob("*.duckdb"))
    reasons = {each.stem: _unreadable(each) for each in built if _NAME.fullmatch(each.stem)}
    return {name: why for name, why in reasons.items() if why is not None}


def _unreadable(path: Path) -> IndexFileError | None:
    """Why an index cannot be read; None if it can."""
    try:
        checked(path, "index")
    except IndexFileError as error:
        return error
    return None


def _changed_ns(folder: Path) -> int:
    """The time of the last change of a folder's entries, ns; 0 if the folder does not exist."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=4)
def _shipped(folder: Path, _changed: int) -> tuple[Path, ...]:
    """The exports in a folder, cached: reading one log needs them 16 times."""
    found = sorted(each.parent for each in folder.glob("*/metadata.json"))
    return tuple(each for each in found if _NAME.fullmatch(each.name))


def nearest(index_name: str) -> str | None:
    """The available index of the same package whose version is nearest."""
    return closest(index_name, (each.name for each in available()))


def closest(index_name: str, names: Iterable[str]) -> str | None:
    """The name of the same package with the nearest version, from `names`; invalid names are ignored."""
    name, version = split_name(index_name)
    requested = _numbers(version)
    candidates = [each for each in names if _NAME.fullmatch(each) and split_name(each)[0] == name]

    def distance(candidate: str) -> tuple[int, ...]:
        """By component; after the first difference, in its direction: 4.9 is nearer to 5.0 than 4.1 is."""
        numbers = _numbers(split_name(candidate)[1])
        length = max(len(requested), len(numbers))
        found: list[int] = []
        sign = 0
        for ours, theirs in zip(_padded(requested, length), _padded(numbers, length), strict=True):
            found.append(sign * theirs if sign else abs(ours - theirs))
            sign = sign or (theirs > ours) - (theirs < ours)
        return tuple(found)

    return min(candidates, key=distance, default=None)


def locate(index_name: str) -> Path:
    """The DuckDB file of an index; a prebuilt index is unpacked on first use.

    Raises IndexFileError if there is none, and names the nearest version and the available indexes.
    """
    found = at_hand(index_name)
    if found.origin == "built":
        return found.path
    unpacked = unpacked_path(found)
    if not _is_whole(unpacked):
        unpacked = writable(unpacked)
    if not _is_whole(unpacked):
        import_index(found.path, unpacked)
        for old in unpacked.parent.glob(f"{index_name}-*.duckdb"):
            # The prebuilt index before an update of CrystalPerf.
            if old != unpacked and re.fullmatch(rf"{re.escape(index_name)}-[0-9a-f]{{16}}", old.stem):
                old.unlink(missing_ok=True)
    return unpacked


def at_hand(index_name: str) -> Available:
    """The index of this name.  Raises IndexFileError, which names the nearest version and the available indexes."""
    found = next((each for each in available() if each.name == index_name), None)
    if found is None:
        name, _ = split_name(index_name)
        near = nearest(index_name)
        others = ", ".join(each.name for each in available()) or "none"
        hint = f"the nearest is {near}" if near else f"there is no version of '{name}'"
        raise IndexFileError(
            f"no index '{index_name}': {hint}; available: {others}", Remedy("build the index", {"index": index_name})
        )
    return found


def _is_whole(unpacked: Path) -> bool:
    """Whether an unpacked index exists and opens; the caller unpacks a damaged one again."""
    if not unpacked.is_file():
        return False
    try:
        checked(unpacked, "index")
    except IndexFileError:
        return False
    return True


def facts_of(index: Available) -> dict[str, str]:
    """The metadata of an available index, without unpacking it.  Raises IndexFileError if it is unreadable."""
    if index.origin == "prebuilt":
        return _read_metadata(index.path)
    connection = guard.fresh()
    try:
        return attach(connection, index.path, "index", "described")
    finally:
        connection.close()


def facts_by_name(index_name: str) -> dict[str, str]:
    """The metadata of an available index; empty if the index is missing or unreadable."""
    found = next((each for each in available() if each.name == index_name), None)
    try:
        return facts_of(found) if found is not None else {}
    except IndexFileError:
        return {}


def may_have(index: Available, text: str) -> bool:
    """Whether the symbol of any function contains the text.  It avoids unpacking a prebuilt index in vain.

    Raises IndexFileError for a damaged export.
    """
    if index.origin == "built" or unpacked_path(index).is_file():
        return True
    source = index.path / "functions.parquet"
    try:
        with guard.fresh() as connection:
            query = "SELECT 1 FROM read_parquet(?) WHERE contains(symbol, ?) LIMIT 1"
            return connection.execute(query, [str(source), text]).fetchone() is not None
    except duckdb.Error as error:
        raise IndexFileError(f"{source}: not a table of an exported index ({first_line(error)})") from error


def unpacked_path(index: Available) -> Path:
    """The path to which a prebuilt index is unpacked; the file need not exist yet."""
    pinned = _read_metadata(index.path)["content_hash"]
    return cache_folder() / "prebuilt" / f"{index.name}-{pinned[:16]}.duckdb"


def export_index(path: Path, folder: Path) -> Path:
    """Write an index as zstd Parquet files and metadata.json, replacing `folder`; returns the folder."""
    connection = guard.fresh()
    try:
        facts = attach(connection, path, "index", "source")
        with building_folder(folder.absolute()) as temporary:
            staged = temporary / "export"
            staged.mkdir(mode=0o755)
            for name, packed in PACKED.items():
                target = str(staged / f"{name}.parquet").replace("'", "''")
                connection.execute(
                    f"COPY ({packed.format(alias='source')}) TO '{target}' (FORMAT parquet,"
                    " COMPRESSION zstd, COMPRESSION_LEVEL 19, ROW_GROUP_SIZE 1000000, PARQUET_VERSION v2)"
                )
            text = json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)
            (staged / "metadata.json").write_text(text + "\n", encoding="utf-8")
            if not folder.exists():
                staged.rename(folder)
            else:
                before = temporary.with_suffix(".before")  # not removed as stale: a kill in between loses neither
                folder.rename(before)
                staged.rename(folder)
                before.rename(temporary / "before")
    except OSError as error:
        raise IndexFileError(
            f"{folder}: cannot be written ({error.strerror})", Remedy("choose another folder")
        ) from error
    finally:
        connection.close()
    return folder


def import_index(folder: Path, path: Path, trust: bool = False) -> Path:
    """Make the DuckDB file `path` from the export in `folder`, atomically; returns the path.

    Raises IndexFileError for content that does not match its hash, for another schema version and, unless `trust`, for
    a content hash that is not pinned in prebuilt.json.
    """
    facts = _read_metadata(folder)
    claimed = facts["content_hash"]
    if not trust:
        refuse_unpinned(folder, claimed)
    from crystalperf.indexes.content import (
        content_hash,  # with numpy, which takes longer to import than an index to open
    )

    metadata = {key: value for key, value in facts.items() if key not in ("schema_version", "kind")}
    with create(path, "index", metadata) as connection:
        _refuse_oversized(connection, folder)
        for table in tables("index"):
            if table.name == "metadata":
                continue
            source = folder / f"{table.name}.parquet"
            columns = ", ".join(column.name for column in table.columns)
            try:
                row = connection.execute("SELECT sum(num_rows) FROM parquet_file_metadata(?)", [str(source)]).fetchone()
                if row is None or (row[0] or 0) > _MAX_ROWS:
                    raise IndexFileError(f"{source}: more than {_MAX_ROWS} rows, the limit for an index")
                rows = unpacking(table.name, folder, "functions")
                connection.execute(f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM ({rows})")
            except duckdb.Error as error:
                if is_full(error):
                    raise IndexFileError(
                        f"{path}: the disk is full; free space there, or set CRYSTALPERF_HOME to another folder"
                    ) from error
                raise IndexFileError(f"{source}: not a table of an exported index ({first_line(error)})") from error
        if content_hash(connection, "built") != claimed:
            raise IndexFileError(f"{folder}: the content does not match its hash; it was damaged or changed")
    return path


def _refuse_oversized(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Refuse an export whose texts are larger than any index's, before loading any of it.

    A column of a few kB can expand to one long text a million times.  The query counts the bytes and keeps none.
    """
    size = 0
    for name in PACKED:
        source = folder / f"{name}.parquet"
        if not source.is_file():
            raise IndexFileError(f"{source}: no such file; the export is incomplete")
        try:
            held = connection.execute("SELECT * FROM read_parquet(?) LIMIT 0", [str(source)]).description or ()
            texts = [f"coalesce(sum(strlen({_identifier(each[0])}::VARCHAR)), 0)" for each in held]
            row = connection.execute(f"SELECT {' + '.join(texts)} FROM read_parquet(?)", [str(source)]).fetchone()
        except duckdb.Error as error:
            raise IndexFileError(f"{source}: not a table of an exported index ({first_line(error)})") from error
        size += int(row[0]) if row is not None else 0
        if size > _MAX_TEXT_BYTES:
            raise IndexFileError(f"{folder}: more than {_MAX_TEXT_BYTES >> 20} MiB of text, the limit for an index")


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refuse_unpinned(folder: Path, claimed: str) -> None:
    """Raise IndexFileError for an export whose content hash is not one of those that ship with CrystalPerf."""
    if claimed not in pinned_hashes().values():
        raise IndexFileError(
            f"{folder}: an unknown index (content {claimed[:16]}…) that does not ship with CrystalPerf; your answers"
            " depend on its labels, so use it only if you trust its author",
            Remedy("vouch for the index"),
        )


def first_line(error: Exception) -> str:
    """The first line of an error; DuckDB appends the statement."""
    return str(error).split("\n")[0]


def name_of_export(folder: Path) -> str:
    """NAME-VERSION of an export, from its metadata.  Raises IndexFileError if the folder is not an export."""
    facts = _read_metadata(folder)
    name = f"{facts.get('name')}-{facts.get('version')}"
    split_name(name)
    return name


def check_replaceable(folder: Path, index_name: str) -> None:
    """Raise IndexFileError if the folder holds anything but an export of that index."""
    if not os.path.lexists(folder):
        return
    known = {"metadata.json", *(f"{each}.parquet" for each in PACKED)}
    try:
        mine = name_of_export(folder) == index_name and known.issuperset(os.listdir(folder))
    except (IndexFileError, OSError):
        mine = False
    if not mine:
        raise IndexFileError(
            f"{folder}: exists already and contains more than an export of {index_name}",
            Remedy("choose another folder"),
        )


def verify(path: Path) -> str:
    """Check a DuckDB index against its content hash and return the hash.  Raises IndexFileError if it differs."""
    from crystalperf.indexes.content import content_hash

    connection = guard.fresh()
    try:
        facts = attach(connection, path, "index", "verified")
        try:
            found = content_hash(connection, "verified")
        except duckdb.Error as error:
            raise IndexFileError(f"{path}: damaged ({first_line(error)}); build it again") from error
        if found != facts.get("content_hash"):
            raise IndexFileError(f"{path}: the content does not match its hash; it was damaged or changed")
        return found
    finally:
        connection.close()


def pinned_hashes() -> dict[str, str]:
    """The content hashes of the prebuilt indexes, by name (prebuilt.json)."""
    path = prebuilt_folder() / "prebuilt.json"
    pinned: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return pinned


def pin(index_name: str, folder: Path) -> None:
    """Write an export's content hash into prebuilt.json, so that the export ships with CrystalPerf."""
    pinned = {**pinned_hashes(), index_name: _read_metadata(folder)["content_hash"]}
    text = json.dumps(pinned, indent=1, sort_keys=True)
    (prebuilt_folder() / "prebuilt.json").write_text(text + "\n", encoding="utf-8")


def _read_metadata(folder: Path) -> dict[str, str]:
    path = folder / "metadata.json"
    try:
        status = path.stat()
        readable = stat.S_ISREG(status.st_mode) and status.st_size < 1_000_000
        facts = json.loads(path.read_text(encoding="utf-8")) if readable else None
    except (OSError, ValueError, RecursionError) as error:
        raise IndexFileError(f"{folder}: not an exported index (no readable metadata.json)") from error
    if not isinstance(facts, dict) or not all(_is_text(each) for pair in facts.items() for each in pair):
        raise IndexFileError(f"{path}: not the metadata of an exported index")
    if facts.get("kind") != "index" or not re.fullmatch(r"[0-9a-f]{64}", facts.get("content_hash", "")):
        raise IndexFileError(f"{path}: not the metadata of an exported index")
    if facts.get("schema_version") != str(SCHEMA_VERSIONS["index"]):
        raise IndexFileError(
            f"{folder}: schema version {facts.get('schema_version')}, this CrystalPerf reads version"
            f" {SCHEMA_VERSIONS['index']}; export it again with a CrystalPerf of this version"
        )
    return facts


def _is_text(value: object) -> bool:
    """Whether a value is a text that a database can store: without lone surrogates, and without NUL, which the content
    hash uses as a separator."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version))


def _padded(numbers: tuple[int, ...], length: int) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))
