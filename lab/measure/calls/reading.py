# mypy: ignore-errors
# ruff: noqa: SIM115
"""Calls that read files, folders, archives and mailboxes."""

from __future__ import annotations

import _pyio
import bz2
import configparser
import contextlib
import filecmp
import fileinput
import genericpath
import glob
import gzip
import hashlib
import json
import linecache
import lzma
import mailbox
import mimetypes
import netrc
import os
import pathlib
import pkgutil
import plistlib
import posixpath
import runpy
import shutil
import tarfile
import tokenize
import tomllib
import urllib.request
import wave
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.measure.calls.cases import Cases, each, folder_of
from lab.measure.calls.materials import (
    BIG,
    CODE,
    FOLDERS,
    JSON_TEXT,
    MANY,
    MESSAGE,
    MIB,
    RECORDS,
    XML,
    many,
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
disk, opened = CASES.disk, CASES.opened

disk(pathlib.Path.read_bytes, one(), Path.read_bytes)
disk(pathlib.Path.read_text, folder_of(lambda d: (d / "a").write_bytes(b"x" * BIG)), lambda d: (d / "a").read_text())
disk(pathlib.Path.stat, many, each(Path.stat))
disk(pathlib.Path.lstat, many, each(Path.lstat))
disk(pathlib.Path.exists, many, each(Path.exists))
disk(pathlib.Path.is_file, many, each(Path.is_file))
disk(pathlib.Path.is_dir, many, each(Path.is_dir))
disk(pathlib.Path.is_symlink, many, each(Path.is_symlink))
disk(pathlib.Path.iterdir, many, each(lambda path: list(path.parent.iterdir())))
disk(pathlib.Path.glob, folder_of(many), lambda d: list(d.glob("*/*.txt")))
disk(pathlib.Path.rglob, folder_of(many), lambda d: list(d.rglob("*.txt")))
disk(pathlib.Path.resolve, many, each(Path.resolve))
disk(pathlib.Path.samefile, many, each(lambda path: path.samefile(path.parent)))
disk(pathlib.Path.open, many, each(lambda path: path.open("rb").close()))
disk(genericpath.exists, many, each(os.path.exists))
disk(genericpath.isfile, many, each(os.path.isfile))
disk(genericpath.isdir, many, each(os.path.isdir))
disk(genericpath.getsize, many, each(os.path.getsize))
disk(genericpath.getmtime, many, each(os.path.getmtime))
disk(genericpath.samefile, many, each(lambda path: os.path.samefile(path, path.parent)))
disk(posixpath.lexists, many, each(os.path.lexists))
disk(posixpath.islink, many, each(os.path.islink))
disk(posixpath.ismount, many, each(os.path.ismount))
disk(posixpath.realpath, many, each(os.path.realpath))
disk(os._walk if hasattr(os, "_walk") else os.walk, folder_of(many), lambda d: list(os.walk(d)))
disk(os.fwalk, folder_of(many), lambda d: list(os.fwalk(d)))
disk(glob.glob, folder_of(many), lambda d: glob.glob(f"{d}/*/*"))
disk(
    glob._iterdir,
    folder_of(many),
    lambda d: [list(glob._iterdir(str(d / f"d{n}"), None, False)) for n in range(FOLDERS)],
)
disk(filecmp.cmp, folder_of(lambda d: (one()(d), one(BIG, "b")(d))), lambda d: filecmp.cmp(d / "a", d / "b", False))
disk(filecmp._do_cmp, folder_of(lambda d: (one()(d), one(BIG, "b")(d))), lambda d: filecmp._do_cmp(d / "a", d / "b"))
disk(
    filecmp.dircmp.phase1,
    folder_of(many),
    lambda d: [filecmp.dircmp(d / f"d{n}", d / f"d{n + 1}").phase1() for n in range(FOLDERS - 1)],
)
disk(linecache.updatecache, many, each(lambda path: linecache.updatecache(str(path))))
disk(fileinput.FileInput.__next__, many, lambda paths: list(fileinput.FileInput(paths, mode="rb")))
disk(hashlib.file_digest, one(), lambda path: _digest(path))
disk(
    zipfile.is_zipfile,
    lambda d: [shutil.copy(zipped(text=b"a")(d), d / f"{n}.zip") for n in range(100)],
    each(zipfile.is_zipfile),
)
disk(tarfile.is_tarfile, lambda d: [shutil.copy(tarred(d), d / f"{n}.tar") for n in range(8)], each(tarfile.is_tarfile))
disk(
    zipfile._EndRecData,
    lambda d: [shutil.copy(zipped(text=b"a")(d), d / f"{n}.zip") for n in range(100)],
    each(lambda path: with_file(path, zipfile._EndRecData)),
)
disk(
    configparser.RawConfigParser.read,
    lambda d: [text_file(d / f"{n}.ini", "[a]\nb = c\n") for n in range(MANY)],
    each(lambda path: configparser.ConfigParser().read(path)),
)
disk(json.load, lambda d: text_file(d / "a.json", JSON_TEXT * 1), lambda path: with_file(path, json.load))
disk(
    plistlib.load,
    lambda d: text_file(d / "a.plist", plistlib.dumps(RECORDS).decode()),
    lambda path: with_file(path, plistlib.load),
)
disk(
    tomllib.load,
    lambda d: text_file(d / "a.toml", "a = 1\n" + "".join(f"k{n} = {n}\n" for n in range(2000))),
    lambda path: with_file(path, tomllib.load),
)
disk(
    ElementTree.ElementTree.parse,
    lambda d: text_file(d / "a.xml", XML),
    lambda path: ElementTree.ElementTree().parse(path),
)
disk(tokenize.open, many, each(lambda path: _safe(tokenize.open, path)))
disk(
    netrc.netrc.__init__,
    lambda d: [text_file(d / f"{n}", "machine a login b password c\n") for n in range(MANY)],
    each(netrc.netrc),
)
disk(
    mimetypes.MimeTypes.read,
    lambda d: [text_file(d / f"{n}", "text/x a\n") for n in range(MANY)],
    each(lambda path: mimetypes.MimeTypes().read(path)),
)
disk(
    pkgutil.iter_modules,
    lambda d: [text_file(d / f"m{n}.py", "") for n in range(MANY)] and d,
    lambda d: list(pkgutil.iter_modules([str(d)])),
)
disk(runpy.run_path, lambda d: text_file(d / "a.py", CODE), runpy.run_path)
disk(
    wave.open,
    lambda d: [wave_file(d / f"{n}.wav", 2000) for n in range(100)],
    each(lambda path: wave.open(str(path)).close()),
)
disk(
    gzip.GzipFile.read,
    lambda d: _bytes(d / "a.gz", gzip.compress(prose(4 * MIB), 6)),
    lambda path: gzip.open(path).read(),
)
disk(bz2.BZ2File.read, lambda d: _bytes(d / "a.bz2", bz2.compress(prose(MIB))), lambda path: bz2.open(path).read())
disk(
    lzma.LZMAFile.read,
    lambda d: _bytes(d / "a.xz", lzma.compress(prose(MIB), preset=1)),
    lambda path: lzma.open(path).read(),
)
disk(shutil.which, folder_of(many), lambda d: [shutil.which("nothing", path=f"{d}/d{n}") for n in range(FOLDERS)])
disk(shutil._samefile, many, each(lambda path: shutil._samefile(path, path.parent)))
disk(tarfile.TarFile.getmembers, tarred, lambda path: within(tarfile.open(path), lambda its: its.getmembers()))
disk(
    tarfile.TarFile.open,
    lambda d: [shutil.copy(tarred(d), d / f"{n}.tar") for n in range(8)],
    each(lambda path: tarfile.open(path).close()),
)
disk(
    zipfile.ZipFile.__init__,
    lambda d: [shutil.copy(zipped(text=b"a")(d), d / f"{n}.zip") for n in range(100)],
    each(lambda path: zipfile.ZipFile(path).close()),
)
opened(zipfile.ZipFile.read, zipped(), zipfile.ZipFile, lambda its: [its.read(f"m{n}") for n in range(8)])
opened(zipfile.ZipFile.testzip, zipped(), zipfile.ZipFile, lambda its: its.testzip())
opened(zipfile.ZipExtFile.read, zipped(), lambda path: zipfile.ZipFile(path).open("m0"), lambda its: its.read())
opened(
    zipfile.Path.read_bytes,
    zipped(),
    lambda path: contextlib.nullcontext(zipfile.Path(path, "m1")),
    lambda its: its.read_bytes(),
)
opened(tarfile.TarFile.next, tarred, tarfile.open, lambda its: [its.next() for _ in range(9)])
opened(
    tarfile.ExFileObject.__init__ if hasattr(tarfile.ExFileObject.__init__, "__code__") else tarfile._FileInFile.read,
    tarred,
    tarfile.open,
    lambda its: its.extractfile("m0").read(),
)
opened(_pyio.FileIO.read, one(), lambda path: _pyio.FileIO(path), lambda its: its.read(BIG))
opened(_pyio.FileIO.readall, one(), lambda path: _pyio.FileIO(path), lambda its: its.readall())
opened(
    _pyio.FileIO.readinto,
    one(),
    lambda path: _pyio.FileIO(path),
    lambda its: [its.readinto(bytearray(MIB)) for _ in range(32)],
)
opened(
    _pyio.BufferedReader.read,
    one(),
    lambda path: _pyio.open(path, "rb"),
    lambda its: [its.read(65536) for _ in range(512)],
)
opened(
    _pyio.TextIOWrapper.read,
    lambda d: text_file(d / "a", "x" * BIG),
    lambda path: _pyio.open(path, "r"),
    lambda its: its.read(),
)
disk(_pyio.open, many, each(lambda path: _pyio.open(path, "rb").close()))
disk(_pyio.FileIO.__init__, many, each(lambda path: _pyio.FileIO(path).close()))
disk(
    urllib.request.FileHandler.open_local_file,
    many,
    each(lambda path: urllib.request.urlopen(f"file://{path}").close()),
)
disk(
    mailbox.Maildir.keys if hasattr(mailbox.Maildir, "keys") else mailbox.Maildir._refresh,
    lambda d: _maildir(d / "m"),
    lambda path: len(mailbox.Maildir(path).keys()),
)
disk(mailbox.mbox._generate_toc, lambda d: _mbox(d / "m"), lambda path: mailbox.mbox(path).keys())


def _digest(path: Path) -> str:
    with path.open("rb") as opened_file:
        return hashlib.file_digest(opened_file, "blake2b").hexdigest()


def _safe(function: Callable[[Any], Any], argument: Any) -> None:
    with contextlib.suppress(SyntaxError):
        function(argument).close()


def _bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _maildir(path: Path) -> Path:
    box = mailbox.Maildir(path)
    for _ in range(MANY):
        box.add(MESSAGE)
    return path


def _mbox(path: Path) -> Path:
    box = mailbox.mbox(path)
    for _ in range(200):
        box.add(MESSAGE)
    box.close()
    return path
