# mypy: ignore-errors
# ruff: noqa: B008
"""Calls of fsspec on the disk."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import fsspec.core
import fsspec.mapping
from fsspec.caching import BytesCache, ReadAheadCache
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileOpener, LocalFileSystem
from fsspec.implementations.tar import TarFileSystem
from fsspec.implementations.zip import ZipFileSystem

from lab.measure.calls.cases import Cases, Place, each, folder_of
from lab.measure.calls.materials import (
    BIG,
    DATA,
    FOLDERS,
    MANY,
    MIB,
    fresh,
    many,
    new_folder,
    one,
    tarred,
    within,
    zipped,
)

CASES = Cases()
case, cpu, disk, opened = CASES.case, CASES.cpu, CASES.disk, CASES.opened

LOCAL = LocalFileSystem()

disk(LocalFileSystem.mkdir, fresh, each(LOCAL.mkdir))
disk(LocalFileSystem.makedirs, fresh, each(LOCAL.makedirs))
disk(LocalFileSystem.rmdir, lambda d: [new_folder(path) for path in fresh(d)], each(LOCAL.rmdir))
disk(LocalFileSystem.ls, folder_of(many), lambda d: [LOCAL.ls(f"{d}/d{n}", detail=True) for n in range(FOLDERS)])
disk(LocalFileSystem.info, many, each(LOCAL.info))
disk(LocalFileSystem.isfile, many, each(LOCAL.isfile))
disk(LocalFileSystem.isdir, many, each(LOCAL.isdir))
disk(LocalFileSystem.lexists, many, each(LOCAL.lexists))
disk(LocalFileSystem.created, many, each(LOCAL.created))
disk(LocalFileSystem.modified, many, each(LOCAL.modified))
disk(LocalFileSystem.touch, fresh, each(lambda path: LOCAL.touch(str(path))))
disk(LocalFileSystem.cp_file, one(), lambda path: LOCAL.cp_file(str(path), f"{path}.n"))
disk(LocalFileSystem.get_file, one(), lambda path: LOCAL.get_file(str(path), f"{path}.n"))
disk(LocalFileSystem.put_file, one(), lambda path: LOCAL.put_file(str(path), f"{path}.n"))
disk(LocalFileSystem.mv, many, each(lambda path: LOCAL.mv(str(path), f"{path}.n")))
disk(LocalFileSystem.rm, lambda d: [str(path) for path in many(d)], lambda paths: LOCAL.rm(paths))
disk(LocalFileSystem.rm_file, many, each(LOCAL.rm_file))
disk(LocalFileSystem._open, many, each(lambda path: LOCAL._open(str(path)).close()))
disk(LocalFileSystem.link, many, each(lambda path: LOCAL.link(str(path), f"{path}.l")))
disk(LocalFileSystem.symlink, many, each(lambda path: LOCAL.symlink(str(path), f"{path}.l")))
disk(LocalFileOpener._open, many, each(lambda path: LocalFileOpener(str(path), "rb", fs=LOCAL).close()))
opened(LocalFileOpener.read, one(), lambda path: LOCAL.open(str(path)), lambda its: its.read())
disk(
    LocalFileOpener.write,
    lambda d: d / "a",
    lambda path: within(LOCAL.open(str(path), "wb"), lambda its: its.write(DATA)),
)
disk(LocalFileOpener.commit, lambda d: d, lambda d: [_commit(d / f"{n}") for n in range(100)])
disk(fsspec.AbstractFileSystem.cat_file, one(), lambda path: LOCAL.cat_file(str(path)))
disk(fsspec.AbstractFileSystem.pipe_file, lambda d: d / "a", lambda path: LOCAL.pipe_file(str(path), DATA))
disk(fsspec.AbstractFileSystem.find, folder_of(many), lambda d: LOCAL.find(str(d)))
disk(fsspec.AbstractFileSystem.walk, folder_of(many), lambda d: list(LOCAL.walk(str(d))))
disk(fsspec.AbstractFileSystem.glob, folder_of(many), lambda d: LOCAL.glob(f"{d}/*/*.txt"))
disk(fsspec.AbstractFileSystem.du, folder_of(many), lambda d: LOCAL.du(str(d)))
disk(fsspec.AbstractFileSystem.size, many, each(lambda path: LOCAL.size(str(path))))
disk(fsspec.AbstractFileSystem.checksum, many, each(lambda path: LOCAL.checksum(str(path))))
disk(fsspec.AbstractFileSystem.head, many, each(lambda path: LOCAL.head(str(path))))
disk(fsspec.AbstractFileSystem.tail, many, each(lambda path: LOCAL.tail(str(path))))
disk(fsspec.AbstractFileSystem.cat, many, lambda paths: LOCAL.cat([str(path) for path in paths]))
disk(fsspec.AbstractFileSystem.cat_ranges, many, lambda paths: LOCAL.cat_ranges([str(path) for path in paths], 0, 100))
disk(fsspec.AbstractFileSystem.copy, many, lambda paths: [LOCAL.copy(str(path), f"{path}.n") for path in paths])
disk(fsspec.AbstractFileSystem.exists, many, each(lambda path: fsspec.AbstractFileSystem.exists(LOCAL, str(path))))
disk(fsspec.AbstractFileSystem.read_block, many, each(lambda path: LOCAL.read_block(str(path), 10, 1000)))
disk(fsspec.AbstractFileSystem.open, many, each(lambda path: LOCAL.open(str(path)).close()))
disk(fsspec.core.OpenFile.__enter__, many, each(lambda path: within(fsspec.open(str(path)), lambda its: None)))
disk(fsspec.core.open_local, many, each(lambda path: fsspec.core.open_local(str(path))))
disk(
    fsspec.mapping.FSMap.__getitem__,
    folder_of(many),
    lambda d: [fsspec.get_mapper(str(d))[f"d{n % FOLDERS}/file{n}.txt"] for n in range(MANY)],
)
disk(
    fsspec.mapping.FSMap.__setitem__,
    lambda d: fsspec.get_mapper(str(d)),
    lambda its: [its.__setitem__(f"k{n}", b"x" * 3000) for n in range(MANY)],
)
disk(fsspec.mapping.FSMap.__iter__, folder_of(many), lambda d: list(fsspec.get_mapper(str(d))))
disk(
    fsspec.mapping.FSMap.__contains__,
    folder_of(many),
    lambda d: [f"d{n % FOLDERS}/file{n}.txt" in fsspec.get_mapper(str(d)) for n in range(MANY)],
)
disk(DirFileSystem.ls, folder_of(many), lambda d: [DirFileSystem(str(d), LOCAL).ls(f"d{n}") for n in range(FOLDERS)])
disk(
    DirFileSystem.info,
    folder_of(many),
    lambda d: [DirFileSystem(str(d), LOCAL).info(f"d{n % FOLDERS}/file{n}.txt") for n in range(MANY)],
)
disk(
    DirFileSystem.cat_file,
    folder_of(many),
    lambda d: [DirFileSystem(str(d), LOCAL).cat_file(f"d{n % FOLDERS}/file{n}.txt") for n in range(MANY)],
)
disk(ZipFileSystem._open, zipped(), lambda path: _zip_fs(path, lambda its: its.open("m0").read()))
disk(
    ZipFileSystem.__init__,
    lambda d: [shutil.copy(zipped(text=b"a")(d), d / f"{n}.zip") for n in range(50)],
    each(lambda path: _zip_fs(path, lambda _: None)),
)
cpu(
    ZipFileSystem._get_dirs,
    lambda its=ZipFileSystem(fo=io.BytesIO(zipfile.Path and b"PK\x05\x06" + b"\0" * 18)): its._get_dirs(),
    3000,
)
disk(TarFileSystem._open, tarred, lambda path: TarFileSystem(str(path), skip_instance_cache=True).open("m0").read())


def _zip_fs(path: Any, use: Callable[[Any], Any]) -> None:
    its = ZipFileSystem(fo=str(path), skip_instance_cache=True)
    use(its)
    its.close()


def _commit(path: Path) -> None:
    its = LOCAL.open(str(path), "wb", autocommit=False)
    its.write(b"x" * 3000)
    its.close()
    its.commit()


@case(BytesCache._fetch)
def _bytes_cache(place: Place) -> Iterator[Any]:
    path = one()(place.folder)
    yield None
    with path.open("rb") as its:
        cache = BytesCache(MIB, lambda start, end: (its.seek(start), its.read(end - start))[1], BIG)
        yield lambda: [cache._fetch(start, start + 65536) for start in range(0, BIG, 65536)]


@case(ReadAheadCache._fetch)
def _read_ahead(place: Place) -> Iterator[Any]:
    path = one()(place.folder)
    yield None
    with path.open("rb") as its:
        cache = ReadAheadCache(MIB, lambda start, end: (its.seek(start), its.read(end - start))[1], BIG)
        yield lambda: [cache._fetch(start, start + 65536) for start in range(0, BIG, 65536)]
