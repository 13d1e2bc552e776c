# mypy: ignore-errors
# (private functions are called on purpose, and the stubs leave them out)
# ruff: noqa: B008, SIM115 - data is bound as a default so that making it is not measured; leaving files open is meant
"""The calls that python.py measures: real uses of Python's library, fsspec, requests and urllib3.

A workload prepares its data, yields None where the caches should be emptied, yields the call to measure, and cleans up.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import bz2
import calendar
import collections
import compileall
import configparser
import contextlib
import copy
import csv
import dataclasses
import datetime
import difflib
import email
import email.message
import email.mime.text
import filecmp
import fileinput
import fractions
import ftplib
import gettext
import glob
import gzip
import hashlib
import heapq
import hmac
import html
import html.parser
import http.client
import http.cookiejar
import http.server
import imaplib
import inspect
import io
import ipaddress
import json
import linecache
import logging
import logging.handlers
import lzma
import mailbox
import mimetypes
import multiprocessing.connection
import netrc
import os
import pathlib
import pkgutil
import plistlib
import poplib
import pprint
import py_compile
import queue
import random
import re
import runpy
import selectors
import shlex
import shutil
import smtplib
import socket
import socketserver
import sqlite3
import ssl
import statistics
import string
import subprocess
import tarfile
import tempfile
import textwrap
import threading
import time
import tokenize
import tomllib
import urllib.parse
import urllib.request
import uuid
import warnings
import wave
import xml.etree.ElementTree as ElementTree
import xmlrpc.client
import zipapp
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import _pyio
    import nntplib
    import telnetlib
import dbm.dumb
import genericpath
import posixpath
import sqlite3.dump

import fsspec
import fsspec.core
import fsspec.mapping
import fsspec.utils
import requests
import urllib3
from fsspec.caching import BytesCache, MMapCache, ReadAheadCache
from fsspec.generic import GenericFileSystem
from fsspec.implementations.cached import SimpleCacheFileSystem, WholeFileCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.ftp import FTPFileSystem
from fsspec.implementations.http import HTTPFileSystem
from fsspec.implementations.local import LocalFileOpener, LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.implementations.tar import TarFileSystem
from fsspec.implementations.zip import ZipFileSystem
from urllib3.util.connection import create_connection as urllib3_connection
from urllib3.util.wait import wait_for_read

MIB = 1 << 20
BIG = 32 * MIB
MANY = 300
FOLDERS = int(os.environ.get("CRYSTALPERF_MEASURE_FOLDERS", "300"))
"""How many folders the small files lie in, by default one each: a file system reads a folder's inodes ahead, so that of
neighbours only the first is cold."""


@dataclasses.dataclass(frozen=True)
class Place:
    """What a workload works with: an empty folder on the disk, and the peers' address and ports."""

    folder: Path
    peer: str
    ports: dict[str, int]

    def address(self, name: str) -> tuple[str, int]:
        return self.peer, self.ports[name]

    def url(self, path: str = "bytes/200000") -> str:
        return f"http://{self.peer}:{self.ports['http']}/{path}"


Workload = Callable[[Place], Iterator[Any]]
CASES: list[tuple[Any, Workload]] = []
"""The function measured, and what calls it."""


def case(function: Any) -> Callable[[Workload], Workload]:
    def add(workload: Workload) -> Workload:
        CASES.append((function, workload))
        return workload

    return add


def cpu(function: Any, call: Callable[[], Any], times: int = 1) -> None:
    """A call that needs no device, so often."""

    def workload(_: Place) -> Iterator[Any]:
        yield lambda: [call() for _ in range(times)]

    CASES.append((function, workload))


def disk(function: Any, make: Callable[[Path], Any], use: Callable[[Any], Any]) -> None:
    """A call on what `make` put into a folder, with empty caches."""

    def workload(place: Place) -> Iterator[Any]:
        made = make(place.folder)
        yield None
        yield lambda: use(made)

    CASES.append((function, workload))


def opened(function: Any, make: Callable[[Path], Any], enter: Callable[[Any], Any], use: Callable[[Any], Any]) -> None:
    """The same, with something opened in between that is closed at the end."""

    def workload(place: Place) -> Iterator[Any]:
        made = make(place.folder)
        yield None
        with enter(made) as its:
            yield lambda: use(its)

    CASES.append((function, workload))


def net(function: Any, connect: Callable[[Place], Any], use: Callable[[Any], Any]) -> None:
    """A call on a connection to a peer, which is closed at the end."""

    def workload(place: Place) -> Iterator[Any]:
        its = connect(place)
        yield lambda: use(its)
        for close in ("quit", "logout", "close"):
            if hasattr(its, close):
                with contextlib.suppress(Exception):
                    getattr(its, close)()
                break

    CASES.append((function, workload))


def noise(count: int) -> bytes:
    """Bytes that do not compress, the same each time."""
    return random.Random(1).randbytes(count)


def prose(count: int) -> bytes:
    """Bytes that compress as text does."""
    chance = random.Random(2)
    words = [bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(2000)]
    text = b" ".join(chance.choices(words, k=count // 6))
    return (text + b"\n")[:count]


def one(size: int = BIG, name: str = "a") -> Callable[[Path], Path]:
    """Makes a file of noise."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(noise(size))
        return folder / name

    return make


def many(folder: Path) -> list[Path]:
    """Small files in folders."""
    paths = [folder / f"d{number % FOLDERS}" / f"file{number}.txt" for number in range(MANY)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(noise(3000))
    return paths


def each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda items: [function(item) for item in items]


def folder_of(make: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        make(folder)
        return folder

    return made


def zipped(kind: int = zipfile.ZIP_STORED, text: bytes = b"") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.zip", "w", kind) as archive:
            for number in range(8):
                archive.writestr(f"m{number}", text or noise(2 * MIB))
        return folder / "a.zip"

    return make


def tarred(folder: Path) -> Path:
    with tarfile.open(folder / "a.tar", "w") as archive:
        for number in range(8):
            info = tarfile.TarInfo(f"m{number}")
            info.size = 4 * MIB
            archive.addfile(info, io.BytesIO(noise(4 * MIB)))
    return folder / "a.tar"


def _entry() -> zipfile.ZipInfo:
    its = zipfile.ZipInfo("a")
    its.CRC = its.compress_size = its.file_size = 10
    return its


TEXT = prose(300_000).decode()
RECORDS = [{"name": f"n{number}", "value": number * 1.5, "tags": ["a", "b"]} for number in range(3000)]
JSON_TEXT = json.dumps(RECORDS)
INI = "\n".join(f"[s{number}]\n" + "\n".join(f"k{key} = v{key}" for key in range(10)) for number in range(300))
CODE = inspect.getsource(shutil)
XML = "<r>" + "".join(f"<a id='{number}'>text<b/></a>" for number in range(8000)) + "</r>"
MESSAGE = "Subject: a\nFrom: a@b\nTo: c@d\n\n" + "a line of text\n" * 400

# --- cpu ---------------------------------------------------------------------------------------------------------

cpu(json.dumps, lambda: json.dumps(RECORDS, indent=1), 3)
cpu(json.loads, lambda: json.loads(JSON_TEXT), 10)
cpu(json.JSONDecoder.decode, lambda: json.JSONDecoder().decode(JSON_TEXT), 10)
cpu(json.JSONEncoder.encode, lambda: json.JSONEncoder().encode(RECORDS), 5)
cpu(configparser.RawConfigParser.read_string, lambda: configparser.ConfigParser().read_string(INI), 3)
cpu(csv.Sniffer.sniff, lambda: csv.Sniffer().sniff("a;b;c\n1;2;3\n" * 200), 3)
cpu(csv.DictReader.__next__, lambda: list(csv.DictReader(io.StringIO("a,b\n" + "1,2\n" * 20000))))
cpu(csv.DictWriter.writerows, lambda: csv.DictWriter(io.StringIO(), ["name", "value", "tags"]).writerows(RECORDS), 5)
cpu(gzip.compress, lambda: gzip.compress(prose(MIB)))
cpu(gzip.decompress, lambda data=gzip.compress(prose(MIB)): gzip.decompress(data), 10)
cpu(bz2.compress, lambda: bz2.compress(prose(MIB // 2)))
cpu(bz2.decompress, lambda data=bz2.compress(prose(MIB // 2)): bz2.decompress(data), 2)
cpu(lzma.compress, lambda: lzma.compress(prose(MIB // 4)))
cpu(lzma.decompress, lambda data=lzma.compress(prose(MIB)): lzma.decompress(data), 2)
cpu(base64.b64encode, lambda data=noise(MIB): base64.b64encode(data), 20)
cpu(base64.b85encode, lambda data=noise(MIB // 4): base64.b85encode(data))
cpu(base64.b32encode, lambda data=noise(MIB // 4): base64.b32encode(data))
cpu(hmac.HMAC.update, lambda data=noise(MIB): hmac.new(b"k", None, "sha256").update(data), 20)
cpu(textwrap.wrap, lambda: textwrap.wrap(TEXT[:60000]))
cpu(textwrap.dedent, lambda: textwrap.dedent(CODE), 5)
cpu(difflib.SequenceMatcher.ratio, lambda: difflib.SequenceMatcher(None, TEXT[:1500], TEXT[900:2400]).ratio())
cpu(difflib.unified_diff, lambda: list(difflib.unified_diff(CODE.split("\n"), CODE.replace("src", "s").split("\n"))))
cpu(statistics.median, lambda: statistics.median(random.Random(1).random() for _ in range(50000)))
cpu(statistics.stdev, lambda: statistics.stdev(range(5000)))
cpu(fractions.Fraction.limit_denominator, lambda: fractions.Fraction("3.14159265358979").limit_denominator(1000), 3000)
cpu(random.Random.shuffle, lambda: random.Random(1).shuffle(list(range(60000))))
cpu(random.Random.sample, lambda: random.Random(1).sample(range(10**6), 40000))
cpu(random.Random.gauss, lambda: random.gauss(0, 1), 100_000)
cpu(string.Template.substitute, lambda: string.Template("$a and $b " * 50).substitute(a=1, b=2), 200)
cpu(urllib.parse.urlsplit, lambda: urllib.parse.urlsplit("http://a.b/c?d=e#f"), 30000)
cpu(urllib.parse.quote, lambda: urllib.parse.quote(TEXT[:3000] + "é/&"), 100)
cpu(urllib.parse.parse_qsl, lambda: urllib.parse.parse_qsl("a=b&c=d%20e&" * 300), 30)
cpu(urllib.parse.urljoin, lambda: urllib.parse.urljoin("http://a/b/c/d", "../g"), 10000)
cpu(ipaddress.ip_network, lambda: ipaddress.ip_network("10.2.0.0/16"), 5000)
cpu(ipaddress.ip_address, lambda: ipaddress.ip_address("2001:db8::1"), 8000)
cpu(uuid.uuid5, lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "a.b"), 10000)
cpu(heapq.merge, lambda: list(heapq.merge(range(0, 60000, 2), range(1, 60000, 2))))
cpu(heapq.nsmallest, lambda: heapq.nsmallest(50, range(200000, 0, -1), key=lambda value: -value))
cpu(collections.Counter.update, lambda: collections.Counter().update(TEXT), 5)
cpu(copy.deepcopy, lambda: copy.deepcopy(RECORDS))
cpu(pprint.pformat, lambda: pprint.pformat(RECORDS[:300]))
cpu(ast.literal_eval, lambda: ast.literal_eval(repr(RECORDS[:500])))
cpu(ast.walk, lambda tree=ast.parse(CODE): list(ast.walk(tree)), 3)
cpu(ast.dump, lambda tree=ast.parse(CODE): ast.dump(tree))
cpu(tokenize.generate_tokens, lambda: list(tokenize.generate_tokens(io.StringIO(CODE).readline)))
cpu(shlex.split, lambda: shlex.split("a 'b c' d " * 500))
cpu(html.escape, lambda: html.escape(TEXT), 50)
cpu(html.unescape, lambda: html.unescape("&lt;a&gt;&amp;" * 3000))
cpu(html.parser.HTMLParser.feed, lambda: html.parser.HTMLParser().feed(XML[:100000]))
cpu(email.message_from_string, lambda: email.message_from_string(MESSAGE), 50)
cpu(email.message.Message.as_string, lambda its=email.message_from_string(MESSAGE): its.as_string(), 50)
cpu(plistlib.dumps, lambda: plistlib.dumps(RECORDS[:2000]))
cpu(plistlib.loads, lambda data=plistlib.dumps(RECORDS[:2000]): plistlib.loads(data))
cpu(tomllib.loads, lambda: tomllib.loads("[a]\nb = [1, 2, 'x']\n" + "".join(f"k{n} = {n}\n" for n in range(3000))))
cpu(xmlrpc.client.dumps, lambda: xmlrpc.client.dumps((RECORDS[:500],)))
cpu(xmlrpc.client.loads, lambda data=xmlrpc.client.dumps((RECORDS[:500],)): xmlrpc.client.loads(data))
cpu(calendar.TextCalendar.formatyear, lambda: calendar.TextCalendar().formatyear(2026), 3)
cpu(posixpath.join, lambda: posixpath.join("/a", "b", "c/d"), 30000)
cpu(posixpath.normpath, lambda: posixpath.normpath("/a/./b/../c//d"), 20000)
cpu(posixpath.relpath, lambda: posixpath.relpath("/a/b/c", "/a/d"), 3000)
cpu(pathlib.PurePath.with_suffix, lambda path=Path("/a/b.txt"): path.with_suffix(".gz"), 10000)
cpu(pathlib.PurePath.relative_to, lambda path=Path("/a/b/c"): path.relative_to("/a"), 10000)
cpu(zipfile.ZipInfo.FileHeader, lambda its=_entry(): its.FileHeader(), 20000)
cpu(tarfile.TarInfo.tobuf, lambda its=tarfile.TarInfo("a"): its.tobuf(), 3000)
cpu(
    tarfile.TarInfo.frombuf,
    lambda data=tarfile.TarInfo("a").tobuf(): tarfile.TarInfo.frombuf(data, "utf-8", "strict"),
    2000,
)
cpu(_pyio.BytesIO.write, lambda its=_pyio.BytesIO(): its.write(b"x" * 100), 20000)
cpu(_pyio.StringIO.getvalue, lambda its=_pyio.StringIO(TEXT): its.getvalue(), 20)
cpu(re.escape, lambda: re.escape(TEXT), 20)
cpu(re.sub, lambda: re.sub("a.", "b", TEXT))
cpu(http.client.parse_headers, lambda: http.client.parse_headers(io.BytesIO(b"A: b\r\n" * 50 + b"\r\n")), 30)
cpu(
    logging.Formatter.format,
    lambda its=logging.makeLogRecord({"msg": "a %s", "args": ("b",)}): logging.Formatter(
        "%(asctime)s %(message)s"
    ).format(its),
    3000,
)
cpu(logging.Logger.debug, lambda its=logging.getLogger("quiet"): its.debug("a %s", "b"), 50000)
cpu(mimetypes.guess_type, lambda: mimetypes.guess_type("a.tar.gz"), 10000)
cpu(dataclasses.asdict, lambda its=Place(Path("a"), "b", {"c": 1}): dataclasses.asdict(its), 3000)
cpu(inspect.signature, lambda: inspect.signature(shutil.copytree), 500)
cpu(fsspec.utils.infer_storage_options, lambda: fsspec.utils.infer_storage_options("hdfs://u@h:1/p"), 5000)
cpu(fsspec.utils.tokenize, lambda: fsspec.utils.tokenize("a", b=1), 5000)
cpu(fsspec.utils.stringify_path, lambda: fsspec.utils.stringify_path(Path("/a/b")), 50000)
cpu(fsspec.core.split_protocol, lambda: fsspec.core.split_protocol("s3://a/b"), 50000)
cpu(LocalFileSystem._strip_protocol, lambda: LocalFileSystem._strip_protocol("file:///a/b"), 10000)
cpu(MemoryFileSystem.pipe_file, lambda its=MemoryFileSystem(): its.pipe_file("/a", b"x" * 1000), 3000)
cpu(MemoryFileSystem.cat_file, lambda its=MemoryFileSystem(): (its.pipe_file("/b", b"x"), its.cat_file("/b")), 3000)
cpu(MemoryFileSystem.ls, lambda its=MemoryFileSystem(): (its.pipe_file("/c/d", b"x"), its.ls("/c")), 3000)
cpu(MemoryFileSystem.info, lambda its=MemoryFileSystem(): (its.pipe_file("/e", b"x"), its.info("/e")), 3000)
cpu(
    requests.models.PreparedRequest.prepare,
    lambda: requests.Request("GET", "http://a/b", params={"c": "d"}).prepare(),
    300,
)
cpu(urllib3.util.url.parse_url, lambda: urllib3.util.url.parse_url("http://a.b:80/c?d=e"), 3000)
cpu(requests.cookies.cookiejar_from_dict, lambda: requests.cookies.cookiejar_from_dict({"a": "b", "c": "d"}), 1000)
cpu(gettext.c2py, lambda: gettext.c2py("n != 1"), 500)
cpu(ElementTree.indent, lambda tree=ElementTree.fromstring(XML): ElementTree.indent(tree))
cpu(ssl.create_default_context, lambda: ssl.create_default_context(), 3)
cpu(
    datetime.timedelta.__str__ if hasattr(datetime.timedelta.__str__, "__code__") else textwrap.fill,
    lambda: textwrap.fill(TEXT[:60000]),
)


# --- disk: reading -----------------------------------------------------------------------------------------------

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
    each(lambda path: _with(path, zipfile._EndRecData)),
)
disk(
    configparser.RawConfigParser.read,
    lambda d: [_write(d / f"{n}.ini", "[a]\nb = c\n") for n in range(MANY)],
    each(lambda path: configparser.ConfigParser().read(path)),
)
disk(json.load, lambda d: _write(d / "a.json", JSON_TEXT * 1), lambda path: _with(path, json.load))
disk(
    plistlib.load,
    lambda d: _write(d / "a.plist", plistlib.dumps(RECORDS).decode()),
    lambda path: _with(path, plistlib.load),
)
disk(
    tomllib.load,
    lambda d: _write(d / "a.toml", "a = 1\n" + "".join(f"k{n} = {n}\n" for n in range(2000))),
    lambda path: _with(path, tomllib.load),
)
disk(
    ElementTree.ElementTree.parse,
    lambda d: _write(d / "a.xml", XML),
    lambda path: ElementTree.ElementTree().parse(path),
)
disk(tokenize.open, many, each(lambda path: _safe(tokenize.open, path)))
disk(
    netrc.netrc.__init__,
    lambda d: [_write(d / f"{n}", "machine a login b password c\n") for n in range(MANY)],
    each(netrc.netrc),
)
disk(
    mimetypes.MimeTypes.read,
    lambda d: [_write(d / f"{n}", "text/x a\n") for n in range(MANY)],
    each(lambda path: mimetypes.MimeTypes().read(path)),
)
disk(
    pkgutil.iter_modules,
    lambda d: [_write(d / f"m{n}.py", "") for n in range(MANY)] and d,
    lambda d: list(pkgutil.iter_modules([str(d)])),
)
disk(runpy.run_path, lambda d: _write(d / "a.py", CODE), runpy.run_path)
disk(
    wave.open,
    lambda d: [_wave(d / f"{n}.wav", 2000) for n in range(100)],
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
disk(tarfile.TarFile.getmembers, tarred, lambda path: _closing(tarfile.open(path), lambda its: its.getmembers()))
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
opened(_pyio.BufferedReader.peek, many, lambda paths: contextlib.ExitStack(), lambda _: None)
CASES.pop()
opened(
    _pyio.TextIOWrapper.read,
    lambda d: _write(d / "a", "x" * BIG),
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


def _with(path: Any, use: Callable[[Any], Any]) -> Any:
    with open(path, "rb") as opened_file:
        return use(opened_file)


def _safe(function: Callable[[Any], Any], argument: Any) -> None:
    with contextlib.suppress(SyntaxError):
        function(argument).close()


def _closing(its: Any, use: Callable[[Any], Any]) -> Any:
    with its as entered:
        return use(entered)


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _wave(path: Path, count: int) -> Path:
    with wave.open(str(path), "wb") as its:
        its.setnchannels(1)
        its.setsampwidth(2)
        its.setframerate(8000)
        its.writeframes(b"ab" * count)
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


# --- disk: writing -----------------------------------------------------------------------------------------------

DATA = noise(BIG)


def fresh(folder: Path) -> list[Path]:
    """Paths that do not exist yet."""
    return [folder / f"new{number}" for number in range(MANY)]


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
disk(shutil.copytree, lambda d: (folder_of(many)(_dir(d / "s")), d / "t"), lambda its: shutil.copytree(*its))
disk(shutil.rmtree, lambda d: folder_of(many)(_dir(d / "s")), shutil.rmtree)
disk(shutil.move, many, each(lambda path: shutil.move(path, f"{path}.n")))
disk(
    shutil.make_archive,
    lambda d: (str(d / "a"), "tar", folder_of(one())(_dir(d / "s"))),
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
    lambda: _closing(
        tempfile.SpooledTemporaryFile(MIB), lambda its: (its.write(b"x" * 100000), its.seek(0), its.read())
    ),
    100,
)
disk(
    zipfile.ZipFile.write,
    one(),
    lambda path: _closing(zipfile.ZipFile(f"{path}.zip", "w"), lambda its: its.write(path)),
)
disk(
    zipfile.ZipFile.writestr,
    lambda d: d / "a.zip",
    lambda path: _closing(
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), lambda its: its.writestr("a", prose(2 * MIB))
    ),
)
disk(
    zipfile.ZipFile.extractall,
    zipped(),
    lambda path: _closing(zipfile.ZipFile(path), lambda its: its.extractall(path.parent)),
)
disk(
    zipfile.ZipFile.extract,
    zipped(),
    lambda path: _closing(zipfile.ZipFile(path), lambda its: its.extract("m1", path.parent)),
)
disk(
    zipapp.create_archive,
    lambda d: (folder_of(many)(_dir(d / "s")), d / "a.pyz"),
    lambda its: zipapp.create_archive(*its, main="a:b"),
)
disk(tarfile.TarFile.add, one(), lambda path: _closing(tarfile.open(f"{path}.tar", "w"), lambda its: its.add(path)))
disk(
    tarfile.TarFile.addfile,
    one(),
    lambda path: _closing(
        tarfile.open(f"{path}.tar", "w"),
        lambda its: _with(path, lambda source: its.addfile(its.gettarinfo(path), source)),
    ),
)
disk(
    tarfile.TarFile.gettarinfo,
    many,
    lambda paths: _closing(
        tarfile.open(fileobj=io.BytesIO(), mode="w"), lambda its: [its.gettarinfo(path) for path in paths]
    ),
)
disk(
    tarfile.TarFile.extractall,
    tarred,
    lambda path: _closing(tarfile.open(path), lambda its: its.extractall(path.parent, filter="data")),
)
disk(
    tarfile.TarFile.makefile,
    tarred,
    lambda path: _closing(tarfile.open(path), lambda its: its.makefile(its.getmember("m0"), str(path.parent / "x"))),
)
disk(
    tarfile.copyfileobj,
    one(),
    lambda path: _with(path, lambda source: tarfile.copyfileobj(source, open(f"{path}.n", "wb"), BIG)),
)
disk(
    shutil.copyfileobj,
    one(),
    lambda path: _with(path, lambda source: shutil.copyfileobj(source, open(f"{path}.n", "wb"))),
)
disk(
    gzip.GzipFile.write,
    lambda d: d / "a.gz",
    lambda path: _closing(gzip.open(path, "wb"), lambda its: its.write(DATA[: 2 * MIB])),
)
disk(
    bz2.BZ2File.write,
    lambda d: d / "a.bz2",
    lambda path: _closing(bz2.open(path, "wb"), lambda its: its.write(DATA[: MIB // 2])),
)
disk(
    lzma.LZMAFile.write,
    lambda d: d / "a.xz",
    lambda path: _closing(lzma.open(path, "wb"), lambda its: its.write(DATA[: MIB // 4])),
)
disk(json.dump, lambda d: d / "a", lambda path: _closing(open(path, "w"), lambda its: json.dump(RECORDS, its)))
disk(
    configparser.RawConfigParser.write,
    lambda d: d,
    lambda d: [_closing(open(d / f"{n}", "w"), lambda its: _CONFIG.write(its)) for n in range(FOLDERS)],
)
disk(plistlib.dump, lambda d: d / "a", lambda path: _closing(open(path, "wb"), lambda its: plistlib.dump(RECORDS, its)))
disk(
    ElementTree.ElementTree.write,
    lambda d: d / "a",
    lambda path: ElementTree.ElementTree(ElementTree.fromstring(XML)).write(path),
)
disk(py_compile.compile, lambda d: _write(d / "a.py", CODE), lambda path: py_compile.compile(str(path)))
disk(
    compileall.compile_file,
    lambda d: [_write(d / f"m{n}.py", "a = 1\n") for n in range(100)],
    each(lambda path: compileall.compile_file(path, quiet=2)),
)
disk(wave.Wave_write.writeframes, lambda d: d / "a.wav", lambda path: _wave(path, BIG // 2))
disk(
    dbm.dumb._Database.__setitem__,
    lambda d: d / "a",
    lambda path: _closing(
        dbm.dumb.open(str(path)), lambda its: [its.__setitem__(f"k{n}", b"x" * 4000) for n in range(1000)]
    ),
)
disk(
    dbm.dumb._Database.__getitem__,
    lambda d: _dumb(d / "a"),
    lambda path: _closing(dbm.dumb.open(str(path)), lambda its: [its[f"k{n}"] for n in range(500)]),
)
disk(
    dbm.dumb._Database._commit,
    lambda d: _dumb(d / "a"),
    lambda path: _closing(
        dbm.dumb.open(str(path)), lambda its: [(setattr(its, "_modified", True), its._commit()) for _ in range(10)]
    ),
)
disk(
    mailbox.mbox.add if "add" in vars(mailbox.mbox) else mailbox._singlefileMailbox.flush,
    lambda d: d / "m",
    lambda path: _closing(
        contextlib.closing(mailbox.mbox(path)), lambda its: ([its.add(MESSAGE) for _ in range(100)], its.flush())
    ),
)
disk(mailbox.Maildir.add, lambda d: mailbox.Maildir(d / "m"), lambda its: [its.add(MESSAGE) for _ in range(100)])
disk(http.cookiejar.LWPCookieJar.save, lambda d: d, lambda d: [_JAR.save(str(d / f"{n}")) for n in range(MANY)])
disk(logging.FileHandler._open, lambda d: d, lambda d: [logging.FileHandler(d / f"{n}").close() for n in range(MANY)])
disk(
    logging.handlers.RotatingFileHandler.doRollover,
    lambda d: logging.handlers.RotatingFileHandler(d / "log", backupCount=5),
    lambda its: [its.doRollover() for _ in range(100)],
)
CASES.pop()
disk(
    sqlite3.dump._iterdump,
    lambda d: _database(d / "a.db"),
    lambda path: _closing(contextlib.closing(sqlite3.connect(path)), lambda its: list(sqlite3.dump._iterdump(its))),
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


def _dir(path: Path) -> Path:
    path.mkdir()
    return path


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


# --- fsspec: files -----------------------------------------------------------------------------------------------

LOCAL = LocalFileSystem()

disk(LocalFileSystem.mkdir, fresh, each(LOCAL.mkdir))
disk(LocalFileSystem.makedirs, fresh, each(LOCAL.makedirs))
disk(LocalFileSystem.rmdir, lambda d: [_dir(path) for path in fresh(d)], each(LOCAL.rmdir))
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
    lambda path: _closing(LOCAL.open(str(path), "wb"), lambda its: its.write(DATA)),
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
disk(fsspec.core.OpenFile.__enter__, many, each(lambda path: _closing(fsspec.open(str(path)), lambda its: None)))
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


# --- the network -------------------------------------------------------------------------------------------------


def times(count: int, use: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda its: [use(its) for _ in range(count)]


def ask(connection: socket.socket, text: bytes) -> socket.socket:
    connection.sendall(text)
    return connection


def lines(place: Place, text: bytes = b"SEND 200000\n") -> socket.socket:
    return ask(socket.create_connection(place.address("lines")), text)


class Dialled(contextlib.AbstractContextManager["Dialled"]):
    """Asks a peer to connect to a port here."""

    def __init__(self, place: Place) -> None:
        self.control = socket.create_connection(place.address("dial"))

    def dial(self, port: int, text: str) -> None:
        self.control.sendall(f"DIAL {port} {text}\n".encode())

    def __exit__(self, *_: object) -> None:
        self.control.close()


net(socket.create_connection, lambda p: p, times(5, lambda p: socket.create_connection(p.address("lines")).close()))
cpu(socket.create_server, lambda: socket.create_server(("127.0.0.1", 0)).close(), 300)
cpu(socket.getfqdn, lambda: socket.getfqdn("127.0.0.1"), 50)
cpu(socket.socketpair, lambda: [each_end.close() for each_end in socket.socketpair()], 1000)
net(
    socket.SocketIO.readinto,
    lambda p: lines(p).makefile("rb", buffering=0),
    lambda its: [its.readinto(bytearray(20000)) for _ in range(8)],
)
net(
    socket.SocketIO.write,
    lambda p: lines(p, b"SINK 3000000\n").makefile("wb", buffering=0),
    lambda its: its.write(noise(3_000_000)),
)
CASES.pop()
net(telnetlib.Telnet.open, lambda p: p, times(5, lambda p: telnetlib.Telnet(*p.address("lines")).close()))
net(telnetlib.Telnet.read_until, lambda p: _telnet(p, b"hello\n"), lambda its: its.read_until(b"hello\n"))
net(telnetlib.Telnet.read_some, lambda p: _telnet(p, b"hello\n"), lambda its: its.read_some())
net(telnetlib.Telnet.expect, lambda p: _telnet(p, b"hello\n"), lambda its: its.expect([b"o\n"], 1))
net(telnetlib.Telnet.fill_rawq, lambda p: _telnet(p, b"hello\n"), lambda its: its.fill_rawq())


def _telnet(place: Place, text: bytes) -> telnetlib.Telnet:
    its = telnetlib.Telnet(*place.address("lines"))
    its.write(text)
    return its


def http_connection(place: Place) -> http.client.HTTPConnection:
    its = http.client.HTTPConnection(*place.address("http"))
    its.connect()
    return its


def asked(place: Place) -> http.client.HTTPConnection:
    its = http_connection(place)
    its.request("GET", "/bytes/200000")
    return its


def answered(place: Place) -> http.client.HTTPResponse:
    return asked(place).getresponse()


BODY = noise(2_000_000)
net(http.client.HTTPConnection.connect, lambda p: p, times(5, lambda p: http_connection(p).close()))
net(http.client.HTTPConnection.request, http_connection, lambda its: its.request("PUT", "/a", BODY))
net(http.client.HTTPConnection.send, lambda p: lines_http(p), lambda its: its.send(BODY))
net(http.client.HTTPConnection.getresponse, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse.begin, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse._read_status, asked, lambda its: its.getresponse())
net(http.client.HTTPResponse.read, answered, lambda its: its.read())
net(http.client.HTTPResponse.readinto, answered, lambda its: [its.readinto(bytearray(20000)) for _ in range(10)])
net(http.client.HTTPResponse.readline, answered, times(8, lambda its: its.readline()))
net(http.client.HTTPResponse.read1, answered, times(8, lambda its: its.read1(20000)))
net(http.client.HTTPResponse.peek, answered, times(3, lambda its: its.peek()))
net(http.client.HTTPResponse._safe_read, answered, lambda its: its._safe_read(100000))
cpu(http.client.HTTPConnection.putheader, lambda: _header(), 5000)
net(urllib.request.urlopen, lambda p: p, lambda p: urllib.request.urlopen(p.url()).close())
net(urllib.request.OpenerDirector.open, lambda p: p, lambda p: urllib.request.build_opener().open(p.url()).close())
net(urllib.request.HTTPHandler.http_open, lambda p: p, lambda p: urllib.request.build_opener().open(p.url()).close())
net(
    urllib.request.AbstractHTTPHandler.do_open,
    lambda p: p,
    lambda p: urllib.request.build_opener().open(p.url()).close(),
)
net(urllib.request.urlretrieve, lambda p: p, lambda p: urllib.request.urlretrieve(p.url(), p.folder / "x"))
net(
    urllib.request.FTPHandler.ftp_open,
    lambda p: p,
    lambda p: urllib.request.urlopen(f"ftp://{p.peer}:{p.ports['ftp']}/a").read(),
)
cpu(urllib.request.build_opener, lambda: urllib.request.build_opener(), 100)
cpu(urllib.request.Request.full_url.fset, lambda: urllib.request.Request("http://a/b"), 5000)


def lines_http(place: Place) -> http.client.HTTPConnection:
    its = http_connection(place)
    its.putrequest("PUT", "/a")
    its.putheader("Content-Length", str(len(BODY)))
    its.endheaders()
    return its


def _header() -> None:
    its = http.client.HTTPConnection("a")
    its.putrequest("GET", "/")
    its.putheader("A", "b", "c")


def ftp(place: Place) -> ftplib.FTP:
    its = ftplib.FTP()
    its.connect(*place.address("ftp"))
    its.login("a", "b")
    return its


net(ftplib.FTP.connect, lambda p: p, lambda p: ftplib.FTP().connect(*p.address("ftp")))
net(ftplib.FTP.login, lambda p: _ftp_connected(p), lambda its: its.login("a", "b"))
net(ftplib.FTP.sendcmd, ftp, lambda its: its.sendcmd("NOOP"))
net(ftplib.FTP.voidcmd, ftp, lambda its: its.voidcmd("TYPE I"))
net(ftplib.FTP.getresp, ftp, lambda its: (its.putcmd("NOOP"), its.getresp()))
net(ftplib.FTP.getmultiline, ftp, lambda its: (its.putcmd("NOOP"), its.getmultiline()))
net(ftplib.FTP.retrbinary, ftp, lambda its: its.retrbinary("RETR a", lambda _: None))
net(ftplib.FTP.retrlines, ftp, lambda its: its.retrlines("LIST", lambda _: None))
net(ftplib.FTP.storbinary, ftp, lambda its: its.storbinary("STOR a", io.BytesIO(noise(200_000))))
net(ftplib.FTP.storlines, ftp, lambda its: its.storlines("STOR a", io.BytesIO(b"a line\n" * 2000)))
net(ftplib.FTP.nlst, ftp, lambda its: its.nlst())
net(ftplib.FTP.mlsd, ftp, lambda its: list(its.mlsd()))
net(ftplib.FTP.size, ftp, lambda its: its.size("a"))
net(ftplib.FTP.pwd, ftp, lambda its: its.pwd())
net(ftplib.FTP.cwd, ftp, lambda its: its.cwd("a"))
net(ftplib.FTP.mkd, ftp, lambda its: its.mkd("a"))
net(ftplib.FTP.delete, ftp, lambda its: its.delete("a"))
net(ftplib.FTP.rename, ftp, lambda its: its.rename("a", "b"))
net(ftplib.FTP.quit, ftp, lambda its: its.quit())
net(ftplib.FTP.ntransfercmd, ftp, lambda its: its.ntransfercmd("RETR a")[0].close())
net(ftplib.FTP.makepasv, ftp, lambda its: its.makepasv())
cpu(ftplib.parse227, lambda: ftplib.parse227("227 at (1,2,3,4,5,6)"), 20000)


def _ftp_connected(place: Place) -> ftplib.FTP:
    its = ftplib.FTP()
    its.connect(*place.address("ftp"))
    return its


def smtp(place: Place) -> smtplib.SMTP:
    its = smtplib.SMTP(*place.address("smtp"), local_hostname="here")
    its.ehlo()
    return its


MAIL = email.mime.text.MIMEText("a text\n" * 100)
MAIL["From"], MAIL["To"] = "a@b", "c@d"
net(smtplib.SMTP.connect, lambda p: p, lambda p: smtplib.SMTP(local_hostname="here").connect(*p.address("smtp")))
net(smtplib.SMTP.ehlo, smtp, lambda its: its.ehlo())
net(smtplib.SMTP.helo, smtp, lambda its: its.helo())
net(smtplib.SMTP.docmd, smtp, lambda its: its.docmd("NOOP"))
net(smtplib.SMTP.getreply, smtp, lambda its: (its.putcmd("NOOP"), its.getreply()))
net(smtplib.SMTP.noop, smtp, lambda its: its.noop())
net(smtplib.SMTP.mail, smtp, lambda its: its.mail("a@b"))
net(smtplib.SMTP.rcpt, smtp, lambda its: its.rcpt("a@b"))
net(smtplib.SMTP.data, smtp, lambda its: its.data(MESSAGE))
net(smtplib.SMTP.sendmail, smtp, lambda its: its.sendmail("a@b", ["c@d"], MESSAGE))
net(smtplib.SMTP.send_message, smtp, lambda its: its.send_message(MAIL))
net(smtplib.SMTP.quit, smtp, lambda its: its.quit())
cpu(smtplib.quotedata, lambda: smtplib.quotedata(MESSAGE), 300)


def imap(place: Place) -> imaplib.IMAP4:
    its = imaplib.IMAP4(*place.address("imap"))
    its.login("a", "b")
    its.select()
    return its


net(imaplib.IMAP4.login, lambda p: imaplib.IMAP4(*p.address("imap")), lambda its: its.login("a", "b"))
net(imaplib.IMAP4.select, imap, lambda its: its.select())
net(imaplib.IMAP4.search, imap, lambda its: its.search(None, "ALL"))
net(imaplib.IMAP4.fetch, imap, lambda its: its.fetch("1", "(BODY[])"))
net(imaplib.IMAP4.list, imap, lambda its: its.list())
net(imaplib.IMAP4.noop, imap, lambda its: its.noop())
net(imaplib.IMAP4.status, imap, lambda its: its.status("INBOX", "(MESSAGES)"))
net(imaplib.IMAP4.append, imap, lambda its: its.append("INBOX", None, None, MESSAGE.encode()))
net(imaplib.IMAP4._simple_command, imap, lambda its: its.noop())
net(imaplib.IMAP4._command_complete, imap, lambda its: its._command_complete("NOOP", its._command("NOOP")))
net(imaplib.IMAP4._get_response, imap, lambda its: (its._command("NOOP"), its._get_response()))
net(imaplib.IMAP4.logout, imap, lambda its: its.logout())
cpu(imaplib.Time2Internaldate, lambda: imaplib.Time2Internaldate(time.time()), 3000)


def pop(place: Place) -> poplib.POP3:
    return poplib.POP3(*place.address("pop"))


net(poplib.POP3.__init__, lambda p: p, lambda p: poplib.POP3(*p.address("pop")).close())
net(poplib.POP3.stat, pop, lambda its: its.stat())
net(poplib.POP3.list, pop, lambda its: its.list())
net(poplib.POP3.retr, pop, lambda its: its.retr(1))
net(poplib.POP3.dele, pop, lambda its: its.dele(1))
net(poplib.POP3.uidl, pop, lambda its: its.uidl())
net(poplib.POP3._shortcmd, pop, lambda its: its._shortcmd("NOOP"))
net(poplib.POP3._longcmd, pop, lambda its: its._longcmd("LIST"))
net(poplib.POP3.quit, pop, lambda its: its.quit())


def nntp(place: Place) -> nntplib.NNTP:
    return nntplib.NNTP(*place.address("nntp"))


net(nntplib.NNTP.group if hasattr(nntplib.NNTP, "group") else nntplib.NNTP, nntp, lambda its: its.group("a.group"))
net(nntplib.NNTP.list, nntp, lambda its: its.list())
net(nntplib.NNTP.article, nntp, lambda its: its.article("1"))
net(nntplib.NNTP.body, nntp, lambda its: its.body("1"))
net(nntplib.NNTP._getlongresp, nntp, lambda its: its.body("1"))
net(nntplib.NNTP.date, nntp, lambda its: its.date())


def proxy(place: Place) -> xmlrpc.client.ServerProxy:
    return xmlrpc.client.ServerProxy(f"http://{place.peer}:{place.ports['xmlrpc']}/", allow_none=True)


def call_slow(place: Place) -> Any:
    return proxy(place).slow(1)


net(xmlrpc.client.ServerProxy.__dict__["_ServerProxy__request"], lambda p: p, call_slow)
net(xmlrpc.client.Transport.request, lambda p: p, call_slow)
net(xmlrpc.client.Transport.single_request, lambda p: p, call_slow)
net(xmlrpc.client.MultiCall.__call__, lambda p: p, lambda p: list(_multi(proxy(p))()))


def _multi(its: Any) -> Any:
    calls = xmlrpc.client.MultiCall(its)
    calls.slow(1)
    calls.slow(2)
    return calls


def peer_connection(place: Place) -> Any:
    return multiprocessing.connection.Client(place.address("connection"), authkey=b"peer")


Connection = multiprocessing.connection.Connection
net(multiprocessing.connection.Client, lambda p: p, lambda p: peer_connection(p).close())
net(
    multiprocessing.connection.SocketClient,
    lambda p: p,
    times(5, lambda p: multiprocessing.connection.SocketClient(p.address("lines")).close()),
)
net(
    multiprocessing.connection._ConnectionBase.recv_bytes,
    peer_connection,
    lambda its: (its.send_bytes(b"x"), its.recv_bytes()),
)
net(Connection._recv_bytes, peer_connection, lambda its: (its.send_bytes(b"x"), its.recv_bytes()))
net(multiprocessing.connection._ConnectionBase.poll, peer_connection, lambda its: (its.send_bytes(b"x"), its.poll(1)))
net(
    multiprocessing.connection.wait,
    peer_connection,
    lambda its: (its.send_bytes(b"x"), multiprocessing.connection.wait([its])),
)


def selected(kind: Any) -> Callable[[Place], Iterator[Any]]:
    def workload(place: Place) -> Iterator[Any]:
        with lines(place, b"hello\n") as its, kind() as selector:
            selector.register(its, selectors.EVENT_READ)
            yield lambda: selector.select(1)

    return workload


case(selectors.EpollSelector.select)(selected(selectors.EpollSelector))
case(selectors.PollSelector.select if "select" in vars(selectors.PollSelector) else selectors._PollLikeSelector.select)(
    selected(selectors.PollSelector)
)
case(selectors.SelectSelector.select)(selected(selectors.SelectSelector))


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"ok\n")


def served(handler: Any, text: str = "one line|") -> Callable[[Place], Iterator[Any]]:
    def workload(place: Place) -> Iterator[Any]:
        with Dialled(place) as peer, socketserver.TCPServer(("0.0.0.0", 0), handler) as server:
            peer.dial(server.server_address[1], text)
            yield lambda: server.handle_request()

    return workload


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


case(socketserver.BaseServer.handle_request)(served(_Handler))
case(socketserver.BaseServer._handle_request_noblock)(served(_Handler))
case(socketserver.TCPServer.get_request)(served(_Handler))
case(http.server.BaseHTTPRequestHandler.handle_one_request)(served(_Page, "GET / HTTP/1.0||"))
case(http.server.BaseHTTPRequestHandler.handle)(served(_Page, "GET / HTTP/1.0||"))


@case(socket.socket.accept)
def _accept(place: Place) -> Iterator[Any]:
    with Dialled(place) as peer, socket.create_server(("0.0.0.0", 0)) as server:
        peer.dial(server.getsockname()[1], "hello|")
        yield lambda: server.accept()[0].close()


@case(multiprocessing.connection.SocketListener.accept)
def _listen(place: Place) -> Iterator[Any]:
    with Dialled(place) as peer, multiprocessing.connection.Listener(("0.0.0.0", 0)) as server:
        peer.dial(server.address[1], "hello|")
        yield lambda: server.accept().close()


@case(socket.socket.sendfile)
def _sendfile(place: Place) -> Iterator[Any]:
    path = one(4 * MIB)(place.folder)
    yield None
    with lines(place, b"SINK 4194304\n") as its, path.open("rb") as source:
        yield lambda: its.sendfile(source)


@case(socketserver._SocketWriter.write)
def _socket_writer(place: Place) -> Iterator[Any]:
    with lines(place, b"SINK 4194304\n") as its:
        yield lambda: socketserver._SocketWriter(its).write(noise(4 * MIB))


def secure(place: Place, text: bytes = b"") -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    its = context.wrap_socket(socket.create_connection(place.address("tls")), do_handshake_on_connect=False)
    if text:
        its.do_handshake()
        its.sendall(text)
    return its


net(ssl.SSLSocket.do_handshake, secure, lambda its: its.do_handshake())
net(ssl.SSLSocket.recv, lambda p: secure(p, b"hello\n"), lambda its: its.recv(100))
net(ssl.SSLSocket.read, lambda p: secure(p, b"SEND 100000\n"), lambda its: [its.read(20000) for _ in range(5)])
net(
    ssl.SSLSocket.recv_into,
    lambda p: secure(p, b"SEND 100000\n"),
    lambda its: [its.recv_into(bytearray(20000)) for _ in range(5)],
)
net(ssl.SSLSocket.sendall, lambda p: secure(p, b"SINK 2000000\n"), lambda its: its.sendall(BODY))
net(ssl.get_server_certificate, lambda p: p, lambda p: ssl.get_server_certificate(p.address("tls")))


def streams(function: Any, text: bytes, use: Callable[[Any, Any], Any]) -> None:
    def workload(place: Place) -> Iterator[Any]:
        loop = asyncio.new_event_loop()
        reader, writer = loop.run_until_complete(asyncio.open_connection(*place.address("lines")))
        writer.write(text)
        yield lambda: loop.run_until_complete(use(reader, writer))
        writer.close()
        loop.close()

    CASES.append((function, workload))


streams(asyncio.StreamReader.read, b"SEND 100000\n", lambda reader, _: reader.read(100))
streams(asyncio.StreamReader.readline, b"hello\n", lambda reader, _: reader.readline())
streams(asyncio.StreamReader.readexactly, b"SEND 100000\n", lambda reader, _: reader.readexactly(100000))
streams(asyncio.StreamReader.readuntil, b"hello\n", lambda reader, _: reader.readuntil(b"o"))
streams(
    asyncio.StreamWriter.drain, b"SINK 4194304\n", lambda _, writer: (writer.write(noise(4 * MIB)), writer.drain())[1]
)


def looped(function: Any, use: Callable[[Place, asyncio.AbstractEventLoop], Any]) -> None:
    def workload(place: Place) -> Iterator[Any]:
        loop = asyncio.new_event_loop()
        yield lambda: loop.run_until_complete(use(place, loop))
        loop.close()

    CASES.append((function, workload))


async def _open(place: Place) -> None:
    for _ in range(5):
        _, writer = await asyncio.open_connection(*place.address("lines"))
        writer.close()


async def _sock_connect(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    for _ in range(5):
        with socket.socket() as its:
            its.setblocking(False)
            await loop.sock_connect(its, place.address("lines"))


async def _sock_recv(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    with lines(place, b"hello\n") as its:
        its.setblocking(False)
        await loop.sock_recv(its, 100)


async def _sock_sendall(place: Place, loop: asyncio.AbstractEventLoop) -> None:
    with lines(place, b"SINK 4194304\n") as its:
        its.setblocking(False)
        await loop.sock_sendall(its, noise(4 * MIB))


looped(asyncio.open_connection, lambda p, _: _open(p))
looped(asyncio.BaseEventLoop.create_connection, lambda p, _: _open(p))
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_connect, _sock_connect)
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_recv, _sock_recv)
looped(asyncio.selector_events.BaseSelectorEventLoop.sock_sendall, _sock_sendall)
looped(asyncio.BaseEventLoop.call_soon, lambda _, loop: _soon(loop))


async def _soon(loop: asyncio.AbstractEventLoop) -> None:
    for _ in range(10000):
        loop.call_soon(int)


RECORD = logging.makeLogRecord({"msg": "x" * 200})


@case(logging.handlers.SocketHandler.makeSocket)
def _make_socket(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SocketHandler(*place.address("lines"))
    yield lambda: [handler.makeSocket().close() for _ in range(5)]
    handler.close()


@case(logging.handlers.SocketHandler.send)
def _socket_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SocketHandler(*place.address("lines"))
    handler.createSocket()
    handler.send(b"SINK 4194304\n")
    yield lambda: handler.send(noise(4 * MIB))
    handler.close()


@case(logging.handlers.DatagramHandler.send)
def _datagrams(place: Place) -> Iterator[Any]:
    handler = logging.handlers.DatagramHandler(*place.address("udp"))
    yield lambda: [handler.send(b"x" * 500) for _ in range(300)]
    handler.close()


@case(logging.handlers.SysLogHandler.emit)
def _syslog(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SysLogHandler(place.address("udp"))
    yield lambda: [handler.emit(RECORD) for _ in range(300)]
    handler.close()


@case(logging.handlers.HTTPHandler.emit)
def _http_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.HTTPHandler(f"{place.peer}:{place.ports['http']}", "/log")
    yield lambda: handler.emit(RECORD)


@case(logging.handlers.SMTPHandler.emit)
def _smtp_handler(place: Place) -> Iterator[Any]:
    handler = logging.handlers.SMTPHandler(place.address("smtp"), "a@b", ["c@d"], "a")
    yield lambda: handler.emit(RECORD)


# --- fsspec, requests, urllib3: the network ----------------------------------------------------------------------

WEB = HTTPFileSystem()
net(HTTPFileSystem._cat_file, lambda p: p, lambda p: WEB.cat_file(p.url()))
net(HTTPFileSystem._info, lambda p: p, lambda p: WEB.info(p.url()))
net(HTTPFileSystem._exists, lambda p: p, lambda p: WEB.exists(p.url()))
net(HTTPFileSystem._isdir, lambda p: p, lambda p: WEB.isdir(p.url("a/")))
net(HTTPFileSystem._ls, lambda p: p, lambda p: WEB.ls(p.url("a/")))
net(HTTPFileSystem._ls_real, lambda p: p, lambda p: WEB.ls(p.url("a/")))
net(HTTPFileSystem._get_file, lambda p: p, lambda p: WEB.get_file(p.url(), str(p.folder / "x")))
net(
    HTTPFileSystem._put_file,
    lambda p: one(300_000)(p.folder) and p,
    lambda p: WEB.put_file(str(p.folder / "a"), p.url("a")),
)
net(HTTPFileSystem._open, lambda p: p, lambda p: WEB.open(p.url()).close())
net(HTTPFileSystem._glob, lambda p: p, lambda p: WEB.glob(p.url("a/*")))
net(fsspec.implementations.http.HTTPFile.read, lambda p: WEB.open(p.url()), lambda its: its.read())
net(
    fsspec.implementations.http.HTTPFile.async_fetch_range,
    lambda p: WEB.open(p.url()),
    lambda its: its._fetch_range(0, 50000),
)
net(fsspec.spec.AbstractBufferedFile.read, lambda p: WEB.open(p.url(), block_size=50000), lambda its: its.read(100000))
net(
    MMapCache._fetch,
    lambda p: MMapCache(65536, lambda start, end: WEB.cat_file(p.url(), start, end), 200000),
    lambda its: its._fetch(0, 150000),
)
net(
    SimpleCacheFileSystem._open,
    lambda p: (SimpleCacheFileSystem(fs=WEB, cache_storage=str(p.folder / "c"), skip_instance_cache=True), p),
    lambda its: its[0].open(its[1].url()).read(),
)
net(
    WholeFileCacheFileSystem._open,
    lambda p: (WholeFileCacheFileSystem(fs=WEB, cache_storage=str(p.folder / "c"), skip_instance_cache=True), p),
    lambda its: its[0].open(its[1].url()).read(),
)
net(fsspec.asyn.sync, lambda p: p, lambda p: WEB.cat_file(p.url()))
net(fsspec.asyn.AsyncFileSystem._cat, lambda p: p, lambda p: WEB.cat([p.url(), p.url("bytes/100000")]))
net(FTPFileSystem._connect, lambda p: p, lambda p: FTPFileSystem(p.peer, p.ports["ftp"], skip_instance_cache=True))
net(
    FTPFileSystem.get_file,
    lambda p: (FTPFileSystem(p.peer, p.ports["ftp"], skip_instance_cache=True), p),
    lambda its: its[0].ftp.retrbinary("RETR a", lambda _: None),
)
CASES.pop()
net(
    GenericFileSystem._cp_file,
    lambda p: p,
    lambda p: GenericFileSystem(default_method="current").cp_file(p.url(), f"file://{p.folder}/x"),
)
CASES.pop()

net(requests.api.get, lambda p: p, lambda p: requests.get(p.url()))
net(requests.api.post, lambda p: p, lambda p: requests.post(p.url("a"), data=BODY))
net(requests.Session.request, lambda p: (requests.Session(), p), lambda its: its[0].request("GET", its[1].url()))
net(requests.Session.send, lambda p: (requests.Session(), p), lambda its: its[0].get(its[1].url()))
net(
    requests.adapters.HTTPAdapter.send,
    lambda p: (requests.Session(), p),
    lambda its: its[0].get(its[1].url(), stream=True).close(),
)
net(
    requests.Response.iter_content,
    lambda p: requests.get(p.url(), stream=True),
    lambda its: list(its.iter_content(65536)),
)
net(requests.Response.iter_lines, lambda p: requests.get(p.url(), stream=True), lambda its: list(its.iter_lines()))
net(requests.Response.content.fget, lambda p: requests.get(p.url(), stream=True), lambda its: its.content)


def pool(place: Place) -> urllib3.HTTPConnectionPool:
    return urllib3.HTTPConnectionPool(*place.address("http"))


def pooled(place: Place) -> Any:
    return pool(place).urlopen("GET", "/bytes/200000", preload_content=False)


net(urllib3.HTTPConnectionPool.urlopen, pool, lambda its: its.urlopen("GET", "/bytes/100000"))
net(
    urllib3.HTTPConnectionPool._make_request,
    pool,
    lambda its: its.urlopen("GET", "/bytes/100", preload_content=False).close(),
)
net(urllib3.PoolManager.urlopen, lambda p: (urllib3.PoolManager(), p), lambda its: its[0].request("GET", its[1].url()))
net(urllib3.response.HTTPResponse.read, pooled, lambda its: its.read())
net(urllib3.response.HTTPResponse.stream, pooled, lambda its: list(its.stream(20000)))
net(urllib3.response.HTTPResponse._raw_read, pooled, lambda its: its.read())
net(urllib3.connection.HTTPConnection._new_conn, pool, times(5, lambda its: its._new_conn().connect()))
net(urllib3_connection, lambda p: p, times(5, lambda p: urllib3_connection(p.address("lines")).close()))
net(wait_for_read, lambda p: lines(p, b"hello\n"), lambda its: wait_for_read(its, 1))

# --- waits -------------------------------------------------------------------------------------------------------

cpu(threading.Event.wait, lambda: threading.Event().wait(0.02))
cpu(threading.Condition.wait, lambda: _wait_condition())
cpu(queue.Queue.get, lambda: _wait_queue())


def _wait_condition() -> None:
    its = threading.Condition()
    with its:
        its.wait(0.02)


def _wait_queue() -> None:
    with contextlib.suppress(queue.Empty):
        queue.Queue[int]().get(timeout=0.02)


@case(threading.Thread.join)
def _join(_: Place) -> Iterator[Any]:
    thread = threading.Thread(target=time.sleep, args=(0.1,))
    thread.start()
    yield thread.join


@case(subprocess.Popen.wait)
def _child(_: Place) -> Iterator[Any]:
    with subprocess.Popen(["sleep", "0.1"]) as child:
        yield child.wait
