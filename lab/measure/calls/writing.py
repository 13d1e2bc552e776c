# mypy: ignore-errors
# ruff: noqa: SIM115
"""Calls that write files, archives, mailboxes, databases and logs, and that make and remove folders."""

from __future__ import annotations

import _pyio
import bz2
import compileall
import configparser
import contextlib
import dbm.dumb
import gzip
import http.cookiejar
import io
import json
import logging
import logging.handlers
import lzma
import mailbox
import os
import pathlib
import plistlib
import py_compile
import shutil
import sqlite3
import sqlite3.dump
import tarfile
import tempfile
import wave
import xml.etree.ElementTree as ElementTree
import zipapp
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.measure.calls.cases import Cases, Place, each, folder_of
from lab.measure.calls.materials import (
    BIG,
    CODE,
    DATA,
    FOLDERS,
    INI,
    MANY,
    MESSAGE,
    MIB,
    RECORDS,
    XML,
    fresh,
    many,
    new_folder,
    noise,
    one,
    prose,
    tarred,
    text_file,
    wave_file,
    with_file,
    within,
    zipped,
)

CASES = Cases()
case, cpu, disk = CASES.case, CASES.cpu, CASES.disk

disk(pathlib.Path.write_bytes, lambda d: d / "a", lambda path: path.write_bytes(DATA))
disk(pathlib.Path.write_text, lambda d: d / "a", lambda path: path.write_text("x" * BIG))
disk(pathlib.Path.touch, fresh, each(Path.touch))
disk(pathlib.Path.mkdir, fresh, each(Path.mkdir))
disk(pathlib.Path.unlink, many, each(Path.unlink))
disk(pathlib.Path.rmdir, lambda d: [path.mkdir() or path for path in fresh(d)], each(Path.rmdir))
disk(pathlib.Path.rename, many, each(lambda path: path.rename(path.with_suffix(".n"))))
disk(pathlib.Path.replace, many, each(lambda path: path.replace(path.with_suffix(".n"))))
disk(pathlib.Path.symlink_to, many, each(lambda path: path.with_suffix(".s").symlink_to(path)))
disk(pathlib.Path.hardlink_to, many, each(lambda path: path.with_suffix(".h").hardlink_to(path)))
disk(pathlib.Path.chmod, many, each(lambda path: path.chmod(0o600)))
disk(os.makedirs, fresh, each(lambda path: os.makedirs(path / "b")))
disk(
    os.removedirs,
    lambda d: [os.makedirs(path / "b") or path / "b" for path in fresh(d)],
    each(lambda path: os.removedirs(path)),
)
disk(os.renames, many, each(lambda path: os.renames(path, f"{path}.n")))
disk(shutil.copyfile, one(), lambda path: shutil.copyfile(path, f"{path}.n"))
disk(shutil.copy, one(), lambda path: shutil.copy(path, f"{path}.n"))
disk(shutil.copy2, many, each(lambda path: shutil.copy2(path, f"{path}.n")))
disk(shutil.copystat, many, each(lambda path: shutil.copystat(path, path.parent)))
disk(shutil.copymode, many, each(lambda path: shutil.copymode(path, path.parent)))
disk(shutil.copytree, lambda d: (folder_of(many)(new_folder(d / "s")), d / "t"), lambda its: shutil.copytree(*its))
disk(shutil.rmtree, lambda d: folder_of(many)(new_folder(d / "s")), shutil.rmtree)
disk(shutil.move, many, each(lambda path: shutil.move(path, f"{path}.n")))
disk(
    shutil.make_archive,
    lambda d: (str(d / "a"), "tar", folder_of(one())(new_folder(d / "s"))),
    lambda its: shutil.make_archive(*its),
)
disk(shutil.unpack_archive, lambda d: (tarred(d), d / "out"), lambda its: shutil.unpack_archive(*its))
disk(tempfile.mkstemp, lambda d: d, lambda d: [os.close(tempfile.mkstemp(dir=d)[0]) for _ in range(MANY)])
disk(tempfile.mkdtemp, lambda d: d, lambda d: [tempfile.mkdtemp(dir=d) for _ in range(MANY)])
disk(
    tempfile.NamedTemporaryFile,
    lambda d: d,
    lambda d: [tempfile.NamedTemporaryFile(dir=d, delete=False).close() for _ in range(MANY)],
)
disk(
    tempfile.TemporaryDirectory.cleanup,
    lambda d: [tempfile.TemporaryDirectory(dir=d) for _ in range(MANY)],
    each(lambda its: its.cleanup()),
)
disk(tempfile.SpooledTemporaryFile.write, lambda d: d, lambda d: tempfile.SpooledTemporaryFile(MIB, dir=d).write(DATA))
cpu(
    tempfile.SpooledTemporaryFile.read,
    lambda: within(tempfile.SpooledTemporaryFile(MIB), lambda its: (its.write(b"x" * 100000), its.seek(0), its.read())),
    100,
)
disk(
    zipfile.ZipFile.write,
    one(),
    lambda path: within(zipfile.ZipFile(f"{path}.zip", "w"), lambda its: its.write(path)),
)
disk(
    zipfile.ZipFile.writestr,
    lambda d: d / "a.zip",
    lambda path: within(
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), lambda its: its.writestr("a", prose(2 * MIB))
    ),
)
disk(
    zipfile.ZipFile.extractall,
    zipped(),
    lambda path: within(zipfile.ZipFile(path), lambda its: its.extractall(path.parent)),
)
disk(
    zipfile.ZipFile.extract,
    zipped(),
    lambda path: within(zipfile.ZipFile(path), lambda its: its.extract("m1", path.parent)),
)
disk(
    zipapp.create_archive,
    lambda d: (folder_of(many)(new_folder(d / "s")), d / "a.pyz"),
    lambda its: zipapp.create_archive(*its, main="a:b"),
)
disk(tarfile.TarFile.add, one(), lambda path: within(tarfile.open(f"{path}.tar", "w"), lambda its: its.add(path)))
disk(
    tarfile.TarFile.addfile,
    one(),
    lambda path: within(
        tarfile.open(f"{path}.tar", "w"),
        lambda its: with_file(path, lambda source: its.addfile(its.gettarinfo(path), source)),
    ),
)
disk(
    tarfile.TarFile.gettarinfo,
    many,
    lambda paths: within(
        tarfile.open(fileobj=io.BytesIO(), mode="w"), lambda its: [its.gettarinfo(path) for path in paths]
    ),
)
disk(
    tarfile.TarFile.extractall,
    tarred,
    lambda path: within(tarfile.open(path), lambda its: its.extractall(path.parent, filter="data")),
)
disk(
    tarfile.TarFile.makefile,
    tarred,
    lambda path: within(tarfile.open(path), lambda its: its.makefile(its.getmember("m0"), str(path.parent / "x"))),
)
disk(
    tarfile.copyfileobj,
    one(),
    lambda path: with_file(path, lambda source: tarfile.copyfileobj(source, open(f"{path}.n", "wb"), BIG)),
)
disk(
    shutil.copyfileobj,
    one(),
    lambda path: with_file(path, lambda source: shutil.copyfileobj(source, open(f"{path}.n", "wb"))),
)
disk(
    gzip.GzipFile.write,
    lambda d: d / "a.gz",
    lambda path: within(gzip.open(path, "wb"), lambda its: its.write(DATA[: 2 * MIB])),
)
disk(
    bz2.BZ2File.write,
    lambda d: d / "a.bz2",
    lambda path: within(bz2.open(path, "wb"), lambda its: its.write(DATA[: MIB // 2])),
)
disk(
    lzma.LZMAFile.write,
    lambda d: d / "a.xz",
    lambda path: within(lzma.open(path, "wb"), lambda its: its.write(DATA[: MIB // 4])),
)
disk(json.dump, lambda d: d / "a", lambda path: within(open(path, "w"), lambda its: json.dump(RECORDS, its)))
disk(
    configparser.RawConfigParser.write,
    lambda d: d,
    lambda d: [within(open(d / f"{n}", "w"), lambda its: _CONFIG.write(its)) for n in range(FOLDERS)],
)
disk(plistlib.dump, lambda d: d / "a", lambda path: within(open(path, "wb"), lambda its: plistlib.dump(RECORDS, its)))
disk(
    ElementTree.ElementTree.write,
    lambda d: d / "a",
    lambda path: ElementTree.ElementTree(ElementTree.fromstring(XML)).write(path),
)
disk(py_compile.compile, lambda d: text_file(d / "a.py", CODE), lambda path: py_compile.compile(str(path)))
disk(
    compileall.compile_file,
    lambda d: [text_file(d / f"m{n}.py", "a = 1\n") for n in range(100)],
    each(lambda path: compileall.compile_file(path, quiet=2)),
)
disk(wave.Wave_write.writeframes, lambda d: d / "a.wav", lambda path: wave_file(path, BIG // 2))
disk(
    dbm.dumb._Database.__setitem__,
    lambda d: d / "a",
    lambda path: within(
        dbm.dumb.open(str(path)), lambda its: [its.__setitem__(f"k{n}", b"x" * 4000) for n in range(1000)]
    ),
)
disk(
    dbm.dumb._Database.__getitem__,
    lambda d: _dumb(d / "a"),
    lambda path: within(dbm.dumb.open(str(path)), lambda its: [its[f"k{n}"] for n in range(500)]),
)
disk(
    dbm.dumb._Database._commit,
    lambda d: _dumb(d / "a"),
    lambda path: within(
        dbm.dumb.open(str(path)), lambda its: [(setattr(its, "_modified", True), its._commit()) for _ in range(10)]
    ),
)
disk(
    mailbox.mbox.add if "add" in vars(mailbox.mbox) else mailbox._singlefileMailbox.flush,
    lambda d: d / "m",
    lambda path: within(
        contextlib.closing(mailbox.mbox(path)), lambda its: ([its.add(MESSAGE) for _ in range(100)], its.flush())
    ),
)
disk(mailbox.Maildir.add, lambda d: mailbox.Maildir(d / "m"), lambda its: [its.add(MESSAGE) for _ in range(100)])
disk(http.cookiejar.LWPCookieJar.save, lambda d: d, lambda d: [_JAR.save(str(d / f"{n}")) for n in range(MANY)])
disk(logging.FileHandler._open, lambda d: d, lambda d: [logging.FileHandler(d / f"{n}").close() for n in range(MANY)])
disk(
    sqlite3.dump._iterdump,
    lambda d: _database(d / "a.db"),
    lambda path: within(contextlib.closing(sqlite3.connect(path)), lambda its: list(sqlite3.dump._iterdump(its))),
)

_CONFIG = configparser.ConfigParser()
_CONFIG.read_string(INI)
_JAR = http.cookiejar.LWPCookieJar()


@case(logging.FileHandler.emit)
def _file_handler(place: Place) -> Iterator[Any]:
    handler = logging.FileHandler(place.folder / "log")
    record = logging.makeLogRecord({"msg": "x" * 1000})
    yield lambda: [handler.emit(record) for _ in range(5000)]
    handler.close()


@case(logging.handlers.RotatingFileHandler.doRollover)
def _rollover(place: Place) -> Iterator[Any]:
    handler = logging.handlers.RotatingFileHandler(place.folder / "log", backupCount=5)
    yield lambda: [handler.doRollover() for _ in range(100)]
    handler.close()


@case(logging.handlers.WatchedFileHandler.reopenIfNeeded)
def _reopen(place: Place) -> Iterator[Any]:
    handler = logging.handlers.WatchedFileHandler(place.folder / "log")
    yield lambda: [handler.reopenIfNeeded() for _ in range(3000)]
    handler.close()


@case(_pyio.FileIO.write)
def _pyio_write(place: Place) -> Iterator[Any]:
    with _pyio.FileIO(place.folder / "a", "wb") as its:
        yield lambda: its.write(DATA)


@case(_pyio.BufferedWriter.write)
def _pyio_buffered(place: Place) -> Iterator[Any]:
    with _pyio.open(place.folder / "a", "wb") as its:
        yield lambda: [its.write(DATA[start : start + 65536]) for start in range(0, BIG, 65536)]


@case(_pyio.BufferedWriter.flush)
def _pyio_flush(place: Place) -> Iterator[Any]:
    with _pyio.open(place.folder / "a", "wb", buffering=2 * BIG) as its:
        its.write(DATA)
        yield lambda: its.flush()


@case(_pyio.TextIOWrapper.write)
def _pyio_text(place: Place) -> Iterator[Any]:
    with _pyio.open(place.folder / "a", "w") as its:
        yield lambda: [its.write("x" * 65536) for _ in range(512)]


@case(_pyio.FileIO.seek)
def _pyio_seek(place: Place) -> Iterator[Any]:
    path = one()(place.folder)
    yield None
    with _pyio.FileIO(path) as its:
        yield lambda: [its.seek(number) for number in range(20000)]


@case(_pyio.FileIO.truncate)
def _pyio_truncate(place: Place) -> Iterator[Any]:
    paths = many(place.folder)
    yield None
    files = [_pyio.FileIO(path, "r+") for path in paths]
    yield lambda: [its.truncate(10) for its in files]
    for its in files:
        its.close()


def _dumb(path: Path) -> Path:
    with dbm.dumb.open(str(path)) as its:
        for number in range(500):
            its[f"k{number}"] = noise(4000)
    return path


def _database(path: Path) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as its, its:
        its.execute("CREATE TABLE t (a INTEGER, b BLOB)")
        its.executemany("INSERT INTO t VALUES (?, ?)", [(n, noise(1000)) for n in range(4000)])
    return path
