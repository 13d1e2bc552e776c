# mypy: ignore-errors
# ruff: noqa: B008
"""Calls that need no device."""

from __future__ import annotations

import _pyio
import ast
import base64
import bz2
import calendar
import collections
import configparser
import copy
import csv
import dataclasses
import datetime
import difflib
import email
import email.message
import fractions
import gettext
import gzip
import heapq
import hmac
import html
import html.parser
import http.client
import inspect
import io
import ipaddress
import json
import logging
import lzma
import mimetypes
import pathlib
import plistlib
import posixpath
import pprint
import random
import re
import shlex
import shutil
import ssl
import statistics
import string
import tarfile
import textwrap
import tokenize
import tomllib
import urllib.parse
import uuid
import xml.etree.ElementTree as ElementTree
import xmlrpc.client
import zipfile
from pathlib import Path

import fsspec
import fsspec.core
import fsspec.utils
import requests
import urllib3
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from lab.measure.calls.cases import Cases, Place
from lab.measure.calls.materials import CODE, INI, JSON_TEXT, MESSAGE, MIB, RECORDS, TEXT, XML, noise, prose

CASES = Cases()
cpu = CASES.cpu


def _entry() -> zipfile.ZipInfo:
    its = zipfile.ZipInfo("a")
    its.CRC = its.compress_size = its.file_size = 10
    return its


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
